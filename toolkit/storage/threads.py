"""Threads: for compression, which needs no GIL, and for requests, where what takes time is the answer of a store."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")
R = TypeVar("R")

REQUESTS = 16
"""Requests that are made at a time."""

FEW = 4
"""Things for which no thread is begun."""


def pool(size: int) -> "ThreadPoolExecutor":
    """Return a pool of so many threads."""
    from concurrent.futures import ThreadPoolExecutor  # whose import takes as long as that of a module that needs it

    return ThreadPoolExecutor(size)


def for_each(function: Callable[[T], R], things: Iterable[T]) -> list[R]:
    """Return what a function gives for each thing, in their order; call it for several at a time, in threads.

    An error of one is raised once those before it have ended.
    """
    listed = list(things)
    if len(listed) <= FEW:
        return [function(thing) for thing in listed]
    with pool(REQUESTS) as threads:
        return list(threads.map(function, listed))
