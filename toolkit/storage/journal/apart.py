"""Where row indexes, and what was seen of files of others, go if they are not kept among the records of their dataset.

They are not kept where a command only shows what would be (`not_kept`), nor where nobody may write: whoever may only
read a dataset can still look at it. Then they are in a folder of this machine, for the task or for the run.
"""

import atexit
import functools
import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import xxhash

from toolkit.errors import ConfigError, ToolkitError
from toolkit.storage.paths import check_writable, join
from toolkit.storage.stores.local.scratch import clear_scratch, make_scratch, scratch_path

P = TypeVar("P")
A = TypeVar("A")
R = TypeVar("R")

_VARIABLE = "_TOOLKIT_APART"
"""Carries the name of a run's folder to the processes of this machine that work for it."""

RECORD = ".json"
"""Ends the path of a record that is made apart."""

_of_task = ""
"""The folder of a task of a command that keeps nothing; empty for others."""


def looking(function: Callable[[P, A], R], payload: P, report: A) -> R:
    """Call the function of a task of a command that keeps nothing: what it makes is there for the call alone."""
    with not_kept():
        return function(payload, report)


@contextmanager
def not_kept() -> Iterator[None]:
    """Let what is made within the ``with`` block be there for it alone: nothing is written to the dataset."""
    global _of_task
    with tempfile.TemporaryDirectory(prefix="row-indexes-") as folder:
        _of_task = folder
        try:
            yield
        finally:
            _of_task = ""


@contextmanager
def for_run() -> Iterator[None]:
    """Let what cannot be kept within the ``with`` block be there for it, in all processes of this machine."""
    if _VARIABLE in os.environ:  # a run within a run
        yield
        return
    os.environ[_VARIABLE] = uuid.uuid4().hex
    try:
        yield
    finally:
        _may_keep.cache_clear()
        _clear()
        del os.environ[_VARIABLE]


def is_needed(bookkeeping: str) -> bool:
    """Return whether what is made of a dataset cannot be, or is not to be, among its records."""
    return bool(_of_task) or not _may_keep(bookkeeping)


@functools.lru_cache(64)
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
    folder = _of_task or _of_run()
    if not folder:
        return None
    path = path_of(bookkeeping, *names)
    return path if os.path.exists(path + RECORD) else None


def _of_run() -> str | None:
    """Return the folder of the run; None if there is none, as on a machine without room for temporary files."""
    try:
        return folder if os.path.isdir(folder := _path_of_run()) else None
    except OSError:
        return None


def _path_of_run() -> str:
    return scratch_path(_name())


def _name() -> str:
    return f"row-indexes-{os.environ.get(_VARIABLE, '')}"


def _clear() -> None:
    """Delete the folder of the run, if there is one."""
    with suppress(ToolkitError, OSError):  # no room for temporary files: what ended the run is told
        clear_scratch(_name())


def _folder() -> str:
    if _of_task:
        return _of_task
    if _VARIABLE not in os.environ:  # a worker on another machine, or no command
        os.environ[_VARIABLE] = uuid.uuid4().hex
        atexit.register(_clear)
    return make_scratch(_name())
