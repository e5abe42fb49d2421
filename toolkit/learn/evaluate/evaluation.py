"""Judges predictions: in all and in groups, beside baselines, with intervals, paired differences and warnings.

The bootstrap: rounds in which documents are drawn anew, and the intervals that they give.

A round draws as many documents as there are, with replacement; every prediction is measured on the same draw, so a
difference of two is paired. The interval is the 2.5th to the 97.5th percentile of what the rounds give, moved so that
their mean is what is measured: rounds lack rare labels, which would move a mean over labels. Of more than
`MOST` documents, rounds draw from random parts of `MOST` documents, and what they give is scaled by
√(`MOST` / documents): the bootstrap of m out of n (Bickel, Götze and van Zwet 1997), which costs the same for any n.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import xxhash

from toolkit.config.scale import Declared, Scale, nearest
from toolkit.errors import ConfigError
from toolkit.learn.evaluate import metrics
from toolkit.learn.evaluate.metrics import Array, Measure, Task, folds, mean_of, most_frequent, predictions_of_sources
from toolkit.learn.evaluate.predictions import AnswerColumn

MOST = 5_000
"""Documents that a round draws, at most."""

PARTS = 8
"""Random parts that rounds draw from, at most."""

Metrics = Mapping[str, float | None]

Measured = TypeVar("Measured")
"""A measure of some documents, which gives metrics for their weights."""


def generator(seed: int, name: str) -> np.random.Generator:
    """Return the random numbers of a group: the same whatever other groups there are."""
    return np.random.Generator(np.random.PCG64([seed, xxhash.xxh3_64_intdigest(name.encode())]))


def cells(columns: Sequence[Array]) -> tuple[Array, Array]:
    """Return one document of each distinct row, and its number."""
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        result, own = np.unique(column, return_inverse=True)
        codes = codes * len(result) + own
        _, codes = np.unique(codes, return_inverse=True)  # or they grow out of 64 bits
    _, first, counts = np.unique(codes, return_index=True, return_counts=True)
    return first, counts.astype(np.float64)


def draws(counts: Array, rounds: int, random: np.random.Generator) -> Iterator[Array]:
    """Yield the weights of each round, given the number of equal documents."""
    total = int(counts.sum())
    if 3 * len(counts) < total:
        for _ in range(rounds):
            yield random.multinomial(total, counts / total).astype(np.float64)
        return
    of = np.repeat(np.arange(len(counts)), counts.astype(np.int64))
    for _ in range(rounds):
        yield np.bincount(of[random.integers(0, total, total)], minlength=len(counts)).astype(np.float64)


def bootstrapped(
    columns: Sequence[Array],
    make: Callable[[Array], Measured],
    metrics_of: Callable[[Measured, Array], Metrics],
    rounds: int,
    random: np.random.Generator,
) -> dict[str, metrics.Estimate]:
    """Return the metrics of some documents, with intervals.

    A metric that half of the rounds, or more, do not define has no interval.

    Args:
        columns: Columns of the documents, on which all metrics depend.
        make: Maker of a measure of documents, by their places.
        metrics_of: Function that gives the metrics of a measure with weights.
        rounds: Rounds of the bootstrap.
        random: Random generator.
    """
    places, counts = cells(columns)
    measure = make(places)
    points = dict(metrics_of(measure, counts))
    documents, scale = len(columns[0]), 1.0
    samples = []
    if len(places) <= MOST:
        samples.append((points, [metrics_of(measure, weights) for weights in draws(counts, rounds, random)]))
    else:
        scale = (MOST / documents) ** 0.5
        parts = random.permutation(documents)[: PARTS * MOST]
        parts = parts[: len(parts) // MOST * MOST].reshape(-1, MOST)
        for i, part in enumerate(parts):
            some, counts = cells([column[part] for column in columns])
            measure = make(part[some])
            share = rounds // len(parts) + (i < rounds % len(parts))
            middles = dict(metrics_of(measure, counts))
            samples.append((middles, [metrics_of(measure, weights) for weights in draws(counts, share, random)]))
    estimates: dict[str, metrics.Estimate] = {}
    for name, point in points.items():
        spread = [
            item - middle
            for middles, rows in samples
            if (middle := middles[name]) is not None
            for row in rows
            if (item := row[name]) is not None
        ]
        estimates[name] = metrics.Estimate(point)
        if point is not None and 2 * len(spread) > sum(len(rows) for _, rows in samples):
            low, high = (np.quantile(spread, [0.025, 0.975]) - np.mean(spread)) * scale + point
            estimates[name] = metrics.Estimate(point, float(low), float(high))
    return estimates


FEW = 10
"""Documents below which a group has no intervals, and nothing is said of a score that does not vary."""

BASELINES = metrics.MAJORITY, metrics.SOURCE

MOST_PAIRS = 10_000
"""Different pairs of label and prediction that are listed."""


class Judge:
    """Judges predictions against labels.

    Args:
        labels: Labels of the documents.
        predictions: Predictions by name, one or two.
        sources: codes of the documents' sources.
        hashes: xxh3-64 of their source and id.
        task: None to tell it from the values.
        count: rounds of the bootstrap.
        seed: Seed of its random numbers.
        scale: declared for the labels.

    Raises:
        ConfigError: if labels are not on it, or these predictions cannot be held against these labels.
    """

    def __init__(
        self,
        labels: AnswerColumn,
        predictions: Mapping[str, AnswerColumn],
        sources: Array,
        hashes: Array,
        *,
        task: Task | None,
        count: int,
        seed: int,
        scale: Declared = None,
    ) -> None:
        self.task = task or _task(labels, predictions)
        self._names, self._count, self._seed = list(predictions), count, seed
        self._no_label = labels.is_null
        self._no_prediction = np.logical_or.reduce([prediction.is_null for prediction in predictions.values()])
        self._rows = np.flatnonzero(~self._no_label & ~self._no_prediction)
        if not len(self._rows):
            raise ConfigError(
                f"expected documents with a label and a prediction, got none: of {len(self._no_label):,} documents "
                f"{int(self._no_label.sum()):,} have no label, {int(self._no_prediction.sum()):,} no prediction"
            )
        listed = [labels, *predictions.values()]
        columns_of_rows = [column.at(self._rows) for column in listed]
        if isinstance(scale, Scale):
            _check_scale(columns_of_rows[0], scale)
        columns, self._table, self._make = _makers(self.task, columns_of_rows, scale)
        self._declared = scale
        self._labels, self._own = columns[0], dict(zip(predictions, columns[1:], strict=True))
        self.is_number = self.task in ("numbers", "score")
        sources = sources[self._rows]
        self.one_source = len(np.unique(sources)) < 2
        self._folds = folds(hashes[self._rows])
        self._of_sources = predictions_of_sources(self._labels, sources, self._folds, numbers=self.is_number)

    def judged(self, groups: Mapping[str, AnswerColumn], top: int) -> metrics.Judged:
        """Return the judgement of all documents, and of the largest groups."""
        everything = np.arange(len(self._rows))
        result = metrics.Judged(
            self.task, self._level, self._scale, self._group("", None, everything, self._nulls(slice(None)))
        )
        for name in self._names:
            result.details[name] = self._details(name)
        for by, column in groups.items():
            result.groups[by], result.left_out[by] = self._groups(by, column, top)
        return result

    @property
    def _scale(self) -> Scale | None:
        if self._declared is not None or self._level != "ordinal" or len(self._table or []) < 2:
            return self._declared if isinstance(self._declared, Scale) else None
        return Scale(values=[int(item) for item in self._table or []])

    @property
    def _level(self) -> str:
        if self.task == "numbers":
            return "interval" if self._table is None else "ordinal"
        return "nominal" if self.task == "classes" else ""

    def _nulls(self, rows: Any) -> dict[str, int]:
        label, prediction = self._no_label[rows], self._no_prediction[rows]
        return {
            "label": int((label & ~prediction).sum()),
            "prediction": int((prediction & ~label).sum()),
            "both": int((label & prediction).sum()),
        }

    def _groups(self, by: str, column: AnswerColumn, top: int) -> tuple[list[metrics.GroupScores], tuple[int, int]]:
        codes = column.values
        if codes.dtype.kind == "f":
            table, codes = np.unique(codes, return_inverse=True)
            values = [
                None if np.isnan(value) else int(value) if value == int(value) else float(value) for value in table
            ]
        else:
            values, codes = [*column.table, None], np.where(codes < 0, len(column.table), codes)
        counts = np.bincount(codes, minlength=len(values))
        largest = sorted((i for i in range(len(values)) if counts[i]), key=lambda i: (-counts[i], i))
        order = np.argsort(codes[self._rows], kind="stable")
        starts = np.searchsorted(codes[self._rows][order], np.arange(len(values) + 1))
        rows = np.argsort(codes, kind="stable")
        all_starts = np.concatenate([[0], np.cumsum(counts)])
        groups = [
            self._group(
                by, values[i], order[starts[i] : starts[i + 1]], self._nulls(rows[all_starts[i] : all_starts[i + 1]])
            )
            for i in sorted(largest[:top])
        ]
        return groups, (len(largest[top:]), int(sum(counts[i] for i in largest[top:])))

    def _group(self, by: str, value: Any, places: Array, nulls: dict[str, int]) -> metrics.GroupScores:
        group = metrics.GroupScores(by=by, group=value, documents=len(places), nulls=nulls)
        if not len(places):
            return group
        labels, folds = self._labels[places], self._folds[places]
        values = {name: item[places] for name, item in self._own.items()}
        middle = mean_of(labels) if self.is_number else most_frequent(labels)
        values[metrics.MAJORITY] = np.full(len(places), middle)
        if not self.one_source and by != metrics.SOURCE:
            values[metrics.SOURCE] = self._of_sources[places]
        pairs = [(one, other) for i, one in enumerate(self._names) for other in [*self._names[i + 1 :], *BASELINES]]
        pairs = [(one, other) for one, other in pairs if other in values]

        def make(some: Array) -> dict[str, Measure]:
            in_folds = {metrics.SOURCE: folds[some]} if self.is_number else {}
            return {name: self._make(labels[some], item[some], in_folds.get(name)) for name, item in values.items()}

        def metrics_of(measures: dict[str, Measure], weights: Array) -> Metrics:
            by_name = {name: _measured(measure, weights, whole=not by) for name, measure in measures.items()}
            for name in BASELINES:  # what does not vary orders nothing
                if name in by_name and by_name[name].get("spearman", 0) is None:
                    by_name[name]["spearman"] = None if by_name[self._names[0]]["spearman"] is None else 0.0
            flat = {_key(name, metric): v for name, scores in by_name.items() for metric, v in scores.items()}
            for one, other in pairs:
                for metric, mine in by_name[one].items():
                    theirs = by_name[other].get(metric)
                    if metric in metrics.HIGHER or metric in metrics.LOWER:
                        flat[_key(one, other, metric)] = None if mine is None or theirs is None else mine - theirs
            return flat

        columns = [labels, *values.values(), *([folds] if self.is_number and metrics.SOURCE in values else [])]
        estimates = self._bootstrapped(columns, make, metrics_of, f"{by}\0{value!r}")
        for name in values:
            group.scores[name] = {
                key.rpartition("\0")[2]: _bounded(key.rpartition("\0")[2], estimate)
                for key, estimate in estimates.items()
                if key.partition("\0")[0] == name and key.count("\0") == 1
            }
        group.differences = list(_differences(pairs, estimates))
        if self.is_number and len(places) >= FEW:
            group.constant = [name for name in self._names if values[name].min() == values[name].max()]
        return group

    def _bootstrapped(
        self,
        columns: Sequence[Array],
        make: Callable[[Array], Measured],
        metrics_of: Callable[[Measured, Array], Metrics],
        name: str,
    ) -> dict[str, metrics.Estimate]:
        count = self._count if len(columns[0]) >= FEW else 0
        return bootstrapped(columns, make, metrics_of, count, generator(self._seed, name))

    # --- details of all documents -------------------------------------------------------------------------------------

    def _details(self, name: str) -> metrics.Details:
        labels, predictions = self._labels, self._own[name]
        details = metrics.Details()
        if self.is_number:
            details.calibration = self._calibration(name, labels, predictions)
        if self.task == "classes":
            pairs, counts = np.unique(np.stack([labels, predictions]), axis=1, return_counts=True)
            order = np.argsort(-counts, kind="stable")
            table = self._table or []
            details.confusion = [
                metrics.ConfusedPair(table[pairs[0, i]], table[pairs[1, i]], int(counts[i])) for i in order[:MOST_PAIRS]
            ]
            details.confusion_left_out = int(counts[order[MOST_PAIRS:]].sum())
        elif self.task == "numbers" and self._table is not None:
            both = [nearest(item, np.array(self._table)) for item in (labels, predictions)]
            pairs, counts = np.unique(np.stack(both), axis=1, return_counts=True)
            details.confusion = [
                metrics.ConfusedPair(_plain(one), _plain(other), int(n))
                for one, other, n in zip(*pairs, counts, strict=True)
            ]
            details.grades = self._of_grades(name, labels, predictions)
        if self.task in ("classes", "lists") or self._table is not None:
            details.labels = self._of_labels(name, labels, predictions)
        return details

    def _of_labels(self, name: str, labels: Array, predictions: Array) -> list[metrics.LabelScores]:
        """Return how well each label is predicted, the most frequent first."""

        def make(some: Array) -> Measure:
            return self._make(labels[some], predictions[some], None)

        def metrics_of(measure: Measure, weights: Array) -> Metrics:
            f1 = measure.of_labels(weights)["f1"].tolist()
            return {str(i): None if math.isnan(item) else item for i, item in enumerate(f1)}

        estimates = self._bootstrapped([labels, predictions], make, metrics_of, f"labels of {name}")
        exact = self._make(labels, predictions, None).of_labels(np.ones(len(labels)))
        result = []
        for i, label in enumerate(self._table or []):
            precision, recall = (float(exact[metric][i]) for metric in ("precision", "recall"))
            if estimates[str(i)].value is None:
                continue  # in the lists of documents that are not judged
            result.append(
                metrics.LabelScores(
                    _plain(label) if self.task == "numbers" else label,
                    int(exact["documents"][i]),
                    None if np.isnan(precision) else precision,
                    None if np.isnan(recall) else recall,
                    estimates[str(i)],
                )
            )
        return result if self.task == "numbers" else sorted(result, key=lambda item: -item.documents)

    def _of_grades(self, name: str, labels: Array, predictions: Array) -> list[metrics.GradeScores]:
        """Return the scores of the decision at each grade but the first."""
        table = self._table or []
        rounded = nearest(labels, np.array(table))

        def make(some: Array) -> metrics.Numbers:
            measure = self._make(labels[some], predictions[some], None)
            assert isinstance(measure, metrics.Numbers)
            return measure

        def metrics_of(measure: metrics.Numbers, weights: Array) -> Metrics:
            return {
                _key(str(i), metric): value
                for i in range(1, len(table))
                for metric, value in measure.from_grade(i, weights).items()
            }

        estimates = self._bootstrapped([labels, predictions], make, metrics_of, f"grades of {name}")
        return [
            metrics.GradeScores(
                _plain(grade),
                int((rounded >= grade).sum()),
                **{
                    metric: _bounded(metric, estimates[_key(str(i), metric)])
                    for metric in ("accuracy", "f1", "macro_f1", "weighted_f1")
                },
            )
            for i, grade in enumerate(table)
            if i
        ]

    def _calibration(self, name: str, labels: Array, predictions: Array) -> list[metrics.CalibrationBin]:
        """Return the curve: in ten bins of one width for probabilities, else of as many documents as can be."""
        if self.task == "score" and _probable(predictions):
            edges = np.linspace(0, 1, metrics.BINS + 1)
        else:
            edges = np.unique(np.quantile(predictions, np.linspace(0, 1, metrics.BINS + 1)))
        of = np.clip(np.searchsorted(edges, predictions, side="right") - 1, 0, max(len(edges) - 2, 0))

        def metrics_of(some: Array, weights: Array) -> Metrics:
            counts = np.bincount(of[some], weights, len(edges))
            sums = np.bincount(of[some], weights * labels[some], len(edges))
            return {str(i): float(sums[i] / counts[i]) if counts[i] else None for i in range(len(edges))}

        estimates = self._bootstrapped([of, labels], lambda some: some, metrics_of, f"calibration of {name}")
        result = []
        for i in np.unique(of):
            inside = predictions[of == i]
            high = float(edges[min(i + 1, len(edges) - 1)])
            label = _bounded("accuracy", estimates[str(i)]) if self.task == "score" else estimates[str(i)]
            result.append(metrics.CalibrationBin(float(edges[i]), high, len(inside), float(inside.mean()), label))
        return result


def _key(*names: str) -> str:
    return "\0".join(names)


def _measured(measure: Measure, weights: Array, *, whole: bool) -> dict[str, float | None]:
    return {**measure.headlines(weights), **(measure.more(weights) if whole else {})}


def _bounded(metric: str, estimate: metrics.Estimate) -> metrics.Estimate:
    """Return an estimate with its interval clipped to the metric's range."""
    if estimate.low is None or estimate.high is None or metric not in (*metrics.HIGHER, *metrics.LOWER):
        return estimate
    least = -np.inf if metric in ("kappa", "alpha") else -1.0 if metric == "spearman" else 0.0
    most = 1.0 if metric in metrics.HIGHER else np.inf
    return metrics.Estimate(estimate.value, max(estimate.low, least), min(estimate.high, most))


