"""Scores of a shard in sorted runs; ranks within an error; and the base of `calibrate:` kinds.

``scores.bin``, which is sealed, has for each run (`ROWS` rows, fewer at the end of a shard), little-endian:

    labels   JSON: the groups of the run, sorted by their labels
    for each score of a document:
        starts   a uint32 a group, and one more: its first key, and where the last ends
        marks    float64: every so many-th key, `ScoreColumn.step` apart, from half a step on; for exact ranks
        keys     float64: the distinct scores of each group in turn, sorted
        counts   a uint32 a key: rows that have it
        items    a uint32 a row: the number of its key; `ABSENT` for one that is not ranked
        knots    for ranks within an error: `KNOT`, those of the keys that are needed, by group
        ends     a uint32 a group, and one more: its first knot, and where the last ends
    labelled `LABELLED`: group, score and label of the rows that have a label; for maps that are fitted on labels

Ranks within an error need few of the scores of each run. Of a run that has n scores of a group, knots are kept: the
least score, the greatest, and so many between that from one to the next there are at most e · n scores. How many scores
of the run are below one that lies between two knots is then known to e · n / 2, so over all runs the share is known to
e / 2. What has been added up is thinned in the same way: that is the other e / 2.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np

from toolkit.data.schema import Type
from toolkit.errors import DataError
from toolkit.exchange.checksummed import read_sealed
from toolkit.text.kernels.signatures import Array
from toolkit.whole_corpus.expressions import GroupNumbers
from toolkit.whole_corpus.kind import Files, Kind, Query, Signer, TextBlock
from toolkit.whole_corpus.records import SignedShard


class RankSteps(NamedTuple):
    """The ranks of a group's scores, as steps.

    Attributes:
        documents: Documents of the group.
        scores: float64, ascending.
        at: float64, the ranks of these scores.
        between: float64, the rank of what is below the first score, of what is between each and the next, and of what
            is above the last one.
    """

    documents: int
    scores: Array
    at: Array
    between: Array


def thinned(below: Array, counts: Array, error: float) -> list[int]:
    """Return the indices of knots among sorted distinct scores.

    Args:
        below: Number of lower scores, for each score.
        counts: Number of rows, for each score.
        error: between two knots there are at most so many, as a share of all.
    """
    if not len(below):
        return []
    above = below + counts
    gap = int(error * int(above[-1]))
    return _chosen(below, above, gap)


def _chosen(begins: Array, ends: Array, gap: int) -> list[int]:
    """Return numbers from the first to the last: each begins at most so far behind the end of the one before."""
    chosen, last = [0], len(begins) - 1
    while chosen[-1] < last:
        bound = int(ends[chosen[-1]]) + gap
        chosen.append(max(chosen[-1] + 1, int(np.searchsorted(begins, bound, side="right")) - 1))
    return chosen


def added(parts: Sequence[Array], error: float) -> RankSteps:
    """Return a group's ranks within an error, from all its knots."""
    documents = sum(int(part["below"][-1]) + int(part["count"][-1]) for part in parts)
    scores = np.unique(np.concatenate([part["score"] for part in parts]))
    at = np.zeros(len(scores), dtype=np.int64)  # twice how many are below, and half of those that are equal
    between = np.zeros(len(scores), dtype=np.int64)  # the same for what is above a score, and below the next
    for part in parts:
        below, counts = part["below"].astype(np.int64), part["count"].astype(np.int64)
        above = below + counts
        after = np.r_[0, above + np.r_[below[1:], above[-1]]]
        places = np.searchsorted(part["score"], scores, side="right")
        is_knot = np.isin(scores, part["score"], assume_unique=True)
        knots = np.maximum(places - 1, 0)
        between += after[places]
        at += np.where(is_knot, below[knots] + above[knots], after[places])
    return _thinned(documents, scores, at, between, error)


def _thinned(documents: int, scores: Array, at: Array, between: Array, error: float) -> RankSteps:
    """Return thinned steps, with ranks within an error."""
    chosen = np.array(_chosen(np.r_[0, between[:-1]], between, int(2 * error * documents)))
    low, high = between[chosen[:-1]], between[chosen[1:] - 1]
    middle = (low + high) / (4 * documents)
    return RankSteps(documents, scores[chosen], at[chosen] / (2 * documents), np.r_[0.0, middle, 1.0])


