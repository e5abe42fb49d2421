"""Threads: for compression, which needs no GIL, and for requests, where what takes time is the answer of a store."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar

from toolkit.interrupts import check
from toolkit.session import current

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")
R = TypeVar("R")

REQUESTS = 16
"""Requests that are made at a time."""

BATCH = 1 << 14
"""Items whose results are in memory at a time, by default."""

FEW = 4
"""Things for which no thread is begun."""


class Thread(threading.Thread):
    """A thread in the session of its maker."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._within = copy_context()

    def run(self) -> None:
        self._within.run(super().run)


def pool(size: int) -> "ThreadPoolExecutor":
    """Return a pool of so many threads; what is submitted runs in the session of the one that submits it."""
    from concurrent.futures import ThreadPoolExecutor  # whose import takes as long as that of a module that needs it

    class Pool(ThreadPoolExecutor):
        def submit(self, function: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
            return super().submit(copy_context().run, function, *args, **options)

    return Pool(size)


def for_each(function: Callable[[T], R], things: Iterable[T], *, always: bool = False) -> list[R]:
    """Return the results of a function for items, from several threads.

    A few are done one after the other, and so are all in a session that has asked only the local store: what it
    answers takes less time than a thread. An error of one is raised once those before it have ended.

    Args:
        function: called with each thing.
        things: Items, in order.
        always: begin threads for two things and more, whatever the store is: for calls that wait for a disk, or
            decompress.
    """
    listed = list(things)
    if len(listed) <= (1 if always else FEW) or not (always or current().has_remote_stores):
        return [function(thing) for thing in listed]
    numbers, results, faults = iter(range(len(listed))), dict[int, R](), dict[int, BaseException]()

    def take() -> None:
        """Do the next things until there is none left, or an error; of those at work, an interruption comes first."""
        for number in numbers:
            try:
                check()
                results[number] = function(listed[number])
            except BaseException as error:
                faults[number if isinstance(error, Exception) else -1] = error
            if faults:
                return

    threads = [Thread(target=take) for _ in range(min(REQUESTS, len(listed)) - 1)]
    for thread in threads:
        thread.start()
    try:
        take()
        for thread in threads:
            thread.join()
    except BaseException as error:  # while it waits for the others, which begin no more
        faults[-1] = error
        for thread in threads:
            thread.join()
        raise
    if faults:
        raise faults[min(faults)]
    return [results[number] for number in range(len(listed))]


def batches_of(
    function: Callable[[T], R],
    things: Iterable[T],
    size: int = BATCH,
    quick: Callable[[T], R | None] = lambda thing: None,
) -> Iterator[list[tuple[T, R]]]:
    """Yield items with their results, in order, so many at a time; they are computed as by `for_each`.

    Args:
        function: Argument of `for_each`.
        things: Items, in order.
        size: Number of items at a time.
        quick: Function that returns the same result without a request; None if it cannot. It runs in no thread.
    """
    rest = iter(things)
    while batch := [*islice(rest, size)]:
        results = [quick(thing) for thing in batch]
        slow = iter(for_each(function, [thing for thing, result in zip(batch, results, strict=True) if result is None]))
        yield [(thing, next(slow) if result is None else result) for thing, result in zip(batch, results, strict=True)]


def results_of(
    function: Callable[[T], R], things: Iterable[T], quick: Callable[[T], R | None] = lambda thing: None
) -> Iterator[tuple[T, R]]:
    """Yield items with their results, in order, computed in batches; arguments as of `batches_of`."""
    return chain.from_iterable(batches_of(function, things, quick=quick))
