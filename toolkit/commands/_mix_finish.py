"""The second stage of a mix: from the parts of shards to the published output, which orphans may prevent."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit.command_options import CommandResult, absent
from toolkit.commands import _mix_tables as tables
from toolkit.commands._mix_preparation import PreparedMix
from toolkit.data import document_fields
from toolkit.data.alignment import attribute_lines
from toolkit.data.document_fields import OwnTypes
from toolkit.data.documents import AttributesRow, Rows
from toolkit.data.tables.to_arrow import own_columns
from toolkit.distribution import VERSION
from toolkit.errors import ConfigError, DataError, amount
from toolkit.execution.executors import Result, Task
from toolkit.execution.grouped import shard_tasks
from toolkit.mix import assemble, intermediates, orphans, plan, publication, settings as mix_settings
from toolkit.mix.bindings import ShardToMix
from toolkit.mix.intermediates import StageRecord, StageRecords
from toolkit.mix.join import RAW_ATTRIBUTES
from toolkit.mix.orphans import FIELD
from toolkit.mix.publication import BlocklistCount, LabelTotals, Manifest, OrphanCount, Unseen, orphan_counts
from toolkit.mix.rule_effects import summary
from toolkit.mix.rule_effects.counts import RuleEffect, Totals
from toolkit.mix.rule_effects.summary import MixSummary
from toolkit.mix.settings import COPY, MixSettings
from toolkit.records import identity, sets as records
from toolkit.records.failures import FailureRecord, FailureRecords
from toolkit.rules.kinds import kind_called
from toolkit.stages.context import Context, Outcome, all_values, failures
from toolkit.stages.disk_quota import FILES, DiskEstimate
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import remove, work_folder
from toolkit.storage.stores.local.scratch import scratch
from toolkit.storage.threads import for_each

if TYPE_CHECKING:
    from toolkit.mix.rule_effects.preview import Preview, ShardToPreview

LOADED = 1024
"""Number of records of shards loaded together."""


def _need(task: Task[assemble.PartsToWrite]) -> DiskEstimate:
    """Return the room on disk for parts, as large as their members."""
    work = task.payload
    writer = work.settings.writer()
    todo = [part for part in work.parts if work.record(part) is None]
    estimates = [writer.on_disk(part.stored, part.size) for part in todo]
    size = sum(size + FILES for size, _ in estimates)
    sorted_ = max((part.size for part in todo if part.runs and not assemble.fits(part.size)), default=0)
    return DiskEstimate(size + sorted_ + max((temporary for _, temporary in estimates), default=0), size)


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


def check_limit(context: Context, output: str, now: int, number: int) -> None:
    """Check ``--limit`` against the number of shards in the output.

    Args:
        context: Context of the configuration.
        output: Output of the mix.
        now: Shards that are mixed.
        number: Shards that there are.

    Raises:
        ConfigError: if it would be.
    """
    published = publication.load_manifest(output)
    if published and now < number and not context.options.overwrite and (of := sum(1 for _ in published.inputs)) > now:
        raise ConfigError(
            f"{output} was made of {amount(of, 'shard')}, and --limit {context.options.limit} would "
            "replace it by less; choose another output.path, or --overwrite"
        )


def already(context: Context, settings: MixSettings, manifest: Manifest, keeps: str = "") -> Outcome:
    """Return the outcome of an output published earlier."""
    output = settings.output.path
    if not manifest.labels and (why := empty(context, settings, manifest)):
        return failed(output, [why])
    if why := Orphans(manifest.orphans).refusal(context, settings):
        return failed(output, [why])
    publication.note_datasets(output, [stream.dataset for stream in settings.streams])
    publication.clear_work(output, keeps)  # of a mix that failed since
    return _outcome(output, manifest, summary.load(output), already=True)


def finish(context: Context, prepared: PreparedMix, omitted: dict[str, str], *, keeps: bool = False) -> Outcome:
    """Plan the parts, write them, and publish.

    Args:
        context: Context of the configuration.
        prepared: The mix; the first stage of its shards is done.
        omitted: Shards that are not in it, by key, and why.
        keeps: True if the intermediates stay, because the documents do not.
    """
    settings = prepared.settings
    output, digest = settings.output.path, settings.stage_digest()
    mixed = [work for work in prepared.works if work.key not in omitted]
    stages = StageRecords()
    effects, own = MixSummary(settings, prepared.budget), set[str]()
    for first in range(0, len(mixed), LOADED):
        works = mixed[first : first + LOADED]
        loaded = for_each(partial(intermediates.load_stage, output, digest), [work.key for work in works])
        for work, record in zip(works, loaded, strict=True):
            if record is None:
                return failed(output, [f"{work.key}: expected what was just made of it, it is gone; run the mix again"])
            effects.add(work, record)
            own.update(record.own)
            stages.add(work.key, record)
    if not mixed:
        return failed(output, list(omitted.values()))
    failure_records, lost = FailureRecords(work_folder(output), "write"), Orphans()
    why = "" if stages.members.keys() - {mix_settings.REJECTED} else empty(context, settings, effects)
    if not why and not (why := _shared_ids(context, prepared, mixed, stages)):
        notes = [
            intermediates.noted_of(output, key, record) for key, record in zip(stages.keys, stages.records, strict=True)
        ]
        lost = Orphans.of(mixed, orphans.judge(notes))
        why = lost.refusal(context, settings)
    if why:
        failure_records.note(output, FailureRecord(task=output, message=why))
        return failed(output, [*omitted.values(), why])
    settings = msgspec.structs.replace(settings, columns=_columns(prepared, own))
    parts = plan.plan_parts(stages, settings, lambda step, do, tasks: all_values(context.run(step, do, tasks, "tasks")))
    inputs = ((shard, record.documents, record.attributes) for shard, record in stages.sorted_records())
    digest = plan.digest_of(inputs, digest, settings.output.part_size, list(omitted))
    groups = assemble.save_plan(settings, digest, assemble.in_groups(parts, stages.stored, context.cores))
    tasks = [Task(group.name, group, group.stored, key=group.name) for group in groups]
    needs = context.disk.checked(tasks, _need, begins=False)
    results = context.run(
        "writing the output", assemble.assemble_parts, tasks, "parts", failed=failure_records, needs=needs
    )
    failure_records.keep_only([group.name for group in groups])
    if broken := failures(results):
        remove(groups[0].plan)
        return failed(output, [*omitted.values(), *broken])
    part_records = [record for result in results for record in result.value or ()]
    labels: dict[str, LabelTotals] = {}
    for part in part_records:
        totals = labels.setdefault(part.label, LabelTotals())
        totals.documents += part.documents
        totals.content_size += part.content_size
        totals.size += part.size
        totals.parts += 1
    manifest = msgspec.structs.replace(
        begun(prepared, map(_input, mixed, stages.records)),
        digest=digest,
        omitted=omitted,
        orphans=lost.counts,
        rejected=labels.pop(mix_settings.REJECTED, None),
        labels=labels,
        parts=part_records,
        files=publication.checksum_files(part_records, settings),
        **effects.fields(),
    )
    unmatched = effects.unmatched()
    summary.save(output, unmatched)
    del stages, parts, groups, tasks, results  # of 100,000 shards as much again as the manifest, which has all
    datasets = [stream.dataset for stream in settings.streams]
    publication.publish(output, manifest, datasets, settings.stage_digest() if keeps else "")
    outcome = _outcome(output, manifest, unmatched)
    outcome.failures, outcome.exit_code = list(omitted.values()), 1 if omitted else 0
    return outcome


def _shared_ids(context: Context, prepared: PreparedMix, mixed: Sequence[ShardToMix], stages: StageRecords) -> str:
    """Return why documents are refused for their ids: in a dataset, or in the output of several; empty for none."""
    settings = prepared.settings
    if not settings.deletes and (why := context.shared_ids((work.dataset, work.shard) for work in mixed)):
        return why
    written = [*map(intermediates.written_of, mixed, stages.records)] if settings.notes_ids else []
    advice = identity.ADVICE if settings.deletes else identity.ADVICE_FOR_STREAMS
    return next((str(duplicate_id.error(written, advice)) for duplicate_id in identity.find_duplicate_ids(written)), "")


def _columns(prepared: PreparedMix, names: set[str]) -> str:
    """Return the own columns of documents, for a format with columns."""
    settings = prepared.settings
    if not settings.writer().COLUMNS:
        return ""
    types = (
        document_fields.together({work.stream.name: work.stream.own for work in prepared.works}.values()) or OwnTypes()
    )
    added = {name: "int" if name == COPY else "any" for name in settings.added_fields(settings.recorded())}
    return own_columns(types.arrow, types.fields, names, added)


def _refusal(context: Context, message: str) -> str:
    """Return a message of refusal; print it as a warning and return nothing where the run only warns."""
    if not context.only_warns:
        return message
    context.warn([message])
    return ""


def empty(context: Context, settings: MixSettings, effects: MixSummary | Manifest) -> str:
    """Return the refusal of a mix without documents; may be empty.

    If only a part of the shards is mixed, or nothing is published, this prints a warning and returns an empty text.

    Args:
        context: Context of the configuration.
        settings: Settings of the mix.
        effects: Effects of the rules, which name the reasons.
    """
    if settings.allow_empty:
        return ""
    dropping = {
        (f"{effect.stream}: " if effect.stream else "") + effect.name: effect.documents
        for effect in effects.rules
        if effect.documents and kind_called(effect.kind).ROLE.drops
    }
    causes = ", ".join(f"{n:,} by {name}" for name, n in [*dropping.items(), *sorted(effects.counts.items())])
    message = (
        f"{settings.place}: expected a mix that keeps documents, got 0 of {effects.totals.rows:,}"
        + (f" (dropped: {causes})" if causes else "")
        + "; `toolkit mix --explain 3` shows why, `allow_empty: true` under `mix:` publishes an output without any"
    )
    return _refusal(context, message)


def begun(prepared: PreparedMix, inputs: Iterable[publication.InputEntry]) -> Manifest:
    """Return the manifest of a mix before anything is mixed.

    Args:
        prepared: The mix.
        inputs: Shards of the mix.
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
            digest: name
            for stream in settings.streams
            for item in prepared.sets[stream.name]
            for digest, name in sorted(records.load_models(stream.dataset, item.set).items())
            if digest.encode() in made_by or not any("tagger" in (key.settings or ()) for key in item.keys)
        },
        raw_inputs=msgspec.Raw(b"[" + b",".join(map(msgspec.json.encode, inputs)) + b"]"),
        omitted={},
        totals=Totals(),
        rules=[],
        counts={},
        labels={},
        parts=[],
        files={},
    )


