"""Attribute files of the Dolma toolkit are used as they are."""

import gzip
import json
import re
from typing import Any

import pytest

from tests.pipeline.conftest import Project, attributes, document, read_rows, tree, write_rows

SHARD = "000.json.gz"


@pytest.fixture
def tagged(project: Project) -> Project:
    """Documents with the attribute files of several tools."""
    texts = ["mail a@b.c now", "nothing", "twice\ntwice\n", "über a@b.c", "", "last"]
    write_rows(project.documents / SHARD, [document(f"d{i}", text, "tiny") for i, text in enumerate(texts)])
    spans: list[dict[str, Any]] = [
        {"exp__c__length": [[0, 14, 14.0]], "exp__pii__EMAIL": [[5, 10, 1.0]]},
        {"exp__c__length": [[0, 7, 7.0]]},
        {"exp__c__length": [[0, 12, 12.0]], "exp__pii__EMAIL": []},
        {"exp__c__length": [[0, 10, 10.0]], "exp__pii__EMAIL": [[5, 10, 0.25], [5, 6, 1]]},
        {"exp__c__length": [[0, 0, 0.0]]},
        {"exp__c__length": [[0, 4, 4.0]]},
    ]
    write_rows(project.attributes / "exp" / SHARD, [attributes(f"d{i}", v, "tiny") for i, v in enumerate(spans)])
    deduped: list[Any] = [{}, {}, {"dup": [[6, 12, 1]]}, {}, [], {"dup": [[0, 4, 1]]}]
    write_rows(project.attributes / "dedup" / SHARD, [{"attributes": v, "id": f"d{i}"} for i, v in enumerate(deduped)])
    values: list[dict[str, Any]] = [
        {"toxicity": 0.1 * i, "n": i, "deep": {"a": {"ok": i % 2 == 0}, "list": [i]}, "label": "x" if i else None}
        for i in range(6)
    ]
    write_rows(project.attributes / "values" / SHARD, [attributes(f"d{i}", v, "tiny") for i, v in enumerate(values)])
    project.mixes(attributes=["exp", "dedup", "values"])
    return project


def kept(project: Project, *rules: str) -> list[str]:
    project.config["mix"] |= {"rules": [{"drop": rule} for rule in rules], "allow_empty": True}
    project.ok("mix")
    return [row["id"] for row in project.output()]


def test_rules_over_attributes_of_the_dolma_toolkit(tagged: Project) -> None:
    kept = {
        "exp__c__length[0][2] < 5": "d0 d1 d2 d3",
        "exp__c__length[0].score < 5": "d0 d1 d2 d3",
        "exp__c__length[0][2] >= 14": "d1 d2 d3 d4 d5",
        "exp__c__length[0][2] >= 14.0": "d1 d2 d3 d4 d5",
        "exp__c__length[0][2] == 14": "d1 d2 d3 d4 d5",
        "len(exp__pii__EMAIL) > 0": "d1 d2 d4 d5",
        "any(span[2] >= 1 for span in exp__pii__EMAIL)": "d1 d2 d4 d5",
        "any(span.score < 0.5 for span in exp__pii__EMAIL)": "d0 d1 d2 d4 d5",
        "len(exp__pii__EMAIL) == 0": "d0 d3",
        "len(dup) > 0": "d0 d1 d3 d4",
        "len(dup) > 0 and dup[0][2] >= 1.0": "d0 d1 d3 d4",
        "sum(span.end - span.start for span in dup) > 4": "d0 d1 d3 d4 d5",
        "toxicity > 0.25": "d0 d1 d2",
        "n >= 3": "d0 d1 d2",
        "n >= 3.0": "d0 d1 d2",
        "deep.a.ok": "d1 d3 d5",
        "deep.list[0] > 1": "d0 d1",
        "label is None": "d1 d2 d3 d4 d5",
        "label is not None and label == 'x'": "d0",
        "label == 'x'": "d0",
        "document.id == 'd3'": "d0 d1 d2 d4 d5",
    }
    rules = [{"annotate": f"x{number}", "when": rule} for number, rule in enumerate(kept)]
    tagged.config["mix"]["rules"] = rules
    tagged.ok("mix")
    notes = {row["id"]: row.get("metadata", {}).get("annotation") or [] for row in tagged.output()}
    for number, (rule, ids) in enumerate(kept.items()):
        assert [id for id, found in notes.items() if f"x{number}" not in found] == ids.split(), rule


