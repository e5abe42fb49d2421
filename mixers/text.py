"""Plain text, a file a language: OSCAR 2019, 21.09, and what goclassy writes.

Source: goclassy's ``main.go`` (each kept line to its language's file, a blank line where the language changes); OSCAR
schema v1.0 (2019) and v1.1 (21.09) for the folders; ungoliant 1.0 (21.09), ``document.rs``: a document's lines in one
language are one piece.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Literal, Self

import msgspec

from toolkit import DataError, Document, Mixed, Wanted, Writer, check_label, label_of


class _Labelled(msgspec.Struct, frozen=True, gc=False):
    """A prediction, of which only the label is needed."""

    label: str


class Text(Writer):
    """``unit: document``: each document to its language's file. ``line``, ``block``: each line to the file of its own.

    A blank line ends each piece, so blank lines inside a document are left out, and counted. With ``line`` the lines of
    a document that are of one language stand together as one piece, as in OSCAR 21.09; with ``block`` a line of another
    language between them begins a new piece, as in OSCAR 2019. Lines without language are left out, and counted.
    """

    SUFFIX = ".txt"

    unit: Annotated[
        Literal["document", "line", "block"], msgspec.Meta(description="what goes to a language's file")
    ] = "document"
    layout: Annotated[
        Literal["flat", "folders"],
        msgspec.Meta(description="`en.txt.gz`, or `en/en.txt.gz` as OSCAR 2019 and 21.09 were released"),
    ] = "flat"
    identification: Annotated[
        str, msgspec.Meta(description="for documents: the attribute, or field (`metadata.language`), with the label")
    ] = "language"
    sentence_identifications: Annotated[
        str, msgspec.Meta(description="for lines and blocks: the attribute with the label, or null, of each line")
    ] = "line_language"

    def label(self) -> str | None:
        return label_of(self.identification) if self.unit == "document" else None

    def wants(self) -> dict[str, Wanted]:
        if self.unit == "document":
            return {"document": Wanted(self.identification, _Labelled, not_null=("label",))}
        return {"lines": Wanted(self.sentence_identifications, list[_Labelled | None])}

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        lines = document.lines
        labels: list[_Labelled | None] = (
            [mixed.values["document"]] * len(lines) if self.unit == "document" else mixed.values["lines"]
        )
        if len(labels) != len(lines):
            raise DataError(f"expected a label or null for each of {len(lines)} lines, got {len(labels)}")
        pieces: list[tuple[str, list[str]]] = []
        of_label: dict[str, list[str]] = {}
        last, without, blank = "", 0, 0
        for line, found in zip(lines, labels, strict=True):
            if found is None:
                without += 1
            elif not line or line.isspace():
                blank += 1
            else:
                label = found.label
                if label not in of_label or (self.unit == "block" and label != last):
                    of_label[label] = []
                    pieces.append((check_label(label), of_label[label]))
                of_label[label].append(line)
                last = label
        mixed.counts["lines without language"] += without
        mixed.counts["blank lines"] += blank
        return [(label, ("\n".join(piece) + "\n\n").encode()) for label, piece in pieces]

    def parts_documents(self) -> bool:
        return self.unit != "document"

    def text_of(self, piece: bytes) -> bytes:
        return piece[:-2]

    @classmethod
    def of_file(cls, path: str, line: bytes) -> Self | None:
        return cls() if re.search(r"\.(txt|text)(\.\w+)?$", path) else None

    def read(self, lines: Iterator[bytes], max_bytes: int) -> Iterator[tuple[Document, str | None]]:
        """Return what stands between blank lines: documents, or pieces of them."""
        held: list[bytes] = []
        size = 0
        for line in lines:
            if line.strip():
                held.append(line)
                size += len(line) + 1
                if size > max_bytes:
                    raise DataError(
                        f"expected a piece of at most {max_bytes:,} bytes, got a longer one; raise `max_document_bytes`"
                    )
            elif held:
                yield _piece(held), None
                held, size = [], 0
        if held:
            yield _piece(held), None

    def stem(self, label: str) -> str:
        return super().stem(label) if self.layout == "folders" else label


def _piece(lines: list[bytes]) -> Document:
    try:
        return Document(b"\n".join(lines).decode())
    except UnicodeDecodeError as error:
        raise DataError(f"expected text in UTF-8, got a piece before this line that is not: {error}") from None
