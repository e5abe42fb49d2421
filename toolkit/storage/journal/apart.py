"""Where row indexes, and what was seen of files of others, go if they are not kept among the records of their dataset.

They are not kept where a command only shows what would be (`not_kept`), nor where nobody may write: whoever may only
read a dataset can still look at it. Then they are in a folder of this machine, for the task or for the run.
"""

import atexit
import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import xxhash

from toolkit.errors import ConfigError, ToolkitError
from toolkit.session import cached, current
from toolkit.storage.paths import check_writable, join
from toolkit.storage.stores.local.scratch import clear_scratch, make_scratch, scratch_path

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
    with tempfile.TemporaryDirectory(prefix="row-indexes-") as folder:
        session.apart = folder
        try:
            yield
        finally:
            session.apart = ""


@contextmanager
def for_run() -> Iterator[None]:
    """Let what cannot be kept within the ``with`` block be there for it, in all processes of this machine."""
    name = current().scratch = f"row-indexes-{uuid.uuid4().hex}"
    try:
        yield
    finally:
        _clear(name)


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
    folder = current().apart or _of_run()
    if not folder:
        return None
    path = path_of(bookkeeping, *names)
    return path if os.path.exists(path + RECORD) else None


def _of_run() -> str | None:
    """Return the folder of the run; None if there is none, as on a machine without room for temporary files."""
    try:
        name = current().scratch
        return folder if name and os.path.isdir(folder := scratch_path(name)) else None
    except OSError:
        return None


def _clear(name: str) -> None:
    """Delete the folder of the run, if there is one."""
    with suppress(ToolkitError, OSError):  # no room for temporary files: what ended the run is told
        clear_scratch(name)


def _folder() -> str:
    session = current()
    if session.apart:
        return session.apart
    if not session.scratch:  # a worker on another machine, or no command
        session.scratch = f"row-indexes-{uuid.uuid4().hex}"
        atexit.register(_clear, session.scratch)
    return make_scratch(session.scratch)
