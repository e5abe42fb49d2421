"""HTTP servers on loopback for tests: each test server is a `Server` with a handler that says what it answers."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar


class Server(ThreadingHTTPServer):
    """A server that answers each request in a thread.

    Attributes:
        lock: for what handlers count.
        release: handlers that hold a request back wait for it; it is set when the server ends.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handler: Callable[..., BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.lock = threading.Lock()
        self.release = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that have gone."""


S = TypeVar("S", bound=Server)


@contextmanager
def serving(server: S) -> Iterator[S]:
    """Yield a server that runs, and end it."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.release.set()
            with suppress(OSError):
                server.shutdown()
            thread.join()


class Handler(BaseHTTPRequestHandler):
    """Answers all requests by `respond`, each in one piece, and keeps connections open."""

    protocol_version = "HTTP/1.1"

    def respond(self) -> None:
        """Answer a request."""
        raise NotImplementedError

    def do_GET(self) -> None:
        self.respond()

    def do_HEAD(self) -> None:
        self.respond()

    def do_PUT(self) -> None:
        self.respond()

    def do_POST(self) -> None:
        self.respond()

    def log_message(self, *_: object) -> None:
        pass

    def answer(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        """Send a whole answer; only its head, if that was asked for."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def answer_json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        """Send JSON."""
        self.answer(status, json.dumps(body).encode(), {"Content-Type": "application/json", **(headers or {})})
