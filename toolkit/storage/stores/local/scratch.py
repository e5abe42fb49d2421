"""Files that are written in place: scratch files, logs, partial downloads, locks; and folders for the first.

Whoever reads one knows that it may not be whole. No link is followed.
"""

import atexit
import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import IO

from toolkit import distribution
from toolkit.storage.owners import is_gone, owner

_FOLDER = re.compile(rf"{distribution.NAME}-(.+\.\d+-\d+)\.\w+")


@contextmanager
def scratch() -> Iterator[str]:
    """Have a folder of this user alone for temporary files in the ``with`` block; its name says whose it is."""
    folder = tempfile.mkdtemp(prefix=f"{distribution.NAME}-{owner()}.")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def lasting_scratch() -> str:
    """Return such a folder, which goes when the process ends."""
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(scratch())


def tidy_scratch() -> None:
    """Delete scratch folders of this user whose processes, of this machine, were killed."""
    folder = tempfile.gettempdir()
    for found in filter(None, map(_FOLDER.fullmatch, os.listdir(folder))):
        path = os.path.join(folder, found[0])
        with suppress(OSError):  # another process deletes it, too
            there = os.lstat(path)
            if is_gone(found[1]) and stat.S_ISDIR(there.st_mode) and there.st_uid == os.geteuid():
                shutil.rmtree(path, ignore_errors=True)


def open_scratch(path: str, mode: str = "wb") -> IO[bytes]:
    """Open a file for writing in place, as `open` does."""
    return open(path, mode, opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666))


def append_line(path: str, line: bytes) -> None:
    """Append a line to a file that is there, durably; nothing of it stays if that fails."""
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
    """Delete a file that was written in place, if it is there."""
    with suppress(FileNotFoundError):
        os.unlink(path)
