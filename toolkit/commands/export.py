"""Write attribute sets as Parquet, or indexes of raw files."""

import sys
from typing import Annotated, ClassVar

import msgspec

from toolkit.command_options import CommandResult, Configured, Flag, Limited, Shared
from toolkit.data.tables.from_arrow import check_installed
from toolkit.errors import ConfigError, amount, mismatch
from toolkit.execution.executors import Task
from toolkit.exporting import shard as exporting
from toolkit.exporting.shard import ShardToExport
from toolkit.learn.labelling import origins as raw_files
from toolkit.mix.settings import Stream
from toolkit.records import origins
from toolkit.records.failures import FailureRecords
from toolkit.stages.context import Context, Outcome, failures, show_plan, table
from toolkit.storage.paths import check_writable, size_of
from toolkit.storage.store import note_roots


class Export(CommandResult, kw_only=True):
    """The result of `export`: files that were written, by set, and files of shards that are gone, which are deleted."""

    folder: str
    shards: int
    written: dict[str, int]
    deleted: int
    failed: list[str]


class IndexExport(CommandResult, kw_only=True):
    """The result of `export --idx`: number of raw files, and of indexes that were written."""

    folder: str
    files: int
    written: int
    failed: list[str]


class Options(Configured, Shared, Limited, frozen=True, kw_only=True):
    """Options of ``toolkit export``.

    Attributes:
        parquet: write the sets as Parquet files into this folder, or place in a bucket
        idx: write the index of Modalities (.idx) of each raw file into this folder, which mirrors theirs
        sets: export this set (all); you can give several
        overwrite: replace the files of another dataset
        dry_run: write nothing; show the sets, their types, and the shards to do
    """

    WRITES: ClassVar = True
    EXAMPLES: ClassVar = (
        "toolkit export --parquet data/exported -c configs/quickstart.yaml",
        "toolkit export --parquet data/exported --set language-0 -c configs/quickstart.yaml",
        "toolkit export --idx indexes -c my.yaml",
    )

    parquet: Annotated[str | None, Flag(metavar="FOLDER")] = None
    idx: Annotated[str | None, Flag(metavar="FOLDER")] = None
    sets: Annotated[tuple[str, ...], Flag("--set", metavar="SET")] = ()
    overwrite: Annotated[bool, Flag()] = False
    dry_run: Annotated[bool, Flag()] = False

    def __post_init__(self) -> None:
        if (self.parquet is None) == (self.idx is None):
            raise ConfigError("expected --parquet FOLDER or --idx FOLDER, one of them")
        if self.idx is not None and (self.sets or self.overwrite):
            raise ConfigError("--idx: expected neither --set nor --overwrite: the indexes are those of raw files")


