"""The result of an evaluation: scores with intervals, paired differences, groups."""

from typing import Any, Literal

import msgspec

from toolkit.config.scale import Scale
from toolkit.learn.evaluate.metrics import Task

MAJORITY, SOURCE = "majority", "source"
"""Names of the baselines."""

Verdict = Literal["better", "worse", "tie"]


class Estimate(msgspec.Struct, frozen=True):
    """A metric: its value, and its 95 % interval; None where it is not defined."""

    value: float | None
    low: float | None = None
    high: float | None = None


class Paired(msgspec.Struct, frozen=True):
    """A difference of two predictions in one metric, on the same documents.

    Attributes:
        value: Value of the first less that of the second, with its 95 % interval.
        verdict: Verdict of the first: a tie if the interval has 0 in it.
    """

    value: float
    low: float
    high: float
    verdict: Verdict


class Difference(msgspec.Struct, frozen=True):
    """The differences of two predictions in each metric with a better side."""

    one: str
    other: str
    metrics: dict[str, Paired]


class LabelScores(msgspec.Struct, frozen=True):
    """Scores of one label, and the number of its documents."""

    label: Any
    documents: int
    precision: float | None
    recall: float | None
    f1: Estimate


class GradeScores(msgspec.Struct, frozen=True):
    """Scores of telling documents of at least a grade from others.

    Attributes:
        grade: the least of them.
        documents: Number of documents with a label of at least the grade.
        accuracy: share of documents on the right side.
        f1: F1 of the documents of at least the grade.
        macro_f1, weighted_f1: means of this F1 and that of the others.
    """

    grade: float
    documents: int
    accuracy: Estimate
    f1: Estimate
    macro_f1: Estimate
    weighted_f1: Estimate


class CalibrationBin(msgspec.Struct, frozen=True):
    """A bin of a calibration curve: predictions from `low` to `high`, their mean, and that of the labels."""

    low: float
    high: float
    documents: int
    prediction: float
    label: Estimate


class ConfusedPair(msgspec.Struct, frozen=True):
    """A label, a prediction, and the number of documents with both."""

    label: Any
    prediction: Any
    documents: int


class Details(msgspec.Struct, kw_only=True):
    """Details of a prediction, over all documents only."""

    labels: list[LabelScores] = []
    grades: list[GradeScores] = []
    confusion: list[ConfusedPair] = []
    confusion_left_out: int = 0
    calibration: list[CalibrationBin] = []


class GroupScores(msgspec.Struct, kw_only=True):
    """Scores of a group of documents.

    Attributes:
        by: Kind of the group, empty for all documents.
        group: their value of it.
        documents: Documents that are judged.
        nulls: those that are not, for want of a label or a prediction: ``label``, ``prediction``, ``both``.
        scores: Scores of each prediction and baseline, the metrics.
        differences: Differences of predictions to each other and to the baselines.
        constant: predictions that are the same number for all of these documents.
    """

    by: str = ""
    group: Any = None
    documents: int
    nulls: dict[str, int]
    scores: dict[str, dict[str, Estimate]] = {}
    differences: list[Difference] = []
    constant: list[str] = []


class Judged(msgspec.Struct):
    """The judgement of predictions.

    Attributes:
        task: Task of the predictions.
        level: Level of Krippendorff's alpha.
        scale: Scale that was declared; or the values of labels that are one; None without.
        all: Scores of all documents.
        details: Details of each prediction.
        groups: Groups by kind.
        left_out: Number of the smaller groups without scores, and of their documents, by kind.
    """

    task: Task
    level: str
    scale: Scale | None
    all: GroupScores
    details: dict[str, Details] = {}
    groups: dict[str, list[GroupScores]] = {}
    left_out: dict[str, tuple[int, int]] = {}
