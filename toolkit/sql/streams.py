"""Shards as Arrow record batches, read on DuckDB's request.

shard ──row index──> pieces ──lines of documents, rows of sets──> record batches: shard, row, …, JSON as it is stored

A stream looks like a dataset of pyarrow's, because DuckDB tells these which columns it wants, and which rows.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import islice
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.dataset as pads

from toolkit.data import row_index
from toolkit.data.alignment import attribute_lines
from toolkit.data.documents import BAD_ROW, LATE_DECODER, LateRow, Rows, check_metadata, explain_bad_row
from toolkit.errors import AlignmentError, DataError, ToolkitError
from toolkit.mix.join import JoinedSet, JoinedShard, inputs_of, row_decoder
from toolkit.mix.rule_effects.preview import indexed_rows
from toolkit.session import Session

PLACE = ("shard", "row", "chars", "bytes")
"""Columns that the row index has."""

DOCUMENT = ("id", "source", "added", "created", "text", "metadata")
"""Columns of documents; text and metadata are JSON as it stands in the file, but for texts of documents in place."""

PIECE_ROWS, PIECE_BYTES = 8192, 8 << 20
"""Rows of a record batch, and bytes of their texts, at most; a single document may have more."""

_TYPES = {
    "shard": pa.dictionary(pa.int32(), pa.string()),
    "row": pa.int64(),
    "chars": pa.int64(),
    "bytes": pa.int64(),
    "text": pa.large_string(),
    "metadata": pa.large_string(),
}


class Faults(msgspec.Struct):
    """The errors and signals of streams during a query; DuckDB reports it in its own words."""

    errors: list[BaseException] = []

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Record our errors and signals; a reader that wants no more is neither."""
        try:
            yield
        except BaseException as error:
            if isinstance(error, ToolkitError) or not isinstance(error, Exception | GeneratorExit):
                self.errors.append(error)
            raise


class ScanStream(pads.Dataset):  # type: ignore[misc]  # pyarrow has no types
    """A stream for repeated scans; DuckDB asks each scan for some columns, and some rows.

    Args:
        schema: Schema of all columns.
        faults: takes the errors of scans.
        session: Session of the scans.
    """

    def __init__(self, schema: pa.Schema, faults: Faults, session: Session) -> None:
        self._columns, self.faults, self._session = schema, faults, session

    @property
    def schema(self) -> pa.Schema:
        return self._columns

    def scanner(self, columns: Sequence[str] | None = None, filter: Any = None, **_: Any) -> "_Scan":
        """Return a scan of these columns, in order, with a filter."""
        return _Scan(self, columns, filter)

    def batches(self, columns: frozenset[str]) -> Iterator[dict[str, Any]]:
        """Yield arrays by name, at least these, some rows at a time."""
        raise NotImplementedError

    def record_batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield record batches of a schema."""
        for arrays in self._session.steps(iter(self.batches(frozenset(schema.names)))):
            yield pa.RecordBatch.from_arrays([arrays[name] for name in schema.names], schema=schema)


class _Scan:
    """The scanner of a stream, as DuckDB expects it."""

    def __init__(self, stream: ScanStream, columns: Sequence[str] | None, filter: Any) -> None:
        self._stream, self._filter = stream, filter
        names = stream.schema.names
        self._names = names if columns is None else list(columns)
        condition = "" if filter is None else str(filter)
        self._read = [name for name in names if name in self._names or name in condition]

    @property
    def projected_schema(self) -> pa.Schema:
        return pa.schema([self._stream.schema.field(name) for name in self._names])

    def to_reader(self) -> pa.RecordBatchReader:
        read = pa.schema([self._stream.schema.field(name) for name in self._read or self._stream.schema.names[:1]])
        return pa.RecordBatchReader.from_batches(self.projected_schema, self._chosen(self._stream.record_batches(read)))

    def _chosen(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the filtered rows; what goes wrong is noted, too."""
        with self._stream.faults.noting():
            for batch in batches:
                if self._filter is None:
                    yield batch.select(self._names)
                    continue
                yield from pa.Table.from_batches([batch]).filter(self._filter).select(self._names).to_batches()


