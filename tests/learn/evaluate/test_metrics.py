"""Metrics against scikit-learn's, scipy's and krippendorff's numbers, and against plain Python over repeated documents.

The numbers were written down from scikit-learn 1.9.1, scipy 1.17.1 and krippendorff 0.9.0.
"""

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from toolkit.errors import ConfigError
from toolkit.learn.evaluate import evaluation, metrics
from toolkit.learn.evaluate.evaluation import Judge
from toolkit.learn.evaluate.metrics import Judged, Measured, alpha_numbers
from toolkit.learn.evaluate.predictions import AnswerColumn, joined, part_of

LABELS = [0, 1, 1, 2, 3, 0, 2, 2, 4, 1, 0, 3]
SCORES = [0.2, 1.4, 0.5, 1.5, 2.75, -0.3, 2.5, 1.9, 3.1, 1.9, 1.25, 3.1]
PROBABILITIES = [0.1, 0.4, 0.4, 0.8, 0.9, 0.2, 0.3, 0.7, 0.95, 0.6, 0.4, 0.55]
ONE = ["en", "en", "de", "fr", "de", "en", "fr", "fr", "en", "de", "de", "en"]
OTHER = ["en", "de", "de", "fr", "de", "en", "en", "fr", "en", "fr", "de", "es"]
SETS = [["a"], ["a", "b"], [], ["c"], ["b", "c"], ["a"]]
OTHER_SETS = [["a"], ["a"], [], ["b", "c"], ["b", "c"], ["c"]]


def numbers(labels: Sequence[float], predictions: Sequence[float], *, scale: bool = True) -> metrics.Measure:
    given_labels, given = np.array(labels, dtype=float), np.array(predictions, dtype=float)
    return metrics.Numbers(given_labels, given, metrics.own_grades(given_labels, [given]) if scale else None)


def classes(labels: Sequence[str], predictions: Sequence[str]) -> metrics.Measure:
    table = sorted({*labels, *predictions})
    one, other = (np.array([table.index(each) for each in of]) for of in (labels, predictions))
    return metrics.Classes(one, other, len(table))


def lists(labels: Sequence[Sequence[str]], predictions: Sequence[Sequence[str]]) -> metrics.Measure:
    names = sorted({name for each in [*labels, *predictions] for name in each})
    sets = sorted({tuple(sorted(each)) for each in [*labels, *predictions]})
    one, other = (np.array([sets.index(tuple(sorted(each))) for each in of]) for of in (labels, predictions))
    return metrics.Lists(one, other, [frozenset(names.index(name) for name in each) for each in sets], len(names))


def score(labels: Sequence[bool], predictions: Sequence[float]) -> metrics.Measure:
    return metrics.Score(np.array(labels, dtype=float), np.array(predictions, dtype=float), probable=True)


def measured(found: metrics.Measure, weights: Sequence[float]) -> Measured:
    counts = np.array(weights, dtype=float)
    return {**found.headlines(counts), **found.more(counts)}


def test_numbers_are_those_of_other_libraries() -> None:
    found = measured(numbers(LABELS, SCORES), [1] * 12)
    assert found == pytest.approx(
        {
            "spearman": 0.9211850388877406,
            "mae": 0.4916666666666667,
            "rmse": 0.5989574275355469,
            "bias": sum(SCORES) / 12 - sum(LABELS) / 12,
            "accuracy": 0.6666666666666666,
            "macro_f1": 0.56,
            "macro_precision": 0.5666666666666667,
            "macro_recall": 0.6,
            "weighted_f1": 0.6444444444444445,
            "kappa": 0.8805970149253731,
            "alpha": 0.8990996168582376,
        }
    )
    assert measured(numbers(LABELS, SCORES, scale=False), [1] * 12)["alpha"] == pytest.approx(0.8737504462691896)


def test_scores_are_those_of_other_libraries() -> None:
    found = measured(score([label >= 2 for label in LABELS], PROBABILITIES), [1] * 12)
    del found["ece"]
    assert found == pytest.approx({"auc": 31 / 36, "average_precision": 0.9055555555555554, "brier": 0.14375})


def test_classes_are_those_of_other_libraries() -> None:
    found = classes(ONE, OTHER)
    assert measured(found, [1] * 12) == pytest.approx(
        {"accuracy": 2 / 3, "macro_f1": 0.5208333333333333, "kappa": 0.5151515151515151, "alpha": 0.532994923857868}
    )
    of_labels = found.of_labels(np.ones(12))
    assert of_labels["f1"] == pytest.approx([0.75, 2 / 3, 0, 2 / 3])
    assert of_labels["precision"] == pytest.approx([0.75, 0.75, 0, 2 / 3])
    assert of_labels["recall"] == pytest.approx([0.75, 0.6, math.nan, 2 / 3], nan_ok=True)


