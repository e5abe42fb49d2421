"""Killing what brings own data in, ``align``, a run in place, a sample of ``tag``, costs nothing but time."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.pipeline.conftest import Project, document, tree, write_rows
from tests.pipeline.test_kill import kill_at_random

KILLS = 5
"""For each command."""

COMMANDS = {
    "align": (("align",), ("data/attributes", "data/.toolkit")),
    "in place": (("run",), ("out", "placed")),
    "sample": (("tag", "--sample", "150"), ("data/.toolkit/samples/attributes", "data/.toolkit/samples")),
}
"""Of each, the arguments, and folders with what it makes."""


def prepare(root: Path, run: Run, name: str) -> Project:
    """Documents, and values of others in another order; or the same as files of others."""
    rows = [document(f"{i}", f"text {i}\n" * (i % 50 + 1)) for i in range(2000)]
    for shard in range(4):
        write_rows(root / f"data/documents/{shard}.jsonl.gz", rows[shard::4])
    values = [{"id": row["id"], "grade": len(row["text"]), "of": {"deep": i}} for i, row in enumerate(rows)]
    random.Random(0).shuffle(values)
    for part in range(3):
        write_rows(root / f"values/{part}.jsonl", values[part::3])
    config: dict[str, Any] = {"dataset": str(root / "data"), "processes": 2}
    tag = {"length-0": "length", "shape-0": ["line_shape", "noise"]}
    mix = {
        "attributes": ["length-0", "shape-0"],
        "rules": [{"drop": "line_shape.lines > 40", "name": "long"}],
        "output": {"format": "dolma", "path": str(root / "out"), "part_size": "20 kB"},
    }
    more: dict[str, dict[str, Any]] = {
        "align": {"align": {"grades-0": {"from": str(root / "values"), "format": "jsonl"}}},
        "in place": {
            "dataset": str(root / "placed"),
            "documents": {"format": "jsonl", "path": str(root / "data/documents")},
            "tag": tag,
            "mix": mix,
        },
        "sample": {"tag": tag},
    }
    return Project(root, run, config | more[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_killed_at_random_moments_ends_with_the_same_bytes(tmp_path: Path, run: Run, name: str) -> None:
    arguments, folders = COMMANDS[name]
    undisturbed = prepare(tmp_path / "whole", run, name)
    undisturbed.ok(*arguments)
    whole = tree(undisturbed.root / folders[0])
    assert len(whole) > 1
    project = prepare(tmp_path / "killed", run, name)
    given = tree(project.root / "data/documents")
    kill_at_random(project, arguments, tuple(project.root / folder for folder in folders), whole, KILLS, len(name))
    assert tree(project.root / "data/documents") == given
    if name != "sample":
        assert json.loads(project.ok("validate", "--json").out)["findings"] == []
