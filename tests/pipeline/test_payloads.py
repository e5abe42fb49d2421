"""What the process of a command holds for tasks does not grow with the records of shards."""

import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.execution.test_ray_whole import prepare
from tests.pipeline.conftest import Project, write_rows
from toolkit.stages.tasks import Running

SHARDS, LABELS = 24, 100

Held = dict[str, int]


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    """The most bytes of the tasks of each step."""
    sizes: Held = defaultdict(int)
    ran = Running.run

    def measured(self: Any, what: str, function: Any, tasks: Any, *args: Any, **options: Any) -> Any:
        tasks = list(tasks)
        sizes[what] = max(sizes[what], len(pickle.dumps([task.payload for task in tasks])))
        return ran(self, what, function, tasks, *args, **options)

    monkeypatch.setattr(Running, "run", measured)
    return sizes


@pytest.mark.slow
def test_tasks_of_all_shards_hold_at_most_a_kilobyte_for_each(tmp_path: Path, run: Run, held: Held) -> None:
    project = prepare(tmp_path, run)
    del project.config["mix"]
    project.config["align"]["quality-0"] |= {"surplus": "ignore", "duplicates": "first"}
    project.config["sample"]["listed-0"] = {"documents": 9, "ids": str(tmp_path / "ids.jsonl")}
    rows = (project.documents / "0.jsonl.gz").read_bytes()
    for shard in range(1, SHARDS):
        (project.documents / f"{shard}.jsonl.gz").write_bytes(rows)
    project.config |= {"duplicate_ids": "allow"}
    for command in ("align", "dedup", "calibrate", "sample"):
        project.ok(command, "--quiet")
    assert len(held) > 15
    assert not {what: size for what, size in held.items() if size > 1000 * SHARDS}


@pytest.mark.slow
@pytest.mark.parametrize("more", ["weights", "budget", "shuffle"])
def test_tasks_of_a_mix_do_not_grow_with_its_labels(more: str, tmp_path: Path, run: Run, held: Held) -> None:
    streams: dict[str, dict[str, Any]] = {}
    for name in ("one", "two"):
        for shard in range(SHARDS // 2):
            rows: list[dict[str, Any]] = [
                {"id": f"{name}-{shard}-{i}", "source": "s", "text": "text " * 9, "metadata": {"n": f"{i}"}}
                for i in range(LABELS)
            ]
            write_rows(tmp_path / name / "documents" / f"{shard:05}.jsonl.gz", rows)
        rules = [{"route": 'get(document.metadata, "n", "none")'}]
        streams[name] = {"dataset": str(tmp_path / name), "attributes": [], "rules": rules}
    output: dict[str, Any] = {"format": "dolma", "path": str(tmp_path / "out"), "part_size": "400 B"}
    mix: dict[str, Any] = {"streams": streams, "output": output}
    if more == "weights":
        streams["two"] |= {"weight": 1}
        streams["one"] |= {"weight": 2}
    elif more == "budget":
        mix["budget"] = {"characters": 20_000, "by": "label"}
    else:
        output["shuffle"] = {"seed": 1}
    Project(tmp_path, run, {"mix": mix}).ok("mix", "--quiet")
    assert held["writing the output"] < 4000
    assert held["finding where parts end"] < 1000
    assert not {what: size for what, size in held.items() if size > 1000 * SHARDS}
