"""``edits:`` and ``text: NAME``: what taggers, duplicates and a mix see, and where their spans are."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.conftest import Run
from tests.pipeline.conftest import Project, attributes, document, read_rows, write_rows
from toolkit import Document, Span
from toolkit.rules.text_edits import PlaceMap, TextEdit, edited

SAME = "The quick brown fox jumps over the lazy dog. mail {} now\n"
TEXTS = {
    "a": "Menu Home\n" + SAME.format("a@b.org") + "Cookie notice\nend of it",
    "b": SAME.format("zoé@yy.org") + "Cookie notices\nend of it",
    "c": "something else, x@y.de entirely",
}
CLEAN = [{"replace": "mails-0.emails", "by": "|||M|||"}, {"cut_lines": {"regex": "^(Menu|Cookie) "}}]


@pytest.fixture
def project(tmp_path: Path, run: Run) -> Project:
    config = {
        "dataset": str(tmp_path / "data"),
        "edits": {"clean": CLEAN},
        "tag": {"mails-0": "emails", "length-0": {"tagger": "length", "text": "clean"}},
        "dedup": {
            "exact-0": {"kind": "exact", "text": "clean"},
            "near-0": {"kind": "near", "ngram": 2, "text": "clean", "keep": {"max": "document.id"}},
            "pass-0": {"kind": "passages", "unit": "word", "length": 5, "text": "clean"},
        },
        "mix": {
            "text": "clean",
            "attributes": ["length-0", "exact-0"],
            "rules": [{"drop": "exact.duplicate_of is not None", "name": "same"}],
            "output": {"format": "dolma", "path": str(tmp_path / "out"), "attributes": "original"},
        },
    }
    found = Project(tmp_path, run, config)
    write_rows(found.documents / "0.jsonl.gz", [document(id, text) for id, text in TEXTS.items()])
    return found


def values(project: Project, set_name: str) -> dict[str, Any]:
    (rows,) = [read_rows(path) for path in (project.data / "attributes" / set_name).glob("*.gz")]
    return {row["id"]: next(iter(row["attributes"].values())) for row in rows}


def test_all_see_the_edited_text(project: Project) -> None:
    project.ok("run")
    clean = SAME.format("|||M|||") + "end of it"
    assert values(project, "length-0")["a"]["chars"] == values(project, "length-0")["b"]["chars"] == len(clean)
    assert values(project, "exact-0")["b"]["duplicate_of"] == ["s", "a"]
    assert values(project, "near-0")["a"]["duplicate_of"] == ["s", "b"]
    spans = values(project, "pass-0")["b"]["spans"]
    assert [TEXTS["b"][start:end] for start, end, _ in spans] == [TEXTS["b"]]  # from the first to the last repeat
    written = {row["id"]: row for row in read_rows(project.root / "out/documents/documents.jsonl.gz")}
    assert {id: row["text"] for id, row in written.items()} == {"a": clean, "c": "something else, |||M||| entirely"}
    assert written["a"]["attributes"]["length"]["chars"] == len(clean)
    project("run").succeeds()
    project.config["edits"]["clean"] = CLEAN[:1]
    assert "length.settings.text: [{" in project("run").err


def test_a_mix_clamps_spans_of_an_edited_text(project: Project) -> None:
    spans = {id: [[0, 5, 1.0], [len(text), 99, 1.0]] for id, text in TEXTS.items()}
    write_rows(
        project.attributes / "bff/0.jsonl.gz",
        [attributes(id, {"cut": cut, "end": cut[1:]}) for id, cut in spans.items()],
    )
    stream = {"past_end": "clamp", "attributes": ["bff"], "text": [{"cut": "bff.cut"}, {"cut": {"regex": "org|now"}}]}
    output = {"format": "dolma", "path": str(project.root / "out")}
    project.config = {"dataset": str(project.data), "mix": {"streams": {"a stream": stream}, "output": output}}
    assert json.loads(project.ok("mix", "--json").out)["counts"] == {"spans clamped to the end of the text": 3}
    texts = [row["text"] for row in read_rows(project.root / "out/documents/documents.jsonl.gz")]
    assert texts == [re.sub("org|now", "", text[5:]) for text in TEXTS.values()]
    stream["text"] = [{"cut_lines": "bff.end"}]  # no line has such a place
    assert json.loads(project.ok("mix", "--json").out)["counts"] == {"spans clamped to the end of the text": 3}
    assert [row["text"] for row in read_rows(project.root / "out/documents/documents.jsonl.gz")] == [*TEXTS.values()]


@pytest.mark.slow
def test_passages_that_are_close_are_one(project: Project) -> None:
    project.config["dedup"] = {"pass-0": {"kind": "passages", "unit": "word", "length": 5, "as": "p"}}
    project.config["mix"]["attributes"] = ["length-0"]
    project.config["mix"]["rules"] = []
    project.ok("run")
    assert len(values(project, "pass-0")["b"]["spans"]) == 1
    texts = "1 2 3 4 5 6 7 8 9 10", "1 2 3 4 5 X 6 7 8 9 10"
    write_rows(project.documents / "0.jsonl.gz", list(map(document, "ab", texts)))
    project.ok("run")
    assert len(values(project, "pass-0")["b"]["spans"]) == 2
    for merge, count in (({"gap": 3}, 1), ({"gap": 1}, 2), ({"gap": 3, "length": 99}, 0)):
        project.config["dedup"]["pass-0"]["merge"] = merge
        project.ok("dedup", "--overwrite")
        assert len(values(project, "pass-0")["b"]["spans"]) == count


_CUT = st.tuples(st.integers(0, 20), st.integers(0, 6), st.sampled_from(["", "x", "{}{}"]))


@given(st.text("ab\n", max_size=20), st.lists(_CUT))
def test_places_are_mapped_back(text: str, cuts: list[tuple[int, int, str]]) -> None:
    """A place of the edited text outside of replacements is the same character in the whole text."""
    known = [(start, min(start + size, len(text)), by) for start, size, by in cuts if start <= len(text)]
    document = edited(
        Document(text), [TextEdit(spans="s.k", by=by) for _, _, by in known], [[Span(a, b)] for a, b, _ in known]
    )
    places = PlaceMap(document.edits, len(text))
    for i, character in enumerate(document.text):
        start, end = places(i, i + 1)
        assert 0 <= start <= end <= len(text)
        if end - start == 1 and not any(each.start <= start < each.end for each in document.edits):
            assert text[start] == character
