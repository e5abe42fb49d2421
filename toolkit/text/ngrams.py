"""n-grams of words in compiled code: how often the most frequent one occurs, and what the repeated ones cover.

Two n-grams are the same where a hash (64 bits) of their words' hashes is. Hash tables are emptied by a stamp, so that a
short text costs no more than its own words.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.lazy_numpy import np
from toolkit.text.kernels.compiling import compiled
from toolkit.text.kernels.signatures import Array, Int64s, UInt64s
from toolkit.text.line_table import sums

if TYPE_CHECKING:
    from toolkit.text.words import Words

PRIME = 0x9E3779B97F4A7C15
"""Multiplier of an n-gram's hash before the next word is added."""


class Top(NamedTuple):
    """The most frequent n-gram of each text; the first one, if several tie. Zeros for a text without n-grams.

    Attributes:
        counts: int64, how often it occurs; overlapping occurrences count.
        sizes: int64, the sum of its words' sizes.
    """

    counts: Int64s
    sizes: Int64s


class Repeated(NamedTuple):
    """Share of each text in n-grams with at least two occurrences.

    Attributes:
        covered: int64, the sum of sizes of all words that are in some occurrence of one.
        again: int64, the same sum without the first occurrences.
        total: int64, n-grams in all.
        several: int64, of these, those that occur at least twice.
        distinct: int64, how many different ones there are.
    """

    covered: Int64s
    again: Int64s
    total: Int64s
    several: Int64s
    distinct: Int64s


class Repetition(NamedTuple):
    """Share of each text in repeated n-grams of several lengths.

    Row n is about n-grams of n words, row 0 about none.

    Attributes:
        occurrences: int64 of each word, how often it occurs in its text, at its first occurrence; 0 at the others.
        top: int64 (rows, texts), the sizes of all occurrences of the most frequent n-gram (of several, the one that
            comes first); 0 where none occurs twice.
        covered: int64 (rows, texts), as that of `Repeated`.
    """

    occurrences: Int64s
    top: Int64s
    covered: Int64s


class Sequences(NamedTuple):
    """Words of texts as numbers, for counting n-grams.

    Attributes:
        hashes: uint64 of each word.
        sizes: int64, what each word counts: its code points, as a rule.
        bounds: int64 (texts + 1), the first word of each text, and the end of all.
    """

    hashes: UInt64s
    sizes: Int64s
    bounds: Int64s

    @classmethod
    def of(cls, words: "Words", *, folded: bool = False) -> "Sequences":
        """Return the sequences of a table of words, folded on request."""
        return cls(words.folded if folded else words.hashes, words.chars, words.bounds)

    @property
    def totals(self) -> Array:
        """Return the sizes of all words of each text, int64."""
        return sums(self.sizes, self.bounds)

    def top(self, n: int) -> Top:
        """Return the most frequent n-gram of each text."""
        return self._counted(n, cover=False)[0]

    def repeated(self, n: int) -> Repeated:
        """Measure the n-grams of each text with at least two occurrences."""
        return self._counted(n, cover=True)[1]

    def repetition(self, longest: int) -> Repetition:
        """Measure repeated n-grams of all lengths up to the longest.

        It is faster than one length after the other.
        """
        texts = len(self.bounds) - 1
        most = int(np.max(np.diff(self.bounds), initial=0))
        places, grams = np.zeros(most, dtype=np.int64), np.zeros(most, dtype=np.uint64)
        top, covered = np.zeros((2, longest + 1, texts), dtype=np.int64)
        result = Repetition(np.zeros(len(self.hashes), dtype=np.int64), top, covered)
        _grow(self, texts, longest, _Table.of(most), places, grams, result)
        return result

    def joined(self, n: int) -> "Sequences":
        """Return each n-gram as a word: a hash of its words, and the sum of their sizes."""
        last = np.repeat(self.bounds[1:], np.diff(self.bounds))
        at = np.flatnonzero(np.arange(n, len(last) + n) <= last)
        hashes = self.hashes[at]
        for i in range(1, n):
            hashes = hashes * np.uint64(PRIME) + self.hashes[at + i]
        before = np.append(0, np.cumsum(self.sizes))
        return Sequences(hashes, before[at + n] - before[at], np.searchsorted(at, self.bounds))

    def _counted(self, n: int, *, cover: bool) -> tuple[Top, Repeated]:
        texts = len(self.bounds) - 1
        table = _Table.of(int(np.max(np.diff(self.bounds), initial=0)))
        result = np.zeros((7, texts), dtype=np.int64)
        top, repeated = Top(*result[:2]), Repeated(*result[2:])
        _count(self, texts, n, cover, table, top, repeated)
        return top, repeated


