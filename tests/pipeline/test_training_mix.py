"""A mix with repeats, a budget and a shuffle: the same bytes after kills at any moment; the recipe that ships."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Run
from tests.pipeline.conftest import Project, read_rows, tree
from tests.pipeline.test_kill import kill_at_random, prepare
from toolkit.config import settings


@pytest.mark.slow
def test_kills_cost_nothing_but_time(tmp_path: Path, run: Run) -> None:
    project = prepare(tmp_path, run)
    mix: dict[str, Any] = project.config["mix"]
    mix["rules"].append({"repeat": {"score": "line_shape.lines", "curve": [[2, 0.3], [8, 3]]}})
    mix["budget"] = {"characters": "150 k", "by": "language.label", "temperature": 0.3}
    mix["output"] |= {"format": "dolma", "by": "language", "shuffle": {"seed": 1}}
    project.ok("run")
    whole = tree(project.out)
    assert len(whole) > 5
    shutil.rmtree(project.out)
    kill_at_random(project, ("mix",), (project.out,), whole, times=8, seed=2)


def test_the_recipe_repeats_by_quality_within_its_budget(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tokenizers", reason="tokens need tokenizers, an extra")
    monkeypatch.chdir(tmp_path)
    config = settings.load(str(ROOT / "configs" / "training-mix.yaml")).value
    config |= {"dataset": "data", "processes": 1, "mix": config["mix"] | {"budget": {"tokens": "4 k"}}}
    config["mix"]["output"] |= {"path": "out"}
    project = Project(tmp_path, run, config)
    project.ok("run")
    ranks = {
        row["id"]: row["attributes"]["quality"]["rank"]
        for path in (tmp_path / "data/attributes/quality-0").rglob("*.jsonl.gz")
        for row in read_rows(path)
    }
    tokens = {
        row["id"]: row["attributes"]["tokens"]
        for path in (tmp_path / "data/attributes/tokens-0").rglob("*.jsonl.gz")
        for row in read_rows(path)
    }
    written = project.output()
    sizes = [tokens[row["id"]] for row in written]
    assert abs(sum(sizes) - 4000) <= max(sizes)
    assert all(ranks[row["id"]] > 0 for row in written)
    for row in written:
        assert row["metadata"]["copy"] <= 7
    project.ok("validate")
