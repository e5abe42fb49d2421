"""HTTP answers as crawlers keep them: whole, decoded already, damaged, or hostile."""

import gzip
import lzma
import random
import zlib
from datetime import UTC, datetime
from email.utils import format_datetime

import brotli
import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from tests.data.test_documents import TEXTS
from toolkit.data.documents import split_lines
from toolkit.ingest.input_rows.rows import trim
from toolkit.ingest.web.html import charset_of, decode_page, is_binary, parse_content_type, sniff_type
from toolkit.ingest.web.http import YEARS, TooLarge, UnknownCoding, decode_body, http_date, parse_response
from toolkit.storage.compression import zstd
from toolkit.text.json_strings import trimmed

TEXT = b"<p>a page</p>" * 500
LIMIT = 1_000_000


def chunked(body: bytes, size: int = 1000) -> bytes:
    chunks = [body[i : i + size] for i in range(0, len(body), size)]
    return b"".join(b"%x;x=y\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\nX-Trailer: 1\r\n\r\n"


def body_of(body: bytes, *headers: str, limit: int = LIMIT) -> tuple[bytes, list[str]]:
    head = "HTTP/1.1 200 OK\r\n" + "".join(f"{header}\r\n" for header in headers) + "\r\n"
    answer = parse_response(head.encode() + body)
    assert answer
    return decode_body(answer, limit)


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
        assert sniff_type(html) == "text/html"
    for text in (b"", b"plain", b"<paragraph>", "\ufeffx".encode("utf-16-be")):
        assert sniff_type(text) == "text/plain"
    assert sniff_type(b"MZ\x90\x00\x03") == "application/octet-stream"
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


# Dates of HTTP: the three forms of RFC 9110, zones, and what is none.

SAME = "1994-11-06T08:49:37Z"
FIRST, LAST = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (YEARS[0], YEARS[-1] + 1))
MOMENTS = st.integers(FIRST, LAST - 1).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", SAME),
        (" sun, 6 nov 1994 08:49:37 gmt\t", SAME),
        ("06 Nov 1994 08:49:37 UTC", SAME),
        ("Sunday, 06-Nov-94 08:49:37 GMT", SAME),
        ("Sun, 06-Nov-1994 08:49:37 GMT", SAME),
        ("Sun Nov  6 08:49:37 1994", SAME),
        ("Sun Nov  6 08:49:37 GMT 1994", SAME),
        ("Sun, 06 Nov 1994 03:49:37 EST", SAME),
        ("Sun, 06 Nov 1994 10:49:37 +0200", SAME),
        ("Sun, 06 Nov 1994 08:49:37 -0000", SAME),
        ("Thu, 31 Dec 1998 23:59:60 GMT", "1998-12-31T23:59:59Z"),
        ("Thu, 29 Feb 2024 00:00:00 GMT", "2024-02-29T00:00:00Z"),
        ("Mon, 01 Jan 1990 00:00:00 GMT", "1990-01-01T00:00:00Z"),
        ("Mon, 01 Jan 1990 00:00:00 +0001", None),  # in UTC it is 1989
        ("Thu, 01 Jan 1970 00:00:00 GMT", None),
        ("Sat, 01 Jan 0000 00:00:00 GMT", None),
        ("Fri, 31 Dec 9999 23:59:59 -2359", None),
        ("Fri, 31 Dec 10000 23:59:59 GMT", None),
        ("Sun, 06 Nov 1994 08:49:37 CEST", None),  # no zone of RFC 5322
        ("Sun, 06 Nov 1994 08:49:37", None),  # in which zone?
        ("Sun, 06 Nov 1994 08:49:37 +2400", None),
        ("Wed, 29 Feb 2023 00:00:00 GMT", None),
        ("Sun, 06 Nov 1994 24:00:00 GMT", None),
        ("Sun, 06 Nov 1994 08:49:61 GMT", None),
        ("Sun, 06 Now 1994 08:49:37 GMT", None),
        ("Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT", None),
        ("So, 06 Nov ١٩٩٤ 08:49:37 GMT", None),
        ("2024-05-18T01:58:10Z", None),
        ("784111777", None),
        ("", None),
    ],
)
def test_dates_of_http(value: str, expected: str | None) -> None:
    assert http_date(value) == expected


