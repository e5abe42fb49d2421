"""A web server on loopback that behaves badly on demand: drops, refuses, throttles, and lies about lengths."""

import hashlib
import http.server
import random
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import unquote

from tests.serving import Server, serving
from tests.waiting import PATIENCE


@dataclass(frozen=True)
class Request:
    """What was asked, and the bytes of the body that are sent."""

    method: str
    path: str
    range: str | None
    agent: str
    status: int
    sent: int = 0


@dataclass
class Behaviour:
    """How a server answers.

    Attributes:
        chances: of a fault of each kind: ``drop`` and ``reset`` (the body ends at a random byte), or a status.
        seed: of the faults.
        only: faults and lies are for paths that end so.
        retry_after: what a refusal says.
        rate: bytes a second of each body, 0 for as fast as it goes.
        half: is waited for in the middle of each body; nothing, if None.
        meeting: no body is sent before so many have been asked for at the same time.
        sent: is set when a body has been sent.
        length: what answers say of it; ``lying`` by so many bytes.
        lying: bytes, negative if the said length is too small.
        ranges: whether parts are given as asked, the whole instead, or another part.
        etag: whether there is one.
        elsewhere: where files are redirected to.
        head: whether HEAD is known.
        log: of all requests.
        alive: answers that are being sent now, and the most at a time so far.
    """

    chances: dict[str, float] = field(default_factory=dict)
    seed: int = 0
    only: str = ""
    retry_after: str | None = "0"
    rate: int = 0
    half: threading.Event | None = None
    meeting: int = 1
    sent: threading.Event = field(default_factory=threading.Event)
    length: Literal["said", "chunked", "none"] = "said"
    lying: int = 0
    ranges: Literal["right", "ignored", "wrong"] = "right"
    etag: bool = True
    elsewhere: str = ""
    head: bool = True
    log: list[Request] = field(default_factory=list)
    alive: int = 0
    most: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self.lock = threading.Lock()
        self.met = threading.Event()

    def fault(self, path: str, size: int) -> tuple[str, int]:
        """Of the next answer, and how many bytes of its body are sent."""
        with self.lock:
            if not path.endswith(self.only):
                return "", size
            kinds, weights = list(self.chances), list(self.chances.values())
            kind = self._random.choices([*kinds, ""], [*weights, max(0.0, 1 - sum(weights))])[0]
            return kind, self._random.randrange(size) if kind in ("drop", "reset") and size else size

    def bodies(self, path: str) -> list[Request]:
        return [each for each in self.log if each.method == "GET" and each.path.endswith(path)]


def _handler(root: Path, behaviour: Behaviour) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            with behaviour.lock:
                behaviour.alive += 1
                behaviour.most = max(behaviour.most, behaviour.alive)
                if behaviour.most >= behaviour.meeting:
                    behaviour.met.set()
            try:
                self._answer(body=True)
            finally:
                with behaviour.lock:
                    behaviour.alive -= 1

        def _answer(self, *, body: bool) -> None:
            path = root / unquote(self.path.partition("?")[0]).lstrip("/")
            if not path.is_file():
                return self._say(404)
            if not body and not behaviour.head:
                return self._say(501)
            data = path.read_bytes()
            asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
            first = int(asked[1]) if asked and behaviour.ranges != "ignored" else 0
            if behaviour.elsewhere and self.path.endswith(behaviour.only):
                return self._say(302, {"Location": behaviour.elsewhere})
            total = len(data)
            is_part = bool(asked) and behaviour.ranges != "ignored" and first < total
            if is_part and asked and asked[2]:
                data = data[: int(asked[2]) + 1]
            kind, end = behaviour.fault(self.path, max(0, len(data) - first))
            if kind.isdigit():
                return self._say(int(kind))
            if first >= total and first:
                return self._say(416, {"Content-Range": f"bytes */{total}"})
            if first and behaviour.ranges == "wrong" and self.path.endswith(behaviour.only):
                first -= 1
            lying = behaviour.lying if self.path.endswith(behaviour.only) else 0
            headers = {"Last-Modified": self.date_time_string(path.stat().st_mtime)}
            if behaviour.etag:
                headers["ETag"] = f'"{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"'
            if is_part:
                headers["Content-Range"] = f"bytes {first}-{len(data) - 1}/{total + lying}"
            said = max(0, len(data) - first + lying)
            if behaviour.length == "said":
                headers["Content-Length"] = str(said)
            elif behaviour.length == "chunked":
                headers["Transfer-Encoding"] = "chunked"
            self.close_connection = True
            headers["Connection"] = "close"
            sent = data[first : first + min(end, said)] if body else b""
            self._log(206 if is_part else 200, len(sent))
            self._begin(206 if is_part else 200, headers)
            if body:
                self._send(sent, chunked=behaviour.length == "chunked")
                if kind == "reset":
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.connection.close()
                elif not kind and behaviour.length == "chunked":
                    self.wfile.write(b"0\r\n\r\n")

        def _send(self, data: bytes, *, chunked: bool) -> None:
            assert behaviour.met.wait(PATIENCE)
            sent, began = 0, time.monotonic()
            size = 1 << 16 if not behaviour.rate else max(1, behaviour.rate // 50)
            middle = behaviour.half if self.path.endswith(behaviour.only) else None
            with suppress(OSError):
                while sent < len(data):
                    if middle:
                        size = min(size, max(1, len(data) // 2 - sent))
                        if sent >= len(data) // 2:
                            assert middle.wait(PATIENCE)
                            middle, size = None, len(data)
                    block = data[sent : sent + size]
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(block), block) if chunked else block)
                    sent += len(block)
                    if behaviour.rate:
                        time.sleep(max(0.0, began + sent / behaviour.rate - time.monotonic()))
                self.wfile.flush()
                if self.path.endswith(behaviour.only):
                    behaviour.sent.set()

        def _say(self, status: int, headers: dict[str, str] | None = None) -> None:
            retry = {} if behaviour.retry_after is None or status == 416 else {"Retry-After": behaviour.retry_after}
            self._log(status, 0)
            self._begin(status, {"Content-Length": "0", **retry, **(headers or {})})

        def _begin(self, status: int, headers: dict[str, str]) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

        def _log(self, status: int, sent: int) -> None:
            asked, agent = self.headers.get("Range"), self.headers.get("User-Agent", "")
            behaviour.log.append(Request(self.command, self.path, asked, agent, status, sent))

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


@contextmanager
def web(root: Path, behaviour: Behaviour) -> Iterator[str]:
    """The URL of a server of the files in a folder, with a slash at its end."""
    with serving(Server(_handler(root, behaviour))) as server:
        yield f"{server.url}/"
