"""Compiled scan of a buffer for WARC records."""

from typing import Any

import numba

from toolkit.text.kernels.intrinsics import inline
from toolkit.text.kernels.json_strings import is_sound_utf8
from toolkit.text.warc_records import DIGEST, JSON_END, LONGEST_HEAD, MOST_NAMES, ROW, VALUES, Scan

_i64, _u8 = numba.int64, numba.uint8

_TYPE, _LENGTH, _BLOCK_DIGEST, _PAYLOAD_DIGEST = 0, 3, 4, 5
_RETURN, _FEED, _SPACE, _QUOTE, _SLASH, _COLON, _COMMA, _C, _L = 13, 10, 32, 34, 92, 58, 44, 67, 76


@inline
def _is_line_end(source: Any, at: Any) -> Any:
    return source[at] == _RETURN and source[at + 1] == _FEED


@inline
def _same(source: Any, at: Any, other: Any, other_at: Any, size: Any) -> Any:
    same = True
    for i in range(size):
        same &= source[at + i] == other[other_at + i]
    return same


@inline
def _head_end(source: Any, begin: Any, end: Any) -> Any:
    """Return the offset behind the blank line after a head; -1 if it is not there yet, -2 if it is too far away."""
    last = min(end, begin + LONGEST_HEAD) - 4
    for at in range(begin, last + 1):
        if source[at + 3] == _FEED and _is_line_end(source, at) and source[at + 2] == _RETURN:
            return at + 4
    return _i64(-2 if end - begin >= LONGEST_HEAD else -1)


@inline
def _headers(source: Any, begin: Any, end: Any, scan: Any, row: Any, out: Any) -> Any:
    """Write headers as JSON; return its end, or -1 for headers in an unusual form.

    They are unusual if a name is there twice, or has other characters than letters, digits and hyphens; and if the
    length is not spelled ``Content-Length``, which the slower code takes for another header.
    """
    at, count = begin, _i64(0)
    scan.headers[out] = 123
    out += 1
    while at < end:
        if count == MOST_NAMES:
            return _i64(-1)
        if count:
            scan.headers[out] = _COMMA
            out += 1
        scan.headers[out] = _QUOTE
        name, spelling, capitals = out + 1, at, _i64(0)
        out = name
        while source[at] != _COLON:
            letter = _i64(source[at])
            if 65 <= letter <= 90:
                letter, capitals = letter + 32, capitals + 1
            elif not (97 <= letter <= 122 or 48 <= letter <= 57 or letter == 45):
                return _i64(-1)
            scan.headers[out] = letter
            at, out = at + 1, out + 1
        size = out - name
        for i in range(count):
            other = scan.own_names[2 * i]
            if scan.own_names[2 * i + 1] == size and _same(scan.headers, name, scan.headers, other, size):
                return _i64(-1)
        scan.own_names[2 * count], scan.own_names[2 * count + 1] = name, size
        count += 1
        scan.headers[out], scan.headers[out + 1], scan.headers[out + 2] = _QUOTE, _COLON, _QUOTE
        out, at = out + 3, at + 1
        while source[at] == _SPACE:
            at += 1
        value, value_end, json_end = at, at, out
        while not _is_line_end(source, at):
            letter = _i64(source[at])
            if 0 <= letter < 32 or letter == 127:
                return _i64(-1)
            if letter in (_QUOTE, _SLASH):
                scan.headers[out] = _SLASH
                out += 1
            scan.headers[out] = letter
            at, out = at + 1, out + 1
            if letter != _SPACE:
                value_end, json_end = at, out
        scan.headers[json_end] = _QUOTE
        out, at = json_end + 1, at + 2
        for k in range(6):
            place = scan.name_bounds[k]
            if scan.name_bounds[k + 1] - place == size and _same(scan.headers, name, scan.names, place, size):
                scan.places[row + VALUES + 2 * k], scan.places[row + VALUES + 2 * k + 1] = value, value_end
                if k == _LENGTH and not (capitals == 2 and source[spelling] == _C and source[spelling + 8] == _L):
                    return _i64(-1)
    scan.headers[out] = 125
    return out + 1


