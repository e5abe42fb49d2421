"""Records of WARC files as nearly all of them are, found many at once; compiled. See `plain_records`."""

import functools
from typing import Any

import numba

from toolkit.ingest.web.plain_records import (
    BEGIN,
    BLOCK,
    COLUMNS,
    DATE,
    DATE_END,
    END,
    HEADERS,
    ID,
    ID_END,
    JSON,
    JSON_END,
    TYPE,
    TYPE_END,
)

_VERSION = tuple(b"WARC/1.")
_TYPE, _LENGTH, _ID, _DATE = map(tuple, (b"warc-type", b"content-length", b"warc-record-id", b"warc-date"))
_OFFSET, _PRIME = 0xCBF29CE484222325, 0x100000001B3

_inline = functools.partial(numba.njit, inline="always")


@_inline
def _are(text: Any, begin: Any, end: Any, word: Any) -> Any:
    """Return whether the bytes between two offsets are a word, given as a tuple of bytes."""
    if end - begin != len(word):
        return False
    same = True
    for j in range(len(word)):
        same = same and text[begin + j] == word[j]
    return same


@_inline
def _number(text: Any, begin: Any, end: Any) -> Any:
    """Return the number in decimal digits between two offsets; -1 if there is none, or it is a large one."""
    value = numba.int64(0 if begin < end and end - begin <= 18 else -1)
    for j in range(begin, end):
        digit = numba.int64(text[j]) - 48
        value = numba.int64(-1) if value < 0 or digit < 0 or digit > 9 else 10 * value + digit
    return value


def find_plain(source: Any, end: Any, largest: Any, seen: Any, places: Any, json: Any, state: Any) -> None:
    r"""Find records one behind the other, up to one that is not plain, or not whole.

    A plain record begins with ``WARC/1.0`` or ``1.1``; each header is a name of letters, digits and hyphens, a colon,
    one space, and ASCII that can be seen, with spaces inside; no name is there twice; lines end in ``\r\n``; two of
    these follow a block of the length that it says.

    Args:
        source: int8, a part of a file.
        end: of its bytes.
        largest: the most bytes of a block.
        seen: uint64 (HEADERS), room to work in.
        places: int64 (records, COLUMNS), what is found.
        json: int8, twice as many as the source has; the headers of each record as a JSON object.
        state: int64 (2): how many were found, and 1 if the source ends in what may become one more.
    """
    found, at, out, more = numba.int64(0), numba.int64(0), numba.int64(0), numba.int64(0)
    while True:
        if at + 12 > end:
            more = numba.int64(1)
            break
        version = source[at + 7]
        if not (_are(source, at, at + 7, _VERSION) and version in (48, 49)):
            break
        if source[at + 8] != 13 or source[at + 9] != 10:
            break
        row = found * COLUMNS
        for column in range(COLUMNS):
            places[row + column] = -1
        begin_json, q, headers, length = out, at + 10, numba.int64(0), numba.int64(-1)
        last = min(end, at + 100 * HEADERS)  # of what is looked at of a head
        ended = plain = False
        while q + 1 < last:
            if source[q] == 13:
                plain = ended = source[q + 1] == 10
                break
            json[out], json[out + 1] = numba.int8(44), numba.int8(34)  # , "
            if headers == 0:
                json[out] = numba.int8(123)  # {
            out += 2
            name, hash_ = out, numba.uint64(_OFFSET)
            while q < last:
                byte = source[q]
                if 65 <= byte <= 90:
                    byte = numba.int8(byte + 32)
                if not (97 <= byte <= 122 or byte == 45 or 48 <= byte <= 57):
                    break
                json[out] = byte
                hash_ = (hash_ ^ numba.uint64(byte)) * numba.uint64(_PRIME)
                out += 1
                q += 1
            name_end = out
            if q + 2 >= last or name == name_end or source[q] != 58 or source[q + 1] != 32:
                break
            for i in range(headers):
                if seen[i] == hash_:  # or another name with the same hash
                    headers = numba.int64(HEADERS)
            if headers == HEADERS:
                break
            seen[headers] = hash_
            headers += 1
            json[out], json[out + 1], json[out + 2] = numba.int8(34), numba.int8(58), numba.int8(34)  # ":"
            out += 3
            q += 2
            value = q
            while q < last and source[q] >= 32 and source[q] != 127:
                byte = source[q]
                if byte in (34, 92):
                    json[out] = numba.int8(92)
                    out += 1
                json[out] = byte
                out += 1
                q += 1
            if q + 1 >= last or source[q] != 13 or source[q + 1] != 10:
                break
            if q == value or source[value] == 32 or source[q - 1] == 32:
                break
            json[out] = numba.int8(34)
            out += 1
            if _are(json, name, name_end, _TYPE):
                places[row + TYPE], places[row + TYPE_END] = value, q
            elif _are(json, name, name_end, _ID):
                places[row + ID], places[row + ID_END] = value, q
            elif _are(json, name, name_end, _DATE):
                places[row + DATE], places[row + DATE_END] = value, q
            elif _are(json, name, name_end, _LENGTH):
                length = _number(source, value, q)
            q += 2
        if not ended:
            more = numba.int64(q + 2 >= last and last == end)
            break
        if not plain or length < 0 or length > largest or places[row + TYPE] < 0:
            break
        behind = q + 2 + length
        if behind + 4 > end:
            more = numba.int64(1)
            break
        if source[behind] != 13 or source[behind + 1] != 10 or source[behind + 2] != 13 or source[behind + 3] != 10:
            break
        json[out] = numba.int8(125)  # }
        out += 1
        places[row + BEGIN], places[row + BLOCK], places[row + END] = at, q + 2, behind
        places[row + JSON], places[row + JSON_END] = begin_json, out
        at = behind + 4
        found += 1
    state[0], state[1] = found, more
