"""Find the documents that lists name, and their copies; clear them from the dataset, which keeps the lists."""

import base64
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, ClassVar

import msgspec

from toolkit.command_line import Flag, Words
from toolkit.command_line import Options as CommonOptions
from toolkit.commands import _mix_editions as editions
from toolkit.commands import _sections as sections
from toolkit.data import record_logs
from toolkit.data.alignment import MAX_ROW
from toolkit.data.dataset import Dataset
from toolkit.errors import ConfigError, amount, short
from toolkit.execution.executors import Report, Task
from toolkit.ingest import section as ingest_section
from toolkit.mix import publish
from toolkit.records import ingested, sets, takedown
from toolkit.records.takedown import ClearedShard, Copy, Found, ListedDocument, Lists, ShardToClear
from toolkit.result import CommandResult
from toolkit.stages.context import Context
from toolkit.stages.outcome import Outcome, failures
from toolkit.storage.artifact import stored_sha256
from toolkit.storage.outputs import RowOutput, write_file
from toolkit.storage.paths import expand, is_folder, join, list_files, remove_tree, work_folder
from toolkit.storage.reading import Lines, open_stored
from toolkit.tag import sample
from toolkit.whole import records as whole

CACHES = ("stats", "columns", "report", "downloads", "tasks", sample.FOLDER)
"""Folders of records, of datasets and outputs, that have excerpts or counts of texts and are made again."""

SHOWN = 20
"""Documents, copies and files that are printed."""


class ChangedFile(msgspec.Struct, frozen=True):
    """A file of the dataset in which rows were cleared, with the xxh3-128 of all its rows before and after."""

    path: str
    old: str
    new: str


class TakenDown(CommandResult, kw_only=True):
    """The result of `takedown`.

    Attributes:
        applied: True if the documents are cleared now.
        lists: sha256 of each list that the dataset has now.
        documents: Documents that the lists name, those that were cleared before among them.
        copies: Other documents with the same text, or nearly so; they stay.
        files: Files of the dataset that were changed.
        unmatched: Entries that name no document, or only documents that were cleared before.
        again: What must be made again, and has the texts until then.
        external: External files, which stay as they are.
        unreachable: What else may have the texts.
        failed: Messages of shards that failed.
    """

    applied: bool
    lists: list[str]
    documents: list[ListedDocument]
    copies: list[Copy]
    files: list[ChangedFile]
    unmatched: list[str]
    again: list[str]
    external: list[str]
    unreachable: list[str]
    failed: list[str] = []


class Options(CommonOptions, frozen=True, kw_only=True):
    """Options of ``toolkit takedown``."""

    WRITES: ClassVar = True
    SETTINGS: ClassVar = False
    EXAMPLES: ClassVar = (
        "toolkit takedown -c my.yaml takedown.txt",
        "toolkit takedown -c my.yaml takedown.txt --apply",
    )

    config: Annotated[str, Flag("the configuration (YAML)", "-c", "--config", metavar="FILE")]
    targets: Annotated[
        tuple[str, ...], Words("lists of ids, hosts and URLs, one a line; settings that override the file's")
    ] = ()
    apply: Annotated[bool, Flag("clear the documents, and keep the lists in the dataset")] = False

    def __post_init__(self) -> None:
        if not self.targets:
            raise ConfigError("expected a list of documents, got none")

    @property
    def only_shows(self) -> bool:
        return not self.apply


def run(context: Context, options: Options) -> Outcome:
    """Find what the lists name; with `apply`, clear it. Killed, the same command does the rest."""
    dataset = context.dataset
    files = [path for pattern in options.targets for path, _ in expand(pattern)]
    works = _works(context, files)
    if not options.apply:
        return _outcome(context, works, _found(context, works), files, Lists(), [])
    names = {f"the set {name}": "" for name in dataset.sets()}
    context.sweep(*dataset.written, dataset.attributes, dataset.bookkeeping)
    lease = dict.fromkeys(ingest_section.holds(context.entries), "") | names | {"the takedown": ""}
    with context.lease(dataset.bookkeeping, dataset.documents, lease):
        lists = _keep_lists(dataset, files)
        found = _found(context, works)
        results = context.run("clear", _clear, _tasks(works))
        context.session.begin()  # what the processes have recorded
        _update_inputs(dataset)
        _clear_aside(context, files)
    return _outcome(context, works, found, files, lists, failures(results))


def _works(context: Context, files: list[str]) -> list[ShardToClear]:
    """Return the work on each shard; a set is cleared row by row unless a command decides all of it again."""
    dataset = context.dataset
    shards, _ = context.shards(dataset)
    ours = {shard: record.types for record in ingested.load_undamaged(dataset) for shard in record.shards}
    schemas = {name: schema for name in dataset.sets() if (schema := sets.load_schema(dataset, name))}
    copies = {name: key for name, schema in schemas.items() for key in [_key_of_copies(schema)] if key}
    return [
        ShardToClear(
            dataset=dataset,
            shard=shard,
            files=files,
            sets=[name for name in schemas if not whole.load_resolution(dataset, name)],
            copies=copies,
            ours=shard in ours and not dataset.in_place,
            types=ours.get(shard),
            max_document_bytes=context.config.max_document_bytes,
        )
        for shard in shards
    ]


