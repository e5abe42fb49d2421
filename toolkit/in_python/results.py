"""What calls from Python return: what ``--json`` prints, typed."""

from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from toolkit.commands.steps.outcome import Outcome
from toolkit.config.scale import Scale
from toolkit.errors import Failed
from toolkit.evaluating.judged import Details, Group
from toolkit.inspect.findings import Finding
from toolkit.mix.effects.compare import Sample
from toolkit.mix.effects.counts import RuleEffect, Totals
from toolkit.mix.publish import BlocklistCount, LabelTotals, OrphanCount, Unseen
from toolkit.whole.records import Model


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a call; `str` and `print` give what the command line would print.

    Attributes:
        text: for people.
        data: what ``--json`` prints, whole; fields that have no attribute here are in it, too.
        failed: a message for each shard, input, file or model that failed, and for what stopped the call.
    """

    text: str = ""
    data: dict[str, Any] = {}
    failed: list[str] = []

    def __str__(self) -> str:
        return self.text


R = TypeVar("R", bound=Result)


def typed(kind: type[R], outcome: Outcome) -> R:
    """Return the outcome of a command as a result of this kind."""
    return of_data(kind, outcome.data, outcome.text)


def checked(result: R, outcome: Outcome) -> R:
    """Return a result; raise Failed, which has it, if something has failed."""
    if outcome.exit_code:
        raise Failed(outcome.failures or [outcome.text], result)
    return result


def of_data(kind: type[R], data: dict[str, Any], text: str) -> R:
    """Return what a command tells programs, and people, as a result of this kind."""
    return msgspec.convert({**data, "text": text, "data": data}, kind)


class Previewed(Result, frozen=True, kw_only=True):
    """What a mix would do.

    Attributes:
        totals: documents and code points, read and kept.
        rules: what each rule does, in order; `only` is what no other rule would drop.
        labels: the same by label (by stream and label, where there are several streams), as data.
        blocklists, unseen, orphans: as of `Mixed`; of texts, too, that rules compare with.
        read_in_place: as of `Mixed`.
    """

    totals: Totals
    rules: list[RuleEffect]
    labels: dict[str, Any] = {}
    blocklists: list[BlocklistCount] = []
    unseen: list[Unseen] = []
    orphans: list[OrphanCount] = []
    read_in_place: dict[str, int] = {}


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
        scale: of labels that are on one.
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
    scale: Scale | None = None
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
    """Findings of `validate`; true if there are none but advice.

    Attributes:
        checked: Names of what was checked.
        findings: Each with its message and its severity.
    """

    checked: list[str]
    findings: list[Finding]

    def __bool__(self) -> bool:
        return all(finding.severity == "advice" for finding in self.findings)


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


class Published(Result, frozen=True, kw_only=True):
    """What `publish` did.

    Attributes:
        to: the folder, or the dataset of the Hugging Face Hub.
        files: paths of what is published, below it.
        became: what became of each: there, fetched (it was not there), replaced; none of a dry run.
        deleted: what only the last publication had.
        findings: of the checks; with them nothing is published.
        page: where people see a dataset of the Hub, and whether it is private.
    """

    to: str
    files: list[str]
    became: dict[str, str] = {}
    deleted: list[str] = []
    findings: list[str] = []
    page: str = ""
    private: bool = False


class Fetched(Result, frozen=True, kw_only=True):
    """What `fetch` did.

    Attributes:
        folder: that was fetched into.
        labels: by label, its parts.
        files: by path, what became of each: there, fetched, replaced; none of a dry run.
        bytes: of all files, as stored.
    """

    folder: str
    labels: dict[str, list[str]]
    files: dict[str, str] = {}
    bytes: int = 0


class Ingested(Result, frozen=True, kw_only=True):
    """What `ingest` did.

    Attributes:
        documents: folder that they are in.
        inputs, packs: how many there were, in how many packs.
        done, skipped: inputs that are ingested, and of these those that were before.
        counts: of documents and of what was left out, by reason.
        gone: inputs of earlier runs that are not among these; their documents stay.
        lost: inputs of packs that are not there any more; their documents have gone.
        salvaged: what was read of damaged inputs, a sentence for each.
    """

    documents: str
    inputs: int
    packs: int
    done: int
    skipped: int
    counts: dict[str, int] = {}
    gone: list[str] = []
    lost: list[str] = []
    salvaged: list[str] = []


class Aligned(Result, frozen=True, kw_only=True):
    """What `align` did.

    Attributes:
        attributes: folder that the sets are in.
        sets: of each set how many documents and ids there are, which of them have no counterpart, and shards written.
    """

    attributes: str
    sets: dict[str, dict[str, Any]] = {}


class Tagged(Result, frozen=True, kw_only=True):
    """What `tag` did.

    Attributes:
        attributes: folder that the sets are in.
        shards, documents: that are tagged now.
        written: shards that were written, by set; the others were up to date.
        asked: documents that the taggers of a set were asked of, fewer than all with ``when``.
        seconds: that they took, summed over processes.
    """

    attributes: str
    shards: int
    documents: int
    written: dict[str, int]
    asked: dict[str, int] = {}
    seconds: dict[str, float] = {}


class CopyOfSample(msgspec.Struct, frozen=True, kw_only=True):
    """A copy of a sample: its path, rows, and files."""

    path: str
    rows: int
    files: int


class ResolvedSet(msgspec.Struct, frozen=True, kw_only=True):
    """A set of duplicates, a sample, or a calibration.

    Attributes:
        kind: of the set.
        documents, compared: how many there are, and how many of them compete.
        counts: what was found.
        notes: what one should know of it.
        written: shards.
        copies: of a sample, by what they are of: ``ids``, ``documents``.
        groups: of a calibration, what there is of each group of documents.
        curve: of a map that is fitted on labels, means of scores, labels and values, from the lowest scores on.
        model: of a calibration, the map that was fitted.
    """

    kind: str
    documents: int
    compared: int
    counts: dict[str, int]
    notes: list[str]
    written: int
    copies: dict[str, CopyOfSample] = {}
    groups: list[dict[str, Any]] = []
    curve: list[dict[str, Any]] = []
    model: Model | None = None


class Resolved(Result, frozen=True, kw_only=True):
    """What `dedup`, `sample` or `calibrate` did.

    Attributes:
        attributes: folder that the sets are in.
        shards: that were worked on.
        sets: what was found, by set.
    """

    attributes: str
    shards: int
    sets: dict[str, ResolvedSet] = {}


class Annotated(Result, frozen=True, kw_only=True):
    """What `annotate` did.

    Attributes:
        attributes: folder that the sets are in.
        sets: of each set its documents, their statuses, and what the run has asked.
    """

    attributes: str
    sets: dict[str, dict[str, Any]] = {}


class TrainedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model.

    Attributes:
        folder: that it is in.
        already: whether it was there, made from the same labels with the same settings.
        kind, task, labels: what it predicts, and how.
        made_from: digest of documents, labels and settings.
        documents: of each split, how many there are of each label.
        left_out: documents that were not used, by reason.
        metrics: of valid and test, each beside its baseline.
        chosen: settings that were chosen by valid.
    """

    folder: str
    already: bool
    kind: str
    task: str
    labels: list[str]
    made_from: str
    documents: dict[str, dict[str, int]]
    left_out: dict[str, int]
    metrics: dict[str, dict[str, Any]]
    chosen: dict[str, Any]


