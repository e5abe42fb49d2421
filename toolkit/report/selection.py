"""Which of the documents that shards propose are shown, and for what."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from toolkit.report.choosing import Chosen
from toolkit.report.fields import Fields
from toolkit.report.merging import MOST_LABELS, Merged
from toolkit.rules import Rule

At = tuple[int, int]
"""The place of a document: number of its shard, row from 1."""

SAMPLE_BYTES = 1_100_000
"""JSON of all samples of a run, about; texts are cut to that."""

_BESIDE = 420
"""Bytes of JSON that a sample has beside its text, about."""

_LEAST, _MOST = 160, 1500
"""Bytes of UTF-8 of a text that is shown."""

DRAWN_LABELS = 60
"""Labels of which several documents are drawn; of all others one."""

COSTLY_LABELS = 50
"""Labels with most dropped documents, of which all that their costliest rule proposes are shown; of others a few."""

RULE_LABELS = 2
"""Labels that a rule costs most of which its documents are shown, whether or not it costs them most."""


class OfRule(NamedTuple):
    """Documents of a rule: see `toolkit.report.facts.RuleSamples`."""

    rule: int
    field: str
    value: float | None
    dropped: list[At]
    kept: list[At]
    labels: dict[str, list[At]]


class Selection(NamedTuple):
    """The documents of a stream that are shown.

    Attributes:
        rows: for each the rules that it was chosen for.
        drawn: by label.
        of_rules: for each rule and threshold.
    """

    rows: dict[At, list[int]]
    drawn: dict[str, list[At]]
    of_rules: list[OfRule]


def select(found: Merged, fields: Fields, rules: Sequence[Rule]) -> Selection:
    """Return the documents of a stream that are shown."""
    chosen = {tuple(key.split("\n", 1)): each for key, each in found.chosen.items()}
    rows: dict[At, list[int]] = {}

    def taken(listed: Iterable[Chosen], rule: int | None = None) -> list[At]:
        places = [(each.shard, each.row) for each in listed]
        for place in places:
            known = rows.setdefault(place, [])
            if rule is not None and rule not in known:
                known.append(rule)
        return places

    ranked = sorted(found.before, key=lambda label: (-found.before[label][0], label))
    drawn = {
        label: taken(chosen.get(("label", label), [])[: 4 if i < DRAWN_LABELS else 1]) for i, label in enumerate(ranked)
    }
    labels = _costly(found, rules)
    of_rules = []
    for i, rule in enumerate(rules):
        by_label = {
            label: taken(chosen.get(("dropped", f"{i}\n{label}"), [])[:most], i) for label, most in labels[i].items()
        }
        marks = [(n, m, score.title, mark.value) for n, score in enumerate(fields.scores)
                 for m, mark in enumerate(score.marks) if mark.rule == i]  # fmt: skip
        for n, m, path, value in marks:
            sides = [taken(chosen.get(("near", f"{n}\n{m}\n{side}"), []), i) for side in ("dropped", "kept")]
            of_rules.append(OfRule(i, path, value, sides[0], sides[1], by_label))
            by_label = {}
        if not marks:
            mine = (each for key, each in chosen.items() if key[0] == "dropped" and key[1].startswith(f"{i}\n"))
            least = sorted(each for listed in mine for each in listed) or chosen.get(("applied", str(i)), [])
            if rule.drops or least:
                of_rules.append(OfRule(i, "", None, taken(least[:5], i), [], by_label))
    return Selection(rows, drawn, of_rules)


def _costly(found: Merged, rules: Sequence[Rule]) -> list[dict[str, int]]:
    """Return for each rule the labels whose dropped documents are shown, and how many of each."""
    shown: list[dict[str, int]] = [{} for _ in rules]
    dropping = [i for i, rule in enumerate(rules) if rule.drops]
    lost = {label: sum(each[i][0] for i in dropping) for label, each in found.by_label.items()}
    for place, label in enumerate(sorted(lost, key=lambda label: (-lost[label], label))[:MOST_LABELS]):
        costliest = max(dropping, key=lambda i: (found.by_label[label][i][0], -i), default=None)
        if costliest is not None and found.by_label[label][costliest][0]:
            shown[costliest][label] = 10 if place < COSTLY_LABELS else 3
    for i in dropping:
        ranked = sorted(found.by_label, key=lambda label: (-found.by_label[label][i][0], label))
        for label in ranked[:RULE_LABELS]:
            if found.by_label[label][i][0]:
                shown[i].setdefault(label, 10)
    return shown


def text_bytes(samples: int, share: float) -> int:
    """Return the bytes of UTF-8 that are shown of a text.

    Args:
        samples: how many there are.
        share: of `SAMPLE_BYTES` that they have.
    """
    return max(_LEAST, min(_MOST, int(share * SAMPLE_BYTES) // max(1, samples) - _BESIDE))
