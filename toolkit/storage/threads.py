"""Threads: for compression, which needs no GIL, and for requests, where what takes time is the answer of a store."""

from collections.abc import Callable, Iterable
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")
R = TypeVar("R")

REQUESTS = 16
"""Requests that are made at a time."""

FEW = 4
"""Things for which no thread is begun."""


FROM_AFAR: set[str] = set()
"""The schemes of the stores of this process that are not local: what is asked of them takes the time of a request."""


def pool(size: int) -> "ThreadPoolExecutor":
    """Return a pool of so many threads."""
    from concurrent.futures import ThreadPoolExecutor  # whose import takes as long as that of a module that needs it

    return ThreadPoolExecutor(size)


def for_each(function: Callable[[T], R], things: Iterable[T], *, always: bool = False) -> list[R]:
    """Return what a function gives for each thing, in their order; call it for several at a time, in threads.

    A few are done one after the other, and so are all in a process that has asked only the local store: what it
    answers takes less time than a thread. An error of one is raised once those before it have ended.

    Args:
        function: called with each thing.
        things: in order.
        always: begin threads for two things and more, whatever the store is: for calls that wait for a disk, or
            decompress.
    """
    listed = list(things)
    if len(listed) <= (1 if always else FEW) or not (always or FROM_AFAR):
        return [function(thing) for thing in listed]
    numbers, found, faults = iter(range(len(listed))), dict[int, R](), dict[int, BaseException]()

    def take() -> None:
        """Do the next things until there is none left, or an error; of those at work, an interruption comes first."""
        for number in numbers:
            try:
                found[number] = function(listed[number])
            except BaseException as error:
                faults[number if isinstance(error, Exception) else -1] = error
            if faults:
                return

    others = [Thread(target=take) for _ in range(min(REQUESTS, len(listed)) - 1)]
    for each in others:
        each.start()
    try:
        take()
        for each in others:
            each.join()
    except BaseException as error:  # while it waits for the others, which begin no more
        faults[-1] = error
        for each in others:
            each.join()
        raise
    if faults:
        raise faults[min(faults)]
    return [found[number] for number in range(len(listed))]
