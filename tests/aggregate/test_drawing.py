"""Histograms: bins that hold every value once, the thresholds of rules, the same picture each time."""

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from toolkit.aggregate import drawing
from toolkit.aggregate.distributions import EXACT, Distributions, Leaf
from toolkit.aggregate.drawing import BINS, Bars, draw, text
from toolkit.aggregate.histogram import Histogram
from toolkit.aggregate.thresholds import Threshold, thresholds
from toolkit.config.settings import ConfigNode
from toolkit.errors import ConfigError
from toolkit.rules.rules_yaml import read_rules
from toolkit.storage.outputs import NamedOutput

RULES: list[Any] = [
    {"drop": "language.prob < 0.6 and not language.multilingual", "name": "unsure"},
    {"drop": "0.3 >= language.prob"},
    {"annotate": "sure", "when": "0.9 < language.prob <= 1"},
    {
        "group": "by language",
        "parameters": {"least": 0.5},
        "languages": {"en": {"least": 0.7}},
        "rules": [{"keep": "language.prob > least", "name": "least"}],
    },
    {"drop": "language.prob < 0.1 * line_shape.lines"},
    {"drop": "other.prob < 0.2"},
    {"drop": "any(x.prob < 0.82 and x.label == 'en' for x in line_language)", "name": "line"},
    {"drop": "len([x for x in line_language if 0.4 > x.prob]) > 3 or any(len(x.spans) > 7 for x in line_language)"},
    {"drop": "all(any(y.prob < 0.25 for y in x) for x in nested)", "name": "inner"},
]


def histogram(values: list[Any], kind: Any = "number", marks: list[Threshold] | None = None) -> Bars:
    found = Distributions()
    found.add("null", Leaf("x", kind, lambda value: (value,)), values)
    return Bars.of(found.finished()[0], marks or [])


def test_thresholds_are_found_in_expressions() -> None:
    found = thresholds(read_rules(ConfigNode(RULES), ""), "language.prob")
    assert [(each.number, each.label, each.text) for each in found] == [
        (0.3, "", "language.prob <= 0.3"),
        (0.5, "", "language.prob > 0.5"),
        (0.6, "", "language.prob < 0.6"),
        (0.7, "en", "language.prob > 0.7"),
        (0.9, "", "language.prob > 0.9"),
        (1.0, "", "language.prob <= 1"),
    ]


def test_a_threshold_is_not_for_labels_that_have_one_of_the_same_comparison() -> None:
    """One of the other side is: ``prob < least or prob > 0.99``."""
    for_all, serbian = Threshold(0.3, "", "unsure", "prob < 0.3"), Threshold(0.8, "sr", "unsure", "prob < 0.8")
    upper, of_another = Threshold(0.99, "", "unsure", "prob > 0.99"), Threshold(0.5, "fi", "other", "prob < 0.5")
    listed = [for_all, serbian, upper, of_another]
    assert [each.excluded_labels(listed) for each in listed] == [["sr"], [], [], []]


@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("line_language[].prob", ["line_language[].prob < 0.4", "line_language[].prob < 0.82"]),
        ("len(line_language[].spans)", ["len(line_language[].spans) > 7"]),
        ("nested[][].prob", ["nested[][].prob < 0.25"]),
        ("x.prob", []),
    ],
)
def test_thresholds_of_elements_are_found_in_comprehensions(attribute: str, expected: list[str]) -> None:
    assert [each.text for each in thresholds(read_rules(ConfigNode(RULES), ""), attribute)] == expected


@pytest.mark.parametrize(
    "values",
    [
        [0.1, 0.5, 0.5, 1.0],
        [3],
        [-5.5, 0, 7],
        list(range(1000)),
        [1e-9, 2e-9],
        [*range(100), 10**6],
        [0.0] * 5,
        [x / 7 for x in range(9000)],
        [1e15, 1e15 + 1],
        [0.1, 0.1 + 2e-17],
        [-sys.float_info.max, 5e-324, sys.float_info.max],
        [*range(100), sys.float_info.max],
        [1e300],
    ],
)
def test_every_value_is_in_one_bin(values: list[float]) -> None:
    check_bins(histogram(values), values)


