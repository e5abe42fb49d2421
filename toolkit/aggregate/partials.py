"""Partials: counts of a shard, which are added up and kept, compressed; what cannot be read is counted anew."""

import zlib
from typing import Any, TypeVar, cast

import msgspec

from toolkit.storage import store_of
from toolkit.storage.outputs import write_file

T = TypeVar("T")


def added(one: T, other: T) -> T:
    """Return the sum of two partials, the first changed: numbers, lists by place, mappings by key, Structs by field."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key, value in other.items():
            one[key] = added(one[key], value) if key in one else value
    elif isinstance(one, list) and isinstance(other, list):
        one[:] = map(added, one, other)
    elif isinstance(one, msgspec.Struct):
        for name in one.__struct_fields__:
            setattr(one, name, added(getattr(one, name), getattr(other, name)))
    else:
        total: Any = one
        return cast("T", total + other)
    return one


def save(path: str, found: Any) -> None:
    """Write a partial."""
    write_file(path, zlib.compress(msgspec.msgpack.encode(found), 1))


def load(path: str, type_: type[T]) -> T | None:
    """Return a partial; None if there is none, or it is damaged."""
    try:
        return msgspec.msgpack.decode(zlib.decompress(store_of(path).read(path)), type=type_)
    except (FileNotFoundError, NotADirectoryError, zlib.error, msgspec.DecodeError, UnicodeDecodeError):
        return None
