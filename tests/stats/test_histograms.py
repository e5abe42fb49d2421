"""Histograms: bins that hold every value once, the thresholds of rules, the same picture each time."""

from pathlib import Path
from typing import Any

import pytest

from toolkit.config import Source
from toolkit.errors import ConfigError
from toolkit.rules import read_rules
from toolkit.stats.distributions import Distributions, Leaf
from toolkit.stats.histograms import Histogram, text
from toolkit.stats.plots import draw
from toolkit.stats.thresholds import Threshold, thresholds

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
]


def histogram(values: list[Any], kind: Any = "number", marks: list[Threshold] | None = None) -> Histogram:
    found = Distributions()
    found.add("null", Leaf("x", kind, lambda value: (value,)), values)
    return Histogram.of(found.finished()[0], marks or [])


def test_thresholds_are_found_in_expressions() -> None:
    found = thresholds(read_rules(Source(RULES), ""), "language.prob")
    assert [(each.number, each.label, each.text) for each in found] == [
        (0.3, "", "language.prob <= 0.3"),
        (0.5, "", "language.prob > 0.5"),
        (0.6, "", "language.prob < 0.6"),
        (0.7, "en", "language.prob > 0.7"),
        (0.9, "", "language.prob > 0.9"),
        (1.0, "", "language.prob <= 1"),
    ]


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
    ],
)
def test_every_value_is_in_one_bin(values: list[float]) -> None:
    found = histogram(values)
    assert sum(each.count for each in found.bins) == len(values)
    assert all(a.high == b.low for a, b in zip(found.bins, found.bins[1:], strict=False))
    assert found.bins[0].low <= min(values)
    assert max(values) <= found.bins[-1].high
    assert len(found.bins) < 50


def test_a_threshold_stands_where_it_lies() -> None:
    shown = text(histogram([0.1, 0.2, 0.9, None], marks=[Threshold(0.5, "en", "unsure", "x < 0.5")])).splitlines()
    assert shown[0] == "x: 3 values, 1 nulls (25.0 %)"
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
        draw(found, str(tmp_path / f"{name}.{suffix}"))
    a, b = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in "ab")
    assert a == b
    assert (b"x &lt; 0.5" in a) == (suffix == "svg")
