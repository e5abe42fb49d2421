"""An OpenAI-compatible server on loopback that does what the documents tell it: ``[500 2]`` fails twice with 500."""

import json
import re
import socket
import sys
from collections import Counter
from contextlib import AbstractContextManager
from typing import Any

from tests import serving as servers
from tests.waiting import PATIENCE

ORDER = re.compile(r"\[(\w+)(?: (\d+))?\]")
"""What a text asks for, and how many times; without a number, always."""

ANSWER = "Because.\nEducational score: {}"


class Server(servers.Server):
    """Answers with a score that is the number of code points of the prompt, modulo 6.

    Attributes:
        bodies: of all requests.
        answered: how often each request was answered with 200, by what it asks (`asked`).
        headers: of the last request.
        held: requests that wait for `release`: those behind the first `holds_after`.
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
        if order == "garbage":
            return self.answer(200, b"<html>it works!</html>")
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
        return self.answer_json(200, {"choices": choices, "usage": usage})


def serving() -> AbstractContextManager[Server]:
    """Return what yields a server that runs, and ends it."""
    return servers.serving(Server())
