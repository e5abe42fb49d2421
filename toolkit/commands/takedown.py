"""Find listed documents and their copies, and clear them for good."""

import base64
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, product
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec
from msgspec.structs import replace

from toolkit.command_options import CommandResult, Flag, Options as CommonOptions, Words
from toolkit.commands import _sections as sections
from toolkit.config.settings import ConfigStruct
from toolkit.data import record_logs, row_index
from toolkit.data.alignment import MAX_ROW, attribute_lines
from toolkit.data.dataset import Dataset
from toolkit.data.document_fields import OwnTypes
from toolkit.data.documents import DOCUMENT_DECODER, AttributesRow, Rows, to_document
from toolkit.describe import card, card_marks, croissant
from toolkit.errors import ConfigError, DataError, ToolkitError, amount, short
from toolkit.execution.executors import Report, Task
from toolkit.ingest import ingest_config
from toolkit.lazy_numpy import np
from toolkit.make import make_config
from toolkit.mix import publication
from toolkit.mix.settings import TAKEDOWN
from toolkit.pages import card as card_page
from toolkit.records import ingested, origins, sets, takedown
from toolkit.records.sets import OutputState, ShardRecord, output_state
from toolkit.records.takedown import ChangedFile, ClearedShard, Copy, ListedDocument, Located, Pending
from toolkit.stages.context import Context, Outcome, failures
from toolkit.storage import store_of
from toolkit.storage.freshness import stored_sha256
from toolkit.storage.outputs import RowOutput, write_file
from toolkit.storage.paths import exists, expand, is_folder, join, list_files, remove, remove_tree, work_folder
from toolkit.storage.reading import Lines, open_stored
from toolkit.storage.record_log import Group
from toolkit.tag import run as tagging, sample
from toolkit.whole_corpus import records as whole

if TYPE_CHECKING:
    from toolkit.learn.annotate.annotator import Annotator

CACHES = ("stats", "columns", "report", "downloads", "tasks", sample.FOLDER)
"""Folders of records, of datasets and outputs, that have excerpts or counts of texts and are made again."""

SHOWN = 20
"""Documents, copies and files that are printed."""

_ATTRIBUTES = msgspec.json.Decoder(AttributesRow)


class TakenDown(CommandResult, kw_only=True):
    """The result of `takedown`.

    Attributes:
        applied: True if the documents are cleared now.
        lists: sha256 of each list that the dataset has now.
        documents: Documents that the lists name, those that were cleared before among them.
        copies: Other documents with the same text, or nearly so; they stay.
        files: Files of the dataset that were changed.
        deleted: Copies of samples, reports and pages of cards that were deleted now.
        unmatched: Entries that name no document, or only documents that were cleared before.
        again: Data to be made again, which have the texts until then.
        external: External files, which stay as they are.
        unreachable: Other places that may have the texts.
        failed: Messages of shards that failed.
    """

    applied: bool
    lists: list[str]
    documents: list[ListedDocument]
    copies: list[Copy]
    files: list[ChangedFile]
    deleted: list[str]
    unmatched: list[str]
    again: list[str]
    external: list[str]
    unreachable: list[str]
    failed: list[str] = []


class Options(CommonOptions, frozen=True, kw_only=True):
    """Options of ``toolkit takedown``.

    Attributes:
        config: the configuration (YAML)
        targets: lists of ids, hosts and URLs, one a line; settings that override the file's
        apply: clear the documents, and keep the lists in the dataset
    """

    WRITES: ClassVar = True
    SETTINGS: ClassVar = False
    EXAMPLES: ClassVar = (
        "toolkit takedown -c my.yaml takedown.txt",
        "toolkit takedown -c my.yaml takedown.txt --apply",
    )

    config: Annotated[str, Flag("-c", "--config", metavar="FILE")]
    targets: Annotated[tuple[str, ...], Words()] = ()
    apply: Annotated[bool, Flag()] = False

    def __post_init__(self) -> None:
        if not self.targets:
            raise ConfigError("expected a list of documents, got none")

    @property
    def only_shows(self) -> bool:
        return not self.apply


