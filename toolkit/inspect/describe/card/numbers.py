"""Numbers of a card that no record has: what was counted for it, and what these counts come to."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from toolkit.inspect.describe.facts import Facts
from toolkit.inspect.stats.distributions import Distribution, numbers, together
from toolkit.inspect.stats.groups import Sample
from toolkit.inspect.stats.lengths import LengthsByLabel
from toolkit.inspect.stats.tables import Table, by_attribute
from toolkit.inspect.stats.thresholds import Threshold, thresholds
from toolkit.rules import Rule
from toolkit.tag.tagger import says


@dataclass(frozen=True)
class Numbers:
    """What was counted.

    Attributes:
        labels, hosts: the largest groups of documents; None where that was not counted.
        lengths: by label.
        samples: documents; none if none are wanted.
        distributions: of attributes, by label; of all documents that a mix read, or of the dataset.
        rules: of the mix, whose thresholds are shown.
        notes: what whoever asked for the card should know.
    """

    labels: Table | None = None
    hosts: Table | None = None
    lengths: LengthsByLabel = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    distributions: list[Distribution] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Met:
    """A threshold, and how many values meet the comparison: of a label, if it is for one."""

    threshold: Threshold
    values: int
    of: int


@dataclass(frozen=True)
class Score:
    """The distribution of a number in all documents, and the thresholds that rules have for it."""

    distribution: Distribution
    met: list[Met]


@dataclass(frozen=True)
class Spans:
    """Spans of an attribute: documents that have some, and how many there are in all."""

    attribute: str
    documents: int
    spans: int


def scores(found: Numbers, facts: Facts) -> list[Score]:
    """Return the distributions of numbers, but those of tokens and of personal data, each with its thresholds."""
    others = {*tokens_of(facts), *personal_of(facts)}
    result = []
    for attribute, listed in by_attribute(found.distributions).items():
        whole = together(listed)
        if root(attribute) not in others and whole.buckets is not None and whole.count:
            marks = thresholds(found.rules, attribute)
            result.append(Score(whole, [_met(each, listed, marks) for each in marks]))
    return result


def _met(threshold: Threshold, listed: Sequence[Distribution], marks: Sequence[Threshold]) -> Met:
    """Return how many values meet a threshold: of its label, or of all that have no other of the same comparison."""
    others = threshold.others(marks)
    labels = [(each, msgspec.json.decode(each.label)) for each in listed]
    some = [each for each, label in labels if (label == threshold.label if threshold.label else label not in others)]
    values = [pair for each in some if each.count for pair in numbers(each)]
    return Met(threshold, sum(n for value, n in values if threshold.holds(value)), sum(n for _, n in values))


def root(path: str) -> str:
    """Return the attribute that a path begins with: ``language`` of ``len(language.shares)``."""
    return path.removeprefix("len(").removesuffix(")").partition(".")[0].partition("[")[0]


def tokens_of(facts: Facts) -> list[str]:
    """Return the attributes that are numbers of tokens."""
    return [name for name, tagger in facts.taggers.items() if says(tagger, "TOKENS")]


def personal_of(facts: Facts) -> list[str]:
    """Return the attributes that are personal data."""
    return [name for name, tagger in facts.taggers.items() if says(tagger, "PERSONAL")]


def tokens(found: Numbers, facts: Facts) -> dict[str, int]:
    """Return how many tokens all documents have, by attribute."""
    grouped, totals = by_attribute(found.distributions), dict[str, int]()
    for name in tokens_of(facts):
        total = together(grouped[name]).total if name in grouped else None
        if total is not None:
            totals[name] = round(total)
    return totals


def personal(found: Numbers, facts: Facts) -> list[Spans]:
    """Return the spans of personal data that taggers found."""
    grouped, result = by_attribute(found.distributions), []
    for name in personal_of(facts):
        for attribute, listed in grouped.items():
            inner = attribute.removeprefix("len(").removesuffix(")")
            if inner != attribute and (inner == name or inner.startswith(f"{name}.")):
                whole = together(listed)
                with_spans = sum(count for value, count in numbers(whole) if value) if whole.count else 0
                result.append(Spans(inner, with_spans, round(whole.total or 0)))
    return result
