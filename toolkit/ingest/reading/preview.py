"""The first documents of an input as an ingest would make them, and the fields that they have; nothing is written."""

import itertools
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import IO, Any

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data import schema
from toolkit.data.documents import DocumentRow
from toolkit.data.metadata_fields import FieldCounts, paths_in
from toolkit.data.schema import Type
from toolkit.errors import DataError
from toolkit.ingest.plan import InputToIngest
from toolkit.ingest.reader import SAMPLE, SAMPLE_BYTES, EndOfSample, Input, Rejects, Sample
from toolkit.ingest.reading import salvage
from toolkit.ingest.reading.input_bytes import InputBytes
from toolkit.ingest.reading.rows import Documents
from toolkit.storage.paths import lacking, stat


class Field(ConfigStruct):
    """A field of documents.

    Attributes:
        name: as rules have it; of a document's own keys the key alone.
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
        format: by the configuration.
        documents: the first.
        looked_at: documents that the fields are of.
        fields: in their order, those of the metadata in its place.
        counts: what was left out on the way, and the documents.
        paths: documents by the paths of their fields (see `toolkit.data.metadata_fields.FieldCounts`).
    """

    input: str
    format: str
    documents: list[dict[str, Any]]
    looked_at: int
    fields: list[Field]
    counts: dict[str, int]
    paths: list[dict[str, int]]


_KEYS = DocumentRow.__struct_fields__


class Unkept(Rejects):
    """Bad items that are counted, and kept nowhere."""

    def __init__(self) -> None:
        super().__init__("")

    def add(self, *_: Any, **__: Any) -> None:
        pass


def preview(work: InputToIngest, shown: int) -> Preview:
    """Return the beginning of an input.

    Args:
        work: the input.
        shown: documents to show.

    Raises:
        DataError: as ingest would, if the beginning is not sound.
    """
    result = stat(work.path)
    if result is None:
        raise DataError(f"expected an input file, got {lacking(work.path)}", path=work.path)
    open_ = InputBytes(work.path, result).open
    try:
        return _preview(work, shown, open_)
    except DataError:
        damage = salvage.wanted(work.entry, open_)
        if damage is None:
            raise
        return _preview(work, shown, partial(salvage.opened, open_, damage))


def _preview(work: InputToIngest, shown: int, open_: Callable[[], IO[bytes]]) -> Preview:
    common = work.entry.settings()
    rejects = Unkept() if common.skips else None
    source = Input(work.path, common.source, work.max_document_bytes, rejects, open_, sample=Sample())
    lines: list[bytes] = []
    size = 0
    rows = Documents(source, common, work.entry.reader(), work.files[0].relative).rows()
    with suppress(EndOfSample):
        for row in itertools.islice(rows, SAMPLE):
            lines.append(row.line)
            if (size := size + len(row.line)) > SAMPLE_BYTES:
                break
    paths = FieldCounts()
    for line in lines:
        paths.add(paths_in(line))
    return Preview(
        input=work.path,
        format=common.format,
        documents=[msgspec.json.decode(line) for line in lines[:shown]],
        looked_at=len(lines),
        fields=_fields(lines),
        counts=dict(source.counts),
        paths=paths.counted(),
    )


def _fields(lines: list[bytes]) -> list[Field]:
    types: dict[str, Type] = {}
    there: dict[str, int] = {}
    for line in lines:
        for name, value in _flat(msgspec.json.decode(line)):
            type_ = schema.infer(value)
            types[name] = schema.union(types[name], type_) if name in types else type_
            there[name] = there.get(name, 0) + (value is not None)
    order = [name for name in types if not name.startswith("metadata.")]
    inside = [name for name in types if name.startswith("metadata.")]
    at = order.index("metadata") + 1 if "metadata" in order else len(order)
    return [
        Field(
            name=name if name in _KEYS or name in inside else f"document.{name}",
            type=str(types[name].not_null),
            documents=there[name],
        )
        for name in (*order[:at], *inside, *order[at:])
        if name != "metadata" or not inside
    ]


def _flat(row: dict[str, Any]) -> list[tuple[str, Any]]:
    metadata = row.get("metadata")
    inside = metadata.items() if isinstance(metadata, dict) else ()
    return [*row.items(), *((f"metadata.{name}", value) for name, value in inside)]
