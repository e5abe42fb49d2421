"""Agreement of two values of the same documents: a partial of nulls, equal values, confused labels and differences."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from toolkit import partial_sums
from toolkit.aggregate.distributions import Distribution, Distributions, Leaf, finite, merge_labels

PAIRS = 10_000
"""Different pairs of labels that are counted; others are counted together."""

_DIFFERENCE = Leaf("difference", "number", lambda value: (value,))

Kind = Literal["number", "label", "whole"]
"""Kind of values: numbers; texts and truth values; any values, which are only equal or not."""


class Moments(msgspec.Struct):
    """Means of pairs of numbers, and their variation: exact also where they vary little.

    Source: Welford (1962); shards are put together as by Chan, Golub and LeVeque (1979).

    Attributes:
        count: Number of pairs.
        x, y: Means.
        xx, yy, xy: Sums of the products of the differences from the means.
    """

    count: int = 0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    yy: float = 0.0
    xy: float = 0.0

    def add(self, x: float, y: float) -> None:
        """Add a pair."""
        self.count += 1
        dx, dy = x - self.x, y - self.y
        self.x += dx / self.count
        self.y += dy / self.count
        self.xx += dx * (x - self.x)
        self.yy += dy * (y - self.y)
        self.xy += dx * (y - self.y)

    def merge(self, other: "Moments") -> None:
        """Add the pairs of other documents."""
        if not other.count:
            return
        count = self.count + other.count
        dx, dy, weight = other.x - self.x, other.y - self.y, self.count * other.count / count
        self.xx += other.xx + dx * dx * weight
        self.yy += other.yy + dy * dy * weight
        self.xy += other.xy + dx * dy * weight
        self.x += dx * other.count / count
        self.y += dy * other.count / count
        self.count = count

    @property
    def correlation(self) -> float | None:
        """Return Pearson's coefficient; None where one of the two does not vary, or varies more than floats can say."""
        spread = math.sqrt(self.xx) * math.sqrt(self.yy)
        return max(-1.0, min(1.0, self.xy / spread)) if spread and math.isfinite(spread) else None


class Agreement(msgspec.Struct):
    """Counts of two values of the same documents.

    Attributes:
        nulls: Documents without a value in ``both`` sets, in ``one`` alone, in the ``other`` alone.
        both, same: Documents with a value in both, and those of them with the same one.
        pairs: Documents of each pair of labels, as JSON ``[one, other]``; those beyond `PAIRS` under the empty text.
        moments: Moments of numbers.
        difference, absolute: Sums of the differences of numbers, second less first, and of their absolute values.
        differences: Distribution of these differences; None without numbers.
    """

    nulls: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(("both", "one", "other"), 0))
    both: int = 0
    same: int = 0
    pairs: Counter[str] = msgspec.field(default_factory=Counter)
    moments: Moments = msgspec.field(default_factory=Moments)
    difference: float = 0.0
    absolute: float = 0.0
    differences: Distribution | None = None

    def add(self, kind: Kind, ones: Sequence[Any], theirs: Sequence[Any]) -> list[float | None]:
        """Add a block of documents; return the absolute differences, 0 of other values, None of equal or null ones."""
        distances: list[float | None] = []
        differences: list[float] = []
        for one, other in zip(ones, theirs, strict=True):
            distances.append(None)
            if one is None or other is None:
                self.nulls["both" if one is other else "one" if one is None else "other"] += 1
                continue
            self.both += 1
            self.same += one == other
            if kind == "label":
                self._count(msgspec.json.encode([one, other]).decode(), 1)
            if kind == "number":
                x, y = finite(one), finite(other)
                self.moments.add(x, y)
                differences.append(finite(other - one if isinstance(one, int) and isinstance(other, int) else y - x))
                self.difference += differences[-1]
                self.absolute += abs(differences[-1])
            if one != other:
                distances[-1] = abs(differences[-1]) if kind == "number" else 0.0
        if differences:
            block = Distributions()
            block.add("", _DIFFERENCE, differences)
            self._merge_differences(*block.finished())
        return distances

    def merge(self, other: "Agreement") -> None:
        """Add other documents."""
        partial_sums.add(self.nulls, other.nulls)
        self.both += other.both
        self.same += other.same
        for pair, count in other.pairs.items():
            self._count(pair, count)
        self.moments.merge(other.moments)
        self.difference += other.difference
        self.absolute += other.absolute
        if other.differences:
            self._merge_differences(other.differences)

    def _count(self, pair: str, count: int) -> None:
        self.pairs[pair if pair in self.pairs or len(self.pairs) < PAIRS else ""] += count

    def _merge_differences(self, other: Distribution) -> None:
        self.differences = merge_labels([self.differences, other]) if self.differences else other
