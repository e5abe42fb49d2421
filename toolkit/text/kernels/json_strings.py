"""JSON strings as texts in UTF-8, in compiled code: what is between backslashes is copied in one go."""

import functools
from typing import Any

import numba

from toolkit.text.kernels.counting import _put, _simple, _unit

_inline = functools.partial(numba.njit, inline="always")
_u8, _i64 = numba.uint8, numba.int64


_STRETCH = 1 << 12


@_inline
def _is_sound(source: Any, size: Any) -> Any:
    """Return whether bytes, of which the first three are ASCII, are UTF-8 without control characters.

    A byte continues a code point if and only if one of the three before it says so. A loop without branches becomes
    instructions on many bytes at once.
    """
    wrong, at = _u8(0), _i64(3)
    while at < size and wrong == 0:
        for i in range(at, min(at + _STRETCH, size)):
            byte, last, second, third = _u8(source[i]), _u8(source[i - 1]), _u8(source[i - 2]), _u8(source[i - 3])
            continues = _u8(_u8(byte & _u8(0xC0)) == 0x80)
            must = _u8(last >= 0xC0) | _u8(second >= 0xE0) | _u8(third >= 0xF0)
            wrong |= (continues ^ must) | _u8(byte < 0x20) | _u8(byte > 0xF4) | _u8(_u8(byte & _u8(0xFE)) == 0xC0)
            wrong |= (_u8(last == 0xE0) & _u8(byte < 0xA0)) | (_u8(last == 0xED) & _u8(byte > 0x9F))
            wrong |= (_u8(last == 0xF0) & _u8(byte < 0x90)) | (_u8(last == 0xF4) & _u8(byte > 0x8F))
        at += _STRETCH
    return wrong == 0


def decode(source: Any, source_bounds: Any, slashes: Any, utf8: Any, bounds: Any, counts: Any) -> None:
    """Write the texts of JSON strings in UTF-8.

    Args:
        source: int8, three spaces, the strings one behind the other, and padding.
        source_bounds: int64 (texts + 1), where each begins, and the end of all.
        slashes: int64, where backslashes are.
        utf8: int8, with room for all; what they are, one behind the other.
        bounds: int64 (texts + 1), likewise.
        counts: int64 (3), how many strings there are, how many backslashes, and the strings before one that is none.
    """
    texts, many = counts[0], counts[1]
    counts[2] = 0
    if not _is_sound(source, source_bounds[texts] + 1):
        return
    out, next_ = _i64(0), _i64(0)
    for text in range(texts):
        at, end = source_bounds[text] + 1, source_bounds[text + 1] - 1
        if end < at or source[at - 1] != 34 or source[end] != 34:
            return
        while True:
            stop = slashes[next_] if next_ < many and slashes[next_] < end else end
            for i in range(stop - at):
                utf8[out + i] = source[at + i]
            out += stop - at
            at = stop
            if at == end:
                break
            letter = _i64(source[at + 1])
            next_ += 1
            if letter == 117:
                point = _unit(source, at)
                at += 6
                if 0xD800 <= point <= 0xDBFF:
                    low = _unit(source, at)
                    point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00) if 0xDC00 <= low <= 0xDFFF else _i64(-1)
                    at += 6
                    next_ += 1
                elif 0xDC00 <= point <= 0xDFFF:
                    point = _i64(-1)
            else:
                point = _simple(letter)
                at += 2
                next_ += letter == 92  # which is a backslash, too
            if point < 0 or at > end:
                return
            out = _put(utf8, out, point)
        bounds[text + 1] = out
        counts[2] += 1