class Shards(ScanStream):
    """Shards with joined sets.

    The columns of set ``i`` is ``s{i}``: its rows, as JSON of exactly its keys.

    Args:
        works: the shards.
        sets: Sets that are joined.
        faults: takes the errors of scans.
        session: Session of the scans.
        all_sets: True if sets are looked at of which no column is asked for.
    """

    def __init__(
        self,
        works: Sequence[JoinedShard],
        sets: Sequence[JoinedSet],
        faults: Faults,
        session: Session,
        *,
        all_sets: bool = False,
    ) -> None:
        names = [*PLACE, *DOCUMENT, *map(column_of, range(len(sets)))]
        fields = [
            (name, _TYPES.get(name, pa.large_string() if name not in DOCUMENT else pa.string())) for name in names
        ]
        super().__init__(pa.schema(fields), faults, session)
        self._works, self._sets, self._all_sets = works, sets, all_sets

    def batches(self, columns: frozenset[str]) -> Iterator[dict[str, Any]]:
        used = [i for i, item in enumerate(self._sets) if column_of(i) in columns or self._all_sets]
        for whole in self._works:
            work = msgspec.structs.replace(whole, sets=[self._sets[i] for i in used])
            yield from _of_shard(work, [column_of(i) for i in used], columns)


def column_of(number: int) -> str:
    """Return the name of the column of a set's rows."""
    return f"s{number}"


def _of_shard(work: JoinedShard, names: Sequence[str], columns: frozenset[str]) -> Iterator[dict[str, Any]]:
    """Yield the columns of a shard; its sets' are called by `names`."""
    state, digests = inputs_of(work)
    shard = pa.array([work.shard])
    number = 1
    with ExitStack() as stack:
        sets = [
            stack.enter_context(closing(_rows_of(work, joined, name in columns, digests[joined.set])))
            for joined, name in zip(work.sets, names, strict=True)
        ]
        fields = columns.intersection(DOCUMENT)
        documents = stack.enter_context(closing(_documents(work, fields, state.content))) if fields else None
        for piece in _pieces(work):
            count = len(piece)
            results = {
                "shard": pa.DictionaryArray.from_arrays(pa.nulls(count, pa.int32()).fill_null(0), shard),
                "row": pa.array(range(number, number + count), pa.int64()),
                "chars": pa.array(piece["chars"]).cast(pa.int64()),
                "bytes": pa.array(piece["bytes"]).cast(pa.int64()),
            }
            if documents:
                results |= next(documents)
            for name, rows in zip(names, sets, strict=True):
                results[name] = next(rows)
            yield results
            number += count
        for rest in filter(None, (documents, *sets)):
            next(rest, None)  # what is behind the last row is an error there


def _pieces(work: JoinedShard) -> Iterator[Any]:
    """Yield the row index in pieces, one for each record batch."""
    for block in row_index.read(work.dataset, work.shard, 8 * PIECE_ROWS):
        sizes = block["bytes"].astype("<u8").cumsum()
        start = 0
        while start < len(block):
            before = int(sizes[start - 1]) if start else 0
            end = int(sizes.searchsorted(before + PIECE_BYTES, side="right"))
            end = min(max(end, start + 1), start + PIECE_ROWS)
            yield block[start:end]
            start = end


