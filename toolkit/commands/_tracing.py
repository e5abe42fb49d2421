"""Documents as they are shown; the way of one: its item of an input, or why it was left out, its lines in an output."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data.dataset import Dataset
from toolkit.data.documents import DOCUMENT_DECODER, DocumentRow
from toolkit.data.excerpts import escaped
from toolkit.describe.provenance import counted
from toolkit.errors import ConfigError, ToolkitError, amount, short
from toolkit.execution.executors import Report, Task
from toolkit.ingest.input_rows.preview import Preview, preview
from toolkit.ingest.plan import InputToIngest
from toolkit.inspect.documents import FileDocuments
from toolkit.inspect.targets import Format, recorded_format
from toolkit.mix import publication
from toolkit.mix.settings import REJECTED
from toolkit.records import left_out
from toolkit.records.left_out import LeftOut
from toolkit.stages.context import Context, all_values, table
from toolkit.storage import store_of
from toolkit.storage.paths import join

PLACES = 10
"""Lines of an output that are named of a document, which may be repeated."""


def items_left_out(datasets: Iterable[Dataset], name: str, looked_in: str, *, is_found: bool) -> list[LeftOut]:
    """Return ingest's left-out items with an id or URL.

    Args:
        datasets: Datasets with the inputs.
        name: an id or a URL.
        looked_in: Place of the search, for the message.
        is_found: True if a document was found there.

    Raises:
        ConfigError: if there is nothing, neither there nor among the items.
    """
    ingested = [dataset for dataset in datasets if not dataset.in_place]
    results = [item for dataset in ingested for item in left_out.find(dataset, name)]
    if not (results or is_found):
        more = ", and none among those that `ingest` left out" if ingested else ""
        raise ConfigError(f"expected a document with the id or URL {name!r}, got none in {looked_in}{more}")
    return results


def show_left_out(items: Sequence[LeftOut]) -> str:
    """Return left-out items for people."""
    texts = []
    for item in items:
        names = (("id", item.id), ("url", item.url), ("source", item.source))
        lines = [f"{item.input}, item {item.number:,}", f"  left out by `ingest`: {item.reason}"]
        texts.append("\n".join([*lines, *(f"  {name + ':':8} {escaped(value)}" for name, value in names if value)]))
    return "\n\n".join(texts)


def origin(dataset: Dataset, shard: str, row: int) -> dict[str, Any]:
    """Return a document's ``input`` and the number of its ``item``, if known."""
    if dataset.in_place:
        return {}
    input_ = left_out.input_of(dataset, shard, row)
    return {} if input_ is None else {"input": input_[0]} | ({} if input_[1] is None else {"item": input_[1]})


def show_origin(way: Mapping[str, Any]) -> list[str]:
    """Return lines with a document's origin and places in the output."""
    lines = []
    if "input" in way:
        lines.append(f"  from {way['input']}" + (f", item {way['item']:,}" if "item" in way else ""))
    if "output" in way:
        lines.append("  in the output: " + (", ".join(way["output"]) or "nowhere"))
    return lines


class PartToSearch(ConfigStruct):
    """A part of an output, and the sources and ids to find."""

    path: str
    format: Format
    names: list[tuple[str, str]]
    max_bytes: int


def in_output(
    context: Context, names: Iterable[tuple[str, str]], output: str | None = None
) -> dict[tuple[str, str], list[str]] | None:
    """Return the places of documents in an output, by source and id.

    An output without sources is searched by ids alone.

    Args:
        context: Context of the command.
        names: Sources and ids of the documents.
        output: Output of the mix; by default that of the configuration.

    Returns:
        None if nothing is published there, or its format has no ids.

    Raises:
        StepFailed: if a part cannot be read: a document may be in it.
    """
    if output is None:
        mix = context.source.value.get("mix")
        settings = mix.get("output") if isinstance(mix, dict) else None
        output = settings.get("path") if isinstance(settings, dict) else None
    requested = sorted(set(names))
    manifest = publication.load_manifest(output) if output and requested else None
    if manifest is None or output is None:
        return None
    format_ = recorded_format(manifest.settings)
    writer = format_.writer()
    if not (writer.HAS_TEXT and writer.ID):
        return None
    parts = [part for part in manifest.parts if part.label != REJECTED]
    paths = [(part, join(output, part.path)) for part in parts]
    limit = 2 * context.config.max_document_bytes
    tasks = [Task(path, PartToSearch(path, format_, requested, limit), part.size) for part, path in paths]
    results: dict[tuple[str, str], list[str]] = {name: [] for name in requested}
    for by_name in all_values(context.run("output", search_part, tasks)):
        for name, places in by_name.items():
            results[name] = [*results[name], *places][:PLACES]
    return results


