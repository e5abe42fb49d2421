"""Distributions: exact where values are few, close to exact where they are many, the same in whatever order."""

import itertools
import math
import random
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from toolkit.aggregate import distributions, histogram
from toolkit.aggregate.agreement import Agreement
from toolkit.aggregate.distributions import (
    EXACT,
    QUANTILES,
    Distribution,
    Distributions,
    Leaf,
    leaves,
    merge_labels,
    summary,
)
from toolkit.aggregate.drawing import Bars
from toolkit.aggregate.groups import Groups, read, write
from toolkit.aggregate.histogram import ACCURACY, Histogram, Spread
from toolkit.aggregate.samples import CHARS, Least, Samples, chosen
from toolkit.aggregate.tables import Table, distributions_markdown
from toolkit.data import schema
from toolkit.data.documents import Document
from toolkit.data.schema import FLOAT, INT, SPAN, SPANS, STR, Type, list_of, nullable
from toolkit.errors import DataError

NUMBER = Leaf("x", "number", lambda value: (value,))
TEXT = Leaf("t", "text", lambda value: (value,))


def test_leaves_of_types() -> None:
    prediction = Type("object", fields=(("label", STR), ("prob", nullable(FLOAT))))
    type_ = Type("object", fields=(("lines", list_of(nullable(prediction))), ("spans", SPANS), ("m", Type("map", INT))))
    value = msgspec.json.decode(
        b'{"lines": [{"label": "en", "prob": null}, null], "spans": [[0, 2, 0.5], [3, 4, 1]], "m": {"a": 1}}',
        type=schema.to_python(type_),
    )
    assert {leaf.path: list(leaf.get(value)) for leaf in leaves("k", type_)} == {
        "len(k.lines)": [2],
        "k.lines[].label": ["en", None],
        "k.lines[].prob": [None, None],
        "len(k.spans)": [2],
        "k.spans[].score": [0.5, 1.0],
        "len(k.m)": [1],
    }
    assert [leaf.get(None) for leaf in leaves("k", nullable(prediction))] == [(None,), (None,)]


def test_few_values_are_counted_one_by_one() -> None:
    found = Distributions()
    found.add('"en"', TEXT, ["a", "b", None, "a"])
    assert summary(found.finished()[0]) == {
        "values": 3, "nulls": 1, "null_share": 0.25, "null_lists": 0,
        "counts": [{"value": "a", "count": 2}, {"value": "b", "count": 1}],
    }  # fmt: skip


def test_a_list_that_is_null_has_no_null_elements() -> None:
    type_ = nullable(list_of(nullable(Type("object", fields=(("prob", nullable(FLOAT)),)))))
    decoder = msgspec.json.Decoder(schema.to_python(type_))
    values = [decoder.decode(text) for text in (b'[{"prob": 0.5}, {"prob": null}, null]', b"null", b"[]")]
    found = Distributions()
    for leaf in leaves("k", type_):
        found.add("null", leaf, [each for value in values for each in leaf.get(value)])
    parts = msgspec.json.decode(msgspec.json.encode(found.finished()), type=list[Distribution])
    merged = Distributions()
    merged.merge(parts)
    assert {each.attribute: (each.count, each.nulls, each.no_lists) for each in merged.finished()} == {
        "k[].prob": (1, 2, 1),
        "len(k)": (2, 1, 0),
    }


def test_one_span_counts_as_an_object() -> None:
    span = msgspec.json.decode(b"[3, 5, 0.25]", type=schema.to_python(SPAN))
    expected = {"k.start": [3], "k.end": [5], "k.score": [0.25]}
    assert {leaf.path: list(leaf.get(span)) for leaf in leaves("k", SPAN)} == expected
    assert [leaf.get(None) for leaf in leaves("k", nullable(SPAN))] == [(None,)] * 3


@pytest.mark.parametrize("many", [False, True])
def test_quantiles_are_of_the_nearest_rank(many: bool) -> None:
    found = Distributions()
    found.add("null", NUMBER, [0.33, 4.33])
    (each,) = found.finished()
    if many:
        each = msgspec.structs.replace(each, values=None)
    expected = {"0.01": 0.33, "0.5": 0.33, "0.75": 4.33, "0.95": 4.33, "0.99": 4.33}
    numbers = summary(each)["quantiles"]
    assert {share: numbers[share] for share in expected} == pytest.approx(expected, rel=ACCURACY)


