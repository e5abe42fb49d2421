"""Steps 2a and 2b: which documents share a bucket, and which belong together, in parts that have room in memory.

Documents that share a bucket belong together, and so do those that share one with one of these: a component. Nothing
else follows from that: what is removed is decided by sets of shingles (see `evidence`). A part has whole components,
chosen by a hash, and of each document what its place in them depends on.

Components of a graph that is larger than memory: of each number that a pair has, the least one it is connected with.

Numbers are cut into ranges, so that there is room for a range at a time. Downwards, a range takes the pairs whose
greater number it has, and unites what it can. What is left of it are pairs of lower numbers, at most as many as it was
given, which lower ranges take. Upwards, a range knows all its components, and tells higher ones those that they asked
for. Pairs, questions and answers wait in files on the local disk.

Source: the contraction of vertices in order, as in Chiang et al., External-memory graph algorithms (1995), 5.

Step 2a, per range of keys: which documents share a bucket.

A document is a number here: that of its shard in the upper 32 bits, its row in the lower ones.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import Any, NamedTuple, Self

from toolkit.config.settings import ConfigStruct
from toolkit.exchange.sealed import SealedOutput, Sections, bounds_of, read_sealed
from toolkit.runs.executors import Report
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join
from toolkit.storage.reading import open_stored
from toolkit.storage.stores.local.scratch import open_scratch, remove_scratch
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Int64s, UInt8s
from toolkit.whole.near.signing import KEY, PREFIXES, ROW
from toolkit.whole.records import SignedShard

MOST_RANGES = 256
_BYTES_OF_NUMBER = 300  # of memory a number of a range
_CHUNK = 1 << 16  # pairs that are read at a time

_PAIR = ("<i8", 2)


class United(NamedTuple):
    """What has been united of a range.

    Attributes:
        parents: int64, of each number, from `begin` on, one of its component that is not greater.
        below: int64, of each that is its own parent, a number below the range that it is connected with; -1 if none.
        seen: uint8, 1 for numbers that pairs have.
        begin: of the range.
    """

    parents: Int64s
    below: Int64s
    seen: UInt8s
    begin: int


_contract = Compiled("toolkit.whole.near.kernel:contract", United, "int64* int64 int64* int64*")


class Ranges(NamedTuple):
    """Ranges of numbers, from 0 on.

    Attributes:
        total: numbers.
        size: of a range; the last may be smaller.
    """

    total: int
    size: int

    @classmethod
    def of(cls, total: int, memory: int) -> "Ranges":
        """Return those for which there is room."""
        return cls(total, max(1, memory // _BYTES_OF_NUMBER, -(-total // MOST_RANGES)))

    @property
    def number(self) -> int:
        return -(-self.total // self.size)


class Bins:
    """Rows of one type in files on the local disk, one file a bin. A context manager, which deletes them.

    Args:
        type_: of a row, as numpy has it.
    """

    def __init__(self, type_: Any) -> None:
        import numpy as np

        self._type = np.dtype(type_)

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="toolkit-")  # deleted on leaving
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def add(self, rows: Array, bins: Array) -> None:
        """Add rows, each to its bin."""
        import numpy as np

        if not len(rows):
            return
        order = np.argsort(bins, kind="stable")
        rows, bins = rows[order], bins[order]
        begins = np.flatnonzero(np.append(True, bins[1:] != bins[:-1]))
        for bin_, part in zip(bins[begins].tolist(), np.split(rows, begins[1:]), strict=True):
            with open_scratch(self._path(bin_), "ab") as stream:
                stream.write(np.ascontiguousarray(part).tobytes())

    def take(self, bin_: int, rows: int = _CHUNK) -> Iterator[Array]:
        """Yield the rows of a bin in the order in which they came, some at a time; its file is gone then."""
        import numpy as np

        path = self._path(bin_)
        if not os.path.exists(path):
            return
        with open(path, "rb") as stream:
            while data := stream.read(self._type.itemsize * rows):
                yield np.frombuffer(data, dtype=self._type)
        remove_scratch(path)

    def _path(self, bin_: int) -> str:
        return os.path.join(self._folder.name, str(bin_))


def components(pairs: Iterable[Array], ranges: Ranges) -> Iterator[tuple[Array, Array]]:
    """Yield of each range the numbers that pairs have, ascending, and the least number each is connected with.

    Args:
        pairs: int64 (pairs, 2), some at a time.
        ranges: of the numbers.
    """
    with ExitStack() as stack:
        edges, asked, told = (stack.enter_context(Bins(_PAIR)) for _ in range(3))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="toolkit-"))
        for part in pairs:
            _send(part, edges, ranges)
        for number in reversed(range(ranges.number)):
            _down(number, ranges, edges, asked, os.path.join(folder, str(number)))
        for number in range(ranges.number):
            yield _up(number, ranges, asked, told, os.path.join(folder, str(number)))


def _send(pairs: Array, edges: Bins, ranges: Ranges) -> None:
    """Give pairs to the ranges of their greater numbers."""
    import numpy as np

    pairs = np.sort(pairs, axis=1)[:, ::-1]
    edges.add(pairs, pairs[:, 0] // ranges.size)


def _down(number: int, ranges: Ranges, edges: Bins, asked: Bins, path: str) -> None:
    """Unite what a range has; note the first number of each of its components there, and ask for those below."""
    import numpy as np

    begin = number * ranges.size
    size = min(ranges.total - begin, ranges.size)
    parents, below = np.arange(size, dtype=np.int64), np.full(size, -1, dtype=np.int64)
    seen = np.zeros(size, dtype=np.uint8)
    for part in edges.take(number):
        left = np.empty((len(part), 2), dtype=np.int64)
        count = np.zeros(1, dtype=np.int64)
        _contract(United(parents, below, seen, begin), np.ascontiguousarray(part), len(part), left, count)
        _send(np.unique(left[: count[0]], axis=0), edges, ranges)
    while not np.array_equal(parents, above := parents[parents]):
        parents = above
    roots = np.flatnonzero((below >= 0) & (parents == np.arange(size)))
    asked.add(np.stack([below[roots], roots + begin], axis=1), below[roots] // ranges.size)
    with open_scratch(path) as stream:
        stream.write(parents.tobytes() + seen.tobytes())


def _up(number: int, ranges: Ranges, asked: Bins, told: Bins, path: str) -> tuple[Array, Array]:
    """Return the numbers of a range, and their components; tell those who asked."""
    import numpy as np

    begin = number * ranges.size
    with open(path, "rb") as stream:
        data = stream.read()
    remove_scratch(path)
    parents = np.frombuffer(data, dtype=np.int64, count=len(data) // 9)
    seen = np.frombuffer(data, dtype=np.uint8, offset=8 * len(parents)).astype(bool)
    labels = np.arange(begin, begin + len(parents))
    for part in told.take(number):
        labels[part[:, 0] - begin] = part[:, 1]
    labels = labels[parents]
    for part in asked.take(number):
        below = part[:, 0] - begin
        seen[below] = True
        told.add(np.stack([part[:, 1], labels[below]], axis=1), part[:, 1] // ranges.size)
    found = np.flatnonzero(seen)
    return found + begin, labels[found]


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
        begin: of its prefixes.
        end: exclusive.
        path: of what is written: pairs of documents (uint64), the first of a bucket and each other.
    """

    shards: list[Runs]
    own: int
    begin: int
    end: int
    path: str


