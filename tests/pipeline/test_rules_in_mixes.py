"""Rules in whole mixes and dry runs, against a slow model of them."""

from operator import itemgetter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.marks import slow
from tests.pipeline import model
from tests.pipeline.conftest import JsonRows, Project, attributes, document, read_rows, tree, write_rows
from tests.pipeline.model import Doc, Modelled

Rules = tuple[list[dict[str, Any]], list[Modelled]]

SLOWLY = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.fixture
def modelled(project: Project) -> Project:
    """A mix of what the model has, which is not written yet."""
    (project.root / "list.txt").write_text("\n".join(model.LIST))
    project.config["mix"] = {
        "attributes": ["exp"],
        "label": model.LABEL,
        "rejected": str(project.root / "rejected"),
        "allow_empty": True,
        "output": {"format": "dolma", "path": str(project.out)},
    }
    return project


def configure(project: Project, docs: list[Doc], rules: list[dict[str, Any]]) -> None:
    """Writes the documents and the rules."""
    model.write(project, docs)
    used = "n > p" in str(rules) or "p + 1" in str(rules)
    project.config["mix"] = {
        **{key: value for key, value in project.config["mix"].items() if key not in model.PARAMETERS},
        **(model.PARAMETERS if used else {}),
        "rules": rules,
    }


def in_order(rows: JsonRows) -> JsonRows:
    return sorted(rows, key=itemgetter("source", "id"))


@pytest.mark.slow
@given(model.docs(), model.rules())
@SLOWLY
def test_a_mix_and_its_dry_run_are_what_the_model_says(modelled: Project, docs: list[Doc], rules: Rules) -> None:
    yaml, flat = rules
    configure(modelled, docs, yaml)
    wanted = model.expected(docs, flat)
    mixed = modelled.ok("mix", "--json").json
    assert {label: in_order(rows) for label, rows in model.folders(modelled.out).items()} == {
        label: in_order(rows) for label, rows in wanted.output.items()
    }
    gone = [row for path in (modelled.root / "rejected").rglob("*.jsonl.gz") for row in read_rows(path)]
    assert {(row["source"], row["id"]): row.pop("rejected")["rule"] for row in gone} == wanted.rejected
    assert in_order(gone) == in_order([doc.row for doc in docs if doc.key in wanted.rejected]), "nothing twice"
    assert {e["name"]: [e["documents"], e["chars"], e["reached"]] for e in mixed["rules"]} == wanted.effects

    before = tree(modelled.root, bookkeeping=True)
    dry = modelled.ok("mix", "--dry-run", "--json").json
    assert tree(modelled.root, bookkeeping=True) == before, "nothing is written"
    assert [each | {"only": None} for each in dry["rules"]] == mixed["rules"]
    assert {e["name"]: e["only"] for e in dry["rules"] if e["only"] is not None} == wanted.only
    assert dry["blocklists"] == mixed["blocklists"]
    assert dry["unmatched"] == mixed.get("unmatched", {})
    for key in ("rows", "chars", "kept", "kept_chars"):
        assert sum(label[key] for label in dry["labels"].values()) == dry["totals"][key]
    assert {label: each["rows"] for label, each in dry["labels"].items()} == {
        label: sum((doc.label or "") == label for doc in docs) for label in {doc.label or "" for doc in docs}
    }
    for i, effect in enumerate(dry["rules"]):
        dropped = effect["documents"] if effect["only"] is not None else 0
        assert sum(label["dropped"][i] for label in dry["labels"].values()) == dropped


# --- what is set, and where it goes -----------------------------------------------------------------------------------

EN, FR = {"label": "en", "prob": 0.9}, {"label": "fr", "prob": 0.95}


@pytest.fixture
def oscar(project: Project) -> Project:
    """An OSCAR file, its vote redone, and a mix that sets fields; its rules are those of the format."""
    lines = [
        {
            "content": "one\ndeux\nthree\nfour",
            "warc_headers": {"warc-record-id": "1"},
            "metadata": {"identification": FR, "annotation": None, "sentence_identifications": [EN, FR, EN, None]},
        }
    ]
    path = write_rows(project.root / "in.jsonl", lines)
    project.config |= {
        "ingest": [{"format": "oscar", "from": [str(path)], "source": "o"}],
        "tag": {"language-0": {"tagger": "language", "lines": "oscar-0"}},
        "mix": {
            "attributes": ["oscar-0", "language-0"],
            "rules": [{"drop": "label is None", "name": "unidentified"}],
            "output": {"format": "oscar", "path": str(project.out)},
        },
    }
    project.ok("ingest")
    project.ok("tag")
    return project


