"""Labels and examples of documents, and measures of their splits."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, cast

import msgspec
import numpy as np

from toolkit.config.scale import Declared, Scale
from toolkit.errors import ConfigError, DataError, short
from toolkit.learn.evaluate.metrics import Classes, Measured, Numbers
from toolkit.text.kernels.signatures import Array
from toolkit.text.linear.model import Task, grades_of, scores_of

Aggregate = Literal["mean", "median", "majority"]
Label = float | str | list[str]

_AGGREGATES: dict[str, tuple[Aggregate, ...]] = {
    "regression": ("mean", "median", "majority"),
    "ordinal": ("median", "majority"),
    "classes": ("majority",),
    "multilabel": ("majority",),
}
"""Aggregates of a task's annotations; the first is the default."""

_EXPECTED = {
    "regression": "a number",
    "ordinal": "a number",
    "classes": "a text, a whole number, or true or false",
    "multilabel": "a list of texts",
}


def check_aggregate(task: Task, aggregate: Aggregate | None) -> None:
    """Raise ConfigError for an aggregate of another task."""
    if aggregate is not None and aggregate not in _AGGREGATES[task]:
        raise ConfigError(f"aggregate: expected {' or '.join(_AGGREGATES[task])} with {task}, got {aggregate}")


def label_of(task: Task, values: Sequence[Any], weights: Sequence[float], aggregate: Aggregate | None) -> Label | None:
    """Return the label of a document; None if nobody has given one.

    Args:
        task: Task of the labels.
        values: Values of each expression: an annotation, null, or (but for multilabel) a list of such.
        weights: Weights of each expression; nothing if all count alike.
        aggregate: Aggregate of several annotations.

    Raises:
        DataError: for an annotation that is not of the task.
    """
    annotations: list[tuple[Any, float]] = []
    for value, weight in zip(values, weights or [1.0] * len(values), strict=True):
        several = value if isinstance(value, list) and task != "multilabel" else [value]
        annotations += [(_checked(task, item), weight) for item in several if item is not None]
    if not annotations:
        return None
    if task == "multilabel":
        half = sum(weight for _, weight in annotations) / 2
        votes = _votes([(label, weight) for result, weight in annotations for label in result])
        return sorted(label for label, weight in votes.items() if weight > half)
    how = aggregate or _AGGREGATES[task][0]
    if how == "mean":
        return float(sum(value * weight for value, weight in annotations) / sum(weight for _, weight in annotations))
    if how == "median":
        low, high = _middle(annotations)
        return low if task == "ordinal" else (low + high) / 2
    votes = _votes(annotations)
    best = [value for value, weight in votes.items() if weight == max(votes.values())]
    if task == "regression":
        return float(sum(best) / len(best))
    winner: Label = min(best) if task == "ordinal" else best[0]
    return winner


def check_on_scale(task: Task, label: Label | None, scale: Scale) -> None:
    """Raise DataError for a label outside its scale; that of a regression may be between two grades."""
    grades = set(map(str, scale.grades))
    for value in label if isinstance(label, list) else [] if label is None else [label]:
        if value not in grades if isinstance(value, str) else not scale.has(value, exactly=task == "ordinal"):
            raise DataError(f"labels: expected values on {scale}, got {short(value)}")


def _checked(task: Task, value: Any) -> Any:
    """Return an annotation in the form of the task."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if task in ("regression", "ordinal") and is_number:
        return float(value)
    if task == "multilabel":
        results = [value] if isinstance(value, str) else value
        if isinstance(results, list) and all(isinstance(item, str) for item in results):
            return [*dict.fromkeys(results)]
    if task == "classes":
        if isinstance(value, bool):
            return "true" if value else "false"
        if is_number and value == int(value):
            return str(int(value))
        if isinstance(value, str):
            return value
    raise DataError(f"labels: expected {_EXPECTED[task]}, or null, for {task}, got {short(value)}")


def _votes(annotations: Sequence[tuple[Any, float]]) -> dict[Any, float]:
    results: dict[Any, float] = {}
    for value, weight in annotations:
        results[value] = results.get(value, 0.0) + weight
    return results


def _middle(annotations: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the values on both sides of half of the weight. They may be the same."""
    ordered = sorted(annotations)
    half, before = sum(weight for _, weight in annotations) / 2, 0.0
    for i, (value, weight) in enumerate(ordered):
        before += weight
        if before > half:
            return value, value
        if before == half:
            return value, ordered[i + 1][0]
    return ordered[-1][0], ordered[-1][0]


SPLITS = TRAIN, VALID, TEST = ("train", "valid", "test")
"""The splits: what is trained on, what settings are chosen by, and what the model is judged by."""

EXAMPLES = "examples.bin"
"""Of each document that is used a line of JSON: its `Example`."""

