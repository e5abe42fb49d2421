"""Common Crawl WET files: the text of web pages, one ``conversion`` record each.

Source: WARC 1.0/1.1 (ISO 28500); the fields of OSCAR's ``warc_headers`` are those of the record, names lower-cased.
"""

import functools
from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from toolkit.errors import DataError
from toolkit.reader import Draft, Input, Reader
from toolkit.streams import Decompressed


class Wet(Reader):
    """Text records of WARC files. ``id`` is WARC-Record-ID, ``added`` WARC-Date, ``metadata.warc_headers`` all headers.

    Header values are left as they are (white space around them excepted, which WARC allows freely), a repeated name's
    values are joined by ``, ``. ``content-length`` stays the record's own, also where the text is trimmed. Records that
    are not ``conversion`` are counted by type. A record that is shorter or longer than it says is bad; with
    ``on_error: skip`` reading goes on at the next record.
    """

    SUFFIXES = (".warc.wet", ".wet", ".warc", ".warc.txt", ".txt")

    invalid_utf8: Annotated[
        Literal["replace", "drop_line", "drop_document"],
        msgspec.Meta(description="text that is not UTF-8: U+FFFD instead, or drop its lines, or the document"),
    ] = "replace"

    def read(self, source: Input) -> Iterator[Draft]:
        number = 0
        for record in _sound_records(source):
            number += 1
            if record.type != "conversion":
                source.counts[f"record.{record.type}"] += 1
                continue
            text = decode(record.block, self.invalid_utf8, source)
            if text is not None:
                yield Draft(
                    text=text,
                    number=number,
                    id=record.headers.get("warc-record-id"),
                    added=record.headers.get("warc-date"),
                    metadata={"warc_headers": record.headers},
                )
        if not number:
            raise DataError("expected WARC records, got none that is valid", path=source.path)


def decode(block: bytes, invalid: str, source: Input) -> str | None:
    """UTF-8 text, with what is to be done about invalid bytes; None if the document is to be dropped."""
    try:
        return block.decode()
    except UnicodeDecodeError:
        source.counts[f"invalid_utf8.{invalid}"] += 1
    if invalid == "drop_document":
        return None
    if invalid == "drop_line":
        return b"\n".join(line for line in block.split(b"\n") if _is_utf8(line)).decode()
    return block.decode(errors="replace")


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


class _Record(msgspec.Struct):
    type: str
    headers: dict[str, str]
    block: bytes
    offset: int


class _Bad(Exception):
    """A record that is not what it says, or (without offset) something else than a record behind the last one."""

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(message)
        self.offset = offset


def _sound_records(source: Input) -> Iterator[_Record]:
    """The records of an input; a bad one is an error, or is kept aside and reading goes on behind its beginning.

    A record is given when the next one has been found where it should be.
    """
    with source.stream() as stream:
        tape = _Tape(stream)
        number = 0
        while True:
            held: _Record | None = None
            try:
                for record in _records(tape, source):
                    if held:
                        tape.check_end(held)
                        yield held
                        tape.forget(record.offset)
                    held = record
                    number += 1
                if held:
                    tape.check_end(held)
                    yield held
                return
            except _Bad as error:
                bad = error
            start = tape.restarted_at if bad.offset is None else bad.offset
            if held and bad.offset != held.offset:  # what is bad comes behind it, or it is its length that is wrong
                try:
                    end = tape.check_end(held)
                    yield held
                    start = end if bad.offset is None else start
                    number += 1
                except _Bad as error:
                    bad, start = error, held.offset
            if not source.skip:
                raise DataError(f"record {max(number, 1)}: {bad}", path=source.path) from None
            source.bad("record", str(bad), tape.skip_to_next_record(start), max(number, 1))
            if tape.ended:
                return


@functools.lru_cache(256)
def _name(raw: bytes) -> str:
    return raw.decode(errors="replace").lower()


def _records(tape: "_Tape", source: Input) -> Iterator[_Record]:
    from fastwarc.warc import ArchiveIterator

    try:
        for found in ArchiveIterator(tape, parse_http=False):
            headers: dict[str, str] = {}
            for raw_name, raw_value in found.headers.items_bytes():
                name, value = _name(raw_name), raw_value.decode(errors="replace")
                headers[name] = f"{headers[name]}, {value}" if name in headers else value
            type_, length, offset = (
                headers.get("warc-type", ""),
                headers.get("content-length", ""),
                found.stream_pos,
            )
            if not type_ or "\n" in type_ or not length.isdigit():
                raise _Bad("expected a WARC record with WARC-Type and Content-Length, got one without", offset)
            if int(length) > source.max_bytes:
                limit = f"{source.max_bytes:,} bytes, got {int(length):,}; raise `max_document_bytes`"
                raise _Bad(f"expected a block of at most {limit}", offset)
            block = found.reader.read()
            if len(block) != int(length):
                raise _Bad(f"expected a block of {length} bytes, got {len(block)} before the end of the file", offset)
            yield _Record(type_, headers, block, offset)
    except OSError as error:
        raise _Bad(f"expected a WARC record behind the last one, got something else ({error})") from None


class _Tape:
    """The input as fastwarc reads it; keeps what was read since the last good record.

    Not an io class: fastwarc 2.0 panics on a stream whose ``seek`` raises; it asks only where it is.
    """

    def __init__(self, stream: Decompressed) -> None:
        self._stream = stream
        self._kept = bytearray()
        self._kept_from = 0
        self._replay = b""
        self.restarted_at = 0
        self.ended = False
        self._position = 0

    def close(self) -> None:
        """The caller closes the stream."""

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
        block = self._stream.read(size)
        self._position += len(block)
        self._kept += block
        return block

    def forget(self, offset: int) -> None:
        """What lies before this offset is not needed any more."""
        if offset - self._kept_from > 1 << 20:
            del self._kept[: offset - self._kept_from]
            self._kept_from = offset

    def check_end(self, record: _Record) -> int:
        """The offset behind a record and the two line ends that end it.

        Raises:
            _Bad: if they are not where the record's length says.
        """
        head = self._kept.find(b"\r\n\r\n", record.offset - self._kept_from)
        end = head + 4 + len(record.block)
        behind = bytes(self._kept[end : end + 4])
        if behind != b"\r\n\r\n":
            raise _Bad(
                f"expected two line ends behind a block of {len(record.block)} bytes, got {behind!r}", record.offset
            )
        return self._kept_from + end + 4

    def skip_to_next_record(self, bad: int) -> bytes:
        """Goes on at the first line ``WARC/1.`` behind the one at the offset; what is skipped."""
        start = bad - self._kept_from
        while (found := self._kept.find(b"\nWARC/1.", start)) < 0:
            block = self._stream.read(1 << 16)
            if not block:
                self.ended = True
                return bytes(self._kept[start:])
            self._kept += block
        self.restarted_at = self._position = self._kept_from + found + 1
        self._replay = bytes(self._kept[found + 1 :])
        return bytes(self._kept[start : found + 1])
