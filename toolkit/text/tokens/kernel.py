"""Byte-level BPE in compiled code: texts are divided into pieces, and each piece into tokens.

Used by `toolkit.text.tokens.byte_level`, which says what the arguments are.
"""

import functools
from typing import Any

import numba

from toolkit.text import unicode_table
from toolkit.text.tokens.byte_level import (
    LETTER,
    LONG,
    NUMBER,
    ONE_SPACE,
    OTHER,
    SPACE,
    UNKNOWN,
    Asked,
    Division,
    Known,
    Merges,
    Room,
    Said,
)
from toolkit.text.words import PRIME, SEED

_inline = functools.partial(numba.njit, inline="always")
_i64, _u64 = numba.int64, numba.uint64
decoded = _inline(unicode_table.decoded)

_QUOTE, _BLANK = 0x27, 0x20


@_inline
def _class(utf8: Any, at: Any, end: Any, classes: Any) -> Any:
    """Return the class of the character at a place, and where the next one begins; 0, -1 - its number, if unknown."""
    if at >= end:
        return _i64(0), at
    point, after = decoded(utf8, at)
    kind = _i64(classes[point])
    if kind == UNKNOWN:
        return _i64(UNKNOWN), -1 - _i64(point)
    return kind, _i64(after)


@_inline
def _run(utf8: Any, at: Any, end: Any, classes: Any, wanted: Any, most: Any) -> Any:
    """Return where a run of characters of a class ends, at most so many; negative at an unknown one."""
    result = at
    while result < end and most != 0:
        kind, after = _class(utf8, result, end, classes)
        if kind == UNKNOWN:
            return after
        if kind != wanted:
            break
        result = after
        most -= 1
    return result


@_inline
def _lower(byte: Any, either: Any) -> Any:
    return byte | 0x20 if either != 0 and 0x41 <= byte <= 0x5A else byte


@_inline
def _contraction(utf8: Any, at: Any, end: Any, either: Any) -> Any:
    """Return the length of ``'s 't 'm 'd 're 've 'll`` at a place; 0 for none."""
    if utf8[at] != _QUOTE or at + 1 >= end:
        return _i64(0)
    first = _lower(utf8[at + 1], either)
    if first in (0x73, 0x74, 0x6D, 0x64):
        return _i64(2)
    if at + 2 < end:
        second = _lower(utf8[at + 2], either)
        if (first in (0x72, 0x76) and second == 0x65) or (first == 0x6C and second == 0x6C):
            return _i64(3)
    return _i64(0)


@_inline
def _spaces(utf8: Any, at: Any, end: Any, division: Any) -> Any:
    """Return where a piece ends that begins with white space; negative at an unknown character."""
    result, last, line = at, at, _i64(-1)
    while result < end:
        kind, after = _class(utf8, result, end, division.classes)
        if kind == UNKNOWN:
            return after
        if kind != SPACE:
            break
        last = result
        if utf8[result] == 10 or utf8[result] == 13:
            line = after
        result = after
    if division.kind != ONE_SPACE and line >= 0:
        return line
    return result if result >= end or last == at else last  # the last one goes to what follows


@_inline
def _piece(utf8: Any, at: Any, end: Any, division: Any) -> Any:
    """Return where the piece that begins at a place ends; negative at an unknown character."""
    classes, spaced = division.classes, division.kind != ONE_SPACE
    length = _contraction(utf8, at, end, spaced)
    if length != 0:
        return at + length
    kind, after = _class(utf8, at, end, classes)
    if kind == UNKNOWN:
        return after
    first, blank = kind, utf8[at] == _BLANK
    inner = at
    if blank or (spaced and (kind == OTHER or (kind == SPACE and utf8[at] != 10 and utf8[at] != 13))):
        following, behind = _class(utf8, after, end, classes)
        if following == UNKNOWN and behind < 0:
            return behind
        if following == LETTER or (blank and following == OTHER) or (blank and not spaced and following == NUMBER):
            kind, inner = following, after
    if kind == LETTER:
        return _run(utf8, inner, end, classes, LETTER, -1)
    if kind == NUMBER and (not spaced or first == NUMBER):
        return _run(utf8, inner, end, classes, NUMBER, division.digits)
    if kind == OTHER:
        result = _run(utf8, inner, end, classes, OTHER, -1)
        while spaced and 0 <= result < end and (utf8[result] == 10 or utf8[result] == 13):
            result += 1
        return result
    return _spaces(utf8, at, end, division)


@_inline
def _pair(merges: Any, left: Any, right: Any) -> Any:
    """Return the slot of a pair of tokens; -1 if they are not merged."""
    key = (_u64(left) << _u64(32)) | _u64(right)
    slot = _i64((key * _u64(PRIME)) >> _u64(merges.shift))
    while merges.keys[slot] != _u64(0xFFFFFFFFFFFFFFFF):
        if merges.keys[slot] == key:
            return slot
        slot = (slot + 1) & merges.mask
    return _i64(-1)


