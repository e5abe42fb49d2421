"""Views over streams, with declared types, and outputs as rows."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Any, NamedTuple, Protocol

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.data import schema
from toolkit.data.documents import BAD_ROW, NO_ATTRIBUTES, Document
from toolkit.data.schema import STR, Type, field_name
from toolkit.data.tables.to_arrow import arrow_type, shape_of
from toolkit.errors import DataError
from toolkit.inspect.documents import FileDocuments, expected_format, merged_types, types_of
from toolkit.inspect.targets import Format, Target, recorded_format
from toolkit.mix.join import JoinedSet, JoinedShard
from toolkit.mix.writer import Writer
from toolkit.records import sets as records
from toolkit.session import Session
from toolkit.sql.streams import DOCUMENT, PLACE, Faults, ScanStream, Shards, column_of
from toolkit.storage.paths import join, stat
from toolkit.text.languages.labels import label_of_path

_PLAIN = {"bool": "BOOLEAN", "int": "BIGINT", "float": "DOUBLE", "float32": "FLOAT", "str": "VARCHAR"}
_SPAN = 'STRUCT("start" BIGINT, "end" BIGINT, "score" DOUBLE)'
_SPAN_IN_JSON = "DOUBLE[]"


def quote(name: str) -> str:
    """Return a name in quotes for SQL.

    >>> quoted("lines-0"), quoted('a"b')
    ('"lines-0"', '"a""b"')
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def distinct(names: Iterable[str]) -> bool:
    """Return True if names differ for SQL, regardless of case."""
    listed = list(names)
    return len({name.casefold() for name in listed}) == len(listed)


def type_of(type_: Type, span: str = _SPAN) -> str:
    """Return the type of a column: what may be null is of the type without that.

    A span is a struct of ``start``, ``end`` and ``score``, a map a MAP; a value of no declared type is JSON, and so is
    an object whose fields SQL cannot tell apart, or that has none.

    Args:
        type_: Declared type.
        span: Type of a span; `_SPAN_IN_JSON` for the type by which JSON is parsed.
    """
    match type_.kind:
        case "span":
            return span
        case "object" if _is_struct(type_):
            fields = (f"{quote(name)} {type_of(inner, span)}" for name, inner in type_.fields)
            return f"STRUCT({', '.join(fields)})"
    if type_.item is not None:
        inner = type_of(type_.item, span)
        return {"list": f"{inner}[]", "map": f"MAP(VARCHAR, {inner})"}.get(type_.kind, inner)
    return _PLAIN.get(str(type_), "JSON")


def _is_struct(type_: Type) -> bool:
    return bool(type_.fields) and distinct(name for name, _ in type_.fields)


def row_type(types: Mapping[str, Type]) -> str:
    """Return the type for parsing a row of attributes with these keys."""
    keys = ", ".join(f"{quote(key)} {type_of(type_, _SPAN_IN_JSON)}" for key, type_ in types.items())
    return f'STRUCT("source" VARCHAR, "id" VARCHAR, "attributes" STRUCT({keys}))'


def value_of(type_: Type, parsed: str, numbers: "count[int] | None" = None) -> str:
    """Return the expression for a column's value from its parsed JSON.

    Args:
        type_: Declared type.
        parsed: Expression of the value as parsed, where a span is a list.
        numbers: Numbers for variables of lambdas.
    """
    numbers = numbers or count()
    if not _has_span(type_):
        return parsed
    match type_.kind:
        case "span":
            parts = f"{{'start': {parsed}[1]::BIGINT, 'end': {parsed}[2]::BIGINT, 'score': {parsed}[3]}}"
            return _unless_null(parsed, parts)
        case "object":
            fields = (
                f"{literal(name)}: {value_of(inner, f'{parsed}.{quote(name)}', numbers)}"
                for name, inner in type_.fields
            )
            return _unless_null(parsed, f"{{{', '.join(fields)}}}")
    assert type_.item
    if type_.kind == "nullable":
        return value_of(type_.item, parsed, numbers)
    item = f"x{next(numbers)}"
    change = f"lambda {item}: {value_of(type_.item, item, numbers)}"
    if type_.kind == "map":
        return f"map(map_keys({parsed}), list_transform(map_values({parsed}), {change}))"
    return f"list_transform({parsed}, {change})"