def steps_of(scores: Array, error: float) -> RankSteps:
    """Return thinned ranks of scores in memory, within an error."""
    result, counts = np.unique(scores, return_counts=True)
    below = np.cumsum(counts) - counts
    return _thinned(len(scores), result, 2 * below + counts, 2 * (below + counts), error)


def stepped(knots: Array, at: Array, between: Array, scores: Array) -> Array:
    """Return the value of each score: `at` for a knot, `between` for what lies between."""
    places = np.searchsorted(knots, scores, side="right")
    is_knot = knots[np.maximum(places - 1, 0)] == scores
    return np.where(is_knot, at[np.maximum(places - 1, 0)], between[places])


ROWS = 1 << 19
ABSENT = (1 << 32) - 1
FILE = "scores.bin"
STEP = 1 << 9
"""Keys between two marks, at most."""
_MARKS = 1 << 6
"""Marks of a run, at least, if it has as many keys."""

KNOT = np.dtype([("score", "<f8"), ("below", "<u4"), ("count", "<u4")])
LABELLED = np.dtype([("group", "<u4"), ("score", "<f8"), ("label", "<f8")])


class RunLayout(NamedTuple):
    """The stored runs.

    Attributes:
        scores: Number of scores of a document.
        sketch: the error within which quantiles are wanted; 0: ranks are, exactly; None: neither is.
        labels: True if documents have labels.
    """

    scores: int
    sketch: float | None
    labels: bool


class ScoreColumn(msgspec.Struct, frozen=True):
    """The offsets of a score's arrays in the file; how far marks are, how many keys there are."""

    step: int
    total: int
    starts: int
    marks: int
    keys: int
    counts: int
    items: int
    knots: int
    ends: int


class ScoreRun(msgspec.Struct, frozen=True):
    """A run: its rows, those that are ranked, its groups by label, its scores, and its labelled rows."""

    rows: int
    ranked: int
    groups: list[str]
    columns: list[ScoreColumn]
    labelled: int
    labelled_at: int


