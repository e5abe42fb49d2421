"""What a command with nothing to do asks of a store: as much of many shards as of few, but for pages of listings."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.pipeline.conftest import Project

COMMANDS = ("status", "ingest", "tag", "mix", "run")


def lay_out(root: Path, run: Run, shards: int, **entry: Any) -> Project:
    """A dataset of so many shards, in a store that notes what it is asked."""
    far = f"far://{root}"
    (root / "in").mkdir(parents=True)
    for number in range(shards):
        (root / "in" / f"{number}.jsonl").write_text(json.dumps({"id": f"{number}", "text": f"text {number}"}) + "\n")
    project = Project(root, run)
    project.config = {
        "dataset": f"{far}/data",
        "storage": {"stores": {"far": "tests.benchmarks.far:Far"}},
        "ingest": [{"format": "jsonl", "from": f"{far}/in/*.jsonl", "source": "s", **entry}],
        "tag": {"shape-0": "line_shape"},
        "mix": {"attributes": ["shape-0"], "output": {"format": "dolma", "path": f"{far}/out"}},
    }
    project.ok("run")
    return project


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAR_LOG", str(tmp_path / "log"))
    return tmp_path / "log"


def asked(log: Path, project: Project, command: str) -> Counter[str]:
    """The requests of a command that must succeed, by their kind."""
    log.unlink(missing_ok=True)
    project.ok(command)
    return Counter(line.partition(" ")[0] for line in log.read_text().splitlines())


def test_many_shards_are_asked_for_as_few_are(tmp_path: Path, log: Path, run: Run) -> None:
    few, many = (lay_out(tmp_path / str(shards), run, shards) for shards in (5, 12))
    for command in COMMANDS:
        assert asked(log, many, command) == asked(log, few, command), command
        assert "/.toolkit/selected" not in log.read_text(), "of entries that select nothing by an index"


def test_one_input_that_has_changed_is_noticed_from_the_listing(tmp_path: Path, log: Path, run: Run) -> None:
    project = lay_out(tmp_path / "x", run, 6)
    changed, touched, lost = (tmp_path / "x" / "in" / f"{number}.jsonl" for number in (1, 2, 3))
    changed.write_text(json.dumps({"id": "1", "text": "text 9"}) + "\n")
    later = touched.stat().st_mtime_ns + 10**9
    os.utime(touched, ns=(later, later))
    (tmp_path / "x" / "data" / "documents" / "s" / f"{lost.stem}.jsonl.gz").unlink()
    ran = project("status", "--json")
    left = {stage["stage"]: [item["key"] for item in stage["items"]] for stage in ran.json["stages"]}
    assert left["ingest"] == ["s/1.jsonl", "s/3.jsonl"]
    ran = project.ok("run", "--json")
    assert (ran.json["ingest"]["skipped"], ran.json["ingest"]["done"]) == (4, 6)
    assert asked(log, project, "ingest") == asked(log, project, "ingest")
    assert project.ok("status").out.rstrip().endswith("all is done")
