"""Samples of a dataset: drawn and copied by `toolkit tag --sample`, and looked at by others instead of the dataset."""

from typing import TYPE_CHECKING

import msgspec

from toolkit.commands import _sections as sections
from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.data.row_index import ShardState
from toolkit.errors import ConfigError, DataError
from toolkit.execution.executors import Result, Task
from toolkit.execution.grouped import ShardDone, shard_tasks
from toolkit.ingest import ingest_config
from toolkit.records import sets as records
from toolkit.stages.context import Context, Outcome, failures, table
from toolkit.storage.threads import for_each
from toolkit.tag import run as tagging, sample, schema_check
from toolkit.tag.plan import build
from toolkit.tag.schema_check import check_section

if TYPE_CHECKING:
    from toolkit.mix.settings import MixSettings


def tag(context: Context, count: int, seed: int) -> Outcome:
    """Tag a sample of the documents; what an earlier run has made of one is replaced.

    Args:
        context: Context of the configuration.
        count: so many documents.
        seed: another one gives others.

    Raises:
        ConfigError: for options that do nothing together, and as `toolkit tag`.
    """
    options = context.options
    for value, name in ((options.shard, "shard"), (options.limit, "limit"), (options.dry_run, "dry-run")):
        if value:
            raise ConfigError(f"expected --sample without --{name}: the sample is drawn from all documents")
    dataset, plan = context.dataset, sections.tags(context)
    listed = context.shards(dataset, judges=True)[0]
    schema_check.set_schemas(plan, dataset)
    copied = _read(context, dataset)
    limit = context.config.max_document_bytes
    context.sweep(dataset.attributes, dataset.bookkeeping)
    with context.lease(sample.folder_of(dataset) + ".leases", f"the sample of {dataset.documents}", {"sample": ""}):
        sample.delete(dataset)
        indexed = context.run(
            "making row indexes",
            sample.index_shard,
            shard_tasks(
                [sample.ShardToIndex(dataset=dataset, shard=name, max_document_bytes=limit) for name in listed]
            ),
        )
        if broken := failures(indexed):
            return _failed(dataset, broken)
        states: dict[str, ShardState] = {
            n: result.value for n, result in zip(listed, indexed, strict=True) if result.value
        }
        total = sum(state.rows for state in states.values())
        drawn: dict[str, sample.Drawn] = {}
        for bound in (sample.limit_for(count, total), 2**64 - 1):
            result = context.run(
                "drawing the sample",
                sample.draw_shard,
                shard_tasks(
                    [sample.SampleDrawTask(dataset=dataset, shard=name, seed=seed, limit=bound) for name in listed]
                ),
            )
            if broken := failures(result):
                return _failed(dataset, broken)
            drawn = {name: result.value for name, result in zip(listed, result, strict=True) if result.value}
            if sum(len(drawn.rows) for drawn in drawn.values()) >= min(count, total):
                break
        results = _tag(context, sample.least(drawn, count), copied)
        if broken := failures(results):
            return _failed(dataset, broken)
        output = sample.SampleRecord(
            documents=sum(result.value.documents for result in results if result.value),
            of=total,
            seed=seed,
            input=sample.digest(states),
            sets=list(plan.sets),
        )
        sample.save(dataset, output)
    return _outcome(context, dataset, output, [result.value.shard for result in results if result.value])


def _read(context: Context, dataset: Dataset) -> list[str]:
    """Return the sets to copy: those read, but not made here."""
    read = {reference.set for step in build(sections.tags(context)) for reference in step.references}
    if context.has("mix"):
        read |= {
            attribute.set
            for stream in sections.mix(context).streams
            if stream.dataset == dataset
            for attribute in stream.attributes
        }
    names = set(dataset.sets())
    return sorted((read & names) - sections.tags(context).sets.keys())


def _tag(context: Context, picks: list[sample.Pick], copied: list[str]) -> list[Result[ShardDone]]:
    """Copy the drawn documents, and tag them."""
    dataset, plan, limit = context.dataset, sections.tags(context), context.config.max_document_bytes
    drawn = sample.dataset_of(dataset)
    for name in copied:
        if schema := records.load_schema(dataset, name):
            records.save_schema(drawn, name, msgspec.structs.replace(schema, reads={}))
    files = [
        sample.FileToCopy(dataset, f"sample-{i:05}.jsonl.gz", group, copied, limit)
        for i, group in enumerate(sample.files(picks))
    ]
    tasks = [Task(drawn.shard_path(file.name), file, len(file.picks), key=file.name) for file in files]
    written = context.run("copying the sample", sample.copy_file, tasks, "files")
    if any(result.failure for result in written):
        return [Result(result.name, failure=result.failure) for result in written if result.failure]
    settings = tagging.settings_of(schema_check.prepare(plan, drawn, overwrite=True))
    works = [
        tagging.ShardToTag(dataset=drawn, plan=plan, settings=settings, shard=file.name, max_document_bytes=limit)
        for file in files
    ]
    return context.run("tag", tagging.tag_shard, shard_tasks(works), spreads=True)


