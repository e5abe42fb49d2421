"""JSON strings to lines and texts to JSON strings, compiled.

Eight bytes are read at a time.
"""

import functools
from typing import Any

import numba

from toolkit.text.kernels.intrinsics import eight_bytes, inline, lowest_bit, ones, put_eight_bytes
from toolkit.text.line_table import LineTable

_compiled = functools.partial(numba.njit)
_u8, _i64, _u64 = numba.uint8, numba.int64, numba.uint64

_LOWEST, _HIGHEST = 0x0101010101010101, 0x8080808080808080  # bits of eight bytes
_SLASHES = 92 * _LOWEST
_FEED, _RETURN, _QUOTE, _SLASH, _N, _U = 10, 13, 34, 92, 110, 117

_STRETCH = 1 << 12


@inline
def is_sound_utf8(source: Any, begin: Any, end: Any, least: Any) -> Any:
    """Return True for UTF-8 without code points below `least`.

    The three bytes before must be ASCII.

    A byte continues a code point if and only if one of the three before it says so. A loop without branches, of truth
    values and not of numbers, becomes instructions on many bytes at once.
    """
    wrong, at = False, begin
    while at < end and not wrong:
        for i in range(at, min(at + _STRETCH, end)):
            byte, last, second, third = _u8(source[i]), _u8(source[i - 1]), _u8(source[i - 2]), _u8(source[i - 3])
            continues = source[i] < -64
            must = (last >= 0xC0) | (second >= 0xE0) | (third >= 0xF0)
            wrong |= (continues ^ must) | (byte < least) | (byte > 0xF4) | (_u8(byte & _u8(0xFE)) == 0xC0)
            wrong |= ((last == 0xE0) & (byte < 0xA0)) | ((last == 0xED) & (byte > 0x9F))
            wrong |= ((last == 0xF0) & (byte < 0x90)) | ((last == 0xF4) & (byte > 0x8F))
        at += _STRETCH
    return not wrong


@inline
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


@inline
def _simple(letter: Any) -> Any:
    """Return the meaning of a letter behind a backslash; -1 for others."""
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


@inline
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


@inline
def _point(source: Any, at: Any) -> Any:
    """Return the code point of an escape, and its length in bytes.

    The point is -1 if it is none.
    """
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


@inline
def _end_line(table: Any, line: Any, start: Any, feed: Any, inside: Any) -> Any:
    """Enter a line with its end at `feed`.

    `inside` of its bytes continue a code point.
    """
    end = feed - _i64(feed > start and table.utf8[feed - 1] == _RETURN)
    table.utf8[feed] = _FEED
    table.starts[line], table.ends[line], table.chars[line] = start, end, end - start - inside
    return line + 1


def decode(source: Any, begins: Any, source_ends: Any, texts: Any, table: LineTable, places: Any, state: Any) -> None:
    """Write the lines of texts decoded from JSON strings.

    Args:
        source: int8, the strings; three bytes before each can be read, and seven behind it.
        begins: int64 (texts), where each begins, with its quote.
        source_ends: int64 (texts), where each ends.
        texts: Number of texts.
        table: room for all of them and a line feed behind each, and for their lines.
        places: int64 (2 texts), where each text begins in the table, and where it ends, without a line feed that was
            added.
        state: int64 (3), the lines, where they end, and the texts before one that is none.
    """
    utf8 = table.utf8
    utf8[0] = _FEED
    out, line, state[2] = _i64(1), _i64(0), 0
    for text in range(texts):
        at, end = begins[text] + 1, source_ends[text] - 1
        if end < at or source[at - 1] != _QUOTE or source[end] != _QUOTE:
            return
        if not is_sound_utf8(source, at, end + 1, _u8(0x20)):
            return
        start, inside = out, _i64(0)
        places[2 * text] = out
        while at < end:
            word = eight_bytes(source, at)
            put_eight_bytes(utf8, out, word)
            differing = word ^ _u64(_SLASHES)
            slashes = (differing - _u64(_LOWEST)) & ~differing & _u64(_HIGHEST)
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
        state[2] += 1
    state[0], state[1] = line, out


def check(source: Any, begins: Any, ends: Any, texts: Any, sound: Any) -> None:
    """Check each text for UTF-8.

    Args:
        source: int8, the texts; three bytes before each, and one behind it, are ASCII.
        begins: int64 (texts), where each begins.
        ends: int64 (texts), where each ends.
        texts: Number of texts.
        sound: int64 (texts), 1 for each that is UTF-8.
    """
    for text in range(texts):
        sound[text] = is_sound_utf8(source, begins[text], ends[text] + 1, _u8(0))


@inline
def _chars_before(source: Any, begin: Any, end: Any) -> Any:
    """Return the code points of the bytes between two offsets."""
    inside = _i64(0)
    for i in range(begin, end):
        inside += source[i] < -64
    return end - begin - inside


