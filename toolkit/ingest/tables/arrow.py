"""Rows of pyarrow as documents, and the types of Parquet columns."""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import IO, Any, overload

import msgspec

from toolkit.data.documents import BAD_ROW
from toolkit.data.schema import Type
from toolkit.data.tables.from_arrow import HELD, not_finite, objects, types_of, utf8_of, values_of
from toolkit.data.tables.parquet import Ranges, checked_parquet
from toolkit.errors import DataError
from toolkit.ingest.reader import Draft, Input
from toolkit.lazy_numpy import np
from toolkit.storage import store_of
from toolkit.storage.paths import stat


class TableRows(Sequence[Draft]):
    """Rows of a table as documents; makes drafts only on request.

    Args:
        piece: the rows, of Arrow.
        schema: Schema from `toolkit.data.tables.from_arrow.plain_schema`.
        make: gives the document of a row (see `toolkit.ingest.tables.fields.FieldReader.draft`).
        source: the input; rows that cannot be read are its bad items.
        number: Number of rows before these.
        plain: names of columns by field of documents; None where `make` does more than to name them.

    Attributes:
        number: Number of rows before these.
        size: bytes of the rows.
        rows: Number of rows.
    """

    def __init__(
        self,
        piece: Any,
        schema: Any,
        make: Callable[[dict[str, Any], int], Draft],
        source: Input,
        number: int,
        plain: Mapping[str, str] | None = None,
    ) -> None:
        self._piece, self._schema, self._make, self._source, self._plain = piece, schema, make, source, plain
        self.number, self.size, self.rows = number, piece.nbytes, piece.num_rows

    @cached_property
    def columns(self) -> dict[str, Any] | None:
        """The columns of Arrow by document field, in row order; None where each is to be looked at."""
        result = self.arrays
        filled = (name for name in ("text", "source", "added", "created") if name in result)
        return result if result and not any(result[name].null_count for name in filled) else None

    @cached_property
    def arrays(self) -> dict[str, Any]:
        """The columns of Arrow by field of documents."""
        return {name: _decode(self._piece.column(column)) for name, column in (self._plain or {}).items()}

    def values(self, mask: "np.ndarray | None" = None) -> dict[str, list[Any]]:
        """Return the values of these rows by field, without the texts.

        Args:
            mask: Rows that are returned, bool; all are checked.

        Raises:
            ValueError: if Python cannot have one.
        """
        columns = ((field, name) for field, name in (self._plain or {}).items() if field != "text")
        return {
            field: values_of(self._piece.column(name), self._schema.field(name).type, mask) for field, name in columns
        }

    def texts(self, mask: "np.ndarray | None" = None) -> "tuple[memoryview, np.ndarray, np.ndarray]":
        """Return texts in UTF-8, their begins, and their ends.

        Raises:
            ValueError: if one is not.
        """
        texts = self.arrays["text"]
        texts.validate(full=True)
        utf8, begins, ends = utf8_of(texts)
        return (utf8, begins, ends) if mask is None else (utf8, begins[mask], ends[mask])

    def count_not_finite(self) -> None:
        """Count numbers without a form in JSON."""
        _count_not_finite(self._piece, self._source)

    @cached_property
    def _drafts(self) -> list[Draft]:
        result = []
        for i, row in enumerate(_rows(self._piece, self._schema, self._source), self.number + 1):
            if isinstance(row, Exception):
                self._source.bad("not of the format", f"expected a row that can be read, got: {row}", b"", i)
                continue
            try:
                result.append(self._make({**row}, i))
            except (*BAD_ROW, DataError) as error:
                if (draft := self._source.refuse(error, msgspec.json.encode(row), i)) is not None:
                    result.append(draft)
        return result

    def __len__(self) -> int:
        return len(self._drafts)

    @overload
    def __getitem__(self, index: int) -> Draft: ...
    @overload
    def __getitem__(self, index: slice) -> list[Draft]: ...
    def __getitem__(self, index: int | slice) -> Draft | list[Draft]:
        return self._drafts[index]


def _decode(column: Any) -> Any:
    import pyarrow as pa

    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def drafts(
    batch: Any,
    schema: Any,
    make: Callable[[dict[str, Any], int], Draft],
    source: Input,
    number: int,
    plain: Mapping[str, str] | None = None,
) -> Iterator[TableRows]:
    """Yield the documents of a batch of rows, some at a time; arguments as of `TableRows`."""
    some = max(1, HELD * batch.num_rows // max(1, batch.nbytes))
    for start in range(0, batch.num_rows, some):
        yield TableRows(batch.slice(start, some), schema, make, source, number + start, plain)


def _rows(piece: Any, schema: Any, source: Input) -> list[dict[str, Any] | Exception]:
    """Return rows as objects; in place of one whose values Python cannot have, the error."""
    try:
        result = objects(piece, schema)
    except (ValueError, OverflowError) as error:  # also those of Arrow; invalid UTF-8 is one
        if piece.num_rows == 1:
            return [error]
    else:
        _count_not_finite(piece, source)
        return [*result]
    return [row for i in range(piece.num_rows) for row in _rows(piece.slice(i, 1), schema, source)]


def _count_not_finite(piece: Any, source: Input) -> None:
    for name, column in zip(piece.schema.names, piece.columns, strict=True):
        if count := not_finite(column):
            source.counts[f"{NOT_FINITE}{name}"] += count


NOT_FINITE = "not_finite."
"""Name of a count, before that of a column: of its numbers that JSON does not have, which are null."""

_MAGIC = b"PAR1"


def column_types(source: Input) -> tuple[dict[str, Type], Any]:
    """Return the column types and Arrow schema of a Parquet file.

    Raises:
        DataError: if it has no sound footer.
    """
    import pyarrow as pa

    try:
        with _open(source) as stored, checked_parquet(stored, source.path) as file:
            return types_of(file.metadata), file.schema_arrow
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"expected a Parquet file, got: {error}", path=source.path) from None


@contextmanager
def _open(source: Input) -> Iterator[IO[bytes]]:
    """Open a seekable file: of a bucket only what is asked for is fetched, unless it is compressed."""
    result = stat(source.path)
    store = store_of(source.path)
    if result is None or store.is_local or store.read(source.path, 0, len(_MAGIC)) != _MAGIC:
        with source.file() as file:
            yield file
        return
    yield io.BufferedReader(Ranges(source.path, result.size))
