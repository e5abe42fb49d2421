"""Decoders of JSON that several threads may make and use at a time.

msgspec looks into a class when its first decoder is made, or its first value is decoded or converted. Two threads that
do so at a time end the process by a segmentation fault (msgspec 0.22), so one thread at a time does.
"""

import functools
from contextlib import suppress
from threading import Lock
from typing import Any, TypeVar, cast

import msgspec

T = TypeVar("T")

_making = Lock()


def decoder_of(type_: type[T]) -> msgspec.json.Decoder[T]:
    """Return a new decoder of a type."""
    with _making:
        return msgspec.json.Decoder(type_)


def decoded(data: bytes, type_: type[T]) -> T:
    """Return a value of JSON.

    Raises:
        msgspec.DecodeError: if it is none of this type.
        UnicodeDecodeError: if it is no UTF-8.
    """
    found: T = _kept(cast("Any", type_)).decode(data)
    return found


@functools.cache
def _kept(type_: type[Any]) -> msgspec.json.Decoder[Any]:
    return decoder_of(type_)


def know_types() -> None:
    """Let msgspec look into all classes that there are, before threads decode or convert values of them.

    Classes that are made later, as those of the values of sets, get their decoders by `decoder_of`.
    """
    listed = [msgspec.Struct]
    for class_ in listed:
        listed += class_.__subclasses__()
        with suppress(Exception):  # of types that are never decoded
            decoder_of(class_)
