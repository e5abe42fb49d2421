"""Row indexes and records for one task or run.

They lie there where a command keeps nothing (`ephemeral_records`), and where nobody may write beside the dataset:
whoever may only read a dataset can still inspect it.
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
"""Suffix of an ephemeral record."""


def with_ephemeral_records(function: Callable[[P, A], R], payload: P, report: A) -> R:
    """Call the function of a task within `ephemeral_records`."""
    with ephemeral_records():
        return function(payload, report)


@contextmanager
def ephemeral_records() -> Iterator[None]:
    """Keep the records of the ``with`` block in a temporary folder. The dataset stays as it is."""
    session = current()
    with scratch() as folder:
        session.apart = folder
        try:
            yield
        finally:
            session.apart = ""


@contextmanager
def run_scratch() -> Iterator[None]:
    """Provide a folder for ephemeral records to all processes on this machine.

    Also delete the leftovers of killed processes in the system's folder for temporary files.
    """
    session = current()
    with ExitStack() as stack:
        with suppress(OSError):  # no room for temporary files: their user raises the error
            tidy_scratch()
            session.scratch = stack.enter_context(scratch())
        try:
            yield
        finally:
            session.scratch = ""


def is_needed(bookkeeping: str) -> bool:
    """Return True if records cannot or must not lie in this folder."""
    return bool(current().apart) or not _is_writable(bookkeeping)


@cached(64)
def _is_writable(bookkeeping: str) -> bool:
    try:
        check_writable(bookkeeping, "")
    except ConfigError:
        return False
    return True


def path_of(bookkeeping: str, *names: str) -> str:
    """Return the path, without suffix, of the ephemeral record of these names."""
    session = current()
    if not (session.apart or session.scratch):  # a worker on another machine, or no command
        session.scratch = lasting_scratch()
    name = xxhash.xxh3_128_hexdigest("\0".join((bookkeeping, *names)).encode())
    return join(session.apart or session.scratch, name)


def existing_path(bookkeeping: str, *names: str) -> str | None:
    """Return `path_of` if the record is complete: there is a file with the suffix `RECORD`. Otherwise return None."""
    if not (current().apart or current().scratch):
        return None
    path = path_of(bookkeeping, *names)
    return path if os.path.exists(path + RECORD) else None
