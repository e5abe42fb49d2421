"""Starts processes in a fork server of the session with preloaded modules.

    this process ──names of modules, once──> fork server ──fork──> child: target(*arguments)
                 <──pid and exit status of the child (`multiprocessing.forkserver`)──┘

A new interpreter takes a third of a second of processor time until it can work. The standard library's own server is
one for a process, freezes the environment, stays when a call ends, and is a new interpreter, too. This one is started
with the command, as a fork of it where that is safe, ends with it, and serves by `multiprocessing.forkserver.main`. Its
socket has no name. Where there is no such server, or it has ended, processes are new interpreters.
"""

import atexit
import contextlib
import gc
import importlib
import multiprocessing
import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from io import BytesIO
from multiprocessing import forkserver, popen_forkserver, reduction, resource_tracker, util
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess, SpawnProcess, set_spawning_popen
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any

from toolkit.execution import processes
from toolkit.session import current
from toolkit.storage.stores.local.scratch import scratch

PACKAGES = ("toolkit", "taggers", "mixers", "numpy", "llvmlite")
"""Packages whose modules are imported in the server; those of plugins may start threads."""


class Server:
    """The fork server of a session."""

    def __init__(self) -> None:
        files = _open_files()
        forks = _can_be_forked(files)
        self._preloaded = _imported() if forks else set()
        with socket.socket(socket.AF_UNIX) as listener:
            with scratch() as folder:
                place = os.open(folder, os.O_PATH)
                try:
                    listener.bind(f"/proc/self/fd/{place}/s")  # a socket's path has 107 bytes at most
                    listener.listen()
                    self._socket = os.open("s", os.O_PATH, dir_fd=place)  # by which it is found when its name has gone
                finally:
                    os.close(place)
            alive, self._alive = multiprocessing.Pipe(duplex=False)
            names, self._names = multiprocessing.Pipe(duplex=False)
            with alive, names:
                ours = [self._socket, self._alive.fileno(), self._names.fileno(), *files] if forks else []
                kind: type[BaseProcess] = ForkProcess if forks else SpawnProcess
                self._process = kind(target=_serve, args=(listener, alive, names, ours))
                begin_masked(self._process)
        atexit.register(self.close)  # Python waits for processes at its end, before it closes what would end them

    def connect(self, files: list[int]) -> tuple[int, int]:
        """Request a process with these files; return its status and work pipes.

        Raises:
            OSError: if the server has ended.
        """
        if not self._names.closed:
            with self._names:
                self._names.send(sorted({"numpy", *_imported()} - self._preloaded))  # all work on blocks needs it
        with socket.socket(socket.AF_UNIX) as client, open(os.devnull, "r+b") as unused:
            client.connect(f"/proc/self/fd/{self._socket}")
            status, child_status = os.pipe()
            child_work, work = os.pipe()
            try:  # after these two, a server of its own and a tracker of semaphores, which it has not
                reduction.sendfds(client, [child_work, child_status, unused.fileno(), unused.fileno(), *files])
            except BaseException:
                _close(status, work)
                raise
            finally:
                _close(child_work, child_status)
        return status, work

    def close(self) -> None:
        """End the server; its processes have been ended before."""
        atexit.unregister(self.close)
        if self._alive.closed:
            return
        self._process.kill()
        self._process.join()
        self._process.close()
        self._alive.close()
        self._names.close()
        os.close(self._socket)


class _Popen(popen_forkserver.Popen):
    """A process of the session's server; it imports no main module."""

    def __init__(self, process_obj: BaseProcess) -> None:
        self._files: list[int] = []
        super().__init__(process_obj)

    def duplicate_for_child(self, fd: int) -> int:
        self._files.append(fd)
        return len(self._files) - 1

    def _launch(self, process_obj: BaseProcess) -> None:
        buffer = BytesIO()
        set_spawning_popen(self)
        try:
            reduction.dump({"sys_path": sys.path}, buffer)
            reduction.dump(process_obj, buffer)
        finally:
            set_spawning_popen(None)
        self.sentinel, work = _servers()[-1].connect(self._files)
        self.finalizer = util.Finalize(self, _close, (os.dup(work), self.sentinel))  # what tells that we end
        try:
            with open(work, "wb") as file:
                file.write(buffer.getbuffer())
            self.pid = forkserver.read_signed(self.sentinel)
        except (OSError, EOFError):
            self.finalizer()
            raise OSError("no process could be forked") from None

    def poll(self, flag: int = os.WNOHANG) -> int | None:
        if self.returncode is None and wait([self.sentinel], 0 if flag == os.WNOHANG else None):
            try:
                self.returncode = forkserver.read_signed(self.sentinel)
            except (OSError, EOFError):  # the server has ended; it may not have, and nobody else knows it
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)
                self.returncode = -signal.SIGKILL
        return self.returncode


