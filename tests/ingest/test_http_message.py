"""HTTP answers as crawlers keep them: whole, decoded already, damaged, or hostile."""

import gzip
import lzma
import random
import zlib

import brotli
import pytest

from toolkit.ingest.web.html import is_binary, parse_content_type, sniffed
from toolkit.ingest.web.http import TooLarge, UnknownCoding, decoded_body, parse_response
from toolkit.storage.compression import zstd

TEXT = b"<p>a page</p>" * 500
LIMIT = 1_000_000


def chunked(body: bytes, size: int = 1000) -> bytes:
    chunks = [body[i : i + size] for i in range(0, len(body), size)]
    return b"".join(b"%x;x=y\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\nX-Trailer: 1\r\n\r\n"


def body_of(body: bytes, *headers: str, limit: int = LIMIT) -> tuple[bytes, list[str]]:
    head = "HTTP/1.1 200 OK\r\n" + "".join(f"{header}\r\n" for header in headers) + "\r\n"
    answer = parse_response(head.encode() + body)
    assert answer
    return decoded_body(answer, limit)


@pytest.mark.parametrize("end", ["\r\n", "\n"])
def test_an_answer_is_divided_into_status_headers_and_body(end: str) -> None:
    lines = ["HTTP/1.1 404 Not: Found", "content-TYPE:text/html ", "X: 1", "no colon", "x:2", "", "a\r\n\r\nb"]
    answer = parse_response(end.join(lines).encode())
    assert answer
    assert (answer.status, answer.body) == (404, b"a\r\n\r\nb")
    assert answer.headers == {"content-type": ["text/html"], "x": ["1", "2"]}


@pytest.mark.parametrize(
    ("block", "status"),
    [(b"HTTP/2 200\r\n\r\nx", 200), (b"HTTP/1.0 301", 301), (b"", None), (b"<html>", None), (b"HTTP/1.1 OK\r\n", None)],
)
def test_what_is_no_answer_is_none(block: bytes, status: int | None) -> None:
    answer = parse_response(block)
    assert (answer and answer.status) == status


def deflate(data: bytes) -> bytes:
    raw = zlib.compressobj(wbits=-15)
    return raw.compress(data) + raw.flush()


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (TEXT, []),
        (TEXT, ["Content-Encoding: identity"]),
        (chunked(TEXT), ["Transfer-Encoding: chunked"]),
        (gzip.compress(TEXT, mtime=0), ["Content-Encoding: gzip"]),
        (gzip.compress(TEXT[:99], mtime=0) + gzip.compress(TEXT[99:], mtime=0), ["Content-Encoding: x-gzip"]),
        (zlib.compress(TEXT), ["Content-Encoding: deflate"]),
        (deflate(TEXT), ["Content-Encoding: Deflate"]),
        (brotli.compress(TEXT), ["Content-Encoding: br"]),
        (zstd().compress(TEXT), ["Content-Encoding: zstd"]),
        (gzip.compress(TEXT, mtime=0), ["Content-Encoding:", "\tgzip"]),
        (chunked(gzip.compress(TEXT, mtime=0), 7), ["Transfer-Encoding: Chunked", "Content-Encoding: gzip"]),
        (brotli.compress(gzip.compress(TEXT, mtime=0)), ["Content-Encoding: gzip, br"]),
    ],
)
def test_codings_are_undone(body: bytes, headers: list[str]) -> None:
    assert body_of(body, *headers) == (TEXT, [])


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br"])
def test_a_body_that_is_not_coded_as_its_header_says_is_taken_as_it_is(coding: str) -> None:
    assert body_of(TEXT, f"Content-Encoding: {coding}") == (TEXT, [f"not_{coding}"])
    assert body_of(b"", f"Content-Encoding: {coding}") == (b"", [])
    assert body_of(TEXT, "Transfer-Encoding: chunked") == (TEXT, ["not_chunked"])


