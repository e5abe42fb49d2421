"""Samples, and why documents are kept or dropped."""

from collections import Counter
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.pipeline.conftest import Project, attributes, document, read_rows, write_rows
from toolkit.rules import sample_hash

SHARD = "a.jsonl.gz"


@pytest.fixture
def numbered(project: Project) -> Project:
    """2,000 documents with a number each, of which every fourth is null."""
    write_rows(project.documents / SHARD, (document(str(i), f"text {i}") for i in range(2000)))
    values = ({"n": None if i % 4 == 3 else i, "label": {"best": "en" if i % 2 else "de"}} for i in range(2000))
    write_rows(project.attributes / "exp" / SHARD, (attributes(str(i), v) for i, v in enumerate(values)))
    output = {"format": "dolma", "path": str(project.out)}
    project.config["mix"] = {"attributes": ["exp"], "output": output, "allow_empty": True}
    return project


def ids(project: Project, *rules: dict[str, Any]) -> set[str]:
    project.config["mix"]["rules"] = list(rules)
    project.ok("mix")
    return {row["id"] for row in project.output()}


def test_a_larger_sample_contains_the_smaller_and_both_are_about_their_size(numbered: Project) -> None:
    small, large = ids(numbered, {"sample": 0.1}), ids(numbered, {"sample": 0.3})
    assert small < large
    assert 150 < len(small) < 250
    assert 520 < len(large) < 680
    source = document("1", "x")["source"]
    assert small == {str(i) for i in range(2000) if sample_hash("", source, str(i)) < 0.1 * 2**64}
    assert ids(numbered, {"sample": 0}) == set()
    assert len(ids(numbered, {"sample": 1})) == 2000
    assert ids(numbered, {"sample": 0.1, "seed": 7}) != small


def test_a_sample_is_drawn_from_those_for_which_its_condition_holds(numbered: Project) -> None:
    found = ids(numbered, {"sample": 0.1, "when": 'label.best == "en"'})
    assert len([i for i in found if int(i) % 2 == 0]) == 1000
    assert 60 < len([i for i in found if int(i) % 2]) < 140
    effects = numbered.ok("mix", "--dry-run", "--json").json["rules"]
    assert effects[0]["documents"] == 2000 - len(found)


def test_a_document_is_explained_rule_by_rule(numbered: Project) -> None:
    numbered.config["mix"]["rules"] = [
        {"drop": "n is None", "name": "absent"},
        {"drop": "n > 1000", "name": "large"},
        {"annotate": "english", "when": 'label.best == "en"'},
    ]
    found = numbered.ok("mix", "--explain", "2", "--json").json["documents"]
    assert [each["deciding"] for each in found] == [0, 0, 1, 1, 2, 2]
    text = numbered.ok("mix", "--explain", "1").out
    assert f"{SHARD}:4\n  dropped by 'absent': `n is None` is true\n    with n = null\n" in text, "the first"
    assert "absent   drops it  (n = null)" in text
    assert "large    is not reached" in text
    assert "large    drops it  (n = 1001)" in text
    assert 'english  annotates it  (label.best = "en")' in text
    assert not numbered.out.exists(), "nothing is written"


@pytest.mark.parametrize(
    ("rule", "verdict", "values"),
    [
        ({"drop": "n is not None and (n < 0 or n > 5)"}, "`n is not None` is true and `n > 5` is true", {"n": 6}),
        ({"drop": "n is None or n < 0 or not n <= 1"}, "`n <= 1` is false", {"n": 2}),
        (
            {"keep": "n is None or n < 1", "when": "label.best == 'en'"},
            "`n is None` is false and `n < 1` is false",
            {"n": 1},
        ),
        ({"keep": "n is not None and n >= limit"}, "`n >= limit` is false", {"n": 0, "limit": 5}),
        ({"sample": 0.0}, "drops it", {}),
    ],
)
def test_an_explanation_begins_with_what_decided(
    numbered: Project, rule: dict[str, Any], verdict: str, values: dict[str, Any]
) -> None:
    if "limit" in values:
        numbered.config["mix"]["parameters"] = {"limit": values["limit"]}
    numbered.config["mix"]["rules"] = [{**rule, "name": "it"}]
    (found,) = numbered.ok("mix", "--explain", "1", "--json").json["documents"]
    assert found["reason"] == {"rule": "it", "verdict": verdict, "values": values}


def test_an_unknown_document_cannot_be_explained(numbered: Project) -> None:
    numbered.config["mix"]["rules"] = []
    numbered("mix", "--explain", "nobody").fails(2, "expected a document with the id or URL 'nobody'")


CONDITIONS = ["n is None", "n is not None and n % 3 == 0", "n is not None and n > 40", 'label.best == "en"', "1 > 2"]
RULES = st.one_of(
    st.builds(lambda c: {"drop": c}, st.sampled_from(CONDITIONS)),
    st.builds(lambda c: {"keep": c}, st.sampled_from(CONDITIONS)),
    st.builds(lambda share, seed: {"sample": share, "seed": seed}, st.sampled_from([0.2, 0.9]), st.integers(0, 3)),
    st.builds(lambda c: {"annotate": "a", "when": c}, st.sampled_from(CONDITIONS)),
)


@given(st.lists(RULES, max_size=4), st.sampled_from([300, 3000, 10**9]))
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_output_and_rejected_are_the_input_nothing_else_and_nothing_twice(
    numbered: Project, rules: list[dict[str, Any]], part_size: int
) -> None:
    rows = [document(str(i), f"text {i}") for i in range(60)]
    write_rows(numbered.documents / SHARD, rows)
    values = ({"n": None if i % 4 == 3 else i, "label": {"best": "en" if i % 2 else "de"}} for i in range(60))
    write_rows(numbered.attributes / "exp" / SHARD, (attributes(str(i), v) for i, v in enumerate(values)))
    rejected = numbered.root / "rejected"
    numbered.config["mix"] = {
        "attributes": ["exp"],
        "rules": [rule | {"name": str(i)} for i, rule in enumerate(rules)],
        "rejected": str(rejected),
        "allow_empty": True,
        "output": {"format": "dolma", "path": str(numbered.out), "part_size": part_size},
    }
    result = numbered.ok("mix", "--json").json
    output = numbered.output()
    dropped = [row for path in sorted(rejected.rglob("*.jsonl.gz")) for row in read_rows(path)]
    by_rule = Counter(row["rejected"]["rule"] for row in dropped)
    effects = {each["name"]: each["documents"] for each in result["rules"] if each["kind"] != "annotate"}
    assert by_rule == {name: n for name, n in effects.items() if n}
    found = [{k: v for k, v in row.items() if k not in ("rejected", "metadata")} for row in output + dropped]
    key = itemgetter("id")
    assert sorted(found, key=key) == sorted(({k: v for k, v in r.items() if k != "metadata"} for r in rows), key=key)
    assert result["totals"]["kept"] == len(output)


def test_rejected_documents_say_what_the_rule_saw_and_go_with_their_rule(numbered: Project) -> None:
    rejected = numbered.root / "rejected"
    numbered.config["mix"] |= {"rejected": str(rejected), "rules": [{"drop": "n is None", "name": "absent"}]}
    numbered.ok("mix")
    (path,) = rejected.rglob("*.jsonl.gz")
    first = read_rows(path)[0]
    assert first == document("3", "text 3") | {"rejected": {"rule": "absent", "values": {"n": None}}}
    numbered.config["mix"]["rules"] = []
    numbered.ok("mix")
    assert not list(rejected.rglob("*.gz")), "nothing is dropped any more"
    numbered.ok("validate")