class Forked(BaseProcess):
    """A process of the session's fork server."""

    _Popen = _Popen
    _start_method = "spawn"


def _servers() -> list[Server]:
    return current().get_or_make("fork servers", list[Server])


@contextlib.contextmanager
def opened() -> Iterator[None]:
    """Run a fork server in the block, if the system can."""
    servers = _servers()
    if sys.platform != "linux" or servers:
        yield
        return
    with contextlib.suppress(OSError):  # of a full disk, the command itself tells
        servers.append(Server())
    try:
        yield
    finally:
        while servers:
            servers.pop().close()


# --- in the server ----------------------------------------------------------------------------------------------------


def _serve(
    listener: socket.socket, alive: "Connection[Any, Any]", names: "Connection[Any, Any]", ours: list[int]
) -> None:
    """Import modules, then fork processes on request, until the caller ends.

    Args:
        listener: Socket to ask at.
        alive: Pipe that ends with the calling process.
        names: Pipe that gives the modules to import.
        ours: Files of the calling process, which are open if this one is a fork of it.
    """
    _close(*ours)
    processes.one_thread_each()
    processes.set_up_malloc()
    with contextlib.suppress(EOFError):
        for name in names.recv():
            with contextlib.suppress(Exception):  # it is told where it is needed
                importlib.import_module(name)
        if _threads() == 1:  # or what is forked would not be whole
            gc.freeze()  # what is never touched again stays in memory that all share
            forkserver.main(listener.detach(), alive.fileno(), [])


def _imported() -> set[str]:
    return {name for name in list(sys.modules) if name.partition(".")[0] in PACKAGES and "__main__" not in name}


def _can_be_forked(files: list[int]) -> bool:
    """Return True if this process can be forked: it has one thread, and no connections."""
    return processes.is_program and _threads() == 1 and not any(stat.S_ISSOCK(os.fstat(file).st_mode) for file in files)


def _open_files() -> list[int]:
    """Return the numbers of open files but the standard streams."""
    if sys.platform != "linux":
        return []
    listed = [int(name) for name in os.listdir("/proc/self/fd")]
    return [number for number in listed if number > 2 and os.path.lexists(f"/proc/self/fd/{number}")]


def _close(*files: int) -> None:
    for file in files:
        os.close(file)


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))


# --- how processes begin ----------------------------------------------------------------------------------------------


def begun(target: Callable[..., None], arguments: tuple[Any, ...], *, daemon: bool) -> BaseProcess:
    """Start a process with a target function: forked, or a new interpreter without a server."""
    if _servers():
        with contextlib.suppress(OSError):
            forked = Forked(target=target, args=arguments, daemon=daemon)
            forked.start()
            return forked
    process = SpawnProcess(target=target, args=arguments, daemon=daemon)
    begin_masked(process)
    return process


def end_with_parent() -> None:
    """End this process when its parent process ends."""
    parent = multiprocessing.parent_process()
    assert parent
    with contextlib.suppress(OSError):
        wait([parent.sentinel])
    os._exit(1)


def begin_masked(process: BaseProcess) -> None:
    """Start a process with SIGINT blocked.

    Blocked signals stay blocked in it. SIGTERM waits until the process can handle it.
    """
    is_fork = isinstance(process, ForkProcess)  # it imports nothing, and would have the lock of those that do, locked
    if not is_fork:
        resource_tracker.ensure_running()  # the first start does so too, and would unblock both before
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        with contextlib.nullcontext() if is_fork else _no_main_module():
            process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)


_starting = threading.Lock()


@contextlib.contextmanager
def _no_main_module() -> Iterator[None]:
    """Prevent a new process from importing the main module.

    A script without ``if __name__ == "__main__":`` that calls us would run in it, from its beginning.
    """
    with _starting:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main
