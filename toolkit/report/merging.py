"""The counts of all shards of a stream, added up: effects of rules, sizes, distributions, samples that are chosen."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from toolkit.aggregate.histogram import Spread
from toolkit.aggregate.samples import Least
from toolkit.mix.effects.counts import GroupCount, RuleCount, Totals, add, add_groups
from toolkit.report import facts
from toolkit.report.attributes import MOST, PAIRS, DuplicateCounts
from toolkit.report.fields import Fields
from toolkit.report.one_shard import EFFECT, SIZES, ShardCounts

BINS = 40
"""Bins of a histogram; of a score with thresholds there are more."""

MARKED_BINS = 100

MOST_LABELS = 200
"""Labels whose distributions are shown, those with most documents; all others are one, called ``*``."""


class Chosen(NamedTuple):
    """A document that is chosen among those of all shards.

    Attributes:
        distance, hash: its rank.
        shard: number of the shard.
        row: in it, from 1.
    """

    distance: float
    hash: int
    shard: int
    row: int


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
        self.chosen = Least[Chosen]()
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
        self.lengths.merge(fields.lengths, found.labels)
        for score, one in zip(self.scores, fields.scores, strict=True):
            score.merge(one, found.labels)
        for marks, more_marks in zip(self.marks, fields.marks, strict=True):
            for mark, counts in zip(marks, more_marks, strict=True):
                mark.update(counts)
        for spans, more_spans in zip(self.spans, fields.spans, strict=True):
            for label, numbers in more_spans.items():
                _add(spans.setdefault(label, [0, 0, 0]), numbers)
        for number, each in enumerate(fields.duplicates):
            self._add_duplicates(number, shard, each)
        for key, ranks in found.ranks.items():
            here = (Chosen(rank.distance, rank.hash, shard, rank.row) for rank in ranks)
            self.chosen.add(key, MOST[key.partition("\n")[0]], here)

    def _add_duplicates(self, number: int, shard: int, found: DuplicateCounts) -> None:
        mine = self.duplicates[number]
        mine.documents += found.documents
        mine.copies += found.copies
        for size, count in found.clusters.items():
            mine.clusters[size] = mine.clusters.get(size, 0) + count
        pairs = self.pairs[number] + [(hash_, shard, *rest) for hash_, *rest in found.pairs]
        self.pairs[number] = sorted(pairs, key=lambda pair: pair[:3])[:PAIRS]


def _add(mine: list[int], theirs: Iterable[int]) -> None:
    for i, number in enumerate(theirs):
        mine[i] += number


def sizes_of(numbers: Sequence[int], *, tokens: bool) -> facts.Sizes:
    """Return sums in the order of `SIZES` by their names."""
    found = facts.Sizes(**dict(zip(SIZES, numbers, strict=True)))
    found.tokens = found.tokens if tokens else None
    return found