def test_sets_are_those_of_other_libraries() -> None:
    assert measured(lists(SETS, OTHER_SETS), [1] * 6) == pytest.approx(
        {"micro_f1": 5 / 7, "macro_f1": 0.7, "accuracy": 0.5, "jaccard": 2 / 3}
    )


# --- plain Python, over documents that are repeated as often as their weights say -------------------------------------

Plain = Callable[[list[tuple[Any, Any]]], "float | None"]


def mid_ranks(values: Sequence[float]) -> list[float]:
    return [sum(other < value for other in values) + sum(other == value for other in values) / 2 for value in values]


def spearman(rows: list[tuple[Any, Any]]) -> float | None:
    one, other = (mid_ranks(column) for column in zip(*rows, strict=True))
    means = [sum(each) / len(rows) for each in (one, other)]
    both = sum((a - means[0]) * (b - means[1]) for a, b in zip(one, other, strict=True))
    spread = [sum((each - mean) ** 2 for each in of) for of, mean in zip((one, other), means, strict=True)]
    return both / math.sqrt(spread[0] * spread[1]) if min(spread) else None


def auc(rows: list[tuple[Any, Any]]) -> float | None:
    pairs = [(a > b) + (a == b) / 2 for label, a in rows for other, b in rows if label and not other]
    return sum(pairs) / len(pairs) if pairs else None


def f1(rows: list[tuple[Any, Any]]) -> float:
    found = list[float]()
    for name in {each for row in rows for each in row}:
        both = sum(a == b == name for a, b in rows)
        found.append(2 * both / sum((a == name) + (b == name) for a, b in rows))
    return sum(found) / len(found)


def alpha(rows: list[tuple[Any, Any]], distance: Callable[[Any, Any], float]) -> float | None:
    values = [each for row in rows for each in row]
    expected = sum(distance(a, b) for a, b in combinations(values, 2)) * 2 / len(values) / (len(values) - 1)
    observed = sum(distance(a, b) for a, b in rows) / len(rows)
    return 1 - observed / expected if expected else None


def ordinal(rows: list[tuple[Any, Any]]) -> float | None:
    values = [each for row in rows for each in row]

    def distance(one: float, other: float) -> float:
        low, high = sorted((one, other))
        between = sum(low <= each <= high for each in values)
        return float((between - (values.count(low) + values.count(high)) / 2) ** 2) if low != high else 0.0

    return alpha(rows, distance)


def kappa(rows: list[tuple[Any, Any]]) -> float | None:
    return _kappa(rows, lambda a, b: a != b)


def quadratic(rows: list[tuple[Any, Any]]) -> float | None:
    return _kappa(rows, lambda a, b: (a - b) ** 2)


def _kappa(rows: list[tuple[Any, Any]], distance: Callable[[Any, Any], float]) -> float | None:
    expected = sum(distance(a, b) for a, _ in rows for _, b in rows) / len(rows)
    return 1 - sum(distance(a, b) for a, b in rows) / expected if expected else None


def held(found: Measured, plain: dict[str, Plain], rows: list[tuple[Any, Any]]) -> None:
    for name, function in plain.items():
        assert found[name] == pytest.approx(function(rows), abs=1e-9), name


WEIGHTS = st.integers(0, 3)
SCALE = st.integers(0, 4).map(float)
BEYOND = st.integers(-8, 28).map(lambda quarters: quarters / 4)
"""Predictions between the ranks of the scale, and on both sides of it."""


def repeated(rows: list[tuple[Any, Any, int]]) -> list[tuple[Any, Any]]:
    return [(label, prediction) for label, prediction, weight in rows for _ in range(weight)]


