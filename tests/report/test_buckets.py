"""Histograms of reports: whatever numbers there are, each is in the bin whose edges say so."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.report import attributes, buckets, merging

NUMBERS = st.one_of(
    st.floats(-1e9, 1e9, allow_subnormal=False).filter(lambda number: number == 0 or abs(number) > 1e-20),
    st.floats(0, 1).map(lambda number: round(number, 3)),
    st.integers(-200, 10**7).map(float),
)


@given(st.lists(NUMBERS, min_size=1, max_size=60), st.integers(10, 120), st.booleans())
def test_a_number_is_in_the_bin_whose_edges_are_around_it(numbers: list[float], most: int, whole: bool) -> None:
    numbers = [float(round(number)) for number in numbers] if whole else numbers
    found = Counter(buckets.codes_of(np.array(numbers)).tolist())
    begins = buckets.edges(found, most, whole=whole)
    edges = buckets.bounds(begins)
    assert edges == sorted(set(edges))
    expected = [sum(low <= n < high for n in numbers) for low, high in itertools.pairwise(edges)]
    while expected and not expected[-1]:
        expected.pop()
    assert buckets.counts(found.items(), begins) == expected
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
    found = Counter(buckets.codes_of(np.array(numbers)).tolist())
    assert buckets.bounds(buckets.edges(found, 40, whole=True)) == edges


@given(st.lists(NUMBERS, min_size=1, max_size=60))
def test_numbers_on_an_edge_are_known(numbers: list[float]) -> None:
    codes = buckets.codes_of(np.array(numbers))
    found = buckets.on_edges(np.array(numbers), codes)
    assert found.tolist() == [n == buckets.edge_of(code) for n, code in zip(numbers, codes.tolist(), strict=True)]


def test_what_many_documents_have_is_counted_by_itself() -> None:
    """A share that is 0 for most and 1 for some: nothing in between is as frequent."""
    counted = attributes.Counted()
    numbers, labels = np.array([0.0] * 70 + [1.0] * 20 + [0.333] * 9 + [1.00004]), np.zeros(100, dtype=np.int64)
    counted.add(numbers, labels, np.arange(100) % 2)
    spread = merging.Spread()
    spread.add(counted.found(["en"]), ["en"])
    bins = spread.shown(100, {"en"}, whole=False)
    assert (sum(bins.counts["en"]), bins.counts["en"][-1]) == (100, 21)
    assert (bins.on_edges["en"][0], bins.on_edges["en"][-1], sum(bins.on_edges["en"])) == (70, 20, 90)
    assert (bins.after_on_edges["en"][0], bins.after_on_edges["en"][-1]) == (35, 10)
    assert bins.edges[-1] == 1.00004


def test_probabilities_have_bins_of_a_hundredth() -> None:
    """Though fastText's exceed 1 by a little."""
    numbers = np.array([i / 1000 for i in range(1000)] + [1.00004])
    edges = buckets.bounds(buckets.edges(Counter(buckets.codes_of(numbers).tolist()), 101))
    assert edges == [i / 100 for i in range(101)] + [1.1]


def test_the_most_frequent_of_the_least_numbers_begins_a_bin() -> None:
    """Few have none, most have one: these are not in one bin with those, so that a threshold of 1 is exact."""
    numbers = np.array([0.0] + [1.0] * 600 + [2.0] * 300 + [float(i) for i in range(3, 58)])
    edges = buckets.bounds(buckets.edges(Counter(buckets.codes_of(numbers).tolist()), 100, whole=True))
    assert edges[:4] == [0, 1, 2, 3]


def test_there_are_no_bins_of_nothing() -> None:
    assert buckets.edges({}, 40) == []
    assert buckets.counts([], []) == []
