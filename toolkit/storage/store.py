"""The contract of a store: what the toolkit asks of a kind of place that files are in.

A store takes whole paths (``s3://BUCKET/KEY``). A class that extends `Store` and says `stat` and `read` can be read by
name. With `files` it can be listed, with `age`, `put`, `create` and `remove` it can be written. All other methods have
defaults that use these; a store overrides what it can do better.

A read has three outcomes:

- The file is there: its bytes are returned.
- The file is not there, by the store's own word: None, or FileNotFoundError, as the method says.
- Anything else (a refusal, a broken connection, a disk that has vanished): `toolkit.errors.Unreadable` is raised. It is
  never taken for the second outcome: what could not be read would be made again, or left out.
"""

import io
import os
import posixpath
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, NoReturn

import msgspec

from toolkit.errors import ConfigError, DataError, Unreadable
from toolkit.session import current
from toolkit.storage.threads import for_each
from toolkit.storage_options import DEFAULTS, StorageOptions

BUFFER = 1 << 20
"""Bytes that are read at a time."""


class Stat(msgspec.Struct, frozen=True, gc=False):
    """Size and stamp of a file, the quick test for a change.

    Attributes:
        size: bytes as stored; 0 if the store cannot say.
        stamp: the modification time in ns of a local file, the ETag of others.
    """

    size: int
    stamp: str


class Writing(ABC):
    """A file in progress: it appears complete, or not at all.

    Attributes:
        durable: False for a file with a checksum that can be made again; a local disk may lose it with its power.
    """

    durable = True

    @abstractmethod
    def write(self, data: bytes, /) -> object:
        """Append bytes."""

    @abstractmethod
    def commit(self) -> Stat:
        """Make the file appear durably, and return its `Stat`. It replaces an earlier file."""

    def prepare(self) -> Stat:
        """Finish the file for `Store.commit_all`, and return its `Stat`. The default commits it."""
        return self.commit()

    @abstractmethod
    def abort(self) -> None:
        """Delete the written bytes. Do nothing after `commit`, or if called again."""


class Pieces(ABC):
    """An open file for random access."""

    @abstractmethod
    def read(self, offset: int, length: int) -> bytes:
        """Return a piece, shorter at the end of the file."""

    @abstractmethod
    def close(self) -> None:
        """Release the file. Nothing is read afterwards."""


