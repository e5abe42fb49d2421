"""Documents in the Dolma format, taken as they are.

Source: Soldaini et al. 2024, arXiv:2402.00159; the toolkit's ``docs/data-format.md``. Existing documents need no
ingest: they can be tagged where they lie.
"""

from collections.abc import Iterator

import msgspec

from toolkit.ingest.reader import Draft, Input, NullText, Reader, check_document, with_empty_text


class Dolma(Reader):
    """Each line is kept byte by byte, if it is a document; one without `source` gets that of the configuration."""

    LINES = True
    SUFFIXES = (".jsonl", ".json")

    def read(self, source: Input) -> Iterator[Draft]:
        with source.lines() as lines:
            yield from source.items(lines, lambda line, number: _draft(line, number, source.source))


def _draft(line: bytes, number: int, source: str | None) -> Draft:
    row = line if source is None else _with_source(line, source)
    try:
        document_row = check_document(row)
    except msgspec.ValidationError as error:
        if (row_with_text := with_empty_text(row)) is None:
            raise
        raise NullText(str(error), _draft(row_with_text, number, None)) from None
    return Draft(text=document_row.text, number=number, id=document_row.id, source=document_row.source, raw=row)


class _Source(msgspec.Struct):
    source: str | None = None


def _with_source(line: bytes, source: str) -> bytes:
    if msgspec.json.decode(line, type=_Source).source is not None:
        return line
    fields = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    return msgspec.json.encode(fields | {"source": source})
