"""Labels of several annotations, and the examples that are made of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolkit.errors import ConfigError, DataError
from toolkit.exchange.checksummed import write_sealed
from toolkit.learn.train.examples import SPLITS, Example, Examples, check_aggregate, label_of
from toolkit.learn.train.kinds.linear import solver
from toolkit.learn.train.kinds.linear.solver import BUCKETS, ROWS, TIMES, CountedNgrams, Problem, solve
from toolkit.text.line_table import LineTable
from toolkit.text.linear import model
from toolkit.text.linear.model import Task
from toolkit.text.words import Words


@pytest.mark.parametrize(
    ("task", "values", "weights", "aggregate", "expected"),
    [
        ("regression", [1, 2.5], [], None, 1.75),
        ("regression", [[1, 2, None, 6], None], [], None, 3.0),
        ("regression", [1, 3], [3, 1], None, 1.5),
        ("regression", [1, 2, 10], [], "median", 2.0),
        ("regression", [1, 2, 3, 10], [], "median", 2.5),
        ("regression", [1, 2, 10], [1, 1, 5], "median", 10.0),
        ("regression", [[1, 2, 2, 1, 5]], [], "majority", 1.5),
        ("regression", [None, [None]], [], None, None),
        ("ordinal", [[4, 1, 2, 2]], [], None, 2.0),
        ("ordinal", [[1, 2]], [], "median", 1.0),
        ("ordinal", [[3, 1]], [], "majority", 1.0),
        ("classes", ["spam", "ham", "ham"], [], None, "ham"),
        ("classes", ["spam", "ham"], [], None, "spam"),
        ("classes", ["spam", "ham"], [1, 2], None, "ham"),
        ("classes", [True], [], None, "true"),
        ("classes", [1.0], [], None, "1"),
        ("classes", [0], [], None, "0"),
        ("multilabel", [["a", "b", "a"]], [], None, ["a", "b"]),
        ("multilabel", ["b"], [], None, ["b"]),
        ("multilabel", [[]], [], None, []),
        ("multilabel", [["a", "b"], ["b"], None], [], None, ["b"]),
        ("multilabel", [["a"], ["b"]], [1, 3], None, ["b"]),
    ],
)
def test_annotations_become_one_label(
    task: Task, values: list[Any], weights: list[float], aggregate: Any, expected: Any
) -> None:
    assert label_of(task, values, weights, aggregate) == expected


@pytest.mark.parametrize(
    ("task", "value"),
    [
        ("regression", "3"), ("regression", True), ("regression", float("nan")), ("regression", {"a": 1}),
        ("ordinal", "low"), ("classes", 1.5), ("classes", {"a": 1}), ("multilabel", 1), ("multilabel", ["a", 1]),
    ],
)  # fmt: skip
def test_annotations_of_another_task_are_refused(task: Task, value: Any) -> None:
    with pytest.raises(DataError, match=f"labels: expected .* for {task}, got"):
        label_of(task, [value], [], None)


def test_aggregates_that_a_task_does_not_have() -> None:
    for task, aggregate in (("classes", "mean"), ("ordinal", "mean"), ("multilabel", "median")):
        with pytest.raises(ConfigError, match="aggregate: expected"):
            check_aggregate(task, aggregate)  # type: ignore[arg-type]


def examples(task: Task, labels: dict[str, list[Any]]) -> Examples:
    return Examples.of(task, [Example(each, SPLITS.index(name)) for name, found in labels.items() for each in found])


@pytest.mark.parametrize(
    ("task", "labels", "message"),
    [
        ("regression", {"train": [1.0], "test": [1.0]}, "at least 2 documents with a label in train, got 1 .of 2"),
        ("regression", {"train": [1.0, 1.0]}, "different labels in train"),
        ("classes", {"train": ["a", "a", "b"], "test": ["c"]}, "got 1 of 'b', 0 of 'c'; label more"),
        ("classes", {"train": ["a", "a"]}, "at least two different ones, got only 'a'"),
        ("ordinal", {"train": [1.0, 1.0, 2.5]}, "got 1 of '2.5'"),
        ("multilabel", {"train": [["a"], ["a", "b"]]}, "got 1 of 'b'"),
        ("multilabel", {"train": [["a"], ["a"]]}, "documents in train without 'a', got none"),
    ],
)
def test_what_is_missing_is_said(task: Task, labels: dict[str, list[Any]], message: str) -> None:
    with pytest.raises(DataError, match=message):
        examples(task, labels).check(2)


def test_targets_are_in_the_order_of_the_outputs() -> None:
    assert examples("classes", {"train": ["b", "a"]}).targets().tolist() == [[1], [0]]
    assert examples("classes", {"train": ["b", "a", "c"]}).targets().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert examples("multilabel", {"train": [["b"], [], ["a", "b"]]}).targets().tolist() == [[0, 1], [0, 0], [1, 1]]
    assert examples("ordinal", {"train": [10.0, 1.0, 2.0]}).targets().tolist() == [[1, 1], [0, 0], [1, 0]]
    assert examples("ordinal", {"train": [10.0, 1.0, 2.0]}).names == ["1", "2", "10"]


def test_numbers_are_counted_in_bins() -> None:
    assert examples("regression", {"train": [1.0, 1.0], "test": [2.5]}).counts() == {
        "train": {"1": 2}, "valid": {}, "test": {"2.5": 1},
    }  # fmt: skip
    many = examples("regression", {"train": [float(i) for i in range(101)]}).counts()["train"]
    assert many == {f"{i * 10} to {i * 10 + 10}": 10 for i in range(9)} | {"90 to 100": 11}
    assert np.sum([*many.values()]) == 101


# Ridge and logistic regression out of core are those of dense algebra.

SIZE = 256


@pytest.fixture
def texts(tmp_path: Path) -> tuple[CountedNgrams, np.ndarray]:
    """Rows of two shards, and the same as a dense matrix of tf, before idf and lengths."""
    random = np.random.default_rng(5)
    words = [f"w{i}" for i in range(60)]
    orders = model.Orders(1, 1, 1, 0, SIZE)
    dense = []
    for shard in ("a", "b"):
        listed = [" ".join(random.choice(words, size=random.integers(0, 30))) for _ in range(40)]
        found = model.count(Words.of(LineTable.of(listed), "segments"), orders)
        write_sealed(str(tmp_path / shard / BUCKETS), found.buckets.tobytes())
        write_sealed(str(tmp_path / shard / TIMES), found.times.tobytes())
        write_sealed(str(tmp_path / shard / ROWS), np.diff(found.bounds).astype("<u4").tobytes())
        for a, b in zip(found.bounds, found.bounds[1:], strict=False):
            row = np.zeros(SIZE)
            row[found.buckets[a:b]] = model.tf_table()[found.times[a:b]]
            dense.append(row)
    return CountedNgrams([str(tmp_path / "a"), str(tmp_path / "b")], SIZE), np.array(dense)


def test_products_out_of_core_are_those_of_the_matrix(
    texts: tuple[CountedNgrams, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, dense = texts
    random = np.random.default_rng(1)
    vector, factors = random.normal(size=SIZE), random.normal(size=len(dense))
    monkeypatch.setattr(solver, "PIECE", 50)
    assert len([*rows.pieces()]) > 10
    assert rows.product(vector) == pytest.approx(dense @ vector)
    assert rows.sum(factors) == pytest.approx(dense.T @ factors)
    assert rows.lengths(vector) == pytest.approx(np.maximum(np.linalg.norm(dense * vector, axis=1), 1e-150))
    half = factors > 0
    assert rows.frequencies(half).tolist() == (dense[half] > 0).sum(axis=0).tolist()
    assert rows.back_and_forth(vector, lambda found, own: found * factors[own]) == pytest.approx(
        dense.T @ (factors * (dense @ vector))
    )


@pytest.mark.parametrize("logistic", [False, True])
def test_the_gradient_is_nothing_at_the_solution(texts: tuple[CountedNgrams, np.ndarray], *, logistic: bool) -> None:
    """And rows without weight are without effect: the test split is one of them."""
    rows, dense = texts
    random = np.random.default_rng(2)
    idf = 1 + random.random(SIZE)
    lengths = rows.lengths(idf)
    weights = np.where(np.arange(len(dense)) % 4 == 0, 0.0, 1 + random.random(len(dense)))
    hidden = dense @ random.normal(size=SIZE)
    target = (hidden > np.median(hidden)).astype(np.float64) if logistic else hidden
    matrix = dense * idf / lengths[:, None]
    found = solve(Problem(rows, idf, lengths, weights, target, logistic, 0.1))
    sums = matrix @ found.weights + found.intercept
    assert found.sums == pytest.approx(sums)
    error = weights * ((1 / (1 + np.exp(-sums)) if logistic else sums) - target)
    start = weights * ((weights @ target / weights.sum()) - target)
    gradient = np.append(matrix.T @ error + 0.1 * found.weights, error.sum())
    assert np.linalg.norm(gradient) < 1e-2 * np.linalg.norm(np.append(matrix.T @ start, start.sum()))
    target[weights == 0] += 5
    again = solve(Problem(rows, idf, lengths, weights, target, logistic, 0.1))
    assert again.weights.tobytes() == found.weights.tobytes()
