"""Partials: counts of some documents, which add up in any order and are kept; damaged ones are made again."""

import copy
import functools
import zlib
from collections.abc import Iterable
from typing import Any, TypeVar, cast

import msgspec

from toolkit.storage import store_of
from toolkit.storage.outputs import OutputBatch, write_file

T = TypeVar("T")


def add(one: T, other: T) -> T:
    """Return the sum of two partials, the first changed; what it takes from the second is copied.

    Numbers add up, sets are united, lists add up by place, mappings by key, Structs by field; null counts as nothing.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        for key, value in other.items():
            if type(value) is type(mine := one.get(key)) is int:
                one[key] = mine + value  # most are
            else:
                one[key] = add(mine, value) if key in one else copy.deepcopy(value)
    elif isinstance(one, list) and isinstance(other, list):
        one[:] = [a + b if type(a) is type(b) is int else add(a, b) for a, b in zip(one, other, strict=True)]
    elif isinstance(one, set) and isinstance(other, set):
        one.update(other)
    elif isinstance(one, msgspec.Struct):
        for name in one.__struct_fields__:
            setattr(one, name, add(getattr(one, name), getattr(other, name)))
    elif one is None or other is None:
        return other if one is None else one
    else:
        total: Any = one
        return cast("T", total + other)
    return one


def total(first: T, rest: Iterable[T]) -> T:
    """Return the sum of partials, the first changed."""
    return functools.reduce(add, rest, first)


def save(path: str, partial: Any, together: OutputBatch | None = None) -> None:
    """Write a partial. With `together` it appears with other files."""
    write_file(path, zlib.compress(msgspec.msgpack.encode(partial), 1), together, durable=False)


def load(path: str, type_: type[T]) -> T | None:
    """Return a partial; None if there is none, or it is damaged."""
    try:
        return msgspec.msgpack.decode(zlib.decompress(store_of(path).read(path)), type=type_)
    except (FileNotFoundError, NotADirectoryError, zlib.error, msgspec.DecodeError, UnicodeDecodeError):
        return None
