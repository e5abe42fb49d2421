"""Downloads that are kept while they are read, so that a run which was killed goes on behind what there is.

Beside a download (``.toolkit/downloads/<input>.part``) lies which version of which file it is (``.json``). It is
deleted once the input's record is written. A run that finds one asks the server for the rest. What is kept never
exceeds `max_disk`: a download reserves its whole size before it begins, and one that does not fit is not kept.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

import msgspec
import xxhash

from toolkit.storage import Stat, store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join
from toolkit.storage.stores.local.scratch import make_folder, open_scratch, remove_scratch

BLOCK = 1 << 18
"""Bytes that are read at a time."""


class Keep(msgspec.Struct, frozen=True):
    """Where a download is kept while it is read.

    Attributes:
        folder: on disk.
        max_disk: bytes of all downloads in it.
        name: Name of this one.
    """

    folder: str
    max_disk: int
    name: str


class Download(msgspec.Struct, frozen=True):
    """A version of a file of which there is a part; its size is reserved."""

    path: str
    size: int
    stamp: str


class Kept:
    """The beginning of a file, on disk."""

    def __init__(self, keep: Keep, path: str, stat: Stat) -> None:
        self._keep = keep
        self._found = Download(path, stat.size, stat.stamp)
        self._stem = join(keep.folder, _stem(keep.name))
        self._file: IO[bytes] | None = None

    def begin(self) -> bool:
        """Return whether there is room for it, and nobody else is fetching it; then it is kept from here on."""
        stamp = self._found.stamp
        if not self._found.size or stamp == "date None" or stamp.startswith("etag W/"):
            return False  # a part of it could not be trusted later
        with _locked(self._keep.folder):
            downloads = _downloads(self._keep.folder)
            mine = downloads.pop(self._stem, None)
            if sum(other.size for other in downloads.values()) + self._found.size > self._keep.max_disk:
                self._delete()
                return False
            file = open_scratch(self._stem + ".part", "ab")
            if not _lock(file):
                file.close()
                return False
            if mine != self._found or file.tell() > self._found.size:
                file.truncate(0)
                write_file(self._stem + ".json", msgspec.json.encode(self._found))
        self._file = file
        return True

    def blocks(self) -> Iterator[bytes]:
        """Yield what there is of it."""
        with open(self._stem + ".part", "rb") as stream:
            while block := stream.read(BLOCK):
                yield block

    def write(self, block: bytes) -> None:
        """Append what follows; keep nothing any more when the disk is full."""
        if self._file:
            try:
                self._file.write(block)
                self._file.flush()
            except OSError:
                self.end()
                self.delete()

    def end(self) -> None:
        """Close the file: no more of it comes."""
        file, self._file = self._file, None
        if file:
            with suppress(OSError):
                file.close()

    def delete(self) -> None:
        if os.path.exists(self._stem + ".json"):
            with _locked(self._keep.folder):
                self._delete()

    def _delete(self) -> None:
        _remove(self._stem)


def sweep(folder: str, wanted: Iterable[str]) -> None:
    """Delete downloads that nobody wants any more.

    Args:
        folder: Folder of the downloads.
        wanted: names of those that stay.
    """
    if not store_of(folder).is_local or not os.path.isdir(folder):
        return
    stems = {join(folder, _stem(name)) for name in wanted}
    with _locked(folder):
        there = {
            join(folder, name.rpartition(".")[0]) for name in os.listdir(folder) if name.endswith((".part", ".json"))
        }
        for stem in there - stems:
            with open_scratch(stem + ".part", "ab") as file:
                if _lock(file):
                    _remove(stem)


def _stem(name: str) -> str:
    return f"{xxhash.xxh3_64_hexdigest(name.encode())}-{os.path.basename(name)[-100:]}"


def _downloads(folder: str) -> dict[str, Download]:
    """Return the downloads of a folder, by their paths without suffix; one whose description cannot be read is none."""
    results = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".json"):
            with open(os.path.join(folder, name), "rb") as stream, suppress(msgspec.DecodeError):
                results[join(folder, name.removesuffix(".json"))] = msgspec.json.decode(stream.read(), type=Download)
    return results


def _remove(stem: str) -> None:
    for suffix in (".part", ".json"):  # the reservation last
        remove_scratch(stem + suffix)


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Let one process at a time decide on what is in the folder."""
    make_folder(folder)
    with open_scratch(join(folder, ".lock"), "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _lock(file: IO[bytes]) -> bool:
    """Lock a file until it is closed; return whether nobody else has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
