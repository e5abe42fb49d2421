"""Plain text, a file a language: OSCAR 2019, 21.09, and what goclassy writes.

Source: goclassy's ``main.go`` (each kept line to its language's file, a blank line between blocks); OSCAR schema v1:
documents, or pieces of documents, between blank lines.
"""

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from toolkit import DataError, Document, Mixed, Prediction, Wanted, Writer, check_label


class Text(Writer):
    r"""``unit: document``: each document to its language's file. ``unit: line``: each line to the file of its own.

    Blank lines separate documents, so those inside a document are left out, and counted. With ``unit: line`` the lines
    of a document that are of one language stand together as one piece, as in OSCAR 21.09; lines without language are
    left out, and counted.
    """

    SUFFIX = ".txt"

    unit: Annotated[Literal["document", "line"], msgspec.Meta(description="what goes to one language's file")] = (
        "document"
    )
    identification: Annotated[str, msgspec.Meta(description="for documents: the attribute with the label")] = "language"
    sentence_identifications: Annotated[
        str, msgspec.Meta(description="for lines: the attribute with the label, or null, of each line")
    ] = "line_language"

    def wants(self) -> dict[str, Wanted]:
        if self.unit == "line":
            return {"lines": Wanted(self.sentence_identifications, list[Prediction | None])}
        return {"document": Wanted(self.identification, Prediction, not_null=("label",))}

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        if self.unit == "document":
            kept = [line for line in document.lines if line.strip()]
            mixed.counts["blank lines"] += len(document.lines) - len(kept)
            text = "".join(line + "\n" for line in kept)
            return [(check_label(mixed.values["document"].label), text.encode() + b"\n")] if text else []
        found: list[Prediction | None] = mixed.values["lines"]
        if len(found) != len(document.lines):
            raise DataError(f"expected a label or null for each of {len(document.lines)} lines, got {len(found)}")
        pieces: dict[str, list[str]] = {}
        for line, prediction in zip(document.lines, found, strict=True):
            if not prediction:
                mixed.counts["lines without language"] += 1
            elif not line.strip():
                mixed.counts["blank lines"] += 1
            else:
                pieces.setdefault(check_label(prediction.label), []).append(line)
        return [(label, ("\n".join(lines) + "\n\n").encode()) for label, lines in pieces.items()]

    def stem(self, label: str) -> str:
        return label
