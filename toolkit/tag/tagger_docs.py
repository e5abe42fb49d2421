"""Descriptions of plugins, for the reference pages and for ``toolkit taggers``."""

import inspect
import sys
from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import msgspec.inspect as mi

from toolkit.config.docstrings import attributes_of
from toolkit.data.schema import walk
from toolkit.distribution import extras_named
from toolkit.errors import short
from toolkit.storage_options import Size
from toolkit.tag.tagger import Example, Tagger, markers, value_type

CHOICES_WITH_EXTRAS = {"icu": "icu"}
"""Choices of options that need an extra, whichever tagger offers them."""


class Option(msgspec.Struct, frozen=True):
    """An option of a plugin, as it is shown."""

    name: str
    type: str
    default: str
    description: str


class Value(msgspec.Struct, frozen=True):
    """Part of a tagger's values with a description.

    Attributes:
        name: its place in the value (see `toolkit.data.schema.descriptions`); empty for the value itself.
    """

    name: str
    type: str
    description: str


class Read(msgspec.Struct, frozen=True):
    """Attribute of another set, read by a tagger.

    Attributes:
        option: Option that names it.
        key: the key that it has as a rule, with a field if need be.
        required: True if the option must be given.
        or_value: True if the option may be the value itself.
    """

    option: str
    key: str
    required: bool
    or_value: bool


def source(class_: type[Any]) -> str:
    """Return the section ``Source`` of the class's module docstring."""
    text = inspect.cleandoc(sys.modules[class_.__module__].__doc__ or "")
    return text.partition("\nSource: ")[2].partition("\n\n")[0]


def options(class_: type[msgspec.Struct]) -> list[Option]:
    """Return the options of a plugin, in their order."""
    results, documented = [], attributes_of(class_)
    for field in msgspec.structs.fields(class_):
        info = mi.type_info(field.type)
        described = (info.extra_json_schema or {}) if isinstance(info, mi.Metadata) else {}
        description = documented.get(field.name, str(described.get("description", "")))
        results.append(Option(field.encode_name, type_name(info), _default(field), description))
    return results


def values(class_: type[Tagger]) -> list[Value]:
    """Return a tagger's value, then its parts."""
    return [Value(place, str(t), t.description) for place, t in walk(value_type(class_)) if t.description]


def reads(class_: type[msgspec.Struct]) -> list[Read]:
    """Return the attributes in a tagger's or stage's options.

    Lists are left out; their option describes them.
    """
    marked = [
        (field, result) for field, result in _marked(class_, "attribute") if not _is_list(mi.type_info(field.type))
    ]
    return [Read(field.encode_name, result.key, field.required, result.or_value) for field, result in marked]


def models(class_: type[Tagger]) -> dict[str, Any]:
    """Return the options for model files, with their defaults.

    None is no default.
    """
    marked = _marked(class_, "model")
    return {field.encode_name: None if field.required else field.default for field, _ in marked}


def choices(class_: type[Tagger], option: str) -> list[str]:
    """Return the choices of an option, in their order; none of another one."""
    hint = get_type_hints(class_, include_extras=True).get(option)
    inner = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return list(get_args(inner)) if get_origin(inner) is Literal else []


def extras(class_: type[Tagger]) -> dict[str, str]:
    """Return the extras of a tagger: those that its file or an option's choices name.

    With each, the choice that needs it, as ``option: choice``, or nothing.
    """
    module = sys.modules[class_.__module__]
    results: dict[str, str] = {}
    try:
        text = inspect.getsource(module)
    except (OSError, TypeError):
        text = ""
    results |= dict.fromkeys(extras_named(text), "")
    for field in msgspec.structs.fields(class_):
        for choice in _choices(mi.type_info(field.type)):
            if choice in CHOICES_WITH_EXTRAS:
                results.setdefault(CHOICES_WITH_EXTRAS[choice], f"{field.encode_name}: {choice}")
    return dict(sorted(results.items()))


def example(item: Example, longest: int = sys.maxsize) -> Iterator[str]:
    """Yield the lines of an example: text, options, attributes, metadata, value."""
    yield f"text: {short(item.text, longest)}"
    for part in ("options", "attributes", "metadata"):
        for key, value in getattr(item, part).items():
            yield f"{key}: {short(value, longest)}"
    yield f"value: {short(item.value, longest)}"


def type_name(info: mi.Type) -> str:
    """Return the name of a type for people."""
    match info:
        case mi.Metadata():
            return type_name(info.type)
        case mi.UnionType():
            return " or ".join(type_name(t) for t in info.types if not isinstance(t, mi.NoneType))
        case mi.LiteralType():
            return " or ".join(f"`{value}`" for value in info.values)
        case mi.IntType() | mi.FloatType():
            name = "integer" if isinstance(info, mi.IntType) else "number"
            limits = [f"{sign} {value}" for sign, value in (("≥", info.ge), ("≤", info.le)) if value is not None]
            return " ".join([name, *limits])
        case mi.ListType() | mi.CollectionType():
            return f"list of {type_name(info.item_type)}"
        case mi.CustomType() if info.cls is Size:
            return "size"
        case mi.StructType():
            return "{" + ", ".join(f.encode_name for f in info.fields) + "}"
    return {"StrType": "text", "BoolType": "true or false", "DictType": "mapping"}.get(type(info).__name__, "any")


def _default(field: Any) -> str:
    value = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    if value is msgspec.NODEFAULT:
        return "required"
    if isinstance(value, msgspec.Struct):
        return "`{}`"
    return "none" if value is None else f"`{short(value, sys.maxsize)}`"


def _marked(class_: type[msgspec.Struct], name: str) -> list[tuple[Any, Any]]:
    """Return the fields with a marker, and the marker's value."""
    marked = markers(class_, name)
    return [(field, marked[field.name]) for field in msgspec.structs.fields(class_) if field.name in marked]


def _is_list(info: mi.Type) -> bool:
    return _is_list(info.type) if isinstance(info, mi.Metadata) else isinstance(info, mi.ListType)


def _choices(info: mi.Type) -> list[Any]:
    """Return the choices of an option, in a list or not."""
    match info:
        case mi.LiteralType():
            return list(info.values)
        case mi.Metadata(type=inner) | mi.CollectionType(item_type=inner):
            return _choices(inner)
        case mi.UnionType(types=types):
            return [choice for type_ in types for choice in _choices(type_)]
    return []
