"""Files that only grow: each run appends to its own file in a folder, and a line is durable after a sync.

The folder has ``<time>-<host>-<process>.jsonl`` for each run. A power cut can tear the last line of a file: readers
leave it out.
"""

import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from toolkit.errors import ToolkitError, advice
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
        self._descriptor = -1
        self._synced = 0
        self.path = ""
        self.size = 0

    def write(self, line: bytes) -> int:
        """Append a line; return the offset of its first byte. `sync` makes it durable."""
        with self._lock, self._writing():
            at = self.size
            if self._descriptor < 0:
                self._create()
            try:
                _write(self._descriptor, line)
            except OSError:
                os.ftruncate(self._descriptor, at)  # no part of a line remains when the disk is full
                os.lseek(self._descriptor, at, os.SEEK_SET)
                raise
            self.size += len(line)
            return at

    def sync(self) -> None:
        """Make all lines durable; one sync serves all threads that wait for it."""
        mine = self.size
        with self._syncing, self._writing():
            if self._synced < mine:
                done = self.size
                os.fsync(self._descriptor)
                self._synced = done

    def replace(self, data: bytes) -> None:
        """Replace the lines of the file by others, atomically and durably."""
        with self._syncing, self._lock, self._writing():
            aside = temporary_name(self.path)
            descriptor = _create(aside)
            try:
                _write(descriptor, data)
                os.fsync(descriptor)
                move_scratch(aside, self.path)
            except BaseException:
                os.close(descriptor)
                remove_scratch(aside)
                raise
            os.close(self._descriptor)
            self._descriptor, self.size, self._synced = descriptor, len(data), len(data)
            sync_folder(self._folder)

    def close(self) -> None:
        """Close the file; a later line begins another one."""
        with self._syncing, self._lock:
            if self._descriptor >= 0:
                os.close(self._descriptor)
            self._descriptor, self.size, self._synced = -1, 0, 0

    def _create(self) -> None:
        make_folder(self._folder)
        name = f"{self._next_time():020d}-{socket.gethostname()}-{os.getpid()}.jsonl"
        self.path = os.path.join(self._folder, name)
        self._descriptor = _create(self.path)
        sync_folder(self._folder)

    def _next_time(self) -> int:
        """Return the time for the name of a new file, after all existing ones: some clocks are ahead."""
        times = (re.match(r"\d{20}(?=-)", name) for name in os.listdir(self._folder))
        return max([time.time_ns(), *(int(match[0]) + 1 for match in times if match)])

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise ToolkitError(f"{self._folder}: expected to write {self._what}, got: {advice(error)}") from None


def files_in(folder: str) -> list[str]:
    """Return the paths of the files of all runs, the oldest first."""
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in names if name.endswith(".jsonl") and not name.startswith(".")]


def _create(path: str) -> int:
    with open_scratch(path, "x+b") as file:
        return os.dup(file.fileno())


def _write(descriptor: int, data: bytes) -> None:
    """Write all of it; the system may take it in parts."""
    while data:
        data = data[os.write(descriptor, data) :]
