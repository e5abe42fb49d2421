"""Files that break: what the operating system says of a disk, said to one process about one kind of file."""

import builtins
import errno
import io
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.faults.kinds import kind_of
from toolkit.storage.stores import local

ERRORS = {"EACCES": errno.EACCES, "EIO": errno.EIO, "ENOSPC": errno.ENOSPC}

WRITTEN = 16
"""Bytes of a file that a full disk still takes."""


@dataclass
class Disk:
    """What becomes of requests to files below a root.

    Requests: STAT, OPEN and READ (the first bytes), LIST, WRITE, SYNC, MOVE, REMOVE.

    Attributes:
        root: the folder whose files they are.
        trace: a file that gets a line ``REQUEST kind`` for each.
        fault: a name of `ERRORS`, or ``gone``: the root is moved away with the first request that is struck.
        kind, request: that are struck; none, if empty.
        times: how many of them; 0 is all.
        struck: a file that gets the paths of those that were struck.
    """

    root: str
    trace: str = ""
    fault: str = ""
    kind: str = ""
    request: str = ""
    times: int = 0
    struck: str = ""

    def install(self) -> None:
        """Lets the functions of this process that all access to files goes through meet it."""
        self._open, self._busy, self._seen = builtins.open, False, 0
        builtins.open = self._opening  # type: ignore[assignment]
        _Reading.disk = self
        local.NamedFile.__bases__ = (_Met,)  # which opens by itself
        for name, request in (
            ("stat", "STAT"), ("scandir", "LIST"), ("listdir", "LIST"), ("unlink", "REMOVE"), ("rmdir", "REMOVE"),
            ("replace", "MOVE"), ("link", "MOVE"), ("fsync", "SYNC"),
        ):  # fmt: skip
            setattr(os, name, self._meeting(getattr(os, name), request))

    def _meeting(self, function: Callable[..., Any], request: str) -> Callable[..., Any]:
        def met(path: Any = ".", *rest: Any, **options: Any) -> Any:
            named = rest[0] if request == "MOVE" else f"/proc/self/fd/{path}" if isinstance(path, int) else path
            self._meet(named, request)
            return function(path, *rest, **options)

        return met

    def _opening(self, path: Any, mode: str = "r", *rest: Any, **options: Any) -> Any:
        if not isinstance(path, int) and self._relative(path) is not None:
            self._meet(path, "OPEN" if "r" in mode else "WRITE", opening=True)
            if mode == "rb" and self._meets(path, "READ"):
                return io.BufferedReader(_Reading(path))
            if mode in ("wb", "xb") and self._meets(path, "WRITE"):
                return io.BufferedWriter(_BadWriting(path, lambda: self._meet(path, "WRITE")))
        return self._open(path, mode, *rest, **options)

    def _relative(self, path: Any) -> str | None:
        """A path below the root; None of any other."""
        if self._busy:
            return None
        self._busy = True
        try:
            whole = os.fsdecode(path)
            if whole.startswith("/proc/self/fd/"):
                whole = os.readlink(whole)
            whole = os.path.abspath(whole)
        except OSError:
            return None
        finally:
            self._busy = False
        return os.path.relpath(whole, self.root) if f"{whole}/".startswith(f"{self.root}/") else None

    def _meets(self, path: Any, request: str) -> bool:
        relative = self._relative(path)
        return relative is not None and (kind_of(relative), request) == (self.kind, self.request)

    def _meet(self, path: Any, request: str, *, opening: bool = False) -> None:
        """A request: noted, and refused if it is one of those that are."""
        relative = self._relative(path)
        if relative is None:
            return
        if self.trace:
            with self._open(self.trace, "a") as trace:
                read = f"READ {kind_of(relative)}\n" if request == "OPEN" else ""
                trace.write(f"{request} {kind_of(relative)}\n" + read)
        if not self._meets(path, request) or (opening and request == "WRITE" and self.fault != "EACCES"):
            return
        self._seen += 1
        if self.times and self._seen > self.times:
            return
        with self._open(self.struck, "a") as struck:
            struck.write(relative + "\n")
        if self.fault == "gone":
            if os.path.lexists(self.root) and not os.path.lexists(self.root + ".away"):
                os.rename(self.root, self.root + ".away")
            return
        code = ERRORS[self.fault]
        if opening or request not in ("READ", "WRITE", "SYNC"):
            raise OSError(code, os.strerror(code), os.fsdecode(path))
        raise OSError(code, os.strerror(code))


class _Reading(io.FileIO):
    """A file that meets a disk when it is read."""

    disk: "Disk"

    def __init__(self, path: Any, *rest: Any, **options: Any) -> None:
        self._path = path
        super().__init__(path, *rest, **options)

    def readinto(self, buffer: Any) -> int | None:
        self._meet()
        return super().readinto(buffer)

    def readall(self) -> bytes:
        self._meet()
        return super().readall()

    def _meet(self) -> None:
        if self.disk._meets(self._path, "READ"):
            self.disk._meet(self._path, "READ")


class _Met(_Reading):
    """One that meets it when it is opened, too."""

    def __init__(self, path: Any, *rest: Any, **options: Any) -> None:
        self.disk._meet(path, "OPEN", opening=True)
        super().__init__(path, *rest, **options)


class _BadWriting(io.FileIO):
    """A file that takes a few bytes and then no more."""

    def __init__(self, path: Any, meet: Callable[[], None]) -> None:
        super().__init__(path, "wb")
        self._meet = meet
        self._left = WRITTEN

    def write(self, data: Any) -> int:
        if self._left == 0:
            self._meet()
            return super().write(data)
        written = super().write(memoryview(data)[: self._left])
        self._left -= written
        return written
