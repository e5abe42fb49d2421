"""The files of an output, or a release, as documents: each is read as its output format says."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from toolkit.data import schema
from toolkit.data.document_fields import METADATA
from toolkit.data.documents import BAD_ROW, LATE_DECODER, Document, LateDocument, Rows, check_metadata, explain_bad_row
from toolkit.data.schema import ANY, INT, STR, Type, field_name
from toolkit.errors import ConfigError, DataError
from toolkit.inspect.targets import LONGEST, Format, format_of, recorded_format
from toolkit.mix.join import JoinedKey, narrowed
from toolkit.mix.publication import Manifest
from toolkit.mix.writer import WRITERS, Reading, Writer
from toolkit.rules.checker import Name
from toolkit.storage.json_files import decoder_of
from toolkit.storage.paths import join
from toolkit.storage.reading import Lines, content_digest

_DOCUMENT = Name(
    Type("object", fields=(("id", STR), ("source", STR), ("chars", INT), ("metadata", Type("map", ANY)))),
    "document",
    open=True,
)
_METADATA = Name(Type("map", ANY), "document.metadata", open=True)
ARGUMENTS = ("r0", "document")


def names_in_file(writer: Writer | None, merged: Mapping[str, Any]) -> dict[str, Name]:
    """Return the names for expressions over a file's documents.

    Args:
        writer: Writer of the file; None for documents.
        merged: types of the attributes that are in the documents, in the form of `toolkit.data.schema`.
    """
    return {"document": _DOCUMENT, METADATA: _METADATA} | {
        key: Name(type_, f"r0.{field_name(key)}") for key, type_ in types_of(writer, merged).items()
    }


def types_of(writer: Writer | None, merged: Mapping[str, Any]) -> dict[str, Type]:
    """Return the types of the values in a file, by name; the arguments are those of `names_in_file`.

    A format that reads its files by its own code gives the documents, and the label alone.
    """
    declared = writer.READING.types if writer else {}
    results = {name: schema.from_annotation(annotation, name) for name, annotation in declared.items()}
    if writer and not writer.has_json_lines():
        return {name: type_ for name, type_ in results.items() if name == "label"}
    return results | {key: schema.from_json(type_) for key, type_ in merged.items()}


def merged_types(manifest: Manifest) -> dict[str, Any]:
    """Return the types of attributes merged into documents; null where only some streams have them."""
    streams = manifest.settings["streams"]
    types: dict[str, Type] = {}
    sure = Counter[str]()
    for stream in streams if recorded_format(manifest.settings).writer().takes_all() else ():
        paths = (join(stream["name"], joined["set"]) for joined in stream["attributes"])
        keys = [key for path in paths for key in msgspec.convert(manifest.sets.get(path, []), list[JoinedKey])]
        sure.update({key.name for key in keys if not key.default})
        for key in keys:
            types[key.name] = schema.union(types.get(key.name, schema.NEVER), key.declared)
    nullable = {name for name in types if sure[name] < len(streams)}
    return {
        name: schema.to_json(schema.nullable(type_) if name in nullable else type_)
        for name, type_ in sorted(types.items())
    }


class _Labelled(NamedTuple):
    label: str | None


class _Text(msgspec.Struct):
    text: msgspec.Raw


def expected_format(path: str) -> Format | None:
    """Return the format of a file without a manifest; None if it has documents, or nothing.

    Raises:
        ConfigError: if no installed format takes it for its own, and its first line is no document.
    """
    if (result := format_of(path)) is not None:
        return result
    with Lines(path, LONGEST, fixed=True) as lines:
        first = next(lines, None)
    try:
        if first is not None:
            msgspec.json.decode(first, type=_Text)
    except BAD_ROW:
        formats = ", ".join(WRITERS.names())
        raise ConfigError(
            f"{path}:1: expected a document (an object with `text`), or a line of a format ({formats}), got neither; "
            "`ingest` takes other keys: {format: jsonl, fields: {text: KEY}}"
        ) from None
    return None


def shard_documents(lines: Lines, path: str) -> Iterator[Document]:
    """Yield the documents of a shard."""
    rows = Rows(lines, LATE_DECODER, path)
    for row, line in rows:
        _check_metadata(row.metadata, path, rows.number, row.id)
        yield LateDocument(row.text, id=row.id, source=row.source, metadata=row.metadata, row=line)


def _check_metadata(metadata: msgspec.Raw, path: str, number: int, id: str) -> None:
    try:
        check_metadata(metadata)
    except BAD_ROW as error:
        raise DataError(explain_bad_row(metadata, error), path=path, line=number, id=id) from None


class FileDocuments:
    """The documents of a file.

    Args:
        path: Path of the file.
        writer: Writer of its format; None for documents.
        max_bytes: a longer line is an error.
        used_fields: Fields of the needed values, by key.
        merged: types of the attributes that are in the documents (see `names_in_file`).

    Attributes:
        content: xxh3-128 (hex) of the uncompressed bytes, when all documents have been read.
        stored: returns how many bytes of the file have been read; none of a file that is no lines.
    """

    def __init__(
        self,
        path: str,
        writer: Writer | None,
        max_bytes: int,
        used_fields: Mapping[str, set[str]],
        merged: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.path = path
        self.content = ""
        self.stored: Callable[[], int] = int
        self._writer = writer
        self._types = types_of(writer, merged)
        self._max = max_bytes
        self._used = used_fields

    def __iter__(self) -> Iterator[tuple[Document, list[Any]]]:
        """Yield the documents with the arguments of their expressions."""
        writer = self._writer
        if writer and not writer.CONCATENATES:
            for document, label in writer.read_file(self.path):
                yield document, [_Labelled(label)]
            self.content = content_digest(self.path)
            return
        with Lines(self.path, self._max, digest=True) as lines:
            self.stored = lines.stored
            read = writer.read(lines, self._max) if writer else None
            for document, value in self._rows(lines) if read is None else self._read(read, lines):
                yield document, [value]
            self.content = lines.content or ""

    def _read(self, read: Iterator[tuple[Document, str | None]], lines: Lines) -> Iterator[tuple[Document, _Labelled]]:
        """Yield documents by the format's own code."""
        try:
            for document, label in read:
                yield document, _Labelled(label)
        except DataError as error:
            raise DataError(error.message, path=self.path, line=lines.number, id=error.id) from None

    def _rows(self, lines: Lines) -> Iterator[tuple[Document, Any]]:
        """Yield the documents of JSON lines."""
        reading = self._writer.READING if self._writer else Reading()
        id_keys = self._writer.ID if self._writer else Writer.ID
        values, nothing = self._values()
        spelled = map(self._writer.respelled, lines) if self._writer else lines
        rows: Rows[Any] = Rows(spelled, decoder_of(self._row_type(reading, id_keys, values, nothing)), self.path)
        for row, line in rows:
            id, metadata = row.id, row.metadata
            if len(id_keys) > 1:
                id = _inner(metadata if id_keys[0] == reading.headers else id, id_keys[1:])
            if reading.headers:
                metadata = msgspec.Raw(b'{"warc_headers":%b}' % bytes(metadata))
            else:
                _check_metadata(metadata, self.path, rows.number, id)
            yield (
                LateDocument(row.text, id=id, source=row.source, metadata=metadata, row=line),
                (row.values or nothing) if values else None,
            )

    def _row_type(self, reading: Reading, id_keys: Sequence[str], values: Any, nothing: Any) -> type[msgspec.Struct]:
        """Return the type of a line, with the needed fields alone."""
        keys = {"text": reading.text, "metadata": reading.headers or "metadata", "values": reading.values}
        fields: list[Any] = [("text", msgspec.Raw), ("metadata", msgspec.Raw, _NULL)]
        mandatory = self._writer is None  # in documents id and source are
        if len(id_keys) == 1:
            keys["id"] = id_keys[0]
            fields.append(("id", str) if mandatory else ("id", str, ""))
        elif id_keys and id_keys[0] != reading.headers:
            keys["id"] = id_keys[0]
            fields.append(("id", msgspec.Raw, _NULL))
        if not reading.headers:
            fields.append(("source", str) if mandatory else ("source", str, ""))
        if values:
            fields.append(("values", values) if nothing is None else ("values", values | None, None))
        names = {name for name, *_ in fields}
        absent: dict[str, Any] = {name: "" for name in ("id", "source") if name not in names}
        return msgspec.defstruct("Row", fields, rename=keys, kw_only=True, namespace=absent)

    def _values(self) -> tuple[Any, Any]:
        """Return the type of the needed values, and an empty one.

        The latter is None unless all may be absent; both are None if none are needed.
        """
        types = {key: narrowed(self._types[key], fields) for key, fields in self._used.items() if key in self._types}
        if not types:
            return None, None
        defaults = {key: None for key, type_ in types.items() if type_.kind in ("nullable", "any")}
        result = schema.struct_of({key: schema.to_python(type_) for key, type_ in types.items()}, defaults)
        return result, result() if len(defaults) == len(types) else None


