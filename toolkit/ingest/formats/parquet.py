"""Parquet files: fields are columns, by name.

Source: the Parquet format, https://parquet.apache.org/docs/file-format/.
"""

from collections.abc import Iterator, Sequence
from typing import IO, Any

from toolkit.ingest.reader import Draft, Input
from toolkit.ingest.tables import arrow_rows
from toolkit.ingest.tables.fields import FieldReader


class Parquet(FieldReader):
    """One row a document. Columns that are not mapped are kept as they are, top-level; nested ones are objects, lists.

    Row groups are read one after the other, and of them the columns alone that are not left out. Files need the
    package pyarrow: `tagmix[parquet]`. Ids may be integers. `metadata` and `attributes` may be JSON texts, as the
    output format `parquet` writes them. Dates and times become texts of ISO 8601, in microseconds; bytes become
    base64. Numbers that JSON does not have (NaN, infinities) become null, and are counted as `not_finite`.
    """

    SUFFIXES = (".parquet", ".parq", ".pq")

    def __post_init__(self) -> None:
        arrow_rows.check_installed("Parquet files")
        super().__post_init__()

    def read(self, source: Input) -> Iterator[Draft]:
        for batch in self.read_batches(source):
            yield from batch

    def read_batches(self, source: Input) -> Iterator[Sequence[Draft]]:
        rows = 0
        schema: Any = None
        with source.file() as stored:
            for batch in self._batches(stored, source):
                schema = schema or arrow_rows.plain_schema(batch.schema, source)
                yield from arrow_rows.drafts(batch, schema, self.draft, source, rows)
                rows += batch.num_rows

    def _batches(self, stored: IO[bytes], source: Input) -> Iterator[Any]:
        """Yield rows of Arrow; whatever pyarrow finds wrong is an error of the file, by row and row group."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        row, place = 0, "in its footer"
        try:
            with pq.ParquetFile(
                stored, pre_buffer=False, buffer_size=arrow_rows.READ, page_checksum_verification=True
            ) as file:
                arrow_rows.names_in(file.schema_arrow)
                names = self.columns(file.schema_arrow.names, source.path)
                groups = file.metadata.num_row_groups
                for group in range(groups):
                    place = f"in row group {group + 1} of {groups}"
                    about, before = file.metadata.row_group(group), row
                    some = max(1, arrow_rows.HELD * about.num_rows // max(1, about.total_byte_size))
                    for batch in file.iter_batches(some, row_groups=[group], columns=names, use_threads=False):
                        yield batch.select(names)
                        row += batch.num_rows
                    if row - before != about.num_rows:
                        raise ValueError(f"{row - before:,} rows of {about.num_rows:,}")
        except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
            raise arrow_rows.damage("Parquet file", error, source, place, row + 1 if row else None) from None