def run(context: Context, options: Options) -> Outcome:
    """Write missing files, and those with changed attributes."""
    if options.idx is not None:
        return _indexes(context, options, options.idx.rstrip("/") or options.idx)
    check_installed("Parquet files")
    path = str(options.parquet)
    folder = path.rstrip("/") or path
    note_roots([folder])
    dataset = context.dataset
    replaced = exporting.check_source(folder, dataset, overwrite=options.overwrite)
    if replaced:
        print(replaced, file=sys.stderr)
    shards, unfinished = context.shards(dataset, judges=True)
    names = _chosen(options.sets, dataset.sets(), dataset.attributes)
    stream = Stream.over(dataset, names, "export")
    resolved = context.source_of(dataset, shards).resolve(stream, check="strict").refuse_unreadable()
    result, works = resolved.sets, resolved.joined(context.config.max_document_bytes)
    listed: dict[str, list[ShardToExport]] = {}
    for joined in result:
        keys = [msgspec.structs.replace(key, name=key.key, hidden=False) for key in joined.keys]
        own = msgspec.structs.replace(joined, keys=keys)
        exporting.types_of(own)
        listed[joined.set] = [
            ShardToExport(work=msgspec.structs.replace(work, sets=[own]), folder=folder) for work in works
        ]
    with dataset.listing_cache(names):
        todo = {name: [shard for shard in of if not exporting.state_of(shard).is_done] for name, of in listed.items()}
    if options.dry_run:
        types = {joined.set: {key.key: str(key.declared) for key in joined.keys} for joined in result}
        plan = {name: {"values": types[name], "files to write": [e.path for e in of]} for name, of in todo.items()}
        return show_plan(context, {"export": plan})
    check_writable(folder, "--parquet")
    bookkeeping = exporting.bookkeeping(folder)
    context.sweep(folder)
    with context.lease(bookkeeping, folder, {f"the set {name}": dataset.attributes for name in names}):
        tasks = [
            Task(shard.path, shard, size_of(shard.work.attributes_of(shard.joined)), key=f"{name}/{shard.work.shard}")
            for name, of in todo.items()
            for shard in of
        ]
        origins.save(folder, {origins.OUTPUT: exporting.origin_of(dataset)})
        results = context.run(
            "export", exporting.export_shard, tasks, "files", failed=FailureRecords(bookkeeping, "export")
        )
        deleted = (
            0 if context.in_part else sum(exporting.forget_others(folder, name, of) for name, of in listed.items())
        )
    failed = failures(results)
    rows, written = [["set", "files written", "up to date"]], dict.fromkeys(listed, 0)
    for name, of in listed.items():
        mine = [result for task, result in zip(tasks, results, strict=True) if task.payload.joined.set == name]
        written[name] = sum(bool(result.value) for result in mine)
        failures_in_set = sum(result.failure is not None for result in mine)
        rows.append([name, str(written[name]), str(len(of) - written[name] - failures_in_set)])
    notice = f"\n{deleted} files of shards that are gone were deleted" if deleted else ""
    return Outcome(
        text=f"{amount(len(listed), 'set')}, {amount(len(shards), 'shard')}, {len(failed)} failed -> {folder}\n"
        + table(rows, right=(1, 2))
        + notice
        + unfinished,
        data=Export(folder=folder, shards=len(shards), written=written, deleted=deleted, failed=failed),
        failures=failed,
    )


def _indexes(context: Context, options: Options, folder: str) -> Outcome:
    """Write missing indexes of raw files, and those of changed files."""
    note_roots([folder])
    shards, unfinished = context.shards(context.dataset, judges=True)
    files = {file.path: file for origin in raw_files(context.dataset, shards) for file in origin.files}
    works = [
        exporting.RawFileToIndex(
            path=file.path, name=file.name, folder=folder, max_document_bytes=context.config.max_document_bytes
        )
        for file in files.values()
    ]
    todo = [work for work in works if not work.is_done()]
    if options.dry_run:
        return show_plan(context, {"export": {work.path: work.index for work in todo}})
    check_writable(folder, "--idx")
    context.sweep(folder)
    with context.lease(exporting.bookkeeping(folder), folder, {}):
        tasks = [Task(work.path, work, size_of(work.path)) for work in todo]
        results = context.run("making row indexes", exporting.index_file, tasks, "files")
    failed = failures(results)
    written = sum(bool(result.value) for result in results)
    text = f"{amount(len(works), 'raw file')}, {written:,} indexed now, {len(failed)} failed -> {folder}{unfinished}"
    data = IndexExport(folder=folder, files=len(works), written=written, failed=failed)
    return Outcome(text=text, data=data, failures=failed)


def _chosen(requested: tuple[str, ...], existing: list[str], attributes: str) -> list[str]:
    """Return the sets to export, each once.

    Raises:
        ConfigError: if one is not there, or there is none.
    """
    for name in requested:
        if name not in existing:
            raise ConfigError(f"--set: expected an attribute set in {attributes}, {mismatch(name, existing)}")
    if not existing:
        raise ConfigError(f"{attributes}: expected attribute sets to export, got no set; run `toolkit tag` first?")
    return list(dict.fromkeys(requested)) or existing
