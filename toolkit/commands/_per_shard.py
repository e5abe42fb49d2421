"""``toolkit run --per-shard``: each input goes from ingest to its part of the mix before the next one begins.

Documents and attributes are deleted once that part is safe, so that no more of them are on disk than are being worked
on. The output is the same as that of ``toolkit run``.
"""

import sys
from collections.abc import Callable
from functools import partial

from toolkit.commands import _mix_preparation as preparation
from toolkit.commands import _mix_publishing as publishing
from toolkit.commands import _one_pass as one_pass
from toolkit.commands import ingest
from toolkit.commands._mix_preparation import PreparedMix
from toolkit.commands.ingest import PlannedIngest
from toolkit.data import journals
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, DataError, NoDocuments, few
from toolkit.ingest import inputs as ingest_records
from toolkit.ingest import plan as ingest_plan
from toolkit.mix import join, publish, stage
from toolkit.mix.publish import is_unchanged, unchanged_manifest
from toolkit.mix.settings import MixSettings
from toolkit.one_pass import InputToPass, attributes_by_record
from toolkit.records import ingested
from toolkit.stages.context import Context
from toolkit.stages.outcome import Outcome, show_plan
from toolkit.storage.threads import for_each


def run(context: Context, options: ingest.Options, found: PlannedIngest) -> Outcome:
    """Ingest, tag and mix input by input; without ``--shard`` publish what they come to.

    Args:
        context: of the configuration.
        options: of the ingest.
        found: its inputs.
    """
    dataset, works = context.dataset, found.works
    ahead = one_pass.plan_per_shard(context, writes=not options.dry_run)
    assert ahead.mix
    settings, listed = ahead.mix.settings, [*map(ahead.of, works)]
    output = settings.output.path
    if context.share and not listed:
        return Outcome(text=context.share.nothing(), data={"output": output, "published": False})
    if gone := {} if options.limit is not None else ingest_records.inputs_gone(found.inputs, dataset):
        raise DataError(
            f"expected the inputs of earlier runs among these, got none of {few([*gone])}: the output would be without "
            f"their documents; restore them, or run `toolkit clean --forget {next(iter(gone.values()))}`"
        )
    if options.dry_run:
        shown = show_plan(context, {"ingest, tag, mix": ingest.shards_of(works)})
        return ingest.with_salvaged(shown, ingest.salvaged_before(context, works), "# ")
    if replaced := preparation.check_output(context, settings):
        print(replaced, file=sys.stderr)
    if options.shard is None:
        publishing.check_limit(context, output, len(listed), len(found.inputs))
        _check_no_others(found, dataset)
    context.sweep(*dict.fromkeys((dataset.documents, dataset.attributes, dataset.bookkeeping, output)))
    journals.of(dataset), stage.records_of(output, settings.stage_digest())  # merged when the command ends
    with ahead.claimed(context):
        if not found.former and (before := _already(context, listed)):
            return ingest.with_salvaged(before, ingest.salvaged_before(context, works))
    ingested = ingest.run(context, options, found, ahead)
    if ingested.failures:
        outcome = publishing.failed(output, ingested.failures)
    elif options.shard:
        outcome = Outcome(
            text=f"ready for {output}; when all shares are done, run the same command without --shard",
            data={"output": output, "published": False},
        )
    else:
        with context.claimed_output(output):
            publish.finish_interrupted(output)
            shards = _shards(listed, ingest_records.noted)
            if shards is None:
                raise DataError(
                    "expected the records of the inputs, which this run has just made, got one less; run again"
                )
            outcome = publishing.finish(context, _prepared(settings, shards, ahead.failed), ahead.failed, keeps=True)
    outcome.text = f"{ingested.text}\n\n{outcome.text}"
    return ingest.with_salvaged(outcome, ingested.data["salvaged"], told=True)


def _check_no_others(found: PlannedIngest, dataset: Dataset) -> None:
    """Raise ConfigError if there are documents that are not of these inputs: they would not be in the output."""
    try:
        there = dataset.shards()
    except NoDocuments:
        return
    keys = {*(work.key for work in found.inputs), *ingested.attempts(dataset)}
    known = ingested.shards_now(dataset, keys)  # looked up behind the files: these are noted before they appear
    known.update(shard for each in found.former for shard in each.shards)
    if others := [shard for shard in there if shard not in known]:
        raise ConfigError(
            f"{dataset.shard_path(others[0])}: with --per-shard, expected only documents of the inputs, got "
            f"{len(others)} other shards; `toolkit run` mixes them, too"
        )


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