def _key_of_copies(schema: sets.SetSchema) -> str | None:
    """Return the key whose values say which document another one is a copy of."""
    types = {key: type_.not_null for key, type_ in schema.types().items()}
    return next((key for key, type_ in types.items() if "duplicate_of" in dict(type_.fields)), None)


def _tasks(works: Sequence[ShardToClear]) -> list[Task[ShardToClear]]:
    return [Task(work.dataset.shard_path(work.shard), work, key=work.shard) for work in works]


def _clear(work: ShardToClear, report: Report) -> None:
    report(0, 0)
    takedown.clear(work, _forget_signatures)


def _forget_signatures(dataset: Dataset, shard: str) -> None:
    """Delete the signatures of a shard, which its sets of the whole dataset are made of."""
    for name in dataset.sets():
        if whole.load_record(dataset, name, shard):
            record_logs.of(dataset).forget([whole.place_of(name, shard)])
        remove_tree(join(whole.signatures_folder(dataset, name), shard))


def _find(work: ShardToClear, report: Report) -> Found:
    report(0, 0)
    return takedown.find(work)


class _Everything(msgspec.Struct):
    """What was found in all shards."""

    documents: list[ListedDocument]
    copies: list[Copy]
    entries: set[int]
    failed: list[str]


def _found(context: Context, works: Sequence[ShardToClear]) -> _Everything:
    """Return the listed documents of all shards, those that were cleared before, and their copies."""
    results = context.run("look", _find, _tasks(works))
    found = [result.value for result in results if result.value]
    cleared = takedown.load_all(context.dataset)
    listed = {(each.shard, each.row): each for of in cleared.values() for each in of.documents}
    listed |= {(each.shard, each.row): each for of in found for each in of.documents}
    documents = [listed[key] for key in sorted(listed)]
    originals = frozenset(pair for of in found for pair in of.originals)
    copying = partial(_find_copies, documents, originals)
    others = context.run("find copies", copying, _tasks(works) if documents else [])
    copies = [copy for result in others for copy in result.value or ()]
    entries = {number for of in found for number in of.entries}
    return _Everything(documents, copies, entries, [*failures(results), *failures(others)])


def _find_copies(
    listed: list[ListedDocument], originals: frozenset[tuple[str, str]], work: ShardToClear, report: Report
) -> list[Copy]:
    report(0, 0)
    return takedown.find_copies(work, listed, originals)


# --- what --apply does beside the shards ------------------------------------------------------------------------------


def _keep_lists(dataset: Dataset, files: Sequence[str]) -> Lists:
    """Add lists to those of the dataset, which apply to all that is made from now on; return all."""
    lists = dict(takedown.lists_of(dataset).lists)
    for path in files:
        sha256 = stored_sha256(path)
        if sha256 not in lists:
            with open_stored(path) as stream:
                write_file(takedown.list_path(dataset, sha256), stream.read())
            lists[sha256] = len(takedown.Takedown([path]).entries)
    found = Lists(dict(sorted(lists.items())))
    record_logs.of(dataset).save({(takedown.KIND, ""): msgspec.json.encode(found)})
    return found


def _update_inputs(dataset: Dataset) -> None:
    """Record the documents that there are now in place of those before, so that no input is ingested again."""
    cleared = takedown.load_all(dataset)
    for key, record in ingested.load_all(dataset).items():
        shards = dict(record.shards)
        for shard in shards.keys() & cleared.keys():
            output = cleared[shard].output
            if output and shards[shard].content in {each.old for each in cleared[shard].changes if not each.set}:
                shards[shard] = output
        if shards != record.shards:
            ingested.save(dataset, key, msgspec.structs.replace(record, shards=shards))


def _clear_aside(context: Context, files: Sequence[str]) -> None:
    """Delete what has excerpts of texts, or decisions about them, and is made again; clear reject files."""
    dataset = context.dataset
    folders = [dataset.bookkeeping, *(work_folder(output) for output in _outputs(context))]
    for folder in folders:
        for name in CACHES:
            remove_tree(join(folder, name))
    for name in dataset.sets():
        root = whole.set_folder(dataset, name)
        for folder in {path.partition("/")[0] for path in list_files(root, hidden=True)}:
            if folder.startswith(whole.DECISIONS):
                remove_tree(join(root, folder))
    listed = takedown.Takedown(files)
    rejects = join(dataset.bookkeeping, "rejects")
    for relative in list(list_files(rejects, hidden=True)):
        path = join(rejects, relative)
        with Lines(path, MAX_ROW) as lines:
            rows = list(lines)
        raw = (base64.b64decode(msgspec.json.decode(row, type=_Reject).base64) for row in rows)
        source = relative.partition("/")[0]
        kept = [row for row, item in zip(rows, raw, strict=True) if not listed.names(item, source)]
        if len(kept) < len(rows):
            with RowOutput(path) as output:
                output.write_rows(kept)


