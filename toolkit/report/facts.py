"""The form of a report: numbers and samples of one run, or of two side by side, as JSON.

A label is what rules have as ``label``; ``""`` stands for documents that have none, ``*`` for all labels that are not
among the 200 with most documents. Sizes are of texts as they are read, unless something else is said. Lists of counts
belong to bins ``[edges[i], edges[i + 1])``, of which the last one has its upper edge, too; zeros at the end of such a
list are left out.
"""

from typing import Any, Literal

import msgspec

from toolkit.mix.rule_effects.counts import Totals
from toolkit.records.origins import Origin


class Lengths(msgspec.Struct, kw_only=True):
    """How long documents are, in code points.

    Attributes:
        edges: Edges of the bins.
        before: counts of bins, by label; of documents that are read.
        after: counts of bins, by label; of documents that stay.
    """

    edges: list[float]
    before: dict[str, list[int]]
    after: dict[str, list[int]]


class Mark(msgspec.Struct, kw_only=True):
    """A rule's threshold for a score.

    Attributes:
        rule: its name.
        label: Label that the value is for; empty for all (others).
        value: the number.
        sign: Sign of the comparison with the score at its left: ``<``, ``<=``, ``>``, ``>=``, ``==``, ``!=``.
        drops: Side of the dropped values: ``below`` or ``above``; empty for a rule that drops nothing, and where it
            cannot be told.
        text: ``language.prob < 0.6``.
        holds: Number of documents beyond the threshold, by label; exact, of all documents.
    """

    rule: str
    stream: str = ""
    label: str = ""
    value: float
    sign: str
    drops: Literal["below", "above", ""] = ""
    text: str
    holds: dict[str, int] = {}


class Score(msgspec.Struct, kw_only=True):
    """The distribution of a number.

    Attributes:
        field: ``language.prob``, as expressions name it.
        set: Set that it is of.
        edges: Edges of the bins.
        counts: Counts of bins, by label; of documents that are read.
        after: Counts of bins, by label; of documents that stay.
        on_edges, after_on_edges: those of them whose value is the lower edge of the bin itself, such as 0.
        nulls: documents without a value, by label.
        marks: thresholds.
        exact: True for exact counts; else values were put in bins of a sketch (to a part in a hundred).
        description: Description by the tagger; empty where that is not known.
    """

    field: str
    set: str = ""
    edges: list[float]
    counts: dict[str, list[int]]
    after: dict[str, list[int]] = {}
    on_edges: dict[str, list[int]] = {}
    after_on_edges: dict[str, list[int]] = {}
    nulls: dict[str, int] = {}
    marks: list[Mark] = []
    exact: bool = True
    description: str = ""


class Spans(msgspec.Struct, kw_only=True):
    """Spans of one attribute: personal data that taggers found, passages, phrases.

    Attributes:
        field: ``emails``, as expressions name it.
        set: Set that it is of.
        pii: True if its tagger finds personal data.
        labels: Documents with spans, spans, and their code points, by label.
    """

    field: str
    set: str = ""
    pii: bool = False
    labels: dict[str, tuple[int, int, int]]


class Named(msgspec.Struct, kw_only=True):
    """Something with its version: a package, a tagger."""

    name: str
    version: str


class Model(msgspec.Struct, kw_only=True):
    """A model file."""

    name: str
    sha256: str


class SetMade(msgspec.Struct, kw_only=True):
    """A joined attribute set and its settings.

    Attributes:
        set, stream: by name; the stream is empty if the mix has one.
        keys: name of the attribute, and its declared type.
        settings: Settings of its taggers, by key; empty for external sets.
    """

    set: str
    stream: str = ""
    keys: dict[str, str] = {}
    settings: dict[str, Any] = {}


class Input(msgspec.Struct, kw_only=True):
    """The inputs of one entry of ``ingest:``, or of one source.

    Attributes:
        source: Source of the documents.
        inputs: files.
        documents: Documents that were made.
        bytes: Bytes of the inputs, as stored.
        rejected: items that were left out, by reason.
    """

    source: str
    inputs: int = 0
    documents: int = 0
    bytes: int = 0
    rejected: dict[str, int] = {}


class StageWork(msgspec.Struct, kw_only=True):
    """The work of a stage, added up over its shards.

    Attributes:
        stage: ``ingest``, ``tag``, ``mix`` …
        set: Set that it made, if it makes sets.
        documents: Documents that went through.
        bytes: Bytes of their texts, uncompressed, or of the documents that ingest has written; null where that is not
            noted.
        seconds: Seconds of work, of all processes together.
    """

    stage: str
    set: str = ""
    documents: int
    bytes: int | None = None
    seconds: float