def test_fields_follow_those_of_the_schema_and_are_of_the_edited_text(oscar: Project) -> None:
    oscar.config["mix"]["rules"] += [
        {"set": {"mine.label": "language.label", "mine.lines": "line_language", "chars": "document.chars"}},
        {"set": "never", "to": 1, "when": "language.label != language.label"},
    ]
    oscar.ok("mix")
    (row,) = oscar.output()
    assert list(row["metadata"]) == ["identification", "annotation", "sentence_identifications", "mine", "chars"]
    whole = row["metadata"]["mine"]
    assert (whole["lines"], row["metadata"]["chars"]) == ([EN, FR, EN, None], len(row["content"]))
    oscar.ok("validate")
    oscar.config["mix"]["rules"] += [{"cut": "lines", "when": 'line_language is None or line_language.label == "fr"'}]
    oscar.ok("mix")
    (row,) = oscar.output()
    assert row["content"] == "one\nthree"
    assert row["metadata"]["identification"]["label"] == row["metadata"]["mine"]["label"] == "en"
    assert (row["metadata"]["mine"]["lines"], row["metadata"]["chars"]) == ([EN, EN], 10)
    oscar.config["mix"]["rules"] += [{"set": {"stale": "oscar.identification"}}]
    oscar("mix").fails(2, "must be computed again, and that is not possible")


def test_fields_of_the_schema_and_fields_of_text_are_refused(oscar: Project) -> None:
    oscar.config["mix"]["rules"] += [{"set": {"identification.label": '"xx"'}}]
    oscar("mix").fails(1, "expected fields beside those of the schema, got 'identification' of a `set` rule")
    oscar.config["mix"]["output"] = {"format": "text", "path": str(oscar.out)}
    oscar("mix").fails(2, "expected `set` with a format that has a place for metadata, got text")
    oscar.config["mix"]["rules"][1] = {"set": {"provenance": "1"}}
    oscar.config["mix"]["output"] = {"format": "oscar", "path": str(oscar.out), "provenance": True}
    assert "expected `provenance` once, got the option and a `set` rule" in oscar("mix").err


@pytest.fixture
def fixed(modelled: Project) -> Project:
    """Five documents of the model, in two shards."""
    docs = [
        Doc("1", "s", "one", {"url": "http://a.example/1"}, 1, "en", [[0, 3, 1.0]]),
        Doc("2", "s", "two", None, 2, "de", []),
        Doc("3", "s", "three", {"url": "https://www.A.example:443/3/", "x": {"uri": "b.example"}}, 3, "en", []),
        Doc("1", "t", "four", {"url": None}, 4, None, []),
        Doc("5", "t", "five", {}, None, "fr", []),
    ]
    configure(modelled, docs, [])
    return modelled


@pytest.mark.parametrize(
    "name", ['"../x"', '".toolkit"', *slow('""', '"/x"', '"x/"', '"a//b"', '"."', '" ab"', '"x/.."')]
)
def test_a_folder_that_would_lead_elsewhere_is_an_error_of_the_document(fixed: Project, name: str) -> None:
    fixed.config["mix"]["rules"] = [{"route": name, "when": 'document.id == "3"'}]
    fixed("mix").fails(1, "0.jsonl.gz:2: expected a label of letters, digits", "(document '3')")
    assert fixed.output() == []


def test_two_folders_never_share_a_file(fixed: Project) -> None:
    fixed.config["mix"]["output"]["part_size"] = 100
    fixed.config["mix"]["rules"] = [
        {"route": '"x_part_1"', "when": "n == 1 if n is not None else False"},
        {"route": '"x"'},
    ]
    fixed("mix").fails(
        2, "expected a path of its own for each part, got documents/x_part_1.jsonl.gz for the labels 'x' and"
    )
    fixed.config["mix"]["output"]["part_size"] = "1 GB"
    fixed.config["mix"]["rules"][0]["route"] = '"x.jsonl.gz/y"'
    assert "expected a folder at documents/x.jsonl.gz for the label" in fixed("mix").err
    assert fixed.output() == []


