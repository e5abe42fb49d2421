"""What a comparison says of two mixes, against what both write."""

import json
import math
import random
import re
import statistics
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tests.pipeline import model
from tests.pipeline.conftest import Project, attributes, document, read_rows, tree, write_rows
from tests.pipeline.model import Doc, Modelled
from toolkit.aggregate.agreement import Moments

Rules = tuple[list[dict[str, Any]], list[Modelled]]


def configure(project: Project, rules: list[dict[str, Any]], **more: Any) -> None:
    """A mix of what the model has."""
    used = "n > p" in str(rules) or "p + 1" in str(rules)
    (project.root / "list.txt").write_text("\n".join(model.LIST))
    project.config["mix"] = {
        "attributes": ["exp"],
        "label": model.LABEL,
        **(model.PARAMETERS if used else {}),
        "rules": rules,
        "allow_empty": True,
        "output": {"format": "dolma", "path": str(project.out)},
        **more,
    }


def saved(project: Project, name: str) -> Path:
    """The configuration under another name."""
    path = project.root / name
    path.write_text(json.dumps(project.config))
    return path


def fates(project: Project) -> dict[tuple[str, str], str]:
    """The folder of each document that the mix of a configuration keeps."""
    project.ok("mix")
    return {(row["source"], row["id"]): folder for folder, rows in model.folders(project.out).items() for row in rows}


@pytest.mark.slow
@given(model.docs(), model.rules(edits=False), model.rules(edits=False), st.sampled_from([None, '"x"', model.LABEL]))
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_a_comparison_counts_what_two_mixes_write(
    project: Project, docs: list[Doc], one: Rules, other: Rules, label: str | None
) -> None:
    model.write(project, docs)
    configure(project, one[0])
    before = fates(project)
    first = saved(project, "one.yaml")
    by_label = label == model.LABEL or any(word in str(other[0]) for word in ("label", "n > p", "p + 1", "'en'"))
    configure(project, other[0], label=model.LABEL if by_label else label)
    after = fates(project)
    second = saved(project, "other.yaml")

    files = tree(project.root, bookkeeping=True)
    found = project.run("mix", "-c", first, "--compare", second, "-n", "2", "--json").json
    assert tree(project.root, bookkeeping=True) == files
    dropped = model.expected(docs, one[1]).rejected, model.expected(docs, other[1]).rejected
    assert (found["rows"], found["kept"]) == (len(docs), len(before))
    assert found["gained"] == Counter(dropped[0][key] for key in after.keys() - before.keys())
    assert found["lost"] == Counter(dropped[1][key] for key in before.keys() - after.keys())
    moved = [(before[key], after[key]) for key in before.keys() & after.keys() if before[key] != after[key]]
    assert found["relabelled"] == Counter(f"{old} -> {new}" for old, new in moved)
    for what in ("gained", "lost", "relabelled"):
        samples = Counter(sample["why"] for sample in found["samples"] if sample["what"] == what)
        assert samples.keys() <= found[what].keys()
        assert all(samples[why] <= min(2, found[what][why]) for why in samples)
        assert bool(samples) is bool(found[what])
    same = project.run("mix", "-c", first, "--compare", first, "--json").json
    assert (same["gained"], same["lost"], same["relabelled"], same["samples"]) == ({}, {}, {}, [])


DOCS = [
    Doc("1", "s", "one", None, 1, "en", []),
    Doc("2", "s", "two", None, 2, "de", []),
    Doc("3", "s", "three", None, 3, "en", []),
]


def test_samples_say_which_rule_decided_and_what_it_saw(project: Project) -> None:
    model.write(project, DOCS)
    configure(project, [{"drop": "n is None"}, {"drop": "n > 2", "name": "large"}])
    first = saved(project, "one.yaml")
    configure(project, [{"drop": "n is None"}, {"drop": "n < 2", "name": "small"}, {"route": "label + label"}])
    second = saved(project, "other.yaml")
    assert "gained 1, lost 1, relabelled 1" in project.run("mix", "-c", first, "--compare", second).out
    found = project.run("mix", "-c", first, "--compare", second, "--json").json["samples"]
    documents = project.documents
    assert sorted((each["what"], each["why"], each["place"], each["id"], each["values"]) for each in found) == [
        ("gained", "large", f"{documents}/0.jsonl.gz:2", "3", {"n": 3}),
        ("lost", "small", f"{documents}/0.jsonl.gz:1", "1", {"n": 1}),
        ("relabelled", "documents -> documentsdocuments", f"{documents}/1.jsonl.gz:1", "2", {}),
    ]
    assert not project.out.exists()