def check_bins(found: Bars, values: list[float]) -> None:
    """Every value is in one bin, where it belongs."""
    assert sum(each.count for each in found.bins) == len(values)
    assert all(a.high == b.low for a, b in itertools.pairwise(found.bins))
    last = found.bins[-1]
    assert found.bins[0].low <= min(values)
    assert max(values) <= last.high
    assert len(found.bins) <= BINS + 2
    if len(set(values)) <= EXACT:
        for each in found.bins:
            assert each.count == sum(
                each.low <= value < each.high or value == each.high == last.high for value in values
            )


@given(places=st.integers(1, 3), low=st.integers(-300, 300), others=st.lists(st.integers(1, 3000), min_size=1))
@example(places=1, low=1, others=[27])
def test_ranges_of_decimals_do_not_collapse(places: int, low: int, others: list[int]) -> None:
    values = [number / 10**places for number in (low, *(low + other for other in others))]
    found = histogram(values)
    check_bins(found, values)
    assert len(found.bins) > BINS // 2 or max(values) > 64  # there a long tail has powers of two
    for each in found.bins:
        assert float(each.title) == each.low
        assert len(each.title.lstrip("-").replace(".", "")) <= places + 6


@pytest.mark.slow
@pytest.mark.parametrize("places", [1, 2])
def test_no_range_within_one_collapses(places: int) -> None:
    numbers = range(10**places + 1)
    for low, high in itertools.combinations(numbers, 2):
        values = [low / 10**places, high / 10**places]
        check_bins(histogram(values), values)
        assert len(histogram(values).bins) > BINS // 2


def test_a_threshold_stands_where_it_lies() -> None:
    shown = text(histogram([0.1, 0.2, 0.9, None], marks=[Threshold(0.5, "en", "unsure", "x < 0.5")])).splitlines()
    assert shown[0] == "x: 3 values, 1 null (25.0 %)"
    at = next(i for i, line in enumerate(shown) if "x < 0.5 (en): unsure" in line)
    assert float(shown[at - 1].split("│")[0]) < 0.5 <= float(shown[at + 1].split("│")[0])


def test_values_that_are_no_numbers_are_bars_of_their_own() -> None:
    found = histogram([*["en"] * 3, "fr", *map(str, range(40))], "text")
    assert [(each.title, each.count) for each in found.bins[:2]] == [("en", 3), ("0", 1)]
    assert found.bins[-1].title == "18 more"
    assert sum(each.count for each in found.bins) == 44


def test_nothing_to_draw_is_an_error() -> None:
    with pytest.raises(ConfigError, match="expected values, got 2 nulls"):
        histogram([None, None])
    with pytest.raises(ConfigError, match="got many texts"):
        histogram([str(i) for i in range(1000)], "text")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_a_picture_has_the_same_bytes_each_time(tmp_path: Path, suffix: str) -> None:
    pytest.importorskip("matplotlib")
    for name in "ab":
        found = histogram([0.1, 0.2, 0.9], marks=[Threshold(0.5, "", "unsure", "x < 0.5")])
        draw(found, NamedOutput(str(tmp_path / f"{name}.{suffix}"), "--output"))
    a, b = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in "ab")
    assert a == b
    assert (b"x &lt; 0.5" in a) == (suffix == "svg")


def of_lengths(numbers: list[int]) -> Histogram:
    found = Histogram()
    found.add(np.array(numbers))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_pictures_are_the_same_each_time_and_take_any_text(suffix: str) -> None:
    pytest.importorskip("matplotlib")
    sizes = [("$x_$ \u202ea\x00 中文 <b>", 10**9), *((f"label {i}", 10**6) for i in range(30))]
    lengths = [of_lengths([10, 1000, 5000]), *[Histogram()] * 30]
    first = drawing.sizes_and_lengths(sizes, lengths, suffix)
    assert first == drawing.sizes_and_lengths(sizes, lengths, suffix)
    if suffix == "svg":
        text = first.decode()
        assert "$x_$" in text
        assert "\u202e" not in text
        assert "<b>" not in text
        assert "7 more" in text
        assert "<dc:date>" not in text
