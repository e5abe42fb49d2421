"""The first documents of an input after ingest, with their fields; nothing is written."""

import itertools
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import IO, Any

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data import document_fields, schema
from toolkit.data.documents import DocumentRow
from toolkit.errors import DataError
from toolkit.ingest.input_rows.input_bytes import InputBytes
from toolkit.ingest.input_rows.rows import InputRows, find_damage, open_undamaged
from toolkit.ingest.plan import InputToIngest
from toolkit.ingest.reader import SAMPLE, SAMPLE_BYTES, EndOfSample, Input, Rejects, Sample
from toolkit.storage.paths import missing_reason, stat


class Field(ConfigStruct):
    """A field of documents.

    Attributes:
        name: Name in rules; of a document's own keys the key alone.
        type: Type of its values, null left out.
        documents: Documents that have it, and not null.
    """

    name: str
    type: str
    documents: int


class Preview(ConfigStruct):
    """The beginning of an input.

    Attributes:
        input: its path.
        format: Format in the configuration.
        documents: the first.
        looked_at: documents that the fields are of.
        fields: Fields in their order, those of the metadata in its place.
        counts: Counts of left out items by reason, and of documents.
        paths: documents by the paths of their fields (see `toolkit.data.document_fields.FieldCounts`).
    """

    input: str
    format: str
    documents: list[dict[str, Any]]
    looked_at: int
    fields: list[Field]
    counts: dict[str, int]
    paths: list[dict[str, int]]


_KEYS = DocumentRow.__struct_fields__


class UnwrittenRejects(Rejects):
    """Bad items without output."""

    def __init__(self) -> None:
        super().__init__("")

    def add(self, *_: Any, **__: Any) -> None:
        pass


def preview(work: InputToIngest, count: int) -> Preview:
    """Return the beginning of an input.

    Args:
        work: the input.
        count: documents to show.

    Raises:
        DataError: as ingest would, if the beginning is not sound.
    """
    result = stat(work.path)
    if result is None:
        raise DataError(f"expected an input file, got {missing_reason(work.path)}", path=work.path)
    open_ = InputBytes(work.path, result).open
    try:
        return _preview(work, count, open_)
    except DataError:
        damage = find_damage(work.entry, open_)
        if damage is None:
            raise
        return _preview(work, count, partial(open_undamaged, open_, damage))


def _preview(work: InputToIngest, count: int, open_: Callable[[], IO[bytes]]) -> Preview:
    common = work.entry.settings()
    rejects = UnwrittenRejects() if common.skips else None
    source = Input(work.path, common.source, work.max_document_bytes, rejects, open_, sample=Sample())
    lines: list[bytes] = []
    size = 0
    rows = InputRows(source, common, work.entry.reader(), work.files[0].relative).rows()
    with suppress(EndOfSample):
        for row in itertools.islice(rows, SAMPLE):
            lines.append(row.line)
            if (size := size + len(row.line)) > SAMPLE_BYTES:
                break
    paths = document_fields.FieldCounts()
    for line in lines:
        paths.add(document_fields.paths_in(line))
    return Preview(
        input=work.path,
        format=common.format,
        documents=[msgspec.json.decode(line) for line in lines[:count]],
        looked_at=len(lines),
        fields=_fields(lines),
        counts=dict(source.counts),
        paths=paths.counted(),
    )


def _fields(lines: list[bytes]) -> list[Field]:
    types: dict[str, schema.Type] = {}
    counts: dict[str, int] = {}
    for line in lines:
        for name, value in _flat(msgspec.json.decode(line)):
            type_ = schema.infer(value)
            types[name] = schema.union(types[name], type_) if name in types else type_
            counts[name] = counts.get(name, 0) + (value is not None)
    order = [name for name in types if not name.startswith("metadata.")]
    inside = [name for name in types if name.startswith("metadata.")]
    at = order.index("metadata") + 1 if "metadata" in order else len(order)
    return [
        Field(
            name=name if name in _KEYS or name in inside else f"document.{name}",
            type=str(types[name].not_null),
            documents=counts[name],
        )
        for name in (*order[:at], *inside, *order[at:])
        if name != "metadata" or not inside
    ]


def _flat(row: dict[str, Any]) -> list[tuple[str, Any]]:
    metadata = row.get("metadata")
    inside = metadata.items() if isinstance(metadata, dict) else ()
    return [*row.items(), *((f"metadata.{name}", value) for name, value in inside)]
