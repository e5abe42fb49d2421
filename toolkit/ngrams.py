"""n-grams of words in compiled code: how often the most frequent one occurs, and what the repeated ones cover.

Two n-grams are the same where a hash (64 bits) of their words' hashes is. Hash tables are emptied by a stamp, so that a
short text costs no more than its own words.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.compiling import compiled

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

    from toolkit.words import Words


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


class Sequences(NamedTuple):
    """The words of some texts, as numbers, for n-grams to be counted over.

    Attributes:
        hashes: uint64 of each word.
        sizes: int64, what each word counts: its code points, as a rule.
        bounds: int64 (texts + 1), the first word of each text, and the end of all.
    """

    hashes: "Array"
    sizes: "Array"
    bounds: "Array"

    @classmethod
    def of(cls, words: "Words", *, folded: bool = False) -> "Sequences":
        """Of a table of words, in lower case if asked for."""
        return cls(words.folded if folded else words.hashes, words.chars, words.bounds)

    @property
    def totals(self) -> "Array":
        """int64: the sizes of all words of each text."""
        from toolkit.words import sums

        return sums(self.sizes, self.bounds)

    def top(self, n: int) -> Top:
        """The most frequent n-gram of each text."""
        counts, sizes, *_ = self._counted(n, cover=False)
        return Top(counts, sizes)

    def repeated(self, n: int) -> Repeated:
        """What the n-grams that occur at least twice have of each text."""
        return Repeated(*self._counted(n, cover=True)[2:])

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
                hash_ = hash_ * 0x9E3779B97F4A7C15 + hashes[begin + i + j]
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
