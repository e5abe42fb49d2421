"""Steps 2a to 2c: which documents share a bucket, which belong together, and in which order they are decided.

Documents that share a bucket belong together, and so do those that share one with one of these: a component. Nothing
else follows from that: what is removed is decided by sets of shingles (see `comparison`). A part has whole components,
chosen by a hash, and of each document what its place in them depends on.

A document is a number here: that of its shard in the upper 32 bits, its row in the lower ones. A component is the least
number in it. All of it goes over `toolkit.exchange`, by the hash of a document, then by its row, then by part:

    scatter_keys      per group of shards     keys and documents, by ranges of keys
    find_buckets      per range of keys       pairs of documents, the first of a bucket and each other, both ways round
    join_stars        per range of documents  the same, so that in the end each is connected with the least alone
    label_documents   per range of documents  documents and their components
    list_candidates   per group of rows       candidates, by part
    plan_units        per part                units of components: documents that are decided together, in order

Source: alternating large and small stars, Kiveris et al., Connected Components in MapReduce and Beyond (2014).
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from toolkit.config.settings import ConfigStruct
from toolkit.errors import DataError
from toolkit.exchange.checksummed import Sealed, bounds_of, read_sealed, write_sealed
from toolkit.exchange.scatter import Scatter, gather, ranges, rows_in, settle
from toolkit.execution.executors import Report, Task
from toolkit.session import cached
from toolkit.storage.paths import exists, join
from toolkit.text.kernels.signatures import Array
from toolkit.whole_corpus.kind import NUMBERS, ResolveJob
from toolkit.whole_corpus.near.minhash import Size, row_type

EDGE = [("of", "<u8"), ("to", "<u8")]
"""Two documents that belong together; or a document, and its component."""

ENTRY = [("key", "<u8"), ("document", "<u8")]
"""A key, and a document that has it."""

KEYS, CANDIDATES, LAYOUT, PLAN = "keys", "candidates", "layout", "plan"
_ROWS = 1 << 14  # whose keys are read at a time
MOST_PARTS = 512
_MOST_PARTITIONS = 1 << 12
_BYTES_OF_CANDIDATE = 400  # of memory a candidate, while a part is put in order


class ShardPlace(ConfigStruct):
    """The signatures of a shard: their folder, and the number of rows."""

    folder: str
    rows: int


class Comparing(ConfigStruct):
    """How documents are compared.

    Attributes:
        bands: Number of bands of a signature.
        size: Size of shingles; None if sets are not compared.
        jaccard: Least similarity of a duplicate.
        containment: Least share of the shingles of a duplicate that the kept document has.
        descending: True if the document with the greatest order is kept.
        ranks: Type of the order.
        warn: Share of a source, host or language; losing more of it is told.
    """

    bands: int
    size: Size | None
    jaccard: float
    containment: float
    descending: bool
    ranks: str
    warn: float


class ResolutionLayout(ConfigStruct):
    """Input of a resolution's tasks, in a file of their folder.

    Attributes:
        comparing: Parameters of the comparison.
        memory: Bytes of a task.
        shards: Places of all shards, in order.
        own: Number of the first shard that is not of another dataset.
        fates: Folder of what is kept.
        earlier: Folder of an earlier resolution; empty if there is none that had some of the shards, and no others.
        numbers: Number of each shard there; -1 for a new one.
        units: Number of the first unit of each part, and of all.
    """

    comparing: Comparing
    memory: int
    shards: list[ShardPlace]
    own: int
    fates: str
    earlier: str = ""
    numbers: list[int] = []
    units: list[int] = []


def save_layout(folder: str, layout: ResolutionLayout) -> None:
    """Write the layout of the next tasks: another file as soon as there are units."""
    write_sealed(join(folder, PLAN if layout.units else LAYOUT), msgspec.msgpack.encode(layout))
    load_layout.cache_clear()


@cached(2)
def load_layout(folder: str, name: str = LAYOUT) -> ResolutionLayout:
    """Return the layout, with units in the plan's layout."""
    return msgspec.msgpack.decode(read_sealed(join(folder, name)), type=ResolutionLayout)


