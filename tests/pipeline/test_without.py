"""``without:`` of a set: its values are those of a dataset in which the spans were really cut."""

import json
import random
import re
from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from tests.pipeline.conftest import Project, attributes, document, read_rows, tree, write_rows
from tests.taggers.test_contract import NAMES, class_of, variants_of
from toolkit import Document, MissingExtra, Span
from toolkit.data import schema
from toolkit.errors import ConfigError
from toolkit.rules.text_edits import PlaceMap, TextEdit, edited
from toolkit.tag.plan import check_values
from toolkit.tag.tagger import references, value_type
from toolkit.testing.taggers import configured_tagger

SHARD = "a.jsonl.gz"
CUTS = {"cuts-0": "tests.pipeline.plugins:Cuts"}
"""A set of the spans that documents have in their metadata."""

TEXTS = [
    "The library opens at nine.\nMail <joe.doe@example.org> or call +49 30 1234567.\n\nIt closes {at} five, and so on.",
    "Cookies! This site uses cookies.\nmüller@exämple.de wrote: «Größe» 図書館は九時に開きます。\r\nlast line",
    "again and again\nagain and again\nagain and again\nTerms of use: 8.8.8.8, [1] CC BY-SA 4.0 [edit]\n",
    "AKIAIOSFODNN7EXAMPLE is a key.\n- one\n- two\n- three ...\n\U0001f600 lorem ipsum dolor sit amet, consectetur.",
    "",
    "x",
]


def rows(*pairs: tuple[str, Sequence[tuple[int, int]]]) -> list[dict[str, Any]]:
    return [
        document(f"d{i}", text, metadata={"cuts": cuts, "url": "https://a.example/b"})
        for i, (text, cuts) in enumerate(pairs)
    ]


def is_left(text: str, cuts: Sequence[tuple[int, int]]) -> list[bool]:
    return [not any(start <= i < end for start, end in cuts) for i in range(len(text))]


def shortened(text: str, cuts: Sequence[tuple[int, int]]) -> str:
    return "".join(compress(text, is_left(text, cuts)))


def some_cuts(text: str, seed: int) -> list[tuple[int, int]]:
    """A few spans, some of which overlap, are empty, or meet."""
    draw = random.Random(seed)
    points = [sorted(draw.choices(range(len(text) + 1), k=2)) for _ in range(draw.randrange(5))]
    return [(a, min(b, a + draw.choice([3, 12, 40]))) for a, b in points]


# --- values -----------------------------------------------------------------------------------------------------------


def takes_without(name: str) -> bool:
    try:
        check_values(class_of(name), name)
        return not references(configured_tagger(class_of(name)))
    except ConfigError:
        return False


def all_taggers() -> dict[str, Any]:
    """Each variant of each tagger that gives no value for each line, as a set of its own."""
    found: dict[str, Any] = {}
    for name in filter(takes_without, NAMES):
        for options in [{}, *variants_of(name)]:
            tagger = configured_tagger(class_of(name), options)
            try:
                tagger.tag_batch([Document("One text.\n", id="i", source="s")])
            except MissingExtra:
                continue
            given = msgspec.json.decode(msgspec.json.encode({f: getattr(tagger, f) for f in tagger.__struct_fields__}))
            found[f"{name.replace('_', '-')}-{len(found)}"] = {"tagger": name, "as": name} | given
    return found


def in_whole(value: Any, type_: schema.Type, left: list[int]) -> Any:
    """Spans of the shorter text by where each code point that is left stood; the slow and obvious way."""
    if type_.kind == "span":
        start, end, score = value
        if start < end:
            return [left[start], left[end - 1] + 1, score]
        at = left[start] if start < len(left) else left[-1] + 1 if left else 0
        return [at, at, score]
    if type_.kind in ("list", "map") and type_.item:
        if type_.kind == "list":
            return [in_whole(each, type_.item, left) for each in value]
        return {key: in_whole(each, type_.item, left) for key, each in value.items()}
    if type_.kind == "object":
        return {key: in_whole(value[key], inner, left) for key, inner in type_.fields}
    return value


@pytest.mark.slow
def test_values_of_every_tagger_are_those_of_a_dataset_that_was_cut(project: Project, tmp_path: Path) -> None:
    pairs = [(text, some_cuts(text, seed)) for seed in range(8) for text in TEXTS]
    sets = all_taggers()
    assert len({entry["tagger"] for entry in sets.values()}) > 25
    write_rows(project.documents / SHARD, rows(*pairs))
    project.config["tag"] = CUTS | {name: entry | {"without": "cuts-0.cuts"} for name, entry in sets.items()}
    project.ok("tag")
    cut = Project(project.root, project.run, project.config | {"dataset": str(tmp_path / "cut"), "tag": sets})
    write_rows(tmp_path / "cut" / "documents" / SHARD, rows(*((shortened(*pair), []) for pair in pairs)))
    cut.ok("tag")
    for name, entry in sets.items():
        type_ = value_type(class_of(entry["tagger"]))
        there = read_rows(tmp_path / "cut" / "attributes" / name / SHARD)
        for (text, cuts), found, row in zip(pairs, project.values(name, SHARD), there, strict=True):
            left = list(compress(range(len(text)), is_left(text, cuts)))
            told = {key: in_whole(value, type_, left) for key, value in row["attributes"].items()}
            assert found == told, (name, text, cuts)


