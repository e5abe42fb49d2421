"""Documents in place in a bucket and on the web: what is made of them is what is made of files on disk."""

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.files_in_place import NAMES, attributes, config, lay_out, output
from tests.storage.web_server import Behaviour, web
from toolkit.storage.paths import join

pytest.importorskip("pyarrow", exc_type=ImportError)


def shown(run: Run, path: str, *more: str) -> list[str]:
    """Return the place of a document behind the first row group, which `head` looks up in the row index."""
    first = run("head", "-c", path, "-n", "100000", "--json", *more).json["documents"]
    wanted = next(each for each in first if each["place"].endswith(f"more/c.{_format_of(each)}:31"))
    return [each["place"] for each in run("head", "-c", path, "--id", wanted["id"], "--json", *more).json["documents"]]


def _format_of(document: dict[str, Any]) -> str:
    return str(document["place"].rpartition("/c.")[2].rpartition(":")[0])


@pytest.mark.s3
@pytest.mark.slow
@pytest.mark.parametrize("format_", ["wet", "jsonl", "parquet"])
def test_in_a_bucket(format_: str, bucket: str, tmp_path: Path, run: Run) -> None:
    roots = str(tmp_path), join(bucket, format_)
    for root in roots:
        lay_out(root, format_)
        path = config(root, format_, in_place=True)
        for command in ("run", "validate"):
            run(command, "-c", path).succeeds()
        assert shown(run, path) == [join(root, f"theirs/more/c.{NAMES[format_]}:31")]
    local, remote = (output(root, "in-place") | attributes(root, "in-place", format_) for root in roots)
    assert remote == local


@pytest.mark.parametrize("format_", ["wet", "jsonl", "parquet"])
def test_on_the_web(format_: str, tmp_path: Path, run: Run) -> None:
    root = str(tmp_path)
    lay_out(root, format_)
    assert run("run", "-c", config(root, format_, in_place=True)).code == 0
    local = output(root, "in-place") | attributes(root, "in-place", format_)
    with web(tmp_path / "theirs", Behaviour()) as url:
        documents = {
            "documents.path": url,
            "documents.include": f"[{', '.join(f'{name}.{NAMES[format_]}' for name in ('a', 'b', 'more/c'))}]",
            "dataset": join(root, "far"),
            "mix.output.path": join(root, "out-far"),
        }
        given = [f"{name}={value}" for name, value in documents.items()]
        for command in ("run", "run", "validate"):
            run(command, "-c", join(root, "in-place.yaml"), *given).succeeds()
        places = shown(run, join(root, "in-place.yaml"), *given)
        assert places == [f"{url}more/c.{NAMES[format_]}:31"]
    assert output(root, "far") | attributes(root, "far", format_) == local
