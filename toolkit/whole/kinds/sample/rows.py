"""What is kept of a shard's rows to draw samples: for each row its key, its stratum and its split.

``rows.bin``   uint64 keys of all rows, then uint32 strata, then uint8 splits; little-endian, sealed

Documents with the least keys of their stratum are chosen. A key is the hash of source and id, which is as good as
random, or, where documents have weights, -log(u) / weight of it, with which the k least are a weighted sample without
replacement (Efraimidis and Spirakis, Weighted random sampling with a reservoir, 2006).
"""

import math
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from toolkit.rules.rule import sample_hash
from toolkit.whole.records import SignedShard
from toolkit.whole.sealed import read_sealed

Array: TypeAlias = npt.NDArray[Any]

FILE = "rows.bin"
OUT = 2**32 - 1
"""The stratum of a row that cannot be chosen."""

_BYTES = 8 + 4 + 1


class Strata(NamedTuple):
    """What the record of a shard says of its strata: their labels, and how many documents each has there."""

    labels: list[str]
    counts: list[int]


class Rows(NamedTuple):
    """The rows of a shard, in order.

    Attributes:
        keys: uint64.
        strata: uint32, numbers of the shard's own labels; `OUT` for a row that cannot be chosen.
        splits: uint8, numbers of the splits, in their order.
    """

    keys: Array
    strata: Array
    splits: Array


def packed(rows: Rows) -> bytes:
    """Return the content of the file."""
    data = rows.keys.astype("<u8").tobytes() + rows.strata.astype("<u4").tobytes()
    return data + rows.splits.astype("u1").tobytes()


def load(signed: SignedShard) -> Rows:
    """Return the rows of a shard.

    Raises:
        DataError: if the file is not what was written.
    """
    count = signed.record.rows
    data = read_sealed(signed.path(FILE), 0, count * _BYTES)
    return Rows(
        np.frombuffer(data, "<u8", count),
        np.frombuffer(data, "<u4", count, 8 * count),
        np.frombuffer(data, "u1", count, 12 * count),
    )


def weighted_key(key: int, weight: float) -> int:
    """Return the key of a document that has a weight above 0, as the bits of a double, which are in its order."""
    exponential = -math.log((key + 0.5) / 2.0**64)
    return int(np.float64(max(exponential, 0.0) / weight).view(np.uint64))


def split_of(seed: str, value: Any, bounds: Array) -> int:
    """Return the number of the split of a value: of one hash for all with that value.

    Args:
        seed: of the sample.
        value: whatever JSON has.
        bounds: where the share of each split ends.
    """
    drawn = sample_hash(f"split {seed}", "", msgspec.json.encode(value, order="sorted").decode()) / 2.0**64
    shares = np.flatnonzero(np.diff(bounds, prepend=0.0))
    return min(int(np.searchsorted(bounds, drawn, side="right")), int(shares[-1]))
