"""Stage 2 of a mix: parts are put together from members of the intermediates.

Small ones in groups: a part of a language each is a hundred files, which one disk syncs at the price of one.

The second stage of a shuffled output: what a part has of all runs, sorted out of core.

Each member is read once. Frames that do not fit into memory are divided by ranges of hashes into a temporary file, and
each range is sorted by itself; a range that does not fit, either, is divided again.
"""

import hashlib
import io
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from typing import IO, Any, cast

import msgspec
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.data import line_index, record_logs
from toolkit.errors import DataError, ToolkitError
from toolkit.exchange.checksummed import SealedOutput, read_sealed
from toolkit.execution.executors import Report
from toolkit.mix.intermediates import is_draft, stage_path
from toolkit.mix.plan import JOINED, PartPlan, grouped
from toolkit.mix.settings import MixSettings
from toolkit.mix.shuffle import HEAD, frames_in
from toolkit.storage import Pieces, store_of
from toolkit.storage.compression import COMPRESSORS, decompress
from toolkit.storage.outputs import Output
from toolkit.storage.paths import below, join, stat, work_folder
from toolkit.storage.record_log import Group, RecordLog
from toolkit.storage.stores.local.scratch import owner

RANGE = 32 << 20
"""Bytes of frames that are held before they go into a temporary file, and that a range has, about."""

LARGER = 1.25
"""Times `RANGE` that is sorted in memory: ranges of equal width differ in size."""

MOST = 256
"""Ranges at a time: what is held is written in as many pieces."""

Read = Callable[[str, int, int], bytes]
"""Gives the stored bytes of members: of the intermediate of a shard, by its key, from an offset, so many."""


def sorted_chunks(part: PartPlan, read: Read, compression: str, folder: str | None) -> Iterator[bytes]:
    """Yield the pieces of a part in the order of their hashes. A chunk has about a MiB.

    Pieces with one hash stay in the order of their shards and rows. Memory: `RANGE` of frames, and a range that is
    sorted. Disk: as much as the part has, if it does not fit into memory, in files without names.

    Args:
        part: Part of a shuffled output.
        read: Function that returns members.
        compression: Compression of these.
        folder: Folder of temporary files; None for the system's.
    """
    blocks = (decompress(read(*run), compression) for run in part.runs)
    pieces = _in_order(blocks, part.low, part.high, part.size + part.documents * HEAD, folder)
    yield from map(b"".join, grouped(pieces, len, JOINED))


def fits(size: int) -> bool:
    """Return True if a part of this size is sorted in memory. A larger one goes to a temporary file."""
    return size <= LARGER * RANGE