@pytest.mark.parametrize("rule", ["exp__pii__EMAIL[0][2] > 0", "dup[0][2] >= 1"])
def test_a_rule_that_meets_no_span_is_an_error_that_names_the_row(tagged: Project, rule: str) -> None:
    tagged.config["mix"]["rules"] = [{"drop": rule}]
    ran = tagged("mix").fails(1)
    assert re.search(rf"{tagged.attributes}/\w+/{SHARD}:\d+: rule ", ran.err)
    assert "(document 'd" in ran.err
    assert tree(tagged.out) == {}


@pytest.mark.parametrize("rule", ["label < 'x'", "exp__pii__EMAIL > 0", "toxicity", "deep > 1", "n == 'x'"])
def test_a_rule_that_does_not_fit_the_inferred_type_is_a_bad_configuration(tagged: Project, rule: str) -> None:
    tagged.config["mix"]["rules"] = [{"drop": rule}]
    tagged("mix").fails(2)
    assert tree(tagged.out) == {}


def test_the_dolma_writer_merges_attributes_as_they_are_written(tagged: Project) -> None:
    tagged.config["mix"]["output"]["attributes"] = True
    tagged.ok("mix")
    rows = tagged.output()
    assert [row["id"] for row in rows] == [f"d{i}" for i in range(6)]
    assert rows[0]["attributes"] == {
        "exp__c__length": [[0, 14, 14.0]],
        "exp__pii__EMAIL": [[5, 10, 1.0]],
        "toxicity": 0.0,
        "n": 0,
        "deep": {"a": {"ok": True}, "list": [0]},
        "label": None,
    }
    assert rows[2]["attributes"]["dup"] == [[6, 12, 1]]
    assert "dup" not in rows[4]["attributes"]
    text = gzip.decompress(next((tagged.out / "documents").rglob("*.gz")).read_bytes()).decode()
    assert '"exp__c__length":[[0, 14, 14.0]]' in text
    assert '"dup":[[6, 12, 1]]' in text
    assert '"toxicity":0.30000000000000004' in text
    tagged.ok("validate")


def test_attributes_that_a_document_carries_are_kept_beside_those_of_the_mix(project: Project) -> None:
    row = document("1", "t", attributes={"old": [[0, 1, 1.0]], "shared": 1}, extra={"b": 1, "a": 2})
    write_rows(project.documents / SHARD, [row])
    write_rows(project.attributes / "new" / SHARD, [attributes("1", {"shared": 2, "new": 3})])
    project.config["mix"] = {
        "attributes": [{"set": "new", "as": {"new": "renamed"}}],
        "output": {"format": "dolma", "path": str(project.out), "attributes": True},
    }
    project.ok("mix")
    (found,) = project.output()
    assert list(found) == list(row)
    assert found["attributes"] == {"old": [[0, 1, 1.0]], "shared": 2, "renamed": 3}
    assert json.dumps(found["extra"]) == '{"b": 1, "a": 2}'


def test_documents_pass_through_the_dolma_writer_byte_by_byte(project: Project) -> None:
    lines = [
        b'{"text":"a\\u00fc\\/b",  "source":"s","id":"1","n":1.10,"big":12345678901234567890123,"metadata":{"b":1}}',
        '{"id":"2","source":"s","text":"ü\u2028","added":null,"created":null,"attributes":{"k":[]}}'.encode(),
    ]
    write_rows(project.documents / SHARD, lines)
    project.config["mix"] = {"output": {"format": "dolma", "path": str(project.out)}}
    project.ok("mix")
    part = next((project.out / "documents").rglob("*.gz"))
    assert gzip.decompress(part.read_bytes()) == b"".join(line + b"\n" for line in lines)