@_inline
def _rank(merges: Any, room: Any, i: Any) -> Any:
    slot = _pair(merges, room.tokens[i], room.tokens[i + 1])
    room.slots[i] = slot
    room.ranks[i] = merges.ranks[slot] if slot >= 0 else numba.int32(0x7FFFFFFF)


@_inline
def _merged(utf8: Any, at: Any, end: Any, merges: Any, room: Any) -> Any:
    """Divide a piece into tokens in ``room.tokens``; return their number."""
    n = end - at
    for i in range(n):
        room.tokens[i] = merges.bytes[_i64(utf8[at + i]) & 255]
    for i in range(n - 1):
        _rank(merges, room, i)
    while n > 1:
        best, least = _i64(-1), numba.int32(0x7FFFFFFF)
        for i in range(n - 1):
            if room.ranks[i] < least:
                best, least = _i64(i), room.ranks[i]
        if best < 0:
            break
        room.tokens[best] = merges.made[room.slots[best]]
        n -= 1
        for i in range(best + 1, n):
            room.tokens[i] = room.tokens[i + 1]
            room.ranks[i] = room.ranks[i + 1]
            room.slots[i] = room.slots[i + 1]
        if best + 1 < n:
            _rank(merges, room, best)
        if best > 0:
            _rank(merges, room, best - 1)
    return n


@_inline
def _same(utf8: Any, at: Any, length: Any, known: Any, entry: Any) -> Any:
    if known.lengths[entry] != length:
        return False
    place = known.places[entry]
    for i in range(length):  # noqa: SIM110  # numba takes no generator
        if known.pool[place + i] != utf8[at + i]:
            return False
    return True


@_inline
def _hash(utf8: Any, at: Any, end: Any) -> Any:
    result = _u64(SEED)
    for i in range(at, end):
        result = (result ^ _u64(_i64(utf8[i]) & 255)) * _u64(PRIME)
    return result ^ (result >> _u64(29))


@_inline
def _slot(utf8: Any, at: Any, end: Any, known: Any) -> Any:
    """Return the slot of a piece, or that where it would be."""
    slot = _i64(_hash(utf8, at, end) & _u64(known.mask))
    while known.slots[slot] >= 0 and not _same(utf8, at, end - at, known, known.slots[slot]):
        slot = (slot + 1) & known.mask
    return slot


@_inline
def _remember(utf8: Any, at: Any, end: Any, known: Any, slot: Any, tokens: Any, first: Any, n: Any) -> Any:
    entry, used, held = known.used[0], known.used[1], known.used[2]
    if entry >= known.entries or used + end - at > known.room or held + n > known.tokens_room:
        return
    for i in range(end - at):
        known.pool[used + i] = utf8[at + i]
    for i in range(n):
        known.tokens[held + i] = numba.uint32(tokens[first + i])
    known.places[entry], known.lengths[entry] = used, numba.int32(end - at)
    known.firsts[entry], known.counts[entry] = held, numba.int32(n)
    known.slots[slot] = numba.int32(entry)
    known.used[0], known.used[1], known.used[2] = entry + 1, used + end - at, held + n


def remember(asked: Asked, tokens: Any, known: Known) -> None:
    """Remember texts that are a token each."""
    for text in range(asked.texts):
        slot = _slot(asked.utf8, asked.bounds[text], asked.bounds[text + 1], known)
        if known.slots[slot] < 0:
            _remember(asked.utf8, asked.bounds[text], asked.bounds[text + 1], known, slot, tokens, text, _i64(1))


def encode(asked: Asked, division: Division, merges: Merges, known: Known, room: Room, said: Said) -> None:
    """Divide texts into tokens, from where ``said.state`` is, until all are, or something is unknown."""
    utf8, state = asked.utf8, said.state
    text, at, n = state[0], state[1], state[2]
    state[3], state[4] = _i64(0), _i64(0)
    while text < asked.texts:
        end = asked.bounds[text + 1]
        while at < end:
            behind = _piece(utf8, at, end, division)
            if behind < 0 or behind - at > LONG:
                state[0], state[1], state[2], state[3], state[4] = text, at, n, behind, _i64(1)
                return
            slot = _slot(utf8, at, behind, known)
            entry = known.slots[slot]
            if entry >= 0:
                first = known.firsts[entry]
                for i in range(known.counts[entry]):
                    said.tokens[n + i] = known.tokens[first + i]
                n += known.counts[entry]
            else:
                count = _merged(utf8, at, behind, merges, room)
                for i in range(count):
                    said.tokens[n + i] = numba.uint32(room.tokens[i])
                _remember(utf8, at, behind, known, slot, room.tokens, _i64(0), count)
                n += count
            at = behind
        text += 1
        said.bounds[text] = n
        at = end
    state[0], state[1], state[2] = text, at, n
