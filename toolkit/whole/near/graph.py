"""Step 2b, whole: which documents are decided together, and in which order.

Documents that share a bucket are decided together, and so are those that share one with one of these: a component.
Nothing else follows from that: what is removed is decided by sets of shingles (see `decision`). Components are put
together to units, as many as there is room for at a time. What a unit is depends on the memory; what is decided, not.

A component of the same documents in the same order was decided before, if it is in the index of an earlier resolution
(see `deciding`): its text is not read again. Units of these come last.

A component has grown if documents came to one or several that were decided before, and all of them come behind: what
was decided stays, because a document is compared with earlier ones alone. Of those that were there before, only the
kept ones are read again.
"""

from itertools import pairwise

import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.errors import DataError
from toolkit.runs.executors import Report
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join
from toolkit.storage.reading import open_stored
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array
from toolkit.whole.near.signing import ROW
from toolkit.whole.sealed import read_sealed
from toolkit.whole.sections import bounds_of, packed, write_sections

MEMBER = [("row", "<u4"), ("unit", "<u4"), ("place", "<u4"), ("read", "u1")]
"""A document of a component: its row, its unit, its place there, and what is read of it."""

NOTHING, NAME, TEXT = 0, 1, 2
"""What is read of a document."""

COMPONENT = [("high", "<u8"), ("low", "<u8"), ("unit", "<u4"), ("first", "<u8"), ("at", "<u8"), ("size", "<u8")]
"""A component that was decided: a digest of its documents; the unit in which, the number of its first document there,
and which bytes of the unit's file are about it.
"""

FATE = [("of", "<i4"), ("common", "<i8"), ("joint", "<i8"), ("size", "<i8")]
"""What was decided of a document: the place of the one that it is a duplicate of, the shingles that both have, those
that at least one of them has, and its own.
"""

NEW, KEPT = -2, -1
"""In place of a place: nothing was decided before; it was kept."""

UNITS, MEMBERS, INDEX, MARKS, KNOWN_FATES = "units", "members", "index", "marks", "known-fates"
UNIT_TYPES = ("<u8", "<u4", COMPONENT, FATE)
"""Of a section of `UNITS`: its documents in order, where its components begin, what is known of these, and of the
documents of components that have grown (their places are those of the unit).
"""
_BYTES = 100  # of memory a candidate, while they are put in order
_PIECE = 1 << 22

_unite = Compiled("toolkit.whole.near.kernel:unite", "int64* int64* int64* int64")


class ToPlan(ConfigStruct):
    """All that shares a bucket.

    Attributes:
        pairs: paths of files of pairs of documents, as `buckets` writes them.
        folders: of the signatures of each shard.
        own: number of the first shard that is not of another dataset.
        descending: whether the document with the greatest order comes first.
        bands: of signatures.
        marks: of each shard, a digest of all that its part of the decision depends on.
        known: folder of an earlier resolution; empty if there is none.
        memory: bytes that may be used.
        unit: bytes that the sets of a unit may need.
        folder: to write to.
    """

    pairs: list[str]
    folders: list[str]
    own: int
    descending: bool
    bands: int
    marks: list[int]
    known: str
    memory: int
    unit: int
    folder: str


class Planned(ConfigStruct):
    """What is decided together.

    Attributes:
        units: how many.
        fresh: of them, the first ones, of which not all has been decided before.
        candidates: documents that share a bucket, by shard; 0 where there is none.
        unread: of them, those of which something is read, likewise.
        components: how many.
        largest: documents of the largest.
    """

    units: int
    fresh: int
    candidates: list[int]
    unread: list[int]
    components: int
    largest: int


