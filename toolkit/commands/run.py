"""Run every stage of the configuration."""

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, cast

import msgspec

from toolkit.command_options import CommandResult, Configured, Flag, StageOptions, find
from toolkit.commands import _mix_finish as publishing, _mix_preparation as preparation, ingest
from toolkit.commands._mix_finish import MixResult
from toolkit.commands._mix_preparation import PreparedMix
from toolkit.commands.ingest import IngestResult, PlannedIngest
from toolkit.config import settings
from toolkit.data import record_logs
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, DataError, NoDocuments, few
from toolkit.ingest import inputs as ingest_records, plan as ingest_plan
from toolkit.mix import bindings, intermediates, publication
from toolkit.mix.publication import is_unchanged, unchanged_manifest
from toolkit.one_pass import InputToPass, attributes_by_record
from toolkit.records import ingested
from toolkit.stages.context import Context, Outcome, show_plan
from toolkit.stages.declaration import Look, check, plan, to_do
from toolkit.storage.threads import for_each

if TYPE_CHECKING:
    from toolkit.commands.align import Alignment
    from toolkit.commands.annotate import AnnotatedSets
    from toolkit.commands.dedup import SetsOfWhole
    from toolkit.commands.make import MakeResult
    from toolkit.commands.tag import Tagging
    from toolkit.stages.cluster import Cluster


class Options(Configured, StageOptions, frozen=True, kw_only=True):
    """Options of ``toolkit run``.

    Attributes:
        per_shard: finish one input after another, and delete its documents and attributes when it is mixed
        nodes: show what each stage would do on N nodes, with --dry-run
        cores: number of cores of each node, with --nodes (as many as this run would use)
    """

    REMAKES: ClassVar = "all"

    per_shard: Annotated[bool, Flag()] = False
    nodes: Annotated[int | None, Flag(metavar="N")] = None
    cores: Annotated[int | None, Flag(metavar="N")] = None

    def __post_init__(self) -> None:
        """Check the options of a preview.

        Raises:
            ConfigError: if a run itself is to take place on nodes.
        """
        if (self.nodes or self.cores) and not (self.dry_run and self.nodes):
            raise ConfigError(
                "expected --nodes with --dry-run, and --cores with --nodes; a run itself takes --shard I/N"
            )


class RunResult(CommandResult, kw_only=True, omit_defaults=True):
    """The results of `run`, by stage; of a dry run, that of the first one, and what all stages have to do."""

    ingest: IngestResult | None = None
    align: "Alignment | None" = None
    tag: "Tagging | None" = None
    make: "MakeResult | None" = None
    dedup: "SetsOfWhole | None" = None
    sample: "SetsOfWhole | None" = None
    annotate: "AnnotatedSets | None" = None
    calibrate: "SetsOfWhole | None" = None
    mix: MixResult | None = None
    tokenize: MixResult | None = None
    plan: dict[str, Any] | None = None
    cluster: "Cluster | None" = None


class PerShardResult(MixResult, kw_only=True):
    """The result of `run` input by input: that of its mix."""

    def for_python(self) -> RunResult:
        result = RunResult(mix=self)
        result.shown_as(self.text)
        return result


