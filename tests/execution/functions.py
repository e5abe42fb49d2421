"""Functions of blocks that the tests give to processes, which find them by name, and start faster without pytest."""

import os
import pickle
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.waiting import wait_until
from toolkit.errors import AlignmentError, ConfigError, DataError

Function = Callable[[Any], Any]


class Made(NamedTuple):
    """What a function gives: a block, the process, and how often that made functions, and called this one."""

    block: Any
    work: Any
    pid: int
    made: int
    called: int


MADE: list[Any] = []


class Tell:
    """Tells who it is; the lower the block, the longer it takes."""

    def __init__(self, work: Any) -> None:
        MADE.append(work)
        self._work, self._called = work, 0

    def __call__(self, block: Any) -> Made:
        self._called += 1
        if self._work == "slow first":
            time.sleep(0.05 / (block + 1))
        return Made(block, self._work, os.getpid(), len(MADE), self._called)


def meet(work: str) -> Function:
    """Whether somebody comes for another block while this one is worked on."""

    def function(block: int) -> bool:
        Path(work, str(block)).touch()
        return wait_until(lambda: len(os.listdir(work)) == 2)

    return function


class NeedsTwo(Exception):
    """Cannot be unpickled: its arguments are not those that it is made of."""

    def __init__(self, code: int, what: str) -> None:
        super().__init__(f"{what}, code {code}")


class CannotBeLoaded:
    """Can be pickled, and not be unpickled."""

    def __reduce__(self) -> Any:
        return int, ("nothing to load",)


class Panic(BaseException):
    """What native code may raise."""


def raising(error: Any) -> Any:
    raise error


def local_error() -> Exception:
    class Local(Exception):
        pass

    return Local("of a class that nobody finds")


def half_sent() -> bytes:
    """The process dies, as by the kernel, while it hands this over."""
    dump = pickle.dump

    def die(value: Any, file: Any, protocol: int) -> None:
        dump(value, file, protocol)
        os.kill(os.getpid(), signal.SIGKILL)

    pickle.dump = die  # type: ignore[assignment]
    return b"x" * 1_000_000


ACTS: dict[str, Callable[[], Any]] = {
    "data error": lambda: raising(AlignmentError("expected a, got b", path="p", line=7, id="x")),
    "bad configuration": lambda: raising(ConfigError("c.yaml:1: expected a, got b")),
    "error": lambda: raising(ValueError("cannot")),
    "stop": lambda: raising(StopIteration("no element")),
    "panic": lambda: raising(Panic("native")),
    "needs two": lambda: raising(NeedsTwo(3, "was not found")),
    "local error": lambda: raising(local_error()),
    "unpicklable": lambda: lambda: None,
    "cannot be loaded": CannotBeLoaded,
    "killed": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "exits": lambda: os._exit(3),
    "half sent": half_sent,
    "waits": lambda: time.sleep(600),
}


def act(work: dict[int, str]) -> Function:
    """Does what it is told at some blocks; else gives the block and the process."""

    def function(block: int) -> Any:
        if block in work:
            return ACTS[work[block]]()
        return block, os.getpid()

    return function


def act_late(work: dict[int, str]) -> Function:
    """As `act`, the first of these blocks after all others."""
    function = act(work)

    def late(block: int) -> Any:
        if block == min(work):
            time.sleep(0.2)
        return function(block)

    return late


def dies_once(work: str) -> Function:
    """Is killed at some blocks, but only once at each."""

    def function(block: int) -> Any:
        path = Path(work, str(block))
        if block in (1, 2, 7) and not path.exists():
            path.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return block, os.getpid()

    return function


def cannot_be_made(work: Any) -> Function:
    raise DataError("expected a readable list, got none", path="list.txt")
