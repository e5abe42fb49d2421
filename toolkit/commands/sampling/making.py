"""Draws a sample of a dataset, and tags it."""

from typing import TypeVar

import msgspec

from toolkit.commands.steps import shards as sharing
from toolkit.commands.steps.context import Context
from toolkit.commands.steps.outcome import Outcome, failures, table
from toolkit.data.dataset import Dataset
from toolkit.data.row_index import ShardState
from toolkit.errors import ConfigError
from toolkit.records import sets as records
from toolkit.runs.executors import Result, Task
from toolkit.storage.paths import size_of
from toolkit.storage.threads import for_each
from toolkit.tag import declared, sample, values
from toolkit.tag import run as tagging
from toolkit.tag.plan import build

P = TypeVar("P", sample.ShardToIndex, sample.ShardToDraw)


def tag(context: Context, count: int, seed: int) -> Outcome:
    """Tag a sample of the documents; what an earlier run has made of one is replaced.

    Args:
        context: of the configuration.
        count: so many documents.
        seed: another one gives others.

    Raises:
        ConfigError: for options that do nothing together, and as `toolkit tag`.
    """
    options = context.options
    for given, name in ((options.shard, "shard"), (options.limit, "limit"), (options.dry_run, "dry-run")):
        if given:
            raise ConfigError(f"expected --sample without --{name}: the sample is drawn from all documents")
    dataset, plan = context.dataset, context.tags
    listed = sharing.shards(context, dataset, judges=True)[0]
    declared.set_schemas(plan, dataset)
    copied = _read(context, dataset)
    limit = context.config.max_document_bytes
    context.sweep(dataset.attributes, dataset.bookkeeping)
    with context.claimed(sample.folder_of(dataset) + ".claims", f"the sample of {dataset.documents}", {"sample": ""}):
        sample.delete(dataset)
        indexed = context.run(
            "index", sample.index_shard, _tasks(dataset, [sample.ShardToIndex(dataset, name, limit) for name in listed])
        )
        if broken := failures(indexed):
            return _failed(dataset, broken)
        states: dict[str, ShardState] = {n: each.value for n, each in zip(listed, indexed, strict=True) if each.value}
        total = sum(each.rows for each in states.values())
        drawn: dict[str, sample.Drawn] = {}
        for bound in (sample.limit_for(count, total), 2**64 - 1):
            found = context.run(
                "draw",
                sample.draw_shard,
                _tasks(dataset, [sample.ShardToDraw(dataset, name, seed, bound) for name in listed]),
            )
            if broken := failures(found):
                return _failed(dataset, broken)
            drawn = {name: each.value for name, each in zip(listed, found, strict=True) if each.value}
            if sum(len(each.rows) for each in drawn.values()) >= min(count, total):
                break
        results = _tag(context, sample.least(drawn, count), copied)
        if broken := failures(results):
            return _failed(dataset, broken)
        made = sample.Sample(
            documents=sum(each.value.documents for each in results if each.value),
            of=total,
            seed=seed,
            input=sample.digest(states),
            sets=list(plan.sets),
        )
        sample.save(dataset, made)
    return _outcome(context, dataset, made, [each.value.shard for each in results if each.value])


def _read(context: Context, dataset: Dataset) -> list[str]:
    """Return the sets that are read of the dataset's own: by taggers and by the mix, and not made by the section."""
    read = {reference.set for step in build(context.tags) for reference in step.references}
    if context.has("mix"):
        read |= {each.set for stream in context.mix.streams if stream.dataset == dataset for each in stream.attributes}
    there = set(dataset.sets())
    return sorted((read & there) - context.tags.sets.keys())


def _tasks(dataset: Dataset, works: list[P]) -> list[Task[P]]:
    paths = [dataset.shard_path(work.shard) for work in works]
    return [
        Task(path, work, size, key=work.shard)
        for path, work, size in zip(paths, works, for_each(size_of, paths), strict=True)
    ]


def _tag(context: Context, picks: list[sample.Pick], copied: list[str]) -> list[Result[tagging.TaggedShard]]:
    """Copy the documents that were drawn, and tag them."""
    dataset, plan, limit = context.dataset, context.tags, context.config.max_document_bytes
    drawn = sample.dataset_of(dataset)
    for name in copied:
        if schema := records.load_schema(dataset, name):
            records.save_schema(drawn, name, msgspec.structs.replace(schema, reads={}))
    files = [
        sample.FileToCopy(dataset, f"sample-{i:05}.jsonl.gz", group, copied, limit)
        for i, group in enumerate(sample.files(picks))
    ]
    tasks = [Task(drawn.shard_path(each.name), each, len(each.picks), key=each.name) for each in files]
    written = context.run("copy", sample.copy_file, tasks, "files")
    if any(each.failure for each in written):
        return [Result(each.name, failure=each.failure) for each in written if each.failure]
    settings = tagging.settings_of(declared.prepare(plan, drawn, overwrite=True))
    works = [
        tagging.ShardToTag(dataset=drawn, plan=plan, settings=settings, shard=each.name, max_document_bytes=limit)
        for each in files
    ]
    paths = [drawn.shard_path(each.name) for each in files]
    sizes = for_each(size_of, paths)
    listed = [Task(path, work, size, key=work.shard) for path, work, size in zip(paths, works, sizes, strict=True)]
    return context.run("tag", tagging.tag_shard, listed, spreads=True)


def _failed(dataset: Dataset, broken: list[str]) -> Outcome:
    sample.delete(dataset)
    text = f"no sample was made: {len(broken)} failed"
    return Outcome(text=text, data={"sample": None, "failed": broken}, failures=broken, exit_code=1)


def _outcome(context: Context, dataset: Dataset, made: sample.Sample, files: list[str]) -> Outcome:
    drawn, plan = sample.dataset_of(dataset), context.tags
    worked = values.worked(plan, drawn, files, always=True)
    rows = [["set", "keys", "documents asked", "seconds"]]
    for name, each in worked.items():
        keys = ", ".join(entry.key for entry in plan.sets[name])
        rows.append([name, keys, f"{each.asked:,}", f"{each.seconds:,.1f}"])
    text = f"{made} -> {sample.folder_of(dataset)}\n{table(rows, right=[2, 3])}\n"
    text += (
        "`toolkit mix --dry-run --sample` looks at it; `toolkit tag` makes the sets, `toolkit clean` deletes the sample"
    )
    return Outcome(
        text=text,
        data={
            "sample": msgspec.to_builtins(made),
            "folder": sample.folder_of(dataset),
            "asked": {name: each.asked for name, each in worked.items()},
            "seconds": {name: each.seconds for name, each in worked.items()},
            "failed": [],
        },
    )
