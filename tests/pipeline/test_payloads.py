"""What the process of a command holds for tasks does not grow with the records of shards."""

import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.execution.test_ray_whole import prepare
from toolkit.stages.running import Running

SHARDS = 24


@pytest.mark.slow
def test_tasks_of_all_shards_hold_at_most_a_kilobyte_for_each(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = prepare(tmp_path, run)
    del project.config["mix"]
    project.config["align"]["quality-0"] |= {"surplus": "ignore", "duplicates": "first"}
    project.config["sample"]["listed-0"] = {"documents": 9, "ids": str(tmp_path / "ids.jsonl")}
    rows = (project.documents / "0.jsonl.gz").read_bytes()
    for shard in range(1, SHARDS):
        (project.documents / f"{shard}.jsonl.gz").write_bytes(rows)
    held: dict[str, int] = defaultdict(int)
    ran = Running.run

    def measured(self: Any, what: str, function: Any, tasks: Any, *args: Any, **options: Any) -> Any:
        tasks = list(tasks)
        held[what] = max(held[what], len(pickle.dumps([task.payload for task in tasks])))
        return ran(self, what, function, tasks, *args, **options)

    monkeypatch.setattr(Running, "run", measured)
    project.config |= {"duplicate_ids": "allow"}
    for command in ("align", "dedup", "calibrate", "sample"):
        project.ok(command, "--quiet")
    assert len(held) > 15
    assert not {what: size for what, size in held.items() if size > 1000 * SHARDS}
