"""JSON strings as UTF-8 texts and the reverse, many at once.

Python texts are not needed.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, cast

import msgspec

from toolkit.lazy_numpy import np
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Bytes, Int64s
from toolkit.text.line_table import PADDING, LineTable

_PADDING, _BEFORE, _BORDER = 16, 3, b"\n\n\n"
"""Bytes behind the last string, and before the first one, for code that reads several at once."""


class GappedRows(NamedTuple):
    """Rows of JSON with a gap for the text.

    Attributes:
        utf8: int8; the rows one behind the other.
        bounds: int64 (rows + 1), where each begins, and the end of all.
        gaps: int64 (rows), where the text of each belongs, between its quotes.
    """

    utf8: Bytes
    bounds: Int64s
    gaps: Int64s


_KERNEL = "toolkit.text.kernels.json_strings"
_TEXTS = "int8* int64* int64* int64"
_decode = Compiled(f"{_KERNEL}:decode", _TEXTS, LineTable, "int64* int64*")
_find = Compiled(f"{_KERNEL}:find", "int8* int64 int8* int64* int64* int8* int64*")
_encode = Compiled(f"{_KERNEL}:encode", _TEXTS, GappedRows, "int8* int64* int64*")
_check = Compiled(f"{_KERNEL}:check", _TEXTS, "int64*")
_trim = Compiled(f"{_KERNEL}:trim", _TEXTS, "int64 int64*")


class DecodedTexts(msgspec.Struct, frozen=True, dict=True):
    """Texts decoded from JSON.

    Attributes:
        lines: Lines of all texts.
        places: int64 (texts, 2), where each text begins and ends in the table's buffer; a line feed that the table has
            added is not part of it.
    """

    lines: LineTable
    places: Array

    @cached_property
    def texts(self) -> list[bytes]:
        """Return each text in UTF-8."""
        utf8 = self.lines.utf8.tobytes()
        return [utf8[begin:end] for begin, end in self.places.tolist()]

    @property
    def chars(self) -> Array:
        """Return the code points of each text; int64."""
        continuing = self.lines.sums(self.lines.bytes - self.lines.chars)
        return cast("Array", self.places[:, 1] - self.places[:, 0] - continuing)

    @property
    def open_ended(self) -> Array:
        """Return a mask of the texts without a final line feed; bool."""
        begins, ends = self.places[:, 0], self.places[:, 1]
        return cast("Array", np.append(begins[1:], len(self.lines.utf8) - PADDING) > ends)


def decoded(raws: Sequence[msgspec.Raw]) -> DecodedTexts | None:
    """Decode JSON strings; return None if one is no string.

    Args:
        raws: JSON strings as msgspec found them, with their quotes; some may be other values, or not in UTF-8.
    """
    bounds = np.zeros(len(raws) + 1, dtype=np.int64)
    np.cumsum([_BEFORE, *(memoryview(raw).nbytes for raw in raws)], out=bounds)
    source = np.frombuffer(b"".join([b" " * _BEFORE, *raws, b" " * _PADDING]), dtype=np.int8)
    return _decoded(source, bounds[:-1], bounds[1:], int(np.count_nonzero(source == ord("\\"))))


def _decoded(source: Array, begins: Array, ends: Array, escapes: int) -> DecodedTexts | None:
    """Decode JSON strings of a buffer with at most `escapes` backslashes."""
    count, most = len(begins), escapes + len(begins)  # a line feed is written with a backslash
    starts, line_ends, chars = np.empty((3, most), dtype=np.int64)
    utf8, bounds = np.empty(len(source) + PADDING, dtype=np.int8), np.zeros(count + 1, dtype=np.int64)
    places, result = np.empty((count, 2), dtype=np.int64), np.zeros(3, dtype=np.int64)
    table = LineTable(utf8, starts, line_ends, chars, bounds)
    _decode(source, begins, ends, count, table, places.reshape(-1), result)
    lines, end, sound = result.tolist()
    if sound < count:
        return None
    utf8[end : end + PADDING] = ord("\n")
    return DecodedTexts(
        LineTable(utf8[: end + PADDING], starts[:lines], line_ends[:lines], chars[:lines], bounds), places
    )


_NAME = b'{"source":,"id":}\n'
_LEAST = len(b'{"id":"","text":"","source":""}')
_NAMES = msgspec.json.Decoder(dict[str, str])


def documents_in(rows: bytes) -> tuple[list[bytes], DecodedTexts] | None:
    """Return the names and texts of documents; None if a row is not plain.

    A row that is not plain needs a parser of JSON, or is no document.

    Args:
        rows: JSON of documents that have been checked once, with a line feed between two.

    Returns:
        ``{"source":…,"id":…}`` of each, as msgspec encodes it, and the texts.
    """
    source = np.frombuffer(rows + b" " * _PADDING, dtype=np.int8)
    begins, ends = np.empty((2, len(rows) // _LEAST + 1), dtype=np.int64)
    buffer, result = np.empty(len(rows), dtype=np.int8), np.zeros(4, dtype=np.int64)
    _find(source, len(rows), np.frombuffer(_NAME, dtype=np.int8), begins, ends, buffer, result)
    count, plain, size, escapes = result.tolist()
    texts = _decoded(source, begins[:count], ends[:count], escapes) if plain else None
    if texts is None:
        return None
    names = buffer[:size].tobytes()
    if b"\\" in names:
        try:
            names = msgspec.json.Encoder().encode_lines(map(_NAMES.decode, names.splitlines()))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
    return names.split(b"\n")[:-1], texts


def encoded(
    source: bytes, begins: Array, ends: Array, rows: Sequence[bytes], key: bytes
) -> tuple[list[bytes], list[int]]:
    """Return rows of JSON with texts, as msgspec encodes them.

    Return also the code points of each text.

    Args:
        source: the texts in UTF-8.
        begins: int64, where each begins.
        ends: int64, where each ends.
        rows: Rows with an empty text.
        key: Text of each row up to the quote before the text, found nowhere before.
    """
    bounds = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    gaps = bounds[:-1] + np.array([row.index(key) + len(key) for row in rows], dtype=np.int64)
    joined = GappedRows(np.frombuffer(b"".join(rows) or b" ", dtype=np.int8), bounds, gaps)
    if len(source) < ends.max(initial=0) + _PADDING:
        source += b" " * _PADDING
    texts = np.frombuffer(source, dtype=np.int8)
    out = np.empty(int(bounds[-1]) + 6 * int((ends - begins).sum()) + _PADDING, dtype=np.int8)
    chars, places = np.empty(len(rows), dtype=np.int64), np.empty(len(rows) + 1, dtype=np.int64)
    _encode(texts, begins, ends, len(rows), joined, out, places, chars)
    view, at = memoryview(out.data), places.tolist()
    return [view[begin:end].tobytes() for begin, end in pairwise(at)], chars.tolist()


def placed(texts: Sequence[bytes]) -> tuple[bytes, Array, Array]:
    """Join texts with three line feeds around each.

    Return also the offsets at which they begin and end; int64.
    """
    sizes = np.array(list(map(len, texts)), dtype=np.int64)
    ends = np.cumsum(sizes + _BEFORE)
    return _BORDER.join([b"", *texts, b""]), ends - sizes, ends


def sound(source: bytes, begins: Array, ends: Array) -> list[bool]:
    """Return a flag for each text: True for UTF-8.

    Args:
        source: the texts; three bytes before each, and one behind it, are ASCII.
        begins: int64, where each begins.
        ends: int64, where each ends.
    """
    result = np.empty(len(begins), dtype=np.int64)
    try:
        _check(np.frombuffer(source, dtype=np.int8), begins, ends, len(begins), result)
    except (ImportError, OSError, RuntimeError):  # there is no code for this machine
        texts = [source[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)]
        return [text == text.decode(errors="ignore").encode() for text in texts]
    return list(map(bool, result.tolist()))


def trimmed(source: bytes, begins: Array, ends: Array, min_chars: int) -> tuple[Array, Array, list[int]]:
    """Return the bounds of texts without short lines at both ends.

    Args:
        source: the texts in UTF-8.
        begins: int64, where each begins.
        ends: int64, where each ends.
        min_chars: the fewest code points of a line that is not short.

    Returns:
        Where each begins, where each ends, and of each 1; 0 where nothing is left, -1 where a carriage return stands in
        it, which this does not look at.
    """
    begins, ends, states = begins.copy(), ends.copy(), np.empty(len(begins), dtype=np.int64)
    _trim(np.frombuffer(source, dtype=np.int8), begins, ends, len(begins), min_chars, states)
    return begins, ends, states.tolist()