def _differences(
    pairs: Sequence[tuple[str, str]], estimates: Mapping[str, metrics.Estimate]
) -> Iterator[metrics.Difference]:
    for one, other in pairs:
        difference = metrics.Difference(one, other, {})
        for key, estimate in estimates.items():
            low, high = estimate.low, estimate.high
            if (
                key.startswith(start := _key(one, other, ""))
                and estimate.value is not None
                and low is not None
                and high is not None
            ):
                metric = key.removeprefix(start)
                is_better = (low > 0) == (metric in metrics.HIGHER)
                verdict: metrics.Verdict = "tie" if low <= 0 <= high else "better" if is_better else "worse"
                difference.metrics[metric] = metrics.Paired(estimate.value, low, high, verdict)
        yield difference


# --- from columns to what is measured ---------------------------------------------------------------------------------


def _task(labels: AnswerColumn, predictions: Mapping[str, AnswerColumn]) -> Task:
    """Return the task, by the kinds of the values."""
    kinds = {name: column.kind for name, column in predictions.items()}
    for name, kind in {"the labels": labels.kind, **kinds}.items():
        if kind == "null":
            raise ConfigError(f"{name}: expected values, got null of all documents")
    of = next(iter(kinds.values()))
    same = all(kind == of for kind in kinds.values())
    if same and of == "number" and labels.kind in ("number", "bool"):
        is_binary = labels.kind == "bool" or {*np.unique(labels.values[~labels.is_null])} == {0.0, 1.0}
        return "score" if is_binary else "numbers"
    if same and of == labels.kind:
        return "lists" if of == "list" else "classes"
    listed = ", ".join(f"{name} {_KINDS[kind]}" for name, kind in kinds.items())
    hint = ""
    if of == "number" and labels.kind == "label":
        hint = "; say which label is true: `--against 'LABEL == \"good\"'`"
    if of == "bool" and labels.kind == "number":
        hint = "; make truth values of the labels, too: `--against 'LABEL >= 3'`"
    raise ConfigError(
        f"expected predictions and labels that can be compared, got {listed}; labels {_KINDS[labels.kind]}{hint}"
    )


