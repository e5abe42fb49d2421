"""Counts of the effects of rules, and sizes by label. A mix and a dry run count the same."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import msgspec

from toolkit import partial_sums
from toolkit.errors import DataError
from toolkit.rules import expression_tree
from toolkit.rules.rule import Rule
from toolkit.rules.ruleset import Outcome, RuleSet, rules_in
from toolkit.text.counting import COLUMNS, Counts, measure
from toolkit.text.editing import Edit

CHARS, BYTES = COLUMNS.index("chars"), COLUMNS.index("bytes")

NO_LABEL = ""
"""Stands for the label of documents that have none, or none that is known before they are encoded."""


class BeforeAfter(msgspec.Struct):
    """The sizes of a label: of what was read, and of what stays, with the texts that it has then."""

    before: Counts = msgspec.field(default_factory=Counts)
    after: Counts = msgspec.field(default_factory=Counts)


SizesByLabel = dict[str, BeforeAfter]
"""Sizes by label."""


class Tally:
    """The sizes of some documents, summed by label.

    Args:
        unicode: True if Unicode's words are counted.
    """

    def __init__(self, *, unicode: bool) -> None:
        self._unicode = unicode
        self._read: dict[str, list[list[int]]] = defaultdict(list)
        self._unchanged: dict[str, list[list[int]]] = defaultdict(list)
        self._texts: dict[str, list[str | bytes]] = defaultdict(list)

    def read(self, label: str, measured: list[int]) -> None:
        """Count a document read, given the measures of its text."""
        self._read[label].append(measured)

    def keep(self, label: str, measured: list[int]) -> None:
        """Count a document kept unchanged."""
        self._unchanged[label].append(measured)

    def keep_text(self, label: str, text: str | bytes) -> None:
        """Count a document kept with another text, or a piece of one. The text may be in UTF-8."""
        self._texts[label].append(text)

    def counted(self) -> SizesByLabel:
        """Return the sums of all documents counted."""
        results: SizesByLabel = defaultdict(BeforeAfter)
        for label, rows in self._read.items():
            results[label].before.add_rows(rows, unicode=self._unicode)
        for label, rows in self._unchanged.items():
            results[label].after.add_rows(rows, unicode=self._unicode)
        if self._texts:
            texts = [text for texts in self._texts.values() for text in texts]
            measured = iter(measure(texts, unicode=self._unicode).tolist())
            for label, of_label in self._texts.items():
                results[label].after.add_rows([next(measured) for _ in of_label], unicode=self._unicode)
        return dict(results)


class RuleCount(msgspec.Struct):
    """Effect of a rule.

    Attributes:
        documents: Documents that it dropped, annotated or edited.
        chars: Code points of these; of an edit those that it replaced or cut.
        reached: Documents that came to it.
        spans: Stretches that an edit replaced or cut.
        nulls: Documents that came to it, and in which it compared a null.
        repeated: Documents that stay, and that it has written more or less often than once.
        copies: Number of copies of these, by all rules.
    """

    documents: int = 0
    chars: int = 0
    reached: int = 0
    spans: int = 0
    nulls: int = 0
    repeated: int = 0
    copies: int = 0


class RuleEffect(RuleCount, kw_only=True):
    """Effect of a rule on a whole mix.

    Attributes:
        name, kind: Name and kind of the rule.
        stream: Stream that the rule decides over.
        group: Group that the rule is in.
        only: Documents that no other rule would drop; None where that was not looked at.
    """

    name: str
    kind: str
    stream: str = ""
    group: str = ""
    only: int | None = None


class Totals(msgspec.Struct):
    """Documents and code points, read and kept.

    Attributes:
        rows, chars: Documents and code points read.
        kept, kept_chars: Documents and code points kept, each once.
        copies, copy_chars: Copies of these beside the first: the second time, the third …
    """

    rows: int = 0
    chars: int = 0
    kept: int = 0
    kept_chars: int = 0
    copies: int = 0
    copy_chars: int = 0

    @property
    def repeated(self) -> str:
        """Return the note about copies for people; empty if there are none."""
        if not self.copies:
            return ""
        return f", and with copies {self.kept + self.copies:,} written, of {self.kept_chars + self.copy_chars:,}"


class GroupCount(msgspec.Struct):
    """The amounts of a group taken by a budget.

    Attributes:
        documents: Number of distinct documents.
        copies: Number of copies of these.
        distinct: Amount of these documents, each once.
        chars, bytes: Sizes of the texts written, after edits.
    """

    documents: int = 0
    copies: int = 0
    distinct: float = 0.0
    chars: int = 0
    bytes: int = 0


class Counted(msgspec.Struct):
    """The counts of some documents; those of blocks that are counted apart can be added up.

    Attributes:
        totals: Documents and code points.
        rules: Effect of each rule, in order; `reached` is left to `finish`.
        left_out: Documents that the writer left out, by reason.
        matched: Entries of blocklists that documents matched, by index of the rule.
        statistics: Statistics by label, what was read and what stays.
        unlike_dolma: Documents that stay here, and not in Dolma, or the reverse (see `RuleSet.differs`).
        groups: Amounts that a budget takes, by group.
        kinds: Bits by the text of a place of the rules (see `toolkit.rules.expression_tree`).
    """

    totals: Totals
    rules: list[RuleCount]
    left_out: Counter[str]
    matched: dict[int, set[int]]
    statistics: SizesByLabel
    unlike_dolma: int = 0
    groups: dict[str, GroupCount] = {}
    kinds: dict[str, int] = {}

    @classmethod
    def none(cls, rules: int) -> Self:
        """Return the counts of no documents."""
        return cls(Totals(), [RuleCount() for _ in range(rules)], Counter(), {}, {}, groups={}, kinds={})

    def add(self, other: Self) -> None:
        """Add the counts of other documents."""
        expression_tree.merge(self.kinds, other.kinds)
        partial_sums.add(self, msgspec.structs.replace(other, kinds={}))


class ShardEffects(msgspec.Struct, frozen=True, kw_only=True):
    """The effects of rules on the documents of a shard.

    Attributes:
        totals: Documents and code points, read and kept.
        rules: Effect of each rule, in order.
        matched: Entries of blocklists that documents matched, by index of the rule.
        counts: Documents that the writer left out, by reason.
        statistics: Sizes by label.
        not_carried: Documents with fields that the output does not carry, by field.
        unlike_dolma: Number of documents that Dolma decides otherwise about.
        groups: Amounts that a budget takes, by group.
        kinds: Bits by the text of a place of the rules (see `toolkit.rules.expression_tree`).
    """

    totals: Totals
    rules: list[RuleCount]
    matched: dict[int, list[int]] = {}
    counts: dict[str, int] = {}
    statistics: SizesByLabel = {}
    not_carried: dict[str, int] = {}
    unlike_dolma: int = 0
    groups: dict[str, GroupCount] = {}
    kinds: dict[str, int] = msgspec.field(name="seen", default_factory=dict)


def added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the sums of counts by name, sorted."""
    result: Counter[str] = Counter()
    for count in counts:
        result.update(count)
    return dict(sorted(result.items()))


