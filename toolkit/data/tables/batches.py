"""The rows of a Parquet file, some at a time; whatever pyarrow finds wrong is an error by row and row group."""

from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, NamedTuple

from toolkit.data.tables.footers import table
from toolkit.data.tables.values import HELD, damage, names_in


class Rows(NamedTuple):
    """Some rows of a table.

    Attributes:
        before: rows of the file before them.
        group: number of their row group.
        batch: the rows, of Arrow.
        stored: bytes of the row groups up to this one.
    """

    before: int
    group: int
    batch: Any
    stored: int


def batches(
    stored: IO[bytes], path: str, choose: Callable[[list[str]], Sequence[str]], row: int = 0, group: int = 0
) -> Iterator[Rows]:
    """Yield the rows of a Parquet file.

    Args:
        stored: the file.
        path: for messages.
        choose: returns which of its columns are read.
        row: before the first row group that is read.
        group: this row group.

    Raises:
        DataError: if the file is damaged.
    """
    import pyarrow as pa

    place, read = "in its footer", 0
    try:
        with table(stored, path) as file:
            names_in(file.schema_arrow)
            names = list(choose(file.schema_arrow.names))
            groups = file.metadata.num_row_groups
            for number in range(group, groups):
                place = f"in row group {number + 1} of {groups}"
                about, before = file.metadata.row_group(number), row
                read += sum(about.column(i).total_compressed_size for i in range(about.num_columns))
                some = max(1, HELD * about.num_rows // max(1, about.total_byte_size))
                for batch in file.iter_batches(some, row_groups=[number], columns=names, use_threads=False):
                    yield Rows(row, number, batch.select(names), read)
                    row += batch.num_rows
                if row - before != about.num_rows:
                    raise ValueError(f"{row - before:,} rows of {about.num_rows:,}")
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise damage("Parquet file", error, path, place, row + 1 if row else None) from None