def _unless_null(parsed: str, value: str) -> str:
    return f"CASE WHEN {parsed} IS NULL THEN NULL ELSE {value} END"


def _has_span(type_: Type) -> bool:
    """Return True if the type has a span outside JSON."""
    if type_.kind == "object" and not _is_struct(type_):
        return False
    return type_.kind == "span" or any(
        _has_span(inner) for inner in (type_.item, *(inner for _, inner in type_.fields)) if inner
    )


def _fields(reading: "Reading") -> list[str]:
    """Return the columns of documents but for id and source; in a file of ours the text stands as JSON."""
    text = "text" if reading.works and reading.works[0].dataset.in_place else "text->>'$' AS text"
    return [text, "added", "created", f"{METADATA} AS metadata"]


METADATA = "metadata::JSON"

STREAM = "{stream}"
"""Stands in a query for the name that the stream has in the session."""


class View(NamedTuple):
    """A stream, and the query over it; `STREAM` stands for the stream."""

    stream: ScanStream
    query: str


class Reading(Protocol):
    """The parts of all views of a dataset.

    Attributes:
        session: Session of the scans.
        faults: Errors of the scans.
    """

    session: Session
    faults: Faults

    @property
    def works(self) -> Sequence[JoinedShard]:
        """Return the shards."""


def of_documents(reading: Reading) -> View:
    """Return the view of documents: shard, row, chars and bytes (of the row index), and their fields."""
    selection = [*map(quote, (*PLACE, "id", "source")), *_fields(reading)]
    stream = Shards(reading.works, [], reading.faults, reading.session)
    return View(stream, f"SELECT {', '.join(selection)} FROM {STREAM}")


def of_set(reading: Reading, joined: JoinedSet) -> View:
    """Return the view of a set: shard, row, id, source, and its keys."""
    stream = Shards(reading.works, [joined], reading.faults, reading.session, all_sets=True)
    own = ["shard", "row", "id", "source"]
    selection = ["shard", quote("row"), "a0.id AS id", "a0.source AS source", *_keys([joined], own)]
    return View(stream, f"SELECT {', '.join(selection)} FROM {_parsed_sets([joined])}")


def of_joined(reading: Reading, sets: Sequence[JoinedSet]) -> View:
    """Return the view of documents joined with sets, row by row: the columns of documents, and each key."""
    stream = Shards(reading.works, sets, reading.faults, reading.session)
    named = _least(reading.works, sets)
    id, source = ("id", "source") if named is None else (f"a{named}.id AS id", f"a{named}.source AS source")
    selection = [*map(quote, PLACE), id, source, *_fields(reading)]
    selection += _keys(sets, [*PLACE, *DOCUMENT])
    return View(stream, f"SELECT {', '.join(selection)} FROM {_parsed_sets(sets)}")


def _parsed_sets(sets: Sequence[JoinedSet]) -> str:
    """Return the query for parsing the rows of sets; what is not used of it, DuckDB leaves out."""
    parsed = []
    for i, joined in enumerate(sets):
        type_ = row_type({key.key: key.declared for key in joined.keys})
        structure = literal(msgspec.json.encode(type_).decode())
        parsed.append(f", from_json_strict({column_of(i)}, {structure}) AS a{i}")
    return f"(SELECT * {''.join(parsed)} FROM {STREAM})"


def _keys(sets: Sequence[JoinedSet], reserved: Sequence[str]) -> Iterator[str]:
    """Yield the columns of keys; one that is called as another column has the name of its set before its own."""
    folded = {name.casefold() for name in reserved}
    for i, joined in enumerate(sets):
        for key in joined.keys:
            name = key.name
            if name.casefold() in folded or key.hidden:
                name = f"{joined.set}.{key.name}"
            while name.casefold() in folded:
                name += "_"
            folded.add(name.casefold())
            parsed = f"a{i}.attributes.{quote(key.key)}"
            yield f"{value_of(key.declared, parsed)} AS {quote(name)}"