def run(context: Context, options: Options) -> Outcome:
    """Find the listed documents; with `apply`, clear them. A killed run is finished by the same command."""
    dataset = context.dataset
    lists = {stored_sha256(path): path for pattern in options.targets for path, _ in expand(pattern)}
    _check_lists(lists)
    works = _works(context, lists)
    if not options.apply:
        return _outcome(context, lists, *_find(context, works))
    names = {f"the set {name}": "" for name in dataset.sets()}
    context.sweep(*dataset.written, dataset.attributes, dataset.bookkeeping)
    lease = dict.fromkeys(ingest_config.holds(context.entries), "") | names | {"the takedown": ""}
    with context.lease(dataset.bookkeeping, dataset.documents, lease):
        _keep_lists(dataset, lists)
        works, copies, failed = _find(context, works)
        missed, deleted = _forget_answers(context, works), list[str]()
        failed += failures(_run(context, "clearing listed documents", clear, [work for work in works if work.rows]))
        context.session.begin()  # what the processes have recorded
        if any(work.rows or work.is_unfinished for work in works):
            _update_inputs(dataset)
            deleted = _clear_aside(context)
        _clear_rejects(dataset, lists)
        _finish(dataset, works)
    return _outcome(context, lists, works, copies, failed, missed=missed, deleted=deleted)


def _check_lists(lists: Mapping[str, str]) -> None:
    """Check the entries of lists before the dataset keeps them: every later command reads them.

    Raises:
        ConfigError: for a faulty entry.
    """
    for path in lists.values():
        try:
            takedown.opened([path])
        except DataError as error:
            raise ConfigError(str(error)) from None


def _works(context: Context, lists: Mapping[str, str]) -> list["ShardToClear"]:
    """Return the work on each shard; a set is cleared row by row unless a command decides all of it again."""
    dataset = context.dataset
    ours = {shard: record.types for record in ingested.load_undamaged(dataset) for shard in record.shards}
    schemas = {name: schema for name in dataset.sets() if (schema := sets.load_schema(dataset, name))}
    types = ((name, key, type_) for name, schema in schemas.items() for key, type_ in schema.types().items())
    work = ShardToClear(
        dataset=dataset,
        shard="",
        lists=dict(lists),
        sets=[name for name in schemas if not whole.load_resolution(dataset, name)],
        copies={name: key for name, key, type_ in types if "duplicate_of" in dict(type_.not_null.fields)},
        max_document_bytes=context.config.max_document_bytes,
    )
    return [
        replace(work, shard=shard, ours=shard in ours and not dataset.in_place, types=ours.get(shard))
        for shard in context.shards(dataset)[0]
    ]


def _run(context: Context, step: str, function: Any, works: Sequence[Any]) -> Any:
    return context.run(
        step, function, [Task(work.dataset.shard_path(work.shard), work, key=work.shard) for work in works]
    )


def _find(context: Context, works: Sequence["ShardToClear"]) -> tuple[list["ShardToClear"], list[Copy], list[str]]:
    """Return the shards with listed documents, their copies, and failures."""
    results = _run(context, "looking at files", find, works)
    result = [result.value for result in results if result.value]
    documents = _documents(result)
    originals = set[tuple[str, ...]]().union(*(work.originals for work in result))
    finding = partial(find_copies, documents, originals)
    copied = _run(context, "finding copies of listed documents", finding, result if documents else [])
    copies = [copy for result in copied for copy in result.value or ()]
    return result, copies, [*failures(results), *failures(copied)]


def _documents(works: Sequence["ShardToClear"]) -> list[ListedDocument]:
    return sorted(
        chain(*(work.record.documents for work in works)), key=lambda documents: (documents.shard, documents.row)
    )


# --- one shard --------------------------------------------------------------------------------------------------------


