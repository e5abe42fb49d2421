"""The parts of an output, or files of others, as a view: each is read as its format says."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
import pyarrow as pa

from toolkit.data import schema
from toolkit.data.documents import BAD_ROW, NO_ATTRIBUTES, Document
from toolkit.data.schema import STR, Type, field_name
from toolkit.data.tables.typed import arrow_type, shape_of
from toolkit.errors import DataError
from toolkit.inspect.documents import FileDocuments, expected_format, merged_types, types_of
from toolkit.inspect.targets import Format, Target, recorded_format
from toolkit.sql.streams import Faults, Stream
from toolkit.sql.views import STREAM, View, distinct, quoted, type_of
from toolkit.storage.options import StorageOptions
from toolkit.storage.paths import join, stat
from toolkit.text.languages.labels import label_of_path

OWN = ("part", "row", "label", "id", "source", "chars", "text", "metadata")
"""Columns of every output; others are the values that its format has for documents."""

ROWS, BYTES = 1024, 8 << 20
"""Rows of a record batch, and code points of their texts, at most; a single document may have more."""


class File(msgspec.Struct, frozen=True):
    """A file of an output.

    Attributes:
        name: of it, below the output folder.
        path: of it.
        format: None for documents.
        label: of all its documents, if that is known.
        documents: in it, if that is known.
        size: stored bytes, if that is known.
    """

    name: str
    path: str
    format: Format | None
    label: str | None
    documents: int | None = None
    size: int | None = None


class Parts(msgspec.Struct, frozen=True):
    """The files of an output.

    Attributes:
        files: in order.
        types: of the attributes that are in documents, by name, in the form of `toolkit.data.schema`.
        limit: bytes of a line, at most.
    """

    files: list[File]
    types: dict[str, Any]
    limit: int


def parts_of(target: Target, limit: int) -> Parts:
    """Return the files of an output, or of a folder of others; a mix's are those of its manifest.

    Args:
        target: what a path is.
        limit: bytes of a line, at most.
    """
    manifest = target.manifest
    if manifest is None:
        paths = {name: join(target.folder, name) for name in target.files}
        files = [File(name, path, expected_format(path), label_of_path(name)) for name, path in paths.items()]
        return Parts(files, {}, limit)
    form, wanted = recorded_format(manifest.settings), set(target.files)
    files = [
        File(part.path, join(target.folder, part.path), form, part.label, part.documents, part.size)
        for part in manifest.parts
        if part.path in wanted
    ]
    return Parts(files, merged_types(manifest), limit)


def of_parts(parts: Parts, faults: Faults, storage: StorageOptions) -> View:
    """Return the view of an output: part, row, label, id, source, chars, text, metadata, and values by name."""
    types: dict[str, Type] = {}
    for file in parts.files:
        types |= types_of(file.format.writer() if file.format else None, parts.types)
    types.pop("label", None)  # that of each row
    stream = _PartsStream(parts, types, faults, storage)
    shown = [quoted(name) for name in OWN[:-1]] + ["metadata::JSON AS metadata"]
    taken = list(OWN)
    for name, type_ in types.items():
        column = name
        while not distinct([*taken, column]):
            column += "_"
        taken.append(column)
        shown.append(f"{_value_of(name, type_)} AS {quoted(column)}")
    return View(stream, f"SELECT {', '.join(shown)} FROM {STREAM}")


def _value_of(name: str, type_: Type) -> str:
    """Return the expression of a value, which is of its type but for JSON, which is text in Arrow."""
    column = quoted(_column(name))
    return f"{column}::{type_of(type_)}" if schema.has_any(type_) else column


def _column(name: str) -> str:
    return f"value {name}"


class _PartsStream(Stream):
    def __init__(self, parts: Parts, types: Mapping[str, Type], faults: Faults, storage: StorageOptions) -> None:
        self._parts, self._types = parts, types
        fields = [
            ("part", pa.string()),
            ("row", pa.int64()),
            ("label", pa.string()),
            ("id", pa.string()),
            ("source", pa.string()),
            ("chars", pa.int64()),
            ("text", pa.large_string()),
            ("metadata", pa.large_string()),
            *((_column(name), arrow_type(type_, maps=True)) for name, type_ in types.items()),
        ]
        super().__init__(pa.schema(fields), faults, storage)

    def batches(self, columns: frozenset[str]) -> Iterator[dict[str, Any]]:
        for file in self._parts.files:
            yield from self._of_file(file, columns)

    def _of_file(self, file: File, columns: frozenset[str]) -> Iterator[dict[str, Any]]:
        found = stat(file.path)
        if file.size is not None and (found is None or found.size != file.size):
            got = "none" if found is None else f"{found.size:,}"
            message = f"expected the part of {file.size:,} bytes that the manifest describes, got {got}; mix again"
            raise DataError(message, path=file.path)
        writer = file.format.writer() if file.format else None
        there = types_of(writer, self._parts.types)
        used = [name for name in there if _column(name) in columns or (name == "label" and "label" in columns)]
        documents = iter(
            FileDocuments(file.path, writer, self._parts.limit, {name: {""} for name in used}, self._parts.types)
        )
        number = 0
        texts = bool(columns & {"text", "chars"})
        while held := _some(documents, texts):
            yield self._arrays(file, held, number, columns, used)
            number += len(held)
        if file.documents is not None and number != file.documents:
            message = f"expected {file.documents:,} documents, as the manifest says, got {number:,}; mix again"
            raise DataError(message, path=file.path)

    def _arrays(
        self,
        file: File,
        held: Sequence[tuple[Document, list[Any]]],
        number: int,
        columns: frozenset[str],
        used: Sequence[str],
    ) -> dict[str, Any]:
        documents = [document for document, _ in held]
        types = {name: self._types.get(name, STR) for name in used}
        values = {name: _plain(held, name, type_) for name, type_ in types.items()}
        found: dict[str, list[Any]] = {
            "part": [file.name] * len(held),
            "row": list(range(number + 1, number + 1 + len(held))),
            "label": values.get("label", [file.label] * len(held)),
            "id": [document.id or None for document in documents],  # formats without ids have empty ones
            "source": [document.source or None for document in documents],
        }
        take = {"chars": lambda each: each.chars, "text": lambda each: each.text, "metadata": _metadata}
        try:
            found |= {name: list(map(of, documents)) for name, of in take.items() if name in columns}
            found |= {_column(name): each for name, each in values.items()}
            return {name: pa.array(found[name], self.schema.field(name).type) for name in columns}
        except (*BAD_ROW, pa.ArrowException) as error:
            message = (
                f"expected values of the declared types in rows {number + 1} to {number + len(held)}, got: {error}"
            )
            raise DataError(message, path=file.path, line=number + 1) from None


def _some(documents: Iterator[tuple[Document, list[Any]]], texts: bool) -> list[tuple[Document, list[Any]]]:
    held, size = [], 0
    for each in islice(documents, ROWS):
        held.append(each)
        size += each[0].chars if texts else 0
        if size >= BYTES:
            break
    return held


def _plain(held: Sequence[tuple[Document, list[Any]]], name: str, type_: Type) -> list[Any]:
    """Return a value of documents as Arrow takes it; those that have none have null."""
    shape, attribute = shape_of(type_, maps=True), field_name(name)
    found = []
    for _, values in held:
        value = msgspec.to_builtins(getattr(values[0], attribute, None)) if values else None
        found.append(shape(value) if shape and value is not None else value)
    return found


def _metadata(document: Document) -> str | None:
    raw = bytes(document.raw_metadata)
    return None if raw in (b"null", b"{}", bytes(NO_ATTRIBUTES)) else raw.decode()
