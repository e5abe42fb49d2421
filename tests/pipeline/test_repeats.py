"""Documents that a mix writes several times: how often, under which numbers, and who knows of it."""

import gzip
import itertools
import json
from collections import Counter
from typing import Any

import pytest

from tests.pipeline.conftest import Project, attributes, document, read_rows, tree, write_rows

CURVE = [[0.0, 0], [0.5, 0.4], [0.9, 2], [1.0, 7]]
SCORES = [i / 100 for i in range(101)]


def amount(score: float) -> float:
    (x, y), (x2, y2) = next((a, b) for a, b in itertools.pairwise(CURVE) if a[0] <= score <= b[0])
    return y + (y2 - y) * (score - x) / (x2 - x)


@pytest.fixture
def repeated(project: Project) -> Project:
    """Three shards of documents with scores, and a mix that repeats them by a curve."""
    for shard in range(3):
        rows = [document(f"{shard}-{i}", f"text {i}", metadata={"k": i}) for i in range(101)]
        write_rows(project.documents / f"{shard}.jsonl.gz", rows)
        values = [attributes(row["id"], {"q": score, "l": "en"}) for row, score in zip(rows, SCORES, strict=True)]
        write_rows(project.attributes / "q-0" / f"{shard}.jsonl.gz", values)
    project.mixes(
        {"drop": "q < 0.02", "name": "bad"},
        {"repeat": {"score": "q", "curve": CURVE}, "name": "by quality"},
        attributes=["q-0"],
        label="l",
        rejected=str(project.root / "rejected"),
    )
    return project


def written(project: Project) -> dict[str, list[int]]:
    """The numbers of the copies of each document, in the order in which they are written."""
    found: dict[str, list[int]] = {}
    for row in project.output():
        found.setdefault(row["id"], []).append(row["metadata"]["copy"])
    return found


def test_copies_are_numbered_from_1_and_are_as_many_as_the_curve_says(repeated: Project) -> None:
    preview = repeated.ok("mix", "--dry-run", "--json").json
    mixed = repeated.ok("mix", "--json").json
    found = written(repeated)
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in found.values())
    for id, numbers in found.items():
        assert 0 <= len(numbers) - int(amount(int(id.split("-")[1]) / 100)) <= 1
    every = [f"{shard}-{i}" for shard in range(3) for i in range(2, 101)]
    rule = {key: mixed["rules"][1][key] for key in ("documents", "repeated", "copies")}
    assert rule == {
        "documents": len(every) - len(found),
        "repeated": sum(id not in ("0-65", "1-65", "2-65") for id in found),  # none of these: 0.4 + 1.6 * 0.375 = 1
        "copies": sum(len(n) for id, n in found.items() if not id.endswith("-65")),
    }
    totals = mixed["totals"]
    assert (totals["kept"], totals["copies"]) == (len(found), sum(map(len, found.values())) - len(found))
    assert preview["totals"] == totals
    assert [{**rule, "only": None} for rule in preview["rules"]] == mixed["rules"]
    gone = [row for path in (repeated.root / "rejected").rglob("*.jsonl.gz") for row in read_rows(path)]
    assert Counter(row["rejected"]["rule"] for row in gone) == {"bad": 6, "by quality": rule["documents"]}
    assert sum(label["documents"] for label in mixed["labels"].values()) == len(repeated.output())
    assert f"with copies {len(repeated.output()):,}" in " ".join(repeated.ok("mix").out.split())
    (label,) = repeated.ok("stats", "--mix", "--json").json["labels"]
    assert label["after"]["documents"] == len(repeated.output())


def test_the_output_is_the_same_with_two_processes_and_in_one_pass(repeated: Project) -> None:
    del repeated.config["mix"]["rejected"]
    repeated.ok("mix")
    once = tree(repeated.out)
    repeated.config["mix"]["output"]["path"] = str(repeated.root / "two")
    repeated.ok("mix", "processes=2")
    assert tree(repeated.root / "two") == once
    del repeated.config["mix"]["attributes"]
    repeated.config["mix"]["rules"] = [{"repeat": "get(document.metadata, 'k', 1) / 40"}]
    repeated.config["mix"].update(label='"en"')
    repeated.config["mix"]["output"]["path"] = str(repeated.root / "three")
    repeated.ok("mix", "--overwrite")
    project = Project(repeated.root, repeated.run, dict(repeated.config))
    inputs = [{"format": "dolma", "from": [str(repeated.documents / "*.jsonl.gz")]}]
    project.config |= {"dataset": str(repeated.root / "other"), "ingest": inputs}
    project.config["mix"]["output"]["path"] = str(repeated.root / "four")
    project.ok("run")
    assert tree(repeated.root / "three") == tree(repeated.root / "four")


