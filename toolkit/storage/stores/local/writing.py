"""Files that appear: written aside, synced, renamed; and moved."""

import errno
import itertools
import os
import threading
from contextlib import AbstractContextManager, suppress
from typing import IO

from toolkit.storage.owners import owner
from toolkit.storage.roots import check_roots
from toolkit.storage.store import Stat, Writing
from toolkit.storage.stores.local.errors import done

FOLDER_TRIES = 100

LONGEST_NAME = 255
"""Bytes of a file's name."""

_attempts = itertools.count()
_attempts_lock = threading.Lock()


class LocalWriting(Writing):
    """A hidden temporary beside the path; synced, then renamed."""

    _temporary = ""  # until a name is made: a signal may come meanwhile

    def __init__(self, path: str) -> None:
        self._path = path
        self._folder = os.path.dirname(path)
        self._temporary = temporary_name(path)
        self.folders = [self._folder]
        """To be synced when the file has its name: that which it is in, and those in which a folder was made for it."""
        with self._done():
            self._file = self._begin()

    def _begin(self) -> IO[bytes]:
        """Return the temporary file; another process may delete the empty folder just before it is in it."""
        self.folders = _changed_by(self._path)
        for _ in range(FOLDER_TRIES):
            try:
                _make_folder(self._folder or ".")
                return open(self._temporary, "wb", opener=self._created)
            except (FileNotFoundError, FileExistsError):  # makedirs, too, looks twice
                check_roots(self._path)
        _make_folder(self._folder or ".")
        return open(self._temporary, "wb", opener=self._created)

    def _created(self, path: str, flags: int) -> int:
        """Return the new file, open to no more people than the one that it replaces."""
        try:
            mode = os.stat(self._path).st_mode & 0o666 | 0o600
        except OSError:
            mode = 0o666
        return os.open(path, flags, mode)

    def _done(self) -> AbstractContextManager[None]:
        return done(self._path, "a file that can be written")

    def __del__(self) -> None:
        """Delete what is left: a signal may come before the ``with`` block begins that would abort."""
        self._discard()

    def write(self, data: bytes) -> None:
        with self._done():
            self._file.write(data)

    def commit(self) -> Stat:
        with self._done():
            found = self._ended(sync=True)  # of this file: another attempt may replace it, or delete it, at once
            os.replace(self._temporary, self._path)
            self._sync_folders()
        return found

    def prepare(self) -> Stat:
        with self._done():
            return self._ended(sync=False)

    def sync(self) -> None:
        """Make durable what was prepared."""
        with self._done():
            _sync(self._temporary)

    def appear(self) -> None:
        """Give the file its name, once it is durable."""
        with self._done():
            os.replace(self._temporary, self._path)

    def link(self) -> bool:
        """Make the file appear unless there is one; return whether it did."""
        with self._done():
            self._ended(sync=True)
            try:
                os.link(self._temporary, self._path)
            except FileExistsError:
                return False
            self._sync_folders()
        return True

    def abort(self) -> None:
        with suppress(OSError):  # a full disk refuses once more what is still held; the cause has been told
            self._file.close()
        self._discard()

    def _discard(self) -> None:
        with suppress(OSError):  # there may be none; of what cannot be deleted now, the next run takes care
            os.unlink(self._temporary)

    def _ended(self, *, sync: bool) -> Stat:
        self._file.flush()
        if sync:
            os.fsync(self._file.fileno())
        found = os.fstat(self._file.fileno())
        self._file.close()
        return Stat(found.st_size, f"mtime_ns {found.st_mtime_ns}")

    def _sync_folders(self) -> None:
        for folder in self.folders:
            sync_folder(folder)


def moved(source: str, target: str) -> list[str]:
    """Move a file; return the folders to sync."""
    folder = os.path.dirname(target)
    with done(target, f"that {source} can be moved here"):
        folders = _changed_by(target)
        _make_folder(folder or ".")
        try:
            os.replace(source, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _copy(source, target)  # to a folder on another file system
            os.unlink(source)
    return folders


def _make_folder(folder: str) -> None:
    """Make a folder, unless it is there; if it may not be looked at, that is told, and not that a file is there."""
    try:
        os.makedirs(folder, exist_ok=True)
    except FileExistsError:
        os.stat(folder)
        raise


def _changed_by(path: str) -> list[str]:
    """Return the folders that change when a file is made whose folder may have to be made first, innermost first.

    Raises:
        Unreadable: if they would be made where a mount has vanished.
    """
    folders = [os.path.dirname(path)]
    if os.path.isdir(folders[0] or "."):
        return folders
    check_roots(path)
    while not os.path.isdir(folders[-1] or "."):
        folders.append(os.path.dirname(folders[-1]))
    return folders


def _copy(source: str, target: str) -> None:
    made = LocalWriting(target)
    try:
        with open(source, "rb") as stream:
            while block := stream.read(1 << 20):
                made.write(block)
        made.commit()
    finally:
        made.abort()


def sync_folder(folder: str) -> None:
    """Make a rename in the folder durable; an error of the system names no file, so ours names the folder."""
    with done(folder or ".", "a folder that can be written"):
        _sync(folder or ".")


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def temporary_name(path: str) -> str:
    """Return a hidden name beside the path, unique to this attempt: ``.<name>.<machine>.<process>.<n>.tmp``.

    A long name is cut to what there is room for.
    """
    folder, name = os.path.split(path)
    with _attempts_lock:
        n = next(_attempts)
    rest = f".{owner()}.{n}.tmp"
    name = os.fsdecode(os.fsencode(name)[: LONGEST_NAME - 1 - len(os.fsencode(rest))])
    return os.path.join(folder, f".{name}{rest}")
