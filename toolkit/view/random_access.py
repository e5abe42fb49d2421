"""Rows from the middle of files: what stands before them is not read.

Files of ours are gzip members (zstd frames) of about a MiB, cut at the ends of lines. Where one begins is told by its
first bytes, and which row begins it by the row index, because each row, of documents as of attributes, names its
document. So a row is found as a word in a dictionary: a piece is read where it should be, the first member in that is
looked at, and the next guess is better. A file of one member, which others may have written, is read from its start.
"""

import bisect
import io
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import IO, Any, NamedTuple, Protocol, cast

from toolkit.errors import DataError
from toolkit.storage import Stat, store_of
from toolkit.storage.compression import compression_in
from toolkit.storage.reading import Lines
from toolkit.storage.threads import for_each
from toolkit.view.corpus import Recent

PIECE = 1 << 18
"""Bytes that are asked for at a time, at least."""

AHEAD = 2
"""Pieces that are asked for together where a file is read on."""

MOST = 160
"""Pieces that are kept: 40 MiB."""


class Pieces:
    """The recent pieces of all files; several threads may read them.

    Attributes:
        requests: Requests of the stores, so far.
        bytes: Bytes that these gave.
    """

    def __init__(self) -> None:
        self.requests = self.bytes = 0
        self._recent = Recent[tuple[str, str, int], bytes](MOST)
        self._lock = threading.Lock()

    def read(self, path: str, version: Stat, offset: int, length: int) -> bytes:
        """Return bytes of a file, fewer at its end. Those that are not here are asked for in as few requests as can be.

        Raises:
            DataError: if the file is not there any more.
        """
        end = min(offset + length, version.size)
        if offset >= end:
            return b""
        first, last = offset // PIECE, (end - 1) // PIECE
        results = {number: self._recent.use((path, version.stamp, number)) for number in range(first, last + 1)}
        missing = [number for number, piece in results.items() if piece is None]
        if missing:  # from the first to the last of them in one request
            begin = missing[0] * PIECE
            data = self._ask(path, version, begin, min((missing[-1] + 1) * PIECE, version.size) - begin)
            for number in range(missing[0], missing[-1] + 1):
                piece = data[number * PIECE - begin : (number + 1) * PIECE - begin]
                results[number] = self._recent.keep((path, version.stamp, number), piece)
        whole = b"".join(results[number] or b"" for number in range(first, last + 1))
        return whole[offset - first * PIECE : end - first * PIECE]

    def _ask(self, path: str, version: Stat, offset: int, length: int) -> bytes:
        try:
            data = store_of(path).read(path, offset, length)
        except FileNotFoundError:
            raise DataError(
                "expected the file as it was, got none: it was deleted; load the page again", path=path
            ) from None
        with self._lock:
            self.requests += 1
            self.bytes += len(data)
        if len(data) != length:
            message = (
                f"expected the file as it was, {version.size:,} bytes, got one that has changed; load the page again"
            )
            raise DataError(message, path=path)
        return data


class ByteStream(io.RawIOBase):
    """The bytes of a file from an offset, piece by piece."""

    def __init__(self, pieces: Pieces, path: str, version: Stat, offset: int) -> None:
        super().__init__()
        self._pieces, self._path, self._version, self._at = pieces, path, version, offset
        self._block = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._block:
            size = AHEAD * PIECE - self._at % PIECE
            self._block = memoryview(self._pieces.read(self._path, self._version, self._at, size))
            self._at += len(self._block)
        count = min(len(buffer), len(self._block))
        buffer[:count] = self._block[:count]
        self._block = self._block[count:]
        return count


WINDOW = 1 << 18
"""Stored bytes in which the beginning of a member is looked for; twice as many each time that there is none."""

WIDEST = 1 << 22
"""Stored bytes without the beginning of a member, behind which no more are looked for."""

GUESSES = 12
CANDIDATES = 8
"""Places of a window that look like the beginning of a member, and are tried; few bytes do by chance."""