class ScoresOutput:
    """Writes the runs of a shard.

    Args:
        files: Files of the shard.
        layout: Layout of the file.
    """

    def __init__(self, files: Files, layout: RunLayout) -> None:
        self._out = files.open(FILE)
        self._layout = layout
        self._labels = GroupNumbers("within", "groups")
        self.runs: list[ScoreRun] = []
        self._begin()

    def _begin(self) -> None:
        self._rows, self._groups = 0, list[Array]()
        self._columns: list[list[Array]] = [[] for _ in range(self._layout.scores + self._layout.labels)]

    def add(
        self, block: TextBlock, within: Sequence[list[Any]], scores: Sequence[list[Any]], labels: list[Any]
    ) -> None:
        """Append documents.

        Args:
            block: Block of them.
            within: values that say the group of each.
            scores: Scores of each, or null.
            labels: Labels of each, or null; none at all without labels in the layout.

        Raises:
            DataError: if a number is not finite.
        """
        columns = [_finite(block, column) for column in (*scores, *([labels] if self._layout.labels else []))]
        groups = np.array(self._labels.numbers(within, block.competes, ABSENT), dtype=np.uint32)
        first = 0
        while first < len(groups):
            last = min(first + ROWS - self._rows, len(groups))
            self._groups.append(groups[first:last])
            for parts, column in zip(self._columns, columns, strict=True):
                parts.append(column[first:last])
            self._rows += last - first
            if self._rows == ROWS:
                self.flush()
            first = last

    def flush(self) -> None:
        """Write the added rows as a run."""
        if not self._rows:
            return
        groups = np.concatenate(self._groups)
        columns = [np.concatenate(parts) + 0.0 for parts in self._columns]  # -0.0 is 0.0
        scores = columns[: self._layout.scores]
        ranked = np.flatnonzero((groups != ABSENT) & ~np.isnan(scores).any(axis=0))
        all_labels = self._labels.all
        present = sorted(np.unique(groups[ranked]).tolist(), key=all_labels.__getitem__)
        table = np.zeros(len(all_labels), dtype=np.uint32)
        table[present] = np.arange(len(present), dtype=np.uint32)
        mine = table[groups[ranked]]
        labels = [all_labels[number] for number in present]
        self._out.put(msgspec.json.encode(labels))  # so that they are part of what tells these signatures from others
        written = [self._column(len(groups), ranked, mine, len(present), column[ranked]) for column in scores]
        labelled = np.zeros(0, dtype=LABELLED)
        if self._layout.labels:
            of_labels = columns[-1][ranked]
            chosen = np.flatnonzero(~np.isnan(of_labels))
            labelled = np.zeros(len(chosen), dtype=LABELLED)
            labelled["group"], labelled["score"] = mine[chosen], scores[0][ranked][chosen]
            labelled["label"] = of_labels[chosen]
        at = self._out.put(labelled.tobytes())
        self.runs.append(ScoreRun(len(groups), len(ranked), labels, written, len(labelled), at))
        self._begin()

    def _column(self, rows: int, ranked: Array, groups: Array, count: int, scores: Array) -> ScoreColumn:
        order = np.lexsort((scores, groups))
        sorted_groups, sorted_scores = groups[order], scores[order]
        is_new = np.ones(len(order), dtype=bool)
        is_new[1:] = (sorted_groups[1:] != sorted_groups[:-1]) | (sorted_scores[1:] != sorted_scores[:-1])
        first = np.flatnonzero(is_new)
        keys = sorted_scores[first]
        starts = np.searchsorted(sorted_groups[first], np.arange(count + 1)).astype("<u4")
        counts = np.diff(np.append(first, len(order))).astype("<u4")
        items = np.full(rows, ABSENT, dtype="<u4")
        items[ranked[order]] = np.cumsum(is_new) - 1
        step = min(STEP, max(1, len(keys) // _MARKS))
        knots, ends = self._knots(keys, counts, starts)
        return ScoreColumn(
            step,
            len(keys),
            self._out.put(starts.tobytes()),
            self._out.put(keys[step // 2 :: step].tobytes() if self._layout.sketch == 0 else b""),
            self._out.put(keys.tobytes()),
            self._out.put(counts.tobytes()),
            self._out.put(items.tobytes()),
            self._out.put(knots.tobytes()),
            self._out.put(ends.tobytes()),
        )

    def _knots(self, keys: Array, counts: Array, starts: Array) -> tuple[Array, Array]:
        """Return the knots of all groups, and the bounds of each."""
        results, ends = [np.zeros(0, dtype=KNOT)], [0]
        for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True) if self._layout.sketch else ():
            mine = counts[begin:end]
            below = np.cumsum(mine) - mine
            chosen = thinned(below, mine, self._layout.sketch or 0)
            knots = np.zeros(len(chosen), dtype=KNOT)
            knots["score"], knots["below"], knots["count"] = keys[begin:end][chosen], below[chosen], mine[chosen]
            results.append(knots)
            ends.append(ends[-1] + len(knots))
        return np.concatenate(results), np.array(ends, dtype="<u4")


def _finite(block: TextBlock, values: Sequence[float | None]) -> Array:
    result = np.array(values, dtype=np.float64)  # where nulls are nan
    for i in np.flatnonzero(~np.isfinite(result)).tolist():
        if values[i] is not None:
            message = f"expected a finite number, or null, got {values[i]!r}"
            raise DataError(message, line=block.first + i + 1, id=block.documents[i].id)
    return result


class RunOfScores(msgspec.Struct, frozen=True):
    """A run with its place: its file, and the number of its shard."""

    path: str
    shard: int
    run: ScoreRun

    def read(self, offset: int, count: int, dtype: Any) -> Array:
        """Return values from an offset of the file."""
        dtype = np.dtype(dtype)
        return np.frombuffer(read_sealed(self.path, offset, count * dtype.itemsize), dtype=dtype)

    def starts(self, column: ScoreColumn) -> Array:
        """Return the bounds of the keys of groups."""
        return self.read(column.starts, len(self.run.groups) + 1, "<u4")

    def marks(self, column: ScoreColumn) -> Array:
        """Return every so many-th key."""
        return self.read(column.marks, len(range(column.step // 2, column.total, column.step)), "<f8")

    def keys(self, column: ScoreColumn, first: int = 0, last: int | None = None) -> Array:
        """Return some keys."""
        last = column.total if last is None else last
        return self.read(column.keys + 8 * first, last - first, "<f8")

    def counts(self, column: ScoreColumn, first: int, last: int) -> Array:
        """Return of some keys how many rows have them."""
        return self.read(column.counts + 4 * first, last - first, "<u4")

    def items(self, column: ScoreColumn) -> Array:
        """Return of each row the number of its key."""
        return self.read(column.items, self.run.rows, "<u4")

    def knots(self, column: ScoreColumn) -> Iterator[tuple[str, Array]]:
        """Yield the label of each group, and its knots."""
        ends = self.read(column.ends, len(self.run.groups) + 1, "<u4").tolist()
        knots = self.read(column.knots, ends[-1], KNOT)
        for group, begin, end in zip(self.run.groups, ends[:-1], ends[1:], strict=True):
            yield group, knots[begin:end]

    def labelled(self) -> Array:
        """Return group, score and label of the labelled rows."""
        return self.read(self.run.labelled_at, self.run.labelled, LABELLED)

    def place(self, column: ScoreColumn, starts: Array, marks: Array, label: str, score: float) -> int:
        """Return the number of the first key at or above a score."""
        group = bisect_left(self.run.groups, label)
        low = int(starts[group])
        if group == len(self.run.groups) or self.run.groups[group] != label:
            return low
        high, half = int(starts[group + 1]), column.step // 2
        first, last = (max(0, -(-(bound - half) // column.step)) for bound in (low, high))  # marks of the group
        mark = first + int(np.searchsorted(marks[first:last], score))
        if mark > first:
            low = half + (mark - 1) * column.step
        if mark < last:
            high = half + mark * column.step
        return low + int(np.searchsorted(self.keys(column, low, high), score))


def runs_of(signed: SignedShard) -> Iterator[RunOfScores]:
    """Yield the runs of a shard, in order."""
    for run in msgspec.convert(signed.record.details, list[ScoreRun]):
        yield RunOfScores(signed.path(FILE), signed.number, run)


MANY = 20
"""Groups that a note names, at most."""


class Calibrating(Kind, kw_only=True):
    """A kind of values from scores, group by group.

    Attributes:
        within: groups that are calibrated one by one, such as languages or sources: SET.KEY.field or an expression, or
            a list of such; none: all documents are one
    """

    SECTION: ClassVar[str] = "calibrate"

    NAMED: ClassVar[bool] = True

    TEXTS: ClassVar[bool] = False

    within: str | list[str] = []

    @property
    def scores(self) -> list[str]:
        """Return the expressions of the scores."""
        raise NotImplementedError

    @property
    def layout(self) -> RunLayout:
        """Return the layout of stored scores."""
        raise NotImplementedError

    @property
    def groups(self) -> list[str]:
        """Return the expressions of the groups."""
        return [self.within] if isinstance(self.within, str) else self.within

    def queries(self) -> dict[str, Query]:
        """Return the expressions of the options."""
        results = {
            name: Query(text, "value") for name, text in zip(numbered("within", self.groups), self.groups, strict=True)
        }
        scores = zip(numbered("score", self.scores), self.scores, strict=True)
        return results | {name: Query(text, "score") for name, text in scores}

    def signer(self, files: Files) -> Signer:
        """Return a writer of a shard's scores."""
        return _Scores(self, files)


class _Scores(Signer):
    """Writes the scores of a shard's documents."""

    kind: Calibrating

    def __init__(self, kind: Calibrating, files: Files) -> None:
        super().__init__(kind, files)
        self._runs = ScoresOutput(files, kind.layout)

    def add(self, block: TextBlock) -> None:
        """Take the next documents."""
        within = [block.values[name] for name in numbered("within", self.kind.groups)]
        scores = [block.values[name] for name in numbered("score", self.kind.scores)]
        self._runs.add(block, within, scores, block.values.get("labels", []))

    def finish(self) -> tuple[dict[str, int], Any]:
        """Write the last run."""
        self._runs.flush()
        return {"ranked": sum(run.ranked for run in self._runs.runs)}, self._runs.runs


def numbered(option: str, texts: Sequence[str]) -> list[str]:
    """Return the name of each of an option's expressions: ``score``, or, of several, ``score[0]`` and so on."""
    return [option] if len(texts) == 1 else [f"{option}[{i}]" for i in range(len(texts))]


def may_be_null(type_: Type) -> bool:
    """Return True if values of a type may be null."""
    return type_.kind in ("nullable", "null", "any")


def some(labels: Sequence[str]) -> str:
    """Return labels for people, the first of many."""
    more = f" and {len(labels) - MANY} more" if len(labels) > MANY else ""
    return ", ".join(labels[:MANY]) + more