@pytest.mark.parametrize(
    ("year", "seen", "expected"),
    [
        ("94", "2014-08-20T00:00:00Z", "1994"),
        ("14", "2014-08-20T00:00:00Z", "2014"),
        ("64", "2014-08-20T00:00:00Z", "2064"),
        ("65", "2014-08-20T00:00:00Z", None),  # 1965
        ("98", "2060-01-01T00:00:00Z", "2098"),
        ("94", None, "1994"),
        ("24", "?", "2024"),
    ],
)
def test_years_of_two_digits_are_told_by_when_the_page_was_fetched(
    year: str, seen: str | None, expected: str | None
) -> None:
    found = http_date(f"Sunday, 06-Nov-{year} 08:49:37 GMT", seen)
    assert (found and found[:4]) == expected


@given(moment=MOMENTS)
def test_what_python_writes_is_read(moment: datetime) -> None:
    expected = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert http_date(format_datetime(moment, usegmt=True)) == expected
    assert http_date(moment.ctime()) == expected


@pytest.mark.slow
@given(value=st.text(alphabet="SunMoJ, 0123456789:-+GMT\t", max_size=40) | st.text(max_size=20))
def test_nothing_is_an_error(value: str) -> None:
    found = http_date(value)
    assert found is None or datetime.fromisoformat(found).tzinfo


# The text of a page's bytes, as browsers find it.

RUSSIAN = "Привет, мир! Это довольно длинный текст на русском языке, чтобы было что узнавать."
JAPANESE = "これは日本語の文章です。文字コードの判定を試します。"


def page(text: str, codec: str, head: str = "") -> bytes:
    return f"<html><head>{head}<title>t</title></head><body><p>{text}</p></body></html>".encode(codec)


@pytest.mark.parametrize(
    ("label", "charset"),
    [
        ("latin1", "windows-1252"),
        (" ISO-8859-1 ", "windows-1252"),
        ("us-ascii", "windows-1252"),
        ("utf8", "utf-8"),
        ("GB2312", "gbk"),
        ("x-sjis", "shift_jis"),
        ("iso-8859-9", "windows-1254"),
        ("iso-8859-2", "iso-8859-2"),
        ("tis-620", "windows-874"),
        ("ks_c_5601-1987", "euc-kr"),
        ("utf-16", "utf-16le"),
        ("macintosh", "macintosh"),
        ("x-mac-cyrillic", "x-mac-cyrillic"),
        ("none", None),
        ("utf-7", None),
        ("é", None),
        ("", None),
    ],
)
def test_labels_mean_what_browsers_take_them_for(label: str, charset: str | None) -> None:
    assert charset_of(label) == charset


@pytest.mark.parametrize(
    ("data", "label", "charset", "text"),
    [
        (page(RUSSIAN, "cp1251"), "windows-1251", "windows-1251", RUSSIAN),
        (page(RUSSIAN, "koi8-r", '<META content="text/html; charset=KOI8-R" http-equiv=x>'), "", "koi8-r", RUSSIAN),
        (page(RUSSIAN, "cp1251", "<!-- <meta charset=koi8-r> --><meta charset='cp1251'>"), "", "windows-1251", RUSSIAN),
        (page(RUSSIAN, "koi8-r", "<meta charset=windows-1251>"), "koi8-r", "koi8-r", RUSSIAN),
        (b'<?xml version="1.0" encoding="shift_jis"?>' + page(JAPANESE, "cp932"), "", "shift_jis", JAPANESE),
        (page("① 髙", "cp932"), "Shift_JIS", "shift_jis", "① 髙"),
        (page("€ “x”", "cp1252"), "iso-8859-1", "windows-1252", "€ “x”"),
        ("\ufeff".encode("utf-16-le") + page(JAPANESE, "utf-16-le"), "utf-8", "utf-16le", JAPANESE),
        ("\ufeff".encode("utf-16-be") + page(JAPANESE, "utf-16-be"), "", "utf-16be", JAPANESE),
        ("\ufeff".encode() + page(JAPANESE, "utf-8"), "euc-jp", "utf-8", JAPANESE),
        (page(JAPANESE, "utf-8", "<meta charset=utf-16>"), "", "utf-8", JAPANESE),
        (page("x", "ascii", " " * 5000 + "<meta charset=gbk>"), "", "gbk", "x"),
        (page("\u4e2d\u6587\U00020087", "gb18030"), "gb2312", "gbk", "\u4e2d\u6587\U00020087"),
    ],
)
def test_the_encoding_is_found_as_browsers_do(data: bytes, label: str, charset: str, text: str) -> None:
    found = decode_page(data, label)
    assert found.charset == charset
    assert f"<p>{text}</p>" in found.text
    assert not found.text.startswith("\ufeff")
    assert (found.guessed, found.disbelieved, found.replaced) == (False, False, False)


