"""Entries of a record log: the lines that they are in a file, and `State`, what there is of them in memory.

Those of 100,000 shards are some hundred MB of JSON, and a tenth of that packed. The merged file is sorted. So its
entries are kept as they come, in compressed blocks of which only the first place is known; one is unpacked when an
entry of it is asked for. Those of segments are kept as they are, and packed, too, when they are many.
"""

import functools
import heapq
import io
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, dropwhile, groupby, takewhile
from operator import attrgetter

import msgspec
import xxhash

from toolkit.errors import DataError, Unreadable
from toolkit.storage.compression import compress_fast, decompress
from toolkit.storage.reading import Lines

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

Place = tuple[str, str]
"""Subject of an entry: a kind of record, and a key within that kind."""


class Entry(msgspec.Struct, frozen=True):
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
    def place(self) -> Place:
        return self.kind, self.key

    @property
    def rank(self) -> tuple[int, bool, bytes]:
        """Return what two entries about the same are compared by.

        Of two with one number, as two attempts at one task write them, a tombstone holds: work that is done twice is no
        loss, work that is believed wrongly is. Of two records either would do, for both are held against the data;
        everybody takes the same.
        """
        return self.n, self.record is None, self.record or b""


class _Header(msgspec.Struct, frozen=True):
    """The first line of a file.

    Attributes:
        version: of the file.
        entries: that follow.
    """

    version: int
    entries: int


class _Line(msgspec.Struct, frozen=True):
    """An entry as it stands in a file; `xxh3` is the xxh3-64 (hex) of all else."""

    kind: str
    key: str
    n: int
    record: msgspec.Raw
    xxh3: str


_ENCODER = msgspec.json.Encoder()
_HEADER = msgspec.json.Decoder(_Header)
_LINE = msgspec.json.Decoder(_Line)
_BAD = (msgspec.DecodeError, UnicodeDecodeError)


def one_line(record: bytes) -> bytes:
    """Return JSON without the line ends that people like to read it with.

    Raises:
        msgspec.DecodeError: if it is not JSON.
    """
    return msgspec.json.format(record, indent=-1)


def header(entries: int) -> bytes:
    """Return the first line of a file with so many entries."""
    return _ENCODER.encode(_Header(VERSION, entries))


def line_of(entry: Entry) -> bytes:
    """Return the line of an entry."""
    record = b"null" if entry.record is None else entry.record
    return _ENCODER.encode(_Line(entry.kind, entry.key, entry.n, msgspec.Raw(record), _digest(entry, record)))


def entry_of(line: bytes) -> Entry:
    """Return the entry of a line.

    Raises:
        msgspec.DecodeError: if it is none, or not as it was written.
    """
    found = _LINE.decode(line)
    record = bytes(found.record)
    entry = Entry(found.kind, found.key, found.n, None if record == b"null" else record)
    if _digest(entry, record) != found.xxh3:
        raise msgspec.DecodeError(f"another digest than {found.xxh3}")
    return entry


def _digest(entry: Entry, record: bytes) -> str:
    named = f"{entry.kind}\0{entry.key}\0{entry.n}\0".encode()
    return xxhash.xxh3_64_hexdigest(named + record)


@dataclass
class Contents:
    """The entries of a file, one after the other; those that are damaged are left out.

    Iterating raises Unreadable if another version of the toolkit wrote the file.

    Attributes:
        path: of the file.
        data: as stored.
        fault: what is wrong with it, once all are read; empty if nothing.
    """

    path: str
    data: bytes
    fault: str = ""

    def __iter__(self) -> Iterator[Entry]:
        count, said = 0, -1
        try:
            with Lines(self.path, MAX_LINE, stored=io.BytesIO(self.data)) as lines:
                for line in lines:
                    if lines.number == 1:
                        said = self._said(line)
                    elif entry := self._entry(line, lines.number):
                        count += 1
                        yield entry
        except DataError as error:
            self.fault = self.fault or str(error)
        if count != said and not self.fault:
            self._blame(f"expected {max(said, 0):,} entries, got {count:,}")

    def _said(self, line: bytes) -> int:
        """Return how many entries the file has, by its first line; -1 if that is damaged."""
        try:
            found = _HEADER.decode(line)
        except _BAD as error:
            self._blame(f"expected the header of a record log, got: {error}", 1)
            return -1
        if found.version != VERSION:
            raise Unreadable(
                f"expected records of version {VERSION}, got version {found.version}; use the version of the toolkit "
                "that wrote them, or a later one",
                path=self.path,
            )
        return found.entries

    def _entry(self, line: bytes, number: int) -> Entry | None:
        try:
            return entry_of(line)
        except _BAD as error:
            self._blame(f"expected an entry as it was written, got: {error}", number)
            return None

    def _blame(self, message: str, line: int | None = None) -> None:
        self.fault = self.fault or str(DataError(message, path=self.path, line=line))