def test_other_datasets_are_refused(project: Project) -> None:
    model.write(project, DOCS)
    model.write(project, DOCS, project.root / "copy")
    configure(project, [])
    first = saved(project, "one.yaml")
    project.config["dataset"] = str(project.root / "copy")
    project.run("mix", "-c", first, "--compare", saved(project, "other.yaml")).fails(
        2, "expected two mixes of the same streams and documents, got 4 shards in one of them only"
    )
    project.run("mix", "-c", first, "--compare", project.root / "none.yaml").fails(
        2, "none.yaml: expected a readable YAML file"
    )


def test_streams_are_compared_by_their_names(project: Project) -> None:
    model.write(project, DOCS)
    model.write(project, DOCS[:2], project.root / "copy")
    streams: dict[str, Any] = {"a": {"dataset": str(project.data)}, "b": {"dataset": str(project.root / "copy")}}
    configure(project, [], streams=streams)
    first = saved(project, "one.yaml")
    streams["b"]["rules"] = [{"drop": "n == 1 if n is not None else False", "name": "first"}]
    ran = project.run("mix", "-c", first, "--compare", saved(project, "other.yaml"), "--json").json
    assert (ran["rows"], ran["kept"], ran["lost"], ran["gained"]) == (5, 5, {"first": 1}, {})
    assert ran["samples"][0]["place"] == f"b: {project.root}/copy/documents/0.jsonl.gz:1"
    configure(project, [], streams={"a": streams["a"], "c": streams["b"]})
    project.run("mix", "-c", first, "--compare", saved(project, "other.yaml")).fails(2, "of the stream 'b'")


@pytest.mark.parametrize("label", [None, "lang.label"])
def test_the_label_that_rules_see_is_no_folder(project: Project, label: str | None) -> None:
    model.write(project, DOCS)
    configure(project, [{"route": '"x/" + label', "when": "n == 2 if n is not None else False"}])
    first = saved(project, "one.yaml")
    configure(project, [{"route": '"y"', "when": "n == 2 if n is not None else False"}], label=label)
    ran = project.run("mix", "-c", first, "--compare", saved(project, "other.yaml"), "--json").json
    assert ran["relabelled"] == {"x/documents -> y": 1}
    configure(project, [{"route": '"x/" + label', "when": "n is not None and n < 3"}, {"route": '"y"'}], label=label)
    explained = project.run("mix", "-c", saved(project, "routes.yaml"), "--explain", "-n", "1", "--rule", 'route "y"')
    assert "routes it to y" in explained.out
    first, *_ = project.run("mix", "-c", saved(project, "routes.yaml"), "--explain", "1", "--json").json["documents"]
    steps = {step["rule"]: step for step in first["steps"]}
    assert steps['route "x/" + label']["verdict"] == "routes it to x/documents"
    assert steps['route "x/" + label']["values"]["label"] == "documents"
    assert steps['route "y"']["verdict"] == "routes nothing: an earlier rule has routed it"


# ``toolkit compare``: two sets of the same documents, against what a few lines of Python say of them.

SHARDS = {"a.jsonl.gz": 400, "b.jsonl.gz": 90}
LABELS = ["toxic", "fine", None]


HERE = "tests.pipeline.plugins"


def taggers(version: str) -> list[dict[str, Any]]:
    return [
        {"tagger": f"{HERE}:{name}", "as": name.lower(), "version": version} for name in ("Label", "Number", "Spans")
    ]


