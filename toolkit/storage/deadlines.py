"""Connections whose answers begin in time: a server that sends headers drop by drop, or for ever, is cut off.

The timeout of a socket bounds one wait for bytes. A header of one byte a second, or ``100 Continue`` again and again,
never lets it expire.
"""

import socket
import threading
from contextlib import suppress
from typing import Any


def bound_headers(pools: Any) -> None:
    """Let whole headers arrive within the timeout of their request, in the connections that pools make from now on.

    Args:
        pools: A pool manager of urllib3, without connections.
    """
    import urllib3

    class Connection(_Bounded, urllib3.connection.HTTPConnection):
        pass

    class SecureConnection(_Bounded, urllib3.connection.HTTPSConnection):
        pass

    class Pool(urllib3.HTTPConnectionPool):
        ConnectionCls = Connection

    class SecurePool(urllib3.HTTPSConnectionPool):
        ConnectionCls = SecureConnection

    pools.pool_classes_by_scheme = {"http": Pool, "https": SecurePool}


class _Bounded:
    """A connection that reads the headers of an answer."""

    sock: Any
    timeout: float | None

    def getresponse(self) -> Any:
        """Return the answer.

        Raises:
            TimeoutError: If its headers are late; the connection has ended then.
        """
        if self.timeout is None or self.sock is None:
            return super().getresponse()  # type: ignore[misc]  # of what is mixed in
        is_late = threading.Event()
        timer = threading.Timer(self.timeout, _cut, [self.sock, is_late])
        timer.daemon = True
        timer.start()
        try:
            return super().getresponse()  # type: ignore[misc]
        finally:
            timer.cancel()
            if is_late.is_set():  # the end of the connection looks like that of the headers
                raise TimeoutError("the headers of the answer are late")


def _cut(connected: socket.socket, is_late: threading.Event) -> None:
    is_late.set()
    with suppress(OSError):  # it is closed already
        socket.socket.shutdown(connected, socket.SHUT_RDWR)  # of TLS, too, whose own state is another thread's
