"""The JSON Schemas of OSCAR's releases in docs/schemas: released lines are valid, and so is each line that we write."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SHARED, Run
from tests.mixers.test_oscar_schemas import BARE, BARE_2201, FULL
from tests.pipeline.conftest import read_rows
from tests.schemas import fault_of

LINES = {"22.01": [BARE_2201], "23.01": [BARE, FULL]}


@pytest.mark.parametrize("release", LINES)
def test_lines_of_a_release_are_valid_and_those_of_the_other_are_not(release: str) -> None:
    for other, lines in LINES.items():
        for line in lines:
            assert (fault_of(json.loads(line), release) is None) == (other == release)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("content",), None),
        (("warc_headers",), {"warc-date": 1}),
        (("metadata", "identification", "label"), "En"),
        (("metadata", "identification", "prob"), "0.5"),
        (("metadata", "identification", "prob"), 1.5),
        (("metadata", "annotation"), []),
        (("metadata", "sentence_identifications"), None),
        (("metadata", "sentence_identifications"), [{"label": "en"}]),
        (("more",), 1),
    ],
)
def test_damage_is_found(path: tuple[str, ...], value: Any) -> None:
    line = json.loads(BARE_2201)
    assert fault_of(line, "22.01") is None
    inside = line
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    assert fault_of(line, "22.01")


def test_a_field_that_a_rule_sets_is_allowed() -> None:
    line = copy.deepcopy(json.loads(BARE_2201))
    line["metadata"]["provenance"] = "a:1"
    assert fault_of(line, "22.01") is None


def test_released_documents_are_valid() -> None:
    path = SHARED / "oscar-22.01" / "real-22.01-sample.jsonl"
    if not path.exists():
        pytest.skip("the sample of the release is not here")
    assert [fault_of(row, "22.01") for row in read_rows(path)] == [None] * 23


# --- labels as the published schema spells them -----------------------------------------------------------------------


def test_labels_with_a_capital_are_read(tmp_path: Path, run: Run) -> None:
    (tmp_path / "en").mkdir()
    released = tmp_path / "en" / "en.jsonl"
    released.write_text(BARE_2201.replace('"label":"en"', '"label":"En"'))
    assert '"En"' in released.read_text()
    assert run("validate", released).code == 0
    counted = run("stats", released, "--json").succeeds()
    assert '"en"' in counted.out
    assert '"En"' not in counted.out
    entry = f"[{{format: oscar, from: ['{released}'], source: s}}]"
    config = tmp_path / "c.yaml"
    config.write_text(f"""
dataset: {tmp_path / "data"}
ingest: {entry}
mix:
  attributes: [oscar-0]
  output: {{format: oscar, path: {tmp_path / "out"}, identification: oscar.identification}}
""")
    run("run", "-c", config, "--quiet").succeeds()
    (row,) = read_rows(tmp_path / "out" / "en" / "en.jsonl.gz")
    assert row == json.loads(BARE_2201)


@pytest.mark.parametrize("label", ["EN", "eN", "En_"])
def test_other_spellings_are_findings(label: str, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "en.jsonl"
    path.write_text(BARE_2201.replace('"label":"en"', f'"label":"{label}"'))
    ran = run("validate", path)
    assert ran.code == 1
    assert f"expected a lower-case label, got '{label}'" in ran.out
