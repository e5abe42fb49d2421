"""Counts of the attributes of documents for a report: distributions of scores, spans, duplicates, by label."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from toolkit.aggregate.histogram import Spread
from toolkit.aggregate.samples import Least, Rank, add_ranks
from toolkit.data import schema
from toolkit.lazy_numpy import np
from toolkit.mix.join import JoinedSet
from toolkit.mix.rule_effects.preview import RuleBlock
from toolkit.report.fields import CHARS, ScoreAt, StreamFields, at_path, holds
from toolkit.rules.expressions import FAULTS
from toolkit.rules.rule import Role
from toolkit.rules.ruleset import RuleSet

DRAWN = 5
"""Documents of each label that are drawn, beside those of rules."""

DROPPED = 10
"""Documents of each label that a rule drops."""

APPLIED = 5
"""Documents that a rule annotates or edits."""

NEAR = 5
"""Documents on each side of a threshold."""

PAIRS = 12
"""Pairs of near duplicates that are shown of a set."""

MOST = {"label": DRAWN, "dropped": DROPPED, "applied": APPLIED, "near": NEAR}
"""Documents of each kind of key."""


def key_of(kind: str, *of: object) -> str:
    """Return the key of a kind of samples: ``label``, ``dropped``, ``applied`` or ``near``, and what it is of."""
    return "\n".join([kind, *map(str, of)])


class DuplicateCounts(msgspec.Struct):
    """Numbers of documents and of copies, and clusters by size."""

    documents: int = 0
    copies: int = 0
    clusters: dict[int, int] = {}


Pair = tuple[int, int, float | None, str, str, int]
"""Hash of source and id, and row, of a copy; similarity; source and id of the kept document; size of the cluster."""


class Attributes:
    """Counts attributes, block by block.

    Args:
        sets: Sets that are joined.
        fields: Fields to count.
        least: takes the documents that are near thresholds.
        rules: Rules that decide.
        labels: numbers of the labels, which grow.
    """

    def __init__(
        self,
        sets: Sequence[JoinedSet],
        fields: StreamFields,
        least: Least[Rank],
        rules: RuleSet,
        labels: dict[str, int],
    ) -> None:
        self._fields, self._least, self._labels = fields, least, labels
        self._getters = [_getter_of(sets, score, rules) for score in fields.scores]
        self._lower = [_getter(sets, score.over) if score.over else None for score in fields.scores]
        self.lengths = Spread(labels)
        self.scores = [Spread(labels) for _ in fields.scores]
        self._marks = [[Counter[int]() for _ in score.marks] for score in fields.scores]
        self._spans: list[dict[int, list[int]]] = [{} for _ in fields.spans]
        self.duplicates = [DuplicateCounts() for _ in fields.duplicates]
        self.pairs = Least[Pair]()
        annotating = {i for i, rule in enumerate(rules.rules) if rule.ROLE is Role.ANNOTATES}
        self._annotating = {mark.rule for score in fields.scores for mark in score.marks if mark.rule in annotating}

    def tokens(self, block: RuleBlock) -> "np.ndarray[Any, Any]":
        """Return the tokens of each document; zeros where no set says them."""
        place = self._fields.tokens
        if place is None:
            return np.zeros(len(block.chars), dtype=np.int64)
        return np.array([getattr(column, place.key) or 0 for column in block.columns[place.set]], dtype=np.int64)

    def add(
        self,
        block: RuleBlock,
        labels: "np.ndarray[Any, Any]",
        dropped: "np.ndarray[Any, Any]",
        hashes: "np.ndarray[Any, Any]",
        rows: "np.ndarray[Any, Any]",
    ) -> None:
        """Add a block of documents.

        Args:
            block: Block of documents with their attributes.
            labels: Labels of each document, its number.
            dropped: Rule that drops each document, -1 where it stays.
            hashes: Hashes of each.
            rows: Rows of each, from 1.
        """
        names = list(self._labels)
        stays = (dropped < 0).astype(np.int64)
        met_by = {
            rule: np.array([not isinstance(outcome, int) and rule in outcome for outcome in block.outcomes], dtype=bool)
            for rule in self._annotating
        }
        self.lengths.add(np.array(block.chars, dtype=float), labels, stays)
        for number, (score, get, lower) in enumerate(zip(self._fields.scores, self._getters, self._lower, strict=True)):
            upper = get(block)
            under = lower(block) if lower else None
            numbers = upper if under is None else upper / np.where(under > 0, under, np.nan)
            self.scores[number].add(numbers, labels, stays)
            for i, mark in enumerate(score.marks):
                mine = _concerned(mark.label, mark.excluded, names)[labels]
                met = (holds(mark, upper, under) if mark.how else holds(mark, numbers)) & mine
                self._marks[number][i].update(labels[met].tolist())
                defined = mine & ~np.isnan(numbers)
                distances = np.abs(numbers - mark.value)
                does = met_by.get(mark.rule, dropped == mark.rule)
                for side, selected in (("dropped", defined & does), ("kept", defined & (dropped < 0) & ~does)):
                    key = key_of("near", number, i, side)
                    add_ranks(self._least, key, NEAR, hashes[selected], rows[selected], distances[selected])
        for spans, at in zip(self._spans, self._fields.spans, strict=True):
            _add_spans(spans, map(at.get, block.columns[at.place.set]), labels)
        for number, duplicate in enumerate(self._fields.duplicates):
            self._add_duplicates(number, block.columns[duplicate.place.set], hashes, rows)

    def _add_duplicates(self, number: int, column: Sequence[Any], hashes: Any, rows: Any) -> None:
        at, counts = self._fields.duplicates[number], self.duplicates[number]
        for i, row in enumerate(column):
            value = getattr(row, at.place.key)
            if value is None:
                continue
            counts.documents += 1
            size = getattr(value, at.sized) if at.sized else 0
            if value.duplicate_of is None:
                if size and size > 1:
                    counts.clusters[size] = counts.clusters.get(size, 0) + 1
                continue
            counts.copies += 1
            if at.near and value.jaccard is not None:
                source, *name = value.duplicate_of
                key = int(hashes[i]), int(rows[i])  # several documents may have one hash, where ids repeat
                self.pairs.add(str(number), PAIRS, [(*key, value.jaccard, source, "\0".join(name), size or 0)])

    @property
    def marks(self) -> list[list[dict[str, int]]]:
        """Return the documents beyond each threshold of each score, by label."""
        names = list(self._labels)
        return [[{names[i]: n for i, n in sorted(mark.items())} for mark in marks] for marks in self._marks]

    @property
    def spans(self) -> list[dict[str, list[int]]]:
        """Return the spans of each attribute, by label: documents with spans, spans, their code points."""
        names = list(self._labels)
        return [{names[i]: counts for i, counts in sorted(span.items())} for span in self._spans]


def _concerned(label: str, excluded: Sequence[str], names: Sequence[str]) -> "np.ndarray[Any, Any]":
    """Return for each label True if a threshold applies to it."""
    return np.array([name == label if label else name not in excluded for name in names], dtype=bool)


def _getter_of(
    sets: Sequence[JoinedSet], score: ScoreAt, rules: RuleSet
) -> Callable[[RuleBlock], "np.ndarray[Any, Any]"]:
    """Return the getter of a score of many documents; not a number where there is none."""
    if score.rule is None:
        return _getter(sets, score.path)
    part = rules.compiled[score.rule].part(score.path)

    def get(block: RuleBlock) -> "np.ndarray[Any, Any]":
        return np.array([_computed(part, values) for values in block.values()], dtype=float)

    return get


def _computed(part: Callable[..., Any] | None, values: Sequence[Any]) -> float:
    """Return the value of a part of a rule for a document; not a number where it cannot be computed, or is none."""
    try:
        result = part(*values) if part else None
    except (
        *FAULTS,
        OverflowError,
    ):  # a null, or a text where a number should be: the rule has tested that before it compares
        return float("nan")
    return _float(result if schema.is_number(result) else None)


def _getter(sets: Sequence[JoinedSet], at: str) -> Callable[[RuleBlock], "np.ndarray[Any, Any]"]:
    """Return the getter of the numbers at a path; not a number where there is none."""
    if at == CHARS:
        return _chars
    place, leaf = at_path(sets, at)

    def slowly(values: Sequence[Any]) -> "np.ndarray[Any, Any]":
        result = (leaf.get(getattr(value, place.key)) for value in values)
        return np.array([_float(item[0]) if item else np.nan for item in result], dtype=float)

    inner = [] if at.startswith("len(") else at.removeprefix(place.name).split(".")[1:]
    path = attrgetter(".".join([place.key, *map(schema.field_name, inner)]))

    def get(block: RuleBlock) -> "np.ndarray[Any, Any]":
        values = block.columns[place.set]
        if at.startswith("len("):
            return slowly(values)
        try:
            return np.array(list(map(path, values)), dtype=float)
        except (AttributeError, OverflowError):  # a null above the number, or an integer beyond all floats
            return slowly(values)

    return get


def _chars(block: RuleBlock) -> "np.ndarray[Any, Any]":
    return np.array(block.chars, dtype=float)


def _float(value: Any) -> float:
    try:
        return float("nan") if value is None else min(max(float(value), -1e308), 1e308)
    except OverflowError:
        return 1e308 if value > 0 else -1e308


def _add_spans(by_label: dict[int, list[int]], values: Iterable[Any], labels: Any) -> None:
    for i, value in enumerate(values):
        if value:
            counts = by_label.setdefault(int(labels[i]), [0, 0, 0])
            counts[0] += 1
            counts[1] += len(value)
            counts[2] += sum(span.end - span.start for span in value)
