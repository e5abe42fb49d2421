"""``toolkit run --per-shard``: each input goes from ingest to its part of the mix before the next one begins.

Documents and attributes are deleted once that part is safe, so that no more of them are on disk than are being worked
on. The output is the same as that of ``toolkit run``.
"""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import msgspec

from toolkit.commands import _mix_editions as editions
from toolkit.commands import _mix_preparation as preparation
from toolkit.commands import _mix_publishing as publishing
from toolkit.commands import _one_pass as one_pass
from toolkit.commands._mix_preparation import PreparedMix
from toolkit.commands.ingest import (
    Numbers,
    run_inputs,
    salvaged_before,
    shards_of,
    task_name,
    verdicts,
    with_salvaged,
)
from toolkit.data import journals
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, DataError, NoDocuments, few, quoted
from toolkit.ingest import attempts
from toolkit.ingest import inputs as ingest_records
from toolkit.ingest import plan as ingest_plan
from toolkit.ingest import run as ingesting
from toolkit.ingest import section as ingest_section
from toolkit.ingest.attempts import Superseded, find_superseded, forget_superseded
from toolkit.mix import join, publish, stage
from toolkit.mix.publish import is_unchanged, unchanged_manifest
from toolkit.mix.settings import MixSettings, work_folder
from toolkit.one_pass import InputMixed, InputToPass, attributes_by_record, pass_input
from toolkit.records import ingested
from toolkit.records.failures import FailureRecord, FailureRecords
from toolkit.runs.executors import Task
from toolkit.stages.context import Context
from toolkit.stages.outcome import Outcome, failures, show_plan, table
from toolkit.storage.threads import for_each
from toolkit.tag import declared
from toolkit.tag import plan as tag_plan
from toolkit.tag import run as tagging


def run(context: Context) -> Outcome:
    """Ingest, tag and mix input by input; without ``--shard`` publish what they come to."""
    options, dataset = context.options, context.dataset
    planned = plan(context, writes=not options.dry_run)
    settings, entries, tags, listed = planned.settings, planned.entries, planned.tags, planned.works
    output = settings.output.path
    if context.share and not listed:
        return Outcome(text=context.share.nothing(), data={"output": output, "published": False})
    if gone := {} if options.limit is not None else ingest_records.inputs_gone(planned.inputs, dataset):
        raise DataError(
            f"expected the inputs of earlier runs among these, got none of {few([*gone])}: the output would be without "
            f"their documents; restore them, or run `toolkit clean --forget {next(iter(gone.values()))}`"
        )
    if options.dry_run:
        shown = show_plan(context, {"ingest, tag, mix": shards_of(work.input for work in listed)})
        return with_salvaged(shown, salvaged_before(context, [work.input for work in listed]), "# ")
    if replaced := preparation.check_output(context, settings):
        print(replaced, file=sys.stderr)
    works = [work.input for work in listed]
    former = find_superseded(works, planned.inputs, dataset)
    ingest_records.check_settings(works, ((each.made, each.by) for each in former if each.made))
    if options.shard is None:
        publishing.check_limit(context, output, len(listed), len(planned.inputs))
        _check_no_others(planned.inputs, dataset, former)
        with context.claimed_output(output):
            publish.finish_interrupted(output)
    holds = ingest_section.holds(entries) | (tagging.holds(listed[0].tag.settings) if listed and listed[0].tag else {})
    with (
        context.claimed(dataset.bookkeeping, dataset.documents, holds),
        context.claimed_output(output, settings.stage_digest()),
    ):
        ingest_section.prepare(entries, dataset, overwrite=options.overwrite)
        context.own_types.store()
        if tags.sets:
            declared.prepare(tags, dataset, overwrite=options.overwrite)
        context.sweep(*dict.fromkeys((dataset.documents, dataset.attributes, dataset.bookkeeping, output)))
        journals.of(dataset), stage.records_of(output, settings.stage_digest())  # merged when the command ends
        if not former and (found := _already(context, listed)):
            return with_salvaged(found, salvaged_before(context, works))
        forget_superseded(former, dataset)
        done, broken, numbers = _do(context, planned)
    text = _report(numbers, done, dataset.documents)
    if broken:
        outcome = publishing.failed(output, broken)
    elif options.shard:
        outcome = Outcome(
            text=f"ready for {output}; when all shares are done, run the same command without --shard",
            data={"output": output, "published": False},
        )
    else:
        omitted = {key: why for each in done for key, why in each.failed.items()}
        with context.claimed_output(output):
            publish.finish_interrupted(output)
            shards = _shards(listed, ingest_records.noted)
            if shards is None:
                raise DataError(
                    "expected the records of the inputs, which this run has just made, got one less; run again"
                )
            outcome = publishing.finish(context, _prepared(settings, shards, omitted), omitted, keeps=True)
    outcome.text = text + outcome.text
    return with_salvaged(outcome, [note for input in done for note in input.salvaged])