class _Reject(msgspec.Struct):
    base64: str


# --- what is not reached ----------------------------------------------------------------------------------------------


def _outputs(context: Context) -> Iterator[str]:
    """Yield the outputs of the configuration that are there."""
    contexts = [context, *editions.of(context).values()] if context.has("mix") else []
    contexts += [editions.with_tokens(context)] if context.has(editions.SECTION) else []
    for each in contexts:
        if is_folder(sections.mix(each).output.path):
            yield sections.mix(each).output.path


def _again(context: Context) -> Iterator[str]:
    """Yield what must be made again, with the command."""
    for name in context.dataset.sets():
        if whole.load_resolution(context.dataset, name):
            yield f"set {name}: toolkit {sets.command_of(context.dataset, name)}"
    tokens = sections.mix(editions.with_tokens(context)).output.path if context.has(editions.SECTION) else ""
    for output in _outputs(context):
        if publish.load_manifest(output) is not None:
            yield f"{output}: toolkit {'tokenize' if output == tokens else 'mix'}"
    if context.has("mix") and (rejected := sections.mix(context).rejected) and is_folder(rejected):
        yield f"{rejected}: toolkit mix"


def _external(dataset: Dataset, works: Sequence[ShardToClear], documents: Sequence[ListedDocument]) -> list[str]:
    """Return the external files with rows of the listed documents."""
    shards = dict.fromkeys(document.shard for document in documents)
    files = [dataset.shard_path(work.shard) for work in works if work.shard in shards and not work.ours]
    foreign = [name for name in dataset.sets() if sets.load_schema(dataset, name) is None]
    return [*files, *(dataset.attribute_file(name, shard) for name in foreign for shard in shards)]


def _unreachable(context: Context, documents: Sequence[ListedDocument]) -> list[str]:
    """Return where else the texts may be."""
    dataset, shards = context.dataset, {document.shard for document in documents}
    records = [record for record in ingested.load_undamaged(dataset) if shards & record.shards.keys()]
    found = [f"input {path}" for record in records for path in record.paths]
    if documents and "://" in dataset.documents:
        found += [f"versions of objects in {dataset.documents}, if its bucket keeps them"]
    if documents:
        found += ["published copies, reports, samples and exports elsewhere", "models that were trained on the texts"]
        found += ["files of labels (`toolkit view --labels`) and of annotation tools"]
        found += [f"answers of language models in {join(dataset.bookkeeping, 'answers')}"] * is_folder(
            join(dataset.bookkeeping, "answers")
        )
    return found


def _outcome(
    context: Context,
    works: Sequence[ShardToClear],
    found: _Everything,
    files: Sequence[str],
    lists: Lists,
    failed: Sequence[str],
) -> Outcome:
    dataset, applied = context.dataset, context.options.apply  # type: ignore[attr-defined]
    entries = takedown.Takedown(files).entries
    result = TakenDown(
        applied=applied,
        lists=list(lists.lists),
        documents=found.documents,
        copies=found.copies,
        files=[*_changed(dataset, takedown.load_all(dataset))] if applied else [],
        unmatched=[entries.show(number) for number in entries.without(found.entries)],
        again=list(_again(context)) if found.documents else [],
        external=_external(dataset, works, found.documents),
        unreachable=_unreachable(context, found.documents),
        failed=[*found.failed, *failed],
    )
    return Outcome(text=_text(result), data=result, failures=result.failed, exit_code=1 if result.failed else 0)


def _changed(dataset: Dataset, cleared: dict[str, ClearedShard]) -> Iterator[ChangedFile]:
    for shard, record in cleared.items():
        for each in record.changes:
            path = dataset.attribute_path(each.set, shard) if each.set else dataset.shard_path(shard)
            yield ChangedFile(path, each.old, each.new)


def _text(result: TakenDown) -> str:
    what = "cleared" if result.applied else "would be cleared"
    parts = {
        f"{amount(len(result.documents), 'document')} {what}": [
            f"{each.shard}:{each.row}  {short(each.id)}, source {short(each.source)}, text sha256 {each.sha256}"
            for each in result.documents
        ],
        "copies, which stay unless they are listed": [
            f"{each.shard}:{each.row}  {short(each.id)}, source {short(each.source)}, by {each.by}"
            for each in result.copies
        ],
        "changed": [f"{each.path}  {each.old} -> {each.new}" for each in result.files],
        "entries that name no document, or one that was cleared before": result.unmatched,
        "to be made again; has the texts until then": result.again,
        "external files, which stay as they are": result.external,
        "not reached": result.unreachable,
    }
    lines = []
    for title, listed in parts.items():
        if listed:
            left = len(listed) - SHOWN
            lines += [f"{title}:", *(f"  {line}" for line in listed[:SHOWN])]
            lines += [f"  … {left:,} more (--json lists all)"] if left > 0 else []
    return "\n".join(lines) or "no document is listed"