@pytest.mark.parametrize(
    ("codec", "charset", "text"),
    [
        ("utf-8", "utf-8", JAPANESE),
        ("cp1251", "windows-1251", RUSSIAN),
        ("euc_jp", "euc-jp", JAPANESE),
        ("ascii", "utf-8", "plain"),
    ],
)
def test_without_a_declaration_it_is_found_from_the_bytes(codec: str, charset: str, text: str) -> None:
    found = decode_page(page(text, codec), "no such encoding")
    assert (found.charset, found.disbelieved, found.replaced) == (charset, False, False)
    assert found.guessed == (charset != "utf-8")
    assert text in found.text


def test_plain_text_declares_nothing() -> None:
    data = "<meta charset=koi8-r> ü".encode()
    assert decode_page(data, "", declares=False).charset == "utf-8"
    assert decode_page(data, "").charset == "koi8-r"


def test_an_encoding_in_which_most_is_invalid_is_not_believed() -> None:
    found = decode_page(page(RUSSIAN, "cp1251"), "utf-8")
    assert (found.charset, found.disbelieved, found.replaced) == ("windows-1251", True, False)
    assert RUSSIAN in found.text
    found = decode_page(page(RUSSIAN, "cp1251", "<meta charset=windows-1251>"), "utf-8")
    assert (found.charset, found.disbelieved, found.guessed) == ("windows-1251", True, False)


def test_a_few_invalid_bytes_are_replaced() -> None:
    found = decode_page(page(RUSSIAN, "utf-8") + b"\xff and \xc3", "utf-8")
    assert (found.charset, found.disbelieved, found.replaced) == ("utf-8", False, True)
    assert found.text.endswith("\ufffd and \ufffd")
    cut = page(JAPANESE, "utf-8")[:-18]
    assert decode_page(cut + "語".encode()[:2], "").charset == "utf-8"


def test_bytes_that_windows_1252_does_not_assign_are_controls() -> None:
    found = decode_page(b"a\x81b\x80", "latin1")
    assert (found.text, found.replaced) == ("a\x81b€", False)
    greek = decode_page(b"<p>\xe1\xe2\xe3\xd2</p>", "windows-1253")
    assert (greek.text, greek.replaced) == ("<p>αβγ\ufffd</p>", True)


# Trimming: the lines that stay, held against the definition written out.


@given(TEXTS, st.integers(1, 4))
@example("aaaa", 4)
@example("aaaa", 5)
@example("a\naaaa\na", 4)
@example("aaaa\r\na\naaaa\n\n", 4)
@example("\n\naaa\r\n", 4)
def test_short_lines_at_both_ends_are_left_out(text: str, min_chars: int) -> None:
    lines = split_lines(text)
    long = [i for i, line in enumerate(lines) if len(line) >= min_chars]
    kept = "\n".join(lines[long[0] : long[-1] + 1]) if long else None
    assert trim(text, min_chars) == kept
    utf8 = text.encode()
    begins, ends, states = trimmed(b"\n" + utf8, np.array([1]), np.array([1 + len(utf8)]), min_chars)
    assert states == [-1 if "\r" in text else kept is not None]
    assert kept is None or states == [-1] or utf8[begins[0] - 1 : ends[0] - 1].decode() == kept