def _least(works: Sequence[JoinedShard], sets: Sequence[JoinedSet]) -> int | None:
    """Return the cheapest set with ids and sources; None if only the documents can be relied on."""
    sizes = {}
    for i, joined in enumerate(sets):
        if joined.ours and works:
            record = records.load_record(works[0].dataset, joined.set, works[0].shard)
            sizes[i] = record.output.content_size if record else 0
    return min(sizes, key=lambda i: sizes[i], default=None)


OWN = ("part", "row", "label", "id", "source", "chars", "text", "metadata")
"""Columns of every output; others are the values that its format has for documents."""

ROWS, BYTES = 1024, 8 << 20
"""Rows of a record batch, and code points of their texts, at most; a single document may have more."""


class File(msgspec.Struct, frozen=True):
    """A file of an output.

    Attributes:
        name: Name of it, below the output folder.
        path: Path of it.
        format: None for documents.
        label: Label of all its documents, if that is known.
        documents: Number of documents, if known.
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
        files: Files in order.
        types: Types of the attributes that are in documents, by name, in the form of `toolkit.data.schema`.
        limit: bytes of a line, at most.
    """

    files: list[File]
    types: dict[str, Any]
    limit: int


def parts_of(target: Target, limit: int) -> Parts:
    """Return the files of an output, or of an external folder; a mix's are those of its manifest.

    Args:
        target: Description of a path.
        limit: bytes of a line, at most.
    """
    manifest = target.manifest
    if manifest is None:
        paths = {name: join(target.folder, name) for name in target.files}
        files = [File(name, path, expected_format(path), label_of_path(name)) for name, path in paths.items()]
        return Parts(files, {}, limit)
    form, names = recorded_format(manifest.settings), set(target.files)
    files = [
        File(part.path, join(target.folder, part.path), form, part.label, part.documents, part.size)
        for part in manifest.parts
        if part.path in names
    ]
    return Parts(files, merged_types(manifest), limit)


def of_parts(parts: Parts, faults: Faults, session: Session) -> View:
    """Return the view of an output: part, row, label, id, source, chars, text, metadata, and values by name."""
    types: dict[str, Type] = {}
    for file in parts.files:
        types |= types_of(file.format.writer() if file.format else None, parts.types)
    types.pop("label", None)  # that of each row
    stream = _PartsStream(parts, types, faults, session)
    selection = [quote(name) for name in OWN[:-1]] + ["metadata::JSON AS metadata"]
    columns = list(OWN)
    for name, type_ in types.items():
        column = name
        while not distinct([*columns, column]):
            column += "_"
        columns.append(column)
        selection.append(f"{_value_of(name, type_)} AS {quote(column)}")
    return View(stream, f"SELECT {', '.join(selection)} FROM {STREAM}")


def _value_of(name: str, type_: Type) -> str:
    """Return the expression of a value, cast if it has JSON."""
    column = quote(_column(name))
    return f"{column}::{type_of(type_)}" if schema.has_any(type_) else column


def _column(name: str) -> str:
    return f"value {name}"


