"""Files in which one can seek, wherever they are: readers of Parquet begin at the end."""

import io
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import IO, Any

from toolkit.data.tables.values import READ
from toolkit.storage import store_of
from toolkit.storage.paths import size_of
from toolkit.storage.reading import open_stored


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """Give a file in which one can seek: of a bucket only what is asked for is fetched.

    Raises:
        DataError: if there is no such file.
    """
    if store_of(path).is_local:
        with open_stored(path) as file:
            yield file
        return
    with closing(io.BufferedReader(Ranges(path, size_of(path)), READ)) as file:
        yield file


class Ranges(io.RawIOBase):
    """An object of a bucket as a file: each read is a request."""

    def __init__(self, path: str, size: int) -> None:
        super().__init__()
        self._path, self._size, self._at = path, size, 0

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
        wanted = min(len(buffer), self._size - self._at)
        data = store_of(self._path).read(self._path, self._at, wanted) if wanted > 0 else b""
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
