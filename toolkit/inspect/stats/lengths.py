"""How long documents are, in code points: counts by length, in bounded memory and without another package.

A length below 256 is counted as it is, a larger one by its first eight binary digits, which is right to within a
hundredth. Counts of files are added up, so the result is the same in whatever order and parts documents come.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from toolkit.inspect.stats import tallies
from toolkit.inspect.stats.tallies import quantile

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


def binned(found: Lengths) -> tuple[list[int], list[int]]:
    """Return edges, which are zero and powers of two, and the documents of each bin."""
    edges = [0, 1]
    while edges[-1] <= found.greatest:
        edges.append(2 * edges[-1])
    return edges, tallies.binned(sorted(found.counts.items()), edges)
