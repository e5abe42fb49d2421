"""Values of documents: their lengths, scores with thresholds, spans."""

from typing import Literal

import msgspec


class Lengths(msgspec.Struct, kw_only=True):
    """How long documents are, in code points.

    Attributes:
        edges: of the bins.
        before: counts of bins, by label; of documents that are read.
        after: likewise of those that stay.
    """

    edges: list[float]
    before: dict[str, list[int]]
    after: dict[str, list[int]]


class Mark(msgspec.Struct, kw_only=True):
    """A threshold that a rule has for a score.

    Attributes:
        rule: its name.
        label: that the value is for; empty for all (others).
        value: the number.
        sign: of the comparison with the score at its left: ``<``, ``<=``, ``>``, ``>=``, ``==``, ``!=``.
        drops: which values the rule drops: ``below`` or ``above``; empty for a rule that drops nothing, and where it
            cannot be told.
        text: ``language.prob < 0.6``.
        holds: by label, documents for which the comparison holds; exact, of all documents.
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
        set: that it is of.
        edges: of the bins.
        counts: of bins, by label; of documents that are read.
        after: likewise of documents that stay.
        on_edges, after_on_edges: those of them whose value is the lower edge of the bin itself, such as 0.
        nulls: documents without a value, by label.
        marks: thresholds.
        exact: whether counts are exact; else values were put in bins of a sketch (to a part in a hundred).
        description: what it is, by its tagger; empty where that is not known.
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
        set: that it is of.
        pii: whether its tagger finds personal data.
        labels: by label: documents with spans, spans, their code points.
    """

    field: str
    set: str = ""
    pii: bool = False
    labels: dict[str, tuple[int, int, int]]