def _input(work: ShardToMix, record: StageRecord) -> publication.InputEntry:
    return publication.InputEntry(
        stream=work.stream.name,
        shard=work.shard,
        documents=record.documents,
        attributes=record.attributes,
        rows=record.totals.rows,
    )


def failed(output: str, messages: list[str]) -> Outcome:
    """Return the outcome of a mix without publication."""
    text = f"nothing was published in {output}: {len(messages)} failed; correct that, then run the command again"
    data = MixResult(output=output, published=False, failed=messages)
    return Outcome(text=text, data=data, failures=messages, exit_code=1)


def _outcome(output: str, manifest: Manifest, unmatched: dict[str, list[str]], *, already: bool = False) -> Outcome:
    """Return the outcome of a published mix with unmatched blocklist entries."""
    data = MixResult(
        output=output, published=True, already=already, **{name: getattr(manifest, name) for name in _OF_MANIFEST}
    )
    if budget := tables.budget_data(manifest.budget):
        data.budget = budget
    if unmatched:
        data.unmatched = unmatched
    return Outcome(
        text=tables.published(output, manifest, already=already)
        + tables.budget_table(manifest.budget, written=True)
        + Orphans(manifest.orphans).text
        + tables.remarks(manifest, unmatched, summary.path_of(output)),
        data=data,
    )


