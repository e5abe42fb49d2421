"""Numbers in decimal buckets of two significant digits: histograms whose edges are chosen when all is counted.

A bucket is ``[m·10^e, (m + 1)·10^e)`` with m from 10 to 99, likewise below zero, and one for zero itself. So counts of
shards can be added up, and any edges of two digits give exact counts, which a threshold needs that is moved on a page.
What a card or `toolkit stats` shows are quantiles: `toolkit.inspect.stats` counts for these in buckets of one per cent.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolkit.inspect.stats.lengths import binned

if TYPE_CHECKING:
    import numpy as np

_SERIES = (
    tuple(range(10, 100)),
    tuple(range(10, 100, 2)),
    (10, 11, 12, 14, 16, 18, 20, 22, 25, 28, 32, 36, 40, 45, 50, 56, 63, 71, 80, 90),
    (10, 12, 16, 20, 25, 32, 40, 50, 63, 80),
    (10, 16, 25, 40, 63),
    (10, 20, 50),
    (10,),
)
"""Edges within a power of ten, the finest first."""

_LEAST, _GREATEST = -30, 30
"""Powers of ten of the first digit beyond which numbers are put at the end."""

_TINY = 10.0**_LEAST


def codes_of(numbers: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Return the bucket of each number, int64 that rise with the numbers; all of them are finite."""
    import numpy as np

    size = np.abs(numbers)
    size = np.where(size < _TINY, 0.0, np.minimum(size, 9.9 * 10.0**_GREATEST))
    with np.errstate(divide="ignore"):
        power = np.where(size > 0, np.floor(np.log10(np.where(size > 0, size, 1.0))), 0).astype(np.int64)
    power += (size >= _edges(np.full_like(power, 100), power)).astype(np.int64)  # log10 may be off by a digit
    power -= ((size > 0) & (size < _edges(np.full_like(power, 10), power))).astype(np.int64)
    digits = np.clip(np.floor(size / 10.0**power * 10 + 1e-9).astype(np.int64), 10, 99)
    digits -= ((digits > 10) & (size < _edges(digits, power))).astype(np.int64)
    digits += ((digits < 99) & (size >= _edges(digits + 1, power))).astype(np.int64)
    codes = (power - _LEAST) * 100 + digits
    on_edge = (numbers < 0) & (size == _edges(digits, power))  # which belongs to the bucket above, one nearer to zero
    codes = np.where(on_edge, np.where(digits > 10, codes - 1, codes - 100 + 89), codes)
    signed: np.ndarray[Any, Any] = np.where(size == 0, 0, np.where(numbers < 0, -codes, codes))
    return signed