class ShardToClear(ConfigStruct, kw_only=True):
    """A shard to search and clear.

    Attributes:
        dataset: Dataset of the shard.
        shard: Name of the shard.
        lists: Paths of the lists, by sha256.
        sets: Our sets that are made shard by shard.
        copies: Key of each of our sets that says which document another one is a copy of, by set.
        max_document_bytes: Bytes of a row, at most.
        ours: True if ingest has made the documents; external ones stay as they are.
        types: Types of the documents' own fields.
        record: Record of the shard, with what `find` has found.
        rows: Rows to clear, from 1.
        is_unfinished: True if rows were cleared, but not yet all that was derived from them.
        originals: Names of the documents that the listed ones are copies of.
    """

    dataset: Dataset
    shard: str
    lists: dict[str, str]
    sets: list[str]
    copies: dict[str, str]
    max_document_bytes: int
    ours: bool = False
    types: OwnTypes | None = None
    record: ClearedShard = ClearedShard()
    rows: set[int] = set()
    is_unfinished: bool = False
    originals: set[tuple[str, ...]] = set()


def find(work: ShardToClear, report: Report) -> ShardToClear:
    """Return a shard with its listed documents. An earlier result of the same lists is used again."""
    report(0, 0)
    record = takedown.load(work.dataset, work.shard) or ClearedShard()
    state = row_index.current(work.dataset, work.shard)
    rows = {*record.pending.rows} if record.pending else set[int]()
    work = replace(work, record=record, rows=rows, is_unfinished=bool(record.documents) and not record.content)
    if record.pending or not state or state.content != record.content or not work.lists.keys() <= record.lists.keys():
        work = _search(work)
    own = {document.row for document in work.record.documents}
    return replace(work, originals={of for copy, of in _copies(work) if copy.row in own} if own else set())


def _search(work: ShardToClear) -> ShardToClear:
    """Return a shard with its listed documents, except cleared ones."""
    record, shard = work.record, work.shard
    lists = {sha256: takedown.opened([path]) for sha256, path in work.lists.items()}
    entries = {sha256: {*record.lists.get(sha256, ())} for sha256 in {**record.lists, **lists}}
    rows_before = {(document.row, document.source, document.id) for document in record.documents}
    documents, new = list[ListedDocument](), set[int]()
    with work.dataset.lines(shard, work.max_document_bytes, digest=True) as lines:
        rows = Rows(lines, DOCUMENT_DECODER, work.dataset.shard_path(shard))
        for row, line in rows:
            document = to_document(row, rows, line)
            matches = {sha256: listed.find(document) for sha256, listed in lists.items()}
            if not any(matches.values()):
                continue
            for sha256, numbers in matches.items():
                entries[sha256].update(numbers)
            is_known = (rows.number, row.source, row.id) in rows_before
            if line == takedown.cleared_row(row.source, row.id, work.types) if work.ours else is_known:
                continue
            text = row.text.encode()
            new.add(rows.number)
            if not is_known:
                sizes: Any = {"sha256": hashlib.sha256(text).hexdigest(), "chars": len(row.text), "bytes": len(text)}
                names: Any = {"shard": shard, "row": rows.number, "source": row.source, "id": row.id}
                documents.append(ListedDocument(**names, **sizes))
    record = replace(
        record,
        lists={sha256: sorted(entries[sha256]) for sha256 in sorted(entries)},
        content=lines.content or "",
        documents=[*record.documents, *documents],
    )
    return replace(work, record=record, rows=work.rows | new)


def _copies(work: ShardToClear, *, complete: bool = False) -> Iterator[tuple[Copy, tuple[str, ...]]]:
    """Yield the copies by duplicate sets, and the names of their originals; if `complete`, also other documents."""
    for name, key in work.copies.items():
        path = work.dataset.attribute_path(name, work.shard)
        if exists(path):
            with attribute_lines(path) as lines:
                for number, line in enumerate(lines, 1):
                    if (is_copy := b'"duplicate_of":[' in line) or complete:
                        row = _ATTRIBUTES.decode(line)
                        of = msgspec.json.decode(row.attributes)[key]["duplicate_of"] if is_copy else ()
                        place = Copy(shard=work.shard, row=number, source=row.source or "", id=row.id or "", by=name)
                        yield place, tuple(of)