@pytest.mark.parametrize("count", [1, 2, 3, 20, 100, 200])
def test_the_rank_is_not_off_by_rounding(count: int) -> None:
    found = Distributions()
    found.add("null", NUMBER, range(1, count + 1))
    ranks = {share: -(-count * round(float(share) * 100) // 100) for share in QUANTILES}
    assert summary(found.finished()[0])["quantiles"] == ranks


@pytest.mark.parametrize("count", [EXACT, 50_000])
def test_quantiles_are_as_close_as_promised(count: int) -> None:
    values = np.random.default_rng(1).lognormal(0, 3, size=count) - 2
    found = Distributions()
    for some in np.array_split(values, 7):
        found.add("null", NUMBER, [*some.tolist(), None])
    numbers = summary(found.finished()[0])
    exact = np.quantile(values, [float(share) for share in QUANTILES], method="inverted_cdf")
    limit = 0 if count <= EXACT else ACCURACY
    assert np.allclose(list(numbers["quantiles"].values()), exact, rtol=limit * 1.001, atol=0)
    assert (numbers["min"], numbers["max"], numbers["nulls"]) == (values.min(), values.max(), 7)
    assert numbers["mean"] == pytest.approx(values.mean())
    assert (numbers["counts"] is None) == (count > EXACT)


def test_merging_gives_the_same_buckets_in_any_order_and_through_a_file() -> None:
    values = [random.Random(2).gauss(0, 1e3) for _ in range(9000)] + [0.0, -0.0, 1e308, -1e-308, 2**70, 10**400]
    parts = []
    for some in (values[:10], values[10:5000], values[5000:]):
        each = Distributions()
        each.add("null", NUMBER, some)
        parts.append(msgspec.json.encode(each.finished()))
    merged = []
    for order in itertools.permutations(parts):
        whole = Distributions()
        for part in order:
            whole.merge(msgspec.json.decode(part, type=list[distributions.Distribution]))
        merged.append(merge_labels(whole.finished()).buckets)
    at_once = Distributions()
    at_once.add("null", NUMBER, values)
    expected = at_once.finished()[0].buckets
    assert expected
    for histogram_ in merged:
        assert histogram_
        assert (
            abs(histogram_.total - expected.total) < 2**973
        )  # where one float of that sum and the next are 2**971 apart
        assert msgspec.structs.replace(histogram_, total=0) == msgspec.structs.replace(expected, total=0)


@given(st.lists(st.integers(), min_size=1, max_size=40) | st.lists(st.integers(-(2**64), 2**64), min_size=1))
@example([2**53, 2**53 + 1, -(2**63) - 1, 2**64 - 1])
@example([10**400, 10**400 + 1])
def test_integers_of_any_size_are_exact(values: list[int]) -> None:
    whole = Distributions()
    for value in values:
        part = Distributions()
        part.add("null", NUMBER, [value])
        whole.merge(msgspec.json.decode(msgspec.json.encode(part.finished()), type=list[distributions.Distribution]))
    at_once = Distributions()
    at_once.add("null", NUMBER, values)
    for found in (whole, at_once):
        numbers = summary(found.finished()[0])
        assert (numbers["min"], numbers["max"]) == (min(values), max(values))
        assert {type(numbers["min"]), type(numbers["max"])} == {int}
        if max(map(abs, values)) < 10**308:
            assert numbers["mean"] == float(Fraction(sum(values), len(values)))
        row = distributions_markdown(found.finished(), labels=False).splitlines()[-1]
        assert f" {min(values)} " in row
        assert f" {max(values)} " in row
        assert Bars.of(found.finished()[0], [])


@pytest.mark.parametrize("values", [[1e308, 1.5e308, 1e308], [-1.7e308, 1.7e308, 1.7e308, 1.7e308], [2**1023, 1.7e308]])
def test_a_mean_is_right_where_the_sum_is_no_float(values: list[float]) -> None:
    expected = float(sum(map(Fraction, values)) / len(values))
    found = Distributions()
    for value in values:
        part = Distributions()
        part.add("null", NUMBER, [value])
        found.merge(part.finished())
    at_once = Distributions()
    at_once.add("null", NUMBER, values)
    assert [summary(some.finished()[0])["mean"] for some in (found, at_once)] == pytest.approx([expected] * 2)


def test_what_one_part_has_too_many_of_is_not_counted_in_the_whole() -> None:
    whole = Distributions()
    for texts in (["a"], [str(n) for n in range(EXACT + 1)]):
        part = Distributions()
        part.add("null", TEXT, texts)
        whole.merge(part.finished())
    assert summary(whole.finished()[0])["counts"] is None


def test_too_many_distributions_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributions, "MOST", 1)
    found = Distributions()
    found.add("a", TEXT, [])
    with pytest.raises(DataError, match="expected at most 1 distributions"):
        found.add("b", TEXT, [])


# The histogram: numbers are in the bin whose edges say so, add up in any order, and quantiles are as close as said.

NUMBERS = st.one_of(
    st.floats(-1e9, 1e9, allow_subnormal=False).filter(lambda number: number == 0 or abs(number) > 1e-20),
    st.floats(0, 1).map(lambda number: round(number, 3)),
    st.integers(-200, 10**7).map(float),
)


@given(st.lists(NUMBERS, min_size=1, max_size=60), st.integers(10, 120), st.booleans())
def test_a_number_is_in_the_bin_whose_edges_are_around_it(numbers: list[float], most: int, whole: bool) -> None:
    numbers = [float(round(number)) for number in numbers] if whole else numbers
    found = Counter(histogram.codes_of(np.array(numbers)).tolist())
    begins = histogram.edges(found, most, whole=whole)
    edges = histogram.bounds(begins)
    assert edges == sorted(set(edges))
    expected = [sum(low <= n < high for n in numbers) for low, high in itertools.pairwise(edges)]
    while expected and not expected[-1]:
        expected.pop()
    assert histogram.counts(found.items(), begins) == expected
    assert sum(expected) == len(numbers)
    if whole:
        assert all(edge == int(edge) for edge in edges)


@pytest.mark.parametrize(("numbers", "edges"), [([0.0, 1.0, 2.0], [0, 1, 2, 3]), ([0.0], [0, 1]), ([7.0], [7, 8])])
def test_few_integers_have_a_bin_each(numbers: list[float], edges: list[float]) -> None:
    found = Counter(histogram.codes_of(np.array(numbers)).tolist())
    assert histogram.bounds(histogram.edges(found, 40, whole=True)) == edges


@given(st.lists(NUMBERS, min_size=1, max_size=60))
def test_numbers_on_an_edge_are_known(numbers: list[float]) -> None:
    codes = histogram.codes_of(np.array(numbers))
    found = histogram.on_edges(np.array(numbers), codes)
    assert found.tolist() == [n == histogram.edge_of(code) for n, code in zip(numbers, codes.tolist(), strict=True)]


def test_what_many_documents_have_is_counted_by_itself() -> None:
    """A share that is 0 for most and 1 for some: nothing in between is as frequent."""
    counted = Spread({"en": 0})
    numbers, labels = np.array([0.0] * 70 + [1.0] * 20 + [0.333] * 9 + [1.00004]), np.zeros(100, dtype=np.int64)
    counted.add(numbers, labels, np.arange(100) % 2)
    spread = Spread()
    spread.merge(counted.packed(), ["en"])
    bins = spread.bins(100, {"en"}, whole=False)
    assert (sum(bins.counts["en"]), bins.counts["en"][-1]) == (100, 21)
    assert (bins.on_edges["en"][0], bins.on_edges["en"][-1], sum(bins.on_edges["en"])) == (70, 20, 90)
    assert (bins.after_on_edges["en"][0], bins.after_on_edges["en"][-1]) == (35, 10)
    assert bins.edges[-1] == 1.00004


def test_probabilities_have_bins_of_a_hundredth() -> None:
    """Though fastText's exceed 1 by a little."""
    numbers = np.array([i / 1000 for i in range(1000)] + [1.00004])
    edges = histogram.bounds(histogram.edges(Counter(histogram.codes_of(numbers).tolist()), 101))
    assert edges == [i / 100 for i in range(101)] + [1.1]


def test_the_most_frequent_of_the_least_numbers_begins_a_bin() -> None:
    """Few have none, most have one: these are not in one bin with those, so that a threshold of 1 is exact."""
    numbers = np.array([0.0] + [1.0] * 600 + [2.0] * 300 + [float(i) for i in range(3, 58)])
    edges = histogram.bounds(histogram.edges(Counter(histogram.codes_of(numbers).tolist()), 100, whole=True))
    assert edges[:4] == [0, 1, 2, 3]


def test_there_are_no_bins_of_nothing() -> None:
    assert histogram.edges({}, 40) == []
    assert histogram.counts([], []) == []


def lengths(numbers: list[int]) -> Histogram:
    found = Histogram()
    found.add(np.array(numbers, dtype=np.int64))
    return found


def test_lengths_are_added_up_in_any_parts_and_quantiles_are_right_to_half_a_hundredth() -> None:
    draw = random.Random(5)
    numbers = [int(10 ** draw.uniform(0, 7)) for _ in range(3000)] + [0, 255, 256, 257, 10**9]
    whole, parts = lengths(numbers), Histogram()
    for start in (2000, 0, 1000, 3000):
        parts.merge(lengths(numbers[start : start + 1000]))
    assert parts == whole
    assert (whole.total, whole.low, whole.high, whole.count) == (sum(numbers), 0, 10**9, len(numbers))
    ranked = sorted(numbers)
    for share, place in (("0.05", 150), ("0.5", 1502), ("0.95", 2854)):
        assert whole.quantile(share) == pytest.approx(ranked[place], rel=ACCURACY)
        assert isinstance(whole.quantile(share), int)


@given(st.lists(st.integers(-999, 999), min_size=1))
def test_small_integers_are_exact(numbers: list[int]) -> None:
    assert sorted(Counter(numbers).items()) == list(lengths(numbers).numbers())


@given(st.lists(NUMBERS, min_size=1))
def test_a_number_of_three_digits_is_close_to_each_in_its_bucket(numbers: list[float]) -> None:
    for number in numbers:
        (code,) = histogram.codes_of(np.array([number]), 3).tolist()
        found = Histogram(2, 0.0, -math.inf, math.inf, False, {code: 1})
        (shown,) = (value for value, _ in found.numbers())
        assert shown == pytest.approx(number, rel=ACCURACY * 1.001)
        assert len(Decimal(repr(shown)).normalize().as_tuple().digits) <= 4
        assert histogram.edge_of(code, 3) <= number


# Sums by group are exact, however many groups there are and however few fit into memory.


@pytest.mark.parametrize("held", [1, 7, 1000])
def test_groups_that_do_not_fit_are_merged(tmp_path: Path, held: int) -> None:
    random = np.random.default_rng(0)
    table = Groups(str(tmp_path), held)
    expected: dict[str, Counter[int]] = {}
    for _ in range(20):
        keys = [f'"{n}"' for n in random.integers(0, 300, size=40).tolist()]
        rows = random.integers(0, 1000, size=(40, 5))
        table.add(keys, rows)
        for key, row in zip(keys, rows.tolist(), strict=True):
            expected.setdefault(key, Counter()).update(dict(enumerate([1, *row])))
    found = list(table)
    assert found == [(key, [expected[key][i] for i in range(6)]) for key in sorted(expected)]
    path = str(tmp_path / "kept.jsonl.gz")
    assert write(path, iter(table)) == len(expected)
    assert list(read(path)) == found


def test_a_table_shows_the_largest_and_counts_the_others(tmp_path: Path) -> None:
    groups = [(f'"{name}"', [1, 1, 1, size, 1, 0]) for name, size in zip("abcde", (5, 9, 9, 1, 7), strict=True)]
    table = Table.of("host", groups, 2, unicode=False)
    assert [name for name, _ in table.groups] == ["b", "c"]
    assert (table.rest[0], table.rest[1].bytes, table.total.bytes) == (3, 13, 31)
    assert table.total.unicode_words is None


# Samples: the same in whatever parts documents come.


def test_samples_depend_on_ids_alone_and_are_of_several_labels() -> None:
    documents = [(f'"{label}"', Document(f"text {i}" * 300, id=f"{label}-{i}")) for label in "abc" for i in range(40)]
    documents += [('"a"', Document("x", id=f"more-{i}")) for i in range(500)]

    def kept(some: list[tuple[str, Document]]) -> Samples:
        found = Samples(3)
        for label, document in some:
            found.add("file:1", label, document)
        return found

    whole = kept(documents).finish()
    assert {each.label for each in whole} == {'"a"', '"b"', '"c"'}
    parts = [kept(documents[start::7]).finish() for start in range(7)]
    random.Random(1).shuffle(parts)
    assert chosen((each for part in parts for each in part), 3) == whole
    assert all(len(each.text) == CHARS and each.chars > CHARS for each in whole if not each.id.startswith("more"))
    one = kept([pair for pair in documents if pair[0] == '"a"'])
    assert len(one.finish()) == 3  # of one label, where there are no others


def test_the_least_are_kept_and_ties_go_by_the_rest_of_an_item() -> None:
    items = [(i % 7, i) for i in range(100)]
    found = Least[tuple[int, int]]()
    for some in (items[50:], items[:50]):
        found.add("a", 9, some)
    assert found.items == {"a": sorted(items)[:9]}
    assert found.has_room("a", 9, (0,))
    assert not found.has_room("a", 9, (1,))
    assert not found.has_room("b", 0, (0,))


def test_a_difference_of_large_integers_is_exact() -> None:
    found = Agreement()
    assert found.add("number", [2**64, 3, 0.25], [2**64 - 1, 2**60 + 1, 1]) == [1.0, float(2**60 - 2), 0.75]
