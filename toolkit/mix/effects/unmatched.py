"""Blocklist entries that matched no document: counted, and listed."""

from collections.abc import Iterable, Mapping

from toolkit.mix.join import ShardToMix
from toolkit.mix.publish import BlocklistCount
from toolkit.mix.settings import work_folder
from toolkit.rules import RuleSet
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import exists, join, remove


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
