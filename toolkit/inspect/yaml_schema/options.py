"""From the types of settings to the parts of a JSON Schema."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from toolkit.config import settings
from toolkit.config.docstrings import first_line
from toolkit.config.sizes import Size
from toolkit.errors import ConfigError, MissingExtra
from toolkit.plugins import Kind
from toolkit.storage.options import Duration

Schema = dict[str, Any]

VARIABLE: Schema = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*\}"}
"""A setting that the environment gives, in whole or in part."""

_SIZE: Schema = {
    "description": "bytes: 1000000, 500 MB or 64 MiB",
    "anyOf": [
        {"type": "integer", "minimum": 1},
        {"type": "string", "pattern": r"^\s*[0-9][0-9_]*(\.[0-9]+)?\s*([KkMmGgTt][Ii]?)?[Bb]?\s*$"},
    ],
}
_DURATION: Schema = {
    "description": "90 s, 5 min or 1 h",
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0},
        {
            "type": "string",
            "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*([Ss]|[Ss]ecs?|[Ss]econds?|[Mm]in(ute)?s?|[Hh](ours?)?)?\s*$",
        },
    ],
}
_WORDED = {Size: _SIZE, Duration: _DURATION}
_SCALARS = ("integer", "number", "boolean")


class Definitions:
    """The ``$defs`` of a schema, as its parts need them.

    Attributes:
        found: by name.
    """

    def __init__(self) -> None:
        self.found: dict[str, Schema] = {}

    def add(self, name: str, schema: Schema) -> Schema:
        """Add a definition, and return what refers to it."""
        self.found[name] = schema
        return {"$ref": f"#/$defs/{name}"}

    def properties(self, class_: type[msgspec.Struct], other: Mapping[str, Schema] = {}) -> dict[str, Schema]:
        """Return the schema of each option of a Struct, by its name in YAML, with its default.

        Args:
            class_: of the options.
            other: schemas of options whose types do not tell what they are.
        """
        found = {}
        for field in msgspec.structs.fields(class_):
            known = other.get(field.encode_name)
            schema = (
                self._of_type(field.type, class_.__name__) if known is None else {**_described(field.type), **known}
            )
            if isinstance(field.default, str | int | float | bool):
                schema["default"] = settings.plain(field.default)
            found[field.encode_name] = schema
        return found

    def _of_type(self, type_: Any, owner: str) -> Schema:
        (schema,), inner = msgspec.json.schema_components(
            [type_], schema_hook=_worded, ref_template=f"#/$defs/{owner}.{{name}}"
        )
        for name, definition in inner.items():
            self.found[f"{owner}.{name}"] = _with_variables(definition)
        found: Schema = _with_variables(schema)
        return found


def required(class_: type[msgspec.Struct]) -> list[str]:
    """Return the options of a Struct that have no default."""
    return [field.encode_name for field in msgspec.structs.fields(class_) if field.required]


def closed(properties: Mapping[str, Schema], required: Iterable[str] = ()) -> Schema:
    """Return the schema of a mapping with these keys and no others."""
    needed = [*required]
    return {"type": "object", "properties": dict(properties), "additionalProperties": False} | (
        {"required": needed} if needed else {}
    )


def when(condition: Schema, then: Schema) -> Schema:
    """Return a schema that says something of those values alone for which a condition holds."""
    return {"if": condition, "then": then}


def has(key: str, *values: str) -> Schema:
    """Return the condition that a mapping has a key, with one of these values if there are any."""
    return {"required": [key]} | ({"properties": {key: {"enum": [*values]}}} if values else {})


def named(names: Iterable[str], about: str) -> Schema:
    """Return the schema of the name of a plugin, or a reference to one."""
    return {"description": about, "anyOf": [{"enum": [*names]}, {"type": "string", "pattern": r"[:$]"}]}


def classes(kind: Kind[Any]) -> dict[str, type[Any]]:
    """Return the plugins of a kind that can be used here, by name."""
    found = {}
    for name in kind.names():
        try:
            found[name] = kind.find(name)
        except (ConfigError, MissingExtra):  # of another package; whoever names it is told
            continue
    return found


def by_name(key: str, found: Mapping[str, type[Any]], about: str, inside: Callable[[str, type[Any]], Schema]) -> Schema:
    """Return the schema of a mapping of which one key names a plugin, and so what else it may have.

    Args:
        key: that names it.
        found: the plugins.
        about: what the key is.
        inside: gives the schema of the mapping for a plugin, by its name and class.
    """
    return {
        "type": "object",
        "properties": {key: named(found, about)},
        "allOf": [when(has(key, name), inside(name, class_)) for name, class_ in found.items()],
    }


def about(class_: type[Any]) -> str:
    """Return what a plugin is, in a sentence."""
    return first_line(class_).replace("``", "`")


def _described(type_: Any) -> Schema:
    """Return what an annotated type says of itself."""
    said = (meta.description for meta in getattr(type_, "__metadata__", ()) if isinstance(meta, msgspec.Meta))
    return next(({"description": each} for each in said if each), {})


def _worded(type_: type[Any]) -> Schema:
    return dict(_WORDED[type_])


def _with_variables(schema: Any) -> Any:
    """Return a schema whose numbers, words of a list, and true and false may be given as ``${NAME}``; without names.

    What docstrings say of a Struct is left out, too: it is written for who reads the code.
    """
    if isinstance(schema, list):
        return [_with_variables(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    is_struct = "properties" in schema
    inside = {
        key: value
        if key in ("default", "enum")
        else _with_properties(value)
        if key == "properties"
        else _with_variables(value)
        for key, value in schema.items()
        if key != "title" and not (is_struct and key == "description")
    }
    if inside.get("type") not in _SCALARS and "enum" not in inside:
        return inside
    outside = {key: inside.pop(key) for key in ("description", "default") if key in inside}
    return {**outside, "anyOf": [inside, VARIABLE]}


def _with_properties(properties: Mapping[str, Schema]) -> dict[str, Schema]:
    return {name: _with_variables(schema) for name, schema in properties.items()}
