"""WARC files with pages: records, HTTP messages, codings, charsets, HTML."""

import gzip
from collections.abc import Callable
from typing import Any
from unittest import mock

from tests.fuzz.targets._files import read_input
from toolkit.ingest.formats import warc

_PAGE = (
    b"<html><head><meta charset=iso-8859-1><title>T</title></head><body><nav>n</nav><p>Gr\xfc\xdfe und noch mehr Text, "
    b"damit etwas bleibt.</p></body></html>"
)


def _record(answer: bytes, kind: bytes = b"response", more: bytes = b"") -> bytes:
    head = b"WARC/1.1\r\nWARC-Type: %b\r\nWARC-Target-URI: http://a.example/\r\nWARC-Record-ID: <urn:1>\r\n" % kind
    return head + more + b"Content-Length: %d\r\n\r\n" % len(answer) + answer + b"\r\n\r\n"


def _answer(body: bytes, *headers: bytes) -> bytes:
    return b"\r\n".join([b"HTTP/1.1 200 OK", b"Content-Type: text/html", *headers, b"", body])


_WHOLE = _record(_answer(_PAGE))
SEEDS = [
    _WHOLE,
    gzip.compress(_WHOLE, mtime=0),
    _record(_answer(gzip.compress(_PAGE, mtime=0), b"Content-Encoding: gzip")),
    _record(_answer(b"%x\r\n%b\r\n0\r\n\r\n" % (len(_PAGE), _PAGE), b"Transfer-Encoding: chunked")),
    _record(_answer(_PAGE, b"Date: Mon, 01 Jan 2024 00:00:00 GMT", b"Content-Language: de")),
    _record(b"", b"revisit") + _record(b"a: b\r\n", b"metadata"),
    _record(_answer(b"plain"), more=b"WARC-Truncated: length\r\n"),
]


class Here:
    """Extracts in this process: one begun for each input would leave time for nothing else."""

    def __init__(self, make: Callable[[], Callable[[Any], Any]], seconds: float) -> None:
        self._make = make

    def __enter__(self) -> Callable[[Any], Any]:
        return self._make()

    def __exit__(self, *_: object) -> None:
        pass


def check(data: bytes) -> None:
    with mock.patch.object(warc, "Isolated", Here):
        read_input(data, "warc")
