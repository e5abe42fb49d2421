"""From what a model wrote to a score or a label, or to what is wrong with it."""

import json
import math
import re
from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import Any, Literal, NamedTuple

from toolkit.annotate.prompt import LabelForm, Prompt, ScoreForm
from toolkit.errors import short

Aggregate = Literal["mean", "median", "min", "max", "majority"]

EXCERPT = 500
"""Characters that are kept of an answer that cannot be read: its beginning and its end."""


class Said(NamedTuple):
    """What an answer says: a score or a label; else what is wrong with it."""

    score: float | None = None
    label: str | None = None
    error: str = ""


def read(text: str, prompt: Prompt) -> Said:
    """Return what an answer says."""
    form = prompt.form
    if form.regex is not None:
        matches = re.findall(form.regex, text)
        if not matches:
            return Said(error=f"expected {'a label' if prompt.label else 'a score'} as {form.regex}, got none")
        found: Any = matches[-1] if isinstance(matches[-1], str) else matches[-1][0]
    else:
        found, error = _field(text, form.field or "")
        if error:
            return Said(error=error)
    return _label(found, form) if isinstance(form, LabelForm) else _score(found, form)


def _field(text: str, path: str) -> tuple[Any, str]:
    """Return the value of a field of the JSON object that a text is, or has; and what is wrong."""
    begin, end = text.find("{"), text.rfind("}")
    try:
        found = json.loads(text[begin : end + 1] if 0 <= begin < end else text)
    except (ValueError, RecursionError) as error:
        return None, f"expected a JSON object, got: {error}"
    for name in path.split("."):
        if not isinstance(found, dict) or name not in found:
            return None, f"expected an object with {path}, got none"
        found = found[name]
    return found, ""


def _score(found: Any, form: ScoreForm) -> Said:
    try:
        score = math.nan if isinstance(found, bool) else float(found)
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not math.isfinite(score):
        return Said(error=f"expected a number as score, got {short(found)}")
    low, high = form.min, form.max
    if (low is not None and score < low) or (high is not None and score > high):
        bounds = " and ".join(
            f"{word} {bound:g}" for word, bound in (("at least", low), ("at most", high)) if bound is not None
        )
        return Said(error=f"expected a score of {bounds}, got {score:g}")
    return Said(score=score)


def _label(found: Any, form: LabelForm) -> Said:
    known = {label.casefold(): label for label in form.labels}
    label = known.get(found.strip().casefold()) if isinstance(found, str) else None
    if label is None:
        return Said(error=f"expected one of {', '.join(form.labels)}, got {short(found)}")
    return Said(label=label)


def excerpt(text: str) -> str:
    """Return the beginning and the end of a text that is long."""
    half = EXCERPT // 2
    return text if len(text) <= EXCERPT else f"{text[:half]} … {text[-half:]}"


def together(scores: Sequence[float], how: Aggregate) -> float | None:
    """Return what the scores of all samples come to, rounded to six places; None without one.

    The majority is the score that most samples have; of several such ones the mean.
    """
    if not scores:
        return None
    if how == "majority":
        most = max(scores.count(each) for each in scores)
        scores = sorted({each for each in scores if scores.count(each) == most})
    functions: dict[Aggregate, Callable[[Sequence[float]], float]] = {
        "mean": fmean,
        "majority": fmean,
        "median": median,
        "min": min,
        "max": max,
    }
    return round(float(functions[how](scores)), 6)


def most_frequent(labels: Sequence[str]) -> str | None:
    """Return the label that is there most often, the first of those with as many; None without one."""
    return max(labels, key=lambda label: (labels.count(label), -labels.index(label))) if labels else None
