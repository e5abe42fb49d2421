"""Files that are read: regular ones only; and what the system's errors mean: missing, forbidden, or unknown."""

import errno
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from toolkit.errors import DataError, Forbidden, Unreadable, advice
from toolkit.storage.roots import check_roots
from toolkit.storage.store import Pieces

BUFFER = 1 << 17
"""Bytes that are read at a time."""


@contextmanager
def told(path: str, expected: str = "a readable file") -> Iterator[None]:
    """Make `Unreadable` of what is wrong with a file, unless it is not there, below a root that is."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        check_roots(path)
        raise
    except OSError as error:
        kind = Forbidden if error.errno in (errno.EACCES, errno.EPERM) else Unreadable
        raise kind(f"expected {expected}, got: {advice(error)}", path=path) from None


@contextmanager
def done(path: str, expected: str) -> Iterator[None]:
    """Make `Unreadable` of what keeps a file from being written, moved or deleted: it names what was to be there."""
    try:
        yield
    except OSError as error:
        check_roots(path)
        kind = Forbidden if error.errno in (errno.EACCES, errno.EPERM) else Unreadable
        raise kind(f"expected {expected}, got: {advice(error)}", path=path) from None


class File(io.FileIO):
    """A file whose errors name it."""

    def readinto(self, buffer: Any) -> int:
        with told(str(self.name)):
            return super().readinto(buffer) or 0

    def readall(self) -> bytes:
        with told(str(self.name)):
            return super().readall() or b""


_KINDS = {
    stat.S_IFIFO: "a pipe (FIFO)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a block device",
    stat.S_IFLNK: "a symbolic link",
}

OPEN_FILES = ("/dev/fd/", "/dev/std", "/proc/self/fd/")
"""Beginnings of paths that name what this process has open."""


def special(mode: int) -> str:
    """Return what is neither a file nor a folder, in words; nothing for these two."""
    return _KINDS.get(stat.S_IFMT(mode), "")


def opened(path: str) -> io.BufferedReader:
    """Return a file, to be read, and nothing else: a pipe may wait for ever, and gives its bytes once, to one process.

    Raises:
        DataError: if it is a pipe, a socket or a device.
    """
    with told(path):
        kind = special(os.stat(path).st_mode)
    if kind or path.startswith(OPEN_FILES):
        got = f"{kind or 'what another process has open'}; files are read more than once, and by several processes"
        raise DataError(f"expected a file, got {got}: write it to one first", path=path)
    with told(path):
        return io.BufferedReader(File(path), BUFFER)


class LocalPieces(Pieces):
    """Bytes from anywhere in a file that stays open."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = opened(path)

    def read(self, offset: int, length: int) -> bytes:
        with told(self._path):
            self._file.seek(offset)
            return self._file.read(length)

    def close(self) -> None:
        self._file.close()
