"""The declared types of attributes in a Parquet file that was exported: they stand in its footer.

Arrow has no spans, and does not tell a text from a value of no declared type; who reads the file here gets the same
types and values as were exported.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from toolkit.data.schema import Type, from_json, to_json
from toolkit.storage.json_files import decoded

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
    """Return the types that a footer declares; None of an external file, and where the entry cannot be read."""
    if not metadata or KEY not in metadata:
        return None
    try:
        result = decoded(metadata[KEY], Declared)
        return {key: from_json(value) for key, value in result.types.items()}
    except (msgspec.DecodeError, ValueError):
        return None


def plain_of(type_: Type) -> Value | None:
    """Return what makes a plain value of one as Arrow gives it; None where that is one."""
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
