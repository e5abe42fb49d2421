"""Commands that end at once, or are killed while they merge, leave one file with all that they wrote."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from toolkit.stages.tasks import merge
from toolkit.storage.record_log import RecordLog

COMMANDS = 4
GROUPS = 5

COMMAND = """
import os, signal, sys
from toolkit.stages.tasks import merge
from toolkit.storage.record_log import RecordLog

folder, name, groups, killed = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
record_log = RecordLog(folder)
for group in range(groups):
    record_log.save({("set a", f"{name}/{group}/{i}"): b"{}" for i in range(10)})
    if group % 2:
        record_log.forget([("set a", f"{name}/{group}/0")])
print("ready", flush=True)
sys.stdin.readline()
if killed == "killed":
    replace = os.replace
    def last(source, target):
        replace(source, target)
        if target.endswith("/records.jsonl.gz"):
            print("merged", flush=True)
            sys.stdin.readline()
            os.kill(os.getpid(), signal.SIGKILL)
    os.replace = last
merge(record_log, os.path.join(folder, "leases"))
"""


def _begun(folder: Path, name: str, killed: str = "") -> "subprocess.Popen[str]":
    arguments = [sys.executable, "-c", COMMAND, str(folder), name, str(GROUPS), killed]
    return subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _told(process: "subprocess.Popen[str]", expected: str) -> None:
    assert process.stdout
    assert process.stdout.readline() == expected + "\n"


def _go_on(process: "subprocess.Popen[str]") -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def _written(name: str) -> set[str]:
    return {f"{name}/{group}/{i}" for group in range(GROUPS) for i in range(10) if not (group % 2 and i == 0)}


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.slow
def test_commands_that_end_at_once_leave_one_file_with_all(tmp_path: Path) -> None:
    names = [str(number) for number in range(COMMANDS)]
    commands = [_begun(tmp_path, name) for name in names]
    for command in commands:
        _told(command, "ready")
    for command in commands:
        _go_on(command)
    assert [command.wait() for command in commands] == [0] * COMMANDS
    assert _files(tmp_path) == ["records.jsonl.gz"]
    assert set(RecordLog(str(tmp_path)).keys("set a")) == set().union(*map(_written, names))
    for command in commands:
        command.communicate()


@pytest.mark.slow
def test_a_killed_merge_loses_nothing_and_is_ended_by_the_next(tmp_path: Path) -> None:
    """The merged file is there, and the segments, too; another command has waited for the lease."""
    first, second = _begun(tmp_path, "a", "killed"), _begun(tmp_path, "b")
    _told(first, "ready")
    _told(second, "ready")
    _go_on(first)
    _told(first, "merged")
    assert len(_files(tmp_path)) > 2
    both = _written("a") | _written("b")
    assert set(RecordLog(str(tmp_path)).keys("set a")) == both
    _go_on(second)
    _go_on(first)
    assert first.wait() == -signal.SIGKILL
    assert second.wait() == 0
    assert _files(tmp_path) == ["records.jsonl.gz"]
    assert set(RecordLog(str(tmp_path)).keys("set a")) == both
    first.communicate()
    second.communicate()


def test_where_nothing_is_apart_nothing_is_written(tmp_path: Path) -> None:
    record_log = RecordLog(str(tmp_path / "x"))
    merge(record_log, str(tmp_path / "leases"))
    assert not (tmp_path / "x").exists()
    record_log.save({("set a", "1"): b"{}"})
    merge(record_log, str(tmp_path / "leases"))
    before = os.stat(tmp_path / "x" / "records.jsonl.gz")
    merge(RecordLog(str(tmp_path / "x")), str(tmp_path / "leases"))
    assert os.stat(tmp_path / "x" / "records.jsonl.gz") == before
    assert sorted(os.listdir(tmp_path / "x")) == ["records.jsonl.gz", "segments"]
