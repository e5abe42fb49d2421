"""Replies of servers of language models, as they come from the socket: status, headers, body."""

import io
from typing import Any

import msgspec
import urllib3
from urllib3.connection import HTTPConnection

from toolkit.learn.annotate import requests
from toolkit.learn.annotate.annotator import Annotator, WindowQuery, judge
from toolkit.learn.annotate.answers import Answer
from toolkit.learn.annotate.ledger import Ledger, RateLimiter
from toolkit.learn.annotate.outcomes import CAUSES, NoReply
from toolkit.learn.annotate.prompt import Prompt, ScoreForm
from toolkit.learn.annotate.requests import Endpoint

_TOKENS = 4


def _http(body: bytes, status: bytes = b"200 OK", *headers: bytes) -> bytes:
    length = b"Content-Length: %d" % len(body)
    return b"\r\n".join([b"HTTP/1.1 " + status, *headers, length, b"", body])


def _choice(finish: str = "stop", **message: Any) -> bytes:
    content = {"choices": [{"message": message, "finish_reason": finish}], "usage": {"prompt_tokens": 9}}
    return _http(msgspec.json.encode(content))


SEEDS = [
    _choice(content="score: 3"),
    _choice("length", content='{"score": 3}'),
    _choice("content_filter", content=[{"type": "text", "text": "score: 3"}]),
    _choice(content=None, refusal="I cannot", tool_calls=[{"id": "a"}]),
    _http(b'{"choices":[{"text":"score: 1"},{"text":"\\ud83d\\ude00","finish_reason":"error"}],"usage":{"a":1e3}}'),
    _http(b'{"choices":[]}'),
    _http(b'{"error":{"message":"m","code":"insufficient_quota"}}', b"429 Slow", b"Retry-After: 7"),
    _http(b'{"error":{"message":"away","code":502}}'),
    _http(b"", b"503 Busy", b"Retry-After: Fri, 31 Dec 2199 23:59:59 GMT"),
    _http(b"", b"307 There", b"Location: http://user:secret@host/v1?key=secret"),
    b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n11\r\n{"choices":[{}]}\n\r\n0\r\n\r\n',
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b\x08\x00",
]


class _Socket:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, *_: Any, **__: Any) -> io.BytesIO:
        return io.BytesIO(self._data)

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


class _Connection(HTTPConnection):
    data = b""

    def connect(self) -> None:
        self.sock = _Socket(self.data)


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection

    def clear(self) -> None:
        self.close()


class _Ledger(Ledger):
    """A ledger that holds the endpoint to what it says of each attempt."""

    def __init__(self) -> None:
        self.ended = 0

    def begin(self, prompt: int, answer: int) -> int:
        return 1

    def end(self, key: int, prompt: int | None, answer: int | None) -> None:
        assert all(count is None or 0 <= count < 1 << 40 for count in (prompt, answer))
        self.ended += 1

    def lose(self, key: int) -> None:
        self.ended += 1


_PROMPT = Prompt(prompt_name="p", prompt="{{ text }}", score=ScoreForm(field="score", min=0, max=5))
_ANNOTATORS = [
    Annotator(endpoint="http://h/v1", model="m", prompt=prompt, retries=0, sampling={"max_tokens": _TOKENS})
    for prompt in (_PROMPT, Prompt(prompt_name="p", prompt="{{ text }}"))
]
_KEYS = [f"{i:032x}" for i in range(2)]


def check(data: bytes) -> None:
    ledger = _Ledger()
    endpoint = Endpoint(_ANNOTATORS[0], RateLimiter(None, None), ledger)
    endpoint._pool = _Pool("h")
    _Connection.data = data
    try:
        reply = endpoint.ask({}, len(_KEYS), 1)
    except NoReply as failure:
        assert failure.cause in CAUSES  # noqa: PT017
        assert 0 < len(failure.message) < 1500  # noqa: PT017
        assert failure.message.isprintable()  # noqa: PT017
        return
    finally:
        assert ledger.ended == 1
        endpoint.close()
    answers, _ = requests.answers_of(WindowQuery((0, 1), {}, _KEYS), [0, 1], reply, requests._used(reply, 1))
    assert 0 < len(answers) <= len(_KEYS)
    for answer in answers:
        assert msgspec.json.decode(msgspec.json.encode(answer), type=Answer) == answer
        assert answer.status == "success" or answer.error
        for annotator in _ANNOTATORS:
            status, said = judge(answer, annotator)
            assert (status == "success") == (said.score is not None and not said.error)