@given(st.lists(st.tuples(SCALE, BEYOND, WEIGHTS), min_size=1, max_size=20).filter(lambda rows: bool(repeated(rows))))
def test_numbers_with_weights_are_those_of_repeated_documents(rows: list[tuple[float, float, int]]) -> None:
    labels, predictions, weights = zip(*rows, strict=True)

    def on_scale(measure: Plain) -> Plain:
        return lambda rows: measure([(a, min(max(math.floor(b + 0.5), min(labels)), max(labels))) for a, b in rows])

    plain: dict[str, Plain] = {
        "spearman": spearman,
        "mae": lambda rows: sum(abs(a - b) for a, b in rows) / len(rows),
        "rmse": lambda rows: math.sqrt(sum((a - b) ** 2 for a, b in rows) / len(rows)),
        "accuracy": on_scale(lambda rows: sum(a == b for a, b in rows) / len(rows)),
        "macro_f1": on_scale(f1),
        "kappa": on_scale(quadratic),
        "alpha": on_scale(ordinal),
    }
    held(measured(numbers(labels, predictions), weights), plain, repeated(rows))
    interval = measured(numbers(labels, predictions, scale=False), weights)["alpha"]
    assert interval == pytest.approx(alpha(repeated(rows), lambda a, b: (a - b) ** 2), abs=1e-9)


@given(st.lists(st.tuples(st.booleans(), SCALE.map(lambda v: v / 4), WEIGHTS), min_size=1, max_size=20))
def test_scores_with_weights_are_those_of_repeated_documents(rows: list[tuple[bool, float, int]]) -> None:
    labels, predictions, weights = zip(*rows, strict=True)
    if repeated(rows):
        held(measured(score(labels, predictions), weights), {"auc": auc}, repeated(rows))


NAMES = st.sampled_from("abc")


@given(st.lists(st.tuples(NAMES, NAMES, WEIGHTS), min_size=1, max_size=20).filter(lambda rows: bool(repeated(rows))))
def test_classes_with_weights_are_those_of_repeated_documents(rows: list[tuple[str, str, int]]) -> None:
    labels, predictions, weights = zip(*rows, strict=True)
    plain: dict[str, Plain] = {
        "accuracy": lambda rows: sum(a == b for a, b in rows) / len(rows),
        "macro_f1": f1,
        "kappa": kappa,
        "alpha": lambda rows: alpha(rows, lambda a, b: a != b),
    }
    held(measured(classes(labels, predictions), weights), plain, repeated(rows))


@given(st.lists(st.tuples(st.sets(NAMES), st.sets(NAMES), WEIGHTS), min_size=1, max_size=12))
def test_sets_with_weights_are_those_of_repeated_documents(rows: list[tuple[set[str], set[str], int]]) -> None:
    labels, predictions, weights = zip(*rows, strict=True)

    def micro(rows: list[tuple[Any, Any]]) -> float | None:
        total = sum(len(a) + len(b) for a, b in rows)
        return 2 * sum(len(a & b) for a, b in rows) / total if total else None

    def jaccard(rows: list[tuple[Any, Any]]) -> float:
        return sum(len(a & b) / len(a | b) if a | b else 1.0 for a, b in rows) / len(rows)

    if repeated(rows):
        found = measured(lists([sorted(each) for each in labels], [sorted(each) for each in predictions]), weights)
        held(found, {"micro_f1": micro, "jaccard": jaccard}, repeated(rows))


def test_what_is_not_defined_is_none() -> None:
    """One class has no AUC; numbers that do not vary have no correlation and no coefficient."""
    assert measured(score([True, True], [0.1, 0.2]), [1, 1])["auc"] is None
    found = measured(numbers([1, 1], [1, 1]), [1, 1])
    assert [found[name] for name in ("spearman", "kappa", "alpha")] == [None, None, None]
    assert alpha_numbers(np.array([0.1] * 3), np.array([0.1] * 3), np.ones(3)) is None


def test_ranks_in_folds_are_the_mean_of_those_of_each_fold() -> None:
    """What does not vary in a fold orders nothing there; a fold whose labels do not vary says nothing."""
    labels, values, fold = np.array([0.0, 1, 1, 0, 1, 1]), np.array([1.0, 2, 3, 5, 5, 4]), np.array([0, 0, 0, 1, 1, 2])
    both = [numbers(labels[fold == i], values[fold == i], scale=False).headlines(np.ones(3 - i)) for i in (0, 1)]
    assert both[1]["spearman"] is None
    found = metrics.Numbers(labels, values, None, fold).headlines(np.ones(6))
    assert found["spearman"] == pytest.approx((both[0]["spearman"] or 0) / 2)
    assert metrics.Score(labels, values, probable=False, folds=fold).headlines(np.ones(6)) == {"auc": 0.75}


# What is said of predictions: intervals that repeat, paired differences, baselines that do not flatter themselves.


def column(values: Any) -> AnswerColumn:
    return joined([part_of(list(values), "values")], "values")


def hashes(count: int) -> Any:
    return np.random.default_rng(1).integers(0, 2**64, count, dtype=np.uint64)


