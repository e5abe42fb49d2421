"""Histograms of attributes, with the thresholds of rules marked; as text for the terminal."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from toolkit.errors import ConfigError
from toolkit.stats.distributions import Distribution
from toolkit.stats.sketch import Sketch
from toolkit.stats.tables import percent, shown
from toolkit.stats.thresholds import Threshold

BINS = 24
BAR = 50
"""Letters of the longest bar in the terminal."""


class Bin(msgspec.Struct, frozen=True):
    """A bar: of numbers from `low` to below `high` (the last with it), or of one value."""

    title: str
    count: int
    low: float = 0.0
    high: float = 0.0


class Histogram(msgspec.Struct, kw_only=True):
    """What is drawn.

    Attributes:
        attribute: path.
        bins: in order.
        nulls: values that are not there.
        thresholds: of rules; empty where values are no numbers.
        numbers: whether bins are ranges of numbers.
    """

    attribute: str
    bins: list[Bin]
    nulls: int
    thresholds: list[Threshold]
    numbers: bool

    @classmethod
    def of(cls, found: Distribution, thresholds: Sequence[Threshold]) -> "Histogram":
        """Of a distribution.

        Raises:
            ConfigError: if there is nothing to draw, or too many different texts.
        """
        if not found.count:
            raise ConfigError(f"--histogram {found.attribute}: expected values, got {found.nulls:,} nulls")
        numbers = found.buckets is not None
        if numbers:
            bins = _ranges(found)
        elif found.values is None:
            raise ConfigError(
                f"--histogram {found.attribute}: expected numbers or few different values, got many texts"
            )
        else:
            ranked = sorted(found.values, key=lambda each: (-each[1], each[0]))
            bins = [Bin(shown(value), count) for value, count in ranked[:BINS]]
            if rest := ranked[BINS:]:
                bins.append(Bin(f"{len(rest)} more", sum(count for _, count in rest)))
        return cls(
            attribute=found.attribute,
            bins=bins,
            nulls=found.nulls,
            thresholds=list(thresholds) if numbers else [],
            numbers=numbers,
        )

    def data(self) -> dict[str, Any]:
        """For machines."""
        bins: list[dict[str, Any]] = [
            {"low": each.low, "high": each.high, "count": each.count}
            if self.numbers
            else {"value": each.title, "count": each.count}
            for each in self.bins
        ]
        marked = [each._asdict() for each in self.thresholds]
        return {"attribute": self.attribute, "bins": bins, "nulls": self.nulls, "thresholds": marked}


def _ranges(found: Distribution) -> list[Bin]:
    """Bins of one width, that end at round numbers; where numbers go over many powers of ten, at powers of two."""
    assert found.buckets
    sketch = Sketch()
    sketch.merge(found.buckets)
    numbers = [(float(value), count) for value, count in found.values or sketch.numbers()]
    low, high = found.buckets.low, found.buckets.high
    edges = _edges(low, high, sketch.quantile(0.75))
    counts = [0] * (len(edges) - 1)
    place = 0
    for number, count in numbers:
        while place < len(counts) - 1 and number >= edges[place + 1]:
            place += 1
        counts[place] += count
    return [Bin(f"{a:g}", count, a, b) for a, b, count in zip(edges, edges[1:], counts, strict=False)]


def _edges(low: float, high: float, upper: float) -> list[float]:
    if low >= 0 and high > 64 and high > 32 * max(upper, 1):  # a long tail
        powers = [2.0**i for i in range(max(0, math.floor(math.log2(max(low, 1)))), math.ceil(math.log2(high)) + 1)]
        edges = ([0.0] if low < powers[0] else []) + powers
        return edges if edges[-1] > high else [*edges, edges[-1] * 2]
    width = (high - low) / BINS or 1.0
    power = 10.0 ** math.floor(math.log10(width))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= width * 0.999)
    first = math.floor(low / step)
    last = max(math.floor(high / step), first)
    edges = [float(f"{(first + i) * step:.12g}") for i in range(last - first + 2)]
    if edges[0] > low or edges[-1] <= high or len(set(edges)) < len(edges):  # numbers that hardly differ
        return [low, math.nextafter(high, math.inf)]
    return edges


# --- the terminal -----------------------------------------------------------------------------------------------------


def text(found: Histogram) -> str:
    """Bars of letters, a line for each bin; where a threshold lies, a line says whose."""
    whole = sum(each.count for each in found.bins)
    most = max(each.count for each in found.bins)
    width = max(len(each.title) for each in found.bins)
    numbers = max(len(f"{each.count:,}") for each in found.bins)
    lines = [
        f"{found.attribute}: {whole:,} values, {found.nulls:,} nulls ({percent(found.nulls / (whole + found.nulls))})",
        "",
    ]
    left = list(found.thresholds)
    for each in found.bins:
        while left and found.numbers and left[0].number <= each.low:
            lines.append(_mark(left.pop(0), width))
        title = each.title.rjust(width) if found.numbers else each.title.ljust(width)
        bar = "█" * round(BAR * each.count / most) or ("▏" if each.count else "")
        lines.append(f"{title} │ {each.count:>{numbers},} {percent(each.count / whole):>7} {bar}".rstrip())
        while left and found.numbers and left[0].number < each.high:
            lines.append(_mark(left.pop(0), width))
    lines += [_mark(each, width) for each in left]
    return "\n".join(lines)


def _mark(found: Threshold, width: int) -> str:
    of = f" ({found.label})" if found.label else ""
    return f"{'─' * width}─┼─ {found.text}{of}: {found.rule}"
