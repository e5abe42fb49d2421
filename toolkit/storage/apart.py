"""Where row indexes, and what was seen of external files, go if they are not kept among the records of their dataset.

They are not kept where a command only shows what would be (`not_kept`), nor where nobody may write: whoever may only
read a dataset can still look at it. Then they are in a folder of this machine, for the task or for the run.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TypeVar

import xxhash

from toolkit.errors import ConfigError
from toolkit.session import cached, current
from toolkit.storage.paths import check_writable, join
from toolkit.storage.stores.local.scratch import lasting_scratch, scratch, tidy_scratch

P = TypeVar("P")
A = TypeVar("A")
R = TypeVar("R")

RECORD = ".json"
"""Ends the path of a record that is made apart."""


def looking(function: Callable[[P, A], R], payload: P, report: A) -> R:
    """Call the function of a task of a command that keeps nothing: what it makes is there for the call alone."""
    with not_kept():
        return function(payload, report)


@contextmanager
def not_kept() -> Iterator[None]:
    """Let what is made within the ``with`` block be there for it alone: nothing is written to the dataset."""
    session = current()
    with scratch() as folder:
        session.apart = folder
        try:
            yield
        finally:
            session.apart = ""


@contextmanager
def for_run() -> Iterator[None]:
    """Let what cannot be kept within the ``with`` block be there for it, in all processes of this machine.

    What killed processes have left in the system's folder for temporary files goes.
    """
    session = current()
    with ExitStack() as stack:
        with suppress(OSError):  # no room for temporary files: what needs it says so
            tidy_scratch()
            session.scratch = stack.enter_context(scratch())
        try:
            yield
        finally:
            session.scratch = ""


def is_needed(bookkeeping: str) -> bool:
    """Return whether what is made of a dataset cannot be, or is not to be, among its records."""
    return bool(current().apart) or not _may_keep(bookkeeping)


@cached(64)
def _may_keep(bookkeeping: str) -> bool:
    try:
        check_writable(bookkeeping, "")
    except ConfigError:
        return False
    return True


def path_of(bookkeeping: str, *names: str) -> str:
    """Return the path, without suffix, of what is called so of a dataset with this folder of records."""
    return join(_folder(), xxhash.xxh3_128_hexdigest("\0".join((bookkeeping, *names)).encode()))


def found(bookkeeping: str, *names: str) -> str | None:
    """Return the path, without suffix, of what was made apart in this run on this machine; None if it was not.

    It is whole when there is a file with the suffix `RECORD`.
    """
    if not (current().apart or current().scratch):
        return None
    path = path_of(bookkeeping, *names)
    return path if os.path.exists(path + RECORD) else None


def _folder() -> str:
    session = current()
    if not (session.apart or session.scratch):  # a worker on another machine, or no command
        session.scratch = lasting_scratch()
    return session.apart or session.scratch
