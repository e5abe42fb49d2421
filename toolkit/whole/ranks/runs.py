"""What is kept of a shard's scores: runs of sorted distinct scores, and which of them each row has.

``scores.bin``, which is sealed, has for each run (`ROWS` rows, fewer at the end of a shard), little-endian:

    labels   JSON: the groups of the run, sorted by their labels
    for each score of a document:
        starts   a uint32 a group, and one more: its first key, and where the last ends
        marks    float64: every so many-th key, `Column.step` apart, from half a step on; for exact ranks
        keys     float64: the distinct scores of each group in turn, sorted
        counts   a uint32 a key: rows that have it
        items    a uint32 a row: the number of its key; `ABSENT` for one that is not ranked
        knots    for ranks within an error: `KNOT`, those of the keys that are needed, by group
        ends     a uint32 a group, and one more: its first knot, and where the last ends
    labelled `LABELLED`: group, score and label of the rows that have a label; for maps that are fitted on labels
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from toolkit.errors import DataError
from toolkit.whole.kind import Block, Files
from toolkit.whole.labels import Labels
from toolkit.whole.ranks import steps
from toolkit.whole.records import SignedShard
from toolkit.whole.sealed import read_sealed

Array: TypeAlias = npt.NDArray[Any]

ROWS = 1 << 19
ABSENT = (1 << 32) - 1
FILE = "scores.bin"
STEP = 1 << 9
"""Keys between two marks, at most."""
_MARKS = 1 << 6
"""Marks of a run, at least, if it has as many keys."""

KNOT = np.dtype([("score", "<f8"), ("below", "<u4"), ("count", "<u4")])
LABELLED = np.dtype([("group", "<u4"), ("score", "<f8"), ("label", "<f8")])


class Layout(NamedTuple):
    """What is kept.

    Attributes:
        scores: how many a document has.
        sketch: the error within which ranks are wanted; 0: they are exact; None: they are not wanted.
        labels: whether documents have labels.
    """

    scores: int
    sketch: float | None
    labels: bool


class Column(msgspec.Struct, frozen=True):
    """Where the parts of one of the scores are in the file, in bytes; how far marks are, how many keys there are."""

    step: int
    total: int
    starts: int
    marks: int
    keys: int
    counts: int
    items: int
    knots: int
    ends: int


class Run(msgspec.Struct, frozen=True):
    """A run: its rows, those that are ranked, its groups by label, its scores, and its labelled rows."""

    rows: int
    ranked: int
    groups: list[str]
    columns: list[Column]
    labelled: int
    labelled_at: int


class ScoresOutput:
    """Writes the runs of a shard.

    Args:
        files: of the shard.
        layout: what is kept.
    """

    def __init__(self, files: Files, layout: Layout) -> None:
        self._out = files.open(FILE)
        self._layout = layout
        self._labels = Labels("within", "groups")
        self.runs: list[Run] = []
        self._begin()

    def _begin(self) -> None:
        self._groups = array("I")
        self._scores = [array("d") for _ in range(self._layout.scores)]
        self._of_labels = array("d")

    def add(self, block: Block, within: Sequence[list[Any]], scores: Sequence[list[Any]], labels: list[Any]) -> None:
        """Append documents.

        Args:
            block: of them.
            within: values that say the group of each.
            scores: of each, or null.
            labels: of each, or null; none at all without labels in the layout.

        Raises:
            DataError: if a number is not finite.
        """
        for column in (*scores, *([labels] if self._layout.labels else [])):
            _check_finite(block, column)
        for i, competes in enumerate(block.competes):
            self._groups.append(self._labels.number([values[i] for values in within]) if competes else ABSENT)
            for kept, column in zip(self._scores, scores, strict=True):
                kept.append(np.nan if column[i] is None else column[i])
            if self._layout.labels:
                self._of_labels.append(np.nan if labels[i] is None else labels[i])
            if len(self._groups) == ROWS:
                self.flush()

    def flush(self) -> None:
        """Write what has been added as a run."""
        if not self._groups:
            return
        groups = np.frombuffer(self._groups, dtype=np.uint32)
        scores = [np.frombuffer(column, dtype="<f8") + 0.0 for column in self._scores]  # -0.0 is 0.0
        ranked = np.flatnonzero((groups != ABSENT) & ~np.isnan(scores).any(axis=0))
        all_labels = self._labels.all
        there = sorted(np.unique(groups[ranked]).tolist(), key=all_labels.__getitem__)
        table = np.zeros(len(all_labels), dtype=np.uint32)
        table[there] = np.arange(len(there), dtype=np.uint32)
        mine = table[groups[ranked]]
        labels = [all_labels[number] for number in there]
        self._out.put(msgspec.json.encode(labels))  # so that they are part of what tells these signatures from others
        columns = [self._column(len(groups), ranked, mine, len(there), column[ranked]) for column in scores]
        labelled = np.zeros(0, dtype=LABELLED)
        if self._layout.labels:
            of_labels = np.frombuffer(self._of_labels, dtype="<f8")[ranked]
            chosen = np.flatnonzero(~np.isnan(of_labels))
            labelled = np.zeros(len(chosen), dtype=LABELLED)
            labelled["group"], labelled["score"] = mine[chosen], scores[0][ranked][chosen]
            labelled["label"] = of_labels[chosen] + 0.0
        at = self._out.put(labelled.tobytes())
        self.runs.append(Run(len(groups), len(ranked), labels, columns, len(labelled), at))
        self._begin()

    def _column(self, rows: int, ranked: Array, groups: Array, count: int, scores: Array) -> Column:
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
        return Column(
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
        """Return the knots of all groups, and where those of each begin and end."""
        found, ends = [np.zeros(0, dtype=KNOT)], [0]
        for begin, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True) if self._layout.sketch else ():
            mine = counts[begin:end]
            below = np.cumsum(mine) - mine
            kept = steps.thinned(below, mine, self._layout.sketch or 0)
            knots = np.zeros(len(kept), dtype=KNOT)
            knots["score"], knots["below"], knots["count"] = keys[begin:end][kept], below[kept], mine[kept]
            found.append(knots)
            ends.append(ends[-1] + len(knots))
        return np.concatenate(found), np.array(ends, dtype="<u4")


def _check_finite(block: Block, values: Sequence[float | None]) -> None:
    found = np.array(values, dtype=np.float64)  # where nulls are nan
    for i in np.flatnonzero(~np.isfinite(found)).tolist():
        if values[i] is not None:
            message = f"expected a finite number, or null, got {values[i]!r}"
            raise DataError(message, line=block.first + i + 1, id=block.documents[i].id)


class RunOfShard(msgspec.Struct, frozen=True):
    """A run where it is: its file, and the number of its shard."""

    path: str
    shard: int
    run: Run

    def read(self, offset: int, count: int, dtype: Any) -> Array:
        """Return values that begin at a byte of the file."""
        dtype = np.dtype(dtype)
        return np.frombuffer(read_sealed(self.path, offset, count * dtype.itemsize), dtype=dtype)

    def starts(self, column: Column) -> Array:
        """Return where the keys of each group begin."""
        return self.read(column.starts, len(self.run.groups) + 1, "<u4")

    def marks(self, column: Column) -> Array:
        """Return every so many-th key."""
        return self.read(column.marks, len(range(column.step // 2, column.total, column.step)), "<f8")

    def keys(self, column: Column, first: int = 0, last: int | None = None) -> Array:
        """Return some keys."""
        last = column.total if last is None else last
        return self.read(column.keys + 8 * first, last - first, "<f8")

    def counts(self, column: Column, first: int, last: int) -> Array:
        """Return of some keys how many rows have them."""
        return self.read(column.counts + 4 * first, last - first, "<u4")

    def items(self, column: Column) -> Array:
        """Return of each row the number of its key."""
        return self.read(column.items, self.run.rows, "<u4")

    def knots(self, column: Column) -> Iterator[tuple[str, Array]]:
        """Yield the label of each group, and its knots."""
        ends = self.read(column.ends, len(self.run.groups) + 1, "<u4").tolist()
        knots = self.read(column.knots, ends[-1], KNOT)
        for group, begin, end in zip(self.run.groups, ends[:-1], ends[1:], strict=True):
            yield group, knots[begin:end]

    def labelled(self) -> Array:
        """Return group, score and label of the rows that have a label."""
        return self.read(self.run.labelled_at, self.run.labelled, LABELLED)

    def place(self, column: Column, starts: Array, marks: Array, label: str, score: float) -> int:
        """Return the number of the first key that is not before a score of a group."""
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


def runs_of(signed: SignedShard) -> Iterator[RunOfShard]:
    """Yield the runs of a shard, in order."""
    for run in msgspec.convert(signed.record.details, list[Run]):
        yield RunOfShard(signed.path(FILE), signed.number, run)