def _in_order(blocks: Iterable[bytes], low: int, high: int, size: int, folder: str | None) -> Iterator[bytes]:
    """Yield the pieces with hashes from `low` to `high`, sorted.

    Args:
        blocks: Blocks of frames, in the order of shards and rows.
        low: Least hash; others are left out.
        high: Greatest hash.
        size: Bytes of the frames between `low` and `high`.
        folder: Folder of temporary files.
    """
    if fits(size) or low == high:
        results = [frame for block in blocks for frame in frames_in(block) if low <= frame[0] <= high]
        results.sort(key=lambda item: item[0])
        yield from (frame[HEAD:] for _, frame in results)
        return
    with tempfile.TemporaryFile(dir=folder) as file:
        ranges = _FrameRanges(file, low, high, min(-(-size // RANGE), MOST))
        for block in blocks:
            ranges.add(block)
        for of_range in ranges.by_range():
            yield from _in_order(*of_range, folder)


class _FrameRanges:
    """Frames by range of hashes, in a temporary file.

    Args:
        file: Temporary file.
        low: Least hash of all ranges, which have equal widths.
        high: Greatest hash.
        number: Number of ranges.
    """

    def __init__(self, file: IO[bytes], low: int, high: int, number: int) -> None:
        self._file, self._low, self._high = file, low, high
        self._width = -(-(high - low + 1) // number)
        self._frames: list[list[bytes]] = [[] for _ in range(number)]
        self._places: list[list[tuple[int, int]]] = [[] for _ in range(number)]
        self._size = self._at = 0

    def add(self, block: bytes) -> None:
        """Add the frames of a block; leave out those of other hashes."""
        for hash_, frame in frames_in(block):
            if self._low <= hash_ <= self._high:
                self._frames[(hash_ - self._low) // self._width].append(frame)
                self._size += len(frame)
        if self._size > RANGE:
            self._write()

    def _write(self) -> None:
        for frames, places in zip(self._frames, self._places, strict=True):
            if frames:
                size = self._file.write(b"".join(frames))
                places.append((self._at, size))
                self._at += size
                frames.clear()
        self._size = 0

    def by_range(self) -> Iterator[tuple[Iterator[bytes], int, int, int]]:
        """Yield the frames of each range, the lowest hashes first: blocks, least and greatest hash, bytes."""
        self._write()
        for number, places in enumerate(self._places):
            low = self._low + number * self._width
            blocks = (self._read(*place) for place in places)
            yield blocks, low, min(low + self._width - 1, self._high), sum(size for _, size in places)

    def _read(self, offset: int, size: int) -> bytes:
        self._file.seek(offset)
        return self._file.read(size)


GROUP = 32 << 20
"""Stored bytes of parts that become durable together, at most; a larger part does so alone."""

LEAST = 4 << 20
"""Stored bytes of a group, where there are enough parts: processes wait for a disk longer than for one another."""

RECORD_LOG = "record-log"
"""Folder of the records of parts, beside these; no part has a name with a dot."""


class PartsToWrite(ConfigStruct):
    """Parts to assemble, durable together.

    Attributes:
        settings: Settings of the mix.
        digest: Digest of the plan that they belong to.
        name: Path of the first part, and so the name of the group.
        stored: Bytes of their members, as they are stored in the intermediates.
        plan: Path of the file of the plan.
        offset, size: Place of the parts in it.
    """

    settings: MixSettings
    digest: str
    name: str
    stored: int
    plan: str
    offset: int
    size: int

    @property
    def parts(self) -> list[PartPlan]:
        """Return the parts."""
        return msgspec.msgpack.decode(read_sealed(self.plan, self.offset, self.size), type=list[PartPlan])

    def record(self, part: PartPlan) -> "PartRecord | None":
        """Return the record of a part."""
        return _records(self).load(_KIND, part.path, PartRecord)


_KIND = "part"


def in_groups(parts: Iterable[PartPlan], stored: int, processes: int) -> Iterator[list[PartPlan]]:
    """Yield parts in groups of consecutive parts.

    Args:
        parts: Parts, in order.
        stored: Bytes of the members of all, about.
        processes: Number of processes that the groups are for.
    """
    return grouped(parts, lambda part: part.stored, min(max(stored // (2 * processes), LEAST), GROUP))


def save_plan(settings: MixSettings, digest: str, groups: Iterable[list[PartPlan]]) -> list[PartsToWrite]:
    """Write the plan, group by group; return tasks."""
    result, path = [], f"{_staged(settings.output.path, digest)}-{owner()}.plan"
    with SealedOutput(path) as output:
        for parts in groups:
            data, stored = msgspec.msgpack.encode(parts), sum(part.stored for part in parts)
            place = output.put(data), len(data)
            result.append(PartsToWrite(settings, digest, parts[0].path, stored, path, *place))
    return result


class StoredFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a part; its path is below the output folder."""

    path: str
    size: int
    sha256: str


class PartRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A complete part, not yet published.

    Attributes:
        path: Path below the output folder.
        size, sha256: Size and sha256 of the file.
        content_size, content_sha256: Size and sha256 of its uncompressed bytes; of a format that does not concatenate,
            of the encoded documents that the file was made of, which are the same with every version of what made it.
        beside: Files that belong to it, an index, say.
    """

    label: str
    path: str
    documents: int
    size: int
    sha256: str
    content_size: int
    content_sha256: str
    beside: list[StoredFile] = []

    @property
    def files(self) -> list[StoredFile]:
        """Return the file of the part, and those beside it."""
        return [StoredFile(path=self.path, size=self.size, sha256=self.sha256), *self.beside]


def staged_path(output: str, digest: str, path: str) -> str:
    """Return the path of a part before its publication. All are in one folder, which is synced once."""
    return join(_staged(output, digest), xxhash.xxh3_128_hexdigest(path.encode()))


def _staged(output: str, digest: str) -> str:
    return join(work_folder(output), "parts", digest)


def _records(work: PartsToWrite) -> RecordLog:
    output = work.settings.output.path
    return record_logs.at(work_folder(output), join(_staged(output, work.digest), RECORD_LOG))


def assemble_parts(work: PartsToWrite, report: Report) -> list[PartRecord]:
    """Assemble parts, unless they are complete, and return their records.

    Raises:
        DataError: if an intermediate is not what its index says; the other parts are there.
    """
    part_records: list[PartRecord] = []
    broken: list[ToolkitError] = []
    with Group(_records(work)) as group, closing(_Intermediates(work)) as intermediates:
        for part in work.parts:
            try:
                with group.part():
                    part_records.append(_assemble(work, part, group, intermediates, report))
            except ToolkitError as error:
                broken.append(error)
    if len(broken) > 1:
        raise DataError("\n".join(map(str, broken)))
    if broken:
        raise broken[0]
    return part_records


def _assemble(
    work: PartsToWrite, part: PartPlan, group: Group, intermediates: "_Intermediates", report: Report
) -> PartRecord:
    output, settings = work.settings.output.path, work.settings
    record_before = work.record(part)
    if record_before and all(
        (result := stat(staged_path(output, work.digest, f.path))) and result.size == f.size
        for f in record_before.files
    ):
        report(record_before.documents, 0)
        return record_before
    group.forget((_KIND, part.path))
    compression = settings.compression(part.label)
    plain = compression == "none" and settings.concatenates(part.label)  # the file is its content
    content = _Content(compression, report)
    paths = [part.path, *settings.beside(part.label, part.path)]
    with ExitStack() as stack:
        out, *beside = [
            stack.enter_context(Output(staged_path(output, work.digest, path), group.files, digest=not plain or i > 0))
            for i, path in enumerate(paths)
        ]
        lines = line_index.LineLengths()
        concatenates, shuffles = settings.concatenates(part.label), settings.shuffles(part.label)
        pieces = ([intermediates.read(*member) for member in piece.members] for piece in part.pieces)
        chunks = map(content.of, pieces)
        staged = staged_path(output, work.digest, part.path)
        folder = os.path.dirname(staged) if store_of(staged).is_local else None
        if shuffles:
            compressed = settings.staged(part.label)
            chunks = map(content.add, sorted_chunks(part, intermediates.reporting(report), compressed, folder))
        if not concatenates:
            sinks = [cast("IO[bytes]", _Sink(item, folder)) for item in (out, *beside)]
            settings.writer().assemble_files(chunks, sinks)
        else:
            stored_chunks = ((stored, content.of(stored)) for stored in pieces)
            none: list[bytes] = []
            for stored, chunk in ((none, chunk) for chunk in chunks) if shuffles else stored_chunks:
                is_copied = len(stored) == 1 and not is_draft(compression, len(chunk))
                out.write(stored[0] if is_copied else COMPRESSORS[compression](chunk))
                if beside:
                    lines.add(chunk)
        for index in beside if concatenates else ():
            for data in line_index.pickled_pairs(lines.pairs()):
                index.write(data)
        if content.size != part.size:
            published = below(output, part.path)
            raise DataError(f"expected {part.size} bytes as planned, got {content.size}", path=published)
    record = PartRecord(
        label=part.label,
        path=part.path,
        documents=part.documents,
        size=out.stat.size,
        sha256=content.sha256.hexdigest() if plain else out.sha256,
        content_size=content.size,
        content_sha256=content.sha256.hexdigest(),
        beside=[
            StoredFile(path=name, size=item.stat.size, sha256=item.sha256)
            for name, item in zip(paths[1:], beside, strict=True)
        ],
    )
    group.save((_KIND, part.path), msgspec.json.encode(record))
    report(part.documents, 0)
    return record


class _Content:
    """The uncompressed bytes of a part, as they come by.

    Attributes:
        size, sha256: Size and sha256 of the bytes so far.
    """

    def __init__(self, compression: str, report: Report) -> None:
        self.size = 0
        self.sha256 = hashlib.sha256()
        self._compression = compression
        self._report = report

    def of(self, stored: list[bytes]) -> bytes:
        """Return the uncompressed bytes of the next members."""
        joined = self.add(b"".join([decompress(data, self._compression) for data in stored]))
        self._report(0, sum(map(len, stored)))
        return joined

    def add(self, data: bytes) -> bytes:
        """Return the next bytes, as they are."""
        self.sha256.update(data)
        self.size += len(data)
        return data


class _Sink(io.RawIOBase):
    """An output as a file, for libraries.

    Attributes:
        folder: Folder for temporary files; None if the output is not on a disk.
    """

    def __init__(self, out: Output, folder: str | None) -> None:
        super().__init__()
        self._out = out
        self.folder = folder

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._out.size

    def write(self, data: Any) -> int:
        self._out.write(data)
        return len(data)


class _Intermediates:
    """Open intermediates, one at a time: members come sorted by shard."""

    def __init__(self, work: PartsToWrite) -> None:
        self._output = work.settings.output.path
        self._digest = work.settings.stage_digest()
        self._shard: str | None = None
        self._file: Pieces | None = None

    def close(self) -> None:
        """Close the open intermediate."""
        if self._file:
            self._file.close()

    def reporting(self, report: Report) -> Callable[[str, int, int], bytes]:
        """Return `read` with a report of the bytes read."""

        def read(shard: str, offset: int, length: int) -> bytes:
            data = self.read(shard, offset, length)
            report(0, length)
            return data

        return read

    def read(self, shard: str, offset: int, length: int) -> bytes:
        """Return the stored bytes of a member."""
        path = stage_path(self._output, self._digest, shard)
        if shard != self._shard:
            self.close()
            self._shard, self._file = shard, store_of(path).pieces(path)
        assert self._file
        data = self._file.read(offset, length)
        if len(data) != length:
            raise DataError(f"expected {length} bytes at {offset}, got {len(data)}", path=path)
        return data
