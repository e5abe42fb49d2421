"""The counts of all shards of a stream, added up: effects of rules, sizes, distributions, samples that are chosen."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.mix.effects.counts import GroupCount, RuleCount, Totals, add, add_groups
from toolkit.report import buckets, facts
from toolkit.report.attributes import OF_LABEL, DuplicateCounts, Histogram, folded, parts_of
from toolkit.report.choosing import MOST, Chosen
from toolkit.report.fields import Fields
from toolkit.report.one_shard import EFFECT, SIZES, ShardCounts

if TYPE_CHECKING:
    import numpy as np

BINS = 40
"""Bins of a histogram; of a score with thresholds there are more."""

MARKED_BINS = 100

MOST_LABELS = 200
"""Labels whose distributions are shown, those with most documents; all others are one, called ``*``."""

REST = "*"

_HELD = 1 << 20
"""Cells of a distribution that are held before they are added up."""


class Bins(NamedTuple):
    """A distribution in bins.

    Attributes:
        edges: of the bins.
        counts, after: by label: of all documents, and of those that stay.
        on_edges, after_on_edges: those of them whose number is the lower edge of the bin itself.
    """

    edges: list[float]
    counts: dict[str, list[int]]
    after: dict[str, list[int]]
    on_edges: dict[str, list[int]]
    after_on_edges: dict[str, list[int]]


class Spread:
    """The distribution of a number, by label, of all shards: its cells are those of `Histogram`, of its own labels."""

    def __init__(self) -> None:
        self.nulls: Counter[str] = Counter()
        self.greatest: float | None = None
        self.whole = True
        self.labels: dict[str, int] = {}
        self.cells: list[np.ndarray[Any, Any]] = []
        self.counts: list[np.ndarray[Any, Any]] = []
        self._held = 0

    def add(self, found: Histogram, labels: Sequence[str]) -> None:
        """Add that of a shard, whose labels these are."""
        self._put(*found.arrays(), labels)
        self.nulls.update(found.nulls)
        self._reach(found.greatest)
        self.whole &= found.whole

    def join(self, other: "Spread") -> None:
        """Add that of another stream."""
        for cells, counts in zip(other.cells, other.counts, strict=True):
            self._put(cells, counts, list(other.labels))
        self.nulls.update(other.nulls)
        self._reach(other.greatest)
        self.whole &= other.whole

    def _put(self, cells: "np.ndarray[Any, Any]", counts: "np.ndarray[Any, Any]", labels: Sequence[str]) -> None:
        import numpy as np

        mine = np.array([self.labels.setdefault(label, len(self.labels)) for label in labels], dtype=np.int64)
        number, rest = np.divmod(cells, OF_LABEL)
        self.cells.append(mine[number] * OF_LABEL + rest)
        self.counts.append(counts)
        self._held += len(cells)
        if self._held > _HELD:
            self._fold()

    def _fold(self) -> None:
        if self.cells:
            cells, counts = folded(self.cells, self.counts)
            self.cells, self.counts, self._held = [cells], [counts], 0

    def _reach(self, greatest: float | None) -> None:
        if greatest is not None:
            self.greatest = greatest if self.greatest is None else max(self.greatest, greatest)

    def shown(self, most: int, labels: set[str], *, whole: bool) -> "Bins":
        """Return edges, and the counts of bins by label.

        Args:
            most: bins.
            labels: that are shown; all others are added up.
            whole: whether numbers are integers.
        """
        import numpy as np

        self._fold()
        none = np.zeros(0, dtype=np.int64)
        number, code, edge, kept = parts_of(self.cells[0] if self.cells else none)
        counts = self.counts[0] if self.counts else none
        codes, place = np.unique(code, return_inverse=True)
        sums = np.zeros(len(codes), dtype=np.int64)
        np.add.at(sums, place, counts)
        begins = buckets.edges(dict(zip(codes.tolist(), sums.tolist(), strict=True)), most, whole=whole)
        names = [label if label in labels else REST for label in self.labels]
        listed = sorted({names[i] for i in np.unique(number).tolist()})
        row = np.array([listed.index(name) if name in listed else 0 for name in names] or [0], dtype=np.int64)[number]
        bin_ = np.clip(np.searchsorted(begins, code, side="right") - 1, 0, max(0, len(begins) - 2))
        on_edge = (edge == 1) & np.isin(code, begins)

        def binned(wanted: "np.ndarray[Any, Any]") -> dict[str, list[int]]:
            table = np.zeros((len(listed), max(1, len(begins) - 1)), dtype=np.int64)
            np.add.at(table, (row[wanted], bin_[wanted]), counts[wanted])
            there = set(row[wanted].tolist())
            return {label: _without_zeros(table[i].tolist()) for i, label in enumerate(listed) if i in there}

        edges = buckets.bounds(begins)
        if not whole and self.greatest is not None and len(edges) > 1 and edges[-2] < self.greatest < edges[-1]:
            edges[-1] = self.greatest
        stay = kept == 1
        return Bins(edges, binned(kept >= 0), binned(stay), binned(on_edge), binned(on_edge & stay))


def _without_zeros(counts: list[int]) -> list[int]:
    """Return counts without the zeros at their end."""
    while counts and not counts[-1]:
        counts.pop()
    return counts


class Merged:
    """The counts of a stream.

    Attributes:
        totals, effects, by_label, before, after, budget: as in `ShardCounts`, the last three by label.
        chosen: samples, by key.
        pairs: for each set of duplicates, of all shards: hash, number of the shard, row, and the rest.
        fates: by the number of a shard, bytes of what is noted of its documents, where rules drop copies.
    """

    def __init__(self, rules: int, fields: Fields) -> None:
        self.totals = Totals()
        self.effects = [RuleCount() for _ in range(rules)]
        self.by_label: dict[str, list[list[int]]] = {}
        self.before: dict[str, list[int]] = {}
        self.after: dict[str, list[int]] = {}
        self.budget: dict[str, GroupCount] = {}
        self.unlike_dolma = 0
        self.lengths = Spread()
        self.scores = [Spread() for _ in fields.scores]
        self.marks = [[Counter[str]() for _ in score.marks] for score in fields.scores]
        self.spans: list[dict[str, list[int]]] = [{} for _ in fields.spans]
        self.duplicates = [DuplicateCounts() for _ in fields.duplicates]
        self.pairs: list[list[tuple[Any, ...]]] = [[] for _ in fields.duplicates]
        self.chosen: dict[str, list[Chosen]] = {}
        self.fates: dict[int, int] = {}

    def add(self, shard: int, found: ShardCounts) -> None:
        """Add those of a shard, by its number."""
        add(self.totals, found.totals)
        for mine, theirs in zip(self.effects, found.effects, strict=True):
            add(mine, theirs)
        for i, label in enumerate(found.labels):
            rules = self.by_label.setdefault(label, [[0] * len(EFFECT) for _ in self.effects])
            for sums, more in zip(rules, found.by_label[i], strict=True):
                _add(sums, more)
            _add(self.before.setdefault(label, [0] * len(SIZES)), found.before[i])
            _add(self.after.setdefault(label, [0] * len(SIZES)), found.after[i])
        add_groups(self.budget, found.budget)
        self.unlike_dolma += found.unlike_dolma
        if found.fates is not None:
            self.fates[shard] = found.fates
        fields = found.fields
        self.lengths.add(fields.lengths, found.labels)
        for score, one in zip(self.scores, fields.scores, strict=True):
            score.add(one, found.labels)
        for marks, more_marks in zip(self.marks, fields.marks, strict=True):
            for mark, counts in zip(marks, more_marks, strict=True):
                mark.update(counts)
        for spans, more_spans in zip(self.spans, fields.spans, strict=True):
            for label, numbers in more_spans.items():
                _add(spans.setdefault(label, [0, 0, 0]), numbers)
        for number, each in enumerate(fields.duplicates):
            self._add_duplicates(number, shard, each)
        for key, ranks in found.ranks.items():
            here = [Chosen(rank.distance, rank.hash, shard, rank.row) for rank in ranks]
            known = sorted([*self.chosen.get(key, []), *here])
            self.chosen[key] = known[: MOST[key.partition("\n")[0]]]

    def _add_duplicates(self, number: int, shard: int, found: DuplicateCounts) -> None:
        mine = self.duplicates[number]
        mine.documents += found.documents
        mine.copies += found.copies
        for size, count in found.clusters.items():
            mine.clusters[size] = mine.clusters.get(size, 0) + count
        pairs = self.pairs[number] + [(hash_, shard, *rest) for hash_, *rest in found.pairs]
        self.pairs[number] = sorted(pairs, key=lambda pair: pair[:3])[: MOST["pair"]]


def _add(mine: list[int], theirs: Iterable[int]) -> None:
    for i, number in enumerate(theirs):
        mine[i] += number


def sizes_of(numbers: Sequence[int], *, tokens: bool) -> facts.Sizes:
    """Return sums in the order of `SIZES` by their names."""
    found = facts.Sizes(**dict(zip(SIZES, numbers, strict=True)))
    found.tokens = found.tokens if tokens else None
    return found