def test_provenance_says_where_a_document_was(fixed: Project) -> None:
    fixed.config["mix"]["output"]["provenance"] = "line"
    fixed.ok("mix")
    assert {(r["source"], r["id"]): r["metadata"]["provenance"] for r in fixed.output()} == {
        ("s", "1"): "0.jsonl.gz:1", ("s", "2"): "1.jsonl.gz:1", ("s", "3"): "0.jsonl.gz:2",
        ("t", "1"): "1.jsonl.gz:2", ("t", "5"): "0.jsonl.gz:3",
    }  # fmt: skip
    fixed.config["mix"]["output"]["provenance"] = True
    fixed.ok("mix")
    found = {row["id"]: row["metadata"]["provenance"] for row in fixed.output() if row["source"] == "s"}
    assert (found["3"]["shard"], found["3"]["row"], list(found["3"]["sets"])) == ("0.jsonl.gz", 2, ["exp"])
    digest = found["3"]["sets"]["exp"]["digest"]
    assert found["1"]["sets"]["exp"]["digest"] == digest != found["2"]["sets"]["exp"]["digest"]
    fixed.config["mix"]["output"] = {"format": "dolma", "path": str(fixed.out)}
    fixed.ok("mix")
    assert not any("provenance" in (row.get("metadata") or {}) for row in fixed.output())


def test_documents_that_edits_leave_empty_may_stay(fixed: Project) -> None:
    fixed.config["mix"]["rules"] = [{"cut": "sp"}]
    result = fixed.ok("mix", "--json").json
    assert result["counts"] == {"documents empty after edits": 1}
    assert ("1", "s") not in {(row["id"], row["source"]) for row in fixed.output()}
    fixed.config["mix"]["output"]["keep_empty"] = True
    result = fixed.ok("mix", "--json").json
    assert (result["counts"], result["totals"]["kept"]) == ({}, 5)
    assert [row["text"] for row in fixed.output() if (row["id"], row["source"]) == ("1", "s")] == [""]
    assert not (fixed.root / "rejected" / "documents").exists()


# --- blocklists -------------------------------------------------------------------------------------------------------


def blocked(project: Project, lines: str, *rules: dict[str, Any], **options: Any) -> dict[str, Any]:
    """The result of a mix with a blocklist behind these rules."""
    (project.root / "list.txt").write_text(lines)
    project.config["mix"]["rules"] = [*rules, {"drop": "blocklist", "files": "list.txt", **options}]
    result: dict[str, Any] = project.ok("mix", "--json").json
    return result


def kept(project: Project) -> set[str]:
    return {f"{row['source']}{row['id']}" for row in project.output()}


def test_a_list_that_has_changed_is_applied_again(fixed: Project) -> None:
    blocked(fixed, "1\n")
    assert kept(fixed) == {"s2", "s3", "t5"}
    assert fixed.ok("mix", "--json").json["already"]
    blocked(fixed, "t\t1\n")
    assert kept(fixed) == {"s1", "s2", "s3", "t5"}
    blocked(fixed, "a.example\n")
    assert kept(fixed) == {"s2", "t1", "t5"}
    blocked(fixed, "http://a.example/3\nb.example\n", entries="urls")
    assert kept(fixed) == {"s1", "s2", "t1", "t5"} | {"s3"}, "www is another URL"
    blocked(fixed, "b.example\n", url="metadata.x.uri")
    assert kept(fixed) == {"s1", "s2", "t1", "t5"}
    assert blocked(fixed, "a.example\n", when="n is not None and n < 2")["totals"]["kept"] == 4


def test_entries_that_matched_nothing_are_counted_and_listed_on_every_run(fixed: Project) -> None:
    listed = fixed.out / ".toolkit" / "unmatched.tsv"
    lines = "2\n# no entry\nnobody\ns\t1\n1\nc.example\n"
    first = blocked(fixed, lines, {"drop": "n == 2 if n is not None else False", "name": "before"}, name="mine")
    assert first["blocklists"] == [{"rule": "mine", "entries": 5, "matched": 3}], "also what was dropped before"
    assert [entry.rpartition("list.txt:")[2] for entry in first["unmatched"]["mine"]] == ["3: nobody", "6: c.example"]
    assert listed.read_text() == "".join(f"mine\t{entry}\n" for entry in first["unmatched"]["mine"])
    again = fixed.ok("mix", "--json").json
    assert again == first | {"already": True}
    dry = fixed.ok("mix", "--dry-run", "--json").json
    assert {key: dry[key] for key in ("blocklists", "unmatched")} == {
        key: first[key] for key in ("blocklists", "unmatched")
    }
    assert "3 of 5 entries matched; 2 did not: see " in fixed.ok("mix").out
    assert "unmatched" not in blocked(fixed, "2\n")
    assert not listed.exists()


