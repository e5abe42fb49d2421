"""From types of rows to the features of Hugging Face datasets, as the head of a dataset card has them.

Source: ``Features._to_yaml_list`` of datasets 5.2; its JSON reader for what is loaded in another form.
"""

from collections.abc import Mapping
from typing import Any

from toolkit.describing.fields import bare
from toolkit.schema import ANY, FLOAT, Type

_DTYPES = {
    "bool": "bool",
    "int": "int64",
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


def features_of(columns: Mapping[str, Type]) -> list[dict[str, Any]]:
    """The features of rows with columns of these types, in their order."""
    return [{"name": name, **_feature(type_)} for name, type_ in columns.items()]


def open_keys(columns: Mapping[str, Type]) -> list[str]:
    """What has no type of its own, and is loaded as JSON, which older readers do not know."""
    return [path for name, type_ in columns.items() for path in _open(name, type_)]


def _feature(type_: Type) -> dict[str, Any]:
    inner = bare(type_)
    if inner.kind == "span":
        return {"list": _DTYPES["float"]}
    if inner.kind == "object":
        return {"struct": features_of(dict(inner.fields))}
    if inner.kind == "list":
        feature = _feature(inner.item or ANY)
        return {"list": feature.get("dtype") or feature.get("struct") or feature}
    return {"dtype": _DTYPES[inner.kind]}


def _open(path: str, type_: Type) -> list[str]:
    inner = bare(type_)
    if inner.kind == "object":
        return [each for name, t in inner.fields for each in _open(f"{path}.{name}", t)]
    if inner.kind == "list":
        return _open(f"{path}[]", inner.item or ANY)
    return [path] if _DTYPES.get(inner.kind, _DTYPES[FLOAT.kind]) == "json" else []
