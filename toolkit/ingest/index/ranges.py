"""The records of a pack, fetched by ranges: checked one by one, and given as if a WARC file had just these.

rows in index order ──merged with neighbours──> ranges ──`connections`, `rate`──> members ──checked──> their records
"""

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import IO, TYPE_CHECKING, NamedTuple, cast

import msgspec
import xxhash

from toolkit.errors import DataError, advice
from toolkit.ingest.folders import place_of
from toolkit.ingest.index.selecting import GAP, Row
from toolkit.ingest.input_rows.input_bytes import Blocks, InputBytes
from toolkit.ingest.plan import InputFile
from toolkit.interrupts import pause
from toolkit.storage import store_of
from toolkit.storage.reading import READ, Lines
from toolkit.storage.threads import pool

if TYPE_CHECKING:
    from concurrent.futures import Future

ROOM = 1 << 20
"""Bytes of the headers of a record, at most."""

_LONGEST = 1 << 20
_SKIPPED = ("request", "metadata", "warcinfo", "conversion")
"""Types of records that stand beside the one of a page."""

_HEADERS = re.compile(
    rb"^(WARC-Type|WARC-Target-URI|WARC-Payload-Digest|Content-Length)[ \t]*:[ \t]*(.*?)[ \t]*\r?$", re.I | re.M
)


class _Fault(Exception):
    """A record other than the one in the index; the message says how."""


class Range(NamedTuple):
    """Neighbouring records, fetched by one request.

    Attributes:
        file: Path of the WARC file below its base.
        first, last: Offset of the first byte, and behind the last one.
        rows: Numbers of the rows, by their offsets.
    """

    file: str
    first: int
    last: int
    rows: list[int]


def merge_rows(rows: Sequence[Row]) -> list[Range]:
    """Return the ranges of rows, in the order of the rows."""
    by_place = sorted(range(len(rows)), key=lambda number: (rows[number][:2], number))
    results: list[Range] = []
    for number in by_place:
        file, first, length = rows[number][:3]
        last = results[-1] if results else None
        if last and last.file == file and first - last.last <= GAP:
            last.rows.append(number)
            results[-1] = last._replace(last=max(last.last, first + length))
        else:
            results.append(Range(file, first, first + length, [number]))
    return sorted(results, key=lambda item: min(item.rows))


class RecordBytes(InputBytes):
    """The records of a pack, uncompressed and concatenated.

    Args:
        file: Pack.
        rate: Requests a second, at most; None for as many as it takes.
    """

    can_change = False

    def __init__(self, file: InputFile, rate: float | None) -> None:
        assert file.selected
        assert file.stat
        super().__init__(file.path, file.stat)
        self._selected, self._rate = file.selected, rate
        self._places: list[tuple[str, int, int]] = []
        self._stored, self._digest = 0, xxhash.xxh3_128()

    def fetch(self) -> None:
        """Do nothing: records are fetched when they are asked for."""

    def open(self, offset: int = 0, watch: Callable[[bytes], None] | None = None) -> IO[bytes]:
        self._stored, self._digest = 0, xxhash.xxh3_128()
        return cast("IO[bytes]", Blocks(self._checked()))

    def place(self, number: int) -> tuple[str, int, int] | None:
        return self._places[number - 1]

    def stored(self) -> int:
        return self._stored

    def content(self) -> str:
        return self._digest.hexdigest()

    def _checked(self) -> Iterator[bytes]:
        """Yield the records; a bad one is an error, or kept aside."""
        source = self.source
        assert source
        with Lines(self._selected.rows, _LONGEST, fixed=True) as lines:
            rows: list[Row] = [msgspec.json.decode(line, type=Row) for line in lines]
        limit = 2 * source.max_bytes + ROOM
        sound = [row for row in rows if row[1] >= 0 < row[2] <= limit]
        with closing(self._whole(sound) if self._selected.whole else self._by_ranges(sound)) as members:
            for number, row in enumerate(rows, 1):
                file, first, length, url, _ = row
                data, where = None, f"{place_of(file, self._selected.base)[0]} at bytes {first:,} to {first + length:,}"
                try:
                    if not first >= 0 < length <= limit:
                        raise _Fault(f"a record of {length:,} bytes at byte {first:,}")
                    record = _record(data := next(members), row, limit)
                except _Fault as fault:
                    message = f"expected the record of {url} in {where}, as the index says, got {fault}"
                    source.bad("index", message, data or b"", number, size=length, offset=first)
                    continue
                if record is None:
                    source.leave_out("too_large", number, url=url)
                else:
                    self._places.append((place_of(file, self._selected.base)[0], first, length))
                    self._stored += length
                    self._digest.update(record)
                    yield record

    def _whole(self, rows: Sequence[Row]) -> Generator[bytes | None, None, None]:
        """Yield the selected members of a whole WARC file."""
        path = place_of(rows[0][0], self._selected.base)[0]
        expected, at, buffer = self._selected.whole, 0, b""  # what is held ends at `at`
        try:
            with store_of(path).open(path, 0, expected) as stream:
                for _, first, length, *_ in rows:
                    begin = at - len(buffer)
                    buffer = buffer[max(0, first - begin) :]
                    while at < first + length and (block := stream.read(min(READ, first + length - at))):
                        at += len(block)
                        buffer += block[max(0, first - (at - len(block))) :]
                    yield buffer[:length] if at - len(buffer) <= first else b""
        except OSError as error:
            raise DataError(f"expected a readable file, got {advice(error)}", path=path) from None

    def _by_ranges(self, rows: Sequence[Row]) -> Generator[bytes | None, None, None]:
        """Yield the members of rows, in their order; None of one whose file is not there."""
        members: dict[int, bytes | None] = {}
        ranges = iter(merge_rows(rows))
        turn = _Turn(self._rate)
        waiting: deque[Future[dict[int, bytes | None]]] = deque()
        with pool(self._selected.lines) as threads:
            try:
                for number in range(len(rows)):
                    while number not in members:
                        for range_ in islice(ranges, max(0, 2 * self._selected.lines - len(waiting))):
                            waiting.append(threads.submit(self._members, range_, rows, turn))
                        members |= waiting.popleft().result()
                    yield members.pop(number)
            finally:
                for begun in waiting:
                    begun.cancel()

    def _members(self, range_: Range, rows: Sequence[Row], turn: "_Turn") -> dict[int, bytes | None]:
        turn.wait()
        path = place_of(range_.file, self._selected.base)[0]
        try:
            data = store_of(path).read(path, range_.first, range_.last - range_.first)
        except FileNotFoundError:
            return dict.fromkeys(range_.rows)
        begins = ((number, rows[number][1] - range_.first) for number in range_.rows)
        return {number: data[begin : begin + rows[number][2]] for number, begin in begins}


