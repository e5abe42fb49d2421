"""The histogram: numbers in decimal buckets of two or three significant digits, whose counts add up in any order.

With three digits a bucket is ``[m·10^e, (m + 1)·10^e)`` with m from 100 to 999, mirrored below zero, and one for zero
itself. A number taken from the middle of its bucket is right to within 0.5 %, and so is a quantile; an integer below
1,000 is exact. With two digits (m from 10 to 99) edges of two digits still give exact counts, which a threshold needs
that is moved on a page. Numbers beyond 10^30 are put at the end, those below 10^-30 are zero.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar

import msgspec

from toolkit.lazy_numpy import np

N = TypeVar("N", int, float)

ACCURACY = 0.005
"""A quantile of a `Histogram` is that close to the exact one, relative to its value."""


def quantile(listed: Iterable[tuple[N, int]], count: int, share: str) -> N:
    """Return a quantile by the nearest rank: the least number with at least this share of all at or below it.

    Args:
        listed: numbers in order, each with its count.
        count: Count of all; above 0.
        share: a decimal.
    """
    rank, below = math.ceil(Fraction(share) * count), 0
    for value, number in listed:
        below += number
        if below >= rank:
            return value
    raise AssertionError(share)


def binned(listed: Iterable[tuple[N, int]], edges: Sequence[N]) -> list[int]:
    """Return the counts of bins, each without its upper edge; the last has all numbers after its own."""
    counts, place = [0] * max(0, len(edges) - 1), 0
    for value, number in listed:
        while place < len(counts) - 1 and value >= edges[place + 1]:
            place += 1
        counts[place] += number
    return counts


class Histogram(msgspec.Struct):
    """Numbers of some documents, in buckets of three digits.

    Attributes:
        count: Count of the numbers.
        total: their sum; exact of integers; an integer where it is too large for a float.
        low, high: exact; 0 of no numbers.
        whole: True if all of them are integers.
        cells: numbers by the code of their bucket.
    """

    count: int = 0
    total: int | float = 0
    low: int | float = 0
    high: int | float = 0
    whole: bool = True
    cells: dict[int, int] = {}

    def add(self, numbers: "np.ndarray[Any, Any]", counts: "np.ndarray[Any, Any] | None" = None) -> None:
        """Add numbers, each once, or so many times; their sum is taken in their order."""
        if not len(numbers):
            return
        counts = np.ones(len(numbers), dtype=np.int64) if counts is None else counts
        result, places = np.unique(codes_of(numbers.astype(np.float64), 3), return_inverse=True)
        sums = np.bincount(places, weights=counts).astype(np.int64)
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.cumsum(numbers * counts)[-1].item()
        if not math.isfinite(total):
            total = int(sum(Fraction(number) * count for number, count in zip(numbers, counts.tolist(), strict=True)))
        low, high, whole = numbers.min().item(), numbers.max().item(), bool((numbers == np.floor(numbers)).all())
        cells = dict(zip(result.tolist(), sums.tolist(), strict=True))
        self.merge(Histogram(int(counts.sum()), total, low, high, whole, cells))

    def merge(self, other: "Histogram") -> None:
        """Add the numbers of other documents."""
        if not other.count:
            return
        self.low = min(self.low, other.low) if self.count else other.low
        self.high = max(self.high, other.high) if self.count else other.high
        self.count += other.count
        self.total = _sum(self.total, other.total)
        self.whole = self.whole and other.whole
        for code, number in other.cells.items():
            self.cells[code] = self.cells.get(code, 0) + number

    def numbers(self) -> Iterator[tuple[Any, int]]:
        """Yield a number for each bucket, in order, with its count; it is of the type of `low`."""
        for code, count in sorted(self.cells.items()):
            power, digits = divmod(abs(code), 1000)
            shift = power + _LEAST - 2
            middle = math.copysign(_times_ten(digits * 10 + 5, shift - 1), code) if code else 0.0
            number = edge_of(code, 3) if self.whole and shift <= 0 else middle
            yield type(self.low)(min(max(number, self.low), self.high)), count

    def quantile(self, share: str) -> Any:
        """Return a quantile by the nearest rank, to within 0.5 %; 0 of no numbers; share: a decimal."""
        return quantile(self.numbers(), self.count, share) if self.count else 0


def _sum(one: float, other: float) -> int | float:
    """Return the sum of two numbers; an integer where a float cannot hold it: floats of that size are integers."""
    if isinstance(one, int) and isinstance(other, int):
        return one + other
    try:
        total = one + other
    except OverflowError:  # an integer of that size, and a float
        total = math.inf
    return total if math.isfinite(total) else int(one) + int(other)


def merged(histograms: Iterable[Histogram]) -> Histogram:
    """Return the numbers of several histograms as one."""
    result = Histogram()
    for histogram in histograms:
        result.merge(histogram)
    return result


# --- buckets ----------------------------------------------------------------------------------------------------------

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


def codes_of(numbers: "np.ndarray[Any, Any]", precision: int = 2) -> "np.ndarray[Any, Any]":
    """Return the bucket of each number, as rising int64; all of them are finite.

    Args:
        numbers: float64.
        precision: significant digits of the buckets.
    """
    base, first = 10**precision, 10 ** (precision - 1)
    size = np.abs(numbers)
    size = np.where(size < _TINY, 0.0, np.minimum(size, 9.9 * 10.0**_GREATEST))
    with np.errstate(divide="ignore"):
        power = np.where(size > 0, np.floor(np.log10(np.where(size > 0, size, 1.0))), 0).astype(np.int64)
    # log10 may be off by a digit
    power += (size >= _edges(np.full_like(power, base), power, precision)).astype(np.int64)
    power -= ((size > 0) & (size < _edges(np.full_like(power, first), power, precision))).astype(np.int64)
    digits = np.clip(np.floor(size / 10.0**power * first + 1e-9).astype(np.int64), first, base - 1)
    digits -= ((digits > first) & (size < _edges(digits, power, precision))).astype(np.int64)
    digits += ((digits < base - 1) & (size >= _edges(digits + 1, power, precision))).astype(np.int64)
    codes = (power - _LEAST) * base + digits
    on_edge = (numbers < 0) & (size == _edges(digits, power, precision))  # it is in the bucket above, nearer to zero
    codes = np.where(on_edge, np.where(digits > first, codes - 1, codes - first - 1), codes)
    signed: np.ndarray[Any, Any] = np.where(size == 0, 0, np.where(numbers < 0, -codes, codes))
    return signed


def on_edges(numbers: "np.ndarray[Any, Any]", codes: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Return True for each number on the lower edge of its bucket.

    Round numbers, which many documents have, are such edges.
    """
    power, digits = np.divmod(np.abs(codes), 100)
    edges = _edges(digits + (codes < 0), power + _LEAST)
    result: np.ndarray[Any, Any] = np.where(codes == 0, numbers == 0, np.abs(numbers) == edges)
    return result


