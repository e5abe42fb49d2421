"""Steps 2d and 2e: of each unit what is decided, then of each shard what became of its documents.

What a unit writes are sections by shard, so that the fates of a shard are one piece of each. The fates of a shard do
not depend on units: the values of the rows that have some, in the order of the rows.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.dedup.near.decision import Best, decide
from toolkit.dedup.near.graph import MEMBER, MEMBERS, UNITS
from toolkit.dedup.near.sections import Sections, bounds_of, packed, unpacked, write_sections
from toolkit.dedup.near.unit import OrderedUnit
from toolkit.runs.executors import Report
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join
from toolkit.storage.reading import open_stored
from toolkit.text.kernels.signatures import Array

DECIDED, FATES = "decided", "fates"
TYPES = ROWS, SIZES, VALUES = ("<u4", "<u4", "u1")

SHOWN = 3
"""Largest clusters that are shown, and members of each."""


class NearCopies(msgspec.Struct, frozen=True):
    """What a document is a near duplicate of.

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


class Cluster(ConfigStruct):
    """A kept document with its duplicates: their number, its name, and some of them with their similarity."""

    size: int
    kept: list[str]
    some: list[tuple[list[str], float | None]]


class ToDecide(ConfigStruct):
    """A unit.

    Attributes:
        number: of it.
        files: of evidence, of each shard that has some: its number, and how many files.
        shards: how many there are.
        own: number of the first that is not of another dataset.
    """

    number: int
    files: list[tuple[int, int]]
    shards: int
    own: int
    bands: int
    jaccard: float
    containment: float
    verify: bool
    memory: int
    folder: str


class Decided(ConfigStruct):
    """What was decided: counts; the sources of what is removed; the largest clusters."""

    counts: dict[str, int]
    removed: dict[str, int]
    clusters: list[Cluster]


def decide_unit(work: ToDecide, report: Report) -> Decided:
    """Decide about the documents of a unit, and write the values of those that are in a cluster."""
    import numpy as np

    with Sections(join(work.folder, UNITS)) as sections:
        (documents,) = unpacked(sections.read(work.number), ["<u8"])
    shards = (documents >> np.uint64(32)).astype(np.int64)
    given = shards < work.own
    with OrderedUnit(work.folder, work.files, work.number, given, work.bands) as unit:
        options = {"jaccard": work.jaccard, "containment": work.containment, "verify": work.verify}
        decided = decide(unit, **options, memory=work.memory)  # type: ignore[arg-type]
        told = _Told(unit, decided.best, documents)
        path = join(work.folder, f"{DECIDED}-{work.number}")
        write_sections(path, (told.section(np.flatnonzero(shards == i)) for i in range(work.shards)))
        counts = {
            "duplicates": int((decided.best.positions >= 0).sum()),
            "clusters": int((told.sizes > 1).sum()),
            "pairs": decided.pairs,
            "compared pairs": decided.compared,
            "similar pairs": decided.found,
        }
        return Decided(counts=counts, removed=dict(told.removed), clusters=told.largest())


class _Told:
    """What is told of the documents of a unit.

    Attributes:
        sizes: of the cluster of each kept document, itself among them.
        removed: documents by source, so far.
    """

    def __init__(self, unit: OrderedUnit, best: Best, documents: Array) -> None:
        import numpy as np

        self._unit, self._best, self._documents = unit, best, documents
        kept = best.positions[best.positions >= 0]
        self.sizes = np.bincount(kept, minlength=len(documents)) + 1
        self.removed = Counter[str]()

    def section(self, which: Array) -> bytes:
        """Return rows and values of documents of one shard that are in a cluster."""
        import numpy as np

        positions = self._best.positions[which]
        which = which[(positions >= 0) | (self.sizes[which] > 1)]
        which = which[np.argsort(self._documents[which])]
        if not len(which) or self._unit.given[which[0]]:
            return b""
        values = [msgspec.json.encode(self._value(place)) for place in which.tolist()]
        rows = (self._documents[which] & np.uint64(0xFFFFFFFF)).astype(ROWS)
        sizes = np.array(list(map(len, values)), dtype=SIZES)
        return packed([rows, sizes, np.frombuffer(b"".join(values), dtype=VALUES)])

    def _value(self, place: int) -> NearCopies:
        kept = int(self._best.positions[place])
        if kept < 0:
            return NearCopies(cluster=self._name(place), size=int(self.sizes[place]))
        self.removed[self._name(place)[0]] += 1
        name, jaccard, containment = self._name(kept), self._jaccard(place), None
        if jaccard is not None:
            containment = int(self._best.common[place]) / int(self._unit.sizes[place])
        return NearCopies(name, jaccard, containment, name, int(self.sizes[kept]))

    def _jaccard(self, place: int) -> float | None:
        joint = int(self._best.joint[place])
        return int(self._best.common[place]) / joint if joint else None

    def _name(self, place: int) -> list[str]:
        return msgspec.json.decode(self._unit.name(place), type=list[str])

    def largest(self) -> list[Cluster]:
        """Return the largest clusters, the first of those of one size."""
        import numpy as np

        found = []
        for kept in np.argsort(-self.sizes, kind="stable")[:SHOWN].tolist():
            if self.sizes[kept] > 1:
                members = np.flatnonzero(self._best.positions == kept)[: SHOWN - 1].tolist()
                some = [(self._name(place), self._jaccard(place)) for place in members]
                found.append(Cluster(size=int(self.sizes[kept]), kept=self._name(kept), some=some))
        return found


class ToGather(ConfigStruct):
    """A shard of which the fates are gathered: its number, the folder of what was decided, and where they go."""

    number: int
    folder: str
    path: str


def gather_shard(work: ToGather, report: Report) -> str:
    """Write what became of the documents of a shard; return a digest of it."""
    import numpy as np

    with open_stored(join(work.folder, f"{MEMBERS}-{work.number}")) as stream:
        units = np.unique(np.frombuffer(stream.read(), dtype=MEMBER)["unit"])
    found: list[list[Array]] = []
    for unit in units.tolist():
        with Sections(join(work.folder, f"{DECIDED}-{unit}")) as sections:
            found.append(unpacked(sections.read(work.number), TYPES))
    rows, sizes, values = (np.concatenate(columns) for columns in zip(*found, strict=True))
    starts = bounds_of(sizes).tolist()
    order = np.argsort(rows)
    text = values.tobytes()
    joined = b"".join(text[starts[i] : starts[i + 1]] for i in order.tolist())
    data = packed([rows[order], sizes[order], np.frombuffer(joined, dtype=VALUES)])
    write_file(work.path, data)
    return xxhash.xxh3_128_hexdigest(data)


def values_of(path: str | None, rows: int) -> Iterator[NearCopies | msgspec.Raw]:
    """Yield the value of each row of a shard; `path` is that of its fates, if it has any."""
    alone = NearCopies()
    at = 0
    if path is not None:
        with open_stored(path) as stream:
            found, sizes, values = unpacked(stream.read(), TYPES)
        text, begin = values.tobytes(), 0
        for row, size in zip(found.tolist(), sizes.tolist(), strict=True):
            for _ in range(at, row):
                yield alone
            yield msgspec.Raw(text[begin : begin + size])
            at, begin = row + 1, begin + size
    for _ in range(at, rows):
        yield alone
