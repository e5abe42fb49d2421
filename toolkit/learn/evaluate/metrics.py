"""Metrics of predictions and labels, coefficients of agreement, and baselines.

The weights of all documents are 1 (or, where equal documents are taken together, how many there are); those of a round
of the bootstrap say how often each was drawn. What is not defined is None: an AUC of one class, say.

Sources: the definitions are scikit-learn's (``f1_score``, ``roc_auc_score``, ``average_precision_score``,
``jaccard_score``) and scipy's (``spearmanr``): mid-ranks for ties. ECE: Naeini et al. 2015, ten bins of one width.

Coefficients of agreement between two annotators, of weighted units; None where one is not defined.

Sources: Cohen 1960, doi:10.1177/001316446002000104; Cohen 1968, doi:10.1037/h0026256 (quadratic weights); Krippendorff,
"Computing Krippendorff's Alpha-Reliability", 2011 (two observers, no missing data). A unit of weight w
counts as w units.

Baselines: predictions that know nothing of a document, or its source alone.

The majority of a group is the most frequent label in it, or the mean. The source-only baseline predicts the same of the
documents with the same source, in the other folds: documents are in `FOLDS` folds by the hash of source and id, and
nothing is predicted of a document by a value that its own label is part of. Where the other folds have no document of a
source, it is what they have of all.

Its ranks are compared within folds, and the mean over the folds is told. Across folds they would be worse than by
chance: where the labels of a fold are high, what the others predict for it is low (Parker, Günter and Bedo 2007).

The result of an evaluation: scores with intervals, paired differences, groups.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec
import numpy as np

from toolkit.config.scale import Scale, nearest

Array = np.ndarray[Any, np.dtype[Any]]
Level = Literal["nominal", "ordinal", "interval"]

_NOTHING = 1e-12
"""Rounding error of a sum that is 0, relative to its terms."""


def cohen(one: Array, other: Array, same: Array, weights: Array) -> float | None:
    """Return Cohen's kappa of labels, unweighted.

    Args:
        one: total weight of each label, of the one annotator.
        other: total weight of each label, of the other.
        same: True if the two agree on each unit.
        weights: Weights of units.
    """
    total = float(weights.sum())
    expected = float(one @ other) / total**2 if total else 1.0
    return (float(weights @ same) / total - expected) / (1 - expected) if 1 - expected > _NOTHING else None


def cohen_quadratic(one: Array, other: Array, weights: Array) -> float | None:
    """Return Cohen's kappa of numbers, weighted by the square of their difference."""
    total = float(weights.sum())
    if not total:
        return None
    means = [float(weights @ values) / total for values in (one, other)]
    spread = sum(float(weights @ (v - m) ** 2) for v, m in zip((one, other), means, strict=True)) / total
    expected = spread + (means[0] - means[1]) ** 2
    scale = max(float(np.abs(one).max(initial=1)), float(np.abs(other).max(initial=1))) ** 2
    return 1 - float(weights @ (one - other) ** 2) / total / expected if expected > _NOTHING * scale else None


def alpha_nominal(one: Array, other: Array, same: Array, weights: Array) -> float | None:
    """Return Krippendorff's alpha of labels; arguments as of `cohen`."""
    total = 2 * float(weights.sum())
    pooled = one + other
    expected = total * total - float(pooled @ pooled)
    if total < 2 or expected <= _NOTHING * total * total:
        return None
    return 1 - (total - 1) * total * (1 - 2 * float(weights @ same) / total) / expected


def alpha_numbers(one: Array, other: Array, weights: Array) -> float | None:
    """Return Krippendorff's alpha of numbers (interval level): differences count squared."""
    total = 2 * float(weights.sum())
    if total < 2:
        return None
    mean = float(weights @ one + weights @ other) / total
    expected = (float(weights @ (one - mean) ** 2) + float(weights @ (other - mean) ** 2)) / (total - 1)
    scale = max(float(np.abs(one).max(initial=1)), float(np.abs(other).max(initial=1))) ** 2
    return 1 - float(weights @ (one - other) ** 2) / total / expected if expected > _NOTHING * scale else None


