"""Values of Arrow as those of JSON: with which types they are read, and rows as objects."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import compress
from typing import Any, cast

import msgspec

from toolkit.data.documents import MAX_NESTING
from toolkit.data.schema import ANY, BOOL, FLOAT, FLOAT32, INT, STR, Type, from_json, list_of, nullable, to_json
from toolkit.distribution import require_extra
from toolkit.errors import DAMAGED, DataError
from toolkit.lazy_numpy import np
from toolkit.storage.json_files import decode

READ = 1 << 20
"""Bytes of a column that are read at a time."""

HELD = 4 << 20
"""Bytes of rows, about, that are objects at a time."""


def check_installed(content: str) -> None:
    """Raise MissingExtra if pyarrow, the reader of such files, is missing."""
    require_extra("parquet", content, "pyarrow")


def damage(content: str, error: BaseException, path: str, place: str, row: int | None = None) -> DataError:
    """Return the error of a file unreadable by pyarrow.

    Args:
        content: the file should be.
        error: Error of pyarrow.
        path: Path of the file.
        place: Place in the file, in words.
        row: the first one that could not be read.
    """
    text = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
    message = f"expected a sound {content}, got damage {place}: {text}; {DAMAGED}"
    return DataError(message, path=path, line=row)


def names_in(fields: Iterable[Any]) -> list[str]:
    """Return the names of fields, at any depth.

    Raises:
        UnicodeDecodeError: if one is not UTF-8.
    """
    results = []
    for field in fields:
        inner = field.type
        results += [field.name, *names_in(inner.field(i) for i in range(inner.num_fields))]
    return results


def plain_schema(schema: Any, path: str) -> Any:
    """Return the schema with types of Python. Times are in microseconds, numbers for texts become texts.

    Floats of fewer bits become those of 64 with the shortest text that gives back the same float.

    Raises:
        DataError: if values are nested more deeply than a document may have them.
    """
    import pyarrow as pa

    fields = []
    for field in schema:
        if (depth := _depth(field.type)) >= MAX_NESTING:
            message = (
                f"expected at most {MAX_NESTING} lists and objects in each other, got {depth + 1} in {field.name!r}"
            )
            raise DataError(message, path=path)
        fields.append(field.with_type(_plain(field.type)))
    return pa.schema(fields, metadata=schema.metadata)


def _depth(type_: Any) -> int:
    return 1 + max((_depth(type_.field(i).type) for i in range(type_.num_fields)), default=0)


def _plain(type_: Any) -> Any:
    """Return the type of Python's values for the same content."""
    import pyarrow as pa

    is_ = pa.types

    def leaf(of: Any) -> Any:
        if is_.is_dictionary(of):
            return _plain(of.value_type)
        if getattr(of, "unit", "") == "ns":
            times = ((is_.is_timestamp, pa.timestamp("us", getattr(of, "tz", None))), (is_.is_time64, pa.time64("us")))
            return next((plain for is_such, plain in times if is_such(of)), pa.duration("us"))
        return pa.float64() if is_.is_floating(of) else of

    return _with_leaves(type_, leaf)


def _with_leaves(type_: Any, leaf: Callable[[Any], Any]) -> Any:
    """Return a type with its leaves replaced."""
    import pyarrow as pa

    is_ = pa.types
    if is_.is_struct(type_):
        fields = [type_.field(i) for i in range(type_.num_fields)]
        return pa.struct([field.with_type(_with_leaves(field.type, leaf)) for field in fields])
    if is_.is_map(type_):
        key, item = (_with_leaves(inner, leaf) for inner in (type_.key_type, type_.item_type))
        return pa.map_(key, type_.item_field.with_type(item))
    if is_.is_list(type_) or is_.is_large_list(type_) or is_.is_fixed_size_list(type_):
        inner = _with_leaves(type_.value_type, leaf)
        return type_ if inner == type_.value_type else pa.large_list(type_.value_field.with_type(inner))
    return leaf(type_)


def _as_text(type_: Any) -> Any:
    """Return a type with texts for 32-bit floats. Arrow then writes them with the fewest digits."""
    import pyarrow as pa

    is_single = {pa.float16(), pa.float32()}.__contains__
    return _with_leaves(type_, lambda leaf: pa.string() if is_single(leaf) else leaf)


