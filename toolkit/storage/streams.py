"""Bytes in and out: compression, atomic outputs, lines.

Reading:   file or URL ──stores──> stored bytes ──isal / zstd──> bytes ──split──> lines
Writing:   rows ──gather──> blocks ──isal / zlib-ng──> gzip members ──> hidden temporary ──fsync, rename──> file

What we write is a sequence of gzip members of about `BLOCK` uncompressed bytes, cut at line ends. Any gzip reader takes
it as one file; for us it means that blocks can be compressed in parallel to the same bytes, copied without being
inflated, and read from the middle. gzip headers carry no name and no time, and the compressor sees each block whole,
because its output depends on how it is fed.
"""

import hashlib
import io
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import IO, TYPE_CHECKING, Protocol, Self, cast

import xxhash

from toolkit.errors import DAMAGED, DataError, advice
from toolkit.storage import Stat, Writing, store_of
from toolkit.storage.compression import Stored, compression_of, inflated, zstd

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

BLOCK = 1 << 20
"""Uncompressed bytes after which a gzip member ends: small enough to jump into, large enough to compress well."""

READ = 1 << 20
"""Bytes asked for at a time."""

APART = 8
"""Bytes that igzip compresses apart; its code for long inputs takes none of up to 16."""

HEAD = 8 << 20
"""Bytes that are kept of the beginning of what is too large to be kept."""


class Digest(Protocol):
    """What hashlib and xxhash have."""

    def update(self, data: bytes, /) -> object: ...

    def hexdigest(self) -> str: ...


# --- compression ------------------------------------------------------------------------------------------------------


def compress_fast(data: bytes) -> bytes:
    """One gzip member by igzip at level 2: ~10 times as fast as zlib level 6, ~12 % larger. For intermediates.

    The first bytes are compressed apart, by other code of igzip. The code for a long input takes the hash of its third
    byte from a register that it has not set, which holds an address of the stack (isa-l 2.32, ``.write_first_byte`` in
    ``igzip_icf_body_h1_gr_bt.asm``): where that hash meets another, a match is missed, and the bytes are others.
    """
    from isal import isal_zlib

    start, rest = memoryview(data)[:APART], memoryview(data)[APART:]
    made = isal_zlib.compressobj(2, isal_zlib.DEFLATED, isal_zlib.MAX_WBITS | 16)
    return made.compress(start) + made.flush(isal_zlib.Z_SYNC_FLUSH) + made.compress(rest) + made.flush()


def compress_small(data: bytes) -> bytes:
    """One gzip member by zlib-ng at level 6: the size of zlib level 6 in less than half its time. For releases."""
    from zlib_ng import zlib_ng

    return zlib_ng.compress(data, 6, 31)


def compress_zstd(data: bytes) -> bytes:
    """One zstd frame at level 3, with a checksum of its content."""
    module = zstd()
    parameter = module.CompressionParameter
    options = {parameter.compression_level: 3, parameter.checksum_flag: 1}
    return cast("bytes", module.compress(data, options=options))


def compress_not(data: bytes) -> bytes:
    return data


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": compress_small,
    "gzip-fast": compress_fast,
    "zstd": compress_zstd,
    "none": compress_not,
}
"""By the name used in configurations. All give output that can be concatenated."""


def decompress(data: bytes, compression: str) -> bytes:
    """The inverse of `COMPRESSORS`, of one member."""
    if compression == "none":
        return data
    if compression == "zstd":
        return cast("bytes", zstd().decompress(data))
    from isal import igzip

    return cast("bytes", igzip.decompress(data))  # type: ignore[no-untyped-call]


def compressor_for(path: str) -> Callable[[bytes], bytes]:
    """The compressor for intermediates with this suffix."""
    return {"gzip": compress_fast, "zstd": compress_zstd}.get(compression_of(path) or "", compress_not)


# --- reading ----------------------------------------------------------------------------------------------------------


def open_stored(path: str) -> IO[bytes]:
    """The bytes as stored, not decompressed. Closed by ``with``.

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
        path: of the file.
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
            self._read = inflated(path, self._stored)
        except BaseException:
            self.close()
            raise

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Up to so many bytes; empty at the end."""
        try:
            data = self._read(size)
        except Exception as error:
            if explained := self._explained(error):
                raise DataError(explained, path=self.path) from None
            raise
        self._size += len(data)
        return data

    def _explained(self, error: BaseException) -> str | None:
        """What a decompressor's error means to the owner of the file; None if it is something else."""
        where = f"at byte {self._stored.at:,} ({self._size:,} uncompressed)"
        if isinstance(error, EOFError):
            what = f"it is truncated, or something else follows it; {DAMAGED}"
            return f"expected whole compressed data, got the end of the file {where}: {what}"
        if isinstance(error, MemoryError):
            return f"expected compressed data that needs less memory, got data that needs more, before or {where}"
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
        self._stored.close()
        super().close()


