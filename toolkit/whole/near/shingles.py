"""Shingles: the n-grams of words by which documents are compared, and the sets of distinct ones.

Words are those that taggers have (`toolkit.text.words`), without regard to case; what has no letter and no number in it
is passed over. A character of a script without spaces (a Chinese or Japanese character, a Thai, Lao, Khmer or Burmese
letter with its marks) is a word of its own there. It says less than a word, so it counts less: a shingle is the fewest
words in a row that weigh as much as `ngram` words or `characters` such characters. So texts in which scripts meet have
shingles, too, and no language has to be known.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Int64s, UInt64s
from toolkit.text.line_table import LineTable
from toolkit.text.unicode_table import Characters, characters
from toolkit.text.words import Words

CHARACTERS_OF_A_WORD = 2
"""Characters of a script without spaces that count as much as a word, unless it is said otherwise."""


class Weights(NamedTuple):
    """What a word weighs, what a character of a script without spaces weighs, and what a shingle weighs at least."""

    word: int
    character: int
    shingle: int


class Size(NamedTuple):
    """How long a shingle is.

    Attributes:
        ngram: in words.
        characters: in characters of scripts without spaces.
    """

    ngram: int = 5
    characters: int = 5 * CHARACTERS_OF_A_WORD

    @classmethod
    def of(cls, ngram: int, characters: int | None = None) -> "Size":
        """Return that of so many words, and of twice as many characters unless told otherwise."""
        return cls(ngram, characters or ngram * CHARACTERS_OF_A_WORD)


class Shingles(NamedTuple):
    """The shingles of some texts, in order.

    Attributes:
        hashes: uint64; two shingles are taken for the same where these are equal.
        bounds: int64 (texts + 1), the first of each text, and the end of all.
    """

    hashes: UInt64s
    bounds: Int64s

    @classmethod
    def of(cls, texts: Sequence[str | bytes], size: Size) -> "Shingles":
        """Return those of texts; bytes are in UTF-8."""
        return cls.of_words(Words.of(LineTable.of(texts)), size)

    @classmethod
    def of_words(cls, words: Words, size: Size) -> "Shingles":
        """Return those of texts that have been split into words."""
        import numpy as np

        texts = len(words.lines.bounds) - 1
        whole = math.lcm(size.ngram, size.characters)
        room = np.empty(len(words.starts), dtype=np.int64)
        hashes = np.empty(len(words.starts), dtype=np.uint64)
        bounds = np.zeros(texts + 1, dtype=np.int64)
        weights = Weights(whole // size.ngram, whole // size.characters, whole)
        _find(words, texts, weights, characters(), room, cls(hashes, bounds))
        return cls(hashes[: bounds[-1]], bounds)

    def sets(self) -> Iterator[Array]:
        """Yield the distinct shingles of each text, uint64, sorted."""
        for begin, end in zip(self.bounds[:-1].tolist(), self.bounds[1:].tolist(), strict=True):
            yield distinct(self.hashes[begin:end])


def distinct(hashes: Array) -> Array:
    """Return the distinct shingles of a text, sorted."""
    import numpy as np

    found: Array = np.sort(hashes)
    is_first = np.ones(len(found), dtype=bool)
    np.not_equal(found[1:], found[:-1], out=is_first[1:])
    return found[is_first]


_find = Compiled(
    "toolkit.whole.near.kernel:shingles",
    Words,
    "int64",
    Weights,
    Characters,
    "int64*",
    Shingles,
    uses=["toolkit.text.ngrams", "toolkit.text.kernels.mixing"],
)


def fewest(size: Size) -> int:
    """Return how many distinct shingles a document must have; one with fewer is never a duplicate."""
    return size.ngram
