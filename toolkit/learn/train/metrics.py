"""What the card of a model says of its test split: few measures, beside a model that knows nothing of the text."""

from typing import Any

import numpy as np

from toolkit.config.scale import Scale
from toolkit.learn.evaluate.metrics import Measured, Numbers, classes
from toolkit.learn.train.examples import TEST, TRAIN, VALID, Examples
from toolkit.text.kernels.signatures import Array
from toolkit.text.linear.model import grades_of, scores_of

MAIN = {"regression": "spearman", "ordinal": "spearman", "classes": "macro_f1", "multilabel": "macro_f1"}
"""The measure by which settings are chosen on valid."""


def measured(examples: Examples, values: Array) -> dict[str, dict[str, Any]]:
    """Return the measures of valid and test, those that have documents.

    Args:
        examples: of all splits.
        values: float64 (documents, outcomes), what the model says.
    """
    there = {split: examples.of_split(split) for split in (VALID, TEST)}
    return {split: of_documents(examples, values, rows) for split, rows in there.items() if rows.any()}


def on_valid(examples: Examples, values: Array) -> float:
    """Return the measure by which settings are chosen; -1 if what the model says does not vary."""
    found = of_documents(examples, values, examples.of_split(VALID))[MAIN[examples.task]]
    return -1.0 if found is None else float(found)


def of_documents(examples: Examples, values: Array, there: Array) -> dict[str, Any]:
    """Return the measures of some documents: ``documents``, those of the task, and ``baseline``.

    The baseline says the same of all: the median of numbers and grades in train, the class that most have there.
    """
    task, labels, known, values = examples.task, examples.names, examples.of_split(TRAIN), values[there]
    count = {"documents": len(values)}
    if task == "multilabel":
        truth, said = examples.targets()[there] > 0.5, values >= 0.5
        either = np.maximum(truth.sum(axis=0) + said.sum(axis=0), 1)  # a label that is nowhere has an F1 of 0
        f1 = 2 * (truth & said).sum(axis=0) / either
        found = {"accuracy": float((truth == said).all(axis=1).mean()), "macro_f1": float(f1.mean())}
        return count | found | {"baseline": {"accuracy": float((~truth).all(axis=1).mean()), "macro_f1": 0.0}}
    numbers = examples.numbers()
    if task == "classes":
        codes = numbers.astype(np.int64)
        usual = np.bincount(codes[known]).argmax()
        baseline = _of_classes(codes[there], np.full(len(values), usual), len(labels))
        return count | _of_classes(codes[there], values.argmax(axis=1), len(labels)) | {"baseline": baseline}
    said, on_scale = scores_of(task, labels, values), dict[str, float | None]()
    if task == "ordinal":
        on_scale["accuracy"] = float((values.argmax(axis=1) == numbers[there]).mean())
        numbers = np.array(grades_of(labels))[numbers.astype(np.int64)]
    elif isinstance(examples.scale, Scale):
        said = np.clip(said, *examples.scale.bounds)
        if grades := examples.scale.grades:
            of_grades = Numbers(numbers[there], said, np.array(grades, np.float64)).more(np.ones(len(said)))
            on_scale = {name: of_grades[name] for name in ("accuracy", "macro_f1")}
    whole = Numbers(numbers[there], said).headlines(np.ones(len(said)))
    mae = float(np.abs(np.median(numbers[known]) - numbers[there]).mean())
    found_ = {"mae": whole["mae"], "spearman": whole["spearman"]}
    return count | found_ | on_scale | {"baseline": {"mae": mae, "spearman": None}}


def _of_classes(truth: Array, said: Array, number: int) -> Measured:
    return classes(truth, said, number).headlines(np.ones(len(truth)))
