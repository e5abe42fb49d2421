"""HTTP responses as crawlers keep them: status, headers, dates, and the body without its codings.

Crawlers keep the bytes of the line, or decode the body and leave the headers, or cut it off. So a coding that a header
names is undone where the body has it, as far as the body is sound; what was found otherwise is noted.

fastwarc, which reads the records, has a parser of HTTP as well. It is not used: where a crawler has written a bare line
feed before the body (29 of 400 responses of the samples, all of them of one archive), it takes a third of the page for
headers.

Source: RFC 9110 and RFC 9112.

Dates of HTTP, read as far as they can be trusted.

Source: RFC 9110, section 5.6.7, which has three forms; zones of RFC 5322, section 4.3, which servers send beside them.
"""

import contextlib
import functools
import re
import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec

from toolkit.storage import compression

YEARS = range(1990, 2262)
"""Years of dates that are believed: before there was no web server, beyond no 64-bit time in nanoseconds."""

_DAY = r"(?:[A-Za-z]+,?[ \t]+)?"
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
_ZONE = r"(?:[ \t]*(?P<zone>[A-Za-z]+|[+-]\d{4}))"
_FORMS = [
    re.compile(rf"{_DAY}(?P<day>\d\d?)[ ](?P<month>[A-Za-z]{{3}})[ ](?P<year>\d{{4}})[ ]{_TIME}{_ZONE}"),
    re.compile(rf"{_DAY}(?P<day>\d\d?)-(?P<month>[A-Za-z]{{3}})-(?P<year>\d\d(?:\d\d)?)[ ]{_TIME}{_ZONE}"),
    re.compile(rf"[A-Za-z]+[ ](?P<month>[A-Za-z]{{3}})[ ]{{1,2}}(?P<day>\d\d?)[ ]{_TIME}{_ZONE}?[ ](?P<year>\d{{4}})"),
]
"""The forms of RFC 9110, in its order: IMF-fixdate, RFC 850's and asctime's."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_HOURS = {"": 0, "gmt": 0, "utc": 0, "ut": 0, "z": 0}
_HOURS |= {"edt": -4, "est": -5, "cdt": -5, "cst": -6, "mdt": -6, "mst": -7, "pdt": -7, "pst": -8}
"""By which zones are ahead of UTC. Of other names RFC 5322 says that their meaning is not known."""

_AHEAD = 50
"""Years: a date of two digits that seems further in the future is of the century before (RFC 9110)."""


def http_date(value: str, warc_date: str | None = None) -> str | None:
    """Return a date of HTTP in UTC, as WARC writes dates; None if it is none, or its year is none of `YEARS`.

    A second 60 (leap seconds) is taken for 59; the day of the week is not looked at.

    Args:
        value: Value of the header.
        warc_date: WARC-Date of the record, against which a year of two digits is told.

    >>> http_date("Sun, 06 Nov 1994 08:49:37 GMT")
    '1994-11-06T08:49:37Z'
    >>> http_date("Sunday, 06-Nov-94 08:49:37 GMT", "2024-05-18T01:58:10Z")
    '1994-11-06T08:49:37Z'
    >>> http_date("Sun Nov  6 08:49:37 1994")
    '1994-11-06T08:49:37Z'
    >>> http_date("Mon, 01 Jan 2024 01:30:00 +0200")
    '2023-12-31T23:30:00Z'
    >>> http_date("Thu, 01 Jan 1970 00:00:00 GMT"), http_date("yesterday")
    (None, None)
    """
    if not value.isascii():
        return None
    match = next(filter(None, (form.fullmatch(value.strip()) for form in _FORMS)), None)
    if match is None or (month := match["month"].lower()) not in _MONTHS:
        return None
    if (ahead := _ahead(match["zone"] or "")) is None:
        return None
    year, second = int(match["year"]), int(match["second"])
    if len(match["year"]) == 2:
        year = _whole_year(year, warc_date)
    try:
        hour, minute, second = int(match["hour"]), int(match["minute"]), 59 if second == 60 else second
        date = datetime(year, _MONTHS.index(month) + 1, int(match["day"]), hour, minute, second, tzinfo=UTC) - ahead
    except (ValueError, OverflowError):  # no day or time of the calendar
        return None
    return date.strftime("%Y-%m-%dT%H:%M:%SZ") if date.year in YEARS else None


def _ahead(zone: str) -> timedelta | None:
    """Return by how much a zone is ahead of UTC; None if that is not known."""
    if zone[:1] in ("+", "-"):
        hours, minutes = int(zone[1:3]), int(zone[3:])
        sign = -1 if zone[0] == "-" else 1
        return sign * timedelta(hours=hours, minutes=minutes) if hours < 24 and minutes < 60 else None
    hours_ahead = _HOURS.get(zone.lower())
    return None if hours_ahead is None else timedelta(hours=hours_ahead)


def _whole_year(year: int, warc_date: str | None) -> int:
    """Return the year of two digits near the date of the record; 1970 to 2069 without one."""
    now = int(warc_date[:4]) if warc_date and re.match(r"\d{4}", warc_date) else 2019
    year += now - now % 100 + 100
    while year > now + _AHEAD:
        year -= 100
    return year


_START = re.compile(rb"HTTP/\d(?:\.\d+)?[ \t]+(\d+)")
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_FOLD = re.compile(rb"\r?\n[ \t]+(?=[^\s])")
_CHUNK = re.compile(rb"[ \t]*([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n]{0,1000})?\r?\n")
_HEAD = 1 << 18
"""Bytes of a status line and headers, at most."""
_PIECE = 1 << 12
_MEMBERS = 100
_GZIP = b"\x1f\x8b"


class Response(msgspec.Struct):
    """A response.

    Attributes:
        status: three digits, usually.
        headers: Values in their order by lower-case name.
        body: Body before decoding.
    """

    status: int
    headers: dict[str, list[str]]
    body: bytes

    def last(self, name: str) -> str:
        """Return the last value of a header; empty if there is none."""
        return self.headers.get(name, [""])[-1]

    def tokens(self, name: str) -> list[str]:
        """Return the elements of a list header, in lower case."""
        values = ",".join(self.headers.get(name, ())).lower().split(",")
        return [token for value in values if (token := value.strip())]


class TooLarge(Exception):
    """A body above the limit without its codings."""


class UnknownCoding(Exception):
    """An unknown content coding; its argument is the name."""


def parse_response(block: bytes) -> Response | None:
    """Return status, headers and body; None if the bytes are no HTTP response."""
    start = _START.match(block)
    if start is None:
        return None
    end = _END_OF_HEAD.search(block, 0, _HEAD)
    if end is None and len(block) > _HEAD:
        return None
    head, body = (block[: end.start()], block[end.end() :]) if end else (block, b"")
    headers: dict[str, list[str]] = {}
    for line in _FOLD.sub(b" ", head).split(b"\n")[1:]:
        name, colon, value = line.partition(b":")
        if colon:
            headers.setdefault(_text(name).lower(), []).append(_text(value))
    return Response(int(start[1][:9]), headers, body)


def _text(raw: bytes) -> str:
    return raw.strip().decode("latin-1")


def decode_body(response: Response, limit: int) -> tuple[bytes, list[str]]:
    """Return the body without transfer and content codings, and notes: ``not_gzip``, ``broken_chunked`` and so on.

    Raises:
        TooLarge: if it is larger than the limit.
        UnknownCoding: if it has a coding that is not known here.
    """
    body = response.body
    notes: list[str] = []
    if "chunked" in response.tokens("transfer-encoding"):
        body = _undo("chunked", body, functools.partial(unchunk, body), notes)
    for coding in reversed(response.tokens("content-encoding")):
        undo = _CODINGS.get(coding.removeprefix("x-"))
        if undo is not None:
            body = _undo(coding.removeprefix("x-"), body, functools.partial(undo, body, limit), notes)
        elif coding not in ("identity", "none", "utf-8"):
            raise UnknownCoding(coding)
    if len(body) > limit:
        raise TooLarge
    return body, notes


def _undo(name: str, body: bytes, undo: Callable[[], tuple[bytes, bool]], notes: list[str]) -> bytes:
    if not body:
        return body
    result, whole = undo()
    if whole:
        return result
    notes.append(f"broken_{name}" if result else f"not_{name}")
    return result or body


def unchunk(body: bytes) -> tuple[bytes, bool]:
    """Return the joined chunks, and True if their end is sound; where they do not, the rest as it is."""
    chunks: list[bytes] = []
    position = 0
    while match := _CHUNK.match(body, position):
        size, start = int(match[1], 16), match.end()
        if not size:
            return b"".join(chunks), True
        chunks.append(body[start : start + size])
        position = start + size
        position += 2 if body[position : position + 2] == b"\r\n" else body[position : position + 1] == b"\n"
    if chunks:
        chunks.append(body[position:])
    return b"".join(chunks), False


def _inflate(body: bytes, limit: int, window: int) -> tuple[bytes, bool]:
    pieces: list[bytes] = []
    size = 0
    for _ in range(_MEMBERS):
        inflater = zlib.decompressobj(window)
        try:
            piece = inflater.decompress(body, limit + 1 - size)
        except zlib.error:
            piece, body = _until_damage(body, limit, window), b""
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise TooLarge
        if not inflater.eof:
            break
        body = inflater.unused_data
        if not body.startswith(_GZIP):  # padding
            return b"".join(pieces), True
    return b"".join(pieces), False


def _until_damage(body: bytes, limit: int, window: int) -> bytes:
    """Return the sound beginning of a damaged body, to within a piece."""
    inflater = zlib.decompressobj(window)
    pieces: list[bytes] = []
    with contextlib.suppress(zlib.error):
        for start in range(0, len(body), _PIECE):
            pieces.append(inflater.decompress(body[start : start + _PIECE], limit))
    return b"".join(pieces)[:limit]


def _gzip(body: bytes, limit: int) -> tuple[bytes, bool]:
    return _inflate(body, limit, 16 + zlib.MAX_WBITS)


def _deflate(body: bytes, limit: int) -> tuple[bytes, bool]:
    result, whole = _inflate(body, limit, zlib.MAX_WBITS)
    return (result, whole) if result or whole else _inflate(body, limit, -zlib.MAX_WBITS)


def _brotli(body: bytes, limit: int) -> tuple[bytes, bool]:
    import brotli

    inflater = brotli.Decompressor()
    inflate = functools.partial(inflater.process, output_buffer_limit=1 << 16)
    return _drain(body, limit, inflate, inflater.is_finished, inflater.can_accept_more_data, brotli.error)


def _zstd(body: bytes, limit: int) -> tuple[bytes, bool]:
    """One frame, as RFC 9659 has it."""
    module = compression.zstd()
    inflater = module.ZstdDecompressor()
    inflate = functools.partial(inflater.decompress, max_length=1 << 16)
    return _drain(body, limit, inflate, lambda: inflater.eof, lambda: inflater.needs_input, module.ZstdError)


def _drain(
    body: bytes,
    limit: int,
    inflate: Callable[[bytes], bytes],
    is_finished: Callable[[], bool],
    wants_more: Callable[[], bool],
    damage: type[Exception],
) -> tuple[bytes, bool]:
    """Return the output of a decompressor after one input, piece by piece; and whether that is all."""
    pieces: list[bytes] = []
    size = 0
    try:
        while not is_finished():
            piece, body = inflate(body), b""
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise TooLarge
            if not piece and wants_more():
                break
    except damage:
        return b"".join(pieces), False
    return b"".join(pieces), is_finished()


_CODINGS: dict[str, Callable[[bytes, int], tuple[bytes, bool]]] = {
    "gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