def judged(labels: Any, predictions: dict[str, Any], sources: Any, *, seed: int = 0, **groups: Any) -> Judged:
    given = {name: column(values) for name, values in predictions.items()}
    codes = np.unique(np.array(sources), return_inverse=True)[1]
    judge = Judge(column(labels), given, codes, hashes(len(labels)), task=None, count=200, seed=seed)
    return judge.judged({"source": column(sources), **{name: column(of) for name, of in groups.items()}}, top=30)


@pytest.fixture(scope="module")
def scores() -> dict[str, list[Any]]:
    """Sources that tell the label, and a score that knows the source and hardly more."""
    draw = np.random.default_rng(5)
    source = draw.integers(0, 4, 600)
    labels = np.clip(np.round(source + draw.normal(0, 0.7, 600)), 0, 5)
    return {
        "labels": [float(each) for each in labels],
        "sources": [f"source {each}" for each in source],
        "by source": [float(each) for each in source + draw.normal(0, 0.05, 600)],
        "good": [float(each) for each in labels + draw.normal(0, 0.4, 600)],
    }


@pytest.mark.slow
def test_source_alone_is_not_better_than_a_score_that_knows_no_more(scores: dict[str, list[Any]]) -> None:
    """In all it ranks well; within sources it does not, and next to the source alone it has nothing to show."""
    found = judged(scores["labels"], {"edu": scores["by source"]}, scores["sources"])
    assert (found.all.scores["edu"]["spearman"].value or 0) > 0.8
    assert all(abs(group.scores["edu"]["spearman"].value or 0) < 0.2 for group in found.groups["source"])
    verdicts = {each.other: each.metrics["spearman"].verdict for each in found.all.differences}
    assert verdicts == {"majority": "better", "source": "worse"}  # it orders by chance what the source leaves as it is
    of_source = [float(source[-1]) for source in scores["sources"]]
    found = judged(scores["labels"], {"source itself": of_source}, scores["sources"])
    assert found.all.differences[-1].metrics["spearman"].verdict == "tie"
    assert "source" not in found.groups["source"][0].scores  # it does not vary there


@pytest.mark.slow
def test_a_score_that_knows_more_is_better(scores: dict[str, list[Any]]) -> None:
    found = judged(scores["labels"], {"good": scores["good"], "other": scores["by source"]}, scores["sources"])
    mine = [each for each in found.all.differences if each.one == "good"]
    assert {metric.verdict for each in mine for metric in each.metrics.values()} == {"better"}
    assert all(each.metrics["mae"].value < 0 < each.metrics["spearman"].value for each in mine)


@pytest.mark.slow
def test_intervals_repeat_and_depend_on_the_seed(scores: dict[str, list[Any]]) -> None:
    again = [judged(scores["labels"], {"edu": scores["good"]}, scores["sources"], seed=seed) for seed in (0, 0, 1)]
    assert again[0] == again[1] != again[2]
    one = judged(scores["labels"], {"edu": scores["good"]}, scores["sources"], half=["a", "b"] * 300)
    assert one.groups["source"] == again[0].groups["source"]  # whatever other groups there are
    for estimate in again[0].all.scores["edu"].values():
        assert estimate.low is not None
        assert estimate.value is not None
        assert estimate.high is not None
        assert estimate.low <= estimate.value <= estimate.high


@pytest.mark.slow
def test_the_same_predictions_are_a_tie(scores: dict[str, list[Any]]) -> None:
    """Their difference is 0 in each round: it is paired."""
    found = judged(scores["labels"], {"one": scores["good"], "two": scores["good"]}, scores["sources"])
    pair = next(each for each in found.all.differences if (each.one, each.other) == ("one", "two"))
    assert {(each.value, each.low, each.high, each.verdict) for each in pair.metrics.values()} == {(0, 0, 0, "tie")}


@pytest.mark.slow
def test_a_paired_interval_is_narrower_than_its_parts(scores: dict[str, list[Any]]) -> None:
    near = [each + 0.01 * (i % 2) for i, each in enumerate(scores["good"])]
    found = judged(scores["labels"], {"one": scores["good"], "two": near}, scores["sources"])
    mine, paired = found.all.scores["one"]["mae"], found.all.differences[0].metrics["mae"]
    assert mine.low is not None
    assert mine.high is not None
    assert paired.high - paired.low < (mine.high - mine.low) / 10


