"""Files on local disk, and on mounted file systems: read, written aside and renamed, moved, deleted.

Only regular files are read, replaced or deleted. A link, a pipe, a socket or a device where a file of ours belongs is
an error. Where a user names the file (`begin_named`), a link is followed, and a pipe or a character device takes the
bytes.
"""

import errno
import functools
import io
import itertools
import os
import re
import shutil
import stat
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import IO, Any

from toolkit.errors import ConfigError, DataError, Forbidden, Unreadable, advice
from toolkit.storage.store import Pieces, Stat, Store, Writing, check_roots
from toolkit.storage.stores.local.scratch import is_gone, machine, owner
from toolkit.storage.threads import for_each

BUFFER = 1 << 17
"""Bytes that are read at a time."""


@contextmanager
def translate_os_errors(path: str, expected: str = "a readable file", *, missing_passes: bool = True) -> Iterator[None]:
    """Raise `Unreadable` for errors of the system.

    Args:
        path: Path of the file.
        expected: Expected state of the file, for the message.
        missing_passes: True to let the error of a missing file pass, if its root exists.
    """
    try:
        yield
    except OSError as error:
        passes = missing_passes and isinstance(error, FileNotFoundError | NotADirectoryError)
        if passes or not missing_passes:
            check_roots(path)
        if passes:
            raise
        kind = Forbidden if error.errno in (errno.EACCES, errno.EPERM) else Unreadable
        raise kind(f"expected {expected}, got: {advice(error)}", path=path) from None


translate_write_errors = functools.partial(translate_os_errors, missing_passes=False)


class NamedFile(io.FileIO):
    """A file with its name in errors."""

    def readinto(self, buffer: Any) -> int:
        with translate_os_errors(str(self.name)):
            return super().readinto(buffer) or 0

    def readall(self) -> bytes:
        with translate_os_errors(str(self.name)):
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
    """Return the kind of a special file in words; empty for files and folders."""
    return _KINDS.get(stat.S_IFMT(mode), "")


def open_regular(path: str) -> io.BufferedReader:
    """Return a file, to be read, and nothing else: a pipe may wait for ever, and gives its bytes once, to one process.

    Raises:
        DataError: if it is a pipe, a socket or a device.
    """
    with translate_os_errors(path):
        kind = special(os.stat(path).st_mode)
    if kind or path.startswith(OPEN_FILES):
        got = f"{kind or 'what another process has open'}; files are read more than once, and by several processes"
        raise DataError(f"expected a file, got {got}: write it to one first", path=path)
    with translate_os_errors(path):
        return io.BufferedReader(NamedFile(path), BUFFER)


class LocalPieces(Pieces):
    """Random access to an open file."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = open_regular(path)

    def read(self, offset: int, length: int) -> bytes:
        with translate_os_errors(self._path):
            self._file.seek(offset)
            return self._file.read(length)

    def close(self) -> None:
        self._file.close()


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
        with self._translate_errors():
            self._file = self._begin()

    def _begin(self) -> IO[bytes]:
        """Return the temporary file; another process may delete the empty folder just before it is in it."""
        self.folders = _changed_by(self._path)
        for _ in range(FOLDER_TRIES):
            with suppress(FileNotFoundError, FileExistsError):  # makedirs, too, looks twice
                return self._create()
            check_roots(self._path)
        return self._create()

    def _create(self) -> IO[bytes]:
        _make_folder(self._folder or ".")
        return open(self._temporary, "wb", opener=self._opener)

    def _opener(self, path: str, flags: int) -> int:
        """Return the new file, with the permissions of its predecessor at most."""
        mode = replaceable(self._path)
        return os.open(path, flags, 0o666 if mode is None else mode & 0o666 | 0o600)

    def _translate_errors(self) -> AbstractContextManager[None]:
        return translate_write_errors(self._path, "a file that can be written")

    def __del__(self) -> None:
        """Delete the temporary file, if a signal came before the ``with`` block."""
        self._discard()

    def write(self, data: bytes) -> None:
        with self._translate_errors():
            self._file.write(data)

    def commit(self) -> Stat:
        with self._translate_errors():
            stat = self._ended(sync=self.durable)  # of this file: another attempt may replace it, or delete it, at once
            _replace(self._temporary, self._path)
            self._sync_folders()
        return stat

    def prepare(self) -> Stat:
        with self._translate_errors():
            return self._ended(sync=False)

    def sync(self) -> None:
        """Make the prepared file durable."""
        with self._translate_errors():
            _sync(self._temporary)

    def appear(self) -> None:
        """Give the file its name, once it is durable."""
        with self._translate_errors():
            _replace(self._temporary, self._path)

    def link(self) -> bool:
        """Make the file appear unless there is one; return whether it did."""
        with self._translate_errors():
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
        result = os.fstat(self._file.fileno())
        self._file.close()
        return Stat(result.st_size, f"mtime_ns {result.st_mtime_ns}")

    def _sync_folders(self) -> None:
        for folder in self.folders if self.durable else ():
            sync_folder(folder)


class _PassedOn(Writing):
    """Bytes for a pipe or a device: held in a temporary file, and passed on when they are complete."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed in `abort`

    def write(self, data: bytes) -> None:
        with translate_write_errors(self._path, "room for temporary files"):
            self._file.write(data)

    def commit(self) -> Stat:
        size = self._file.tell()
        self._file.seek(0)
        with (
            translate_write_errors(self._path, "a pipe or a device that takes what is written"),
            self._target() as target,
        ):
            shutil.copyfileobj(self._file, target)
        return Stat(size, "")

    def _target(self) -> IO[bytes]:
        """Open the target; a file already open in this process is continued."""
        number = re.search(r"\d+$", self._path.replace("stdout", "1").replace("stderr", "2"))
        if self._path.startswith(OPEN_FILES) and number:
            return open(os.dup(int(number[0])), "wb")
        return open(os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY), "wb")

    def abort(self) -> None:
        self._file.close()