def test_explanations_say_how_often_a_document_is_written(repeated: Project) -> None:
    assert "repeats it x 7: it is written 7 times  (q = 1.0)" in repeated.ok("mix", "--explain", "0-100").out
    found = repeated.ok("mix", "--explain", "2", "--rule", "by quality", "--json").json["documents"]
    assert len(found) == 2


def test_validate_tells_copies_from_duplicates(repeated: Project) -> None:
    repeated.ok("mix")
    repeated.ok("validate", repeated.out)
    (part,) = (repeated.out / "documents").glob("*.jsonl.gz")
    rows = read_rows(part)
    as_dataset = Project(repeated.root, repeated.run, {"dataset": str(repeated.root / "again")})
    write_rows(as_dataset.root / "again" / "documents" / "a.jsonl.gz", rows)
    as_dataset.ok("validate")
    assert [row["metadata"]["copy"] for row in rows[-2:]] == [6, 7]
    rows[-1]["metadata"]["copy"] = 6
    rows[0]["metadata"]["copy"] = "x"
    part.write_bytes(gzip.compress(b"".join(json.dumps(row).encode() + b"\n" for row in rows)))
    ran = repeated("validate", repeated.out)
    assert ran.code == 1
    assert f":{len(rows)}: expected each (source, id, copy) once, got that of {part}:{len(rows) - 1} again" in ran.out
    assert ":1: expected the number of the copy, from 1, at $.metadata.copy, got 'x'" in ran.out
    write_rows(as_dataset.root / "again" / "documents" / "a.jsonl.gz", rows)
    assert "expected each (source, id) once" in as_dataset("validate").out


def test_croissant_identifies_rows_by_copy_too_and_the_card_says_what_was_repeated(repeated: Project) -> None:
    repeated.config["about"] = {
        "name": "x", "description": "y", "license": "https://spdx.org/licenses/CC0-1.0.html", "url": "https://e.example/",
        "creator": {"type": "Person", "name": "a"}, "date_published": "2024-01-01",
    }  # fmt: skip
    mixed = repeated.ok("mix", "--json").json["totals"]
    repeated.ok("croissant", "--of", "output")
    described = json.loads((repeated.out / "croissant.json").read_text())
    record = next(each for each in described["recordSet"] if each["@id"] == "documents")
    assert record["key"][-1] == {"@id": "documents/metadata/copy"}
    repeated.ok("croissant", "--check", repeated.out)
    repeated.ok("card", repeated.out)
    total = mixed["kept"] + mixed["copies"]
    assert f"and with copies {total:,} written" in (repeated.out / "README.md").read_text()


def test_clusters_of_duplicates_are_written_as_often_as_they_were_there(project: Project) -> None:
    texts = ["one text"] * 3 + ["another"] * 2 + ["alone"]
    write_rows(project.documents / "a.jsonl.gz", [document(str(i), text) for i, text in enumerate(texts)])
    project.config["dedup"] = {"exact-0": {"kind": "exact"}}
    project.mixes(
        {"drop": "exact.duplicate_of is not None"}, {"repeat": "min(exact.copies, 2)"}, attributes=["exact-0"]
    )
    project.ok("dedup")
    project.ok("mix")
    assert Counter(row["text"] for row in project.output()) == {"one text": 2, "another": 2, "alone": 1}


@pytest.mark.parametrize(
    ("output", "rule", "said"),
    [
        ({"format": "dolma"}, {"set": "copy", "to": "1"}, "expected another field than copy, which numbers the copies"),
        ({"format": "dolma"}, {"set": "copy.x", "to": "1"}, "expected another field than copy"),
    ],
)
def test_the_field_of_the_numbers_is_taken(repeated: Project, output: Any, rule: Any, said: str) -> None:
    repeated.config["mix"]["rules"].append(rule)
    repeated("mix").fails(2, said)
