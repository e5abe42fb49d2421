"""What is said of predictions: intervals that repeat, paired differences, baselines that do not flatter themselves."""

from typing import Any

import numpy as np
import pytest

from toolkit.errors import ConfigError
from toolkit.learn.evaluate import judging, metrics
from toolkit.learn.evaluate.judged import Judged
from toolkit.learn.evaluate.judging import Judge
from toolkit.learn.evaluate.predictions import Column, joined, part_of


def column(values: Any) -> Column:
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


def test_a_score_that_knows_more_is_better(scores: dict[str, list[Any]]) -> None:
    found = judged(scores["labels"], {"good": scores["good"], "other": scores["by source"]}, scores["sources"])
    for each in found.all.differences:
        if each.one == "good":
            assert {metric.verdict for metric in each.metrics.values()} == {"better"}
            assert each.metrics["mae"].value < 0 < each.metrics["spearman"].value


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


def test_the_same_predictions_are_a_tie(scores: dict[str, list[Any]]) -> None:
    """Their difference is 0 in each round: it is paired."""
    found = judged(scores["labels"], {"one": scores["good"], "two": scores["good"]}, scores["sources"])
    pair = next(each for each in found.all.differences if (each.one, each.other) == ("one", "two"))
    assert {(each.value, each.low, each.high, each.verdict) for each in pair.metrics.values()} == {(0, 0, 0, "tie")}


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

    def measures(some: Any) -> Any:
        return lambda weights: {"mean": float(weights @ values[some]) / weights.sum()}

    points, intervals = judging.bootstrapped([values], measures, 800, judging.generator(0, "all"))
    found = intervals["mean"]
    assert found is not None
    assert points["mean"] == pytest.approx(values.mean())
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
