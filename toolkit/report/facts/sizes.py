"""Sizes of texts: of all, by label, by source or host, and what rules, budgets and duplicates make of them."""

import msgspec


class Sizes(msgspec.Struct, kw_only=True):
    """Sizes of texts; what was not counted is null.

    Attributes:
        documents: their number.
        chars: code points.
        bytes: in UTF-8.
        lines, words: as `toolkit stats` counts them.
        tokens: of the tokenizer whose counts are joined.
    """

    documents: int = 0
    chars: int = 0
    bytes: int | None = None
    lines: int | None = None
    words: int | None = None
    tokens: int | None = None


class LabelSizes(msgspec.Struct, kw_only=True):
    """Sizes of a label.

    Attributes:
        label: as rules have it.
        before: of what is read.
        after: of what stays, with edits and copies as they are written, if the mix has been made; else of documents
            that would stay, as they are read (`Run.mixed` says which).
    """

    label: str
    before: Sizes
    after: Sizes


class Group(msgspec.Struct, kw_only=True):
    """The documents of one source, host … ; the value is null for those that have none.

    Sizes are documents, code points and bytes, before edits; what stays is counted as often as it is written.
    """

    value: str | None
    before: Sizes
    after: Sizes


class Groups(msgspec.Struct, kw_only=True):
    """The largest groups of one kind.

    Attributes:
        by: ``source``, ``host``, ``tld``, ``crawl``.
        values: how many there are.
        top: the largest, by documents.
        rest: all others together.
    """

    by: str
    values: int
    top: list[Group]
    rest: Group | None = None


class RuleFacts(msgspec.Struct, kw_only=True):
    """The effect of a rule.

    Attributes:
        name: of the rule; several streams may have rules of one name.
        stream: that it decides over; empty if the mix has one.
        group: of rules that it is in; empty without.
        kind: ``drop``, ``keep``, ``annotate``, ``replace``, ``cut_lines``, ``route``, ``repeat`` …
        expression: as it is written in the configuration; empty for rules without one.
        role: ``drops``, ``annotates``, ``edits``, ``routes``, ``sets``, ``repeats``.
        reached: documents that came to it: those that no rule before it has dropped.
        documents, chars: that it dropped (the first rule that drops a document is counted), annotated or edited, and
            their code points; of an edit those that it replaced or cut.
        unique: documents that it drops and no other rule would; null for rules that drop nothing.
        nulls: documents that came to it, and in which it compared a null.
        spans: stretches that an edit replaced or cut.
        repeated, copies: of ``repeat``: documents that stay and that it writes more or less often than once, and the
            times that these are written.
        labels: by label: documents, chars, unique (0 for rules that drop nothing).
    """

    name: str
    stream: str = ""
    group: str = ""
    kind: str
    expression: str = ""
    role: str
    reached: int = 0
    documents: int = 0
    chars: int = 0
    unique: int | None = None
    nulls: int = 0
    spans: int = 0
    repeated: int = 0
    copies: int = 0
    labels: dict[str, tuple[int, int, int]] = {}


class BudgetGroup(msgspec.Struct, kw_only=True):
    """What a budget takes of a group, in the unit of the budget.

    Attributes:
        group: its name.
        available: amount that there is.
        wanted: amount that is asked for; null for all.
        taken: amount that is taken, with copies.
        documents: different ones that are taken.
        copies: times that these are written.
    """

    group: str
    available: float
    wanted: float | None
    taken: float
    documents: int
    copies: int


class Budget(msgspec.Struct, kw_only=True):
    """A budget, and what it came to."""

    unit: str
    redistributed: bool = False
    groups: list[BudgetGroup]


class Duplicates(msgspec.Struct, kw_only=True):
    """Duplicates by one set.

    Attributes:
        set, kind: by name.
        documents: that the set describes.
        dropped: copies, of which another document is kept.
        clusters: how many of a size there are, sorted by size; empty where the set does not say.
    """

    set: str
    kind: str
    documents: int
    dropped: int
    clusters: list[tuple[int, int]] = []


class Orphans(msgspec.Struct, kw_only=True):
    """Documents that are dropped as copies of documents that are not kept: nothing stands for them.

    Attributes:
        rule, stream: that drops them; the stream is empty if the mix has one.
        set: that says what they are copies of.
        documents: how many.
    """

    rule: str
    stream: str = ""
    set: str
    documents: int
