"""Indexes of raw files, as Modalities makes them, in a folder that mirrors theirs."""

import gzip
import json
import pickle
from pathlib import Path

import pytest

from tests.pipeline.conftest import Project

LINES = ['{"id":"a","text":"Größe"}\n', '{"id":"b","text":"zwei"}\r\n', '{"id":"c","text":""}']
"""With a line end of each kind, and without one at the end of the file."""


@pytest.fixture
def raw(project: Project, tmp_path: Path) -> Path:
    for name in ("2014-41/de/00000.jsonl", "2014-41/de/00001.jsonl", "2015-02/fr/00000.jsonl"):
        path = tmp_path / "raw" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes("".join(LINES).replace('":"', f'":"{name[:7]}').encode())
    ids = "{path}/{id}"
    project.ingest({"format": "jsonl", "from": [str(tmp_path / "raw/**/*.jsonl")], "source": "cc", "ids": ids})
    return tmp_path / "raw"


def written(project: Project, folder: Path) -> int:
    found: int = json.loads(project.ok("export", "--idx", folder, "--json").out)["written"]
    return found


def test_indexes_are_those_of_modalities(project: Project, raw: Path, tmp_path: Path) -> None:
    folder = tmp_path / "indexes"
    assert written(project, folder) == 3
    for path in raw.rglob("*.jsonl"):
        lines = path.read_bytes().split(b"\n")
        pairs = [(sum(len(line) + 1 for line in lines[:i]), len(line)) for i, line in enumerate(lines)]
        assert (folder / path.relative_to(raw).with_suffix(".idx")).read_bytes() == pickle.dumps(pairs, 4)
    assert not [*folder.rglob("*.jsonl")]
    assert written(project, folder) == 0
    (folder / "2015-02/fr/00000.idx").unlink()
    assert written(project, folder) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"{}\n"), "expected plain lines of JSON, which Modalities reads, got gzip"),
        (b'{"id":"a","text":"t"}\n\n', "00000.jsonl:2: expected JSON, which Modalities asks of each line, got a blank"),
        (b'{"id":"a"', "00000.jsonl:1: expected JSON, which Modalities asks of each line, got"),
        (b"", "expected lines of JSON, got an empty file"),
    ],
)
def test_what_modalities_cannot_read_is_refused(project: Project, raw: Path, content: bytes, message: str) -> None:
    (raw / "2014-41/de/00000.jsonl").write_bytes(content)
    project("export", "--idx", project.root / "indexes").fails(1, message)
    assert not (project.root / "indexes/2014-41/de/00000.idx").exists()
    assert (project.root / "indexes/2014-41/de/00001.idx").exists()
