"""The sum of the effects of rules in all shards; unmatched entries of blocklists."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from toolkit import partial_sums
from toolkit.mix.bindings import ShardToMix
from toolkit.mix.publication import BlocklistCount, BudgetFound, Unseen
from toolkit.mix.rule_effects.counts import GroupCount, RuleCount, RuleEffect, ShardEffects, SizesByLabel, Totals
from toolkit.mix.settings import MixSettings
from toolkit.rules import expression_tree
from toolkit.rules.ruleset import RuleSet
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import exists, join, remove, work_folder

SHARDS_LISTED = 10
"""Number of shards named for a field that they lack."""


class _Shards:
    """The shards with the same kinds of values: their number, and some names."""

    def __init__(self) -> None:
        self.number, self.first = 0, list[str]()

    def add(self, shard: str) -> None:
        self.number += 1
        if len(self.first) < SHARDS_LISTED:
            self.first.append(shard)


class MixSummary:
    """Adds up the effects of rules, shard by shard.

    The attributes and properties have the names of fields of a manifest.

    Args:
        settings: Settings of the mix.
        budget: Bounds of its budget, if it has one.

    Attributes:
        totals: Documents and code points.
        counts: Documents that the writer left out, by reason.
        statistics: Sizes by label.
        not_carried: Documents with fields that the output does not carry, by field.
        unlike_dolma: Number of documents that Dolma decides otherwise about.
    """

    def __init__(self, settings: MixSettings, budget: BudgetFound | None) -> None:
        self.totals = Totals()
        self.counts, self.not_carried = Counter[str](), Counter[str]()
        self.statistics: SizesByLabel = {}
        self.unlike_dolma = 0
        self._streams, self._budget = settings.streams, budget
        self._groups: dict[str, GroupCount] = {}
        self._rules = {item.name: [RuleCount() for _ in item.all_rules] for item in settings.streams}
        self._only: dict[str, list[int]] = {}
        self._compiled: dict[str, RuleSet] = {}
        self._matched: dict[tuple[str, tuple[str, ...]], tuple[RuleSet, int, set[int]]] = {}
        self._places: dict[str, dict[str, dict[int, _Shards]]] = {item.name: {} for item in settings.streams}

    def add(self, work: ShardToMix, effects: ShardEffects, only: list[int] | None = None) -> None:
        """Add the effects on a shard.

        Args:
            work: Shard.
            effects: Effects of the rules.
            only: Number of documents that each rule alone drops, if it is known.
        """
        stream = work.stream.name
        partial_sums.add(self.totals, effects.totals)
        partial_sums.add(self._rules[stream], effects.rules)
        partial_sums.add(self._only, {} if only is None else {stream: only})
        partial_sums.add(self.statistics, effects.statistics)
        partial_sums.add(self._groups, effects.groups)
        self.counts.update(effects.counts)
        self.not_carried.update(effects.not_carried)
        self.unlike_dolma += effects.unlike_dolma
        if (effects.matched or effects.kinds) and stream not in self._compiled:
            self._compiled[stream] = work.compile_rules()
        for i, entries in effects.matched.items():
            rules = self._compiled[stream]
            key = (rules.rules[i].name, rules.blocklists[i].files)  # streams may share a list, which is counted once
            self._matched.setdefault(key, (rules, i, set()))[2].update(entries)
        for text, bits in effects.kinds.items():
            kinds = self._places[stream].setdefault(text, {})
            kinds.setdefault(bits & ~expression_tree.ABSENT, _Shards()).add(work.shard)

    @property
    def rules(self) -> list[RuleEffect]:
        """Return the effect of each rule, stream by stream."""
        return [
            RuleEffect(
                name=rule.name,
                kind=rule.kind,
                stream=stream.name,
                group=rule.group,
                only=self._only[stream.name][i] if rule.drops and stream.name in self._only else None,
                **msgspec.structs.asdict(self._rules[stream.name][i]),
            )
            for stream in self._streams
            for i, rule in enumerate(stream.all_rules)
        ]

    @property
    def blocklists(self) -> list[BlocklistCount]:
        """Return the number of matched entries of each blocklist."""
        return [
            BlocklistCount(rule=name, entries=len(rules.blocklists[i].list), matched=len(entries))
            for (name, _), (rules, i, entries) in self._matched.items()
        ]

    def unmatched(self) -> dict[str, list[str]]:
        """Return the unmatched entries of blocklists, by rule."""
        results: dict[str, list[str]] = {}
        for (name, _), (rules, i, entries) in self._matched.items():
            blocklist = rules.blocklists[i].list
            if numbers := [*blocklist.without(entries)]:
                results.setdefault(name, []).extend(map(blocklist.show, numbers))
        return results

    @property
    def unseen(self) -> list[Unseen]:
        """Return the fields and texts of rules missing in documents."""
        return [
            Unseen(rule=rules.rules[i].name, stream=stream, field=text, compares=compares, **shards)
            for stream, rules in self._compiled.items()
            for text, indexes in rules.occurrence.rules.items()
            for compares in [text in rules.occurrence.compared]
            for shards in _missing_values(self._places[stream].get(text, {}), compares=compares)
            for i in indexes
        ]

    @property
    def budget(self) -> BudgetFound | None:
        """Return the budget with the counts of its documents."""
        if self._budget is None:
            return None
        groups = [
            msgspec.structs.replace(row, **msgspec.structs.asdict(self._groups.get(row.group, GroupCount())))
            for row in self._budget.groups
        ]
        return msgspec.structs.replace(self._budget, groups=groups)

    def fields(self) -> dict[str, Any]:
        """Return the sums under the names of fields of a manifest."""
        return {
            "totals": self.totals,
            "rules": self.rules,
            "blocklists": self.blocklists,
            "unseen": self.unseen,
            "counts": dict(sorted(self.counts.items())),
            "not_carried": dict(sorted(self.not_carried.items())),
            "unlike_dolma": self.unlike_dolma,
            "statistics": dict(sorted(self.statistics.items())),
            "budget": self.budget,
        }


def _missing_values(kinds: Mapping[int, _Shards], *, compares: bool) -> list[dict[str, Any]]:
    """Return the shards without a value, or with another kind of value."""
    usual = max((bits for bits in kinds if bits), key=lambda bits: (kinds[bits].number, -bits), default=0)
    return [
        {
            "shards": [] if len(kinds) == 1 else kinds[bits].first,
            "missing": kinds[bits].number,
            "of": sum(shards.number for shards in kinds.values()),
            "got": _words(bits),
            "usual": _words(usual) if bits else "",
        }
        for bits in sorted(kinds)
        if not (bits & usual or (compares and len(kinds) > 1))  # a text need not be in each shard
    ]


def _words(bits: int) -> str:
    return " or ".join(word for bit, word in expression_tree.WORDS.items() if bits & bit)


# --- the list of unmatched entries ------------------------------------------------------------------------------------


def path_of(output: str) -> str:
    """Return the path of the list beside an output: rule, tab, ``file:line: entry``."""
    return join(work_folder(output), "unmatched.tsv")


def load(output: str) -> dict[str, list[str]]:
    """Return the entries listed by an earlier mix, by rule."""
    results: dict[str, list[str]] = {}
    if exists(path_of(output)):
        for line in store_of(path_of(output)).read(path_of(output)).decode().split("\n")[:-1]:
            name, _, entry = line.partition("\t")
            results.setdefault(name, []).append(entry)
    return results


def save(output: str, unmatched: Mapping[str, list[str]]) -> None:
    """Write the list, or delete it if there are no entries."""
    if not unmatched:
        remove(path_of(output))
        return
    text = "".join(f"{name}\t{entry}\n" for name, entries in unmatched.items() for entry in entries)
    write_file(path_of(output), text.encode())