def _names(document: Located) -> set[tuple[str, ...]]:
    """Return the names of a document in `duplicate_of`; the longer one is used if ids are not unique."""
    name = document.source, document.id
    return {name, (*name, f"{document.shard}:{document.row}")}


def find_copies(
    listed: Sequence[ListedDocument], originals: set[tuple[str, ...]], work: ShardToClear, report: Report
) -> list[Copy]:
    """Return a shard's copies of listed documents, and their originals. Texts are read if their size is the same.

    Args:
        listed: All documents that are listed, or were cleared.
        originals: Names of the documents that these are copies of.
        work: Shard to read.
        report: Told of what is done.
    """
    report(0, 0)
    dataset, shard = work.dataset, work.shard
    own = {document.row for document in work.record.documents}
    names = originals.union(*map(_names, listed))
    result = [
        copy
        for copy, of in _copies(work, complete=bool(originals))
        if copy.row not in own and (of in names or not originals.isdisjoint(_names(copy)))
    ]
    digests = {document.sha256 for document in listed if document.chars}
    sizes = np.array([document.chars << 32 | document.bytes for document in listed if document.chars], "<u8")
    row_index.ensure(dataset, shard, work.max_document_bytes)
    blocks = [block["chars"].astype("<u8") << 32 | block["bytes"] for block in row_index.read(dataset, shard)]
    alike = {*(np.flatnonzero(np.isin(np.concatenate(blocks), sizes)) + 1).tolist()} - own if blocks else set[int]()
    with dataset.lines(shard, work.max_document_bytes) as lines:
        for number, line in enumerate(lines if alike else (), 1):
            if number in alike:
                row = DOCUMENT_DECODER.decode(line)
                if hashlib.sha256(row.text.encode()).hexdigest() in digests:
                    result.append(Copy(shard=shard, row=number, source=row.source, id=row.id, by="text"))
    return sorted({(item.row, item.by): item for item in result}.values(), key=lambda item: (item.row, item.by))


def clear(work: ShardToClear, report: Report) -> None:
    """Clear rows of a shard in its file and our sets; delete its signatures.

    The record with what is pending is durable before anything is replaced. What is written depends on the rows alone,
    so the same call after a kill does the rest.

    Raises:
        DataError: if the shard, or a set, is not what its record describes.
    """
    report(0, 0)
    dataset, shard, log = work.dataset, work.shard, record_logs.of(work.dataset)
    records = work.record.pending.records if work.record.pending else {}
    if not records:
        row_index.ensure(dataset, shard, work.max_document_bytes)
        places = [(record_logs.ROWS, shard), *(record_logs.place_in_set(name, shard) for name in work.sets)]
        records = {kind: msgspec.Raw(record) for kind, key in places if (record := log.get(kind, key))}
    begun = replace(work.record, pending=Pending(sorted(work.rows), records))
    log.save({(takedown.KIND, shard): msgspec.json.encode(begun)})
    for name in whole.set_names(dataset):
        log.forget([whole.place_of(name, shard), record_logs.place_in_set(name, shard)])
        remove_tree(join(whole.signatures_folder(dataset, name), shard))
    with Group(log) as group:
        clearing = _Clearing(work, records, group)
        changes, output = [*begun.changes, *clearing.changes], clearing.output or begun.output
        after = replace(begun, content="", changes=changes, output=output, pending=None)
        group.save((takedown.KIND, shard), msgspec.json.encode(after))


