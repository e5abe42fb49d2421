"""A process that forks others, which begin in hundredths of a second: what they need has been imported there, once.

    this process ──names of modules, open files──> nursery ──fork──> child: target(*arguments)
                 <──number and exit status of the child──┘

A new interpreter takes a third of a second of processor time until it can work. So a command that may need processes
begins one at once, which waits, then imports what the command has imported, and is forked for each process. It is a
fork itself where it can be, and has one thread, so that what is forked is whole. Where the system has no such thing, or
it has come to an end, processes are new interpreters.
"""

import atexit
import contextlib
import gc
import importlib
import multiprocessing
import os
import pickle
import selectors
import signal
import socket
import stat
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from io import BytesIO
from multiprocessing import reduction, resource_tracker
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess, SpawnProcess, set_spawning_popen
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any

from toolkit.interrupts import held_back
from toolkit.runs import processes

PACKAGES = ("toolkit", "taggers", "mixers", "numpy", "llvmlite")
"""Whose modules are imported in the nursery; those of plugins may begin threads."""

_NUMBER = struct.Struct("q")
_MESSAGE = 1 << 17


class Nursery:
    """A process that forks others for this one."""

    def __init__(self) -> None:
        files = _open_files()
        forks = _can_be_forked(files)
        self._told = _imported() if forks else set()
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        kind: type[BaseProcess] = ForkProcess if forks else SpawnProcess
        self._process = kind(target=_serve, args=(theirs, [self._line.fileno(), *files] if forks else []))
        begin_masked(self._process)
        theirs.close()

    def begin(self, target: Callable[..., None], arguments: tuple[Any, ...]) -> "Forked":
        """Begin a process that calls a function.

        Raises:
            OSError: if there is none: the nursery is gone, or cannot fork.
        """
        sent = _Sent()
        set_spawning_popen(sent)  # type: ignore[arg-type]  # it asks no more of one
        try:
            reduction.dump((target, arguments), sent.data)
        finally:
            set_spawning_popen(None)
        names = _imported() - self._told
        ours, theirs = [], []
        try:
            for _ in range(2):  # its number, its status
                reads, writes = os.pipe()
                ours.append(reads)
                theirs.append(writes)
            reads, holds = os.pipe()  # ends when this process does
            ours.append(holds)
            theirs.append(reads)
            theirs.append(data := os.memfd_create("toolkit"))
            with open(data, "wb", closefd=False) as file:
                file.write(sent.data.getbuffer())
            files = [*theirs, *sent.files]
            socket.send_fds(self._line, ["\n".join(sorted(names)).encode() or b"\n"], files)
        except BaseException:
            _close(ours)
            raise
        finally:
            _close(theirs)
        self._told |= names
        number = _read(ours[0])
        os.close(ours[0])
        if number is None:
            _close(ours[1:])
            raise OSError("no process could be forked")
        return Forked(number, ours[1], ours[2])

    def close(self) -> None:
        """End the process, and those that it has forked, if there still are any."""
        self._line.close()
        self._process.kill()
        self._process.join()
        self._process.close()


_open: list[Nursery] = []
_users: list[object] = []


@contextlib.contextmanager
def opened() -> Iterator[None]:
    """Have a nursery in the ``with`` block, where the system can do that.

    Blocks in one another, or in several threads, share it; it ends with the last of them.
    """
    user = object()
    _users.append(user)
    try:
        if sys.platform == "linux" and not _open:
            _open.append(Nursery())
        yield
    finally:
        _users.remove(user)
        if not _users:
            _close_all()


@atexit.register  # Python waits for processes at its end, before it tidies away what would end them
def _close_all() -> None:
    while _open:
        _open.pop().close()


class Forked:
    """A process that was forked: what `multiprocessing` has of one, as far as it is needed.

    Args:
        pid: its number.
        sentinel: from which its exit status can be read when it has ended.
        holds: an open file, whose end tells it that this process has ended.
    """

    def __init__(self, pid: int, sentinel: int, holds: int) -> None:
        self.pid = pid
        self.sentinel = sentinel
        self._holds = holds
        self._status: int | None = None

    def __del__(self) -> None:
        _close([self.sentinel, self._holds])

    def join(self, timeout: float | None = None) -> None:
        if self._status is None and wait([self.sentinel], timeout):
            status = _read(self.sentinel)
            self._status = -signal.SIGKILL if status is None else status  # else the nursery ended, and it does

    @property
    def exitcode(self) -> int | None:
        self.join(0)
        return self._status

    def is_alive(self) -> bool:
        return self.exitcode is None

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        if self.is_alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


# --- what is sent -----------------------------------------------------------------------------------------------------


class _Given:
    """An open file, in what is pickled: its place among those that are given to a process."""

    def __init__(self, place: int) -> None:
        self._place = place

    def detach(self) -> int:
        return _given[self._place]


_given: list[int] = []


class _Sent:
    """What `multiprocessing` asks, while it pickles for a process, about open files."""

    DupFd = _Given

    def __init__(self) -> None:
        self.data = BytesIO()
        self.files: list[int] = []

    def duplicate_for_child(self, number: int) -> int:
        self.files.append(number)
        return len(self.files) - 1