class WorkRange(ConfigStruct):
    """Consecutive shards or partitions of a task.

    Attributes:
        first: Number of the first.
        last: Number of the first after these.
        partitions: Number of partitions that its rows are scattered to.
        folder: Folder of the work.
    """

    first: int
    last: int
    partitions: int
    folder: str


class Bucketed(ConfigStruct):
    """The content of a range.

    Attributes:
        buckets: Number of buckets with several documents.
        largest: Number of documents in the largest.
        pairs: Number of pairs written.
        objects: Objects of the pairs.
    """

    buckets: int
    largest: int
    pairs: int
    objects: list[str]


def partitions_of(documents: int, memory: int) -> int:
    """Return how many partitions to scatter pairs of so many documents to."""
    return min(_MOST_PARTITIONS, 16 + 4096 * documents // memory)


def parts_of(candidates: int, memory: int) -> int:
    """Return the number of parts for a number of candidates."""
    return min(MOST_PARTS, _BYTES_OF_CANDIDATE * candidates // memory + 1)


def scatter_keys(task: WorkRange, report: Report) -> list[str]:
    """Scatter the keys of shards by ranges; return the objects."""
    layout = load_layout(task.folder)
    rows_of, width = row_type(layout.comparing.ranks), 8 * layout.comparing.bands
    stem = join(task.folder, KEYS, f"{task.first}")
    with Scatter(stem, np.dtype(ENTRY), task.partitions, 2 * layout.memory) as output:
        for number in range(task.first, task.last):
            shard = layout.shards[number]
            with Sealed(join(shard.folder, "rows")) as rows, Sealed(join(shard.folder, KEYS)) as keys:
                for first in range(0, shard.rows, _ROWS):
                    count = min(_ROWS, shard.rows - first)
                    stored = np.frombuffer(rows.read(count * rows_of.itemsize), dtype=rows_of)
                    compared = np.flatnonzero(stored["shingles"])
                    result = np.frombuffer(keys.read(count * width), dtype="<u8").reshape(count, -1)[compared]
                    entries = np.empty(result.shape, dtype=ENTRY)
                    entries["key"] = result
                    entries["document"] = (compared + ((number << 32) + first))[:, None]
                    numbers = (entries["key"].reshape(-1) >> 32) * task.partitions >> 32
                    output.add(entries.reshape(-1), numbers.astype(np.uint16))
    return output.objects


def find_buckets(task: WorkRange, report: Report) -> Bucketed:
    """Scatter pairs of documents of each bucket."""
    entries = gather(join(task.folder, KEYS), KEYS, task.first, task.last, np.dtype(ENTRY)).records
    order = np.argsort(entries["key"])
    keys = entries["key"][order]
    same = np.concatenate([[False], keys[1:] == keys[:-1], [False]])
    entries = entries[order[(same[1:] | same[:-1])[: len(order)]]]
    entries = entries[np.lexsort((entries["document"], entries["key"]))]
    keys, numbers = entries["key"], entries["document"]
    begins = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    sizes = np.diff(np.append(begins, len(keys)))
    shared = numbers[begins + sizes - 1] >= np.uint64(load_layout(task.folder).own << 32)
    pairs = _pairs_of_buckets(numbers, begins[shared], sizes[shared])
    return Bucketed(
        buckets=int(shared.sum()),
        largest=int(np.max(sizes[shared], initial=0)),
        pairs=len(pairs),
        objects=scatter_pairs(join(task.folder, f"buckets-{task.first}"), pairs, task.partitions, both=True),
    )


def _pairs_of_buckets(numbers: Array, begins: Array, sizes: Array) -> Array:
    """Return the first document of each bucket beside each of its others."""
    before = np.cumsum(sizes - 1) - (sizes - 1)
    places = np.arange(int((sizes - 1).sum())) - np.repeat(before - begins - 1, sizes - 1)
    return np.stack([np.repeat(numbers[begins], sizes - 1), numbers[places]], axis=1)


def _part(numbers: Array, parts: int) -> Array:
    """Return the part of each number, by hash."""
    return (numbers * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)).astype(np.int64) % parts


def scatter_pairs(stem: str, pairs: Array, partitions: int, *, both: bool) -> list[str]:
    """Scatter pairs by their first documents, or by both of them; return the objects."""
    with Scatter(stem, np.dtype(EDGE), partitions) as scatter:
        for way in (pairs, pairs[:, ::-1]) if both else (pairs,):
            records = np.zeros(len(way), dtype=EDGE)
            records["of"], records["to"] = way[:, 0], way[:, 1]
            scatter.add(records, _part(records["of"], partitions))
    return scatter.objects


class RowGroups(ConfigStruct):
    """Groups of rows of all shards, in order: their number, that of the shards, and the most rows that one has."""

    number: int
    shards: int
    rows: int

    def of(self, documents: Array) -> Array:
        """Return the group of each document."""
        places = (documents >> np.uint64(32)) * np.uint64(self.rows) + (documents & np.uint64(0xFFFFFFFF))
        return (places * np.uint64(self.number) // np.uint64(self.shards * self.rows)).astype(np.int64)


class ToJoinStars(WorkRange):
    """Partitions of pairs.

    Attributes:
        name: Name of the pairs.
        large: True if all documents of greater numbers are connected with the least one; else all of lower numbers.
        stem: Path of the objects to write.
        groups: Groups of rows, for labels.
    """

    name: str
    large: bool
    stem: str
    groups: RowGroups


class RoundObjects(ConfigStruct):
    """The objects of a round, and if any pair changed in it."""

    objects: list[str]
    changed: bool


def _edges(task: ToJoinStars) -> tuple[Array, Array, Array]:
    """Return both documents of the pairs, sorted, each pair once; and the least document that each first one knows."""
    records = gather(task.folder, task.name, task.first, task.last, np.dtype(EDGE)).records
    order = np.lexsort((records["to"], records["of"]))
    of, to = records["of"][order], records["to"][order]
    new = np.append(True, (of[1:] != of[:-1]) | (to[1:] != to[:-1]))[: len(of)]
    of, to = of[new], to[new]
    begins = np.flatnonzero(np.append(True, of[1:] != of[:-1])[: len(of)])
    least = np.repeat(np.minimum(of[begins], to[begins]), np.diff(np.append(begins, len(of))))
    return of, to, least


def join_stars(task: ToJoinStars, report: Report) -> RoundObjects:
    """Connect the neighbours of each document with the least of them."""
    of, to, least = _edges(task)
    if task.large:
        chosen = to > of
        pairs = np.stack([to[chosen], least[chosen]], axis=1)
        return RoundObjects(
            objects=scatter_pairs(task.stem, pairs, task.partitions, both=False),
            changed=bool((least != of)[chosen].any()),
        )
    is_other = to != least
    pairs = np.stack([np.where(is_other, to, of), least], axis=1)
    return RoundObjects(
        objects=scatter_pairs(task.stem, pairs, task.partitions, both=True), changed=bool(is_other.any())
    )


def label_documents(task: ToJoinStars, report: Report) -> list[str]:
    """Scatter documents and their components by groups of shards; return the objects."""
    of, _, least = _edges(task)
    first = np.append(True, of[1:] != of[:-1])[: len(of)]
    records = np.zeros(int(first.sum()), dtype=EDGE)
    records["of"], records["to"] = of[first], least[first]
    with Scatter(task.stem, np.dtype(EDGE), task.groups.number) as scatter:
        scatter.add(records, task.groups.of(records["of"]))
    return scatter.objects


DUPLICATE = [("row", "<u4"), ("of", "<u8"), ("common", "<u4"), ("joint", "<u4"), ("size", "<u4")]
"""A duplicate of a shard: its row, the document that it is one of, the shingles that both have, those that at least one
of them has, and its own.
"""

DUPLICATES = "duplicates"


def candidate_type(ranks: str) -> np.dtype[Any]:
    """Return the type of a candidate for a type of `Competing.ranks`.

    It has its number, that of its component, its order, how many shingles it has, and what was decided of it before, as
    `DUPLICATE`; one that was not a duplicate is one of itself.
    """
    numbers = [(name, "<u8") for name in ("document", "component")]
    return np.dtype([*numbers, ("order", ranks or NUMBERS), ("shingles", "<u4"), *DUPLICATE[1:]])


class CandidateObjects(ConfigStruct):
    """The objects of candidates, and how many candidates each shard has."""

    objects: list[str]
    counts: dict[int, int]


def list_candidates(task: WorkRange, report: Report) -> CandidateObjects:
    """Scatter the candidates of groups of rows by parts."""
    layout = load_layout(task.folder)
    ranks = layout.comparing.ranks
    labels = gather(task.folder, "labels", task.first, task.last, np.dtype(EDGE)).records
    labels = labels[np.argsort(labels["of"])]
    candidates = np.zeros(len(labels), dtype=candidate_type(ranks))
    candidates["document"], candidates["component"], candidates["of"] = labels["of"], labels["to"], labels["of"]
    shards = (labels["of"] >> np.uint64(32)).astype(np.int64)
    counts = {}
    for shard in np.unique(shards).tolist():
        begin, end = np.searchsorted(shards, [shard, shard + 1]).tolist()
        rows = (labels["of"][begin:end] & np.uint64(0xFFFFFFFF)).astype(np.int64)
        size, least, most = row_type(ranks).itemsize, int(rows[0]), int(rows[-1]) + 1
        data = read_sealed(join(layout.shards[shard].folder, "rows"), least * size, (most - least) * size)
        stored = np.frombuffer(data, dtype=row_type(ranks))[rows - least]
        candidates["order"][begin:end], candidates["shingles"][begin:end] = stored["order"], stored["shingles"]
        duplicates = earlier_duplicates(layout, shard)
        duplicates = duplicates[np.isin(duplicates["row"], rows, assume_unique=True)]
        places = begin + np.searchsorted(rows, duplicates["row"])
        for name in ("of", "common", "joint", "size"):
            candidates[name][places] = duplicates[name]
        counts[shard] = end - begin
    with Scatter(join(task.folder, f"{CANDIDATES}-{task.first}"), candidates.dtype, task.partitions) as scatter:
        scatter.add(candidates, _part(candidates["component"], task.partitions))
    return CandidateObjects(objects=scatter.objects, counts=counts)


def earlier_duplicates(layout: ResolutionLayout, shard: int) -> Array:
    """Return a shard's duplicates in the earlier resolution, with present shard numbers."""
    path = join(layout.earlier, f"{DUPLICATES}-{layout.numbers[shard]}") if layout.numbers else ""
    if not path or layout.numbers[shard] < 0 or not exists(path):
        return np.zeros(0, dtype=DUPLICATE)
    duplicates = np.frombuffer(read_sealed(path), dtype=DUPLICATE).copy()
    now = np.flatnonzero(np.array(layout.numbers) >= 0).astype(np.uint64)
    duplicates["of"] = (now[duplicates["of"] >> np.uint64(32)] << np.uint64(32)) | (
        duplicates["of"] & np.uint64(0xFFFFFFFF)
    )
    return duplicates


def connect(work: ResolveJob, folder: str, objects: list[str], partitions: int, parts: int) -> dict[int, int]:
    """Enter the candidates of all parts, given the objects of pairs; return how many each shard has."""
    groups = RowGroups(number=partitions, shards=len(work.shards), rows=max(1, *(s.record.rows for s in work.shards)))
    find_components(work, folder, objects, partitions, groups)
    tasks = [
        Task(f"rows {first}", WorkRange(first=first, last=last, partitions=parts, folder=folder))
        for first, last in ranges(folder, ["labels"], work.memory)
    ]
    listed: list[CandidateObjects] = work.run("finding groups of near duplicates", list_candidates, tasks)
    settle(work.run, folder, CANDIDATES, [path for item in listed for path in item.objects])
    counts = Counter[int]()
    for item in listed:
        counts.update(item.counts)
    return dict(counts)


def find_components(work: ResolveJob, folder: str, objects: list[str], partitions: int, groups: RowGroups) -> None:
    """Enter the documents of pairs with their components as `labels`.

    Args:
        work: Work, whose memory and tasks are used.
        folder: Folder to work in.
        objects: Objects of the pairs, both ways round.
        partitions: Number of their partitions.
        groups: Groups of rows.
    """
    round, changed = 0, True

    def run(function: Callable[[Any, Report], Any], stem: str, *, large: bool = False) -> list[Any]:
        tasks = [
            Task(f"{name} {i}", ToJoinStars(folder=folder, name=name, first=first, last=last, partitions=partitions,
                                            large=large, stem=join(folder, f"{stem}-{i}"), groups=groups))
            for i, (first, last) in enumerate(ranges(folder, [name], work.memory))
        ]  # fmt: skip
        return work.run("finding groups of near duplicates", function, tasks)

    name = "pairs-0"
    settle(work.run, folder, name, objects)
    while objects and changed:
        changed = False
        for large in (True, False):
            round += 1
            joined: list[RoundObjects] = run(join_stars, f"pairs-{round}", large=large)
            changed |= any(item.changed for item in joined)
            name = f"pairs-{round}"
            settle(work.run, folder, name, [path for item in joined for path in item.objects])
    labels: list[list[str]] = run(label_documents, "labels")
    settle(work.run, folder, "labels", [path for label in labels for path in label])


MEMBER = [("row", "<u4"), ("part", "<u4"), ("unit", "<u4"), ("place", "<u4"), ("is_known", "u1")]
"""A document of a shard that belongs to a unit: the part of this, its number there, its place in that, and
1 if it is known what it is a duplicate of, so that only its name is needed.
"""

FATE = [("document", "<u8"), ("of", "<i4"), ("common", "<u4"), ("joint", "<u4"), ("size", "<u4")]
"""A document of a unit, and what was decided of it: the place of the one that it is a duplicate of, and as `DUPLICATE`
"""

NEW, KEPT = -2, -1
"""In place of a place: nothing was decided before; it was kept."""

UNITS, MEMBERS = "units", "members"
_BYTES = 200  # of memory a candidate, at least


class ToPlan(ConfigStruct):
    """A part of all candidates: its number, and the folder of the work."""

    part: int
    folder: str


class Planned(ConfigStruct):
    """The batches of a part.

    Attributes:
        units: Number of units.
        objects: Objects of the units, and of the members.
        unread: Number of documents of which something is read, by the number of the shard.
        components: Number of components.
        largest: Number of documents of the largest.
    """

    units: int
    objects: tuple[list[str], list[str]]
    unread: dict[int, int]
    components: int
    largest: int


def plan_units(task: ToPlan, report: Report) -> Planned:
    """Scatter units of documents in order (`FATE`), and their shards' members (`MEMBER`).

    Components are put together to units, as many as there is room for at a time. What a unit is depends on the memory;
    what is decided, not. A component without a new document is in none: an earlier resolution has decided it. If all
    new documents of a component come after the others, what was decided of these stays, because a document is compared
    with earlier ones alone.

    Raises:
        DataError: If more documents belong together than can be put in order in the memory.
    """
    layout = load_layout(task.folder)
    candidates = _candidates(task, layout)
    documents, components = candidates["document"], candidates["component"]
    shards = (documents >> np.uint64(32)).astype(np.int64)
    order = -candidates["order"] if layout.comparing.descending else candidates["order"]
    places = np.lexsort((np.arange(len(documents)), order, shards >= layout.own, components))
    begins = np.flatnonzero(np.append(True, np.diff(components[places]) != 0)[: len(places)])
    sizes = np.diff(np.append(begins, len(places)))
    largest, count = int(np.max(sizes, initial=0)), len(sizes)
    is_old = np.array(layout.numbers or [-1] * len(layout.shards))[shards] >= 0
    has_new = np.logical_or.reduceat(~is_old[places], begins) if count else np.zeros(0, dtype=bool)
    places, sizes = places[np.repeat(has_new, sizes)], sizes[has_new]
    begins = bounds_of(sizes)
    fates = _fates(candidates, places, begins, is_old)
    shingles = np.where(fates["of"] >= 0, 0, candidates["shingles"][places].astype(np.int64))
    total = bounds_of(8 * shingles + 8 * layout.comparing.bands + 100)[begins]
    edges = begins[[*_units(total, layout.memory // 4), len(sizes)]]
    units = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    starts = edges[units]
    fates["of"] = np.where(fates["of"] >= 0, fates["of"] - starts, fates["of"])
    members = np.empty(len(places), dtype=MEMBER)
    members["row"], members["part"], members["unit"] = documents[places] & np.uint64(0xFFFFFFFF), task.part, units
    members["place"], members["is_known"] = np.arange(len(places)) - starts, fates["of"] >= 0
    with Scatter(join(task.folder, f"{UNITS}-{task.part}"), fates.dtype, max(1, len(edges) - 1)) as of_units:
        of_units.add(fates, units)
    with Scatter(join(task.folder, f"{MEMBERS}-{task.part}"), members.dtype, len(layout.shards)) as of_shards:
        of_shards.add(members, shards[places])
    return Planned(
        units=len(edges) - 1,
        objects=(of_units.objects, of_shards.objects),
        unread={number: n for number, n in enumerate(np.bincount(shards[places]).tolist()) if n},
        components=count,
        largest=largest,
    )


def _candidates(task: ToPlan, layout: ResolutionLayout) -> Array:
    """Return the documents of a part, by their numbers."""
    most = layout.memory // _BYTES
    if (count := rows_in(task.folder, CANDIDATES, task.part)) <= most:
        type_ = candidate_type(layout.comparing.ranks)
        candidates = gather(task.folder, CANDIDATES, task.part, task.part + 1, type_).records
        return candidates[np.argsort(candidates["document"], kind="stable")]
    raise DataError(
        f"expected at most {most:,} documents that belong together, because `memory` ({layout.memory:,} bytes) has "
        f"room for no more, got {count:,}; set at least `memory: {-(-_BYTES * count * 5 // 4 // 10**6)} MB`",
        path=task.folder,
    )


def _fates(candidates: Array, places: Array, begins: Array, is_old: Array) -> Array:
    """Return documents with the earlier decisions about components with appended documents.

    Args:
        candidates: All documents of a part, by their numbers.
        places: Places among these, component by component, each in order.
        begins: First place of each component, and the end of all.
        is_old: True for each candidate that was there before.
    """
    documents, old = candidates["document"], is_old[places]
    fates = np.zeros(len(places), dtype=FATE)
    fates["document"], fates["of"] = documents[places], NEW
    if not old.any():
        return fates
    sizes = np.diff(begins)
    within = np.arange(len(places)) - np.repeat(begins[:-1], sizes)
    olds = np.add.reduceat(old.astype(np.int64), begins[:-1])
    come_first = np.logical_and.reduceat(old == (within < np.repeat(olds, sizes)), begins[:-1])
    is_known = old & np.repeat(come_first, sizes)
    fates["of"][is_known] = KEPT
    duplicates = np.flatnonzero(is_known & (candidates["of"][places] != documents[places]))
    at = np.empty(len(documents), dtype=np.int64)
    at[places] = np.arange(len(places))
    fates["of"][duplicates] = at[np.searchsorted(documents, candidates["of"][places[duplicates]])]
    for name in ("common", "joint", "size"):
        fates[name][duplicates] = candidates[name][places[duplicates]]
    return fates


def _units(total: Array, room: int) -> list[int]:
    """Return the first component of each unit: as many in a row as there is room for, or a single one.

    Args:
        total: Bytes before each component, and of all.
        room: Bytes of a unit.
    """
    results, at = [], 0
    while at < len(total) - 1:
        results.append(at)
        at = max(at + 1, int(np.searchsorted(total, total[at] + room, side="right")) - 1)
    return results