BINS = 10
"""In which numbers are counted."""

NONE = "none"
"""Under which documents without any of several labels are counted."""

MOST_LABELS = 1000
"""Classes, labels or grades: more are a mistake, as a rule, say an expression over the id."""


class Example(msgspec.Struct, array_like=True):
    """A document with a label and a split.

    Attributes:
        label: a number, a text, or a list of texts, by the task.
        split: the number of its split.
        pieces: rows that the kind has of it.
    """

    label: Label
    split: int
    pieces: int = 1


DECODER = msgspec.json.Decoder(Example)


class Examples(msgspec.Struct, dict=True):
    """The labelled documents of all shards, in order.

    Attributes:
        task: Task of the model.
        labels: Labels of each document.
        splits: uint8, the number of its split.
        pieces: int64, its rows.
        scale: declared for the labels.
    """

    task: Task
    labels: list[Label]
    splits: Array
    pieces: Array
    scale: Declared = None

    @classmethod
    def of(cls, task: Task, examples: Sequence[Example], scale: Declared = None) -> "Examples":
        return cls(
            task,
            [example.label for example in examples],
            np.array([example.split for example in examples], np.uint8),
            np.array([example.pieces for example in examples], np.int64),
            scale,
        )

    @property
    def range(self) -> tuple[float, float] | None:
        """Return the ends of the declared scale.

        The scores of a regression are clipped to them. None without a scale.
        """
        return self.scale.bounds if self.task == "regression" and isinstance(self.scale, Scale) else None

    @cached_property
    def names(self) -> list[str]:
        """Return the classes or labels, sorted; the grades, rising; nothing for a regression.

        Raises:
            DataError: if there are too many.
        """
        if self.task == "regression":
            return []
        results = {name for label in self.labels for name in names_of(label)}
        if len(results) > MOST_LABELS:
            raise DataError(f"labels: expected at most {MOST_LABELS:,} different ones, got {len(results):,}")
        return sorted(results, key=float) if self.task == "ordinal" else sorted(results)

    @cached_property
    def rows_of(self) -> Array:
        """Return the first row of each document, and the end of all; int64."""
        return np.concatenate([[0], np.cumsum(self.pieces)])

    def of_split(self, split: str) -> Array:
        """Return a mask of the documents of a split; bool."""
        return cast("Array", self.splits == SPLITS.index(split))

    def counts(self) -> dict[str, dict[str, int]]:
        """Return of each split how many documents have each label; of numbers, in bins of a tenth of their range."""
        results: dict[str, Counter[str]] = {name: Counter() for name in SPLITS}
        of_each, order = self._named()
        for split, names in zip(self.splits.tolist(), of_each, strict=True):
            results[SPLITS[split]].update(names)
        return {split: {name: counts[name] for name in order if counts[name]} for split, counts in results.items()}

    def _named(self) -> tuple[list[list[str]], list[str]]:
        """Return the names to count each document by, and their order."""
        if self.task != "regression":
            return [names_of(label) or [NONE] for label in self.labels], [*self.names, NONE]
        values = np.array(self.labels, np.float64)
        different = np.unique(values)
        if len(different) <= BINS:
            return [[f"{value:g}"] for value in values.tolist()], [f"{value:g}" for value in different.tolist()]
        edges = np.linspace(different[0], different[-1], BINS + 1)
        bins = [f"{edges[i]:.3g} to {edges[i + 1]:.3g}" for i in range(BINS)]
        place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, BINS - 1)
        return [[bins[i]] for i in place.tolist()], bins

    def check(self, minimum: int) -> None:
        """Check the number of examples.

        Raises:
            DataError: saying what is missing.
        """
        train = self.of_split(TRAIN)
        if not self.names:
            if train.sum() < minimum:
                raise DataError(
                    f"expected at least {minimum:,} documents with a label in train, got {train.sum():,} (of "
                    f"{len(self.labels):,} in all); label more, or lower `minimum`"
                )
            if len({label for label, is_there in zip(self.labels, train.tolist(), strict=True) if is_there}) < 2:
                raise DataError("expected different labels in train, got the same one everywhere")
            return
        if len(self.names) < 2 and self.task != "multilabel":
            raise DataError(f"labels: expected at least two different ones, got only {self.names[0]!r}")
        counts = self.counts()[TRAIN]
        few = [f"{counts.get(name, 0):,} of {name!r}" for name in self.names if counts.get(name, 0) < minimum]
        if few:
            more = f" and {len(few) - 10} more" if len(few) > 10 else ""
            raise DataError(
                f"expected at least {minimum:,} documents of each label in train, got {', '.join(few[:10])}{more}; "
                "label more, leave them out with `when`, or lower `minimum`"
            )
        if self.task == "multilabel" and (full := [n for n in self.names if counts[n] == int(train.sum())]):
            raise DataError(f"labels: expected documents in train without {full[0]!r}, got none")

    def targets(self) -> Array:
        """Return the expected outputs of the model, in the order of `About.outputs`; float64 (documents, outputs)."""
        if self.task == "regression":
            return np.array(self.labels, np.float64)[:, None]
        place = {name: i for i, name in enumerate(self.names)}
        hot = np.zeros((len(self.labels), len(self.names)))
        for i, label in enumerate(self.labels):
            hot[i, [place[name] for name in names_of(label)]] = 1.0
        if self.task == "ordinal":
            return hot[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:].copy()
        return hot[:, 1:] if self.task == "classes" and len(self.names) == 2 else hot

    def numbers(self) -> Array:
        """Return the number of each document's class or grade, or the label; float64 (documents)."""
        if self.task == "regression":
            return np.array(self.labels, np.float64)
        place = {name: float(i) for i, name in enumerate(self.names)}
        return np.array([place[names_of(label)[0]] for label in self.labels])