def _threads(n: int) -> "ThreadPoolExecutor":
    from concurrent.futures import ThreadPoolExecutor  # whose import takes as long as all of this module

    return ThreadPoolExecutor(n)


class LongLine(bytes):
    """The first `HEAD` bytes of a line that is too long.

    Attributes:
        size: bytes of the whole line.
        offset: of the line in the uncompressed file.
    """

    size = 0
    offset = 0


class Lines(Iterator[bytes]):
    r"""The lines of a file, without ``\n``; memory is bounded by the longest line.

    A context manager. A damaged or truncated file raises a DataError that names the line at which it ends.

    Args:
        path: a file, decompressed by its suffix or its first bytes.
        max_bytes: a longer line is an error.
        digest: whether to compute `content`.
        ahead: whether a thread reads the next block meanwhile.
        stored: the file's bytes as stored, if they are not to be read from there.
        long_lines: whether a longer line is no error, but given as `LongLine`.

    Attributes:
        number: lines given so far.
        size: uncompressed bytes given so far, line ends included.
        content: xxh3-128 (hex) of the uncompressed bytes, once all lines are read, if asked for.
        ended: whether the last line had its line end.
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
    ) -> None:
        self.path = path
        self._stored = stored
        self._long_lines = long_lines
        self.number = 0
        self.size = 0
        self.content: str | None = None
        self.ended = True
        self._max = max_bytes
        self._hash = xxhash.xxh3_128() if digest else None
        self._thread = _threads(1) if ahead else None
        self._next: Future[bytes] | None = None
        self._pending: Iterator[bytes] = iter(())

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

    def blocks(self) -> Iterator[list[bytes]]:
        """All lines, many at a time."""
        for block in self._blocks:
            self.number += len(block)
            yield block

    def give_back(self, block: list[bytes]) -> None:
        """Takes back the last block given, so that its lines are given one by one."""
        self.number -= len(block)
        self._pending = iter(block)

    def _split(self) -> Iterator[list[bytes]]:
        rest: list[bytes] = []
        held = 0  # bytes of the line that has not ended, of which `rest` has those that are needed
        while block := self._read():
            if self._hash:
                self._hash.update(block)
            self.size += len(block)
            lines = block.split(b"\n")
            if len(lines) == 1:
                held += len(block)
                rest = self._kept(rest, block, held)
                continue
            sizes = [held + len(lines[0]), *map(len, lines[1:])]
            lines[0] = b"".join(self._kept(rest, lines[0], sizes[0]))
            rest, held = [lines.pop()], sizes.pop()
            if max(sizes) > self._max:
                start = self.size - sum(sizes) - len(sizes) - held
                for i, size in enumerate(sizes):
                    lines[i] = self._bounded(lines[i], size, i, start)
                    start += size + 1
            yield lines
        if held:
            self.ended = False
            yield [self._bounded(b"".join(rest), held, 0, self.size - held)]
        if self._hash:
            self.content = self._hash.hexdigest()

    def _kept(self, rest: list[bytes], block: bytes, size: int) -> list[bytes]:
        """What is kept of a line of so many bytes when a block comes to it."""
        if size <= self._max:
            rest.append(block)
            return rest
        self._check(size)
        return [b"".join((*rest, block))[:HEAD]] if sum(map(len, rest)) < HEAD or len(rest) > 1 else rest

    def _bounded(self, line: bytes, size: int, index: int, offset: int) -> bytes:
        """A line, or what is given of it if it is too long."""
        if size <= self._max:
            return line
        self._check(size, index)
        long = LongLine(line[:HEAD])
        long.size, long.offset = size, offset
        return long

    def _check(self, size: int, offset: int = 0) -> None:
        if size > self._max and not self._long_lines:
            raise DataError(
                f"expected a line of at most {self._max:,} bytes, got a longer one; raise `max_document_bytes`",
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


def content_digest(path: str) -> str:
    """xxh3-128 (hex) of the uncompressed bytes of a file."""
    digest = xxhash.xxh3_128()
    with Decompressed(path) as stream:
        while block := stream.read(READ):
            digest.update(block)
    return digest.hexdigest()


def stored_digest(path: str, digest: Digest) -> str:
    """Hex, of the bytes of a file as they are stored.

    Args:
        path: of the file.
        digest: a new one, such as ``hashlib.sha256()``.
    """
    with open_stored(path) as stream:
        while block := stream.read(READ):
            digest.update(block)
    return digest.hexdigest()


# --- writing ----------------------------------------------------------------------------------------------------------


class Output:
    """A file that appears under its name complete or not at all: ``with Output(path) as out: out.write(…)``.

    Leaving the block normally makes it appear; leaving it by an exception leaves nothing.

    Attributes:
        size: bytes written so far, hence the offset of the next.
        sha256: hex, of the bytes as stored, after the block.
        stat: of the finished file, after the block.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.size = 0
        self.sha256 = ""
        self.stat = Stat(0, "")
        self._hash = hashlib.sha256()
        self._writing: Writing

    def __enter__(self) -> Self:
        self._writing = store_of(self.path).writing(self.path)
        return self

    def write(self, data: bytes) -> None:
        self._writing.write(data)
        self._hash.update(data)
        self.size += len(data)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if kind is None:
                self.stat = self._writing.commit()
                self.sha256 = self._hash.hexdigest()
        finally:
            self._writing.abort()


