"""The stored bytes of inputs: each read once, digested on the way; from afar by a thread that reads ahead.

web or bucket ──thread──> a bounded queue ──> decompressor, reader, writer
                  └──> what is kept of a download, with `max_disk:`

Beside a download (``.toolkit/downloads/<input>.part``) lies which version of which file it is (``.json``). It is
deleted once the input's record is written. A run that finds one asks the server for the rest. What is kept never
exceeds `max_disk`: a download reserves its whole size before it begins, and one that does not fit is not kept.
"""

import fcntl
import io
import os
import queue
import re
import threading
from array import array
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, TYPE_CHECKING, Any, Self, cast

import msgspec
import xxhash

from toolkit.errors import DataError, Unreadable
from toolkit.storage import Stat, store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join
from toolkit.storage.reading import open_stored
from toolkit.storage.stores.local.scratch import make_folder, open_scratch, remove_scratch
from toolkit.storage.threads import Thread

if TYPE_CHECKING:
    from toolkit.ingest.reader import Input

BLOCK = 1 << 18
"""Bytes that are read at a time."""

QUEUED = 64
"""Blocks that wait for the reader: with that many the thread pauses."""

CLOSING = 2.0
"""Seconds that a reader waits for the end of its thread, which may just be waiting for an answer."""


class InputBytes:
    """The stored bytes of an input; a context manager around all that is made of them.

    Args:
        path: Path of the input.
        found: the version that it should be.
        keep: Cache of the download.

    Attributes:
        members: Finds where gzip members begin while the bytes are read, if that is wanted.
        source: The input that records of a pack are of.
    """

    def __init__(self, path: str, stat: Stat, keep: "DownloadCache | None" = None) -> None:
        self._path = path
        self._stat = stat
        self._store = store_of(path)
        self._download = None if keep is None or self._store.can_list else PartialDownload(keep, path, stat)
        self._fetched: _Ahead | None = None
        self._digested: _Digested | None = None
        self._failed = False
        self.members: Members | None = None
        self.source: Input | None = None

    def __enter__(self) -> Self:
        return self

    @property
    def can_change(self) -> bool:
        """Return True if the file may change during reading."""
        return self._store.can_list

    def fetch(self) -> None:
        """Start to fetch the bytes of a remote file."""
        if not self._store.is_local:
            self._fetched = _Ahead(self._blocks())

    def open(self, offset: int = 0, watch: Callable[[bytes], None] | None = None) -> IO[bytes]:
        """Return the bytes; closed by ``with``.

        Args:
            offset: Offset of the first.
            watch: is given all bytes, one after the other, if they are read so.
        """
        if self._store.is_local:
            stream: Any = open_stored(self._path)
            stream.seek(offset)
        else:
            stream = self._fetched or _Ahead(self._blocks(offset))
        self._fetched = None
        self._digested = _Digested(stream, watch or (self.members.feed if self.members else None))
        return cast("IO[bytes]", self._digested)

    def place(self, number: int) -> tuple[str, int, int] | None:
        """Return file, offset and length of a stored record by its number; None if it is not known."""
        starts = self.members.starts if self.members else ()
        if not 0 < number <= len(starts):
            return None
        end = starts[number] if number < len(starts) else self._stat.size
        return self._path, starts[number - 1], end - starts[number - 1]

    def close(self) -> None:
        """End a fetch of unopened bytes."""
        if self._fetched:
            self._fetched.close()

    def stored(self) -> int:
        """Return how many bytes have been read since `open`."""
        return self._digested.at if self._digested else 0

    def content(self) -> str:
        """Return xxh3-128 (hex) of the bytes."""
        if self._digested is None or not self._digested.ended:  # a reader that did not need all of it
            with self.open() as stream:
                while stream.read(BLOCK):
                    pass
        assert self._digested
        return self._digested.content()

    def discard(self) -> None:
        """Delete the cached download."""
        if self._download:
            self._download.delete()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if kind and issubclass(kind, Exception) and not self._failed:
            self.discard()  # it may be the bytes that are not as they should be

    def _blocks(self, offset: int = 0) -> Generator[bytes, None, None]:
        download = self._download if self._download and self._download.begin() else None
        try:
            if download:
                for block in download.blocks():
                    offset += len(block)
                    yield block
            with self._store.open(self._path, offset, self._stat) as stream:
                while block := stream.read1(BLOCK):
                    if download:
                        download.write(block)
                    yield block
        except OSError as error:
            self._failed = True
            raise DataError(f"expected a readable file, got {error.strerror or error}", path=self._path) from None
        except (DataError, Unreadable):
            self._failed = True
            raise
        finally:
            if download:
                download.end()


