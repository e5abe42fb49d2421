"""Find the documents that lists name, and their copies; clear them from the dataset, which keeps the lists."""

import base64
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, groupby, product
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec

from toolkit.command_line import CommandResult, Flag, Words
from toolkit.command_line import Options as CommonOptions
from toolkit.commands import _sections as sections
from toolkit.data import record_logs
from toolkit.data.alignment import MAX_ROW
from toolkit.data.dataset import Dataset
from toolkit.data.documents import Document
from toolkit.errors import ConfigError, ToolkitError, amount, short
from toolkit.execution.executors import Report, Task
from toolkit.ingest import section as ingest_section
from toolkit.mix import publish
from toolkit.records import ingested, sets, takedown
from toolkit.records.takedown import ClearedShard, Copy, Found, ListedDocument, Lists, ShardToClear
from toolkit.stages.context import Context, Outcome, failures
from toolkit.storage import store_of
from toolkit.storage.artifact import stored_sha256
from toolkit.storage.outputs import RowOutput, write_file
from toolkit.storage.paths import exists, expand, is_folder, join, list_files, remove_tree, work_folder
from toolkit.storage.reading import Lines, open_stored
from toolkit.tag import run as tagging
from toolkit.tag import sample
from toolkit.tag.plan import build
from toolkit.whole import records as whole

if TYPE_CHECKING:
    from toolkit.learn.annotate.annotator import Annotator

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
        found, _, copies, failed = _found(context, works)
        return _outcome(context, works, found, copies, failed, files)
    names = {f"the set {name}": "" for name in dataset.sets()}
    context.sweep(*dataset.written, dataset.attributes, dataset.bookkeeping)
    lease = dict.fromkeys(ingest_section.holds(context.entries), "") | names | {"the takedown": ""}
    with context.lease(dataset.bookkeeping, dataset.documents, lease):
        _keep_lists(dataset, files)
        found, listed, copies, failed = _found(context, works)
        missed = _forget_answers(context, found)
        to_clear = [msgspec.structs.replace(work, listed=listed.get(work.shard, [])) for work in works]
        results = _run(context, "clearing listed documents", partial(takedown.clear, _forget_signatures), to_clear)
        context.session.begin()  # what the processes have recorded
        _update_inputs(dataset)
        _clear_aside(context, files)
    return _outcome(context, works, found, copies, [*failed, *failures(results)], files, missed=missed)


def _works(context: Context, files: list[str]) -> list[ShardToClear]:
    """Return the work on each shard; a set is cleared row by row unless a command decides all of it again."""
    dataset = context.dataset
    shards, _ = context.shards(dataset)
    ours = {shard: record.types for record in ingested.load_undamaged(dataset) for shard in record.shards}
    schemas = {name: schema for name in dataset.sets() if (schema := sets.load_schema(dataset, name))}
    types = ((name, key, type_) for name, schema in schemas.items() for key, type_ in schema.types().items())
    copies = {name: key for name, key, type_ in types if "duplicate_of" in dict(type_.not_null.fields)}
    asked = partial(_asked, _annotators(context))
    return [
        ShardToClear(
            dataset=dataset,
            shard=shard,
            files=files,
            sets=[name for name in schemas if not whole.load_resolution(dataset, name)],
            copies=copies,
            asked=asked,
            ours=shard in ours and not dataset.in_place,
            types=ours.get(shard),
            max_document_bytes=context.config.max_document_bytes,
        )
        for shard in shards
    ]


def _annotators(context: Context) -> list["Annotator"]:
    """Return the annotators of the section ``annotate:``."""
    if not context.has("annotate"):
        return []
    from toolkit.learn.annotate.section import annotator_of

    section = context.section("annotate")
    return [annotator_of(section.at(name), context.dataset)[0] for name in section.value]


def _asked(annotators: Sequence["Annotator"], *documents: Document) -> list[str]:
    """Return the digests of what annotators ask about documents."""
    pairs = product(annotators, documents)
    return [key for annotator, document in pairs for asked in annotator.asked(document) for key in asked.keys]


def _run(context: Context, step: str, function: Callable[[ShardToClear], Any], works: Sequence[ShardToClear]) -> Any:
    tasks = [Task(work.dataset.shard_path(work.shard), work, key=work.shard) for work in works]
    return context.run(step, partial(_call, function), tasks)


def _call(function: Callable[[ShardToClear], Any], work: ShardToClear, report: Report) -> Any:
    report(0, 0)
    return function(work)


def _forget_signatures(dataset: Dataset, shard: str) -> None:
    """Delete the signatures of a shard, which its sets of the whole dataset are made of."""
    for name in dataset.sets():
        if whole.load_record(dataset, name, shard):
            record_logs.of(dataset).forget([whole.place_of(name, shard)])
        remove_tree(join(whole.signatures_folder(dataset, name), shard))


def _found(
    context: Context, works: Sequence[ShardToClear]
) -> tuple[Found, dict[str, list[ListedDocument]], list[Copy], list[str]]:
    """Return all listed documents, those of each shard that are not cleared yet, copies, and what failed."""
    results = _run(context, "looking at files", takedown.find, works)
    none = Found([], set(), set(), set())
    listed, *others = zip(none, *(result.value for result in results if result.value), strict=True)
    cleared = [record.documents for record in takedown.load_all(context.dataset).values()]
    by_row = {(each.shard, each.row): each for each in chain(*cleared, *listed)}
    found = Found([by_row[key] for key in sorted(by_row)], *(set().union(*sets_) for sets_ in others))
    finding = partial(takedown.find_copies, found.documents, found.originals)
    copied = _run(context, "finding copies of listed documents", finding, works if by_row else [])
    copies = [copy for result in copied for copy in result.value or ()]
    by_shard = {shard: list(some) for shard, some in groupby(chain(*listed), key=lambda each: each.shard)}
    return found, by_shard, copies, [*failures(results), *failures(copied)]


