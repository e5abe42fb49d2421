"""A store that is far away: files of a local folder, each request of which takes a while and is noted.

A page of a listing has as many files as one of S3, and several are deleted by one request, as there. What S3 answers,
and what it costs to ask it (signatures, TLS, XML), is left out: this is about how many requests there are, and how many
of them wait for one another.

    storage: {stores: {far: "tests.benchmarks.far:Far"}}

FAR_SECONDS says how long each request takes; FAR_LOG names a file with a line for each. What is read below a folder
with FAR_FREE in its path is neither noted nor waited for.
"""

import io
import os
import stat
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from toolkit.storage import Stat, Store

PAGE = 1000
"""Files of a page of a listing, and of a request that deletes."""

SCHEME = "far://"
_BEING_WRITTEN = ".far"


class Far(Store):
    """``far:///FOLDER``: that folder of this machine, from afar."""

    def _ask(self, what: str, path: str, times: int = 1) -> Path:
        """Wait as long as so many requests take, one after the other, and note them; return the local file."""
        free, log, seconds = (os.environ.get(f"FAR_{name}", "") for name in ("FREE", "LOG", "SECONDS"))
        if what == "GET" and free and free in path and "/records." not in path:
            return Path(path.removeprefix(SCHEME))
        if log:
            noted = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(noted, f"{what} {path}\n".encode() * times)
            os.close(noted)
        if seconds:
            time.sleep(times * float(seconds))
        return Path(path.removeprefix(SCHEME))

    def stat(self, path: str) -> Stat | None:
        return _stat(self._ask("HEAD", path))

    def age(self, path: str) -> float | None:
        file = self._ask("HEAD", path)
        return time.time() - file.stat().st_mtime if file.is_file() else None

    def is_folder(self, path: str) -> bool:
        return any(files for _, _, files in os.walk(self._ask("LIST", path)))

    def files(self, root: str) -> Iterator[str]:
        return (name for name, _ in self.listing(root))

    def listing(self, root: str) -> Iterator[tuple[str, Stat | None]]:
        folder = self._ask("LIST", root)
        for number, found in enumerate(_below(str(folder))):
            if number and number % PAGE == 0:
                self._ask("LIST", root)
            yield found

    def folders(self, root: str) -> list[str]:
        folder = self._ask("LIST", root)
        return sorted(each.name for each in os.scandir(folder) if each.is_dir()) if folder.is_dir() else []

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        with self._ask("GET", path).open("rb") as stream:
            stream.seek(offset)
            return stream.read(-1 if length is None else length)

    def open(self, path: str, offset: int = 0, expected: Stat | None = None) -> io.BufferedReader:
        if expected is None:
            self._ask("HEAD", path)
        stream = self._ask("GET", path).open("rb")
        stream.seek(offset)
        return stream

    def put(self, path: str, data: bytes) -> Stat:
        file = self._ask("PUT", path)
        file.parent.mkdir(parents=True, exist_ok=True)
        aside = file.with_name(f"{uuid.uuid4().hex}{_BEING_WRITTEN}")
        aside.write_bytes(data)
        aside.replace(file)
        found = _stat(file)
        assert found
        return found

    def create(self, path: str, data: bytes) -> bool:
        file = self._ask("CREATE", path)
        file.parent.mkdir(parents=True, exist_ok=True)
        aside = file.with_name(f"{uuid.uuid4().hex}{_BEING_WRITTEN}")
        aside.write_bytes(data)
        try:
            os.link(aside, file)
        except FileExistsError:
            return False
        finally:
            aside.unlink()
        return True

    def move(self, source: str, target: str) -> None:
        file = self._ask("COPY", target)
        file.parent.mkdir(parents=True, exist_ok=True)
        self._ask("DELETE", source).replace(file)

    def remove(self, path: str) -> None:
        file = self._ask("DELETE", path)
        if file.is_file():
            file.unlink()

    def remove_tree(self, root: str) -> None:
        names = list(self.files(root))
        folder = self._ask("DELETE_MANY", root, -(-len(names) // PAGE)) if names else Path()
        for name in names:
            (folder / name).unlink()


def _below(folder: str, prefix: str = "") -> Iterator[tuple[str, Stat]]:
    """Yield the files below a folder, sorted by name; of a folder of very many, only their names are held."""
    try:
        names = sorted(each.name + "/" * each.is_dir() for each in os.scandir(folder))
    except FileNotFoundError:
        return
    for name in names:
        path = os.path.join(folder, name)
        if name.endswith("/"):
            yield from _below(path, prefix + name)
        elif not name.endswith(_BEING_WRITTEN) and (there := _stat(path)):
            yield prefix + name, there


def _stat(file: str | Path) -> Stat | None:
    try:
        there = os.stat(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Stat(there.st_size, f"etag {there.st_mtime_ns}") if stat.S_ISREG(there.st_mode) else None