_HEADER = 10
"""Bytes of a member's header that all have: magic, method, flags, time, extra flags, system."""


class Members:
    """The offsets of gzip members with headers like the first.

    That 10 bytes of compressed data look so by chance happens once in some 10^13 bytes; who reads at an offset looks
    whether it is what was looked for.

    Attributes:
        starts: the offsets, in order.
    """

    def __init__(self) -> None:
        self.starts = array("Q")
        self._pattern: re.Pattern[bytes] | None = None
        self._tail = b""
        self._at = 0

    def feed(self, data: bytes) -> None:
        """Look at the next stored bytes."""
        block = self._tail + data
        before = self._at - len(self._tail)
        self._at += len(data)
        if len(block) < _HEADER:
            self._tail = block
            return
        if self._pattern is None:
            head = block[:_HEADER]
            is_gzip = head.startswith(b"\x1f\x8b\x08")
            result = re.escape(head[:4]) + b".{4}" + re.escape(head[8:]) if is_gzip else b"(?!)"  # which is nowhere
            self._pattern = re.compile(result, re.DOTALL)
        self.starts.extend(before + match.start() for match in self._pattern.finditer(block))
        self._tail = block[1 - _HEADER :]


class _Digested(io.RawIOBase):
    """A stream with the count and the digest of its bytes."""

    def __init__(self, stream: Any, watch: Callable[[bytes], None] | None) -> None:
        super().__init__()
        self._stream = stream
        self._watch = watch
        self._hash = xxhash.xxh3_128()
        self.at = 0
        self.ended = False
        self._in_order = True

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._stream.seekable())

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go elsewhere: what is read afterwards is not digested, because it may be read again, or not at all."""
        self._in_order = self.ended = False
        return int(self._stream.seek(offset, whence))

    def tell(self) -> int:
        return int(self._stream.tell())

    def readinto(self, buffer: Any) -> int:
        count: int = self._stream.readinto(buffer)
        self.at += count
        if self._in_order:
            self._hash.update(memoryview(buffer)[:count])
            if self._watch:
                self._watch(bytes(memoryview(buffer)[:count]))
            self.ended = self.ended or not count
        return count

    def content(self) -> str:
        return self._hash.hexdigest()

    def close(self) -> None:
        self._stream.close()
        super().close()


class Blocks(io.RawIOBase):
    """Blocks of bytes as a file."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        super().__init__()
        self._blocks, self._block = blocks, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._block:
            self._block = memoryview(next(self._blocks, b""))
        count = min(len(self._block), len(buffer))
        buffer[:count], self._block = self._block[:count], self._block[count:]
        return count


class _Ahead(Blocks):
    """Blocks of bytes, fetched by a thread; its errors are raised where the bytes behind them would be read."""

    def __init__(self, blocks: Generator[bytes, None, None]) -> None:
        super().__init__(iter(self._next_block, b""))
        self._queue: queue.Queue[bytes | BaseException] = queue.Queue(QUEUED)
        self._error: BaseException | None = None
        self._closed = threading.Event()
        self._thread = Thread(target=self._fetch, args=(blocks,), daemon=True)
        self._thread.start()

    def _next_block(self) -> bytes:
        block = self._error or self._queue.get()
        if isinstance(block, BaseException):
            self._error = block
            raise block
        return block

    def _fetch(self, blocks: Generator[bytes, None, None]) -> None:
        pieces: list[bytes] = []
        last: bytes | BaseException = b""  # the end
        try:
            for block in blocks:
                pieces.append(block)
                if sum(map(len, pieces)) >= BLOCK or self._queue.empty():
                    self._queue.put(b"".join(pieces))
                    pieces = []
                if self._closed.is_set():
                    return
        except BaseException as error:
            last = error
        finally:
            if pieces:
                self._queue.put(b"".join(pieces))
            self._queue.put(last)
            blocks.close()

    def close(self) -> None:
        self._closed.set()
        with suppress(queue.Empty):
            while True:
                self._queue.get_nowait()  # the thread may be waiting for room
        self._thread.join(CLOSING)
        super().close()


