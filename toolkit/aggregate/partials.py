"""Partials on disk: what was counted of a shard, compressed; what cannot be read is counted anew."""

import zlib
from typing import Any, TypeVar

import msgspec

from toolkit.storage import store_of
from toolkit.storage.outputs import write_file

T = TypeVar("T")


def save(path: str, found: Any) -> None:
    """Write a partial."""
    write_file(path, zlib.compress(msgspec.msgpack.encode(found), 1))


def load(path: str, type_: type[T]) -> T | None:
    """Return a partial; None if there is none, or it is damaged."""
    try:
        return msgspec.msgpack.decode(zlib.decompress(store_of(path).read(path)), type=type_)
    except (FileNotFoundError, NotADirectoryError, zlib.error, msgspec.DecodeError, UnicodeDecodeError):
        return None
