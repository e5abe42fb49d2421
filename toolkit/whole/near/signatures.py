"""Signatures: of each document a key a band; documents with the same key in a band may be similar.

Source: Broder, On the resemblance and containment of documents (1997): the probability that two sets have the same
smallest value under a random hash function is their Jaccard similarity. Hash function i of a shingle's upper 32 bits x
is ``y = a[i] * x + b[i]; y ^= y >> 15; y *= 0x2C1B3C6D`` (mod 2^32); a key is a hash of a band's smallest values.
Nothing here depends on a library: the same text has the same keys for ever, or `VERSION` changes.
"""

from collections.abc import Sequence
from typing import NamedTuple

from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, UInt32s, UInt64s
from toolkit.text.kernels.split_mix import sequence
from toolkit.text.words import Words
from toolkit.whole.near.bands import Bands
from toolkit.whole.near.shingles import Shingles, Size, fewest

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


_find = Compiled(
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
        _find(shingles, texts, self._functions, self._room, keys, enough)
        return Signatures(keys, enough.astype(bool), np.diff(shingles.bounds), shingles.hashes)
