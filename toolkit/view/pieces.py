"""Pieces of stored files, kept for a while: a page of documents asks for the same ones again and again."""

import io
import threading
from collections import OrderedDict
from typing import Any

from toolkit.errors import DataError
from toolkit.storage import Stat, store_of

PIECE = 1 << 18
"""Bytes that are asked for at a time, at least."""

AHEAD = 2
"""Pieces that are asked for together where a file is read on."""

MOST = 160
"""Pieces that are kept: 40 MiB."""


class Pieces:
    """The pieces of all files, those that were asked for last; several threads may read them.

    Attributes:
        requests: of the stores, so far.
        bytes: that these gave.
    """

    def __init__(self) -> None:
        self.requests = self.bytes = 0
        self._held: OrderedDict[tuple[str, str, int], bytes] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, path: str, version: Stat, offset: int, length: int) -> bytes:
        """Return bytes of a file, fewer at its end. Those that are not here are asked for in as few requests as can be.

        Raises:
            DataError: if the file is not there any more.
        """
        end = min(offset + length, version.size)
        if offset >= end:
            return b""
        first, last = offset // PIECE, (end - 1) // PIECE
        found = {number: self._kept(path, version, number) for number in range(first, last + 1)}
        lacking = [number for number, piece in found.items() if piece is None]
        if lacking:  # from the first to the last of them in one request
            begin = lacking[0] * PIECE
            data = self._ask(path, version, begin, min((lacking[-1] + 1) * PIECE, version.size) - begin)
            for number in range(lacking[0], lacking[-1] + 1):
                piece = data[number * PIECE - begin : (number + 1) * PIECE - begin]
                found[number] = piece
                self._keep(path, version, number, piece)
        whole = b"".join(found[number] or b"" for number in range(first, last + 1))
        return whole[offset - first * PIECE : end - first * PIECE]

    def _kept(self, path: str, version: Stat, number: int) -> bytes | None:
        key = (path, version.stamp, number)
        with self._lock:
            piece = self._held.get(key)
            if piece is not None:
                self._held.move_to_end(key)
            return piece

    def _keep(self, path: str, version: Stat, number: int, piece: bytes) -> None:
        with self._lock:
            self._held[path, version.stamp, number] = piece
            while len(self._held) > MOST:
                self._held.popitem(last=False)

    def _ask(self, path: str, version: Stat, offset: int, length: int) -> bytes:
        try:
            data = store_of(path).read(path, offset, length)
        except FileNotFoundError:
            raise DataError(
                "expected the file as it was, got none: it was deleted; load the page again", path=path
            ) from None
        with self._lock:
            self.requests += 1
            self.bytes += len(data)
        if len(data) != length:
            message = (
                f"expected the file as it was, {version.size:,} bytes, got one that has changed; load the page again"
            )
            raise DataError(message, path=path)
        return data


class Stream(io.RawIOBase):
    """The bytes of a file from an offset, piece by piece."""

    def __init__(self, pieces: Pieces, path: str, version: Stat, offset: int) -> None:
        super().__init__()
        self._pieces, self._path, self._version, self._at = pieces, path, version, offset
        self._held = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._held:
            wanted = AHEAD * PIECE - self._at % PIECE
            self._held = memoryview(self._pieces.read(self._path, self._version, self._at, wanted))
            self._at += len(self._held)
        count = min(len(buffer), len(self._held))
        buffer[:count] = self._held[:count]
        self._held = self._held[count:]
        return count
