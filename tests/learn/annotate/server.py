"""An OpenAI-compatible server on loopback that does what the documents tell it: ``[500 2]`` fails twice with 500."""

import json
import re
import socket
import sys
from collections import Counter
from contextlib import AbstractContextManager, suppress
from typing import Any

from tests import serving as servers
from tests.waiting import PATIENCE

ORDER = re.compile(r"\[(\w+)(?: (\d+))?\]")
"""What a text asks for, and how many times; without a number, always."""

ANSWER = "Because.\nEducational score: {}"

HUGE = 8 << 20
"""Bytes of a reply that is larger than an answer can be."""


def _choice(finish: str = "stop", **message: Any) -> bytes:
    """Return a reply whose message is this one."""
    choice = {"message": {"role": "assistant", **message}, "finish_reason": finish}
    return json.dumps({"choices": [choice], "usage": {"prompt_tokens": 100, "completion_tokens": 10}}).encode()


def _error(message: str, **error: Any) -> bytes:
    return json.dumps({"error": {"message": message, **error}}).encode()


_SCORE = ANSWER.format(3)
Fault = tuple[int, bytes, dict[str, str]]
FAULTS: dict[str, Fault] = {
    # what may pass
    "latin": (200, _choice(content="caf@ score: 3").replace(b"@", b"\xe9"), {}),
    "latin503": (503, _error("caf@").replace(b"@", b"\xe9"), {}),
    "page": (200, b"<html>it works!</html>", {}),
    "none": (200, b'{"choices": []}', {}),
    "nan": (200, _choice(content=_SCORE).replace(b"100", b"NaN"), {}),
    "deep": (200, b'{"choices":' + b"[" * 100_000, {}),
    "nothing": (204, b"", {}),
    "aborted": (200, _choice("abort", content=_SCORE), {}),
    "inside": (200, _error("upstream is away", code=502), {}),
    # of the request
    "latin400": (400, _error("caf@").replace(b"@", b"\xe9"), {}),
    "toolong": (400, _error("at most 4096 tokens", code="context_length_exceeded"), {}),
    "large": (413, b"too large", {}),
    "filter400": (400, _error("jailbreak", code="content_filter"), {}),
    "filtered": (200, _choice("content_filter", content=_SCORE), {}),
    "refuses": (200, _choice(content=None, refusal="I cannot help with that."), {}),
    "null": (200, _choice(content=None), {}),
    "tool": (200, _choice("tool_calls", content=None, tool_calls=[{"id": "1"}]), {}),
    "cut": (200, _choice("length", content=f"{_SCORE}. But then, the"), {}),
    "huge": (200, _choice(content="x" * HUGE), {}),
    # of the endpoint
    "moved": (307, b"", {"Location": "http://user:secret@elsewhere/v1?key=secret"}),
    "vanished": (404, _error("The model `org/model` does not exist.", type="NotFoundError", code=404), {}),
    "retired": (400, _error("no longer served", code="model_decommissioned"), {}),
    "unpaid": (429, _error("You exceeded your current quota", type="insufficient_quota"), {}),
    "wrongkey": (400, _error("not valid", code="invalid_api_key"), {}),
    "later": (429, _error("slow down"), {"Retry-After": "100000"}),
    "nextcentury": (503, b"", {"Retry-After": "Fri, 31 Dec 2199 23:59:59 GMT"}),
    # no faults at all
    "twice": (200, _choice(content=_SCORE).replace(b"{", b'{"choices": 7,', 1), {}),
    "odd": (200, _choice(content=_SCORE).replace(b"100", b"-100").replace(b"10}", b'"ten"}'), {}),
    "pause": (503, b"", {"Retry-After": "1"}),
    "past": (503, b"", {"Retry-After": "Thu, 01 Jan 1970 00:00:00 GMT"}),
    "negative": (503, b"", {"Retry-After": "-100000"}),
}
"""What is answered to these orders: status, body and headers."""


class Server(servers.Server):
    """Answers with a score that is the number of code points of the prompt, modulo 6.

    Attributes:
        bodies: of all requests.
        answered: how often each request was answered with 200, by what it asks (`asked`).
        headers: of the last request.
        held: requests that wait for `release`: those behind the first `holds_after`.
        always: what all requests behind the first `orders_after` are answered whose text asks for nothing.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.bodies: list[dict[str, Any]] = []
        self.answered: Counter[str] = Counter()
        self.done: Counter[str] = Counter()
        self.headers: dict[str, str] = {}
        self.held = 0
        self.most = self.at_once = 0
        self.holds_after = sys.maxsize
        self.ignores_n = False
        self.always = ""
        self.orders_after = 0

    @property
    def url(self) -> str:
        return f"{super().url}/v1"


def asked(body: dict[str, Any]) -> str:
    """Return what a request asks, the same for the same."""
    return json.dumps(body, sort_keys=True)


def prompt_of(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"] if "messages" in body else body["prompt"])


class _Handler(servers.Handler):
    server: Server

    def respond(self) -> None:
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.bodies.append(body)
            holds = len(server.bodies) > server.holds_after
            always = server.always if len(server.bodies) > server.orders_after else ""
            server.held += holds
            server.headers = {**self.headers}
            server.at_once += 1
            server.most = max(server.most, server.at_once)
        try:
            if holds:
                server.release.wait(PATIENCE)
            self._answer(body, always)
        finally:
            with server.lock:
                server.at_once -= 1

    def _answer(self, body: dict[str, Any], always: str) -> None:
        server, prompt = self.server, prompt_of(body)
        found = ORDER.search(prompt)
        order, times = (found[1], found[2]) if found else (always, None)
        with server.lock:
            server.done[prompt] += 1
            if times is not None and server.done[prompt] > int(times):
                order = ""
        if order.isdigit():
            after = {"Retry-After": "0"} if order == "429" else {}
            return self.answer_json(int(order), {"error": {"message": f"told to fail with {order}"}}, after)
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
        if order in ("dripping", "continuing"):  # headers byte by byte, and none again and again, until it is cut off
            begin, more = (b"HTTP/1.1 200 OK\r\nX: ", b"x") if order == "dripping" else (b"", b"HTTP/1.1 100 C\r\n\r\n")
            self.close_connection = True
            with suppress(OSError):
                self.connection.sendall(begin)
                while not server.release.wait(0.05):
                    self.connection.sendall(more)
            return None
        if order == "chunk":
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b'1000\r\n{"choices"')
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return None
        if order in FAULTS:
            return self.answer(*FAULTS[order])
        texts = {
            "silent": "",
            "rambling": "x" * 2000,
            "eleven": ANSWER.format(11),
            "object": '```json\n{"score": 3}\n```\n',
            "half_object": '{"score": 3} or {"sco',
        }
        text = texts.get(order, ANSWER.format(len(prompt) % 6))
        count = 1 if server.ignores_n else int(body.get("n", 1))
        choices: list[dict[str, Any]] = [
            {"index": i, "finish_reason": "length" if order in ("rambling", "object", "half_object") else "stop"}
            for i in range(count)
        ]
        if order == "partly":
            choices[1]["finish_reason"] = "error"
        for choice in choices:
            choice |= {"message": {"role": "assistant", "content": text}} if "messages" in body else {"text": text}
        with server.lock:
            server.answered[asked(body)] += 1
        usage = {"prompt_tokens": 100, "completion_tokens": 10 * count}
        return self.answer_json(200, {"choices": choices, "usage": usage})


def serving() -> AbstractContextManager[Server]:
    """Return what yields a server that runs, and ends it."""
    return servers.serving(Server())
