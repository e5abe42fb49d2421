"""Files as they are written: complete or not at all, in blocks that are compressed by themselves.

    rows ──gather──> blocks ──isal, zlib-ng, zstd──> gzip members ──> a store's `Writing` ──commit──> file

What we write is a sequence of gzip members of about `BLOCK` uncompressed bytes, cut at line ends. Any gzip reader takes
it as one file; for us it means that blocks can be compressed in parallel to the same bytes, copied without being
inflated, and read from the middle. gzip headers carry no name and no time, and the compressor sees each block whole,
because its output depends on how it is fed.
"""

import hashlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Self

import xxhash

from toolkit.errors import DataError
from toolkit.storage import Stat, Store, Writing, store_of
from toolkit.storage.compression import compressor_for
from toolkit.storage.paths import remove
from toolkit.storage.threads import pool

if TYPE_CHECKING:
    from concurrent.futures import Future

BLOCK = 1 << 20
"""Uncompressed bytes after which a gzip member ends: small enough to jump into, large enough to compress well."""

HEAD = 4096
"""First bytes of a file that are kept while it is written."""


class Transaction(ABC):
    """A context manager; its end makes all additions durable, an error discards them."""

    @abstractmethod
    def commit(self) -> None:
        """Make all durable."""

    @abstractmethod
    def abort(self) -> None:
        """Delete all additions without durability."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if kind is None:
                self.commit()
        finally:
            self.abort()


class OutputBatch(Transaction):
    """A batch of files; they become durable and appear together at the end of the ``with`` block.

    Several threads may add to it.
    """

    def __init__(self) -> None:
        self._waiting: list[tuple[Store, Writing]] = []
        self._moves: list[tuple[Store, str, str]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, store: Store, writing: Writing) -> Stat:
        """Add a finished file; return its `Stat`."""
        stat = writing.prepare()
        self._waiting.append((store, writing))
        return stat

    def move(self, source: str, target: str) -> None:
        """Add a file durable elsewhere in the store. It appears before the written files."""
        self._moves.append((store_of(target), source, target))

    def commit(self) -> None:
        """Make them appear, durably; if that fails, some may have."""
        stores: list[Store] = [*(its for its, *_ in self._moves), *(its for its, _ in self._waiting)]
        for store in dict.fromkeys(stores):
            writings = [writing for its, writing in self._waiting if its is store]
            store.commit_all(writings, [(source, target) for its, source, target in self._moves if its is store])
        self._waiting, self._moves = [], []

    def abort(self, first: int = 0) -> None:
        """Delete the pending files, from this number on."""
        for _, writing in self._waiting[first:]:
            writing.abort()
        del self._waiting[first:]


class Output:
    """A file; it appears under its name complete or not at all. Use it as ``with Output(path) as out: out.write(…)``.

    Leaving the block normally makes it appear; leaving it by an exception leaves nothing.

    Attributes:
        size: bytes written so far, hence the offset of the next.
        sha256: hex, of the bytes as stored, after the block; empty if it was not asked for.
        head: the first bytes as stored.
        stat: Stat of the finished file, after the block.

    Args:
        path: Path of the file.
        together: the group that it belongs to: then it appears with that, later than the block ends.
        digest: True to compute `sha256`.
        durable: Durability, as of `Writing`.
    """

    def __init__(
        self, path: str, together: OutputBatch | None = None, *, digest: bool = True, durable: bool = True
    ) -> None:
        self.path, self._durable = path, durable
        self._together = together
        self.size = 0
        self.sha256 = ""
        self.head = b""
        self.stat = Stat(0, "")
        self._hash = hashlib.sha256() if digest else None
        self._writing: Writing

    def __enter__(self) -> Self:
        self._writing = store_of(self.path).writing(self.path)
        self._writing.durable = self._durable
        return self

    def write(self, data: bytes) -> None:
        self._writing.write(data)
        if self.size < HEAD:
            self.head = (self.head + data)[:HEAD]
        if self._hash:
            self._hash.update(data)
        self.size += len(data)

    def _finish(self) -> None:
        """Write the end of the file, or refuse it, before it appears."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        waits = False
        try:
            if kind is None:
                self._finish()
                if self._together is None:
                    self.stat = self._writing.commit()
                else:
                    self.stat = self._together.add(store_of(self.path), self._writing)
                    waits = True
                self.sha256 = self._hash.hexdigest() if self._hash else ""
        finally:
            if not waits:
                self._writing.abort()


class NamedOutput(Output):
    """A file named by a user. Make it when the command begins, and write it at its end: the user may edit it meanwhile.

    A link is followed; a pipe or a character device takes what is written once that is complete.

    Args:
        path: Path of the file.
        where: Option of the user, such as ``--output``.

    Raises:
        ConfigError: if it cannot be written.
        DataError: at the end of the block, if the file has changed since the command began.
    """

    def __init__(self, path: str, where: str) -> None:
        super().__init__(path, digest=False)
        self._where = where
        self._before = store_of(path).check_named(path, where)

    def __enter__(self) -> Self:
        self._writing = store_of(self.path).named(self.path)
        return self

    def save(self, data: bytes) -> None:
        """Write the whole file."""
        with self:
            self.write(data)

    def _finish(self) -> None:
        if store_of(self.path).check_named(self.path, self._where) != self._before:
            raise DataError(
                "expected the file as it was when the command began, got one that has changed since; it stays as "
                "it is: run the command again, or write to another file",
                path=self.path,
            )


