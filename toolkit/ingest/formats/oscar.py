"""OSCAR corpora as released: schema v2 (22.01) and the field names of 23.01, one JSON object a line.

Source: the OSCAR project's published schema; oscar-io 0.2 (v2) and 0.4 (v3) for what is really written.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
from msgspec import Raw

from toolkit.data.documents import Prediction
from toolkit.ingest.reader import Draft, Input, NullText, Reader, with_empty_text
from toolkit.text.fasttext.model import without_capitals


class _Metadata(msgspec.Struct):
    identification: Raw
    sentence_identifications: list[Raw]
    annotation: Raw = Raw(b"null")
    quality_warnings: Raw = Raw(b"null")
    categories: Raw = Raw(b"null")
    tlsh: Raw = Raw(b"null")
    harmful_pp: Raw = Raw(b"null")
    harmful_ppl: Raw = Raw(b"null")


class _Line(msgspec.Struct):
    content: str
    warc_headers: Raw
    metadata: _Metadata


class _Identifier(msgspec.Struct, rename={"id": "warc-record-id", "date": "warc-date"}):
    id: str | None = None
    date: str | None = None


class OscarValue(msgspec.Struct):
    """The key ``oscar``: what the release says of a document; null where its schema has no such field.

    Attributes:
        identification: The language of the document by the release, with its probability.
        annotation: Annotation of the document by the release; null for nothing.
        categories: Categories of the page's address by the release; null for none.
        tlsh: The locality-sensitive hash of the text by the release; null if it has none.
        harmful_pp: The perplexity of the text under a model of harmful texts; null if the release has none.
    """

    identification: Prediction
    annotation: list[str] | None
    categories: list[str] | None
    tlsh: str | None
    harmful_pp: float | None


_NULL = Raw(b"null")


class Oscar(Reader):
    """Documents with WARC headers as metadata, and their attributes: keys ``line_language`` and ``oscar``.

    ``id`` is the record id of the headers, ``added`` and ``created`` are their WARC-Date. ``line_language`` holds the
    file's ``sentence_identifications``, numbers as they are written. 23.01's ``quality_warnings`` becomes
    ``annotation``. Labels with a capital, as in the published schema, are put in lower case.

    Attributes:
        set: the attribute set to write
    """

    VERSION = "2"  # since 2: `created`
    LINES = True
    SUFFIXES = (".jsonl", ".json")
    TYPES = {
        "line_language": Annotated[
            list[Prediction | None],
            msgspec.Meta(
                description="The language of each line by the release, with its probability; null for a line without "
                "one."
            ),
        ],
        "oscar": Annotated[OscarValue, msgspec.Meta(description="What the release says of a document as a whole.")],
    }

    set: str = "oscar-0"

    def attribute_sets(self) -> Sequence[str]:
        return (self.set,)

    def read(self, source: Input) -> Iterator[Draft]:
        decoder = msgspec.json.Decoder(_Line)
        checker = msgspec.json.Decoder(dict[str, str])
        predictions = msgspec.json.Decoder(list[Prediction | None])

        def draft(line: bytes, number: int) -> Draft | None:
            try:
                row = decoder.decode(without_capitals(line))
            except msgspec.ValidationError as error:
                empty = with_empty_text(line, "content")
                result = None if empty is None else draft(empty, number)
                if result is None:
                    raise
                raise NullText(str(error), result) from None
            encoded = msgspec.json.encode(self._value(row.metadata))
            msgspec.json.decode(encoded, type=OscarValue)
            headers = msgspec.json.decode(row.warc_headers, type=_Identifier)
            checker.decode(row.warc_headers)
            sentences = Raw(b"[" + b",".join(map(bytes, row.metadata.sentence_identifications)) + b"]")
            predictions.decode(sentences)
            output, expected = len(row.metadata.sentence_identifications), content_lines(row.content)
            if output != expected and not (output == 1 and not row.content):
                message = f"expected one sentence identification for each of {expected} lines, got {output}"
                source.bad("sentence identifications", message, line, number, headers.id)
                return None
            # a line feed more, where the last line is empty, keeps it a line of the document
            ends_empty = row.content.endswith("\n") or (output and not row.content)
            return Draft(
                text=row.content + "\n" if ends_empty else row.content,
                number=number,
                id=headers.id,
                added=headers.date,
                created=headers.date,
                metadata={"warc_headers": row.warc_headers},
                attributes={self.set: {"line_language": sentences, "oscar": Raw(encoded)}},
            )

        with source.lines() as lines:
            yield from source.items(lines, draft)

    def _value(self, metadata: _Metadata) -> dict[str, Raw]:
        return {
            "identification": metadata.identification,
            "annotation": metadata.annotation if bytes(metadata.annotation) != b"null" else metadata.quality_warnings,
            "categories": metadata.categories,
            "tlsh": metadata.tlsh,
            "harmful_pp": metadata.harmful_pp if bytes(metadata.harmful_pp) != b"null" else metadata.harmful_ppl,
        }


def content_lines(content: str) -> int:
    r"""Return the number of lines of an OSCAR ``content``, joined by ``\n``; an empty one may have none."""
    return content.count("\n") + 1 if content else 0
