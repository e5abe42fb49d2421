"""Parquet files: fields are columns, by name.

Source: the Parquet format, https://parquet.apache.org/docs/file-format/.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from toolkit.data.document_fields import OwnTypes, together
from toolkit.data.tables import from_arrow
from toolkit.data.tables.parquet import batches
from toolkit.errors import ToolkitError
from toolkit.ingest.reader import Draft, Input
from toolkit.ingest.tables import arrow
from toolkit.ingest.tables.fields import FieldReader
from toolkit.storage.threads import for_each


class Parquet(FieldReader):
    """One row a document. Columns that are not mapped are kept as they are, top-level; nested ones are objects, lists.

    The reader reads one row group after the other, and only the columns that are not left out. Files need the package
    pyarrow: `tagmix[parquet]`. Ids may be integers. `metadata` and `attributes` may be JSON texts, as the output format
    `parquet` writes them. Numbers of 32 and 16 bits become those with the fewest digits that give back the same number.
    Dates and times become texts of ISO 8601, with nine digits where there is a part of a microsecond; bytes become
    base64. Numbers that JSON does not have (NaN, infinities) become null; `not_finite.COLUMN` counts them.
    """

    VERSION = "2"
    SUFFIXES = (".parquet", ".parq", ".pq")
    IN_PLACE = True

    def __post_init__(self) -> None:
        from_arrow.check_installed("Parquet files")
        super().__post_init__()

    def own_types(self, inputs: Sequence[Input]) -> OwnTypes | None:
        """Return the types of the columns of all files; one of which their statistics count no null is never null."""
        try:
            results = for_each(arrow.column_types, inputs)
        except ToolkitError:
            return None  # a file is damaged, which is told where it is ingested
        return together(self.placed(*columns) for columns in results)

    def read_batches(self, source: Input) -> Iterator[Sequence[Draft]]:
        yield from self._tables(source)

    def tables(self, source: Input, fields: Collection[str]) -> Iterator[arrow.TableRows] | None:
        import pyarrow as pa

        schema = arrow.column_types(source)[1]
        names = self.columns(schema.names, source.path)
        read = pa.schema([schema.field(name) for name in names], schema.metadata)
        plain = self.plain(from_arrow.plain_schema(read, source.path))
        used = {field: name for field, name in (plain or {}).items() if field.partition(".")[0] in fields}
        return self._tables(source, used or {"": names[0]}) if plain else None

    def _tables(self, source: Input, plain: Mapping[str, str] | None = None) -> Iterator[arrow.TableRows]:
        schema: Any = None
        begin, group = source.begin, -1
        with source.file() as stored:
            choose = (lambda _: [*plain.values()]) if plain else partial(self.columns, path=source.path)
            for some in batches(stored, source.path, choose, begin.number, begin.place):
                if some.group != group:
                    group = some.group
                    source.parts.append((some.before, group))
                schema = schema or from_arrow.plain_schema(some.batch.schema, source.path)
                yield from arrow.drafts(
                    some.batch, schema, self.draft, source, some.before, plain or self.plain(schema)
                )
