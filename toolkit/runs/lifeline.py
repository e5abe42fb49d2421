"""How tasks on other machines notice that the process has ended, or stops, that wants their results.

driver: Lifeline(address) listens ──a connection for each running task──> node: held(address) around the task

Nothing is ever sent. The end of a connection is the message, so that it comes also from a driver that was killed. Ray's
own ``cancel`` can end the driver when a task finishes at the same moment (ray-project/ray, pull request 54785).
"""

import contextlib
import ipaddress
import selectors
import socket
import threading
from collections.abc import Iterator
from typing import Self

from toolkit.interrupts import hear_interrupts, interrupt

Address = tuple[str, int]

CONNECT_SECONDS = 5.0
BACKLOG = 4096

_unreachable: set[Address] = set()


class Lifeline:
    """The driver's side: a server in a thread of its own, in a context manager.

    Args:
        host: of this machine, as other nodes reach it.
    """

    def __init__(self, host: str) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        bound = host if ipaddress.ip_address(host).is_loopback else ""  # it may be one that a container is known by
        self._server = socket.create_server((bound, 0), family=family, backlog=BACKLOG)
        self._host = host
        self._server.setblocking(False)
        self._told, self._tell = socket.socketpair()
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
                    else:
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
        watched.register(connection, selectors.EVENT_READ)

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
def held(address: Address) -> Iterator[None]:
    """Raise `KeyboardInterrupt` in the ``with`` block, in the main thread, when the driver ends or stops.

    Where the driver cannot be reached, the block runs to its end.
    """
    if address in _unreachable:
        yield
        return
    try:
        line = socket.create_connection(address, CONNECT_SECONDS)
    except OSError:
        _unreachable.add(address)
        yield
        return
    line.settimeout(None)
    hear_interrupts()
    over = threading.Lock()

    def watch() -> None:
        with contextlib.suppress(OSError):  # reset, where the driver was killed
            line.recv(1)
        if over.acquire(blocking=False):
            interrupt()

    thread = threading.Thread(target=watch, name="lifeline", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.acquire(blocking=False)
        with contextlib.suppress(OSError):
            line.shutdown(socket.SHUT_RDWR)  # which ends `recv`; `close` would not
        line.close()