class _Clearing:
    """A rewrite of a shard's files and records, in a group."""

    def __init__(self, work: ShardToClear, records: dict[str, msgspec.Raw], group: Group) -> None:
        self._work, self._group = work, group
        self.changes: list[ChangedFile] = []
        self.output: OutputState | None = None
        old = msgspec.json.decode(records[record_logs.ROWS], type=row_index.ShardState)
        self.state = self._documents(old) if work.ours else old
        cleared: dict[str, ShardRecord] = {}
        new: dict[tuple[str, str], str] = {}
        for name in work.sets:
            kind = record_logs.place_in_set(name, "")[0]
            if kind in records and exists(work.dataset.attribute_path(name, work.shard)):
                record = msgspec.json.decode(records[kind], type=ShardRecord)
                output = self._attributes(name, record)
                new[name, record.output.content] = output.content
                cleared[name] = replace(record, output=output)
        for name, record in cleared.items():
            reads = {other: new.get((other, digest), digest) for other, digest in record.reads.items()}
            input = self.state if record.input.content == old.content else record.input
            cleared[name] = replace(record, input=input, reads=reads)
        sets.save_records(work.dataset, work.shard, cleared, group)

    def _documents(self, old: row_index.ShardState) -> row_index.ShardState:
        work, path = self._work, self._work.dataset.shard_path(self._work.shard)
        files, offset = self._group.files, 0
        with (
            work.dataset.lines(work.shard, work.max_document_bytes, digest=True) as lines,
            row_index.RowIndexOutput(work.dataset, work.shard, replaced=True, group=self._group) as index,
            RowOutput(path, together=files) as output,
        ):
            rows = Rows(lines, DOCUMENT_DECODER, path)
            for row, line in rows:
                if rows.number in work.rows:
                    line = takedown.cleared_row(row.source, row.id, work.types)
                    row = DOCUMENT_DECODER.decode(line)
                index.add(row_index.entry_of(row, line), offset)
                offset += len(line) + 1
                output.write_row(line)
        self._note("", path, lines.content, old.content, output)
        row_index.clear_places(work.dataset, work.shard, work.rows, files)
        self.output = output_state(output)
        return index.finish(output.stat, output.content, head=output.head)

    def _attributes(self, name: str, record: ShardRecord) -> OutputState:
        work = self._work
        path, schema = work.dataset.attribute_path(name, work.shard), sets.load_schema(work.dataset, name)
        types = schema.types() if schema else {}
        self._group.forget(record_logs.place_in_set(name, work.shard))
        with attribute_lines(path, digest=True) as lines, RowOutput(path, together=self._group.files) as output:
            for number, line in enumerate(lines, 1):
                output.write_row(takedown.cleared_attributes(line, types) if number in work.rows else line)
        self._note(name, path, lines.content, record.output.content, output)
        return output_state(output)

    def _note(self, name: str, path: str, content: str | None, old: str, output: RowOutput) -> None:
        """Note a change; what was read must be as it was, or have been cleared by an attempt that was killed."""
        if content not in (old, output.content):
            raise DataError("expected the file that its record describes, got one that was changed later", path=path)
        self.changes.append(ChangedFile(name, old, output.content))


# --- what --apply does beside the shards ------------------------------------------------------------------------------


def _keep_lists(dataset: Dataset, lists: Mapping[str, str]) -> None:
    """Add lists to the dataset's, for all later work."""
    for sha256, path in lists.items():
        with open_stored(path) as stream:
            write_file(takedown.list_path(dataset, sha256), stream.read())
    digests = sorted({*takedown.lists_of(dataset), *lists})
    record_logs.of(dataset).save({(takedown.KIND, ""): msgspec.json.encode(digests)})


def _update_inputs(dataset: Dataset) -> None:
    """Update ingest's records to the cleared documents. No input is ingested again."""
    cleared = takedown.load_all(dataset)
    for key, record in ingested.load_all(dataset):
        shards = dict(record.shards)
        for shard in shards.keys() & cleared.keys():
            output = cleared[shard].output
            if output and shards[shard].content in {change.old for change in cleared[shard].changes if not change.set}:
                shards[shard] = output
        if shards != record.shards:
            ingested.save(dataset, key, replace(record, shards=shards))


