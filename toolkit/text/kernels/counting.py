"""Lines, code points, bytes and words in compiled code: of UTF-8, and of JSON strings."""

import functools
from typing import Any

import numba

_inline = functools.partial(numba.njit, inline="always")


@_inline
def _is_space(utf8: Any, at: Any) -> Any:
    """Return 1 if the code point at an offset, which is not ASCII, is white space as ``str.isspace`` has it."""
    first, second, third = utf8[at], utf8[at + 1] & 255, utf8[at + 2] & 255
    space = False
    if first == -62:  # U+0085, U+00A0
        space = (second == 0x85) | (second == 0xA0)
    elif first == -30:  # U+2000 to U+200A, U+2028, U+2029, U+202F; U+205F
        last = (third <= 0x8A) | (third == 0xA8) | (third == 0xA9) | (third == 0xAF)
        space = ((second == 0x80) & last) | ((second == 0x81) & (third == 0x9F))
    elif first == -31:  # U+1680
        space = (second == 0x9A) & (third == 0x80)
    elif first == -29:  # U+3000
        space = (second == 0x80) & (third == 0x80)
    return numba.int64(space)


@_inline
def _is_ascii_space(byte: Any) -> Any:
    """Return 1 for a byte that is white space of its own."""
    return numba.int64((numba.uint8(byte - 28) <= 4) | (numba.uint8(byte - 9) <= 4))


_STRETCH = 128
"""Bytes that are looked at in one go, at most 255: so many are counted in a byte."""


@_inline
def _counted(utf8: Any, at: Any, size: Any, spaces: Any) -> Any:
    """Count the line feeds of a stretch, bytes that continue a code point, and words that end before it or in it.

    Loops without branches, with sums of a byte, become instructions on many bytes at once. `spaces` has, from 3 on, how
    many bytes the white space has that ends at each byte, 0 where none does; before, that of the three bytes before.
    """
    feeds, inside, words = numba.uint8(0), numba.uint8(0), numba.uint8(0)
    for i in range(size):
        first, second, byte = utf8[at + i - 2], utf8[at + i - 1], utf8[at + i]
        one = numba.uint8(_is_ascii_space(byte))
        two = numba.uint8((second == -62) & ((byte == -123) | (byte == -96)))  # U+0085, U+00A0
        last = (byte <= -118) | (byte == -88) | (byte == -87) | (byte == -81)
        general = ((second == -128) & last) | ((second == -127) & (byte == -97))  # U+2000 to U+205F
        others = ((first == -31) & (second == -102)) | ((first == -29) & (second == -128))  # U+1680, U+3000
        three = numba.uint8(((first == -30) & general) | (others & (byte == -128)))
        spaces[3 + i] = numba.uint8(one | (two << 1) | three | (three << 1))
        feeds = numba.uint8(feeds + numba.uint8(byte == 10))
        inside = numba.uint8(inside + numba.uint8(byte < -64))
    for i in range(size):  # a word ends where white space is that has none before it
        space = spaces[3 + i]
        one, two, three = (space == 1) & (spaces[2 + i] == 0), (space == 2) & (spaces[1 + i] == 0), space == 3
        words = numba.uint8(words + numba.uint8(one | two | (three & (spaces[i] == 0))))
    return numba.int64(feeds), numba.int64(inside), numba.int64(words)


def measure(utf8: Any, bounds: Any, texts: Any, joined: Any, spaces: Any, found: Any) -> None:
    """Fill rows of `found` with lines, code points, bytes and words.

    Args:
        utf8: int8, texts with a line feed behind each; two bytes before the first.
        bounds: int64 (texts + 1), where each begins, and the end of all.
        texts: Number of texts.
        joined: 1 if line feeds stand between lines, not behind each.
        spaces: uint8 (3 + `_STRETCH`), room to work in.
        found: int64 (texts, 5), the last column is left alone.
    """
    for text in range(texts):
        at, end = bounds[text], bounds[text + 1]  # with the line feed behind it, where its last word ends
        size = end - 1 - at
        feeds, inside, words = numba.int64(0), numba.int64(0), numba.int64(0)
        for j in range(3):
            spaces[j] = numba.uint8(1)  # no word is before it
        while at < end:
            length = min(numba.int64(_STRETCH), end - at)
            more_feeds, more_inside, more_words = _counted(utf8, at, length, spaces)
            feeds, inside, words, at = feeds + more_feeds, inside + more_inside, words + more_words, at + length
            for j in range(3):
                spaces[j] = spaces[length + j]
        lines = feeds
        if size == 0 or (not joined and utf8[end - 2] == 10):
            lines -= 1
        row = text * 5
        found[row], found[row + 1], found[row + 2], found[row + 3] = lines, size - inside, size, words


@_inline
def _unit(source: Any, at: Any) -> Any:
    r"""Return the number in ``\uXXXX``; -1 if there is none."""
    value = numba.int64(-1)
    if source[at] == 92 and source[at + 1] == 117:
        value = numba.int64(0)
        for i in range(2, 6):
            digit = numba.int64(source[at + i])
            letter = digit | 32
            if 48 <= digit <= 57:
                value = value * 16 + digit - 48
            elif 97 <= letter <= 102:
                value = value * 16 + letter - 87
            else:
                value = numba.int64(-1)
                break
    return value