def run(context: Context, options: Options) -> Outcome:
    """Ingest, align, tag, dedup, sample, annotate, calibrate, mix, tokenize: those that the configuration has.

    They are done in one pass over each input as far as they are per shard, signatures too. What is a duplicate, who is
    in a sample, and what the rank of a score is, depends on all shards: that comes behind the pass, and so does a mix
    that joins it.

    All are checked before the first begins. When inputs or shards fail, the others' per-shard work is finished all the
    same; no step over the whole dataset begins, and nothing is published.
    """
    present = [*context.stages]
    if not present:
        raise ConfigError(f"{options.config}: expected one of the sections {', '.join(settings.stages())}; got none")
    if "align" in present and options.limit is not None:
        raise context.section("align").error(
            (), "expected a run of all shards, because `align:` needs all ids, got a part of them; run `toolkit "
            "ingest`, `align` (of all), `tag` and `mix` one by one"
        )  # fmt: skip
    checked = check(context)
    plans = checked.plans
    inputs, ahead = plans.get("ingest"), None
    if options.per_shard:
        outcome = _run_per_shard(context, options.as_of(ingest.Options), inputs or ingest.plan(context))
        outcome.data = outcome.data if options.dry_run else PerShardResult(**msgspec.structs.asdict(outcome.data))
        return outcome
    if inputs and not options.dry_run:
        ahead = ingest.plan_pass(context, plans)
    arguments: dict[str, tuple[Any, ...]] = {"ingest": (inputs, ahead), "tag": (ahead.tagged if ahead else (),)}
    outcome, texts, left_out = Outcome(data=RunResult()), list[str](), list[str]()
    for name in present:
        if options.dry_run and name != present[0]:
            break
        context.stage = f"{present.index(name) + 1} of {len(present)}" if len(present) > 1 else ""
        waits = context.stages[name].kind == "per shard" and context.waiting & checked.reads[name]
        stage = None if waits else _stage(context, options, name, arguments.get(name, ()), outcome)
        if stage is None:
            context.waiting.update(getattr(context.config, name))
            left_out.append(name)
            continue
        texts.append(stage.text)
        setattr(outcome.data, name, stage.data)
        outcome.failures += [failure for failure in stage.failures if failure not in outcome.failures]
        outcome.exit_code = max(outcome.exit_code, stage.exit_code)
        later = present[present.index(name) + 1 :]
        only_salvaged = name == "ingest" and not stage.failures  # what was lost is told, and the rest can be used
        context.is_broken = context.is_broken or (stage.exit_code > 0 and not only_salvaged)
        if context.is_broken and later and stage.stops_run:
            left_out = later
            break
    if options.dry_run:
        texts[-1] += _notes_of_plan(context, present)
        if present[1:] or options.nodes:
            texts += _plan(context, options, outcome.data)
    if left_out:
        texts.append(f"not run: {', '.join(left_out)}")
    outcome.failures += [why.message for why in context.failures.values()]  # of stages that were not begun
    outcome.text = "\n\n".join(dict.fromkeys(texts))  # a share that has nothing says so once
    return outcome


def _stage(
    context: Context, options: Options, name: str, arguments: tuple[Any, ...], outcome: Outcome
) -> Outcome | None:
    """Return the outcome of a stage; None if it cannot run, because one before it has failed.

    Raises:
        ConfigError: if the configuration is not what it should be, and no stage has failed.
    """
    if context.is_broken and not context.stages[name].continues_after_failure:
        return None
    command = find(name)
    try:
        return cast("Outcome", command.run(context, options.as_of(command.Options), *arguments))
    except ConfigError as error:
        if not context.is_broken:
            raise
        outcome.failures.append(str(error))  # of a set that has not been made
        return None


def _plan(context: Context, options: Options, result: RunResult) -> list[str]:
    """Add the open work of each stage to a result; return it for people."""
    look = Look(context)
    with look.from_listings():
        works = [*to_do(look.progress(), options.limit)]
    planned = plan(works)
    result.plan = msgspec.to_builtins(planned)
    lines = settings.dump({name: str(item) for name, item in planned.items()})
    texts = [f"# all stages: what there is to do, of how many\n{lines.rstrip()}"]
    if options.nodes:
        from toolkit.stages.cluster import on_cluster

        result.cluster = on_cluster(context, works, options.nodes, options.cores or context.cores)
        texts.append(str(result.cluster))
    return texts


def _notes_of_plan(context: Context, present: list[str]) -> str:
    """Return notes on a later mix: its documents, and fields that it will not carry.

    Unless the first stage does so itself, this warns of ids that are not unique.
    """
    if not context.has("mix") or present[0] in ("ingest", "mix"):
        return ""
    if context.stages[present[0]].kind != "whole":
        context.shared_ids((context.dataset, shard) for shard in context.dataset.shards())
    from toolkit.commands import _mix_previews as previews

    return previews.planned(context)


# --- input by input ---------------------------------------------------------------------------------------------------


