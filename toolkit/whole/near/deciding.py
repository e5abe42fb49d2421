"""Steps 2e and 2f: what is decided about the documents of a unit; and what became of those of a shard.

``decided-N``   sections by shard: rows and values of documents that are in a cluster
``known-N``     kept for later resolutions, beside the fates: of each component its documents' names and values, in
                order. The index of all says where each component is, by a digest of its documents; a later resolution
                takes what is there for components that are the same.
``known-fates-N``  likewise as numbers (`graph.FATE`, places in the component), for components that have grown.

Step 2f, per shard: what became of its documents, from what the units say; and the values of all its rows.

What a unit writes are sections by shard, so that the fates of a shard are one piece of each. The fates of a shard do
not depend on units: the values of the rows that have some, in the order of the rows.
"""

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import compress, pairwise, repeat
from mmap import ACCESS_READ, mmap
from typing import IO, Self

import msgspec
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.exchange.scatter import Scatter, gather, gather_sections, ranges, scatter_sections
from toolkit.exchange.sealed import (
    SealedOutput,
    Sections,
    bounds_of,
    packed,
    read_sealed,
    unpacked,
    write_sealed,
)
from toolkit.execution.executors import Report
from toolkit.storage.paths import join
from toolkit.text.kernels.signatures import Array
from toolkit.whole.near.evidence import Best, OrderedUnit, decide
from toolkit.whole.near.graph import (
    COMPONENT,
    FATE,
    INDEX,
    KEPT,
    KNOWN_FATES,
    MARKS,
    UNIT_TYPES,
    UNITS,
    known_fates,
)
from toolkit.whole.near.signing import most_removed
from toolkit.whole.records import SignedShard

DECIDED, FATES = "decided", "fates"
TYPES = ROWS, SIZES, VALUES = ("<u4", "<u4", "u1")


class NearCopies(msgspec.Struct, frozen=True):
    """The document that a document is a near duplicate of.

    Attributes:
        duplicate_of: source and id of the kept document that it is most like; null if it is kept, or not compared.
        jaccard: of the sets of distinct shingles of both; null where no sets were compared.
        containment: the part of its own distinct shingles that the kept document has; null likewise.
        cluster: source and id of the kept document of the cluster; null if nothing else is in it.
        size: documents of the cluster: the kept one, and those that are duplicates of it.
    """

    duplicate_of: list[str] | None = None
    jaccard: float | None = None
    containment: float | None = None
    cluster: list[str] | None = None
    size: int = 1


class ToGather(ConfigStruct):
    """A shard of which the fates are gathered, the folder to read from, and the path to write."""

    signed: SignedShard
    folder: str
    path: str


class Gathered(ConfigStruct):
    """The fates of a shard: a digest of them, and the groups that lose most (see `toolkit.whole.near.signing`)."""

    digest: str
    removed: list[tuple[str, str, int]]


IS_KEPT = b'{"duplicate_of":null'
"""What the value of a document that is kept begins with."""


def gather_shard(work: ToGather, report: Report) -> Gathered:
    """Write what became of the documents of a shard."""
    import numpy as np

    number = work.signed.number
    sections = gather_sections(work.folder, DECIDED, number)
    found = [unpacked(section, TYPES) for section in sections]
    rows, sizes, values = (np.concatenate(columns) for columns in zip(*found, strict=True))
    starts = bounds_of(sizes).tolist()
    order = np.argsort(rows)
    text = values.tobytes()
    told = [text[starts[i] : starts[i + 1]] for i in order.tolist()]
    data = packed([rows[order], sizes[order], np.frombuffer(b"".join(told), dtype=VALUES)])
    write_sealed(work.path, data)
    are_gone = (not value.startswith(IS_KEPT) for value in told)
    gone = list(compress(rows[order].tolist(), are_gone))
    return Gathered(digest=xxhash.xxh3_128_hexdigest(data), removed=most_removed(work.signed, gone))


def values_of(path: str | None, rows: int) -> Iterator[NearCopies | msgspec.Raw]:
    """Yield the value of each row of a shard; `path` is that of its fates, if it has any."""
    alone = NearCopies()
    at = 0
    if path is not None:
        found, sizes, values = unpacked(read_sealed(path), TYPES)
        text, begin = values.tobytes(), 0
        for row, size in zip(found.tolist(), sizes.tolist(), strict=True):
            yield from repeat(alone, row - at)
            yield msgspec.Raw(text[begin : begin + size])
            at, begin = row + 1, begin + size
    yield from repeat(alone, rows - at)


KNOWN = "known"
SHOWN = 3
"""Largest clusters that are shown, and members of each."""

_BETWEEN = b"\t"  # name and value of a document; JSON has none
_END = b"\n"
_PIECE = 1 << 22  # bytes that are read at once


class Cluster(ConfigStruct):
    """A kept document with its duplicates: their number, its name, and some of them with their similarity."""

    size: int
    kept: list[str]
    some: list[tuple[list[str], float | None]]


