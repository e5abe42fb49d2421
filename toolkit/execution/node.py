"""Runs tasks on cluster nodes, and ends them with the driver.

driver: DriverServer listens <──a connection for each running task──> node: watched_by_driver(address)

The driver never sends anything. The end of a connection is its message, so that it comes also from one that was killed.
A task sends its token, then from time to time what it has done since it last did.

Ray's own ``cancel`` can end the driver when a task finishes at the same moment (ray-project/ray, pull request 54785).
"""

import contextlib
import ipaddress
import os
import pickle
import selectors
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

from toolkit import distribution
from toolkit.distribution import NAME
from toolkit.execution.executors import Report, Sending, Task, pickle_result, run_task
from toolkit.interrupts import forget, stop
from toolkit.session import current

CARRIED = ("AWS_", "AZURE_", "GOOGLE_", "HF_", "STORAGE_EMULATOR_HOST", "TOOLKIT_CACHE")
"""Environment variables that begin so are the calling process's in every task: libraries read their credentials there.

The state of the command is in the tasks (`toolkit.session.InSession`)."""

Address = tuple[str, int]

CONNECT_SECONDS = 5.0
BACKLOG = 4096

TOKEN_BYTES = 16

NEWS_SECONDS = 1.0
"""After which a task sends what it has done."""

_NEWS = struct.Struct("!qq")


class ProgressUpdate(NamedTuple):
    """Progress of a task since its last update."""

    token: bytes
    documents: int
    bytes: int


