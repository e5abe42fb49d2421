"""Normalised words, n-grams and lookups in compiled code. Used by `items`."""

import functools
from typing import Any

import numba

from toolkit.text import unicode_table
from toolkit.text.unicode_table import BREAKS, FOLD, FORMAT, PUNCTUATION, ZWJ, Characters
from toolkit.whole_corpus.kinds.contamination import FIRST, SECOND, Table

_inline = functools.partial(numba.njit, inline="always")

decoded, number_of = _inline(unicode_table.decoded), _inline(unicode_table.number_of)


@_inline
def _mixed(x: Any) -> Any:
    """Return 64 well mixed bits (the last step of MurmurHash3)."""
    x = (x ^ (x >> numba.uint64(33))) * numba.uint64(0xFF51AFD7ED558CCD)
    x = (x ^ (x >> numba.uint64(33))) * numba.uint64(0xC4CEB9FE1A85EC53)
    return x ^ (x >> numba.uint64(33))


def hash_words(utf8: Any, starts: Any, ends: Any, n: Any, table: Characters, first: Any, second: Any) -> None:
    """Fill two hashes of each word: its case folded, without punctuation, symbols and format characters.

    Args:
        utf8: int8.
        starts: int64, offsets of the words.
        ends: int64, exclusive.
        n: Number of words.
        table: Table of the code points.
        first: uint64 (n), filled.
        second: uint64 (n), filled.
    """
    for i in range(n):
        at, end = starts[i], ends[i]
        a, b = numba.uint64(0x243F6A8885A308D3), numba.uint64(0x13198A2E03707344)
        while at < end:
            point, at = decoded(utf8, at)
            number = number_of(table, point)
            kind = number & BREAKS
            if number & PUNCTUATION or kind in (FORMAT, ZWJ):
                continue
            folded = numba.uint64(point + (number >> FOLD))
            a = (a ^ folded) * numba.uint64(FIRST)
            b = (b + folded) * numba.uint64(SECOND)
            b ^= b >> numba.uint64(29)
        first[i], second[i] = _mixed(a), _mixed(b)


def hash_grams(first: Any, second: Any, words: Any, length: Any, keys: Any, second_keys: Any) -> None:
    """Fill the two hashes of each n-gram of some words, in order.

    Args:
        first: uint64, of the words.
        second: uint64, the second hashes of the words.
        words: Number of words; there are ``words - length + 1`` n-grams.
        length: words of an n-gram.
        keys: uint64, filled.
        second_keys: uint64, filled.
    """
    a = b = numba.uint64(0)
    power_a = power_b = numba.uint64(1)
    for _ in range(length):
        power_a *= numba.uint64(FIRST)
        power_b *= numba.uint64(SECOND)
    for i in range(words):
        a = a * numba.uint64(FIRST) + first[i]
        b = b * numba.uint64(SECOND) + second[i]
        if i >= length:
            a -= first[i - length] * power_a
            b -= second[i - length] * power_b
        if i >= length - 1:
            keys[i - length + 1] = _mixed(a ^ numba.uint64(length))
            second_keys[i - length + 1] = b


def find(first: Any, second: Any, bounds: Any, texts: Any, table: Table, places: Any, grams: Any, count: Any) -> None:
    """Find the n-grams of an index in texts: for each length of n-grams, in the order of the texts.

    Args:
        first: uint64, of the words of all texts.
        second: uint64, their second hashes.
        bounds: int64 (texts + 1), the first word of each text, and the end of all.
        texts: Number of texts.
        table: Table of the index.
        places: int64, the first word of each n-gram that is found; as far as there is room.
        grams: int64, its number; as far as there is room.
        count: int64 (2): the room; how many were found, which may be more.
    """
    result = numba.int64(0)
    for i_length in range(table.number):
        length = table.lengths[i_length]
        power_a = power_b = numba.uint64(1)
        for _ in range(length):
            power_a *= numba.uint64(FIRST)
            power_b *= numba.uint64(SECOND)
        for text in range(texts):
            begin = bounds[text]
            a = b = numba.uint64(0)
            for i in range(begin, bounds[text + 1]):
                a = a * numba.uint64(FIRST) + first[i]
                b = b * numba.uint64(SECOND) + second[i]
                if i - begin >= length:
                    a -= first[i - length] * power_a
                    b -= second[i - length] * power_b
                if i - begin < length - 1:
                    continue
                key = _mixed(a ^ numba.uint64(length))
                bit = key >> numba.uint64(table.shift)
                if not (table.marks[numba.int64(bit >> numba.uint64(6))] >> (bit & numba.uint64(63))) & numba.uint64(1):
                    continue
                slot = numba.int64(key & numba.uint64(table.mask))
                while table.slots[slot]:
                    gram = table.slots[slot] - 1
                    if table.keys[gram] == key and table.second_keys[gram] == b:
                        if result < count[0]:
                            places[result] = i - length + 1
                            grams[result] = gram
                        result += 1
                        break
                    slot = (slot + 1) & table.mask
    count[1] = result


def fill(keys: Any, n: Any, mask: Any, shift: Any, slots: Any, marks: Any) -> None:
    """Fill the empty slots and marks of a table."""
    for i in range(n):
        key = keys[i]
        bit = key >> numba.uint64(shift)
        marks[numba.int64(bit >> numba.uint64(6))] |= numba.uint64(1) << (bit & numba.uint64(63))
        slot = numba.int64(key & numba.uint64(mask))
        while slots[slot]:
            slot = (slot + 1) & mask
        slots[slot] = i + 1