class Sizes(msgspec.Struct, kw_only=True):
    """Sizes of texts; what was not counted is null.

    Attributes:
        documents: their number.
        chars: code points.
        bytes: Bytes in UTF-8.
        lines, words: as `toolkit stats` counts them.
        tokens: Tokens of the tokenizer whose counts are joined.
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
        label: Label of rules.
        before: Sizes of the texts that are read.
        after: Sizes of the texts that stay, with edits and copies as they are written, if the mix has been made; else
            of documents that would stay, as they are read (`Run.mixed` says which).
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


class LargestGroups(msgspec.Struct, kw_only=True):
    """The largest groups of one kind.

    Attributes:
        by: ``source``, ``host``, ``tld``, ``crawl``.
        values: Number of all groups.
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
        name: Name of the rule; several streams may have rules of one name.
        stream: Stream that it decides over; empty if the mix has one.
        group: Group of rules that it is in; empty without.
        kind: ``drop``, ``keep``, ``annotate``, ``replace``, ``cut_lines``, ``route``, ``repeat`` …
        expression: Expression of the configuration; empty for rules without one.
        role: ``drops``, ``annotates``, ``edits``, ``routes``, ``sets``, ``repeats``.
        reached: documents that came to it: those that no rule before it has dropped.
        documents, chars: that it dropped (the first rule that drops a document is counted), annotated or edited, and
            their code points; of an edit those that it replaced or cut.
        unique: documents that it drops and no other rule would; null for rules that drop nothing.
        nulls: documents that came to it, and in which it compared a null.
        spans: stretches that an edit replaced or cut.
        repeated, copies: of ``repeat``: documents that stay and that it writes more or less often than once, and the
            times that these are written.
        labels: Documents, chars and unique (0 for rules that drop nothing), by label.
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
    """Amounts of a budget's group, in the budget's unit.

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
    """A budget and its result."""

    unit: str
    redistributed: bool = False
    groups: list[BudgetGroup]


class Duplicates(msgspec.Struct, kw_only=True):
    """Duplicates by one set.

    Attributes:
        set, kind: by name.
        documents: Documents that the set describes.
        dropped: copies, of which another document is kept.
        clusters: Number of clusters of each size, sorted by size; empty where the set does not say.
    """

    set: str
    kind: str
    documents: int
    dropped: int
    clusters: list[tuple[int, int]] = []


class Orphans(msgspec.Struct, kw_only=True):
    """Dropped copies without a kept original: nothing stands for them.

    Attributes:
        rule, stream: that drops them; the stream is empty if the mix has one.
        set: Set that says what they are copies of.
        documents: Number of documents.
    """

    rule: str
    stream: str = ""
    set: str
    documents: int


class Line(msgspec.Struct, array_like=True):
    """A line of a sample: its label and probability, as the tagger of lines says; null where it says nothing."""

    label: str | None
    prob: float | None


class Marked(msgspec.Struct, array_like=True):
    """A stretch of a sample's text: code points, and the attribute that marks it."""

    field: str
    start: int
    end: int
    score: float = 1.0


class Sample(msgspec.Struct, kw_only=True):
    """A document.

    Attributes:
        shard, row: where it is; rows are counted from 1.
        stream: Stream of the document; empty if the mix has one.
        id, source, url: of the document; the URL is empty if there is none.
        label: Label of rules.
        chars: code points of the whole text.
        text: the beginning of it; shorter than `chars` says where it was cut.
        dropped_by: rule that dropped it; empty if it stays.
        would_drop: other rules that would drop it, too.
        applied: rules that annotate or edit it, if it stays.
        for_rules: rules that it was chosen for, by name: it is near their threshold, or one of those that they drop.
        values: Values in these rules, and in the one that dropped it: ``{"language.prob": 0.59}``.
        lines: Lines of the text that is shown, if a joined set has labels of lines; a label for each.
        spans: Spans in the beginning of the text.
        header, footer: lines at the beginning and the end of the whole text that are taken for boilerplate; null where
            no set says that.
    """

    shard: str
    row: int
    stream: str = ""
    id: str
    source: str = ""
    url: str = ""
    label: str = ""
    chars: int
    text: str
    dropped_by: str = ""
    would_drop: list[str] = []
    applied: list[str] = []
    for_rules: list[str] = []
    values: dict[str, Any] = {}
    lines: list[Line] = []
    spans: list[Marked] = []
    header: int | None = None
    footer: int | None = None


