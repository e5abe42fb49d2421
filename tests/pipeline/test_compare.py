"""What a comparison says of two mixes, against what both write."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.pipeline import model
from tests.pipeline.conftest import Project, tree
from tests.pipeline.model import Doc, Modelled

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