# --- orphans: documents dropped as copies of documents that are not kept ----------------------------------------------


_ROWS = msgspec.json.Decoder(AttributesRow)


class Orphans(msgspec.Struct):
    """The orphans of a mix: how many by rule and set, and some of them, for people."""

    counts: list[OrphanCount] = []
    examples: list[str] = []

    @classmethod
    def of(cls, works: Sequence[ShardToMix], orphan_search: orphans.OrphanCounts) -> "Orphans":
        """Return the orphans of shards."""
        examples = [_example(works[item.shard], item) for item in orphan_search.first]
        return cls(orphan_counts(works, orphan_search), examples)

    @property
    def text(self) -> str:
        """Return lines for the report; empty if there are no orphans."""
        if not self.counts:
            return ""
        lines = [f"orphans: {self._number} dropped as copies of documents that are not kept: {self._by}"]
        return "\n\n" + "\n  ".join([*lines, *self.examples])

    def refusal(self, context: Context, settings: MixSettings) -> str:
        """Return why the mix is not published; empty where it may be: if only a part is mixed, that is a warning."""
        if not self.counts or settings.orphans == "allow":
            return ""
        examples = f"; for example {'; '.join(self.examples)}" if self.examples else ""
        message = (
            f"{settings.place}: expected to keep one of the documents of which others are dropped as copies, got "
            f"{self._number} dropped as copies of documents that are not kept: {self._by}{examples}. Let only "
            "documents compete that the other rules keep (`when:` of the set), let the sets prefer the same documents "
            "(`keep:`), or publish without these texts: `orphans: allow` under `mix:`"
        )
        return _refusal(context, message)

    @property
    def _number(self) -> str:
        return amount(sum(count.documents for count in self.counts), "document")

    @property
    def _by(self) -> str:
        return ", ".join(
            f"{count.documents:,} by {count.stream + ': ' if count.stream else ''}{count.rule!r} ({count.set})"
            for count in self.counts
        )


