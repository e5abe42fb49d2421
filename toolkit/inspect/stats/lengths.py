"""Lengths of documents and other counts by value, their quantiles and bins, in bounded memory.

A length below 256 is counted as it is, a larger one by its first eight binary digits, which is right to within a
hundredth. Counts of files are added up, so the result is the same in whatever order and parts documents come.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import msgspec

from toolkit.distribution import missing_extra

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


_DIGITS = 8

QUANTILES = ("0.05", "0.25", "0.5", "0.75", "0.95")


class Lengths(msgspec.Struct):
    """The lengths of some documents.

    Attributes:
        total: of all.
        least, greatest: exact; 0 of no documents.
        counts: documents by their length, rounded down.
    """

    total: int = 0
    least: int = 0
    greatest: int = 0
    counts: dict[int, int] = {}

    @property
    def documents(self) -> int:
        """Return the number of documents."""
        return sum(self.counts.values())

    def add(self, lengths: Any) -> None:
        """Add documents by their lengths, an array of int64."""
        import numpy as np

        shift = np.maximum(np.frexp(lengths.astype(np.float64))[1] - _DIGITS, 0)
        values, counts = np.unique(lengths >> shift << shift, return_counts=True)
        found = dict(zip(values.tolist(), counts.tolist(), strict=True))
        self.merge(Lengths(int(lengths.sum()), int(lengths.min()), int(lengths.max()), found))

    def merge(self, other: "Lengths") -> None:
        """Add those of other documents."""
        if not other.counts:
            return
        self.least = min(self.least, other.least) if self.counts else other.least
        self.greatest = max(self.greatest, other.greatest)
        self.total += other.total
        for length, number in other.counts.items():
            self.counts[length] = self.counts.get(length, 0) + number

    def quantile(self, share: str) -> int:
        """Return a quantile by the nearest rank, to within a hundredth; share: a decimal."""
        if not self.counts:
            return 0
        return min(max(quantile(sorted(self.counts.items()), self.documents, share), self.least), self.greatest)

    def summary(self) -> dict[str, Any]:
        """Return the lengths in numbers, for programs."""
        return {
            "documents": self.documents,
            "chars": self.total,
            "min": self.least,
            "max": self.greatest,
            "mean": self.total / self.documents if self.counts else None,
            "quantiles": {share: self.quantile(share) for share in QUANTILES},
        }


LengthsByLabel = dict[str, Lengths]
"""Lengths by label, as JSON text."""


def together(found: Mapping[str, Lengths]) -> Lengths:
    """Return the lengths of all labels as one."""
    result = Lengths()
    for each in found.values():
        result.merge(each)
    return result


def binned_lengths(found: Lengths) -> tuple[list[int], list[int]]:
    """Return edges, which are zero and powers of two, and the documents of each bin."""
    edges = [0, 1]
    while edges[-1] <= found.greatest:
        edges.append(2 * edges[-1])
    return edges, binned(sorted(found.counts.items()), edges)
