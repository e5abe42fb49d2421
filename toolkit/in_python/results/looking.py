"""What the commands return that only look."""

from typing import Any

import msgspec

from toolkit.evaluating.judged import Details, Group
from toolkit.in_python.results.result import Result
from toolkit.mix.effects.compare import Sample
from toolkit.mix.effects.counts import RuleEffect, Totals
from toolkit.mix.publish import BlocklistCount, OrphanCount, Unseen


class Previewed(Result, frozen=True, kw_only=True):
    """What a mix would do.

    Attributes:
        totals: documents and code points, read and kept.
        rules: what each rule does, in order; `only` is what no other rule would drop.
        labels: the same by label (by stream and label, where there are several streams), as data.
        blocklists, unseen, orphans: as of `Mixed`; of texts, too, that rules compare with.
    """

    totals: Totals
    rules: list[RuleEffect]
    labels: dict[str, Any] = {}
    blocklists: list[BlocklistCount] = []
    unseen: list[Unseen] = []
    orphans: list[OrphanCount] = []


class Compared(Result, frozen=True, kw_only=True):
    """What would change from one mix to another.

    Attributes:
        rows: documents.
        kept: by the first.
        gained: documents that only the second keeps, by the first's rule that drops them.
        lost: documents that only the first keeps, by the second's rule that drops them.
        relabelled: documents that both keep, by ``label -> other label``.
        samples: of all three.
    """

    rows: int
    kept: int
    gained: dict[str, int]
    lost: dict[str, int]
    relabelled: dict[str, int]
    samples: list[Sample]


class Evaluated(Result, frozen=True, kw_only=True):
    """What an evaluation found.

    Attributes:
        task: what is predicted: ``numbers``, ``score``, ``classes`` or ``lists``.
        documents, looked_at: how many there are, and of these those that are looked at (`where`).
        all: of all of these: scores of each prediction and baseline, with intervals, and paired differences.
        groups: the same of groups, by what they are grouped by.
        details: of each prediction: labels, confused pairs, the calibration curve.
        left_out: groups and documents that are not judged, by what they are grouped by.
        level: of Krippendorff's alpha.
        labels_of_no_document: labels in files that no document has that is looked at.
        warnings: what one should not overlook.
    """

    task: str
    documents: int
    looked_at: int
    all: Group
    groups: dict[str, list[Group]]
    details: dict[str, Details]
    left_out: dict[str, dict[str, int]] = {}
    level: str | None = None
    labels_of_no_document: int | None = None
    warnings: list[str] = []


class ComparedPart(msgspec.Struct, frozen=True, kw_only=True):
    """How two sets differ in a value, or in a part of it.

    Attributes:
        key, other_key, path: what is compared.
        kind: ``number``, ``label`` or ``value``.
        both, same, agreement: documents with a value in both sets, those with the same, and their share.
        nulls: documents without a value in ``both`` sets, in ``one`` alone, in the ``other`` alone.
        confusion: of labels, how many documents have which in the one and in the other.
        means, correlation, quantiles: of numbers; the quantiles are those of the differences.
        examples: documents that differ, with both values.
    """

    key: str
    other_key: str
    path: str
    kind: str
    both: int
    same: int
    agreement: float | None = None
    nulls: dict[str, int] = {}
    confusion: list[dict[str, Any]] = []
    confusion_left_out: int = 0
    means: list[float] = []
    mean_difference: float | None = None
    mean_absolute_difference: float | None = None
    largest_difference: float | None = None
    correlation: float | None = None
    quantiles: dict[str, float] = {}
    examples: list[dict[str, Any]] = []


class ComparedSets(Result, frozen=True, kw_only=True):
    """How two attribute sets differ.

    Attributes:
        sets: as they were named.
        sample: what it is, if a sample was compared.
        rows: documents.
        parts: by what is compared.
    """

    sets: list[str]
    rows: int
    parts: list[ComparedPart]
    sample: str | None = None


class Validated(Result, frozen=True, kw_only=True):
    """What `validate` found; it is true if there is nothing to find fault with.

    Attributes:
        checked: what was looked at.
        findings: what is wrong.
        warnings: what may be meant so.
    """

    checked: list[str]
    findings: list[str]
    warnings: list[str]

    def __bool__(self) -> bool:
        return not self.findings


class Counted(Result, frozen=True, kw_only=True):
    """What `stats` counted.

    Attributes:
        inputs: files, and how many of them were read now.
        tables: one for each `by`, with its groups.
        attributes: the distributions that were asked for.
    """

    inputs: dict[str, int] = {}
    tables: list[dict[str, Any]] = []
    attributes: Any = None


class StageStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How far a stage is.

    Attributes:
        stage: ``ingest``, ``tag SET``, …
        done, running, failed, missing: how many of its inputs or shards are so.
        of: how many there are.
        unknown: why that is not known; empty if it is.
        items: those that are not done, with their causes.
        spent: requests, tokens and cost of all runs of a set of `annotate`; None of other stages.
    """

    stage: str
    of: int
    done: int = 0
    running: int = 0
    failed: int = 0
    missing: int = 0
    unknown: str = ""
    items: list[dict[str, Any]] = []
    spent: dict[str, Any] | None = None


class Status(Result, frozen=True, kw_only=True):
    """What is done of a configuration.

    Attributes:
        done: whether all is.
        stages: in order.
        runs: that are at work now.
        faults: what is wrong with the configuration.
        there: where something is, how many shards there are of the documents and of each set.
    """

    done: bool
    stages: list[StageStatus]
    runs: list[dict[str, Any]] = []
    faults: list[str] = []
    there: dict[str, int] = {}