@dataclass
class PlannedRun:
    """The plan of a run, input by input.

    Attributes:
        settings: of the mix.
        entries: of the ingest.
        tags: the plan of the taggers, maybe of none.
        works: the inputs of the run's share.
        inputs: all that there are.
    """

    settings: MixSettings
    entries: list[ingest_section.Entry]
    tags: tag_plan.Plan
    works: list[InputToPass]
    inputs: list[ingest_plan.InputToIngest]


def plan(context: Context, *, writes: bool) -> PlannedRun:
    """Read the configuration; nothing is written but, if it `writes`, what finds out whether it can.

    Raises:
        ConfigError: if it is not one that can be run input by input.
    """
    options, dataset = context.options, context.dataset
    settings = _settings(context, dataset, writes=writes)
    tags = context.tags if context.has("tag") else tag_plan.Plan(sets={})
    inputs, entries = context.inputs(), context.entries
    mine = context.typed((context.share.inputs if context.share else inputs)[: options.limit])
    carried = ingest_section.set_schemas(entries)
    tagged = one_pass.schemas(context, tags, carried)
    tag = one_pass.to_tag(context, tags, tagged) if tags.sets else None
    made = {**carried, **tagged}
    for given in settings.streams[0].attributes:
        if given.set not in made:  # it may have cost much, and would be deleted
            raise ConfigError(
                f"{settings.place}: expected only sets that this configuration makes, got "
                f"{given.set!r}: --per-shard deletes attributes, and could not make this set again; run "
                f"without --per-shard"
            )
    mix = preparation.to_be(context, settings, settings.streams[0], made)
    listed = [InputToPass(input=work, tag=tag, mix=mix) for work in mine]
    return PlannedRun(settings, entries, tags, listed, inputs)


def _settings(context: Context, dataset: Dataset, *, writes: bool) -> MixSettings:
    """Return the settings of the mix, which must be of this dataset alone."""
    context.section("ingest"), context.section("mix")
    if editions.of(context):
        raise context.section("mix").error(
            (editions.KEY,),
            "expected no editions with --per-shard, which deletes the documents after the mix; run without --per-shard",
        )
    if context.has("tokenize"):
        raise context.section("tokenize").error(
            (),
            "expected no section `tokenize:` with --per-shard, which deletes the documents after "
            "the mix; make tokens the output of the mix: `output: {format: tokens, …}`",
        )
    for name in (*(["align"] if context.has("align") else []), *context.in_order):
        raise context.section(name).error(
            (),
            f"expected no section `{name}:` with --per-shard: its sets need the documents of all "
            f"shards, which --per-shard deletes one after the other; run without --per-shard",
        )
    settings = preparation.settings_of(context, writes=writes)
    if [stream.dataset for stream in settings.streams] != [dataset]:
        raise ConfigError(
            f"{settings.place}: with --per-shard, expected a mix of the dataset of this "
            f"configuration alone, got other datasets; run without --per-shard"
        )
    if what := settings.needs_all_shards:
        raise ConfigError(
            f"{settings.place}: with --per-shard, expected a mix without {what}, which needs all "
            f"shards at once; run without --per-shard"
        )
    if dataset.include or dataset.exclude:
        raise ConfigError(
            f"{settings.place}: with --per-shard, expected a dataset without `include` and "
            f"`exclude`; run without --per-shard"
        )
    for rule in settings.streams[0].rules:
        if rule.foreign:
            raise ConfigError(
                f"{rule.place}: rule {quoted(rule.name)}: with --per-shard, expected an expression, got "
                f"{rule.foreign.syntax}, whose patterns must be checked against the attributes of all "
                f"shards; run without --per-shard"
            )
    return msgspec.structs.replace(settings, deletes=True)


