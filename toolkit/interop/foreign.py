"""Rows of others: JSON Lines with a text, in which nothing else need be as in documents."""

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar

import msgspec

from toolkit.data.documents import BAD_ROW, Document
from toolkit.errors import ConfigError
from toolkit.mix.writer import Mixed, Reading, Writer

TEXTS = ("text", "content")
"""Keys of a row that its text can have."""


class ForeignRows(Writer):
    """Objects with a text under one key. They are read and described; no mix writes them."""

    ID: ClassVar[tuple[str, ...]] = ()

    text: Annotated[str, msgspec.Meta(description="the key of the text")] = TEXTS[0]

    @property
    def READING(self) -> Reading:  # type: ignore[override]  # noqa: N802  # that of a format, which has options
        """Return where a row has its text; `source` and `metadata` of others may be of any type, and are not read."""
        return Reading(text=self.text, headers="warc_headers")

    def check(self, line: bytes) -> str | None:
        """Return what is wrong with a row: it must be an object with a text."""
        try:
            value = msgspec.json.decode(line, type=dict[str, msgspec.Raw]).get(self.text)
            if value is None:
                return f"expected an object with {self.text!r}, got one without"
            msgspec.json.decode(value, type=str)
        except BAD_ROW as error:
            return f"expected an object with a text under {self.text!r}, got: {error}"
        return None

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        raise ConfigError("expected a format that a mix can write, got rows of others")


def of_line(line: bytes) -> dict[str, Any] | None:
    """Return the options of `ForeignRows` for a file with this first line; None if it has documents, or no text."""
    try:
        row = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except BAD_ROW:
        return None
    texts = [key for key, value in row.items() if bytes(memoryview(value)[:1]) == b'"']
    key = next((key for key in TEXTS if key in texts), None)
    if key is None or {"id", "source", "text"} <= set(texts):
        return None
    return {"text": key} if key != TEXTS[0] else {}
