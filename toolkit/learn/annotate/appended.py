"""Files that only grow: each run appends to its own file in a folder, and a line is durable after a sync.

The folder has ``<time>-<host>-<process>.jsonl`` for each run. A power cut can tear the last line of a file: readers
leave it out.
"""

import io
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import cast

from toolkit.errors import ToolkitError, advice
from toolkit.storage.roots import check_roots
from toolkit.storage.stores.local.scratch import make_folder, move_scratch, open_scratch, remove_scratch
from toolkit.storage.stores.local.writing import sync_folder, temporary_name


class OwnFile:
    """The file of this run, created for its first line. Threads share it.

    Args:
        folder: Folder of the files of all runs, on a disk.
        what: Name of a line, for messages.

    Attributes:
        path: Path of the file; empty before the first line.
        size: Bytes of the file.
    """

    def __init__(self, folder: str, what: str) -> None:
        self._folder, self._what = folder, what
        self._lock, self._syncing = threading.RLock(), threading.Lock()
        self._file: io.RawIOBase | None = None
        self._is_closed = False
        self._synced = 0
        self.path = ""
        self.size = 0

    def write(self, line: bytes) -> int:
        """Append a line; return the offset of its first byte. `sync` makes it durable."""
        with self._lock, self._writing():
            at = self.size
            file = self._file or self._create()
            try:
                _write(file, line)
            except OSError:
                with suppress(OSError):  # no part of a line remains when the disk is full
                    file.truncate(at)
                    file.seek(at)
                raise
            self.size += len(line)
            return at

    def sync(self) -> None:
        """Make all lines durable; one sync serves all threads that wait for it."""
        mine = self.size
        with self._syncing, self._writing():
            if self._synced < mine and self._file:
                done = self.size
                os.fsync(self._file.fileno())
                self._synced = done

    def replace(self, data: bytes) -> None:
        """Replace the lines of the file by others, atomically and durably."""
        with self._syncing, self._lock, self._writing():
            aside = temporary_name(self.path)
            file = _create(aside)
            try:
                _write(file, data)
                os.fsync(file.fileno())
                move_scratch(aside, self.path)
            except BaseException:
                file.close()
                remove_scratch(aside)
                raise
            if self._file:
                self._file.close()
            self._file, self.size, self._synced = file, len(data), len(data)
            sync_folder(self._folder)

    def close(self) -> None:
        """Close the file, for good: threads of a run that was interrupted may not write any more."""
        with self._syncing, self._lock:
            if self._file:
                self._file.close()
            self._file, self._is_closed = None, True

    def _create(self) -> io.RawIOBase:
        if self._is_closed:
            raise ToolkitError(f"{self._folder}: expected no more lines after the end of the run")
        make_own_folder(self._folder)
        name = f"{self._next_time():020d}-{socket.gethostname()}-{os.getpid()}.jsonl"
        self.path = os.path.join(self._folder, name)
        self._file = _create(self.path)
        sync_folder(self._folder)
        return self._file

    def _next_time(self) -> int:
        """Return the time for the name of a new file, after all existing ones: some clocks are ahead."""
        times = (re.match(r"\d{20}(?=-)", name) for name in os.listdir(self._folder))
        return max([time.time_ns(), *(int(match[0]) + 1 for match in times if match)])

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            check_roots(self._folder)
            raise ToolkitError(
                f"{self.path or self._folder}: expected to write {self._what}, got: {advice(error)}"
            ) from None


def make_own_folder(folder: str) -> None:
    """Make a folder, unless it would be made where a mount has vanished."""
    if not os.path.isdir(folder):
        check_roots(folder)
        make_folder(folder)


def files_in(folder: str) -> list[str]:
    """Return the paths of the files of all runs, the oldest first."""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names if name.endswith(".jsonl") and not name.startswith(".")]


def _create(path: str) -> io.RawIOBase:
    return cast("io.BufferedWriter", open_scratch(path, "xb")).detach()


def _write(file: io.RawIOBase, data: bytes) -> None:
    """Write all of it; the system may take it in parts."""
    while data:
        data = data[file.write(data) or 0 :]