def objects(piece: Any, schema: Any) -> list[dict[str, Any]]:
    """Return rows of Arrow as objects; values of a set that was exported as they were declared.

    Args:
        piece: a record batch.
        schema: Schema from `plain_schema`.

    Raises:
        ValueError: if Python cannot have a value; it names the column.
    """
    declared = types_in(schema.metadata) or {}
    columns = {}
    for column, field in zip(piece.columns, schema, strict=True):
        if declared and field.name == ROW:
            continue
        try:
            values = values_of(column, field.type)
        except (ValueError, OverflowError, KeyError) as error:
            text = error.args[0] if isinstance(error, KeyError) else error  # of a map, some of whose keys are alike
            raise ValueError(f"{str(text).rstrip('.')}, in the column {field.name!r}") from None
        plain = plain_of(declared[field.name]) if field.name in declared else None
        columns[field.name] = list(map(plain, values)) if plain else values
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def arrow_rows(batch: Any) -> list[dict[str, Any]]:
    """Return the rows of a record batch as objects, like documents.

    Raises:
        ValueError: if Python cannot have a value; it names the column.
    """
    return objects(batch, plain_schema(batch.schema, ""))


def values_of(column: Any, type_: Any, mask: "np.ndarray | None" = None) -> list[Any]:
    """Return a column as values of Python; times that it does not have, as texts.

    Args:
        column: Column of Arrow.
        type_: Type of the values, of Arrow.
        mask: Rows that are returned, bool; the others are checked, too.
    """
    import pyarrow as pa

    try:
        plain = column if column.type == type_ else column.cast(_as_text(column.type)).cast(type_)
        return listed(plain, mask)
    except (pa.ArrowInvalid, ValueError, OverflowError):  # parts of a microsecond; years below 1 or above 9999
        values = map(_value, column)
        return [*values] if mask is None else [*compress([*values], mask)]


def listed(column: Any, mask: "np.ndarray | None" = None) -> list[Any]:
    """Return a column as a list; that of pyarrow takes five times as long for numbers and texts.

    Arguments are those of `values_of`.
    """
    import pyarrow as pa

    is_, type_, values = pa.types, column.type, list[Any]()
    chosen: Any = slice(None) if mask is None else mask
    if is_.is_string(type_) or is_.is_large_string(type_):
        view, begins, ends = utf8_of(column)
        if mask is not None:
            column.validate(full=True)  # so that texts that are not decoded are sound, too
        utf8 = bytes(view)
        whole = utf8.decode() if utf8.isascii() else None
        places = zip(begins[chosen].tolist(), ends[chosen].tolist(), strict=True)
        values = [utf8[i:j].decode() for i, j in places] if whole is None else [whole[i:j] for i, j in places]
    elif is_.is_boolean(type_):
        values = _bits(column, 1)[chosen].tolist()
    elif is_.is_integer(type_) or is_.is_float64(type_):
        values = _numbers(column)[chosen].tolist()
    else:
        values = [*column.to_pylist(maps_as_pydicts="strict")]
        return values if mask is None else [*compress(values, mask)]
    if column.null_count:
        valid = _bits(column, 0)[chosen].tolist()
        return [item if is_valid else None for item, is_valid in zip(values, valid, strict=True)]
    return values


