"""Make documents from WET, WARC, OSCAR, Dolma, JSON Lines, Parquet and others."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
from msgspec.structs import replace

from toolkit import one_pass
from toolkit.command_options import CommandResult, Configured, StageOptions, absent
from toolkit.commands import _mix_preparation as preparation, _sections as sections
from toolkit.config.settings import stages
from toolkit.data.dataset import ConfiguredPath, Dataset, Inside, check_dataset, dataset_folders
from toolkit.errors import ConfigError, NothingThere, ToolkitError, Unreadable, amount, few, quoted
from toolkit.execution.executors import Task
from toolkit.execution.grouped import Finished, Work
from toolkit.ingest import (
    attempts,
    in_place,
    ingest_config,
    inputs as ingest_records,
    plan as ingest_plan,
    run as ingesting,
)
from toolkit.ingest.attempts import SupersededInput, find_superseded, forget_superseded, removed_inputs
from toolkit.ingest.inputs import finished_inputs
from toolkit.mix import bindings, publication
from toolkit.mix.rule_effects.counts import added
from toolkit.mix.settings import MixSettings
from toolkit.mix.writer import not_carried
from toolkit.one_pass import InputToPass
from toolkit.records import ingested, left_out
from toolkit.records.failures import FailureRecord, FailureRecords
from toolkit.records.left_out import Verdict
from toolkit.stages.context import Context, Outcome, failures, show_plan, table
from toolkit.stages.declaration import Checked, Declaration, Look, Progress
from toolkit.stages.disk_quota import DiskEstimate, DiskUse
from toolkit.stages.tasks import skip_finished
from toolkit.storage import store_of
from toolkit.storage.paths import work_folder
from toolkit.storage.threads import results_of
from toolkit.tag import run as tagging, schema_check

if TYPE_CHECKING:
    from toolkit.ingest.index.selecting import FetchEstimate, Part
    from toolkit.whole_corpus import corpus_config
    from toolkit.whole_corpus.sign import ShardToSign


# --- the one pass: what tag and mix do to a shard, done while its documents are made ----------------------------------


class Passing(msgspec.Struct):
    """The work on each input's documents while they are made.

    Attributes:
        tag: Work of tagging, if any, without shard.
        mix: Work of mixing, if any, without shard.
        sign: Work of signing, by section; its entries read only sets of the same pass.
        plans: Plans of the sections that it is of.
        deletes: True if documents and attributes are deleted when they are mixed.
        shards: Shards that the other stages of the run work on; None if that is not bounded.
        tagged: shards of which attributes were written, once they have been.
        failed: why shards could not be mixed, by key, where they are deleted.
    """

    tag: tagging.ShardToTag | None
    mix: bindings.ShardToMix | None
    sign: "dict[str, ShardToSign]" = {}
    plans: "list[corpus_config.Plan]" = []
    deletes: bool = False
    shards: set[str] | None = None
    tagged: set[str] = set()
    failed: dict[str, str] = {}

    def of(self, work: ingest_plan.InputToIngest) -> InputToPass:
        """Return the work on an input."""
        if self.shards is not None and work.shard_name() not in self.shards:
            return InputToPass(input=work, tag=None, mix=None)
        return InputToPass(input=work, tag=self.tag, mix=self.mix, sign=self.sign)

    @contextmanager
    def lease(self, context: Context) -> Iterator[None]:
        """Lease the outputs beside the documents, and declare the sets."""
        dataset = context.dataset
        with ExitStack() as stack:
            if self.tag:
                holds = tagging.holds(self.tag.settings)
                stack.enter_context(context.lease(dataset.bookkeeping, dataset.attributes, holds))
                schema_check.prepare(
                    self.tag.plan,
                    dataset,
                    {**ingest_config.set_schemas(context.entries), **sections.aligned(context)},
                    overwrite=context.options.overwrite,
                )
            for plan in self.plans:
                from toolkit.whole_corpus import corpus_config

                stack.enter_context(context.lease(dataset.bookkeeping, dataset.attributes, corpus_config.holds(plan)))
            if self.mix:
                output = self.mix.settings.output.path
                if context.share is None:
                    with context.lease_output(output):
                        publication.finish_interrupted(output)
                stack.enter_context(context.lease_output(output, self.mix.settings.stage_digest()))
            yield


def plan_pass(context: Context, plans: Mapping[str, Any]) -> Passing | None:
    """Return the work on documents during ingest; None if nothing can.

    All sections have been checked. With `--limit`, the first shards need not be those of the first inputs, and inputs
    that are cut become nobody knows how many.

    Args:
        context: Context of the configuration.
        plans: Plan of each section, by the name of its stage.
    """
    shards = None
    if context.options.limit is not None:
        works = plans["ingest"].works
        if any(work.is_cut for work in works):
            return None
        with suppress(NothingThere):
            shards = {*context.mine(context.dataset)}
        shards = {*context.limited(sorted({*(shards or ()), *(work.shard_name() for work in works)}))}
    tagged, wholes = plans.get("tag", {}), [plans[name] for name in stages("whole") if name in plans]
    result = {**ingest_config.set_schemas(context.entries), **tagged}
    tag = sections.to_tag(context, sections.tags(context), tagged) if tagged else None
    mix = None
    if context.has("mix"):
        settings = sections.mix(context)
        own = [stream for stream in settings.streams if stream.dataset == context.dataset]
        is_whole = not (context.dataset.include or context.dataset.exclude or settings.needs_all_shards)
        if len(own) == 1 and is_whole and all(attribute.set in result for attribute in own[0].attributes):
            mix = preparation.to_be(context, settings, own[0], result)
    if wholes:
        from toolkit.whole_corpus.sign import ShardToSign

    limit = context.config.max_document_bytes
    sign = {
        plan.section: ShardToSign(dataset=context.dataset, entries=entries, shard="", max_document_bytes=limit)
        for plan in wholes
        if (entries := [entry for entry in plan.entries if result.keys() >= {*entry.reads}])
    }
    return Passing(tag, mix, sign, wholes if sign else [], shards=shards) if tag or mix or sign else None


# --- documents that are deleted ---------------------------------------------------------------------------------------


def plan_per_shard(context: Context, *, writes: bool) -> Passing:
    """Return the work on documents before their deletion.

    Nothing is written but, if it `writes`, what finds out whether it can.

    Raises:
        ConfigError: if the configuration is not one that can be run input by input.
    """
    dataset = context.dataset
    settings = _settings(context, dataset, writes=writes)
    results, tag = ingest_config.set_schemas(context.entries), None
    if context.has("tag"):
        planned, overwrite = {**results, **sections.aligned(context)}, context.options.overwrite
        tagged = schema_check.prepare(sections.tags(context), dataset, planned, overwrite=overwrite, write=False)
        results, tag = {**results, **tagged}, sections.to_tag(context, sections.tags(context), tagged)
    for attribute in settings.streams[0].attributes:
        if attribute.set not in results:  # it may have cost much, and would be deleted
            raise ConfigError(
                f"{settings.place}: expected only sets that this configuration makes, got "
                f"{attribute.set!r}: --per-shard deletes attributes, and could not make this set again; run "
                f"without --per-shard"
            )
    return Passing(tag, preparation.to_be(context, settings, settings.streams[0], results), deletes=True)


def _settings(context: Context, dataset: Dataset, *, writes: bool) -> MixSettings:
    """Return the settings of a mix of this dataset alone."""
    context.section("ingest"), context.section("mix")
    if sections.editions(context):
        raise context.section("mix").error(
            (sections.EDITIONS,),
            "expected no editions with --per-shard, which deletes the documents after the mix; run without --per-shard",
        )
    if context.has("tokenize"):
        raise context.section("tokenize").error(
            (),
            "expected no section `tokenize:` with --per-shard, which deletes the documents after "
            "the mix; make tokens the output of the mix: `output: {format: tokens, …}`",
        )
    for name in (stage for stage in stages("sets", "whole") if stage != "tag" and context.has(stage)):
        raise context.section(name).error(
            (),
            f"expected no section `{name}:` with --per-shard: its sets need the documents of all "
            f"shards, which --per-shard deletes one after the other; run without --per-shard",
        )
    settings = preparation.settings_of(context, writes=writes)
    has_others, global_option = [stream.dataset for stream in settings.streams] != [dataset], settings.needs_all_shards
    refused = {
        "a mix of the dataset of this configuration alone, got other datasets": has_others,
        f"a mix without {global_option}, which needs all shards at once": global_option,
        "a dataset without `include` and `exclude`": dataset.include or dataset.exclude,
    }
    if expected := next((key for key, is_refused in refused.items() if is_refused), None):
        raise ConfigError(f"{settings.place}: with --per-shard, expected {expected}; run without --per-shard")
    for rule in settings.streams[0].rules:
        if rule.foreign:
            raise ConfigError(
                f"{rule.place}: rule {quoted(rule.name)}: with --per-shard, expected an expression, got "
                f"{rule.foreign.syntax}, whose patterns must be checked against the attributes of all "
                f"shards; run without --per-shard"
            )
    return msgspec.structs.replace(settings, deletes=True)


# --- the command ------------------------------------------------------------------------------------------------------


class Options(Configured, StageOptions, frozen=True, kw_only=True):
    """Options of ``toolkit ingest``."""

    REMAKES: ClassVar = "all"


class IngestResult(CommandResult, kw_only=True):
    """The result of `ingest`.

    Attributes:
        documents: Folder of the documents.
        inputs, packs: Number of inputs, and of packs of them.
        done, skipped: Number of inputs that are ingested, and of those among them that were before.
        failed: Messages of inputs that failed.
        gone: Inputs of earlier runs that are not among these; their documents stay.
        gone_names: Names of these that `clean --forget` takes, by path.
        lost: Inputs of packs, and packs of selected pages, that are not there any more; their documents have gone.
        rejected: Entries of which too much was rejected.
        counts: Number of documents, and of items that were left out, by reason.
        salvaged: Remarks on damaged inputs, of which a part was read.
    """

    documents: str
    inputs: int = 0
    packs: int = 0
    done: int = 0
    skipped: int = 0
    failed: list[str] = []
    gone: list[str] = []
    gone_names: dict[str, str] = {}
    lost: list[str] = []
    rejected: list[Verdict] = []
    counts: dict[str, int] = {}
    salvaged: list[str] = absent()


class PlannedIngest(msgspec.Struct, frozen=True):
    """The inputs of a section ``ingest:``, and those of a run.

    Attributes:
        entries: Entries of the section.
        inputs: all that there are.
        works: those of this run.
        former: Former packs of the inputs.
    """

    entries: list[ingest_config.Entry]
    inputs: Sequence[ingest_plan.InputToIngest]
    works: Sequence[ingest_plan.InputToIngest]
    former: list[SupersededInput]


def plan(context: Context) -> PlannedIngest:
    """Read the section and list the inputs; write nothing.

    Raises:
        ConfigError: for whatever is wrong with the section, its inputs, or what is there already.
    """
    dataset, options = context.dataset, context.options
    in_place.refuse_ingest(dataset, context.source)
    inputs, entries, share = context.inputs(), context.entries, context.share
    _check_places(context, inputs)
    context.disk.check(inputs[: options.limit])
    works = context.typed((share.inputs if share else inputs)[: options.limit])
    former = find_superseded(works, inputs, dataset)
    ingest_records.check_settings(works, dataset, ((item.record, item.by) for item in former if item.record))
    ingest_config.prepare(entries, dataset, overwrite=options.overwrite, write=False)
    return PlannedIngest(entries, inputs, works, former)


def _check_places(context: Context, works: Iterable[ingest_plan.InputToIngest]) -> None:
    """Check the inputs for places in our own folders: it would be read again and again.

    Raises:
        ConfigError: naming the input and the place.
    """
    dataset = context.dataset
    check_dataset(dataset, context.options.config or "")
    inside = Inside([*dataset_folders(dataset), *_of_mix(context.config.mix)])
    for where, file in ((work.entry.place, file) for work in works for file in work.files):
        if store_of(file.path).can_write and (place := inside.of(file.path)):
            raise ConfigError(
                f"{where}: expected inputs outside of {place.path} ({place.role}), which this configuration "
                f"writes, got {file.path}"
            )


def _of_mix(mix: dict[str, Any]) -> list[ConfiguredPath]:
    """Return the folders in a ``mix:`` section, without reading it."""
    output = mix.get("output")
    named = [
        (output.get("path") if isinstance(output, dict) else None, "the output"),
        (mix.get("rejected"), "rejected"),
    ]
    return [
        ConfiguredPath(path, name)
        for path, name in named
        if isinstance(path, str) and path.strip() and "\0" not in path
    ]


def run(
    context: Context, options: Options, planned: PlannedIngest | None = None, ahead: Passing | None = None
) -> Outcome:
    """Ingest all new and changed inputs.

    Args:
        context: Context of the configuration.
        options: Options of the command.
        planned: Result of `plan`, if there is one.
        ahead: Work on documents during ingest, if any.
    """
    dataset, ahead = context.dataset, ahead or Passing(None, None)
    result = planned or plan(context)
    entries, works = result.entries, result.works
    if context.share and not works:
        return Outcome(text=context.share.nothing(), data=IngestResult(documents=dataset.documents))
    if options.dry_run:
        return _dry_run(context, works)
    context.sweep(dataset.documents, dataset.attributes, dataset.bookkeeping)
    failed_tasks = FailureRecords(dataset, "ingest")
    with context.lease(dataset.bookkeeping, dataset.documents, ingest_config.holds(entries)):
        ingest_config.prepare(entries, dataset, overwrite=options.overwrite)
        context.own_types.store()
        ingesting.sweep_downloads(result.inputs, dataset)
        _sweep_selections(result, dataset)
        lost = removed_inputs(works, result.inputs, result.former)
        forget_superseded(result.former, dataset)
        summary = _ingest(context, works, failed_tasks, ahead)
    counts, failed, salvaged, refused = summary.counts, summary.failed, summary.salvaged, summary.verdicts(context)
    rows = [["ingest", ""], *([name, f"{count:,}"] for name, count in sorted(counts.items()))]
    where = f" -> {dataset.documents}"
    if ahead.deletes:
        where = f"; the documents below {dataset.documents} of those that are done were deleted"
    if not context.in_part:
        context.merge_inputs()
        attempts.forget_attempts(works, dataset)
        failed_tasks.keep_only(work.key for work in works)
    former = {} if context.in_part else ingest_records.inputs_gone(works, dataset)
    missing, files = sorted(former), [len(work.files) for work in works]
    data = IngestResult(
        documents=dataset.documents,
        inputs=sum(files),
        packs=sum(number > 1 for number in files),
        done=summary.done,
        skipped=summary.skipped,
        failed=failed,
        gone=missing,
        gone_names={path: former[path] for path in missing},
        lost=lost,
        rejected=refused,
        counts=dict(sorted(counts.items())),
    )
    packs = f" ({amount(data.packs, 'pack')})" if data.packs else ""
    text = f"{amount(data.inputs, 'input')}{packs}: {data.done} done ({data.skipped} before), "
    text += f"{data.inputs - data.done} failed{where}\n"
    if options.overwrite and not failed and data.done == data.skipped:
        text += "--overwrite has replaced nothing: all was made with these settings\n"
    if missing:
        text += f"inputs of earlier runs that are not among these: {few(missing)}; their documents stay, "
        text += f"`toolkit clean --forget {former[missing[0]]}` deletes those of {missing[0]}\n"
    if lost:
        text += f"packs, or inputs of packs, that are not there any more: {few(lost)}; their documents have gone\n"
    outcome = Outcome(
        text=text + (table(rows, right=[1]) if counts else ""),
        data=data,
        failures=[*failed, *map(str, refused)],
        stops_run=bool(refused) or not data.done or context.has("align"),  # whose sets are made of all shards
    )
    return with_salvaged(outcome, salvaged)


def _sweep_selections(planned: PlannedIngest, dataset: Dataset) -> None:
    """Delete the selections of former entries, if there may be some."""
    inputs = {work.key for work in planned.inputs}
    if any(entry.settings().selects for entry in planned.entries) or not inputs.issuperset(ingested.keys(dataset)):
        from toolkit.ingest.index.selecting import sweep

        sweep(planned.entries, inputs, dataset)


def salvaged_before(context: Context, works: Iterable[ingest_plan.InputToIngest]) -> list[str]:
    """Return the remarks of earlier runs on damaged inputs."""
    records = (ingested.load(context.dataset, work.key) for work in works)
    return [note for record in records if record for note in record.salvaged]


def with_salvaged(outcome: Outcome, notes: Sequence[str], comment: str = "", *, is_in_text: bool = False) -> Outcome:
    """Return an outcome with remarks on damaged inputs, and exit code 1.

    Args:
        outcome: Outcome of a command.
        notes: on the inputs.
        comment: Beginning of each line.
        is_in_text: True if the text names them already.
    """
    text = "".join(f"{comment}salvaged: {note}\n" for note in (() if is_in_text else notes))
    code = max(outcome.exit_code, int(bool(notes)))
    outcome.data.salvaged = [*notes]
    return replace(outcome, text=text + outcome.text, exit_code=code)


SHOWN = 3
"""Documents of each entry that a dry run shows."""


def _dry_run(context: Context, works: Sequence[ingest_plan.InputToIngest]) -> Outcome:
    """Return the plan, and the first documents of each entry; the web is not read."""
    from toolkit.commands._mix_tables import not_carried as lost_fields
    from toolkit.commands._tracing import first_documents, show_preview
    from toolkit.ingest.index.selecting import estimates

    plan = show_plan(context, {"ingest": shards_of(works)})
    previews, failed = first_documents(works, SHOWN)
    selected = estimates(context.entries, context.dataset)
    lines = [line for name, estimate in selected.items() for line in ("", *show_estimate(name, estimate))]
    lines += [line for preview in previews for line in ("", *show_preview(preview).split("\n"))]
    lost = (
        added(not_carried(sections.mix(context).writer(), preview.paths) for preview in previews)
        if context.has("mix")
        else {}
    )
    lines += lost_fields(lost, sum(preview.looked_at for preview in previews)).split("\n")[1:]
    plan.data.first, plan.data.not_carried = previews, lost
    if selected:
        plan.data.selected = selected
    text = "\n".join([plan.text, *(f"# {line}".rstrip() for line in lines)])
    outcome = replace(plan, text=text, failures=failed)
    return with_salvaged(outcome, salvaged_before(context, works), "# ")


def show_estimate(name: str, estimate: "FetchEstimate") -> list[str]:
    """Return the estimate of a fetch, for people."""

    def cells(part: "Part", name: str) -> list[str]:
        return [name, f"{part.pages:,}", f"{part.bytes:,}", f"{part.requests:,}", f"{part.cost:.2f}"]

    head = ["pages", "bytes", "requests", "US$"]
    by_language = [cells(part, part.name or "(unknown)") for part in estimate.by_language]
    by_host = [cells(part, part.name or "(unknown)") for part in estimate.by_host]
    more = [[f"… {estimate.hosts - len(by_host):,} more", "", "", "", ""]] if estimate.hosts > len(by_host) else []
    right = [1, 2, 3, 4]
    equal = f", without {estimate.equal:,} equal ones" if estimate.equal else ""
    return [
        f"{name}: {amount(estimate.all.pages, 'page')}{equal}, by {amount(estimate.index_files, 'file')} of the index",
        "",
        *table([["language", *head], *by_language, cells(estimate.all, "all")], right=right).split("\n"),
        *table([["host", *head], *by_host, *more], right=right).split("\n"),
    ]


class _Summary(msgspec.Struct):
    """The outcomes of inputs, added up.

    Attributes:
        counts: Number of documents, and of omitted items, by reason.
        failed: Messages of failures.
        done, skipped: Number of finished inputs, and of inputs that were finished before.
        items: Items by the name of the entry.
    """

    counts: Counter[str] = msgspec.field(default_factory=Counter)
    failed: list[str] = []
    done: int = 0
    skipped: int = 0
    items: left_out.Items = msgspec.field(default_factory=left_out.Items)
    _limits: dict[int, tuple[str, float]] = {}
    _salvaged: dict[str, list[str]] = {}

    @property
    def salvaged(self) -> list[str]:
        """Return the remarks on damaged inputs, in the order of their shards: of those done before, too."""
        return [note for _, notes in sorted(self._salvaged.items()) for note in notes]

    def add(self, work: ingest_plan.InputToIngest, outcome: ingesting.IngestedInput) -> None:
        """Add the outcome of an input, in any order."""
        for name, count in outcome.counts.items():
            self.counts[name] += count
        if outcome.salvaged:
            self._salvaged[work.shard] = outcome.salvaged
        self.done += len(work.files)
        self.skipped += len(work.files) if outcome.skipped else 0
        if id(work.entry) not in self._limits:
            self._limits[id(work.entry)] = work.entry.name, work.entry.settings().max_rejected
        name, limit = self._limits[id(work.entry)]
        self.items.add(left_out.Tally(counts=outcome.counts, entry=name, max_rejected=limit, rejects=outcome.rejects))

    def verdicts(self, context: Context) -> list[Verdict]:
        """Return a verdict for each entry with too many bad items; of a part of the inputs it is only told."""
        refused = self.items.too_many(context.dataset.bookkeeping)
        if not context.in_part:
            return refused
        context.warn(f"of the inputs so far: {item}" for item in refused)
        return []


def _ingest(
    context: Context, works: Sequence[ingest_plan.InputToIngest], failed_tasks: FailureRecords, ahead: Passing
) -> _Summary:
    """Ingest, with the further work on documents during ingest.

    The web is not asked for sizes, nor is a bucket for those of a crawl's thousands of files; they are read after what
    is near, only so many at a time.
    """
    step, function = "ingest", Work(one_pass.ingest, one_pass.ingest_together)
    if ahead.deletes:
        step, function = "run", Work(one_pass.pass_input)
    summary, todo, finished = _Summary(), works, Finished()
    with ahead.lease(context):
        if not ahead.deletes:
            with context.dataset.listing_cache(ingest_config.set_schemas(context.entries)):
                quick = partial(ingesting.finished_outcome, finished=finished_inputs(context.dataset))
                todo, finished = skip_finished(
                    works, ingesting.cached_outcome, failed_tasks, attrgetter("size"), summary.add, quick
                )
        tasks = [Task(task_name(work), ahead.of(work), key=work.key) for work in todo]
        is_near = [store_of(work.path).can_list for work in todo]
        near = [replace(task, size=task.payload.input.size) for task in compress(tasks, is_near)]
        far = [task for task, can_list in zip(tasks, is_near, strict=True) if not can_list]
        unit = "packs" if any(work.is_pack for work in works) else "inputs"

        def needs(task: Task[InputToPass]) -> DiskEstimate | None:
            return context.disk.of_input(task.payload.input)

        run = partial(context.run, step, unit=unit, failed=failed_tasks, needs=needs)
        spreads = bool(ahead.tag or ahead.mix or ahead.sign)
        results = run(function, near, spreads=spreads, finished=finished) if near or not far else []
        if far:
            connections = min(task.payload.input.entry.settings().connections for task in far)
            results += run(replace(function, at_once=connections), far)
    summary.failed = failures(results)
    outcomes = {result.name: result.value for result in results if result.value}
    for task in tasks:
        if outcome := outcomes.get(task.name):
            summary.add(task.payload.input, outcome)
    ahead.tagged.update(shard for item in outcomes.values() for shard in item.tagged)
    ahead.failed.update(item for outcome in outcomes.values() for item in outcome.omitted.items())
    if ahead.deletes and ahead.mix:
        mixed = FailureRecords(work_folder(ahead.mix.settings.output.path), "mix")
        mixed.forget(
            *{ahead.mix.key + shard for item in outcomes.values() for shard in item.shards} - ahead.failed.keys()
        )
        for shard, why in ahead.failed.items():
            mixed.note(shard, FailureRecord(task=shard, message=why))
    else:
        context.failures.update(item for outcome in outcomes.values() for item in outcome.failures.items())
    return summary


def shards_of(works: Iterable[ingest_plan.InputToIngest]) -> dict[str, str]:
    """Return the shard of each input, for a dry run."""
    return {file.path: work.shard for work in works for file in work.files}


def task_name(work: ingest_plan.InputToIngest) -> str:
    """Return the name of an input's task."""
    return f"{work.name} -> {work.shard}"


