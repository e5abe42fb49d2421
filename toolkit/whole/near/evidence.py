"""Step 2d, per shard: the shingles of documents that share a bucket; and the decision that rests on them.

in all of these, put in order. Shingles are those of the text, unless they were stored with the signatures.

Files are sections by unit (see `sealed`); a section has, of some documents of the unit, `PLACES`, `SIZES` and
`NAME_SIZES` (one number each), `KEYS` (a row each), `SETS` and `NAMES` (what the sizes say of each).

The decision: which documents are near duplicates, of which kept one, and by what evidence.

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
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import IO, NamedTuple, Protocol, Self, cast

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.exchange.sealed import Sealed, Sections, bounds_of, packed, read_sealed, unpacked, write_sections
from toolkit.execution.executors import Report
from toolkit.storage.paths import join
from toolkit.text.batch import in_blocks
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Float64, Int64s, UInt8s, UInt64s
from toolkit.whole.kind import NUMBERS, TEXTS
from toolkit.whole.near.graph import NAME, TEXT, Numbering, members_of
from toolkit.whole.near.signatures import Shingles, Size, distinct
from toolkit.whole.near.signing import SHINGLES, row_type
from toolkit.whole.records import SignedShard
from toolkit.whole.sign import documents_of, names_at

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


EVIDENCE = "evidence"
_ROWS = 1 << 13  # whose keys are read at a time
_GAP = 1 << 17  # bytes between stored shingles that are read with them, rather than to ask again
_PIECE = 1 << 22  # bytes of stored shingles that are read at once
TYPES = PLACES, SIZES, NAME_SIZES, KEYS, SETS, NAMES = ("<u4", "<u4", "<u4", "<u8", "<u8", "u1")


class ToRead(ConfigStruct):
    """A shard whose candidates are read.

    Attributes:
        signed: the shard.
        numbering: of the units.
        bands: of signatures.
        size: of shingles; None if sets are not compared.
        memory: bytes that may be used.
        folder: to read from and to write to.
    """

    signed: SignedShard
    numbering: Numbering
    bands: int
    size: Size | None
    memory: int
    folder: str


class _Held:
    """Documents that have been read and not yet written: of each its unit, place, keys, set and name."""

    def __init__(self) -> None:
        self.units: list[int] = []
        self.places: list[int] = []
        self.keys: list[Array] = []
        self.sets: list[Array] = []
        self.names: list[bytes] = []
        self.bytes = 0

    def add(self, unit: int, place: int, keys: Array, set_: Array, name: bytes) -> None:
        """Add a document."""
        self.units.append(unit)
        self.places.append(place)
        self.keys.append(keys)
        self.sets.append(set_)
        self.names.append(name)
        self.bytes += set_.nbytes + len(name) + keys.nbytes + 400

    def sections(self, units: int) -> Iterator[bytes]:
        """Yield the section of each unit."""
        import numpy as np

        order = np.lexsort((self.places, self.units))
        edges = np.searchsorted(np.array(self.units)[order], np.arange(units + 1)).tolist()
        for begin, end in pairwise(edges):
            mine = order[begin:end].tolist()
            if not mine:
                yield b""
                continue
            names = [self.names[i] for i in mine]
            yield packed([
                np.array([self.places[i] for i in mine], dtype=PLACES),
                np.array([len(self.sets[i]) for i in mine], dtype=SIZES),
                np.array([len(name) for name in names], dtype=NAME_SIZES),
                np.concatenate([self.keys[i] for i in mine]),
                np.concatenate([self.sets[i] for i in mine]),
                np.frombuffer(b"".join(names), dtype=NAMES),
            ])  # fmt: skip


def read_shard(work: ToRead, report: Report) -> int:
    """Write what the candidates of a shard are compared by; return how many files that are.

    Raises:
        DataError: if the documents are others than those that have been signed.
    """
    import numpy as np

    number = work.signed.number
    members = members_of(work.folder, work.numbering, number)
    named, members = (members[members["read"] == what] for what in (NAME, TEXT))
    held, files = _Held(), 0

    def flush() -> None:
        nonlocal held, files
        write_sections(join(work.folder, f"{EVIDENCE}-{number}-{files}"), held.sections(sum(work.numbering.fresh)))
        held, files = _Held(), files + 1

    places = iter(members.tolist())
    keys = _keys(work, members["row"])
    for sets, names in _read(work, members["row"]):
        for set_, name in zip(sets, names, strict=True):
            _, unit, place, _ = next(places)
            held.add(unit, place, next(keys), set_, name)
        if held.bytes > work.memory // 3:
            flush()
    nothing = np.empty(0, dtype=SETS)
    for (_, unit, place, _), name in zip(named.tolist(), _names(work, named["row"]), strict=True):
        held.add(unit, place, np.zeros(work.bands, dtype=KEYS), nothing, name)
        if held.bytes > work.memory // 3:
            flush()
    if held.units:
        flush()
    return files


def _keys(work: ToRead, rows: Array) -> Iterator[Array]:
    """Yield the keys of rows, which ascend."""
    import numpy as np

    width = 8 * work.bands
    edges = np.searchsorted(rows, np.arange(0, work.signed.record.rows + _ROWS, _ROWS)).tolist()
    with Sealed(work.signed.path("keys")) as stream:
        for first, (begin, end) in enumerate(pairwise(edges)):
            found = np.frombuffer(stream.read(_ROWS * width), dtype=KEYS).reshape(-1, work.bands)
            yield from found[rows[begin:end] - first * _ROWS]


def _read(work: ToRead, wanted: Array) -> Iterator[tuple[list[Array], list[bytes]]]:
    """Yield sets and names of the candidates in their order, some at a time."""
    import numpy as np

    if not len(wanted):
        return
    if work.size is None:
        nothing = np.empty(0, dtype=SETS)
        for name in _names(work, wanted):
            yield [nothing], [name]
        return
    if SHINGLES in work.signed.record.files:
        for set_, name in zip(_stored(work.signed, wanted), _names(work, wanted), strict=True):
            yield [set_], [name]
        return
    is_wanted = np.zeros(work.signed.record.rows, dtype=bool)
    is_wanted[wanted] = True
    places = (work.signed.dataset.place_of(work.signed.shard, row + 1) for row in wanted.tolist())
    for block in in_blocks(documents_of(work.signed, is_wanted), lambda row: len(row.text)):
        sets = Shingles.of([row.text for row in block], work.size).sets()
        yield list(sets), [_name(row.source, row.id, next(places)) for row in block]


def _stored(signed: SignedShard, wanted: Array) -> Iterator[Array]:
    """Yield the sets of rows, which ascend, from the shingles that were stored; what lies together is read at once."""
    import numpy as np

    data = read_sealed(signed.path("rows"))
    ranks = TEXTS if len(data) == row_type(TEXTS).itemsize * signed.record.rows else NUMBERS
    shingles = np.frombuffer(data, dtype=row_type(ranks))["shingles"]
    starts = 8 * bounds_of(shingles.astype(np.int64))
    begins, ends = starts[wanted], starts[wanted + 1]
    cuts = np.flatnonzero((begins[1:] - ends[:-1] > _GAP) | (np.diff(begins // _PIECE) > 0)) + 1
    with Sealed(signed.path(SHINGLES)) as stream:
        for first, last in pairwise([0, *cuts.tolist(), len(wanted)]):
            begin = int(begins[first])
            data = stream.at(begin, int(ends[last - 1]) - begin)
            for at, end in zip(begins[first:last].tolist(), ends[first:last].tolist(), strict=True):
                yield distinct(np.frombuffer(data, dtype=SETS, count=(end - at) // 8, offset=at - begin))


def _names(work: ToRead, wanted: Array) -> Iterator[bytes]:
    """Yield the names of rows, which ascend; no text is read for them."""
    signed = work.signed
    for line, row in zip(names_at(signed.folder, signed.shard, wanted), wanted.tolist(), strict=True):
        found = _ROW_NAME.decode(line)
        yield _name(found["source"], found["id"], signed.dataset.place_of(signed.shard, row + 1))


_ROW_NAME = msgspec.json.Decoder(dict[str, str])


def _name(source: str, id_: str, place: str) -> bytes:
    return msgspec.json.encode([source, id_, place] if place else [source, id_])


class OrderedUnit:
    """The documents of a unit in order on the local disk; a `decision.Unit`. A context manager, which deletes it.

    Args:
        folder: with the evidence.
        files: of each shard that has some: its number, and how many files.
        number: of the unit.
        given: of each document, whether it is of another dataset.
        bands: of signatures.
    """

    def __init__(self, folder: str, files: Sequence[tuple[int, int]], number: int, given: Array, bands: int) -> None:
        self.given, self.bands = given, bands
        self._folder, self._files, self._number = folder, files, number
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        import numpy as np

        n = len(self.given)
        opened = (self._stack.enter_context(tempfile.TemporaryFile()) for _ in range(3))  # noqa: SIM115  # it is
        self._sets, self._keys, self._names = opened
        self.sizes, name_sizes = np.zeros((2, n), dtype=np.int64)
        for places, sizes, lengths, *_ in self._sections():
            self.sizes[places], name_sizes[places] = sizes, lengths
        self._starts, self._name_starts = 8 * bounds_of(self.sizes), bounds_of(name_sizes)
        width = 8 * self.bands
        for places, sizes, lengths, keys, sets, names in self._sections():
            every = np.arange(len(places) + 1)
            _spread(self._keys, places * np.int64(width), every * width, keys.tobytes())
            _spread(self._sets, self._starts[places], 8 * bounds_of(sizes), sets.tobytes())
            _spread(self._names, self._name_starts[places], bounds_of(lengths), names.tobytes())
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def piece(self, which: Array) -> Piece:
        """Return documents by their places, which ascend."""
        import numpy as np

        sets = np.frombuffer(_gathered(self._sets, self._starts, which), dtype="<u8")
        return Piece(self.keys(which), sets, bounds_of(self.sizes[which]))

    def keys(self, which: Array) -> Array:
        """Return the keys of documents, uint64 (documents, bands)."""
        import numpy as np

        starts = np.arange(len(self.given) + 1, dtype=np.int64) * 8 * self.bands
        return np.frombuffer(_gathered(self._keys, starts, which), dtype="<u8").reshape(-1, self.bands)

    def name(self, place: int) -> bytes:
        """Return source and id of a document, as JSON."""
        begin, end = self._name_starts[place : place + 2].tolist()
        return os.pread(self._names.fileno(), end - begin, begin)

    def _sections(self) -> Iterator[list[Array]]:
        for shard, files in self._files:
            for i in range(files):
                with Sections(join(self._folder, f"{EVIDENCE}-{shard}-{i}")) as sections:
                    if data := sections.read(self._number):
                        yield unpacked(data, TYPES)


def _spread(file: IO[bytes], targets: Array, bounds: Array, data: bytes) -> None:
    """Write pieces of data, in the order of `bounds`, each to its own place in a file."""
    pairs = zip(targets.tolist(), bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    view = memoryview(data)
    for target, begin, end in pairs:
        if end > begin:
            os.pwrite(file.fileno(), view[begin:end], target)


def _gathered(file: IO[bytes], starts: Array, which: Array) -> bytearray:
    """Return pieces of a file, one behind the other; those that follow one another there are read at once."""
    import numpy as np

    found = bytearray()
    if len(which):
        cuts = np.flatnonzero(np.diff(which) != 1) + 1
        firsts, lasts = which[np.append(0, cuts)], which[np.append(cuts, len(which)) - 1]
        for begin, end in zip(starts[firsts].tolist(), starts[lasts + 1].tolist(), strict=True):
            found += os.pread(file.fileno(), end - begin, begin)
    return found
