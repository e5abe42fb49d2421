"""Groups of shards: in what order they are made durable, by how many calls, and what a kill leaves of one."""

import json
import os
import re
import shutil
import signal
import stat as stat_mode
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.waiting import PATIENCE
from toolkit.errors import Unreadable
from toolkit.storage.outputs import Output, RowOutput
from toolkit.storage.paths import stat
from toolkit.storage.record_log import Group, RecordLog
from toolkit.testing import MemoryStore

SHARDS = 20

WORKER = """
import json, os, signal, sys
from toolkit.storage.record_log import Group, RecordLog
from toolkit.storage.outputs import RowOutput

root, version, call = sys.argv[1:4]
number, shards = map(int, sys.argv[4:])

def counted(name):
    function = getattr(os, name)
    def called(*arguments, **named):
        global number
        if name == call:
            number -= 1
            if number < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **named)
    setattr(os, name, called)

for name in ("fsync", "replace", "unlink", "makedirs"):
    counted(name)

record_log = RecordLog(f"{root}/record-log")
with Group(record_log) as group:
    for i in range(shards):
        place = ("set a", f"{i % 3}/{i}.gz")
        group.forget(place)
        with RowOutput(f"{root}/data/{i % 3}/{i}.gz", together=group.files) as out:
            out.write_row(f"{version} {i}".encode())
        group.save(place, json.dumps({"content": out.content, "stamp": out.stat.stamp}).encode())
record_log.merge()
print("all is done")
"""


def _ran(root: Path, version: str, call: str = "", number: int = 0) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", WORKER, str(root), version, call, str(number), str(SHARDS)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


def _shards(root: Path) -> list[tuple[str, str]]:
    return [(f"{i % 3}/{i}.gz", f"{root}/data/{i % 3}/{i}.gz") for i in range(SHARDS)]


def _recorded(root: Path) -> set[str]:
    """Return the shards that are recorded; of each the data must be what its record says."""
    record_log = RecordLog(f"{root}/record-log")
    assert record_log.damaged == {}
    for key, path in _shards(root):
        if record := record_log.get("set a", key):
            found = stat(path)
            assert found, f"{key} is recorded, and not there"
            assert json.loads(record)["stamp"] == found.stamp, f"{key} is recorded, and another file"
    return set(record_log.keys("set a"))


@pytest.mark.slow
@pytest.mark.parametrize("call", ["fsync", "replace", "unlink", "makedirs"])
def test_a_kill_costs_the_group_and_no_record_is_wrong(call: str, tmp_path: Path) -> None:
    """Before each call that changes something on disk, of a first group and of one that replaces it."""
    whole = {key for key, _ in _shards(tmp_path)}
    kept = tmp_path / "kept"
    assert _ran(kept, "first").stdout == "all is done\n"
    assert _recorded(kept) == whole
    for first in (True, False):
        number, step, ended = 0, 1, False
        while not ended:
            root = tmp_path / f"{first}-{number}"
            if not first:
                shutil.copytree(kept, root)
            ran = _ran(root, "second", call, number)
            ended = ran.returncode == 0
            assert ended or ran.returncode == -signal.SIGKILL, ran.stderr
            found = _recorded(root)
            assert found in (whole, set())
            assert _ran(root, "third").returncode == 0
            assert _recorded(root) == whole
            files = [path.name for path in (root / "record-log").rglob("*") if path.is_file()]
            assert [name for name in files if not name.endswith(".tmp")] == ["records.jsonl.gz"]
            number, step = number + step, step + 1  # early ones are of another kind each, later ones are alike
            shutil.rmtree(root)


