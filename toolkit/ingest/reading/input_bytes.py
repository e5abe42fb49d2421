"""The stored bytes of inputs: each read once, digested on the way; from afar by a thread that reads ahead.

web or bucket ──thread──> a bounded queue ──> decompressor, reader, writer
                  └──> what is kept of a download, with `max_disk:` (see `toolkit.ingest.reading.downloads`)
"""

import io
import queue
import re
import threading
from array import array
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, Self, cast

import xxhash

from toolkit.errors import DataError, Unreadable
from toolkit.ingest.reading.downloads import BLOCK, Keep, Kept
from toolkit.storage import Stat, store_of
from toolkit.storage.reading import open_stored
from toolkit.storage.threads import Thread

if TYPE_CHECKING:
    from toolkit.ingest.reader import Input

QUEUED = 64
"""Blocks that wait for the reader: with that many the thread pauses."""

CLOSING = 2.0
"""Seconds that a reader waits for the end of its thread, which may just be waiting for an answer."""


class InputBytes:
    """The stored bytes of an input; a context manager around all that is made of them.

    Args:
        path: Path of the input.
        found: the version that it should be.
        keep: where a download is kept.

    Attributes:
        members: Finds where gzip members begin while the bytes are read, if that is wanted.
        source: The input that records of a pack are of.
    """

    def __init__(self, path: str, stat: Stat, keep: Keep | None = None) -> None:
        self._path = path
        self._found = stat
        self._store = store_of(path)
        self._kept = None if keep is None or self._store.can_list else Kept(keep, path, stat)
        self._fetched: _Ahead | None = None
        self._digested: _Digested | None = None
        self._failed = False
        self.members: Members | None = None
        self.source: Input | None = None

    def __enter__(self) -> Self:
        return self

    @property
    def can_change(self) -> bool:
        """Return whether another version may come while one is read, so that its `stat` is asked again."""
        return self._store.can_list

    def fetch(self) -> None:
        """Begin to fetch what comes from afar, before it is opened."""
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
        """Return file, offset and length of the stored record with a number, from 1; None if it is not known."""
        starts = self.members.starts if self.members else ()
        if not 0 < number <= len(starts):
            return None
        end = starts[number] if number < len(starts) else self._found.size
        return self._path, starts[number - 1], end - starts[number - 1]

    def close(self) -> None:
        """End a fetch of what has not been opened."""
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
        """Delete what is kept of a download."""
        if self._kept:
            self._kept.delete()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if kind and issubclass(kind, Exception) and not self._failed:
            self.discard()  # it may be the bytes that are not as they should be

    def _blocks(self, offset: int = 0) -> Generator[bytes, None, None]:
        kept = self._kept if self._kept and self._kept.begin() else None
        try:
            if kept:
                for block in kept.blocks():
                    offset += len(block)
                    yield block
            with self._store.open(self._path, offset, self._found) as stream:
                while block := stream.read1(BLOCK):
                    if kept:
                        kept.write(block)
                    yield block
        except OSError as error:
            self._failed = True
            raise DataError(f"expected a readable file, got {error.strerror or error}", path=self._path) from None
        except (DataError, Unreadable):
            self._failed = True
            raise
        finally:
            if kept:
                kept.end()


_HEADER = 10
"""Bytes of a member's header that all have: magic, method, flags, time, extra flags, system."""


class Members:
    """The offsets of members whose headers are, but for the time, those of the first.

    That 10 bytes of compressed data look so by chance happens once in some 10^13 bytes; who reads at an offset looks
    whether it is what was looked for.

    Attributes:
        starts: the offsets, in order.
    """

    def __init__(self) -> None:
        self.starts = array("Q")
        self._pattern: re.Pattern[bytes] | None = None
        self._held = b""
        self._at = 0

    def feed(self, data: bytes) -> None:
        """Look at the next stored bytes."""
        block = self._held + data
        before = self._at - len(self._held)
        self._at += len(data)
        if len(block) < _HEADER:
            self._held = block
            return
        if self._pattern is None:
            head = block[:_HEADER]
            is_gzip = head.startswith(b"\x1f\x8b\x08")
            result = re.escape(head[:4]) + b".{4}" + re.escape(head[8:]) if is_gzip else b"(?!)"  # which is nowhere
            self._pattern = re.compile(result, re.DOTALL)
        self.starts.extend(before + match.start() for match in self._pattern.finditer(block))
        self._held = block[1 - _HEADER :]


class _Digested(io.RawIOBase):
    """A stream with the number and the digest of the bytes that were read of it."""

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


class _End(Exception):
    """There are no more blocks."""


class _Ahead(io.RawIOBase):
    """Blocks of bytes that a thread fetches; its errors are raised where the bytes behind them would be read."""

    def __init__(self, blocks: Generator[bytes, None, None]) -> None:
        super().__init__()
        self._queue: queue.Queue[bytes | BaseException] = queue.Queue(QUEUED)
        self._block: bytes | BaseException = b""
        self._closed = threading.Event()
        self._thread = Thread(target=self._fetch, args=(blocks,), daemon=True)
        self._thread.start()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._block:
            self._block = self._queue.get()
        if isinstance(self._block, _End):
            return 0
        if isinstance(self._block, BaseException):
            raise self._block
        count = min(len(self._block), len(buffer))
        buffer[:count] = self._block[:count]
        self._block = self._block[count:]
        return count

    def _fetch(self, blocks: Generator[bytes, None, None]) -> None:
        held: list[bytes] = []
        try:
            for block in blocks:
                held.append(block)
                if sum(map(len, held)) >= BLOCK or self._queue.empty():
                    self._queue.put(b"".join(held))
                    held = []
                if self._closed.is_set():
                    return
            self._queue.put(b"".join(held))
            self._queue.put(_End())
        except BaseException as error:
            self._queue.put(b"".join(held))
            self._queue.put(error)
        finally:
            blocks.close()

    def close(self) -> None:
        self._closed.set()
        with suppress(queue.Empty):
            while True:
                self._queue.get_nowait()  # the thread may be waiting for room
        self._thread.join(CLOSING)
        super().close()
