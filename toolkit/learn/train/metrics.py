"""What the card of a model says of its test split: few measures, beside a model that knows nothing of the text."""

from typing import Any

import numpy as np

from toolkit.config.scale import Scale, nearest
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
    found = {}
    for split in (VALID, TEST):
        there = examples.of_split(split)
        if there.any():
            found[split] = of_documents(examples, values, there)
    return found


def on_valid(examples: Examples, values: Array) -> float:
    """Return the measure by which settings are chosen; -1 if what the model says does not vary."""
    found = of_documents(examples, values, examples.of_split(VALID))[MAIN[examples.task]]
    return -1.0 if found is None else float(found)


def of_documents(examples: Examples, values: Array, there: Array) -> dict[str, Any]:
    """Return the measures of some documents: ``documents``, those of the task, and ``baseline``.

    The baseline says the same of all: the median of numbers and grades in train, the class that most have there.
    """
    task, labels, known = examples.task, examples.names, examples.of_split(TRAIN)
    if task == "multilabel":
        truth, said = examples.targets()[there] > 0.5, values[there] >= 0.5
        return {
            "documents": int(there.sum()),
            "accuracy": float((truth == said).all(axis=1).mean()),
            "macro_f1": float(np.mean([f1(truth[:, k], said[:, k]) for k in range(truth.shape[1])])),
            "baseline": {"accuracy": float((~truth).all(axis=1).mean()), "macro_f1": 0.0},
        }
    numbers = examples.numbers()
    if task == "classes":
        most = np.bincount(numbers[known].astype(np.int64), minlength=len(labels)).argmax()
        truth, said = numbers[there], values[there].argmax(axis=1)
        return {
            "documents": int(there.sum()),
            **_of_classes(truth, said, len(labels)),
            "baseline": _of_classes(truth, np.full(len(truth), most), len(labels)),
        }
    if task == "ordinal":
        grades = np.array(grades_of(labels))
        accuracy = {"accuracy": float((values[there].argmax(axis=1) == numbers[there]).mean())}
        numbers = grades[numbers.astype(np.int64)]
    else:
        accuracy = dict[str, float]()
    truth, said = numbers[there], scores_of(task, labels, values[there])
    if task == "regression" and isinstance(examples.scale, Scale):
        said = np.clip(said, *examples.scale.bounds)
        accuracy = _on_grades(truth, said, examples.scale)
    usual = float(np.median(numbers[known]))
    return {
        "documents": int(there.sum()),
        "mae": float(np.abs(said - truth).mean()),
        "spearman": spearman(said, truth),
        **accuracy,
        "baseline": {"mae": float(np.abs(usual - truth).mean()), "spearman": None},
    }


def _on_grades(truth: Array, said: Array, scale: Scale) -> dict[str, float]:
    """Return accuracy and macro F1 of numbers as grades of their scale; nothing if it has none."""
    if not scale.grades:
        return {}
    grades = np.array(scale.grades, np.float64)
    one, other = (np.searchsorted(grades, nearest(values, grades)) for values in (truth, said))
    return _of_classes(one, other, len(grades))


def _of_classes(truth: Array, said: Array, classes: int) -> dict[str, float]:
    there = [k for k in range(classes) if (truth == k).any() or (said == k).any()]
    return {
        "accuracy": float((truth == said).mean()),
        "macro_f1": float(np.mean([f1(truth == k, said == k) for k in there])),
    }


def f1(truth: Array, said: Array) -> float:
    """Return 2 x both / (truth + said); 0 where neither has any."""
    total = int(truth.sum() + said.sum())
    return 2 * int((truth & said).sum()) / total if total else 0.0


def spearman(one: Array, other: Array) -> float | None:
    """Return the correlation of ranks, ties having their mean rank; None where one does not vary."""
    a, b = _ranks(one), _ranks(other)
    a, b = a - a.mean(), b - b.mean()
    both = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / both if both else None


def _ranks(values: Array) -> Array:
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means: Array = (ends - counts + ends - 1) / 2
    return means[place]
