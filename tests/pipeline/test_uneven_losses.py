"""Rules that drop a far larger share of one language than of the rest: the dry run and the report say so."""

import json
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.pipeline.conftest import Project, document, write_rows


@pytest.mark.parametrize(("dropped", "others", "warns"), [(60, 20, True), (60, 50, False), (100, 20, False)])
def test_a_label_that_loses_far_more_than_others_is_named(
    dropped: int, others: int, *, warns: bool, tmp_path: Path, run: Run
) -> None:
    """One that a rule drops as a whole is not: a recipe means that."""
    short, long = "short", "long" * 9
    rows = [document(f"km{i}", short if i < dropped else long, metadata={"lang": "km"}) for i in range(100)]
    rows += [document(f"en{i}", short if i < others else long, metadata={"lang": "en"}) for i in range(200)]
    config = {
        "dataset": str(tmp_path / "data"),
        "mix": {
            "label": 'get(metadata, "lang", "none")',
            "rules": [{"drop": "document.chars < 10", "name": "short"}],
            "output": {"format": "dolma", "path": str(tmp_path / "out")},
        },
    }
    project = Project(tmp_path, run, config)
    write_rows(project.documents / "0.jsonl.gz", rows)
    message = f"the rules drop {dropped}% of 100 documents of km, and {others / 2:.1f}% of the others"
    assert (message in project.ok("mix", "--dry-run").err) is warns
    report = tmp_path / "report.json"
    project.ok("report", "--output", report)
    assert any(message in note for note in json.loads(report.read_text())["runs"][0]["notes"]) is warns