class Compressing:
    """Writes blocks to an output, compressed, in their order; in threads if there are any. A context manager.

    Args:
        output: Output that takes them.
        threads: Threads that compress, which needs no GIL; with 0 it is done at once.
    """

    def __init__(self, output: Output, threads: int = 0) -> None:
        self._output = output
        self._threads = threads
        self._pool = pool(threads) if threads else None
        self._pending: deque[tuple[Future[bytes], Callable[[int, int], None] | None]] = deque()

    def __enter__(self) -> Self:
        return self

    def write(
        self, data: bytes, compress: Callable[[bytes], bytes], then: Callable[[int, int], None] | None = None
    ) -> None:
        """Append a block.

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
        """Wait until all is written."""
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
            self.close()

    def close(self) -> None:
        """End the threads; pending blocks are dropped."""
        if self._pool:
            self._pool.shutdown(cancel_futures=True)


class RowOutput(Output):
    """An output of rows, compressed in blocks cut at line ends.

    Attributes:
        content: xxh3-128 (hex) of the uncompressed bytes so far.
        content_sha256: sha256 (hex) of the same.
        content_size: uncompressed bytes so far.
        rows: rows so far.

    Args:
        path: Path of the file.
        threads: Threads that compress.
        compress: Function that compresses a block; by default, chosen by the suffix.
        together: Batch of the file, as for `Output`.
    """

    def __init__(
        self,
        path: str,
        threads: int = 0,
        compress: Callable[[bytes], bytes] | None = None,
        together: OutputBatch | None = None,
    ) -> None:
        super().__init__(path, together)
        self.rows = 0
        self.content_size = 0
        self._compress = compress or compressor_for(path)
        self._compressing = Compressing(self, threads)
        self._block: list[bytes] = []
        self._size_of_block = 0
        self._content = xxhash.xxh3_128()
        self._content_sha256 = hashlib.sha256()

    @property
    def content(self) -> str:
        return self._content.hexdigest()

    @property
    def content_sha256(self) -> str:
        return self._content_sha256.hexdigest()

    def write_row(self, row: bytes) -> None:
        r"""Append a row; ``\n`` is added."""
        self._block.append(row)
        self._size_of_block += len(row) + 1
        self.rows += 1
        if self._size_of_block >= BLOCK:
            self._flush()

    def write_rows(self, rows: Iterable[bytes]) -> None:
        """Append rows; those of a list that the block has room for at once."""
        if isinstance(rows, list):
            size = sum(map(len, rows)) + len(rows)
            if self._size_of_block + size < BLOCK:
                self._block += rows
                self._size_of_block += size
                self.rows += len(rows)
                return
        block = self._block
        for row in rows:
            block.append(row)
            self._size_of_block += len(row) + 1
            self.rows += 1
            if self._size_of_block >= BLOCK:
                self._flush()
                block = self._block

    def _flush(self) -> None:
        self._block.append(b"")
        data = b"\n".join(self._block)
        self._content.update(data)
        self._content_sha256.update(data)
        self.content_size += len(data)
        self._compressing.write(data, self._compress)
        self._block, self._size_of_block = [], 0

    def _finish(self) -> None:
        if self._block:
            self._flush()
        if not self.rows:
            self.write(self._compress(b""))
        self._compressing.flush()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            super().__exit__(kind, error, tb)
        finally:
            self._compressing.close()


class OptionalRows:
    """Rows of an optional file: it exists only if there are any. An earlier file is deleted. A context manager.

    Args:
        path: Path of the file.
        compress: Function that compresses a block, if not by the suffix.
        together: Files that it appears with.
    """

    def __init__(
        self, path: str, compress: Callable[[bytes], bytes] | None = None, together: OutputBatch | None = None
    ) -> None:
        self._path, self._compress, self._together = path, compress, together
        self._output: RowOutput | None = None

    def __enter__(self) -> Self:
        remove(self._path)
        return self

    @property
    def written(self) -> bool:
        """Return True if there are rows."""
        return self._output is not None

    def write_row(self, row: bytes) -> None:
        r"""Append a row; ``\n`` is added."""
        if self._output is None:  # assigned once it has begun: what cannot be begun is not ended
            self._output = RowOutput(self._path, compress=self._compress, together=self._together).__enter__()
        self._output.write_row(row)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._output:
            self._output.__exit__(kind, error, tb)


def write_file(path: str, data: bytes, together: OutputBatch | None = None, *, durable: bool = True) -> Stat:
    """Write a small file atomically; return its `Stat`. With `together` it appears with other files."""
    with Output(path, together, durable=durable) as out:
        out.write(data)
    return out.stat
