"""Parquet files, opened: the one place where pyarrow does so, after a process of its own has read the file's footer.

the file's last bytes ──> digest, seen before? ──no──> a child reads them as this process will (`footer_child`)
                                                          │ answers: pyarrow reads or refuses them, so may this process
                                                          └ dies: the error of the file says of what

A footer that is damaged can end the process that reads it: some of pyarrow's functions let exceptions of C++ through,
which no code in Python can catch. The child is begun with the first footer, and serves all others of this process.
"""

import atexit
import hashlib
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from toolkit.data.tables.from_arrow import HELD, READ, damage, names_in
from toolkit.storage import store_of
from toolkit.storage.outputs import Output
from toolkit.storage.paths import size_of
from toolkit.storage.reading import open_stored

if TYPE_CHECKING:
    from subprocess import Popen


_MAGIC = b"PAR1"
_TAIL = 4 + len(_MAGIC)
_KNOWN = 10_000
"""Digests of footers that are remembered."""
_SLOW = "reading it took too long"
_PROGRAM = Path(__file__).with_name("footer_child.py")


@contextmanager
def checked_parquet(stored: IO[bytes], path: str) -> Iterator[Any]:
    """Provide a `pyarrow.parquet.ParquetFile` with bounded reads and checked pages.

    Args:
        stored: the file; one can seek in it.
        path: Path for messages.

    Raises:
        DataError: if reading its footer ends a process, or takes too long or too much memory there.
        ArrowException, OSError, ValueError: by pyarrow, if it refuses the file.
    """
    import pyarrow.parquet as pq

    footer = _footer(stored)
    if footer and (result := _CHECKS.lost(footer)):
        raise damage("Parquet file", ValueError(result), path, "in its footer")
    with pq.ParquetFile(stored, pre_buffer=False, buffer_size=READ, page_checksum_verification=True) as file:
        yield file


@contextmanager
def open_parquet(path: str) -> Iterator[Any]:
    """Give a `pyarrow.parquet.ParquetFile` of a file, on disk or in a bucket.

    Its footer has been read in a process of its own, because a damaged one may end the process that reads it.

    Raises:
        DataError: if there is no such file, or reading its footer ends a process, or takes too much there.
        ArrowException, OSError, ValueError: by pyarrow, if it refuses the file.
    """
    with open_seekable(path) as stored, checked_parquet(stored, path) as file:
        yield file


def _footer(stored: IO[bytes]) -> bytes:
    """Return the footer; empty if pyarrow will refuse the file's last bytes."""
    size = stored.seek(0, os.SEEK_END)
    stored.seek(max(0, size - _TAIL))
    tail = stored.read(_TAIL)
    length = int.from_bytes(tail[:4], "little")
    footer = b""
    if tail.endswith(_MAGIC) and 0 < length <= size - _TAIL - len(_MAGIC):
        stored.seek(size - _TAIL - length)
        footer = stored.read(length)
    stored.seek(0)
    return footer


