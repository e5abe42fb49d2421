"""External attributes as Parquet: columns of ids, maybe of sources, and of keys."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec

from toolkit.data.dataset import Begin
from toolkit.data.documents import BAD_ROW
from toolkit.data.schema import Type
from toolkit.data.tables import from_arrow
from toolkit.data.tables.parquet import batches, checked_parquet, open_seekable
from toolkit.errors import DataError, short

IDS = ("id", "doc_id")
"""Columns of ids: the first of them that there is."""

SOURCE = "source"

_encode = msgspec.json.Encoder().encode


class AttributeTableRows:
    """The rows of a table as those of an attribute file (`toolkit.data.dataset.MadeRows`).

    Args:
        path: Path of the table.
    """

    counts: Mapping[str, int] = {}
    begins: Sequence[Begin] = ()
    source = ""

    def __init__(self, path: str) -> None:
        from_arrow.check_installed(f"the attributes {path}")
        self._path = path
        self._stack = ExitStack()
        self._stored = 0

    def rows(self) -> Iterator[bytes]:
        file = self._stack.enter_context(open_seekable(self._path))
        schema: Any = None
        for some in batches(file, self._path, lambda names: _checked(names, self._path)):
            self._stored = some.stored
            schema = schema or from_arrow.plain_schema(some.batch.schema, self._path)
            try:
                results = from_arrow.objects(some.batch, schema)
            except (ValueError, OverflowError) as error:
                place = f"in row group {some.group + 1}"
                raise from_arrow.damage("Parquet file", error, self._path, place, some.before + 1) from None
            id_name = _id_of(schema.names)
            for number, row in enumerate(results, some.before + 1):
                yield self._row(row, id_name, number)

    def _row(self, row: dict[str, Any], id_name: str, number: int) -> bytes:
        id, source = row.pop(id_name), row.pop(SOURCE, None)
        for name, value, empty in ((id_name, id, False), (SOURCE, source, True)):
            if isinstance(value, bool) or not (isinstance(value, str | int) or (empty and value is None)):
                message = f"expected a text or an integer in the column {name!r}, got {short(value)}"
                raise DataError(message, path=self._path, line=number)
        names = {"source": None if source is None else str(source), "id": str(id)}
        try:
            return _encode({**names, "attributes": row})
        except BAD_ROW as error:
            message = f"expected values that JSON has, got: {error}"
            raise DataError(message, path=self._path, line=number, id=str(id)) from None

    def stored(self) -> int:
        return self._stored

    def close(self) -> None:
        self._stack.close()


def _checked(names: list[str], path: str) -> list[str]:
    """Return the columns to read: all."""
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f"expected columns of different names, got {twice[0]!r} twice", path=path)
    if not _id_of(names):
        expected = " or ".join(map(repr, IDS))
        message = (
            f"expected a column {expected} of the ids of documents, got none; there are: {', '.join(names)}; "
            "`toolkit align` takes another one as `id:`"
        )
        raise DataError(message, path=path)
    return names


def _id_of(names: Iterable[str]) -> str:
    present = set(names)
    return next((name for name in IDS if name in present), "")


def look(path: str) -> tuple[int, dict[str, Type]]:
    """Return the number of rows and the types of a table's keys.

    They are those of the columns; one may be null, unless its statistics count no null. Numbers that JSON does not have
    become null, so that columns of numbers are looked at.

    Raises:
        DataError: if the file is damaged, or has no ids.
    """
    import pyarrow as pa

    from_arrow.check_installed(f"the attributes {path}")
    with open_seekable(path) as file:
        try:
            with checked_parquet(file, path) as opened_table:
                about = opened_table.metadata
            schema = about.schema.to_arrow_schema()
        except (pa.ArrowException, OSError, ValueError) as error:
            raise from_arrow.damage("Parquet file", error, path, "in its footer") from None
        names = [
            name
            for name in _checked(schema.names, path)
            if name != from_arrow.ROW or from_arrow.types_in(schema.metadata) is None
        ]
        floats = [field.name for field in schema if _has_floats(field.type)]
        file.seek(0)
        become_null = set[str]()
        for some in batches(file, path, lambda _: floats) if floats else ():
            become_null |= {
                name for name, values in zip(floats, some.batch.columns, strict=True) if from_arrow.not_finite(values)
            }
    types = from_arrow.types_of(about, become_null)
    keys = [name for name in names if name not in (_id_of(names), SOURCE)]
    return about.num_rows, {name: types[name] for name in keys}


def _has_floats(type_: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_floating(type_):
        return True
    return any(_has_floats(type_.field(i).type) for i in range(type_.num_fields))
