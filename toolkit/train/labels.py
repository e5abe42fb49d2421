"""Labels: what the values of a document say of it, several annotations as one, and checks that they are of the task."""

import math
from collections.abc import Sequence
from typing import Any, Literal

from toolkit.errors import ConfigError, DataError, short
from toolkit.text.linear.model import Task

Aggregate = Literal["mean", "median", "majority"]
Label = float | str | list[str]

_AGGREGATES: dict[str, tuple[Aggregate, ...]] = {
    "regression": ("mean", "median", "majority"),
    "ordinal": ("median", "majority"),
    "classes": ("majority",),
    "multilabel": ("majority",),
}
"""What annotations of a task can become; the first is the default."""

_EXPECTED = {
    "regression": "a number",
    "ordinal": "a number",
    "classes": "a text, a whole number, or true or false",
    "multilabel": "a list of texts",
}


def check_aggregate(task: Task, aggregate: Aggregate | None) -> None:
    """Raise ConfigError if annotations of a task cannot become that."""
    if aggregate is not None and aggregate not in _AGGREGATES[task]:
        raise ConfigError(f"aggregate: expected {' or '.join(_AGGREGATES[task])} with {task}, got {aggregate}")


def label_of(task: Task, values: Sequence[Any], weights: Sequence[float], aggregate: Aggregate | None) -> Label | None:
    """Return the label of a document; None if nobody has given one.

    Args:
        task: what labels are for.
        values: of each expression: an annotation, null, or (but for multilabel) a list of such.
        weights: of each expression; nothing if all count alike.
        aggregate: what becomes of several.

    Raises:
        DataError: for an annotation that is not of the task.
    """
    given: list[tuple[Any, float]] = []
    for value, weight in zip(values, weights or [1.0] * len(values), strict=True):
        several = value if isinstance(value, list) and task != "multilabel" else [value]
        given += [(_checked(task, each), weight) for each in several if each is not None]
    if not given:
        return None
    if task == "multilabel":
        half = sum(weight for _, weight in given) / 2
        votes = _votes([(label, weight) for found, weight in given for label in found])
        return sorted(label for label, weight in votes.items() if weight > half)
    how = aggregate or _AGGREGATES[task][0]
    if how == "mean":
        return float(sum(value * weight for value, weight in given) / sum(weight for _, weight in given))
    if how == "median":
        low, high = _middle(given)
        return low if task == "ordinal" else (low + high) / 2
    votes = _votes(given)
    best = [value for value, weight in votes.items() if weight == max(votes.values())]
    if task == "regression":
        return float(sum(best) / len(best))
    winner: Label = min(best) if task == "ordinal" else best[0]
    return winner


def _checked(task: Task, value: Any) -> Any:
    """Return an annotation in the form of the task."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if task in ("regression", "ordinal") and is_number:
        return float(value)
    if task == "multilabel":
        found = [value] if isinstance(value, str) else value
        if isinstance(found, list) and all(isinstance(each, str) for each in found):
            return [*dict.fromkeys(found)]
    if task == "classes":
        if isinstance(value, bool):
            return "true" if value else "false"
        if is_number and value == int(value):
            return str(int(value))
        if isinstance(value, str):
            return value
    raise DataError(f"labels: expected {_EXPECTED[task]}, or null, for {task}, got {short(value)}")


def _votes(given: Sequence[tuple[Any, float]]) -> dict[Any, float]:
    found: dict[Any, float] = {}
    for value, weight in given:
        found[value] = found.get(value, 0.0) + weight
    return found


def _middle(given: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the values between which half of the weight lies, which may be the same."""
    ordered = sorted(given)
    half, before = sum(weight for _, weight in given) / 2, 0.0
    for i, (value, weight) in enumerate(ordered):
        before += weight
        if before > half:
            return value, value
        if before == half:
            return value, ordered[i + 1][0]
    return ordered[-1][0], ordered[-1][0]