def test_sources_of_one_document_each_predict_nothing() -> None:
    """The mean of a document's source that its own label is in would be the label."""
    labels = np.random.default_rng(2).integers(0, 2, 400)
    found = judged([float(each) for each in labels], {"p": [0.5] * 400}, [f"source {i}" for i in range(400)])
    assert (found.all.scores["source"]["auc"].value or 1) == pytest.approx(0.5, abs=0.05)


def test_a_source_predicts_by_other_folds_only() -> None:
    labels, sources = np.array([0, 1, 1, 0, 2, 2]), np.array([0, 0, 0, 0, 1, 1])
    fold = np.array([0, 1, 2, 3, 0, 0])
    assert metrics.predictions_of_sources(labels, sources, fold, numbers=False).tolist() == [1, 0, 0, 1, 1, 1]
    numbers = metrics.predictions_of_sources(labels.astype(float), sources, fold, numbers=True)
    assert numbers.tolist() == pytest.approx([2 / 3, 1 / 3, 1 / 3, 2 / 3, 2 / 3, 2 / 3])
    nameless = np.where(sources == 0, -1, sources)  # an empty source has no code
    found = metrics.predictions_of_sources(labels.astype(float), nameless, fold, numbers=True)
    assert found.tolist() == numbers.tolist()
    assert metrics.predictions_of_sources(labels, nameless, fold, numbers=False).tolist() == [1, 0, 0, 1, 1, 1]


def test_nulls_are_counted_on_either_side() -> None:
    labels = ["a", None, "b", None, "a"] * 4
    found = judged(labels, {"p": ["a", "a", None, None, "b"] * 4}, ["s", "t"] * 10)
    assert found.all.documents == 8
    assert found.all.nulls == {"label": 4, "prediction": 4, "both": 4}
    assert sum(group.documents + sum(group.nulls.values()) for group in found.groups["source"]) == 20
    assert found.all.scores["p"]["accuracy"].value == 0.5


def test_a_score_that_does_not_vary_within_a_group_is_told() -> None:
    sources = ["one"] * 20 + ["other"] * 20
    found = judged([0.0, 1.0] * 20, {"p": [0.5] * 20 + [i / 20 for i in range(20)]}, sources)
    assert [group.constant for group in found.groups["source"]] == [["p"], []]
    assert found.all.constant == []


def test_groups_of_few_documents_have_no_intervals() -> None:
    found = judged([1.0, 2.0] * 10, {"p": [1.5, 1.0] * 10}, ["few"] * 4 + ["many"] * 16)
    assert [group.scores["p"]["mae"].low is None for group in found.groups["source"]] == [True, False]


def test_rounds_of_many_documents_are_those_of_parts() -> None:
    """Their spread is that of all: for a mean, the standard error."""
    values = np.random.default_rng(3).normal(0, 1, 100_000)

    def metrics_of(some: Any, weights: Any) -> Any:
        return {"mean": float(weights @ values[some]) / weights.sum()}

    estimates = evaluation.bootstrapped([values], lambda some: some, metrics_of, 800, evaluation.generator(0, "all"))
    found = estimates["mean"]
    assert found.low is not None
    assert found.high is not None
    assert found.value == pytest.approx(values.mean())
    assert (found.high - found.low) / 3.92 == pytest.approx(100_000**-0.5, rel=0.1)


@pytest.mark.parametrize(
    ("labels", "predictions", "message"),
    [
        (["good", "bad"], [0.5, 0.2], "say which label is true"),
        ([1.0, 3.0], [True, False], "make truth values of the labels"),
        ([1.0, None], [None, 2.0], "got none: of 2 documents 1 have no label, 1 no prediction"),
        ([None, None], [1.0, 2.0], "got null of all documents"),
    ],
)
def test_what_cannot_be_compared_is_an_error(labels: Any, predictions: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        judged(labels, {"p": predictions}, ["s", "s"])


def test_values_of_several_kinds_are_an_error() -> None:
    with pytest.raises(ConfigError, match='got "x" beside a number'):
        part_of([1, "x"], "p")
    with pytest.raises(ConfigError, match="label and number"):
        joined([part_of([1], "p"), part_of([None], "p"), part_of(["x"], "p")], "p")


def test_columns_of_shards_are_one() -> None:
    found = joined([part_of(["b", None], "p"), part_of([None], "p"), part_of(["a", "b"], "p")], "p")
    assert found.table == ["a", "b"]
    assert found.values.tolist() == [1, -1, -1, 0, 1]
    assert joined([part_of([["b", "a", "b"], []], "p")], "p").table == [[], ["a", "b"]]
