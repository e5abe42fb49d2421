"""Rows that pyarrow reads, as documents, and the types of the columns of Parquet files."""

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import msgspec

from toolkit.data.documents import BAD_ROW
from toolkit.data.schema import Type
from toolkit.data.tables.columns import types_of
from toolkit.data.tables.footers import table
from toolkit.data.tables.seekable import Ranges
from toolkit.data.tables.values import HELD, not_finite, objects
from toolkit.errors import DataError
from toolkit.ingest.reader import Draft, Input
from toolkit.storage import store_of
from toolkit.storage.paths import stat


def drafts(
    batch: Any, schema: Any, make: Callable[[dict[str, Any], int], Draft], source: Input, number: int
) -> Iterator[Sequence[Draft]]:
    """Yield the documents of a batch of rows, some at a time.

    Args:
        batch: of Arrow.
        schema: as `toolkit.data.tables.values.plain_schema` gives it.
        make: gives the document of a row (see `toolkit.ingest.tables.fields.FieldReader.draft`).
        source: the input; rows that cannot be read are its bad items.
        number: of rows before these.
    """
    some = max(1, HELD * batch.num_rows // max(1, batch.nbytes))
    for start in range(0, batch.num_rows, some):
        piece = batch.slice(start, some)
        found = []
        for i, row in enumerate(_rows(piece, schema, source), number + start + 1):
            if isinstance(row, Exception):
                source.bad("not of the format", f"expected a row that can be read, got: {row}", b"", i)
                continue
            try:
                found.append(make({**row}, i))
            except (*BAD_ROW, DataError) as error:
                if (draft := source.refuse(error, msgspec.json.encode(row), i)) is not None:
                    found.append(draft)
        yield found


def _rows(piece: Any, schema: Any, source: Input) -> list[dict[str, Any] | Exception]:
    """Return rows as objects; in place of one whose values Python cannot have, the error."""
    try:
        found = objects(piece, schema)
    except (ValueError, OverflowError) as error:  # also those of Arrow; invalid UTF-8 is one
        if piece.num_rows == 1:
            return [error]
    else:
        for name, column in zip(piece.schema.names, piece.columns, strict=True):
            if count := not_finite(column):
                source.counts[f"{NOT_FINITE}{name}"] += count
        return [*found]
    return [row for i in range(piece.num_rows) for row in _rows(piece.slice(i, 1), schema, source)]


NOT_FINITE = "not_finite."
"""Name of a count, before that of a column: of its numbers that JSON does not have, which are null."""

_MAGIC = b"PAR1"


def column_types(source: Input) -> tuple[dict[str, Type], Any]:
    """Return the types of the columns of a Parquet file, by its footer, and those of Arrow as a schema.

    Raises:
        DataError: if it has no sound footer.
    """
    import pyarrow as pa

    try:
        with _opened(source) as stored, table(stored, source.path) as file:
            return types_of(file.metadata), file.schema_arrow
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"expected a Parquet file, got: {error}", path=source.path) from None


@contextmanager
def _opened(source: Input) -> Iterator[IO[bytes]]:
    """Give a file in which one can seek: of a bucket only what is asked for is fetched, unless it is compressed."""
    found = stat(source.path)
    store = store_of(source.path)
    if found is None or store.is_local or store.read(source.path, 0, len(_MAGIC)) != _MAGIC:
        with source.file() as file:
            yield file
        return
    yield io.BufferedReader(Ranges(source.path, found.size))
