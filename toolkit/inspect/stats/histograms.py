"""Histograms of attributes, with the thresholds of rules marked; as text for the terminal."""

import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from toolkit.errors import ConfigError, amount
from toolkit.inspect.stats.distributions import Distribution, numbers
from toolkit.inspect.stats.tables import percent, shown
from toolkit.inspect.stats.tallies import binned, quantile
from toolkit.inspect.stats.thresholds import Threshold

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
    """A histogram as it is drawn.

    Attributes:
        attribute: path.
        bins: in order.
        nulls: values that are not there.
        no_lists: lists that are not there, of elements.
        thresholds: of rules; empty where values are no numbers.
        numbers: whether bins are ranges of numbers.
    """

    attribute: str
    bins: list[Bin]
    nulls: int
    no_lists: int
    thresholds: list[Threshold]
    numbers: bool

    @classmethod
    def of(cls, found: Distribution, thresholds: Sequence[Threshold]) -> "Histogram":
        """Return the histogram of a distribution.

        Raises:
            ConfigError: if there is nothing to draw, or too many different texts.
        """
        if not found.count:
            got = amount(found.nulls, "null") if found.nulls else "none"
            raise ConfigError(f"--histogram {found.attribute}: expected values, got {got}")
        are_numbers = found.buckets is not None
        if are_numbers:
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
            no_lists=found.no_lists,
            thresholds=list(thresholds) if are_numbers else [],
            numbers=are_numbers,
        )

    def data(self) -> dict[str, Any]:
        """Return the histogram for programs."""
        bins: list[dict[str, Any]] = [
            {"low": each.low, "high": each.high, "count": each.count}
            if self.numbers
            else {"value": each.title, "count": each.count}
            for each in self.bins
        ]
        marked = [each._asdict() for each in self.thresholds]
        missing = {"nulls": self.nulls, "null_lists": self.no_lists}
        return {"attribute": self.attribute, "bins": bins, **missing, "thresholds": marked}


def _ranges(found: Distribution) -> list[Bin]:
    """Return bins of one width that end at round numbers; of a long tail bins that end at powers of two."""
    assert found.buckets
    low, high = found.buckets.low, found.buckets.high
    listed = numbers(found)
    upper = quantile(listed, found.count, "0.75")
    edges = _powers(low, high) if low >= 0 and high > 64 and high > 32 * max(upper, 1) else _edges(low, high)
    counts = binned(listed, edges)
    return [Bin(f"{a:.15g}", count, a, b) for a, b, count in zip(edges, edges[1:], counts, strict=False)]


def _powers(low: float, high: float) -> list[float]:
    """Return edges at powers of two, so far apart that there are at most `BINS` bins and two."""
    first, last = math.frexp(max(low, 1.0))[1] - 1, math.frexp(high)[1]
    step = -(-(last - first) // BINS)
    powers = [_float(Decimal(2) ** n) for n in range(first, last + step, step)]
    return ([0.0] if low < powers[0] else []) + powers


def _edges(low: float, high: float) -> list[float]:
    """Return edges at multiples of 1, 2, 2.5 or 5 times a power of ten, reckoned in decimals to be exact.

    The step is the least by which there are about `BINS` bins at most, from half of that on. Where numbers hardly
    differ it is larger: edges must.
    """
    least, greatest = Decimal(repr(low)), Decimal(repr(high))
    width = (greatest - least) / BINS or Decimal(1)
    for step in _steps(width):
        first, last = math.floor(least / step), math.floor(greatest / step)
        edges = [_float((first + i) * step) for i in range(last - first + 2)]
        if edges[0] <= low and high <= edges[-1] and all(a < b for a, b in itertools.pairwise(edges)):
            return edges
    raise AssertionError((low, high))


def _steps(width: Decimal) -> Iterator[Decimal]:
    """Yield round numbers, from the least one that is no less than the width (or by a thousandth)."""
    for exponent in itertools.count(width.adjusted()):
        for factor in ("1", "2", "2.5", "5"):
            if (step := Decimal(factor).scaleb(exponent)) >= width * Decimal("0.999"):
                yield step


def _float(number: Decimal) -> float:
    """Return the nearest float that is finite."""
    return min(max(float(number), -sys.float_info.max), sys.float_info.max)


# --- the terminal -----------------------------------------------------------------------------------------------------


def text(found: Histogram) -> str:
    """Return bars of letters, a line for each bin; where a threshold lies, a line says whose."""
    whole = sum(each.count for each in found.bins)
    most = max(each.count for each in found.bins)
    width = max(len(each.title) for each in found.bins)
    numbers = max(len(f"{each.count:,}") for each in found.bins)
    share = percent(found.nulls / (whole + found.nulls))
    head = f"{found.attribute}: {amount(whole, 'value')}, {amount(found.nulls, 'null')} ({share})"
    lines = [head + (f", {amount(found.no_lists, 'null list')}" if found.no_lists else ""), ""]
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
