"""The text of OSCAR 2019 and 21.09: which lines make a piece, and where the files lie."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mixers.text import _blank
from tests.conftest import Run
from tests.mixers.test_contract import document_of, writer_of
from tests.pipeline.conftest import Project, attributes, document, read_bytes, sha256sum_accepts, write_rows
from toolkit import Mixed, Prediction
from toolkit.text import LineTable

LINES = "a\nb\n\nc\nd\ne\n"
LABELS = ["en", None, "en", "en", "fr", "en"]


@pytest.mark.parametrize(
    ("unit", "pieces"),
    [
        ("line", [("en", "a\nc\ne\n\n"), ("fr", "d\n\n")]),
        ("block", [("en", "a\nc\n\n"), ("fr", "d\n\n"), ("en", "e\n\n")]),
    ],
)
def test_lines_become_these_pieces(unit: str, pieces: list[tuple[str, str]]) -> None:
    found = [Prediction(label, 0.9) if label else None for label in LABELS]
    mixed = Mixed({"lines": found}, [])
    encoded = writer_of("text", {"unit": unit}).encode(document_of(LINES), mixed)
    assert [(label, data.decode()) for label, data in encoded] == pieces
    assert mixed.counts == {"lines without language": 1, "blank lines": 1}


@pytest.mark.parametrize(
    ("options", "stem", "checksums"),
    [
        ({}, "en", "en_sha256.txt"),
        ({"layout": "flat"}, "en", "en_sha256.txt"),
        ({"layout": "folders"}, "en/en", "en/en_sha256.txt"),
    ],
)
def test_files_are_named_like_this(options: dict[str, Any], stem: str, checksums: str) -> None:
    writer = writer_of("text", options)
    assert (writer.stem("en"), writer.checksums("en")) == (stem, checksums)


def test_folders_hold_parts_and_checksums_as_released(run: Run, tmp_path: Path) -> None:
    project = Project(tmp_path, run, {"dataset": str(tmp_path / "data"), "executor": {"type": "in_process"}})
    english, french = {"label": "en", "prob": 0.9}, {"label": "fr", "prob": 0.9}
    found = [[english, french, english], [english], [None]]
    texts = ["one\nun\ntwo\n", "three " * 20, "?"]
    write_rows(project.documents / "a.jsonl.gz", [document(str(i), text) for i, text in enumerate(texts)])
    rows = [attributes(str(i), {"line_language": lines}) for i, lines in enumerate(found)]
    write_rows(project.attributes / "lines-0" / "a.jsonl.gz", rows)
    output = {"format": "text", "unit": "line", "layout": "folders", "path": str(project.out), "part_size": 100}
    project.config["mix"] = {"attributes": ["lines-0"], "output": output}
    project.ok("mix")
    written = {
        str(path.relative_to(project.out)): read_bytes(path).decode()
        for path in project.out.rglob("*.txt.gz")
        if ".toolkit" not in path.parts
    }
    assert written == {
        "en/en_part_1.txt.gz": "one\ntwo\n\n",
        "en/en_part_2.txt.gz": "three " * 20 + "\n\n",
        "fr/fr.txt.gz": "un\n\n",
    }
    assert all(sha256sum_accepts(project.out / label / f"{label}_sha256.txt") for label in ("en", "fr"))
    project.ok("validate")


def test_blank_lines_are_those_of_white_space_as_python_has_it() -> None:
    """Lines are looked at as bytes, of which ``bytes.strip`` knows six."""
    points = [chr(point) for point in (*range(0xD800), *range(0xE000, 0x3100)) if chr(point) not in "\r\n"]
    lines = ["", "\u2003x", *points, *(f" {point}\t{point}" for point in points)]
    table = LineTable.of(["\n".join(lines)])
    found = _blank(table, np.arange(len(lines)), ascii_only=False)
    assert found.tolist() == [not line or line.isspace() for line in lines]
    found = _blank(table, np.arange(len(lines)), ascii_only=True)  # as goclassy has it
    assert found.tolist() == [not line.encode().strip() for line in lines]
