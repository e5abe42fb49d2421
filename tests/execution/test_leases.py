"""Of runs that cannot work side by side one works, whatever their clocks say and however slow their store is."""

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

from tests.marks import slow
from tests.waiting import PATIENCE, wait_until
from toolkit.errors import ConfigError, ToolkitError, Unreadable
from toolkit.execution import leases
from toolkit.execution.leases import active, hold
from toolkit.interrupts import pause
from toolkit.storage.outputs import write_file
from toolkit.storage.stores.local import scratch

pytestmark = pytest.mark.slow

RUNS = 5


def write_lease(path: Path, digest: str, *, waits: bool = False) -> None:
    """As a run of another machine does."""
    lease = leases.Lease(holds={"the output": digest}, since=0.0, owner="elsewhere.1-1", waits=waits)
    path.write_bytes(msgspec.json.encode(lease))


def test_of_runs_that_begin_together_one_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(1)

    def slowly(path: str, data: bytes) -> None:
        time.sleep(rng.choice([0, 0, 0.01, 0.03]))
        write_file(path, data)
        time.sleep(rng.choice([0, 0, 0.01, 0.03]))

    monkeypatch.setattr(leases, "write_file", slowly)
    monkeypatch.setattr(leases, "POLL_INTERVAL", 0.005)
    for n in range(8):
        folder, working, most, done, told = str(tmp_path / str(n)), 0, 0, 0, 0
        lock = threading.Lock()

        def run(i: int, folder: str = folder, lock: threading.Lock = lock) -> None:
            nonlocal working, most, done, told
            time.sleep(rng.choice([0, 0.005, 0.02]))
            try:
                with hold(folder, "it", {"the output": str(i) if i else ""}):
                    with lock:
                        working += 1
                        most = max(most, working)
                    time.sleep(0.1)
                    with lock:
                        working -= 1
                        done += 1
            except ConfigError:
                with lock:
                    told += 1

        threads = [threading.Thread(target=run, args=(i,)) for i in range(RUNS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (most, done + told) == (1, RUNS)
        assert done
        assert active(folder) == []


def test_runs_with_the_same_settings_and_on_other_things_do_not_wait(tmp_path: Path) -> None:
    folder = str(tmp_path)
    with hold(folder, "it", {"a": "x", "b": "y"}), hold(folder, "it", {"a": "x"}), hold(folder, "it", {"c": ""}):
        assert len(active(folder)) == 3
        with pytest.raises(ConfigError, match="expected no other run with other settings on b, got one"):
            hold(folder, "it", {"b": "z"}).__enter__()
        with pytest.raises(ConfigError, match="expected no other run on c"):
            hold(folder, "it", {"c": "z"}).__enter__()
    assert os.listdir(folder) == []


OTHER = """
import sys, time
clock, skew = time.time, float(sys.argv[2])
time.time = lambda: clock() + skew
from toolkit.execution.leases import hold
from toolkit.errors import ConfigError
try:
    with hold(sys.argv[1], "it", {"the output": "of another"}):
        print("works", flush=True)
        sys.stdin.readline()
except ConfigError:
    print("told", flush=True)
"""


@pytest.mark.parametrize("skew", [-300, *slow(1)])
def test_clocks_have_no_say(tmp_path: Path, skew: float) -> None:
    command = [sys.executable, "-c", OTHER, str(tmp_path), str(skew)]
    with hold(str(tmp_path), "it", {"the output": "ours"}):
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "told\n"
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        assert other.stdout.readline() == "works\n"
        with pytest.raises(ConfigError, match="expected no other run"):
            hold(str(tmp_path), "it", {"the output": "ours"}).__enter__()
        other.communicate("\n")
    with hold(str(tmp_path), "it", {"the output": "ours"}):
        pass


def test_the_lease_of_a_run_that_was_killed_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OTHER, str(tmp_path), "0"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout
        assert other.stdout.readline() == "works\n"
        other.kill()
    [left] = tmp_path.glob("*.json")
    with hold(str(tmp_path), "it", {"the output": "ours"}):
        assert not left.exists()
    far = left.with_name(f"elsewhere.1-1.{left.name.split('.')[-2]}.json")  # of another machine: by its age alone
    write_lease(far, "")
    with pytest.raises(ConfigError, match="expected no other run"):
        hold(str(tmp_path), "it", {"the output": "ours"}).__enter__()
    os.utime(far, (time.time() - leases.EXPIRES_AFTER - 1,) * 2)
    with hold(str(tmp_path), "it", {"the output": "ours"}):
        assert not far.exists()


def test_who_waits_a_while_says_for_whom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run of another machine was killed before it held anything; the name of its lease is behind ours."""
    monkeypatch.setattr(leases, "NOTICE_AFTER", 0.0)
    monkeypatch.setattr(leases, "POLL_INTERVAL", 0.01)
    far = tmp_path / "elsewhere.1-1.zz.json"
    write_lease(far, "theirs", waits=True)
    looks = []

    def look(folder: str, *, own: str | None = None) -> list[leases.ActiveLease]:
        looks.append(own)
        if len(looks) == 4:
            os.utime(far, (0, 0))
        return active(folder, own=own)

    monkeypatch.setattr(leases, "active", look)
    with hold(str(tmp_path), "it", {"the output": "ours"}):
        assert not far.exists()
    assert len(looks) == 4
    said = capsys.readouterr().err
    assert said.startswith("waiting: it: expected no other run with other settings on the output, got one that works")
    assert said.count("\n") == 1


def test_a_run_whose_lease_was_deleted_goes_on_alone_and_ends_beside_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "RENEW_INTERVAL", 0.02)

    def work() -> None:
        with hold(str(tmp_path), "it", {"the output": "ours"}):
            [own] = tmp_path.glob("*.json")
            own.unlink()
            assert wait_until(own.exists), "nobody else works on it"
            write_lease(tmp_path / "elsewhere.1-1.00.json", "theirs")
            own.unlink()
            pause(PATIENCE)  # which the end of the lease ends

    with pytest.raises(ToolkitError, match=r"this run's lease has expired .* works on it now: elsewhere\.1-1"):
        work()
    assert [path.name for path in tmp_path.iterdir()] == ["elsewhere.1-1.00.json"]


def test_a_lease_that_a_run_could_not_delete_does_not_stop_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: str) -> None:
        raise Unreadable("expected what can be deleted, got: Input/output error", path=path)

    monkeypatch.setattr(leases, "remove", refused)
    with hold(str(tmp_path), "it", {"the output": ""}):
        pass
    assert len(list(tmp_path.iterdir())) == 1
    with hold(str(tmp_path), "it", {"the output": ""}):
        assert len(list(tmp_path.iterdir())) == 2


def test_a_machine_that_is_called_the_same_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Say, a node of another team's cluster that works on the same bucket: its processes cannot be looked at here."""
    gone = f"{scratch.machine()}.999999999-1"
    assert scratch.is_gone(gone)
    other = tmp_path / "machine-id"
    other.write_text("of another machine\n")
    monkeypatch.setattr(scratch, "MACHINE_IDS", (str(other),))
    scratch.machine.cache_clear()
    try:
        assert scratch.machine().startswith(os.uname().nodename.replace(".", "-"))
        assert not scratch.is_gone(gone)
        lease = leases.Lease(holds={"the output": ""}, since=0.0, owner=gone)
        (tmp_path / "leases").mkdir()
        (tmp_path / "leases" / f"{gone}.0.json").write_bytes(msgspec.json.encode(lease))
        with pytest.raises(ConfigError, match="expected no other run"):
            hold(str(tmp_path / "leases"), "it", {"the output": "ours"}).__enter__()
    finally:
        scratch.machine.cache_clear()
