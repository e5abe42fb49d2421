"""The decision: which documents are near duplicates, of which kept one, and by what evidence.

Documents are taken in order. One is removed if and only if a document that has been kept is its verified duplicate: the
Jaccard similarity of their sets of shingles is at least `jaccard`, and the part of its own shingles that the kept one
has is at least `containment`. Of several, it is the duplicate of the most similar one, and of these of the first. So
nothing is removed because something else that is removed is like it.

Candidates are those that share a bucket. A document is compared with what is *kept* in its buckets, all of it: of a
thousand copies, one comparison each. Three exact tests, each cheaper than the next, come before sets are compared
shingle by shingle: the sizes of the sets; the difference of their sketches (parities of where their shingles fall: the
sets differ in at least as many shingles as the sketches do in bits; Sandes, Teodoro, Melo, Bitmap filter, 2020);
and that what is left of both sets can still make up for what is missing.

What does not fit into memory is decided in windows: of each, the documents are compared with the kept ones of earlier
windows, as many at a time as there is room for, and then among themselves.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Float64, Int64s, UInt8s, UInt64s

WORDS = 32
"""Numbers of 64 bits in a sketch."""


class Documents(NamedTuple):
    """Documents in order, with what they are compared by.

    Attributes:
        positions: int64, of each, in the order of all.
        given: uint8, 1 for those that are kept without being asked.
        sets: uint64, the distinct shingles of all, each document's sorted.
        bounds: int64 (documents + 1), the first of each, and the end of all.
        sketches: uint64 (documents, `WORDS`).
        entries: int64, the buckets of all, numbered from 0.
        entry_bounds: int64 (documents + 1), likewise.
    """

    positions: Int64s
    given: UInt8s
    sets: UInt64s
    bounds: Int64s
    sketches: UInt64s
    entries: Int64s
    entry_bounds: Int64s


class Rules(NamedTuple):
    """When a document is a duplicate.

    Attributes:
        verify: whether sets are compared; without, whoever shares a bucket is one, of the first kept one.
        settle: whether documents that are not given are kept where they are none, and compared with one another.
        jaccard: the least similarity.
        containment: the least part of the shingles of what is removed that the kept document has.
    """

    verify: bool
    settle: bool
    jaccard: Float64
    containment: Float64


class Lists(NamedTuple):
    """What is kept in each bucket, in order: linked entries.

    Attributes:
        heads: int64, the first entry of each bucket; -1 where nothing is kept.
        tails: int64, the last one.
        links: int64, the entry behind each entry; -1 behind the last.
        documents: int64, of each entry.
        stamps: int64, of each document, which one it was last compared with.
    """

    heads: Int64s
    tails: Int64s
    links: Int64s
    documents: Int64s
    stamps: Int64s


class Best(NamedTuple):
    """The most similar kept document of each one, int64.

    Attributes:
        positions: of it; -1 where there is none.
        common: shingles that both have.
        joint: shingles that at least one of them has.
    """

    positions: Int64s
    common: Int64s
    joint: Int64s

    @classmethod
    def none(cls, n: int) -> "Best":
        """Return that nothing has been found for so many documents."""
        import numpy as np

        return cls(np.full(n, -1, dtype=np.int64), *np.zeros((2, n), dtype=np.int64))


_sketch = Compiled("toolkit.dedup.near.kernel:sketch", "uint64* int64* int64 uint64*", uses=[__name__])
_decide = Compiled("toolkit.dedup.near.kernel:decide", Documents, "int64", Rules, Lists, Best, "int64*", uses=[__name__])
