"""An OpenAI-compatible server on loopback that does what the documents tell it: ``[500 2]`` fails twice with 500."""

import json
import re
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.waiting import PATIENCE

ORDER = re.compile(r"\[(\w+)(?: (\d+))?\]")
"""What a text asks for, and how many times; without a number, always."""

ANSWER = "Because.\nEducational score: {}"


class Server(ThreadingHTTPServer):
    """Answers with a score that is the number of code points of the prompt, modulo 6.

    Attributes:
        bodies: of all requests.
        answered: how often each request was answered with 200, by what it asks (`asked`).
        headers: of the last request.
        held: requests that wait for `release`: those behind the first `holds_after`.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lock = threading.Lock()
        self.bodies: list[dict[str, Any]] = []
        self.answered: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.headers: dict[str, str] = {}
        self.held = 0
        self.most = self.at_once = 0
        self.holds_after = sys.maxsize
        self.release = threading.Event()
        self.ignores_n = False
        self.always = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that have gone."""


def asked(body: dict[str, Any]) -> str:
    """Return what a request asks, the same for the same."""
    return json.dumps(body, sort_keys=True)


def prompt_of(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"] if "messages" in body else body["prompt"])


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.bodies.append(body)
            holds = len(server.bodies) > server.holds_after
            server.held += holds
            server.headers = {**self.headers}
            server.at_once += 1
            server.most = max(server.most, server.at_once)
        try:
            if holds:
                server.release.wait(PATIENCE)
            self._answer(body)
        finally:
            with server.lock:
                server.at_once -= 1

    def _answer(self, body: dict[str, Any]) -> None:
        server, prompt = self.server, prompt_of(body)
        found = ORDER.search(prompt)
        order, times = (found[1], found[2]) if found else (server.always, None)
        with server.lock:
            server.done[prompt] += 1
            if times is not None and server.done[prompt] > int(times):
                order = ""
        if order.isdigit():
            after = {"Retry-After": "0"} if order == "429" else {}
            return self._send(int(order), {"error": {"message": f"told to fail with {order}"}}, after)
        if order == "drop":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return None
        if order == "hang":
            server.release.wait(PATIENCE)
            self.close_connection = True
            return None
        if order == "half":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'{"choices"')
            self.wfile.flush()
            server.release.wait(PATIENCE)
            self.close_connection = True
            return None
        if order == "garbage":
            return self._raw(200, b"<html>it works!</html>")
        texts = {"silent": "", "rambling": "x" * 2000, "eleven": ANSWER.format(11)}
        text = texts.get(order, ANSWER.format(len(prompt) % 6))
        count = 1 if server.ignores_n else int(body.get("n", 1))
        choices: list[dict[str, Any]] = [
            {"index": i, "finish_reason": "length" if order == "rambling" else "stop"} for i in range(count)
        ]
        for choice in choices:
            choice |= {"message": {"role": "assistant", "content": text}} if "messages" in body else {"text": text}
        with server.lock:
            server.answered[asked(body)] += 1
        usage = {"prompt_tokens": 100, "completion_tokens": 10 * count}
        return self._send(200, {"choices": choices, "usage": usage})

    def _send(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        self._raw(status, json.dumps(body).encode(), headers)

    def _raw(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def serving() -> Iterator[Server]:
    """Yield a server that runs, and end it."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield server
        finally:
            server.release.set()
            with suppress(OSError):
                server.shutdown()
            thread.join()
