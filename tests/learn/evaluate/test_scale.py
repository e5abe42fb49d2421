"""Scales of labels: what they may be, and that published metrics come out as their authors have them."""

from typing import Any

import numpy as np
import pytest

from tests.learn.evaluate.test_metrics import column, hashes
from toolkit.config.scale import Scale, declared_in, nearest
from toolkit.errors import ConfigError
from toolkit.learn.evaluate.evaluation import Judge
from toolkit.learn.evaluate.metrics import Judged


def judged(labels: Any, predictions: Any, scale: Any) -> Judged:
    given = {"edu": column(predictions)}
    count = len(labels)
    judge = Judge(column(labels), given, np.zeros(count), hashes(count), task=None, count=0, seed=0, scale=scale)
    return judge.judged({}, top=30)


def value(found: Judged, metric: str) -> float:
    value = found.all.scores["edu"][metric].value
    assert value is not None
    return value


FINEWEB_EDU = [
    [2791, 2858, 45, 0, 0, 0],
    [919, 22343, 3180, 69, 1, 0],
    [3, 3225, 6330, 757, 7, 0],
    [1, 66, 1473, 1694, 173, 0],
    [0, 4, 98, 420, 283, 2],
    [0, 0, 18, 85, 21, 1],
]
"""Labels by predictions of the FineWeb-Edu classifier on its 46,867 test documents, from its model card."""


def test_metrics_of_fineweb_edu_are_those_of_its_card() -> None:
    """The classifier gives any number: here it misses its grade by less than a half, and the scale by any amount."""
    draw = np.random.default_rng(3)
    labels = [float(label) for label, row in enumerate(FINEWEB_EDU) for count in row for _ in range(count)]
    predicted = np.array([float(p) for row in FINEWEB_EDU for p, count in enumerate(row) for _ in range(count)])
    raw = predicted + draw.uniform(-0.499, 0.499, len(predicted))
    raw[predicted == 5] += 3
    raw[predicted == 0] -= 2
    found = judged(labels, raw.tolist(), Scale(range=(0, 5), step=1))
    names = ("accuracy", "macro_precision", "macro_recall", "macro_f1", "weighted_f1")
    assert [round(value(found, name), 2) for name in names] == [0.71, 0.60, 0.47, 0.50, 0.71]
    details = found.details["edu"]
    assert [(each.label, each.documents, round(each.f1.value or 0, 2)) for each in details.labels] == [
        (0, 5694, 0.59), (1, 26512, 0.81), (2, 10322, 0.59), (3, 3407, 0.53), (4, 807, 0.44), (5, 125, 0.02),
    ]  # fmt: skip
    of_three = next(each for each in details.grades if each.grade == 3)
    assert of_three.documents == 4339
    assert of_three.macro_f1.value == pytest.approx(0.8267, abs=5e-5)  # the card: 82 %
    assert sum(pair.documents for pair in details.confusion if (pair.label, pair.prediction) == (3, 4)) == 173


def test_metrics_are_those_of_scikit_learn() -> None:
    """Those that ml_filter computes of grades, with labels that are means of annotators, and none in two grades."""
    sklearn = pytest.importorskip("sklearn.metrics", reason="compares with scikit-learn")
    draw = np.random.default_rng(4)
    labels = draw.choice([0, 0.5, 1, 1.75, 2, 3, 4], 400)
    raw = labels + draw.normal(0, 1.5, 400)
    found = judged(labels.tolist(), raw.tolist(), Scale(range=(0, 6), step=1))
    one, other = np.floor(labels + 0.5), np.clip(np.floor(raw + 0.5), 0, 6)
    for average in ("macro", "weighted"):
        assert value(found, f"{average}_f1") == pytest.approx(sklearn.f1_score(one, other, average=average))
    assert value(found, "macro_precision") == pytest.approx(
        sklearn.precision_score(one, other, average="macro", zero_division=0)
    )
    assert value(found, "mae") == pytest.approx(sklearn.mean_absolute_error(labels, np.clip(raw, 0, 6)))
    for grade in found.details["edu"].grades[:4]:
        a, b = one >= grade.grade, other >= grade.grade
        assert grade.accuracy.value == pytest.approx(sklearn.accuracy_score(a, b))
        assert grade.weighted_f1.value == pytest.approx(sklearn.f1_score(a, b, average="weighted"))
        assert grade.f1.value == pytest.approx(sklearn.f1_score(a, b))