@given(st.text("ab\n", max_size=12), st.data())
def test_a_span_of_the_shorter_text_has_the_same_first_and_last_code_point_in_the_whole(
    text: str, data: st.DataObject
) -> None:
    points = st.tuples(*[st.integers(0, len(text))] * 2).map(sorted)
    cuts = [(a, b) for a, b in data.draw(st.lists(points, max_size=4))]
    shorter = edited(Document(text), [TextEdit(spans="s.k")], [[Span(*cut) for cut in cuts]])
    assert shorter.text == shortened(text, cuts)
    left = list(compress(range(len(text)), is_left(text, cuts)))
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(left))] * 2)))
    found = PlaceMap(shorter.edits, len(text))(start, end)
    assert [*found, 1.0] == in_whole((start, end, 1.0), schema.SPAN, left)
    if start < end:  # what was removed beside it is not in it, so two spans never come to overlap
        assert (
            shortened(text[slice(*found)], [(a - found[0], b - found[0]) for a, b in cuts]) == shorter.text[start:end]
        )


def test_replacing_beside_the_cut_gives_what_replacing_in_the_cut_text_gives(project: Project) -> None:
    text, cuts = "Cookies\nmail joe@exam<b>ple.org now,\nor a@b.org\nCookies", [(0, 8), (21, 24), (47, 55)]
    write_rows(project.documents / SHARD, rows((text, cuts)))
    project.config["tag"] = {"mail-0": {"tagger": "emails", "without": "cuts-0.cuts"}} | CUTS
    project.config["mix"] = {
        "attributes": ["cuts-0", "mail-0"],
        "rules": [{"replace": "emails", "by": "|||"}, {"cut": "cuts"}],
        "output": {"format": "dolma", "path": str(project.out), "attributes": False},
    }
    project.ok("run")
    assert project.values("mail-0", SHARD) == [{"emails": [[13, 31, 1.0], [40, 47, 1.0]]}]
    assert [row["text"] for row in project.output()] == ["mail ||| now,\nor |||"]


# --- where it may stand -----------------------------------------------------------------------------------------------


@pytest.fixture
def cut(project: Project) -> Project:
    """Two shards with spans to remove, and a set of lengths without them; tagged."""
    for shard in (SHARD, "deep/b.jsonl.gz"):
        found = rows(("one two\nthree", [(0, 4), (2, 4)]), ("four", []))
        write_rows(project.documents / shard, [{**row, "source": shard} for row in found])
    project.config["tag"] = CUTS | {"length-0": {"tagger": "length", "without": "cuts-0.cuts"}}
    project.mixes({"drop": "length.chars == 9", "name": "nine"}, attributes=["length-0"], output={"attributes": False})
    project.ok("tag")
    return project


def chars(project: Project, set_name: str = "length-0") -> list[int]:
    return [row["length"]["chars"] for row in project.values(set_name, SHARD)]


def test_it_stands_beside_a_tagger_or_beside_several(cut: Project) -> None:
    cut.config["tag"] |= {
        "all-0": {"taggers": ["length", "emails"], "without": "cuts-0.cuts"},
        "some-0": ["length", {"tagger": "length", "as": "short", "without": "cuts-0.cuts"}],
        "own-0": [CUTS["cuts-0"], {"tagger": "length", "without": "own-0.cuts"}],
        "as-0": {"taggers": "length"},
    }
    cut.ok("tag")
    assert chars(cut) == chars(cut, "all-0") == chars(cut, "own-0") == [9, 4]
    assert cut.values("some-0", SHARD)[0]["length"]["chars"] == chars(cut, "as-0")[0] == 13
    assert cut.values("some-0", SHARD)[0]["short"]["chars"] == 9


@pytest.mark.slow
def test_it_is_part_of_the_settings(cut: Project) -> None:
    before = tree(cut.data)
    cut.config["tag"]["length-0"] = "length"
    for command in ("tag", "mix"):
        cut(command).fails(2, 'length.settings.without: "cuts-0.cuts" -> absent')
    assert tree(cut.data) == before
    cut.ok("tag", "--overwrite")
    assert chars(cut) == [13, 4]


