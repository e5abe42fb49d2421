"""The way of a document: the item of an input that it was, or why that was left out, and its lines in the output."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolkit.config.settings import ConfigStruct
from toolkit.data.dataset import Dataset
from toolkit.data.excerpts import escaped
from toolkit.errors import ConfigError
from toolkit.execution.executors import Report, Task
from toolkit.inspect.documents import FileDocuments
from toolkit.inspect.targets import Format, recorded_format
from toolkit.mix import publish
from toolkit.mix.settings import REJECTED
from toolkit.records import left_out
from toolkit.records.left_out import LeftOut
from toolkit.stages.context import Context
from toolkit.storage.paths import join

PLACES = 10
"""Lines of an output that are named of a document, which may be repeated."""


def items_left_out(datasets: Iterable[Dataset], wanted: str, looked_in: str, *, known: bool) -> list[LeftOut]:
    """Return the items that ingest has left out, by their id or URL.

    Args:
        datasets: with the inputs.
        wanted: an id or a URL.
        looked_in: where documents were looked for, for the message.
        known: whether a document was found there.

    Raises:
        ConfigError: if there is nothing, neither there nor among the items.
    """
    ingested = [dataset for dataset in datasets if not dataset.in_place]
    found = [item for dataset in ingested for item in left_out.find(dataset, wanted)]
    if not (found or known):
        more = ", and none among those that `ingest` left out" if ingested else ""
        raise ConfigError(f"expected a document with the id or URL {wanted!r}, got none in {looked_in}{more}")
    return found


def show_left_out(found: Sequence[LeftOut]) -> str:
    """Return items that became no documents for people."""
    shown = []
    for item in found:
        names = (("id", item.id), ("url", item.url), ("source", item.source))
        lines = [f"{item.input}, item {item.number:,}", f"  left out by `ingest`: {item.reason}"]
        shown.append("\n".join([*lines, *(f"  {name + ':':8} {escaped(value)}" for name, value in names if value)]))
    return "\n\n".join(shown)


def origin(dataset: Dataset, shard: str, row: int) -> dict[str, Any]:
    """Return the ``input`` and the ordinal of the ``item`` that a document was made of, as far as they are known."""
    if dataset.in_place:
        return {}
    found = left_out.input_of(dataset, shard, row)
    return {} if found is None else {"input": found[0]} | ({} if found[1] is None else {"item": found[1]})


def show_origin(way: Mapping[str, Any]) -> list[str]:
    """Return lines that say where a document comes from, and where it is in the output."""
    lines = []
    if "input" in way:
        lines.append(f"  from {way['input']}" + (f", item {way['item']:,}" if "item" in way else ""))
    if "output" in way:
        lines.append("  in the output: " + (", ".join(way["output"]) or "nowhere"))
    return lines


class PartToSearch(ConfigStruct):
    """A part of an output, and the ids of the documents that are looked for."""

    path: str
    format: Format
    ids: list[str]
    max_bytes: int


def in_output(context: Context, ids: Iterable[str], output: str | None = None) -> dict[str, list[str]] | None:
    """Return the places of documents in an output, by their ids.

    Args:
        context: of the command.
        ids: of the documents.
        output: of the mix; by default that of the configuration.

    Returns:
        None if nothing is published there, or its format has no ids.
    """
    if output is None:
        mix = context.source.value.get("mix")
        settings = mix.get("output") if isinstance(mix, dict) else None
        output = settings.get("path") if isinstance(settings, dict) else None
    wanted = sorted(set(ids))
    manifest = publish.load_manifest(output) if output and wanted else None
    if manifest is None or output is None:
        return None
    format_ = recorded_format(manifest.settings)
    writer = format_.writer()
    if not (writer.HAS_TEXT and writer.ID):
        return None
    parts = [part for part in manifest.parts if part.label != REJECTED]
    paths = [(part, join(output, part.path)) for part in parts]
    limit = 2 * context.config.max_document_bytes
    tasks = [Task(path, PartToSearch(path, format_, wanted, limit), part.size) for part, path in paths]
    found: dict[str, list[str]] = {id: [] for id in wanted}
    for result in context.run("output", search_part, tasks):
        for id, places in (result.value or {}).items():
            found[id] = [*found[id], *places][:PLACES]
    return found


def search_part(work: PartToSearch, report: Report) -> dict[str, list[str]]:
    """Return the places of documents in a part, by their ids."""
    writer, found = work.format.writer(), dict[str, list[str]]()
    for number, (document, _) in enumerate(FileDocuments(work.path, writer, work.max_bytes, {}), 1):
        report(1, 0)
        if document.id in work.ids and len(found.get(document.id, ())) < PLACES:
            place = f"{work.path}:{number}" if writer.has_json_lines() else f"{work.path}, document {number}"
            found.setdefault(document.id, []).append(place)
    return found