def _check_no_others(inputs: list[ingest_plan.InputToIngest], dataset: Dataset, former: list[Superseded]) -> None:
    """Raise ConfigError if there are documents that are not of these inputs: they would not be in the output."""
    try:
        there = dataset.shards()
    except NoDocuments:
        return
    keys = {*(work.key for work in inputs), *ingested.attempts(dataset)}
    known = ingested.shards_now(dataset, keys)  # looked up behind the files: these are noted before they appear
    known.update(shard for each in former for shard in each.shards)
    if others := [shard for shard in there if shard not in known]:
        raise ConfigError(
            f"{dataset.shard_path(others[0])}: with --per-shard, expected only documents of the inputs, got "
            f"{len(others)} other shards; `toolkit run` mixes them, too"
        )


def _do(context: Context, planned: PlannedRun) -> tuple[list[InputMixed], list[str], Numbers]:
    dataset, listed, output = context.dataset, planned.works, planned.settings.output.path
    ingesting.sweep_downloads(planned.inputs, dataset)
    noted = FailureRecords(dataset, "ingest")
    tasks = [Task(task_name(work.input), work, key=work.key) for work in listed]
    results = run_inputs(context, "run", pass_input, tasks, [work.input for work in listed], noted, spreads=True)
    done = [result.value for result in results if result.value]
    mixed = FailureRecords(work_folder(output), "mix")
    for each in done:
        for shard in each.shards:
            if why := each.failed.get(shard):
                mixed.note(shard, FailureRecord(task=shard, message=why))
            else:
                mixed.forget(shard)
    if not context.in_part:
        noted.keep_only([work.key for work in listed])
        attempts.forget_attempts([work.input for work in listed], dataset)
    refused = verdicts(context, [work.input for work in listed], results)
    return done, [*failures(results), *map(str, refused)], Numbers.of([work.input for work in listed], results)


def _shards(
    listed: list[InputToPass], record_of: Callable[[ingest_plan.InputToIngest], ingested.InputRecord | None]
) -> dict[str, tuple[join.ShardToMix, str]] | None:
    """Return what is mixed of each shard, and the content digest of its documents, by key; None if one is not done."""
    found = {}
    for work, record in zip(listed, for_each(lambda work: record_of(work.input), listed), strict=True):
        if record is None:
            return None
        for shard, output in record.shards.items():
            mixed = work.mixed(shard)
            found[mixed.key] = (mixed, output.content)
    return {key: found[key] for key in sorted(found)}


def _already(context: Context, listed: list[InputToPass]) -> Outcome | None:
    """Return the outcome if just these inputs, or those of the share, are published; else None."""
    if not listed:
        return None
    settings = listed[0].mixed("").settings
    output = settings.output.path
    manifest = publish.load_manifest(output)
    shards = _shards(listed, ingest_records.recorded) if manifest else None
    if shards is None:
        return None
    by_record = partial(_by_record, {key: content for key, (_, content) in shards.items()})
    mixed = [work for work, _ in shards.values()]
    if context.options.shard is None:
        found = unchanged_manifest(mixed, by_record)
        return publishing.already(context, settings, found, settings.stage_digest()) if found else None
    if not is_unchanged(mixed, by_record):
        return None
    return Outcome(text=f"published in {output} already", data={"output": output, "published": True, "already": True})


def _by_record(documents: dict[str, str], work: join.ShardToMix) -> tuple[str, dict[str, str]] | None:
    attributes = attributes_by_record(work, documents[work.key])
    return None if attributes is None else (documents[work.key], attributes)


def _prepared(
    settings: MixSettings, shards: dict[str, tuple[join.ShardToMix, str]], omitted: dict[str, str]
) -> PreparedMix:
    listed = [work for work, _ in shards.values()]
    return PreparedMix(settings, works=listed, sets={"": listed[0].sets}, known=len(listed) + len(omitted))


def _report(numbers: Numbers, done: list[InputMixed], documents: str) -> str:
    counts: Counter[str] = Counter()
    for each in done:
        counts.update(each.counts)
    rows = [["ingest", ""], *([name, f"{count:,}"] for name, count in sorted(counts.items()))]
    return (
        f"{numbers}; the documents below {documents} of those that are done were deleted\n{table(rows, right=[1])}\n\n"
    )
