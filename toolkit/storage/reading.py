"""Files as they are read: their stored bytes, what these hold decompressed, the lines of that, and digests of each.

path ──store──> stored bytes ──isal, zstd …──> bytes ──split──> lines
"""

import io
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Protocol, Self

import xxhash

from toolkit.errors import DAMAGED, DataError, advice
from toolkit.session import current
from toolkit.storage import Stat, store_of
from toolkit.storage.compression import Stored, WindowTooLarge, decompressing_reader
from toolkit.storage.paths import stat
from toolkit.storage.threads import pool

if TYPE_CHECKING:
    from concurrent.futures import Future

READ = 1 << 20
"""Bytes asked for at a time."""

HEAD = 8 << 20
"""Bytes that are kept of the beginning of what is too large to be kept."""


class Digest(Protocol):
    """The interface of hashlib and xxhash."""

    def update(self, data: bytes, /) -> object: ...

    def hexdigest(self) -> str: ...


def open_stored(path: str) -> io.BufferedReader:
    """Return the bytes as stored, not decompressed; closed by ``with``.

    Raises:
        DataError: if there is no such file.
        Unreadable: if that is not known, or it may not be read.
    """
    try:
        return store_of(path).open(path)
    except OSError as error:  # FileNotFoundError, NotADirectoryError
        raise DataError(f"expected a readable file, got {advice(error)}", path=path) from None


class Decompressed(io.RawIOBase):
    """The decompressed bytes of a file; damage becomes a DataError that names the file. A context manager.

    Concatenated members and frames are read whole.

    Args:
        path: Path of the file.
        stored: its bytes as stored, if they are not to be read from there; closed with this.

    Raises:
        DataError: if there is no such file, its suffix lies, or (while it is read) it is damaged or truncated.
    """

    def __init__(self, path: str, stored: IO[bytes] | None = None) -> None:
        super().__init__()
        self.path = path
        self._stored = Stored(stored or open_stored(path))
        self._size = 0
        try:
            self._read = decompressing_reader(path, self._stored)
        except BaseException:
            self.close()
            raise

    def readable(self) -> bool:
        return True

    def stored(self) -> int:
        """Return how many bytes have been read, as they are stored."""
        return self._stored.at

    def read(self, size: int = -1) -> bytes:
        """Return up to so many bytes; none at the end."""
        try:
            data = self._read(size)
        except Exception as error:
            if explained := self._explained(error):
                raise DataError(explained, path=self.path) from None
            raise
        self._size += len(data)
        return data

    def _explained(self, error: BaseException) -> str | None:
        """Return a decompressor's error in words; None for other errors."""
        where = f"at byte {self._stored.at:,} ({self._size:,} uncompressed)"
        if isinstance(error, EOFError):
            reason = f"it is truncated, or something else follows it; {DAMAGED}"
            return f"expected whole compressed data, got the end of the file {where}: {reason}"
        if isinstance(error, MemoryError):
            return f"expected compressed data that needs less memory, got data that needs more, before or {where}"
        if isinstance(error, WindowTooLarge):
            expected = f"expected compressed data with a window of at most {current().options.max_window:,} bytes"
            return f"{expected}, got a larger one, before or {where}; raise `storage.max_window` (at most 2 GiB)"
        name = type(error).__name__
        if isinstance(error, OSError) and name not in ("BadGzipFile", "IsalError"):
            return f"expected a readable file, got {error.strerror or error} {where}"
        if (
            isinstance(error, ValueError | OverflowError)
            or name in ("Damaged", "BadGzipFile", "IsalError")
            or type(error).__module__.startswith(("zlib", "isal"))
        ):
            return f"expected sound compressed data, got {error}, before or {where}; {DAMAGED}"
        return None

    def close(self) -> None:
        if hasattr(self, "_stored"):  # Python closes an object, too, that could not be made because there is no file
            self._stored.close()
        super().close()


class LongLine(bytes):
    """The first `HEAD` bytes of a too long line.

    Attributes:
        size: bytes of the whole line.
        offset: Offset of the line in the uncompressed file.
    """

    size = 0
    offset = 0


