"""The form of a report: numbers and samples of one run, or of two side by side, as JSON.

A label is what rules have as ``label``; ``""`` stands for documents that have none, ``*`` for all labels that are not
among the 200 with most documents. Sizes are of texts as they are read, unless something else is said. Lists of counts
belong to bins ``[edges[i], edges[i + 1])``, of which the last one has its upper edge, too; zeros at the end of such a
list are left out.
"""

import msgspec

from toolkit.mix.effects.counts import Totals
from toolkit.records.origins import Origin
from toolkit.report.facts.made_with import Input, Model, Named, SetMade, Stage
from toolkit.report.facts.samples import Line, Marked, Pair, PairText, RuleSamples, Sample
from toolkit.report.facts.sizes import (
    Budget,
    BudgetGroup,
    Duplicates,
    Group,
    Groups,
    LabelSizes,
    Orphans,
    RuleFacts,
    Sizes,
)
from toolkit.report.facts.values import Lengths, Mark, Score, Spans

__all__ = [
    "VERSION",
    "Budget",
    "BudgetGroup",
    "Duplicates",
    "Group",
    "Groups",
    "Input",
    "LabelSizes",
    "Language",
    "Lengths",
    "Line",
    "Mark",
    "Marked",
    "Model",
    "Named",
    "Orphans",
    "Pair",
    "PairText",
    "Report",
    "RuleFacts",
    "RuleSamples",
    "Run",
    "Sample",
    "Score",
    "SetMade",
    "Sizes",
    "Spans",
    "Stage",
]

VERSION = 1
"""Of the form."""


class Language(msgspec.Struct, kw_only=True):
    """A label, written out.

    Attributes:
        name: ``Finnish``; the label itself where that is not known.
        script: ``Latin``; empty where that is not known.
        rtl: whether it is written from right to left.
        tag: of BCP 47, as ``lang=`` of HTML has it; empty where the label is no language.
    """

    name: str
    script: str = ""
    rtl: bool = False
    tag: str = ""


class Run(msgspec.Struct, kw_only=True):
    """One configuration's dataset and mix, or one output.

    Attributes:
        name: of the configuration's file, or of the output folder.
        dataset: root of the documents; empty for an output alone.
        output: folder of the mix; empty without one.
        config: text of the configuration as it is resolved (YAML); of an output the settings of its mix.
        mixed: whether the mix has been made from these inputs and settings: sizes after it, budgets and copies are what
            was written.
        complete: whether all documents were looked at.
        notes: what a reader must know of these numbers: that an output is of another configuration, say.
        missing: by the name of a part that is not there (`samples`, `scores` …), why.
        versions: of the toolkit and what it was run with.
        models: that taggers used.
        sets: that are joined.
        came_in: what ingest has read.
        stages: the work of each.
        totals: of all labels.
        labels: sizes, the label with most documents first.
        groups: by source, host …
        rules: in the order in which they decide.
        left_out: what the output format counted besides: documents or lines, by what it did with them. Some were left
            out (`documents below min_text_length`), some were written (`documents without warc_headers`).
        not_carried: documents that have a field which the output does not carry, by its path.
        budget: if the mix has one.
        duplicates: by each set that says so.
        orphans: documents of which no copy is kept, by rule and set.
        lengths: of documents.
        scores: numbers that joined sets have for each document.
        spans: that joined sets have.
        samples: documents; what follows names them by their places here.
        drawn: by label, documents drawn by lot.
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
    stages: list[Stage] = []
    totals: Totals
    labels: list[LabelSizes] = []
    groups: list[Groups] = []
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
        version: of this form.
        origin: datasets that it is on.
        title: of the page.
        toolkit: version that made it.
        languages: of all labels, by label.
        runs: one, or two side by side.
    """

    version: int = VERSION
    origin: Origin | None = None
    title: str
    toolkit: str
    languages: dict[str, Language]
    runs: list[Run]
