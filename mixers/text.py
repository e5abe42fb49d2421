"""Plain text, a file a language: OSCAR 2019, 21.09, and what goclassy writes.

Source: goclassy's ``main.go`` (each kept line to its language's file, a blank line where the language changes); OSCAR
schema v1.0 (2019) and v1.1 (21.09) for the folders; ungoliant 1.0 (21.09), ``document.rs``: a document's lines in one
language are one piece.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal, Self

import msgspec

from toolkit import DataError, Document, Mixed, MixedBatch, Wanted, Writer, check_label, label_of
from toolkit.text import LinePredictions


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
    borders: Annotated[
        bool,
        msgspec.Meta(description="whether a blank line ends each piece; without, a file is lines and nothing else"),
    ] = True
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
        return self.encode_batch(MixedBatch([document], [mixed]))[0]

    def encode_batch(self, batch: MixedBatch) -> list[list[tuple[str, bytes]]]:
        lines, utf8 = batch.documents.lines, batch.documents.lines.utf8.tobytes()
        labels, numbers = self._labels(batch)
        kept = numbers >= 0
        batch.counts["lines without language"] += len(numbers) - int(kept.sum())
        places = kept.nonzero()[0]
        documents = lines.bounds.searchsorted(places, side="right") - 1
        found: list[list[tuple[str, list[bytes]]]] = [[] for _ in batch.documents]
        blank, at, last = 0, -1, -1
        of_label: dict[int, list[bytes]] = {}
        for document, number, begin, end in zip(
            *(each.tolist() for each in (documents, numbers[places], lines.starts[places], lines.ends[places])),
            strict=True,
        ):
            line = utf8[begin:end]
            if not line or (line[0] in _MAY_BE_BLANK and _is_blank(line)):  # hardly any needs the call
                blank += 1
                continue
            if document != at:
                at, last, of_label = document, -1, {}
            if number not in of_label or (self.unit == "block" and number != last):
                of_label[number] = []
                found[document].append((check_label(labels[number]), of_label[number]))
            of_label[number].append(line)
            last = number
        batch.counts["blank lines"] += blank
        end = b"\n\n" if self.borders else b"\n"
        return [[(label, b"\n".join(piece) + end) for label, piece in pieces] for pieces in found]

    def _labels(self, batch: MixedBatch) -> tuple[Sequence[str], Any]:
        """Return labels, and the number of that of each line, int32; -1 for a line without."""
        import numpy as np

        counts = np.diff(batch.documents.lines.bounds)
        if self.unit != "document":
            values = batch.values("lines")
            found = values if isinstance(values, LinePredictions) else LinePredictions.of(values)
            if (wrong := np.flatnonzero(np.diff(found.bounds) != counts)).size:
                lines, got = counts[wrong[0]], np.diff(found.bounds)[wrong[0]]
                raise DataError(f"expected a label or null for each of {lines} lines, got {got}")
            return found.labels, found.numbers
        of_documents = [value.label for value in batch.values("document")]
        labels = sorted(set(of_documents))
        return labels, np.repeat(np.array([labels.index(each) for each in of_documents], dtype=np.int32), counts)

    def parts_documents(self) -> bool:
        return self.unit != "document"

    def text_of(self, piece: bytes) -> bytes:
        return piece[:-2] if self.borders else piece[:-1]

    @classmethod
    def of_file(cls, path: str, line: bytes) -> Self | None:
        return cls() if re.search(r"\.(txt|text)(\.\w+)?$", path) else None

    def read(self, lines: Iterator[bytes], max_bytes: int) -> Iterator[tuple[Document, str | None]]:
        """Return what stands between blank lines: documents, or pieces of them."""
        held: list[bytes] = []
        size = 0
        for line in lines:
            if not self.borders:
                yield _piece([line]), None
            elif line.strip():
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

    def is_lines(self) -> bool:
        return not self.borders

    def stem(self, label: str) -> str:
        return super().stem(label) if self.layout == "folders" else label


_MAY_BE_BLANK = frozenset(b" \t\n\v\f\r\x1c\x1d\x1e\x1f\xc2\xe1\xe2\xe3")
"""Bytes with which white space begins; ``bytes.strip`` leaves some that ``str.isspace`` knows."""


def _is_blank(line: bytes) -> bool:
    rest = line.lstrip()
    return not rest or (rest[0] in _MAY_BE_BLANK and rest.decode().isspace())


def _piece(lines: list[bytes]) -> Document:
    try:
        return Document(b"\n".join(lines).decode())
    except UnicodeDecodeError as error:
        raise DataError(f"expected text in UTF-8, got a piece before this line that is not: {error}") from None
