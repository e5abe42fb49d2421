"""Hash tables, line ends and values of documents in compiled code. Used by its neighbours alone."""

import functools
from typing import Any

import numba

from toolkit.text.kernels.intrinsics import high_product, put_eight_bytes
from toolkit.text.kernels.mixing import mixed
from toolkit.whole_corpus.exact.decisions import Piled
from toolkit.whole_corpus.exact.runs import FIRST, Hashes, Numbered, Sorted, Table

_inline = functools.partial(numba.njit, inline="always")
_u8, _i64, _u64 = numba.uint8, numba.int64, numba.uint64

_TAB, _RETURN, _SPACE = 0x09, 0x0D, 0x20


def number(hashes: Hashes, table: Table, result: Numbered) -> None:
    """Assign numbers to equal hashes (see `toolkit.whole_corpus.exact.runs`)."""
    high, low, ranks = hashes.high, hashes.low, hashes.ranks
    numbers, chosen, count = result.numbers, result.chosen, _i64(0)
    for i in range(hashes.items):
        slot = _i64(high_product(high[i] - table.least, table.factor)) & table.mask
        while True:
            at = table.slots[slot]
            if at < 0:
                table.tags[slot], table.slots[slot] = high[i], count
                numbers[i], chosen[count] = count, i
                count += 1
                break
            best = chosen[at]
            if table.tags[slot] == high[i] and low[best] == low[i]:
                numbers[i] = at
                if hashes.ranked != 0 and _is_lower(ranks[i], ranks[best]):
                    chosen[at] = i
                break
            slot = (slot + 1) & table.mask
    result.different[0] = count


def order(hashes: Hashes, shift: Any, starts: Any, sorted_numbers: Any) -> None:
    """Write the order of different hashes.

    Args:
        hashes: Hashes to sort.
        shift: Shift of the upper half: what is left of it says in which bucket a hash is.
        starts: Start of each bucket in `sorted_numbers`; changed.
        sorted_numbers: the numbers of hashes, sorted.
    """
    high, low = hashes.high, hashes.low
    for i in range(hashes.items):
        bucket = _i64(high[i] >> _u64(shift))
        sorted_numbers[starts[bucket]] = i
        starts[bucket] += 1
    for at in range(1, hashes.items):
        mine, place = sorted_numbers[at], _i64(at)
        while place > 0:
            other = sorted_numbers[place - 1]
            if high[other] < high[mine] or (high[other] == high[mine] and low[other] <= low[mine]):
                break
            sorted_numbers[place] = other
            place -= 1
        sorted_numbers[place] = mine


def enter(numbers: Any, items: Any, keys: Sorted, places: Any, room: Any, keys_of_items: Any) -> None:
    """Write the key of each item (see `toolkit.whole_corpus.exact.runs`).

    Args:
        numbers: Numbers of each item that is compared, that of its hash.
        items: Number of compared items.
        keys: the hashes in their order.
        places: Places of the items that are compared among all.
        room: Scratch space, a number for each hash.
        keys_of_items: Keys of all items.
    """
    for key in range(keys.keys):
        room[keys.order[key]] = key
    for i in range(items):
        keys_of_items[places[i]] = room[numbers[i]]
    for key in range(keys.keys):
        keys_of_items[places[keys.chosen[key]]] |= FIRST


@_inline
def _is_lower(rank: Any, other: Any) -> Any:
    """Return True if a rank is lower; what is no number is the highest."""
    return rank < other or (other != other and rank == rank)  # noqa: PLR0124  # NaN is not equal to itself


@_inline
def _width(utf8: Any, i: Any, behind: Any) -> Any:
    """Return the width in bytes of white space at an offset; 0 for none."""
    first, size = _u8(utf8[i]), _i64(0)
    second = _u8(utf8[i + 1]) if i + 1 < behind else _u8(0)
    third = _u8(utf8[i + 2]) if i + 2 < behind else _u8(0)
    if first == _SPACE or (_TAB <= first <= _RETURN) or (0x1C <= first <= 0x1F):
        size = 1
    elif first == 0xC2 and second in (0x85, 0xA0):
        size = 2
    elif first == 0xE1:
        size = 3 * (second == 0x9A and third == 0x80)
    elif first == 0xE2 and second == 0x80:
        size = 3 * (third <= 0x8A or third in (0xA8, 0xA9, 0xAF))
    elif first == 0xE2:
        size = 3 * (second == 0x81 and third == 0x9F)
    elif first == 0xE3:
        size = 3 * (second == 0x80 and third == 0x80)
    return size


