"""The second stage of a mix: from the parts of shards to the published output, which orphans may prevent."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from toolkit import partials
from toolkit.command_line import CommandResult, absent
from toolkit.commands import _mix_preparation as preparation
from toolkit.commands import _mix_tables as tables
from toolkit.commands._mix_preparation import PreparedMix
from toolkit.data import own_types
from toolkit.data.alignment import attribute_lines
from toolkit.data.documents import AttributesRow, Rows
from toolkit.data.own_types import OwnTypes
from toolkit.data.tables.restored import own_columns
from toolkit.distribution import VERSION
from toolkit.errors import ConfigError, DataError, amount
from toolkit.execution.executors import Result, Task
from toolkit.execution.grouped import shard_tasks
from toolkit.mix import assemble, orphans, plan, publish, stage
from toolkit.mix import settings as mix_settings
from toolkit.mix.bindings import ShardToMix
from toolkit.mix.effects import unmatched
from toolkit.mix.effects.counts import RuleEffect, SizesByLabel, Totals, added
from toolkit.mix.effects.preview import Preview, ShardToPreview
from toolkit.mix.join import RAW_ATTRIBUTES
from toolkit.mix.orphans import FIELD
from toolkit.mix.publish import BlocklistCount, LabelTotals, Manifest, OrphanCount, Unseen, orphan_counts
from toolkit.mix.settings import COPY, MixSettings
from toolkit.mix.stage import StageRecord
from toolkit.records import identity
from toolkit.records import sets as records
from toolkit.records.failures import FailureRecord, FailureRecords
from toolkit.rules.kinds import kind_called
from toolkit.stages.context import Context, Outcome, all_values, failures
from toolkit.stages.disk_quota import FILES, DiskEstimate
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import remove, work_folder
from toolkit.storage.stores.local.scratch import scratch
from toolkit.storage.threads import for_each


def _need(task: Task[assemble.PartsToWrite]) -> DiskEstimate:
    """Return what the parts of a mix need on disk: about as much as what they are made of."""
    work = task.payload
    writer = work.settings.writer()
    todo = [part for part in work.parts if work.record(part) is None]
    results = [writer.on_disk(part.stored, part.size) for part in todo]
    size = sum(size + FILES for size, _ in results)
    sorted_ = max((part.size for part in todo if part.runs and not assemble.fits(part.size)), default=0)
    return DiskEstimate(size + sorted_ + max((held for _, held in results), default=0), size)


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
        context: Context of the configuration.
        output: Output of the mix.
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
    if why := orphan_refusal(context, settings, manifest.orphans, []):
        return failed(output, [why])
    publish.note_datasets(output, [stream.dataset for stream in settings.streams])
    publish.clear_work(output, keeps)  # of a mix that failed since
    return _outcome(output, manifest, unmatched.load(output), already=True)


def finish(context: Context, prepared: PreparedMix, omitted: dict[str, str], *, keeps: bool = False) -> Outcome:
    """Plan the parts, write them, and publish.

    Args:
        context: Context of the configuration.
        prepared: the mix; the first stage of its shards is done.
        omitted: shards that are not in it, by key, and why.
        keeps: True if the intermediates stay, because the documents do not.
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
    if not any(label != mix_settings.REJECTED for stage in stages.values() for label in stage.members):
        effects = [(work.stream, stages[work.key].rules) for work in prepared.works if work.key in stages]
        totals = partials.total(Totals(), (stage.totals for stage in stages.values()))
        why = empty(context, settings, totals, tables.effects_of(settings, effects), _counts(stages))
        if why:
            noted.note(output, FailureRecord(task=output, message=why))
            return failed(output, [*omitted.values(), why])
    lost = None
    if not (why := _shared_ids(context, prepared, stages)):
        lost = orphans_of_stages(prepared, stages)
        why = lost.refused(context, settings)
    if why or lost is None:
        noted.note(output, FailureRecord(task=output, message=why))
        return failed(output, [*omitted.values(), why])
    settings = msgspec.structs.replace(settings, columns=_columns(prepared, stages.values()))
    parts = plan.plan_parts(stages, settings, lambda what, do, tasks: all_values(context.run(what, do, tasks, "tasks")))
    digest = plan.plan_digest(stages, digest, settings.output.part_size, list(omitted))
    stored = sum(member.length for stage in stages.values() for some in stage.members.values() for member in some)
    listed = assemble.save_plan(settings, digest, assemble.in_groups(parts, stored, context.cores))
    tasks = [Task(work.name, work, work.stored, key=work.name) for work in listed]
    needs = context.disk.checked(tasks, _need, begins=False)
    results = context.run("writing the output", assemble.assemble_parts, tasks, "parts", failed=noted, needs=needs)
    noted.keep_only([work.name for work in listed])
    if broken := failures(results):
        remove(listed[0].plan)
        return failed(output, [*omitted.values(), *broken])
    result = [part for result in results for part in result.value or ()]
    counts, left = _blocklists(prepared, stages)
    manifest = _manifest(prepared, stages, omitted, result, blocklists=counts, lost=lost.counts, digest=digest)
    unmatched.save(output, left)
    del stages, parts, listed, tasks, results  # of 100,000 shards as much again as the manifest, which has all
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
    return next((str(duplicate_id.error(written, advice)) for duplicate_id in identity.find_duplicate_ids(written)), "")


