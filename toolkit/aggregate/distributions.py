"""Distributions of the values of attributes, by label: exact where there are few values, else by a histogram."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from toolkit.aggregate.histogram import Histogram, quantile
from toolkit.data.schema import FLOAT, INT, SPANS, Type, field_name
from toolkit.errors import DataError
from toolkit.lazy_numpy import np

if TYPE_CHECKING:
    from decimal import Decimal

EXACT = 256
"""Different values up to which each is counted."""

PENDING = 4096
"""Different numbers that are in memory before they go into a histogram."""

MOST = 20_000
"""Distributions, of attributes by label, at a time."""

_GREATEST = int(sys.float_info.max)


def finite(number: "int | float | Decimal") -> float:
    """Return the nearest finite float; JSON has integers of any size."""
    return float(min(max(number, -sys.float_info.max), sys.float_info.max))


QUANTILES = ("0.01", "0.05", "0.25", "0.5", "0.75", "0.95", "0.99")

Kind = Literal["number", "text", "bool"]
_KINDS: dict[str, Kind] = {"int": "number", "float": "number", "str": "text", "bool": "bool"}
Value = bool | int | float | str
Getter = Callable[[Any], Sequence[Any]]


class _NoList:
    """The type of `NO_LIST` alone."""


NO_LIST = _NoList()
"""Stands for the elements of a list that is null."""


class Leaf(msgspec.Struct, frozen=True):
    """A value inside an attribute.

    Attributes:
        path: ``language.prob``; of the elements of a list ``line_language[].label``; ``len(line_language)``.
        kind: Kind of its values.
        get: gives the values of a document, null where there is none; `NO_LIST` where there is not even the list that
            it would be an element of.
    """

    path: str
    kind: Kind
    get: Getter


def leaves(path: str, type_: Type) -> list[Leaf]:
    """Return all values inside an attribute of a type; what has no declared type has none."""
    match type_.kind:
        case "nullable" if type_.item:
            return [
                Leaf(leaf.path, leaf.kind, _or(NO_LIST if _is_inside_list(path, leaf) else None, leaf.get))
                for leaf in leaves(path, type_.item)
            ]
        case "span":
            fields = (("start", INT), ("end", INT), ("score", FLOAT))
            return leaves(path, Type("object", fields=fields))
        case "object":
            return [
                Leaf(leaf.path, leaf.kind, _of_field(field_name(name), leaf.get))
                for name, inner in type_.fields
                for leaf in leaves(f"{path}.{name}", inner)
            ]
        case "list" if type_.item:
            inner = [Leaf(f"{path}[].score", "number", _score)] if type_ == SPANS else leaves(f"{path}[]", type_.item)
            return [_length(path), *(Leaf(leaf.path, leaf.kind, _of_each(leaf.get)) for leaf in inner)]
        case "map":
            return [_length(path)]
    return [Leaf(path, _KINDS[type_.kind], _itself)] if type_.kind in _KINDS else []


def _itself(value: Any) -> Sequence[Any]:
    return (value,)


def _score(span: Any) -> Sequence[Any]:
    return (span.score,)


def _length(path: str) -> Leaf:
    return Leaf(f"len({path})", "number", lambda value: (len(value),))


def _is_inside_list(path: str, leaf: Leaf) -> bool:
    """Return True for a leaf inside a list below the path."""
    return "[]" in leaf.path.removeprefix("len(").removeprefix(path)


def _or(nothing: Any, get: Getter) -> Getter:
    return lambda value: (nothing,) if value is None else get(value)


def _of_field(name: str, get: Getter) -> Getter:
    return lambda value: get(getattr(value, name))


def _of_each(get: Getter) -> Getter:
    return lambda values: [result for value in values for result in get(value)]


class Distribution(msgspec.Struct, kw_only=True):
    """Values of one attribute in the documents of one label.

    Attributes:
        label: JSON text.
        attribute: path of the leaf.
        kind: Kind of the values.
        nulls: documents (or elements) without a value.
        no_lists: lists that are null, for the values of elements.
        count: values.
        values: Count of each value, sorted; None if there are more than `EXACT`.
        buckets: Buckets of numbers.
    """

    label: str
    attribute: str
    kind: Kind
    nulls: int
    no_lists: int = 0
    count: int
    values: list[tuple[Value, int]] | None
    buckets: Histogram | None = None


class _DistributionCounts:
    """Counts of the values of one distribution."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.nulls = self.no_lists = self.count = 0
        self.exact: Counter[Any] | None = Counter()
        self.pending: Counter[Any] = Counter()
        self.numbers = Histogram()

    def add(self, values: Iterable[Any]) -> None:
        result = Counter(values)
        self.nulls += result.pop(None, 0)
        self.no_lists += result.pop(NO_LIST, 0)
        self.count += result.total()
        self.count_exactly(result)
        if self.kind == "number":
            self.pending.update(result)
            if len(self.pending) > PENDING:
                self.fold()

    def count_exactly(self, counts: Mapping[Any, int]) -> None:
        if self.exact is not None:
            self.exact.update(counts)
            self.exact = self.exact if len(self.exact) <= EXACT else None

    def fold(self) -> None:
        """Put the pending numbers into the histogram. Its buckets take floats; what is exact is of the integers."""
        numbers = [min(max(value, -_GREATEST), _GREATEST) for value in self.pending]  # JSON has any integers
        folded = Histogram()
        folded.add(np.array(list(map(float, numbers))), np.array(list(self.pending.values())))
        if numbers and all(isinstance(value, int) for value in self.pending):
            folded.low, folded.high = min(self.pending), max(self.pending)
            folded.total = sum(number * count for number, count in zip(numbers, self.pending.values(), strict=True))
        self.numbers.merge(folded)
        self.pending = Counter()

    def merge(self, other: Distribution) -> None:
        self.nulls += other.nulls
        self.no_lists += other.no_lists
        self.count += other.count
        if other.values is None:
            self.exact = None
        else:
            self.count_exactly(dict(other.values))
        if other.buckets:
            self.numbers.merge(other.buckets)

    def finished(self, label: str, attribute: str) -> Distribution:
        self.fold()
        return Distribution(
            label=label,
            attribute=attribute,
            kind=self.kind,
            nulls=self.nulls,
            no_lists=self.no_lists,
            count=self.count,
            values=sorted(self.exact.items()) if self.exact is not None else None,
            buckets=self.numbers if self.numbers.count else None,
        )