def count_group(groups: dict[str, GroupCount], group: str, amount: float, copies: int) -> None:
    """Count one document of a budget with its copies."""
    group_count = groups.setdefault(group, GroupCount())
    group_count.documents += 1
    group_count.copies += copies
    group_count.distinct += amount


def labels_of(rules: RuleSet, columns: Sequence[Sequence[Any]]) -> list[str]:
    """Return the labels for the statistics; none where it cannot be told, of a document that a rule may drop."""
    try:
        return [label or NO_LABEL for label in rules.labels(columns)]
    except DataError:
        rows = [[[value] for value in values] for values in zip(*columns, strict=True)]
        return [NO_LABEL] if len(rows) == 1 else [labels_of(rules, row)[0] for row in rows]


def note(
    counted: Counted,
    tally: Tally,
    rules: RuleSet,
    columns: Sequence[Sequence[Any]],
    measured: Sequence[list[int]],
    *,
    labels: Sequence[str],
    outcomes: Sequence[Outcome],
) -> None:
    """Count the decisions on documents. Columns are those of `RuleSet.outcomes`."""
    rules.occurrence.note(counted.kinds, columns)
    for label, sizes, outcome in zip(labels, measured, outcomes, strict=True):
        tally.read(label, sizes)
        for i in rules_in(outcome):
            counted.rules[i].documents += 1
            counted.rules[i].chars += sizes[CHARS]
    if rules.compares_nulls:
        for outcome, values in zip(outcomes, zip(*columns, strict=True), strict=True):
            count_nulls(counted.rules, rules, outcome, values)


def count_repeats(effects: list[RuleCount], rules: RuleSet, copies: int, values: Sequence[Any]) -> None:
    """Count the copies of one kept document. Values are those of `RuleSet.decide`."""
    for i in rules.repeated(*values):
        effects[i].repeated += 1
        effects[i].copies += copies


def count_nulls(effects: list[RuleCount], rules: RuleSet, outcome: Outcome, values: Sequence[Any]) -> None:
    """Count the nulls compared by rules in one document. Values are those of `RuleSet.decide`."""
    for i in rules.nulls(outcome, *values):
        effects[i].nulls += 1


def count_edits(effects: list[RuleCount], edits: list[list[Edit]]) -> None:
    """Add the edits of one document, a list for each rule; rules that are no edits have none."""
    for effect, edit in zip(effects, edits, strict=True):
        if edit:
            effect.documents += 1
            effect.spans += len(edit)
            effect.chars += sum(edit.end - edit.start for edit in edit)


def finish(effects: list[RuleCount], rules: Iterable[Rule], totals: Totals) -> None:
    """Fill in how many documents came to each rule: those that none before it dropped; edits come after all."""
    remaining = totals.rows
    for effect, rule in zip(effects, rules, strict=True):
        if rule.decides:
            effect.reached = remaining
            remaining -= effect.documents if rule.drops else 0
    for effect, rule in zip(effects, rules, strict=True):
        if not rule.decides:
            effect.reached = remaining
