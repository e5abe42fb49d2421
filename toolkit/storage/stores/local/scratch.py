"""Files that are written in place: scratch files, logs, partial downloads, locks; and folders for the first.

Whoever reads one knows that it may not be whole. No link is followed.
"""

import errno
import os
import tempfile
from contextlib import suppress
from typing import IO

from toolkit.errors import ConfigError, advice
from toolkit.storage.stores.local.private import PrivateFolder, UnsafeFolder, private_name
from toolkit.storage.stores.local.writing import delete_tree


def scratch_path(name: str) -> str:
    """Return the path of a scratch folder, the same whenever this user asks for the name; see `make_scratch`."""
    return os.path.join(tempfile.gettempdir(), private_name(), name)


def make_scratch(name: str) -> str:
    """Make a scratch folder that later processes find again; return its path.

    A folder that only one process needs is a `tempfile.TemporaryDirectory`.

    Raises:
        ConfigError: if somebody else could have written there.
    """
    path = scratch_path(name)
    folder = os.path.dirname(path)
    try:
        with PrivateFolder(folder) as private:
            private.make(name)
    except (UnsafeFolder, OSError) as error:
        why = advice(error) if isinstance(error, OSError) else error
        raise ConfigError(
            f"{folder}: expected a folder of this user alone for temporary files, got: {why}; set TMPDIR to a folder "
            "of your own"
        ) from None
    return path


def clear_scratch(name: str) -> None:
    """Delete a scratch folder, and what is in it, if it is there.

    Raises:
        ConfigError: if somebody else could have written there.
    """
    if os.path.lexists(scratch_path(name)):
        delete_tree(path := make_scratch(name))
        with suppress(OSError):  # others of this user are in there
            os.rmdir(os.path.dirname(path))


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
