"""A small dataset with all that can be described, and what people know of it."""

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.pipeline.conftest import Project, attributes, document, pipeline, project, small, write_rows

__all__ = ["pipeline", "project", "small"]

ABOUT: dict[str, Any] = {
    "name": "small",
    "description": "Documents made up for a test.",
    "license": "https://spdx.org/licenses/CC0-1.0.html",
    "url": "https://example.org/small",
    "creator": {"type": "Organization", "name": "Example Org", "url": "https://example.org/"},
    "date_published": "2026-01-31",
    "citation": "@misc{small}",
    "version": "1.0.0",
}

DOCUMENTS = {
    "cc/a.jsonl.gz": [
        document(
            "a-1",
            "one\ntwo\u2028still\x85",
            added="2024-05-18T01:58:10Z",
            tags=["x", "ü"],
            flag=True,
            metadata={
                "url": "https://example.org/1",
                "big": 9007199254740993,
                "empty": None,
                "bare": {},
                "bares": [{}, None],
                "warc_headers": {"warc-date": "2024-05-18T01:58:10Z", "content-length": "77", 'it\'s "odd"': "v"},
                "deep": {"er": {"n": 1}},
                "pairs": [{"a": 1}, None, {"a": 2}],
                "*": 1,
                "..": "dots",
                "matrix": [[1], [2]],
            },
            updated_at="2020-01-01",
            only_here=1,
            row=7,
        ),
        document("a-2", "", added=None, tags=[], row=8, flag=None, metadata=None, updated_at=None),
    ],
    "b.jsonl.gz": [
        document(
            "b-1", "7", source="t", row=9, added="2023-01-01T00:00:00Z", tags=None, flag=False, metadata={"url": "x"}
        ),
        document("b-2", "eight", source="t"),
    ],
}

DOLMA = {
    "cc/a.jsonl.gz": [
        attributes(
            "a-1",
            {"exp__t__odd": [[0, 3, 1.0], [4, 7, 0.25]], "exp__t__never": [], "exp__t__n": 2, "file": "x", "id": 3},
        ),
        attributes("a-2", {"exp__t__never": []}),
    ],
    "b.jsonl.gz": [
        attributes("b-1", {"exp__t__odd": [], "it's [odd].": [[0, 1, 1]]}, source="t"),
        attributes("b-2", [], source="t"),
    ],
}
"""As the Dolma toolkit writes them: keys may be absent, and a document that was skipped has a list."""

TAGGER = '''
from typing import NamedTuple
import msgspec
from toolkit import Document, Span, Tagger

class Found(msgspec.Struct):
    label: str | None
    prob: float
    words: list[str]
    shares: dict[str, float]
    inner: dict[str, int] | None
    first: Span

class Part(msgspec.Struct):
    label: str
    size: int

class Mine(Tagger):
    """A user's own."""
    def tag(self, document: Document) -> Found:
        text = document.text
        return Found(text[:2] or None, len(text) / 7, text.split(), {"a": 1.0}, None, Span(0, len(text), 0.5))

class Parts(Tagger):
    """Of lines."""
    def tag(self, document: Document) -> list[Part | None] | None:
        return [Part(line, len(line)) if line else None for line in document.lines] or None
'''


@pytest.fixture
def described(project: Project) -> Project:
    """Documents with all kinds of fields, attributes of the Dolma toolkit and of a user's own taggers."""
    for shard, rows in DOCUMENTS.items():
        write_rows(project.documents / shard, rows)
    for shard, rows in DOLMA.items():
        write_rows(project.attributes / "exp" / shard, rows)
    (project.root / "own.py").write_text(TAGGER)
    project.config["tag"] = {"own-0": [f"{project.root}/own.py:Mine", f"{project.root}/own.py:Parts"]}
    project.config["about"] = dict(ABOUT)
    project.ok("tag")
    return project


@pytest.fixture
def released(pipeline: Project, made: Path) -> Project:
    """An OSCAR output of the sample that ships with the project."""
    pipeline.config["about"] = dict(ABOUT)
    pipeline.config["mix"]["output"]["part_size"] = 5_000
    pipeline.begin(made / "released", lambda: pipeline.ok("run"))
    return pipeline


@pytest.fixture
def golden(project: Project, shared: Path) -> Project:
    """The released sample of OSCAR 22.01, to be mixed as it was; what the pages of the documentation show."""
    project.config |= {
        "ingest": [{"format": "oscar", "from": [f"{shared}/oscar-22.01/*.jsonl"], "source": "oscar"}],
        "tag": {"language-0": {"tagger": "language", "lines": "oscar-0"}, "shape-0": ["line_shape", "noise"]},
        "mix": {
            "attributes": ["oscar-0", "language-0", "shape-0"],
            "rules": [{"include": str(ROOT / "configs" / "oscar-22.01.yaml")}],
            "output": {"format": "oscar", "path": str(project.out)},
        },
        "about": {
            "name": "oscar-22.01-sample",
            "description": "23 documents of OSCAR 22.01, taken apart into documents and attributes, and mixed again.",
            "license": "https://spdx.org/licenses/CC-BY-SA-4.0.html",
            "url": "https://example.org/oscar-22.01-sample",
            "creator": {"type": "Organization", "name": "Example Org", "url": "https://example.org/"},
            "date_published": "2026-01-31",
            "citation": "@misc{sample, title={A sample of OSCAR 22.01}}",
            "version": "1.0.0",
            "keywords": ["text", "web"],
            "examples": 0,
            "rai": {
                "dataLimitations": "The language of short lines is uncertain.",
                "personalSensitiveInformation": "Pages may name people; nothing was removed.",
            },
        },
    }
    return project
