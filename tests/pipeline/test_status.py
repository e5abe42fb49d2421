"""``toolkit status``: what is done, failed and missing, and why."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.marks import slow
from tests.pipeline.conftest import Project
from tests.recipes import mix_of
from tests.waiting import explained, wait_until
from toolkit.data.dataset import Dataset
from toolkit.records.failures import FailureRecords

PICKY = """
import time
from pathlib import Path
from toolkit import Document, Tagger

class Picky(Tagger):
    '''Takes no document that says no; waits for a file that is not there.'''
    waits: str | None = None

    def tag(self, document: Document) -> int:
        if document.text == "no":
            raise ValueError("I was told no")
        while self.waits and document.text == "wait" and not Path(self.waits).exists():
            time.sleep(0.05)
        return 1
"""


@pytest.fixture
def project(tmp_path: Path, run: Run) -> Project:
    """Three inputs, a tagger that can fail and wait, and a mix."""
    (tmp_path / "in").mkdir()
    for name in "abc":
        write(tmp_path, name, "yes")
    (tmp_path / "picky.py").write_text(PICKY)
    return Project(
        tmp_path,
        run,
        {
            "dataset": str(tmp_path / "data"),
            "processes": 1,
            "ingest": [{"format": "jsonl", "from": f"{tmp_path}/in/*.jsonl", "source": "s"}],
            "tag": {"picky-0": f"{tmp_path}/picky.py:Picky"},
            "mix": mix_of(tmp_path / "out", {"keep": "picky == 1"}, attributes=["picky-0"]),
        },
    )


def write(folder: Path, name: str, text: str) -> None:
    (folder / "in" / f"{name}.jsonl").write_text(json.dumps({"id": name, "text": text}) + "\n")


def status(project: Project) -> tuple[int, dict[str, tuple[int, int, int, int]], Any]:
    """Exit status; done, running, failed and missing of each stage; all that is said."""
    ran = project("status", "--json")
    counts = {
        each["stage"]: (each["done"], each["running"], each["failed"], each["missing"]) for each in ran.json["stages"]
    }
    return ran.code, counts, ran.json


def causes(data: Any) -> dict[tuple[str, str], str]:
    return {(each["stage"], item["key"]): item["cause"] for each in data["stages"] for item in each["items"]}


def test_nothing_then_something_then_all(project: Project) -> None:
    code, counts, data = status(project)
    assert (code, counts["ingest"], data["done"]) == (1, (0, 0, 0, 3), False)
    assert "expected documents, got none" in data["stages"][1]["unknown"]
    project.ok("ingest", "--limit", "2")
    assert status(project)[1] == {
        "ingest": (2, 0, 0, 1),
        "tag picky-0": (0, 0, 0, 2),
        "mix": (0, 0, 0, 2),
        "publish": (0, 0, 0, 1),
    }
    project.ok("ingest")
    project.ok("tag", "--shard", "0/2")
    assert sum(status(project)[1]["tag picky-0"]) == 3
    project.ok("tag")
    project.ok("mix", "--shard", "0/1")
    found = status(project)
    assert found[:2] == (
        1,
        {"ingest": (3, 0, 0, 0), "tag picky-0": (3, 0, 0, 0), "mix": (3, 0, 0, 0), "publish": (0, 0, 0, 1)},
    )
    project.ok("mix")
    assert status(project)[0] == 0
    assert project.ok("status").out.endswith("all is done\n")


def test_what_failed_says_why_until_it_is_mended(project: Project) -> None:
    write(project.root, "b", "no")
    (project.root / "in" / "c.jsonl").write_text("no JSON")
    assert project("ingest").code == 1
    assert project("tag").code == 1
    code, counts, data = status(project)
    assert code == 1
    assert (counts["ingest"], counts["tag picky-0"]) == ((2, 0, 1, 0), (1, 0, 1, 0))
    why = causes(data)
    assert why["ingest", "s/c.jsonl"].startswith(f"{project.root}/in/c.jsonl:1: expected ")
    assert "ValueError: I was told no" in why["tag picky-0", "s/b.jsonl.gz"]
    assert "failed: s/c.jsonl: " in project("status").out
    write(project.root, "b", "yes")
    write(project.root, "c", "yes")
    project.ok("run")
    assert status(project)[0] == 0
    assert failures(project) == []


def failures(project: Project) -> list[str]:
    dataset = Dataset(str(project.documents), str(project.attributes))
    return [key for stage in ("ingest", "tag") for key in FailureRecords(dataset, stage).load()]


def test_what_failed_and_is_not_wanted_any_more_is_forgotten(project: Project) -> None:
    (project.root / "in" / "c.jsonl").write_text("no JSON")
    assert project("ingest").code == 1
    (project.root / "in" / "c.jsonl").unlink()
    project.ok("run")
    assert status(project)[0] == 0
    assert failures(project) == []


def test_what_has_changed_is_missing(project: Project) -> None:
    project.ok("run")
    write(project.root, "a", "another text")
    code, counts, data = status(project)
    assert (code, counts["ingest"]) == (1, (2, 0, 0, 1))
    assert "changed since it was ingested" in causes(data)["ingest", "s/a.jsonl"]
    project.ok("ingest")
    code, counts, data = status(project)
    assert (counts["tag picky-0"], counts["mix"], counts["publish"]) == ((2, 0, 0, 1), (2, 0, 0, 1), (0, 0, 0, 1))
    assert causes(data)["tag picky-0", "s/a.jsonl.gz"] == "made from something that has changed"
    assert "run `toolkit tag`" in causes(data)["mix", "s/a.jsonl.gz"]
    (project.attributes / "picky-0" / "s" / "c.jsonl.gz").unlink()
    assert causes(status(project)[2])["tag picky-0", "s/c.jsonl.gz"] == "its attribute file is gone"
    (project.documents / "s" / "b.jsonl.gz").unlink()
    assert "its documents are gone: s/b.jsonl.gz" in causes(status(project)[2])["ingest", "s/b.jsonl"]


def test_the_settings_that_changed(project: Project) -> None:
    project.ok("run")
    project.config["ingest"][0]["trim"] = {"min_chars": 2}
    project.config["mix"]["rules"] = [{"drop": "picky != 1"}]
    _, counts, data = status(project)
    assert (counts["ingest"], counts["mix"]) == ((0, 0, 0, 3), (0, 0, 0, 3))
    assert causes(data)["ingest", "s/a.jsonl"] == "ingested with other settings"


def test_runs_that_delete_documents_are_done_all_the_same(project: Project) -> None:
    project.ok("run", "--per-shard", "--shard", "0/2")
    _, counts, _ = status(project)
    assert counts["ingest"][0] == counts["tag picky-0"][0] == counts["mix"][0] > 0
    project.ok("run", "--per-shard")
    assert status(project)[:2] == (
        0,
        {"ingest": (3, 0, 0, 0), "tag picky-0": (3, 0, 0, 0), "mix": (3, 0, 0, 0), "publish": (1, 0, 0, 0)},
    )
    write(project.root, "a", "another text")
    for i in range(2):
        project.ok("run", "--per-shard", "--shard", f"{i}/2")
    code, counts, _ = status(project)
    assert (code, counts["mix"], counts["publish"]) == (1, (3, 0, 0, 0), (0, 0, 0, 1))


def test_it_writes_nothing(project: Project) -> None:
    project("status")
    assert not project.data.exists()
    project.ok("ingest")
    before = {path: path.stat().st_mtime_ns for path in project.data.rglob("*")}
    project("status")
    assert {path: path.stat().st_mtime_ns for path in project.data.rglob("*")} == before


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_what_is_running_and_then_was_killed(processes: int, project: Project) -> None:
    write(project.root, "b", "wait")
    project.config["tag"]["picky-0"] = {"tagger": project.config["tag"]["picky-0"], "waits": f"{project.root}/go"}
    project.config["processes"] = processes
    project.ok("ingest")
    command = [sys.executable, "-m", "toolkit.cli", "tag", "-c", str(project.yaml), "--quiet"]
    running = subprocess.Popen(command, start_new_session=True)
    try:
        with explained(running):
            waiting = [(2, 1, 0, 0)] if processes > 1 else [(2, 1, 0, 0), (1, 1, 0, 1)]
            assert wait_until(lambda: status(project)[1]["tag picky-0"] in waiting or running.poll() is not None)
            assert running.poll() is None, status(project)
            # what a run is at is written behind what it has done
            assert wait_until(lambda: status(project)[2]["runs"][0]["doing"] == {"tag": ["s/b.jsonl.gz"]}), status(
                project
            )
            (run,) = status(project)[2]["runs"]
            assert run["run"] == "toolkit tag"
            assert "toolkit tag by " in project("status").out
            project("tag", "--overwrite", "tag.picky-0.waits=null").fails(
                2, "expected no other run with other settings on the set picky-0"
            )
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    assert status(project)[1]["tag picky-0"][1] == 0
    assert status(project)[2]["runs"] == []


@pytest.mark.parametrize(
    ("fault", "unknown", "said"),
    [
        ("processes=two", [], "processes: expected a whole number, got 'two'"),
        ("tag.picky-0=pick", ["tag"], "no tagger is called 'pick'"),
        ("align.x-0={}", ["align"], "x-0"),
        *slow(
            ("executor.type=rey", [], "no executor is called 'rey'"),
            ("mixx=1", [], "unknown option 'mixx'"),
            ("ingest.0.format=jsol", ["ingest"], "'jsol'"),
            ("mix.rules=3", ["mix"], "expected a list"),
        ),
    ],
)
def test_a_fault_of_the_configuration_is_told_and_hides_nothing_else(
    fault: str, unknown: list[str], said: str, project: Project
) -> None:
    project.ok("run")
    whole = {stage["stage"]: stage["done"] for stage in project.ok("status", "--json").json["stages"]}
    ran = project("status", fault, "--json")
    assert (ran.code, ran.json["done"]) == (2, False)
    assert [stage["stage"] for stage in ran.json["stages"] if stage["unknown"]] == unknown
    known = {stage["stage"]: stage["done"] for stage in ran.json["stages"] if not stage["unknown"]}
    assert known.items() <= whole.items()
    assert len(known) >= len(whole) - 2
    (told,) = ran.json["faults"]
    assert said in told
    assert ran.json["there"] == {"documents": 3, "picky-0": 3}
    assert "shards on disk: documents 3, picky-0 3" in project("status", fault).out


def test_a_cause_is_told_once_with_the_first_shards_that_it_holds_for(project: Project) -> None:
    for name in "def":
        write(project.root, name, "yes")
    project.ok("ingest")
    write(project.root, "g", "yes")
    said = project("status").out
    assert "\ningest: missing: s/g.jsonl: not begun\n" in said
    assert "\nmix: missing: s/a.jsonl.gz, s/b.jsonl.gz, s/c.jsonl.gz and 3 more: " in said
    assert said.count("mix: missing: ") == 1
    items = project("status", "--json").json["stages"][-2]["items"]
    assert [item["key"] for item in items] == [f"s/{name}.jsonl.gz" for name in "abcdef"]
