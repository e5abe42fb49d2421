"""Show documents joined with their attributes."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Annotated, Any, ClassVar

import msgspec

from toolkit.command_options import CommandResult, Flag, Inspecting, Limited, Words, absent
from toolkit.commands import _tracing as tracing
from toolkit.commands._tracing import first_documents, show_document, show_preview
from toolkit.data import row_index
from toolkit.data.dataset import Dataset, open_dataset
from toolkit.data.documents import DocumentRow
from toolkit.data.urls import has_scheme
from toolkit.errors import ConfigError, NoDocuments, amount
from toolkit.ingest.input_rows.preview import Preview
from toolkit.inspect import targets
from toolkit.inspect.documents import FileDocuments, types_of
from toolkit.inspect.targets import format_of, recorded_format
from toolkit.mix import publication
from toolkit.mix.settings import REJECTED
from toolkit.mix.writer import Writer
from toolkit.records.left_out import LeftOut, is_called
from toolkit.source import Source
from toolkit.stages.context import Context, Outcome
from toolkit.storage.addresses import reveal_url
from toolkit.storage.paths import exists, is_folder, join, missing_reason, not_in

Joined = tuple[DocumentRow, dict[str, dict[str, Any]], str, bytes]
"""A document, its attributes by set, its place, and its line; none of a file that is no lines."""


class DatasetHead(CommandResult, kw_only=True):
    """The result of `head`.

    Attributes:
        documents: Each with its place, id, source, text and attributes; with an id also where it is from, and where it
            is in the output.
        left_out: Items with that id that ingest left out, and why.
    """

    documents: list[dict[str, Any]]
    left_out: list[LeftOut] = absent()


class InputHead(CommandResult, kw_only=True):
    """The result of `head` before ingest: the first documents of each input, and the fields that these have."""

    first: list[Preview]


class Options(Inspecting, Limited, frozen=True, kw_only=True):
    """Options of ``toolkit head``.

    Attributes:
        targets: a shard; settings, which override those of the file
        count: number of documents (3)
        id: show only the document with this id or URL, or why there is none
    """

    EXAMPLES: ClassVar = ("toolkit head data/quickstart/documents/cc/sample-00000.jsonl.gz -n 1",)

    targets: Annotated[tuple[str, ...], Words()] = ()
    count: Annotated[int, Flag("-n", metavar="N")] = 3
    id: Annotated[str | None, Flag(metavar="ID|URL", parse=reveal_url)] = None


def run(context: Context, options: Options) -> Outcome:
    """Show the first documents of a shard or dataset, or by id.

    Of a configuration whose inputs are not ingested yet these are the documents that they would become.
    """
    is_path = bool(options.targets) and (options.config is None or options.text_field is not None)
    if is_path and (outputs := _outputs(options.targets[0].rstrip("/"))):
        return _of_output(context, options, outputs)
    try:
        dataset, shards = _places(context)
    except NoDocuments:
        if options.config is None or options.id is not None or not context.source.value.get("ingest"):
            raise
        return _of_inputs(context, options)
    source = context.source_of(dataset, shards[:1], complete=False)
    source.check(dataset.sets() if dataset.attributes else [], "warn")
    most = options.count if options.id is None else sys.maxsize
    results: list[Joined] = []
    for shard in shards:
        for joined in _read(source, shard, context.config.max_document_bytes, options.id):
            results.append(joined)
            if len(results) >= most:
                break
        if len(results) >= most:
            break
    if options.id is None:
        return _outcome(results)
    items = tracing.items_left_out([dataset], options.id, amount(len(shards), "shard"), is_found=bool(results))
    places = tracing.in_output(context, [(row.source, row.id) for row, *_ in results]) if options.config else None
    outcome = _outcome(results, [_way(dataset, joined, places) for joined in results])
    outcome.text = "\n\n".join(text for text in (outcome.text, tracing.show_left_out(items)) if text)
    outcome.data.left_out = items
    return outcome


def _way(dataset: Dataset, joined: Joined, places: Mapping[tuple[str, str], list[str]] | None) -> dict[str, Any]:
    """Return the origin of a document and its places in the output."""
    path, _, number = joined[2].rpartition(":")
    shard = path.removeprefix(dataset.documents + "/")
    way = tracing.origin(dataset, shard, int(number))
    return way if places is None else way | {"output": places[joined[0].source, joined[0].id]}


def _of_inputs(context: Context, options: Options) -> Outcome:
    """Show the first documents of each entry's first input, and their fields."""
    previews, failed = first_documents(context.inputs(asks_web=False), options.count)
    return Outcome(text="\n\n".join(map(show_preview, previews)), data=InputHead(first=previews), failures=failed)


def _outcome(documents: list[Joined], ways: Sequence[dict[str, Any]] = ()) -> Outcome:
    """Return documents as they are shown.

    Args:
        documents: the documents.
        ways: Origin and places in the output, for each document.
    """
    with_ways = list(zip(documents, ways or [{}] * len(documents), strict=True))
    return Outcome(
        text="\n\n".join("\n".join([show_document(*joined), *tracing.show_origin(way)]) for joined, way in with_ways),
        data=DatasetHead(
            documents=[
                {"place": place, "id": row.id, "source": row.source, "text": row.text}
                | ({"values": attributes[""]} if "" in attributes else {"attributes": attributes})
                | way
                for (row, attributes, place, _), way in with_ways
            ]
        ),
    )