# --- as a stage -------------------------------------------------------------------------------------------------------


def _progress(look: Look) -> Iterator[Progress]:
    """Yield how far the inputs are; a dataset has those of its share."""
    context = look.context
    works = context.share.inputs if context.share else context.inputs()
    begun, finished = ingested.attempts(context.dataset), finished_inputs(context.dataset)

    def cause(work: ingest_plan.InputToIngest) -> str:
        try:
            return ingest_records.why_not_done(work, begun)
        except Unreadable as error:
            return str(error)

    causes, shards = dict[str, str](), dict[str, str]()
    for work, why in results_of(cause, works, lambda work: "" if finished(work) else None):
        causes[work.key] = why
        if why:
            shards[work.key] = work.shard
    if shards and (left := [work for work in works[: context.options.limit] if causes[work.key]]):
        try:
            ahead = plan_per_shard(context, writes=False)
            passes = [ahead.of(work) for work in context.typed(left)]
        except Unreadable:
            raise
        except ToolkitError:  # it cannot be run so
            passes = []
        for item in passes:
            try:
                causes |= {item.input.key: ""} if _is_mixed(look, item) else {}
            except Unreadable as error:
                causes[item.input.key] = str(error)
    inputs = ingested.undamaged_summary(context.dataset)
    refused, notes = inputs.items.too_many(context.dataset.bookkeeping), inputs.salvaged
    yield Progress(
        "ingest",
        "ingest",
        causes,
        failed={item.entry: str(item) for item in refused},
        shards=shards,
        notes=[f"salvaged: {note}" for note in notes],
        data={"salvaged": notes} if notes else {},
    )


def _is_mixed(look: Look, work: one_pass.InputToPass) -> bool:
    """Return True if an input with deleted documents is in the mix."""
    record = ingest_records.finished_record(work.input)
    result = one_pass.in_mix(work, record, look.published.get("mix")) if record and record.deleted else None
    look.deleted.update(result or {})
    return result is not None


def _look(look: Look) -> str:
    look.context.inputs()
    return look.context.dataset.bookkeeping


def _check(context: Context, checked: Checked) -> PlannedIngest:
    ingest = plan(context)
    checked.sets |= ingest_config.set_schemas(ingest.entries)
    checked.holds |= ingest_config.holds(ingest.entries)
    checked.roots.append(context.dataset.documents)
    return ingest


STAGE = Declaration(
    "per shard",
    _progress,
    _check,
    _look,
    disk_use=lambda context: DiskUse(folders=[context.dataset.documents] if context.has_dataset else []),
)