class Distributions:
    """Distributions of some attributes, by label."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[str, str], _DistributionCounts] = {}

    def add(self, label: str, leaf: Leaf, values: Iterable[Any]) -> None:
        """Add values of documents of a label."""
        self._of(label, leaf.path, leaf.kind).add(values)

    def merge(self, distributions: Iterable[Distribution]) -> None:
        """Add the distributions of other documents."""
        for other in distributions:
            self._of(other.label, other.attribute, other.kind).merge(other)

    def _of(self, label: str, attribute: str, kind: Kind) -> _DistributionCounts:
        result = self._by_key.get((label, attribute))
        if result is None:
            if len(self._by_key) >= MOST:
                raise DataError(
                    f"expected at most {MOST:,} distributions, of attributes by label, got more; "
                    "name fewer with --attribute, or give another --label"
                )
            result = self._by_key[label, attribute] = _DistributionCounts(kind)
        return result

    def finished(self) -> list[Distribution]:
        """Return all distributions, sorted by attribute and label."""
        keys = sorted(self._by_key, key=lambda key: (key[1], key[0]))
        return [self._by_key[label, attribute].finished(label, attribute) for label, attribute in keys]


def merge_labels(distributions: Sequence[Distribution]) -> Distribution:
    """Return the distributions of all labels of one attribute as one."""
    counter = _DistributionCounts(distributions[0].kind)
    for distribution in distributions:
        counter.merge(distribution)
    return counter.finished("", distributions[0].attribute)


def summary(distribution: Distribution) -> dict[str, Any]:
    """Return a distribution in numbers: counts, share of nulls, values, quantiles."""
    result: dict[str, Any] = {
        "values": distribution.count,
        "nulls": distribution.nulls,
        "null_share": distribution.nulls / (distribution.count + distribution.nulls)
        if distribution.count + distribution.nulls
        else None,
        "null_lists": distribution.no_lists,
    }
    if distribution.buckets:
        result |= {
            "min": distribution.buckets.low,
            "max": distribution.buckets.high,
            "mean": distribution.buckets.total / distribution.count,
            "quantiles": quantiles(distribution),
        }
    result["counts"] = (
        None if distribution.values is None else [{"value": v, "count": n} for v, n in distribution.values]
    )
    return result


def quantiles(distribution: Distribution | None) -> dict[str, float]:
    """Return the quantiles of numbers by their shares; nothing of no numbers."""
    listed = numbers(distribution) if distribution else []
    return {share: quantile(listed, distribution.count, share) for share in QUANTILES} if distribution else {}


def numbers(distribution: Distribution) -> list[tuple[float, int]]:
    """Return the numbers of a distribution, sorted, each with its count; of many one for each bucket."""
    if distribution.values is not None:
        return cast("list[tuple[float, int]]", distribution.values)
    assert distribution.buckets
    return list(distribution.buckets.numbers())