def trim(source: Any, begins: Any, ends: Any, texts: Any, least: Any, states: Any) -> None:
    """Remove short lines at both ends of texts.

    A line is short if it has fewer code points than `least`.

    Args:
        source: int8, the texts.
        begins: int64 (texts), where each begins.
        ends: int64 (texts), where each ends.
        texts: Number of texts.
        least: code points.
        states: int64 (texts), 1 for a text with such a line, 0 for one without, -1 for one with a carriage return,
            which is left as it is.
    """
    for text in range(texts):
        at, stop = begins[text], ends[text]
        returns = False
        for i in range(at, stop):
            returns |= source[i] == _RETURN
        if returns:
            states[text] = -1
            continue
        if stop > at and source[stop - 1] == _FEED:
            stop -= 1
        states[text] = 0
        while True:
            feed = at
            while feed < stop and source[feed] != _FEED:
                feed += 1
            if _chars_before(source, at, feed) >= least:
                states[text] = 1
                break
            if feed >= stop:
                break
            at = feed + 1
        while states[text] == 1:
            first = stop
            while first > at and source[first - 1] != _FEED:
                first -= 1
            if _chars_before(source, first, stop) >= least:
                break
            stop = first - 1
        begins[text], ends[text] = at, stop


_QUOTES, _SPACES = 34 * _LOWEST, 32 * _LOWEST


@_compiled
def _string_end(source: Any, at: Any, end: Any) -> Any:
    """Return the end of a string, and its number of backslashes."""
    escapes = _i64(0)
    while at < end:
        word = eight_bytes(source, at)
        quotes, slashes = word ^ _u64(_QUOTES), word ^ _u64(_SLASHES)
        special = (((quotes - _u64(_LOWEST)) & ~quotes) | ((slashes - _u64(_LOWEST)) & ~slashes)) & _u64(_HIGHEST)
        if special == 0:
            at += 8
            continue
        at += lowest_bit(special) >> 3
        if source[at] == _QUOTE:
            return min(at + 1, end), escapes
        at, escapes = at + 2, escapes + 1
    return end, escapes


@_compiled
def _value_end(source: Any, at: Any, end: Any) -> Any:
    """Return the end of a value, and the backslashes of a string."""
    if source[at] == _QUOTE:
        return _string_end(source, at + 1, end)
    depth = _i64(0)
    while at < end:
        byte = source[at]
        if byte == _QUOTE:
            at, _ = _string_end(source, at + 1, end)
            continue
        if depth == 0 and (byte in (44, 93, 125)):  # , ] }
            break
        at, depth = at + 1, depth + _i64(byte in (91, 123)) - _i64(byte in (93, 125))
    return at, _i64(0)


@_compiled
def _behind_space(source: Any, at: Any, end: Any) -> Any:
    while at < end and source[at] in (9, 13, 32):
        at += 1
    return at


@_compiled
def _copied(source: Any, begin: Any, end: Any, out: Any, at: Any) -> Any:
    for i in range(begin, end):
        out[at + i - begin] = source[i]
    return at + end - begin


_ID, _TEXT, _SOURCE = (int.from_bytes(key, "little") for key in (b'id"', b'text"', b'source"'))
_OPEN, _CLOSE, _COLON, _COMMA = 123, 125, 58, 44
_BEFORE_SOURCE, _BEFORE_ID = 10, 16  # bytes of ``{"source":``, and these with ``,"id":``


