"""``when:`` of a set: its taggers see the documents for which it is true, and nothing of the others."""

import re
from typing import Any

import pytest

from tests.pipeline.conftest import Project, document, strays, tree, write_rows
from toolkit.data import documents

SHARD = "a.jsonl.gz"
ROWS = 700
"""Several batches, some of which have no document that is asked."""


HERE = "tests.pipeline.plugins"
EVEN = {"tagger": f"{HERE}:Even", "as": "even"}
PICKY = {"tagger": f"{HERE}:Picky", "as": "picky"}
ASKED = "even is not None and even"


def is_asked(i: int) -> bool:
    return i % 7 != 0 and i % 2 == 0 and i not in range(256, 600)


@pytest.fixture
def asked(project: Project) -> Project:
    """A shard in which some documents have an even number; texts of the others may not be asked for."""
    rows = [
        document(f"d{i}", "a text\n" * (i % 5 + 1) if is_asked(i) else "never", metadata={"n": number(i)})
        for i in range(ROWS)
    ]
    write_rows(project.documents / SHARD, rows)
    project.config["tag"] = {"picky-0": PICKY | {"when": ASKED}, "even-0": EVEN}
    project.mixes({"drop": "picky is None or picky > 20", "name": "other"}, attributes=["picky-0"])
    return project


def number(i: int) -> int | None:
    return None if i % 7 == 0 else i if is_asked(i) else 2 * i + 1


@pytest.mark.slow
def test_documents_that_are_not_asked_get_null(asked: Project) -> None:
    told = asked.ok("tag", "--json").json
    texts = [row["text"] for row in asked.shard(SHARD)]
    count = sum(map(is_asked, range(ROWS)))
    found = [values["picky"] for values in asked.values("picky-0", SHARD)]
    assert found == [len(text) if is_asked(i) else None for i, text in enumerate(texts)]
    assert told["asked"] == {"picky-0": count, "even-0": ROWS}
    assert set(told["seconds"]) == {"picky-0", "even-0"}
    assert re.search(rf"picky-0 +picky +0 +1 +{count} +\d", asked.ok("tag").out)
    stages = {stage["stage"]: stage["worked"] for stage in asked("status", "--json").json["stages"]}
    assert stages["tag picky-0"] | {"seconds": 0} == {"documents": ROWS, "asked": count, "seconds": 0}
    kept = sum(1 for value in found if value is not None and value <= 20)
    assert f" {kept} would be kept" in asked.ok("mix", "--dry-run").out
    asked.config["mix"]["rules"] = [{"drop": "picky > 20"}]
    assert "picky may be null here: test it first" in asked("mix", "--dry-run").err


