"""Wrong configurations and command lines are refused with the message and the status of their tables; none writes."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.errors import REFUSED, entries, files_of, message, prepare
from tests.pipeline.conftest import tree


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the small data set."""
    path = tmp_path_factory.mktemp("errors")
    prepare(path)
    return path


@pytest.mark.parametrize(
    ("path", "entry"), entries(), ids=lambda value: value["run"] if isinstance(value, dict) else value.stem
)
def test_the_message_and_the_status(
    path: Path, entry: dict[str, Any], folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("DATA", ".")
    with files_of(folder, path, entry) as here:
        before = tree(here, bookkeeping=True)
        ran = run(*shlex.split(entry["run"]))
        assert (message(ran.err, here), ran.code) == (entry["message"], entry.get("status", REFUSED))
        assert ran.out == "" or ran.code != REFUSED
        assert tree(here, bookkeeping=True) == before


def test_each_is_there_once() -> None:
    found = {json.dumps({**entry, "table": path.name, "message": ""}) for path, entry in entries()}
    assert len(found) == len(entries()) >= 200