@pytest.fixture
def versions(project: Project, made: Path) -> Project:
    def make() -> None:
        draw = random.Random(3)
        for shard, count in SHARDS.items():
            rows = []
            for i in range(count):
                number = draw.random()
                numbers = {"0": number, "1": draw.choice([number, number + draw.gauss(0, 0.1), None])}
                labels = {"0": draw.choice(LABELS), "1": draw.choice(LABELS)}
                text = f"text {i} \x1b[31m\u202e of {shard}\n" + "long " * 90
                rows.append(document(f"{shard[0]}{i}", text, metadata={"label": labels, "number": numbers}))
            write_rows(project.documents / shard, rows)
        project.ok("tag")

    project.config["tag"] = {"v-0": taggers("0"), "v-1": taggers("1"), "other-0": "length"}
    project.begin(made / "versions", make)
    return project


def compare(project: Project, *arguments: object) -> dict[str, Any]:
    found: dict[str, Any] = project.ok("compare", *arguments, "--json").json
    return found


def pairs(project: Project, key: str) -> list[tuple[Any, Any]]:
    rows = [row for shard in SHARDS for row in read_rows(project.documents / shard)]
    return [(row["metadata"][key]["0"], row["metadata"][key]["1"]) for row in rows]


def test_what_is_counted_is_what_there_is(versions: Project) -> None:
    told = compare(versions, "v-0", "v-1", "-n", 4)
    parts = {(part["key"], part["kind"]): part for part in told["parts"]}
    assert told["rows"] == sum(SHARDS.values())
    assert list(parts) == [("label", "label"), ("number", "number"), ("spans", "number"), ("spans", "whole")]
    labels = pairs(versions, "label")
    both = [pair for pair in labels if None not in pair]
    part = parts["label", "label"]
    assert (part["both"], part["same"]) == (len(both), sum(a == b for a, b in both))
    assert part["agreement"] == pytest.approx(sum(a == b for a, b in both) / len(both))
    assert {(each["one"], each["other"]): each["documents"] for each in part["confusion"]} == Counter(both)
    nulls = Counter((a is None, b is None) for a, b in labels)
    assert part["nulls"] == {"both": nulls[True, True], "one": nulls[True, False], "other": nulls[False, True]}
    assert len(part["examples"]) == 4
    assert all(each["one"] != each["other"] for each in part["examples"])
    numbers = [(a, b) for a, b in pairs(versions, "number") if b is not None]
    part = parts["number", "number"]
    assert part["correlation"] == pytest.approx(statistics.correlation(*map(list, zip(*numbers, strict=True))))
    assert part["mean_difference"] == pytest.approx(statistics.fmean(b - a for a, b in numbers))
    assert part["mean_absolute_difference"] == pytest.approx(statistics.fmean(abs(b - a) for a, b in numbers))
    differences = sorted((abs(b - a) for a, b in numbers), reverse=True)
    assert part["largest_difference"] == differences[0]
    assert [abs(each["other"] - each["one"]) for each in part["examples"]] == differences[:4]
    ranked = sorted(b - a for a, b in numbers)
    exact = ranked[math.ceil(0.95 * len(ranked)) - 1]
    assert part["quantiles"]["0.95"] == pytest.approx(exact, rel=0.02)
    toxic = sum((a == "toxic") == (b == "toxic") for a, b in labels)
    assert parts["spans", "whole"]["same"] == toxic


def test_what_varies_little_about_a_large_mean_is_counted_exactly() -> None:
    draw = random.Random(2)
    pairs = [(1.7e9 + (x := draw.random()), 1.7e9 + x + draw.random()) for _ in range(500)]
    whole = Moments()
    for start in range(0, 500, 90):
        part = Moments()
        for x, y in pairs[start : start + 90]:
            part.add(x, y)
        whole.merge(part)
    assert whole.correlation == pytest.approx(statistics.correlation(*map(list, zip(*pairs, strict=True))), rel=1e-6)
    constant = Moments()
    for x, _ in pairs:
        constant.add(x, 0.1)
    assert constant.correlation is None


