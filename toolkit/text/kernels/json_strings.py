"""JSON strings as lines in UTF-8, in compiled code: eight bytes at a time, up to the next backslash."""

import functools
from typing import Any

import numba

from toolkit.text.kernels.counting import _put, _simple, _unit
from toolkit.text.kernels.intrinsics import eight_bytes, lowest_bit, ones, put_eight_bytes
from toolkit.text.line_table import LineTable

_inline = functools.partial(numba.njit, inline="always")
_u8, _i64, _u64 = numba.uint8, numba.int64, numba.uint64

_LOWEST, _HIGHEST = 0x0101010101010101, 0x8080808080808080  # bits of eight bytes
_SLASHES = 92 * _LOWEST
_FEED, _RETURN, _QUOTE, _SLASH, _N, _U = 10, 13, 34, 92, 110, 117

_STRETCH = 1 << 12


@_inline
def _is_sound(source: Any, size: Any) -> Any:
    """Return whether bytes, of which the first three are ASCII, are UTF-8 without control characters.

    A byte continues a code point if and only if one of the three before it says so. A loop without branches, of truth
    values and not of numbers, becomes instructions on many bytes at once.
    """
    wrong, at = False, _i64(3)
    while at < size and not wrong:
        for i in range(at, min(at + _STRETCH, size)):
            byte, last, second, third = _u8(source[i]), _u8(source[i - 1]), _u8(source[i - 2]), _u8(source[i - 3])
            continues = source[i] < -64
            must = (last >= 0xC0) | (second >= 0xE0) | (third >= 0xF0)
            wrong |= (continues ^ must) | (byte < 0x20) | (byte > 0xF4) | (_u8(byte & _u8(0xFE)) == 0xC0)
            wrong |= ((last == 0xE0) & (byte < 0xA0)) | ((last == 0xED) & (byte > 0x9F))
            wrong |= ((last == 0xF0) & (byte < 0x90)) | ((last == 0xF4) & (byte > 0x8F))
        at += _STRETCH
    return not wrong


@_inline
def _point(source: Any, at: Any) -> Any:
    """Return the code point that a backslash begins, -1 if there is none, and how many bytes it is written in."""
    letter = _i64(source[at + 1])
    if letter != _U:
        return _simple(letter), _i64(2)
    point, size = _unit(source, at), _i64(6)
    if 0xD800 <= point <= 0xDBFF:
        low, size = _unit(source, at + 6), _i64(12)
        point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00) if 0xDC00 <= low <= 0xDFFF else _i64(-1)
    elif 0xDC00 <= point <= 0xDFFF:
        point = _i64(-1)
    return point, size


@_inline
def _end_line(table: Any, line: Any, start: Any, feed: Any, inside: Any) -> Any:
    """Enter a line whose end is at `feed`; `inside` of its bytes continue a code point."""
    end = feed - _i64(feed > start and table.utf8[feed - 1] == _RETURN)
    table.utf8[feed] = _FEED
    table.starts[line], table.ends[line], table.chars[line] = start, end, end - start - inside
    return line + 1


def decode(source: Any, source_bounds: Any, texts: Any, table: LineTable, places: Any, found: Any) -> None:
    """Write the lines of the texts that JSON strings are.

    Args:
        source: int8, three spaces, the strings one behind the other, and padding.
        source_bounds: int64 (texts + 1), where each begins, and the end of all.
        texts: how many.
        table: room for all of them and a line feed behind each, and for their lines.
        places: int64 (2 texts), where each text begins in the table, and where it ends, without a line feed that was
            added.
        found: int64 (3), the lines, where they end, and the texts before one that is none.
    """
    utf8 = table.utf8
    utf8[0] = _FEED
    out, line, found[2] = _i64(1), _i64(0), 0
    if not _is_sound(source, source_bounds[texts] + 1):
        return
    for text in range(texts):
        at, end = source_bounds[text] + 1, source_bounds[text + 1] - 1
        if end < at or source[at - 1] != _QUOTE or source[end] != _QUOTE:
            return
        start, inside = out, _i64(0)
        places[2 * text] = out
        while at < end:
            word = eight_bytes(source, at)
            put_eight_bytes(utf8, out, word)
            others = word ^ _u64(_SLASHES)
            slashes = (others - _u64(_LOWEST)) & ~others & _u64(_HIGHEST)
            continues = (word >> _u64(7)) & ~(word >> _u64(6)) & _u64(_LOWEST)
            if slashes == 0 and end - at >= 8:
                inside += _i64(ones(continues))
                at, out = at + 8, out + 8
                continue
            size = min(_i64(8), end - at)
            if slashes != 0:
                size = min(size, lowest_bit(slashes) >> 3)
            if size < 8:
                continues &= (_u64(1) << _u64(8 * size)) - _u64(1)
            inside += _i64(ones(continues))
            at, out = at + size, out + size
            if at == end:
                break
            if source[at + 1] == _N:
                line = _end_line(table, line, start, out, inside)
                at, out = at + 2, out + 1
                start, inside = out, _i64(0)
                continue
            point, size = _point(source, at)
            at += size
            if point < 0 or at > end:
                return
            if point == _FEED:
                line = _end_line(table, line, start, out, inside)
                out += 1
                start, inside = out, _i64(0)
            else:
                before = out
                out = _put(utf8, out, point)
                inside += out - before - 1
        places[2 * text + 1] = out
        if out > start:
            line = _end_line(table, line, start, out, inside)
            out += 1
        table.bounds[text + 1] = line
        found[2] += 1
    found[0], found[1] = line, out
