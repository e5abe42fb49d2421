"""The types of documents' own fields from those of columns: which column becomes which field, and what is declared."""

from collections.abc import Iterable, Mapping
from typing import Any

from toolkit.data.metadata_fields import DOCUMENT, METADATA
from toolkit.data.own_types import KEYS, merged
from toolkit.data.schema import ANY, Type, nullable
from toolkit.errors import DataError

Placed = dict[str, dict[str, Type]]
"""Types of fields by root (`metadata`, `document`) and name."""


def inner_fields(type_: Type | None) -> dict[str, Type] | None:
    """Return the fields of an object, which may be null; None of anything else."""
    if type_ is None:
        return {}
    found = type_.not_null
    if found.kind != "object":
        return None
    return {name: nullable(t) if type_.kind == "nullable" else t for name, t in found.fields}


def add_gathered(placed: Placed, gathered: Mapping[str, Type]) -> None:
    """Add columns that become fields of the metadata."""
    inside = placed[METADATA]
    for name, type_ in gathered.items():
        inside[name] = merged(inside[name], type_) if name in inside else type_


def top_level(columns: Mapping[str, Type]) -> dict[str, Type]:
    """Return the columns that stay top-level fields of the document's own."""
    return {name: type_ for name, type_ in columns.items() if name not in KEYS}


def closed_paths(placed: Placed, *, metadata: bool) -> list[str]:
    """Return the dotted paths of all objects of a schema, which have no other fields.

    Args:
        placed: the fields.
        metadata: whether those of the metadata are all known.
    """
    found = [DOCUMENT, *([METADATA] if metadata else [])]
    for root, fields in placed.items():
        for name, type_ in fields.items():
            found += _objects(f"{root}.{name}", type_)
    return found


def _objects(path: str, type_: Type) -> Iterable[str]:
    inner = type_.not_null
    if inner.kind == "object":
        yield path
        for name, field in inner.fields:
            yield from _objects(f"{path}.{name}", field)


def declare(placed: Placed, path: tuple[str, ...], type_: Type, *, must: bool) -> None:
    """Give a field a type that the configuration declares.

    Args:
        placed: the fields; changed here.
        path: a root, and names inside it.
        type_: of the field.
        must: whether it, and the objects that it is in, are never null.
    """
    root, name, *inside = path
    placed[root][name] = _with(placed[root].get(name), inside, type_, must=must)


def declared_type(placed: Placed, path: tuple[str, ...], option: str) -> Type:
    """Return the type of a field without null, for a field that is declared never to be null.

    Raises:
        DataError: if it has no known type.
    """
    root, *names = path
    found: Type | None = Type("object", fields=tuple(placed[root].items()))
    for name in names:
        found = (inner_fields(found) or {}).get(name)
    if found is None or found.not_null == ANY:
        raise DataError(f"expected a field of known type in `not_null`, got {option!r}; give `typed: {{{option}: …}}`")
    return found.not_null


def _with(old: Type | None, names: list[str], type_: Type, *, must: bool) -> Type:
    if not names:
        return type_
    fields: dict[str, Any] = inner_fields(old.not_null if old else None) or {}
    fields[names[0]] = _with(fields.get(names[0]), names[1:], type_, must=must)
    found = Type("object", fields=tuple(fields.items()))
    return found if must or (old is not None and old.kind == "object") else nullable(found)
