"""Plain text: documents between blank lines, or one document a file."""

import itertools
from collections.abc import Iterator
from typing import Literal

from toolkit.ingest.formats.wet import InvalidUtf8, decode
from toolkit.ingest.reader import Draft, Input, Reader
from toolkit.storage.reading import HEAD, LongLine


class Text(Reader):
    """Documents of plain UTF-8 text; they get an id each (see ``ids``).

    Attributes:
        documents: a document ends at a blank line, or is the whole file
    """

    SUFFIXES = (".txt", ".text", ".md")
    PACK = 64_000_000

    documents: Literal["blank_line", "file"] = "blank_line"
    invalid_utf8: InvalidUtf8 = "replace"

    def read(self, source: Input) -> Iterator[Draft]:
        for number, block in self._blocks(source):
            text, utf8 = decode(block, self.invalid_utf8, source)
            if text is not None:
                yield Draft(text=text, number=number, utf8=utf8)

    def _blocks(self, source: Input) -> Iterator[tuple[int, bytes]]:
        """Yield the documents, numbered; one that is too large is bad, and is not held."""
        number = 1
        lines_of_document: list[bytes] = []
        size = offset = 0
        with source.lines() as lines:
            for line in itertools.chain(lines, [None]):
                length = line.size if isinstance(line, LongLine) else len(line or b"")
                if line is not None and (self.documents == "file" or line.strip() or length > len(line)):
                    size += length + 1
                    if size <= source.max_bytes + 1:
                        lines_of_document.append(line)
                    elif not source.skip:
                        source.too_large("document", b"", lines.number, size)
                    else:
                        lines_of_document = [b"\n".join([*lines_of_document, line])[:HEAD]]
                    continue
                if size > source.max_bytes + 1:
                    source.too_large("document", lines_of_document[0], number, size - 1, offset)
                elif lines_of_document:
                    yield number, b"\n".join(lines_of_document).removesuffix(b"\r")
                number += bool(size)
                offset += size + length + 1
                lines_of_document, size = [], 0