def alpha_ordinal(one: Array, other: Array, ranks: int, weights: Array) -> float | None:
    """Return Krippendorff's alpha of ranks (ordinal level). It is the alpha of their pooled mid-ranks as numbers.

    Args:
        one: codes of the values of the one annotator, in the order of the values.
        other: codes of the values of the other.
        ranks: Number of codes.
        weights: Weights of units.
    """
    pooled = np.bincount(one, weights, ranks) + np.bincount(other, weights, ranks)
    middle = np.cumsum(pooled) - pooled / 2
    return alpha_numbers(middle[one], middle[other], weights)


FOLDS = 5


def folds(hashes: Array) -> Array:
    """Return the fold of each document, by its hash. The hash is the xxh3-64 of source and id."""
    mixed = hashes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # apart from samples, which use the hash itself
    return ((mixed >> np.uint64(33)) % np.uint64(FOLDS)).astype(np.int64)


def mean_of(labels: Array) -> float:
    """Return the mean."""
    return float(labels.mean()) if len(labels) else 0.0


def most_frequent(labels: Array) -> int:
    """Return the most frequent code; of several the least."""
    return int(np.bincount(labels).argmax()) if len(labels) else 0


def predictions_of_sources(labels: Array, sources: Array, fold: Array, *, numbers: bool) -> Array:
    """Return the prediction of each document from its source alone.

    Args:
        labels: numbers, or codes.
        sources: codes, -1 for documents without one: they are a source, too.
        fold: Fold of each document.
        numbers: True if labels are numbers, of which the mean is predicted.
    """
    result = np.empty(len(labels), dtype=np.float64 if numbers else np.int64)
    sources = sources.astype(np.int64) + 1
    size = int(sources.max(initial=0)) + 1
    for number in range(FOLDS):
        own, rest = fold == number, fold != number
        if numbers:
            sums = np.bincount(sources[rest], labels[rest], size)
            counts = np.bincount(sources[rest], minlength=size)
            means = np.full(size, mean_of(labels[rest]))
            np.divide(sums, counts, out=means, where=counts > 0)
            result[own] = means[sources[own]]
        else:
            best = np.full(size, most_frequent(labels[rest]))
            table = int(labels.max(initial=0)) + 1
            pairs, counts = np.unique(sources[rest] * table + labels[rest], return_counts=True)
            order = np.lexsort(
                (-pairs, counts)
            )  # the last one of a source is its most frequent, the least label of several
            best[pairs[order] // table] = pairs[order] % table
            result[own] = best[sources[own]]
    return result


Task = Literal["numbers", "score", "classes", "lists"]
Measured = dict[str, float | None]

HIGHER = (
    "spearman", "auc", "average_precision", "accuracy", "macro_f1", "micro_f1", "jaccard", "kappa", "alpha", "f1",
    "macro_precision", "macro_recall", "weighted_f1",
)  # fmt: skip
LOWER = ("mae", "rmse", "brier", "ece")
"""Metrics of which more, or less, is better."""

HEADLINES: dict[Task, tuple[str, ...]] = {
    "numbers": ("spearman", "mae"),
    "score": ("auc",),
    "classes": ("accuracy", "macro_f1"),
    "lists": ("micro_f1", "accuracy"),
}
"""Metrics within groups; baselines are compared by the first one."""

MOST_RANKS = 20
"""Different whole numbers up to which labels that declare no scale are one."""

BINS = 10


class Measure:
    """Measures the predictions of some documents."""

    def headlines(self, weights: Array) -> Measured:
        """Return the metrics of `HEADLINES`."""
        raise NotImplementedError

    def more(self, weights: Array) -> Measured:
        """Return the other metrics."""
        return {}

    def of_labels(self, weights: Array) -> Mapping[str, Array]:
        """Return ``precision recall f1 documents`` of each label, in the table's order."""
        return {}


class Numbers(Measure):
    """Numeric predictions of numeric labels.

    Args:
        labels, predictions: of the documents.
        grades: rising numbers of a scale; for accuracy, F1, kappa and alpha, each label and prediction is then the
            nearest of them.
        folds: Folds of the documents, if predictions are ranked in each by itself.
        bounds: ends of the scale, beyond which predictions are as far from labels as these.
    """

    def __init__(
        self,
        labels: Array,
        predictions: Array,
        grades: Array | None = None,
        folds: Array | None = None,
        bounds: tuple[float, float] | None = None,
    ) -> None:
        self._errors = (predictions if bounds is None else np.clip(predictions, *bounds)) - labels
        self._varies = len(predictions) > 0 and predictions.min() < predictions.max()
        self._folds = None
        if folds is not None:
            self._folds = [np.flatnonzero(folds == fold) for fold in range(int(folds.max(initial=0)) + 1)]
        self._both = (_Ranked(labels, folds), _Ranked(predictions, folds))
        self._values = (labels, predictions)
        self._scale: Classes | None = None
        if grades is not None:
            self._rounded = (nearest(labels, grades), nearest(predictions, grades))
            one, other = (np.searchsorted(grades, values) for values in self._rounded)
            self._scale = Classes(one, other, len(grades))

    def headlines(self, weights: Array) -> Measured:
        results: Measured = {"spearman": None, "mae": _mean(np.abs(self._errors), weights)}
        if self._varies:
            one, other = (item.ranks(weights) for item in self._both)
            results["spearman"] = _correlation(one, other, weights, self._folds)
        return results

    def more(self, weights: Array) -> Measured:
        mean = _mean(self._errors**2, weights)
        results: Measured = {"rmse": None if mean is None else mean**0.5, "bias": _mean(self._errors, weights)}
        if self._scale is None:
            return {**results, "alpha": alpha_numbers(*self._values, weights)}
        scale = self._scale
        return {
            **results,
            **scale.headlines(weights),
            **scale.means(weights),
            "kappa": cohen_quadratic(*self._rounded, weights),
            "alpha": alpha_ordinal(scale.labels, scale.predictions, scale.size, weights),
        }

    def of_labels(self, weights: Array) -> Mapping[str, Array]:
        return self._scale.of_labels(weights) if self._scale else {}

    def from_grade(self, grade: int, weights: Array) -> Measured:
        """Return the metrics of the decision at a grade, by its number.

        The F1 is that of these documents; ``macro_f1`` and ``weighted_f1`` are means of theirs and that of the others.
        """
        scale = self._scale
        assert scale
        halves = Classes((scale.labels >= grade).astype(np.int64), (scale.predictions >= grade).astype(np.int64), 2)
        results, f1 = halves.headlines(weights), halves.of_labels(weights)["f1"][1]
        named = {"f1": None if np.isnan(f1) else float(f1), "weighted_f1": halves.means(weights)["weighted_f1"]}
        return {**results, **named}


class Score(Measure):
    """Numeric predictions of true or false (1 or 0).

    Args:
        labels, predictions: of the documents.
        probable: True if the numbers are from 0 to 1, as probabilities are.
        folds: Folds of the documents, if predictions are ranked in each by itself.
    """

    def __init__(self, labels: Array, predictions: Array, *, probable: bool, folds: Array | None = None) -> None:
        self._labels, self._predictions = labels, predictions
        self._ranked = _Ranked(predictions, folds)
        self._errors = (predictions - labels) ** 2
        self._bins = np.clip((predictions * BINS).astype(np.int64), 0, BINS - 1) if probable else None

    def headlines(self, weights: Array) -> Measured:
        positive = self._ranked.counts(weights * self._labels)
        negative = self._ranked.counts(weights) - positive
        before = np.cumsum(negative, axis=1) - negative / 2
        pairs = positive.sum(axis=1) * negative.sum(axis=1)
        return {"auc": _over_folds((positive * before).sum(axis=1), pairs)}

    def more(self, weights: Array) -> Measured:
        true, every = (self._ranked.counts(item)[:, ::-1] for item in (weights * self._labels, weights))
        so_far, of = np.cumsum(true, axis=1), np.cumsum(every, axis=1)
        precision = np.divide(so_far, of, out=np.zeros(of.shape), where=of > 0)
        results: Measured = {"average_precision": _over_folds((true * precision).sum(axis=1), true.sum(axis=1))}
        if self._bins is not None:
            sums = [np.bincount(self._bins, weights * item, BINS) for item in (self._predictions, self._labels)]
            results["brier"] = _mean(self._errors, weights)
            results["ece"] = float(np.abs(sums[0] - sums[1]).sum() / weights.sum())
        return results


class Classes(Measure):
    """Predictions of one label, as codes of a table of this size."""

    def __init__(self, labels: Array, predictions: Array, size: int) -> None:
        self.labels, self.predictions, self.size = labels, predictions, size
        self._same = (labels == predictions).astype(np.float64)

    def headlines(self, weights: Array) -> Measured:
        _, _, f1, _ = _f1(*self._counts(weights))
        return {"accuracy": _mean(self._same, weights), "macro_f1": _mean_of(f1)}

    def more(self, weights: Array) -> Measured:
        one, other, _ = self._counts(weights)
        return {
            "kappa": cohen(one, other, self._same, weights),
            "alpha": alpha_nominal(one, other, self._same, weights),
        }

    def means(self, weights: Array) -> Measured:
        """Return means over labels; a label that is never predicted has a precision of 0, as in scikit-learn."""
        labels, predictions, both = self._counts(weights)
        _, _, f1, documents = _f1(labels, predictions, both)
        total, present = float(documents.sum()), labels + predictions > 0
        precision, recall = (
            np.divide(both, item, out=np.zeros_like(both), where=item > 0)[present] for item in (predictions, labels)
        )
        return {
            "macro_precision": _mean_of(precision),
            "macro_recall": _mean_of(recall),
            "weighted_f1": float(np.nan_to_num(f1) @ documents) / total if total else None,
        }

    def of_labels(self, weights: Array) -> Mapping[str, Array]:
        return dict(zip(("precision", "recall", "f1", "documents"), _f1(*self._counts(weights)), strict=True))

    def _counts(self, weights: Array) -> tuple[Array, Array, Array]:
        return (
            np.bincount(self.labels, weights, self.size),
            np.bincount(self.predictions, weights, self.size),
            np.bincount(self.labels, weights * self._same, self.size),
        )


class Lists(Measure):
    """Predictions of sets of labels.

    Args:
        labels, predictions: codes of sets.
        sets: the labels of each set, as codes of labels.
        size: Number of labels.
    """

    def __init__(self, labels: Array, predictions: Array, sets: list[frozenset[int]], size: int) -> None:
        self._size = size
        self._same = (labels == predictions).astype(np.float64)
        pairs, at = np.unique(np.stack([labels, predictions]), axis=1, return_inverse=True)
        self._at, self._pairs = at.reshape(-1), pairs.shape[1]
        both = [(sets[one], sets[other]) for one, other in pairs.T]
        near = [len(one & other) / len(one | other) if one | other else 1.0 for one, other in both]
        self._jaccard = np.array(near)[self._at] if near else np.empty(0)
        self._parts = [_members(item) for item in zip(*((a, b, a & b) for a, b in both), strict=True)] or [
            _members([])
        ] * 3

    def headlines(self, weights: Array) -> Measured:
        labels, predictions, both = self._counts(weights)
        total = float(labels.sum() + predictions.sum())
        return {"micro_f1": 2 * float(both.sum()) / total if total else None, "accuracy": _mean(self._same, weights)}

    def more(self, weights: Array) -> Measured:
        _, _, f1, _ = _f1(*self._counts(weights))
        return {"macro_f1": _mean_of(f1), "jaccard": _mean(self._jaccard, weights)}

    def of_labels(self, weights: Array) -> Mapping[str, Array]:
        return dict(zip(("precision", "recall", "f1", "documents"), _f1(*self._counts(weights)), strict=True))

    def _counts(self, weights: Array) -> Iterator[Array]:
        of_pairs = np.bincount(self._at, weights, self._pairs)
        for pairs, labels in self._parts:
            yield np.bincount(labels, of_pairs[pairs], self._size)


def own_grades(labels: Array, predictions: Iterable[Array]) -> Array | None:
    """Return the scale of labels without a declared one.

    Whole numbers, of labels and of rounded and clipped predictions.

    None if labels are not whole numbers, or too many.
    """
    result = np.unique(labels)
    if len(result) > MOST_RANKS or not (result == np.floor(result)).all():
        return None
    rounded = [np.unique(np.clip(np.floor(prediction + 0.5), result[0], result[-1])) for prediction in predictions]
    if any(len(item) > MOST_RANKS for item in rounded):
        return None
    return np.unique(np.concatenate([result, *rounded]))


def _members(sets: Any) -> tuple[Array, Array]:
    """Return the numbers of sets and their members, one behind the other."""
    listed = [(i, member) for i, members in enumerate(sets) for member in members]
    pairs = np.array(listed, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _mean(values: Array, weights: Array) -> float | None:
    total = float(weights.sum())
    return float(weights @ values) / total if total else None


def _mean_of(values: Array) -> float | None:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else None


def _f1(labels: Array, predictions: Array, both: Array) -> tuple[Array, Array, Array, Array]:
    """Return precision, recall and F1 of each label, and its documents; nan of a label that is not there."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return both / predictions, both / labels, 2 * both / (labels + predictions), labels


class _Ranked:
    """Values with their order, for ranks without sorting; in each fold by itself, if there are some."""

    def __init__(self, values: Array, folds: Array | None = None) -> None:
        table, codes = np.unique(values, return_inverse=True)
        self._shape = (1 if folds is None else int(folds.max(initial=0)) + 1, len(table))
        self._codes = codes if folds is None else folds * len(table) + codes

    def counts(self, weights: Array) -> Array:
        """Return the weight of each different value, ascending, by fold."""
        return np.bincount(self._codes, weights, self._shape[0] * self._shape[1]).reshape(self._shape)

    def ranks(self, weights: Array) -> Array:
        """Return the mid-ranks, less a constant."""
        counts = self.counts(weights)
        middle: Array = (np.cumsum(counts, axis=1) - counts / 2).reshape(-1)[self._codes]
        return middle


def _over_folds(sums: Array, totals: Array) -> float | None:
    """Return the mean of sum / total over the defined folds."""
    defined = totals > 0
    return float((sums[defined] / totals[defined]).mean()) if defined.any() else None


def _correlation(labels: Array, predictions: Array, weights: Array, folds: list[Array] | None) -> float | None:
    """Return Pearson's coefficient, or its mean over the folds; None where one of the two does not vary.

    In folds, predictions that do not vary order nothing, which is 0.
    """
    if folds is not None:
        listed = [_varying(labels[part], predictions[part], weights[part]) for part in folds]
        defined = [0.0 if result is None else result for varies, result in listed if varies]
        return sum(defined) / len(defined) if defined else None
    return _varying(labels, predictions, weights)[1]


def _varying(labels: Array, predictions: Array, weights: Array) -> tuple[bool, float | None]:
    """Return True if labels vary, and Pearson's coefficient."""
    total = float(weights.sum())
    if not total:
        return False, None
    labels, predictions = (item - float(weights @ item) / total for item in (labels, predictions))
    of_labels, of_predictions = (float(weights @ (item * item)) for item in (labels, predictions))
    if min(of_labels, of_predictions) <= 1e-9:
        return of_labels > 1e-9, None
    return True, min(1.0, max(-1.0, float(weights @ (labels * predictions)) / math.sqrt(of_labels * of_predictions)))


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
