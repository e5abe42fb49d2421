"""Where files are: on local disk, in an S3 bucket, on the web. What differs between these is here and nowhere else.

A path is ``s3://BUCKET/KEY``, ``https://…`` (reading only), or local. `store_of` gives the store of a path; a store
takes whole paths. Whatever the store, a file that is written appears complete or not at all, and listings are sorted.
"""

import functools
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Protocol

from toolkit.errors import ConfigError

SCHEMES = {"s3": "toolkit.storage.s3", "http": "toolkit.storage.web", "https": "toolkit.storage.web"}


@dataclass(frozen=True, slots=True)
class Stat:
    """What tells quickly that a file has not changed.

    Attributes:
        size: bytes as stored.
        stamp: modification time in ns of a local file, ETag of others.
    """

    size: int
    stamp: str


class Writing(Protocol):
    """A file that is being written."""

    def write(self, data: bytes, /) -> object:
        """Appends."""

    def commit(self) -> Stat:
        """Makes the file appear, in place of one that there may be."""

    def abort(self) -> None:
        """Leaves nothing behind; nothing happens behind `commit`."""


class Pieces(Protocol):
    """A file that is open for pieces of it to be read."""

    def read(self, offset: int, length: int) -> bytes:
        """Shorter at the end."""

    def close(self) -> None:
        """Nothing is read after it."""


class Store(Protocol):
    """Files of one kind of place.

    A read has three outcomes: the file is there; it is not there, by the store's own word; or it could not be read,
    which is `Unreadable`, as whatever else a store cannot do. Other errors are what is said.
    """

    def stat(self, path: str) -> Stat | None:
        """None if there is no such file."""

    def age(self, path: str) -> float | None:
        """Seconds since it was written, by the clock of the store; None if there is no such file."""

    def is_folder(self, path: str) -> bool:
        """Whether it is a folder, or files have it as the beginning of theirs."""

    def files(self, root: str) -> Iterator[str]:
        """Paths of all files below a folder, relative to it, sorted by code point; none if it is not there."""

    def listing(self, root: str) -> Iterator[tuple[str, int | None]]:
        """As `files`, each with its stored bytes, where a listing says them without a request for each file."""

    def folders(self, root: str) -> list[str]:
        """Names of the folders directly in a folder."""

    def open(self, path: str) -> IO[bytes]:
        """The bytes of a file, one after the other; FileNotFoundError if there is no such file."""

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """A piece of a file, shorter at its end; FileNotFoundError if there is no such file."""

    def pieces(self, path: str) -> Pieces:
        """A file of which pieces will be read; FileNotFoundError if there is none, with the first at the latest."""

    def writing(self, path: str) -> Writing:
        """Begins a file."""

    def create(self, path: str, data: bytes) -> bool:
        """Writes a small file unless there is one; whether it did. Of several that try at once, one does."""

    def move(self, source: str, target: str) -> None:
        """In place of what is there."""

    def remove(self, path: str) -> None:
        """Deletes a file, or a folder that is empty; nothing if it is not there."""

    def remove_tree(self, root: str) -> None:
        """Deletes all below a folder, and the folder."""

    def remove_empty_folders(self, folder: str, root: str) -> None:
        """Deletes the folder and its parents below the root while they are empty."""

    def check_writable(self, folder: str, where: str) -> None:
        """Raises ConfigError if nothing can be written below a folder; ``where`` is what the configuration calls it."""

    def leftovers(self, root: str, *, others: bool = False) -> list[str]:
        """What killed processes have left below a folder: names for `discard`; of other machines only if asked for.

        Nobody knows whether a process on another machine still works.
        """

    def discard(self, leftover: str) -> None:
        """Deletes one of them."""


def scheme_of(path: str) -> str:
    """``s3``, ``https`` and so on; empty for local paths."""
    scheme, found, _ = path.partition("://")
    return scheme if found else ""


def is_web(path: str) -> bool:
    """Whether it is on the web, where files can be read by their names and nothing else."""
    return scheme_of(path) in ("http", "https")


def store_of(path: str) -> Store:
    """The store that a path belongs to.

    Raises:
        ConfigError: if there is none for it, or what it needs is not installed.
    """
    return _store(scheme_of(path))


@functools.cache
def _store(scheme: str) -> Store:
    if not scheme:
        from toolkit.storage.local import Local

        return Local()
    if scheme not in SCHEMES:
        raise ConfigError(f"{scheme}://: expected a local path, s3:// or https://")
    made: Store = importlib.import_module(SCHEMES[scheme]).make()
    return made
