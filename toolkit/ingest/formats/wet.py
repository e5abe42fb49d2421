"""Common Crawl WET files: the text of web pages, one ``conversion`` record each.

Source: WARC 1.0/1.1 (ISO 28500); the fields of OSCAR's ``warc_headers`` are those of the record, names lower-cased.
"""

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from toolkit.data.metadata_fields import OF_RECORD
from toolkit.errors import DataError
from toolkit.ingest.reader import Draft, Input, Reader
from toolkit.ingest.web.records import is_sound, sound_records

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

    def read(self, source: Input) -> Iterator[Draft]:
        number, texts = source.begin.number, 0
        for record in sound_records(source):
            number += 1
            if record.type != "conversion":
                source.counts[f"record.{record.type}"] += 1
                continue
            texts += 1
            if not is_sound(record, number, source):
                continue
            text, utf8 = decode(record.block or b"", self.invalid_utf8, source)
            if text is None:
                url = record.fields.get("warc-target-uri")
                source.leave_out(f"invalid_utf8.{self.invalid_utf8}", number, id=record.id, url=url)
            else:
                yield Draft(
                    text=text,
                    utf8=utf8,
                    number=number,
                    id=record.id,
                    added=record.date,
                    created=record.date,
                    metadata={"warc_headers": record.headers},
                    paths=OF_RECORD if record.id and record.date else None,
                )
        if not number:
            raise DataError("expected WARC records, got none that is valid", path=source.path)
        if not texts and (answers := source.counts["record.response"]):
            message = (
                f"expected texts of pages, got {answers} responses of servers; is it a WARC file (`format: warc`)?"
            )
            raise DataError(message, path=source.path)


def decode(block: bytes, invalid: str, source: Input) -> tuple[str | None, bytes | None]:
    """Return the text of some bytes, None if the document is dropped; and the bytes, if they are the text's in UTF-8.

    Args:
        block: the bytes.
        invalid: what is to be done about those that are not UTF-8.
        source: that they are from.
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