class Compressing:
    """Writes blocks to an output, compressed, in their order; in threads if there are any. A context manager.

    Args:
        output: that takes them.
        threads: that compress, which needs no GIL; with 0 it is done at once.
    """

    def __init__(self, output: Output, threads: int = 0) -> None:
        self._output = output
        self._threads = threads
        self._pool = _threads(threads) if threads else None
        self._pending: deque[tuple[Future[bytes], Callable[[int, int], None] | None]] = deque()

    def __enter__(self) -> Self:
        return self

    def write(
        self, data: bytes, compress: Callable[[bytes], bytes], then: Callable[[int, int], None] | None = None
    ) -> None:
        """Appends a block.

        Args:
            data: the block.
            compress: gives what is stored.
            then: is told the offset and the length of that, once it is written.
        """
        if self._pool is None:
            self._store(compress(data), then)
            return
        self._pending.append((self._pool.submit(compress, data), then))
        while len(self._pending) > 2 * self._threads:
            self._take()

    def flush(self) -> None:
        """Waits until all is written."""
        while self._pending:
            self._take()

    def _take(self) -> None:
        future, then = self._pending.popleft()
        self._store(future.result(), then)

    def _store(self, stored: bytes, then: Callable[[int, int], None] | None) -> None:
        offset = self._output.size
        self._output.write(stored)
        if then:
            then(offset, len(stored))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if kind is None:
                self.flush()
        finally:
            if self._pool:
                self._pool.shutdown(cancel_futures=True)


class RowOutput(Output):
    """An output of rows, compressed by suffix in blocks cut at line ends.

    Attributes:
        content: xxh3-128 (hex) of the uncompressed bytes so far.
        content_sha256: sha256 (hex) of the same.
        content_size: uncompressed bytes so far.
        rows: rows so far.

    Args:
        path: of the file.
        threads: that compress.
        compress: how, if not by the suffix.
    """

    def __init__(self, path: str, threads: int = 0, compress: Callable[[bytes], bytes] | None = None) -> None:
        super().__init__(path)
        self.rows = 0
        self.content_size = 0
        self._compress = compress or compressor_for(path)
        self._compressing = Compressing(self, threads)
        self._block: list[bytes] = []
        self._held = 0
        self._content = xxhash.xxh3_128()
        self._content_sha256 = hashlib.sha256()

    @property
    def content(self) -> str:
        return self._content.hexdigest()

    @property
    def content_sha256(self) -> str:
        return self._content_sha256.hexdigest()

    def write_row(self, row: bytes) -> None:
        r"""Appends a row; ``\n`` is added."""
        self._block.append(row)
        self._held += len(row) + 1
        self.rows += 1
        if self._held >= BLOCK:
            self._flush()

    def write_rows(self, rows: Iterable[bytes]) -> None:
        """Appends rows."""
        for row in rows:
            self.write_row(row)

    def _flush(self) -> None:
        self._block.append(b"")
        data = b"\n".join(self._block)
        self._content.update(data)
        self._content_sha256.update(data)
        self.content_size += len(data)
        self._compressing.write(data, self._compress)
        self._block, self._held = [], 0

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            try:
                if kind is None and self._block:
                    self._flush()
                if kind is None and not self.rows:
                    self.write(self._compress(b""))
            except BaseException as failure:
                self._compressing.__exit__(type(failure), failure, tb)
                raise
            self._compressing.__exit__(kind, error, tb)
        except BaseException as failure:
            super().__exit__(type(failure), failure, tb)
            raise
        super().__exit__(kind, error, tb)


def write_file(path: str, data: bytes) -> Stat:
    """Writes a small file atomically."""
    with Output(path) as out:
        out.write(data)
    return out.stat
