"""The counts of all shards of a stream, added up: effects of rules, sizes, distributions, samples that are chosen."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from toolkit import partials
from toolkit.aggregate.histogram import Spread
from toolkit.aggregate.samples import Least
from toolkit.mix.effects.counts import RuleCount, Totals
from toolkit.report import facts
from toolkit.report.attributes import MOST, PAIRS, DuplicateCounts
from toolkit.report.fields import Fields
from toolkit.report.one_shard import SIZES, ShardCounts, Sums

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
        sums: of all shards.
        chosen: samples, by key.
        pairs: of near duplicates, by the number of their set: hash, number of the shard, row, and the rest.
        fates: by the number of a shard, bytes of what is noted of its documents, where rules drop copies.
    """

    def __init__(self, rules: int, fields: Fields) -> None:
        self.sums = Sums(
            totals=Totals(),
            effects=[RuleCount() for _ in range(rules)],
            marks=[[{} for _ in score.marks] for score in fields.scores],
            spans=[{} for _ in fields.spans],
            duplicates=[DuplicateCounts() for _ in fields.duplicates],
        )
        self.lengths, self.scores = Spread(), [Spread() for _ in fields.scores]
        self.chosen, self.pairs = Least[Chosen](), Least[tuple[Any, ...]]()
        self.fates: dict[int, int] = {}

    def add(self, shard: int, found: ShardCounts) -> None:
        """Add those of a shard, by its number."""
        partials.add(self.sums, found.sums)
        if found.fates is not None:
            self.fates[shard] = found.fates
        for mine, theirs in zip([self.lengths, *self.scores], [found.lengths, *found.scores], strict=True):
            mine.merge(theirs, found.labels)
        for key, ranks in found.ranks.items():
            here = (Chosen(rank.distance, rank.hash, shard, rank.row) for rank in ranks)
            self.chosen.add(key, MOST[key.partition("\n")[0]], here)
        for key, pairs in found.pairs.items():
            self.pairs.add(key, PAIRS, ((hash_, shard, *rest) for hash_, *rest in pairs))


def sizes_of(numbers: Sequence[int], *, tokens: bool) -> facts.Sizes:
    """Return sums in the order of `SIZES` by their names."""
    found = facts.Sizes(**dict(zip(SIZES, numbers, strict=True)))
    found.tokens = found.tokens if tokens else None
    return found