_KINDS = {"number": "as numbers", "bool": "as true and false", "label": "as texts", "list": "as lists of texts"}

_Maker = Callable[[Array, Array, Array | None], Measure]
"""Makes a measure of labels and predictions, ranked within folds if these are given."""


def _check_scale(labels: AnswerColumn, scale: Scale) -> None:
    """Raise ConfigError for labels outside their scale."""
    if labels.kind in ("bool", "list") or scale.is_text is (labels.kind == "number"):
        raise ConfigError(f"expected labels on {scale}, got labels {_KINDS.get(labels.kind, 'that are null')}")
    values = np.unique(labels.values).tolist() if labels.kind == "number" else labels.table
    if (wrong := next((value for value in values if not scale.has(value, exactly=False)), None)) is not None:
        raise ConfigError(f"expected labels on {scale}, got {wrong!r}; correct the labels, or their `scale:`")


def _makers(
    task: Task, columns: Sequence[AnswerColumn], scale: Declared = None
) -> tuple[list[Array], list[Any] | None, _Maker]:
    """Return labels and predictions as arrays, their table, and a maker. The maker returns a measure of some of them.

    Raises:
        ConfigError: if the values are not of the kind that a task is about.
    """
    if task == "numbers":
        numbers = [_numbers(column, task) for column in columns]
        if isinstance(scale, Scale):
            grades = np.array(scale.grades, dtype=np.float64) if scale.grades else None
            bounds = scale.bounds
        elif scale == "none" or not len(numbers[0]):
            grades, bounds = None, None
        else:
            grades, bounds = metrics.own_grades(numbers[0], numbers[1:]), (numbers[0].min(), numbers[0].max())
        table = None if grades is None else grades.tolist()
        return numbers, table, lambda a, b, of: metrics.Numbers(a, b, grades, of, bounds)
    if task == "score":
        numbers = [_numbers(column, task) for column in columns]
        if not {*np.unique(numbers[0])} <= {0.0, 1.0}:
            raise ConfigError("expected labels that are true or false, 1 or 0, for the task `score`, got other numbers")
        probable = {id(number): _probable(number) for number in numbers[1:]}
        everything = all(probable.values())
        return numbers, None, lambda a, b, of: metrics.Score(a, b, probable=everything, folds=of)
    values = [_codes(column) for column in columns]
    if task == "classes":
        table = sorted({item for column in values for item in column[1]}, key=lambda item: (str(type(item)), item))
        places = {item: i for i, item in enumerate(table)}
        new = [np.array([places[item] for item in of], dtype=np.int64)[codes] for codes, of in values]
        return new, table, lambda a, b, _: metrics.Classes(a, b, len(table))
    if any(column.kind != "list" for column in columns):
        raise ConfigError("expected lists of texts for the task `lists`, got other values")
    labels = sorted({member for _, of in values for members in of for member in members})
    members = {label: i for i, label in enumerate(labels)}
    sets = sorted({tuple(item) for _, of in values for item in of})
    place = {item: i for i, item in enumerate(sets)}
    new = [np.array([place[tuple(item)] for item in of], dtype=np.int64)[codes] for codes, of in values]
    listed = [frozenset(members[item] for item in one) for one in sets]
    return new, labels, lambda a, b, _: metrics.Lists(a, b, listed, len(labels))


def _probable(values: Array) -> bool:
    return bool(len(values)) and float(values.min()) >= 0 and float(values.max()) <= 1 + 1e-4


def _numbers(column: AnswerColumn, task: str) -> Array:
    if column.kind == "bool" and task == "score":
        return np.array([float(item) for item in column.table])[column.values]
    if column.kind != "number":
        raise ConfigError(f"expected numbers for the task `{task}`, got {_KINDS.get(column.kind, 'null')}")
    return column.values


def _plain(number: float) -> int | float:
    return int(number) if number == int(number) else float(number)


def _codes(column: AnswerColumn) -> tuple[Array, list[Any]]:
    if column.kind == "number":
        table, codes = np.unique(column.values, return_inverse=True)
        return codes, [int(item) if item == int(item) else float(item) for item in table]
    return column.values, column.table