class _Turn:
    """Requests one behind the other, so many a second."""

    def __init__(self, rate: float | None) -> None:
        self._rate, self._lock, self._next = rate, threading.Lock(), 0.0

    def wait(self) -> None:
        if self._rate:
            with self._lock:
                now = time.monotonic()
                begin = max(now, self._next)
                self._next = begin + 1 / self._rate
            if begin > now:
                pause(begin - now)


def _record(data: bytes | None, row: Row, limit: int) -> bytes | None:
    """Return the record in the stored bytes of a row; None if it is larger than the limit.

    Raises:
        _Fault: if it is not one whole record, or another one than the index says.
    """
    _, _, length, url, digest = row
    if data is None:
        raise _Fault("no such file")
    if len(data) != length:
        raise _Fault(f"only {len(data):,} bytes: the file ends there")
    record = data if data.startswith(b"WARC/") else _inflate(data, limit)
    if record is None:
        return None
    head, end, _ = record.partition(b"\r\n\r\n")
    if not record.startswith(b"WARC/") or not end:
        raise _Fault("something else than a record")
    fields = {name.lower(): value for name, value in _HEADERS.findall(head)}
    size = fields.get(b"content-length", b"")
    if not size.isdigit() or len(record) != len(head) + len(end) + int(size) + 4 or not record.endswith(b"\r\n\r\n"):
        shown_size = size[:20].decode(errors="replace")
        raise _Fault(f"something else than one record: {len(record):,} bytes with a Content-Length of {shown_size!r}")
    type_, uri = (fields.get(name, b"").decode(errors="replace") for name in (b"warc-type", b"warc-target-uri"))
    if type_ in _SKIPPED:
        raise _Fault(f"a record of the type {type_}")
    if uri.strip("<>") != url:
        raise _Fault(f"the record of {uri[:200]}")
    digest_in_record = fields.get(b"warc-payload-digest", b"").decode(errors="replace").rpartition(":")[2]
    if digest and digest_in_record and digest.rpartition(":")[2] != digest_in_record:
        raise _Fault(f"one with the digest {digest_in_record[:100]} in place of {digest[:100]}")
    return record


def _inflate(data: bytes, limit: int) -> bytes | None:
    from isal import isal_zlib

    inflating = isal_zlib.decompressobj(31)
    try:
        record = inflating.decompress(data, limit)
    except cast("type[Exception]", isal_zlib.error) as error:
        raise _Fault(f"no gzip member ({error})") from None
    if len(record) >= limit and not inflating.eof:
        return None
    if not inflating.eof or inflating.unused_data:
        raise _Fault("the beginning of a gzip member" if not inflating.eof else "more than one gzip member")
    return record
