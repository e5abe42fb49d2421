"""A rule that asks for what no document has is named, though it is no error: it would do nothing, and nobody knew."""

import json
from typing import Any

import pytest

from tests.pipeline.conftest import Project, attributes, document, write_rows
from toolkit.mix.effects import unmatched

RULES = [
    {"drop": "metadata.adlut is not None and metadata.adlut > 0.5", "name": "misspelt"},
    {"drop": "metadata.adult is not None and metadata.adult > 0.9", "name": "spelt"},
    {"drop": 'metadata.grade == "5"', "name": "grade"},
    {"drop": 'document.url == "x"', "name": "url"},
    {"drop": "exp__spam__spam is not None and exp__spam__spam > 0.9", "name": "key"},
    {"drop": 'get(exp__shares__shares, "nois", 0.0) > 0.9', "name": "share"},
    {"drop": 'exp__lang__lang == "german"', "name": "german"},
    {"drop": '"german" in exp__labels__labels', "name": "labels"},
    {"annotate": "other", "when": 'exp__lang__lang in ["de", "fr"]'},
    {"annotate": "deep", "when": 'any(x == "latin" for x in exp__labels__labels)'},
]


def begin(project: Project) -> None:
    """Three shards: in `b`, the grade is a text, and there are neither `adult` nor the key `spam`."""
    for name in "abc":
        rows, values = [], []
        for i in range(70):
            odd = name == "b"
            metadata: dict[str, Any] = {} if odd else {"adult": 0.1}
            metadata["grade"] = "5th" if odd else 3
            rows.append(document(f"{name}{i}", "A text.", metadata=metadata))
            value: dict[str, Any] = {} if odd else {"exp__spam__spam": 0.1}
            value |= {"exp__lang__lang": "de", "exp__labels__labels": ["a", "b"]}
            value |= {"exp__shares__shares": {f"noise{i}": 0.5}}
            values.append(attributes(f"{name}{i}", value))
        write_rows(project.documents / f"{name}.jsonl.gz", rows)
        write_rows(project.attributes / "exp" / f"{name}.jsonl.gz", values)
    project.mixes(*RULES, attributes=["exp"])


FIELDS = [
    ("misspelt", "metadata.adlut", [], 3, ""),
    ("spelt", "metadata.adult", ["b.jsonl.gz"], 1, ""),
    ("grade", "metadata.grade", ["b.jsonl.gz"], 1, "a text"),
    ("url", "document.url", [], 3, ""),
    ("key", "exp__spam__spam", ["b.jsonl.gz"], 1, ""),
    ("share", "exp__shares__shares['nois']", [], 3, ""),
]
TEXTS = [
    ("grade", 'metadata.grade == "5"'),
    ("url", 'document.url == "x"'),
    ("german", 'exp__lang__lang == "german"'),
    ("labels", '"german" in exp__labels__labels'),
    ("other", 'exp__lang__lang == "fr"'),
    ("deep", 'x == "latin"'),
]


def told(data: dict[str, Any], *, compares: bool) -> list[tuple[Any, ...]]:
    keys = ("rule", "field") if compares else ("rule", "field", "shards", "lacking", "got")
    return [tuple(each[key] for key in keys) for each in data["unseen"] if each["compares"] is compares]


@pytest.mark.parametrize("processes", [1, 3])
def test_what_no_document_of_a_shard_has_is_named_with_its_rule(processes: int, project: Project) -> None:
    begin(project)
    project.config |= {"processes": processes, "executor": {"type": "local"}}
    dry = project.ok("mix", "--dry-run", "--json").json
    assert told(dry, compares=False) == FIELDS
    assert told(dry, compares=True) == TEXTS
    shown = project.ok("mix", "--dry-run").out
    assert "  misspelt: `metadata.adlut` is absent or null in all documents\n" in shown
    assert "  spelt: `metadata.adult` is absent or null in all documents of 1 of 3 shards: b.jsonl.gz\n" in shown
    assert "  grade: `metadata.grade` is a text in 1 of 3 shards, and a number in others: b.jsonl.gz\n" in shown
    assert '  german: `exp__lang__lang == "german"` is true of no document\n' in shown
    for already in (False, True):
        mixed = project.ok("mix", "--json").json
        assert mixed["already"] is already
        assert (told(mixed, compares=False), told(mixed, compares=True)) == (FIELDS, [])
    assert "`metadata.adlut` is absent or null in all documents" in project.ok("mix").out


def test_what_documents_have_is_not_named(project: Project) -> None:
    begin(project)
    project.config["mix"]["rules"] = [
        {"drop": 'metadata.grade == "5th" and exp__lang__lang == "de"'},
        {"keep": 'any(x == "b" for x in exp__labels__labels)'},
        {"drop": '"a" not in exp__labels__labels or document.id == document.source'},
    ]
    fields = [each["field"] for each in project.ok("mix", "--dry-run", "--json").json["unseen"]]
    assert fields == ["metadata.grade"]  # which is a text in one shard only


def test_the_names_of_shards_are_bounded(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unmatched, "SHARDS_LISTED", 2)
    begin(project)
    project.config["mix"]["rules"] = [{"drop": "metadata.rare is not None and metadata.rare > 1", "name": "rare"}]
    write_rows(project.documents / "d.jsonl.gz", [document("d", "A text.", metadata={"rare": 0})])
    write_rows(project.attributes / "exp" / "d.jsonl.gz", [attributes("d", {"exp__lang__lang": "de"})])
    (found,) = project.ok("mix", "--dry-run", "--json").json["unseen"]
    assert (found["shards"], found["lacking"], found["of"]) == (["a.jsonl.gz", "b.jsonl.gz"], 3, 4)
    assert "3 of 4 shards: a.jsonl.gz, b.jsonl.gz, …" in project.ok("mix", "--dry-run").out


@pytest.mark.parametrize("place", ["in place", "ingested", "run"])
def test_documents_of_every_way_are_looked_at(place: str, project: Project) -> None:
    for name in "ab":
        path = project.root / "in" / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        metadata = {"adult": 0.1} if name == "a" else {}
        rows = [{"id": f"{name}{i}", "text": "A text.", "metadata": metadata} for i in range(5)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    if place == "in place":
        del project.config["dataset"]
        project.config["documents"] = {"format": "jsonl", "path": f"{project.root}/in", "source": "s"}
        project.config["attributes"] = f"{project.data}/attributes"
        project.config["tag"] = {"length-0": "length"}
        project.ok("tag")
    else:
        project.config["ingest"] = [{"format": "jsonl", "from": [f"{project.root}/in/*"], "source": "s"}]
    project.mixes({"drop": "metadata.adult is not None and metadata.adult > 0.5", "name": "adult"})
    if place == "ingested":
        project.ok("ingest")
    data = project.ok("run" if place == "run" else "mix", "--json").json
    (found,) = (data["mix"] if place == "run" else data)["unseen"]
    assert (found["rule"], found["field"], found["lacking"], found["of"]) == ("adult", "metadata.adult", 1, 2)
    assert len(found["shards"]) == 1
    assert "b.jsonl" in found["shards"][0]
