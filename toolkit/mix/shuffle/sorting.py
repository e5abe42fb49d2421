"""The second stage of a shuffled output: what a part has of all runs, sorted out of core.

Each member is read once. Frames that do not fit into memory are divided by ranges of hashes into a temporary file, and
each range is sorted by itself; a range that does not fit, either, is divided again.
"""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import IO, Self

from toolkit.mix.plan import JOINED, PartPlan
from toolkit.mix.shuffle.frames import HEAD, frames_in
from toolkit.storage.compression import decompress

RANGE = 32 << 20
"""Bytes of frames that are held before they go into a temporary file, and that a range has, about."""

LARGER = 1.25
"""Times `RANGE` that is sorted in memory: ranges of equal width differ in size."""

MOST = 256
"""Ranges at a time: what is held is written in as many pieces."""

Read = Callable[[str, int, int], bytes]
"""Gives the stored bytes of members: of the intermediate of a shard, by its key, from an offset, so many."""


def sorted_chunks(part: PartPlan, read: Read, compression: str, folder: str | None) -> Iterator[bytes]:
    """Yield the pieces of a part in the order of their hashes, about a MiB at a time.

    Pieces with one hash stay in the order of their shards and rows. Memory: `RANGE` of frames, and a range that is
    sorted. Disk: as much as the part has, if it does not fit into memory, in files without names.

    Args:
        part: of a shuffled output.
        read: gives members.
        compression: of these.
        folder: of temporary files; None for the system's.
    """
    held: list[bytes] = []
    size = 0
    blocks = (decompress(read(*run), compression) for run in part.runs)
    for piece in _in_order(blocks, part.low, part.high, part.size + part.documents * HEAD, folder):
        if held and size + len(piece) > JOINED:
            yield b"".join(held)
            held, size = [], 0
        held.append(piece)
        size += len(piece)
    if held:
        yield b"".join(held)


def fits(size: int) -> bool:
    """Return whether so many bytes of a part are sorted in memory; else they lie in a temporary file for a while."""
    return size <= LARGER * RANGE


def _in_order(blocks: Iterable[bytes], low: int, high: int, size: int, folder: str | None) -> Iterator[bytes]:
    """Yield the pieces with hashes from `low` to `high`, sorted.

    Args:
        blocks: of frames, in the order of shards and rows.
        low: the least of them; others are left out.
        high: the greatest of them.
        size: of the frames that are left.
        folder: of temporary files.
    """
    if fits(size) or low == high:
        found = [each for block in blocks for each in frames_in(block) if low <= each[0] <= high]
        found.sort(key=lambda each: each[0])
        yield from (frame[HEAD:] for _, frame in found)
        return
    with _Ranges(low, high, min(-(-size // RANGE), MOST), folder) as ranges:
        for block in blocks:
            ranges.add(block)
        for of_range in ranges.each():
            yield from _in_order(*of_range, folder)


class _Ranges:
    """Frames by range of hashes, in a temporary file. A context manager.

    Args:
        low: the least hash of all ranges, which have equal widths.
        high: the greatest.
        number: of ranges.
        folder: of the file.
    """

    def __init__(self, low: int, high: int, number: int, folder: str | None) -> None:
        self._low, self._high, self._folder = low, high, folder
        self._width = -(-(high - low + 1) // number)
        self._frames: list[list[bytes]] = [[] for _ in range(number)]
        self._places: list[list[tuple[int, int]]] = [[] for _ in range(number)]
        self._held = self._at = 0
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._file: IO[bytes] = self._stack.enter_context(tempfile.TemporaryFile(dir=self._folder))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, block: bytes) -> None:
        """Add the frames of a block; leave out those of other hashes."""
        for hash_, frame in frames_in(block):
            if self._low <= hash_ <= self._high:
                self._frames[(hash_ - self._low) // self._width].append(frame)
                self._held += len(frame)
        if self._held > RANGE:
            self._write()

    def _write(self) -> None:
        for frames, places in zip(self._frames, self._places, strict=True):
            if frames:
                size = self._file.write(b"".join(frames))
                places.append((self._at, size))
                self._at += size
                frames.clear()
        self._held = 0

    def each(self) -> Iterator[tuple[Iterator[bytes], int, int, int]]:
        """Yield the frames of each range, the lowest hashes first: blocks, least and greatest hash, bytes."""
        self._write()
        for number, places in enumerate(self._places):
            low = self._low + number * self._width
            blocks = (self._read(*place) for place in places)
            yield blocks, low, min(low + self._width - 1, self._high), sum(size for _, size in places)

    def _read(self, offset: int, size: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(size)