def _finish(dataset: Dataset, works: Sequence[ShardToClear]) -> None:
    """Record the documents and lists with nothing left to do."""
    before, records = takedown.load_all(dataset), dict[str, ClearedShard]()
    for work in works:
        record = before.get(work.shard, work.record) if work.rows else work.record
        if record.pending is None:
            content = record.output.content if work.rows and record.output else work.record.content
            records[work.shard] = replace(record, content=content)
    changed = {shard: record for shard, record in records.items() if record != before.get(shard)}
    log = record_logs.of(dataset)
    log.save({(takedown.KIND, shard): msgspec.json.encode(record) for shard, record in changed.items()})


def _annotators(context: Context) -> list["Annotator"]:
    """Return the annotators of the section ``annotate:``."""
    if not context.has("annotate"):
        return []
    from toolkit.learn.annotate.annotate_config import annotator_of

    section = context.section("annotate")
    return [annotator_of(section.at(name), context.dataset)[0] for name in section.value]


def _forget_answers(context: Context, works: Sequence[ShardToClear]) -> list[str]:
    """Delete the answers of language models about listed documents; return why those of some are not known.

    What models were asked follows from the texts, so this comes before these are cleared.
    """
    from toolkit.learn.annotate import answers
    from toolkit.learn.annotate.annotate_config import schemas_of

    annotators = [annotator for annotator in _annotators(context) if is_folder(annotator.answers)]
    try:
        plans = sections.annotations(context) if annotators else {}
        schemas = schemas_of(plans, context.dataset, context.known_sets("annotate"), overwrite=True)
    except ToolkitError as error:
        return [f"answers about the texts: {error}"]
    shards = [work.shard for work in works if work.rows]
    keys, missed = set[str](), list[str]()
    for plan in plans.values():
        job = sections.to_tag(context, plan, schemas)
        results = _run(context, "looking at files", _question_keys, [replace(job, shard=shard) for shard in shards])
        keys.update(*(result.value for result in results if result.value))
        missed += [f"answers about the texts: {message}" for message in failures(results)]
    for folder in sorted({annotator.answers for annotator in annotators}):
        answers.forget(folder, keys)
    return missed


def _question_keys(work: tagging.ShardToTag, report: Report) -> set[str]:
    """Return the digests of a model's questions about a shard's listed documents."""
    from toolkit.learn.annotate.requests import annotator_of

    report(0, 0)
    annotator = annotator_of(work)
    batches = (batch for batch, _ in tagging.selected_documents(work, listed=True))
    documents = (document for batch in batches for document, _ in batch)
    return {key for document in documents for request in annotator.queries(document) for key in request.keys}


def _clear_aside(context: Context) -> list[str]:
    """Delete caches and decisions with excerpts of texts; clear examples. All of it can be made again.

    Returns:
        The paths of files outside our bookkeeping that were deleted.
    """
    dataset = context.dataset
    for folder in (dataset.bookkeeping, *map(work_folder, _outputs(context))):
        for name in CACHES:
            remove_tree(join(folder, name))
    for name in whole.set_names(dataset):
        root = whole.set_folder(dataset, name)
        for folder in {path.partition("/")[0] for path in list_files(root, hidden=True)}:
            if folder.startswith(whole.DECISIONS):
                remove_tree(join(root, folder))
    for root, name in product(_roots(context), (card.NAME, croissant.NAME)):
        path = join(root, name)
        if origins.load(root, name) and exists(path):
            _empty_examples(path)
    deleted = sorted({*_excerpts(context)})
    for path in deleted:
        remove(path)
    return deleted


def _clear_rejects(dataset: Dataset, lists: Mapping[str, str]) -> None:
    """Delete rejected items of the lists; they are in no shard."""
    listed = takedown.Takedown([*lists.values()])
    rejects = join(dataset.bookkeeping, "rejects")
    for relative in list(list_files(rejects, hidden=True)):
        path = join(rejects, relative)
        with Lines(path, MAX_ROW) as lines:
            rows = list(lines)
        raw = (base64.b64decode(msgspec.json.decode(row, type=_Reject).base64) for row in rows)
        source = relative.partition("/")[0]
        rest = [row for row, item in zip(rows, raw, strict=True) if not listed.names(item, source)]
        if len(rest) < len(rows):
            with RowOutput(path) as output:
                output.write_rows(rest)


