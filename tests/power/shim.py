"""In the process of a command: what is durable, and the moment at which the power fails.

`os.fsync` notes the content of a file, or the names in a folder. Before the N-th call all that is noted is written
down, beside what is visible, and the process ends. What was there before the command is durable.
"""

import base64
import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

from toolkit.execution import workers

ENTRIES = dict[str, int]
"""What a folder has: the inode of each name."""


class Shim:
    """Notes what is durable below a root.

    Args:
        root: of the files.
        log: what is known is written here when the power fails, or, if it never does, at each call.
        calls: of `os.fsync` until then; 0 for never.
    """

    def __init__(self, root: str, log: str, calls: int) -> None:
        self._root, self._log, self._calls, self._seen = root, Path(log), calls, 0
        self._contents: dict[int, tuple[bytes, int]] = {}
        self._folders: dict[int, ENTRIES] = {}
        self._held: dict[int, int] = {}
        self._one = threading.Lock()  # threads sync at a time
        for folder, _, names in os.walk(root):
            self._note_folder(folder)
            for name in names:
                descriptor = os.open(os.path.join(folder, name), os.O_RDONLY)
                self._note_file(descriptor)
                os.close(descriptor)

    def install(self) -> None:
        os.fsync = self.fsync  # type: ignore[assignment]

    def fsync(self, descriptor: Any) -> None:
        with self._one:
            self._note(descriptor if isinstance(descriptor, int) else descriptor.fileno())

    def _note(self, number: int) -> None:
        self._seen += 1
        if self._seen == self._calls:
            self._write()
            os.kill(os.getpid(), signal.SIGKILL)
        path = os.readlink(f"/proc/self/fd/{number}")
        if Path(f"/proc/self/fd/{number}").is_dir():
            self._note_folder(path)
        else:
            self._note_file(number)
        if not self._calls:
            self._write()

    def _note_folder(self, folder: str) -> None:
        self._folders[os.stat(folder).st_ino] = _entries(folder)

    def _note_file(self, descriptor: int) -> None:
        found = os.fstat(descriptor)
        # as long as it is held open nothing else gets its number
        held = self._held.setdefault(found.st_ino, os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY))
        self._contents[found.st_ino] = os.pread(held, found.st_size, 0), found.st_mtime_ns

    def _write(self) -> None:
        visible = {os.stat(folder).st_ino: _entries(folder) for folder, _, _ in os.walk(self._root)}
        now = {}
        for folder, _, names in os.walk(self._root):
            for name in names:
                path = Path(folder, name)
                now[path.stat().st_ino] = path.read_bytes(), path.stat().st_mtime_ns
        known = {
            "root": os.stat(self._root).st_ino,
            "synced": self._folders,
            "visible": visible,
            "contents": {inode: _plain(each) for inode, each in self._contents.items()},
            "now": {inode: _plain(each) for inode, each in now.items()},
            "calls": self._seen,
        }
        self._log.write_text(json.dumps(known))


def _plain(content: tuple[bytes, int]) -> list[Any]:
    return [base64.b64encode(content[0]).decode(), content[1]]


def _entries(folder: str) -> ENTRIES:
    return {entry.name: entry.inode() for entry in os.scandir(folder)}


def install() -> None:
    """Install the shim, as the environment has it; a command works in this process alone, where the shim is."""
    workers.available_cores = lambda: 1  # type: ignore[attr-defined]
    Shim(os.environ["SHIM_ROOT"], os.environ["SHIM_LOG"], int(os.environ["SHIM_CALLS"])).install()