class Lines(Iterator[bytes]):
    r"""The lines of a file, without ``\n``; memory is bounded by the longest line.

    A context manager. A damaged or truncated file raises a DataError that names the line at which it ends.

    Args:
        path: a file, decompressed by its suffix or its first bytes.
        max_bytes: a longer line is an error.
        digest: True to compute `content`.
        ahead: True if a thread reads the next block meanwhile.
        stored: the file's bytes as stored, if they are not to be read from there.
        long_lines: True if a longer line is no error, but given as `LongLine`.
        fixed: True if the limit is ours, and not that of the configuration.

    Attributes:
        number: lines given so far.
        size: uncompressed bytes given so far, line ends included.
        content: xxh3-128 (hex) of the uncompressed bytes, once all lines are read, if asked for.
        ended: True if the last line had its line end.
    """

    def __init__(
        self,
        path: str,
        max_bytes: int,
        *,
        digest: bool = False,
        ahead: bool = False,
        stored: IO[bytes] | None = None,
        long_lines: bool = False,
        fixed: bool = False,
    ) -> None:
        self.path = path
        self._fixed = fixed
        self._stored = stored
        self._long_lines = long_lines
        self.number = 0
        self.size = 0
        self.content: str | None = None
        self.ended = True
        self._max = max_bytes
        self._hash = xxhash.xxh3_128() if digest else None
        self._thread = pool(1) if ahead else None
        self._next: Future[bytes] | None = None
        self._pending: Iterator[bytes] = iter(())
        self._joined = False

    def __enter__(self) -> Self:
        self._stream = Decompressed(self.path, self._stored)
        self._blocks = self._split()
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread:
            self._thread.shutdown()
        self._stream.close()

    def __next__(self) -> bytes:
        for line in self._pending:
            self.number += 1
            return line
        for block in self._blocks:
            self._pending = iter(block)
            return next(self)
        raise StopIteration

    def stored(self) -> int:
        """Return the stored bytes read so far; they may hold more lines."""
        return self._stream.stored()

    def blocks(self) -> Iterator[list[bytes]]:
        """Yield all lines, many at a time."""
        for block in self._blocks:
            self.number += len(block)
            yield block

    def joined(self) -> Iterator[bytes]:
        """Yield all lines, many at a time, joined by line feeds.

        So there is no copy of each line; the caller adds to `number`.
        """
        self._joined = True
        return map(b"\n".join, self._blocks)

    def give_back(self, block: list[bytes]) -> None:
        """Take back the last block, to yield its lines one by one."""
        self.number -= len(block)
        self._pending = iter(block)

    def _split(self) -> Iterator[list[bytes]]:
        rest: list[bytes] = []
        open_bytes = 0  # bytes of the line that has not ended, of which `rest` has those that are needed
        while block := self._read():
            if self._hash:
                self._hash.update(block)
            self.size += len(block)
            is_joined = self._joined and open_bytes + len(block) <= self._max  # so no line is too long
            lines = block.rsplit(b"\n", 1) if is_joined else block.split(b"\n")
            if len(lines) == 1:
                open_bytes += len(block)
                rest = self._extended(rest, block, open_bytes)
                continue
            sizes = [open_bytes + len(lines[0]), *map(len, lines[1:])]
            lines[0] = b"".join(self._extended(rest, lines[0], sizes[0]))
            rest, open_bytes = [lines.pop()], sizes.pop()
            if max(sizes) > self._max:
                start = self.size - sum(sizes) - len(sizes) - open_bytes
                for i, size in enumerate(sizes):
                    lines[i] = self._bounded(lines[i], size, i, start)
                    start += size + 1
            yield lines
        if open_bytes:
            self.ended = False
            yield [self._bounded(b"".join(rest), open_bytes, 0, self.size - open_bytes)]
        if self._hash:
            self.content = self._hash.hexdigest()

    def _extended(self, rest: list[bytes], block: bytes, size: int) -> list[bytes]:
        """Return the retained blocks of a line after one more block."""
        if size <= self._max:
            rest.append(block)
            return rest
        self._check(size)
        return [b"".join((*rest, block))[:HEAD]] if sum(map(len, rest)) < HEAD or len(rest) > 1 else rest

    def _bounded(self, line: bytes, size: int, index: int, offset: int) -> bytes:
        """Return a line, or a `LongLine` if it is too long."""
        if size <= self._max:
            return line
        self._check(size, index)
        long = LongLine(line[:HEAD])
        long.size, long.offset = size, offset
        return long

    def _check(self, size: int, offset: int = 0) -> None:
        if size > self._max and not self._long_lines:
            advice = "" if self._fixed else "; raise `max_document_bytes`"
            raise DataError(
                f"expected a line of at most {self._max:,} bytes, got a longer one{advice}",
                path=self.path,
                line=self.number + 1 + offset,
            )

    def _read(self) -> bytes:
        try:
            if self._thread is None:
                return self._stream.read(READ)
            block = (self._next or self._thread.submit(self._stream.read, READ)).result()
            self._next = self._thread.submit(self._stream.read, READ) if block else None
            return block
        except DataError as error:
            raise DataError(error.message, path=self.path, line=self.number + 1) from None


def content_digest(path: str, digest: Digest | None = None) -> str:
    """Return the digest (hex) of the uncompressed bytes of a file.

    Args:
        path: Path of the file.
        digest: a new one, such as ``hashlib.sha256()``; by default xxh3-128.
    """
    digest = digest or xxhash.xxh3_128()
    with Decompressed(path) as stream:
        while block := stream.read(READ):
            digest.update(block)
    return digest.hexdigest()


def version_read(path: str, before: Stat | None, content: str) -> Stat:
    """Return the version of a file after it was read.

    Another process that does the same work may have put the same bytes in its place meanwhile.

    Args:
        path: Path of the file.
        before: its version when it was opened; None if it was not there.
        content: the digest of what was read, by `content_digest`.

    Raises:
        DataError: if it is another file now.
    """
    now = stat(path)
    if now and now == before:
        return now
    if now and before and now.size == before.size and content_digest(path) == content and stat(path) == now:
        return now
    raise DataError(
        "expected a file that does not change while it is read, got one that has changed; run "
        "again when no program writes to it",
        path=path,
    )


def stored_digest(path: str, digest: Digest) -> str:
    """Return the digest (hex) of the stored bytes of a file.

    Args:
        path: Path of the file.
        digest: a new one, such as ``hashlib.sha256()``.
    """
    with open_stored(path) as stream:
        while block := stream.read(READ):
            digest.update(block)
    return digest.hexdigest()


def lines_at(opened: Lines, numbers: Iterable[int]) -> Iterator[bytes]:
    """Yield the lines with these ascending numbers from 0; later ones are not read."""
    remaining = iter(numbers)
    next_ = next(remaining, None)
    with opened as lines:
        for number, line in enumerate(lines):
            if number == next_:
                yield line
                next_ = next(remaining, None)
                if next_ is None:
                    return
