"""Step 2c, per part: in which order documents are decided, and how many components at a time.

Components are put together to units, as many as there is room for at a time. What a unit is depends on the memory; what
is decided, not.

A component of the same documents in the same order was decided before, if it is in the index of an earlier resolution
(see `deciding`): its text is not read again. Units of these come last.

A component has grown if documents came to one or several that were decided before, and all of them come behind: what
was decided stays, because a document is compared with earlier ones alone. Of those that were there before, only the
kept ones are read again.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.errors import DataError
from toolkit.exchange.scatter import gather, rows_in
from toolkit.exchange.sealed import Sealed, Sections, bounds_of, packed, read_sealed, write_sections
from toolkit.execution.executors import Report
from toolkit.storage.paths import join
from toolkit.text.kernels.signatures import Array
from toolkit.whole.near.connecting import CANDIDATES, candidate_type

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
_BYTES = 200  # of memory a candidate, at least
_ENTRIES = 1 << 18  # of an index, that are read at a time


class ToPlan(ConfigStruct):
    """A part of all that shares a bucket.

    Attributes:
        part: its number.
        own: number of the first shard that is not of another dataset.
        descending: whether the document with the greatest order comes first.
        ranks: Type of the order.
        bands: of signatures.
        marks: of each shard, a digest of all that its part of the decision depends on.
        known: folder of an earlier resolution; empty if there is none.
        memory: bytes that may be used.
        unit: bytes that the sets of a unit may need.
        folder: to read from and to write to.
    """

    part: int
    own: int
    descending: bool
    ranks: str
    bands: int
    marks: list[int]
    known: str
    memory: int
    unit: int
    folder: str


class Planned(ConfigStruct):
    """What is decided together of a part.

    Attributes:
        units: how many.
        fresh: of them, the first ones, of which not all has been decided before.
        unread: by shard, documents of which something is read.
        components: how many.
        largest: documents of the largest.
    """

    units: int
    fresh: int
    unread: list[int]
    components: int
    largest: int


class Numbering(ConfigStruct):
    """The numbers of the units of all parts: first those of which not all has been decided before, part by part.

    Attributes:
        units: how many each part has.
        fresh: of them, those of which not all has been decided before.
    """

    units: list[int]
    fresh: list[int]

    def all(self) -> list[tuple[int, int]]:
        """Return the part of each unit, and its number there."""
        found = [(part, i) for part, fresh in enumerate(self.fresh) for i in range(fresh)]
        ends = zip(self.fresh, self.units, strict=True)
        return found + [(part, i) for part, (fresh, units) in enumerate(ends) for i in range(fresh, units)]

    def of(self, part: int, units: Array) -> Array:
        """Return the numbers of units of a part."""
        import numpy as np

        before = list(accumulate(self.fresh, initial=0))
        known = list(accumulate((a - b for a, b in zip(self.units, self.fresh, strict=True)), initial=before[-1]))
        fresh = self.fresh[part]
        return np.where(units < fresh, before[part] + units, known[part] - fresh + units)


def members_of(folder: str, numbering: Numbering, shard: int) -> Array:
    """Return the documents of components of a shard, by row, with the numbers of all units: `MEMBER`."""
    import numpy as np

    found = [np.empty(0, dtype=MEMBER)]
    for part in range(len(numbering.units)):
        with Sections(join(folder, f"{MEMBERS}-{part}")) as sections:
            mine = np.frombuffer(sections.read(shard), dtype=MEMBER).copy()
        mine["unit"] = numbering.of(part, mine["unit"].astype(np.int64))
        found.append(mine)
    members = np.concatenate(found)
    return members[np.argsort(members["row"])]


def plan_units(work: ToPlan, report: Report) -> Planned:
    """Write the documents of each unit in order (`UNITS`-PART), and where those of each shard are (`MEMBERS`-PART).

    Raises:
        DataError: if there are more documents that belong together than can be put in order in the memory.
    """
    import numpy as np

    candidates = _candidates(work)
    documents, parents = candidates["document"], candidates["component"]
    shards = (documents >> np.uint64(32)).astype(np.int64)
    rows = (documents & np.uint64(0xFFFFFFFF)).astype(np.int64)
    order = candidates["order"]
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
    fates = _fates(work, candidates, places, begins[: fresh + 1])
    is_gone = fates["of"] >= 0
    shingles = candidates["shingles"][places].astype(np.int64)
    total = bounds_of(8 * np.where(is_gone, 0, shingles) + 8 * work.bands + 100)[begins]
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
    bounds = np.searchsorted(shards, np.arange(len(work.marks) + 1)).tolist()
    path = join(work.folder, f"{MEMBERS}-{work.part}")
    write_sections(path, (members[begin:end].tobytes() for begin, end in pairwise(bounds)))
    write_sections(
        join(work.folder, f"{UNITS}-{work.part}"),
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
    return Planned(
        units=len(firsts) - 1,
        fresh=sum(first < fresh for first in firsts[:-1]),
        unread=np.bincount(shards[members["read"] > NOTHING], minlength=len(work.marks)).tolist(),
        components=len(sizes),
        largest=int(np.max(sizes, initial=0)),
    )


def _candidates(work: ToPlan) -> Array:
    """Return the documents of a part, by their numbers."""
    most = work.memory // _BYTES
    if (count := rows_in(work.folder, CANDIDATES, work.part)) <= most:
        return gather(work.folder, CANDIDATES, work.part, work.part + 1, candidate_type(work.ranks)).records
    raise DataError(
        f"expected at most {most:,} documents that belong together, because `memory` ({work.memory:,} bytes) has room "
        f"for no more, got {count:,}; set at least `memory: {-(-_BYTES * count * 5 // 4 // 10**6)} MB`",
        path=work.folder,
    )


def _fates(work: ToPlan, candidates: Array, places: Array, begins: Array) -> Array:
    """Return what was decided before of the documents of components that have grown; places are those of all.

    Args:
        work: with the earlier resolution.
        candidates: all, sorted.
        places: of these, component by component, each in order.
        begins: where the components begin that were not decided before as they are, and where the last one ends.
    """
    import numpy as np

    fates = np.zeros(len(places), dtype=FATE)
    fates["of"] = NEW
    if not work.known or len(begins) < 2:
        return fates
    documents = candidates["document"]
    shards = (documents >> np.uint64(32)).astype(np.int64)
    was_there = np.array(were_there(work.known, work.marks))[shards]
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
    parents = candidates["before"][places[which]]
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

    if not work.known:
        return components
    with Sealed(join(work.known, INDEX)) as stream:
        while data := stream.read(_ENTRIES * np.dtype(COMPONENT).itemsize):
            known = np.frombuffer(data, dtype=COMPONENT)
            at = np.minimum(np.searchsorted(known["high"], components["high"]), len(known) - 1)
            same = (known["high"][at] == components["high"]) & (known["low"][at] == components["low"])
            components[same] = known[at[same]]
    return components


def were_there(known: str, marks: Sequence[int]) -> list[bool]:
    """Return of each shard, by its mark, whether an earlier resolution had it as it is."""
    import numpy as np

    before = np.frombuffer(read_sealed(join(known, MARKS)), dtype="<u8")
    found: list[bool] = np.isin(np.array(marks, dtype="<u8"), before).tolist()
    return found


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