class _Table(NamedTuple):
    """A hash table of n-grams: its slots, where each is met first, and the slot of each place of a text."""

    keys: UInt64s
    stamps: Int64s
    counts: Int64s
    firsts: Int64s
    slots: Int64s

    @classmethod
    def of(cls, places: int) -> "_Table":
        """Return an empty one for a text of so many n-grams."""
        room = 1 << max(4, (2 * places).bit_length())
        stamps, counts, firsts = np.zeros((3, room), dtype=np.int64)
        return cls(np.zeros(room, dtype=np.uint64), stamps, counts, firsts, np.zeros(places + 1, dtype=np.int64))


@compiled(Sequences, "int64 int64 int64", _Table, Top, Repeated)
def _count(sequences: Sequences, texts: Any, n: Any, cover: Any, table: _Table, top: Top, repeated: Repeated) -> None:
    hashes, sizes, bounds = sequences
    keys, stamps, counts, firsts, slots = table
    covered, again, total, several, distinct = repeated
    for text in range(texts):
        begin, words = bounds[text], bounds[text + 1] - bounds[text]
        grams = words - n + 1
        if grams <= 0:
            continue
        mask = 15
        while mask + 1 < 2 * grams:
            mask = 2 * mask + 1
        best, best_at = 0, 0
        different = 0
        for i in range(grams):
            hash_ = hashes[begin + i]
            for j in range(1, n):
                hash_ = hash_ * PRIME + hashes[begin + i + j]
            hash_ ^= hash_ >> 29
            hash_ *= 0xBF58476D1CE4E5B9
            hash_ ^= hash_ >> 32
            slot = hash_ & mask
            while stamps[slot] == text + 1 and keys[slot] != hash_:
                slot = (slot + 1) & mask
            if stamps[slot] != text + 1:
                stamps[slot], keys[slot], counts[slot], firsts[slot] = text + 1, hash_, 0, i
                different += 1
            counts[slot] += 1
            slots[i] = slot
            if counts[slot] > best or (counts[slot] == best and firsts[slot] < best_at):
                best, best_at = counts[slot], firsts[slot]
        size = 0
        for j in range(n):
            size += sizes[begin + best_at + j]
        top.counts[text], top.sizes[text] = best, size
        total[text], distinct[text] = grams, different
        if cover:
            to_here = to_again = 0  # words before these are added up
            for i in range(grams):
                slot = slots[i]
                if counts[slot] < 2:
                    continue
                several[text] += 1
                for j in range(max(i, to_here), i + n):
                    covered[text] += sizes[begin + j]
                to_here = i + n
                if firsts[slot] != i:
                    for j in range(max(i, to_again), i + n):
                        again[text] += sizes[begin + j]
                    to_again = i + n


@compiled(Sequences, "int64 int64", _Table, "int64* uint64*", Repetition)
def _grow(
    sequences: Sequences, texts: Any, longest: Any, table: _Table, places: Any, grams: Any, repetition: Repetition
) -> None:
    """Count n-grams of all lengths; a longer one is repeated only where two shorter ones are (`places`, `grams`)."""
    hashes, sizes, bounds = sequences
    keys, stamps, counts, firsts, slots = table
    occurrences, top, covered = repetition
    stamp = 0
    for text in range(texts):
        begin = bounds[text]
        remaining = bounds[text + 1] - begin
        mask = 15
        while mask + 1 < 2 * remaining:
            mask = 2 * mask + 1
        for i in range(remaining):
            places[i], grams[i] = begin + i, hashes[begin + i]
        for n in range(1, longest + 1):
            stamp += 1
            for i in range(remaining):
                key = grams[i]
                key ^= key >> 29
                key *= 0xBF58476D1CE4E5B9
                key ^= key >> 32
                slot = key & mask
                while stamps[slot] == stamp and keys[slot] != grams[i]:
                    slot = (slot + 1) & mask
                if stamps[slot] != stamp:
                    stamps[slot], keys[slot], counts[slot], firsts[slot] = stamp, grams[i], 0, places[i]
                counts[slot] += 1
                slots[i] = slot
            best, best_at, to_here, repeated = 1, 0, 0, 0
            for i in range(remaining):
                count, at = counts[slots[i]], places[i]
                if n == 1 and firsts[slots[i]] == at:
                    occurrences[at] = count
                if count < 2:
                    continue
                if count > best:
                    best, best_at = count, at
                for j in range(max(at, to_here), at + n):
                    covered[n * texts + text] += sizes[j]
                to_here = at + n
                if i + 1 < remaining and places[i + 1] == at + 1 and counts[slots[i + 1]] > 1:
                    places[repeated], grams[repeated] = at, grams[i] * PRIME + hashes[at + n]
                    repeated += 1
            if best > 1:
                for j in range(best_at, best_at + n):
                    top[n * texts + text] += best * sizes[j]
            remaining = repeated
            if remaining == 0:
                break
