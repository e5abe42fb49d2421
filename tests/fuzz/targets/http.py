"""HTTP messages as crawlers keep them: head, codings, dates, charsets."""

import gzip
import zlib

import brotli

from tests.fuzz.targets._files import MOST
from toolkit.ingest.web.html import decode_page, is_binary, parse_content_type, sniff_type
from toolkit.ingest.web.http import TooLarge, UnknownCoding, decode_body, http_date, parse_response
from toolkit.storage.compression import compress_zstd

_BODY = "<meta charset=utf-8>Grüße, 日本語".encode()


def _answer(body: bytes, *headers: bytes) -> bytes:
    return b"\r\n".join([b"HTTP/1.1 200 OK", *headers, b"", body])


SEEDS = [
    _answer(_BODY, b"Content-Type: text/html; charset=utf-8", b"Date: Mon, 01 Jan 2024 00:00:00 +0100"),
    _answer(gzip.compress(_BODY, mtime=0) * 2, b"Content-Encoding: x-gzip"),
    _answer(zlib.compress(_BODY), b"Content-Encoding: deflate"),
    _answer(brotli.compress(_BODY), b"Content-Encoding: br"),
    _answer(compress_zstd(_BODY), b"Content-Encoding: zstd"),
    _answer(b"5;x=y\r\nhello\r\n0\r\n\r\n", b"Transfer-Encoding: chunked", b"Content-Encoding: identity"),
    _answer("日本語".encode("iso2022_jp"), b"Content-Type: text/html; charset=iso-2022-jp"),
    _answer("日本語".encode("utf-16"), b'Content-Type: text/plain; charset="utf-16"'),
]


def check(data: bytes) -> None:
    found = parse_response(data)
    if found is None:
        return
    assert len(found.body) <= len(data)
    try:
        body, _ = decode_body(found, MOST)
    except (TooLarge, UnknownCoding):
        body = found.body[:MOST]
    assert len(body) <= MOST
    kind, charset = parse_content_type(found.last("content-type"))
    assert isinstance(kind, str)
    decode_page(body, charset).text.encode()
    sniff_type(body)
    is_binary(body, charset)
    for date in found.headers.get("date", ()):
        told = http_date(date)
        assert told is None or http_date(date, told) is not None
