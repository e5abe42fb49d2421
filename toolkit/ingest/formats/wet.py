"""Common Crawl WET files: the text of web pages, one ``conversion`` record each.

Source: WARC 1.0/1.1 (ISO 28500); the fields of OSCAR's ``warc_headers`` are those of the record, names lower-cased.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from toolkit.data.metadata_fields import OF_RECORD
from toolkit.errors import DataError
from toolkit.ingest.reader import Draft, DraftColumns, Input, Reader

if TYPE_CHECKING:
    from toolkit.ingest.web.records import Record

InvalidUtf8 = Annotated[
    Literal["replace", "drop_line", "drop_document"],
    msgspec.Meta(description="text that is not UTF-8: U+FFFD instead, or drop its lines, or the document"),
]


class Wet(Reader):
    """Text records of WARC files.

    ``id`` is WARC-Record-ID; ``added`` and ``created`` are WARC-Date, because such files do not have the ``Date`` of
    the server. ``metadata.warc_headers`` has all headers in their order, with names in lower case.

    Header values stay as they are, without the white space around them. If a name is repeated, its values are joined by
    ``, ``. ``content-length`` is that of the record, also if the text is trimmed. Records other than ``conversion`` are
    counted by type. A record that is shorter or longer than it says, or whose block is not that of its digest, is bad;
    with ``on_error: skip`` the reader goes on at the next record.
    """

    VERSION = "2"  # since 2: `created`
    SUFFIXES = (".warc.wet", ".wet", ".warc", ".warc.txt", ".txt")
    IN_PLACE = MEMBERS = True

    invalid_utf8: InvalidUtf8 = "replace"

    def read_batches(self, source: Input) -> Iterator[Sequence[Draft]]:
        from toolkit.text.json_strings import placed, sound

        for pages in _batches(self._pages(source), 1 if source.skip else BATCH):
            if len(pages) == 1:
                yield from self._alone(*pages[0], source)
                continue
            utf8, begins, ends = placed([page.block or b"" for _, page in pages])
            for is_utf8, places in groupby(range(len(pages)), sound(utf8, begins, ends).__getitem__):
                rows = list(places)
                run = slice(rows[0], rows[-1] + 1)
                if is_utf8:
                    yield _columns(pages[run], utf8, begins[run].tolist(), ends[run].tolist())
                    continue
                for number, record in pages[run]:
                    yield from self._alone(number, record, source)

    def _alone(self, number: int, record: "Record", source: Input) -> Iterator[list[Draft]]:
        """Yield the document of a record, large or not UTF-8."""
        text, utf8 = decode(record.block or b"", self.invalid_utf8, source)
        if text is None:
            url = record.fields.get("warc-target-uri")
            source.leave_out(f"invalid_utf8.{self.invalid_utf8}", number, id=record.id, url=url)
            return
        draft = Draft(
            text=text,
            utf8=utf8,
            number=number,
            id=record.id,
            added=record.date,
            created=record.date,
            metadata={"warc_headers": record.headers},
            paths=OF_RECORD if record.id and record.date else None,
        )
        yield [draft]

    def _pages(self, source: Input) -> Iterator[tuple[int, "Record"]]:
        """Yield the records with texts, and their numbers."""
        from toolkit.ingest.web.records import is_sound, sound_records

        number, texts = source.begin.number, 0
        for record in sound_records(source):
            number += 1
            if record.type != "conversion":
                source.counts[f"record.{record.type}"] += 1
                continue
            texts += 1
            if is_sound(record, number, source):
                yield number, record
        if not number:
            raise DataError("expected WARC records, got none that is valid", path=source.path)
        if not texts and (answers := source.counts["record.response"]):
            message = (
                f"expected texts of pages, got {answers} responses of servers; is it a WARC file (`format: warc`)?"
            )
            raise DataError(message, path=source.path)


BATCH = 1 << 20
"""Bytes of records that become documents at once."""


def _batches(pages: Iterator[tuple[int, "Record"]], most: int) -> Iterator[list[tuple[int, "Record"]]]:
    """Yield records in batches of at most so many bytes; an error comes after the records before it."""
    batch, size = list[tuple[int, "Record"]](), 0
    try:
        for page in pages:
            length = len(page[1].block or b"") + 1
            if batch and size + length > most:
                yield batch
                batch, size = [], 0
            batch.append(page)
            size += length
            if size >= most:
                yield batch
                batch, size = [], 0
    except Exception:
        if batch:
            yield batch
        raise
    if batch:
        yield batch


def _columns(pages: list[tuple[int, "Record"]], utf8: bytes, begins: list[int], ends: list[int]) -> DraftColumns:
    """Return the documents of records with texts between these offsets."""
    dates = [page.date for _, page in pages]
    return DraftColumns(
        utf8,
        begins,
        ends,
        number=[number for number, _ in pages],
        id=[page.id for _, page in pages],
        added=dates,
        created=dates,
        metadata=[{"warc_headers": page.headers} for _, page in pages],
        paths=[OF_RECORD if page.id and page.date else None for _, page in pages],
    )


def decode(block: bytes, invalid: str, source: Input) -> tuple[str | None, bytes | None]:
    """Return the text of some bytes, None if the document is dropped; and the bytes, if they are the text's in UTF-8.

    Args:
        block: the bytes.
        invalid: Option for bytes that are not UTF-8.
        source: Source that they are from.
    """
    try:
        return block.decode(), block
    except UnicodeDecodeError:
        if invalid == "drop_document":
            return None, None
    source.counts[f"invalid_utf8.{invalid}"] += 1
    if invalid == "drop_line":
        return b"\n".join(line for line in block.split(b"\n") if _is_utf8(line)).decode(), None
    return block.decode(errors="replace"), None


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
