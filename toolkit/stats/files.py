"""The files of an output, or a release, as documents: OSCAR, documents (Dolma), text, Parquet."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import msgspec

from toolkit import schema
from toolkit.documents import (
    BAD_ROW,
    LATE_DECODER,
    Document,
    LateDocument,
    Prediction,
    Rows,
    check_metadata,
    explain_bad_row,
)
from toolkit.errors import ConfigError, DataError
from toolkit.expressions import Name
from toolkit.mixing.join import narrowed
from toolkit.schema import ANY, INT, STR, Type, field_name, nullable
from toolkit.streams import Lines, content_digest
from toolkit.writer import find_writer

Layout = Literal["oscar", "documents", "text", "parquet"]

_DOCUMENT = Name(
    Type("object", fields=(("id", STR), ("source", STR), ("chars", INT), ("metadata", Type("map", ANY)))), "document"
)
_PREDICTION = schema.from_annotation(Prediction, "identification")
_TEXTS = nullable(schema.list_of(STR))
OSCAR_TYPES = {
    "identification": _PREDICTION,
    "sentence_identifications": nullable(schema.list_of(nullable(_PREDICTION))),
    "annotation": _TEXTS,
    "quality_warnings": _TEXTS,
    "categories": _TEXTS,
    "tlsh": nullable(STR),
    "harmful_pp": nullable(schema.FLOAT),
    "harmful_ppl": nullable(schema.FLOAT),
}
"""The fields of ``metadata`` in OSCAR 22.01, 23.01 and what followed; a file has some of them."""

ARGUMENTS = ("r0", "document")


def names(layout: Layout, merged: Mapping[str, Any]) -> dict[str, Name]:
    """What expressions over a file's documents may use.

    Args:
        layout: of the file; of OSCAR the fields of ``metadata`` can be used.
        merged: types of the attributes that are in the documents, in the form of `toolkit.schema`.
    """
    types = {"oscar": OSCAR_TYPES, "parquet": {"label": nullable(STR)}, "documents": _types(merged)}.get(layout, {})
    return {"document": _DOCUMENT} | {key: Name(type_, f"r0.{field_name(key)}") for key, type_ in types.items()}


def _types(merged: Mapping[str, Any]) -> dict[str, Type]:
    return {key: schema.from_json(type_) for key, type_ in merged.items()}


class _Labelled(NamedTuple):
    label: str | None


class _Keys(msgspec.Struct):
    content: msgspec.Raw = msgspec.Raw(b"")
    text: msgspec.Raw = msgspec.Raw(b"")


def layout_of(path: str) -> Layout:
    """What a file holds, by its name and its first line.

    Raises:
        ConfigError: if it is none of the known layouts.
    """
    if path.endswith(".parquet"):
        return "parquet"
    if re.search(r"\.(txt|text)(\.\w+)?$", path):
        return "text"
    with Lines(path, 1 << 30) as lines:
        first = next(lines, None)
    if first is None:
        return "documents"
    try:
        keys = msgspec.json.decode(first, type=_Keys)
    except BAD_ROW:
        keys = _Keys()
    if not (bytes(keys.content) or bytes(keys.text)):
        raise ConfigError(f"{path}:1: expected an object with `content` (OSCAR) or `text` (documents), got neither")
    return "oscar" if bytes(keys.content) else "documents"


def documents(lines: Lines, path: str) -> Iterator[Document]:
    """The documents of a shard."""
    rows = Rows(lines, LATE_DECODER, path)
    for row, line in rows:
        try:
            check_metadata(row.metadata)
        except BAD_ROW as error:
            message = explain_bad_row(row.metadata, error)
            raise DataError(message, path=path, line=rows.number, id=row.id) from None
        yield LateDocument(row.text, id=row.id, source=row.source, metadata=row.metadata, row=line)


class Source:
    """The documents of a file.

    Args:
        path: of the file.
        layout: of it.
        max_bytes: a longer line is an error.
        used_fields: of the values that are needed, by key.
        merged: types of the attributes that are in the documents (see `names`).
    """

    def __init__(
        self,
        path: str,
        layout: Layout,
        max_bytes: int,
        used_fields: Mapping[str, set[str]],
        merged: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.path = path
        self._merged = _types(merged)
        self._layout = layout
        self._max = max_bytes
        self._used = used_fields
        self.content = ""
        """xxh3-128 (hex) of the uncompressed bytes, when all documents have been read."""

    def __iter__(self) -> Iterator[tuple[Document, list[Any]]]:
        """The documents with the values that the names' code refers to."""
        if self._layout == "parquet":
            writer = find_writer("parquet", self.path)()
            for document, label in writer.read_file(self.path):
                yield document, [_Labelled(label)]
            self.content = content_digest(self.path)
            return
        with Lines(self.path, self._max, digest=True) as lines:
            found = {"oscar": self._oscar, "documents": self._documents, "text": self._pieces}[self._layout]
            for document, value in found(lines):
                yield document, [value]
            self.content = lines.content or ""

    def _documents(self, lines: Lines) -> Iterator[tuple[Document, Any]]:
        values = self._values(self._merged)
        if not values.__struct_fields__:
            yield from ((document, None) for document in documents(lines, self.path))
            return
        nothing = None if any(field.required for field in msgspec.structs.fields(values)) else values()
        place: list[Any] = [("attributes", values)] if nothing is None else [("attributes", values | None, None)]
        row_type = msgspec.defstruct("Row", place)
        decoder = msgspec.json.Decoder(row_type)
        for document in documents(lines, self.path):
            try:
                row: Any = decoder.decode(document.row)
            except BAD_ROW as error:
                message = explain_bad_row(document.row, error)
                raise DataError(message, path=self.path, line=lines.number, id=document.id) from None
            yield document, row.attributes or nothing

    def _values(self, known: Mapping[str, Type]) -> type[msgspec.Struct]:
        """Of those of the known keys that are needed; what may be null need not be there."""
        types = {key: narrowed(known[key], fields) for key, fields in self._used.items() if key in known}
        defaults = {key: None for key, type_ in types.items() if type_.kind in ("nullable", "any")}
        return schema.struct_of({key: schema.to_python(type_) for key, type_ in types.items()}, defaults)

    def _oscar(self, lines: Lines) -> Iterator[tuple[Document, Any]]:
        values = self._values(OSCAR_TYPES)
        row_type = msgspec.defstruct(
            "Line",
            [("content", msgspec.Raw), ("metadata", values), ("warc_headers", msgspec.Raw, msgspec.Raw(b"null"))],
        )
        rows: Rows[Any] = Rows(lines, msgspec.json.Decoder(row_type), self.path)
        for row, line in rows:
            metadata = msgspec.Raw(b'{"warc_headers":%b}' % bytes(row.warc_headers))
            yield LateDocument(row.content, metadata=metadata, row=line), row.metadata

    def _pieces(self, lines: Lines) -> Iterator[tuple[Document, Any]]:
        """What stands between blank lines."""
        held: list[bytes] = []
        size = 0
        for line in lines:
            if line.strip():
                held.append(line)
                size += len(line) + 1
                if size > self._max:
                    message = f"expected a piece of at most {self._max:,} bytes, got a longer one"
                    message += "; raise `max_document_bytes`"
                    raise DataError(message, path=self.path, line=lines.number)
            elif held:
                yield self._piece(held, lines.number), None
                held, size = [], 0
        if held:
            yield self._piece(held, lines.number), None

    def _piece(self, lines: list[bytes], number: int) -> Document:
        try:
            return Document(b"\n".join(lines).decode())
        except UnicodeDecodeError as error:
            message = f"expected text in UTF-8, got a piece before this line that is not: {error}"
            raise DataError(message, path=self.path, line=number) from None