@pytest.mark.slow
def test_it_is_the_same_by_several_processes_and_other_documents_by_another_seed(versions: Project) -> None:
    one = compare(versions, "v-0", "v-1")
    versions.config["executor"] = {"type": "local"}
    assert compare(versions, "v-0", "v-1", "processes=2") == one
    other = compare(versions, "v-0", "v-1", "--seed", 7)
    assert [part["same"] for part in other["parts"]] == [part["same"] for part in one["parts"]]
    assert other["parts"][0]["examples"] != one["parts"][0]["examples"]


def test_people_see_texts_that_do_nothing_to_their_terminal(versions: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    ran = versions.ok("compare", "v-0.label", "v-1.label").shows("v-0 \\ v-1", "null in both: ")
    texts = [line for line in ran.out.splitlines() if line.startswith("      | ")]
    assert len(texts) == 3
    assert all(len(line) <= 60 and line.endswith("…") and r"\x1b[31m\u{202e}" in line for line in texts)
    assert not {"\x1b", "\u202e"} & set(ran.out)


@pytest.mark.slow
def test_a_sample_is_compared_where_it_is_all_that_there_is(versions: Project) -> None:
    versions.config["tag"]["v-2"] = taggers("1")
    versions.ok("tag", "--sample", 100)
    told = compare(versions, "v-0", "v-2")
    assert told["sample"].startswith("on a sample: 100 of 490")
    assert told["rows"] == 100
    assert versions.ok("compare", "v-0", "v-1", "--sample").out.startswith("on a sample: 100 of 490")


@pytest.mark.parametrize("large", [10**400, 1.5e308])
def test_numbers_beyond_floats_are_the_largest_floats(project: Project, large: float) -> None:
    write_rows(project.documents / "x.jsonl", [document(str(i), "a") for i in range(3)])
    for name, values in {"a-0": [1, 2, large], "b-0": [1, 3, -large]}.items():
        rows = [attributes(str(i), {"n": value}) for i, value in enumerate(values)]
        write_rows(project.attributes / name / "x.jsonl", rows)
    (part,) = project.ok("compare", "a-0", "b-0", "--json").json["parts"]
    assert (part["same"], part["correlation"]) == (1, None)
    assert part["quantiles"]["0.01"] == -sys.float_info.max
    assert "the same in 1 of 3" in project.ok("compare", "a-0", "b-0").out


def test_rows_that_do_not_belong_together_are_an_error(versions: Project) -> None:
    path = versions.attributes / "v-1" / "b.jsonl.gz"
    rows = read_rows(path)
    write_rows(path, [rows[1], rows[0], *rows[2:]])
    versions("compare", "v-0", "v-1").fails(1, "b.jsonl.gz:1: expected the attributes of").shows("400 documents")


def test_what_cannot_be_compared_is_told(versions: Project) -> None:
    keys = "expected sets with the same keys, got label, number, spans and length; name them: SET.KEY"
    for arguments, expected in {
        "v-0": "expected two sets to compare, got 1",
        "v-0 v-9": "expected an attribute set in .*, got 'v-9'; did you mean 'v-",
        "v-0 other-0": keys,
        "v-0.labl v-1.label": "v-0.labl: expected a key of the set v-0, got 'labl'; did you mean 'label'",
        "v-0.label other-0.length": "expected values of one kind under v-0.label and other-0.length",
        "v-0 v-1 --dataset x": "expected a configuration .-c FILE., or --dataset ROOT",
        "v-0 v-1 --sample": "expected a sample of .*run `toolkit tag --sample N`",
    }.items():
        ran = versions("compare", *arguments.split())
        assert (ran.code, ran.out) == (2, "")
        assert re.search(expected, ran.err), ran.err


def test_sets_of_another_program_are_compared_too(by_hand: Project) -> None:
    folder = by_hand.attributes / "again"
    for path in sorted((by_hand.attributes / "exp").rglob("*.gz")):
        write_rows(folder / path.relative_to(by_hand.attributes / "exp"), read_rows(path))
    ran = by_hand.run("compare", "exp", "again", "--dataset", by_hand.data, "--json")
    told = json.loads(ran.out)
    assert [part["agreement"] for part in told["parts"]] == [1.0, 1.0]