def passes_on(path: str) -> bool:
    """Return True if a user's path takes bytes and keeps no file.

    Raises:
        ConfigError: if it can take none: a socket, a block device, a folder.
    """
    with suppress(FileNotFoundError, NotADirectoryError), translate_os_errors(path, "a file that can be looked at"):
        mode = os.stat(path).st_mode
        if stat.S_ISDIR(mode) or stat.S_ISSOCK(mode) or stat.S_ISBLK(mode):
            kind = special(mode) or "a folder"
            raise ConfigError(f"{path}: expected a file to write, got {kind}; choose another path")
        return path.startswith(OPEN_FILES) or not stat.S_ISREG(mode)
    return False


def begin_named(path: str) -> Writing:
    """Begin a file named by a user: a link's target, a pipe, or a character device."""
    return _PassedOn(path) if passes_on(path) else LocalWriting(os.path.realpath(path))


def replaceable(path: str) -> int | None:
    """Return the mode of a replaceable regular file; None if there is none.

    Raises:
        DataError: if something else is there, which is not of the toolkit.
    """
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    if kind := special(mode):
        raise DataError(f"expected a file of the toolkit, or nothing, got {kind}; move it away", path=path)
    return mode


def _replace(source: str, target: str) -> None:
    replaceable(target)
    os.replace(source, target)


def delete(path: str) -> None:
    """Delete a regular file, or an empty folder, if it is there."""
    with translate_write_errors(path, "what can be deleted"), suppress(FileNotFoundError, NotADirectoryError):
        mode = replaceable(path)
        if mode is not None and stat.S_ISDIR(mode):
            os.rmdir(path)
        elif mode is not None:
            os.unlink(path)


def delete_tree(root: str) -> None:
    """Delete a folder and its contents. Links are deleted, their targets stay.

    Raises:
        DataError: if the folder itself is a link.
    """
    if os.path.islink(root.rstrip("/")):
        raise DataError("expected a folder to delete, got a symbolic link; delete the link yourself", path=root)
    for folder, folders, files in os.walk(root, topdown=False, onerror=refuse_walk):
        links = (name for name in folders if os.path.islink(os.path.join(folder, name)))
        for name in (*files, *links):
            path = os.path.join(folder, name)
            with translate_write_errors(path, "what can be deleted"), suppress(FileNotFoundError):
                os.unlink(path)
        delete(folder)


def refuse_walk(error: OSError) -> None:
    """Raise the error of a walk, unless a folder is missing."""
    with (
        suppress(FileNotFoundError, NotADirectoryError),
        translate_os_errors(str(error.filename), "a folder that can be read"),
    ):
        raise error


