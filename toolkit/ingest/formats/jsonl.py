"""JSON Lines of any shape: fields mapped by name."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

import msgspec

from toolkit.data.documents import BAD_ROW, is_nested_too_deeply
from toolkit.errors import DataError
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

    def read_batches(self, source: Input) -> Iterator[Sequence[Draft]]:
        decode = msgspec.json.Decoder(dict[str, Any]).decode
        with source.lines() as lines:
            for block in lines.blocks():
                drafts: list[Draft] = []
                number = lines.number - len(block)
                if number and not source.skip and not source.sample:  # the first line may have a byte order mark
                    with suppress(*BAD_ROW, DataError):
                        if not any(map(is_nested_too_deeply, block)):
                            drafts = [*map(self.draft, map(decode, block), count(number + 1))]
                if drafts:
                    yield drafts
                    continue
                lines.give_back(block)
                yield from zip(source.items(lines, lambda line, number: self.draft(decode(line), number), len(block)))
