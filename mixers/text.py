"""Plain text, a file a language: OSCAR 2019, 21.09, and what goclassy writes.

Source: goclassy's ``main.go`` (each kept line to its language's file, a blank line where the language changes); OSCAR
schema v1.0 (2019) and v1.1 (21.09) for the folders; ungoliant 1.0 (21.09), ``document.rs``: a document's lines in one
language are one piece.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Annotated, Literal

import msgspec

from toolkit import DataError, Document, Mixed, Prediction, Wanted, Writer, check_label


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
    identification: Annotated[str, msgspec.Meta(description="for documents: the attribute with the label")] = "language"
    sentence_identifications: Annotated[
        str, msgspec.Meta(description="for lines and blocks: the attribute with the label, or null, of each line")
    ] = "line_language"

    def label(self) -> str | None:
        return f"{self.identification}.label" if self.unit == "document" else None

    def wants(self) -> dict[str, Wanted]:
        if self.unit == "document":
            return {"document": Wanted(self.identification, Prediction, not_null=("label",))}
        return {"lines": Wanted(self.sentence_identifications, list[Prediction | None])}

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        labelled = self._labelled(document, mixed)
        if self.unit == "block":
            pieces = [(label, [line for _, line in block]) for label, block in groupby(labelled, key=itemgetter(0))]
        else:
            gathered: dict[str, list[str]] = {}
            for label, line in labelled:
                gathered.setdefault(label, []).append(line)
            pieces = list(gathered.items())
        return [(label, ("\n".join(lines) + "\n\n").encode()) for label, lines in pieces]

    def _labelled(self, document: Document, mixed: Mixed) -> Iterator[tuple[str, str]]:
        """The lines that are written, with the labels of their files."""
        lines = document.lines
        found: list[Prediction | None] = (
            [mixed.values["document"]] * len(lines) if self.unit == "document" else mixed.values["lines"]
        )
        if len(found) != len(lines):
            raise DataError(f"expected a label or null for each of {len(lines)} lines, got {len(found)}")
        for line, prediction in zip(lines, found, strict=True):
            if not prediction:
                mixed.counts["lines without language"] += 1
            elif not line.strip():
                mixed.counts["blank lines"] += 1
            else:
                yield check_label(prediction.label), line

    def stem(self, label: str) -> str:
        return super().stem(label) if self.layout == "folders" else label
