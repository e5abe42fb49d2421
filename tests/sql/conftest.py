"""The small data set, and a data set of values at the edges of all types."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import Project, by_hand, document, project, small, write_rows

__all__ = ["Project", "by_hand", "project", "small"]

pytest.importorskip("duckdb", reason="SQL needs DuckDB (extra sql)")

Query = Callable[..., list[Any]]

TAGGER = '''
"""A tagger whose values are in the metadata of documents."""

from typing import Any

import msgspec

from toolkit import Document, Span, Tagger


class Inner(msgspec.Struct):
    spans: list[Span]
    label: str | None


class Edges(msgspec.Struct):
    number: int
    score: float
    text: str
    maybe: str | None
    flag: bool
    spans: list[Span]
    by_name: dict[str, list[Span]]
    counts: dict[str, int]
    free: Any
    holes: list[float | None]
    inner: Inner | None


class FromMetadata(Tagger):
    """Source: none."""

    def tag(self, document: Document) -> Edges:
        return msgspec.convert(document.metadata["edges"], Edges)
'''

EDGES: list[dict[str, Any]] = [
    {"number": 2**63 - 1, "score": 0.1, "text": "a\0b\u2028\x1b[31m", "maybe": None, "flag": True,
     "spans": [[0, 1, 0.98786867], [2, 3, 1.0]], "by_name": {"e-mail": [[1, 2, 0.5]], "": []},
     "counts": {"b": 1, "a": 2},
     "free": {"x": [1, None, "\U0001f600"]}, "holes": [None, 5e-324, 1.7976931348623157e308],
     "inner": {"spans": [[4, 5, 1.0]], "label": "x"}},
    {"number": -(2**63), "score": 1e22, "text": "", "maybe": "", "flag": False, "spans": [], "by_name": {},
     "counts": {}, "free": None, "holes": [], "inner": None},
    {"number": 2**53 + 1, "score": -0.0, "text": "=1+1", "maybe": '"quoted", \\ and\nlines', "flag": True,
     "spans": [[4, 6, 0.0]], "by_name": {"ü": []}, "counts": {"n": -(2**63)}, "free": 12.5,
     "holes": [0.30000001192092896],
     "inner": {"spans": [], "label": None}},
]  # fmt: skip


@pytest.fixture
def edges(project: Project, tmp_path: Path) -> Project:
    """Three documents with values at the edges of all types, in the set ``edges-0``."""
    (tmp_path / "edges.py").write_text(TAGGER)
    rows = [document(str(i), f"text {i}", metadata={"edges": each}) for i, each in enumerate(EDGES)]
    write_rows(project.documents / "x.jsonl.gz", rows)
    project.config["tag"] = {"edges-0": {"tagger": f"{tmp_path}/edges.py:FromMetadata", "as": "edges"}}
    project.ok("tag")
    return project


@pytest.fixture
def query(project: Project) -> Query:
    """``query("SELECT …", *options)``: the rows as JSON has them."""

    def rows(sql: str, *options: object) -> list[Any]:
        ran = project.run("sql", sql, "-c", project.yaml, *options, "--json").succeeds()
        found: list[Any] = json.loads(ran.out)["rows"]
        return found

    return rows
