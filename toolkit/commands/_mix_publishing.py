"""The second stage of a mix: from the parts of shards to the published output."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import msgspec

from toolkit import partials
from toolkit.commands import _mix_budgets as budgets
from toolkit.commands import _mix_orphans as orphans
from toolkit.commands import _mix_tables as tables
from toolkit.commands._mix_preparation import PreparedMix
from toolkit.data import own_types
from toolkit.data.own_types import OwnTypes
from toolkit.data.tables.restored import own_columns
from toolkit.distribution import VERSION
from toolkit.errors import ConfigError, amount
from toolkit.execution.executors import Task
from toolkit.execution.room import Need
from toolkit.mix import assemble, plan, publish, stage
from toolkit.mix import settings as mix_settings
from toolkit.mix.effects import unmatched
from toolkit.mix.effects.counts import RuleEffect, SizesByLabel, Totals, added
from toolkit.mix.join import ShardToMix
from toolkit.mix.publish import BlocklistCount, LabelTotals, Manifest, OrphanCount, Unseen
from toolkit.mix.settings import COPY, MixSettings
from toolkit.records import identity
from toolkit.records import sets as records
from toolkit.records.failures import FailureRecord, FailureRecords
from toolkit.result import CommandResult, absent
from toolkit.rules import kind_called
from toolkit.stages.context import Context
from toolkit.stages.disk import FILES
from toolkit.stages.outcome import Outcome, all_values, failures
from toolkit.storage.paths import work_folder
from toolkit.storage.threads import for_each


def _need(task: Task[assemble.PartsToWrite]) -> Need:
    """Return what the parts of a mix need on disk: about as much as what they are made of."""
    work = task.payload
    writer = work.settings.writer()
    todo = [part for part in work.parts if work.record(part) is None]
    found = [writer.on_disk(part.stored, part.size) for part in todo]
    size = sum(size + FILES for size, _ in found)
    sorted_ = max((part.size for part in todo if part.runs and not assemble.fits(part.size)), default=0)
    return Need(size + sorted_ + max((held for _, held in found), default=0), size)


class MixResult(CommandResult, kw_only=True):
    """The result of `mix` and `tokenize`. Fields from `already` to `unmatched` are those of a published output alone.

    Attributes:
        output: Folder of the output.
        published: True if it is there as the configuration says; a share of a mix publishes nothing.
        shards: Number of shards that a share, or a mix that cannot start, is of.
        failed: Messages of shards that failed, where nothing was published.
        already: True if it was there before.
        digest: Digest of the whole output, the same for the same content.
        totals: Documents and code points, read and kept.
        rules: Effect of each rule, in order.
        orphans: Documents dropped as copies of documents that are not kept.
        blocklists: Number of entries that matched, of each blocklist.
        unseen: Fields of rules that no document has, or no document of a shard.
        counts: Counts of what else took documents away, by name.
        not_carried: Documents with fields that the output does not carry, by field.
        unlike_dolma: Number of documents that Dolma decides otherwise about.
        labels: Documents, bytes and parts, by label.
        omitted: Reason why shards are not in it, by shard.
        budget: Counts of the groups of a budget.
        unmatched: Entries of blocklists that matched nothing, by rule.
        read_in_place: Counts of items that the readers of files in place left out or changed, by reason.
        lock: Path of the lock that was written.
        editions: Results of the editions, by name.
        salvaged: Remarks on damaged inputs, of `run` input by input.
    """

    output: str
    published: bool
    shards: int = absent()
    failed: list[str] = absent()
    already: bool = absent()
    digest: str = absent()
    totals: Totals = absent()
    rules: list[RuleEffect] = absent()
    orphans: list[OrphanCount] = absent()
    blocklists: list[BlocklistCount] = absent()
    unseen: list[Unseen] = absent()
    counts: dict[str, int] = absent()
    not_carried: dict[str, int] = absent()
    unlike_dolma: int = absent()
    labels: dict[str, LabelTotals] = absent()
    omitted: dict[str, str] = absent()
    budget: dict[str, Any] = absent()
    unmatched: dict[str, list[str]] = absent()
    read_in_place: dict[str, int] = absent()
    lock: str = absent()
    editions: dict[str, "MixResult"] = absent()
    salvaged: list[str] = absent()


_OF_MANIFEST = [name for name in MixResult.__struct_fields__ if name in Manifest.__struct_fields__ and name != "budget"]


def check_limit(context: Context, output: str, now: int, known: int) -> None:
    """Check that a mix of some shards (``--limit``) replaces no fuller output unasked.

    Args:
        context: of the configuration.
        output: of the mix.
        now: shards that are mixed.
        known: shards that there are.

    Raises:
        ConfigError: if it would be.
    """
    published = publish.load_manifest(output)
    if published and now < known and not context.options.overwrite and len(published.inputs) > now:
        raise ConfigError(
            f"{output} was made of {amount(len(published.inputs), 'shard')}, and --limit {context.options.limit} would "
            "replace it by less; choose another output.path, or --overwrite"
        )


def already(context: Context, settings: MixSettings, manifest: Manifest, keeps: str = "") -> Outcome:
    """Return the outcome of a mix that is published already."""
    output = settings.output.path
    if not manifest.labels and (why := empty(context, settings, manifest.totals, manifest.rules, manifest.counts)):
        return failed(output, [why])
    if why := orphans.refusal(context, settings, manifest.orphans, []):
        return failed(output, [why])
    publish.note_datasets(output, [stream.dataset for stream in settings.streams])
    publish.clear_work(output, keeps)  # of a mix that failed since
    return _outcome(output, manifest, unmatched.load(output), already=True)


def finish(context: Context, prepared: PreparedMix, omitted: dict[str, str], *, keeps: bool = False) -> Outcome:
    """Plan the parts, write them, and publish.

    Args:
        context: of the configuration.
        prepared: the mix; the first stage of its shards is done.
        omitted: shards that are not in it, by key, and why.
        keeps: whether the intermediates stay, because the documents do not.
    """
    settings = prepared.settings
    output = settings.output.path
    digest = settings.stage_digest()
    keys = [work.key for work in prepared.works if work.key not in omitted]
    stages = {}
    for key, record in zip(keys, for_each(partial(stage.load_stage, output, digest), keys), strict=True):
        if record is None:
            return failed(output, [f"{key}: expected what was just made of it, it is gone; run the mix again"])
        stages[key] = record
    if not stages:
        return failed(output, list(omitted.values()))
    noted = FailureRecords(work_folder(output), "write")
    if not any(label != mix_settings.REJECTED for each in stages.values() for label in each.members):
        effects = [(work.stream, stages[work.key].rules) for work in prepared.works if work.key in stages]
        totals = partials.total(Totals(), (each.totals for each in stages.values()))
        why = empty(context, settings, totals, tables.effects_of(settings, effects), _counts(stages))
        if why:
            noted.note(output, FailureRecord(task=output, message=why))
            return failed(output, [*omitted.values(), why])
    lost = None
    if not (why := _shared_ids(context, prepared, stages)):
        lost = orphans.of_stages(prepared, stages)
        why = lost.refused(context, settings)
    if why or lost is None:
        noted.note(output, FailureRecord(task=output, message=why))
        return failed(output, [*omitted.values(), why])
    settings = msgspec.structs.replace(settings, columns=_columns(prepared, stages.values()))
    parts = plan.plan_parts(stages, settings, lambda what, do, tasks: all_values(context.run(what, do, tasks, "tasks")))
    digest = plan.plan_digest(stages, digest, settings.output.part_size, list(omitted))
    grouped = assemble.in_groups(parts, context.cores)
    listed = [assemble.PartsToWrite(settings=settings, digest=digest, parts=group) for group in grouped]
    tasks = [Task(work.name, work, work.stored, key=work.name) for work in listed]
    needs = context.disk.checked(tasks, _need, begins=False)
    results = context.run("write", assemble.assemble_parts, tasks, "parts", failed=noted, needs=needs)
    noted.keep_only([work.name for work in listed])
    if broken := failures(results):
        return failed(output, [*omitted.values(), *broken])
    made = [part for result in results for part in result.value or ()]
    counts, left = _blocklists(prepared, stages)
    manifest = _manifest(prepared, stages, omitted, made, blocklists=counts, lost=lost.counts, digest=digest)
    unmatched.save(output, left)
    del stages, parts, grouped, listed, tasks, results  # of 100,000 shards as much again as the manifest, which has all
    datasets = [stream.dataset for stream in settings.streams]
    publish.publish(output, manifest, datasets, settings.stage_digest() if keeps else "")
    outcome = _outcome(output, manifest, left)
    outcome.failures, outcome.exit_code = list(omitted.values()), 1 if omitted else 0
    return outcome


def _shared_ids(context: Context, prepared: PreparedMix, stages: Mapping[str, stage.StageRecord]) -> str:
    """Return why documents are refused for their ids: in a dataset, or in the output of several; empty for none."""
    settings, mixed = prepared.settings, [work for work in prepared.works if work.key in stages]
    if not settings.deletes and (why := context.shared_ids((work.dataset, work.shard) for work in mixed)):
        return why
    written = [stage.written_of(work, stages[work.key]) for work in mixed if settings.notes_ids]
    advice = identity.ADVICE if settings.deletes else identity.ADVICE_FOR_STREAMS
    return next((str(each.error(written, advice)) for each in identity.find_duplicate_ids(written)), "")


def _columns(prepared: PreparedMix, stages: Iterable[stage.StageRecord]) -> str:
    """Return the columns that documents bring, for a format that has some."""
    settings = prepared.settings
    if not settings.writer().COLUMNS:
        return ""
    types = own_types.together({work.stream.name: work.stream.own for work in prepared.works}.values()) or OwnTypes()
    names = {name for found in stages for name in found.own}
    added = {name: "int" if name == COPY else "any" for name in settings.added_fields(settings.recorded())}
    return own_columns(types.arrow, types.fields, names, added)


def empty(
    context: Context, settings: MixSettings, totals: Totals, effects: Iterable[RuleEffect], counts: Mapping[str, int]
) -> str:
    """Return why a mix that keeps no document is not published; empty where it may be.

    If only a part of the shards is mixed, or nothing is published, this prints a warning and returns an empty text.

    Args:
        context: of the configuration.
        settings: of the mix.
        totals: documents that were read.
        effects: of the rules, which name what dropped them.
        counts: what else took documents away, by name.
    """
    if settings.allow_empty:
        return ""
    names = {(f"{each.stream}: " if each.stream else "") + each.name: each for each in effects}
    dropping = {
        name: each.documents for name, each in names.items() if each.documents and kind_called(each.kind).ROLE.drops
    }
    causes = ", ".join(f"{n:,} by {name}" for name, n in [*dropping.items(), *counts.items()])
    message = (
        f"expected a mix that keeps documents, got 0 of {totals.rows:,}"
        + (f" (dropped: {causes})" if causes else "")
        + "; `toolkit mix --explain 3` shows why, `allow_empty: true` under `mix:` publishes an output without any"
    )
    message = f"{settings.place}: {message}"
    if not context.only_warns:
        return message
    context.warn([message])
    return ""


def _counts(stages: Mapping[str, stage.StageRecord]) -> dict[str, int]:
    """Return what the writer left out, by name, of all shards."""
    return added(each.counts for each in stages.values())


def _manifest(
    prepared: PreparedMix,
    stages: Mapping[str, stage.StageRecord],
    omitted: dict[str, str],
    parts: list[assemble.PartRecord],
    *,
    blocklists: list[BlocklistCount],
    lost: list[OrphanCount],
    digest: str,
) -> Manifest:
    settings = prepared.settings
    found = partials.total(SizesByLabel(), (each.statistics for each in stages.values()))
    labels: dict[str, LabelTotals] = {}
    for part in parts:
        totals = labels.setdefault(part.label, LabelTotals())
        totals.documents += part.documents
        totals.content_size += part.content_size
        totals.size += part.size
        totals.parts += 1
    mixed = [work for work in prepared.works if work.key in stages]
    return msgspec.structs.replace(
        begun(prepared, [_input(work, stages[work.key]) for work in mixed]),
        digest=digest,
        omitted=omitted,
        totals=partials.total(Totals(), (each.totals for each in stages.values())),
        rules=tables.effects_of(settings, ((work.stream, stages[work.key].rules) for work in mixed)),
        blocklists=blocklists,
        unseen=unmatched.unseen((work, stages[work.key].seen) for work in mixed),
        orphans=lost,
        counts=_counts(stages),
        not_carried=added(each.not_carried for each in stages.values()),
        unlike_dolma=sum(each.unlike_dolma for each in stages.values()),
        budget=budgets.counted(prepared.budget, [each.groups for each in stages.values()]),
        statistics=dict(sorted(found.items())),
        rejected=labels.pop(mix_settings.REJECTED, None),
        labels=labels,
        parts=parts,
        files=publish.checksum_files(parts, settings),
    )


def begun(prepared: PreparedMix, inputs: list[publish.InputEntry]) -> Manifest:
    """Return the manifest of a mix as far as it is known before anything is mixed.

    Args:
        prepared: the mix.
        inputs: its shards.
    """
    settings = prepared.settings
    joined = {f"{name}/{each.set}" if name else each.set: each for name, sets in prepared.sets.items() for each in sets}
    keys = {
        name: msgspec.to_builtins([msgspec.structs.replace(key, models={}) for key in each.keys])
        for name, each in joined.items()
    }
    made_by = msgspec.json.encode(keys)  # a tagged set may have had other models before; a map has the fitted one alone
    return Manifest(
        digest="",
        toolkit=VERSION,
        settings=settings.recorded(),
        sets=keys,
        lineage={name: each.reads for name, each in joined.items() if each.reads},
        models={
            digest: called
            for stream in settings.streams
            for each in prepared.sets[stream.name]
            for digest, called in sorted(records.load_models(stream.dataset, each.set).items())
            if digest.encode() in made_by or not any("tagger" in (key.settings or ()) for key in each.keys)
        },
        inputs=inputs,
        omitted={},
        totals=Totals(),
        rules=[],
        counts={},
        labels={},
        parts=[],
        files={},
    )


def _input(work: ShardToMix, found: stage.StageRecord) -> publish.InputEntry:
    return publish.InputEntry(
        stream=work.stream.name,
        shard=work.shard,
        documents=found.documents,
        attributes=found.attributes,
        rows=found.totals.rows,
    )


def _blocklists(
    prepared: PreparedMix, stages: Mapping[str, stage.StageRecord]
) -> tuple[list[BlocklistCount], dict[str, list[str]]]:
    found = [
        (work, {int(i): entries for i, entries in stages[work.key].matched.items()})
        for work in prepared.works
        if work.key in stages
    ]
    return unmatched.matches(found)


def failed(output: str, messages: list[str]) -> Outcome:
    """Return the outcome of a mix that published nothing."""
    text = f"nothing was published in {output}: {len(messages)} failed; correct that, then run the command again"
    data = MixResult(output=output, published=False, failed=messages)
    return Outcome(text=text, data=data, failures=messages, exit_code=1)


def _outcome(
    output: str, manifest: Manifest, left: dict[str, list[str]] | None = None, *, already: bool = False
) -> Outcome:
    """Return the outcome of a published mix; `left` are the blocklist entries that matched nothing, by rule."""
    data = MixResult(
        output=output, published=True, already=already, **{name: getattr(manifest, name) for name in _OF_MANIFEST}
    )
    if budget := budgets.as_data(manifest.budget):
        data.budget = budget
    if left:
        data.unmatched = left
    return Outcome(
        text=tables.published(output, manifest, already=already)
        + budgets.told(manifest.budget, written=True)
        + orphans.told(manifest.orphans)
        + tables.blocklists(manifest.blocklists, left or {}, unmatched.path_of(output))
        + tables.unseen(manifest.unseen)
        + tables.not_carried(manifest.not_carried)
        + tables.unlike_dolma(manifest.unlike_dolma, manifest.totals.rows),
        data=data,
    )
