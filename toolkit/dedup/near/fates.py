"""Step 2e, per shard: what became of its documents, from what the units say; and the values of all its rows.

What a unit writes are sections by shard, so that the fates of a shard are one piece of each. The fates of a shard do
not depend on units: the values of the rows that have some, in the order of the rows.
"""

from collections.abc import Iterator

import msgspec
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.dedup.near.graph import MEMBER, MEMBERS
from toolkit.dedup.near.sections import Sections, bounds_of, packed, unpacked
from toolkit.runs.executors import Report
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join
from toolkit.storage.reading import open_stored
from toolkit.text.kernels.signatures import Array

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
