"""JSON Lines of any shape: fields mapped by name."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data.documents import value_at
from toolkit.ingest.reader import Draft, Input, Reader

Names = str | list[str]


class Fields(ConfigStruct):
    """Where the fields of a document are: a key, a dotted path into objects, or several to be tried in turn."""

    id: Names = "id"
    text: Names = "text"
    source: Names = "source"
    added: Names = "added"
    created: Names = "created"
    metadata: Names = "metadata"


class Jsonl(Reader):
    """One JSON object a line. Keys that are not mapped are kept as they are, top-level.

    A mapped top-level key is renamed; a dotted path is copied, the object that it leads into stays. Ids may be
    integers. A line without text is bad; one without id gets one.
    """

    SUFFIXES = (".jsonl", ".json", ".ndjson")

    fields: Annotated[Fields, msgspec.Meta(description="name, dotted path or list of them for each field")] = Fields()

    def read(self, source: Input) -> Iterator[Draft]:
        decoder = msgspec.json.Decoder(dict[str, Any])
        with source.lines() as lines:
            yield from source.items(lines, lambda line, number: self._draft(decoder.decode(line), number))

    def _draft(self, row: dict[str, Any], number: int) -> Draft:
        found: dict[str, Any] = {}
        for name in ("id", "text", "source", "added", "created", "metadata"):
            key, value = self._find(row, getattr(self.fields, name))
            found[name] = value
            if key is not None:
                row.pop(key, None)
        if taken := [name for name in found if name in row]:
            raise msgspec.ValidationError(
                f"Expected no unmapped key {taken[0]}, got one: map `{taken[0]}` to it, or away"
            )
        if isinstance(found["id"], int) and not isinstance(found["id"], bool):
            found["id"] = str(found["id"])
        if found["text"] is None:
            names = self.fields.text if isinstance(self.fields.text, str) else " or ".join(self.fields.text)
            raise msgspec.ValidationError(f"Expected field {names}, got an object without it")
        return msgspec.convert({**found, "number": number, "extra": row}, Draft)

    def _find(self, row: dict[str, Any], names: Names) -> tuple[str | None, Any]:
        for name in [names] if isinstance(names, str) else names:
            if name in row:
                return name, row[name]
            if (value := value_at(row, name)) is not None:
                return name, value
        return None, None
