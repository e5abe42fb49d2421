"""HTTP responses as crawlers keep them: status, headers, and the body without its codings.

Crawlers keep the bytes of the line, or decode the body and leave the headers, or cut it off. So a coding that a header
names is undone where the body has it, as far as the body is sound; what was found otherwise is noted.

fastwarc, which reads the records, has a parser of HTTP as well. It is not used: where a crawler has written a bare line
feed before the body (29 of 400 responses of the samples, all of them of one archive), it takes a third of the page for
headers.

Source: RFC 9110 and RFC 9112.
"""

import contextlib
import functools
import re
import zlib
from collections.abc import Callable

import msgspec

from toolkit.storage import compression

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
        headers: by lower-case name, all values in their order.
        body: as sent.
    """

    status: int
    headers: dict[str, list[str]]
    body: bytes

    def last(self, name: str) -> str:
        """Return the last value of a header; empty if there is none."""
        return self.headers.get(name, [""])[-1]

    def tokens(self, name: str) -> list[str]:
        """Return the elements of a header that is a list, in lower case."""
        values = ",".join(self.headers.get(name, ())).lower().split(",")
        return [token for value in values if (token := value.strip())]


class TooLarge(Exception):
    """A body that is larger than allowed without its codings."""


class UnknownCoding(Exception):
    """A content coding that cannot be undone; its argument is the name."""


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


def decoded_body(response: Response, limit: int) -> tuple[bytes, list[str]]:
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
    found, whole = undo()
    if whole:
        return found
    notes.append(f"broken_{name}" if found else f"not_{name}")
    return found or body


def unchunk(body: bytes) -> tuple[bytes, bool]:
    """Return the chunks joined, and whether they end as they should; where they do not, the rest as it is."""
    chunks: list[bytes] = []
    position = 0
    while found := _CHUNK.match(body, position):
        size, start = int(found[1], 16), found.end()
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
    """Return what can be inflated of a damaged body, to within a piece."""
    inflater = zlib.decompressobj(window)
    pieces: list[bytes] = []
    with contextlib.suppress(zlib.error):
        for start in range(0, len(body), _PIECE):
            pieces.append(inflater.decompress(body[start : start + _PIECE], limit))
    return b"".join(pieces)[:limit]


def _gzip(body: bytes, limit: int) -> tuple[bytes, bool]:
    return _inflate(body, limit, 16 + zlib.MAX_WBITS)


def _deflate(body: bytes, limit: int) -> tuple[bytes, bool]:
    found, whole = _inflate(body, limit, zlib.MAX_WBITS)
    return (found, whole) if found or whole else _inflate(body, limit, -zlib.MAX_WBITS)


def _brotli(body: bytes, limit: int) -> tuple[bytes, bool]:
    import brotli

    inflater = brotli.Decompressor()
    inflate = functools.partial(inflater.process, output_buffer_limit=1 << 16)
    return _drained(body, limit, inflate, inflater.is_finished, inflater.can_accept_more_data, brotli.error)


def _zstd(body: bytes, limit: int) -> tuple[bytes, bool]:
    """One frame, as RFC 9659 has it."""
    module = compression.zstd()
    inflater = module.ZstdDecompressor()
    inflate = functools.partial(inflater.decompress, max_length=1 << 16)
    return _drained(body, limit, inflate, lambda: inflater.eof, lambda: inflater.needs_input, module.ZstdError)


def _drained(
    body: bytes,
    limit: int,
    inflate: Callable[[bytes], bytes],
    is_finished: Callable[[], bool],
    wants_more: Callable[[], bool],
    damage: type[Exception],
) -> tuple[bytes, bool]:
    """Return what a decompressor gives that takes the body at once, piece by piece; and whether that is all."""
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