def _empty_examples(path: str) -> None:
    """Write a card, or a Croissant description, without texts of documents."""
    data = store_of(path).read(path)
    if path.endswith(croissant.NAME):
        empty = croissant.without_examples(data)
    else:
        empty = card_marks.without(path, data.decode(), card.EXAMPLES, card.TITLES).encode()
    if empty != data:
        write_file(path, empty)


def _excerpts(context: Context) -> Iterator[str]:
    """Yield our files with excerpts: copies of samples, reports, and pages of cards. Commands make them again."""
    from toolkit.commands.report import SUFFIXES, origin_in
    from toolkit.whole_corpus.kinds import sample

    dataset = context.dataset
    for name in dataset.sets():
        for copied in sample.load(dataset, name).copies.values():
            yield from (file.path for file in sample.files_in(copied) if exists(file.path))
    mine = origins.origin_of([dataset]).without_places
    for root in _roots(context):
        manifest = publication.load_manifest(root)
        parts = {part.path for part in manifest.parts} if manifest else set[str]()
        for relative in list_files(root):
            path = join(root, relative)
            if relative == card_page.NAME and origins.load(root, card.NAME):
                yield path
            elif path.endswith(SUFFIXES) and relative not in parts and not path.startswith(dataset.documents + "/"):
                origin = origin_in(path)
                if origin and mine.meets(origin):
                    yield path


class _Reject(msgspec.Struct):
    base64: str


# --- what is not reached ----------------------------------------------------------------------------------------------


def _outputs(context: Context) -> list[str]:
    """Return the existing outputs of the configuration."""
    return [path for mix in sections.mixes(context).values() if is_folder(path := sections.mix(mix).output.path)]


def _roots(context: Context) -> list[str]:
    """Return the folder of the dataset, if any, and the outputs."""
    dataset = context.dataset
    root = os.path.dirname(dataset.attributes)
    return [*([root] if root and os.path.dirname(dataset.documents) == root else []), *_outputs(context)]


def _again(context: Context, lists: Iterable[str], works: Sequence[ShardToClear]) -> Iterator[str]:
    """Yield the data to be made again, with the command."""
    dataset = context.dataset
    for name in dataset.sets():
        if whole.load_resolution(dataset, name) and not all(
            sets.is_recorded(dataset, name, work.shard) and not work.rows for work in works if work.record.documents
        ):
            yield f"set {name}: toolkit {sets.command_of(dataset, name)}"
    roots = make_config.roots(context.section(make_config.SECTION)) if context.has(make_config.SECTION) else []
    yield from (f"{root}: toolkit make" for root in roots if is_folder(root))
    mixes = {name: sections.mix(of_mix) for name, of_mix in sections.mixes(context).items()}
    old = {name: settings for name, settings in mixes.items() if not _has_lists(settings.output.path, lists)}
    yield from (f"{settings.output.path}: toolkit {sections.command_of(name)}" for name, settings in old.items())
    for settings in old.values():
        if settings.rejected and is_folder(settings.rejected):
            yield f"{settings.rejected}: toolkit mix"
    pages = {card.NAME: "card", card_page.NAME: "card --html", croissant.NAME: "croissant"}
    for path, name in ((join(root, name), name) for root in _roots(context) for name in pages):
        if exists(path):
            yield f"{path}: toolkit {pages[name]}"


def _has_lists(output: str, lists: Iterable[str]) -> bool:
    """Return True if all streams of an output have these lists (sha256)."""
    manifest = publication.load_manifest(output)
    return manifest is None or all(
        {*chain(*(rule.get("files", ()) for rule in stream["rules"] if rule["name"] == TAKEDOWN))} >= {*lists}
        for stream in manifest.settings["streams"]
    )


def _external(dataset: Dataset, works: Sequence[ShardToClear]) -> list[str]:
    """Return the external files with rows of listed documents."""
    listed = [work for work in works if work.record.documents]
    files = [dataset.shard_path(work.shard) for work in listed if not work.ours]
    foreign = [name for name in dataset.sets() if sets.load_schema(dataset, name) is None]
    return [*files, *(dataset.attribute_file(name, work.shard) for name in foreign for work in listed)]


