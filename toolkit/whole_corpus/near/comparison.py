"""Sets of shingles, and greedy decisions about a unit of documents.

Step 2d, per shard: the shingles of documents that share a bucket.

Shingles are those of the text, unless they were stored with the signatures. They are scattered by unit (see
`toolkit.exchange.scatter`): a `PIECE` of each document. The task of a unit puts these in order.

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

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice, pairwise, repeat
from typing import IO, NamedTuple, Protocol, Self, cast

import msgspec
import numpy as np

from toolkit.exchange.checksummed import Sealed, bounds_of, read_sealed
from toolkit.exchange.scatter import Scatter, gather, pieces
from toolkit.execution.executors import Report
from toolkit.storage.paths import join
from toolkit.text.batch import in_blocks
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Float64, Int64s, UInt8s, UInt64s
from toolkit.whole_corpus.kind import NUMBERS, TEXTS
from toolkit.whole_corpus.near.components import MEMBER, MEMBERS, PLAN, Comparing, load_layout
from toolkit.whole_corpus.near.minhash import SHINGLES, Shingles, distinct, row_type
from toolkit.whole_corpus.records import NumberedShard, SignedShard
from toolkit.whole_corpus.sign import documents_of, names_of_rows

WORDS = 32
"""Numbers of 64 bits in a sketch."""


class Documents(NamedTuple):
    """Documents in order, with keys and sets for their comparison.

    Attributes:
        positions: int64, of each, in the order of all.
        is_fixed: uint8, 1 for those that are kept without being asked.
        sets: uint64, the distinct shingles of all, each document's sorted.
        bounds: int64 (documents + 1), the first of each, and the end of all.
        sketches: uint64 (documents, `WORDS`).
        entries: int64, the buckets of all, numbered from 0.
        entry_bounds: int64 (documents + 1), the first entry of each, and the end of all.
    """

    positions: Int64s
    is_fixed: UInt8s
    sets: UInt64s
    bounds: Int64s
    sketches: UInt64s
    entries: Int64s
    entry_bounds: Int64s


class Rules(NamedTuple):
    """When a document is a duplicate.

    Attributes:
        verify: True if sets are compared; without, whoever shares a bucket is one, of the first kept one.
        before: documents that others are compared with, from the first on; those behind are compared with them alone.
        jaccard: the least similarity.
        containment: the least part of the shingles of what is removed that the kept document has.
    """

    verify: bool
    before: int
    jaccard: Float64
    containment: Float64


class Lists(NamedTuple):
    """Kept entries of each bucket, in order, as linked lists.

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
        positions: Positions of it; -1 where there is none.
        common: shingles that both have.
        joint: shingles that at least one of them has.
    """

    positions: Int64s
    common: Int64s
    joint: Int64s

    @classmethod
    def none(cls, n: int) -> "Best":
        """Return an empty result for a number of documents."""
        return cls(np.full(n, -1, dtype=np.int64), *np.zeros((2, n), dtype=np.int64))


_sketch = Compiled("toolkit.whole_corpus.near.near_kernel:sketch", "uint64* int64* int64 uint64*")
_decide = Compiled("toolkit.whole_corpus.near.near_kernel:decide", Documents, "int64", Rules, Lists, Best, "int64*")


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
    """Documents, in order, to decide on without any others.

    Attributes:
        is_fixed: bool, of each document, whether it is kept without being asked.
        sizes: int64, how many distinct shingles each has; none where they are not compared.
        bands: Bands of their signatures.
    """

    is_fixed: Array
    sizes: Array
    bands: int

    def piece(self, places: Array) -> Piece:
        """Return documents by their indices, in ascending order."""

    def keys(self, places: Array) -> Array:
        """Return their keys alone."""


class UnitDecisions(NamedTuple):
    """The decisions about the documents of a unit.

    Attributes:
        best: Best of what it is a duplicate; its positions are places in the unit.
        pairs: Pairs that shared a bucket.
        compared: Pairs among these with a comparison of sets, shingle by shingle.
        duplicates: pairs of duplicates.
    """

    best: Best
    pairs: int
    compared: int
    duplicates: int


def decide(
    unit: Unit,
    earlier_best: Best | None = None,
    *,
    jaccard: float,
    containment: float = 0.0,
    verify: bool = True,
    memory: int,
) -> UnitDecisions:
    """Decide about the documents of a unit.

    Args:
        unit: Unit of documents.
        earlier_best: Decisions of an earlier resolution; a document with a position here is compared with nothing.
        jaccard: the least similarity of a duplicate.
        containment: the least part of its shingles that the kept document has.
        verify: True if sets are compared; without, whoever shares a bucket with a kept document is its duplicate.
        memory: bytes that may be used, about; what has no room is compared in windows, with the same result.
    """
    n = len(unit.is_fixed)
    best, counts = earlier_best or Best.none(n), np.zeros(3, dtype=np.int64)
    is_kept = unit.is_fixed.copy()
    undecided = np.flatnonzero(best.positions < 0)
    costs = 8 * unit.sizes + 8 * WORDS + 100 * unit.bands + 100
    rules = Rules(verify, 0, jaccard, containment)
    for begin, end in _windows(costs[undecided], memory // 2):
        window = undecided[begin:end]
        earlier = _sharing(unit, np.flatnonzero(is_kept[: window[0]]), window, memory)
        chunks = [earlier[a:b] for a, b in _windows(costs[earlier], memory // 2)] or [earlier]
        for i, chunk in enumerate(chunks):
            # with itself at last: of what is equally similar, the first must be met first
            before = len(chunk) + (len(window) if i + 1 == len(chunks) else 0)
            _run(unit, chunk, window, rules._replace(before=before), best, counts)
        is_kept[window] |= best.positions[window] < 0
    return UnitDecisions(best, *counts.tolist())


def _windows(costs: Array, room: int) -> Iterator[tuple[int, int]]:
    """Yield windows within a budget of costs, or of one document."""
    total = np.cumsum(costs)
    begin = 0
    while begin < len(costs):
        spent = total[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(total, spent + room, side="right")))
        yield begin, end
        begin = end


def _sharing(unit: Unit, before: Array, window: Array, memory: int) -> Array:
    """Return the earlier documents with buckets of a window."""
    if not len(before):
        return before
    buckets = np.unique(unit.keys(window))
    step = max(1, memory // (64 * unit.bands))
    results = [
        part[np.isin(unit.keys(part), buckets).any(axis=1)]
        for part in (before[i : i + step] for i in range(0, len(before), step))
    ]
    return cast("Array", np.concatenate(results))


def _run(unit: Unit, chunk: Array, window: Array, rules: Rules, best: Best, counts: Array) -> None:
    """Compare a window with a chunk of kept documents, then with itself."""
    places = np.concatenate([chunk, window])
    n, keys, sets, bounds = len(places), *unit.piece(places)
    is_fixed = np.ones(n, dtype=np.uint8)
    is_fixed[len(chunk) :] = unit.is_fixed[window]
    sketches = np.zeros((n, WORDS), dtype=np.uint64)
    if rules.verify:
        _sketch(sets, bounds, n, sketches)
    buckets, entries = np.unique(keys, return_inverse=True)
    entries = np.ascontiguousarray(entries.reshape(-1), dtype=np.int64)
    entry_bounds = np.arange(n + 1, dtype=np.int64) * unit.bands
    documents = Documents(places, is_fixed, sets, bounds, sketches, entries, entry_bounds)
    heads, tails = np.full((2, len(buckets)), -1, dtype=np.int64)
    links, owners = np.empty((2, len(entries)), dtype=np.int64)
    lists = Lists(heads, tails, links, owners, np.zeros(n, dtype=np.int64))
    mine = Best(*(np.concatenate([np.full(len(chunk), -1), column[window]]) for column in best))
    _decide(documents, n, rules, lists, mine, counts)
    for column, new in zip(best, mine, strict=True):
        column[window] = new[len(chunk) :]


EVIDENCE = "evidence"
_BATCH = 1 << 8  # documents that are scattered at a time
_ROWS = 1 << 13  # whose keys are read at a time
_GAP = 1 << 17  # bytes between stored shingles that are read with them, rather than to ask again
_PIECE = 1 << 22  # bytes of stored shingles that are read at once
SETS = "<u8"
_ENCODER = msgspec.json.Encoder()

PIECE = np.dtype([("place", "<u4"), ("name", "<u4"), ("payload", "<u4")])
"""A document of a unit: its place there, the bytes of its name, and a payload of keys, name and set."""


def read_shard(shard: NumberedShard, report: Report) -> list[str]:
    """Scatter the candidates of a shard to their units; return the objects.

    Raises:
        DataError: if the documents are others than those that have been signed.
    """
    folder, number = shard.folder, shard.number
    layout, signed = load_layout(folder, PLAN), shard.load()
    members = gather(folder, MEMBERS, number, number + 1, np.dtype(MEMBER)).records
    members = members[np.lexsort((members["row"], members["is_known"]))]
    units = np.array(layout.units)[members["part"]] + members["unit"]
    texts = len(members) - int(members["is_known"].sum())
    listed, first = _pieces(layout.comparing, signed, members["row"][:texts], members["row"][texts:]), 0
    with Scatter(join(folder, f"{EVIDENCE}-{number}"), PIECE, layout.units[-1], layout.memory) as scatter:
        while some := [*islice(listed, _BATCH)]:
            records = np.zeros(len(some), dtype=PIECE)
            records["place"] = members["place"][first : first + len(some)]
            records["name"] = [size for size, _ in some]
            scatter.add(records, units[first : first + len(some)], [payload for _, payload in some])
            first += len(some)
    return scatter.objects


def _pieces(comparing: Comparing, signed: SignedShard, read: Array, named: Array) -> Iterator[tuple[int, bytes]]:
    """Yield name sizes and payloads of rows: texts first, then names alone."""
    if len(read):
        for keys, (set_, name) in zip(_keys(comparing, signed, read), _read(comparing, signed, read), strict=True):
            yield len(name), b"".join((keys, name, set_))
    for name in map(_ENCODER.encode, names_of_rows(signed, named)):
        yield len(name), bytes(8 * comparing.bands) + name


def _keys(comparing: Comparing, signed: SignedShard, rows: Array) -> Iterator[bytes]:
    """Yield the keys of rows, in ascending order."""
    width = 8 * comparing.bands
    edges = np.searchsorted(rows, np.arange(0, signed.record.rows + _ROWS, _ROWS)).tolist()
    with Sealed(signed.path("keys")) as stream:
        for first, (begin, end) in enumerate(pairwise(edges)):
            data = stream.read(_ROWS * width)
            for at in (width * (rows[begin:end] - first * _ROWS)).tolist():
                yield data[at : at + width]


def _read(comparing: Comparing, signed: SignedShard, rows: Array) -> Iterator[tuple[bytes, bytes]]:
    """Yield sets and names of the candidates in their order."""
    if comparing.size is None or SHINGLES in signed.record.files:
        sets = _stored(signed, rows) if comparing.size is not None else repeat(np.empty(0, dtype=SETS), len(rows))
        names = map(_ENCODER.encode, names_of_rows(signed, rows))
        yield from zip(map(np.ndarray.tobytes, sets), names, strict=True)
        return
    is_wanted = np.zeros(signed.record.rows, dtype=bool)
    is_wanted[rows] = True
    places = (signed.dataset.place_of(signed.shard, row + 1) for row in rows.tolist())
    for block in in_blocks(documents_of(signed, is_wanted), lambda row: len(row.text)):
        for row, shingles in zip(block, Shingles.of([row.text for row in block], comparing.size).sets(), strict=True):
            yield shingles.tobytes(), _ENCODER.encode([row.source, row.id, *filter(None, [next(places)])])


def _stored(signed: SignedShard, rows: Array) -> Iterator[Array]:
    """Yield the sets of rows, in ascending order, from stored shingles; what lies together is read at once."""
    data = read_sealed(signed.path("rows"))
    ranks = TEXTS if len(data) == row_type(TEXTS).itemsize * signed.record.rows else NUMBERS
    shingles = np.frombuffer(data, dtype=row_type(ranks))["shingles"]
    starts = 8 * bounds_of(shingles.astype(np.int64))
    begins, ends = starts[rows], starts[rows + 1]
    cuts = np.flatnonzero((begins[1:] - ends[:-1] > _GAP) | (np.diff(begins // _PIECE) > 0)) + 1
    with Sealed(signed.path(SHINGLES)) as stream:
        for first, last in pairwise([0, *cuts.tolist(), len(rows)]):
            begin = int(begins[first])
            data = stream.at(begin, int(ends[last - 1]) - begin)
            for at, end in zip(begins[first:last].tolist(), ends[first:last].tolist(), strict=True):
                yield distinct(np.frombuffer(data, dtype=SETS, count=(end - at) // 8, offset=at - begin))


class OrderedUnit:
    """The documents of a unit in order on the local disk; a `Unit`. A context manager, which deletes it.

    Args:
        folder: Folder of the evidence.
        number: Number of the unit.
        is_fixed: True for a document that is kept without being asked.
        bands: Number of bands of signatures.
    """

    def __init__(self, folder: str, number: int, is_fixed: Array, bands: int) -> None:
        self.is_fixed, self.bands = is_fixed, bands
        self._folder, self._number = folder, number
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        opened = (self._stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))  # noqa: SIM115  # it is
        self._sets, self._keys, self._names = opened
        self.sizes, name_sizes = np.zeros((2, len(self.is_fixed)), dtype=np.int64)
        width, where = 8 * self.bands, (self._folder, EVIDENCE, self._number, self._number + 1)
        for records, _ in pieces(*where, payload=False):
            self.sizes[records["place"]] = (records["payload"].astype(np.int64) - records["name"] - width) // 8
            name_sizes[records["place"]] = records["name"]
        self._starts, self._name_starts = 8 * bounds_of(self.sizes), bounds_of(name_sizes)
        for records, payload in pieces(*where):
            places = records["place"]
            columns = (places, self._name_starts[places], self._starts[places], records["name"])
            for data, place, name, start, size in zip(payload, *(column.tolist() for column in columns), strict=True):
                os.pwrite(self._keys.fileno(), data[:width], width * place)
                os.pwrite(self._names.fileno(), data[width : width + size], name)
                os.pwrite(self._sets.fileno(), data[width + size :], start)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def piece(self, places: Array) -> Piece:
        """Return documents by their indices, in ascending order."""
        sets = np.frombuffer(_gathered(self._sets, self._starts, places), dtype="<u8")
        return Piece(self.keys(places), sets, bounds_of(self.sizes[places]))

    def keys(self, places: Array) -> Array:
        """Return the keys of documents, uint64 (documents, bands)."""
        starts = np.arange(len(self.is_fixed) + 1, dtype=np.int64) * 8 * self.bands
        return np.frombuffer(_gathered(self._keys, starts, places), dtype="<u8").reshape(-1, self.bands)

    def name(self, place: int) -> bytes:
        """Return source and id of a document, as JSON."""
        begin, end = self._name_starts[place : place + 2].tolist()
        return os.pread(self._names.fileno(), end - begin, begin)


def _gathered(file: IO[bytes], starts: Array, places: Array) -> bytearray:
    """Return pieces of a file, one behind the other; those that follow one another there are read at once."""
    result = bytearray()
    if len(places):
        cuts = np.flatnonzero(np.diff(places) != 1) + 1
        firsts, lasts = places[np.append(0, cuts)], places[np.append(cuts, len(places)) - 1]
        for begin, end in zip(starts[firsts].tolist(), starts[lasts + 1].tolist(), strict=True):
            result += os.pread(file.fileno(), end - begin, begin)
    return result