def _edges(digits: "np.ndarray[Any, Any]", power: "np.ndarray[Any, Any]", precision: int = 2) -> "np.ndarray[Any, Any]":
    """Return ``digits·10^(power - precision + 1)`` as the nearest floats."""
    shift = power - precision + 1
    result: np.ndarray[Any, Any] = np.where(
        shift < 0, digits / 10.0 ** np.maximum(-shift, 0), digits * 10.0 ** np.maximum(shift, 0)
    )
    return result


def edge_of(code: int, precision: int = 2) -> float:
    """Return the lower edge of a bucket, as the nearest float."""
    if code == 0:
        return 0.0
    power, digits = divmod(abs(code), 10**precision)
    digits += code < 0
    result = _times_ten(digits, power + _LEAST - precision + 1)
    return result if code > 0 else -result


def _times_ten(digits: int, shift: int) -> float:
    """Return ``digits·10^shift`` as the nearest float: printed with these digits."""
    return float(digits * 10**shift) if shift >= 0 else digits / 10**-shift


def edges(cells: Mapping[int, int], most: int, *, whole: bool = False) -> list[int]:
    """Return the codes of bins' starts, and the code after the last. There are about `most` of them.

    Bins are of one width; if most of the numbers would be in a few of these, they grow with the numbers.

    Args:
        cells: Count of each bucket.
        most: bins.
        whole: True if all numbers are integers, so that no bin is narrower than 1.
    """
    present = sorted(code for code, count in cells.items() if count)
    if not present:
        return []
    low, high, behind = present[0], present[-1], _next(present[-1])
    if whole and edge_of(behind) % 1:
        behind = int(codes_of(_array([math.floor(edge_of(high)) + 1]))[0])
    total = sum(cells.values())
    even = _even(low, high, cells, most, whole=whole)
    largest = sum(sorted(counts(cells.items(), [*even, behind]), reverse=True)[:3])
    if len(even) < 8 or 2 * largest < total or low < 0 or (high // 100) - (low // 100) < 2:
        return [*even, behind]
    below, first = 0, low
    for first in present:  # the least numbers of all, below this one, are in one bin
        below += cells[first]
        if first > 0 and 200 * below >= total:
            break
    chosen: list[int] = []
    for series in _SERIES:
        every = (power * 100 + digits for power in range(first // 100, high // 100 + 1) for digits in series)
        chosen = [code for code in every if first < code <= high and not (whole and edge_of(code) % 1)]
        if len(chosen) < most:
            break
    return [*dict.fromkeys([low, first, *chosen[: 2 * most]]), behind]


def _array(numbers: Sequence[float]) -> "np.ndarray[Any, Any]":
    return np.array(numbers, dtype=float)


def _even(low: int, high: int, cells: Mapping[int, int], most: int, *, whole: bool) -> list[int]:
    """Return the codes of edges at equal distances; below a power of ten they may be nearer than above it."""
    power = max(max(abs(low), abs(high)) // 100 + _LEAST - 1, 0 if whole else -99)
    begin, end, ten = edge_of(low), edge_of(high), 10.0 ** (power + 1)
    below = sum(count for code, count in cells.items() if -ten < edge_of(code) < ten)
    finer = 2 * below > sum(cells.values()) and not (whole and power == 0) and begin < ten <= end and low >= 0
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
    results: list[float] = (numbers * 10.0**power if power >= 0 else numbers / 10.0**-power).tolist()
    return results


def _next(code: int) -> int:
    """Return the code behind one."""
    if code < 0:
        return 0 if code == -10 else -(abs(code) - 1 if abs(code) % 100 > 10 else (abs(code) // 100 - 1) * 100 + 99)
    if code == 0:
        return 10
    return code + 1 if code % 100 < 99 else (code // 100 + 1) * 100 + 10


def counts(cells: Iterable[tuple[int, int]], begins: Sequence[int]) -> list[int]:
    """Return the counts of bins, without zeros at the end.

    Args:
        cells: codes and how many numbers each has.
        begins: Begins of the bins, and what is behind the last: `edges`.
    """
    return _without_zeros(binned(sorted(cells), begins))


def bounds(begins: Sequence[int]) -> list[float]:
    """Return the edges of bins as numbers, rising."""
    return [a for a, _ in itertools.groupby(edge_of(code) for code in begins)]


# --- by label ---------------------------------------------------------------------------------------------------------

REST = "*"
"""Stands for all labels that are not shown by themselves."""

_PENDING = 1 << 18
"""Cells of a distribution that are held before they are added up."""

_OFFSET, _WIDTH = 1 << 13, 1 << 14
"""The codes of buckets are below these, moved so that none is negative."""

_OF_LABEL = 4 * _WIDTH
"""Cells of a label."""


class Cells(msgspec.Struct, kw_only=True):
    """A `Spread` as it is kept; the numbers of labels in its cells are those of the documents that were counted.

    Attributes:
        cells, counts: int64.
        nulls: documents without a number, by label.
        greatest: Greatest of all numbers; none where there are none.
        whole: True if all of them are integers.
    """

    cells: bytes = b""
    counts: bytes = b""
    nulls: dict[str, int] = {}
    greatest: float | None = None
    whole: bool = True


class Bins(NamedTuple):
    """A distribution in bins.

    Attributes:
        edges: Edges of the bins.
        counts, after: by label: of all documents, and of those that stay.
        on_edges, after_on_edges: those of them whose number is the lower edge of the bin itself.
    """

    edges: list[float]
    counts: dict[str, list[int]]
    after: dict[str, list[int]]
    on_edges: dict[str, list[int]]
    after_on_edges: dict[str, list[int]]


class Spread:
    """The distribution of a number by label: documents by bucket of two digits, its edge or not, staying or not.

    Args:
        labels: their numbers, which grow while documents are counted; of its own if none are given.
    """

    def __init__(self, labels: dict[str, int] | None = None) -> None:
        self.labels = {} if labels is None else labels
        self.nulls: Counter[str] = Counter()
        self.greatest: float | None = None
        self.whole = True
        self._cells: list[np.ndarray[Any, Any]] = []
        self._counts: list[np.ndarray[Any, Any]] = []
        self._pending = 0

    def add(
        self, numbers: "np.ndarray[Any, Any]", labels: "np.ndarray[Any, Any]", stays: "np.ndarray[Any, Any]"
    ) -> None:
        """Add documents: their numbers, not a number for null; the numbers of their labels; 1 of those that stay."""
        defined = ~np.isnan(numbers)
        if not defined.all():
            names = list(self.labels)
            self.nulls.update(names[i] for i in labels[~defined].tolist())
            numbers, labels, stays = numbers[defined], labels[defined], stays[defined]
        if len(numbers):
            self._reach(float(numbers.max()), whole=bool((numbers == np.floor(numbers)).all()))
        codes = codes_of(numbers)
        cells = ((labels * _WIDTH + codes + _OFFSET) * 2 + on_edges(numbers, codes)) * 2 + stays
        self._append(*np.unique(cells, return_counts=True))

    def merge(self, other: Cells, labels: Sequence[str]) -> None:
        """Add other documents, with labels in the order of their numbers."""
        mine = np.array([self.labels.setdefault(label, len(self.labels)) for label in labels], dtype=np.int64)
        number, rest = np.divmod(np.frombuffer(other.cells, dtype="<i8"), _OF_LABEL)
        self._append(mine[number] * _OF_LABEL + rest, np.frombuffer(other.counts, dtype="<i8"))
        self.nulls.update(other.nulls)
        self._reach(other.greatest, whole=other.whole)

    def _append(self, cells: "np.ndarray[Any, Any]", counts: "np.ndarray[Any, Any]") -> None:
        self._cells.append(cells)
        self._counts.append(counts)
        self._pending += len(cells)
        if self._pending > _PENDING:
            self._folded()

    def _folded(self) -> tuple["np.ndarray[Any, Any]", "np.ndarray[Any, Any]"]:
        """Return cells, each once, sorted, with the sums of their counts."""
        none = np.zeros(0, dtype=np.int64)
        result, places = np.unique(np.concatenate([none, *self._cells]), return_inverse=True)
        sums = np.zeros(len(result), dtype=np.int64)
        np.add.at(sums, places, np.concatenate([none, *self._counts]))
        self._cells, self._counts, self._pending = [result], [sums], 0
        return result, sums

    def _reach(self, greatest: float | None, *, whole: bool) -> None:
        self.whole = self.whole and whole
        if greatest is not None:
            self.greatest = greatest if self.greatest is None else max(self.greatest, greatest)

    def packed(self) -> Cells:
        """Return the form on disk."""
        cells, counts = (item.astype("<i8").tobytes() for item in self._folded())
        nulls = dict(sorted(self.nulls.items()))
        return Cells(cells=cells, counts=counts, nulls=nulls, greatest=self.greatest, whole=self.whole)

    def bins(self, most: int, labels: set[str], *, whole: bool) -> Bins:
        """Return edges, and the counts of bins by label.

        Args:
            most: bins.
            labels: Labels that are shown; all others are added up.
            whole: True if numbers are integers.
        """
        cells, counts = self._folded()
        rest, stays = np.divmod(cells, 2)
        rest, edge = np.divmod(rest, 2)
        number, code = np.divmod(rest, _WIDTH)
        code -= _OFFSET
        codes, place = np.unique(code, return_inverse=True)
        sums = np.bincount(place, weights=counts, minlength=len(codes)).astype(np.int64)
        begins = edges(dict(zip(codes.tolist(), sums.tolist(), strict=True)), most, whole=whole)
        names = [label if label in labels else REST for label in self.labels]
        listed = sorted({names[i] for i in np.unique(number).tolist()})
        row = np.array([listed.index(name) if name in listed else 0 for name in names] or [0], dtype=np.int64)[number]
        bin_ = np.clip(np.searchsorted(begins, code, side="right") - 1, 0, max(0, len(begins) - 2))
        on_edge = (edge == 1) & np.isin(code, begins)

        def by_label(selected: "np.ndarray[Any, Any]") -> dict[str, list[int]]:
            table = np.zeros((len(listed), max(1, len(begins) - 1)), dtype=np.int64)
            np.add.at(table, (row[selected], bin_[selected]), counts[selected])
            present = set(row[selected].tolist())
            return {label: _without_zeros(table[i].tolist()) for i, label in enumerate(listed) if i in present}

        limits = bounds(begins)
        if not whole and self.greatest is not None and len(limits) > 1 and limits[-2] < self.greatest < limits[-1]:
            limits[-1] = self.greatest
        stay = stays == 1
        return Bins(limits, by_label(stays >= 0), by_label(stay), by_label(on_edge), by_label(on_edge & stay))


def _without_zeros(counts: list[int]) -> list[int]:
    """Return counts without the zeros at their end."""
    while counts and not counts[-1]:
        counts.pop()
    return counts