def _unreachable(context: Context, shards: set[str]) -> Iterator[str]:
    """Yield other possible places of the texts of shards."""
    dataset, answers = context.dataset, join(context.dataset.bookkeeping, "answers")
    records = (record for record in ingested.load_undamaged(dataset) if shards & record.shards.keys())
    yield from (f"input {path}" for record in records for path in record.paths)
    if not store_of(dataset.documents).is_local:
        yield f"versions of objects in {dataset.documents}, if its bucket keeps them"
    yield from ("published copies, reports, samples and exports elsewhere", "models that were trained on the texts")
    yield "files of labels (`toolkit view --labels`) and of annotation tools"
    yield from (f"requests in {annotator.batch_folder}" for annotator in _annotators(context) if annotator.batch_folder)
    if is_folder(answers):
        yield f"answers of models to questions that the configuration no longer asks, in {answers}"


def _outcome(
    context: Context,
    lists: Mapping[str, str],
    works: Sequence[ShardToClear],
    copies: list[Copy],
    failed: list[str],
    *,
    missed: Sequence[str] = (),
    deleted: Sequence[str] | None = None,
) -> Outcome:
    dataset, documents, applied = context.dataset, _documents(works), deleted is not None
    unmatched = list[str]()
    for sha256, path in lists.items():
        listed = takedown.opened([path]).entries
        matched = chain(*(work.record.lists.get(sha256, ()) for work in works))
        unmatched += map(listed.show, listed.without(matched))
    result = TakenDown(
        applied=applied,
        lists=takedown.lists_of(dataset),
        documents=documents,
        copies=copies,
        files=[
            replace(change, path=dataset.attribute_path(change.set, shard) if change.set else dataset.shard_path(shard))
            for shard, record in (takedown.load_all(dataset) if applied else {}).items()
            for change in record.changes
        ],
        deleted=list(deleted or ()),
        unmatched=unmatched,
        again=list(_again(context, {*lists, *takedown.lists_of(dataset)}, works)) if documents else [],
        external=_external(dataset, works),
        unreachable=[
            *(_unreachable(context, {document.shard for document in documents}) if documents else ()),
            *missed,
        ],
        failed=failed,
    )
    fresh = {(work.shard, row) for work in works for row in work.rows}
    return Outcome(text=_text(result, fresh), data=result, failures=result.failed)


def _text(result: TakenDown, fresh: set[tuple[str, int]]) -> str:
    """Return the text of a result; `fresh` are the shards and rows that an earlier command has not cleared."""

    def show(item: ListedDocument | Copy, note: str) -> str:
        return f"{item.shard}:{item.row}  {short(item.id)}, source {short(item.source)}, {note}"

    documents = [document for document in result.documents if (document.shard, document.row) in fresh]
    before = [document for document in result.documents if (document.shard, document.row) not in fresh]
    title = f"{amount(len(documents), 'document')} {'cleared' if result.applied else 'would be cleared'}"
    parts = {
        title: [show(document, f"text sha256 {document.sha256}") for document in documents],
        "cleared before": [show(document, f"text sha256 {document.sha256}") for document in before],
        "copies, which stay unless they are listed": [show(copy, f"by {copy.by}") for copy in result.copies],
        "changed": [f"{file.path}  {file.old} -> {file.new}" for file in result.files],
        "deleted; commands make it again": result.deleted,
        "entries that name no document, or one that was cleared before": result.unmatched,
        "to be made again; has the texts until then": result.again,
        "external files, which stay as they are": result.external,
        "not reached": result.unreachable,
    }
    lines = []
    for title, listed in parts.items():
        if listed:
            more = len(listed) - SHOWN
            lines += [f"{title}:", *(f"  {line}" for line in listed[:SHOWN])]
            lines += [f"  … {more:,} more (--json lists all)"] if more > 0 else []
    return "\n".join(lines) or "no document is listed"