def find(source: Any, size: Any, name: Any, begins: Any, ends: Any, names: Any, state: Any) -> None:
    """Find the texts and names of documents in rows of JSON.

    A row is plain if each key is there once, without escapes, and these three are strings. Other rows are for a parser
    of JSON, which also says what is wrong with one that is none.

    Args:
        source: int8, the rows, with a line feed between two; 16 bytes can be read behind them.
        size: bytes of the rows.
        name: int8, ``{"source":,"id":}`` and a line feed.
        begins: int64 (rows), where each text begins, with its quote.
        ends: int64 (rows), where it ends.
        names: int8, with room for `size` bytes: a row like `name` for each document.
        state: int64 (4), the documents, 1 if all rows are plain, the bytes of their names, and backslashes of texts.
    """
    at, row, out, escapes = _i64(0), _i64(0), _i64(0), _i64(0)
    plain, goes_on = True, True
    while plain and goes_on:
        id_begin, id_end, source_begin, source_end, begin, end = _i64(0), _i64(0), _i64(0), _i64(0), _i64(0), _i64(0)
        at = _behind_space(source, at, size)
        plain = at < size and source[at] == _OPEN
        more = plain
        while more:
            key = _behind_space(source, at + 1, size) + 1
            key_end, slashes = _string_end(source, key, size)
            at = _behind_space(source, key_end, size)
            value = _behind_space(source, at + 1, size)
            plain = source[key - 1] == _QUOTE and slashes == 0 and source[at] == _COLON and value < size
            if not plain:
                break
            at, slashes = _value_end(source, value, size)
            length, word = key_end - key, eight_bytes(source, key)
            if length == 3 and word & _u64(0xFFFFFF) == _u64(_ID):
                plain = id_begin == 0 and source[value] == _QUOTE
                id_begin, id_end = value, at
            elif length == 5 and word & _u64(0xFFFFFFFFFF) == _u64(_TEXT):
                plain = begin == 0 and source[value] == _QUOTE
                begin, end, escapes = value, at, escapes + slashes
            elif length == 7 and word & _u64(0xFFFFFFFFFFFFFF) == _u64(_SOURCE):
                plain = source_begin == 0 and source[value] == _QUOTE
                source_begin, source_end = value, at
            at = _behind_space(source, at, size)
            more = plain and at < size and source[at] == _COMMA
        plain = plain and source[at] == _CLOSE and min(id_begin, min(begin, source_begin)) > 0
        at = _behind_space(source, at + 1, size)
        goes_on = at < size
        plain = plain and (not goes_on or source[at] == _FEED)
        if plain:
            begins[row], ends[row] = begin, end
            out = _copied(name, _i64(0), _i64(_BEFORE_SOURCE), names, out)
            out = _copied(source, source_begin, source_end, names, out)
            out = _copied(name, _i64(_BEFORE_SOURCE), _i64(_BEFORE_ID), names, out)
            out = _copied(source, id_begin, id_end, names, out)
            out = _copied(name, _i64(_BEFORE_ID), _i64(_BEFORE_ID + 2), names, out)
            row += 1
        at += 1
    state[0], state[1], state[2], state[3] = row, _i64(plain), out, escapes


@inline
def _hex(digit: Any) -> Any:
    return digit + (48 if digit < 10 else 87)


def encode(source: Any, begins: Any, ends: Any, texts: Any, rows: Any, out: Any, places: Any, chars: Any) -> None:
    """Write rows of JSON with a text in each.

    Args:
        source: int8, the texts in UTF-8; seven bytes can be read behind the last one.
        begins: int64 (texts), where each begins.
        ends: int64 (texts), where each ends.
        texts: Number of texts.
        rows: the rows without the texts.
        out: int8, with room for all, six bytes for each of a text, and eight more.
        places: int64 (texts + 1), where each row begins in it, and the end.
        chars: int64 (texts), code points of each text.
    """
    at, places[0] = _i64(0), 0
    for text in range(texts):
        for i in range(rows.bounds[text], rows.gaps[text]):
            out[at] = rows.utf8[i]
            at += 1
        begin, end, inside = begins[text], ends[text], _i64(0)
        while begin < end:
            word = eight_bytes(source, begin)
            put_eight_bytes(out, at, word)
            quotes, slashes = word ^ _u64(_QUOTES), word ^ _u64(_SLASHES)
            special = (quotes - _u64(_LOWEST)) & ~quotes
            special |= (slashes - _u64(_LOWEST)) & ~slashes
            special |= (word - _u64(_SPACES)) & ~word
            special &= _u64(_HIGHEST)
            continues = (word >> _u64(7)) & ~(word >> _u64(6)) & _u64(_LOWEST)
            if special == 0 and end - begin >= 8:
                inside += _i64(ones(continues))
                begin, at = begin + 8, at + 8
                continue
            size = min(_i64(8), end - begin)
            if special != 0:
                size = min(size, lowest_bit(special) >> 3)
            if size < 8:
                continues &= (_u64(1) << _u64(8 * size)) - _u64(1)
            inside += _i64(ones(continues))
            begin, at = begin + size, at + size
            if begin == end or special == 0:
                continue
            byte = _i64(source[begin])
            begin += 1
            letter = byte
            if byte == _FEED:
                letter = _i64(_N)
            elif byte == _RETURN:
                letter = _i64(114)
            elif byte == 9:
                letter = _i64(116)
            elif byte == 8:
                letter = _i64(98)
            elif byte == 12:
                letter = _i64(102)
            elif byte < 32:
                letter = _i64(_U)
            out[at], out[at + 1] = _SLASH, letter
            at += 2
            if letter == _U:
                out[at], out[at + 1], out[at + 2], out[at + 3] = 48, 48, _hex(byte >> 4), _hex(byte & 15)
                at += 4
        chars[text] = ends[text] - begins[text] - inside
        for i in range(rows.gaps[text], rows.bounds[text + 1]):
            out[at] = rows.utf8[i]
            at += 1
        places[text + 1] = at
