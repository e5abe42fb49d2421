"""Step 2a, per range of keys: which documents share a bucket.

A document is a number here: that of its shard in the upper 32 bits, its row in the lower ones.
"""

from collections.abc import Sequence
from itertools import pairwise

from toolkit.config.settings import ConfigStruct
from toolkit.runs.executors import Report
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join
from toolkit.text.kernels.signatures import Array
from toolkit.whole.near.signing import KEY, PREFIXES
from toolkit.whole.records import SignedShard
from toolkit.whole.sections import Sections


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
    pairs = _pairs(numbers, begins[shared], sizes[shared])
    write_file(work.path, pairs.astype("<u8").tobytes())
    return Bucketed(
        keys=len(keys), buckets=int(shared.sum()), largest=int(np.max(sizes[shared], initial=0)), pairs=len(pairs)
    )


def _pairs(numbers: Array, begins: Array, sizes: Array) -> Array:
    """Return the first document of each bucket beside each of its others."""
    import numpy as np

    before = np.cumsum(sizes - 1) - (sizes - 1)
    places = np.arange(int((sizes - 1).sum())) - np.repeat(before - begins - 1, sizes - 1)
    return np.stack([np.repeat(numbers[begins], sizes - 1), numbers[places]], axis=1)
