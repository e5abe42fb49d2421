"""Documents as Parquet files, with their former columns.

Source: the Parquet format, https://parquet.apache.org/docs/file-format/; what DuckDB, polars and Hugging Face datasets
read without being told the types.
"""

import functools
import re
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from typing import IO, Any, Literal, Self

import msgspec

from mixers._options import By, Labelling, Name
from toolkit import DataError, Document, Labelled, Mixed, Reading, Size, Writer, require_extra
from toolkit.text import arrow_array, arrow_rows, arrow_schema, open_parquet

_NULL = msgspec.Raw(b"null")
_COLUMNS = {
    "id": "string",
    "source": "string",
    "text": "large_string",
    "added": "string",
    "created": "string",
    "label": "string",
    "prob": "double",
    "annotation": "list",
    "metadata": "large_string",
    "attributes": "large_string",
}
_NEVER_NULL = ("id", "source", "text", "annotation")
_JSON = ("metadata", "attributes")
_TYPED = ("id", "added", "created", "label", "prob", "metadata", "attributes")
"""Columns that have the type of a column of the input, where this is another one than theirs."""
_LARGE = tuple(name for name, kind in _COLUMNS.items() if kind == "large_string")
_REPEATED = ["source", "label", "annotation.list.element"]
"""Columns of few values, which are written as numbers with a dictionary."""

_OWN = {"id", "source", "text", "added", "created", "metadata", "attributes"}
"""Fields of a document that have a column."""

_TEXTS = ("text", "content")
"""Columns in which external files have the text."""

_LEVELS = {"zstd": 3, "gzip": 6}

READ = 16 << 20
"""Bytes of rows, about, that a check holds."""


class _Fields(msgspec.Struct):
    id: str
    source: str
    text: str
    added: str | None
    created: str | None
    label: str | None
    prob: float | None
    annotation: list[str]


class _Row(_Fields, omit_defaults=True):
    metadata: msgspec.Raw
    attributes: msgspec.Raw
    own: dict[str, msgspec.Raw] = {}


class _Columns(_Fields):
    """A row of a file, with JSON as text."""

    metadata: str | None
    attributes: str | None


_ENCODER = msgspec.json.Encoder()
_ROW = msgspec.json.Decoder(_Row)
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT = msgspec.json.Decoder(str | None)