@pytest.mark.slow
def test_the_bytes_depend_on_nothing_but_the_settings(asked: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one pass with the set that it reads, alone, and by two processes: which then do not decode other texts."""
    asked.ok("tag")
    before = tree(asked.attributes)
    decoded = []

    class Late(documents.LateDocument):
        def __getattr__(self, name: str) -> Any:
            decoded.append(self.id)
            return super().__getattr__(name)

    monkeypatch.setattr(documents, "LateDocument", Late)
    (asked.attributes / "picky-0" / SHARD).unlink()
    asked.ok("tag")
    assert decoded == [f"d{i}" for i in range(ROWS) if is_asked(i)]
    assert tree(asked.attributes) == before
    monkeypatch.setattr("toolkit.execution.workers.LARGE", 1)
    asked.config |= {"executor": {"type": "local"}, "processes": 2}
    (asked.attributes / "picky-0" / SHARD).unlink()
    asked.ok("tag")
    assert tree(asked.attributes) == before
    assert not strays(asked.root)


@pytest.mark.slow
def test_it_is_part_of_the_settings_and_of_the_lineage(asked: Project) -> None:
    asked.ok("tag")
    before = tree(asked.attributes)
    asked.config["tag"]["picky-0"] = PICKY | {"when": f"{ASKED} and metadata.n is not None"}
    for command in ("tag", "mix"):
        asked(command).fails(2, "picky.settings.when:")
    assert tree(asked.attributes) == before
    rows = asked.shard(SHARD)
    rows[1]["metadata"]["n"], rows[1]["text"] = 2, "now asked"
    write_rows(asked.documents / SHARD, rows)
    asked.config["tag"] = {"even-0": EVEN}
    asked.ok("tag")
    asked("mix").fails(1, "expected attributes")
    asked.config["tag"]["picky-0"] = PICKY | {"when": ASKED}
    asked.ok("tag")
    assert asked.values("picky-0", SHARD)[1] == {"picky": 9}


def test_readers_of_such_a_set_ask_where_it_has_values(asked: Project) -> None:
    """By the same condition, or by one that proves it; else the checker demands it."""
    same: dict[str, Any] = {"tagger": "language", "lines": "lines-0"}
    asked.config["tag"] |= {
        "lines-0": {"tagger": "line_language", "when": ASKED},
        "same-0": same | {"when": ASKED, "as": "same"},
        "some-0": same | {"when": "line_language is not None and len(line_language) > 1", "as": "some"},
        "shape-0": {"taggers": ["length", {"tagger": "emails", "as": "mail"}], "when": "even is None"},
    }
    asked.ok("tag")
    lines = [value["line_language"] for value in asked.values("lines-0", SHARD)]
    assert [value["same"] is None for value in asked.values("same-0", SHARD)] == [each is None for each in lines]
    some = [value["some"] is None for value in asked.values("some-0", SHARD)]
    assert some == [each is None or len(each) < 2 for each in lines]
    before = tree(asked.attributes)
    for name in ("same-0", "some-0"):
        (asked.attributes / name / SHARD).unlink()
    asked.ok("tag")
    assert tree(asked.attributes) == before
    assert asked.values("shape-0", SHARD)[1] == {"length": None, "mail": None}
    asked.config["tag"]["plain-0"] = same
    ran = asked("tag")
    assert "expected a value of type list[" in ran.err
    assert "`when: line_language is not None`, or the same `when` as lines-0" in ran.err


def test_a_set_on_disk_can_be_read_too(asked: Project) -> None:
    asked.ok("tag")
    before = tree(asked.attributes)
    del asked.config["tag"]["even-0"]
    (asked.attributes / "picky-0" / SHARD).unlink()
    asked.ok("tag")
    asked.ok("mix", "--dry-run")
    assert tree(asked.attributes) == before


def test_sets_that_have_the_same_key_are_told_apart_by_name(asked: Project) -> None:
    asked.config["tag"] |= {"odd-0": EVEN, "picky-0": PICKY | {"when": ASKED, "attributes": ["even-0"]}}
    asked.ok("tag")
    assert sum(value["picky"] is not None for value in asked.values("picky-0", SHARD)) == sum(
        map(is_asked, range(ROWS))
    )


def test_a_value_that_does_not_fit_names_its_document(asked: Project) -> None:
    asked.config["tag"] = {"picky-0": PICKY | {"when": "metadata.n is not None and metadata.n.x == 3"}}
    ran = asked("tag").fails(1)
    assert re.search(r"a\.jsonl\.gz:2: when: `metadata\.n.*document 'd1'", ran.err), ran.err


@pytest.mark.parametrize(
    ("output", "nulls"),
    [
        ({"format": "oscar"}, ["language is None or language.label is None", "line_language is None"]),
        ({"format": "dolma", "by": "language"}, ["language is None or language.label is None"]),
        ({"format": "text", "unit": "line"}, ["line_language is None"]),
        ({"format": "ml_filter", "statistics": "language"}, ["language is None or language.label is None"]),
    ],
    ids=["oscar", "dolma", "text", "ml_filter"],
)
def test_a_format_takes_values_whose_nulls_rules_drop(asked: Project, output: Any, nulls: list[str]) -> None:
    """Values of the document, of its lines, and objects; what is missing is told before anything runs."""
    taggers = [{"tagger": f"{HERE}:Language", "as": "language"}, {"tagger": f"{HERE}:Lines", "as": "line_language"}]
    asked.config["tag"]["language-0"] = {"taggers": taggers, "when": ASKED}
    asked.config["mix"] = {"attributes": ["language-0"], "output": output | {"path": str(asked.out)}}
    asked.ok("tag")
    asked.config["mix"]["rules"] = []
    for condition in nulls:
        asked("mix").fails(2, f"{{drop: {condition}, name: unidentified}}")
        asked.config["mix"]["rules"].append({"drop": condition, "name": condition})
    told = asked.ok("mix", "--json").json
    texts = [row["text"] for row in asked.shard(SHARD)]
    lines_only = output["format"] == "text"
    assert told["totals"]["kept"] == sum(
        1 for i, text in enumerate(texts) if is_asked(i) and (lines_only or len(text) > 10)
    )
