"""Doing small things with many files at once: what takes time is the answer of the store, not the work."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

THREADS = 16
FEW = 4
"""Things for which no thread is begun."""


def for_each(function: Callable[[T], R], things: Iterable[T]) -> list[R]:
    """What a function gives for each thing, in their order; several at a time, so it must be safe to call so.

    An error of one is raised once those before it have ended.
    """
    listed = list(things)
    if len(listed) <= FEW:
        return [function(thing) for thing in listed]
    with ThreadPoolExecutor(THREADS) as threads:
        return list(threads.map(function, listed))
