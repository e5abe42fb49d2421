"""Nulls in rules, as in Python: what a mix, a dry run and a run in one pass decide, and the nulls that they count."""

from typing import Any

import pytest

from tests.pipeline.conftest import Project, document, write_rows

LABELS = ["de", "en", None, "de", None]


@pytest.fixture
def pages(project: Project) -> Project:
    rows = [document(str(i), "text", url=f"u{i}", metadata={"lang": label}) for i, label in enumerate(LABELS)]
    write_rows(project.root / "in" / "a.jsonl.gz", rows)
    project.config["ingest"] = [{"format": "dolma", "from": [str(project.root / "in" / "a.jsonl.gz")]}]
    project.config["tag"] = {"shape-0": ["line_shape"]}
    return project


def mixed(project: Project, *rules: dict[str, Any]) -> list[tuple[list[str], list[int]]]:
    """The documents that stay and the nulls of each rule: in one pass, in a mix, and in a dry run."""
    output = {"format": "dolma", "path": str(project.out)}
    project.config["mix"] = {"attributes": ["shape-0"], "rules": list(rules), "output": output}
    project.ok("run")
    found = []
    for command in (("mix", "--json"), ("mix", "--json", "--overwrite"), ("mix", "--dry-run", "--json")):
        ran = project.ok(*command).json
        assert ran["totals"]["kept"] == len(project.output())
        found.append(([row["id"] for row in project.output()], [rule["nulls"] for rule in ran["rules"]]))
    return found


@pytest.mark.parametrize(
    ("rules", "ids", "nulls"),
    [
        ([{"keep": "metadata.lang == 'de'"}], ["0", "3"], [2]),
        ([{"keep": "document.url == 'u1' or metadata.lang == 'de'"}], ["0", "1", "3"], [2]),
        ([{"drop": "metadata.lang == 'de'"}], ["1", "2", "4"], [2]),
        ([{"drop": "metadata.lang != 'de'"}], ["0", "3"], [2]),
        ([{"keep": "metadata.lang in ['de', 'en']"}], ["0", "1", "3"], [2]),
        ([{"drop": "metadata.lang not in ['de']"}], ["0", "3"], [2]),
        ([{"drop": "metadata.lang is None"}, {"drop": "metadata.lang == 'en'"}], ["0", "3"], [0, 0]),
        ([{"drop": "document.id == '2'"}, {"annotate": "x", "when": "metadata.lang == 'en'"}], list("0134"), [0, 1]),
        ([{"set": "x", "to": "document.url", "when": "metadata.lang == 'en'"}], list("01234"), [2]),
        ([{"keep": "document.url in ['u1', 'u4'] and document.gone == None"}], ["1", "4"], [0]),
    ],
)
def test_a_null_equals_nothing_and_is_in_no_list(
    rules: list[dict[str, Any]], ids: list[str], nulls: list[int], pages: Project
) -> None:
    assert mixed(pages, *rules) == [(ids, nulls)] * 3


def test_the_table_shows_nulls_where_there_are_some(pages: Project) -> None:
    mixed(pages, {"drop": "metadata.lang == 'en'", "name": "english"})
    shown = pages.ok("mix", "--dry-run").out
    assert "nulls" in shown
    mixed(pages, {"drop": "document.id == '1'", "name": "one"})
    assert "nulls" not in pages.ok("mix", "--dry-run").out


def test_a_field_whose_type_nobody_declared_may_be_the_label(pages: Project) -> None:
    pages.config["mix"] = {
        "rules": [{"drop": "label is None", "name": "unidentified"}, {"drop": "min_n > 1", "name": "language"}],
        "label": "metadata.lang",
        "parameters": {"min_n": 1},
        "languages": {"en": {"min_n": 2}},
        "output": {"format": "dolma", "path": str(pages.out)},
    }
    pages.ok("run")
    assert [row["id"] for row in pages.output()] == ["0", "3"]