def _documents(work: JoinedShard, columns: frozenset[str], content: str) -> Generator[dict[str, Any], None, None]:
    """Yield columns of the documents, piece by piece.

    Raises:
        DataError: if the file has other rows than were indexed.
    """
    changed = DataError(
        "expected a file that does not change while it is read, got one that has changed; run "
        "again when no program writes to it",
        path=work.path,
    )
    if tables := work.dataset.tables(work.shard, columns):
        yield from _of_tables(
            tables, work, pa.schema([(name, _TYPES.get(name, pa.string())) for name in columns]), changed
        )
        result = row_index.current(work.dataset, work.shard)
        if result is None or result.content != content:
            raise changed
        return
    in_place = work.dataset.in_place is not None
    take: dict[str, tuple[Callable[[LateRow], Any], Any]] = {
        "id": (lambda row: row.id, pa.string()),
        "source": (lambda row: row.source, pa.string()),
        "added": (lambda row: row.added, pa.string()),
        "created": (lambda row: row.created, pa.string()),
        "text": (lambda row: msgspec.json.decode(row.text) if in_place else bytes(row.text), pa.large_string()),
        "metadata": (_metadata, pa.large_string()),
    }
    with work.dataset.lines(work.shard, work.max_document_bytes, digest=True, ahead=True) as lines:
        rows = Rows(lines, LATE_DECODER, work.path)
        for piece in _pieces(work):
            some = [row for row, _ in islice(rows, len(piece))]
            if len(some) < len(piece):
                raise changed
            try:
                yield {name: pa.array(list(map(take[name][0], some)), take[name][1]) for name in columns}
            except (*BAD_ROW, pa.ArrowException) as error:
                raise _row_error(some, rows.number, work.path, error) from None
        if next(rows, None) is not None or lines.content != content:
            raise changed


def _of_tables(
    tables: Iterator[dict[str, Any]], work: JoinedShard, schema: pa.Schema, changed: DataError
) -> Iterator[dict[str, Any]]:
    """Yield columns of documents in place, piece by piece."""
    buffer = schema.empty_table()
    for piece in _pieces(work):
        while len(buffer) < len(piece) and (more := next(tables, None)) is not None:
            arrays = [
                pa.array(more[field.name], field.type)
                if isinstance(more[field.name], list)
                else more[field.name].cast(field.type)
                for field in schema
            ]
            buffer = pa.concat_tables([buffer, pa.Table.from_arrays(arrays, schema=schema)])
        if len(buffer) < len(piece):
            raise changed
        some, buffer = buffer.slice(0, len(piece)), buffer.slice(len(piece))
        yield {name: some.column(name).combine_chunks() for name in schema.names}
    if len(buffer) or next(tables, None) is not None:
        raise changed


def _metadata(row: LateRow) -> bytes | None:
    check_metadata(row.metadata)
    result = bytes(row.metadata)
    return None if result == b"null" else result


def _row_error(some: Sequence[LateRow], number: int, path: str, error: Exception) -> DataError:
    """Return the error of the first row with invalid metadata or texts."""
    for at, row in enumerate(some, number - len(some) + 1):
        try:
            check_metadata(row.metadata)
            pa.array([row.id, row.source, row.added, row.created])
        except (*BAD_ROW, pa.ArrowException) as fault:
            return DataError(explain_bad_row(bytes(row.metadata), fault), path=path, line=at, id=row.id)
    return DataError(f"expected texts, got: {error}", path=path, line=number)


def _rows_of(work: JoinedShard, joined: JoinedSet, is_read: bool, content: str) -> Generator[Any, None, None]:
    """Yield the rows of a set, piece by piece; those of other programs are held against the row index."""
    if not joined.ours:
        yield from _foreign_rows(work, joined)
        return
    if not is_read:  # the record says that its rows are those of the documents
        for _ in _pieces(work):
            yield None
        return
    path, number = work.attributes_of(joined), 0
    with attribute_lines(path, digest=True, ahead=True) as lines:
        for piece in _pieces(work):
            some = list(islice(lines, len(piece)))
            number += len(some)
            if len(some) < len(piece):
                message = f"expected the attributes of {work.path}:{number + 1}, got the end of the file"
                raise AlignmentError(message, path=path, line=number + 1)
            yield pa.array(some, pa.large_string())
        if next(lines, None) is not None or lines.content != content:
            message = f"expected the {number:,} rows that its record describes, got others; delete it and tag again"
            raise DataError(message, path=path)


def _foreign_rows(work: JoinedShard, joined: JoinedSet) -> Iterator[pa.Array]:
    decoder = row_decoder(joined, {key.name for key in joined.keys})
    with ExitStack() as stack:
        for some in indexed_rows(work, joined, decoder.decoder, _pieces(work), stack):
            results = [{"source": row.source, "id": row.id, "attributes": decoder.values(row)} for row in some]
            yield pa.array(list(map(msgspec.json.encode, results)), pa.large_string())
