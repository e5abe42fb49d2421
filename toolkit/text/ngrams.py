"""n-grams of words in compiled code: how often the most frequent one occurs, and what the repeated ones cover.

Two n-grams are the same where a hash (64 bits) of their words' hashes is. Hash tables are emptied by a stamp, so that a
short text costs no more than its own words.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.text.kernels.compiling import compiled
from toolkit.text.kernels.signatures import Int64s, UInt64s

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

    from toolkit.text.words import Words

PRIME = 0x9E3779B97F4A7C15
"""What the hash of an n-gram is multiplied by before the next word is added to it."""


class Top(NamedTuple):
    """The most frequent n-gram of each text; of several, the one that comes first. Zeros where there is no n-gram.

    Attributes:
        counts: int64, how often it occurs; overlapping occurrences count.
        sizes: int64, the sum of its words' sizes.
    """

    counts: "Array"
    sizes: "Array"


class Repeated(NamedTuple):
    """What n-grams that occur at least twice in a text have of it.

    Attributes:
        covered: int64, the sum of sizes of all words that are in some occurrence of one.
        again: int64, likewise without the first occurrences.
        total: int64, n-grams in all.
        several: int64, of these, those that occur at least twice.
        distinct: int64, how many different ones there are.
    """

    covered: "Array"
    again: "Array"
    total: "Array"
    several: "Array"
    distinct: "Array"


class Repetition(NamedTuple):
    """What repeated n-grams have of each text; row n is about those of n words, row 0 about none.

    Attributes:
        occurrences: int64 of each word, how often it occurs in its text, at its first occurrence; 0 at the others.
        top: int64 (rows, texts), the sizes of all occurrences of the most frequent n-gram (of several, the one that
            comes first); 0 where none occurs twice.
        covered: int64 (rows, texts), as that of `Repeated`.
    """

    occurrences: "Array"
    top: "Array"
    covered: "Array"


class Sequences(NamedTuple):
    """The words of some texts, as numbers, for n-grams to be counted over.

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
        """Of a table of words, in lower case if asked for."""
        return cls(words.folded if folded else words.hashes, words.chars, words.bounds)

    @property
    def totals(self) -> "Array":
        """int64: the sizes of all words of each text."""
        from toolkit.text.words import sums

        return sums(self.sizes, self.bounds)

    def top(self, n: int) -> Top:
        """The most frequent n-gram of each text."""
        counts, sizes, *_ = self._counted(n, cover=False)
        return Top(counts, sizes)

    def repeated(self, n: int) -> Repeated:
        """What the n-grams that occur at least twice have of each text."""
        return Repeated(*self._counted(n, cover=True)[2:])

    def repetition(self, longest: int) -> Repetition:
        """What n-grams of all lengths up to the longest have of each text, faster than one length after the other."""
        import numpy as np

        texts = len(self.bounds) - 1
        most = int(np.max(np.diff(self.bounds), initial=0))
        room = 1 << max(4, (2 * most).bit_length())
        keys, stamps = np.zeros(room, dtype=np.uint64), np.zeros(room, dtype=np.int64)
        counts, firsts = np.zeros((2, room), dtype=np.int64)
        slots, places = np.zeros((2, most), dtype=np.int64)
        grams, occurrences = np.zeros(most, dtype=np.uint64), np.zeros(len(self.hashes), dtype=np.int64)
        top, covered = np.zeros((2, longest + 1, texts), dtype=np.int64)
        _grow(
            self.hashes, self.sizes, self.bounds, texts, longest, keys, stamps, counts, firsts, slots, places, grams,
            occurrences, top, covered,
        )  # fmt: skip
        return Repetition(occurrences, top, covered)

    def joined(self, n: int) -> "Sequences":
        """Each n-gram as a word: a hash of its words, and the sum of their sizes."""
        import numpy as np

        last = np.repeat(self.bounds[1:], np.diff(self.bounds))
        at = np.flatnonzero(np.arange(n, len(last) + n) <= last)
        hashes = self.hashes[at]
        for i in range(1, n):
            hashes = hashes * np.uint64(PRIME) + self.hashes[at + i]
        before = np.append(0, np.cumsum(self.sizes))
        return Sequences(hashes, before[at + n] - before[at], np.searchsorted(at, self.bounds))

    def _counted(self, n: int, *, cover: bool) -> "Array":
        import numpy as np

        texts = len(self.bounds) - 1
        longest = int(np.max(np.diff(self.bounds), initial=0))
        room = 1 << max(4, (2 * longest).bit_length())
        keys, stamps = np.zeros(room, dtype=np.uint64), np.zeros(room, dtype=np.int64)
        counts, firsts = np.zeros(room, dtype=np.int64), np.zeros(room, dtype=np.int64)
        slots = np.zeros(longest + 1, dtype=np.int64)
        found = np.zeros((7, texts), dtype=np.int64)
        _count(self.hashes, self.sizes, self.bounds, texts, n, cover, keys, stamps, counts, firsts, slots, *found)
        return found


@compiled(
    "uint64* int64* int64* int64 int64 int64 uint64* int64* int64* int64* int64* "
    "int64* int64* int64* int64* int64* int64* int64*"
)
def _count(
    hashes: Any, sizes: Any, bounds: Any, texts: Any, n: Any, cover: Any,
    keys: Any, stamps: Any, counts: Any, firsts: Any, slots: Any,
    top_counts: Any, top_sizes: Any, covered: Any, again: Any, total: Any, several: Any, distinct: Any,
) -> None:  # fmt: skip
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
        top_counts[text], top_sizes[text] = best, size
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


@compiled("uint64* int64* int64* int64 int64 uint64* int64* int64* int64* int64* int64* uint64* int64* int64* int64*")
def _grow(
    hashes: Any, sizes: Any, bounds: Any, texts: Any, longest: Any,
    keys: Any, stamps: Any, counts: Any, firsts: Any, slots: Any, places: Any, grams: Any,
    occurrences: Any, top: Any, covered: Any,
) -> None:  # fmt: skip
    """A longer n-gram can only be repeated where two shorter ones are: `places` and `grams` are of these alone."""
    stamp = 0
    for text in range(texts):
        begin = bounds[text]
        left = bounds[text + 1] - begin
        mask = 15
        while mask + 1 < 2 * left:
            mask = 2 * mask + 1
        for i in range(left):
            places[i], grams[i] = begin + i, hashes[begin + i]
        for n in range(1, longest + 1):
            stamp += 1
            for i in range(left):
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
            best, best_at, to_here, kept = 1, 0, 0, 0
            for i in range(left):
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
                if i + 1 < left and places[i + 1] == at + 1 and counts[slots[i + 1]] > 1:
                    places[kept], grams[kept] = at, grams[i] * PRIME + hashes[at + n]
                    kept += 1
            if best > 1:
                for j in range(best_at, best_at + n):
                    top[n * texts + text] += best * sizes[j]
            left = kept
            if left == 0:
                break
