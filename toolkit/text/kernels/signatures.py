"""The arguments of compiled functions: numbers, pointers to arrays, and records of these.

A record is a NamedTuple whose fields say what they are: ``int`` and ``bool`` are int64, `Int64s` and its like arrays of
one type, a NamedTuple is a record in the record. Compiled code reads ``record.field``; machine code gets the fields one
by one, so a record costs nothing there.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]
else:
    Array = Any

F = TypeVar("F", bound=Callable[..., Any])

Bytes = Annotated[Array, "int8*"]
UInt8s = Annotated[Array, "uint8*"]
Int32s = Annotated[Array, "int32*"]
UInt32s = Annotated[Array, "uint32*"]
Int64s = Annotated[Array, "int64*"]
UInt64s = Annotated[Array, "uint64*"]
Float32s = Annotated[Array, "float32*"]
Float64s = Annotated[Array, "float64*"]
UInt64 = Annotated[int, "uint64"]
Float32 = Annotated[float, "float32"]
Float64 = Annotated[float, "float64"]

Type: TypeAlias = str | type
"""Of an argument: ``int64``, ``float32*`` (a pointer), or a record."""

CALLED: list[Callable[..., Any]] = []
"""Functions of Python that compiled functions may call (see `inlined`)."""


def inlined(function: F) -> F:
    """Let compiled functions call a function of Python: its code becomes part of theirs."""
    CALLED.append(function)
    return function


def types_of(signature: Iterable[Type]) -> list[Type]:
    """Return the types of a signature.

    A text may name several, such as ``int64 float32*``.
    """
    return [item for part in signature for item in (part.split() if isinstance(part, str) else (part,))]


def fields_of(record: type) -> list[Type]:
    """Return the types of a record's fields.

    Raises:
        TypeError: if one is none that compiled code takes.
    """
    results: list[Type] = []
    for name, hint in record.__annotations__.items():
        type_ = getattr(hint, "__metadata__", [hint])[0]
        if type_ in (int, bool):
            type_ = "int64"
        if not isinstance(type_, str) and not hasattr(type_, "_fields"):
            raise TypeError(f"{record.__name__}.{name}: expected a number, an array or a record, got {hint}")
        results.append(type_)
    return results


def flat_types(types: Iterable[Type]) -> list[str]:
    """Return the types of numbers and pointers alone, records taken apart."""
    return [flat for type_ in types for flat in ([type_] if isinstance(type_, str) else flat_types(fields_of(type_)))]


def flat_values(arguments: Iterable[Any]) -> Iterator[Any]:
    """Yield numbers and arrays alone, records taken apart."""
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from flat_values(argument)
        else:
            yield argument


def records_in(types: Iterable[Type]) -> Iterator[type]:
    """Yield the records of a signature, and those in them."""
    for type_ in types:
        if not isinstance(type_, str):
            yield type_
            yield from records_in(fields_of(type_))