def search_part(work: PartToSearch, report: Report) -> dict[tuple[str, str], list[str]]:
    """Return the places in a part, by source and id."""
    writer, results = work.format.writer(), dict[tuple[str, str], list[str]]()
    by_id: dict[str, list[tuple[str, str]]] = {}
    for name in work.names:
        by_id.setdefault(name[1], []).append(name)
    for number, (document, _) in enumerate(FileDocuments(work.path, writer, work.max_bytes, {}), 1):
        report(1, 0)
        for name in by_id.get(document.id, ()):
            if document.source in ("", name[0]) and len(results.get(name, ())) < PLACES:
                place = f"{work.path}:{number}" if writer.has_json_lines() else f"{work.path}, document {number}"
                results.setdefault(name, []).append(place)
    return results


# --- documents as they are shown --------------------------------------------------------------------------------------


TEXT_LINES = 12
TEXT_CHARS = 160
VALUE_CHARS = 400


def show_document(row: DocumentRow, attributes: Mapping[str, Mapping[str, Any]], place: str, line: bytes = b"") -> str:
    """Return a document as `head` shows it.

    Args:
        row: the document.
        attributes: Attributes of it, by set.
        place: Place of the document.
        line: Line that has it, for its other fields.
    """
    names, dates = (("id", row.id), ("source", row.source)), (("added", row.added), ("created", row.created))
    lines = [place, *(f"  {name + ':':8} {escaped(value)}" for name, value in names if value)]
    lines += [f"  {name}: {escaped(date)}" for name, date in dates if date]
    for key, value in (msgspec.json.decode(row.metadata) or {}).items():
        lines.append(f"  {escaped(key)}: {short(value, VALUE_CHARS)}")
    raw_fields = msgspec.json.decode(line, type=dict[str, msgspec.Raw]) if line else {}
    for key, other in raw_fields.items():
        if key not in DocumentRow.__struct_fields__:
            lines.append(f"  document.{escaped(key)}: {short(msgspec.json.decode(other), VALUE_CHARS)}")
    for set_name, values in attributes.items():
        for key, value in values.items() if isinstance(values, dict) else ():
            lines.append(f"  {f'[{set_name}] ' if set_name else ''}{key}: {short(value, VALUE_CHARS)}")
    text = row.text.split("\n")
    lines.append(f"  text ({len(row.text):,} characters):")
    lines += [f"    | {line[:TEXT_CHARS]}{'…' if len(line) > TEXT_CHARS else ''}" for line in text[:TEXT_LINES]]
    if len(text) > TEXT_LINES:
        lines.append(f"    … {len(text) - TEXT_LINES} more lines")
    return "\n".join(lines)


def first_documents(works: Iterable[InputToIngest], count: int) -> tuple[list[Preview], list[str]]:
    """Return previews of each entry's first input, and errors of unreadable ones.

    Neither is the web read, nor are pages that an index selects.

    Args:
        works: the inputs.
        count: documents of each that are shown.
    """
    first: dict[str, InputToIngest] = {}
    for work in works:
        if store_of(work.path).can_list and not work.files[0].selected:
            first.setdefault(work.entry.name, work)
    results, failed = [], []
    for work in first.values():
        try:
            results.append(preview(work, count))
        except ToolkitError as error:
            failed.append(str(error))
    return results, failed


def show_preview(preview: Preview) -> str:
    """Return the beginning of an input for people: its first documents, and a table of the fields that were found."""
    documents = [
        show_document(DOCUMENT_DECODER.decode(line), {}, f"{preview.input}, document {i} as it would be", line)
        for i, line in enumerate(map(msgspec.json.encode, preview.documents), 1)
    ]
    rows = [["field", "type", "documents"], *([f.name, f.type, f"{f.documents:,}"] for f in preview.fields)]
    head = (
        f"{preview.input}: fields of the first {amount(preview.looked_at, 'document')}, by `format: {preview.format}`"
    )
    counts = f"\n\nthese had: {beside}" if (beside := counted(preview.counts)) else ""
    return "\n\n".join([*documents, f"{head}\n\n{table(rows, right=[2])}{counts}".rstrip()])