def strip(utf8: Any, lines: Any, starts: Any, ends: Any) -> None:
    """Strip white space from both ends of lines."""
    for line in range(lines):
        begin, end = starts[line], ends[line]
        while begin < end:
            size = _width(utf8, begin, end)
            if size == 0:
                break
            begin += size
        while begin < end:
            size = _i64(0)
            for back in range(1, 4):
                if end - back >= begin and _width(utf8, end - back, end) == back:
                    size = back
            if size == 0:
                break
            end -= size
        starts[line], ends[line] = begin, end


@_inline
def _copy(out: Any, at: Any, parts: Any, part: Any) -> Any:
    begin, end = parts[part], parts[part + 1]
    for i in range(begin, end):
        out[at + i - begin] = parts[i]
    return at + end - begin


@_inline
def _decimal(out: Any, at: Any, value: Any) -> Any:
    digits, rest = _i64(1), value
    while rest >= 10:
        digits, rest = digits + 1, rest // 10
    for i in range(digits):
        out[at + digits - 1 - i] = 48 + value % 10
        value //= 10
    return at + digits


_SEEN, _SPANS, _CHARS, _SCORE = range(4)  # of `Piled.parts`
_COMMA, _OPEN, _CLOSE = 0x2C, 0x5B, 0x7D
_TRUE, _FALSE = int.from_bytes(b"true,\0\0\0", "little"), int.from_bytes(b"false,\0\0", "little")


@_inline
def _is_seen(run: Any, i: Any) -> Any:
    """Return 1 for a repeated piece, else 0; without branches, which are as often taken as not."""
    item = _i64(run.items[i])
    return 1 ^ ((item >> 31) & _i64(run.stays[min(item & (FIRST - 1), run.keys)]))


def values(run: Piled, documents: Any, out: Any, ends: Any) -> None:
    """Write the values of documents as JSON (see `toolkit.whole_corpus.exact.decisions`).

    Args:
        run: Pieces of the documents.
        documents: Number of documents.
        out: room for all.
        ends: End of each value.
    """
    first, at = _i64(0), _i64(0)
    sizes, bounds = run.sizes, run.bounds
    for document in range(documents):
        behind = first + _i64(bounds[2 * document])
        at = _copy(out, at, run.parts, _SEEN)
        for i in range(first, behind):
            is_seen = _is_seen(run, i)
            put_eight_bytes(out, at, _u64(_TRUE) if is_seen else _u64(_FALSE))
            at += 6 - is_seen
        at -= behind > first  # the last comma
        at = _copy(out, at, run.parts, _SPANS)
        place = _i64(bounds[2 * document + 1])
        begin, chars = _i64(-1), _i64(0)
        listed = False
        for i in range(first, behind + 1):
            is_seen = _is_seen(run, i) if i < behind else _i64(0)
            if is_seen and begin < 0:
                begin = place
            if not is_seen and begin >= 0:
                if listed:
                    out[at] = _COMMA
                    at += 1
                listed = True
                out[at] = _OPEN
                at = _decimal(out, at + 1, begin)
                out[at] = _COMMA
                at = _decimal(out, at + 1, place)
                at = _copy(out, at, run.parts, _SCORE)
                chars += place - begin
                begin = _i64(-1)
            if i < behind:
                place += _i64(sizes[i])
        at = _copy(out, at, run.parts, _CHARS)
        at = _decimal(out, at, chars)
        out[at] = _CLOSE
        at += 1
        ends[document] = at
        first = behind


def fill(hashes: Hashes, bits: Any, size: Any, functions: Any, is_new: Any) -> None:
    """Enter hashes in a Bloom filter, in their order; note which of them it did not have (see `table`)."""
    for i in range(hashes.items):
        place = mixed(hashes.high[i])
        step = mixed(hashes.low[i] ^ _u64(0x9E3779B97F4A7C15)) | _u64(1)
        result = True
        for _ in range(functions):
            at = place % _u64(size)
            word, bit = _i64(at >> _u64(6)), _u64(1) << (at & _u64(63))
            if bits[word] & bit == 0:
                result = False
                bits[word] |= bit
            place += step
        is_new[i] = not result
