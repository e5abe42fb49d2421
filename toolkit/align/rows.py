"""External rows as an id and values: the readers of input formats with named fields, without a text."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec

from toolkit.data.documents import Span, value_at
from toolkit.data.metadata_fields import MOST_FIELDS
from toolkit.data.own_types import field_types, own_types
from toolkit.data.schema import ANY, Type, check_fields, from_json, nullable
from toolkit.errors import ConfigError, DataError, UnknownPlugin, did_you_mean, short
from toolkit.ingest.reader import READERS, SAMPLE, Draft, Input, first_drafts
from toolkit.ingest.tables.fields import FieldReader, Placed, declare, declared_type
from toolkit.label_files.reader import ANNOTATIONS, AnnotationReader

Chosen = Literal["rest"] | tuple[str, ...]

NOT_OPTIONS = ("fields", "metadata")
"""Options of readers that are about documents."""


@functools.cache
def values_reader(format: str) -> type[FieldReader] | type[AnnotationReader]:
    """Return the reader of a format that gives drafts with an id, maybe a source, and values as `extra`.

    Raises:
        ConfigError: if there is no such format, or its items have no named fields.
    """
    forms = ANNOTATIONS.names()
    if format in forms:
        return ANNOTATIONS.find(format)
    if hint := "" if format in READERS.names() else did_you_mean(format, forms):
        raise UnknownPlugin(f"no format is called {format!r}{hint}")
    result = READERS.find(format)
    if not issubclass(result, FieldReader):
        raise ConfigError(
            "expected a format whose items have named fields (parquet, jsonl, csv …), or of annotation files "
            f"({', '.join(forms)}), got {format!r}"
        )
    fields: list[Any] = [("id", str, "id"), ("values", Chosen, "rest")]
    fields[1:1] = [("source", str | None, None), ("shard", str | None, None)]
    methods = {"draft": _draft, "columns": _columns, "placed": _placed, "declared_values": _declared_values}
    output: Any = msgspec.defstruct(
        f"{result.__name__}Values", fields, bases=(result,), namespace=methods, frozen=True, forbid_unknown_fields=True
    )
    return cast("type[FieldReader]", output)


def _draft(self: Any, row: dict[str, Any], number: int) -> Draft:
    """Return the id, the source and the values of an item."""
    for name in self.leave_out:
        row.pop(name, None)
    id = _name(row, self.id, "id")
    source = _name(row, self.source, "source") if self.source else None
    shard = _name(row, self.shard, "shard") if self.shard else None
    if self.values == "rest":
        values = row
        for name in (self.id, self.source, self.shard):
            values.pop(name, None)
    else:
        values = {}
        for name in self.values:
            _take(values, row, name)
    return Draft(text="", number=number, id=id, source=source, shard=shard, extra=values)


def _take(values: dict[str, Any], row: dict[str, Any], path: str) -> None:
    """Put a field of a row among the values; one at a dotted path into the same objects as it is in."""
    if path in row or "." not in path:
        values[path] = row.get(path)
        return
    *above, last = path.split(".")
    for key in above:
        values = values.setdefault(key, {})
        if not isinstance(values, dict):
            raise DataError(f"expected an object in {key!r}, of which `values` names {path!r}, got {short(values)}")
    values[last] = value_at(row, path)


def _name(row: dict[str, Any], path: str, option: str) -> str:
    value = row[path] if path in row else value_at(row, path)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return value
    hint = "" if _first(path) in row else did_you_mean(path, row) or f"; there are: {', '.join(row)}"
    got = "none" if value is None else short(value)
    raise DataError(f"expected a text or an integer in {path!r} (`{option}:`), got {got}{hint}")


def _columns(self: Any, there: Iterable[str], path: str) -> list[str]:
    """Return which columns of a table must be read."""
    names = list(there)
    if twice := [name for name in names if names.count(name) > 1]:
        raise DataError(f"expected columns of different names, got {twice[0]!r} twice", path=path)
    listed = {
        "id": (self.id,),
        "source": (self.source,) if self.source else (),
        "shard": (self.shard,) if self.shard else (),
        "values": () if self.values == "rest" else self.values,
        "leave_out": self.leave_out,
        "typed": tuple(self.typed),
        "not_null": self.not_null,
    }
    for option, chosen in listed.items():
        for name in chosen:
            if name not in names and _first(name) not in names:
                hint = did_you_mean(name, names) or f"; there are: {', '.join(names)}"
                raise DataError(f"expected the column {name!r} of `{option}`, got none{hint}", path=path)
    if self.values == "rest":
        return [name for name in names if name not in self.leave_out]
    names_of_documents = filter(None, (self.id, self.source, self.shard))
    wanted = {part for name in (*names_of_documents, *self.values) for part in (name, _first(name))}
    return [name for name in names if name in wanted]


def _first(path: str) -> str:
    return path.partition(".")[0]


def _placed(self: Any, columns: Mapping[str, Type], _: Iterable[Any]) -> Any:
    """Return the types of the values from those of all columns of a table."""
    left_out = {self.id, self.source, self.shard, *self.leave_out}
    names = [name for name in columns if name not in left_out] if self.values == "rest" else self.values
    if lacks := [name for name in names if name not in columns and _type_at(columns, name) is None]:
        raise DataError(f"expected the column {lacks[0]!r} of `values`, got none")
    return self.declared_values(_types_of(names, columns), (), "the columns of all files")


def _types_of(names: Iterable[str], columns: Mapping[str, Type]) -> dict[str, Type]:
    """Return the types of those values that are there; one at a dotted path is in objects that are never null."""
    placed: Placed = {"document": {}}
    for name in names:
        if type_ := columns.get(name) or _type_at(columns, name):
            path = (name,) if name in columns else tuple(name.split("."))
            declare(placed, ("document", *path), type_, must=True)
    return placed["document"]


def _type_at(columns: Mapping[str, Type], path: str) -> Type | None:
    """Return the type at a dotted path, which may be null where an object on the way may be; None if there is none."""
    type_, may_be_null = Type("object", fields=tuple(columns.items())), False
    for name in path.split("."):
        inner = type_.not_null.get(name)
        if inner is None:
            return None
        may_be_null |= type_.kind == "nullable"
        type_ = inner
    return nullable(type_) if may_be_null else type_


def _declared_values(self: Any, types: dict[str, Type], closed: Iterable[str], known_by: str) -> Any:
    placed: Placed = {"metadata": {}, "document": types}
    for name, kind in self.typed.items():
        plain = {"str": "str", "int": "int", "float": "float", "bool": "bool"}.get(kind)
        type_ = nullable(from_json(plain)) if plain else ANY
        declare(placed, ("document", *name.split(".")), type_, must=False)
    for name in self.not_null:
        path = ("document", *name.split("."))
        declare(placed, path, declared_type(placed, path, name), must=True)
    return own_types(placed, closed, known_by)


def value_types(reader: Any, inputs: Sequence[Input], makes_schema: bool) -> dict[str, Type]:
    """Return the types of the values: by the columns of all files, or else by the first rows.

    Args:
        reader: by `values_reader`.
        inputs: all of them.
        makes_schema: True if the format has a schema.

    Raises:
        DataError: if a value that is asked for is not there.
    """
    if makes_schema and (result := reader.own_types(inputs)) is not None:
        return {name: from_json(value) for name, value in result.fields["document"].items()}
    rows = [msgspec.json.decode(msgspec.json.encode(draft.extra)) for draft in first_drafts(reader, inputs)]
    for name in () if reader.values == "rest" else reader.values:
        there = any(row.get(name) is not None or value_at(row, name) is not None for row in rows)
        if rows and not there and name not in reader.typed:
            raise DataError(
                f"expected the field {name!r} of `values`, got none, or null, in the first {len(rows):,} rows; give "
                f"its type if it comes later: `typed: {{{name}: float}}`",
                path=inputs[0].path,
            )
    types = field_types(rows, spans=True)
    types = types if reader.values == "rest" else _types_of(reader.values, types)
    if len(types) > MOST_FIELDS:
        raise DataError(f"expected at most {MOST_FIELDS} values a row, got {len(types)}; choose some with `values:`")
    result = reader.declared_values(types, (), f"the first {SAMPLE:,} rows")
    return {name: from_json(value) for name, value in result.fields["document"].items()}


# --- the check of values ----------------------------------------------------------------------------------------------

_PYTHON: dict[str, Any] = {"bool": bool, "int": int, "float": float, "str": str, "span": Span}


def value_struct(types: Mapping[str, Type]) -> type[msgspec.Struct]:
    """Return a Struct for objects of these types alone, in this order; where one may be null it may be absent, too."""
    fields = list[Any]()
    check_fields(types)
    names = {}
    for i, (name, type_) in enumerate(types.items()):
        names[f"f{i}"] = name
        if type_.kind == "nullable":
            fields.append((f"f{i}", _python(type_), None))
        elif type_.kind in ("any", "null"):
            fields.append((f"f{i}", msgspec.Raw, msgspec.Raw(b"null")))
        else:
            fields.append((f"f{i}", _python(type_)))
    return msgspec.defstruct("Values", fields, rename=names, kw_only=True, gc=False, forbid_unknown_fields=True)


def _python(type_: Type) -> Any:
    if type_.kind == "object":
        return value_struct(dict(type_.fields))
    if type_.item:
        inner: Any = _python(type_.item)
        if type_.kind == "nullable":
            return inner | None
        return list[inner] if type_.kind == "list" else dict[str, inner]
    return _PYTHON.get(type_.kind, msgspec.Raw)
