"""Files on local disk, and on what is mounted there."""

import errno
import io
import itertools
import os
import re
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import PurePosixPath
from typing import IO, Any

from toolkit.errors import ConfigError, DataError, Forbidden, Unreadable, advice
from toolkit.storage.owners import is_running, machine, owner
from toolkit.storage.roots import check_roots
from toolkit.storage.store import Pieces, Stat, Store, Writing
from toolkit.storage.threads import for_each

BUFFER = 1 << 17
"""Bytes that are read at a time."""

FOLDER_TRIES = 100

CALLED_AS_FILES = re.compile(r"\.(gz|zst|zstd|jsonl|json|parquet|txt|bin)$")

LONGEST_NAME = 255
"""Bytes of a file's name."""

_attempts = itertools.count()
_attempts_lock = threading.Lock()


class Local(Store):
    """Paths without a scheme, which are those of the operating system."""

    is_local = True

    def absolute(self, path: str) -> str:
        return os.path.abspath(path)

    def normal(self, path: str) -> str:
        """Return the path that symbolic links lead to."""
        return os.path.realpath(path)

    def volume(self, path: str) -> str:
        return ""

    def stat(self, path: str) -> Stat | None:
        found = _stat(path)
        if found is None or stat.S_ISDIR(found.st_mode):
            return None
        return Stat(found.st_size, f"mtime_ns {found.st_mtime_ns}")

    def age(self, path: str) -> float | None:
        found = _stat(path)
        return None if found is None else time.time() - found.st_mtime

    def is_folder(self, path: str) -> bool:
        return _is_folder(path)

    def files(self, root: str) -> Iterator[str]:
        """Return all files, also those below symbolic links, but for links to a folder that they are in.

        An empty folder whose name ends as those of files do is among them: who reads it gets an error that says so.
        Left out, it would be a file that vanished without a word.

        Raises:
            Unreadable: if a folder cannot be read.
        """
        found = []
        above: dict[str, set[tuple[int, int]]] = {root: set()}
        for folder, folders, files in os.walk(root, onerror=_refuse, followlinks=True):
            around = above.pop(folder) | {_identity(folder)}
            folders[:] = [name for name in folders if not _is_link_to(os.path.join(folder, name), around)]
            above |= {os.path.join(folder, name): around for name in folders}
            relative = os.path.relpath(folder, root)
            if not folders and not files and folder != root and CALLED_AS_FILES.search(folder):
                found.append(relative)
            found += files if relative == "." else [f"{relative}/{name}" for name in files]
        return iter(sorted(found))

    def listing(self, root: str) -> Iterator[tuple[str, Stat | None]]:
        """Return `files`, looked at one after the other: threads take five times as long to do so on a disk nearby.

        Network file systems send what is asked for next along with what was listed.
        """
        return ((name, self.stat(os.path.join(root, name))) for name in self.files(root))

    def folders(self, root: str) -> list[str]:
        try:
            with _told(root, "a folder that can be read"):
                names = os.listdir(root)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name for name in names if _is_folder(os.path.join(root, name)))

    def open(self, path: str, offset: int = 0, expected: Stat | None = None) -> io.BufferedReader:
        """Return the file as it is: if a rename replaces it, the one that is open stays."""
        if expected and self.stat(path) != expected:
            raise DataError("expected the file as it was, it has been changed", path=path)
        stream = _opened(path)
        stream.seek(offset)
        return stream

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        with _told(path), _opened(path) as stream:
            stream.seek(offset)
            return stream.read() if length is None else stream.read(length)

    def pieces(self, path: str) -> "_Pieces":
        return _Pieces(path)

    def writing(self, path: str) -> "_Writing":
        return _Writing(path)

    def commit_all(self, prepared: Sequence[Writing], moves: Sequence[tuple[str, str]] = ()) -> None:
        """Sync files, rename them, sync each of their folders once; several at a time, for one sync costs as many do.

        A file system writes its journal once for all that wait for it: 200 files took 5 to 12 ms each one after the
        other, 0.2 to 0.5 ms so (ext4).
        """
        files = [made for made in prepared if isinstance(made, _Writing)]
        for_each(_Writing.sync, files, few=1)
        folders = {folder for source, target in moves for folder in _moved(source, target)}
        for made in files:
            made.appear()
            folders.update(made.folders)
        for_each(_sync_folder, sorted(folders), few=1)

    def create(self, path: str, data: bytes) -> bool:
        """Write a small file by a link, which one of several gets."""
        made = _Writing(path)
        try:
            made.write(data)
            return made.link()
        finally:
            made.abort()

    def move(self, source: str, target: str) -> None:
        for folder in _moved(source, target):
            _sync_folder(folder)

    def remove(self, path: str) -> None:
        with _done(path, "what can be deleted"), suppress(FileNotFoundError, NotADirectoryError):
            if os.path.isdir(path) and not os.path.islink(path):
                os.rmdir(path)
            else:
                os.unlink(path)

    def remove_tree(self, root: str) -> None:
        for folder, _, files in os.walk(root, topdown=False, onerror=_refuse):
            for name in files:
                self.remove(os.path.join(folder, name))
            self.remove(folder)

    def remove_empty_folders(self, folder: str, root: str) -> None:
        while folder.startswith(root.rstrip("/") + "/"):
            try:
                os.rmdir(folder)
            except OSError:
                return
            folder = os.path.dirname(folder)

    def check_writable(self, folder: str, where: str) -> None:
        existing = os.path.abspath(folder)
        while not os.path.lexists(existing):
            existing = os.path.dirname(existing)
        if not _is_folder(existing):
            check_roots(existing)  # or it has just vanished
            raise ConfigError(f"{where}: expected a folder, got the file {existing}")
        if not os.access(existing, os.W_OK | os.X_OK) or existing.startswith("/proc"):
            raise ConfigError(f"{where}: expected a folder that may be written in, got {existing}")

    def leftovers(self, root: str, *, others: bool = False) -> list[str]:
        """Return temporary files of processes of this machine that are gone; with ``others``, of all machines."""
        found = []
        for relative in self.files(root):
            named = re.match(r"^\..+\.([^.]+)\.(\d+)-(\d+)\.\d+\.tmp$", PurePosixPath(relative).name)
            if named is None:
                continue
            is_ours = named[1] == machine()
            if not is_running(int(named[2]), int(named[3])) if is_ours else others:
                found.append(os.path.join(root, relative))
        return found


