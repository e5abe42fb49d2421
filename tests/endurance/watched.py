"""Watches a command and all processes below it: memory, open files, disk and CPU time, every few seconds."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
EVERY = 5.0
"""Seconds between two looks."""


class Done(NamedTuple):
    """The stage that a command is at, and the share of it that is done."""

    stage: str
    share: float


@dataclass(frozen=True)
class Look:
    """What a command and the processes below it hold at a moment.

    Attributes:
        seconds: since the start.
        cpu: user and system seconds of all of them so far, also of those that have ended.
        memory: bytes; pages that processes share count once.
        files: open descriptors of all of them.
        disk: bytes of all files below the folders that are watched.
        processes: that there are.
        done: how far the work is, as the caller says.
    """

    seconds: float
    cpu: float
    memory: int
    files: int
    disk: int
    processes: int
    done: Done


def watch(
    command: Sequence[str], folders: Sequence[Path], log: Path, done: Callable[[], Done]
) -> tuple[int, list[Look]]:
    """Run a command to its end, its messages to ``log``; return its exit status and what was seen."""
    looks: list[Look] = []
    with log.open("wb") as messages:
        process = subprocess.Popen(command, stdout=messages, stderr=subprocess.STDOUT)
        begin = time.monotonic()
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(EVERY)
            if process.returncode is not None:
                return process.returncode, looks
            looks.append(_look(process.pid, time.monotonic() - begin, folders, done()))


def _look(pid: int, seconds: float, folders: Sequence[Path], done: Done) -> Look:
    cpu, memory, files, processes = 0.0, 0, 0, 0
    for each in _tree(pid):
        with contextlib.suppress(OSError, ValueError, IndexError):
            stat = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            cpu += sum(map(int, stat[11:15])) / TICKS
            memory += _proportional(each)
            files += len(os.listdir(f"/proc/{each}/fd"))
            processes += 1
    return Look(seconds, cpu, memory, files, sum(map(_size, folders)), processes, done)


def _tree(pid: int) -> Iterator[int]:
    yield pid
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split():
                yield from _tree(int(child))


def _proportional(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) << 10
    return 0


def _size(folder: Path) -> int:
    size = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(where, name)).st_blocks * 512
    return size
