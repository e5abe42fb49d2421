"""WET files, as they are stored."""

import gzip

from tests.fuzz.targets._files import read_input

_INFO = b"WARC/1.0\r\nWARC-Type: warcinfo\r\nWARC-Record-ID: <urn:0>\r\nContent-Length: 2\r\n\r\nab\r\n\r\n"


def _record(number: int, text: bytes, *headers: bytes) -> bytes:
    lines = [
        b"WARC/1.0", b"WARC-Type: conversion", b"WARC-Record-ID: <urn:%d>" % number,
        b"WARC-Date: 2024-01-02T03:04:05Z", b"Content-Type: text/plain", *headers, b"Content-Length: %d" % len(text),
    ]  # fmt: skip
    return b"\r\n".join(lines) + b"\r\n\r\n" + text + b"\r\n\r\n"


_PLAIN = _INFO + _record(1, "Grüße\nzwei".encode()) + _record(2, b"\xff\xfe broken", b"X: 1", b"X: 2")
SEEDS = [
    _PLAIN,
    gzip.compress(_PLAIN, mtime=0),
    gzip.compress(_INFO, mtime=0) + gzip.compress(_record(1, b"a"), mtime=0),
    _record(1, b"WARC/1.0\r\nWARC-Type: conversion\r\n\r\n"),
    _record(3, b"a", b"Folded: a\r\n  b"),
    _PLAIN.replace(b"\r\n", b"\n"),
]


def check(data: bytes) -> None:
    for how in ("replace", "drop_line", "drop_document"):
        read_input(data, "wet", invalid_utf8=how)