class ToDecide(ConfigStruct):
    """A unit.

    Attributes:
        number: of it.
        place: the part that has it, and its number there.
        files: of evidence, of each shard that has some: its number, and how many files.
        shards: how many there are.
        own: number of the first that is not of another dataset.
        folder: to work in.
        fates: folder of what is kept.
        known: folder of an earlier resolution, which has decided about the components of the unit; else empty.
    """

    number: int
    place: tuple[int, int]
    files: list[tuple[int, int]]
    shards: int
    own: int
    bands: int
    jaccard: float
    containment: float
    verify: bool
    memory: int
    folder: str
    fates: str
    known: str = ""


class Decided(ConfigStruct):
    """What was decided: counts, the largest clusters, the objects of values, and those of the index."""

    counts: dict[str, int]
    clusters: list[Cluster]
    objects: list[str]
    index: list[str]


def decide_unit(work: ToDecide, report: Report) -> Decided:
    """Decide about the documents of a unit, or take what is known; write the values of those that are in a cluster."""
    import numpy as np

    part, number = work.place
    with Sections(join(work.folder, f"{UNITS}-{part}")) as sections:
        documents, begins, components, fates = unpacked(sections.read(number), UNIT_TYPES)
    shards = (documents >> np.uint64(32)).astype(np.int64)
    sizes = np.diff([*begins, len(documents)])
    with _Told() as told:
        if work.known:
            told.take(_remembered(work.known, components))
            fates = known_fates(work.known, components, sizes)
        else:
            fates = _decide(work, told, shards < work.own, fates)
            fates["of"] -= np.where(fates["of"] >= 0, np.repeat(begins, sizes), 0)
        told.end()
        order = np.argsort(documents)
        there, firsts = np.unique(shards[order], return_index=True)
        edges = pairwise([*firsts.tolist(), len(order)])
        values = {n: told.section(documents, order[i:j]) for n, (i, j) in zip(there.tolist(), edges, strict=True)}
        objects = scatter_sections(join(work.folder, f"{DECIDED}-{work.number}"), work.shards, values)
        return told.decided(objects, _keep(work, told, begins, components, fates))


def _decide(work: ToDecide, told: "_Told", given: Array, before: Array) -> Array:
    """Decide about documents of which nothing, or not all, was decided before; return the fates of all."""
    import numpy as np

    was_kept = before["of"] == KEPT
    with OrderedUnit(work.folder, work.files, work.number, given | was_kept, work.bands) as unit:
        known = Best(*(np.array(before[name], dtype=np.int64) for name in ("of", "common", "joint")))
        known.positions[known.positions < 0] = -1
        best = decide(
            unit, known, jaccard=work.jaccard, containment=work.containment, verify=work.verify, memory=work.memory
        ).best
        fates = np.empty(len(given), dtype=FATE)
        fates["of"], fates["common"], fates["joint"] = best
        fates["size"] = np.where(before["of"] >= 0, before["size"], unit.sizes)
        told.take(_values(unit, given, fates))
    return fates


def _values(unit: OrderedUnit, given: Array, fates: Array) -> Iterator[bytes]:
    """Yield name and value of each document; nothing of one that is in no cluster, or of another dataset."""
    import numpy as np

    kept_of = fates["of"].tolist()
    sizes = (np.bincount(fates["of"][fates["of"] >= 0], minlength=len(kept_of)) + 1).tolist()
    for place, (kept, is_given) in enumerate(zip(kept_of, given.tolist(), strict=True)):
        if is_given or (kept < 0 and sizes[place] == 1):
            yield b""
            continue
        name = unit.name(place)
        mine = _NAME.decode(name)
        if kept < 0:
            value = NearCopies(cluster=mine, size=sizes[place])
        else:
            _, common, joint, own = fates[place].tolist()
            jaccard, containment = (common / joint, common / own) if joint else (None, None)
            of = _NAME.decode(unit.name(kept))
            value = NearCopies(of, jaccard, containment, of, sizes[kept])
        yield name + _BETWEEN + msgspec.json.encode(value)


_NAME = msgspec.json.Decoder(list[str])
_VALUE = msgspec.json.Decoder(NearCopies)


def _duplicate_of(name: bytes) -> bytes:
    """Return what the value of a duplicate of a document begins with."""
    return b'{"duplicate_of":' + name + b","


def _remembered(folder: str, components: Array) -> Iterator[bytes]:
    """Yield the same of documents of components that were decided before."""
    pieces: list[tuple[int, int, int]] = []
    for unit, at, size in zip(*(components[name].tolist() for name in ("unit", "at", "size")), strict=True):
        if pieces and pieces[-1][::2] == (unit, at) and at - pieces[-1][1] < _PIECE:
            pieces[-1] = (unit, pieces[-1][1], at + size)
        else:
            pieces.append((unit, at, at + size))
    for unit, begin, end in pieces:
        yield from read_sealed(join(folder, f"{KNOWN}-{unit}"), begin, end - begin).split(_END)[:-1]


