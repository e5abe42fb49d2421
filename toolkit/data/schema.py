"""The types of attribute values: declared by taggers, kept on disk with a set, checked by rules, used to decode.

One small closed algebra, so that a rule over a set can be checked where its tagger is not installed:

    bool  int  float  float32  str  span  any
    {"list": T}                    a list
    {"map": T}                     an object with open keys
    {"object": {"field": T, …}}    an object with exactly these fields
    {"nullable": T}                T or null

``int`` is accepted where ``float`` is expected. A ``float32`` is a ``float`` with the shortest text of a float32; rules
compare it as such. A span is ``[start, end, score]``.

A type also carries a sentence that says what the value is. `descriptions` lists these sentences apart from the form
above, because other words for a value do not change it.
"""

from __future__ import annotations

import functools
import keyword
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeGuard

import msgspec
import msgspec.inspect as mi
from msgspec.structs import replace

from toolkit.config.docstrings import attributes_of
from toolkit.data.documents import Span
from toolkit.errors import ConfigError, DataError


class Type(msgspec.Struct, frozen=True, eq=False):
    """A type of the algebra.

    Attributes:
        kind: ``bool int float str span any list map object nullable null never``; ``null`` and ``never`` (of the
            elements of lists that are all empty) only arise when types are inferred from values, and in expressions.
        item: Item of a list, map or nullable.
        fields: Fields of an object, in order.
        single: True if a float is one of 32 bits.
        description: Description of the value in a sentence; types that differ in it alone are equal.
    """

    kind: str
    item: Type | None = None
    fields: tuple[tuple[str, Type], ...] = ()
    single: bool = False
    description: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Type) and self._compared == other._compared

    def __ne__(self, other: object) -> bool:  # or else that of Struct, which compares the description, too
        return not self == other

    def __hash__(self) -> int:
        return hash(self._compared)

    @property
    def _compared(self) -> tuple[Any, ...]:
        return self.kind, self.item, self.fields, self.single

    def __str__(self) -> str:
        match self.kind:
            case "list" | "map":
                return f"{self.kind}[{self.item}]"
            case "nullable":
                return f"{self.item} | null"
            case "object":
                return "{" + ", ".join(f"{name}: {type_}" for name, type_ in self.fields) + "}"
        return "float32" if self.single else self.kind

    @property
    def not_null(self) -> Type:
        """Return the type of the values other than null."""
        return (self.item or ANY) if self.kind == "nullable" else self

    def get(self, name: str) -> Type | None:
        """Return the type of a field of an object; None if it has no such field."""
        return dict(self.fields).get(name)


BOOL, INT, FLOAT, STR, SPAN, ANY, NULL, NEVER = (
    Type(kind) for kind in ("bool", "int", "float", "str", "span", "any", "null", "never")
)
FLOAT32 = Type("float", single=True)
SPANS = Type("list", SPAN)


def list_of(item: Type) -> Type:
    return Type("list", item)


def nullable(item: Type) -> Type:
    return item if item.kind in ("nullable", "any", "null") else Type("nullable", item, description=item.description)


def from_annotation(annotation: Any, where: str) -> Type:
    """Return the type of a Python annotation.

    It may be anything that msgspec understands, without unions other than ``| None``.

    Descriptions are those of ``msgspec.Meta``, else those that the docstring of a Struct has under ``Attributes:``.
    """
    if annotation is None:
        hint = "annotate what `tag` (or `tag_batch`) returns"
        raise ConfigError(f"{where}: expected a declared value type, got none: {hint}")
    return _from_info(mi.type_info(annotation), where)


_DECLARED: dict[type[mi.Type], Type] = {
    mi.BoolType: BOOL,
    mi.IntType: INT,
    mi.FloatType: FLOAT,
    mi.StrType: STR,
    mi.LiteralType: STR,
    mi.AnyType: ANY,
    mi.RawType: ANY,
}


def _from_info(info: mi.Type, where: str) -> Type:
    if plain := _DECLARED.get(type(info)):
        return plain
    match info:
        case mi.Metadata():
            type_ = _from_info(info.type, where)
            return about(type_, str((info.extra_json_schema or {}).get("description", "")) or type_.description)
        case mi.NamedTupleType() if info.cls is Span:
            return SPAN
        case mi.ListType() | mi.CollectionType() | mi.VarTupleType():
            return list_of(_from_info(info.item_type, where))
        case mi.DictType():
            return Type("map", _from_info(info.value_type, where))
        case mi.StructType() | mi.TypedDictType() | mi.DataclassType():
            documented = attributes_of(info.cls)
            fields = [(f, _from_info(f.type, where)) for f in info.fields]
            return Type(
                "object",
                fields=tuple((f.encode_name, about(t, t.description or documented.get(f.name, ""))) for f, t in fields),
            )
        case mi.UnionType():
            some = [t for t in info.types if not isinstance(t, mi.NoneType)]
            if len(some) == 1 and len(info.types) == 2:
                return nullable(_from_info(some[0], where))
    raise ConfigError(
        f"{where}: expected bool, int, float, str, Span, list, dict, Struct or `| None`, got {type(info).__name__}"
    )


