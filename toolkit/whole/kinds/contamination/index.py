"""The n-grams of items, and which of them texts have: exact, by 128 bits of each n-gram.

A text is taken as its words (see `toolkit.text.words`) from beginning to end, whatever lines it has: in simple case
folding, without punctuation, symbols and format characters, also within words. Two n-grams are the same where two
hashes of 64 bits are equal that share no constant: of n-grams that differ, about one pair in 2^110 is taken for the
same.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from toolkit.text import LineTable, Words, characters
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Int64s, UInt64s
from toolkit.text.unicode_table import Characters
from toolkit.whole.kinds.contamination.items import Item

FIRST, SECOND = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
"""What the two hashes are multiplied by."""

_KERNEL = "toolkit.whole.kinds.contamination.kernel"
_MARKS = 4
"""Bits of marks for each slot, of which there are at least two for each n-gram: most lookups end there."""


class Table(NamedTuple):
    """The n-grams of an index, for compiled code.

    Attributes:
        number: of lengths.
        lengths: int64, words of n-grams that are looked for.
        keys: uint64, the first hash of each n-gram.
        others: uint64, the second.
        slots: int64, a hash table by the lower bits of the first: numbers of n-grams from 1, 0 where none is.
        mask: slots but one.
        marks: uint64, a bit for the upper bits of the first hash.
        shift: which bits these are.
    """

    number: int
    lengths: Int64s
    keys: UInt64s
    others: UInt64s
    slots: Int64s
    mask: int
    marks: UInt64s
    shift: int


_hash_words = Compiled(f"{_KERNEL}:hash_words", "int8* int64* int64* int64", Characters, "uint64* uint64*")
_hash_grams = Compiled(f"{_KERNEL}:hash_grams", "uint64* uint64* int64 int64 uint64* uint64*")
_find = Compiled(f"{_KERNEL}:find", "uint64* uint64* int64* int64", Table, "int64* int64* int64*", uses=[__name__])
_fill = Compiled(f"{_KERNEL}:fill", "uint64* int64 int64 int64 int64* uint64*")


class Normalised(NamedTuple):
    """The words of some texts.

    Attributes:
        words: where they are.
        first, second: uint64, two hashes of each.
    """

    words: Words
    first: UInt64s
    second: UInt64s

    @classmethod
    def of(cls, texts: Sequence[str | bytes]) -> "Normalised":
        """Return the words of texts; those that are bytes are in UTF-8."""
        import numpy as np

        words = Words.of(LineTable.of(texts))
        first, second = np.empty((2, len(words.starts)), dtype=np.uint64)
        _hash_words(words.lines.utf8, words.starts, words.ends, len(words.starts), characters(), first, second)
        return cls(words, first, second)


class Hits(NamedTuple):
    """Where n-grams of an index are in texts: int64 arrays, sorted by place.

    Attributes:
        places: the first word of each.
        grams: its number.
    """

    places: Array
    grams: Array


class Index:
    """The n-grams of items.

    Args:
        items: in order.
        ngram: words of an n-gram.
        min_words: a text shorter than an n-gram is looked for as a whole if it has so many words.

    Attributes:
        names: benchmark and name of each item.
        sizes: int64, how many different n-grams each item has; 0 if nothing of it can be looked for.
        words: int64, the words of each item.
        lengths: int64, words of each n-gram.
        postings, items: int64; the items that have n-gram i are ``items[postings[i]:postings[i + 1]]``.
        table: for compiled code.
    """

    def __init__(self, items: Iterable[Item], ngram: int, min_words: int) -> None:
        import numpy as np

        self.names: list[tuple[str, str]] = []
        words: list[int] = []
        found: list[tuple[Array, Array, Array, Array]] = []
        for some in _together(items):
            number = len(self.names)
            self.names += [(item.benchmark, item.name) for item in some]
            words += _grams(some, number, ngram, min_words, found)
        nothing = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.uint64)
        keys, others, lengths, of = (
            np.concatenate(column) for column in zip((*nothing, *np.zeros((2, 0), dtype=np.int64)), *found, strict=True)
        )
        self.words = np.array(words, dtype=np.int64)
        order = np.lexsort((of, others, keys))
        keys, others, lengths, of = keys[order], others[order], lengths[order], of[order]
        if len(order):
            fresh = np.append(True, (keys[1:] != keys[:-1]) | (others[1:] != others[:-1]))
            once = fresh | np.append(True, of[1:] != of[:-1])  # an n-gram counts once in an item
            keys, others, lengths, of, fresh = keys[once], others[once], lengths[once], of[once], fresh[once]
            firsts = np.flatnonzero(fresh)
        else:
            firsts = np.zeros(0, dtype=np.int64)
        self.items = of
        self.postings = np.append(firsts, len(of))
        self.lengths = lengths[firsts]
        self.sizes = np.bincount(of, minlength=len(self.names)).astype(np.int64)
        self.table = _table(keys[firsts], others[firsts], self.lengths)

    def hits(self, found: Normalised) -> Hits:
        """Return where n-grams of the items are in texts."""
        import numpy as np

        bounds, room = found.words.bounds, 64
        while True:
            places, grams = np.empty((2, room), dtype=np.int64)
            count = np.array([room, 0], dtype=np.int64)
            _find(found.first, found.second, bounds, len(bounds) - 1, self.table, places, grams, count)
            if count[1] <= room:
                order = np.lexsort((grams[: count[1]], places[: count[1]]))
                return Hits(places[order], grams[order])
            room = int(count[1])

    def of_grams(self, grams: Array) -> tuple[Array, Array]:
        """Return the items that each of some n-grams is of, one behind the other, and where those of each begin."""
        import numpy as np

        begin, end = self.postings[grams], self.postings[grams + 1]
        sizes = end - begin
        before = np.cumsum(sizes) - sizes
        at = np.repeat(begin - before, sizes) + np.arange(int(sizes.sum()))
        return self.items[at], before


_ITEMS = 4096
_CHARS = 1 << 22


def _together(items: Iterable[Item]) -> Iterable[list[Item]]:
    held: list[Item] = []
    chars = 0
    for item in items:
        held.append(item)
        chars += sum(map(len, item.texts))
        if len(held) >= _ITEMS or chars >= _CHARS:
            yield held
            held, chars = [], 0
    if held:
        yield held


def _grams(
    items: list[Item], number: int, ngram: int, min_words: int, found: list[tuple[Array, Array, Array, Array]]
) -> list[int]:
    """Add the n-grams of items, which are numbered from a number; return how many words each has."""
    import numpy as np

    texts = [(number + i, text) for i, item in enumerate(items) for text in item.texts]
    normal = Normalised.of([text for _, text in texts])
    bounds = normal.words.bounds.tolist()
    words = [0] * len(items)
    for (item, _), begin, end in zip(texts, bounds[:-1], bounds[1:], strict=True):
        size = end - begin
        words[item - number] += size
        if size < min(ngram, min_words) or not size:
            continue
        length = min(size, ngram)
        keys, others = np.empty((2, size - length + 1), dtype=np.uint64)
        first, second = normal.first[begin:end], normal.second[begin:end]
        _hash_grams(first, second, size, length, keys, others)
        found.append((keys, others, np.full(len(keys), length), np.full(len(keys), item)))
    return words


def _table(keys: Array, others: Array, lengths: Array) -> Table:
    import numpy as np

    bits = (2 * len(keys)).bit_length()
    shift = 64 - (bits + _MARKS.bit_length() - 1)
    slots = np.zeros(1 << bits, dtype=np.int64)
    marks = np.zeros(max(1, (1 << (64 - shift)) >> 6), dtype=np.uint64)
    _fill(keys, len(keys), len(slots) - 1, shift, slots, marks)
    different = np.unique(lengths)
    return Table(len(different), different, keys, others, slots, len(slots) - 1, marks, shift)


__all__: Sequence[Any] = ("Hits", "Index", "Normalised", "Table")
