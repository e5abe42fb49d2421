"""The records of a WARC file, each checked; reading goes on behind a bad one.

Source: WARC 1.0/1.1 (ISO 28500).

Digests that WARC records carry, checked against their blocks.

Source: WARC 1.0/1.1 (ISO 28500), ``WARC-Block-Digest`` and ``WARC-Payload-Digest``. Common Crawl writes SHA-1 in
base32; others write hexadecimal digits, lower-case base32, or other algorithms.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from string import ascii_lowercase, ascii_uppercase
from typing import overload

import msgspec

from toolkit.data.documents import BAD_ROW
from toolkit.data.urls import bare_url
from toolkit.errors import ConfigError, DataError
from toolkit.ingest.reader import Capture, Input
from toolkit.ingest.web.http import TooLarge, UnknownCoding, decode_body, parse_response
from toolkit.storage.paths import is_folder, join, list_files
from toolkit.storage.reading import HEAD, READ, Decompressed
from toolkit.text.kernels.signatures import Array
from toolkit.text.warc_records import DIGEST, NAMES, VALUES, ScannedRecords, scan


class _Bad(Exception):
    """A record with wrong lengths, or other bytes after a record."""

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(message)
        self.offset = offset


class Record(msgspec.Struct):
    """One record.

    Attributes:
        type: Its WARC-Type.
        id, date: Its WARC-Record-ID and WARC-Date, if it has them.
        headers: JSON object: names lower-case, values as they are, those of a repeated name joined by ``, ``.
        block: Bytes after them; None if it is larger than a document may be.
        offset: Offset of the record in the uncompressed file.
        end: End of its block there.
    """

    type: str
    id: str | None
    date: str | None
    headers: msgspec.Raw
    block: bytes | None
    offset: int
    end: int

    @property
    def fields(self) -> dict[str, str]:
        """The headers by their names."""
        return _FIELDS.decode(self.headers)

    @property
    def url(self) -> str | None:
        """The address of the page, without angle brackets."""
        url = self.fields.get("warc-target-uri")
        return url and bare_url(url)


_FIELDS = msgspec.json.Decoder(dict[str, str])


class RecordColumns(Sequence[Record]):
    """Records of a buffer as columns; makes a `Record` only on request.

    Attributes:
        data: Buffer.

    Args:
        data: Buffer.
        offset: Offset of the buffer in the uncompressed file.
        scanned: Its records.
        count: Number of these to take.
    """

    def __init__(self, data: bytes, offset: int, scanned: ScannedRecords, count: int) -> None:
        self.data, self._offset, self._scanned = data, offset, scanned
        self._places = scanned.places[:count]

    @property
    def bounds(self) -> Array:
        """Return begin and end of each block in the buffer; int64 (records, 2)."""
        return self._places[:, 1:3]

    @property
    def headers(self) -> list[msgspec.Raw]:
        return self._scanned.headers

    def values(self, name: str) -> list[str | None]:
        """Return the value of a header in each record; None where it has none.

        Args:
            name: Name of the header, of `NAMES`.
        """
        first = VALUES + 2 * NAMES.index(name)
        bounds = self._places[:, first : first + 2].tolist()
        return [None if begin < 0 else self.data[begin:end].decode() for begin, end in bounds]

    @cached_property
    def are_sound(self) -> bool:
        """True if each record matches its digest."""
        view, digests, states = memoryview(self.data), self._scanned.digests, self._places[:, DIGEST].tolist()
        for i, (begin, end) in enumerate(self.bounds.tolist()):
            if states[i] == 1:
                if digest_fault(self[i]):
                    return False
            elif states[i]:
                digest = hashlib.sha1(view[begin:end], usedforsecurity=False).digest()
                if digest != digests[20 * i : 20 * i + 20]:
                    return False
        return True

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        offset, begin, end = self._places[index, :3].tolist()
        headers = self.headers[index]
        fields = _FIELDS.decode(headers)
        return Record(
            fields["warc-type"],
            fields.get("warc-record-id"),
            fields.get("warc-date"),
            headers,
            self.data[begin:end],
            self._offset + offset,
            self._offset + end,
        )


def record_batches(source: Input) -> Iterator[Sequence[Record]]:
    """Yield the records of `sound_records`, many at once.

    They come as `RecordColumns` up to the first in an unusual form.
    """
    with source.stream() as stream:
        tape, number = _Tape(stream, 2 * source.max_bytes + ROOM), 0
        for columns in tape.columns(source.max_bytes):
            number += len(columns)
            yield columns
        for record in _sound_records(tape, source, number, large=False):
            yield [record]


def sound_records(source: Input, *, large: bool = False) -> Iterator[Record]:
    """Yield the records of an input; a bad one is an error, or is kept aside and reading goes on behind its beginning.

    A record is given when the next one has been found where it should be.

    Args:
        source: the input.
        large: True if a block may be larger than a document; it is passed over, and not held.

    Raises:
        DataError: if a record is bad, or the file is an ARC file.
    """
    with source.stream() as stream:
        yield from _sound_records(_Tape(stream, 2 * source.max_bytes + ROOM), source, 0, large=large)


def _sound_records(tape: "_Tape", source: Input, number: int, *, large: bool) -> Iterator[Record]:
    """Yield the remaining records, as `sound_records`; `number` of them have been given."""
    while True:
        pending: Record | None = None
        try:
            for record in _records(tape, source, large=large):
                if pending:
                    tape.check_end(pending)
                    yield pending
                    tape.forget(record.offset)
                pending = record
                number += 1
            if pending:
                tape.check_end(pending)
                yield pending
            return
        except _Bad as error:
            bad = error
        start = tape.restarted_at if bad.offset is None else bad.offset
        if pending and bad.offset != pending.offset:  # the bad record follows it, or its own length is wrong
            try:
                end = tape.check_end(pending)
                yield pending
                start = end if bad.offset is None else start
                number += 1
            except _Bad as error:
                bad, start = error, pending.offset
        if not source.skip:
            raise DataError(f"record {max(number, 1)}: {bad}", path=source.path) from None
        head, offset, size = tape.skip_to_next_record(start)
        source.bad("record", str(bad), head, max(number, 1), size=size, offset=offset)
        if tape.ended:
            return


class _HeaderNames(dict[bytes, str]):
    """Names of headers in lower case, by their bytes; no more are kept than sound files have."""

    def __missing__(self, raw: bytes) -> str:
        name = raw.decode(errors="replace").lower()
        if len(self) < KEPT_NAMES:
            self[raw] = name
        return name


_ENCODER = msgspec.json.Encoder()

KEPT_NAMES = 256
_NAMES = _HeaderNames()


def _headers(pairs: tuple[tuple[bytes, bytes], ...]) -> dict[str, str]:
    """Return the headers of a record as `Record` has them."""
    try:
        headers = {_NAMES[name]: value.decode() for name, value in pairs}
    except UnicodeDecodeError:
        headers = {}
    if len(headers) == len(pairs):
        return headers
    headers = {}
    for raw_name, raw_value in pairs:  # one is not UTF-8, or one name is there twice
        name, value = _NAMES[raw_name], raw_value.decode(errors="replace")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _record(headers: dict[str, str], block: bytes | None, offset: int, end: int) -> Record:
    id, date = headers.get("warc-record-id"), headers.get("warc-date")
    return Record(headers["warc-type"], id, date, msgspec.Raw(_ENCODER.encode(headers)), block, offset, end)


def _records(tape: "_Tape", source: Input, *, large: bool) -> Iterator[Record]:
    from fastwarc.warc import ArchiveIterator

    try:
        for warc_record in ArchiveIterator(tape, parse_http=False):
            headers = _headers(warc_record.headers.items_bytes())
            type_, length, offset = (
                headers.get("warc-type", ""),
                headers.get("content-length", ""),
                warc_record.stream_pos,
            )
            if not type_ or "\n" in type_ or not _LENGTH.fullmatch(length):
                raise _Bad("expected a WARC record with WARC-Type and Content-Length, got one without", offset)
            size, got = int(length), 0
            start = tape.end_of_head(offset)
            if size <= source.max_bytes:
                block = warc_record.reader.read()
                got = len(block)
                if got == size:
                    yield _record(headers, block, offset, start + size)
            elif large:
                yield _record(headers, None, offset, start + size)  # first, while the one before is still held
                while piece := warc_record.reader.read(READ):
                    got += len(piece)
                    tape.forget(start + got)
            else:
                limit = f"{source.max_bytes:,} bytes, got {size:,}; raise `max_document_bytes`"
                raise _Bad(f"expected a block of at most {limit}", offset)
            if got != size:
                raise _Bad(f"expected a block of {size} bytes, got {got} before the end of the file", offset)
        tape.check_held()
    except BAD_ROW as error:  # of a library, or of a panic in it
        raise _Bad(f"expected a WARC record after the last one, got something else ({error!r})") from None
    except OSError as error:
        tape.check_held()
        if tape.begins_with(b"filedesc:"):
            message = "expected a WARC file, got one in the older format ARC; convert it, `warcio recompress` does"
            raise DataError(message, path=source.path) from None
        raise _Bad(f"expected a WARC record after the last one, got something else ({error})") from None


BATCH, PIECE = 1 << 20, 1 << 16
"""Bytes that are read before records are looked for, and at a time: `Decompressed.read` loses some before damage."""

ROOM = 16 << 20
"""Bytes of headers and of what is read ahead, beside two records that are held."""

_LENGTH = re.compile(r"[0-9]{1,18}")

_RECORD = re.compile(rb"WARC/[01]\.\d{1,2}\r?\n")
"""The beginning of a record; not at the beginning of a line, where the one before was cut off."""

_LONGEST = 12
"""Bytes of that, but for the last."""


class _Tape:
    """Passes the input to fastwarc, and buffers its last bytes.

    Not an io class: fastwarc 2.0 panics on a stream whose ``seek`` raises; it asks only where it is.
    """

    def __init__(self, stream: Decompressed, room: int) -> None:
        self._stream = stream
        self._room = room
        self._is_full = False
        self._buffer = bytearray()
        self._kept_from = 0
        self._replay = b""
        self._fault: Exception | None = None
        self.restarted_at = 0
        self.ended = False
        self._position = 0

    def close(self) -> None:
        """Do nothing: the caller closes the stream."""

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = 0) -> int:
        if (offset, whence) not in ((0, 1), (self._position, 0)):
            raise DataError("expected to be read forwards only")
        return self._position

    def read(self, size: int = -1) -> bytes:
        if self._replay:
            block, self._replay = self._replay[:size], self._replay[size:]
            self._position += len(block)
            return block
        if self._fault:
            raise self._fault
        if len(self._buffer) > self._room:
            self._is_full = True  # which ends what is being read; `check_held` says why
            return b""
        block = self._stream.read(size)
        self._position += len(block)
        self._buffer += block
        return block

    def columns(self, limit: int) -> Iterator[RecordColumns]:
        """Yield the records in the usual form; the last one, and what follows, is left to `read`.

        Args:
            limit: Bytes of the largest block.
        """
        data, at, is_last = b"", 0, False
        while not is_last:
            pieces, size, least = [data], 0, max(BATCH, len(data))
            try:
                while size < least and (block := self._stream.read(PIECE)):
                    pieces.append(block)
                    size += len(block)
            except Exception as error:
                self._fault = error
            data = b"".join(pieces)
            is_last = size < least
            try:
                scanned = scan(data, limit)
            except (ImportError, OSError, RuntimeError):  # there is no code for this machine
                break
            is_last |= scanned.is_blocked
            if (count := len(scanned.places) - 1) > 0:
                yield RecordColumns(data, at, scanned, count)
                end = int(scanned.places[count, 0])
                data, at = data[end:], at + end
        self._buffer, self._replay = bytearray(data), data
        self._kept_from = self._position = self.restarted_at = at

    def check_held(self) -> None:
        """Raise _Bad if the buffer was full before a record was complete."""
        if self._is_full:
            raise _Bad(f"expected a WARC record after the last one, got none in {len(self._buffer):,} bytes")

    def forget(self, offset: int) -> None:
        """Drop bytes before this offset."""
        if offset - self._kept_from > 1 << 20:
            del self._buffer[: offset - self._kept_from]
            self._kept_from = offset

    def check_end(self, record: Record) -> int:
        """Return the offset after a record and its two line ends.

        Raises:
            _Bad: if they are not where the record's length says.
        """
        end = record.end - self._kept_from
        behind = bytes(self._buffer[end : end + 4])
        if behind != b"\r\n\r\n":
            size = record.fields["content-length"]
            raise _Bad(f"expected two line ends after a block of {size} bytes, got {behind!r}", record.offset)
        return record.end + 4

    def end_of_head(self, offset: int) -> int:
        """Return the offset behind the headers of the record at the offset."""
        result = self._buffer.find(b"\r\n\r\n", offset - self._kept_from)
        return self._kept_from + result + 4

    def begins_with(self, start: bytes) -> bool:
        """Return True if the file begins with these bytes."""
        return not self._kept_from and self._buffer.startswith(start)

    def skip_to_next_record(self, bad: int) -> tuple[bytes, int, int]:
        """Continue at the first record after the one at the offset.

        Returns:
            The beginning of what is skipped, its offset, and its size. Of a record that was too large to be held that
            is only what is left.
        """
        start = max(bad - self._kept_from, 0)
        begun, head = self._kept_from + start, bytes(self._buffer[start : start + HEAD])
        searched = start + 1
        self._is_full = False
        while not (match := _RECORD.search(self._buffer, searched)):
            passed = max(len(self._buffer) - _LONGEST, min(searched, len(self._buffer)))
            del self._buffer[:passed]
            self._kept_from += passed
            searched = 0
            block = self._stream.read(PIECE)
            if not block:
                self.ended = True
                return head, begun, self._kept_from + len(self._buffer) - begun
            self._buffer += block
            head += block[: max(0, HEAD - len(head))]
        result = self._kept_from + match.start()
        self.restarted_at = self._position = result
        self._replay = bytes(self._buffer[match.start() :])
        return head[: result - begun], begun, result - begun


_DIGEST = re.compile(
    rb'"warc-(block|payload)-digest":"(md5|sha-?1|sha-?256|sha-?384|sha-?512):([A-Za-z0-9=]+)"', re.IGNORECASE
)


def digest_fault(record: Record) -> str | None:
    """Return the fault of a record with other bytes than its digest; None if nothing can be said.

    The digest of the payload counts only in a record without one of the block, and only where programs agree on what
    the payload is: the body of an HTTP message that is neither chunked nor truncated.

    Args:
        record: Record with its block.
    """
    block = record.block
    if block is None:
        return None
    for kind, algorithm, digest in sorted(_DIGEST.findall(bytes(record.headers))):
        name = algorithm.decode().lower().replace("-", "")  # the IANA's names have a hyphen
        texts = [block]
        if kind.lower() == b"payload":
            head, _, body = block.partition(b"\r\n\r\n")
            if b"chunked" in head.lower() or b'"warc-truncated":' in bytes(record.headers):
                return None
            texts.append(body)
        for text in texts:
            computed = getattr(hashlib, name)(text, usedforsecurity=False).digest()
            if _decode_digest(digest.decode(), len(computed)) in (None, computed):
                return None
        name = f"WARC-{kind.decode().title()}-Digest"
        return f"expected a block of {name} {algorithm.decode()}:{digest.decode()}, got one of other bytes"
    return None


def is_sound(record: Record, number: int, source: Input) -> bool:
    """Return True if a record matches its digest; another one is an error, or kept aside."""
    fault = digest_fault(record)
    if fault is not None:
        block = record.block or b""
        size, offset = len(block), record.offset
        source.bad("digest", fault, block[:HEAD], number, record.id, size=size, offset=offset)
    return fault is None


_BASE32 = {
    ord(letter): "!" if letter in "0189" else f"{value:x}" if value < 16 else chr(ord("g") + value - 16)
    for value, letter in [*enumerate(f"{ascii_uppercase}234567"), *enumerate(ascii_lowercase), *enumerate("0189")]
}
"""Digits of base32 as those of `int`, which is in C; `base64` is not, and took 2 % of an ingest."""


def _decode_digest(text: str, size: int) -> bytes | None:
    """Return the bytes of a digest in hexadecimal digits or base32; None if it is in neither form."""
    digits = text.rstrip("=")
    excess = 5 * len(digits) - 8 * size
    try:
        if len(digits) == 2 * size:
            return bytes.fromhex(digits)
        return (int(digits.translate(_BASE32), 32) >> excess).to_bytes(size) if 0 <= excess < 5 else None
    except ValueError:
        return None


# --- answers of servers -----------------------------------------------------------------------------------------------

_WARC = (".warc", ".warc.gz", ".warc.zst")
_LARGEST = 16 << 20


def captures(path: str, limit: int) -> Iterator[Capture]:
    """Yield the HTTP responses of WARC files, by name in a folder.

    Args:
        path: File or folder.
        limit: Bytes of a body; the rest is cut off.

    Raises:
        ConfigError: If a folder has no WARC file.
        DataError: If a record is bad.
    """
    files = [path]
    if is_folder(path):
        files = [join(path, name) for name in list_files(path) if name.endswith(_WARC)]
        if not files:
            raise ConfigError(f"{path}: expected WARC files ({', '.join(_WARC)}) in the folder, got none")
    for file in files:
        for record in sound_records(Input(os.fspath(file), None, _LARGEST, None), large=True):
            url = record.url
            answer = parse_response(record.block) if record.type == "response" and record.block and url else None
            if answer is None or url is None:
                continue
            try:
                body, _ = decode_body(answer, _LARGEST)
            except (TooLarge, UnknownCoding):
                body = b""
            yield Capture(url, record.date or "", answer.status, answer.headers, body[:limit])
