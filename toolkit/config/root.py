"""The setting ``root:``: the folder that the relative paths of a configuration are below."""

import os
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from toolkit.config.settings import ConfigNode
from toolkit.errors import ConfigError
from toolkit.session import current
from toolkit.storage import store_of

_PLUGIN = re.compile(r"[^\s:]+\.py:[A-Za-z_]\w*")

_DATASET: dict[str, Any] = {"dataset": True, "documents": {"": True, "path": True}, "attributes": True}
_MIX: dict[str, Any] = {
    "output": {"path": True},
    "rejected": True,
    "streams": {"*": {"dataset": {"": True, **_DATASET, "bookkeeping": True}}},
}
_INGEST = {"from": True, "base_url": True}
_PATHS: dict[str, Any] = {
    **_DATASET,
    "ingest": {**_INGEST, "*": _INGEST},
    "align": {"*": {"from": True}},
    "make": {"*": {"dataset": True}},
    "dedup": {"*": {"against": {"": True, "*": {"": True, **_DATASET}, **_DATASET}}},
    "sample": {"*": {"ids": True, "copy": {"path": True}}},
    "annotate": {"*": {"prompt": True, "answers": True}},
    "calibrate": {"*": {"model": True}},
    "train": {"*": {"path": True, "base": True}},
    "mix": {**_MIX, "editions": {"*": _MIX}},
    "tokenize": {"path": True},
}
"""Keys of settings that are paths, or lists of paths; "*" stands for each key or element, "" for a text itself.

Options of taggers and output formats that are paths have the type `Model` or `Files`; see `locate_options`. Files of
rules are looked for where they are read.
"""


def apply_root(source: ConfigNode, folder: str) -> None:
    """Put the relative paths of a configuration below its root; paths of the command line stay.

    Args:
        source: Configuration, which is changed.
        folder: Folder of its file.

    Raises:
        ConfigError: if the root is no folder.
    """
    if not isinstance(source.value, dict) or source.value.get("root") is None:
        return
    value = source.value["root"]
    if not isinstance(value, str) or not value.strip() or "\0" in value or not store_of(value).is_local:
        raise source.error(("root",), f"expected a folder on a disk, got {value!r}")
    base = "" if source.place(("root",)) == "command line" else folder
    root = os.path.abspath(os.path.join(base, os.path.expanduser(value)))
    if not os.path.isdir(root):
        raise source.error(("root",), f"expected a folder, got {root}, which is not there; paths are below it")
    source.value["root"] = source.root = current().root = root
    _locate(source.value, _PATHS, (), source)


def _locate(value: Any, paths: Any, at: tuple[str | int, ...], source: ConfigNode) -> Any:
    """Return a value with its paths below the root; mappings and lists are changed."""
    if isinstance(value, str):
        is_path = paths is True or (isinstance(paths, Mapping) and "" in paths)
        return _located(value, at, source) if is_path or _PLUGIN.fullmatch(value) else value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        if at or key != "root":
            below = paths.get(key, paths.get("*")) if isinstance(paths, Mapping) else paths if paths is True else None
            value[key] = _locate(inner, below, (*at, key), source)
    return value


def _located(text: str, at: tuple[str | int, ...], source: ConfigNode) -> str:
    if source.place(at) == "command line" or not text.strip() or "\0" in text:
        return text
    return os.path.normpath(os.path.join(source.root, text)) if store_of(text).is_local else text


def locate_options(source: ConfigNode, type_: Any) -> None:
    """Put the path options of a plugin below the root. The value of the source changes."""
    if source.root:
        source.value = _located_options(source.value, msgspec.inspect.type_info(type_), (), source)


def _located_options(value: Any, info: Any, at: tuple[str | int, ...], source: ConfigNode) -> Any:
    if isinstance(info, msgspec.inspect.Metadata):
        is_known = (info.extra or {}).get("model")
        if isinstance(value, str) and is_known:
            return value if is_known(value) else _located(value, at, source)
        return _located_options(value, info.type, at, source)
    if isinstance(info, msgspec.inspect.UnionType):
        for inner in info.types:
            value = _located_options(value, inner, at, source)
    elif isinstance(info, msgspec.inspect.StructType) and isinstance(value, dict):
        for field in info.fields:
            if field.encode_name in value:
                place = (*at, field.encode_name)
                value[field.encode_name] = _located_options(value[field.encode_name], field.type, place, source)
    elif isinstance(info, msgspec.inspect.DictType) and isinstance(value, dict):
        for key in value:
            value[key] = _located_options(value[key], info.value_type, (*at, key), source)
    elif isinstance(info, msgspec.inspect.CollectionType) and isinstance(value, list):
        value = [_located_options(item, info.item_type, (*at, i), source) for i, item in enumerate(value)]
    return value


def recorded_reference(reference: str) -> str:
    """Return the reference of a plugin for records: a file below the root relative to that, so that projects move."""
    root = current().root
    inside = root and reference.startswith(os.path.join(root, ""))
    return os.path.relpath(reference, root) if inside else reference


def located_reference(recorded: str) -> str:
    """Return the usable reference of a recorded plugin. A file below the root is used if it exists."""
    path = os.path.join(current().root, recorded)
    return path if _PLUGIN.fullmatch(recorded) and os.path.isfile(path.rpartition(":")[0]) else recorded


def with_root(error: ConfigError, root: str) -> ConfigError:
    """Return an error about a missing path with the root added."""
    return type(error)(f"{error} (`root:` is {root})") if root and root in str(error) else error