def label_reader(reading: Reading) -> Callable[[bytes], str | None] | None:
    """Return a reader of the label in a JSON line; None where it is not at a plain path of fields.

    The reader returns None for a line without a label, or that is damaged. Labels of languages are in lower case.
    """
    keys = [reading.values, *reading.label.split(".")]
    if not all(key.isidentifier() for key in keys):
        return None
    row: Any = str
    for key in reversed(keys):
        row = msgspec.defstruct("Row", [("inner", row | None, None)], rename={"inner": key})
    decoder = decoder_of(row)

    def label_of(line: bytes) -> str | None:
        try:
            value = decoder.decode(line)
        except BAD_ROW:
            return None
        while value is not None and not isinstance(value, str):
            value = value.inner
        return value.lower() if value and reading.is_language else value

    return label_of


_NULL = msgspec.Raw(b"null")


def text_at(value: msgspec.Raw, keys: Sequence[str]) -> str | None:
    """Return the text at a path of keys in a JSON text; None if there is none.

    Raises:
        ValidationError, DecodeError: if there is another value, or one on the way is no object.
    """
    for key in keys:
        value = (msgspec.json.decode(value, type=dict[str, msgspec.Raw] | None) or {}).get(key, _NULL)
    return msgspec.json.decode(value, type=str | None)


def _inner(value: msgspec.Raw, keys: Sequence[str]) -> str:
    """Return the text at a path of keys in a JSON text; empty if there is none, or another value."""
    try:
        return text_at(value, keys) or ""
    except BAD_ROW:
        return ""
