"""Functions that numba compiles: when they are first called, once a machine, kept on disk."""

import fcntl
import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TypeVar, cast

from toolkit import models

F = TypeVar("F", bound=Callable[..., Any])

SLOW = 0.5  # seconds after which the log says what compiling took

_lock = threading.RLock()
_held: list[str] = []


def jit(function: Callable[..., Any]) -> Any:
    """Compiled without the GIL, strictly, so that every machine gives the same bits; imports numba.

    Kept on disk for the next process, where there is a folder for that (numba's ``NUMBA_CACHE_DIR`` names another).
    """
    import numba

    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no folder that can be written in
        return numba.njit(nogil=True)(function)


def compiled(function: F) -> F:
    """As `jit`, but numba is imported and the function compiled when it is first called.

    It is what numba takes (numbers, arrays, loops), and calls no function of its own module that is not `jit` itself.
    """
    made: list[Any] = []

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        if made:
            return made[0](*arguments)
        with once_a_machine(f"{function.__module__}.{function.__qualname__}"):
            made.append(jit(function))
            return made[0](*arguments)

    return cast("F", call)


@contextmanager
def once_a_machine(what: str) -> Iterator[None]:
    """Lets one process of a machine compile while the others wait for what it keeps on disk; the log says what it took.

    Args:
        what: is compiled inside.
    """
    with _lock, ExitStack() as stack:
        if not _held:
            with suppress(OSError):  # without a folder that can be written in, each compiles for itself
                os.makedirs(models.cache_folder(), exist_ok=True)
                stream = stack.enter_context(open(os.path.join(models.cache_folder(), "compiling"), "w"))
                fcntl.flock(stream, fcntl.LOCK_EX)
        _held.append(what)
        stack.callback(_held.pop)
        start = time.perf_counter()
        yield
        seconds = time.perf_counter() - start
    if seconds > SLOW and not _held:
        print(f"compiled {what}: {seconds:.0f} s, kept for the next time where that is possible", file=sys.stderr)