def plan_units(work: ToPlan, report: Report) -> Planned:
    """Write the documents of each unit in order (`UNITS`), and where those of each shard are (`MEMBERS`-NUMBER).

    Raises:
        DataError: if there are more documents that share a bucket than can be put in order in the memory.
    """
    import numpy as np

    documents = _documents(work)
    parents = _united(work, documents, np.ones(len(documents), dtype=bool))
    shards = (documents >> np.uint64(32)).astype(np.int64)
    rows = (documents & np.uint64(0xFFFFFFFF)).astype(np.int64)
    bounds = np.searchsorted(shards, np.arange(len(work.folders) + 1))
    order, shingles = _known(work, rows, bounds)
    given = shards < work.own
    places = np.lexsort((np.arange(len(documents)), -order if work.descending else order, ~given, parents))
    begins = np.flatnonzero(np.append(True, np.diff(parents[places]) != 0)) if len(places) else places
    sizes = np.diff(np.append(begins, len(places)))
    components = _look_up(work, _digests(work, shards[places], rows[places], begins, sizes))
    is_known = components["size"] > 0
    places = places[np.argsort(np.repeat(is_known, sizes), kind="stable")]
    last = np.argsort(is_known, kind="stable")
    components, sizes = components[last], sizes[last]
    begins = bounds_of(sizes)
    fresh = len(sizes) - int(is_known.sum())
    fates = _fates(work, documents, places, begins[: fresh + 1])
    is_gone = fates["of"] >= 0
    total = bounds_of(8 * np.where(is_gone, 0, shingles[places]) + 8 * work.bands + 100)[begins]
    firsts = [*_units(total[: fresh + 1], work.unit), *(fresh + i for i in _units(total[fresh:], work.unit))]
    firsts.append(len(sizes))
    edges = begins[firsts]
    members = np.empty(len(documents), dtype=MEMBER)
    members["row"] = rows
    unit_of = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    members["unit"][places] = unit_of
    members["place"][places] = np.arange(len(places)) - edges[unit_of]
    members["read"][places] = np.where(np.arange(len(places)) >= begins[fresh], NOTHING, np.where(is_gone, NAME, TEXT))
    fates["of"] = np.where(is_gone, fates["of"] - edges[unit_of], fates["of"])
    for number, (begin, end) in enumerate(pairwise(bounds.tolist())):
        if end > begin:
            write_file(join(work.folder, f"{MEMBERS}-{number}"), members[begin:end].tobytes())
    write_sections(
        join(work.folder, UNITS),
        (
            packed(
                [
                    documents[places[begins[a] : begins[b]]],
                    (begins[a:b] - begins[a]).astype("<u4"),
                    components[a:b],
                    fates[begins[a] : begins[b]],
                ]
            )
            for a, b in pairwise(firsts)
        ),
    )
    fresh_units = sum(first < fresh for first in firsts[:-1])
    return Planned(
        units=len(firsts) - 1,
        fresh=fresh_units,
        candidates=np.diff(bounds).tolist(),
        unread=np.bincount(shards[members["read"] > NOTHING], minlength=len(work.folders)).tolist(),
        components=len(sizes),
        largest=int(np.max(sizes, initial=0)),
    )


def _fates(work: ToPlan, documents: Array, places: Array, begins: Array) -> Array:
    """Return what was decided before of the documents of components that have grown; places are those of all.

    Args:
        work: with the earlier resolution.
        documents: all, sorted.
        places: of these, component by component, each in order.
        begins: where the components begin that were not decided before as they are, and where the last one ends.
    """
    import numpy as np

    fates = np.zeros(len(places), dtype=FATE)
    fates["of"] = NEW
    if not work.known or len(begins) < 2:
        return fates
    shards = (documents >> np.uint64(32)).astype(np.int64)
    marks = np.frombuffer(read_sealed(join(work.known, MARKS)), dtype="<u8")
    was_there = np.isin(np.array(work.marks, dtype="<u8"), marks)[shards]
    here, firsts = places[: begins[-1]], begins[:-1]
    component = np.repeat(np.arange(len(firsts)), np.diff(begins))
    old = was_there[here]
    olds = np.add.reduceat(old.astype(np.int64), firsts)
    come_first = np.logical_and.reduceat(old == (np.arange(len(here)) - firsts[component] < olds[component]), firsts)
    # and by their numbers, so that the pairs of a bucket begin with one that was there: its pairs with the others were
    last = np.maximum.reduceat(np.where(old, here, -1), firsts)
    first = np.minimum.reduceat(np.where(old, len(places), here), firsts)
    has_grown = (olds > 0) & come_first & (last < first) & (olds < np.diff(begins))
    which = np.flatnonzero(old & has_grown[component])
    if not len(which):
        return fates
    parents = _united(work, documents, was_there)[places[which]]
    order = np.lexsort((which, parents))
    which, parents = which[order], parents[order]
    groups = np.flatnonzero(np.append(True, np.diff(parents) != 0))
    sizes = np.diff(np.append(groups, len(which)))
    before = documents[places[which]]
    rows = (before & np.uint64(0xFFFFFFFF)).astype(np.int64)
    entries = _look_up(work, _digests(work, shards[places[which]], rows, groups, sizes))
    is_known = entries["size"] > 0
    has_grown[component[which[groups[~is_known & (sizes > 1)]]]] = False
    fates["of"][which[has_grown[component[which]]]] = KEPT
    used = np.flatnonzero(is_known & has_grown[component[which[groups]]])
    known = known_fates(work.known, entries[used], sizes[used])
    begin = np.repeat(groups[used], sizes[used])
    at = which[begin + _within(sizes[used])]
    fates[at] = known
    gone = known["of"] >= 0
    fates["of"][at[gone]] = which[begin[gone] + known["of"][gone]]
    return fates