def about(type_: Type, description: str) -> Type:
    """Return the type with a description of the value."""
    return replace(type_, description=description)


def descriptions(type_: Type, place: str = "") -> dict[str, str]:
    """Return the descriptions of a value and its parts, by place.

    The value itself has the place ``""``, a field ``shares``, what is in a list or map ``top[]``, ``shares{}.lines``.
    """
    return {inner: part.description for inner, part in walk(type_, place) if part.description}


def walk(type_: Type, place: str = "") -> Iterator[tuple[str, Type]]:
    """Yield a type and its parts, with their places as in `descriptions`."""
    yield place, type_
    for inner, part in _parts(type_, place):
        yield from walk(part, inner)


def described(type_: Type, texts: Mapping[str, str], place: str = "") -> Type:
    """Return the type with descriptions by their places, as `descriptions` gives them."""
    if type_.item is not None:
        inner = place + _INSIDE.get(type_.kind, "")
        return Type(type_.kind, described(type_.item, texts, inner), description=texts.get(place, ""))
    names = [name for name, _ in type_.fields]
    parts = [described(part, texts, inner) for inner, part in _parts(type_, place)]
    return replace(type_, fields=tuple(zip(names, parts, strict=True)), description=texts.get(place, ""))


_INSIDE = {"list": "[]", "map": "{}"}


def _parts(type_: Type, place: str) -> list[tuple[str, Type]]:
    """Return the parts of a type, with their places. A nullable type adds nothing to its place."""
    if type_.kind == "nullable" and type_.item is not None:
        return _parts(type_.item, place)
    if type_.item is not None:
        return [(place + _INSIDE[type_.kind], type_.item)]
    return [(f"{place}.{name}" if place else name, part) for name, part in type_.fields]


def to_json(type_: Type) -> Any:
    """Return the form on disk, shown in this module's docstring."""
    match type_.kind:
        case "list" | "map" | "nullable":
            assert type_.item
            return {type_.kind: to_json(type_.item)}
        case "object":
            return {"object": {name: to_json(t) for name, t in type_.fields}}
    return str(type_)


def from_json(value: Any) -> Type:
    """Return the type of a form on disk.

    Raises:
        ValueError: if it is not of that form.
    """
    if isinstance(value, str) and value in ("bool", "int", "float", "str", "span", "any", "null", "never"):
        return Type(value)
    if value == "float32":
        return FLOAT32
    if isinstance(value, dict) and len(value) == 1:
        ((kind, inner),) = value.items()
        if kind in ("list", "map", "nullable"):
            return Type(kind, from_json(inner))
        if kind == "object" and isinstance(inner, dict):
            return Type("object", fields=tuple((name, from_json(t)) for name, t in inner.items()))
    raise ValueError(f"expected an attribute type, got {value!r}")


_PYTHON: dict[str, Any] = {"bool": bool, "int": int, "float": float, "str": str, "span": Span, "null": None}


def python_type(type_: Type, scalars: Mapping[str, Any], of_object: Callable[[Type], Any]) -> Any:
    """Return a msgspec type for values of this type.

    Args:
        type_: Type of the values.
        scalars: Types of scalars by kind; others are `Any`.
        of_object: Function that returns the msgspec type of an object.
    """
    if type_.item:
        inner: Any = python_type(type_.item, scalars, of_object)
        return inner | None if type_.kind == "nullable" else list[inner] if type_.kind == "list" else dict[str, inner]
    return of_object(type_) if type_.kind == "object" else scalars.get(type_.kind, Any)


@functools.lru_cache(1024)
def to_python(type_: Type) -> Any:
    """Return the msgspec type to decode values of this type.

    Objects become Structs whose attributes are `field_name` of the keys. Unknown fields are ignored, missing ones are
    an error.
    """
    return python_type(type_, _PYTHON, lambda object_: struct_of({name: to_python(t) for name, t in object_.fields}))


