"""The inputs of a shard, or of several shards: read one behind the other, their documents as rows.

    a.txt ──bytes──> reader ──drafts──> rows ──┐
    b.txt ──bytes──> reader ──drafts──> rows ──┴──> the shard of a pack

Small objects of a bucket are fetched some at a time, because the answer of each takes as long as that of a large one.
"""

import bz2
import io
import lzma
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import IO, NamedTuple, cast

import xxhash

from toolkit.errors import DataError, amount
from toolkit.ingest import ingest_config, plan, reader
from toolkit.ingest.input_rows.input_bytes import Blocks, DownloadCache, InputBytes, Members
from toolkit.ingest.input_rows.rows import InputRows, OutputRow
from toolkit.records.ingested import InputOfPack
from toolkit.records.left_out import LeftOutOutput
from toolkit.records.takedown import takedown_of
from toolkit.storage import Stat, compression as compressions, paths, threads

AHEAD_BYTES = 1 << 24
"""Of inputs that are fetched while another one is read, at most."""


def _selected(file: plan.InputFile, rate: float | None) -> InputBytes:
    """Return the records of a pack; what fetches them is imported where there is one."""
    from toolkit.ingest.index.ranges import RecordBytes

    return RecordBytes(file, rate)


class Sources:
    """The inputs of a piece of work.

    Args:
        work: the inputs.
        found: the versions that they should be.
        keep: Cache of the download from the web.
        rejects: Output for bad items.
        left_out: notes the items that become no document.

    Attributes:
        counts: Counts by reason, of all inputs.
        read: the inputs that have been read, whole.
        salvaged: Remarks on damaged inputs, a sentence for each.
    """

    def __init__(
        self,
        work: plan.InputToIngest,
        stats: Sequence[Stat],
        keep: DownloadCache | None,
        rejects: reader.Rejects | None,
        left_out: LeftOutOutput | None = None,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.read: list[InputOfPack] = []
        self.salvaged: list[str] = []
        self._work = work
        self._common = work.entry.settings()
        self._reader = work.entry.reader()
        self._rejects = rejects
        self._left_out = left_out
        self._stats = stats
        self._current = 0
        self._bytes = [
            _selected(file, self._common.rate) if file.selected else InputBytes(file.path, now, keep)
            for file, now in zip(work.files, stats, strict=True)
        ]

    def stored(self) -> int:
        """Return how many stored bytes have been read."""
        before = sum(stat.size for stat in self._stats[: self._current])
        return before + self._bytes[self._current].stored()

    @property
    def current(self) -> InputBytes:
        """Return the current input."""
        return self._bytes[self._current]

    def rows(self) -> Generator[OutputRow, None, None]:
        """Yield the documents of all inputs, in order.

        Raises:
            DataError: if an input is damaged. The others are read to their ends then, so that all damage is told.
        """
        faults: list[DataError] = []
        for number, (file, opened) in enumerate(zip(self._work.files, self._ahead(), strict=True)):
            self._current = number
            try:
                with opened:
                    yield from self._of(file, opened, faults)
            except DataError as error:
                faults.append(error)
        if not faults:
            faults = self._changed()
        if len(self._bytes) == 1 and faults:
            raise faults[0]
        if faults:
            wait = f"the other inputs of {self._work.name} wait until that is corrected: they share a shard"
            raise DataError("\n".join([*map(str, faults), wait]))

    def _of(self, file: plan.InputFile, opened: InputBytes, faults: Sequence[DataError]) -> Iterator[OutputRow]:
        """Yield the documents of an input; none behind a fault."""
        damage = None if file.selected else find_damage(self._work.entry, opened.open)
        open_ = opened.open if damage is None else partial(open_undamaged, opened.open, damage)
        source = reader.Input(file.path, self._common.source, self._work.max_document_bytes, self._rejects, open_)
        if file.selected:
            opened.source = source
        elif self._reader.RECORDS:
            opened.members = Members()
        if self._left_out is not None:
            source.left_out = self._left_out
            self._left_out.begin(file.key)
        rows = 0
        takedown = takedown_of(self._work.dataset)
        documents = InputRows(source, self._common, self._reader, file.relative, self._work.types, takedown)
        for row in documents.rows():
            rows += 1
            if not faults:
                yield row
        if damage:
            source.counts["salvaged"] += 1
            fault = "its end, too early," if damage.truncated else "damage"
            self.salvaged.append(
                f"{file.path}: expected a sound {damage.compression} file, got {fault} at byte {damage.byte:,}; kept "
                f"the {amount(rows, 'document')} before it; restore the file and run again"
            )
        stat = self._stats[self._current]
        content = opened.content()
        self.counts.update(source.counts)
        self.read.append(
            InputOfPack(input=file.path, key=file.key, size=stat.size, stamp=stat.stamp, content=content, rows=rows)
        )

    def _ahead(self) -> Iterator[InputBytes]:
        """Yield the inputs; the next ones are being fetched, if they come from afar."""
        fetched = pending_bytes = 0
        with ExitStack() as stack:
            for number, current in enumerate(self._bytes):
                while fetched < len(self._bytes) and fetched < number + threads.REQUESTS:
                    size = self._stats[fetched].size
                    if fetched > number and pending_bytes + size > AHEAD_BYTES:
                        break
                    stack.callback(self._bytes[fetched].close)
                    self._bytes[fetched].fetch()
                    pending_bytes += size
                    fetched += 1
                yield current
                pending_bytes -= self._stats[number].size

    def _changed(self) -> list[DataError]:
        """Return an error for each input changed during reading."""
        looked = [
            (file, was)
            for file, was, input_bytes in zip(self._work.files, self._stats, self._bytes, strict=True)
            if input_bytes.can_change
        ]
        now = paths.stat_each([file.path for file, _ in looked])
        message = (
            "expected a file that does not change while it is read, got one that has changed; run "
            "again when no program writes to it"
        )
        return [
            DataError(message, path=file.path) for (file, was), stat in zip(looked, now, strict=True) if stat != was
        ]

    def content(self) -> str:
        """Return the digest of the stored bytes: xxh3-128 (hex); of a pack, of the inputs' keys and digests."""
        if not self._work.is_pack:
            return self.read[0].content
        digest = xxhash.xxh3_128()
        for input_ in self.read:
            digest.update(f"{input_.key}\0{input_.content}\n".encode())
        return digest.hexdigest()

    def discard(self) -> None:
        """Delete cached downloads."""
        for input_bytes in self._bytes:
            input_bytes.discard()


# --- the sound beginning of a damaged file ----------------------------------------------------------------------------

_PIECE = 1 << 20
"""Uncompressed bytes at a time."""

_COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    **compressions.COMPRESSORS,
    "gzip": compressions.compress_fast,
    "bz2": bz2.compress,
    "xz": partial(lzma.compress, preset=0),
}


