"""Entries of a journal, and the lines that they are in a file."""

import io
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import xxhash

from toolkit.errors import DataError, Unreadable
from toolkit.storage.reading import Lines

VERSION = 1
"""Of the files of a journal."""

MAX_LINE = 1 << 28
"""Bytes of an entry, at most."""

Place = tuple[str, str]
"""What an entry is about: a kind of record, and a key among those of its kind."""


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
        journal: the version.
        entries: that follow.
    """

    journal: int
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
            self._blame(f"expected the header of a journal, got: {error}", 1)
            return -1
        if found.journal != VERSION:
            raise Unreadable(
                f"expected records of version {VERSION}, got version {found.journal}; use the version of the toolkit "
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
