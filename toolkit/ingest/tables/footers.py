"""The types of the columns of Parquet files that are inputs."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from toolkit.data.schema import Type
from toolkit.data.tables.columns import types_of
from toolkit.data.tables.footers import table
from toolkit.data.tables.seekable import Ranges
from toolkit.data.tables.values import READ
from toolkit.errors import DataError
from toolkit.ingest.reader import Input
from toolkit.storage import store_of
from toolkit.storage.paths import stat

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
    yield io.BufferedReader(Ranges(source.path, found.size), READ)