# --- outputs ----------------------------------------------------------------------------------------------------------


def _outputs(target: str) -> list[tuple[str, Writer]]:
    """Return the files of an output with their writers; none if the path is a dataset, or a shard of one."""
    whole = is_folder(target)
    home = targets.home_of(target)
    if not (whole or exists(target)) or home.kind == "dataset":
        return []
    if home.kind == "output" and (manifest := publication.load_manifest(home.root)):
        name, writer = home.name(target), recorded_format(manifest.settings).writer()
        parts = [part.path for part in manifest.parts if part.label != REJECTED]
        chosen = [path for path in parts if path == name or path.startswith(f"{name}/" if name else "")]
        return [(target + path.removeprefix(name) if name else join(target, path), writer) for path in chosen]
    if whole and is_folder(join(target, "documents")):
        return []
    paths = [join(target, path) for path in targets.data_files(target)] if whole else [target]
    return [(path, result.writer()) for path in paths if (result := format_of(path))]


def _of_output(context: Context, options: Options, outputs: list[tuple[str, Writer]]) -> Outcome:
    """Show the first documents of an output, or those with an id."""
    documents = _of_files(outputs, 2 * context.config.max_document_bytes)
    matches = (document for document in documents if options.id is None or _is_called(document[0], options.id))
    results = list(islice(matches, options.count if options.id is None else None))
    if options.id is not None and not results:
        got = f"got none in {amount(len(outputs), 'file')}"
        raise ConfigError(f"expected a document with the id or URL {options.id!r}, {got}")
    return _outcome(results)


def _is_called(row: DocumentRow, identifier: str) -> bool:
    return is_called(b'{"metadata":%b}' % bytes(row.metadata), row.id, identifier)


def _of_files(outputs: list[tuple[str, Writer]], max_bytes: int) -> Iterator[Joined]:
    for path, writer in outputs:
        names = types_of(writer, {})
        source = FileDocuments(path, writer, max_bytes, {name: {""} for name in names})
        for number, (document, [value]) in enumerate(source, 1):
            place = f"{path}:{number}" if writer.has_json_lines() else f"{path}, document {number}"
            row = DocumentRow(document.id, document.text, document.source, metadata=document.raw_metadata)
            values = {name: msgspec.to_builtins(getattr(value, name)) for name in names}
            yield row, {"": {name: value for name, value in values.items() if value is not None}}, place, b""


# --- datasets ---------------------------------------------------------------------------------------------------------


def _places(context: Context) -> tuple[Dataset, list[str]]:
    targets = context.options.targets
    if context.options.config is None:
        if not targets:
            raise ConfigError("expected a shard's path, or a configuration (-c)")
        path = targets[0]
        if is_folder(join(path, "documents")):
            dataset = open_dataset(path, None, None)
            return dataset, dataset.shards()
        root, result, shard = path.rpartition("/documents/")
        if not result and path.startswith("documents/"):
            root, shard = ".", path.removeprefix("documents/")
        _check_there(path)
        if not root:
            folder, shard = os.path.split(path)
            return Dataset(folder or ".", ""), [shard]
        return open_dataset(root, None, None), [shard]
    dataset = context.dataset
    if not targets:
        return dataset, dataset.shards()
    shards = [dataset.shard_of(target.removeprefix(dataset.documents + "/")) for target in targets]
    for shard in shards:
        _check_there(dataset.shard_path(shard))
    return dataset, shards


def _check_there(path: str) -> None:
    if not exists(path):
        raise ConfigError(f"{path}: expected a shard, got {missing_reason(path)}; check its name{not_in(path)}")


def _read(source: Source, shard: str, limit: int, id: str | None) -> Iterator[Joined]:
    if id is not None and (results := _indexed_rows(source, shard, limit, id)) is not None:
        yield from results
        return
    for row, line, raw, number in source.raw_rows(shard, limit):
        if id is None or is_called(line, row.id, id):
            yield _joined(source, shard, row, line, raw, number)


def _joined(
    source: Source, shard: str, row: DocumentRow, line: bytes, raw: Mapping[str, msgspec.Raw], number: int
) -> Joined:
    attributes = {name: msgspec.json.decode(item) for name, item in raw.items()}
    return row, attributes, f"{source.dataset.shard_path(shard)}:{number}", line


def _indexed_rows(source: Source, shard: str, limit: int, id: str) -> list[Joined] | None:
    """Return the documents with an id in a file in place; None if that does not tell."""
    dataset = source.dataset
    state = row_index.current(dataset, shard) if dataset.in_place else None
    if state is None or not state.source or has_scheme(id):
        return None
    results = []
    for number in row_index.rows_of(dataset, shard, state.source, id):
        with closing(source.raw_rows(shard, limit, number)) as rows:
            row = next(rows, None)
        if row is None or row[0].id != id:
            return None
        results.append(_joined(source, shard, *row))
    return results