@pytest.mark.slow
def test_what_is_made_without_spans_is_stale_when_they_have_changed(cut: Project) -> None:
    cut.config["tag"]["cuts-0"] = {"tagger": CUTS["cuts-0"], "shift": 1, "as": "cuts"}
    alone = cut.config["tag"].pop("length-0")
    cut.ok("tag", "--overwrite")
    cut("mix").fails(1, "expected attributes made from the set cuts-0 as it is now")
    cut.config["tag"]["length-0"] = alone
    assert "made from.cuts-0" in cut("status").out + cut("tag").err
    cut.ok("tag", "--overwrite")
    assert chars(cut) == [8, 4]
    cut.ok("mix")


@pytest.mark.slow
def test_it_is_the_same_in_shares_in_processes_and_shard_by_shard(cut: Project) -> None:
    cut.ok("mix")
    before = tree(cut.out)
    inputs = cut.root / "in"
    cut.documents.rename(inputs)
    cut.config |= {
        "dataset": str(cut.root / "other"),
        "executor": {"type": "local"},
        "processes": 2,
        "ingest": [{"format": "dolma", "from": f"{inputs}/**/*.jsonl.gz"}],
    }
    cut.config["mix"]["output"]["path"] = str(cut.root / "shards")
    cut.ok("run", "--per-shard")
    assert {k: v for k, v in tree(cut.root / "shards").items() if "part" in k or k.endswith("gz")} == {
        k: v for k, v in before.items() if "part" in k or k.endswith("gz")
    }


def test_values_that_describe_a_shorter_text_are_not_taken_along_with_edits(cut: Project) -> None:
    cut.config["mix"] |= {
        "rules": [{"cut": "cuts"}, {"set": "n", "to": "length.chars"}],
        "attributes": ["length-0", "cuts-0"],
    }
    cut("mix").fails(2, "that is not possible: its set was made `without: cuts-0.cuts")


@pytest.mark.slow
def test_a_card_says_it(cut: Project) -> None:
    cut.ok("card", "--of", "dataset")
    assert (
        "version 1 (splitter: unicode), over the text without the spans cuts-0.cuts"
        in (cut.data / "README.md").read_text()
    )


def test_it_can_be_tried(cut: Project) -> None:
    page = cut.root / "page.txt"
    page.write_text("Menu\nThe library opens at nine. It closes at five. The doors are open.")
    ran = cut.run("tag", "--try", page, "c4", "{tagger: length, without: c4.c4.cuts}", "--json")
    values = json.loads(ran.out)["documents"][0]["attributes"]
    assert values["length"]["chars"] == len(page.read_text()) - len("Menu\n")
    cut.run("tag", "--try", page, "{tagger: length, without: c5.c4.cuts}").fails(
        2, "without: 'c5.c4.cuts': expected an attribute that is computed here, got 'c5'"
    )


# --- spans of other programs ------------------------------------------------------------------------------------------


def of_another(project: Project, *values: Any) -> None:
    write_rows(project.documents / SHARD, [document(f"d{i}", "one two\nthree") for i in range(len(values))])
    write_rows(project.attributes / "exp" / SHARD, [attributes(f"d{i}", value) for i, value in enumerate(values)])


def test_spans_of_another_program_are_removed_and_rows_may_lack_them(project: Project) -> None:
    of_another(
        project, {"exp__c__cut": [[0, 4, 1.0]]}, {"exp__c__length": [[0, 13, 13]]}, [], {"exp__c__cut": [[7, 13, 1]]}
    )
    project.config["tag"] = {
        "length-0": {"tagger": "length", "without": "exp.exp__c__cut"},
        "rare-0": {"tagger": "length", "without": "exp.exp__c__rare"},
    }
    project.ok("tag")
    assert chars(project) == [9, 13, 13, 7]
    assert chars(project, "rare-0") == [13] * 4
    of_another(project, *[{"exp__c__cut": [[0, 13, 1.0]], "exp__c__length": [[0, 13, 13]]}] * 4)
    project.ok("tag")
    assert chars(project) == [0] * 4


@pytest.mark.parametrize(
    ("values", "without", "expected"),
    [
        (
            {"dup": [[0, 4, 1.0]]},
            "exp.dupe",
            r"attributes/exp/a.jsonl.gz: without: 'exp.dupe': expected rows with 'dupe'",
        ),
        ({"dup": 3}, "exp.dup", r"attributes/exp/a.jsonl.gz:1: expected exp.dup of type list\[span\], got"),
        (
            {"dup": [[5, 14, 1.0]]},
            "exp.dup",
            r"documents/a.jsonl.gz:1: without: exp.dup: expected spans between 0 and 13",
        ),
        ({"dup": [[5, 3, 1.0]]}, "exp.dup", r"without: exp.dup: expected spans .*got \[5, 3\] \(document 'd0'\)"),
    ],
)
def test_spans_that_are_none_fail_their_shard(project: Project, values: Any, without: str, expected: str) -> None:
    of_another(project, values)
    project.config["tag"] = {"length-0": {"tagger": "length", "without": without}}
    ran = project("tag").fails(1)
    assert re.search(expected, ran.err), ran.err
    assert not list((project.attributes / "length-0").glob("*"))
