"""Tasks that tests give to worker processes, which find them by name, and start faster without pytest."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tests.waiting import wait_until
from toolkit.errors import ConfigError
from toolkit.execution.blocks import in_order
from toolkit.execution.executors import Report
from toolkit.interrupts import pause
from toolkit.storage.outputs import Output


def ignore(documents: int, size: int) -> None:
    pass


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be reaped does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def shout(payload: str, report: Report) -> str:
    report(1, len(payload))
    return payload.upper()


def fail_on_b(payload: str, report: Report) -> str:
    match payload:
        case "b":
            raise ValueError("cannot")
        case "c":
            raise ConfigError("c.yaml:1: expected a, got b")
        case "d":
            return Path("/no/such/file").read_text()
        case "e":
            raise BaseException("native panic")
    return payload.upper()


def die_once(payload: str, report: Report) -> str:
    """The payload is the marker's path."""
    if "dies" in payload and not os.path.exists(payload):
        Path(payload).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


def die_always(payload: str, report: Report) -> str:
    if payload.endswith(("dies", "exits")):
        with Path(payload).open("a") as marker:
            marker.write("tried ")
    if payload.endswith("dies"):
        os.kill(os.getpid(), signal.SIGKILL)
    if payload.endswith("exits"):
        os._exit(7)
    return "alive"


def write_and_wait(payload: str, report: Report) -> str:
    """Returns at once for a payload that ends in ``quick``, else writes a file and never finishes."""
    if payload.endswith("quick"):
        return wait_for_start(Path(payload).parent)
    with Output(payload) as out:
        out.write(b"half")
        begun = Path(payload + ".begun")
        begun.write_text(str(os.getpid()))
        begun.rename(payload + ".pid")
        pause(600)
    return ""


def wait_for_start(folder: Path) -> str:
    return str(wait_until(lambda: any(folder.glob("*.pid"))))


def note_times(payload: str, report: Report) -> str:
    """When it begins and ends, by the clock that all processes share."""
    begin = time.monotonic()
    time.sleep(float(payload))
    return f"{begin} {time.monotonic()}"


def who(payload: str, report: Report) -> str:
    """The process, when all tasks have begun that share a folder: as many as the folder's name says."""
    folder = Path(payload).parent
    Path(payload).touch()
    assert wait_until(lambda: len(list(folder.iterdir())) >= int(folder.name))
    return str(os.getpid())


class Helper:
    """A function of blocks for `with_helpers`."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __call__(self, block: int) -> int:
        Path(self._folder, f"{os.getpid()}.pid").touch()
        return block


def with_helpers(payload: str, report: Report) -> str:
    """Keeps two processes; the first time it dies when both have begun, or waits, by what the folder is called."""
    if payload.endswith("quick"):
        return wait_for_start(Path(payload).parent)
    folder = Path(payload)
    first = not folder.exists()
    folder.mkdir(exist_ok=True)
    with Output(payload + ".bin") as out:
        out.write(b"half")
        found = []
        for block in in_order(Helper, payload, iter(range(30)), 2):
            found.append(block)
            if "waits" in payload and block == 3:
                (folder.parent / "begun.pid").touch()
                pause(600)
            if "dies" in payload and first and block == 9:
                os.kill(os.getpid(), signal.SIGKILL)
    return f"{len(found)} {found == sorted(found)}"


def process(payload: str, report: Report) -> str:
    return str(os.getpid())


def helper(code: str) -> Callable[[str], None]:
    return exec


def hold(payload: str, report: Report) -> str:
    """Takes too many megabytes, by itself or in processes of its own; else who it is."""
    kind, _, path = payload.partition(" ")
    if kind == "small":
        return str(os.getpid())
    with Path(path).open("a") as marker:
        marker.write("tried ")
    with Output(path + ".out") as out:
        out.write(b"half")
        code = "held = b'x' * 600_000_000"
        list(in_order(helper, "", [code] * 2, 2)) if kind == "helper" else exec(code)
    return ""


def half(payload: str, report: Report) -> str:
    """Reports half of its work; in its first process it dies then."""
    report(1, 5)
    if payload.endswith("dies") and not Path(payload).exists():
        Path(payload).touch()
        os._exit(9)
    return payload
