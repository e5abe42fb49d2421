"""Orphans by the rules and sets that drop them."""

from collections import Counter
from collections.abc import Sequence

from toolkit.mix.join import ShardToMix
from toolkit.mix.orphans import judging
from toolkit.mix.publish import OrphanCount


def counts_of(works: Sequence[ShardToMix], found: judging.Found) -> list[OrphanCount]:
    """Return how many orphans each rule and set has, by stream, rule and set.

    Args:
        works: the shards that were judged, in that order.
        found: the orphans.
    """
    counts: Counter[tuple[str, int, int]] = Counter()
    names: dict[tuple[str, int, int], OrphanCount] = {}
    for (shard, rule, set_), documents in sorted(found.counts.items()):
        stream = works[shard].stream
        key = stream.name, rule, set_
        counts[key] += documents
        names[key] = OrphanCount(
            rule=stream.all_rules[rule].name,
            set=works[shard].sets[set_].set,
            stream=stream.name,
            documents=counts[key],
        )
    return [names[key] for key in sorted(names)]
