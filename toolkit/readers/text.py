"""Plain text: documents between blank lines, or one document a file."""

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from toolkit.errors import DataError
from toolkit.reader import Draft, Input, Reader
from toolkit.readers.wet import decode


class Text(Reader):
    """Documents of plain UTF-8 text; they get an id each (see ``ids``)."""

    SUFFIXES = (".txt", ".text", ".md")

    documents: Annotated[
        Literal["blank_line", "file"],
        msgspec.Meta(description="a document ends at a blank line, or is the whole file"),
    ] = "blank_line"
    invalid_utf8: Annotated[
        Literal["replace", "drop_line", "drop_document"],
        msgspec.Meta(description="text that is not UTF-8: U+FFFD instead, or drop its lines, or the document"),
    ] = "replace"

    def read(self, source: Input) -> Iterator[Draft]:
        for number, block in enumerate(self._blocks(source), 1):
            text = decode(block, self.invalid_utf8, source)
            if text is not None:
                yield Draft(text=text, number=number)

    def _blocks(self, source: Input) -> Iterator[bytes]:
        held: list[bytes] = []
        size = 0
        with source.lines() as lines:
            for line in lines:
                if self.documents == "blank_line" and not line.strip():
                    if held:
                        yield b"\n".join(held).removesuffix(b"\r")
                    held, size = [], 0
                    continue
                held.append(line)
                size += len(line) + 1
                if size > source.max_bytes:
                    raise DataError(
                        f"expected a document of at most {source.max_bytes:,} bytes, got a longer one; "
                        "raise `max_document_bytes`",
                        path=source.path,
                        line=lines.number,
                    )
        if held:
            yield b"\n".join(held).removesuffix(b"\r")
