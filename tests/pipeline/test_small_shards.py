"""Small shards are made in groups: by few calls, to the same bytes, and each for itself where something is wrong."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.conftest import Project, inputs_of, strays, tree
from tests.pipeline.test_durable import Calls
from tests.recipes import mix_of
from tests.waiting import PATIENCE
from toolkit.execution import grouped
from toolkit.ingest import attempts
from toolkit.storage.record_log import RecordLog

SHARDS = 40


@pytest.fixture
def many(project: Project) -> Project:
    """Many inputs of one document, in two folders, tagged and mixed."""
    for i in range(SHARDS):
        path = project.root / "in" / str(i % 2) / f"{i:02d}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"id": f"{i}", "text": f"The text {i}\nis here.\n" * (1 + i % 3)}) + "\n")
    project.config |= {
        "processes": 1,
        "ingest": [{"format": "jsonl", "from": [f"{project.root}/in/**/*.jsonl"], "source": "s"}],
        "tag": {"shape-0": "line_shape", "noise-0": "noise"},
        "mix": mix_of(project.out, {"drop": "line_shape.lines > 5", "name": "long"}, attributes=["shape-0", "noise-0"]),
    }
    return project


def made(project: Project) -> dict[str, Any]:
    """All that a run leaves, and what the records of inputs say."""
    records = {key: (found.shards.keys(), found.rows) for key, found in inputs_of(project).items()}
    return tree(project.data) | tree(project.out) | records


def each_by_itself(project: Project, monkeypatch: pytest.MonkeyPatch, *commands: str) -> dict[str, Any]:
    """Return what commands leave that group nothing, and delete it."""
    with monkeypatch.context() as patch:
        patch.setattr(grouped, "LEAST", SHARDS + 1)
        for command in commands:
            project.ok(command)
    found = made(project)
    shutil.rmtree(project.data)
    shutil.rmtree(project.out)
    return found


@pytest.mark.slow
def test_groups_come_to_the_same_as_each_shard_by_itself(many: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = each_by_itself(many, monkeypatch, "ingest", "tag", "mix")
    for processes in (1, 2):
        many.ok("run", f"processes={processes}")
        assert made(many) == expected
        assert strays(many.root) == []
        assert "0 shards written" not in many.ok("run").out
        shutil.rmtree(many.data)
        shutil.rmtree(many.out)
    for command in ("ingest", "tag", "mix"):
        many.ok(command)
    assert made(many) == expected


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no /proc, which says what a descriptor is")
@pytest.mark.parametrize("commands", [["run"], ["ingest", "tag", "mix"]])
def test_a_group_has_one_attempt_and_one_segment_of_each_kind_and_syncs_each_folder_once(
    many: Project, monkeypatch: pytest.MonkeyPatch, commands: list[str]
) -> None:
    calls = Calls(monkeypatch)
    for command in commands:
        many.ok(command)
    renamed = [path for call, path in calls.all if call == "rename"]
    segments = Counter(os.path.dirname(path) for path in renamed if "/segments/" in path)
    assert len(segments) == 4  # of inputs, the dataset, intermediates, parts
    assert max(segments.values()) <= 3  # rows, sets and that ids are unique, where these are three commands
    folders = Counter(path for path in calls.synced if os.path.isdir(path) and "/documents/" in path)
    assert set(folders.values()) == {1}
    assert len(calls.synced) < 7 * SHARDS + 60 * len(commands)  # documents, index, two sets, intermediate; tables


def test_what_fails_in_a_group_fails_alone(many: Project) -> None:
    broken = many.root / "in" / "1" / "17.jsonl"
    whole = broken.read_text()
    broken.write_text("no document\n")
    ran = many("run")
    assert ran.code == 1
    assert f"{broken}:1" in ran.out + ran.err
    assert "39 done" in ran.out
    assert "1 failed" in ran.out
    assert "1 input is not in this: its ingest failed or was interrupted" in ran.out
    inputs = RecordLog(str(many.data / ".toolkit/inputs"))
    assert [key for key, record in inputs.items("ingest") if b"begun" in record] == ["s/1/17.jsonl"]
    status = many("status")
    assert "17.jsonl" in status.out
    broken.write_text(whole)
    assert "40 done (39 before)" in many.ok("run").out
    assert strays(many.root) == []


def test_an_input_that_failed_is_made_again_by_itself_and_keeps_its_shard(
    many: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its shard is there from before, without a record: the note of its attempt says whose it is."""
    many.ok("run")
    changed = many.root / "in" / "1" / "17.jsonl"
    whole = changed.read_text()
    changed.write_text("no document\n")
    assert many("ingest").code == 1
    changed.write_text(whole)
    monkeypatch.setattr(grouped, "LEAST", 1)
    many.ok("run")
    assert strays(many.root) == []


def test_a_file_that_is_nobody_s_is_not_replaced_by_a_group(many: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = many.documents / "s" / "0" / "08.jsonl.gz"
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(b"theirs")
    for before in (0, 39):  # no note of an attempt, which the next run believes, names what is not the input's
        ran = many("ingest")
        assert ran.code == 1
        assert "expected no file here yet" in ran.out + ran.err
        assert theirs.read_bytes() == b"theirs"
        assert f"39 done ({before} before)" in ran.out
    shutil.rmtree(many.data / ".toolkit")
    for path in many.documents.rglob("*.gz"):
        if path != theirs:
            path.unlink()
    with monkeypatch.context() as patched:
        patched.setattr(attempts.Grouped, "of", _interrupted)
        assert many("ingest").code == 130
    assert many("ingest").code == 1
    assert theirs.read_bytes() == b"theirs"


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


WORKER = """
import os, signal, sys
call, number = sys.argv[1], int(sys.argv[2])
function = getattr(os, call)
def called(*arguments, **named):
    global number
    if "/.toolkit/leases/" not in str(arguments[-1]):
        number -= 1
        if number < 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return function(*arguments, **named)
setattr(os, call, called)
from toolkit.cli import main
sys.exit(main(sys.argv[3:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("call", "number"), [("replace", n) for n in (2, 5, 60, 150, 210, 214)] + [("fsync", 100)])
def test_a_run_goes_on_after_a_kill_anywhere_in_a_group(
    many: Project, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    expected = each_by_itself(many, monkeypatch, "run")
    arguments = [sys.executable, "-c", WORKER, call, str(number), "run", "-c", str(many.yaml), "--quiet"]
    killed = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    if number % 2:
        many.ok("run")
    else:  # other groups than before
        monkeypatch.setattr(grouped, "MOST", 7)
        for command in ("ingest", "tag", "mix"):
            many.ok(command)
    assert made(many) == expected
    assert strays(many.root) == []
