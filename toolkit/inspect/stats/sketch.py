"""Quantiles of any number of numbers, in bounded memory, with the package ddsketch (extra ``stats``).

A DDSketch counts numbers in buckets that are each one per cent wide. Two are merged by adding the counts, so the result
is the same in whatever order and parts the numbers come; sketches that draw random bits (KLL), or whose state depends
on the order of merges (t-digest), do not promise that.
"""

import math
from collections.abc import Iterator
from typing import Any

import msgspec

from toolkit.distribution import missing_extra

ACCURACY = 0.005
"""A quantile is that close to the exact one, relative to its value."""


class Buckets(msgspec.Struct, frozen=True):
    """A sketch as it is kept.

    Attributes:
        positive, negative: how many numbers fell into each bucket, by its key.
        zeros: numbers that are 0.
        low, high: the least and the greatest number.
    """

    positive: dict[int, int]
    negative: dict[int, int]
    zeros: int
    low: float
    high: float


class Sketch:
    """A sketch that numbers are added to.

    Raises:
        MissingExtra: without the package.
    """

    def __init__(self) -> None:
        try:
            from ddsketch.mapping import CubicallyInterpolatedMapping
            from ddsketch.store import DenseStore
        except ImportError:
            raise missing_extra("stats", "distributions", "ddsketch") from None
        self._mapping: Any = CubicallyInterpolatedMapping(ACCURACY)  # without logarithms, which differ by machine
        self._positive: Any = DenseStore()
        self._negative: Any = DenseStore()
        self._zeros = 0
        self._low, self._high = math.inf, -math.inf

    def add(self, number: float, count: int = 1) -> None:
        """Add a number that was met so many times."""
        if abs(number) <= self._mapping.min_possible:
            self._zeros += count
        else:
            key = self._mapping.key(min(abs(number), self._mapping.max_possible))
            (self._positive if number > 0 else self._negative).add(key, count)
        self._low, self._high = min(self._low, number), max(self._high, number)

    def merge(self, other: Buckets) -> None:
        """Add the numbers of another sketch."""
        for store, found in ((self._positive, other.positive), (self._negative, other.negative)):
            for key, count in found.items():
                store.add(key, count)
        self._zeros += other.zeros
        self._low, self._high = min(self._low, other.low), max(self._high, other.high)

    def buckets(self) -> Buckets:
        """Return the sketch as it is kept."""
        return Buckets(_counts(self._positive), _counts(self._negative), self._zeros, self._low, self._high)

    def numbers(self) -> Iterator[tuple[float, int]]:
        """Yield a number for each bucket, in order, with its count."""
        for key, count in sorted(_counts(self._negative).items(), reverse=True):
            yield min(max(-self._mapping.value(key), self._low), self._high), count
        if self._zeros:
            yield 0.0, self._zeros
        for key, count in sorted(_counts(self._positive).items()):
            yield min(max(self._mapping.value(key), self._low), self._high), count


def _counts(store: Any) -> dict[int, int]:
    return {i + int(store.offset): int(count) for i, count in enumerate(store.bins) if count}