class Parquet(Labelling, Writer):
    """One row a document. The columns that all files have are these, null where a document has no value.

    - `id`, `source`, `text`: texts, never null
    - `added`, `created`: texts
    - `label`, `prob`: text and double, of what `by` names; a field of the metadata that is a text has no `prob`
    - `annotation`: list of texts, never null; what `annotate` rules have added
    - `metadata`, `attributes`: JSON texts; what `set` rules give is in the first, with the option `attributes` those of
      the mix are in the second

    Behind them each further field of the documents has a column of its own. Where all documents come from Parquet or
    Arrow, columns have the types that they had there, and so have `added`, `created`, `attributes`, and integer `id`;
    `metadata` is then a struct. Of other documents, texts, numbers and booleans are columns of such, all else is JSON.
    Own fields `annotation`, and `label` and `prob` with `by`, have no column.

    Texts of ours that may be long are Arrow's `large_string`, which other readers take for text. Files need the package
    pyarrow: `tagmix[parquet]`.

    Attributes:
        attributes: merge the attributes of the mix into the column; those already there are kept
        row_group_size: bytes of a row group before compression, exceeded only by a document that is larger; what
            writing, and most readers, hold in memory
        codec: compression inside the files
    """

    VERSION = "2"
    SUFFIX = ".parquet"
    FIELDS = True
    COLUMNS = True
    CONCATENATES = False
    ABOUT = {
        "label": "What the output is cut by.",
        "prob": "Probability of the label.",
        "annotation": "What rules of the mix say of the document.",
        "attributes": "Attributes of the document.",
    }
    READING = Reading(types={"label": str | None}, label="label")

    by: By = None
    name: Name = "documents"
    attributes: bool = False
    row_group_size: Size = Size(64 << 20)
    codec: Literal["zstd", "snappy", "gzip", "none"] = "zstd"

    def check_installed(self) -> None:
        require_extra("parquet", "Parquet files", "pyarrow")

    def takes_all(self) -> bool:
        return self.attributes

    def copies_text(self) -> bool:
        return True

    def carries(self, fields: Collection[str]) -> Collection[str]:
        return [path for path in fields if path.partition(".")[0] not in self._fixed]

    def line(self) -> Any:
        return _Columns

    @classmethod
    def of_file(cls, path: str, line: bytes) -> Self | None:
        return cls() if path.endswith(cls.SUFFIX) else None

    def stem(self, label: str) -> str:
        return super().stem(label) if self.by else label

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        result: Labelled | None = mixed.values["by"] if self.by else None
        fields = _FIELDS.decode(document.row)
        metadata, attributes = document.raw_metadata, fields.get("attributes", _NULL)
        if mixed.fields:
            metadata = Writer.merge_fields(metadata, mixed.fields)
        if mixed.attributes is not None:
            attributes = Writer.merge_fields(attributes, mixed.attributes, "attributes")
        row = _Row(
            id=document.id,
            source=document.source,
            text=document.text,
            added=_TEXT.decode(fields["added"]) if "added" in fields else None,
            created=_TEXT.decode(fields["created"]) if "created" in fields else None,
            label=result.label if result else None,
            prob=result.prob if result else None,
            annotation=mixed.annotations,
            metadata=metadata,
            attributes=_checked(attributes),
            own={name: _checked(value) for name, value in fields.items() if name not in self._column_fields},
        )
        return [(self.label_in(mixed), _ENCODER.encode(row) + b"\n")]

    def assemble(self, pieces: Iterator[bytes], out: IO[bytes]) -> None:
        """Write row groups: rows become Arrow's piece by piece, and a group once they are as many as one holds."""
        self.check_installed()
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = self._schema()
        flat = [name for name in columns.names if name not in _COLUMNS and not columns.field(name).type.num_fields]
        batches: list[Any] = []
        size = 0
        with pq.ParquetWriter(
            out,
            columns,
            compression=self.codec,
            compression_level=_LEVELS.get(self.codec),
            use_dictionary=[*_REPEATED, *flat],
            write_statistics=[*(name for name in _COLUMNS if name not in (*_LARGE, "annotation")), *flat],
            write_batch_size=64,
            write_page_checksum=True,
        ) as file:

            def write() -> None:
                file.write_table(pa.Table.from_batches(batches, columns), sum(batch.num_rows for batch in batches))
                batches.clear()

            for piece in pieces:
                rows: list[_Row] = []
                for line in piece[:-1].split(b"\n"):
                    if size and size + len(line) >= self.row_group_size:  # with its line end
                        batches += [_batch(rows, columns)] if rows else []
                        write()
                        rows, size = [], 0
                    rows.append(_ROW.decode(line))
                    size += len(line) + 1
                batches.append(_batch(rows, columns))
            if batches:
                write()

    @functools.cached_property
    def _fixed(self) -> set[str]:
        """Names of columns of the mix, also if documents have them."""
        return {"annotation", "label", "prob"} if self.by else {"annotation"}

    @functools.cached_property
    def _column_fields(self) -> set[str]:
        """Names of fields without columns of their own."""
        return _OWN | self._fixed

    def _schema(self) -> Any:
        """Return the columns of files: those that all have, then those that documents bring."""
        import pyarrow as pa

        fixed = {"text", "source", *self._fixed, *(("attributes",) if self.attributes else ())}
        own = {field.name: field for field in arrow_schema(self.own_columns) if field.name not in fixed}
        return pa.schema([own.pop(field.name, field) for field in _fixed_schema()] + list(own.values()))

    def read_file(self, path: str) -> Iterator[tuple[Document, str | None]]:
        for batch in self.read_columns(path, ("id", "source", "text", "metadata", "label")):
            for row in arrow_rows(batch):
                metadata = msgspec.Raw((row["metadata"] or "null").encode())
                yield (
                    Document(row["text"], id=row["id"] or "", source=row["source"] or "", metadata=metadata),
                    row["label"],
                )

    def read_columns(self, path: str, names: Sequence[str]) -> Iterator[Any]:
        self.check_installed()
        import pyarrow as pa

        row = 0
        try:
            with open_parquet(path) as file:
                present = _texts(file.schema_arrow)
                text = next((name for name in _TEXTS if name in present), None)
                if text is None:
                    got = ", ".join(file.schema_arrow.names)
                    raise DataError(f"expected a column `text` or `content` of texts, got {got}; rename one", path=path)
                present |= {name for name in ("id", "metadata") if name in file.schema_arrow.names}
                stored = {name: text if name == "text" else name for name in names if name == "text" or name in present}
                for batch in _batches(file, list(stored.values())):
                    columns = [
                        _field(batch.select([stored[name]]), name)
                        if name in stored
                        else pa.nulls(len(batch), pa.string())
                        for name in names
                    ]
                    if "text" in stored and (nulls := columns[names.index("text")]).null_count:
                        row += nulls.is_null().index(True).as_py()
                        raise DataError(f"expected a text in {text!r}, got null", path=path, line=row + 1)
                    yield pa.RecordBatch.from_arrays(columns, list(names))
                    row += len(batch)
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"expected a sound Parquet file, got damage: {error}", path=path, line=row + 1) from None

    def read_rows(self, path: str) -> Generator[dict[str, Any], None, None]:
        self.check_installed()
        import pyarrow as pa

        row = 0
        try:
            with open_parquet(path) as file:
                for batch in file.iter_batches(1, use_threads=False):
                    for values in arrow_rows(batch):
                        row += 1
                        yield values
        except (pa.ArrowException, OSError) as error:
            raise DataError(f"expected a sound Parquet file, got damage: {error}", path=path, line=row + 1) from None

    def check_file(
        self, path: str, documents: int | None = None, first: int | None = None
    ) -> Iterator[tuple[int | None, str]]:
        self.check_installed()
        import pyarrow as pa

        row = 0
        try:
            with open_parquet(path) as file:
                yield from _schema_faults(file.schema_arrow, self._fixed)
                if documents is not None and file.metadata.num_rows != documents:
                    yield None, f"expected {documents:,} rows by the manifest, got {file.metadata.num_rows:,}"
                if any(_schema_faults(file.schema_arrow, self._fixed)):
                    return
                for batch in _batches(file):
                    batch.validate(full=True)
                    for number, wrong in _row_faults(batch):
                        if first is None or row + number <= first:
                            yield row + number, wrong
                    row += batch.num_rows
                    if first is not None and row >= first:
                        return
        except DataError as error:
            yield error.line, error.message
        except (pa.ArrowException, OSError) as error:
            place = f" after row {row:,}" if row else ""
            yield None, f"expected a sound Parquet file, got damage{place}: {error}"