def _bits(column: Any, number: int) -> "np.ndarray":
    """Return the bits of a column in a buffer: 0 has those of values that are not null, if some are."""
    bits = np.frombuffer(column.buffers()[number] or b"", dtype=np.uint8)
    first = column.offset // 8
    bits = np.unpackbits(bits[first : first + len(column) // 8 + 2], bitorder="little")
    return cast("np.ndarray", bits[column.offset % 8 :][: len(column)].view(bool))


def _numbers(column: Any) -> "np.ndarray":
    """Return the numbers of a column; those of nulls are any."""
    begin, end = column.offset, column.offset + len(column)
    return cast("np.ndarray", np.frombuffer(column.buffers()[1] or b"", column.type.to_pandas_dtype(), end)[begin:])


def utf8_of(column: Any) -> "tuple[memoryview, np.ndarray, np.ndarray]":
    """Return texts in UTF-8, not copied, their begins, and their ends; those of nulls are any."""
    import pyarrow as pa

    if not len(column):
        return memoryview(b""), *np.zeros((2, 0), dtype=np.int64)
    _, places, data = column.buffers()
    wide = np.int64 if pa.types.is_large_string(column.type) else np.int32
    bounds = np.frombuffer(places, wide)[column.offset :][: len(column) + 1].astype(np.int64)
    first, last = int(bounds[0]), int(bounds[-1])
    return memoryview(data or b"")[first:last], bounds[:-1] - first, bounds[1:] - first


def _value(scalar: Any) -> Any:
    """Return a value of Arrow, at any depth."""
    import pyarrow as pa

    type_, is_ = scalar.type, pa.types
    if not scalar.is_valid:
        return None
    if is_.is_dictionary(type_):
        return _value(scalar.value)
    if is_.is_struct(type_):
        return {type_.field(i).name: _value(scalar[i]) for i in range(type_.num_fields)}
    if is_.is_map(type_):
        entries = [(key.as_py(), _value(value)) for key, value in zip(*scalar.values.flatten(), strict=True)]
        if len(dict(entries)) < len(entries):
            raise ValueError("a map has a key twice")
        return dict(entries)
    if is_.is_list(type_) or is_.is_large_list(type_) or is_.is_fixed_size_list(type_):
        return [_value(value) for value in scalar.values]
    if is_.is_floating(type_):
        return float(scalar.cast(_as_text(type_)).as_py())
    return _time(scalar) if is_.is_temporal(type_) else scalar.as_py()


def _time(scalar: Any) -> Any:
    """Return a time, a date or a duration: as one of Python, if it has that, else as a text."""
    if getattr(scalar.type, "unit", "") == "ns":
        return _text_of(scalar)
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        return _far(scalar)


def _far(scalar: Any) -> str:
    """Return a time out of Python's range as ISO 8601: `-0043-03-15`, `+12345-01-01T00:00:00Z`."""
    import pyarrow as pa

    type_, value = scalar.type, scalar.value
    if pa.types.is_duration(type_):
        whole, rest = divmod(abs(value), per_second := {"s": 1, "ms": 10**3, "us": 10**6}[type_.unit])
        return f"{'-' if value < 0 else ''}PT{whole}.{rest * 10**6 // per_second:06d}S"
    is_date = pa.types.is_date(type_)
    unit: Any = ("D" if pa.types.is_date32(type_) else "ms") if is_date else type_.unit
    text = str(np.datetime64(value, unit).astype("datetime64[D]") if is_date else np.datetime64(value, unit))
    sign = "+" if text.index("-", 1) > len("9999") and text[0] != "-" else ""
    return f"{sign}{text}{'Z' if getattr(type_, 'tz', None) else ''}"


_SECONDS = re.compile(r"(:\d\d)(?:\.(\d+))?(?=[^\d:]|$)")
"""The seconds of a time of ISO 8601, the last two digits behind a colon but for an offset."""


def _text_of(scalar: Any) -> Any:
    """Return a time in nanoseconds, as ISO 8601 has it; as one of Python where it is one of whole microseconds."""
    import pyarrow as pa

    type_, value = scalar.type, scalar.value
    whole, rest = divmod(abs(value) if pa.types.is_duration(type_) else value, 1000)
    if not rest:
        return scalar.cast(_plain(type_)).as_py()
    if pa.types.is_duration(type_):
        return f"{'-' if value < 0 else ''}PT{whole // 10**6}.{whole % 10**6:06d}{rest:03d}S"
    text = msgspec.to_builtins(pa.scalar(whole, _plain(type_)).as_py())
    return _SECONDS.sub(lambda match: f"{match[1]}.{match[2] or '':0<6}{rest:03d}", text, count=1)


def not_finite(values: Any) -> int:
    """Return the number of non-finite numbers, at any depth; they become null."""
    import pyarrow as pa

    type_ = values.type
    if pa.types.is_floating(type_):
        finite = np.isfinite(_numbers(values))
        return int(np.count_nonzero(~finite & _bits(values, 0) if values.null_count else ~finite))
    if pa.types.is_struct(type_):
        return sum(map(not_finite, values.flatten()))
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        return not_finite(values.flatten())
    return 0


KEY = b"toolkit.attributes"
"""The entry of the footer."""

ROW = "row"
"""The column that has the row of the document, from 1; no key of the set."""

Value = Callable[[Any], Any]


class Declared(msgspec.Struct, frozen=True):
    """The content of the footer.

    Attributes:
        set: Set that was exported.
        types: Types of its keys, in the form of `toolkit.data.schema`.
    """

    set: str
    types: dict[str, Any]


def entry(set_name: str, types: Mapping[str, Type]) -> dict[bytes, bytes]:
    """Return the entry for the footer of a file of a set."""
    result = Declared(set_name, {key: to_json(type_) for key, type_ in types.items()})
    return {KEY: msgspec.json.encode(result)}


def types_in(metadata: Mapping[bytes, bytes] | None) -> dict[str, Type] | None:
    """Return the types declared in a footer; None without a readable entry."""
    if not metadata or KEY not in metadata:
        return None
    try:
        result = decode(metadata[KEY], Declared)
        return {key: from_json(value) for key, value in result.types.items()}
    except (msgspec.DecodeError, ValueError):
        return None


def plain_of(type_: Type) -> Value | None:
    """Return a function from Arrow's values to plain ones; None for identity."""
    inner = plain_of(type_.item) if type_.item else None
    match type_.kind:
        case "any":
            return lambda value: None if value is None else msgspec.json.decode(value)
        case "span":
            return lambda value: [value["start"], value["end"], value["score"]]
        case "object" if not type_.fields:
            return lambda value: {}
        case "object":
            parts = {name: part for name, field in type_.fields if (part := plain_of(field))}
            return (lambda value: value | {name: part(value[name]) for name, part in parts.items()}) if parts else None
    if inner is None:
        return None
    match type_.kind:
        case "list":
            return lambda value: list(map(inner, value))
        case "map":
            return lambda value: {key: inner(item) for key, item in value.items()}
    return lambda value: None if value is None else inner(value)


def types_of(about: Any, also_null: Collection[str] | None = None) -> dict[str, Type]:
    """Return the types of the columns of a Parquet file; those without a null by its statistics are not nullable.

    A file of a set that was exported says its types itself.

    Args:
        about: the file's metadata, of pyarrow.
        also_null: columns in which something becomes null; None if no values were looked at: numbers in lists may.
    """
    nulls = leaves_with_nulls(about)
    inside: set[str] = set()
    if also_null is None:
        inside = {leaf.path for leaf in _leaves(about) if leaf.max_repetition_level and leaf.physical_type in _FLOATS}
        also_null = ()
    nulls |= {leaf.path for leaf in _leaves(about) if leaf.path.partition(".")[0] in also_null}
    columns = about.schema.to_arrow_schema()
    declared = types_in(columns.metadata)
    return {
        field.name: (declared or {}).get(field.name)
        or _placed(field.name, field.type, (nulls, inside), may_be_null=field.nullable or field.name in also_null)
        for field in columns
        if declared is None or field.name != ROW
    }


_FLOATS = ("FLOAT", "DOUBLE")


def _leaves(about: Any) -> list[Any]:
    return [about.schema.column(i) for i in range(len(about.schema))]


def leaves_with_nulls(about: Any) -> set[str]:
    """Return the paths of leaves without statistics of zero nulls. Row groups without rows do not count."""
    results = set()
    for group in range(about.num_row_groups):
        row_group = about.row_group(group)
        if not row_group.num_rows:  # a file without rows has such a group, without statistics
            continue
        for i in range(row_group.num_columns):
            column = row_group.column(i)
            statistics = column.statistics
            if statistics is None or not statistics.has_null_count or statistics.null_count:
                results.add(column.path_in_schema)
    return results


def _placed(path: str, type_: Any, nulls: tuple[Collection[str], Collection[str]], *, may_be_null: bool) -> Type:
    """Return the type of a column or field by its path. A nullable object is null where none of its fields tells.

    Args:
        path: Path of the column or field.
        type_: Type of Arrow.
        nulls: Paths of leaves with nulls, and of those in lists whose numbers may become null.
        may_be_null: True if the column or field may be null.
    """
    import pyarrow as pa

    if pa.types.is_struct(type_):
        inside = [type_.field(i) for i in range(type_.num_fields)]
        fields = [(item.name, _placed(f"{path}.{item.name}", item.type, nulls, may_be_null=True)) for item in inside]
        result = Type("object", fields=tuple(fields))
        is_certain = any(inner.kind not in ("nullable", "any") for _, inner in fields)  # of a null object all are
        return result if is_certain or not may_be_null else nullable(result)
    has_nulls, become_null = (
        any(leave == path or leave.startswith(f"{path}.") for leave in leaves) for leaves in nulls
    )
    result = plain_type(type_, inner_nulls=has_nulls or become_null)
    return nullable(result) if may_be_null and has_nulls else result


def plain_type(type_: Any, *, inner_nulls: bool = True) -> Type:
    """Return the type of Arrow's values as JSON.

    Args:
        type_: Type of Arrow.
        inner_nulls: True if what is inside may be null.
    """
    import pyarrow as pa

    def inner(of: Any) -> Type:
        type_ = plain_type(of, inner_nulls=inner_nulls)
        return nullable(type_) if inner_nulls else type_

    is_ = pa.types
    if is_.is_dictionary(type_):
        return plain_type(type_.value_type)
    if is_.is_struct(type_):
        inside = [type_.field(i) for i in range(type_.num_fields)]
        return Type("object", fields=tuple((item.name, inner(item.type)) for item in inside))
    if is_.is_map(type_):
        return Type("map", inner(type_.item_type))
    if is_.is_list(type_) or is_.is_large_list(type_) or is_.is_fixed_size_list(type_):
        return list_of(inner(type_.value_type))
    types = (
        (is_.is_boolean, BOOL),
        (is_.is_integer, INT),
        (is_.is_float64, FLOAT),
        (is_.is_floating, FLOAT32),
        (is_.is_string, STR),
        (is_.is_large_string, STR),
        (is_.is_date, STR),
        (is_.is_timestamp, STR),
        (is_.is_time, STR),
    )
    return next((result for is_such, result in types if is_such(type_)), ANY)
