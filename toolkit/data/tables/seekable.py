"""Files in which one can seek, wherever they are: readers of Parquet begin at the end."""

import io
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import IO, Any

from toolkit.storage import store_of
from toolkit.storage.paths import size_of
from toolkit.storage.reading import open_stored


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """Give a file in which one can seek: of a bucket only blocks that are asked for are fetched.

    Raises:
        DataError: if there is no such file.
    """
    if store_of(path).is_local:
        with open_stored(path) as file:
            yield file
        return
    with closing(io.BufferedReader(Ranges(path, size_of(path)))) as file:
        yield file


BLOCK, BLOCKS = 1 << 18, 64
"""Bytes of a block, and blocks of a file that are kept: columns of a row group are read one after the other."""


class Ranges(io.RawIOBase):
    """An object of a bucket as a file; each read requests the blocks that were not read lately."""

    def __init__(self, path: str, size: int) -> None:
        super().__init__()
        self._path, self._size, self._at = path, size, 0
        self._blocks: dict[int, bytes] = {}

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._size)
        numbers = range(self._at // BLOCK, -(-end // BLOCK))
        if missing := [number for number in numbers if number not in self._blocks]:
            first = missing[0] * BLOCK
            data = store_of(self._path).read(self._path, first, min((missing[-1] + 1) * BLOCK, self._size) - first)
            self._blocks |= {first // BLOCK + i: data[i * BLOCK :][:BLOCK] for i in range(-(-len(data) // BLOCK))}
        start = self._at % BLOCK
        held = b"".join(self._blocks.get(number, b"") for number in numbers)
        data = held[start : start + max(0, end - self._at)]
        for number in list(self._blocks)[:-BLOCKS]:
            del self._blocks[number]
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