class _Told:
    """What is told of the documents of a unit, a line each in a temporary file. A context manager that deletes it.

    Attributes:
        counts: of what was found.
    """

    def __init__(self) -> None:
        self.counts = Counter({"duplicates": 0, "clusters": 0})
        self._sizes: list[int] = []
        self._largest: dict[bytes, Cluster] = {}  # by what the values of their duplicates begin with
        self._shown: tuple[bytes, ...] = ()
        self._lines: mmap | bytes = b""
        self._least = 0  # documents of the smallest of these, if there are enough of them

    def __enter__(self) -> Self:
        self._file: IO[bytes] = tempfile.TemporaryFile()  # closed on leaving
        return self

    def __exit__(self, *_: object) -> None:
        if isinstance(self._lines, mmap):
            self._lines.close()
        self._file.close()

    def take(self, told: Iterable[bytes]) -> None:
        """Take name and value of each document, in order."""
        for each in told:
            self._file.write(each + _END)
            self._sizes.append(len(each) + len(_END))
            if each:
                self._count(*each.split(_BETWEEN))

    def _count(self, name: bytes, value: bytes) -> None:
        """Count a document; most are told by what their value, which is ours, begins with, and are not decoded."""
        if not value.startswith(IS_KEPT):
            self.counts["duplicates"] += 1
            if value.startswith(self._shown):
                found = _VALUE.decode(value)
                cluster = self._largest[_duplicate_of(msgspec.json.encode(found.duplicate_of))]
                if len(cluster.some) < SHOWN - 1:
                    cluster.some.append((_NAME.decode(name), found.jaccard))
            return
        self.counts["clusters"] += 1
        size = int(value[value.rindex(b":") + 1 : -1])
        if size <= self._least:
            return
        self._largest[_duplicate_of(name)] = Cluster(size=size, kept=_NAME.decode(name), some=[])
        if len(self._largest) > SHOWN:
            del self._largest[min(reversed(self._largest), key=lambda each: self._largest[each].size)]
            self._least = min(each.size for each in self._largest.values())
        self._shown = tuple(self._largest)

    def end(self) -> None:
        """Note that all has been taken."""
        import numpy as np

        self._file.flush()
        self.starts = bounds_of(np.array(self._sizes, dtype=np.int64))
        # pages of a file, which the system may take back
        self._lines = mmap(self._file.fileno(), 0, access=ACCESS_READ) if self._sizes else b""

    def section(self, documents: Array, which: Array) -> bytes:
        """Return rows and values of those documents of one shard that have some, in the order of the rows."""
        import numpy as np

        begins, ends = self.starts[which], self.starts[which + 1] - len(_END)
        is_told = ends > begins
        if not is_told.any():
            return b""
        pairs = zip(begins[is_told].tolist(), ends[is_told].tolist(), strict=True)
        values = [self._lines[begin:end].partition(_BETWEEN)[2] for begin, end in pairs]
        rows = (documents[which[is_told]] & np.uint64(0xFFFFFFFF)).astype("<u4")
        sizes = np.array(list(map(len, values)), dtype=SIZES)
        return packed([rows, sizes, np.frombuffer(b"".join(values), dtype=VALUES)])

    def pieces(self) -> Iterator[bytes]:
        """Yield all that is told, in order."""
        for begin in range(0, len(self._lines), _PIECE):
            yield self._lines[begin : begin + _PIECE]

    def decided(self, objects: list[str], index: list[str]) -> Decided:
        clusters = list(self._largest.values())
        return Decided(counts=dict(self.counts), clusters=clusters, objects=objects, index=index)


def _keep(work: ToDecide, told: _Told, begins: Array, components: Array, fates: Array) -> list[str]:
    """Write what was decided of each component, and where in the file it stands; return the objects of that."""
    import numpy as np

    entries = components.copy()
    entries["unit"], entries["first"] = work.number, begins
    entries["at"] = told.starts[begins]
    entries["size"] = np.diff(np.append(entries["at"], told.starts[-1]).astype(np.int64))
    write_sealed(join(work.fates, f"{KNOWN_FATES}-{work.number}"), fates.tobytes())
    with SealedOutput(join(work.fates, f"{KNOWN}-{work.number}")) as out:
        for piece in told.pieces():
            out.write(piece)
    with Scatter(join(work.folder, f"{INDEX}-{work.number}"), entries.dtype, 256) as scatter:
        scatter.add(entries, (entries["high"] >> np.uint64(56)).astype(np.int64))
    return scatter.objects


class ToIndex(ConfigStruct):
    """What was decided: bytes of memory, the marks of all shards, the folder of the work, and the one of the fates."""

    memory: int
    marks: list[int]
    folder: str
    fates: str


def index_units(work: ToIndex, report: Report) -> int:
    """Write where what was decided of each component is; return how many components there are."""
    import numpy as np

    count = 0
    write_sealed(join(work.fates, MARKS), np.array(work.marks, dtype="<u8").tobytes())
    with SealedOutput(join(work.fates, INDEX)) as out:
        for first, last in ranges(work.folder, [INDEX], work.memory):
            entries = gather(work.folder, INDEX, first, last, np.dtype(COMPONENT)).records
            out.write(entries[np.argsort(entries["high"], kind="stable")].tobytes())
            count += len(entries)
    return count