def known_fates(folder: str, components: Array, sizes: Array) -> Array:
    """Return what was decided of the documents of components, one component behind the other; places are those there.

    Args:
        folder: of an earlier resolution.
        components: as its index has them.
        sizes: how many documents each has.
    """
    import numpy as np

    places = np.repeat(components["first"].astype(np.int64), sizes) + _within(sizes)
    units = np.repeat(components["unit"], sizes)
    fates = np.empty(len(places), dtype=FATE)
    for unit in np.unique(components["unit"]).tolist():
        found = np.frombuffer(read_sealed(join(folder, f"{KNOWN_FATES}-{unit}")), dtype=FATE)
        fates[units == unit] = found[places[units == unit]]
    return fates


def _within(sizes: Array) -> Array:
    """Return the number of each thing in its group, for groups of these sizes."""
    import numpy as np

    begins = bounds_of(sizes)
    found: Array = np.arange(begins[-1]) - np.repeat(begins[:-1], sizes)
    return found


def _digests(work: ToPlan, shards: Array, rows: Array, begins: Array, sizes: Array) -> Array:
    """Return of each component, of documents in their order, a digest that tells it from all others."""
    import numpy as np

    marks = np.array([*work.marks, 0], dtype="<u8")
    data = memoryview(np.stack([marks[shards], rows.astype("<u8")], axis=1).tobytes())
    found = np.zeros(len(begins), dtype=COMPONENT)
    digests = b"".join(
        xxhash.xxh3_128_digest(data[16 * begin : 16 * (begin + size)])
        for begin, size in zip(begins.tolist(), sizes.tolist(), strict=True)
    )
    found["high"], found["low"] = np.frombuffer(digests, dtype="<u8").reshape(-1, 2).T
    return found


def _look_up(work: ToPlan, components: Array) -> Array:
    """Return components with what an earlier resolution knows of them."""
    import numpy as np

    if work.known:
        known = np.frombuffer(read_sealed(join(work.known, INDEX)), dtype=COMPONENT)
        if len(known):
            at = np.minimum(np.searchsorted(known["high"], components["high"]), len(known) - 1)
            same = (known["high"][at] == components["high"]) & (known["low"][at] == components["low"])
            components[same] = known[at[same]]
    return components


def _documents(work: ToPlan) -> Array:
    """Return all documents that share a bucket, sorted."""
    import numpy as np

    found = np.empty(0, dtype="<u8")
    for path in work.pairs:
        with open_stored(path) as stream:
            while data := stream.read(_PIECE):
                found = np.union1d(found, np.frombuffer(data, dtype="<u8"))
                if _BYTES * len(found) > work.memory:
                    least = -(-_BYTES * len(found) * 5 // 4 // 10**6)
                    raise DataError(
                        f"expected at most {work.memory // _BYTES:,} documents that share a bucket, because "
                        f"`memory` ({work.memory:,} bytes) has room for no more, got {len(found):,} or more; "
                        f"set at least `memory: {least} MB`",
                        path=work.folder,
                    )
    return found


def _united(work: ToPlan, documents: Array, which: Array) -> Array:
    """Return of each document the first one of its component, by their places; only pairs of `which` (bool) count."""
    import numpy as np

    parents = np.arange(len(documents), dtype=np.int64)
    for path in work.pairs:
        with open_stored(path) as stream:
            while data := stream.read(_PIECE):
                pairs = np.searchsorted(documents, np.frombuffer(data, dtype="<u8")).reshape(-1, 2)
                pairs = pairs[which[pairs].all(axis=1)]
                left, right = (np.ascontiguousarray(column, dtype=np.int64) for column in pairs.T)
                _unite(parents, left, right, len(left))
    while not np.array_equal(parents, above := parents[parents]):
        parents = above
    return parents


def _known(work: ToPlan, rows: Array, bounds: Array) -> tuple[Array, Array]:
    """Return order and shingles of each document."""
    import numpy as np

    order, shingles = np.zeros(len(rows)), np.zeros(len(rows), dtype=np.int64)
    for folder, begin, end in zip(work.folders, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if begin == end:
            continue
        found = np.frombuffer(read_sealed(join(folder, "rows")), dtype=ROW)[rows[begin:end]]
        order[begin:end], shingles[begin:end] = found["order"], found["shingles"]
    return order, shingles


def _units(total: Array, room: int) -> list[int]:
    """Return the first component of each unit: as many in a row as there is room for, or a single one.

    Args:
        total: bytes before each component, and of all.
        room: bytes of a unit.
    """
    import numpy as np

    found, at = [], 0
    while at < len(total) - 1:
        found.append(at)
        at = max(at + 1, int(np.searchsorted(total, total[at] + room, side="right")) - 1)
    return found
