"""Records of ours, a JSON file each: there, not there, damaged in itself, or not to be read just now."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import xxhash

from toolkit.decoders import decoded
from toolkit.errors import DataError, in_words
from toolkit.session import current
from toolkit.storage import store_of
from toolkit.storage.outputs import Together, write_file

T = TypeVar("T")


def json_digest(value: Any) -> str:
    """Return a digest of a value as JSON, in which the order of keys is that of their names."""
    return xxhash.xxh3_128_hexdigest(msgspec.json.encode(value, order="sorted"))


def load(path: str, type_: type[T]) -> T | None:
    """Return a record; None if there is none, or it is damaged in itself: then what it is about is done again.

    A damaged one is told, once.

    Raises:
        Unreadable: if it is not known whether there is one.
    """
    return load_told(path, type_)[0]


def load_told(path: str, type_: type[T]) -> tuple[T | None, bool]:
    """Return what `load` does, and whether there is a damaged record."""
    try:
        return load_strictly(path, type_, "the toolkit ignores it, and does the work that it records again"), False
    except DataError as error:
        tell_damage(path, error)
        return None, True


def tell_damage(path: str, fault: object) -> None:
    """Tell what is wrong with a record, once."""
    current().warn(f"warning: {fault}")


def load_strictly(
    path: str,
    type_: type[T],
    remedy: str = "delete it to have its work done anew",
    read: Callable[[str], bytes] | None = None,
) -> T | None:
    """Return a record that must not be overlooked; None if there is none.

    Args:
        path: of the record.
        type_: of it.
        remedy: what to do about one that is damaged.
        read: returns the bytes of a file; by default, all that its store has.

    Raises:
        DataError: if it was damaged, or written by another version.
        Unreadable: if it is not known whether there is one.
    """
    try:
        return decoded((read or store_of(path).read)(path), type_)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"expected a record of this version of the toolkit, got: {in_words(str(error))}; {remedy}"
        raise DataError(message, path=path) from None


def save(path: str, record: msgspec.Struct, together: Together | None = None) -> None:
    """Write a record, for people to read, too. With `together` it appears with other files."""
    write_file(path, msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n", together)