def struct_of(fields: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> type[msgspec.Struct]:
    """Return a Struct for these JSON keys; its attributes are named by `field_name`.

    Raises:
        DataError: if a key is no `is_field`.
    """
    defaults = defaults or {}
    check_fields(fields)
    rename = {field_name(key): key for key in fields}
    definition: list[Any] = [(field_name(key), t) for key, t in fields.items() if key not in defaults]
    definition += [(field_name(key), fields[key], value) for key, value in defaults.items() if key in fields]
    return msgspec.defstruct("Value", definition, rename=rename, frozen=True, gc=False)


def exact(types: Mapping[str, Type]) -> type[msgspec.Struct] | None:
    """Return a Struct for objects of exactly these keys and types. `infer` finds no other types in their values.

    Return None where decoding does not tell that.
    """
    if not all(map(_is_exact, types.values())):
        return None
    scalars = _PYTHON | {"span": tuple[int, int, float]}  # a Span may lack its score
    fields = {key: python_type(type_, scalars, lambda inner: exact(dict(inner.fields))) for key, type_ in types.items()}
    result = struct_of(fields)
    return msgspec.defstruct("Exact", [], bases=(result,), frozen=True, gc=False, forbid_unknown_fields=True)


def _is_exact(type_: Type) -> bool:
    inside = [*([type_.item] if type_.item else []), *(field for _, field in type_.fields)]
    return type_.kind not in ("any", "never") and all(map(_is_exact, inside))


_NO_FIELD = re.compile(r'["\\\x00-\x1f]')


def is_field(key: str) -> bool:
    """Return True if a JSON key can be an object's field. msgspec has none with quotes or control characters."""
    return not _NO_FIELD.search(key)


def check_fields(keys: Iterable[str]) -> None:
    """Raise DataError for a key other than an `is_field`."""
    if bad := next((key for key in keys if not is_field(key)), None):
        raise DataError(f"expected keys without quotes, backslashes and control characters, got {bad!r}; rename it")


def field_name(key: str) -> str:
    """Return a Python identifier for a JSON key, if possible the key."""
    if key.isidentifier() and key.isascii() and not keyword.iskeyword(key) and not key.startswith(("_", "x_")):
        return key
    return "x_" + key.encode().hex()


SCALARS = {type(None): NULL, bool: BOOL, int: INT, float: FLOAT, str: STR}
"""Types by the Python types of decoded values."""


def infer(value: Any) -> Type:
    """Return the narrowest type of a decoded JSON value. `[int, int, number]` in a list is a span."""
    if scalar := SCALARS.get(type(value)):
        return scalar
    match value:
        case [int(), int(), int() | float()] if not any(isinstance(x, bool) for x in value):
            return SPAN
        case list():
            return list_of(functools.reduce(union, map(infer, value), NEVER))
        case dict() if all(map(is_field, value)):
            return Type("object", fields=tuple((key, infer(element)) for key, element in value.items()))
        case dict():
            return Type("map", functools.reduce(union, map(infer, value.values()), NEVER))
    return ANY


def union(a: Type, b: Type) -> Type:
    """Return the narrowest common type of both; `any` without one."""
    kinds = {a.kind, b.kind}
    if a == b or "never" in kinds:
        return b if a.kind == "never" else a
    if kinds & {"null", "nullable"}:
        return nullable(union(*(NEVER if t.kind == "null" else t.not_null for t in (a, b))))
    if kinds <= {"int", "float"}:
        return FLOAT
    if kinds == {"list", "span"}:
        return list_of(union(a.item or b.item or ANY, FLOAT))
    if kinds == {"list"}:
        return list_of(union(a.item or ANY, b.item or ANY))
    if kinds == {"object"} and dict(a.fields).keys() == dict(b.fields).keys():
        other = dict(b.fields)
        return Type("object", fields=tuple((name, union(t, other[name])) for name, t in a.fields))
    if kinds <= {"object", "map"}:
        maps_first = sorted((a, b), key=lambda t: t.kind != "map")
        inside = [t for type_ in maps_first for t in (type_.item, *(t for _, t in type_.fields)) if t]
        return Type("map", functools.reduce(union, inside, NEVER))
    return ANY


def is_number(value: object) -> TypeGuard[int | float]:
    """Return True if a JSON value is a number; to Python, true and false are some also."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_per_line(type_: Type) -> bool:
    """Return True for a type with a value for each line: any list but spans."""
    return type_.kind == "list" and type_ != SPANS


def has_spans(type_: Type) -> bool:
    """Return True if the type has spans in it, at any depth."""
    return _has(type_, "span")


def has_any(type_: Type) -> bool:
    """Return True if the type has an undeclared part."""
    return _has(type_, "any")


def _has(type_: Type, kind: str) -> bool:
    return kind == type_.kind or any(_has(t, kind) for t in (type_.item, *(t for _, t in type_.fields)) if t)


def fits(declared: Type, expected: Type) -> bool:
    """Return True if values of the declared type fit the expected type.

    An object may have more fields than are wanted. It can be given as a map to whose values its fields fit.
    """
    if declared in (expected, NEVER) or ANY in (declared, expected):
        return True
    if expected.kind == "nullable":
        assert expected.item
        inner = declared.not_null
        return inner.kind == "null" or fits(inner, expected.item)
    if declared.kind in ("int", "float") and expected.kind == "float":
        return True
    if declared.kind == expected.kind and declared.kind in ("list", "map"):
        assert declared.item
        assert expected.item
        return fits(declared.item, expected.item)
    if (declared.kind, expected.kind) == ("object", "map"):
        assert expected.item
        return all(fits(of_field, expected.item) for _, of_field in declared.fields)
    if declared.kind == expected.kind == "object":
        return all((t := declared.get(name)) is not None and fits(t, want) for name, want in expected.fields)
    return False