class _FooterChecks:
    """Answers of a child process about footers, each asked for once. Threads may share it.

    Args:
        program: Program that the child runs.
    """

    def __init__(self, program: Path = _PROGRAM) -> None:
        self._program = program
        self._lock = threading.Lock()
        self._answers: dict[bytes, str] = {}
        self._child: Popen[bytes] | None = None
        self._owner = 0

    def lost(self, footer: bytes) -> str:
        """Return the end of a footer's reading process; empty if it survived."""
        digest = hashlib.sha256(footer).digest()
        with self._lock:
            if digest not in self._answers:
                if len(self._answers) == _KNOWN:
                    self._answers.clear()
                result = self._ask(footer)
                if result and result != _SLOW:  # its end may have come from outside
                    result = self._ask(footer)
                self._answers[digest] = result
            return self._answers[digest]

    def _ask(self, footer: bytes) -> str:
        try:
            child = self._begun()
            assert child.stdin
            assert child.stdout
            try:
                child.stdin.write(len(footer).to_bytes(8, "little") + footer)
                child.stdin.flush()
            except BrokenPipeError:
                return self._death(child)
            return "" if child.stdout.read(1) else self._death(child)
        except BaseException:  # an answer that is not awaited would be taken for that to the next question
            self.end()
            raise

    def _begun(self) -> "Popen[bytes]":
        if self._child is None or self._owner != os.getpid():  # another one's, if this process is a fork
            import subprocess

            environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            self._child = subprocess.Popen(  # noqa: S603
                [sys.executable, "-P", str(self._program)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,  # an interrupt by the keyboard is for this process alone
            )
            self._owner = os.getpid()
        return self._child

    def _death(self, child: "Popen[bytes]") -> str:
        assert child.stderr
        lines = child.stderr.read().decode("utf-8", "replace").strip().splitlines()
        code = child.wait()
        self.end()
        if code in (-signal.SIGPROF, -signal.SIGALRM):
            return _SLOW
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        why = next((line.strip().removeprefix("what():").strip() for line in lines if "what():" in line), "")
        why = why or (lines[-1] if lines else "")
        return f"reading it ended a process ({how})" + (f": {why}" if why else "")

    def end(self) -> None:
        """End the child, if there is one of this process."""
        child, self._child = self._child, None
        if child and self._owner == os.getpid():
            child.kill()
            child.wait()
            for stream in (child.stdin, child.stdout, child.stderr):
                assert stream
                try:
                    stream.close()
                except OSError:  # what was written to it and not sent
                    continue


_CHECKS = _FooterChecks()
atexit.register(_CHECKS.end)


@contextmanager
def open_seekable(path: str) -> Iterator[IO[bytes]]:
    """Provide a seekable file. Of an object in a bucket, it fetches only the requested blocks.

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
        blocks = b"".join(self._blocks.get(number, b"") for number in numbers)
        data = blocks[start : start + max(0, end - self._at)]
        for number in list(self._blocks)[:-BLOCKS]:
            del self._blocks[number]
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


PENDING = 8 << 20
"""Bytes that are handed on at a time: stores have a least size of what is sent to them."""


class Sink(io.RawIOBase):
    """Passes written bytes to an output, many at a time. A context manager: its end passes the rest."""

    def __init__(self, output: Output) -> None:
        super().__init__()
        self._output = output
        self._pending: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._output.size + self._size

    def write(self, data: Any, /) -> int:
        result = bytes(data)
        self._pending.append(result)
        self._size += len(result)
        if self._size >= PENDING:
            self._hand_on()
        return len(result)

    def close(self) -> None:
        if not self.closed and self._pending:
            self._hand_on()
        super().close()

    def _hand_on(self) -> None:
        self._output.write(b"".join(self._pending))
        self._pending, self._size = [], 0


class TableBatch(NamedTuple):
    """Some rows of a table.

    Attributes:
        before: rows of the file before them.
        group: number of their row group.
        batch: the rows, of Arrow.
        stored: bytes of the row groups up to this one.
    """

    before: int
    group: int
    batch: Any
    stored: int


def batches(
    stored: IO[bytes], path: str, choose: Callable[[list[str]], Sequence[str]], row: int = 0, group: int = 0
) -> Iterator[TableBatch]:
    """Yield the rows of a Parquet file.

    Args:
        stored: the file.
        path: Path for messages.
        choose: returns which of its columns are read.
        row: before the first row group that is read.
        group: this row group.

    Raises:
        DataError: if the file is damaged.
    """
    import pyarrow as pa

    place, read = "in its footer", 0
    try:
        with checked_parquet(stored, path) as file:
            names_in(file.schema_arrow)
            names = list(choose(file.schema_arrow.names))
            groups = file.metadata.num_row_groups
            for number in range(group, groups):
                place = f"in row group {number + 1} of {groups}"
                about, before = file.metadata.row_group(number), row
                read += sum(about.column(i).total_compressed_size for i in range(about.num_columns))
                some = max(1, HELD * about.num_rows // max(1, about.total_byte_size))
                for batch in file.iter_batches(some, row_groups=[number], columns=names, use_threads=False):
                    yield TableBatch(row, number, batch.select(names), read)
                    row += batch.num_rows
                if row - before != about.num_rows:
                    raise ValueError(f"{row - before:,} rows of {about.num_rows:,}")
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        raise damage("Parquet file", error, path, place, row + 1 if row else None) from None