def _imported() -> set[str]:
    return {name for name in list(sys.modules) if name.partition(".")[0] in PACKAGES and "__main__" not in name}


def _read(file: int) -> int | None:
    """Return the number that is sent; None if the other end closes before."""
    data = os.read(file, _NUMBER.size)
    return _NUMBER.unpack(data)[0] if data else None


def _close(files: list[int]) -> None:
    for file in files:
        os.close(file)


# --- in the nursery ---------------------------------------------------------------------------------------------------


def _serve(line: socket.socket, not_its: list[int]) -> None:
    """Fork what is asked for, and tell how it has ended, until nobody can ask any more.

    Args:
        line: from those who ask.
        not_its: files that are open, because this process was forked from one that has them.
    """
    _close(not_its)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # SIGTERM stays blocked: who asks ends it
    processes.one_thread_each()
    processes.share_arenas()
    with selectors.DefaultSelector() as watched:
        watched.register(line, selectors.EVENT_READ)
        while True:
            for key, _ in watched.select():
                if key.fileobj is not line:
                    process, status = key.data
                    watched.unregister(key.fileobj)
                    process.join()
                    _tell(status, process.exitcode)
                    continue
                names, files, *_ = socket.recv_fds(line, _MESSAGE, 253, socket.MSG_CMSG_CLOEXEC)
                if not files:
                    return
                for name in names.decode().split():
                    with contextlib.suppress(Exception):  # it is told where it is needed
                        importlib.import_module(name)
                number, status, *given = files
                others = [key.data[1] for key in watched.get_map().values() if key.data]
                process = _forked(given, [line.fileno(), number, status, *others])
                _close(given)
                if process is None:
                    _close([number, status])
                    continue
                watched.register(process.sentinel, selectors.EVENT_READ, (process, status))
                _tell(number, process.pid)


def _forked(files: list[int], others: list[int]) -> BaseProcess | None:
    """Return a process that has been forked; None if there is none."""
    if _threads() > 1:
        return None
    gc.freeze()  # what is never touched again stays in memory that all share
    process = ForkProcess(target=_begin, args=(files, others))
    try:
        process.start()
    except OSError:
        return None
    return process


def _tell(file: int, number: int | None) -> None:
    with contextlib.suppress(BrokenPipeError):
        os.write(file, _NUMBER.pack(number or 0))
    os.close(file)


def _begin(files: list[int], others: list[int]) -> None:
    """Call what has been sent, in a process that was forked."""
    _close(others)
    parent, data, *_given[:] = files
    _parents.append(parent)
    with open(data, "rb") as file:
        file.seek(0)
        target, arguments = pickle.load(file)  # noqa: S301  # from a process of ours
    target(*arguments)


_parents: list[int] = []


def wait_for_parent() -> None:
    """Wait until the process ends that this one works for."""
    parent = multiprocessing.parent_process()
    assert parent
    with contextlib.suppress(OSError):
        wait([parent.sentinel, *_parents])


def _can_be_forked(files: list[int]) -> bool:
    """Return whether this process can be forked: it has one thread, and no connections."""
    return processes.is_program and _threads() == 1 and not any(stat.S_ISSOCK(os.fstat(file).st_mode) for file in files)


def _open_files() -> list[int]:
    """Return the numbers of open files but the standard streams."""
    found = [int(name) for name in os.listdir("/proc/self/fd")]
    return [number for number in found if number > 2 and os.path.lexists(f"/proc/self/fd/{number}")]


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


# --- how processes begin ----------------------------------------------------------------------------------------------


def begun(target: Callable[..., None], arguments: tuple[Any, ...], *, daemon: bool) -> BaseProcess | Forked:
    """Return a process that calls a function: forked where there is a nursery, else a new interpreter."""
    if _open:
        with contextlib.suppress(OSError), held_back():
            return _open[-1].begin(target, arguments)
    process = SpawnProcess(target=target, args=arguments, daemon=daemon)
    begin_masked(process)
    return process


def begin_masked(process: BaseProcess) -> None:
    """Start a process that gets no SIGINT: what is blocked now stays blocked in it.

    SIGTERM waits, too, until the process is known here, or nobody would end it; in the process until it can hear it.
    A start that is interrupted would leave a process that finds the pipe closed from which it reads what to do.
    """
    is_fork = isinstance(process, ForkProcess)  # it imports nothing, and would have the lock of those that do, locked
    if not is_fork:
        resource_tracker.ensure_running()  # the first start does so too, and would unblock both before
    with held_back():
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        try:
            with contextlib.nullcontext() if is_fork else _no_main_module():
                process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)


_starting = threading.Lock()


@contextlib.contextmanager
def _no_main_module() -> Iterator[None]:
    """Let a process that begins import no main module: what it runs is in modules of ours.

    A script without ``if __name__ == "__main__":`` that calls us would run in it, from its beginning.
    """
    with _starting:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main