# --- in memory --------------------------------------------------------------------------------------------------------

_PLACE = attrgetter("place")
_RANK = attrgetter("rank")


class State:
    """The newest entry of each place. Several threads may ask it at a time.

    Args:
        merged: entries in order, each place once; one that is out of order is kept, too.
    """

    def __init__(self, merged: Iterable[Entry] = ()) -> None:
        self._loose: dict[Place, Entry] = {}
        self._packed: list[_Packed] = []
        self._packed.append(_Packed(self._in_order(merged)))

    def add(self, entries: Iterable[Entry]) -> None:
        """Add entries, in any order."""
        for entry in entries:
            known = self._loose.get(entry.place)
            if known is None or known.rank < entry.rank:
                self._loose[entry.place] = entry
            if len(self._loose) >= LOOSE:
                self._packed.append(_Packed(self._sorted()))
                self._loose = {}

    def get(self, place: Place) -> Entry | None:
        """Return the entry of a place that holds; None if there is none."""
        found = [self._loose.get(place), *(packed.get(place) for packed in self._packed)]
        return max((entry for entry in found if entry), key=_RANK, default=None)

    def __iter__(self) -> Iterator[Entry]:
        """Yield all entries that hold, sorted by place."""
        return self._from(("", ""))

    def of(self, kind: str) -> Iterator[Entry]:
        """Yield the entries of a kind that hold, sorted by key."""
        behind = dropwhile(lambda entry: entry.kind < kind, self._from((kind, "")))
        return takewhile(lambda entry: entry.kind == kind, behind)

    def _from(self, place: Place) -> Iterator[Entry]:
        """Yield the entries that hold from a place on, and maybe some before it."""
        all_ = heapq.merge(self._sorted(), *(packed.entries(place) for packed in self._packed), key=_PLACE)
        return (max(found, key=_RANK) for _, found in groupby(all_, _PLACE))

    def _sorted(self) -> list[Entry]:
        return sorted(self._loose.values(), key=_PLACE)

    def _in_order(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yield the entries that are in order; others are added."""
        last: Place | None = None
        for entry in entries:
            if last is None or entry.place > last:
                last = entry.place
                yield entry
            else:
                self.add([entry])


class _Packed:
    """Entries in order, in compressed blocks."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._firsts: list[Place] = []
        self._blocks: list[bytes] = []
        self._unpacked = functools.lru_cache(UNPACKED)(self._unpack)
        lines: list[bytes] = []
        size = 0
        for entry in entries:
            if not lines:
                self._firsts.append(entry.place)
            lines.append(line_of(entry))
            size += len(lines[-1])
            if size >= BLOCK:
                self._keep(lines)
                lines, size = [], 0
        if lines:
            self._keep(lines)

    def get(self, place: Place) -> Entry | None:
        block = bisect_right(self._firsts, place) - 1
        return self._unpacked(block).get(place) if block >= 0 else None

    def entries(self, place: Place) -> Iterator[Entry]:
        """Yield the entries from the block on that a place would be in."""
        first = max(bisect_right(self._firsts, place) - 1, 0)
        blocks = map(self._unpack, range(first, len(self._blocks)))
        return chain.from_iterable(unpacked.values() for unpacked in blocks)

    def _keep(self, lines: list[bytes]) -> None:
        self._blocks.append(compress_fast(b"\n".join(lines)))

    def _unpack(self, number: int) -> dict[Place, Entry]:
        lines = decompress(self._blocks[number], "gzip-fast").split(b"\n")
        return {entry.place: entry for entry in map(entry_of, lines)}
