"""Which inputs share a shard: a pack is a run of small inputs in the order of their paths.

    a.txt b.txt c.txt | d.txt e.txt | f.txt …      each | behind an input whose path says so, or where it gets too large

Where packs end is told from the inputs themselves, not from their number or place, so that an input which comes, goes
or grows changes its pack, or that and the next one, and none behind them. (Unless packs were cut for their size, which
moves with the inputs before it, up to the next path that says so.) The idea is that of content-defined chunking.
"""

from collections.abc import Iterable, Iterator

import xxhash

SMALLER = 4
"""How many times smaller than its bound a pack is on average, so that few are cut for their size: one in 55."""

MOST = 4096
"""Inputs in a pack at most, and on average `SMALLER` times fewer: each counts for at least that part of the bound."""


def divide(inputs: Iterable[tuple[str, int]], bound: int) -> Iterator[range]:
    """Yield the places of the inputs of each pack.

    A pack ends behind an input of weight w whose path has an xxh3-64 below 2^64 · `SMALLER` · w / bound, and before
    one with which it would weigh more than the bound. The weight is the bytes and a `MOST`-th of the bound.

    Args:
        inputs: path and bytes of each, in order.
        bound: bytes of a pack at most; no input has as many.
    """
    begin = end = weight = 0
    for end, (path, size) in enumerate(inputs):
        own = size * MOST + bound  # MOST times the weight, in whole numbers
        if weight and weight + own > bound * MOST:
            yield range(begin, end)
            begin, weight = end, 0
        weight += own
        if xxhash.xxh3_64_intdigest(path.encode()) * bound * MOST < (own * SMALLER) << 64:
            yield range(begin, end + 1)
            begin, weight = end + 1, 0
    if weight:
        yield range(begin, end + 1)
