"""The worker on a node of a cluster: does a task as the calling process would, and ends when that one does.

driver: Lifeline(address) listens <──a connection for each running task──> node: held(address) around the task

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
from toolkit.execution.executors import Report, Sending, Task, attempt, packed
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


class News(NamedTuple):
    """Progress of a task since its last update."""

    token: bytes
    documents: int
    bytes: int


class Lifeline:
    """The driver's side: a server in a thread of its own, in a context manager.

    Args:
        host: Host of this machine, as other nodes reach it.
    """

    def __init__(self, host: str) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        bound = host if ipaddress.ip_address(host).is_loopback else ""  # it may be one that a container is known by
        self._server = socket.create_server((bound, 0), family=family, backlog=BACKLOG)
        self._host = host
        self._server.setblocking(False)
        self._told, self._tell = socket.socketpair()
        self._news: deque[News] = deque()
        self._full = False
        self._cut = False
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="lifeline", daemon=True)

    @property
    def address(self) -> Address:
        """The address of the server, for `held`."""
        return self._host, self._server.getsockname()[1]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed = True
        self._tell.send(b".")
        self._thread.join()
        for one in (self._server, self._told, self._tell):
            one.close()

    def cut(self) -> None:
        """Interrupt the tasks that run, and each that begins from now on."""
        self._cut = True
        self._tell.send(b".")

    def news(self) -> Iterator[News]:
        """Yield what tasks have sent since the last call; some of a task's may come after its result."""
        while self._news:
            yield self._news.popleft()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as watched:
            watched.register(self._told, selectors.EVENT_READ)
            watched.register(self._server, selectors.EVENT_READ)
            while not self._closed:
                for key, _ in watched.select():
                    if key.fileobj is self._server:
                        self._accept(watched)
                    elif key.fileobj is self._told:
                        self._told.recv(1)
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
        """Note what a task has sent; return whether the connection goes on."""
        assert isinstance(key.fileobj, socket.socket)
        try:
            data = key.fileobj.recv(1 << 12)
        except OSError:  # reset
            return False
        held: bytearray = key.data
        held += data
        whole = TOKEN_BYTES + (max(len(held) - TOKEN_BYTES, 0) // _NEWS.size) * _NEWS.size
        for documents, size in _NEWS.iter_unpack(held[TOKEN_BYTES:whole]):
            self._news.append(News(bytes(held[:TOKEN_BYTES]), documents, size))
        del held[TOKEN_BYTES:whole]
        return bool(data)

    def _end(self, watched: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        watched.unregister(key.fileobj)
        assert isinstance(key.fileobj, socket.socket)
        key.fileobj.close()
        if self._full:
            watched.register(self._server, selectors.EVENT_READ)
            self._full = False

    def _tasks(self, watched: selectors.BaseSelector) -> list[selectors.SelectorKey]:
        own = (self._server, self._told)
        return [key for key in watched.get_map().values() if key.fileobj not in own]


@contextlib.contextmanager
def held(address: Address, token: bytes = b"") -> Iterator[Report]:
    """Let `toolkit.interrupts.check` raise `KeyboardInterrupt` in the ``with`` block when the driver ends or stops.

    Where the driver cannot be reached, the block runs to its end.

    Args:
        address: Address of the driver's `Lifeline`.
        token: by which the driver knows the task.

    Yields:
        What sends the driver what has been done; nothing without a token.
    """
    unreachable = current().kept("unreachable drivers", set[Address])
    if address in unreachable:
        yield _keep_quiet
        return
    try:
        line = socket.create_connection(address, CONNECT_SECONDS)
    except OSError:
        unreachable.add(address)
        yield _keep_quiet
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
        yield Sending(lambda *done: send(_NEWS.pack(*done)), NEWS_SECONDS) if token else _keep_quiet
    finally:
        over.acquire(blocking=False)
        forget()
        with contextlib.suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)  # which ends `recv`; `close` would not
        line.close()


def _keep_quiet(documents: int, size: int) -> None:
    """Send nothing."""


class Caller(NamedTuple):
    """The state that a task takes over from the calling process."""

    version: str
    folder: str
    environment: dict[str, str]
    line: Address | None = None
    token: bytes = b""


class Unfit(NamedTuple):
    """Why a node cannot do any task."""

    reason: str


class Returned(NamedTuple):
    """The reply of a node: the result, pickled by `packed`, and its reports."""

    result: bytes
    documents: int = 0
    bytes: int = 0


def version() -> str:
    """Return the version that is installed here."""
    return distribution.version()


def caller(line: Address | None = None) -> Caller:
    """Return what tasks take over from this process; they hold on to `line` while they run. `token` is a task's own."""
    carried = {name: value for name, value in os.environ.items() if name.startswith(CARRIED)}
    return Caller(version(), os.getcwd(), carried, line)


def work(given: Caller, pickled: bytes) -> bytes:
    """Do a task.

    Args:
        given: from whom it comes.
        pickled: the function and the task.

    Returns:
        `Returned` or `Unfit`, pickled.
    """
    with held(given.line, given.token) if given.line else contextlib.nullcontext() as tell:
        return pickle.dumps(_unfitness(given) or _done(pickled, tell))


def _unfitness(given: Caller) -> Unfit | None:
    """Make this process like the calling one; return why that is impossible, None if it was possible."""
    here = socket.gethostname()
    if version() != given.version:
        return Unfit(f"expected {NAME} {given.version} on every node, got {version()} on {here}; install the same")
    try:
        os.chdir(given.folder)
    except OSError as error:
        return Unfit(
            f"expected the working directory {given.folder} on every node, got on {here}: {error.strerror}; "
            "run in a folder that all nodes share"
        )
    for prefix in CARRIED:  # half of the one's credentials and half of the other's are none
        if any(name.startswith(prefix) for name in given.environment):
            for name in [name for name in os.environ if name.startswith(prefix)]:
                del os.environ[name]
    os.environ.update(given.environment)
    return None


def _done(pickled: bytes, tell: Report | None) -> Returned | Unfit:
    try:
        loaded: tuple[Callable[[Any, Report], Any], Task[Any]] = pickle.loads(pickled)  # noqa: S301  # from the caller
    except Exception as error:
        here, problem = socket.gethostname(), f"{type(error).__name__}: {error}"
        return Unfit(f"expected the Python modules of the calling process on every node, got on {here}: {problem}")
    function, task = loaded
    documents = size = 0

    def report(more: int, longer: int) -> None:
        nonlocal documents, size
        documents, size = documents + more, size + longer
        if tell:
            tell(more, longer)

    result = packed(attempt(function, task, report))
    return Returned(result, documents, size)
