"""Common Crawl WET files: the text of web pages, one ``conversion`` record each.

Source: WARC 1.0/1.1 (ISO 28500); the fields of OSCAR's ``warc_headers`` are those of the record, names lower-cased.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from toolkit.data.document_fields import OF_RECORD
from toolkit.errors import DataError
from toolkit.ingest.reader import Draft, DraftColumns, Input, Reader

if TYPE_CHECKING:
    from toolkit.ingest.web.records import Record, RecordColumns

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
        from toolkit.ingest.web.records import RecordColumns, is_sound, record_batches

        number, texts = source.begin.number, 0
        for batch in record_batches(source):
            if isinstance(batch, RecordColumns) and batch.are_sound:
                types = batch.values("warc-type")
                source.counts.update(f"record.{type_}" for type_ in types if type_ != TEXT)
                rows = [i for i, type_ in enumerate(types) if type_ == TEXT]
                texts += len(rows)
                yield from self._of_columns(batch, rows, number, source)
                number += len(batch)
                continue
            for record in batch:
                number += 1
                if record.type != TEXT:
                    source.counts[f"record.{record.type}"] += 1
                    continue
                texts += 1
                if is_sound(record, number, source):
                    yield from self._alone(number, record, source)
        if not number:
            raise DataError("expected WARC records, got none that is valid", path=source.path)
        if not texts and (answers := source.counts["record.response"]):
            message = (
                f"expected texts of pages, got {answers} responses of servers; is it a WARC file (`format: warc`)?"
            )
            raise DataError(message, path=source.path)

    def _of_columns(
        self, batch: "RecordColumns", rows: list[int], before: int, source: Input
    ) -> Iterator[Sequence[Draft]]:
        """Yield the documents of some rows of a batch.

        Args:
            batch: Sound records.
            rows: Indexes of those with texts.
            before: Number of records before the batch.
            source: Source that they are from.
        """
        from toolkit.text.json_strings import sound

        begins, ends = batch.bounds[rows].T.copy()
        ids, dates = batch.values("warc-record-id"), batch.values("warc-date")
        for is_utf8, places in groupby(range(len(rows)), sound(batch.data, begins, ends).__getitem__):
            run = list(places)
            if is_utf8:
                listed = rows[run[0] : run[-1] + 1]
                added = [dates[i] for i in listed]
                yield DraftColumns(
                    batch.data,
                    begins[run].tolist(),
                    ends[run].tolist(),
                    number=[before + i + 1 for i in listed],
                    id=[ids[i] for i in listed],
                    added=added,
                    created=added,
                    metadata=[{"warc_headers": batch.headers[i]} for i in listed],
                    paths=[OF_RECORD if ids[i] and dates[i] else None for i in listed],
                )
                continue
            for i in run:
                yield from self._alone(before + rows[i] + 1, batch[rows[i]], source)

    def _alone(self, number: int, record: "Record", source: Input) -> Iterator[list[Draft]]:
        """Yield the document of a record, large or not UTF-8."""
        text, utf8 = decode(record.block or b"", self.invalid_utf8, source)
        if text is None:
            source.leave_out(f"invalid_utf8.{self.invalid_utf8}", number, id=record.id, url=record.url)
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


TEXT = "conversion"
"""The type of records with texts."""


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