def _batches(file: Any, columns: list[str] | None = None) -> Iterator[Any]:
    """Yield the rows of a file in batches of about `READ` bytes."""
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        rows = max(1, READ * group.num_rows // max(1, group.total_byte_size))
        yield from file.iter_batches(rows, row_groups=[number], columns=columns, use_threads=False)


def _texts(schema: Any) -> set[str]:
    """Return the names of text columns."""
    import pyarrow as pa

    kinds = (pa.types.is_string, pa.types.is_large_string)
    return {field.name for field in schema if any(kind(field.type) for kind in kinds)}


def _field(column: Any, name: str) -> Any:
    """Return the values of a field of documents as texts.

    Args:
        column: Record batch with the column alone.
        name: Name of the field.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    (values,) = column.columns
    if not _texts(column.schema):
        objects = [value for row in arrow_rows(column) for value in row.values()]
        if name == "metadata":
            objects = [_ENCODER.encode(value).decode() if isinstance(value, dict) else value for value in objects]
        values = arrow_array([None if value is None else str(value) for value in objects], pa.large_string())
    values.validate(full=True)  # a text that is no UTF-8 is damage
    if name == "metadata":  # external files may have other values
        return pc.if_else(pc.starts_with(values, "{"), values, pa.scalar(None, values.type))
    return values


def _checked(attributes: msgspec.Raw) -> msgspec.Raw:
    """Return the attributes, if they are UTF-8; nothing has read all that other programs wrote yet.

    Raises:
        DataError: if they are not.
    """
    try:
        str(memoryview(attributes), "utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"expected attributes in UTF-8, got {error}") from None
    return attributes


# --- Arrow ------------------------------------------------------------------------------------------------------------


def _fixed_schema() -> Any:
    import pyarrow as pa

    types = {"string": pa.string(), "large_string": pa.large_string(), "double": pa.float64()}
    types["list"] = pa.list_(pa.field("element", pa.string()))
    return pa.schema([(name, types[kind]) for name, kind in _COLUMNS.items()])


def _batch(rows: list[_Row], schema: Any) -> Any:
    import pyarrow as pa

    columns = []
    for field in schema:
        name = field.name
        values = [
            row.own[name] if name in row.own else getattr(row, name) if name in _COLUMNS else None for row in rows
        ]
        try:
            columns.append(_column(values, field))
        except (pa.ArrowException, ValueError, TypeError, AttributeError) as error:
            raise DataError(f"expected values of the type {field.type} in the column {name!r}, got: {error}") from None
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(values: list[Any], field: Any) -> Any:
    """Return a column of values, or of their JSON."""
    import pyarrow as pa

    if field.metadata or (field.name in _JSON and not field.type.num_fields):
        return arrow_array(
            [None if value in (None, _NULL) else str(memoryview(value), "utf-8") for value in values], field.type
        )
    if any(isinstance(value, msgspec.Raw) for value in values):
        values = msgspec.json.decode(b"[%b]" % b",".join(b"null" if value is None else value for value in values))
    if field.name == "id" and pa.types.is_integer(field.type):
        values = list(map(int, values))
    return arrow_array(values, field.type)


def _schema_faults(schema: Any, fixed: set[str]) -> Iterator[tuple[None, str]]:
    expected = _fixed_schema()
    if schema.names[: len(expected)] != expected.names:
        yield None, f"expected the columns {', '.join(expected.names)}, got {', '.join(schema.names)}"
        return
    for field in expected:
        got = schema.field(field.name).type
        is_own = field.name in _TYPED and field.name not in fixed and _kind(got) != _kind(field.type)
        if got != field.type and not is_own:
            yield None, f"expected the column {field.name} to be {field.type}, got {got}"


def _kind(type_: Any) -> str:
    return re.split(r"\W", str(type_).removeprefix("large_"))[0]


def _row_faults(batch: Any) -> Iterator[tuple[int, str]]:
    """Yield nulls in required columns, and texts without JSON. Rows of a batch are numbered from 1."""
    for name in _NEVER_NULL:
        column = batch.column(name)
        if column.null_count:
            yield from ((i, f"expected a value of {name}, got null") for i, v in enumerate(column, 1) if not v.is_valid)
    for name in (name for name in _JSON if not batch.schema.field(name).type.num_fields):
        for number, value in enumerate(batch.column(name), 1):
            if (text := value.as_py()) is not None:
                try:
                    msgspec.json.decode(text, type=msgspec.Raw)  # numbers of any size
                except msgspec.DecodeError as error:
                    yield number, f"expected {name} in JSON, got: {error}"
