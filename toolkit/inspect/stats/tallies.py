"""Numbers in order, each with how many there are of it: quantiles, and the counts of bins."""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TypeVar

N = TypeVar("N", int, float)


def quantile(listed: Iterable[tuple[N, int]], count: int, share: str) -> N:
    """Return a quantile by the nearest rank: the least number with at least this share of all at or below it.

    Args:
        listed: numbers in order, each with its count.
        count: of all; above 0.
        share: a decimal.
    """
    rank, seen = math.ceil(Fraction(share) * count), 0
    for value, number in listed:
        seen += number
        if seen >= rank:
            return value
    raise AssertionError(share)


def binned(listed: Iterable[tuple[N, int]], edges: Sequence[N]) -> list[int]:
    """Return the counts of bins, each from an edge to below the next; the last has all numbers behind its own."""
    counts, place = [0] * max(0, len(edges) - 1), 0
    for value, number in listed:
        while place < len(counts) - 1 and value >= edges[place + 1]:
            place += 1
        counts[place] += number
    return counts
