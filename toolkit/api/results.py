"""What calls from Python return: what ``--json`` prints, typed."""

from typing import Any

import msgspec

from toolkit.commands.align import Alignment
from toolkit.commands.annotate import AnnotatedSets
from toolkit.commands.dedup import SetsOfWhole
from toolkit.commands.tag import Tagging
from toolkit.mix.effects.counts import RuleEffect, Totals
from toolkit.mix.effects.explain import Sample
from toolkit.mix.publish import BlocklistCount, LabelTotals, OrphanCount, Unseen
from toolkit.result import CommandResult


class Result(CommandResult, kw_only=True):
    """The result of a command that gives plain data.

    Attributes:
        failed: Messages of shards, inputs, files or models that failed, and of what stopped the call.
    """

    failed: list[str] = []

    @property
    def data(self) -> dict[str, Any]:
        """The result as plain data: what ``--json`` prints."""
        data: dict[str, Any] = vars(self)["plain"]
        return data


class MixPreview(Result, kw_only=True):
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


class MixComparison(Result, kw_only=True):
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


class Status(Result, kw_only=True):
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


class Ingested(Result, kw_only=True):
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


class MadeByStage(msgspec.Struct, frozen=True, kw_only=True):
    """What a stage made: where, of how many documents; shards written, and those deleted with their input."""

    path: str
    documents: int
    written: int
    deleted: int


class Made(Result, kw_only=True):
    """What `make` did: shards that were looked at, and what each stage of the section made."""

    shards: int
    made: dict[str, MadeByStage]


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


class Trained(Result, kw_only=True):
    """What `train` did.

    Attributes:
        models: that are there now, by name.
    """

    models: dict[str, TrainedModel] = {}


class Mixed(Result, kw_only=True):
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


class Ran(Result, kw_only=True):
    """What `run` did: of each stage that the configuration has, None for the others."""

    ingest: Ingested | None = None
    align: Alignment | None = None
    tag: Tagging | None = None
    make: Made | None = None
    dedup: SetsOfWhole | None = None
    sample: SetsOfWhole | None = None
    annotate: AnnotatedSets | None = None
    calibrate: SetsOfWhole | None = None
    mix: Mixed | None = None
    tokenize: Mixed | None = None


_KINDS: dict[str, type[Result]] = {
    "ingest": Ingested,
    "make": Made,
    "mix": Mixed,
    "status": Status,
    "tokenize": Mixed,
    "train": Trained,
}


def typed(command: str, data: Any) -> CommandResult:
    """Return what a command gives programs as its result; of `run` that of each stage, or of a mix per shard."""
    if isinstance(data, CommandResult):
        return data
    if command == "run":
        stages = {"mix": data} if "output" in data else data
        inner: dict[str, Any] = {
            name: typed(name, each) for name, each in stages.items() if name in Ran.__struct_fields__
        }
        found: Result = Ran(**inner)
    else:
        kind = _KINDS.get(command, Result)
        if command == "mix" and "output" not in data:
            kind = MixComparison if "gained" in data else MixPreview
        found = msgspec.convert(data, kind)
    vars(found)["plain"] = msgspec.to_builtins(data)
    return found
