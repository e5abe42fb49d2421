"""Checksummed files of numbers, read in pieces: a disk that rots must not go unseen.

A file is blocks of `BLOCK` bytes, the last maybe shorter; behind each stands its xxh3-64. Offsets and lengths are those
of what was written, without these.

Several arrays are packed as one piece, behind their lengths.
"""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

import xxhash

from toolkit.errors import DataError
from toolkit.lazy_numpy import np
from toolkit.storage import outputs, store, store_of
from toolkit.text.kernels.signatures import Array

BLOCK = 1 << 16
_SEAL = 8
_STORED = BLOCK + _SEAL
_AHEAD = 16 * BLOCK


class SealedOutput(outputs.Output):
    """An output of sealed blocks.

    Attributes:
        length: bytes given so far, hence the offset of the next; `size` counts what is stored.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.length = 0
        self._buffer = bytearray()

    def write(self, data: bytes) -> None:
        self.length += len(data)
        self._buffer += data
        if whole := len(self._buffer) // BLOCK * BLOCK:
            with memoryview(self._buffer) as view:
                super().write(_sealed(view[:whole]))
            del self._buffer[:whole]

    def put(self, data: bytes) -> int:
        """Write bytes; return the offset at which they begin."""
        offset = self.length
        self.write(data)
        return offset

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if kind is None and self._buffer:
                super().write(_sealed(memoryview(self._buffer)))
        except BaseException as failed:
            super().__exit__(type(failed), failed, failed.__traceback__)
            raise
        super().__exit__(kind, error, at)


def _sealed(data: memoryview) -> bytes:
    parts: list[memoryview | bytes] = []
    for begin in range(0, len(data), BLOCK):
        block = data[begin : begin + BLOCK]
        parts += (block, xxhash.xxh3_64_digest(block))
    return b"".join(parts)


def write_sealed(path: str, data: bytes) -> None:
    """Write a file, complete or not at all."""
    with SealedOutput(path) as output:
        output.write(data)


class Sealed:
    """Reads a file of `SealedOutput`. A context manager.

    Args:
        path: Path of the file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._ahead, self._used, self._place = b"", 0, 0
        self._pieces: store.Pieces = store_of(path).pieces(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pieces.close()

    def read(self, size: int) -> bytes:
        """Return the next bytes, fewer at the end of the file."""
        if size > len(self._ahead) - self._used:
            more = self.at(self._place, max(size, _AHEAD))
            self._place += len(more)
            self._ahead, self._used = self._ahead[self._used :] + more, 0
        result = self._ahead[self._used : self._used + size]
        self._used += len(result)
        return result

    def at(self, offset: int, size: int) -> bytes:
        """Return a piece, shorter at the end of the file.

        Raises:
            DataError: if it is not what was written.
        """
        first, last = offset // BLOCK, -(-(offset + size) // BLOCK)
        stored = self._pieces.read(first * _STORED, (last - first) * _STORED)
        return opened(self._path, stored, offset - first * BLOCK, size)


def read_sealed(path: str, offset: int = 0, size: int | None = None) -> bytes:
    """Return a piece of a file, or all from an offset.

    Raises:
        DataError: if it is not what was written, or ends before the piece.
        FileNotFoundError: if there is no such file.
    """
    first = offset // BLOCK
    length = None if size is None else (-(-(offset + size) // BLOCK) - first) * _STORED
    result = opened(path, store_of(path).read(path, first * _STORED, length), offset - first * BLOCK, size)
    if size is not None and len(result) < size:
        raise damaged(path)
    return result


def opened(path: str, stored: bytes, offset: int, size: int | None) -> bytes:
    """Return a piece of stored blocks, after checking their seals."""
    data, end = [], None if size is None else offset + size
    with memoryview(stored) as view:
        for begin in range(0, len(stored), _STORED):
            block, seal = view[begin : begin + _STORED][:-_SEAL], view[begin : begin + _STORED][-_SEAL:]
            if xxhash.xxh3_64_digest(block) != seal:
                raise damaged(path)
            data.append(block)
        if len(data) == 1:
            return bytes(data[0][offset:end])
        if data:
            data[-1] = data[-1] if end is None else data[-1][: max(0, end - BLOCK * (len(data) - 1))]
            data[0] = data[0][offset:]
        return b"".join(data)


def damaged(path: str) -> DataError:
    """Return the error of a damaged file."""
    return DataError("expected what was written, got other bytes: it was damaged; delete it, then run again", path=path)


def bounds_of(sizes: Array) -> Array:
    """Return the offsets of consecutive items of some sizes, and the end; int64."""
    result = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=result[1:])
    return result


def packed(arrays: Sequence[Array]) -> bytes:
    """Return arrays as bytes; `unpacked` gives them back, if it is told their types."""
    lengths = np.array([len(array) for array in arrays], dtype="<i8")
    return b"".join([lengths.tobytes(), *(np.ascontiguousarray(array).tobytes() for array in arrays)])


def unpacked(data: bytes, types: Sequence[object]) -> list[Array]:
    """Return the arrays of a section, read-only; empty ones if it has no bytes."""
    if not data:
        return [np.empty(0, dtype=type_) for type_ in types]  # type: ignore[call-overload]
    lengths = np.frombuffer(data, dtype="<i8", count=len(types)).tolist()
    results, at = [], 8 * len(types)
    for type_, length in zip(map(np.dtype, types), lengths, strict=True):  # type: ignore[arg-type]
        results.append(np.frombuffer(data, dtype=type_, count=length, offset=at))
        at += length * type_.itemsize
    return results
