"""Files written in place: scratch files, logs, partial downloads, locks, and scratch folders.

Whoever reads one knows that it may not be whole. No link is followed. A file's name has its owner, a process of a
machine. A private folder is used only if nobody but this user can have written to it: each folder on the way is opened
from the one above it, and checked through its descriptor, so that nobody can exchange it in between.
"""

import atexit
import errno
import fcntl
import functools
import hashlib
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO, Self

from toolkit import distribution

MACHINE_IDS = ("/etc/machine-id", "/var/lib/dbus/machine-id")
"""Files that have the number of a machine, where there is one."""


@functools.lru_cache(1)
def _owner(pid: int) -> str:
    """Return machine, process id, and when it began: ids are used again."""
    return f"{machine()}.{pid}-{_began(pid) or 0}"


def owner() -> str:
    """Return the name of this process: ``<machine>.<process id>-<when it began>``."""
    return _owner(os.getpid())


def is_gone(name: str) -> bool:
    """Return True for the name of an ended process of this machine."""
    match = re.fullmatch(r"([^.]+)\.(\d+)-(\d+)", name)
    return bool(match and match[1] == machine() and not is_running(int(match[2]), int(match[3])))


@functools.lru_cache(1)
def machine() -> str:
    """Return the name of this machine, for names of processes.

    Others may be called the same: a node of another team's cluster that works on the same bucket, a container with its
    own process ids beside this one. So the name has a digest of what tells them apart, which a restart does not change
    but for containers.
    """
    name = os.uname().nodename.replace(".", "-")
    digest = hashlib.sha256("\0".join(_marks()).encode()).hexdigest()[:8]
    return f"{name}-{digest}"


def _marks() -> Iterator[str]:
    """Yield marks of this machine and of its process ids."""
    for path in MACHINE_IDS:
        with suppress(OSError), open(path, encoding="ascii", errors="replace") as stream:
            yield stream.read().strip()
    with suppress(OSError):
        yield str(os.stat("/proc/self/ns/pid").st_ino)


def is_running(pid: int, began: int) -> bool:
    """Return True if a process with this start still runs here."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    now = _began(pid)
    return now is None or now == began


def _began(pid: int) -> int | None:
    """Return when a process began, in the kernel's ticks; 0 for one that has ended, None where that cannot be known."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            state, *rest = stream.read().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0 if os.path.isdir("/proc/self") else None
    except OSError:
        return None
    return 0 if state in "ZX" else int(rest[18])


_PATH = getattr(os, "O_PATH", os.O_RDONLY)  # a folder on the way may be one that only may be passed
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_OTHERS_WRITE, _OTHERS_PASS, _OTHERS = 0o022, 0o011, 0o077


class UnsafeFolder(Exception):
    """Raised for a folder writable by others, or on such a path."""


class PrivateFolder:
    """A folder of this user alone. A context manager; its end closes the folder.

    Args:
        path: Path of the folder; it is made if need be, for this user alone.

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
        """Return the bytes of a file of this user; None if there is none."""
        try:
            descriptor = os.open(name, os.O_RDONLY | _FILE, dir_fd=self._descriptor)
        except OSError:
            return None
        try:
            result = os.fstat(descriptor)
            if not stat.S_ISREG(result.st_mode) or result.st_uid != os.geteuid() or result.st_mode & _OTHERS_WRITE:
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
        """Wait for other processes in the folder; go on if locks do not work there."""
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
    """Check for a folder replaceable by others; return True if closed to them."""
    result = os.fstat(descriptor)
    if result.st_uid not in owners:
        raise UnsafeFolder(f"{path} belongs to another user (number {result.st_uid})")
    is_sticky = result.st_mode & stat.S_ISVTX  # what is in it can be renamed by its owner alone
    if result.st_mode & _OTHERS_WRITE and not is_sticky and not is_closed:
        raise UnsafeFolder(f"others may write to {path}")
    return is_closed or not result.st_mode & _OTHERS_PASS


def _make_own(descriptor: int, path: str, is_closed: bool) -> None:
    """Check the owner of a folder, and close it to others."""
    result = os.fstat(descriptor)
    if result.st_uid != os.geteuid():
        raise UnsafeFolder(f"it belongs to another user (number {result.st_uid})")
    if result.st_mode & _OTHERS_WRITE and not is_closed:
        raise UnsafeFolder("others may write to it")
    if not os.access(".", os.W_OK, dir_fd=descriptor):
        raise PermissionError(path)
    if result.st_mode & _OTHERS:
        os.fchmod(descriptor, 0o700)


_NAMED = re.compile(rf"{distribution.NAME}-(.+\.\d+-\d+)\.\w+")


@contextmanager
def scratch() -> Iterator[str]:
    """Provide a private temporary folder, named by its owner."""
    folder = tempfile.mkdtemp(prefix=f"{distribution.NAME}-{owner()}.")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def lasting_scratch() -> str:
    """Return a scratch folder for the rest of the process."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(scratch())


def tidy_scratch() -> None:
    """Delete the scratch folders of killed processes of this user."""
    folder = tempfile.gettempdir()
    for match in filter(None, map(_NAMED.fullmatch, os.listdir(folder))):
        path = os.path.join(folder, match[0])
        with suppress(OSError):  # another process deletes it, too
            status = os.lstat(path)
            if is_gone(match[1]) and stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
                shutil.rmtree(path, ignore_errors=True)


def open_scratch(path: str, mode: str = "wb") -> IO[bytes]:
    """Open a file for writing in place, as `open` does."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666))


def append_line(path: str, line: bytes) -> None:
    """Append a line to an existing file, durably; an error leaves the file as it was."""
    with open_scratch(path, "r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 1, 0))
        data = (b"\n" if file.read(1) not in (b"", b"\n") else b"") + line + b"\n"
        number = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW)  # where the end is when it is written
        written = 0
        try:
            written = os.write(number, data)
            if written < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            os.fsync(number)
        except BaseException:
            if os.fstat(number).st_size == size + written:  # or others have appended meanwhile
                os.ftruncate(number, size)
            raise
        finally:
            os.close(number)


def make_folder(path: str) -> None:
    """Make a folder, and those above it, unless they are there."""
    os.makedirs(path, exist_ok=True)


def move_scratch(source: str, target: str) -> None:
    """Move a file within a scratch folder."""
    os.replace(source, target)


def remove_scratch(path: str) -> None:
    """Delete a file written in place, if it exists."""
    with suppress(FileNotFoundError):
        os.unlink(path)
