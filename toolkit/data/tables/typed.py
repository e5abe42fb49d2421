"""Declared types as those of Arrow, and plain values as Arrow takes them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit.data.schema import Type
from toolkit.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

Value = Callable[[Any], Any]


def arrow_type(type_: Type, *, maps: bool = False) -> "pa.DataType":
    """Return Arrow's type of a declared one; a value of no declared type is a JSON text, a span a struct.

    Args:
        type_: the declared one.
        maps: whether a map is one of Arrow's, and an object without fields, which files cannot have, a JSON text; else
            a map is a list of structs of ``key`` and ``value``.
    """
    import pyarrow as pa

    if plain := _PLAIN.get(str(type_)):
        return plain(pa)
    match type_.kind:
        case "span":
            return pa.struct([("start", pa.int64()), ("end", pa.int64()), ("score", pa.float64())])
        case "object" if type_.fields or not maps:
            return pa.struct([(name, arrow_type(inner, maps=maps)) for name, inner in type_.fields])
    if type_.item is None:
        return pa.large_string()
    match type_.kind:
        case "list":
            return pa.list_(arrow_type(type_.item, maps=maps))
        case "map" if maps:
            return pa.map_(pa.string(), arrow_type(type_.item, maps=maps))
        case "map":
            return pa.list_(pa.struct([("key", pa.string()), ("value", arrow_type(type_.item))]))
    return arrow_type(type_.item, maps=maps)


def may_be_null(type_: Type) -> bool:
    """Return whether a value of a declared type may be null."""
    return type_.kind in ("nullable", "any", "null", "never")


_PLAIN: dict[str, Callable[[Any], Any]] = {
    "bool": lambda pa: pa.bool_(),
    "int": lambda pa: pa.int64(),
    "float": lambda pa: pa.float64(),
    "float32": lambda pa: pa.float32(),
    "str": lambda pa: pa.string(),
    "null": lambda pa: pa.null(),
    "never": lambda pa: pa.null(),
}


def shape_of(type_: Type, *, maps: bool = False) -> Value | None:
    """Return what makes a value that Arrow takes of plain data; None where it takes that.

    Args:
        type_: the declared one.
        maps: as of `arrow_type`.
    """
    inner = shape_of(type_.item, maps=maps) if type_.item else None
    match type_.kind:
        case "any":
            return lambda value: None if value is None else msgspec.json.encode(value).decode()
        case "span":
            return lambda value: {"start": value[0], "end": value[1], "score": value[2]}
        case "map" if maps:
            return (lambda value: [(k, inner(v)) for k, v in value.items()]) if inner else (lambda v: list(v.items()))
        case "map":
            shaped = inner or (lambda value: value)
            return lambda value: [{"key": key, "value": shaped(each)} for key, each in value.items()]
        case "list" if inner:
            return lambda value: list(map(inner, value))
        case "nullable" if inner:
            return lambda value: None if value is None else inner(value)
        case "object":
            return _shape_of_object(type_, maps=maps)
    return None


def _shape_of_object(type_: Type, *, maps: bool) -> Value | None:
    if maps and not type_.fields:
        return lambda value: "{}"
    shapes = {name: shape for name, field in type_.fields if (shape := shape_of(field, maps=maps))}
    return (lambda value: value | {name: shape(value[name]) for name, shape in shapes.items()}) if shapes else None


def record_batch(
    schema: "pa.Schema", column: Callable[[str], list[Any]], numbers: tuple[int, int], **place: Any
) -> "pa.RecordBatch":
    """Return rows as a record batch.

    Args:
        schema: Schema of the batch.
        column: Function that returns the values of a column by its name.
        numbers: Numbers of the first and the last row, for messages.
        place: Place of the rows, as of `DataError`.

    Raises:
        DataError: if a value does not fit into the type of its column.
    """
    import pyarrow as pa

    arrays = []
    for field in schema:
        try:
            arrays.append(pa.array(column(field.name), field.type))
        except (pa.ArrowException, OverflowError, UnicodeError) as error:
            rows = "rows {} to {}".format(*numbers)
            message = f"expected values of {field.name} in {rows} that fit into {field.type}, got: {error}"
            raise DataError(message, **place) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
