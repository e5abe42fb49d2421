"""A record log: records of many shards in few files. docs/records.md tells why, and what a kill costs.

``FOLDER/records.jsonl.gz``        the newest entry of each key, sorted
``FOLDER/segments/<id>.jsonl.gz``  what one worker wrote for a group of shards, once and whole

An entry is a record, or the tombstone of one, by kind and key. Each has a number, and the highest number holds, in
whatever order files are read and however often: so segments can be merged, read twice, or written by several at once.
"""

import functools
import heapq
import io
import uuid
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import chain, dropwhile, groupby, takewhile
from operator import attrgetter
from typing import Any, TypeVar, cast

import msgspec
import xxhash
from msgspec.structs import replace

from toolkit.errors import DataError, Unreadable, in_words
from toolkit.storage import store_of
from toolkit.storage.compression import compress_fast, compressor_for, decompress
from toolkit.storage.json_files import decode, warn_damage
from toolkit.storage.outputs import OutputBatch, RowOutput, Transaction
from toolkit.storage.paths import drop_listing, join, list_files, remove
from toolkit.storage.reading import Lines
from toolkit.storage.threads import for_each

VERSION = 1
"""Of the files of a record log."""

MAX_LINE = 1 << 28
"""Bytes of an entry, at most."""

BLOCK = 1 << 18
"""Bytes of entries that are packed together."""

UNPACKED = 32
"""Blocks that are kept unpacked: shards are asked for in their order, those of several kinds at a time."""

LOOSE = 50_000
"""Entries that are kept as they are, at most."""

RecordKey = tuple[str, str]
"""Subject of an entry: a kind of record, and a key within that kind."""


