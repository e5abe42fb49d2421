"""From types of rows to the features of Hugging Face datasets, as the head of a dataset card has them.

Source: ``Features._to_yaml_list`` of datasets 5.2; its JSON reader for what is loaded in another form.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from toolkit.data.schema import ANY, Type
from toolkit.inspect.describe.facts.fields import bare

_DTYPES = {
    "bool": "bool",
    "int": "int64",
    "long": "json",  # the reader makes floats of larger integers before it makes unsigned ones of them
    "huge": "float64",
    "float": "float64",
    "str": "string",
    "digits": "string",
    "url": "string",
    "datetime": "timestamp[us, tz=UTC]",  # the reader makes times of such texts, whatever type is asked for
    "null": "null",
    "never": "null",
    "map": "json",
    "any": "json",
}

DEEPEST = 40
"""Objects and lists in each other that have features of their own; what is deeper is JSON. YAML has a limit, too."""


def features_of(columns: Mapping[str, Type]) -> list[dict[str, Any]]:
    """Return the features of rows with columns of these types, in their order."""
    columns = {name: _shallow(type_) for name, type_ in columns.items()}
    dtypes = _DTYPES | ({"long": _DTYPES["huge"]} if _has_huge(columns) else {})
    return _features(columns, dtypes)


def otherwise(columns: Mapping[str, Type]) -> list[tuple[str, str]]:
    """Return the dotted names of what is loaded in another form than it has, and how.

    ``open`` and ``long`` are loaded as JSON, which older readers do not know. ``huge`` is rounded: the reader of JSON
    takes no integers of more than 64 bits. Where there must be JSON beside them it refuses the file: ``refused``.
    """
    columns = {name: _shallow(type_) for name, type_ in columns.items()}
    found = [(name, "open" if kind in ("map", "any") else kind) for name, kind in _all_leaves(columns)]
    found = [(name, kind) for name, kind in found if kind in ("open", "long", "huge")]
    if _has_huge(columns):
        how = "refused" if any(kind == "open" for _, kind in found) else "huge"
        found = [(name, kind if kind == "open" else how) for name, kind in found]
    return found


def _shallow(type_: Type, levels: int = DEEPEST) -> Type:
    """Return a type with at most so many objects and lists in each other."""
    inner = bare(type_)
    if inner.kind not in ("object", "list"):
        return type_
    if not levels:
        return ANY
    if inner.kind == "list":
        return replace(inner, item=_shallow(inner.item or ANY, levels - 1))
    return replace(inner, fields=tuple((name, _shallow(each, levels - 1)) for name, each in inner.fields))


def _has_huge(columns: Mapping[str, Type]) -> bool:
    return any(kind == "huge" for _, kind in _all_leaves(columns))


def _features(columns: Mapping[str, Type], dtypes: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"name": name, **_feature(type_, dtypes)} for name, type_ in columns.items()]


def _feature(type_: Type, dtypes: Mapping[str, str]) -> dict[str, Any]:
    inner = bare(type_)
    if inner.kind == "span":
        return {"list": dtypes["float"]}
    if inner.kind == "object":
        return {"struct": _features(dict(inner.fields), dtypes)}
    if inner.kind == "list":
        feature = _feature(inner.item or ANY, dtypes)
        return {"list": feature.get("dtype") or feature.get("struct") or feature}
    return {"dtype": dtypes[inner.kind]}


def _all_leaves(columns: Mapping[str, Type]) -> Iterator[tuple[str, str]]:
    for name, type_ in columns.items():
        yield from _leaves(name, type_)


def _leaves(path: str, type_: Type) -> Iterator[tuple[str, str]]:
    """Yield the dotted names and kinds of all that is no object and no list."""
    inner = bare(type_)
    if inner.kind == "object":
        for name, each in inner.fields:
            yield from _leaves(f"{path}.{name}", each)
    elif inner.kind == "list":
        yield from _leaves(f"{path}[]", inner.item or ANY)
    else:
        yield path, inner.kind
