"""Documents in the Dolma format, taken as they are.

Source: Soldaini et al. 2024, arXiv:2402.00159; the toolkit's ``docs/data-format.md``. Existing documents need no
ingest: they can be tagged where they lie.
"""

from collections.abc import Iterator

import msgspec

from toolkit.ingest.reader import Draft, Input, Reader, check_document


class Dolma(Reader):
    """Each line is kept byte by byte, if it is a document; one without `source` gets that of the configuration."""

    SUFFIXES = (".jsonl", ".json")

    def read(self, source: Input) -> Iterator[Draft]:
        with source.lines() as lines:
            yield from source.items(lines, lambda line, number: _draft(line, number, source.source))


def _draft(line: bytes, number: int, source: str | None) -> Draft:
    row = line if source is None else _with_source(line, source)
    found = check_document(row)
    return Draft(text=found.text, number=number, id=found.id, source=found.source, raw=row)


class _Source(msgspec.Struct):
    source: str | None = None


def _with_source(line: bytes, source: str) -> bytes:
    if msgspec.json.decode(line, type=_Source).source is not None:
        return line
    fields = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    return msgspec.json.encode(fields | {"source": source})