def _run_per_shard(context: Context, options: ingest.Options, planned: PlannedIngest) -> Outcome:
    """Ingest, tag and mix input by input; without ``--shard`` publish what they come to.

    Args:
        context: Context of the configuration.
        options: Options of the ingest.
        planned: Inputs to run.
    """
    dataset, works = context.dataset, planned.works
    ahead = ingest.plan_per_shard(context, writes=not options.dry_run)
    assert ahead.mix
    settings, listed = ahead.mix.settings, [*map(ahead.of, works)]
    output = settings.output.path
    if context.share and not listed:
        return Outcome(text=context.share.nothing(), data=MixResult(output=output, published=False))
    if missing := {} if options.limit is not None else ingest_records.inputs_gone(planned.inputs, dataset):
        raise DataError(
            f"expected the inputs of earlier runs among these, got none of {few([*missing])}: the output would be "
            f"without their documents; restore them, or run `toolkit clean --forget {next(iter(missing.values()))}`"
        )
    if options.dry_run:
        preview = show_plan(context, {"ingest, tag, mix": ingest.shards_of(works)})
        return ingest.with_salvaged(preview, ingest.salvaged_before(context, works), "# ")
    if replaced := preparation.check_output(context, settings):
        print(replaced, file=sys.stderr)
    if options.shard is None:
        publishing.check_limit(context, output, len(listed), len(planned.inputs))
        _check_no_others(planned, dataset)
    context.sweep(*dict.fromkeys((dataset.documents, dataset.attributes, dataset.bookkeeping, output)))
    record_logs.of(dataset), intermediates.records_of(output, settings.stage_digest())  # merged when the command ends
    with ahead.lease(context):
        if not planned.former and (before := _already(context, listed)):
            return ingest.with_salvaged(before, ingest.salvaged_before(context, works))
    ingested = ingest.run(context, options, planned, ahead)
    if ingested.failures:
        outcome = publishing.failed(output, ingested.failures)
    elif options.shard:
        outcome = Outcome(
            text=f"ready for {output}; when all shares are done, run the same command without --shard",
            data=MixResult(output=output, published=False),
        )
    else:
        with context.lease_output(output):
            publication.finish_interrupted(output)
            shards = _shards(listed, ingest_records.record_with_settings)
            if shards is None:
                raise DataError(
                    "expected the records of the inputs, which this run has just made, got one less; run again"
                )
            mixed = [work for work, _ in shards.values()]
            count = len(mixed) + len(ahead.failed)
            prepared = PreparedMix(settings, works=mixed, sets={settings.streams[0].name: ahead.mix.sets}, shards=count)
            outcome = publishing.finish(context, prepared, ahead.failed, keeps=True)
    outcome.text = f"{ingested.text}\n\n{outcome.text}"
    return ingest.with_salvaged(outcome, ingested.data.salvaged, is_in_text=True)


def _check_no_others(ingest: PlannedIngest, dataset: Dataset) -> None:
    """Raise ConfigError for documents of other inputs: they would not be in the output."""
    try:
        existing = dataset.shards()
    except NoDocuments:
        return
    keys = {*(work.key for work in ingest.inputs), *ingested.attempts(dataset)}
    expected = ingested.shards_now(dataset, keys)  # looked up behind the files: these are noted before they appear
    expected.update(shard for item in ingest.former for shard in item.shards)
    if extra := [shard for shard in existing if shard not in expected]:
        raise ConfigError(
            f"{dataset.shard_path(extra[0])}: with --per-shard, expected only documents of the inputs, got "
            f"{len(extra)} other shards; `toolkit run` mixes them, too"
        )


def _shards(
    listed: list[InputToPass], record_of: Callable[[ingest_plan.InputToIngest], ingested.InputRecord | None]
) -> dict[str, tuple[bindings.ShardToMix, str]] | None:
    """Return the mix of each shard, with its documents' digest, by key; None if one is not done."""
    results = {}
    for work, record in zip(listed, for_each(lambda work: record_of(work.input), listed), strict=True):
        if record is None:
            return None
        for shard, output in record.shards.items():
            mixed = work.mixed(shard)
            results[mixed.key] = (mixed, output.content)
    return {key: results[key] for key in sorted(results)}


def _already(context: Context, listed: list[InputToPass]) -> Outcome | None:
    """Return the outcome if exactly these inputs, or the share's, are published; else None."""
    if not listed:
        return None
    settings = listed[0].mixed("").settings
    output = settings.output.path
    manifest = publication.load_manifest(output)
    shards = _shards(listed, ingest_records.finished_record) if manifest else None
    if shards is None:
        return None
    by_record = partial(_by_record, {key: content for key, (_, content) in shards.items()})
    mixed = [work for work, _ in shards.values()]
    if context.options.shard is None:
        result = unchanged_manifest(mixed, by_record)
        return publishing.already(context, settings, result, settings.stage_digest()) if result else None
    if not is_unchanged(mixed, by_record):
        return None
    data = MixResult(output=output, published=True, already=True)
    return Outcome(text=f"published in {output} already", data=data)


def _by_record(documents: dict[str, str], work: bindings.ShardToMix) -> tuple[str, dict[str, str]] | None:
    attributes = attributes_by_record(work, documents[work.key])
    return None if attributes is None else (documents[work.key], attributes)
