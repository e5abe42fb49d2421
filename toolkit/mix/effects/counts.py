"""Counts what rules do to documents, and sizes by label: the same numbers at the end of a mix and in a dry run."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import msgspec

from toolkit import partials
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
    """Some documents, whose numbers are added up together.

    Args:
        unicode: True if Unicode's words are counted.
    """

    def __init__(self, *, unicode: bool) -> None:
        self._unicode = unicode
        self._read: dict[str, list[list[int]]] = defaultdict(list)
        self._kept: dict[str, list[list[int]]] = defaultdict(list)
        self._texts: dict[str, list[str | bytes]] = defaultdict(list)

    def read(self, label: str, measured: list[int]) -> None:
        """Note a document that is read, by what `toolkit.text.counting.measure` gives of its text."""
        self._read[label].append(measured)

    def keep(self, label: str, measured: list[int]) -> None:
        """Note a document that stays as it is."""
        self._kept[label].append(measured)

    def keep_text(self, label: str, text: str | bytes) -> None:
        """Note a document that stays with another text; or a piece of one, in UTF-8."""
        self._texts[label].append(text)

    def counted(self) -> SizesByLabel:
        """Return the sizes of all that was noted."""
        results: SizesByLabel = defaultdict(BeforeAfter)
        for label, rows in self._read.items():
            results[label].before.add_rows(rows, unicode=self._unicode)
        for label, rows in self._kept.items():
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
        chars: their code points; of an edit those that it replaced or cut.
        reached: documents that came to it.
        spans: stretches that an edit replaced or cut.
        nulls: documents that came to it, and in which it compared a null.
        repeated: documents that stay, and that it has written more or less often than once.
        copies: times that these are written, by all rules.
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
        name, kind: of the rule.
        stream: Stream that the rule decides over.
        group: Group that the rule is in.
        only: documents that no other rule would drop; None where that was not looked at.
    """

    name: str
    kind: str
    stream: str = ""
    group: str = ""
    only: int | None = None


class Totals(msgspec.Struct):
    """Documents and code points that were read, and those that no rule dropped.

    Attributes:
        rows, chars: read.
        kept, kept_chars: that stay, each once.
        copies, copy_chars: of these, written again: the second time, the third …
    """

    rows: int = 0
    chars: int = 0
    kept: int = 0
    kept_chars: int = 0
    copies: int = 0
    copy_chars: int = 0

    @property
    def repeated(self) -> str:
        """Return what is said behind the numbers of what stays, if some of it is written again; else nothing."""
        if not self.copies:
            return ""
        return f", and with copies {self.kept + self.copies:,} written, of {self.kept_chars + self.copy_chars:,}"


class GroupCount(msgspec.Struct):
    """The amounts that a budget has taken of a group.

    Attributes:
        documents: different ones.
        copies: times that these are written.
        distinct: the amount of these documents, each once.
        chars, bytes: of the texts that were written, after edits.
    """

    documents: int = 0
    copies: int = 0
    distinct: float = 0.0
    chars: int = 0
    bytes: int = 0


class Counted(msgspec.Struct):
    """The counts of some documents; those of blocks that are counted apart can be added up.

    Attributes:
        totals: documents and code points.
        rules: effect of each rule, in order; `reached` is left to `finish`.
        left_out: what the writer left out, by name.
        matched: for each blocklist, by index of its rule, the entries that documents matched.
        statistics: Statistics by label, what was read and what stays.
        unlike_dolma: documents that stay here, and not in Dolma, or the reverse (see `RuleSet.differs`).
        groups: what a budget has taken of each group.
        seen: bits by the text of a place of the rules (see `toolkit.rules.expression_tree`).
    """

    totals: Totals
    rules: list[RuleCount]
    left_out: Counter[str]
    matched: dict[int, set[int]]
    statistics: SizesByLabel
    unlike_dolma: int = 0
    groups: dict[str, GroupCount] = {}
    seen: dict[str, int] = {}

    @classmethod
    def none(cls, rules: int) -> Self:
        """Return the counts of no documents."""
        return cls(Totals(), [RuleCount() for _ in range(rules)], Counter(), {}, {}, groups={}, seen={})

    def add(self, other: Self) -> None:
        """Add what was counted of others."""
        expression_tree.merge(self.seen, other.seen)
        partials.add(self, msgspec.structs.replace(other, seen={}))


def added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the sums of counts by name, sorted."""
    result: Counter[str] = Counter()
    for count in counts:
        result.update(count)
    return dict(sorted(result.items()))


def count_group(groups: dict[str, GroupCount], group: str, amount: float, copies: int) -> None:
    """Add one document that a budget takes, and how often it is written."""
    group_count = groups.setdefault(group, GroupCount())
    group_count.documents += 1
    group_count.copies += copies
    group_count.distinct += amount


def count(effects: list[RuleCount], outcome: Outcome, chars: int) -> None:
    """Add what is decided of one document to the effects of the rules; `reached` is left to `finish`."""
    for i in rules_in(outcome):
        effects[i].documents += 1
        effects[i].chars += chars


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
    """Add what is decided of documents, whose values are those of `RuleSet.outcomes`, and what their texts measure."""
    rules.occurrence.note(counted.seen, columns)
    for label, sizes, outcome in zip(labels, measured, outcomes, strict=True):
        tally.read(label, sizes)
        count(counted.rules, outcome, sizes[CHARS])
    if rules.compares_nulls:
        for outcome, values in zip(outcomes, zip(*columns, strict=True), strict=True):
            count_nulls(counted.rules, rules, outcome, values)


def count_repeats(effects: list[RuleCount], rules: RuleSet, copies: int, values: Sequence[Any]) -> None:
    """Add how often one document that stays is written; its values are those of `RuleSet.decide`."""
    for i in rules.repeated(*values):
        effects[i].repeated += 1
        effects[i].copies += copies


def count_nulls(effects: list[RuleCount], rules: RuleSet, outcome: Outcome, values: Sequence[Any]) -> None:
    """Add the nulls that rules compared in one document, whose values are those of `RuleSet.decide`."""
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
    left = totals.rows
    for effect, rule in zip(effects, rules, strict=True):
        if rule.decides:
            effect.reached = left
            left -= effect.documents if rule.drops else 0
    for effect, rule in zip(effects, rules, strict=True):
        if not rule.decides:
            effect.reached = left