class LogEntry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A record, or the tombstone of one.

    Attributes:
        kind, key: what it is about.
        n: its number: of two entries about the same, the higher one holds.
        record: JSON in one line; None for a tombstone.
    """

    kind: str
    key: str
    n: int
    record: bytes | None

    @property
    def place(self) -> RecordKey:
        return self.kind, self.key

    @property
    def rank(self) -> tuple[int, bool, bytes]:
        """Return the sort key of two entries about the same subject.

        Of two with one number, as two attempts at one task write them, a tombstone holds: work that is done twice is no
        loss, work that is believed wrongly is. Of two records either would do, for both are held against the data;
        everybody takes the same.
        """
        return self.n, self.record is None, self.record or b""


class _Header(msgspec.Struct, frozen=True):
    """The first line of a file.

    Attributes:
        version: Version of the file.
        entries: Entries that follow.
    """

    version: int
    entries: int


class _StoredEntry(msgspec.Struct, frozen=True, gc=False):
    """An entry as it stands in a file; `xxh3` is the xxh3-64 (hex) of all else."""

    kind: str
    key: str
    n: int
    record: msgspec.Raw
    xxh3: str


_ENCODER = msgspec.json.Encoder()
_HEADER = msgspec.json.Decoder(_Header)
_LINE, _LINES = msgspec.json.Decoder(_StoredEntry), msgspec.json.Decoder(list[_StoredEntry])
_PACKED = msgspec.msgpack.Decoder(list[LogEntry])
_BAD = (msgspec.DecodeError, UnicodeDecodeError)


def header(entries: int) -> bytes:
    """Return the first line of a file with so many entries."""
    return _ENCODER.encode(_Header(VERSION, entries))


def line_of(entry: LogEntry) -> bytes:
    """Return the line of an entry."""
    record = b"null" if entry.record is None else entry.record
    return _ENCODER.encode(_StoredEntry(entry.kind, entry.key, entry.n, msgspec.Raw(record), _digest(entry, record)))


def entry_of(line: bytes) -> LogEntry:
    """Return the entry of a line.

    Raises:
        msgspec.DecodeError: if it is none, or not as it was written.
    """
    return _checked(_LINE.decode(line))


def _entries_of(lines: list[bytes]) -> list[LogEntry] | None:
    """Return the entries of lines, decoded together; None unless each is as it was written."""
    try:
        results = [*map(_checked, _LINES.decode(b"[%b]" % b",".join(lines)))]
    except _BAD:
        return None
    return results if len(results) == len(lines) else None


def _checked(stored: _StoredEntry) -> LogEntry:
    record = bytes(stored.record)
    entry = LogEntry(stored.kind, stored.key, stored.n, None if record == b"null" else record)
    if _digest(entry, record) != stored.xxh3:
        raise msgspec.DecodeError(f"another digest than {stored.xxh3}")
    return entry


def _digest(entry: LogEntry, record: bytes) -> str:
    named = f"{entry.kind}\0{entry.key}\0{entry.n}\0".encode()
    return xxhash.xxh3_64_hexdigest(named + record)


class LogFile(msgspec.Struct):
    """The entries of a file, one after the other; those that are damaged are left out.

    Iterating raises Unreadable if another version of the toolkit wrote the file.

    Attributes:
        path: Path of the file.
        data: Bytes as stored.
        fault: Fault of the file after all entries are read; empty if it has none.
    """

    path: str
    data: bytes
    fault: str = ""

    def __iter__(self) -> Iterator[LogEntry]:
        count, declared = 0, -1
        try:
            with Lines(self.path, MAX_LINE, stored=io.BytesIO(self.data)) as lines:
                number = 1
                for block in lines.blocks():
                    if number == 1:
                        declared, number = self._declared(block.pop(0)), 2
                    entries = _entries_of(block) or self._decoded(block, number)
                    for entry in entries:
                        count += 1
                        yield entry
                    number = lines.number + 1
        except DataError as error:
            self.fault = self.fault or str(error)
        if count != declared and not self.fault:
            self._blame(f"expected {max(declared, 0):,} entries, got {count:,}")

    def _decoded(self, lines: list[bytes], first: int) -> Iterator[LogEntry]:
        """Yield the sound entries of lines, from a line number on; blame damaged ones."""
        for number, line in enumerate(lines, first):
            try:
                yield entry_of(line)
            except _BAD as error:
                self._blame(f"expected an entry as it was written, got: {error}", number)

    def _declared(self, line: bytes) -> int:
        """Return how many entries the file has, by its first line; -1 if that is damaged."""
        try:
            header = _HEADER.decode(line)
        except _BAD as error:
            self._blame(f"expected the header of a record log, got: {error}", 1)
            return -1
        if header.version != VERSION:
            raise Unreadable(
                f"expected records of version {VERSION}, got version {header.version}; use the version of the toolkit "
                "that wrote them, or a later one",
                path=self.path,
            )
        return header.entries

    def _blame(self, message: str, line: int | None = None) -> None:
        self.fault = self.fault or str(DataError(message, path=self.path, line=line))


# --- in memory --------------------------------------------------------------------------------------------------------

_PLACE = attrgetter("place")
_RANK = attrgetter("rank")


class NewestEntries:
    """The newest entry of each place. Several threads may ask it at a time.

    Args:
        merged: entries in order, each place once; one that is out of order is kept, too.
    """

    def __init__(self, merged: Iterable[LogEntry] = ()) -> None:
        self._loose: dict[RecordKey, LogEntry] = {}
        self._packed: list[_Packed] = []
        self._packed.append(_Packed(self._in_order(merged)))

    def add(self, entries: Iterable[LogEntry]) -> None:
        """Add entries, in any order."""
        for entry in entries:
            best = self._loose.get(entry.place)
            if best is None or best.rank < entry.rank:
                self._loose[entry.place] = entry
            if len(self._loose) >= LOOSE:
                self._packed.append(_Packed(self._sorted()))
                self._loose = {}

    def get(self, place: RecordKey) -> LogEntry | None:
        """Return the valid entry of a place; None if there is none."""
        result = self._loose.get(place)
        for packed in self._packed:
            entry = packed.get(place)
            if entry and (result is None or result.rank < entry.rank):
                result = entry
        return result

    def __iter__(self) -> Iterator[LogEntry]:
        """Yield all valid entries, sorted by place."""
        return self._from(("", ""))

    def of(self, kind: str) -> Iterator[LogEntry]:
        """Yield the valid entries of a kind, sorted by key."""
        behind = dropwhile(lambda entry: entry.kind < kind, self._from((kind, "")))
        return takewhile(lambda entry: entry.kind == kind, behind)

    def _from(self, place: RecordKey) -> Iterator[LogEntry]:
        """Yield the valid entries from a place on, or slightly before it."""
        if len(self._packed) == 1 and not self._loose:
            return self._packed[0].entries(place)
        all_ = heapq.merge(self._sorted(), *(packed.entries(place) for packed in self._packed), key=_PLACE)
        return (max(result, key=_RANK) for _, result in groupby(all_, _PLACE))

    def _sorted(self) -> list[LogEntry]:
        return sorted(self._loose.values(), key=_PLACE)

    def _in_order(self, entries: Iterable[LogEntry]) -> Iterator[LogEntry]:
        """Yield the entries in order; add the others."""
        last: RecordKey | None = None
        for entry in entries:
            place = entry.kind, entry.key  # the property takes twice as long
            if last is None or place > last:
                last = place
                yield entry
            else:
                self.add([entry])


class _Packed:
    """Entries in order, in compressed blocks."""

    def __init__(self, entries: Iterable[LogEntry]) -> None:
        self._firsts: list[RecordKey] = []
        self._blocks: list[bytes] = []
        self._unpack = functools.partial(_unpacked, self._blocks)
        self._recent = functools.lru_cache(UNPACKED)(self._unpack)
        pending: list[LogEntry] = []
        size = 0
        for entry in entries:
            pending.append(entry)
            size += len(entry.key) + len(entry.record or b"")
            if size >= BLOCK:
                self._keep(pending)
                pending, size = [], 0
        if pending:
            self._keep(pending)

    def get(self, place: RecordKey) -> LogEntry | None:
        block = bisect_right(self._firsts, place) - 1
        return self._recent(block).get(place) if block >= 0 else None

    def entries(self, place: RecordKey) -> Iterator[LogEntry]:
        """Yield the entries from the block of a place on."""
        first = max(bisect_right(self._firsts, place) - 1, 0)
        blocks = map(self._unpack, range(first, len(self._blocks)))
        return chain.from_iterable(unpacked.values() for unpacked in blocks)

    def _keep(self, entries: list[LogEntry]) -> None:
        self._firsts.append(entries[0].place)
        self._blocks.append(compress_fast(msgspec.msgpack.encode(entries)))


def _unpacked(blocks: list[bytes], number: int) -> dict[RecordKey, LogEntry]:
    """Return the entries of a block. No method, because a cache of one keeps its object until garbage is collected."""
    return {entry.place: entry for entry in _PACKED.decode(decompress(blocks[number], "gzip-fast"))}


T = TypeVar("T")

MERGED = "records"
SEGMENTS = "segments"
SUFFIX = ".jsonl.gz"
UNLIKE_DATA = ".records"
"""Suffix of the files of a record log that lies among external data, where a glob for data must not match them."""

AT_ONCE = 256
"""Segments that are in memory at a time."""

LOOKS = 100
"""Times that a record log is looked at which others merge meanwhile, each time again."""

REMEDY = "the toolkit ignores the damaged entries, and does the work that they record again"


class RecordLog:
    """The records of a dataset or output at one moment.

    Several threads may ask it; one thread writes. What others write meanwhile is seen by a new one.

    Attributes:
        damaged: files that are damaged, with what is wrong with each: of their entries, the sound ones count.

    Args:
        folder: Folder of the record log.
        suffix: Suffix of its files, which are compressed in any case.
        remedy: Next step after damage, for the warning.

    Raises:
        Unreadable: if it is not known what there is.
    """

    def __init__(self, folder: str, *, suffix: str = SUFFIX, remedy: str = REMEDY) -> None:
        self.folder = folder
        self._suffix = suffix
        self._remedy = remedy
        self._state, _, self.damaged = self._read()
        self._derived: dict[Hashable, Any] = {}

    # --- asking -------------------------------------------------------------------------------------------------------

    def get(self, kind: str, key: str) -> bytes | None:
        """Return a record as JSON; None if there is none."""
        entry = self._state.get((kind, key))
        return entry.record if entry else None

    def load(self, kind: str, key: str, type_: type[T]) -> T | None:
        """Return a record; None if there is none, or it is not one of this version: that is told, once."""
        return self.decoded(kind, key, self.get(kind, key), type_)

    def decoded(self, kind: str, key: str, record: bytes | None, type_: type[T]) -> T | None:
        """Return the value of a record, as `load`."""
        if record is None:
            return None
        try:
            return decode(record, type_)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            got = in_words(str(error))
            message = f"expected a record of this version of the toolkit for {kind} {key}, got: {got}; {self._remedy}"
            warn_damage(DataError(message, path=self.folder))
            return None

    def keys(self, kind: str) -> list[str]:
        """Return the keys of all records of a kind, sorted."""
        return [entry.key for entry in self._state.of(kind) if entry.record is not None]

    def items(self, kind: str) -> Iterator[tuple[str, bytes]]:
        """Yield the keys and records of a kind, sorted by key; records are JSON."""
        return ((entry.key, entry.record) for entry in self._state.of(kind) if entry.record is not None)

    def briefly(self, kind: str, type_: type[T]) -> Iterator[tuple[str, T]]:
        """Yield keys and records of a kind, sorted by key; damaged ones are left out.

        Args:
            kind: Kind of the records.
            type_: Type with some of their fields.
        """
        for key, record in self.items(kind):
            with suppress(*_BAD):
                yield key, decode(record, type_)

    def derived(self, key: Hashable, derive: Callable[[], T]) -> T:
        """Return a value derived from the records; it is derived once until others are written."""
        derived = self._derived  # another one as soon as records are written
        if key not in derived:
            derived.setdefault(key, derive())
        return cast("T", derived[key])

    # --- writing ------------------------------------------------------------------------------------------------------

    def forget(self, places: Iterable[RecordKey]) -> None:
        """Delete the records of these places durably, before their data is replaced.

        Nothing is written if there is none.
        """
        present = [entry for place in dict.fromkeys(places) if (entry := self._state.get(place)) and entry.record]
        self._write([LogEntry(entry.kind, entry.key, entry.n + 1, None) for entry in present])

    def save(self, records: Mapping[RecordKey, bytes | None], together: OutputBatch | None = None) -> None:
        """Make records durable, in one segment, when their data is durable.

        Args:
            records: JSON by place; None where there is to be no record.
            together: files with which the segment becomes durable; without them it is at once.
        """
        entries = []
        for place, record in sorted(records.items()):
            newest = self._state.get(place)
            line = record and msgspec.json.format(record, indent=-1)
            entries.append(LogEntry(*place, newest.n + 1 if newest else 1, line))
        self._write(entries, together)

    def _write(self, entries: list[LogEntry], together: OutputBatch | None = None) -> None:
        if entries:
            path = join(self.folder, SEGMENTS, uuid.uuid4().hex + self._suffix)
            _write_entries(path, len(entries), entries, together=together)
            self._state.add(entries)
            self._derived = {}

    def is_apart(self, *, forgive: bool = False) -> bool:
        """Return True if `merge` has work to do; this takes one listing."""
        return forgive if self.damaged else bool(self._segments())

    def merge(self, *, forgive: bool = False) -> None:
        """Merge all segments into one file.

        The merged file appears first, then what it has taken up is deleted: who reads meanwhile finds the same in
        both. Only one process may do this at a time (see `toolkit.stages.tasks.merge`); others may read and write.

        Args:
            forgive: True to merge damaged files, too; only their sound entries survive. Use it after all that the lost
                entries may have been about was checked. Otherwise all files stay, so that each command reports the
                damage, and a file can be restored from a copy.
        """
        state, segments, damaged = self._read()
        if damaged and not forgive:
            self.damaged = damaged
            return
        if segments or damaged:
            _write_entries(self._merged, sum(1 for _ in state), state)
            for_each(remove, segments)
        self._state, self.damaged, self._derived = state, {}, {}

    # --- reading ------------------------------------------------------------------------------------------------------

    def _read(self) -> tuple[NewestEntries, list[str], dict[str, str]]:
        """Return the entries, the segments' paths, and the faults of damaged files.

        Segments that are gone when they are read have been merged meanwhile: what was read may be older than the merge,
        so all is looked at again, and listed anew, also in a block of `listing_cache`.
        """
        for _ in range(LOOKS):
            try:
                return self._read_once()
            except FileNotFoundError:
                drop_listing(self.folder)
        raise Unreadable(f"expected records that can be read, they changed {LOOKS} times meanwhile", path=self.folder)

    def _read_once(self) -> tuple[NewestEntries, list[str], dict[str, str]]:
        """Do so, once. What a merge may delete is listed before the merged file is read, which then has it."""
        segments, merged = self._segments(), list[LogFile]()
        with suppress(FileNotFoundError):  # before the first merge
            merged.append(_contents(self._merged))
        state, faults = (
            NewestEntries(chain.from_iterable(merged)),
            {contents.path: contents.fault for contents in merged},
        )
        for first in range(0, len(segments), AT_ONCE):
            for contents in for_each(_contents, segments[first : first + AT_ONCE]):
                state.add(contents)
                faults[contents.path] = contents.fault
        damaged = {path: fault for path, fault in faults.items() if fault}
        for fault in damaged.values():
            warn_damage(f"{fault}; {self._remedy}")
        return state, segments, damaged

    @property
    def _merged(self) -> str:
        return join(self.folder, MERGED + self._suffix)

    def _segments(self) -> list[str]:
        folder = join(self.folder, SEGMENTS)
        return [join(folder, name) for name in list_files(folder) if name.endswith(self._suffix)]


def _write_entries(path: str, count: int, entries: Iterable[LogEntry], together: OutputBatch | None = None) -> None:
    with RowOutput(path, compress=compressor_for(SUFFIX), together=together) as output:
        output.write_row(header(count))
        output.write_rows(map(line_of, entries))


def _contents(path: str) -> LogFile:
    return LogFile(path, store_of(path).read(path))


class Group(Transaction):
    """Files and records of some shards, not visible yet. A context manager: its end makes them durable.

    Attributes:
        files: Files that belong to it, for `toolkit.storage.outputs.Output`.

    Args:
        log: Log that knows the places of the shards.
    """

    def __init__(self, log: RecordLog) -> None:
        self.files = OutputBatch()
        self._log = log
        self._then: list[Callable[[], None]] = []
        self._changes: dict[str, _Changes] = {log.folder: _Changes(log)}

    def forget(self, *places: RecordKey, log: RecordLog | None = None) -> None:
        """Note places of data to be replaced. They are in the group's record log or another one."""
        self._of(log).forgotten.extend(places)

    def save(self, place: RecordKey, record: bytes, log: RecordLog | None = None) -> None:
        """Note a record of durable data, or of the group's; in its record log or another one."""
        self._of(log).records[place] = record

    def _of(self, log: RecordLog | None) -> "_Changes":
        log = log or self._log
        return self._changes.setdefault(log.folder, _Changes(log))

    def then(self, function: Callable[[], None]) -> None:
        """Add a function to call after all is durable."""
        self._then.append(function)

    @contextmanager
    def part(self) -> Iterator[None]:
        """Discard the additions of the ``with`` block if it raises. So a failed shard leaves nothing."""
        files, then = len(self.files), len(self._then)
        changes = {
            folder: replace(change, forgotten=[*change.forgotten], records={**change.records})
            for folder, change in self._changes.items()
        }
        try:
            yield
        except BaseException:
            self.files.abort(files)
            self._changes = changes
            del self._then[then:]
            raise

    def commit(self) -> None:
        """Make all durable."""
        changes, self._changes = self._changes, {self._log.folder: _Changes(self._log)}
        for change in changes.values():
            change.log.forget(change.forgotten)
        self.files.commit()
        with OutputBatch() as segments:
            for change in changes.values():
                change.log.save(change.records, segments)
        functions, self._then = self._then, []
        for function in functions:
            function()

    def abort(self) -> None:
        """Delete the pending files."""
        self.files.abort()


class _Changes(msgspec.Struct):
    """The entries of a group in a record log: places without a record, then records."""

    log: RecordLog
    forgotten: list[RecordKey] = []
    records: dict[RecordKey, bytes] = {}
