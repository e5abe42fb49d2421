"""What the toolkit writes it reads: each output format, ingested again, gives equal documents, as far as it can."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.pipeline.conftest import JsonRows, Project, read_rows

HEADERS = {"warc-type": "conversion", "warc-record-id": "", "warc-date": "2024-01-01T00:00:00Z", "x": 'é "q" \\ /'}
TEXTS = [
    "one line",
    "two\nlines",
    "é ü 漢字 \U0001f600",
    'a "quote" \\ and \t tab',
    "  around  ",
    "last\u2028 one\u0085 line",
]
"""Without blank lines, and without a line feed at the end, which not every format can tell from none."""


def _documents() -> JsonRows:
    return [
        {
            "id": f"<urn:uuid:{i}>",
            "text": text,
            "source": "s",
            "added": HEADERS["warc-date"],
            "created": HEADERS["warc-date"],
            "metadata": {"warc_headers": {**HEADERS, "warc-record-id": f"<urn:uuid:{i}>"}},
        }
        for i, text in enumerate(TEXTS)
    ]


def _same(row: dict[str, Any]) -> dict[str, Any]:
    return row


def _text(row: dict[str, Any]) -> dict[str, Any]:
    return {"text": row["text"]}


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "dolma": ({}, {"format": "dolma", "from": "out/**/*.jsonl.gz"}, _same),
    "dolma, as JSON Lines": ({"format": "dolma"}, {"format": "jsonl", "from": "out/**/*.jsonl.gz"}, _same),
    "parquet": (
        {},
        {"format": "parquet", "from": "out/**/*.parquet", "leave_out": ["label", "prob", "annotation", "attributes"]},
        _same,
    ),
    "oscar": ({}, {"format": "oscar", "from": "out/**/*.jsonl.gz"}, _same),
    "text": ({}, {"format": "text", "from": "out/**/*.txt.gz"}, _text),
}
"""By output format: its options, the entry that reads it, and what of a document it holds."""


@pytest.mark.parametrize("case", CASES)
def test_documents_come_back(project: Project, case: str) -> None:
    options, entry, holds = CASES[case]
    rows = _documents()
    project.documents.mkdir(parents=True)
    (project.documents / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    values = [
        {"language": {"label": "en", "prob": 0.5}, "line_language": [{"label": "en", "prob": 0.5}] * len(lines)}
        for lines in (row["text"].split("\n") for row in rows)
    ]
    (project.attributes / "l-0").mkdir(parents=True)
    attributes = [
        {"id": row["id"], "source": "s", "attributes": found} for row, found in zip(rows, values, strict=True)
    ]
    (project.attributes / "l-0/a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in attributes))
    output = {"format": case, **options, "path": str(project.out)}
    project.config["mix"] = {"attributes": ["l-0"], "output": output}
    if case == "parquet":
        pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    project.ok("mix")
    project.config = {key: project.config[key] for key in ("executor",) if key in project.config}
    project.config["dataset"] = str(project.root / "again")
    pattern = str(project.root / entry["from"])
    assert project.ingest({**entry, "from": pattern, "source": "s"}).code == 0
    paths = sorted((project.root / "again/documents").rglob("*.jsonl.gz"))
    again = [row for path in paths for row in read_rows(path)]
    assert [holds(row) for row in again] == [holds(row) for row in rows]


def test_what_is_gathered_comes_back_with_its_types(project: Project) -> None:
    """Metadata of Parquet are JSON texts: numbers, nulls, lists and objects in them stay what they are."""
    pytest.importorskip("pyarrow.parquet", exc_type=ImportError)
    metadata = {"year": 2020, "score": 0.5, "none": None, "tags": ["a", "b"], "of": {"deep": {"er": True}}}
    project.documents.mkdir(parents=True)
    row = {"id": "1", "text": "t", "source": "s", "metadata": metadata}
    (project.documents / "a.jsonl").write_text(json.dumps(row) + "\n")
    project.config["mix"] = {"output": {"format": "parquet", "path": str(project.out)}}
    project.ok("mix")
    project.config = {key: project.config[key] for key in ("executor",) if key in project.config}
    project.config["dataset"] = str(project.root / "again")
    left_out = ["label", "prob", "annotation", "attributes"]
    entry = {"format": "parquet", "from": f"{project.out}/**/*.parquet", "source": "s", "leave_out": left_out}
    assert project.ingest(entry).code == 0
    (path,) = (project.root / "again/documents").rglob("*.jsonl.gz")
    assert read_rows(path) == [row]
