"""Train models on labels of attributes: scores, classes, labels and grades of texts."""

from collections import Counter
from typing import Annotated, Any, ClassVar

import msgspec

from toolkit.command_options import CommandResult, Configured, Flag
from toolkit.config.settings import sets_before
from toolkit.errors import ConfigError, DataError, ToolkitError, amount
from toolkit.learn.train import trained_models
from toolkit.learn.train.examples import SPLITS
from toolkit.stages.context import Context, Outcome, table
from toolkit.whole_corpus.corpus_config import Entry, Plan


class Options(Configured, frozen=True, kw_only=True):
    """Options of ``toolkit train``.

    Attributes:
        dry_run: count documents, labels and splits; write nothing
        overwrite: replace models that were made from something else
    """

    WRITES: ClassVar = True
    EXAMPLES: ClassVar = ("toolkit train -c my.yaml --dry-run", "toolkit train -c my.yaml train.edu-1.alpha=0.3")

    dry_run: Annotated[bool, Flag()] = False
    overwrite: Annotated[bool, Flag()] = False


class CountedLabels(msgspec.Struct, kw_only=True):
    """The labels of a planned model: documents of each split by label, and those left out by reason."""

    documents: dict[str, dict[str, int]]
    left_out: dict[str, int]


class PlannedTraining(CommandResult, kw_only=True):
    """The result of a dry run of `train`: labels of models by name, and messages of those that would fail."""

    models: dict[str, CountedLabels] = {}
    failed: list[str] = []


class TrainedModel(trained_models.ModelFacts, frozen=True, kw_only=True):
    """A model: its folder, and whether it was there `already`, made from the same labels with the same settings."""

    folder: str
    already: bool


class TrainResult(CommandResult, kw_only=True):
    """The result of `train`: models by name, and messages of those that failed."""

    models: dict[str, TrainedModel] = {}
    failed: list[str] = []


def run(context: Context, options: Options) -> Outcome:
    """Train the models of the section ``train:``, one after the other."""
    dataset = context.dataset
    shards = context.shards(dataset, judges=True)[0]  # first: without documents, no set is there either
    plan = _plan(context)
    context.check_sets_read(shards, plan.schemas)
    if why := context.shared_ids((dataset, shard) for shard in shards):
        raise DataError(why)
    training = trained_models.Making(dataset, shards, context.config.max_document_bytes, context.run)
    outcome = Outcome(data=PlannedTraining() if options.dry_run else TrainResult())
    if options.dry_run:
        for entry in plan.entries:
            _one(outcome, entry, lambda entry: _counted(training, entry))
        return outcome
    results: dict[str, str | None] = {}
    for entry in plan.entries:
        results[entry.set] = trained_models.made_from(dataset, entry, shards)
        where = trained_models.folder_of(dataset, entry)
        card = trained_models.load(where)
        trained_models.check_free(where, entry.set, results[entry.set], card, dataset, overwrite=options.overwrite)
    context.sweep(dataset.bookkeeping, *(trained_models.folder_of(dataset, entry) for entry in plan.entries))
    with context.lease(dataset.bookkeeping, dataset.attributes, {f"the model {e.set}": "" for e in plan.entries}):
        for entry in plan.entries:
            _one(outcome, entry, lambda entry: _trained(training, entry, results[entry.set]))
    return outcome


def _plan(context: Context) -> Plan:
    """Return the plan of the section; an error says which sets of the configuration have not been made yet."""
    schemas = context.known_sets("train")
    try:
        return trained_models.read_section(context.section("train"), context.dataset, schemas, context.external)
    except ConfigError as error:
        missing = {name: command for command in sets_before("train") for name in getattr(context.config, command)}
        todo = [f"{name} (`toolkit {command}`)" for name, command in missing.items() if name not in schemas]
        if not todo:
            raise
        raise ConfigError(f"{error}; sets of this configuration that are not made yet: {', '.join(todo)}") from None


def _one(outcome: Outcome, entry: Entry, work: Any) -> None:
    """Work on an entry, and add the result; a failure of one does not stop the others."""
    try:
        text, data = work(entry)
    except ToolkitError as error:
        message = str(error)
        outcome.failures.append(message if message.startswith(entry.place) else f"{entry.place}: {message}")
        outcome.data.failed.append(outcome.failures[-1])
        outcome.exit_code = max(outcome.exit_code, error.exit_code)
        text = f"{entry.set}: not trained"
    else:
        outcome.data.models[entry.set] = data
    outcome.text += ("\n\n" if outcome.text else "") + text


def _counted(training: trained_models.Making, entry: Entry) -> tuple[str, CountedLabels]:
    examples, left = training.count(entry)
    counts, trainer = examples.counts(), trained_models.trainer_of(entry)
    text = f"{entry.set}: {trainer.task}, {amount(len(examples.labels), 'document')} with labels\n"
    text += _labels(counts, left)
    try:
        examples.check(trainer.minimum)
    except ToolkitError as error:
        text += f"\nit cannot be trained: {error}"
    return text, CountedLabels(documents=counts, left_out=dict(left))


def _trained(training: trained_models.Making, entry: Entry, made_from: str | None) -> tuple[str, TrainedModel]:
    where = trained_models.folder_of(training.dataset, entry)
    card = trained_models.load(where)
    already = trained_models.state_of(where, card, made_from).is_done
    if card is None or not already:
        card = training.make(entry, where)
    training.clear(entry)
    text = f"{entry.set}: {'up to date' if already else 'trained'}: {card.kind}, {card.task} -> {where}\n"
    text += _labels(card.documents, card.left_out)
    rows = [["split", "documents", *(names := [*_numbers(next(iter(card.metrics.values()), {}))])]]
    for split, measures in card.metrics.items():
        rows.append([split, f"{measures['documents']:,}", *(_cell(measures[name]) for name in names)])
        rows.append(["  baseline", "", *(_cell(measures["baseline"].get(name)) for name in names)])
    if len(rows) > 1:
        text += "\n" + table(rows, right=range(1, len(rows[0])))
    if card.chosen:
        text += "\nchosen by valid: " + ", ".join(f"{k} {v}" for k, v in card.chosen.items() if k != "tried")
    described = msgspec.structs.asdict(card)
    del described["learnt_from"]  # which grow with shards, and say nothing to people
    return text, TrainedModel(folder=where, already=already, **described)


def _numbers(measures: dict[str, Any]) -> list[str]:
    return [name for name in measures if name not in ("documents", "baseline")]


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _labels(counts: dict[str, dict[str, int]], left: "Counter[str] | dict[str, int]") -> str:
    """Return a table of labels by split, and the left-out documents."""
    labels = dict.fromkeys(label for split in counts.values() for label in split)
    rows = [["label", *SPLITS]]
    rows += [[label, *(f"{counts[split].get(label, 0):,}" for split in SPLITS)] for label in labels]
    text = table(rows, right=[1, 2, 3])
    if any(left.values()):
        text += "\nleft out: " + ", ".join(f"{count:,} {why}" for why, count in left.items() if count)
    return text