@inline
def _number(source: Any, begin: Any, end: Any) -> Any:
    """Return a number in up to 18 decimal digits; -1 for anything else."""
    number = _i64(0 if 0 < end - begin <= 18 else -1)
    for at in range(begin, end if number == 0 else begin):
        if not 48 <= source[at] <= 57:
            return _i64(-1)
        number = 10 * number + source[at] - 48
    return number


@inline
def _sha1(source: Any, begin: Any, end: Any, digests: Any, out: Any) -> Any:
    """Decode ``sha1:`` and a digest in base32; return False for other digests."""
    if end - begin != 37 or source[begin + 4] != _COLON or source[begin + 3] != 49:
        return False
    if source[begin] != 115 or source[begin + 1] != 104 or source[begin + 2] != 97:
        return False
    bits, n = _i64(0), 0
    for at in range(begin + 5, end):
        letter = _i64(source[at])
        if 65 <= letter <= 90:
            letter -= 65
        elif 50 <= letter <= 55:
            letter -= 24
        else:
            return False
        bits, n = bits << 5 | letter, n + 5
        if n >= 8:
            n -= 8
            digests[out] = bits >> n & 255
            bits, out = bits & 255, out + 1
    return True


def scan_records(source: Any, end: Any, most: Any, limit: Any, scan: Scan) -> None:
    """Find the records at the beginning of a buffer.

    A record is in the usual form if it begins with ``WARC/1.0`` or ``WARC/1.1``, its headers are lines of UTF-8 without
    control characters, and two line ends follow its block. Everything else is left to slower code.

    Args:
        source: int8, the buffer.
        end: Its end.
        most: Number of records that there is room for.
        limit: Bytes of the largest block.
        scan: Result.
    """
    begin, out, records = _i64(0), _i64(0), _i64(0)
    places, state = scan.places, scan.state
    state[2] = 0
    while records < most:
        row = records * ROW
        head_end = _head_end(source, begin, end)
        if head_end < 0:
            state[2] = _i64(head_end == -2)
            break
        state[2] = 1
        line_end = begin + 8
        if source[begin] != 87 or source[begin + 1] != 65 or source[begin + 2] != 82 or source[begin + 3] != 67:
            break
        if source[begin + 4] != 47 or source[begin + 5] != 49 or source[begin + 6] != 46 or line_end + 4 > head_end:
            break
        if not 48 <= source[begin + 7] <= 49 or not _is_line_end(source, line_end):
            break
        if not is_sound_utf8(source, line_end + 2, head_end, _u8(0)):
            break
        for i in range(row, row + ROW):
            places[i] = -1
        json_end = _headers(source, line_end + 2, head_end - 2, scan, row, out)
        if json_end < 0 or places[row + VALUES + 2 * _LENGTH] < 0:
            break
        if places[row + VALUES] >= places[row + VALUES + 1]:
            break
        size = _number(source, places[row + VALUES + 2 * _LENGTH], places[row + VALUES + 2 * _LENGTH + 1])
        if not 0 <= size <= limit:
            break
        block_end = head_end + size
        if block_end + 4 > end:
            state[2] = 0
            break
        if not (_is_line_end(source, block_end) and _is_line_end(source, block_end + 2)):
            break
        places[row], places[row + 1], places[row + 2], places[row + JSON_END] = begin, head_end, block_end, json_end
        digest = row + VALUES + 2 * _BLOCK_DIGEST
        places[row + DIGEST] = _i64(places[digest] >= 0 or places[row + VALUES + 2 * _PAYLOAD_DIGEST] >= 0)
        if places[digest] >= 0 and _sha1(source, places[digest], places[digest + 1], scan.digests, 20 * records):
            places[row + DIGEST] = 2
        out, begin, records = json_end, block_end + 4, records + 1
        state[2] = 0
    state[0], state[1] = records, begin
