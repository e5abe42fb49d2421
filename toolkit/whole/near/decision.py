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

from collections.abc import Iterator
from typing import NamedTuple, Protocol, cast

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
        before: documents that others are compared with, from the first on; those behind are compared with them alone.
        jaccard: the least similarity.
        containment: the least part of the shingles of what is removed that the kept document has.
    """

    verify: bool
    before: int
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


_sketch = Compiled("toolkit.whole.near.kernel:sketch", "uint64* int64* int64 uint64*", uses=[__name__])
_decide = Compiled(
    "toolkit.whole.near.kernel:decide", Documents, "int64", Rules, Lists, Best, "int64*", uses=[__name__]
)


class Piece(NamedTuple):
    """Some documents of a unit, as `Unit.piece` gives them.

    Attributes:
        keys: uint64 (documents, bands).
        sets: uint64, the distinct shingles of all, each document's sorted.
        bounds: int64 (documents + 1), the first of each, and the end of all.
    """

    keys: Array
    sets: Array
    bounds: Array


class Unit(Protocol):
    """Documents, in order, that can be decided without any others.

    Attributes:
        given: bool, of each document, whether it is kept without being asked.
        sizes: int64, how many distinct shingles each has; none where they are not compared.
        bands: of their signatures.
    """

    given: Array
    sizes: Array
    bands: int

    def piece(self, which: Array) -> Piece:
        """Return documents by their places, which ascend."""

    def keys(self, which: Array) -> Array:
        """Return their keys alone."""


class Decided(NamedTuple):
    """What was decided of each document of a unit.

    Attributes:
        best: of what it is a duplicate; its positions are places in the unit.
        pairs: that shared a bucket.
        compared: of these, pairs whose sets were compared shingle by shingle.
        found: pairs of duplicates.
    """

    best: Best
    pairs: int
    compared: int
    found: int


def decide(
    unit: Unit,
    known: Best | None = None,
    *,
    jaccard: float,
    containment: float = 0.0,
    verify: bool = True,
    memory: int,
) -> Decided:
    """Decide about the documents of a unit.

    Args:
        unit: of documents.
        known: what was decided before of those documents that have a position here; they are compared with nothing.
        jaccard: the least similarity of a duplicate.
        containment: the least part of its shingles that the kept document has.
        verify: whether sets are compared; without, whoever shares a bucket with a kept document is its duplicate.
        memory: bytes that may be used, about; what has no room is compared in windows, with the same result.
    """
    import numpy as np

    n = len(unit.given)
    best, counts = known or Best.none(n), np.zeros(3, dtype=np.int64)
    kept = unit.given.copy()
    asked = np.flatnonzero(best.positions < 0)
    costs = 8 * unit.sizes + 8 * WORDS + 100 * unit.bands + 100
    rules = Rules(verify, 0, jaccard, containment)
    for begin, end in _windows(costs[asked], memory // 2):
        window = asked[begin:end]
        earlier = _sharing(unit, np.flatnonzero(kept[: window[0]]), window, memory)
        chunks = [earlier[a:b] for a, b in _windows(costs[earlier], memory // 2)] or [earlier]
        for i, chunk in enumerate(chunks):
            # with itself at last: of what is equally similar, the first must be met first
            before = len(chunk) + (len(window) if i + 1 == len(chunks) else 0)
            _run(unit, chunk, window, rules._replace(before=before), best, counts)
        kept[window] |= best.positions[window] < 0
    return Decided(best, *counts.tolist())


def _windows(costs: Array, room: int) -> Iterator[tuple[int, int]]:
    """Yield beginnings and ends of runs that cost no more than there is room for, or are one document."""
    import numpy as np

    total = np.cumsum(costs)
    begin = 0
    while begin < len(costs):
        spent = total[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(total, spent + room, side="right")))
        yield begin, end
        begin = end


def _sharing(unit: Unit, before: Array, window: Array, memory: int) -> Array:
    """Return those of earlier documents that share a bucket with one of a window."""
    import numpy as np

    if not len(before):
        return before
    wanted = np.unique(unit.keys(window))
    step = max(1, memory // (64 * unit.bands))
    found = [
        part[np.isin(unit.keys(part), wanted).any(axis=1)]
        for part in (before[i : i + step] for i in range(0, len(before), step))
    ]
    return cast("Array", np.concatenate(found))


def _run(unit: Unit, chunk: Array, window: Array, rules: Rules, best: Best, counts: Array) -> None:
    """Compare a window with a chunk of what was kept before it, and with those of itself that `rules.before` has."""
    import numpy as np

    which = np.concatenate([chunk, window])
    n, keys, sets, bounds = len(which), *unit.piece(which)
    given = np.ones(n, dtype=np.uint8)
    given[len(chunk) :] = unit.given[window]
    sketches = np.zeros((n, WORDS), dtype=np.uint64)
    if rules.verify:
        _sketch(sets, bounds, n, sketches)
    buckets, entries = np.unique(keys, return_inverse=True)
    entries = np.ascontiguousarray(entries.reshape(-1), dtype=np.int64)
    entry_bounds = np.arange(n + 1, dtype=np.int64) * unit.bands
    documents = Documents(which, given, sets, bounds, sketches, entries, entry_bounds)
    heads, tails = np.full((2, len(buckets)), -1, dtype=np.int64)
    links, owners = np.empty((2, len(entries)), dtype=np.int64)
    lists = Lists(heads, tails, links, owners, np.zeros(n, dtype=np.int64))
    mine = Best(*(np.concatenate([np.full(len(chunk), -1), column[window]]) for column in best))
    _decide(documents, n, rules, lists, mine, counts)
    for column, new in zip(best, mine, strict=True):
        column[window] = new[len(chunk) :]