# --- downloads that are kept while they are read ----------------------------------------------------------------------


class DownloadCache(msgspec.Struct, frozen=True):
    """The place of a download while it is read.

    Attributes:
        folder: on disk.
        max_disk: bytes of all downloads in it.
        name: Name of this one.
    """

    folder: str
    max_disk: int
    name: str


class Unfinished(msgspec.Struct, frozen=True):
    """A version of a partly downloaded file; its size is reserved."""

    path: str
    size: int
    stamp: str


class PartialDownload:
    """The beginning of a file, on disk."""

    def __init__(self, keep: DownloadCache, path: str, stat: Stat) -> None:
        self._keep = keep
        self._version = Unfinished(path, stat.size, stat.stamp)
        self._stem = join(keep.folder, _stem(keep.name))
        self._file: IO[bytes] | None = None

    def begin(self) -> bool:
        """Keep the file from here on; return False if that is not possible.

        There must be room for it, nobody else may be fetching it, and its version must have a stamp.
        """
        stamp = self._version.stamp
        if not self._version.size or stamp == "date None" or stamp.startswith("etag W/"):
            return False  # a part of it could not be trusted later
        with _locked(self._keep.folder):
            downloads = _downloads(self._keep.folder)
            mine = downloads.pop(self._stem, None)
            if sum(other.size for other in downloads.values()) + self._version.size > self._keep.max_disk:
                _remove(self._stem)
                return False
            file = open_scratch(self._stem + ".part", "ab")
            if not _lock(file):
                file.close()
                return False
            if mine != self._version or file.tell() > self._version.size:
                file.truncate(0)
                write_file(self._stem + ".json", msgspec.json.encode(self._version))
        self._file = file
        return True

    def blocks(self) -> Iterator[bytes]:
        """Yield the cached blocks."""
        with open(self._stem + ".part", "rb") as stream:
            while block := stream.read(BLOCK):
                yield block

    def write(self, block: bytes) -> None:
        """Append a block; keep nothing any more when the disk is full."""
        if self._file:
            try:
                self._file.write(block)
                self._file.flush()
            except OSError:
                self.end()
                self.delete()

    def end(self) -> None:
        """Close the file: no more of it comes."""
        file, self._file = self._file, None
        if file:
            with suppress(OSError):
                file.close()

    def delete(self) -> None:
        if os.path.exists(self._stem + ".json"):
            with _locked(self._keep.folder):
                _remove(self._stem)


def sweep(folder: str, names: Iterable[str]) -> None:
    """Delete downloads of former inputs.

    Args:
        folder: Folder of the downloads.
        names: names of those that stay.
    """
    if not store_of(folder).is_local or not os.path.isdir(folder):
        return
    stems = {join(folder, _stem(name)) for name in names}
    with _locked(folder):
        existing = {
            join(folder, name.rpartition(".")[0]) for name in os.listdir(folder) if name.endswith((".part", ".json"))
        }
        for stem in existing - stems:
            with open_scratch(stem + ".part", "ab") as file:
                if _lock(file):
                    _remove(stem)


def _stem(name: str) -> str:
    return f"{xxhash.xxh3_64_hexdigest(name.encode())}-{os.path.basename(name)[-100:]}"


def _downloads(folder: str) -> dict[str, Unfinished]:
    """Return the downloads of a folder, by their paths without suffix; one whose description cannot be read is none."""
    results = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".json"):
            with open(os.path.join(folder, name), "rb") as stream, suppress(msgspec.DecodeError):
                results[join(folder, name.removesuffix(".json"))] = msgspec.json.decode(stream.read(), type=Unfinished)
    return results


def _remove(stem: str) -> None:
    for suffix in (".part", ".json"):  # the reservation last
        remove_scratch(stem + suffix)


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Let one process at a time change the folder."""
    make_folder(folder)
    with open_scratch(join(folder, ".lock"), "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _lock(file: IO[bytes]) -> bool:
    """Lock a file until it is closed; return whether nobody else has it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
