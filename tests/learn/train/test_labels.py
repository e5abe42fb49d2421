"""Labels of several annotations, and the examples that are made of them."""

from typing import Any

import numpy as np
import pytest

from toolkit.errors import ConfigError, DataError
from toolkit.learn.train.examples import SPLITS, Example, Examples, check_aggregate, label_of
from toolkit.text.linear.model import Task


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
        (
            "regression",
            {"train": [1.0], "test": [1.0]},
            "at least 2 documents with a label in train, got 1 .of 2",
        ),
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
