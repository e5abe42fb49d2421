"""Documents that are shown: drawn by lot, of rules, near duplicates."""

from typing import Any

import msgspec


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
        stream: in which; empty if the mix has one.
        id, source, url: of the document; the URL is empty if there is none.
        label: as rules have it.
        chars: code points of the whole text.
        text: the beginning of it; shorter than `chars` says where it was cut.
        dropped_by: rule that dropped it; empty if it stays.
        would_drop: other rules that would drop it, too.
        applied: rules that annotate or edit it, if it stays.
        for_rules: rules that it was chosen for, by name: it is near their threshold, or one of those that they drop.
        values: what these rules, and the one that dropped it, saw: ``{"language.prob": 0.59}``.
        lines: of the text that is shown, if a joined set has labels of lines; a label for each.
        spans: in the text that is shown.
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
        dropped: that it drops (or annotates, edits); the nearest to the threshold first.
        kept: that came to it and stayed, likewise.
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
        set: that says so.
        one, other: the document that is kept, and its copy.
        similarity: of their texts as shown, 0 to 1 (Jaccard's, of their words); null if it was not computed.
        cluster: documents in their cluster; null where the set does not say.
    """

    set: str
    one: PairText
    other: PairText
    similarity: float | None = None
    cluster: int | None = None
