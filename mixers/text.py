"""Plain text, a file a language: OSCAR 2019, 21.09, and what goclassy writes.

Source: goclassy's ``main.go`` (each kept line to its language's file, a blank line where the language changes); OSCAR
schema v1.0 (2019) and v1.1 (21.09) for the folders; ungoliant 1.0 (21.09), ``document.rs``: a document's lines in one
language are one piece.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, Self

import msgspec

from toolkit import DataError, Document, Mixed, MixedBatch, Wanted, Writer
from toolkit.text import Array, LinePredictions, LineTable, compiled


class _Labelled(msgspec.Struct, frozen=True, gc=False):
    """A prediction without its probability."""

    label: str


class Text(Writer):
    """``unit: document``: each document to its language's file. ``line``, ``block``: each line to the file of its own.

    A blank line ends each piece. So blank lines inside a document are left out, and counted. With ``line``, all lines
    of a document in one language are one piece, as in OSCAR 21.09. With ``block``, a line of another language between
    them begins a new piece, as in OSCAR 2019. Lines without a language are left out, and counted.

    Attributes:
        unit: the pieces in a language's file
        borders: a blank line at the end of each piece; without, a file is lines and nothing else
        layout: `en.txt.gz`, or `en/en.txt.gz` as OSCAR 2019 and 21.09 were released
        identification: the attribute, or field (`metadata.language`), with the label, for documents
        sentence_identifications: the attribute with the label, or null, of each line, for lines and blocks
    """

    SUFFIX = ".txt"

    unit: Literal["document", "line", "block"] = "document"
    borders: bool = True
    layout: Literal["flat", "folders"] = "flat"
    identification: str = "language"
    sentence_identifications: str = "line_language"

    def label(self) -> str | None:
        return Writer.label_of(self.identification) if self.unit == "document" else None

    def wants(self) -> dict[str, Wanted]:
        if self.unit == "document":
            return {"document": Wanted(self.identification, _Labelled, not_null=("label",))}
        return {"lines": Wanted(self.sentence_identifications, list[_Labelled | None])}

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        return self.encode_batch(MixedBatch([document], [mixed]))[0]

    def encode_batch(self, batch: MixedBatch) -> list[list[tuple[str, bytes]]]:
        import numpy as np

        lines = batch.documents.lines
        labels, numbers = self._labels(batch)
        places = np.flatnonzero(numbers >= 0)
        batch.counts["lines without language"] += len(numbers) - len(places)
        blank = _blank(lines, places, ascii_only=self.unit == "block")
        batch.counts["blank lines"] += int(blank.sum())
        places = places[~blank]
        documents = lines.bounds.searchsorted(places, side="right") - 1
        keys = documents * len(labels) + numbers[places]
        if self.unit != "block":  # a label's lines stand where its first one is
            _, first, item = np.unique(keys, return_index=True, return_inverse=True)
            order = np.argsort(first[item], kind="stable")
            places, documents, keys = places[order], documents[order], keys[order]
        begins = np.flatnonzero(np.diff(keys, prepend=-1))
        border = 2 if self.borders else 1
        sizes = lines.bytes[places] + 1
        out = np.empty(int(sizes.sum()) + len(begins) * (border - 1), dtype=np.int8)
        ends = np.empty(len(begins), dtype=np.int64)
        bounds = np.append(begins, len(places))
        pieces = lines._replace(starts=lines.starts[places], ends=lines.ends[places])
        _join(pieces, bounds, len(begins), border, out, ends)
        written, begin = out.tobytes(), 0
        results: list[list[tuple[str, bytes]]] = [[] for _ in batch.documents]
        for document, number, end in zip(
            documents[begins].tolist(), numbers[places[begins]].tolist(), ends.tolist(), strict=True
        ):
            results[document].append((Writer.check_label(labels[number]), written[begin:end]))
            begin = end
        return results

    def _labels(self, batch: MixedBatch) -> tuple[Sequence[str], Any]:
        """Return labels, and the label number of each line. Numbers are int32; -1 is none."""
        import numpy as np

        counts = np.diff(batch.documents.lines.bounds)
        if self.unit != "document":
            values = batch.values("lines")
            predictions = values if isinstance(values, LinePredictions) else LinePredictions.of(values)
            if (wrong := np.flatnonzero(np.diff(predictions.bounds) != counts)).size:
                lines, got = counts[wrong[0]], np.diff(predictions.bounds)[wrong[0]]
                raise DataError(f"expected a label or null for each of {lines} lines, got {got}")
            return predictions.labels, predictions.numbers
        of_documents = [value.label for value in batch.values("document")]
        labels = sorted(set(of_documents))
        return labels, np.repeat(np.array(list(map(labels.index, of_documents)), dtype=np.int32), counts)

    def parts_documents(self) -> bool:
        return self.unit != "document"

    def text_of(self, piece: bytes) -> bytes:
        return piece[:-2] if self.borders else piece[:-1]

    @classmethod
    def of_file(cls, path: str, line: bytes) -> Self | None:
        return cls() if re.search(r"\.(txt|text)(\.\w+)?$", path) else None

    def read(self, lines: Iterator[bytes], max_bytes: int) -> Iterator[tuple[Document, str | None]]:
        """Return the documents, or pieces, between blank lines."""
        piece: list[bytes] = []
        size = 0
        for line in lines:
            if not self.borders:
                yield _piece([line]), None
            elif line.strip():
                piece.append(line)
                size += len(line) + 1
                if size > max_bytes:
                    raise DataError(
                        f"expected a piece of at most {max_bytes:,} bytes, got a longer one; raise `max_document_bytes`"
                    )
            elif piece:
                yield _piece(piece), None
                piece, size = [], 0
        if piece:
            yield _piece(piece), None

    def is_lines(self) -> bool:
        return not self.borders

    def stem(self, label: str) -> str:
        return super().stem(label) if self.layout == "folders" else label


_MAY_BE_BLANK = bytes(byte in b" \t\n\v\f\r\x1c\x1d\x1e\x1f\xc2\xe1\xe2\xe3" for byte in range(256))
"""Of each byte, whether white space begins with it; ``bytes.strip`` leaves some that ``str.isspace`` knows."""

_MULTIBYTE, _SECOND = 0x80, tuple(b"\x80\x81\x85\x9a\xa0")
"""From which byte on a code point has several, and the second bytes of those that are white space."""


def _blank(lines: LineTable, places: Array, *, ascii_only: bool) -> Array:
    """Return a mask of lines without text. The first byte decides about most of them.

    goclassy, whose files have blocks, keeps lines of other white space than ASCII's.
    """
    import numpy as np

    starts, ends = lines.starts[places], lines.ends[places]
    result: Array = starts == ends
    may_be_blank = np.frombuffer(_MAY_BE_BLANK, np.bool_)
    looked_at = np.flatnonzero(~result & may_be_blank[lines.utf8[starts].view(np.uint8)])
    if len(looked_at):
        first, second = (lines.utf8[starts[looked_at] + i].view(np.uint8) for i in range(2))
        looked_at = looked_at[(first < _MULTIBYTE) | np.isin(second, _SECOND)]
    for i in looked_at.tolist():
        line = lines.utf8[starts[i] : ends[i]].tobytes()
        result[i] = not line.strip() or (not ascii_only and line.decode().isspace())
    return result


@compiled(LineTable, "int64* int64 int64 int8* int64*")
def _join(lines: LineTable, bounds: Array, pieces: int, border: int, out: Array, places: Array) -> None:
    """Write lines one behind the other, each with a line feed.

    Args:
        lines: Lines that are written; their code points and bounds are not looked at.
        bounds: First line of each piece, and the end; int64 (pieces + 1).
        pieces: Number of pieces.
        border: Line feeds behind the last line of each.
        out: Array with room for all; int8.
        places: End of each piece in it; int64 (pieces).
    """
    at = 0
    for piece in range(pieces):
        for line in range(bounds[piece], bounds[piece + 1]):
            begin = lines.starts[line]
            size = lines.ends[line] - begin
            for i in range(size):
                out[at + i] = lines.utf8[begin + i]
            at += size
            out[at] = 10
            at += 1
        for _ in range(border - 1):
            out[at] = 10
            at += 1
        places[piece] = at


def _piece(lines: list[bytes]) -> Document:
    try:
        return Document(b"\n".join(lines).decode())
    except UnicodeDecodeError as error:
        raise DataError(f"expected text in UTF-8, got a piece before this line that is not: {error}") from None
