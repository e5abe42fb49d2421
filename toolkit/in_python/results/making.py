"""What the commands return that make something: sets, models, outputs."""

from typing import Any, get_args, get_type_hints

import msgspec

from toolkit.commands.steps.outcome import Outcome
from toolkit.in_python.results.result import Result, of_data
from toolkit.mix.effects.counts import RuleEffect, Totals
from toolkit.mix.publish import BlocklistCount, LabelTotals, OrphanCount, Unseen
from toolkit.whole.records import Model


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