def test_without_a_scale_the_labels_are_it_and_none_is_no_scale() -> None:
    labels, raw = [0.0, 1.0, 2.0, 1.0], [-1.0, 1.2, 5.0, 0.5]
    own, none = judged(labels, raw, None), judged(labels, raw, "none")
    assert own.scale == Scale(values=[0, 1, 2])
    assert value(own, "accuracy") == 1.0
    assert value(own, "mae") == pytest.approx((0 + 0.2 + 0 + 0.5) / 4)
    assert value(none, "mae") == pytest.approx((1 + 0.2 + 3 + 0.5) / 4)
    assert "accuracy" not in none.all.scores["edu"]
    assert none.level == "interval"
    assert value(judged(labels, raw, Scale(range=(0, 2))), "mae") == pytest.approx((0 + 0.2 + 0 + 0.5) / 4)


def test_labels_that_are_not_on_the_scale_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"expected labels on the scale from 0 to 2 in steps of 1, got 3\.0"):
        judged([0.0, 3.0], [1.0, 2.0], Scale(range=(0, 2), step=1))
    with pytest.raises(ConfigError, match="expected labels on the scale bad, good, got labels as numbers"):
        judged([0.0, 3.0], [1.0, 2.0], Scale(values=["bad", "good"]))
    with pytest.raises(ConfigError, match="expected labels on the scale bad, good, got 'fair'"):
        judged(["good", "fair"], ["good", "bad"], Scale(values=["bad", "good"]))


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        (Scale(), r"expected \{values: …\}|expected \{values"),
        (Scale(values=[0, 1], range=(0, 1)), "expected"),
        (Scale(values=[1, 0]), "expected numbers that rise, or texts, got"),
        (Scale(values=["a", 1]), "expected numbers that rise, or texts, got"),
        (Scale(values=["a", "a"]), "expected 2 to 1,000 different values, got"),
        (Scale(values=["a", "b"], step=1), "expected `step` only with `range`"),
        (Scale(range=(5, 0)), r"range: expected a least and a greater number, got \[5, 0\]"),
        (Scale(range=(0, 5), step=2), "step: expected a part of the range from 0 to 5"),
        (Scale(range=(0, float("nan"))), "range: expected a least and a greater number"),
    ],
)
def test_what_can_be_no_scale_is_refused(scale: Scale, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        scale.check()


def test_grades() -> None:
    half = Scale(range=(0, 2), step=0.5)
    half.check()
    assert half.grades == [0, 0.5, 1, 1.5, 2]
    assert nearest(np.array([-1, 0.2, 0.25, 1.9, 7]), np.array(half.grades)).tolist() == [0, 0, 0.5, 2, 2]
    assert [half.has(value) for value in (0.5, 0.7, 2.5, "a")] == [True, False, False, False]
    assert half.has(0.7, exactly=False)
    assert not Scale(range=(0, 1)).grades


@pytest.mark.parametrize(
    ("settings", "scale"),
    [
        ({"align": {"format": "jsonl", "scale": {"range": [0, 5], "step": 1}}}, Scale(range=(0, 5), step=1)),
        ({"align": {"format": "annotations", "labels": [2, 0, 1]}}, Scale(values=[0, 1, 2])),
        ({"options": {"prompt": {"score": {"min": 0, "max": 5}}}}, Scale(range=(0, 5))),
        ({"options": {"prompt": {"score": {"min": 0, "max": 5}}, "scale": "none"}}, "none"),
        ({"options": {"prompt": {}, "label": {"labels": ["yes", "no"]}}}, Scale(values=["yes", "no"])),
        ({"options": {"prompt": "a text"}}, None),
        ({}, None),
    ],
)
def test_what_declares_a_scale(settings: dict[str, Any], scale: Any) -> None:
    assert declared_in(settings) == scale
