"""Byte-level BPE in compiled code: texts are divided into pieces, and each piece into tokens.

Used by `toolkit.text.tokens.byte_level`, which says what the arguments are.
"""

from typing import Any

import numba

from toolkit.text.kernels.intrinsics import inline
from toolkit.text.kernels.words import decoded
from toolkit.text.tokens.byte_level import (
    LETTER,
    LONG,
    NUMBER,
    ONE_SPACE,
    OTHER,
    SPACE,
    UNKNOWN,
    Division,
    Merges,
    MergeScratch,
    PieceTable,
    Texts,
    TokenBuffer,
)
from toolkit.text.words import PRIME, SEED

_i64, _u64 = numba.int64, numba.uint64

_QUOTE, _BLANK = 0x27, 0x20


@inline
def _class(utf8: Any, at: Any, end: Any, classes: Any) -> Any:
    """Return the class of a character, and the offset of the next.

    For an unknown one these are 0 and -1 - its number.
    """
    if at >= end:
        return _i64(0), at
    point, after = decoded(utf8, at)
    kind = _i64(classes[point])
    if kind == UNKNOWN:
        return _i64(UNKNOWN), -1 - _i64(point)
    return kind, _i64(after)


@inline
def _run(utf8: Any, at: Any, end: Any, classes: Any, class_: Any, most: Any) -> Any:
    """Return the end of a run of one class, negative if unknown.

    It has at most so many characters.
    """
    result = at
    while result < end and most != 0:
        kind, after = _class(utf8, result, end, classes)
        if kind == UNKNOWN:
            return after
        if kind != class_:
            break
        result = after
        most -= 1
    return result


@inline
def _lower(byte: Any, either: Any) -> Any:
    return byte | 0x20 if either != 0 and 0x41 <= byte <= 0x5A else byte


@inline
def _contraction(utf8: Any, at: Any, end: Any, either: Any) -> Any:
    """Return the length of a contraction at a place; 0 for none.

    These are ``'s 't 'm 'd 're 've 'll``.
    """
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


@inline
def _spaces(utf8: Any, at: Any, end: Any, division: Any) -> Any:
    """Return the end of a piece after white space.

    It is negative at an unknown character.
    """
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


@inline
def _piece(utf8: Any, at: Any, end: Any, division: Any) -> Any:
    """Return the end of the piece at a place.

    It is negative at an unknown character.
    """
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


@inline
def _pair(merges: Any, left: Any, right: Any) -> Any:
    """Return the slot of a pair of tokens; -1 if they are not merged."""
    key = (_u64(left) << _u64(32)) | _u64(right)
    slot = _i64((key * _u64(PRIME)) >> _u64(merges.shift))
    while merges.keys[slot] != _u64(0xFFFFFFFFFFFFFFFF):
        if merges.keys[slot] == key:
            return slot
        slot = (slot + 1) & merges.mask
    return _i64(-1)


@inline
def _rank(merges: Any, room: Any, i: Any) -> Any:
    slot = _pair(merges, room.tokens[i], room.tokens[i + 1])
    room.slots[i] = slot
    room.ranks[i] = merges.ranks[slot] if slot >= 0 else numba.int32(0x7FFFFFFF)


@inline
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
        room.tokens[best] = merges.products[room.slots[best]]
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


@inline
def _same(utf8: Any, at: Any, length: Any, pieces: Any, entry: Any) -> Any:
    if pieces.lengths[entry] != length:
        return False
    place = pieces.places[entry]
    for i in range(length):  # noqa: SIM110  # numba takes no generator
        if pieces.pool[place + i] != utf8[at + i]:
            return False
    return True


@inline
def _hash(utf8: Any, at: Any, end: Any) -> Any:
    result = _u64(SEED)
    for i in range(at, end):
        result = (result ^ _u64(_i64(utf8[i]) & 255)) * _u64(PRIME)
    return result ^ (result >> _u64(29))


@inline
def _slot(utf8: Any, at: Any, end: Any, pieces: Any) -> Any:
    """Return the slot of a piece, or an empty one for it."""
    slot = _i64(_hash(utf8, at, end) & _u64(pieces.mask))
    while pieces.slots[slot] >= 0 and not _same(utf8, at, end - at, pieces, pieces.slots[slot]):
        slot = (slot + 1) & pieces.mask
    return slot


@inline
def _remember(utf8: Any, at: Any, end: Any, pieces: Any, slot: Any, tokens: Any, first: Any, n: Any) -> Any:
    entry, used, token = pieces.used[0], pieces.used[1], pieces.used[2]
    if entry >= pieces.entries or used + end - at > pieces.room or token + n > pieces.tokens_room:
        return
    for i in range(end - at):
        pieces.pool[used + i] = utf8[at + i]
    for i in range(n):
        pieces.tokens[token + i] = numba.uint32(tokens[first + i])
    pieces.places[entry], pieces.lengths[entry] = used, numba.int32(end - at)
    pieces.firsts[entry], pieces.counts[entry] = token, numba.int32(n)
    pieces.slots[slot] = numba.int32(entry)
    pieces.used[0], pieces.used[1], pieces.used[2] = entry + 1, used + end - at, token + n


def remember(request: Texts, tokens: Any, pieces: PieceTable) -> None:
    """Store texts of one token each."""
    for text in range(request.texts):
        slot = _slot(request.utf8, request.bounds[text], request.bounds[text + 1], pieces)
        if pieces.slots[slot] < 0:
            _remember(request.utf8, request.bounds[text], request.bounds[text + 1], pieces, slot, tokens, text, _i64(1))


def encode(
    request: Texts, division: Division, merges: Merges, pieces: PieceTable, room: MergeScratch, answer: TokenBuffer
) -> None:
    """Divide texts into tokens from ``answer.state`` on.

    It stops at an unknown character or a long piece.
    """
    utf8, state = request.utf8, answer.state
    text, at, n = state[0], state[1], state[2]
    state[3], state[4] = _i64(0), _i64(0)
    while text < request.texts:
        end = request.bounds[text + 1]
        while at < end:
            behind = _piece(utf8, at, end, division)
            if behind < 0 or behind - at > LONG:
                state[0], state[1], state[2], state[3], state[4] = text, at, n, behind, _i64(1)
                return
            slot = _slot(utf8, at, behind, pieces)
            entry = pieces.slots[slot]
            if entry >= 0:
                first = pieces.firsts[entry]
                for i in range(pieces.counts[entry]):
                    answer.tokens[n + i] = pieces.tokens[first + i]
                n += pieces.counts[entry]
            else:
                count = _merged(utf8, at, behind, merges, room)
                for i in range(count):
                    answer.tokens[n + i] = numba.uint32(room.tokens[i])
                _remember(utf8, at, behind, pieces, slot, room.tokens, _i64(0), count)
                n += count
            at = behind
        text += 1
        answer.bounds[text] = n
        at = end
    state[0], state[1], state[2] = text, at, n
