"""Files on local disk, and on mounted file systems."""

import io
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence

from toolkit.errors import ConfigError, DataError
from toolkit.storage.store import Stat, Store, Writing, check_roots
from toolkit.storage.stores.local import writing as local_writing
from toolkit.storage.stores.local.scratch import is_gone, machine
from toolkit.storage.threads import for_each

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
        for folder, folders, files in os.walk(root, onerror=local_writing.refuse_walk, followlinks=True):
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
            with local_writing.translate_os_errors(root, "a folder that can be read"):
                names = os.listdir(root)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name for name in names if _is_folder(os.path.join(root, name)))

    def open(self, path: str, offset: int = 0, expected: Stat | None = None) -> io.BufferedReader:
        """Return the file as it is: if a rename replaces it, the one that is open stays."""
        if expected and self.stat(path) != expected:
            raise DataError("expected the file as it was, got one that has changed", path=path)
        stream = local_writing.open_regular(path)
        stream.seek(offset)
        return stream

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        with local_writing.translate_os_errors(path), local_writing.open_regular(path) as stream:
            stream.seek(offset)
            return stream.read() if length is None else stream.read(length)

    def pieces(self, path: str) -> "local_writing.LocalPieces":
        return local_writing.LocalPieces(path)

    def writing(self, path: str) -> "local_writing.LocalWriting":
        return local_writing.LocalWriting(path)

    def check_named(self, path: str, where: str) -> Stat | None:
        if local_writing.passes_on(path):
            return None
        path = os.path.realpath(path)
        super().check_named(path, where)
        return self.stat(path)

    def named(self, path: str) -> Writing:
        return local_writing.begin_named(path)

    def commit_all(self, prepared: Sequence[Writing], moves: Sequence[tuple[str, str]] = ()) -> None:
        """Sync files, rename them, sync each of their folders once; several at a time, for one sync costs as many do.

        A file system writes its journal once for all that wait for it: 200 files took 5 to 12 ms each one after the
        other, 0.2 to 0.5 ms so (ext4).
        """
        files = [writing for writing in prepared if isinstance(writing, local_writing.LocalWriting)]
        for_each(local_writing.LocalWriting.sync, [file for file in files if file.durable], always=True)
        folders = {folder for source, target in moves for folder in local_writing.move_file(source, target)}
        for file in files:
            file.appear()
            folders.update(file.folders if file.durable else ())
        for_each(local_writing.sync_folder, sorted(folders), always=True)

    def create(self, path: str, data: bytes) -> bool:
        """Create a small file by a hard link; one process succeeds."""
        writing = local_writing.LocalWriting(path)
        try:
            writing.write(data)
            return writing.link()
        finally:
            writing.abort()

    def move(self, source: str, target: str) -> None:
        for folder in local_writing.move_file(source, target):
            local_writing.sync_folder(folder)

    def remove(self, path: str) -> None:
        local_writing.delete(path)

    def remove_tree(self, root: str) -> None:
        local_writing.delete_tree(root)

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
        with local_writing.translate_os_errors(path, "a file that can be looked at"):
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