class Bucketed(ConfigStruct):
    """What a range has: keys; buckets with several documents, and how many are in the largest; pairs written."""

    keys: int
    buckets: int
    largest: int
    pairs: int


def runs_of(signed: Sequence[SignedShard]) -> list[Runs]:
    """Return where the sorted keys of shards are."""
    return [Runs(folder=each.path(""), number=each.number, runs=each.record.details) for each in signed]


def ranges(signed: Sequence[SignedShard], bands: int, memory: int) -> list[tuple[int, int]]:
    """Return ranges of prefixes; what is done with the keys of one needs about so many bytes."""
    keys = bands * sum(each.record.counts["compared"] for each in signed)
    parts = min(PREFIXES, max(4, 100 * keys // memory + 1))
    edges = [i * PREFIXES // parts for i in range(parts + 1)]
    return list(pairwise(edges))


def find_buckets(work: ToBucket, report: Report) -> Bucketed:
    """Write which documents share a bucket, as pairs that connect them."""
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
    write_file(work.path, pairs.astype("<u8").tobytes())
    return Bucketed(
        keys=len(keys), buckets=int(shared.sum()), largest=int(np.max(sizes[shared], initial=0)), pairs=len(pairs)
    )


def _pairs_of_buckets(numbers: Array, begins: Array, sizes: Array) -> Array:
    """Return the first document of each bucket beside each of its others."""
    import numpy as np

    before = np.cumsum(sizes - 1) - (sizes - 1)
    places = np.arange(int((sizes - 1).sum())) - np.repeat(before - begins - 1, sizes - 1)
    return np.stack([np.repeat(numbers[begins], sizes - 1), numbers[places]], axis=1)


CANDIDATE = [("document", "<u8"), ("component", "<u8"), ("before", "<u8"), ("order", "<f8"), ("shingles", "<u4")]
"""A document that shares a bucket: its number, that of its component, that of the one in which it was before there were
new shards, its order, and how many shingles it has.
"""

CANDIDATES = "candidates"
MOST_PARTS = 512
_BYTES_OF_CANDIDATE = 400  # of memory a candidate, while a part is put in order
_PAIRS = 1 << 20  # bytes of pairs that are read at a time


class ToConnect(ConfigStruct):
    """All that shares a bucket.

    Attributes:
        pairs: paths of files of pairs of documents, as tasks of `ToBucket` write them.
        folders: of the signatures of each shard.
        rows: of each shard.
        was_there: of each shard, whether an earlier resolution had it as it is; empty if there is none.
        parts: how many to make.
        memory: bytes that may be used.
        folder: to write to.
    """

    pairs: list[str]
    folders: list[str]
    rows: list[int]
    was_there: list[bool]
    parts: int
    memory: int
    folder: str


def parts_of(candidates: int, memory: int) -> int:
    """Return how many parts make room for as many candidates as there may be."""
    return min(MOST_PARTS, _BYTES_OF_CANDIDATE * candidates // memory + 1)


def connect(work: ToConnect, report: Report) -> list[int]:
    """Write the candidates of each part, by their numbers (`CANDIDATES`-PART); return how many each shard has."""
    import numpy as np

    bounds = bounds_of(np.array(work.rows, dtype=np.int64))
    ranges = Ranges.of(int(bounds[-1]), work.memory)
    found = [0] * len(work.rows)
    before = _before(work, bounds, ranges)
    with ExitStack() as stack:
        paths = (join(work.folder, f"{CANDIDATES}-{part}") for part in range(work.parts))
        outputs = [stack.enter_context(SealedOutput(path)) for path in paths]
        for (numbers, labels), (olds, old_labels) in zip(
            components(_pairs_of_part(work, bounds), ranges), before, strict=True
        ):
            mine = np.empty(len(numbers), dtype=CANDIDATE)
            mine["component"], mine["before"] = labels, numbers
            mine["before"][np.searchsorted(numbers, olds)] = old_labels
            shards = np.searchsorted(bounds, numbers, side="right") - 1
            edges = np.searchsorted(shards, np.arange(len(work.rows) + 1)).tolist()
            for shard in np.unique(shards).tolist():
                begin, end = edges[shard : shard + 2]
                rows = numbers[begin:end] - bounds[shard]
                known = np.frombuffer(read_sealed(join(work.folders[shard], "rows")), dtype=ROW)[rows]
                mine["document"][begin:end] = rows.astype("<u8") | np.uint64(shard << 32)
                mine["order"][begin:end], mine["shingles"][begin:end] = known["order"], known["shingles"]
                found[shard] += end - begin
            _write(mine, outputs)
    return found


def _write(candidates: Array, outputs: Sequence[SealedOutput]) -> None:
    """Write candidates to their parts."""
    import numpy as np

    hashes = candidates["component"] * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)
    parts = (hashes % np.uint64(len(outputs))).astype(np.int64)
    order = np.argsort(parts, kind="stable")
    edges = np.searchsorted(parts[order], np.arange(len(outputs) + 1)).tolist()
    for output, begin, end in zip(outputs, edges, edges[1:], strict=False):
        output.write(candidates[order[begin:end]].tobytes())


def _before(work: ToConnect, bounds: Array, ranges: Ranges) -> Iterator[tuple[Array, Array]]:
    """Yield of each range the documents that shared a bucket before there were new shards, and their components."""
    import numpy as np

    if work.was_there:
        yield from components(_pairs_of_part(work, bounds, np.array(work.was_there)), ranges)
        return
    nothing = np.empty(0, dtype=np.int64)
    for _ in range(ranges.number):
        yield nothing, nothing


def _pairs_of_part(work: ToConnect, bounds: Array, which: Array | None = None) -> Iterator[Array]:
    """Yield all pairs, as rows of all shards one behind the other; if asked for, those of two shards of some alone."""
    import numpy as np

    for path in work.pairs:
        with open_stored(path) as stream:
            while data := stream.read(_PAIRS):
                found = np.frombuffer(data, dtype="<u8").reshape(-1, 2)
                shards = (found >> np.uint64(32)).astype(np.int64)
                pairs = bounds[shards] + (found & np.uint64(0xFFFFFFFF)).astype(np.int64)
                yield pairs if which is None else pairs[which[shards].all(axis=1)]