def test_a_body_that_is_cut_off_is_taken_as_far_as_it_goes() -> None:
    noise = bytes(i * i % 251 for i in range(5000)) * 3
    for coding, body in (("gzip", gzip.compress(noise)), ("br", brotli.compress(noise)), ("deflate", deflate(noise))):
        found, notes = body_of(body[:-9], f"Content-Encoding: {coding}")
        assert notes == [f"broken_{coding}"]
        assert found
        assert noise.startswith(found)
    assert body_of(chunked(TEXT)[:2500], "Transfer-Encoding: chunked")[1] == ["broken_chunked"]
    assert body_of(b"3\r\nabc\r\nrest", "Transfer-Encoding: chunked") == (b"abcrest", ["broken_chunked"])


def test_a_small_body_that_grows_beyond_the_limit_is_refused() -> None:
    bomb = b"\0" * 50_000_000
    for coding, body in (("gzip", gzip.compress(bomb)), ("br", brotli.compress(bomb, quality=1))):
        with pytest.raises(TooLarge):
            body_of(body, f"Content-Encoding: {coding}")
    with pytest.raises(TooLarge):
        body_of(TEXT, limit=10)


def test_hostile_bodies_take_no_time() -> None:
    many = gzip.compress(b"") * 40_000
    assert body_of(many, "Content-Encoding: gzip")[1] == ["not_gzip"]
    damaged = bytearray(gzip.compress(TEXT * 100, compresslevel=0))
    damaged[len(damaged) // 2 : len(damaged) // 2 + 70_000] = b"\xff" * 70_000
    found, notes = body_of(bytes(damaged), "Content-Encoding: gzip")
    assert notes == ["broken_gzip"]
    assert found.startswith(TEXT)
    assert parse_response(b"HTTP/1.1 200 OK\r\n" + b"a\n" * 1_000_000) is None


def test_an_unknown_coding_is_named() -> None:
    with pytest.raises(UnknownCoding, match="dcb"):
        body_of(TEXT, "Content-Encoding: dcb")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("text/html; charset='utf-8'", ("text/html", "utf-8")),
        ("TEXT/Html ;foo=bar;CHARSET = gbk", ("text/html", "gbk")),
        ("text/html, text/html; charset=x", ("text/html", "x")),
        ("html", ("", "")),
        ("text/html\x00\n" + "x" * 99, ("", "")),
        ("", ("", "")),
    ],
)
def test_a_content_type_is_read(value: str, found: tuple[str, str]) -> None:
    assert parse_content_type(value) == found


def test_what_nobody_has_named_is_told_by_its_first_bytes() -> None:
    for html in (b"\n <!DOCTYPE html>", b"<P >x", b"<!-- x", "\ufeff<html>".encode("utf-16-le"), b"\xef\xbb\xbf<body>"):
        assert sniffed(html) == "text/html"
    for text in (b"", b"plain", b"<paragraph>", "\ufeffx".encode("utf-16-be")):
        assert sniffed(text) == "text/plain"
    assert sniffed(b"MZ\x90\x00\x03") == "application/octet-stream"
    assert is_binary(b"\x89PNG\r\n")
    assert not is_binary(b"<html>")


@pytest.mark.parametrize(
    ("body", "charset", "found"),
    [
        (b"\0\0\0\x20ftypisom\0\0\x02\0isomiso2avc1mp41", "", True),
        (b"MZ\x90\0\x03\0\0\0\x04\0\0\0\xff\xff", "", True),
        (b"RIFF\x24\0\0\0WEBPVP8 \x18\0\0\0", "", True),
        (random.Random(0).randbytes(3000), "utf-8", True),
        (lzma.compress(TEXT), "", True),
        ("<p>text".encode("utf-16-le"), "UTF-16", False),
        ("\ufefftext".encode("utf-16"), "", False),
        ("日本語\x1b".encode("iso2022_jp") * 50, "", False),
        (b"a form\x0cfeed, and a \0 by mistake", "", False),
        (bytes(range(0x80, 0x100)) * 9, "koi8-r", False),
    ],
)
def test_binary_data_that_is_called_text_is_told_by_its_control_characters(
    body: bytes, charset: str, found: bool
) -> None:
    assert is_binary(body, charset) == found