class Damage(NamedTuple):
    """The damage of a file.

    Attributes:
        compression: Compression of the file.
        byte: Byte of the file as stored, at which it was noticed.
        whole: uncompressed bytes before it that can be kept.
        truncated: True if the file ends too early.
    """

    compression: str
    byte: int
    whole: int
    truncated: bool


def find_damage(entry: ingest_config.Entry, open_: Callable[[], IO[bytes]]) -> Damage | None:
    """Return the damage of a compressed file with a sound part; None of a sound one, and of any other.

    Args:
        entry: Entry of the configuration; says whether anything is kept.
        open_: opens the file as stored; is called twice if there is damage.
    """
    if entry.settings().on_error != "salvage":
        return None
    lines = entry.reader().LINES
    damage = _damage(open_, lines)
    if damage and not damage.truncated:
        damage = _damage(open_, lines, damage.byte - compressions.CHUNK)
    return damage if damage and damage.whole else None


def _damage(open_: Callable[[], IO[bytes]], lines: bool, *steps_from: int) -> Damage | None:
    with compressions.Stored(open_()) as stored:
        name = compressions.compression_in(stored.head(compressions.MAGIC_BYTES))
        if not name:
            return None
        frames, line_ends = compressions.Frames(stored, name, *steps_from), 0
        try:
            while piece := frames.read(_PIECE):
                if at := piece.rfind(b"\n") + 1:
                    line_ends = frames.size - len(piece) + at
        except EOFError:
            return Damage(name, stored.at, max(frames.whole, line_ends if lines else 0), truncated=True)
        except compressions.Damaged:
            return Damage(name, stored.at - 1, frames.whole, truncated=False)
    return None


def open_undamaged(open_: Callable[[], IO[bytes]], damage: Damage) -> IO[bytes]:
    """Return the sound part of a damaged file, in the same compression."""
    return cast("IO[bytes]", io.BufferedReader(Blocks(_recompressed(open_, damage))))


def _recompressed(open_: Callable[[], IO[bytes]], damage: Damage) -> Iterator[bytes]:
    remaining = damage.whole
    with compressions.Stored(open_()) as stored:
        frames = compressions.Frames(stored, damage.compression)
        while remaining:
            piece = frames.read(min(remaining, _PIECE))
            remaining -= len(piece)
            yield _COMPRESSORS[damage.compression](piece)
