"""Parts of rules that matched no document: entries of blocklists, fields, texts; counted, and listed."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolkit.mix.bindings import ShardToMix
from toolkit.mix.publish import BlocklistCount, Unseen
from toolkit.rules import expression_tree
from toolkit.rules.ruleset import RuleSet
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import exists, join, remove, work_folder


def matches(
    found: Iterable[tuple[ShardToMix, Mapping[int, list[int]]]],
) -> tuple[list[BlocklistCount], dict[str, list[str]]]:
    """Return how many entries of each blocklist matched, and those that did not, by rule.

    A blocklist that several streams share is counted once.

    Args:
        found: for each shard the matched entries by index of the rule.
    """
    compiled: dict[str, RuleSet] = {}
    matched: dict[tuple[str, tuple[str, ...]], tuple[RuleSet, int, set[int]]] = {}
    for work, by_rule in found:
        if by_rule and work.stream.name not in compiled:
            compiled[work.stream.name] = work.compile_rules()
        for i, entries in by_rule.items():
            rules = compiled[work.stream.name]
            key = (rules.rules[i].name, rules.blocklists[i].files)
            matched.setdefault(key, (rules, i, set()))[2].update(entries)
    counts: list[BlocklistCount] = []
    left: dict[str, list[str]] = {}
    for (name, _), (rules, i, hit) in matched.items():
        listed = rules.blocklists[i].list
        counts.append(BlocklistCount(rule=name, entries=len(listed), matched=len(hit)))
        left.setdefault(name, []).extend(listed.show(number) for number in listed.without(hit))
    return counts, {name: entries for name, entries in left.items() if entries}


SHARDS_LISTED = 10
"""Shards that are named of a field that they lack."""


def unseen(found: Iterable[tuple[ShardToMix, Mapping[str, int]]]) -> list[Unseen]:
    """Return the fields and texts of rules that no document had, or none of a whole shard.

    Args:
        found: for each shard the bits that `toolkit.rules.expression_tree` has noted.
    """
    by_stream: dict[str, tuple[RuleSet, dict[str, list[tuple[str, int]]]]] = {}
    for work, seen in found:
        if seen and work.stream.name not in by_stream:
            by_stream[work.stream.name] = work.compile_rules(), {}
        for text, bits in seen.items():
            by_stream[work.stream.name][1].setdefault(text, []).append((work.shard, bits))
    return [
        Unseen(rule=rules.rules[i].name, stream=stream, field=text, compares=compares, **of_shards)
        for stream, (rules, places) in by_stream.items()
        for text, of_rules in rules.occurrence.rules.items()
        for compares in [text in rules.occurrence.compared]
        for of_shards in _of_shards(places.get(text, []), compares=compares)
        for i in of_rules
    ]


def _of_shards(shards: Sequence[tuple[str, int]], *, compares: bool) -> Iterator[dict[str, Any]]:
    """Yield what shards lack at a place, or have of another kind than most, given the bits of each."""
    kinds = Counter(bits & ~expression_tree.ABSENT for _, bits in shards)
    usual = max((bits for bits in kinds if bits), key=lambda bits: (kinds[bits], -bits), default=0)
    for bits in sorted(kinds):
        concerned = [shard for shard, item in shards if item & ~expression_tree.ABSENT == bits]
        everywhere = len(concerned) == len(shards)
        if not concerned or bits & usual or (compares and not everywhere):  # a text need not be in each shard
            continue
        yield {
            "shards": [] if everywhere else concerned[:SHARDS_LISTED],
            "lacking": len(concerned),
            "of": len(shards),
            "got": _words(bits),
            "usual": _words(usual) if bits else "",
        }


def _words(bits: int) -> str:
    return " or ".join(word for bit, word in expression_tree.WORDS.items() if bits & bit)


def path_of(output: str) -> str:
    """Return where they are listed beside an output: rule, tab, ``file:line: entry``."""
    return join(work_folder(output), "unmatched.tsv")


def load(output: str) -> dict[str, list[str]]:
    """Return those that an earlier mix listed, by rule."""
    left: dict[str, list[str]] = {}
    if exists(path_of(output)):
        for line in store_of(path_of(output)).read(path_of(output)).decode().split("\n")[:-1]:
            name, _, entry = line.partition("\t")
            left.setdefault(name, []).append(entry)
    return left


def save(output: str, left: Mapping[str, list[str]]) -> None:
    """Write the list; without entries there is none."""
    if not left:
        remove(path_of(output))
        return
    text = "".join(f"{name}\t{entry}\n" for name, entries in left.items() for entry in entries)
    write_file(path_of(output), text.encode())