def on_edges(numbers: "np.ndarray[Any, Any]", codes: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Return whether each number is the lower edge of its bucket itself, as round numbers are that many have."""
    import numpy as np

    power, digits = np.divmod(np.abs(codes), 100)
    edges = _edges(digits + (codes < 0), power + _LEAST)
    found: np.ndarray[Any, Any] = np.where(codes == 0, numbers == 0, np.abs(numbers) == edges)
    return found


def _edges(digits: "np.ndarray[Any, Any]", power: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Return ``digits·10^(power - 1)`` as the nearest floats."""
    import numpy as np

    shift = power - 1
    found: np.ndarray[Any, Any] = np.where(
        shift < 0, digits / 10.0 ** np.maximum(-shift, 0), digits * 10.0 ** np.maximum(shift, 0)
    )
    return found


def edge_of(code: int) -> float:
    """Return the lower edge of a bucket, as the nearest float."""
    if code == 0:
        return 0.0
    power, digits = divmod(abs(code), 100)
    digits += code < 0
    shift = power + _LEAST - 1
    found = float(digits * 10**shift) if shift >= 0 else digits / 10**-shift
    return found if code > 0 else -found


def edges(found: Mapping[int, int], most: int, *, whole: bool = False) -> list[int]:
    """Return the codes at which bins begin, about so many at most, and the one behind the last.

    Bins are of one width; if most of the numbers would be in a few of these, they grow with the numbers.

    Args:
        found: how many numbers a bucket has.
        most: bins.
        whole: whether all numbers are integers, so that no bin is narrower than 1.
    """
    present = sorted(code for code, count in found.items() if count)
    if not present:
        return []
    low, high, behind = present[0], present[-1], _next(present[-1])
    if whole and edge_of(behind) % 1:
        behind = int(codes_of(_array([math.floor(edge_of(high)) + 1]))[0])
    total = sum(found.values())
    even = _even(low, high, found, most, whole=whole)
    largest = sum(sorted(counts(found.items(), [*even, behind]), reverse=True)[:3])
    if len(even) < 8 or 2 * largest < total or low < 0 or (high // 100) - (low // 100) < 2:
        return [*even, behind]
    seen, first = 0, low
    for first in present:  # the least numbers of all, below this one, are in one bin
        seen += found[first]
        if first > 0 and 200 * seen >= total:
            break
    chosen: list[int] = []
    for series in _SERIES:
        every = (power * 100 + digits for power in range(first // 100, high // 100 + 1) for digits in series)
        chosen = [code for code in every if first < code <= high and not (whole and edge_of(code) % 1)]
        if len(chosen) < most:
            break
    return [*dict.fromkeys([low, first, *chosen[: 2 * most]]), behind]


def _array(numbers: Sequence[float]) -> "np.ndarray[Any, Any]":
    import numpy as np

    return np.array(numbers, dtype=float)


def _even(low: int, high: int, found: Mapping[int, int], most: int, *, whole: bool) -> list[int]:
    """Return the codes of edges at equal distances; below a power of ten they may be nearer than above it."""
    import numpy as np

    power = max(max(abs(low), abs(high)) // 100 + _LEAST - 1, 0 if whole else -99)
    begin, end, ten = edge_of(low), edge_of(high), 10.0 ** (power + 1)
    below = sum(count for code, count in found.items() if -ten < edge_of(code) < ten)
    finer = 2 * below > sum(found.values()) and not (whole and power == 0) and begin < ten <= end and low >= 0
    widths = [(step, power - 1) for step in (1, 2, 5)] if finer else []
    numbers = [begin]
    for step, tier in [*widths, *((step, power) for step in (1, 2, 5, 10, 20, 50, 100))]:
        width = step * 10.0**tier
        upto = min(end, ten) if tier < power else end
        listed = np.arange(math.floor(begin / width + 1e-9), math.floor(upto / width + 1e-9) + 1) * step
        numbers = _times(listed, tier)
        if tier < power:
            more = np.arange(11, math.floor(end / 10.0**power + 1e-9) + 1)
            numbers += _times(more[:: max(1, step // 2)], power)
        if len(numbers) <= most:
            break
    codes = codes_of(_array(numbers)).tolist()
    return list(dict.fromkeys([min(low, codes[0]), *codes[1:]]))


def _times(numbers: "np.ndarray[Any, Any]", power: int) -> list[float]:
    """Return integers times a power of ten, as the nearest floats."""
    found: list[float] = (numbers * 10.0**power if power >= 0 else numbers / 10.0**-power).tolist()
    return found


def _next(code: int) -> int:
    """Return the code behind one."""
    if code < 0:
        return 0 if code == -10 else -(abs(code) - 1 if abs(code) % 100 > 10 else (abs(code) // 100 - 1) * 100 + 99)
    if code == 0:
        return 10
    return code + 1 if code % 100 < 99 else (code // 100 + 1) * 100 + 10


def counts(found: Iterable[tuple[int, int]], begins: Sequence[int]) -> list[int]:
    """Return the counts of bins, without zeros at the end.

    Args:
        found: codes and how many numbers each has.
        begins: of the bins, and what is behind the last: `edges`.
    """
    result = binned(sorted(found), begins)
    while result and not result[-1]:
        result.pop()
    return result


def bounds(begins: Sequence[int]) -> list[float]:
    """Return the edges of bins as numbers, rising."""
    return [a for a, _ in itertools.groupby(edge_of(code) for code in begins)]
