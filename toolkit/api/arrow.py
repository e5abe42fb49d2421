"""Rows as Arrow's record batches, and as examples of Hugging Face's `datasets`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolkit.data.documents import NO_ATTRIBUTES
from toolkit.data.schema import Type
from toolkit.data.tables.typed import Value, arrow_type, shape_of
from toolkit.distribution import require_extra
from toolkit.errors import ConfigError, DataError, did_you_mean

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa

    from toolkit.api.rows import Row

NAMED = ("id", "source")
OWN = (*NAMED, "text", "added", "created", "metadata")
"""The columns of a document; those of the first need no reading of it."""

HELD_ROWS, HELD_BYTES = 4096, 16 << 20
"""Rows, and characters of their texts, of a record batch at most; a single document may have more."""

Reading = Callable[[str, bool], "Iterator[Row]"]
"""Gives the rows of a shard; whether with their texts."""


def reader(
    rows_of: Reading, shards: Sequence[str], types: Mapping[str, Type], columns: Sequence[str] | None, *, text: bool
) -> "pa.RecordBatchReader":
    """Return a reader of the record batches of some shards; see `toolkit.api.rows.Rows.to_arrow`."""
    require_extra("parquet", "Arrow's record batches", "pyarrow")
    import pyarrow as pa

    names = _columns(types, columns, text=text)
    schema = pa.schema([pa.field(name, _type_of(name, types)) for name in names])
    return pa.RecordBatchReader.from_batches(schema, _batches(rows_of, shards, types, schema))


def iterable_dataset(
    rows_of: Reading, shards: Sequence[str], types: Mapping[str, Type], *, text: bool
) -> "datasets.IterableDataset":
    """Return a dataset of some shards; see `toolkit.api.rows.Rows.to_iterable_dataset`."""
    require_extra("datasets", "an IterableDataset", "datasets")
    import datasets
    import pyarrow as pa

    names = _columns(types, None, text=text)
    features = datasets.Features.from_arrow_schema(pa.schema([(name, _type_of(name, types)) for name in names]))
    given: dict[str, Any] = {"rows_of": rows_of, "types": dict(types), "names": tuple(names)}
    given["shards"] = list(shards)  # a list is shared among workers
    return datasets.IterableDataset.from_generator(_examples, features=features, gen_kwargs=given)


def _examples(
    rows_of: Reading, types: dict[str, Type], names: tuple[str, ...], shards: list[str]
) -> Iterator[dict[str, Any]]:
    values, text = _values(names, types), _asks_for_texts(names)
    for shard in shards:
        for row in rows_of(shard, text):
            yield {name: value(row) for name, value in values.items()}


def _asks_for_texts(names: Sequence[str]) -> bool:
    return any(name in OWN and name not in NAMED for name in names)


def _columns(types: Mapping[str, Type], wanted: Sequence[str] | None, *, text: bool) -> Sequence[str]:
    """Return the names of columns.

    Raises:
        ConfigError: if one is not there, or two have one name.
    """
    if twice := [name for name in types if name in OWN]:
        raise ConfigError(
            f"expected attributes with other names than the columns of documents, got {twice[0]!r}; rename it: "
            f'{{"set": SET, "as": {{"{twice[0]}": "NEW_NAME"}}}}'
        )
    known = [*(OWN if text else NAMED), *types]
    if isinstance(wanted, str):
        raise ConfigError(f"columns: expected a list of names, got {wanted!r}")
    for name in wanted or ():
        if name not in known:
            hint = did_you_mean(name, known) or f"; there are: {', '.join(known)}"
            raise ConfigError(f"columns: expected a column, got {name!r}{hint}")
    return known if wanted is None else list(dict.fromkeys(wanted))


def _batches(
    rows_of: Reading, shards: Sequence[str], types: Mapping[str, Type], schema: "pa.Schema"
) -> "Iterator[pa.RecordBatch]":
    values, text = _values(schema.names, types), _asks_for_texts(schema.names)
    for shard in shards:
        held: list[Row] = []
        size = 0
        for row in rows_of(shard, text):
            held.append(row)
            size += row.document.chars if text else 0
            if len(held) >= HELD_ROWS or size >= HELD_BYTES:
                yield _batch(held, values, schema)
                held, size = [], 0
        if held:
            yield _batch(held, values, schema)


def _batch(rows: "list[Row]", values: Mapping[str, Value], schema: "pa.Schema") -> "pa.RecordBatch":
    import pyarrow as pa

    arrays = []
    for field in schema:
        try:
            arrays.append(pa.array(list(map(values[field.name], rows)), field.type))
        except (pa.ArrowException, OverflowError, UnicodeError) as error:
            place = f"rows {rows[0].number} to {rows[-1].number}"
            raise DataError(
                f"expected values of {field.name} in {place} that fit into {field.type}, got: {error}",
                path=rows[0].shard,
            ) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


# --- types and values -------------------------------------------------------------------------------------------------


def _type_of(name: str, types: Mapping[str, Type]) -> "pa.DataType":
    import pyarrow as pa

    if name in OWN:
        return pa.large_string() if name in ("text", "metadata") else pa.string()
    return arrow_type(types[name])


def _values(names: Sequence[str], types: Mapping[str, Type]) -> dict[str, Value]:
    """Return what gives the value of each column of a row."""
    return {name: _OF_DOCUMENTS[name] if name in OWN else _of_attribute(name, types[name]) for name in names}


def _of_attribute(name: str, type_: Type) -> Value:
    shaped = shape_of(type_)
    return (lambda row: row.attributes[name]) if shaped is None else (lambda row: shaped(row.attributes[name]))


def _metadata(row: "Row") -> str | None:
    raw = bytes(row.document.raw_metadata)
    return None if raw in (b"null", bytes(NO_ATTRIBUTES)) else raw.decode()


_OF_DOCUMENTS: dict[str, Value] = {
    "id": lambda row: row.document.id,
    "source": lambda row: row.document.source,
    "text": lambda row: row.document.text,
    "added": lambda row: row.document.field("added"),
    "created": lambda row: row.document.field("created"),
    "metadata": _metadata,
}
