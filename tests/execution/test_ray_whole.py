"""Every kind of step over all shards on a real Ray cluster of four nodes, one of which is killed in each step."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.corpora import of_every_kind
from tests.execution.cluster import Cluster, started
from tests.pipeline.conftest import Project, tree, write_rows
from tests.waiting import wait_until


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    yield from started(4)


def prepare(root: Path, run: Run) -> Project:
    project = of_every_kind(root, run)
    scores = [{"id": f"{i // 120}-{i % 120}", "score": i * 7919 % 480} for i in range(480)]
    write_rows(root / "quality.jsonl", scores)
    project.config |= {
        "align": {"quality-0": {"from": str(root / "quality.jsonl"), "id": "id"}},
        "calibrate": {
            "rank-0": {"kind": "rank", "score": "quality-0.score", "within": "exact-0.exact.copies"},
            "map-0": {"kind": "map", "method": "quantile", "to": "uniform", "score": "quality-0.score"},
        },
        "sample": {"few-0": {"share": 0.3, "by": "exact-0.exact.copies"}},
        "mix": {
            "attributes": ["rank-0", "near-0"],
            "rules": [{"drop": "near.duplicate_of is not None", "name": "near"}],
            "budget": {"characters": 40_000},
            "output": {"format": "dolma", "path": str(root / "out"), "part_size": "4 kB", "shuffle": {"seed": 1}},
        },
    }
    return project


@pytest.mark.ray
@pytest.mark.long
def test_a_node_that_dies_in_each_step_changes_no_byte(cluster: Cluster, tmp_path: Path, run: Run) -> None:
    local, remote = prepare(tmp_path / "local", run), prepare(tmp_path / "remote", run)
    local.ok("run")
    remote.config["executor"] = {"type": "ray", "retries": 100}
    log = remote.root / "log"
    with log.open("wb") as output:
        arguments = (sys.executable, "-m", "toolkit.cli", "run", "-c", remote.yaml)
        driver = cluster.begin(*arguments, stdout=output, stderr=output)
    nodes, killed = [1, 2, 3], 0

    def steps() -> int:
        return log.read_text().count("tasks") + log.read_text().count("shards")

    while driver.poll() is None:
        seen = steps()
        if not wait_until(lambda seen=seen: driver.poll() is not None or steps() > seen):  # type: ignore[misc]
            break
        if driver.poll() is None:
            cluster.kill_node(nodes.pop(0))
            nodes.append(cluster.add_node())
            killed += 1
    assert driver.wait() == 0, log.read_text()
    assert killed >= 5
    assert tree(remote.attributes) == tree(local.attributes)
    assert tree(remote.out) == tree(local.out)