@_inline
def _length_of(source: Any, at: Any, end: Any) -> Any:
    """Return the bytes of the code point at an offset, no ASCII; 0 if it is not one in UTF-8 before the end."""
    first, second = source[at] & 255, source[at + 1] & 255
    length = numba.int64(0)
    if second >> 6 == 2:
        if first < 0xE0:
            if first >= 0xC2:
                length = numba.int64(2)
        elif source[at + 2] & 0xC0 == 0x80:
            if first < 0xF0:
                if (first != 0xE0 or second >= 0xA0) and (first != 0xED or second <= 0x9F):
                    length = numba.int64(3)
            elif (
                source[at + 3] & 0xC0 == 0x80
                and (first != 0xF0 or second >= 0x90)
                and (first < 0xF4 or (first == 0xF4 and second <= 0x8F))
            ):
                length = numba.int64(4)
    if at + length > end:
        length = numba.int64(0)
    return length


@_inline
def _put(utf8: Any, out: Any, point: Any) -> Any:
    """Write a code point; return where the next one goes."""
    if point < 0x80:
        utf8[out] = point
        return out + 1
    if point < 0x800:
        utf8[out] = 0xC0 | point >> 6
        out += 1
    else:
        if point < 0x10000:
            utf8[out] = 0xE0 | point >> 12
            out += 1
        else:
            utf8[out], utf8[out + 1] = 0xF0 | point >> 18, 0x80 | point >> 12 & 63
            out += 2
        utf8[out] = 0x80 | point >> 6 & 63
        out += 1
    utf8[out] = 0x80 | point & 63
    return out + 1


@_inline
def _simple(letter: Any) -> Any:
    """Return what a letter behind a backslash stands for; -1 if it is none."""
    point = numba.int64(-1)
    if letter == 110:
        point = numba.int64(10)
    elif letter in (34, 47, 92):
        point = numba.int64(letter)
    elif letter == 116:
        point = numba.int64(9)
    elif letter == 114:
        point = numba.int64(13)
    elif letter == 98:
        point = numba.int64(8)
    elif letter == 102:
        point = numba.int64(12)
    return point


def unescape(
    source: Any, source_bounds: Any, texts: Any, joined: Any, utf8: Any, bounds: Any, bad: Any, found: Any
) -> None:
    """Write the texts of JSON strings in UTF-8, measured on the way.

    Args:
        source: int8, the strings one behind the other, with padding.
        source_bounds: int64 (texts + 1), where each begins, and the end of all.
        texts: Number of texts.
        joined: as of `measure`.
        utf8: int8, with room for all; what they are, a line feed behind each.
        bounds: int64 (texts + 1), of each in `utf8`, and the end of all.
        bad: int64 (texts), 1 for what is no JSON string in UTF-8.
        found: as of `measure`.
    """
    out = numba.int64(0)
    bounds[0] = 0
    for text in range(texts):
        at, end, begin = source_bounds[text] + 1, source_bounds[text + 1] - 1, out
        lines, chars, words, space = numba.int64(0), numba.int64(0), numba.int64(0), numba.int64(1)
        wrong = end < at or source[at - 1] != 34 or source[end] != 34
        while at < end and not wrong:
            byte = source[at]
            while (byte >= 32) & (byte != 92) & (byte != 34):  # the quote behind the text ends it
                utf8[out] = byte
                now = numba.int64(byte == 32)
                words += space & (now ^ 1)
                space = now
                out += 1
                at += 1
                chars += 1
                byte = source[at]
            if at >= end:
                break
            now = numba.int64(0)
            chars += 1
            if byte < 0:
                length = _length_of(source, at, end)
                wrong = length == 0
                if byte <= -29:
                    now = _is_space(source, at)
                utf8[out], utf8[out + 1] = byte, source[at + 1]  # there is room for four
                utf8[out + 2], utf8[out + 3] = source[at + 2], source[at + 3]
                at += length
                out += length
            elif byte == 92 and source[at + 1] != 117:
                point = _simple(source[at + 1])
                wrong = point < 0 or at + 2 > end
                now = numba.int64((point >= 9) & (point <= 13))
                lines += point == 10
                utf8[out] = point
                at += 2
                out += 1
            elif byte == 92:
                point = _unit(source, at)
                wrong = point < 0 or at + 6 > end or 0xDC00 <= point <= 0xDFFF
                at += 6
                if 0xD800 <= point <= 0xDBFF:
                    low = _unit(source, at)
                    wrong = low < 0xDC00 or low > 0xDFFF or at + 6 > end
                    point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00)
                    at += 6
                if point < 0x80:
                    utf8[out] = point
                    now = numba.int64((point == 32) | ((point >= 9) & (point <= 13)) | ((point >= 28) & (point <= 31)))
                    lines += point == 10
                    out += 1
                else:
                    start = out
                    out = _put(utf8, out, point)
                    now = _is_space(utf8, start)
            else:  # a control character, or a quote
                wrong = True
            words += space & (now ^ 1)
            space = now
        bad[text] = wrong
        if out > begin and (joined or utf8[out - 1] != 10):
            lines += 1
        row = text * 5
        found[row], found[row + 1], found[row + 2], found[row + 3] = lines, chars, out - begin, words
        utf8[out] = 10
        out += 1
        bounds[text + 1] = out
