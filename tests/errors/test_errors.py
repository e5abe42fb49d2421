"""Wrong configurations and command lines are refused with the message and the status of their tables; none writes."""

import json
import shlex
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.errors import REFUSED, TABLES, entries, files_of, message, prepare
from tests.pipeline.conftest import tree
from toolkit.session import Session

BY_COMMAND = defaultdict[str, list[tuple[Path, dict[str, Any]]]](list)
for _path, _entry in entries():
    BY_COMMAND[_entry["run"].partition(" ")[0]].append((_path, _entry))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the small data set."""
    path = tmp_path_factory.mktemp("errors")
    prepare(path)
    return path


@pytest.mark.parametrize("command", BY_COMMAND)
def test_messages_and_statuses(command: str, folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("DATA", ".")
    wrong: list[Any] = []
    for path, entry in BY_COMMAND[command]:
        with Session().bound(), files_of(folder, path, entry) as here:
            before = tree(here, bookkeeping=True)
            ran = run(*shlex.split(entry["run"]))
            found, status = message(ran.err, here), entry.get("status", REFUSED)
            if (found, ran.code) != (entry["message"], status) or (ran.out and status == REFUSED):
                wrong.append((entry, found, ran.code, ran.out))
            if tree(here, bookkeeping=True) != before:
                wrong.append((entry, "expected no change of a file"))
    assert wrong == []


def test_each_is_there_once() -> None:
    found = {json.dumps({**entry, "table": path.name, "message": ""}) for path, entry in entries()}
    assert len(found) == len(entries()) >= 200


def test_no_entry_names_the_folder_of_a_checkout() -> None:
    root = str(Path(__file__).parents[2])
    assert [path.name for path in TABLES if root in path.read_text(encoding="utf-8")] == []
