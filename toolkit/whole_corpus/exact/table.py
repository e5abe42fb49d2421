"""Which hashes are equal: a table in memory, in compiled code; and a Bloom filter for which seem so.

A Bloom filter for the hashes of a partition: which of them were there before, or seem so.

Source: Bloom 1970; two hashes stand for all (Kirsch, Mitzenmacher 2008), which are the halves of the one that there is.
A filter is made for the hashes of one partition, of whose number its size follows: so it is as full as is planned for,
and neither memory nor processes change what it says.
"""

import math
from typing import NamedTuple

import numpy as np

from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Float64s, Int32s, Int64s, UInt64, UInt64s


class Hashes(NamedTuple):
    """The hashes of items.

    Attributes:
        high: uint64, the upper halves.
        low: uint64, the lower ones; those of 64 bits are `high` again.
        ranks: float64, of the items; read only if `ranked`.
        items: Number of items.
        ranked: whether the item with the lowest rank is chosen, else the first.
    """

    high: UInt64s
    low: UInt64s
    ranks: Float64s
    items: int
    ranked: bool


class Table(NamedTuple):
    """Room for a table.

    Attributes:
        tags: uint64, upper halves.
        slots: int32, their numbers; -1 where there is none.
        mask: how many there is room for, a power of two above that of the items, less 1.
        least: the least upper half. Those that come in their order are looked up in the order of the table.
        factor: by which the upper 64 bits of a product are the slot of an upper half, counted from the least.
    """

    tags: UInt64s
    slots: Int32s
    mask: int
    least: UInt64
    factor: UInt64


class Numbered(NamedTuple):
    """Which hashes are equal.

    Attributes:
        numbers: int32, of each item, that of its hash; they count in the order in which hashes come.
        chosen: int32, of each hash the item with the lowest rank, and of these the first.
        different: int64, how many hashes there are, as the only value.
    """

    numbers: Int32s
    chosen: Int32s
    different: Int64s


_number = Compiled(
    "toolkit.whole_corpus.exact.kernel:number", Hashes, Table, Numbered, uses=["toolkit.text.kernels.intrinsics"]
)


def numbered(high: Array, low: Array | None, ranks: Array | None) -> tuple[Array, Array]:
    """Return the number of each item's hash, and of each hash the item that is chosen; both int32.

    Args:
        high: uint64, the upper halves of the hashes.
        low: the lower halves; None for hashes of 64 bits.
        ranks: Ranks of the items, numbers or bytes, of which the least is chosen; None if the first is chosen.
    """
    items = len(high)
    if ranks is not None and ranks.dtype.kind == "S":
        ranks = np.unique(ranks, return_inverse=True)[1].astype(np.float64)
    room = 1 << max(4, (items + items // 2).bit_length())
    result = Numbered(np.empty(items, dtype=np.int32), np.empty(items, dtype=np.int32), np.zeros(1, dtype=np.int64))
    given = Hashes(
        high, high if low is None else low, np.zeros(1) if ranks is None else ranks, items, ranks is not None
    )
    least, most = (int(high.min()), int(high.max())) if items else (0, 0)
    factor = min((room << 64) // (most - least + 1), (1 << 64) - 1)
    table = Table(np.empty(room, dtype=np.uint64), np.full(room, -1, dtype=np.int32), room - 1, least, factor)
    _number(given, table, result)
    return result.numbers, result.chosen[: result.different[0]]


_order = Compiled("toolkit.whole_corpus.exact.kernel:order", Hashes, "int64 int32* int32*")

_LARGEST = 256
"""Hashes of a bucket that are sorted by inserting them."""


def in_order(high: Array, low: Array | None) -> Array:
    """Return the order of different hashes, int32; by buckets of their upper bits, because hashes are spread evenly."""
    items = len(high)
    bits = max(1, items.bit_length() - 1)
    result, ends = np.empty(items, dtype=np.int32), np.zeros((1 << bits) + 1, dtype=np.int32)
    np.cumsum(np.bincount((high >> np.uint64(64 - bits)).view(np.int64), minlength=1 << bits), out=ends[1:])
    if items and np.diff(ends).max() > _LARGEST:  # which are not
        return np.lexsort((high if low is None else low, high)).astype(np.int32)
    _order(Hashes(high, high if low is None else low, np.zeros(1), items, False), 64 - bits, ends, result)
    return result


KEYS = 1 << 20
"""Hashes of a partition, about."""

BYTES = 64
"""Bytes of memory that a hash of a partition takes while it is looked up, beside the filter."""

_SPARE = 1.1  # of the bits: what two hashes for all cost, and partitions that have some more hashes than others

_fill = Compiled(
    "toolkit.whole_corpus.exact.kernel:fill", Hashes, "uint64* int64 int64 uint8*", uses=["toolkit.text.kernels.mixing"]
)


def bits_of(keys: int, rate: float) -> int:
    """Return the bits of a filter of which so many hashes are asked: its false positives are at most `rate` of them."""
    return max(64, 64 * math.ceil(_SPARE * keys * -math.log(rate) / math.log(2) ** 2 / 64))


def first_seen(high: Array, low: Array | None, rate: float) -> Array:
    """Return whether each hash is new to those before it; bool. `rate` of those that are new count as seen, at most."""
    keys = len(high)
    size, functions = bits_of(keys, rate), max(1, round(-math.log2(rate)))
    result = np.zeros(keys, dtype=np.uint8)
    hashes = Hashes(high, high if low is None else low, np.zeros(1), keys, False)
    _fill(hashes, np.zeros(size // 64, dtype=np.uint64), size, functions, result)
    return result.astype(bool)