# --- what --apply does beside the shards ------------------------------------------------------------------------------


def _keep_lists(dataset: Dataset, files: Sequence[str]) -> None:
    """Add lists to those of the dataset, which apply to all that is made from now on."""
    lists = dict(takedown.lists_of(dataset).lists)
    for path in files:
        sha256 = stored_sha256(path)
        if sha256 not in lists:
            with open_stored(path) as stream:
                write_file(takedown.list_path(dataset, sha256), stream.read())
            lists[sha256] = len(takedown.Takedown([path]).entries)
    found = Lists(dict(sorted(lists.items())))
    record_logs.of(dataset).save({(takedown.KIND, ""): msgspec.json.encode(found)})


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


def _forget_answers(context: Context, found: Found) -> list[str]:
    """Delete the answers of language models about listed documents; return what could not be told of edited texts.

    What models were asked follows from the texts, so this comes before these are cleared.
    """
    from toolkit.learn.annotate import answers

    edited, missed = _asked_of_edited(context, sorted({each.shard for each in found.documents}))
    folders = {join(context.dataset.bookkeeping, "answers"), *(each.answers for each in _annotators(context))}
    for folder in sorted(folders):
        answers.forget(folder, found.asked | edited)
    return missed


def _asked_of_edited(context: Context, shards: Sequence[str]) -> tuple[set[str], list[str]]:
    """Return the digests of what models are asked about edited texts of listed documents, and where nobody can tell."""
    from toolkit.learn.annotate import section as annotate
    from toolkit.learn.annotate.asking import annotator_of

    keys, missed = set[str](), list[str]()

    @contextmanager
    def tried(where: str) -> Iterator[None]:
        try:
            yield
        except ToolkitError as error:
            missed.append(f"answers about edited texts {where}: {error}")

    annotators = [each for each in _annotators(context) if is_folder(each.answers)]
    works: list[tagging.ShardToTag] = []
    with tried("of all shards"):
        plans = sections.annotations(context) if annotators else {}
        schemas = annotate.schemas_of(plans, context.dataset, context.known_sets("annotate"), overwrite=True)
        works = [sections.to_tag(context, plan, schemas) for plan in plans.values()]
    for work in works:
        (step,) = build(work.plan)
        annotator = annotator_of(work)
        for shard in shards if step.text or step.entry.edits else ():
            with tried(f"of {shard}"):
                for batch, _ in tagging.asked(msgspec.structs.replace(work, shard=shard), listed=True):
                    keys.update(_asked([annotator], *(document for document, _ in batch)))
    return keys, missed


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
    contexts = [context, *sections.editions(context).values()] if context.has("mix") else []
    contexts += [sections.with_tokens(context)] if context.has(sections.TOKENIZE) else []
    for each in contexts:
        if is_folder(sections.mix(each).output.path):
            yield sections.mix(each).output.path


def _again(context: Context) -> Iterator[str]:
    """Yield what must be made again, with the command."""
    for name in context.dataset.sets():
        if whole.load_resolution(context.dataset, name):
            yield f"set {name}: toolkit {sets.command_of(context.dataset, name)}"
    tokens = sections.mix(sections.with_tokens(context)).output.path if context.has(sections.TOKENIZE) else ""
    for output in _outputs(context):
        if publish.load_manifest(output) is not None:
            yield f"{output}: toolkit {'tokenize' if output == tokens else 'mix'}"
    if context.has("mix") and (rejected := sections.mix(context).rejected) and is_folder(rejected):
        yield f"{rejected}: toolkit mix"
    for root in (os.path.dirname(context.dataset.attributes), *_outputs(context)):
        pages = {"README.md": "card", "README.html": "card --html", "croissant.json": "croissant"}
        pages["report.html"] = "report"
        yield from (f"{path}: toolkit {pages[name]}" for name in pages if exists(path := join(root, name)))


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
    if documents and not store_of(dataset.documents).is_local:
        found += [f"versions of objects in {dataset.documents}, if its bucket keeps them"]
    if documents:
        found += ["published copies, reports, samples and exports elsewhere", "models that were trained on the texts"]
        found += ["files of labels (`toolkit view --labels`) and of annotation tools"]
        found += [f"requests in {each.batch_folder}" for each in _annotators(context) if each.batch_folder]
        answers = join(dataset.bookkeeping, "answers")
        found += [f"answers of models to questions that the configuration no longer asks, in {answers}"] * is_folder(
            answers
        )
    return found


def _outcome(
    context: Context,
    works: Sequence[ShardToClear],
    found: Found,
    copies: list[Copy],
    failed: list[str],
    files: Sequence[str],
    *,
    missed: Sequence[str] = (),
) -> Outcome:
    dataset, applied = context.dataset, context.options.apply  # type: ignore[attr-defined]
    entries = takedown.Takedown(files).entries
    result = TakenDown(
        applied=applied,
        lists=list(takedown.lists_of(dataset).lists),
        documents=found.documents,
        copies=copies,
        files=[*_changed(dataset, takedown.load_all(dataset))] if applied else [],
        unmatched=[entries.show(number) for number in entries.without(found.entries)],
        again=list(_again(context)) if found.documents else [],
        external=_external(dataset, works, found.documents),
        unreachable=[*_unreachable(context, found.documents), *missed],
        failed=failed,
    )
    return Outcome(text=_text(result), data=result, failures=result.failed)


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