def test_a_dry_run_knows_the_source_where_attributes_do_not(project: Project) -> None:
    rows = [document(str(i), "text", "st"[i % 2]) for i in range(60)]
    write_rows(project.documents / "a.jsonl.gz", rows)
    nameless = [{"id": row["id"], "attributes": {"n": int(row["id"])}} for row in rows]
    write_rows(project.attributes / "dedup" / "a.jsonl.gz", nameless)
    write_rows(project.attributes / "exp" / "a.jsonl.gz", [attributes(r["id"], {"m": 1}, r["source"]) for r in rows])
    (project.root / "list.txt").write_text("s\t2\nt\t4\n")
    for sets in (["dedup"], ["dedup", "exp"], ["exp", "dedup"]):
        project.mixes(
            {"drop": "n > 50"},
            {"drop": "blocklist", "files": "list.txt"},
            {"sample": 0.5},
            {"annotate": "t", "when": 'document.source == "t"'},
            attributes=sets,
        )
        dry = project.ok("mix", "--dry-run", "--json").json
        mixed = project.ok("mix", "--json").json
        assert [each | {"only": None} for each in dry["rules"]] == mixed["rules"], sets
        assert [each["documents"] for each in mixed["rules"]][:2] == [9, 1]


# --- shown ------------------------------------------------------------------------------------------------------------


def test_a_group_is_shown_once_with_all_that_is_in_it(fixed: Project) -> None:
    is_ = "n == {} if n is not None else False"
    fixed.config["mix"]["rules"] = [
        {"drop": is_.format(1), "name": "alone"},
        {
            "group": "g",
            "rules": [
                {"drop": is_.format(2), "name": "two"},
                {
                    "group": "h",
                    "rules": [{"drop": is_.format(3), "name": "three"}, {"annotate": "a", "when": "n is None"}],
                },
                {"drop": is_.format(4), "name": "four"},
            ],
        },
    ]
    lines = [" ".join(line.split()) for line in fixed.ok("mix").out.splitlines()]
    assert [line.partition(" %")[0] for line in lines if line.startswith("g")] == [
        "g (group) drops 3 60.0", "g: two drops 1 20.0", "g/h (group) drops 1 20.0", "g/h: three drops 1 20.0",
        "g/h: a annotates 1 20.0", "g: four drops 1 20.0",
    ]  # fmt: skip
    effects = fixed.ok("mix", "--json").json["rules"]
    assert [effect["group"] for effect in effects] == ["", "g", "g/h", "g/h", "g"]


def test_there_is_a_sample_for_each_rule_that_does_something(fixed: Project) -> None:
    (fixed.root / "list.txt").write_text("5\n")
    fixed.config["mix"]["rules"] = [
        {"drop": "blocklist", "files": "list.txt"},
        {"annotate": "x", "when": "n == 2 if n is not None else False"},
        {"group": "g", "when": 'label == "en" if label is not None else False', "rules": [{"set": "f", "to": "n"}]},
        {"route": '"r"', "when": "n == 4 if n is not None else False"},
    ]
    found = fixed.ok("mix", "--explain", "1", "--json").json["documents"]
    assert [(each["deciding"], each["id"], each["source"]) for each in found] == [
        (0, "5", "t"), (1, "2", "s"), (2, "1", "s"), (3, "1", "t"),
    ]  # fmt: skip
    assert found[0]["steps"][0]["values"]["entries"][-1].endswith("list.txt:1: 5")
    assert [step["verdict"] for step in found[2]["steps"]] == [
        "does not drop it", "does not annotate it", "sets f", "routes nothing",
    ]  # fmt: skip
    fixed.config["mix"]["rules"] = [{"cut": "sp"}]
    (only,) = fixed.ok("mix", "--explain", "2", "--json").json["documents"]
    assert (only["id"], only["steps"][0]["verdict"]) == ("1", "edits 1 spans")


def test_an_error_names_the_document_wherever_it_is_met(fixed: Project) -> None:
    for rule in (
        {"drop": "sp[5].score > 1"},
        {"set": {"x": "1 // (n - n) if n is not None else 0"}, "when": "sp[5].score > 1"},
    ):
        fixed.config["mix"]["rules"] = [{**rule, "name": "bad"}]
        for arguments in ((), ("--dry-run",), ("--explain", "1"), ("--compare", str(fixed.yaml))):
            fixed("mix", *arguments).fails(
                1,
                "0.jsonl.gz:1: rule 'bad' (",
                "failed: expected an element, got a list that is too short (document '1')",
            )
