"""Which documents are the k least of their stratum: exactly so many, in bounded memory, whatever the order of shards.

The k-th least key of each stratum is looked for in ranges that become smaller: each pass over the keys counts them in
parts of the range in which it must be, until all keys of these ranges fit into memory; then they are sorted. Documents
with equal keys, which the same id has, or a rare chance, are told apart by shard and row.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from toolkit.whole.kinds.sample.rows import OUT, Array

_ITEM = 32
"""Bytes of memory that a key takes while it is sorted."""

_MOST_BINS = 1 << 16


class Keys(NamedTuple):
    """The keys of a shard's rows and the numbers of their strata among all strata; `OUT` for none."""

    keys: Array
    strata: Array


class Chosen(msgspec.Struct, frozen=True):
    """Which documents of a stratum are chosen: those with keys below a bound, and some of those that have it.

    Attributes:
        below: the bound; 2**64 if all are.
        ties: shard and row of documents with this very key that are chosen, too.
    """

    below: int
    ties: list[tuple[int, int]] = []


class _Range(NamedTuple):
    """Where the bound of a stratum lies: keys from `low` up to `high` (exclusive), the `rank`-th (from 0) of them."""

    low: int
    high: int
    rank: int


def choose(
    read: Callable[[], Iterator[Keys]], counts: Sequence[int], wanted: Sequence[int], memory: int
) -> list[Chosen]:
    """Return which documents of each stratum are chosen.

    Args:
        read: yields the keys of each shard, in order; called once for each pass.
        counts: documents of each stratum.
        wanted: how many of them are chosen, at most as many.
        memory: bytes that may be used.
    """
    done = {i: Chosen(2**64 if k else 0) for i, (n, k) in enumerate(zip(counts, wanted, strict=True)) if k in (0, n)}
    ranges = {i: _Range(0, 2**64, k) for i, k in enumerate(wanted) if i not in done}
    held = {i: counts[i] for i in ranges}
    while sum(held.values()) * _ITEM > memory and any(each.high - each.low > 1 for each in ranges.values()):
        ranges, held = _narrowed(read, ranges, memory)
    if ranges:
        done |= _sorted(read, ranges)
    return [done[i] for i in range(len(counts))]


def _narrowed(
    read: Callable[[], Iterator[Keys]], ranges: dict[int, _Range], memory: int
) -> tuple[dict[int, _Range], dict[int, int]]:
    """Return smaller ranges, and how many keys are in each."""
    bins = int(np.clip(memory // (16 * len(ranges)), 2, _MOST_BINS))
    numbers = {stratum: i for i, stratum in enumerate(ranges)}
    widths = [-(-(each.high - each.low) // bins) for each in ranges.values()]
    counts = np.zeros((len(ranges), bins), dtype=np.int64)
    for stratum, keys, _ in _inside(read, ranges):
        i = numbers[stratum]
        offsets = (keys - np.uint64(ranges[stratum].low)) // np.uint64(widths[i])
        counts[i] += np.bincount(offsets.astype(np.int64), minlength=bins)
    found, held = {}, {}
    for stratum, each in ranges.items():
        i = numbers[stratum]
        sums = np.cumsum(counts[i])
        place = int(np.searchsorted(sums, each.rank, side="right"))
        low = each.low + place * widths[i]
        before = int(sums[place - 1]) if place else 0
        found[stratum] = _Range(low, min(low + widths[i], each.high), each.rank - before)
        held[stratum] = int(counts[i][place])
    return found, held


def _sorted(read: Callable[[], Iterator[Keys]], ranges: dict[int, _Range]) -> dict[int, Chosen]:
    """Return what is chosen of strata whose ranges fit into memory."""
    keys: dict[int, list[Array]] = {stratum: [] for stratum in ranges}
    places: dict[int, list[tuple[int, Array]]] = {stratum: [] for stratum in ranges}
    for stratum, mine, (shard, rows) in _inside(read, ranges):
        keys[stratum].append(mine)
        places[stratum].append((shard, rows))
    found = {}
    for stratum, each in ranges.items():
        all_keys = np.concatenate(keys[stratum])
        ordered = np.sort(all_keys)
        bound = ordered[each.rank]
        ties = each.rank - int(np.searchsorted(ordered, bound, side="left"))
        equal: list[tuple[int, int]] = []
        if ties:
            for (shard, rows), mine in zip(places[stratum], keys[stratum], strict=True):
                equal += [(shard, int(row)) for row in rows[mine == bound]]
        found[stratum] = Chosen(int(bound), equal[:ties])
    return found


def _inside(
    read: Callable[[], Iterator[Keys]], ranges: dict[int, _Range]
) -> Iterator[tuple[int, Array, tuple[int, Array]]]:
    """Yield, of each shard and stratum, the keys in its range, the number of the shard, and the rows; none of none."""
    for shard, (keys, strata) in enumerate(read()):
        order = np.argsort(strata, kind="stable")
        ordered = strata[order]
        for stratum in np.unique(ordered[ordered != OUT]).tolist():
            if stratum not in ranges:
                continue
            low, high, _ = ranges[stratum]
            rows = order[np.searchsorted(ordered, stratum) : np.searchsorted(ordered, stratum, side="right")]
            mine = keys[rows]
            inside = (mine >= np.uint64(low)) & (mine <= np.uint64(high - 1))
            if inside.any():
                yield stratum, mine[inside], (shard, rows[inside])