class Trained(Result, frozen=True, kw_only=True):
    """What `train` did.

    Attributes:
        models: that are there now, by name.
    """

    models: dict[str, TrainedModel] = {}


class Mixed(Result, frozen=True, kw_only=True):
    """What `mix` did.

    Attributes:
        output: its folder.
        published: whether it is there as the configuration says; a share of a mix publishes nothing.
        already: whether it was before.
        digest: of the whole output, the same for the same content.
        totals: documents and code points, read and kept.
        rules: what each rule did, in order.
        labels: what was written, by label.
        counts: of what else took documents away, by name.
        blocklists: of each, how many entries matched.
        unseen: fields of rules that no document has, or no document of a shard.
        orphans: documents that were dropped as copies of documents that are not kept.
        omitted: why shards are not in it, by shard.
        read_in_place: items that the readers of files in place left out or changed, by reason.
    """

    output: str
    published: bool
    already: bool = False
    digest: str = ""
    totals: Totals = msgspec.field(default_factory=Totals)
    rules: list[RuleEffect] = []
    labels: dict[str, LabelTotals] = {}
    counts: dict[str, int] = {}
    blocklists: list[BlocklistCount] = []
    unseen: list[Unseen] = []
    orphans: list[OrphanCount] = []
    omitted: dict[str, str] = {}
    read_in_place: dict[str, int] = {}


class Ran(Result, frozen=True, kw_only=True):
    """What `run` did: of each stage that the configuration has, None for the others."""

    ingest: Ingested | None = None
    align: Aligned | None = None
    tag: Tagged | None = None
    dedup: Resolved | None = None
    sample: Resolved | None = None
    annotate: Annotated | None = None
    calibrate: Resolved | None = None
    mix: Mixed | None = None
    tokenize: Mixed | None = None


def ran(outcome: Outcome, *, per_shard: bool) -> Ran:
    """Return the outcome of ``run``, whose stages have results of their own; one per shard has that of its mix."""
    stages = {"mix": outcome.data} if per_shard else outcome.data
    types = get_type_hints(Ran)
    found: dict[str, Any] = {
        name: of_data(get_args(types[name])[0], data, "") for name, data in stages.items() if name in types
    }
    return Ran(text=outcome.text, data=outcome.data, failed=outcome.failures, **found)
