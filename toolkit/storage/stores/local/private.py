"""Folders in shared places: one is used only if nobody but this user can have written to it.

Each folder on the way is opened from the one above it, without following links, and checked through its descriptor; a
file is checked and read through one descriptor, too, so that nobody can exchange it in between.
"""

import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Self

from toolkit import distribution

_PATH = getattr(os, "O_PATH", os.O_RDONLY)  # a folder on the way may be one that only may be passed
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_OTHERS_WRITE, _OTHERS_PASS, _OTHERS = 0o022, 0o011, 0o077


class UnsafeFolder(Exception):
    """Somebody else may write to a folder, or on the way to it."""


class PrivateFolder:
    """A folder that belongs to this user alone. A context manager, that closes it.

    Args:
        path: of the folder; it is made if need be, for this user alone.

    Raises:
        UnsafeFolder: if others could have written there.
        OSError: if it cannot be made or opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = _opened(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file that this user has written; None if there is none."""
        try:
            descriptor = os.open(name, os.O_RDONLY | _FILE, dir_fd=self._descriptor)
        except OSError:
            return None
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & _OTHERS_WRITE:
                return None
            with open(descriptor, "rb", closefd=False) as stream:
                return stream.read()
        finally:
            os.close(descriptor)

    def write(self, name: str, data: bytes) -> None:
        """Write a file, whole or not at all."""
        temporary = f".{name}.{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE
        try:
            with open(os.open(temporary, flags, 0o600, dir_fd=self._descriptor), "wb") as stream:
                stream.write(data)
            os.replace(temporary, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=self._descriptor)
            raise

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Wait for other processes that work with the folder; where they cannot be waited for, go on."""
        with ExitStack() as stack:
            with suppress(OSError):
                descriptor = os.open("lock", os.O_RDWR | os.O_CREAT | _FILE, 0o600, dir_fd=self._descriptor)
                stack.callback(os.close, descriptor)
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield


def private_name() -> str:
    """Return the name of this user's own folder among temporary files."""
    return f"{distribution.NAME}-{os.geteuid()}"


def _opened(path: str) -> int:
    """Return a descriptor of a folder; all on the way to it are looked at."""
    parent, name = os.path.split(os.path.abspath(path))
    at, descriptor, is_closed = "/", os.open("/", _PATH | _FOLDER), False
    owners = {0, os.geteuid(), os.fstat(descriptor).st_uid}  # to whom / belongs, all belongs
    try:
        for part in [part for part in os.path.realpath(parent).split("/") if part]:
            is_closed = _check_way(descriptor, at, owners, is_closed)
            above, descriptor = descriptor, _below(descriptor, part, _PATH, 0o755)
            os.close(above)
            at = os.path.join(at, part)
        is_closed = _check_way(descriptor, at, owners, is_closed)
        own = _below(descriptor, name, os.O_RDONLY, 0o700)
    finally:
        os.close(descriptor)
    try:
        _make_own(own, path, is_closed)
    except BaseException:
        os.close(own)
        raise
    return own


def _below(descriptor: int, name: str, flags: int, mode: int) -> int:
    """Return a descriptor of a folder in a folder; it is made if there is none."""
    try:
        return os.open(name, flags | _FOLDER, dir_fd=descriptor)
    except FileNotFoundError:
        with suppress(FileExistsError):
            os.mkdir(name, mode, dir_fd=descriptor)
        return os.open(name, flags | _FOLDER, dir_fd=descriptor)


def _check_way(descriptor: int, path: str, owners: set[int], is_closed: bool) -> bool:
    """Check that nobody else can put another folder in the place of one below; return whether it is closed to them."""
    found = os.fstat(descriptor)
    if found.st_uid not in owners:
        raise UnsafeFolder(f"{path} belongs to another user (number {found.st_uid})")
    is_sticky = found.st_mode & stat.S_ISVTX  # what is in it can be renamed by its owner alone
    if found.st_mode & _OTHERS_WRITE and not is_sticky and not is_closed:
        raise UnsafeFolder(f"others may write to {path}")
    return is_closed or not found.st_mode & _OTHERS_PASS


def _make_own(descriptor: int, path: str, is_closed: bool) -> None:
    """Check that a folder is this user's, and nobody else's from now on."""
    found = os.fstat(descriptor)
    if found.st_uid != os.geteuid():
        raise UnsafeFolder(f"it belongs to another user (number {found.st_uid})")
    if found.st_mode & _OTHERS_WRITE and not is_closed:
        raise UnsafeFolder("others may write to it")
    if not os.access(".", os.W_OK, dir_fd=descriptor):
        raise PermissionError(path)
    if found.st_mode & _OTHERS:
        os.fchmod(descriptor, 0o700)