def names_of(label: Any) -> list[str]:
    """Return the names of a label; that of a grade is its number."""
    if isinstance(label, list):
        return label
    return [label if isinstance(label, str) else f"{label:.17g}" if label != int(label) else str(int(label))]


MAIN = {"regression": "spearman", "ordinal": "spearman", "classes": "macro_f1", "multilabel": "macro_f1"}
"""The measure by which settings are chosen on valid."""


def measured(examples: Examples, values: Array) -> dict[str, dict[str, Any]]:
    """Return the measures of valid and test, if they have documents.

    Args:
        examples: Examples of all splits.
        values: float64 (documents, outcomes), what the model says.
    """
    by_split = {split: examples.of_split(split) for split in (VALID, TEST)}
    return {split: of_documents(examples, values, rows) for split, rows in by_split.items() if rows.any()}


def on_valid(examples: Examples, values: Array) -> float:
    """Return the measure for choosing settings; -1 if what the model says does not vary."""
    result = of_documents(examples, values, examples.of_split(VALID))[MAIN[examples.task]]
    return -1.0 if result is None else float(result)


def of_documents(examples: Examples, values: Array, rows: Array) -> dict[str, Any]:
    """Return the measures of some documents: ``documents``, those of the task, and ``baseline``.

    The baseline says the same of all: the median of numbers and grades in train, the class that most have there.
    """
    task, labels, train, values = examples.task, examples.names, examples.of_split(TRAIN), values[rows]
    count = {"documents": len(values)}
    if task == "multilabel":
        truth, predictions = examples.targets()[rows] > 0.5, values >= 0.5
        either = np.maximum(truth.sum(axis=0) + predictions.sum(axis=0), 1)  # a label that is nowhere has an F1 of 0
        f1 = 2 * (truth & predictions).sum(axis=0) / either
        results = {"accuracy": float((truth == predictions).all(axis=1).mean()), "macro_f1": float(f1.mean())}
        return count | results | {"baseline": {"accuracy": float((~truth).all(axis=1).mean()), "macro_f1": 0.0}}
    numbers = examples.numbers()
    if task == "classes":
        codes = numbers.astype(np.int64)
        usual = np.bincount(codes[train]).argmax()
        baseline = _of_classes(codes[rows], np.full(len(values), usual), len(labels))
        return count | _of_classes(codes[rows], values.argmax(axis=1), len(labels)) | {"baseline": baseline}
    predictions, on_scale = scores_of(task, labels, values), dict[str, float | None]()
    if task == "ordinal":
        on_scale["accuracy"] = float((values.argmax(axis=1) == numbers[rows]).mean())
        numbers = np.array(grades_of(labels))[numbers.astype(np.int64)]
    elif isinstance(scale := examples.scale, Scale):
        predictions = np.clip(predictions, *scale.bounds)
        if grades := scale.grades:
            of_grades = Numbers(numbers[rows], predictions, np.array(grades, np.float64)).more(
                np.ones(len(predictions))
            )
            on_scale = {name: of_grades[name] for name in ("accuracy", "macro_f1")}
    elif scale is None:
        predictions = np.clip(predictions, numbers.min(), numbers.max())
    whole = Numbers(numbers[rows], predictions).headlines(np.ones(len(predictions)))
    mae = float(np.abs(np.median(numbers[train]) - numbers[rows]).mean())
    metrics = {"mae": whole["mae"], "spearman": whole["spearman"]}
    return count | metrics | on_scale | {"baseline": {"mae": mae, "spearman": None}}


def _of_classes(truth: Array, predictions: Array, number: int) -> Measured:
    return Classes(truth, predictions, number).headlines(np.ones(len(truth)))
