"""Samples, and why documents are kept or dropped."""

from typing import Any

import pytest

from tests.pipeline.conftest import Project, attributes, document, write_rows
from toolkit.rules import sample_hash

SHARD = "a.jsonl.gz"


@pytest.fixture
def numbered(project: Project) -> Project:
    """2,000 documents with a number each, of which every fourth is null."""
    write_rows(project.documents / SHARD, (document(str(i), f"text {i}") for i in range(2000)))
    values = ({"n": None if i % 4 == 3 else i, "label": {"best": "en" if i % 2 else "de"}} for i in range(2000))
    write_rows(project.attributes / "exp" / SHARD, (attributes(str(i), v) for i, v in enumerate(values)))
    project.config["mix"] = {"attributes": ["exp"], "output": {"format": "dolma", "path": str(project.out)}}
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


@pytest.mark.parametrize("share", [-0.1, 1.5, "a"])
def test_a_share_that_is_none_is_refused(numbered: Project, share: object) -> None:
    numbered.config["mix"]["rules"] = [{"sample": share}]
    ran = numbered("mix")
    assert ran.code == 2
    assert "expected a" in ran.err


def test_a_document_is_explained_rule_by_rule(numbered: Project) -> None:
    numbered.config["mix"]["rules"] = [
        {"drop": "n is None", "name": "absent"},
        {"drop": "n > 1000", "name": "large"},
        {"annotate": "english", "when": 'label.best == "en"'},
    ]
    found = numbered.ok("mix", "--explain", "2", "--json").json["documents"]
    assert [each["deciding"] for each in found] == [0, 0, 1, 1, 2, 2]
    text = numbered.ok("mix", "--explain", "1").out
    assert f"{SHARD}:4\n" in text, "the first that is absent"
    assert "absent   drops it  (n = null)" in text
    assert "large    is not reached" in text
    assert "large    drops it  (n = 1001)" in text
    assert 'english  annotates it  (label.best = "en")' in text
    assert not numbered.out.exists(), "nothing is written"


def test_an_unknown_document_cannot_be_explained(numbered: Project) -> None:
    numbered.config["mix"]["rules"] = []
    ran = numbered("mix", "--explain", "nobody")
    assert ran.code == 2
    assert "expected a document with the id 'nobody'" in ran.err