@contextmanager
def previewing(works: Sequence[ShardToMix]) -> Iterator["Previewing"]:
    """Yield the previews of shards, with a folder for outcomes."""
    with scratch() as folder:
        yield Previewing(works, folder)


class Previewing:
    """The previews of shards, and their orphans."""

    def __init__(self, works: Sequence[ShardToMix], folder: str) -> None:
        self._works = works
        self._paths = [
            (os.path.join(folder, f"{i}.kept"), os.path.join(folder, f"{i}.copies")) for i in range(len(works))
        ]

    def tasks(self) -> list[Task["ShardToPreview"]]:
        """Return a task of `preview_with_fates` for each shard."""
        from toolkit.mix.rule_effects.preview import ShardToPreview  # which few mixes need

        return [
            Task(task.name, ShardToPreview(task.payload, *paths), task.size, key=task.key)
            for task, paths in zip(shard_tasks(list(self._works)), self._paths, strict=True)
        ]

    def orphans(self, results: Sequence[Result["Preview"]]) -> Orphans:
        """Return the orphans; documents of shards that have failed do not count as kept."""
        notes: list[orphans.ShardNotes | None] = []
        for paths, result in zip(self._paths, results, strict=True):
            if result.value and result.value.fates:  # of another machine
                for path, data in zip(paths, (result.value.fates.staying, result.value.fates.copies), strict=True):
                    write_file(path, data)
            exist = all(map(os.path.exists, paths))
            notes.append(orphans.ShardNotes(*paths, sum(map(os.path.getsize, paths))) if exist else None)
        return Orphans.of(self._works, orphans.judge(notes))


def _example(work: ShardToMix, orphan: orphans.Orphan) -> str:
    """Return the place of an orphan, and its original. The original is left out if it cannot be read."""
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
