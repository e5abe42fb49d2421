"""Columns of Arrow: typed from our types; and as they were before their values became JSON, types and values."""

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from toolkit.data.schema import Type, from_json
from toolkit.errors import DataError
from toolkit.lazy_numpy import np

if TYPE_CHECKING:
    import pyarrow as pa

Value = Callable[[Any], Any]


def arrow_type(type_: Type, *, maps: bool = False) -> "pa.DataType":
    """Return Arrow's type of a declared one; a value of no declared type is a JSON text, a span a struct.

    Args:
        type_: the declared one.
        maps: True for maps of Arrow, and JSON texts for objects without fields, which files cannot have; else a map is
            a list of structs of ``key`` and ``value``.
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
    """Return True if a declared type may be null."""
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
    """Return a function from plain data to Arrow's values; None for identity.

    Args:
        type_: the declared one.
        maps: Meaning as in `arrow_type`.
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
            return lambda value: [{"key": key, "value": shaped(item)} for key, item in value.items()]
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


INT_BITS = "an `int` has 64 bits with a sign in SQL and Parquet; larger ones can be a `str`"
"""Advice for integers that do not fit."""


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
            got = f" a larger number; {INT_BITS}" if isinstance(error, OverflowError) else f": {error}"
            message = f"expected values of {field.name} in {rows} that fit into {field.type}, got{got}"
            raise DataError(message, **place) from None
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


JSON = {b"toolkit": b"json"}
"""Metadata of a field whose texts are JSON."""


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OF_TEXTS: dict[str, Value] = {"(large_|fixed_size_)?binary": base64.b64decode, "decimal": Decimal}
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_TIME = re.compile(r"(.*?\d\d:\d\d:\d\d)(?:\.(\d+))?(.*)")
_DURATION = re.compile(r"(-?)P(?:(\d+)D)?(?:T(\d+)(?:\.(\d+))?S)?")


def to_text(fields: Iterable[Any]) -> str:
    """Return fields of Arrow as a text, in base64."""
    import pyarrow as pa

    return base64.b64encode(pa.schema(list(fields)).serialize().to_pybytes()).decode()


def arrow_schema(text: str) -> Any:
    """Return the schema in a text of `to_text`; empty for an empty text."""
    import pyarrow as pa

    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text))) if text else pa.schema([])


def unified(a: str, b: str) -> str:
    """Return the common fields of two schemas, each of a common type. Fields without one are left out."""
    import pyarrow as pa

    if a == b or not (a and b):
        return a if a == b else ""
    results: dict[str, Any] = {}
    for field in (*arrow_schema(a), *arrow_schema(b)):
        if (before := results.get(field.name)) is None:
            results[field.name] = field
            continue
        try:
            both = [pa.schema([item]) for item in (before, field)]
            results[field.name] = pa.unify_schemas(both, promote_options="default").field(0)
        except pa.ArrowException:
            results[field.name] = pa.field(field.name, pa.large_string(), metadata=JSON)
    return to_text(results.values())


def own_columns(
    arrow: str, types: Mapping[str, Mapping[str, Any]], names: Iterable[str], added: Mapping[str, str]
) -> str:
    """Return the documents' own columns for a written table, as `to_text`.

    Args:
        arrow: Schema of the documents' fields, where tables tell it.
        types: Types of fields by root, in the form of `toolkit.data.schema`, where Arrow does not tell them.
        names: Top-level fields that documents have.
        added: Fields that a mix adds to the metadata, with their types.
    """
    import pyarrow as pa

    if not (arrow or names):
        return ""

    columns = {field.name: field for field in arrow_schema(arrow)}
    fields = []
    for name in dict.fromkeys((*columns, *sorted(names))):
        field, declared = columns.get(name), types.get("document", {}).get(name)
        type_ = field.type if field else _scalar(from_json(declared)) if declared else None
        if name == "metadata" and field and added and field.type.num_fields:
            inner = {item.name: item for item in field.type}
            inner |= {key: _field(key, _scalar(from_json(of))) for key, of in added.items()}
            type_ = pa.struct(list(inner.values()))
        if field and _is_json(field):  # of different types in several files
            type_ = None
        fields.append(_field(name, type_ if type_ is not None and _is_stored(type_) else None))
    return to_text(fields)


def _field(name: str, type_: Any) -> Any:
    import pyarrow as pa

    return pa.field(name, type_) if type_ is not None else pa.field(name, pa.large_string(), metadata=JSON)


def _scalar(type_: Type) -> Any:
    """Return Arrow's type of a JSON field with one type; else None."""
    return arrow_type(type_) if type_.not_null.kind in ("str", "int", "float", "bool") else None