def _failed(dataset: Dataset, broken: list[str]) -> Outcome:
    sample.delete(dataset)
    text = f"no sample was made: {len(broken)} failed"
    return Outcome(text=text, data={"sample": None, "failed": broken}, failures=broken)


def _outcome(context: Context, dataset: Dataset, record: sample.SampleRecord, files: list[str]) -> Outcome:
    drawn, plan = sample.dataset_of(dataset), sections.tags(context)
    worked = tagging.work_done(plan, drawn, files, always=True)
    rows = [["set", "keys", "documents asked", "seconds"]]
    for name, item in worked.items():
        keys = ", ".join(entry.key for entry in plan.sets[name])
        rows.append([name, keys, f"{item.selected:,}", f"{item.seconds:,.1f}"])
    text = f"{record} -> {sample.folder_of(dataset)}\n{table(rows, right=[2, 3])}\n"
    text += (
        "`toolkit mix --dry-run --sample` looks at it; `toolkit tag` makes the sets, `toolkit clean` deletes the sample"
    )
    return Outcome(
        text=text,
        data={
            "sample": msgspec.to_builtins(record),
            "folder": sample.folder_of(dataset),
            "asked": {name: item.selected for name, item in worked.items()},
            "seconds": {name: item.seconds for name, item in worked.items()},
            "failed": [],
        },
    )


def in_mix(context: Context, settings: "MixSettings", *, requested: bool) -> tuple["MixSettings", str]:
    """Return the settings of a mix over the sample, and its name.

    The settings stay if no sample is meant.

    The sample is meant if it is asked for, or a set that is joined is there in the sample alone.

    Raises:
        ConfigError: if there is no sample of these documents, or it was made with other settings.
    """
    names = [attribute.set for attribute in settings.streams[0].attributes]
    is_own = context.has_dataset and [stream.dataset for stream in settings.streams] == [context.dataset]
    if not is_own:
        if requested:
            raise ConfigError(
                f"{settings.place}: with --sample, expected a mix of the dataset of this configuration "
                f"alone, got other datasets"
            )
        return settings, ""
    if not requested and not only_sampled(context.dataset, names):
        return settings, ""
    result = of(context, names)
    drawn, own = sample.dataset_of(context.dataset), context.own_types_known()
    stream = msgspec.structs.replace(settings.streams[0], dataset=drawn, own=own)
    return msgspec.structs.replace(settings, streams=[stream]), str(result)


def refuse(context: Context, settings: "MixSettings") -> None:
    """Raise ConfigError for a mix with a set of the sample alone.

    Raises:
        ConfigError: naming the first.
    """
    for stream in settings.streams if context.has_dataset else ():
        names = [attribute.set for attribute in stream.attributes] if stream.dataset == context.dataset else []
        if alone := only_sampled(context.dataset, names):
            raise ConfigError(
                f"{settings.place}: expected the set {alone[0]!r} of all documents, got a sample of it; run `toolkit "
                "tag`, or look at the sample: `toolkit mix --dry-run`"
            )


def only_sampled(dataset: Dataset, names: list[str]) -> list[str]:
    """Return the sets of the sample alone."""
    present = set(dataset.sets())
    missing = [name for name in names if name not in present]
    result = sample.load(dataset) if missing else None
    return [name for name in missing if result and name in result.sets]


def of(context: Context, names: list[str]) -> sample.SampleRecord:
    """Return the sample of the configuration's dataset, checked for some sets.

    Raises:
        ConfigError: if there is none, or it was made of other documents or with other settings.
    """
    dataset = context.dataset
    result = sample.load(dataset)
    if result is None:
        raise ConfigError(f"expected a sample of {dataset.documents}, got none; run `toolkit tag --sample N`")
    again = f"run `toolkit tag --sample {result.documents}` again"
    shards = dataset.shards()
    states = dict(zip(shards, for_each(lambda shard: row_index.current(dataset, shard), shards), strict=True))
    present = {name: state for name, state in states.items() if state}
    if len(present) < len(states) or sample.digest(present) != result.input:
        raise ConfigError(f"expected a sample of the present documents, got one of other documents; {again}")
    drawn = sample.dataset_of(dataset)
    for name in names:
        if records.load_schema(drawn, name) is None and name not in drawn.sets():
            raise ConfigError(f"expected the set {name!r} in the sample, got none; {again}")
    if context.has("tag"):
        try:
            planned = ingest_config.set_schemas(context.entries)
            elsewhere = sections.type_lookup(context, lambda: drawn, lambda: planned)
            check_section(context.section("tag"), drawn, names, planned, elsewhere, context.own_types_known)
        except (ConfigError, DataError) as error:
            raise ConfigError(f"{result}: {error}\nor {again}") from None
    return result