class _PartsStream(ScanStream):
    def __init__(self, parts: Parts, types: Mapping[str, Type], faults: Faults, session: Session) -> None:
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
        super().__init__(pa.schema(fields), faults, session)

    def batches(self, columns: frozenset[str]) -> Iterator[dict[str, Any]]:
        for file in self._parts.files:
            yield from self._of_file(file, columns)

    def _of_file(self, file: File, columns: frozenset[str]) -> Iterator[dict[str, Any]]:
        result = stat(file.path)
        if file.size is not None and (result is None or result.size != file.size):
            got = "none" if result is None else f"{result.size:,}"
            message = f"expected the part of {file.size:,} bytes that the manifest describes, got {got}; mix again"
            raise DataError(message, path=file.path)
        writer = file.format.writer() if file.format else None
        number = 0
        fields = columns.intersection(OWN) - {"part", "row", "chars"} | ({"text"} if "chars" in columns else set())
        has_columns = writer and not self._types and _prefers_columns(type(writer))
        tables = writer.read_columns(file.path, [*(fields or {"id"})]) if writer and has_columns else None
        if tables is not None:
            for table in tables:
                yield self._of_table(file.name, table, number, columns)
                number += len(table)
            self._check_count(file, number)
            return
        file_types = types_of(writer, self._parts.types)
        used = [name for name in file_types if _column(name) in columns or (name == "label" and "label" in columns)]
        documents = iter(
            FileDocuments(file.path, writer, self._parts.limit, {name: {""} for name in used}, self._parts.types)
        )
        texts = bool(columns & {"text", "chars"})
        while rows := _next_rows(documents, texts):
            yield self._arrays(file, rows, number, columns, used)
            number += len(rows)
        self._check_count(file, number)

    def _check_count(self, file: File, number: int) -> None:
        if file.documents is not None and number != file.documents:
            message = f"expected {file.documents:,} documents, as the manifest says, got {number:,}; mix again"
            raise DataError(message, path=file.path)

    def _of_table(self, part: str, table: pa.RecordBatch, number: int, columns: frozenset[str]) -> dict[str, Any]:
        """Return the columns of a record batch of documents."""
        results = dict(zip(table.schema.names, table.columns, strict=True))
        for name, empty in (("id", ""), ("source", ""), ("metadata", "{}")):
            if name in results:
                results[name] = pc.if_else(pc.equal(results[name], empty), None, results[name])
        results["part"] = pa.nulls(len(table), pa.string()).fill_null(part)
        results["row"] = pa.array(range(number + 1, number + 1 + len(table)), pa.int64())
        if "chars" in columns:
            results["chars"] = pc.utf8_length(results["text"])
        return {name: results[name].cast(self.schema.field(name).type) for name in columns}

    def _arrays(
        self,
        file: File,
        rows: Sequence[tuple[Document, list[Any]]],
        number: int,
        columns: frozenset[str],
        used: Sequence[str],
    ) -> dict[str, Any]:
        documents = [document for document, _ in rows]
        types = {name: self._types.get(name, STR) for name in used}
        values = {name: _plain(rows, name, type_) for name, type_ in types.items()}
        results: dict[str, list[Any]] = {
            "part": [file.name] * len(rows),
            "row": list(range(number + 1, number + 1 + len(rows))),
            "label": values.get("label", [file.label] * len(rows)),
            "id": [document.id or None for document in documents],  # formats without ids have empty ones
            "source": [document.source or None for document in documents],
        }
        take = {"chars": lambda item: item.chars, "text": lambda item: item.text, "metadata": _metadata}
        try:
            results |= {name: list(map(of, documents)) for name, of in take.items() if name in columns}
            results |= {_column(name): value for name, value in values.items()}
            return {name: pa.array(results[name], self.schema.field(name).type) for name in columns}
        except (*BAD_ROW, pa.ArrowException) as error:
            message = (
                f"expected values of the declared types in rows {number + 1} to {number + len(rows)}, got: {error}"
            )
            raise DataError(message, path=file.path, line=number + 1) from None


def _prefers_columns(format_: type[Writer]) -> bool:
    """Return False for a format with a `read_file` below its `read_columns`: these may differ."""
    names = next(names for names in (vars(c).keys() & {"read_file", "read_columns"} for c in format_.__mro__) if names)
    return "read_columns" in names


def _next_rows(documents: Iterator[tuple[Document, list[Any]]], texts: bool) -> list[tuple[Document, list[Any]]]:
    rows, size = [], 0
    for document in islice(documents, ROWS):
        rows.append(document)
        size += document[0].chars if texts else 0
        if size >= BYTES:
            break
    return rows


def _plain(rows: Sequence[tuple[Document, list[Any]]], name: str, type_: Type) -> list[Any]:
    """Return a value of documents as Arrow takes it; those that have none have null."""
    shape, attribute = shape_of(type_, maps=True), field_name(name)
    results = []
    for _, values in rows:
        value = msgspec.to_builtins(getattr(values[0], attribute, None)) if values else None
        results.append(shape(value) if shape and value is not None else value)
    return results


def _metadata(document: Document) -> str | None:
    raw = bytes(document.raw_metadata)
    return None if raw in (b"null", b"{}", bytes(NO_ATTRIBUTES)) else raw.decode()
