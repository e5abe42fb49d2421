"""Step 2f, per shard: what became of its documents, from what the units say; and the values of all its rows.

What a unit writes are sections by shard, so that the fates of a shard are one piece of each. The fates of a shard do
not depend on units: the values of the rows that have some, in the order of the rows.
"""

from collections.abc import Iterator
from itertools import compress, repeat

import msgspec
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.runs.executors import Report
from toolkit.storage.paths import join
from toolkit.text.kernels.signatures import Array
from toolkit.whole.losses import most_removed
from toolkit.whole.near.graph import Numbering, members_of
from toolkit.whole.records import SignedShard
from toolkit.whole.sealed import read_sealed, write_sealed
from toolkit.whole.sections import Sections, bounds_of, packed, unpacked

DECIDED, FATES = "decided", "fates"
TYPES = ROWS, SIZES, VALUES = ("<u4", "<u4", "u1")


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


class ToGather(ConfigStruct):
    """A shard of which the fates are gathered, the numbers of units, the folder to read from, and the path to write."""

    signed: SignedShard
    numbering: Numbering
    folder: str
    path: str


class Gathered(ConfigStruct):
    """The fates of a shard: a digest of them, and the groups that lose most (see `toolkit.whole.losses`)."""

    digest: str
    removed: list[tuple[str, str, int]]


IS_KEPT = b'{"duplicate_of":null'
"""What the value of a document that is kept begins with."""


def gather_shard(work: ToGather, report: Report) -> Gathered:
    """Write what became of the documents of a shard."""
    import numpy as np

    number = work.signed.number
    units = np.unique(members_of(work.folder, work.numbering, number)["unit"])
    found: list[list[Array]] = []
    for unit in units.tolist():
        with Sections(join(work.folder, f"{DECIDED}-{unit}")) as sections:
            found.append(unpacked(sections.read(number), TYPES))
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
