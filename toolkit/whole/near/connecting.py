"""Steps 2a and 2b: which documents share a bucket, and which belong together, in parts that have room in memory.

Documents that share a bucket belong together, and so do those that share one with one of these: a component. Nothing
else follows from that: what is removed is decided by sets of shingles (see `evidence`). A part has whole components,
chosen by a hash, and of each document what its place in them depends on.

A document is a number here: that of its shard in the upper 32 bits, its row in the lower ones. A component is the least
number in it. All of it goes over `toolkit.exchange`, by the hash of a document, then by its row, then by part:

    find_buckets      per range of keys       pairs of documents, the first of a bucket and each other, both ways round
    join_stars        per range of documents  the same, so that in the end each is connected with the least alone
    label_documents   likewise                documents and their components
    list_candidates   per group of rows       `CANDIDATE` of each, by part

Source: alternating large and small stars, Kiveris et al., Connected Components in MapReduce and Beyond (2014).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from toolkit.config.settings import ConfigStruct
from toolkit.exchange.sealed import Sections, read_sealed
from toolkit.execution.executors import Report, Task
from toolkit.storage.paths import join
from toolkit.text.kernels.signatures import Array
from toolkit.whole.kind import NUMBERS, Work
from toolkit.whole.near.signing import KEY, PREFIXES, row_type
from toolkit.whole.records import SignedShard

if TYPE_CHECKING:
    import numpy as np

EDGE = [("of", "<u8"), ("to", "<u8")]
"""Two documents that belong together; or a document, and its component."""

CANDIDATES = "candidates"
MOST_PARTS = 512
_MOST_PARTITIONS = 1 << 12
_BYTES_OF_CANDIDATE = 400  # of memory a candidate, while a part is put in order


class Runs(ConfigStruct):
    """The sorted keys of a shard: the folder of its signatures, its number, how many runs there are."""

    folder: str
    number: int
    runs: int


class ToBucket(ConfigStruct):
    """A range of keys.

    Attributes:
        shards: all, in order.
        own: number of the first that is not of another dataset.
        was_there: Whether an earlier resolution had each shard as it is; empty if there is none.
        begin: of its prefixes.
        end: exclusive.
        partitions: Number of partitions of pairs.
        path: Path of the objects of pairs.
    """

    shards: list[Runs]
    own: int
    was_there: list[bool]
    begin: int
    end: int
    partitions: int
    path: str


class Bucketed(ConfigStruct):
    """What a range has.

    Attributes:
        keys: Number of keys.
        buckets: Number of buckets with several documents.
        largest: Number of documents in the largest.
        pairs: Number of pairs written.
        objects: Objects of the pairs.
        before: Objects of the pairs of documents that were there before.
    """

    keys: int
    buckets: int
    largest: int
    pairs: int
    objects: list[str]
    before: list[str]


def runs_of(signed: Sequence[SignedShard]) -> list[Runs]:
    """Return where the sorted keys of shards are."""
    return [Runs(folder=each.path(""), number=each.number, runs=each.record.details) for each in signed]


def ranges(signed: Sequence[SignedShard], bands: int, memory: int) -> list[tuple[int, int]]:
    """Return ranges of prefixes; what is done with the keys of one needs about so many bytes."""
    keys = bands * sum(each.record.counts["compared"] for each in signed)
    parts = min(PREFIXES, max(4, 100 * keys // memory + 1))
    edges = [i * PREFIXES // parts for i in range(parts + 1)]
    return list(pairwise(edges))


def partitions_of(documents: int, memory: int) -> int:
    """Return how many partitions to scatter pairs of so many documents to."""
    return min(_MOST_PARTITIONS, 16 + 4096 * documents // memory)


def parts_of(candidates: int, memory: int) -> int:
    """Return how many parts make room for as many candidates as there may be."""
    return min(MOST_PARTS, _BYTES_OF_CANDIDATE * candidates // memory + 1)


def find_buckets(work: ToBucket, report: Report) -> Bucketed:
    """Scatter pairs that connect the documents of each bucket."""
    import numpy as np

    parts, documents = [], []
    for shard in work.shards:
        for run in range(shard.runs):
            with Sections(join(shard.folder, f"sorted-{run}")) as sections:
                found = np.frombuffer(sections.read(work.begin, work.end), dtype=KEY)
            parts.append(found["key"])
            documents.append(np.uint64(shard.number << 32) | found["row"].astype(np.uint64))
    keys = np.concatenate([np.empty(0, dtype="<u8"), *parts])
    numbers = np.concatenate([np.empty(0, dtype="<u8"), *documents])
    del parts, documents
    order = np.argsort(keys, kind="stable")
    keys, numbers = keys[order], numbers[order]
    begins = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.empty(0, dtype=np.int64)
    sizes = np.diff(np.append(begins, len(keys)))
    shared = (sizes > 1) & (numbers[begins + sizes - 1] >= np.uint64(work.own << 32))
    pairs = _pairs_of_buckets(numbers, begins[shared], sizes[shared])
    stays = np.array([*work.was_there, False])[np.minimum(pairs >> np.uint64(32), len(work.was_there))].all(axis=1)
    return Bucketed(
        keys=len(keys),
        buckets=int(shared.sum()),
        largest=int(np.max(sizes[shared], initial=0)),
        pairs=len(pairs),
        objects=scatter_pairs(work.path, pairs, work.partitions, both=True),
        before=scatter_pairs(f"{work.path}-before", pairs[stays], work.partitions, both=True),
    )


def _pairs_of_buckets(numbers: Array, begins: Array, sizes: Array) -> Array:
    """Return the first document of each bucket beside each of its others."""
    import numpy as np

    before = np.cumsum(sizes - 1) - (sizes - 1)
    places = np.arange(int((sizes - 1).sum())) - np.repeat(before - begins - 1, sizes - 1)
    return np.stack([np.repeat(numbers[begins], sizes - 1), numbers[places]], axis=1)


def _part(numbers: Array, parts: int) -> Array:
    """Return which of so many parts a hash chooses for each number."""
    import numpy as np

    return (numbers * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)).astype(np.int64) % parts


def scatter_pairs(stem: str, pairs: Array, partitions: int, *, both: bool) -> list[str]:
    """Scatter pairs by their first documents, or with `both` by each of the two; return the objects."""
    import numpy as np

    from toolkit.exchange.scatter import Scatter

    with Scatter(stem, np.dtype(EDGE), partitions) as scatter:
        for way in (pairs, pairs[:, ::-1]) if both else (pairs,):
            records = np.zeros(len(way), dtype=EDGE)
            records["of"], records["to"] = way[:, 0], way[:, 1]
            scatter.add(records, _part(records["of"], partitions))
    return scatter.objects


class Groups(ConfigStruct):
    """Groups of rows of all shards, in order: their number, that of the shards, and the most rows that one has."""

    number: int
    shards: int
    rows: int

    def of(self, documents: Array) -> Array:
        """Return the group of each document."""
        import numpy as np

        places = (documents >> np.uint64(32)) * np.uint64(self.rows) + (documents & np.uint64(0xFFFFFFFF))
        return (places * np.uint64(self.number) // np.uint64(self.shards * self.rows)).astype(np.int64)


class ToJoinStars(ConfigStruct):
    """Partitions of pairs.

    Attributes:
        folder: Folder of the objects.
        name: Name of the pairs.
        first: First partition.
        last: First partition after these.
        partitions: Number of partitions.
        large: True if all documents of greater numbers are connected with the least one; else all of lower numbers.
        stem: Path of the objects to write.
        groups: Groups of rows, for labels.
    """

    folder: str
    name: str
    first: int
    last: int
    partitions: int
    large: bool
    stem: str
    groups: "Groups"


class Joined(ConfigStruct):
    """The objects that were written, and whether a pair is another one now."""

    objects: list[str]
    changed: bool


def _edges(task: ToJoinStars) -> tuple[Array, Array, Array]:
    """Return both documents of the pairs, sorted, each pair once; and the least document that each first one knows."""
    import numpy as np

    from toolkit.exchange.scatter import gather

    records = gather(task.folder, task.name, task.first, task.last, np.dtype(EDGE)).records
    order = np.lexsort((records["to"], records["of"]))
    of, to = records["of"][order], records["to"][order]
    new = np.append(True, (of[1:] != of[:-1]) | (to[1:] != to[:-1]))[: len(of)]
    of, to = of[new], to[new]
    begins = np.flatnonzero(np.append(True, of[1:] != of[:-1])[: len(of)])
    least = np.repeat(np.minimum(of[begins], to[begins]), np.diff(np.append(begins, len(of))))
    return of, to, least


def join_stars(task: ToJoinStars, report: Report) -> Joined:
    """Connect the documents that each document knows with the least of them."""
    import numpy as np

    of, to, least = _edges(task)
    if task.large:
        chosen = to > of
        pairs = np.stack([to[chosen], least[chosen]], axis=1)
        return Joined(
            objects=scatter_pairs(task.stem, pairs, task.partitions, both=False),
            changed=bool((least != of)[chosen].any()),
        )
    others = to != least
    pairs = np.stack([np.where(others, to, of), least], axis=1)
    return Joined(objects=scatter_pairs(task.stem, pairs, task.partitions, both=True), changed=bool(others.any()))


def label_documents(task: ToJoinStars, report: Report) -> list[str]:
    """Scatter documents and their components by groups of shards; return the objects."""
    import numpy as np

    from toolkit.exchange.scatter import Scatter

    of, _, least = _edges(task)
    first = np.append(True, of[1:] != of[:-1])[: len(of)]
    records = np.zeros(int(first.sum()), dtype=EDGE)
    records["of"], records["to"] = of[first], least[first]
    with Scatter(task.stem, np.dtype(EDGE), task.groups.number) as scatter:
        scatter.add(records, task.groups.of(records["of"]))
    return scatter.objects


def candidate_type(ranks: str) -> "np.dtype[Any]":
    """Return the type of a document that shares a bucket, given that of `Competing.ranks`.

    It has its number, that of its component, that of the one in which it was before there were new shards, its order,
    and how many shingles it has.
    """
    import numpy as np

    places = [(name, "<u8") for name in ("document", "component", "before")]
    return np.dtype([*places, ("order", ranks or NUMBERS), ("shingles", "<u4")])


class ToList(ConfigStruct):
    """Groups of rows of which the candidates are listed.

    Attributes:
        folder: Folder of the objects.
        signatures: Folder of the signatures of each shard that has some of them, by number.
        first: First group.
        last: First group after these.
        parts: Number of parts.
        ranks: Type of the order.
        stem: Path of the objects to write.
    """

    folder: str
    signatures: dict[int, str]
    first: int
    last: int
    parts: int
    ranks: str
    stem: str


class Listed(ConfigStruct):
    """The objects of candidates, and how many candidates each shard has."""

    objects: list[str]
    counts: dict[int, int]


def list_candidates(task: ToList, report: Report) -> Listed:
    """Scatter the candidates of groups of rows by parts."""
    import numpy as np

    from toolkit.exchange.scatter import Scatter, gather

    now, before = (
        gather(task.folder, name, task.first, task.last, np.dtype(EDGE)).records for name in ("labels", "labels-before")
    )
    now = now[np.argsort(now["of"])]
    candidates = np.zeros(len(now), dtype=candidate_type(task.ranks))
    candidates["document"], candidates["component"], candidates["before"] = now["of"], now["to"], now["of"]
    candidates["before"][np.searchsorted(now["of"], before["of"])] = before["to"]
    shards = (now["of"] >> np.uint64(32)).astype(np.int64)
    counts = {}
    for shard in np.unique(shards).tolist():
        begin, end = np.searchsorted(shards, [shard, shard + 1]).tolist()
        rows = (now["of"][begin:end] & np.uint64(0xFFFFFFFF)).astype(np.int64)
        size, least, most = row_type(task.ranks).itemsize, int(rows[0]), int(rows[-1]) + 1
        data = read_sealed(join(task.signatures[shard], "rows"), least * size, (most - least) * size)
        known = np.frombuffer(data, dtype=row_type(task.ranks))[rows - least]
        candidates["order"][begin:end], candidates["shingles"][begin:end] = known["order"], known["shingles"]
        counts[shard] = end - begin
    with Scatter(task.stem, candidates.dtype, task.parts) as scatter:
        scatter.add(candidates, _part(candidates["component"], task.parts))
    return Listed(objects=scatter.objects, counts=counts)


def connect(
    work: Work, folder: str, bucketed: Sequence[Bucketed], partitions: int, parts: int, ranks: str
) -> list[int]:
    """Enter the candidates of all parts; return how many each shard has."""
    from toolkit.exchange.scatter import ranges, settle

    groups = Groups(number=partitions, shards=len(work.shards), rows=max(1, *(s.record.rows for s in work.shards)))
    for suffix, objects in (("", [b.objects for b in bucketed]), ("-before", [b.before for b in bucketed])):
        find_components(work, folder, suffix, [path for each in objects for path in each], partitions, groups)
    tasks = []
    for i, (first, last) in enumerate(ranges(folder, ["labels", "labels-before"], work.memory)):
        begin, end = (edge * len(work.shards) for edge in (first, last))
        mine = work.shards[begin // partitions : -(-end // partitions)]
        signatures = {each.number: each.path("") for each in mine}
        stem = join(folder, f"{CANDIDATES}-{i}")
        to_list = ToList(
            folder=folder, signatures=signatures, first=first, last=last, parts=parts, ranks=ranks, stem=stem
        )
        tasks.append(Task(f"rows {i}", to_list))
    listed: list[Listed] = work.run("finding groups of near duplicates", list_candidates, tasks)
    settle(work.run, folder, CANDIDATES, [path for each in listed for path in each.objects])
    counts = Counter[int]()
    for each in listed:
        counts.update(each.counts)
    return [counts[signed.number] for signed in work.shards]


def find_components(work: Work, folder: str, suffix: str, objects: list[str], partitions: int, groups: Groups) -> None:
    """Enter the components of all documents, found in rounds of large and small stars until no pair changes."""
    from toolkit.exchange.scatter import ranges, settle

    round, changed = 0, True

    def run(function: Callable[[Any, Report], Any], stem: str, *, large: bool = False) -> list[Any]:
        tasks = [
            Task(f"{name} {i}", ToJoinStars(folder=folder, name=name, first=first, last=last, partitions=partitions,
                                            large=large, stem=join(folder, f"{stem}-{i}"), groups=groups))
            for i, (first, last) in enumerate(ranges(folder, [name], work.memory))
        ]  # fmt: skip
        return work.run("finding groups of near duplicates", function, tasks)

    name = f"pairs{suffix}-0"
    settle(work.run, folder, name, objects)
    while objects and changed:
        changed = False
        for large in (True, False):
            round += 1
            joined: list[Joined] = run(join_stars, f"pairs{suffix}-{round}", large=large)
            changed |= any(each.changed for each in joined)
            name = f"pairs{suffix}-{round}"
            settle(work.run, folder, name, [path for each in joined for path in each.objects])
    labels: list[list[str]] = run(label_documents, f"labels{suffix}")
    settle(work.run, folder, f"labels{suffix}", [path for each in labels for path in each])