def move_file(source: str, target: str) -> list[str]:
    """Move a file; return the folders to sync."""
    folder = os.path.dirname(target)
    with translate_write_errors(target, f"that {source} can be moved here"):
        folders = _changed_by(target)
        _make_folder(folder or ".")
        try:
            _replace(source, target)
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
    """Return the folders changed by a new file, innermost first: its folder, and those above a missing one.

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
    writing = LocalWriting(target)
    try:
        with open(source, "rb") as stream:
            shutil.copyfileobj(stream, writing)
        writing.commit()
    finally:
        writing.abort()


def sync_folder(folder: str) -> None:
    """Make a rename in the folder durable; an error of the system names no file, so ours names the folder."""
    with translate_write_errors(folder or ".", "a folder that can be written"):
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


CALLED_AS_FILES = re.compile(r"\.(gz|zst|zstd|jsonl|json|parquet|txt|bin)$")


class Local(Store):
    """Paths without a scheme: those of the operating system."""

    is_local = True

    def absolute(self, path: str) -> str:
        return os.path.abspath(path)

    def normal(self, path: str) -> str:
        """Return the target of symbolic links."""
        return os.path.realpath(path)

    def volume(self, path: str) -> str:
        return ""

    def stat(self, path: str) -> Stat | None:
        result = _stat(path)
        if result is None or stat.S_ISDIR(result.st_mode):
            return None
        return Stat(result.st_size, f"mtime_ns {result.st_mtime_ns}")

    def age(self, path: str) -> float | None:
        result = _stat(path)
        return None if result is None else time.time() - result.st_mtime

    def is_folder(self, path: str) -> bool:
        return _is_folder(path)

    def files(self, root: str) -> Iterator[str]:
        """Return all files, also through symbolic links to other folders.

        An empty folder whose name ends as those of files do is among them: who reads it gets an error that says so.
        Left out, it would be a file that vanished without a word.

        Raises:
            Unreadable: if a folder cannot be read.
        """
        results = []
        above: dict[str, set[tuple[int, int]]] = {root: set()}
        for folder, folders, files in os.walk(root, onerror=refuse_walk, followlinks=True):
            around = above.pop(folder) | {_identity(folder)}
            paths = {name: os.path.join(folder, name) for name in folders}
            folders[:] = [
                name for name, path in paths.items() if not os.path.islink(path) or _identity(path) not in around
            ]
            above |= {paths[name]: around for name in folders}
            relative = os.path.relpath(folder, root)
            if not folders and not files and folder != root and CALLED_AS_FILES.search(folder):
                results.append(relative)
            results += files if relative == "." else [f"{relative}/{name}" for name in files]
        return iter(sorted(results))

    def listing(self, root: str) -> Iterator[tuple[str, Stat | None]]:
        """Return `files`, looked at one after the other: threads take five times as long to do so on a disk nearby.

        Network file systems send what is asked for next along with what was listed.
        """
        return ((name, self.stat(os.path.join(root, name))) for name in self.files(root))

    def folders(self, root: str) -> list[str]:
        try:
            with translate_os_errors(root, "a folder that can be read"):
                names = os.listdir(root)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name for name in names if _is_folder(os.path.join(root, name)))

    def open(self, path: str, offset: int = 0, expected: Stat | None = None) -> io.BufferedReader:
        """Return the file as it is: if a rename replaces it, the one that is open stays."""
        if expected and self.stat(path) != expected:
            raise DataError("expected the file as it was, got one that has changed", path=path)
        stream = open_regular(path)
        stream.seek(offset)
        return stream

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        with translate_os_errors(path), open_regular(path) as stream:
            stream.seek(offset)
            return stream.read() if length is None else stream.read(length)

    def pieces(self, path: str) -> "LocalPieces":
        return LocalPieces(path)

    def writing(self, path: str) -> "LocalWriting":
        return LocalWriting(path)

    def check_named(self, path: str, where: str) -> Stat | None:
        if passes_on(path):
            return None
        path = os.path.realpath(path)
        super().check_named(path, where)
        return self.stat(path)

    def named(self, path: str) -> Writing:
        return begin_named(path)

    def commit_all(self, prepared: Sequence[Writing], moves: Sequence[tuple[str, str]] = ()) -> None:
        """Sync files, rename them, sync each of their folders once; several at a time, for one sync costs as many do.

        A file system writes its journal once for all that wait for it: 200 files took 5 to 12 ms each one after the
        other, 0.2 to 0.5 ms so (ext4).
        """
        files = [writing for writing in prepared if isinstance(writing, LocalWriting)]
        for_each(LocalWriting.sync, [file for file in files if file.durable], always=True)
        folders = {folder for source, target in moves for folder in move_file(source, target)}
        for file in files:
            file.appear()
            folders.update(file.folders if file.durable else ())
        for_each(sync_folder, sorted(folders), always=True)

    def create(self, path: str, data: bytes) -> bool:
        """Create a small file by a hard link; one process succeeds."""
        writing = LocalWriting(path)
        try:
            writing.write(data)
            return writing.link()
        finally:
            writing.abort()

    def move(self, source: str, target: str) -> None:
        for folder in move_file(source, target):
            sync_folder(folder)

    def remove(self, path: str) -> None:
        delete(path)

    def remove_tree(self, root: str) -> None:
        delete_tree(root)

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

    def leftovers(self, root: str, *, any_owner: bool = False) -> list[str]:
        """Return temporary files of ended processes of this machine; with ``any_owner``, of other machines, too."""
        results = []
        for relative in self.files(root):
            match = re.match(r"^\..+\.([^.]+\.\d+-\d+)\.\d+\.tmp$", os.path.basename(relative))
            if match and (is_gone(match[1]) or (any_owner and not match[1].startswith(f"{machine()}."))):
                results.append(os.path.join(root, relative))
        return results


def _stat(path: str) -> os.stat_result | None:
    """Return the system's stat of a path; None if it is missing below an existing root."""
    try:
        with translate_os_errors(path, "a file that can be looked at"):
            return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_folder(path: str) -> bool:
    result = _stat(path)
    return result is not None and stat.S_ISDIR(result.st_mode)


def _identity(folder: str) -> tuple[int, int]:
    """Return device and inode; of a folder that is gone meanwhile numbers that no folder has."""
    result = _stat(folder)
    return (result.st_dev, result.st_ino) if result else (-1, -1)