class RuleSamples(msgspec.Struct, kw_only=True):
    """The samples of a rule, by their places in `Run.samples`.

    Attributes:
        rule, stream: by name.
        field: the score whose threshold they are near; empty if the rule has none, and they are drawn by lot.
        value: the threshold.
        dropped: Documents that it drops (or annotates, edits); the nearest to the threshold first.
        kept: Documents that came to it and stayed; the nearest to the threshold first.
        labels: documents that it dropped: of each label whose costliest rule it is, and of those that it drops most of;
            ten, or a few. They stand with the first threshold of the rule.
    """

    rule: str
    stream: str = ""
    field: str = ""
    value: float | None = None
    dropped: list[int] = []
    kept: list[int] = []
    labels: dict[str, list[int]] = {}


class PairText(msgspec.Struct, kw_only=True):
    """One of two near duplicates; the text is its beginning."""

    shard: str
    row: int
    id: str
    source: str = ""
    label: str = ""
    chars: int
    text: str
    kept: bool


class Pair(msgspec.Struct, kw_only=True):
    """Two near duplicates.

    Attributes:
        set: Set that says so.
        one, other: the document that is kept, and its copy.
        similarity: Similarity of their texts as shown, 0 to 1 (Jaccard's, of their words); null if it was not computed.
        cluster: documents in their cluster; null where the set does not say.
    """

    set: str
    one: PairText
    other: PairText
    similarity: float | None = None
    cluster: int | None = None


VERSION = 1
"""Of the form."""


class Language(msgspec.Struct, kw_only=True):
    """A label, written out.

    Attributes:
        name: ``Finnish``; the label itself where that is not known.
        script: ``Latin``; empty where that is not known.
        rtl: True if it is written from right to left.
        tag: Tag of BCP 47, as ``lang=`` of HTML has it; empty where the label is no language.
    """

    name: str
    script: str = ""
    rtl: bool = False
    tag: str = ""


class Run(msgspec.Struct, kw_only=True):
    """One configuration's dataset and mix, or one output.

    Attributes:
        name: Name of the configuration's file, or of the output folder.
        dataset: root of the documents; empty for an output alone.
        output: folder of the mix; empty without one.
        config: text of the configuration as it is resolved (YAML); of an output the settings of its mix.
        mixed: True if the mix has been made from these inputs and settings: sizes after it, budgets and copies are what
            was written.
        complete: True if all documents were looked at.
        notes: Remarks on these numbers, such as that an output is of another configuration.
        missing: Reasons for missing parts (`samples`, `scores` …), by name.
        versions: Versions of the toolkit and what it was run with.
        models: Models that taggers used.
        sets: Sets that are joined.
        came_in: Inputs of ingest.
        stages: the work of each.
        totals: Totals of all labels.
        labels: sizes, the label with most documents first.
        groups: Groups by source, host …
        rules: Rules, in the order in which they decide.
        left_out: Other counts of the output format: documents or lines, by what it did with them. Some were left out
            (`documents below min_text_length`), some were written (`documents without warc_headers`).
        not_carried: documents that have a field which the output does not carry, by its path.
        budget: Budget, if the mix has one.
        duplicates: Duplicates by each set.
        orphans: documents of which no copy is kept, by rule and set.
        lengths: Lengths of documents.
        scores: numbers that joined sets have for each document.
        spans: Spans that joined sets have.
        samples: documents; what follows names them by their places here.
        drawn: Drawn by label, documents drawn by lot.
        of_rules: the samples of rules.
        pairs: near duplicates.
    """

    name: str
    dataset: str = ""
    output: str = ""
    config: str = ""
    mixed: bool = False
    complete: bool = True
    notes: list[str] = []
    missing: dict[str, str] = {}
    versions: list[Named] = []
    models: list[Model] = []
    sets: list[SetMade] = []
    came_in: list[Input] = []
    stages: list[StageWork] = []
    totals: Totals
    labels: list[LabelSizes] = []
    groups: list[LargestGroups] = []
    rules: list[RuleFacts] = []
    left_out: dict[str, int] = {}
    not_carried: dict[str, int] = {}
    budget: Budget | None = None
    duplicates: list[Duplicates] = []
    orphans: list[Orphans] = []
    lengths: Lengths | None = None
    scores: list[Score] = []
    spans: list[Spans] = []
    samples: list[Sample] = []
    drawn: dict[str, list[int]] = {}
    of_rules: list[RuleSamples] = []
    pairs: list[Pair] = []


class Report(msgspec.Struct, kw_only=True):
    """A report on one run, or on two.

    Attributes:
        version: Version of this form.
        origin: datasets that it is on.
        title: Title of the page.
        toolkit: version that made it.
        languages: Languages of all labels, by label.
        runs: one, or two side by side.
    """

    version: int = VERSION
    origin: Origin | None = None
    title: str
    toolkit: str
    languages: dict[str, Language]
    runs: list[Run]