class Store(ABC):
    """Files of one kind of place.

    One object serves all paths of its scheme in a command, in several threads at a time.

    Args:
        options: the section ``storage:`` of the configuration.

    Attributes:
        can_list: True if folders can be listed. Where they cannot, as on the web, a path is a name and never a glob,
            inputs are not asked for their sizes, at most `connections:` of them are read at a time, and what has been
            read once is compared by its `Stat` alone.
        can_write: True if files can be written.
        is_local: True if paths are those of the operating system, so that other programs can open them.
    """

    can_list: ClassVar[bool] = True
    can_write: ClassVar[bool] = True
    is_local: ClassVar[bool] = False

    def __init__(self, options: StorageOptions = DEFAULTS) -> None:
        self.options = options

    # --- names --------------------------------------------------------------------------------------------------------

    def absolute(self, path: str) -> str:
        """Return the path from the store's root, without a trailing slash."""
        return path.rstrip("/")

    def normal(self, path: str) -> str:
        """Return the canonical form of a path, to compare places.

        ``.``, ``..`` and empty parts of a key are resolved: a store that keeps ``a//b`` and ``a/b`` apart is no reason
        to write both.
        """
        scheme, _, rest = path.partition("://")
        host, _, key = rest.partition("/")
        return f"{scheme}://{host}{posixpath.normpath('/' + key.lstrip('/')).rstrip('/')}"

    def volume(self, path: str) -> str:
        """Return the scope of `move`, a prefix such as ``s3://BUCKET``."""
        scheme, _, rest = path.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}"

    def name_of(self, path: str) -> str:
        """Return the last part of a path, the name in records."""
        return path.rstrip("/").rpartition("/")[2]

    def quoted(self, name: str) -> str:
        """Return a file's name quoted for a path of this store."""
        return name

    # --- looking ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def stat(self, path: str) -> Stat | None:
        """Return size and stamp of a file; None if there is no such file.

        Raises:
            Unreadable: if the store does not say.
        """

    def age(self, path: str) -> float | None:
        """Return the seconds since the last write, by the store's clock; None if the file is missing."""
        self._refuse(path)

    def is_folder(self, path: str) -> bool:
        """Return True for a folder, or a prefix of paths of files."""
        return self.can_list and next(self.files(path), None) is not None

    def files(self, root: str) -> Iterator[str]:
        """Return the relative paths of files below a folder, in code-point order. A missing folder has none.

        Raises:
            Unreadable: if the folder cannot be listed, or not to its end.
        """
        raise ConfigError(f"{root}: expected a single file, {_scheme(root)}:// has no folders to list")

    def listing(self, root: str) -> Iterator[tuple[str, Stat | None]]:
        """Return `files` in the same order, each with its `stat`. It is None if it needs a request for each file."""
        return ((name, None) for name in self.files(root))

    def folders(self, root: str) -> list[str]:
        """Return the names of the folders directly in a folder, sorted."""
        return sorted({name.partition("/")[0] for name in self.files(root) if "/" in name})

    # --- reading ------------------------------------------------------------------------------------------------------

    @abstractmethod
    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return a piece of a file, shorter at its end; all of it from the offset without a length.

        Raises:
            FileNotFoundError: if there is no such file, by the store's own word.
            Unreadable: if it could not be read.
        """

    def open(self, path: str, offset: int = 0, expected: Stat | None = None) -> io.BufferedReader:
        """Return the bytes of a file from an offset, as a stream. All are of one version of the file.

        The stream gives what has arrived (``read1``) without waiting for more.

        Args:
            path: Path of the file.
            offset: Offset of the first byte.
            expected: the version that it must be; that which is there, if None.

        Raises:
            FileNotFoundError: if there is no such file.
            DataError: if it is another version, or becomes one while it is read.
            Unreadable: if it could not be read.
        """
        stat = expected or self.stat(path)
        if stat is None:
            raise FileNotFoundError(2, "No such file", path)
        return io.BufferedReader(_OneVersion(self, path, offset, stat), BUFFER)

    def pieces(self, path: str) -> Pieces:
        """Return a file for random access.

        Raises:
            FileNotFoundError: if there is no such file; with the first piece at the latest.
        """
        return _RangeRequests(self, path)

    # --- writing ------------------------------------------------------------------------------------------------------

    def writing(self, path: str) -> Writing:
        """Begin a file, and return it. The default holds it in memory until it is complete, then calls `put`."""
        if not self.can_write:
            self._refuse(path)
        return _BufferedWriting(self, path)

    def check_named(self, path: str, where: str) -> Stat | None:
        """Check a path named by a user for writing; return its `Stat`, None if it is missing.

        Raises:
            ConfigError: if it cannot be; ``where`` is what the user calls it.
        """
        self.check_writable(path.rpartition("/")[0], where)
        return self.stat(path)

    def named(self, path: str) -> Writing:
        """Begin a file named by a user. The default is the same as `writing`."""
        return self.writing(path)

    def commit_all(self, prepared: Sequence[Writing], moves: Sequence[tuple[str, str]] = ()) -> None:
        """Make prepared files appear durably: all are synced before the first appears.

        The default only moves, because `Writing.prepare` does not wait. A store replaces both if it can make many files
        durable in less time than one by one.

        Args:
            prepared: Prepared that appear.
            moves: files that are durable, each with where it is moved (see `move`), before the others appear.
        """
        for_each(lambda move: self.move(*move), moves)

    def put(self, path: str, data: bytes) -> Stat:
        """Write a whole file and return its `Stat`. It replaces an earlier one; nobody sees a part of it."""
        self._refuse(path)

    def create(self, path: str, data: bytes) -> bool:
        """Write a small file unless there is one; return whether it was written. Of several that try at once, one is.

        Runs lease their work by it, so it must hold between all processes that use the store.
        """
        self._refuse(path)

    def move(self, source: str, target: str) -> None:
        """Move a file within its `volume`; replace the target.

        Raises:
            FileNotFoundError, Unreadable: if there is no such file.
        """
        writing = self.writing(target)
        try:
            with self.open(source) as stream:
                while block := stream.read(BUFFER):
                    writing.write(block)
            writing.commit()
        finally:
            writing.abort()
        self.remove(source)

    def remove(self, path: str) -> None:
        """Delete a file, or an empty folder; do nothing if it is missing."""
        self._refuse(path)

    def remove_tree(self, root: str) -> None:
        """Delete all files below a folder, and the folder."""
        for name in list(self.files(root)):
            self.remove(f"{root.rstrip('/')}/{name}")

    def remove_empty_folders(self, folder: str, root: str) -> None:
        """Delete a folder and its parents below the root, if empty. Do nothing in a store without folders."""
        return

    def check_writable(self, folder: str, where: str) -> None:
        """Raise ConfigError if nothing can be written below a folder; ``where`` is what the configuration calls it."""
        if not self.can_write:
            raise ConfigError(f"{where}: expected a folder that may be written in, got {folder}")

    def leftovers(self, root: str, *, any_owner: bool = False) -> list[str]:
        """Return the leftovers of killed processes below a folder, sorted. They are names for `discard`.

        Args:
            root: the folder.
            any_owner: also what processes may have left of which nobody here knows whether they still work.
        """
        return []

    def discard(self, leftover: str) -> None:
        """Delete one of `leftovers`; do nothing if it is not there."""
        self.remove(leftover)

    def _refuse(self, path: str) -> NoReturn:
        raise ConfigError(f"{path}: expected a place to write to, {_scheme(path)}:// is for reading")


def _scheme(path: str) -> str:
    return path.partition("://")[0]


class _OneVersion(io.RawIOBase):
    """The bytes of a file by `Store.read`; the version is compared before the first and after the last."""

    def __init__(self, store: Store, path: str, offset: int, expected: Stat) -> None:
        super().__init__()
        self._store, self._path, self._at, self._expected = store, path, offset, expected
        self._check()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._store.read(self._path, self._at, len(buffer))
        if not data:
            self._check()
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def readall(self) -> bytes:
        data = self._store.read(self._path, self._at)
        self._at += len(data)
        self._check()
        return data

    def _check(self) -> None:
        if self._store.stat(self._path) != self._expected:
            raise DataError(
                "expected a file that does not change while it is read, got one that has changed", path=self._path
            )


class _RangeRequests(Pieces):
    """Pieces of a file by a request for each."""

    def __init__(self, store: Store, path: str) -> None:
        self._store, self._path = store, path

    def read(self, offset: int, length: int) -> bytes:
        return self._store.read(self._path, offset, length)

    def close(self) -> None:
        pass


class _BufferedWriting(Writing):
    """A file in memory until it is complete."""

    def __init__(self, store: Store, path: str) -> None:
        self._store, self._path = store, path
        self._blocks: list[bytes] = []

    def write(self, data: bytes, /) -> None:
        self._blocks.append(bytes(data))

    def commit(self) -> Stat:
        return self._store.put(self._path, b"".join(self._blocks))

    def abort(self) -> None:
        self._blocks = []


def note_roots(folders: Iterable[str]) -> None:
    """Remember existing local folders, for this session.

    Of one that will only be made, the folder above it that is there is noted: it may be what is mounted.
    """
    roots = current().roots
    for folder in folders:
        if "://" in folder:
            continue
        path = os.path.abspath(folder)
        while (now := _identity(path)) is None and path != "/":
            path = os.path.dirname(path)
        if now and path != "/":
            roots.setdefault(path, now)


def check_roots(path: str) -> None:
    """Raise Unreadable if the folder above a missing file vanished.

    A folder that is unmounted leaves another one in its place, on another device. One that was deleted and made again
    is on the same device, and what an automounter mounts again has its inode.
    """
    whole = os.path.abspath(path) + "/"
    for root, before in list(current().roots.items()):
        if not whole.startswith(root.rstrip("/") + "/"):
            continue
        now = _identity(root)
        if now is None or (now[0] != before[0] and now[1] != before[1]):
            raise Unreadable(
                f"expected the folder {root}, which existed when the run began, got none: it has "
                f"vanished. Was it unmounted? Put it back and run again",
                path=path,
            )


def _identity(folder: str) -> tuple[int, int] | None:
    try:
        result = os.stat(folder)
    except OSError:
        return None
    return result.st_dev, result.st_ino
