"""JSON Lines of any shape: fields mapped by name."""

from collections.abc import Iterator
from typing import Any

import msgspec

from toolkit.ingest.reader import Draft, Input
from toolkit.ingest.tables.fields import FieldReader


class Jsonl(FieldReader):
    """One JSON object a line. Keys that are not mapped are kept as they are, top-level.

    A mapped top-level key is renamed. A dotted path is copied; the object into which it leads stays. Ids may be
    integers. A line without text is bad; one without id gets one. Metadata may be an object or its JSON text.
    """

    LINES = True
    SUFFIXES = (".jsonl", ".json", ".ndjson")
    IN_PLACE = True

    def read(self, source: Input) -> Iterator[Draft]:
        decoder = msgspec.json.Decoder(dict[str, Any])
        with source.lines() as lines:
            yield from source.items(lines, lambda line, number: self.draft(decoder.decode(line), number))