_BEGINS = {
    "gzip": re.compile(rb"\x1f\x8b\x08[\x00-\x1f]"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd"),
    "": re.compile(rb"(?<=\n)[^\n]"),
}
"""First bytes of a member, by its compression; without one each line is as good."""


class Place(NamedTuple):
    """A place for the start of reading: its offset, and the number of its first row, from 0."""

    row: int
    offset: int


NumberOf = Callable[[bytes], int | None]
"""Gives the number of a row, from 0, by its line; None if that does not tell."""


class RowFile(Protocol):
    """The rows of a file, read on request."""

    def fetch(self, rows: Sequence[int]) -> None:
        """Prepare for the reading of distant rows."""

    def rows(self, first: int, count: int) -> list[bytes]:
        """Return the existing rows of a range as JSON; `first` counts from 0.

        Raises:
            DataError: if the file is damaged, or not as it was.
        """


class _ForwardReader:
    """Rows read from a place on; what is asked for next is often what comes next."""

    def __init__(self, lines: Lines, row: int) -> None:
        self._stack = ExitStack()
        self._lines: Iterator[bytes] = self._stack.enter_context(lines)
        self.row = row

    def take(self, first: int, count: int) -> list[bytes]:
        self.row += sum(1 for _ in islice(self._lines, first - self.row))
        results = list(islice(self._lines, count))
        self.row += len(results)
        return results

    def close(self) -> None:
        self._stack.close()


class _SequentialFile:
    """A file with reads from the last row on."""

    def __init__(self) -> None:
        self._reading: _ForwardReader | None = None
        self._lock = threading.Lock()

    def fetch(self, rows: Sequence[int]) -> None:
        """Prepare nothing."""

    def rows(self, first: int, count: int) -> list[bytes]:
        with self._lock:
            try:
                return self._from(first).take(first, count)
            except BaseException:
                self._close()
                raise

    def _from(self, first: int) -> _ForwardReader:
        """Return the reading of a row, and of those after it."""
        raise NotImplementedError

    def _close(self) -> None:
        if self._reading:
            self._reading.close()
        self._reading = None


class OrderedFile(_SequentialFile):
    """Rows of a file, read from its reader's places: external files, tables of attributes.

    Args:
        open_before: returns the lines from the last place before a row, and the number of the first of them.
    """

    def __init__(self, open_before: Callable[[int], tuple[Lines, int]]) -> None:
        super().__init__()
        self._open_before = open_before

    def _from(self, first: int) -> _ForwardReader:
        if self._reading is None or self._reading.row > first:
            self._close()
            self._reading = _ForwardReader(*self._open_before(first))
        return self._reading


class MemberFile(_SequentialFile):
    """Rows of a file, read from the starts of members.

    Args:
        path: Path of the file.
        version: Version of it.
        pieces: Pieces of files.
        rows: Rows of the file; None if that is not known: then it is read from its start.
        number_of: tells the number of a row.
        max_bytes: a longer line is an error.
    """

    def __init__(
        self, path: str, version: Stat, pieces: Pieces, rows: int | None, number_of: NumberOf, max_bytes: int
    ) -> None:
        super().__init__()
        self._path, self._version, self._pieces = path, version, pieces
        self._count, self._number_of, self._max = rows, number_of, max_bytes
        self._places = [Place(0, 0)]
        self._has_members = bool(rows)

    def rows(self, first: int, count: int) -> list[bytes]:
        try:
            return super().rows(first, count)
        except DataError as error:
            raise DataError(error.message, path=self._path, line=None) from None

    def fetch(self, rows: Sequence[int]) -> None:
        """Read the probable pieces of rows, all at once: where rows lie apart, requests are waited for."""
        if self._has_members and not store_of(self._path).is_local:
            with self._lock:
                guesses = [self._guess(row, *self._around(row)) for row in rows]
            for_each(lambda at: self._pieces.read(self._path, self._version, at - 1, WINDOW + 1), guesses, always=True)

    def _from(self, first: int) -> _ForwardReader:
        reading = self._reading
        if reading and reading.row <= first and self._stored_between(reading.row, first) <= WINDOW:
            return reading
        place = self._place_before(first)
        if reading and place.row <= reading.row <= first:
            return reading
        self._close()
        self._reading = _ForwardReader(self._lines(place.offset), place.row)
        return self._reading

    def _stored_between(self, row: int, other: int) -> float:
        """Return about how many bytes lie between two rows."""
        return (other - row) * self._version.size / self._count if self._count else 0

    def _lines(self, offset: int) -> Lines:
        stream = ByteStream(self._pieces, self._path, self._version, offset)
        return Lines(self._path, self._max, stored=cast("IO[bytes]", stream))

    def _place_before(self, first: int) -> Place:
        """Return a place not far before a row; the last one that is known, if none can be found."""
        low, high = self._around(first)
        for _ in range(GUESSES if self._has_members else 0):
            if high.offset - low.offset <= WINDOW or self._stored_between(low.row, first) <= WINDOW:
                break
            guess = self._guess(first, low, high)
            result = self._member_behind(guess, low, high)
            if result is None:
                high = Place(high.row, guess)  # none begins behind that
                continue
            bisect.insort(self._places, result)
            low, high = (result, high) if result.row <= first else (low, result)
        return low

    @staticmethod
    def _guess(row: int, low: Place, high: Place) -> int:
        """Return the probable offset of a row's member, between two places."""
        share = (row - low.row) / max(high.row - low.row, 1)
        return max(low.offset + int(share * (high.offset - low.offset)) - WINDOW, low.offset + 1)

    def _around(self, first: int) -> tuple[Place, Place]:
        at = bisect.bisect_right(self._places, (first, self._version.size))
        last = Place(self._count or 0, self._version.size)
        return self._places[at - 1], self._places[at] if at < len(self._places) else last

    def _member_behind(self, offset: int, low: Place, high: Place) -> Place | None:
        """Return the first member behind an offset, between two places; None if there is none near."""
        begins = _BEGINS.get(compression_in(self._pieces.read(self._path, self._version, 0, 10)))
        width, at = WINDOW, offset
        while begins and at < high.offset:
            data = self._pieces.read(self._path, self._version, at - 1, width + 1)  # plain lines: what is before one
            for match in islice(begins.finditer(data, 1), CANDIDATES):
                begin = at - 1 + match.start()
                if begin >= high.offset:
                    return None
                number = self._first_row(begin)
                if number is not None and low.row < number < high.row:
                    return Place(number, begin)
            at += width
            if width >= WIDEST:
                self._has_members = False
                return None
            width *= 2
        return None

    def _first_row(self, offset: int) -> int | None:
        try:
            with self._lines(offset) as lines:
                return next((self._number_of(line) for line in lines), None)
        except DataError:  # it only looked like the beginning of a member
            return None
