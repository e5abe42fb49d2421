"""Shingles of texts, signatures of shingles, and bands of signatures, by which documents are compared.

Source: Broder, On the resemblance and containment of documents (1997): the probability that two sets have the same
smallest value under a random hash function is their Jaccard similarity. Hash function i of a shingle's upper 32 bits x
is ``y = a[i] * x + b[i]; y ^= y >> 15; y *= 0x2C1B3C6D`` (mod 2^32); a key is a hash of a band's smallest values.
Nothing here depends on a library: the same text has the same keys for ever, or `VERSION` changes.

Bands of signatures: how probable it is that two documents are compared, by how similar they are.

Source: Leskovec, Rajaraman, Ullman, Mining of Massive Datasets, 3.4. A signature has `bands` bands of `rows` hash
functions. Two documents with Jaccard similarity s agree in one band with probability s^rows, and are compared if they
agree in some band: 1 - (1 - s^rows)^bands.

Shingles: the n-grams of words by which documents are compared, and the sets of distinct ones.

Words are those that taggers have (`toolkit.text.words`), without regard to case; what has no letter and no number in it
is passed over. A character of a script without spaces (a Chinese or Japanese character, a Thai, Lao, Khmer or Burmese
letter with its marks) is a word of its own there. It says less than a word, so it counts less: a shingle is the fewest
words in a row that weigh as much as `ngram` words or `characters` such characters. So texts in which scripts meet have
shingles, too, and no language has to be known.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from toolkit.errors import ConfigError
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Int64s, UInt32s, UInt64s
from toolkit.text.kernels.split_mix import sequence
from toolkit.text.line_table import LineTable
from toolkit.text.unicode_table import Characters, characters
from toolkit.text.words import Words

MOST_HASHES = 256
"""Hash functions of a signature whose bands are computed, at most."""

ENOUGH = 0.99
"""The probability that two documents are compared whose similarity is the threshold, at least."""


class Bands(NamedTuple):
    """How a signature is cut into bands.

    Attributes:
        bands: how many.
        rows: hash functions of each.
    """

    bands: int
    rows: int

    @property
    def hashes(self) -> int:
        """Return how many hash functions a signature has."""
        return self.bands * self.rows

    def probability(self, jaccard: float) -> float:
        """Return how probable it is that two documents of this similarity are compared."""
        return float(-math.expm1(self.bands * math.log1p(-(jaccard**self.rows)))) if jaccard < 1 else 1.0

    @classmethod
    def computed(cls, jaccard: float) -> "Bands":
        """Return the steepest of those that give a pair at the threshold `ENOUGH` of a chance.

        That is the most rows a band that `MOST_HASHES` allow: fewer documents below the threshold are compared.

        Raises:
            ConfigError: if none does.
        """
        found = None
        for rows in range(1, MOST_HASHES + 1):
            agree = jaccard**rows
            bands = -math.log1p(-ENOUGH) / -math.log1p(-agree) if 0 < agree < 1 else 1 / agree if agree else math.inf
            if bands <= MOST_HASHES and math.ceil(bands) * rows <= MOST_HASHES:
                found = cls(math.ceil(bands), rows)
        if found is None:
            least = math.ceil(1000 * -math.expm1(math.log1p(-ENOUGH) / MOST_HASHES)) / 1000
            raise ConfigError(f"jaccard: expected at least {least}, below which too little is compared, got {jaccard}")
        return found


class Preset(NamedTuple):
    """What somebody has published.

    Attributes:
        bands: of signatures.
        ngram: words of a shingle.
    """

    bands: Bands
    ngram: int


PRESETS = {
    "fineweb": Preset(Bands(14, 8), 5),
    "dolma3": Preset(Bands(26, 11), 5),
}
"""``fineweb``: FineWeb and FineWeb-2 (datatrove's ``MinhashConfig``); ``dolma3``: OLMo 3's corpus."""

_POINTS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


def curve(bands: Bands) -> str:
    """Return a line with how probable it is that two documents are compared, by similarity."""
    points = (f"{bands.probability(point):.3f} at {point:.2f}" for point in _POINTS)
    shown = ", ".join(points)
    return f"{bands.bands} bands of {bands.rows} hashes; probability that a pair is compared, by similarity: {shown}"


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
        _find_shingles(words, texts, weights, characters(), room, cls(hashes, bounds))
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


_find_shingles = Compiled(
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


VERSION = 1
"""Of the values; another one means that signatures that are kept are made anew."""


class Functions(NamedTuple):
    """Hash functions, and how signatures are cut into bands.

    Attributes:
        bands: of a signature.
        rows: hash functions of a band.
        fewest: a text with fewer distinct shingles has no keys.
        factors: uint32 (bands * rows), odd.
        terms: uint32 (bands * rows).
    """

    bands: int
    rows: int
    fewest: int
    factors: UInt32s
    terms: UInt32s


class Room(NamedTuple):
    """Room for the smallest values (uint32, bands * rows) and for some shingles (uint64, `Functions.fewest`)."""

    smallest: UInt32s
    seen: UInt64s


_find_signatures = Compiled(
    "toolkit.whole.near.kernel:band_keys",
    Shingles,
    "int64",
    Functions,
    Room,
    "uint64* uint8*",
    uses=["toolkit.text.ngrams", "toolkit.text.kernels.mixing"],
)


class Signatures(NamedTuple):
    """The signatures of some documents.

    Attributes:
        keys: uint64 (documents, bands).
        enough: bool, whether the document has enough distinct shingles to be compared; if not, its keys are 0.
        shingles: int64, how many it has, repeated ones too.
        hashes: uint64, those of all.
    """

    keys: Array
    enough: Array
    shingles: Array
    hashes: Array


class Signer:
    """Makes signatures.

    Args:
        bands: of a signature.
        size: of shingles.
    """

    def __init__(self, bands: Bands, size: Size) -> None:
        import numpy as np

        self.bands = bands
        self.size = size
        numbers = sequence(bands.hashes)
        factors = np.array([number >> 32 | 1 for number in numbers], dtype=np.uint32)
        terms = np.array([number & 0xFFFFFFFF for number in numbers], dtype=np.uint32)
        self._functions = Functions(*bands, fewest(size), factors, terms)
        self._room = Room(np.empty(bands.hashes, dtype=np.uint32), np.empty(fewest(size), dtype=np.uint64))

    def of(self, texts: Sequence[str | bytes]) -> Signatures:
        """Return those of texts; bytes are in UTF-8."""
        return self._of(Shingles.of(texts, self.size))

    def of_words(self, words: Words) -> Signatures:
        """Return those of texts that have been split into words."""
        return self._of(Shingles.of_words(words, self.size))

    def _of(self, shingles: Shingles) -> Signatures:
        import numpy as np

        texts = len(shingles.bounds) - 1
        keys = np.zeros((texts, self.bands.bands), dtype=np.uint64)
        enough = np.zeros(texts, dtype=np.uint8)
        _find_signatures(shingles, texts, self._functions, self._room, keys, enough)
        return Signatures(keys, enough.astype(bool), np.diff(shingles.bounds), shingles.hashes)