def test_a_key_that_only_one_shard_has_is_none_or_no_spans_elsewhere(project: Project) -> None:
    for shard, values in {"a.jsonl.gz": {"spans": [[0, 1, 1.0]], "score": 0.5}, "b.jsonl.gz": {}}.items():
        write_rows(project.documents / shard, [document(shard[0], "t")])
        write_rows(project.attributes / "exp" / shard, [attributes(shard[0], values)])
    project.config["mix"] = {"attributes": ["exp"], "output": {"format": "dolma", "path": str(project.out)}}
    assert kept(project, "len(spans) > 0") == ["b"]
    assert kept(project, "score is None") == ["a"]
    assert kept(project, "score is not None and score >= 0.5") == ["b"]
    project.config["mix"]["rules"] = [{"drop": "score >= 0.5"}]
    project("mix").fails(2, "may be null")


def test_a_document_that_a_deduper_skipped_has_no_value_of_any_key(project: Project) -> None:
    write_rows(project.documents / SHARD, [document("1", "t"), document("2", "t")])
    rows: list[dict[str, Any]] = [attributes("1", {"score": 0.5}), attributes("2", [])]
    write_rows(project.attributes / "exp" / SHARD, rows)
    project.config["mix"] = {"attributes": ["exp"], "output": {"format": "dolma", "path": str(project.out)}}
    assert kept(project, "score is None") == ["1"]
    assert kept(project, "score is not None and score >= 0.5") == ["2"]


@pytest.mark.slow
def test_integers_and_floats_of_one_key_are_one_kind_of_number(project: Project) -> None:
    for shard, value in {"a.jsonl.gz": 1, "b.jsonl.gz": 1.5, "c.jsonl.gz": 0}.items():
        write_rows(project.documents / shard, [document(shard[0], "t")])
        write_rows(project.attributes / "exp" / shard, [attributes(shard[0], {"n": value, "s": [[0, 1, value]]})])
    project.config["mix"] = {"attributes": ["exp"], "output": {"format": "dolma", "path": str(project.out)}}
    assert kept(project, "n >= 1") == ["c"]
    assert kept(project, "n >= 1.0") == ["c"]
    assert kept(project, "s[0][2] == 1") == ["b", "c"]


def test_keys_that_are_no_names_are_reached_under_another(project: Project) -> None:
    write_rows(project.documents / SHARD, [document("1", "t")])
    write_rows(project.attributes / "exp" / SHARD, [attributes("1", {"a-b": 1, "class": 2, "ü": 3, "__label__x": 4})])
    project.config["mix"] = {
        "attributes": [{"set": "exp", "as": {"a-b": "ab", "class": "class_"}}],
        "output": {"format": "dolma", "path": str(project.out)},
    }
    assert kept(project, "ab == 1 and class_ == 2 and ü == 3 and __label__x == 4") == []


def test_a_dry_run_over_attributes_of_another_program_writes_no_data(tagged: Project) -> None:
    before = tree(tagged.data)
    tagged.config["mix"]["rules"] = [{"drop": "toxicity > 0.25"}]
    tagged.ok("mix", "--dry-run")
    assert tree(tagged.data) == before
    assert not tagged.out.exists()


def test_a_changed_attribute_file_of_another_program_is_read_again(tagged: Project) -> None:
    assert kept(tagged, "n >= 3") == ["d0", "d1", "d2"]
    path = tagged.attributes / "values" / SHARD
    write_rows(path, [row | {"attributes": row["attributes"] | {"n": 5 - i}} for i, row in enumerate(read_rows(path))])
    assert kept(tagged, "n >= 3") == ["d3", "d4", "d5"]
    assert "was there already" in tagged.ok("mix").out


def test_a_tagger_reads_attributes_of_another_program(project: Project) -> None:
    write_rows(project.documents / SHARD, [document("1", "one\ntwo"), document("2", "x")])
    english = {"label": "en", "prob": 0.9}
    rows = [attributes("1", {"line_language": [english, None]}), attributes("2", {"line_language": [english]})]
    path = write_rows(project.attributes / "lines-x" / SHARD, rows)
    project.config["tag"] = {"language-0": {"tagger": "language", "lines": "lines-x"}}
    project.ok("tag")
    assert [v["language"]["label"] for v in project.values("language-0", SHARD)] == ["en", "en"]
    project.config["mix"] = {"attributes": ["language-0"], "output": {"format": "dolma", "path": str(project.out)}}
    project.ok("mix")
    rows[1]["attributes"]["line_language"] = [None]
    write_rows(path, rows)
    assert project("mix").code == 1
    assert project.ok("tag", "--json").json["written"] == {"language-0": 1}
    project.ok("mix")