class _File(io.FileIO):
    """A file whose errors name it."""

    def readinto(self, buffer: Any) -> int:
        with _told(str(self.name)):
            return super().readinto(buffer) or 0

    def readall(self) -> bytes:
        with _told(str(self.name)):
            return super().readall() or b""


_KINDS = {
    stat.S_IFIFO: "a pipe (FIFO)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def _opened(path: str) -> io.BufferedReader:
    """Return a file, to be read, and nothing else: a pipe may wait for ever, and gives its bytes once, to one process.

    Raises:
        DataError: if it is a pipe, a socket or a device.
    """
    with _told(path):
        kind = _KINDS.get(stat.S_IFMT(os.stat(path).st_mode))
    if kind or path.startswith(("/dev/fd/", "/dev/std", "/proc/self/fd/")):
        got = f"{kind or 'what another process has open'}; files are read more than once, and by several processes"
        raise DataError(f"expected a file, got {got}: write it to one first", path=path)
    with _told(path):
        return io.BufferedReader(_File(path), BUFFER)


class _Pieces(Pieces):
    def __init__(self, path: str) -> None:
        self._path = path
        self._file = _opened(path)

    def read(self, offset: int, length: int) -> bytes:
        with _told(self._path):
            self._file.seek(offset)
            return self._file.read(length)

    def close(self) -> None:
        self._file.close()


class _Writing(Writing):
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
        return _done(self._path, "a file that can be written")

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
            _sync_folder(folder)


@contextmanager
def _told(path: str, expected: str = "a readable file") -> Iterator[None]:
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
def _done(path: str, expected: str) -> Iterator[None]:
    """Make `Unreadable` of what keeps a file from being written, moved or deleted: it names what was to be there."""
    try:
        yield
    except OSError as error:
        check_roots(path)
        kind = Forbidden if error.errno in (errno.EACCES, errno.EPERM) else Unreadable
        raise kind(f"expected {expected}, got: {advice(error)}", path=path) from None


def _moved(source: str, target: str) -> list[str]:
    """Move a file; return the folders to sync."""
    folder = os.path.dirname(target)
    with _done(target, f"that {source} can be moved here"):
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
    made = _Writing(target)
    try:
        with open(source, "rb") as stream:
            while block := stream.read(1 << 20):
                made.write(block)
        made.commit()
    finally:
        made.abort()


def _stat(path: str) -> os.stat_result | None:
    """Return what the system says of a file or a folder; None if there is none, below a root that is there."""
    try:
        with _told(path, "a file that can be looked at"):
            return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_folder(path: str) -> bool:
    found = _stat(path)
    return found is not None and stat.S_ISDIR(found.st_mode)


def _refuse(error: OSError) -> None:
    """Raise what goes wrong in a walk, but that a folder is not there (any more)."""
    with suppress(FileNotFoundError, NotADirectoryError), _told(str(error.filename), "a folder that can be read"):
        raise error


def _is_link_to(path: str, folders: set[tuple[int, int]]) -> bool:
    return os.path.islink(path) and _identity(path) in folders


def _identity(folder: str) -> tuple[int, int]:
    """Return device and inode; of a folder that is gone meanwhile numbers that no folder has."""
    found = _stat(folder)
    return (found.st_dev, found.st_ino) if found else (-1, -1)


def _sync_folder(folder: str) -> None:
    """Make a rename in the folder durable; an error of the system names no file, so ours names the folder."""
    with _done(folder or ".", "a folder that can be written"):
        _sync(folder or ".")


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# --- temporary files --------------------------------------------------------------------------------------------------


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