class DriverServer:
    """The driver's end of the connections of running tasks; a server thread in a context manager.

    Args:
        host: Host of this machine, as other nodes reach it.
    """

    def __init__(self, host: str) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        bound = host if ipaddress.ip_address(host).is_loopback else ""  # it may be one that a container is known by
        self._server = socket.create_server((bound, 0), family=family, backlog=BACKLOG)
        self._host = host
        self._server.setblocking(False)
        self._wakeup_reader, self._wakeup_writer = socket.socketpair()
        self._news: deque[ProgressUpdate] = deque()
        self._full = False
        self._cut = False
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="lifeline", daemon=True)

    @property
    def address(self) -> Address:
        """The address of the server, for `watched_by_driver`."""
        return self._host, self._server.getsockname()[1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        self._wakeup_writer.send(b".")
        self._thread.join()
        for one in (self._server, self._wakeup_reader, self._wakeup_writer):
            one.close()

    def cut(self) -> None:
        """Interrupt all tasks, now and at their start."""
        self._cut = True
        self._wakeup_writer.send(b".")

    def news(self) -> Iterator[ProgressUpdate]:
        """Yield new progress; a task's last updates may follow its result."""
        while self._news:
            yield self._news.popleft()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as watched:
            watched.register(self._wakeup_reader, selectors.EVENT_READ)
            watched.register(self._server, selectors.EVENT_READ)
            while not self._closed:
                for key, _ in watched.select():
                    if key.fileobj is self._server:
                        self._accept(watched)
                    elif key.fileobj is self._wakeup_reader:
                        self._wakeup_reader.recv(1)
                    elif not self._hear(key):
                        self._end(watched, key)
                if self._cut:
                    for key in self._tasks(watched):
                        self._end(watched, key)
            for key in self._tasks(watched):
                self._end(watched, key)

    def _accept(self, watched: selectors.BaseSelector) -> None:
        try:
            connection, _ = self._server.accept()
        except OSError:  # too many open files: the task waits in the backlog, where the end reaches it, too
            watched.unregister(self._server)
            self._full = True
            return
        connection.setblocking(False)
        watched.register(connection, selectors.EVENT_READ, bytearray())

    def _hear(self, key: selectors.SelectorKey) -> bool:
        """Read the updates of a task; return False if its connection has ended."""
        assert isinstance(key.fileobj, socket.socket)
        try:
            data = key.fileobj.recv(1 << 12)
        except OSError:  # reset
            return False
        buffer: bytearray = key.data
        buffer += data
        whole = TOKEN_BYTES + (max(len(buffer) - TOKEN_BYTES, 0) // _NEWS.size) * _NEWS.size
        for documents, size in _NEWS.iter_unpack(buffer[TOKEN_BYTES:whole]):
            self._news.append(ProgressUpdate(bytes(buffer[:TOKEN_BYTES]), documents, size))
        del buffer[TOKEN_BYTES:whole]
        return bool(data)

    def _end(self, watched: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        watched.unregister(key.fileobj)
        assert isinstance(key.fileobj, socket.socket)
        key.fileobj.close()
        if self._full:
            watched.register(self._server, selectors.EVENT_READ)
            self._full = False

    def _tasks(self, watched: selectors.BaseSelector) -> list[selectors.SelectorKey]:
        own = (self._server, self._wakeup_reader)
        return [key for key in watched.get_map().values() if key.fileobj not in own]


@contextlib.contextmanager
def watched_by_driver(address: Address, token: bytes = b"") -> Iterator[Report]:
    """Interrupt the block by `toolkit.interrupts.check` when the driver ends or stops.

    If the driver cannot be reached, the block runs to its end.

    Args:
        address: Address of the driver's `DriverServer`.
        token: Token of the task.

    Yields:
        What sends the driver what has been done; nothing without a token.
    """
    unreachable = current().get_or_make("unreachable drivers", set[Address])
    if address in unreachable:
        yield _report_nothing
        return
    try:
        line = socket.create_connection(address, CONNECT_SECONDS)
    except OSError:
        unreachable.add(address)
        yield _report_nothing
        return
    line.settimeout(None)
    over = threading.Lock()

    def send(data: bytes) -> None:
        with contextlib.suppress(OSError):  # the end of the driver shows elsewhere
            line.sendall(data)

    def watch() -> None:
        with contextlib.suppress(OSError):  # reset, where the driver was killed
            line.recv(1)
        if over.acquire(blocking=False):
            stop()

    thread = threading.Thread(target=watch, name="lifeline", daemon=True)
    thread.start()
    try:
        send(token)
        yield Sending(lambda *counts: send(_NEWS.pack(*counts)), NEWS_SECONDS) if token else _report_nothing
    finally:
        over.acquire(blocking=False)
        forget()
        with contextlib.suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)  # which ends `recv`; `close` would not
        line.close()


def _report_nothing(documents: int, size: int) -> None:
    """Send nothing."""


class DriverState(NamedTuple):
    """The driver's state, for tasks to copy."""

    version: str
    folder: str
    environment: dict[str, str]
    line: Address | None = None
    token: bytes = b""


class UnfitNode(NamedTuple):
    """The reason why a node cannot do any task."""

    reason: str


class TaskReply(NamedTuple):
    """The reply of a node: the result, pickled by `pickle_result`, and its reports."""

    result: bytes
    documents: int = 0
    bytes: int = 0


def version() -> str:
    """Return the installed version."""
    return distribution.version()


def driver_state(line: Address | None = None) -> DriverState:
    """Return the state of this process, for tasks. They connect to `line`. `token` is a task's own."""
    carried = {name: value for name, value in os.environ.items() if name.startswith(CARRIED)}
    return DriverState(version(), os.getcwd(), carried, line)


def run_remote(driver: DriverState, pickled: bytes) -> bytes:
    """Run a task.

    Args:
        driver: State of the driver.
        pickled: Pickled function and task.

    Returns:
        `TaskReply` or `UnfitNode`, pickled.
    """
    with watched_by_driver(driver.line, driver.token) if driver.line else contextlib.nullcontext() as tell:
        return pickle.dumps(_take_over(driver) or _run(pickled, tell))


def _take_over(driver: DriverState) -> UnfitNode | None:
    """Make this process like the driver; return the obstacle, or None."""
    here = socket.gethostname()
    if version() != driver.version:
        return UnfitNode(f"expected {NAME} {driver.version} on every node, got {version()} on {here}; install the same")
    try:
        os.chdir(driver.folder)
    except OSError as error:
        return UnfitNode(
            f"expected the working directory {driver.folder} on every node, got on {here}: {error.strerror}; "
            "run in a folder that all nodes share"
        )
    for prefix in CARRIED:  # half of the one's credentials and half of the other's are none
        if any(name.startswith(prefix) for name in driver.environment):
            for name in [name for name in os.environ if name.startswith(prefix)]:
                del os.environ[name]
    os.environ.update(driver.environment)
    return None


def _run(pickled: bytes, tell: Report | None) -> TaskReply | UnfitNode:
    try:
        loaded: tuple[Callable[[Any, Report], Any], Task[Any]] = pickle.loads(pickled)  # noqa: S301  # from the caller
    except Exception as error:
        here, problem = socket.gethostname(), f"{type(error).__name__}: {error}"
        return UnfitNode(f"expected the Python modules of the calling process on every node, got on {here}: {problem}")
    function, task = loaded
    documents = size = 0

    def report(more: int, longer: int) -> None:
        nonlocal documents, size
        documents, size = documents + more, size + longer
        if tell:
            tell(more, longer)

    result = pickle_result(run_task(function, task, report))
    return TaskReply(result, documents, size)