def test_files_and_folders_are_synced_before_their_records(tmp_path: Path) -> None:
    """Of a group each file once and each folder once, counted by the system itself."""
    if shutil.which("strace") is None:
        pytest.skip("no strace")
    log = tmp_path / "log"
    traced = ["strace", "-f", "-y", "-qq", "-e", "trace=fsync,fdatasync,syncfs,rename,renameat2", "-o", str(log)]
    root = tmp_path / "root"
    ran = subprocess.run(
        [*traced, sys.executable, "-c", WORKER, str(root), "first", "", "0", str(SHARDS)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "PTRACE" in ran.stderr:
        pytest.skip("strace may not trace here")
    assert ran.stdout == "all is done\n", ran.stderr
    calls = [
        (found[1], found[2].removeprefix(str(root)) or "/")
        for line in log.read_text().splitlines()
        if (found := re.search(r"(fsync|rename)\w*\((?:\d+<|[^\"]*\")([^>\"]+)", line))
    ]
    data = [(call, path) for call, path in calls if path.startswith("/data")]
    temporary = [path for _, path in data if path.endswith(".tmp")]
    assert Counter(temporary) == dict.fromkeys(temporary, 2), "each is synced, then renamed"
    assert len({*temporary}) == SHARDS
    assert [call for call, path in data if path.endswith(".tmp")] == ["fsync"] * SHARDS + ["rename"] * SHARDS
    folders = [path for call, path in data if not path.endswith(".tmp")]
    assert sorted(folders) == ["/data", "/data/0", "/data/1", "/data/2"]
    segment = next(i for i, (_, path) in enumerate(calls) if "/record-log/segments/." in path)
    assert segment > max(i for i, (_, path) in enumerate(calls) if path.startswith("/data"))
    syncs = sum(call == "fsync" for call, _ in calls)
    assert syncs <= SHARDS + len(folders) + 1 + 8, (
        "besides data and the root: a segment, the merged file, their folders"
    )


def test_of_a_shard_that_fails_nothing_appears_and_the_others_do(tmp_path: Path) -> None:
    record_log = RecordLog(f"{tmp_path}/record-log")
    record_log.save({("set a", "bad"): b'"before"'})
    with Group(record_log) as group:
        for name in ("x", "bad", "y"):
            try:
                with group.part():
                    group.forget(("set a", name))
                    with Output(f"{tmp_path}/{name}", group.files) as out:
                        out.write(b"data")
                    assert out.stat.size == 4
                    assert not os.path.exists(f"{tmp_path}/{name}")
                    group.save(("set a", name), b'"now"')
                    if name == "bad":
                        raise ValueError
            except ValueError:
                continue
    found = RecordLog(f"{tmp_path}/record-log")
    assert {name: found.get("set a", name) for name in ("bad", "x", "y")} == {
        "bad": b'"before"',
        "x": b'"now"',
        "y": b'"now"',
    }
    assert sorted(os.listdir(tmp_path)) == ["record-log", "x", "y"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_group_that_cannot_be_made_durable_is_not_recorded(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_log = RecordLog(f"{tmp_path}/record-log")
    record_log.save({("set a", "x"): b'"before"'})

    def refuse(*_: object) -> None:
        raise OSError(5, "Input/output error")

    group = Group(record_log)
    group.forget(("set a", "x"))
    with Output(f"{tmp_path}/x", group.files) as out:
        out.write(b"data")
    group.save(("set a", "x"), b'"now"')
    record_log.forget([("set a", "x")])
    monkeypatch.setattr(f"os.{call}", refuse)
    with pytest.raises(Unreadable, match=r"/x: expected a file that can be written, got: Input/output error; "), group:
        pass
    assert RecordLog(f"{tmp_path}/record-log").get("set a", "x") is None
    assert os.listdir(tmp_path) == ["record-log"]


def test_a_folder_that_cannot_be_made_durable_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of a sync names no file, and a folder is synced by itself after the files that appeared in it."""
    sync = os.fsync

    def refuse_folders(descriptor: int) -> None:
        if stat_mode.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(28, "No space left on device")
        sync(descriptor)

    group = Group(RecordLog(f"{tmp_path}/record-log"))
    with Output(f"{tmp_path}/deep/x", group.files) as out:
        out.write(b"data")
    monkeypatch.setattr("os.fsync", refuse_folders)
    with pytest.raises(Unreadable, match=rf"^{tmp_path}(/deep)?: expected a folder .*No space left"), group:
        pass


def test_a_store_that_knows_no_groups_writes_file_by_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    monkeypatch.setattr("toolkit.storage.outputs.store_of", lambda path: store)
    group = Group(RecordLog(f"{tmp_path}/record-log"))
    with group.part(), RowOutput("memory://x/a.gz", together=group.files) as out:
        out.write_row(b"a")
    assert store.stat("memory://x/a.gz") == out.stat
    group.commit()
    assert store.stat("memory://x/a.gz") == out.stat