def _is_stored(type_: Any) -> bool:
    """Return True if Parquet stores a type, and JSON restores its values."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        pq.write_table(pa.table({"c": pa.nulls(1, type_)}), pa.BufferOutputStream())
    except (pa.ArrowException, NotImplementedError, TypeError):
        return False
    return not re.search("interval|union|run_end|extension", str(type_))


def arrow_array(values: list[Any], type_: Any) -> Any:
    """Return an array of values restored from JSON.

    Raises:
        ValueError: if one is none of that type (so are errors of Arrow).
    """
    import pyarrow as pa

    restore = _restore(type_)
    values = list(map(restore, values)) if restore else values
    result = _of_buffers(values, type_)
    return pa.array(values, type_) if result is None else result


def _of_buffers(values: list[Any], type_: Any) -> Any:
    """Return an array of texts, numbers, booleans, lists or objects; None for others.

    `pyarrow.array` takes longer, and imports pandas where it is installed.
    """
    import pyarrow as pa

    is_, kinds, children = pa.types, {*map(type, values)} - {type(None)}, list[Any]()
    offsets: Any
    data: list[Any]
    if (is_.is_string(type_) or is_.is_large_string(type_)) and kinds <= {str}:
        texts = [b"" if value is None else value.encode() for value in values]
        offsets, data = np.cumsum([0, *map(len, texts)]), [b"".join(texts)]
    elif is_.is_list(type_) and kinds <= {list}:
        inner = [item for value in values for item in value or ()]
        children = [_of_buffers(inner, type_.value_type)]
        offsets, data = np.cumsum([0, *(len(value or ()) for value in values)]), []
    elif is_.is_struct(type_) and kinds <= {dict}:
        rows = [value or {} for value in values]
        children = [_of_buffers([row.get(field.name) for row in rows], field.type) for field in type_]
        offsets, data = None, []
    elif is_.is_boolean(type_) and kinds <= {bool}:
        offsets, data = None, [np.packbits(np.array([value or False for value in values], bool), bitorder="little")]
    elif (type_ == pa.int64() and kinds <= {int}) or (type_ == pa.float64() and kinds <= {float}):
        try:
            numbers = np.array([0 if value is None else value for value in values], type_.to_pandas_dtype())
        except OverflowError:
            return None
        offsets, data = None, [numbers]
    else:
        return None
    if any(child is None for child in children):
        return None
    if offsets is not None:
        if not is_.is_large_string(type_) and offsets[-1] >= 1 << 31:
            return None
        data = [offsets.astype(np.int64 if is_.is_large_string(type_) else np.int32), *data]
    valid = np.packbits([value is not None for value in values], bitorder="little") if None in values else None
    buffers = [None if item is None else pa.py_buffer(item) for item in (valid, *data)]
    return pa.Array.from_buffers(type_, len(values), buffers, children=children)


def _restore(type_: Any) -> Value | None:
    """Return a function from JSON to a type's values; None for identity."""
    import pyarrow as pa

    is_ = pa.types
    inner: Any
    if is_.is_dictionary(type_):
        return _restore(type_.value_type)
    if is_.is_struct(type_):
        parts = {item.name: part for item in type_ if (part := _as_json if _is_json(item) else _restore(item.type))}
        return _or_null(lambda value: value | {k: part(value.get(k)) for k, part in parts.items()}) if parts else None
    if is_.is_map(type_):
        key, item = _restore_key(type_.key_type), _restore(type_.item_type) or (lambda value: value)
        return _or_null(lambda value: [(key(k), item(v)) for k, v in value.items()])
    if hasattr(type_, "value_type"):  # a list of any kind
        inner = _restore(type_.value_type)
        return _or_null(lambda value: list(map(inner, value))) if inner else None
    for name, value in _OF_TEXTS.items():
        if re.match(name, str(type_)):
            return _or_null(value)
    if is_.is_date(type_):
        scale = 1 if is_.is_date32(type_) else 86_400_000
        return _or_null(lambda text: _of_date(text) * scale)
    if (unit := getattr(type_, "unit", None)) is None:
        return None
    seconds = _of_timestamp if is_.is_timestamp(type_) else _of_duration if is_.is_duration(type_) else _of_time
    return _or_null(lambda text: seconds(text) * _PER_SECOND[unit] // 10**9)


def _is_json(field: Any) -> bool:
    return JSON.items() <= (field.metadata or {}).items()


def _as_json(value: Any) -> str | None:
    return None if value is None else msgspec.json.encode(value).decode()


def _or_null(value: Value) -> Value:
    return lambda item: None if item is None else value(item)


def _restore_key(type_: Any) -> Value:
    import pyarrow as pa

    if pa.types.is_integer(type_):
        return int
    return float if pa.types.is_floating(type_) else _restore(type_) or (lambda value: value)


def _of_timestamp(text: str) -> int:
    """Return the nanoseconds of a time of ISO 8601 since 1970; in UTC, if it has no offset."""
    whole, fraction, offset = _parts(text)
    if _is_far(whole):
        return _since(whole, "s") * 10**9 + fraction
    result = datetime.fromisoformat(whole + offset)
    since = (result if result.tzinfo else result.replace(tzinfo=UTC)) - _EPOCH
    return (since.days * 86400 + since.seconds) * 10**9 + fraction


def _of_date(text: str) -> int:
    """Return the days of a date since 1970."""
    if _is_far(text):
        return _since(text, "D")
    return (date.fromisoformat(text) - _EPOCH.date()).days


def _since(text: str, unit: Literal["s", "D"]) -> int:
    """Return the seconds or days since 1970, of any year."""
    return int(np.datetime64(text.removeprefix("+"), unit).astype(int))


def _is_far(text: str) -> bool:
    """Return True for a year outside of Python's range."""
    return text.startswith(("+", "-", "0000"))


def _of_time(text: str) -> int:
    whole, fraction, _ = _parts(text)
    result = time.fromisoformat(whole)
    return (result.hour * 3600 + result.minute * 60 + result.second) * 10**9 + fraction


def _of_duration(text: str) -> int:
    if (match := _DURATION.fullmatch(text)) is None:
        raise ValueError(f"expected a duration of ISO 8601, got {text!r}")
    sign, days, seconds, fraction = match.groups()
    size = (int(days or 0) * 86400 + int(seconds or 0)) * 10**9 + int((fraction or "").ljust(9, "0"))
    return -size if sign else size


def _parts(text: str) -> tuple[str, int, str]:
    """Return a time without fraction, the fraction's nanoseconds, and the offset."""
    if (match := _TIME.fullmatch(text)) is None:
        raise ValueError(f"expected a time of ISO 8601, got {text!r}")
    whole, fraction, offset = match.groups()
    return whole, int((fraction or "").ljust(9, "0")), offset
