"""The histogram: numbers are in the bin whose edges say so, add up in any order, and quantiles are as close as said."""

import itertools
import math
import random
from collections import Counter
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.aggregate import histogram
from toolkit.aggregate.histogram import ACCURACY, Histogram, Spread

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


@pytest.mark.parametrize(
    ("numbers", "edges"),
    [
        ([0.0, 1.0, 2.0], [0, 1, 2, 3]),
        ([0.0], [0, 1]),
        ([7.0], [7, 8]),
    ],
)
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
    bins = spread.shown(100, {"en"}, whole=False)
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
