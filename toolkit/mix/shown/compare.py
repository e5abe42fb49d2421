"""What changes for documents between two mixes of the same datasets, from attributes and row indexes alone."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.errors import DataError
from toolkit.mix.join import Work, at_document, inputs_of
from toolkit.mix.shown.explain import plain
from toolkit.mix.shown.preview import blocks
from toolkit.mix.shown.statistics import NO_LABEL
from toolkit.rules import RuleSet

Report = Callable[[int, int], None]


class Pair(ConfigStruct):
    """A shard in two mixes, and how many samples of each kind of change are wanted of it."""

    one: Work
    other: Work
    samples: int


class Sample(ConfigStruct):
    """A document for which something changes.

    Attributes:
        what: ``gained``, ``lost`` or ``relabelled``.
        why: the rule, or the labels.
        place: ``shard:row``.
        values: that the rule sees, as plain data.
    """

    what: str
    why: str
    place: str
    id: str
    values: dict[str, Any]


class Comparison(msgspec.Struct):
    """What changes.

    Attributes:
        rows: documents.
        kept: by the first mix.
        gained: documents that only the second keeps, by the first's rule that drops them.
        lost: documents that only the first keeps, by the second's rule that drops them.
        relabelled: documents that both keep, by ``label -> other label`` (the output folder, where rules route).
        samples: of all three.
    """

    rows: int = 0
    kept: int = 0
    gained: Counter[str] = msgspec.field(default_factory=Counter)
    lost: Counter[str] = msgspec.field(default_factory=Counter)
    relabelled: Counter[str] = msgspec.field(default_factory=Counter)
    samples: list[Sample] = []

    def add(self, other: "Comparison") -> None:
        """Adds what changes in another shard."""
        self.rows += other.rows
        self.kept += other.kept
        self.gained += other.gained
        self.lost += other.lost
        self.relabelled += other.relabelled
        self.samples += other.samples

    def keep_samples(self, number: int) -> None:
        """Keeps the first samples of each cause."""
        seen: Counter[tuple[str, str]] = Counter()
        kept = []
        for sample in self.samples:
            seen[sample.what, sample.why] += 1
            if seen[sample.what, sample.why] <= number:
                kept.append(sample)
        self.samples = kept


def compare_shard(pair: Pair, report: Report) -> Comparison:
    """The changes in one shard.

    Raises:
        DataError: as a mix of it would, as far as attributes are concerned.
    """
    found = Comparison()
    state, _ = inputs_of(pair.one)
    inputs_of(pair.other)
    works = (pair.one, pair.other)
    rules = [work.compile_rules() for work in works]
    rows = zip(*(_fates(work, each) for work, each in zip(works, rules, strict=True)), strict=True)
    for number, both in enumerate(rows, 1):
        found.rows += 1
        dropped = [fate.dropped for fate in both]
        found.kept += dropped[0] is None
        if dropped == [None, None]:
            labels = [
                _folder(work, each, number, *fate.values) for work, each, fate in zip(works, rules, both, strict=True)
            ]
            if labels[0] != labels[1]:
                change = f"{labels[0] or '(none)'} -> {labels[1] or '(none)'}"
                _note(found, found.relabelled, "relabelled", change, pair, number, both[0].values[-1].id, {})
        elif None in dropped:
            side = 0 if dropped[1] is None else 1
            i = dropped[side]
            assert i is not None
            values = both[side].values
            counter = found.lost if side else found.gained
            seen = plain(rules[side].compiled[i].watched(values))
            name = rules[side].rules[i].name
            _note(found, counter, "lost" if side else "gained", name, pair, number, values[-1].id, seen)
    report(state.rows, 0)
    if found.rows != state.rows:
        raise DataError(f"expected {state.rows} rows as indexed, got {found.rows}", path=pair.one.path)
    return found


def _folder(work: Work, rules: RuleSet, number: int, *values: Any) -> str:
    """The output folder of a document that stays: the label of the format, or where a rule routes it."""
    try:
        label = rules.folder(*values) if rules.folder else None
        return rules.route(rules.applied(*values), label or NO_LABEL, *values) if rules.applies else label or NO_LABEL
    except DataError as error:
        raise at_document(error, work, number, values[-1].id) from None


class _Fate(NamedTuple):
    """What becomes of a document: the rule that drops it; and what the rules see."""

    dropped: int | None
    values: tuple[Any, ...]


def _fates(work: Work, rules: RuleSet) -> Iterator[_Fate]:
    for block in blocks(work, rules):
        for outcome, values in zip(block.outcomes, block.values(), strict=True):
            yield _Fate(outcome if isinstance(outcome, int) else None, values)


def _note(
    found: Comparison,
    counter: "Counter[str]",
    what: str,
    why: str,
    pair: Pair,
    number: int,
    id: str,
    values: dict[str, Any],
) -> None:
    counter[why] += 1
    if counter[why] <= pair.samples:
        found.samples.append(Sample(what, why, f"{pair.one.name}:{number}", id, values))
