"""JSON of ours: decoders, and records in a file each: there, not there, damaged, or not to be read just now.

msgspec looks into a class when its first decoder is made, or its first value is decoded or converted. Two threads that
do so at a time end the process by a segmentation fault (msgspec 0.22), so one thread at a time makes decoders.
"""

import functools
from collections.abc import Callable
from contextlib import suppress
from threading import Lock
from typing import Any, TypeVar, cast

import msgspec
import xxhash

from toolkit.errors import DataError, in_words
from toolkit.session import current
from toolkit.storage import store_of
from toolkit.storage.outputs import OutputBatch, write_file

T = TypeVar("T")

_making = Lock()


def decoder_of(type_: type[T]) -> msgspec.json.Decoder[T]:
    """Return a new decoder of a type."""
    with _making:
        return msgspec.json.Decoder(type_)


_cached_decoder = functools.cache(decoder_of)


def decode(data: bytes, type_: type[T]) -> T:
    """Return a value of JSON.

    Raises:
        msgspec.DecodeError: if it is none of this type.
        UnicodeDecodeError: if it is no UTF-8.
    """
    result: T = _cached_decoder(cast("Any", type_)).decode(data)
    return result


def know_types() -> None:
    """Let msgspec inspect all existing classes, before threads decode values.

    Classes that are made later, as those of the values of sets, get their decoders by `decoder_of`.
    """
    listed = [msgspec.Struct]
    for class_ in listed:
        listed += class_.__subclasses__()
        with suppress(Exception):  # of types that are never decoded
            decoder_of(class_)


def json_digest(value: Any) -> str:
    """Return a digest of a value as JSON with sorted keys."""
    return xxhash.xxh3_128_hexdigest(msgspec.json.encode(value, order="sorted"))


def load(path: str, type_: type[T]) -> T | None:
    """Return a record; None if there is none, or it is damaged in itself: then what it is about is done again.

    A damaged one is told, once.

    Raises:
        Unreadable: if it is not known whether there is one.
    """
    return load_or_warn(path, type_)[0]


def load_or_warn(path: str, type_: type[T]) -> tuple[T | None, bool]:
    """Return the result of `load`, and True if the record is damaged."""
    try:
        return load_strictly(path, type_, "the toolkit ignores it, and does the work that it records again"), False
    except DataError as error:
        warn_damage(error)
        return None, True


def warn_damage(fault: object) -> None:
    """Print the fault of a record, once."""
    current().warn(f"warning: {fault}")


def load_strictly(
    path: str,
    type_: type[T],
    remedy: str = "delete it to have its work done anew",
    read: Callable[[str], bytes] | None = None,
    check: Callable[[T], object] = lambda record: None,
) -> T | None:
    """Return a record, or raise for a damaged one; None if there is none.

    Args:
        path: Path of the record.
        type_: Type of it.
        remedy: Next step for a damaged record, for the message.
        read: returns the bytes of a file; by default, all that its store has.
        check: Function that decodes the raw parts of the record.

    Raises:
        DataError: if it was damaged, or written by another version.
        Unreadable: if it is not known whether there is one.
    """
    try:
        record = decode((read or store_of(path).read)(path), type_)
        check(record)
        return record
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"expected a record of this version of the toolkit, got: {in_words(str(error))}; {remedy}"
        raise DataError(message, path=path) from None


def save(path: str, record: msgspec.Struct, together: OutputBatch | None = None) -> None:
    """Write a record, for people to read, too. With `together` it appears with other files."""
    write_file(path, msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n", together)