def _columns(prepared: PreparedMix, stages: Iterable[stage.StageRecord]) -> str:
    """Return the columns that documents bring, for a format that has some."""
    settings = prepared.settings
    if not settings.writer().COLUMNS:
        return ""
    types = own_types.together({work.stream.name: work.stream.own for work in prepared.works}.values()) or OwnTypes()
    names = {name for stage in stages for name in stage.own}
    added = {name: "int" if name == COPY else "any" for name in settings.added_fields(settings.recorded())}
    return own_columns(types.arrow, types.fields, names, added)


def empty(
    context: Context, settings: MixSettings, totals: Totals, effects: Iterable[RuleEffect], counts: Mapping[str, int]
) -> str:
    """Return why a mix that keeps no document is not published; empty where it may be.

    If only a part of the shards is mixed, or nothing is published, this prints a warning and returns an empty text.

    Args:
        context: Context of the configuration.
        settings: Settings of the mix.
        totals: documents that were read.
        effects: Effects of the rules, which name what dropped them.
        counts: what else took documents away, by name.
    """
    if settings.allow_empty:
        return ""
    names = {(f"{effect.stream}: " if effect.stream else "") + effect.name: effect for effect in effects}
    dropping = {
        name: rule_effect.documents
        for name, rule_effect in names.items()
        if rule_effect.documents and kind_called(rule_effect.kind).ROLE.drops
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
    return added(stage.counts for stage in stages.values())


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
    results = partials.total(SizesByLabel(), (stage.statistics for stage in stages.values()))
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
        totals=partials.total(Totals(), (stage.totals for stage in stages.values())),
        rules=tables.effects_of(settings, ((work.stream, stages[work.key].rules) for work in mixed)),
        blocklists=blocklists,
        unseen=unmatched.unseen((work, stages[work.key].seen) for work in mixed),
        orphans=lost,
        counts=_counts(stages),
        not_carried=added(stage.not_carried for stage in stages.values()),
        unlike_dolma=sum(stage.unlike_dolma for stage in stages.values()),
        budget=preparation.counted_budget(prepared.budget, [stage.groups for stage in stages.values()]),
        statistics=dict(sorted(results.items())),
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
    joined = {f"{name}/{item.set}" if name else item.set: item for name, sets in prepared.sets.items() for item in sets}
    keys = {
        name: msgspec.to_builtins([msgspec.structs.replace(key, models={}) for key in item.keys])
        for name, item in joined.items()
    }
    made_by = msgspec.json.encode(keys)  # a tagged set may have had other models before; a map has the fitted one alone
    return Manifest(
        digest="",
        toolkit=VERSION,
        settings=settings.recorded(),
        sets=keys,
        lineage={name: item.reads for name, item in joined.items() if item.reads},
        models={
            digest: called
            for stream in settings.streams
            for item in prepared.sets[stream.name]
            for digest, called in sorted(records.load_models(stream.dataset, item.set).items())
            if digest.encode() in made_by or not any("tagger" in (key.settings or ()) for key in item.keys)
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


def _input(work: ShardToMix, stage_record: stage.StageRecord) -> publish.InputEntry:
    return publish.InputEntry(
        stream=work.stream.name,
        shard=work.shard,
        documents=stage_record.documents,
        attributes=stage_record.attributes,
        rows=stage_record.totals.rows,
    )


def _blocklists(
    prepared: PreparedMix, stages: Mapping[str, stage.StageRecord]
) -> tuple[list[BlocklistCount], dict[str, list[str]]]:
    results = [
        (work, {int(i): entries for i, entries in stages[work.key].matched.items()})
        for work in prepared.works
        if work.key in stages
    ]
    return unmatched.matches(results)


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
    if budget := preparation.budget_data(manifest.budget):
        data.budget = budget
    if left:
        data.unmatched = left
    return Outcome(
        text=tables.published(output, manifest, already=already)
        + preparation.budget_table(manifest.budget, written=True)
        + orphans_text(manifest.orphans)
        + tables.blocklists(manifest.blocklists, left or {}, unmatched.path_of(output))
        + tables.unseen(manifest.unseen)
        + tables.not_carried(manifest.not_carried)
        + tables.unlike_dolma(manifest.unlike_dolma, manifest.totals.rows),
        data=data,
    )


# --- orphans: documents dropped as copies of documents that are not kept ----------------------------------------------


_ROWS = msgspec.json.Decoder(AttributesRow)


@dataclass
class Orphans:
    """The orphans of a mix: how many by rule and set, and some of them, for people."""

    counts: list[OrphanCount] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)

    @property
    def documents(self) -> int:
        return sum(count.documents for count in self.counts)

    def text(self) -> str:
        """Return lines for the report; empty if there are none."""
        return orphans_text(self.counts) + "".join(f"\n  {example}" for example in self.examples)

    def refused(self, context: Context, settings: MixSettings) -> str:
        """Return why the mix is not published; empty where it may be: if only a part is mixed, that is a warning."""
        return orphan_refusal(context, settings, self.counts, self.examples)


def orphans_text(counts: Sequence[OrphanCount]) -> str:
    """Return lines of a report that say how many orphans there are; empty if there are none."""
    if not counts:
        return ""
    number = sum(count.documents for count in counts)
    return f"\n\norphans: {amount(number, 'document')} dropped as copies of documents that are not kept: {_by(counts)}"


def orphan_refusal(
    context: Context, settings: MixSettings, counts: Sequence[OrphanCount], examples: Sequence[str]
) -> str:
    """Return why a mix with so many orphans is not published; empty where it may be, which a part of one warns of."""
    if not counts or settings.orphans == "allow":
        return ""
    shown = f"; for example {'; '.join(examples)}" if examples else ""
    message = (
        f"{settings.place}: expected to keep one of the documents of which others are dropped as copies, got "
        f"{amount(sum(count.documents for count in counts), 'document')} dropped as copies of documents that are not "
        f"kept: {_by(counts)}{shown}. Let only documents compete that the other rules keep (`when:` of the set), let "
        "the sets prefer the same documents (`keep:`), or publish without these texts: `orphans: allow` under `mix:`"
    )
    if not context.only_warns:
        return message
    context.warn([message])
    return ""


def _by(counts: Sequence[OrphanCount]) -> str:
    return ", ".join(
        f"{count.documents:,} by {count.stream + ': ' if count.stream else ''}{count.rule!r} ({count.set})"
        for count in counts
    )


def orphans_of_stages(prepared: PreparedMix, stages: Mapping[str, StageRecord]) -> Orphans:
    """Return the orphans of a mix whose first stage is done.

    Args:
        prepared: the mix.
        stages: Stages of its shards, by key; what is in no other shard is not kept.
    """
    output = prepared.settings.output.path
    works = [work for work in prepared.works if work.key in stages]
    return _told(works, orphans.judge([stage.noted_of(output, work.key, stages[work.key]) for work in works]))


@contextmanager
def previewing(works: Sequence[ShardToMix]) -> Iterator["Previewing"]:
    """Give a folder in which previews note what becomes of documents."""
    with scratch() as folder:
        yield Previewing(works, folder)


class Previewing:
    """The previews of shards, and the orphans that they come to."""

    def __init__(self, works: Sequence[ShardToMix], folder: str) -> None:
        self._works = works
        self._places = [
            (os.path.join(folder, f"{i}.kept"), os.path.join(folder, f"{i}.copies")) for i in range(len(works))
        ]

    def tasks(self) -> list[Task[ShardToPreview]]:
        """Return a task of `preview_with_fates` for each shard."""
        return [
            Task(task.name, ShardToPreview(task.payload, *places), task.size, key=task.key)
            for task, places in zip(shard_tasks(list(self._works)), self._places, strict=True)
        ]

    def orphans(self, results: Sequence[Result[Preview]]) -> Orphans:
        """Return the orphans; documents of shards that have failed do not count as kept."""
        noted: list[orphans.Noted | None] = []
        for places, result in zip(self._places, results, strict=True):
            if result.value and result.value.fates:  # of another machine
                for path, data in zip(places, (result.value.fates.kept, result.value.fates.copies), strict=True):
                    write_file(path, data)
            there = all(map(os.path.exists, places))
            noted.append(orphans.Noted(*places, sum(map(os.path.getsize, places))) if there else None)
        return _told(self._works, orphans.judge(noted))


def _told(works: Sequence[ShardToMix], found: orphans.Found) -> Orphans:
    return Orphans(orphan_counts(works, found), [_example(works[item.shard], item) for item in found.first])


def _example(work: ShardToMix, orphan: orphans.Orphan) -> str:
    """Return where an orphan is, and what it is a copy of, as far as that can still be read."""
    joined = work.sets[orphan.set]
    place = f"{work.name}:{orphan.row}"
    path = work.attributes_of(joined)
    try:
        with attribute_lines(path) as lines:
            for row, line in Rows(lines, _ROWS, path):
                if lines.number < orphan.row:
                    continue
                values = [RAW_ATTRIBUTES.decode(line).value(key.key) for key in joined.keys]
                named = [value[FIELD] for value in values if isinstance(value, dict) and value.get(FIELD)]
                return f"{place}: {row.id} ({row.source})" + "".join(f", a copy of {n[1]} ({n[0]})" for n in named[:1])
    except DataError:  # of a run that keeps no attributes
        pass
    return place
