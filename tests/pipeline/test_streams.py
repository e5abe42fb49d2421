"""Several datasets in one mix, each with its own attributes and rules."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.pipeline.conftest import Project, attributes, document, read_rows, strays, tree, write_rows


def fill(root: Path, source: str, count: int, chars: int, key: str = "n") -> None:
    """Two shards, of the same names in each dataset, with a number of each document as attribute."""
    for shard, numbers in (("a", range(0, count, 2)), ("deep/b", range(1, count, 2))):
        rows = [document(f"{source}-{i}", f"{i:04}".rjust(chars, "x"), source) for i in numbers]
        write_rows(root / "documents" / f"{shard}.jsonl.gz", rows)
        values = [attributes(row["id"], {key: i}, source) for row, i in zip(rows, numbers, strict=True)]
        write_rows(root / "attributes" / f"{key}-0" / f"{shard}.jsonl.gz", values)


@pytest.fixture
def two(project: Project) -> Project:
    """A mix of two datasets; the configuration has none of its own."""
    fill(project.root / "one", "one", 40, 10)
    fill(project.root / "two", "two", 60, 30, key="m")
    for root, source in (("one", "one"), ("two", "two")):
        for path in sorted((project.root / root / "documents").rglob("*.gz")):
            shard = path.relative_to(project.root / root / "documents")
            even = [attributes(row["id"], {"even": int(row["text"][-1]) % 2 == 0}, source) for row in read_rows(path)]
            write_rows(project.root / root / "attributes" / "shared-0" / shard, even)
    del project.config["dataset"]
    project.mixes(
        {"drop": "even and document.chars > limit", "name": "even"},
        attributes=["shared-0"],
        parameters={"limit": 5},
        streams={
            "second": {
                "dataset": str(project.root / "two"),
                "attributes": ["m-0"],
                "rules": [{"drop": "m >= 50", "name": "large"}],
                "parameters": {"limit": 100},
            },
            "first": {"dataset": str(project.root / "one")},
        },
    )
    return project


def ids(project: Project) -> list[str]:
    return [row["id"] for row in project.output()]


def test_each_stream_has_its_own_rules_and_attributes_and_those_of_all(two: Project) -> None:
    result = two.ok("mix", "--json").json
    assert Counter(ids(two)) == Counter([f"one-{i}" for i in range(1, 40, 2)] + [f"two-{i}" for i in range(50)])
    assert [(e["stream"], e["name"], e["documents"], e["reached"]) for e in result["rules"]] == [
        ("first", "even", 20, 40), ("second", "large", 10, 60), ("second", "even", 0, 50),
    ]  # fmt: skip
    dry = two.ok("mix", "--dry-run", "--json").json
    assert [e | {"only": None} for e in dry["rules"]] == result["rules"]
    assert {name: labels["documents"]["kept"] for name, labels in dry["labels"].items()} == {"first": 20, "second": 50}
    manifest = json.loads((two.out / ".toolkit" / "manifest.json").read_text())
    assert [(e["stream"], e["shard"], e["rows"]) for e in manifest["inputs"]] == [
        ("first", "a.jsonl.gz", 20), ("first", "deep/b.jsonl.gz", 20),
        ("second", "a.jsonl.gz", 30), ("second", "deep/b.jsonl.gz", 30),
    ]  # fmt: skip
    assert sorted(manifest["sets"]) == ["first/shared-0", "second/m-0", "second/shared-0"]
    assert str(two.root) not in (two.out / ".toolkit" / "manifest.json").read_text()
    two.ok("validate")
    assert two("tag").code == 2, "there is no dataset of its own"


def test_a_list_in_any_order_is_the_same_as_a_mapping_and_a_rerun_does_nothing(two: Project) -> None:
    digest = two.ok("mix", "--json").json["digest"]
    before = tree(two.out, bookkeeping=True)
    streams = two.config["mix"]["streams"]
    two.config["mix"]["streams"] = [{"name": name, **streams[name]} for name in ("first", "second")]
    again = two.ok("mix", "--json").json
    assert (again["already"], again["digest"]) == (True, digest)
    assert tree(two.out, bookkeeping=True) == before
    two.ok("run")
    assert tree(two.out, bookkeeping=True) == before


def test_a_stream_that_has_changed_is_mixed_again(two: Project) -> None:
    two.ok("mix")
    row = document("one-40", "a new one!", "one")
    for folder, added in (("documents", row), ("attributes/shared-0", attributes("one-40", {"even": False}, "one"))):
        path = two.root / "one" / folder / "a.jsonl.gz"
        write_rows(path, [*read_rows(path), added])
    two("validate").fails(1).shows("made from an earlier version of a.jsonl.gz")
    assert two.ok("mix", "--json").json["already"] is False
    assert "one-40" in ids(two)
    two.config["mix"]["streams"]["second"]["rules"][0]["drop"] = "m >= 10"
    assert two("validate").code == 1
    two.ok("mix")
    assert len(ids(two)) == 21 + 10


def test_one_dataset_may_be_in_two_streams_and_shares_are_drawn_of_each(two: Project) -> None:
    root = str(two.root / "one")
    two.config["mix"] |= {
        "rules": [],
        "parameters": {},
        "streams": {
            "even": {"dataset": root, "rules": [{"keep": "even"}, {"set": {"part": '"even"'}}], "sample": 0.5},
            "odd": {"dataset": root, "rules": [{"drop": "even"}, {"set": {"part": '"odd"'}}]},
        },
        "rejected": str(two.root / "rejected"),
    }
    result = two.ok("mix", "--json").json
    parts = Counter((row["metadata"]["part"], int(row["text"][-4:]) % 2) for row in two.output())
    assert parts["odd", 1] == 20
    assert 0 < parts["even", 0] < 20
    assert len(parts) == 2
    gone = [row for path in (two.root / "rejected").rglob("*.gz") for row in read_rows(path)]
    assert Counter(row["id"] for row in [*two.output(), *gone]) == {f"one-{i}": 2 for i in range(40)}
    assert [e["name"] for e in result["rules"] if e["stream"] == "even"] == ["not (even)", "set part", "sample 0.5"]
    explained = two.ok("mix", "--explain", "one-3", "--json").json["documents"]
    assert [(e["place"].partition(": ")[0], e["dropped"]) for e in explained] == [("even", "not (even)"), ("odd", None)]


@pytest.mark.slow
def test_weights_are_shares_of_the_characters_and_nothing_is_repeated(project: Project) -> None:
    for source, count, width in (("one", 1500, 40), ("two", 1000, 20), ("three", 600, 100)):
        fill(project.root / source, source, count, width)
    del project.config["dataset"]
    project.mixes(
        {"drop": "n % 10 == 0", "name": "tens"},
        attributes=["n-0"],
        streams={
            name: {"dataset": str(project.root / name), "weight": weight}
            for name, weight in (("one", 1.5), ("two", 1), ("three", 2))
        },
    )
    project.ok("mix")
    rows = project.output()
    chars: Counter[str] = Counter()
    for row in rows:
        chars[row["source"]] += len(row["text"])
    assert chars["two"] == 900 * 20, "the shortest for its weight gives all"
    assert chars["one"] == pytest.approx(1.5 * chars["two"], rel=0.1)
    assert chars["three"] == pytest.approx(2 * chars["two"], rel=0.1)
    assert len({row["id"] for row in rows}) == len(rows)
    dry = project.ok("mix", "--dry-run", "--json").json
    assert dry["totals"]["kept"] == len(rows)
    assert [e["name"] for e in dry["rules"]] == ["tens", "weight 1.5", "tens", "weight 2", "tens", "weight 1"]
    assert project.ok("mix", "--json").json["already"]
    assert "all is done" in project.ok("status").out
    project.ok("validate")


def test_a_shard_that_fails_in_one_stream_publishes_nothing_or_is_left_out(two: Project) -> None:
    path = two.root / "two" / "attributes" / "m-0" / "a.jsonl.gz"
    write_rows(path, read_rows(path)[:-1])
    two("mix").fails(1, f"{path}:30")
    assert two.output() == []
    two.config["mix"] |= {"on_failed_shard": "omit"}
    result = two("mix", "--json").json
    assert list(result["omitted"]) == ["second/a.jsonl.gz"]
    assert len(ids(two)) == 20 + 25
    assert strays(two.out) == []


def test_a_damaged_shard_of_a_stream_with_weight_is_no_fault_of_the_configuration(two: Project) -> None:
    for stream in two.config["mix"]["streams"].values():
        stream["weight"] = 1
    (path := two.root / "one" / "documents" / "a.jsonl.gz").write_bytes(path.read_bytes()[:-9])
    ran = two("mix", "--json").fails(1, "1 failed:")
    assert str(path) in ran.json["failed"][0]


def test_weights_hold_also_where_a_shard_is_left_out(two: Project) -> None:
    for name, weight in (("first", 1), ("second", 0.5)):
        two.config["mix"]["streams"][name]["weight"] = weight
    path = two.root / "two" / "attributes" / "m-0" / "a.jsonl.gz"
    path.write_bytes(b"broken")
    assert two("mix").code == 1
    assert two.output() == []
    two.config["mix"] |= {"on_failed_shard": "omit"}
    result = two("mix", "--json").json
    assert list(result["omitted"]) == ["second/a.jsonl.gz"]
    assert "weight 0.5" in [e["name"] for e in result["rules"]]
    chars = Counter(row["source"] for row in two.output() for _ in row["text"])
    assert chars["one"] == 200
    assert 0 < chars["two"] < 220


def test_a_limit_is_for_each_stream_and_replaces_nothing(two: Project) -> None:
    assert two.ok("mix", "--limit", "1", "--json").json["totals"]["rows"] == 20 + 30
    two.ok("mix")
    two("mix", "--limit", "1").fails(2, "was made of 4 shards")


@pytest.mark.slow
def test_a_run_with_a_limit_may_be_repeated(project: Project) -> None:
    for name in "ab":
        write_rows(project.root / "in" / f"{name}.jsonl", [{"id": f"{name}{i}", "text": "x" * i} for i in range(9)])
    project.config["ingest"] = [{"format": "jsonl", "from": f"{project.root}/in/*", "source": "s"}]
    streams = {name: {"rules": [{"drop": f"document.chars {sign} 4"}]} for name, sign in (("x", ">"), ("y", "<="))}
    project.mixes(streams=streams)
    for _ in range(2):
        assert project.ok("run", "--limit", 1).out.count("1 input is not in this") == 1
        assert len(project.output()) == 9
    project.ok("run")
    assert len(project.output()) == 18


def test_any_number_of_processes_gives_the_same_bytes(two: Project) -> None:
    streams = two.config["mix"]["streams"]
    streams["first"] |= {"weight": 1, "rules": [{"route": '"r/" + document.source'}, {"set": {"k": "even"}}]}
    streams["second"] |= {"weight": 3, "rules": [{"annotate": "big", "when": "m > 30"}, {"sample": 0.9}]}
    two.config["mix"] |= {"rejected": str(two.root / "rejected")}
    two.config["mix"]["output"] |= {"part_size": 700, "provenance": True}
    two.ok("mix")
    found = (tree(two.out, bookkeeping=True), tree(two.root / "rejected"))
    assert len(found[0]) > 6
    two.config |= {"executor": {"type": "local"}, "processes": 2}
    two.config["mix"]["streams"] = dict(reversed(streams.items()))
    two.config["mix"]["output"]["path"] = str(two.root / "other")
    two.config["mix"]["rejected"] = str(two.root / "others")
    two.ok("mix")
    other = tree(two.root / "other", bookkeeping=True), tree(two.root / "others")
    for each in (found[0], other[0]):
        each.pop(".toolkit/manifest.json")  # it has the path of the rejected in the names of its parts
    assert other == found
