"""Reading attributes beside their documents: row n of one describes row n of the other, or it is an error."""

from collections.abc import Iterable, Iterator
from itertools import islice, tee
from types import TracebackType
from typing import Any, Self

import msgspec

from toolkit.data.documents import BAD_ROW, DOCUMENT_DECODER, AttributesRow, Rows
from toolkit.data.row_index import row_hash
from toolkit.errors import AlignmentError, DataError
from toolkit.storage.paths import lacking
from toolkit.storage.reading import Lines

MAX_ROW = 1_000_000_000
"""Bytes of a row of attributes; a longer one is an error."""

_PLAIN = msgspec.json.Decoder(AttributesRow)


def missing_file(path: str, documents: str, command: str = "tag") -> AlignmentError:
    """Return the error for an attribute file that is not there; it names the first document without attributes.

    Args:
        path: of the attributes.
        documents: path of the documents.
        command: that makes such files.
    """
    first: str | None = None
    try:
        with Lines(documents, MAX_ROW) as lines:
            first = next((row.id for row, _ in Rows(lines, DOCUMENT_DECODER, documents)), None)
    except DataError:
        pass  # the documents are reported where they are read
    message = f"expected the attributes of {documents}:1, got {lacking(path)}; run `toolkit {command}`"
    return AlignmentError(message, path=path, line=1, id=first)


def is_of_experiment(key: str, keys: Iterable[str]) -> bool:
    """Return whether a key is called as Dolma's tagger calls it, and others there are of the same experiment.

    Rows lack ``exp__tagger__label`` where there are no spans of the label.
    """
    experiment = key.partition("__")[0] + "__"
    return key.count("__") > 1 and any(each.startswith(experiment) for each in keys)


class AttributeRows:
    """The rows of an attribute file, each taken for a document. A context manager.

    Args:
        path: of the attribute file.
        documents: path of the documents, for messages.
        decoder: of rows with ``id``, ``source`` and ``attributes``.
        any_source: whether rows may lack ``source``, as those of Dolma's deduper do.
        block: rows of the file that have been read; then the context manager is not needed.
        number: of rows before these.
    """

    def __init__(
        self,
        path: str,
        documents: str,
        decoder: msgspec.json.Decoder[Any] = _PLAIN,
        *,
        any_source: bool = False,
        block: Iterable[bytes] | None = None,
        number: int = 0,
    ) -> None:
        self.path = path
        self._documents = documents
        self._decoder = decoder
        self._any_source = any_source
        if block is None:
            self._lines = Lines(path, MAX_ROW)
        else:
            self._rows = Rows(iter(block), decoder, path, number)

    def __enter__(self) -> Self:
        self._rows = Rows(self._lines.__enter__(), self._decoder, self.path)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._lines.__exit__(kind, error, tb)

    def stored(self) -> int:
        """Return how many bytes of the file have been read, as they are stored."""
        return self._lines.stored()

    def can_go_on(self, error: DataError) -> bool:
        """Return whether an error of `take` is about one row; behind one about the file, it cannot be read on."""
        return error.line == self._rows.number

    def take(self, id: str, source: str, number: int) -> tuple[Any, bytes]:
        """Return the row for the document with this row number: decoded, and its line.

        Raises:
            AlignmentError: if there is none, or it describes another document.
            DataError: if it is no row of attributes.
        """
        try:
            row, line = next(self._rows, (None, b""))
        except DataError as error:
            message = error.message
            if not self._any_source and not self.can_go_on(error):
                message += "; delete the file, and `toolkit tag` makes it again"
            raise DataError(message, path=self.path, line=error.line, id=error.id or id) from None
        if row is None or row.id != id or (row.source != source and not (self._any_source and row.source is None)):
            got = "the end of the file" if row is None else f"those of {row.id!r} from {row.source!r}"
            raise AlignmentError(
                f"expected the attributes of {self._documents}:{number}, got {got}", path=self.path, line=number, id=id
            )
        return row, line

    def next_id(self) -> str | None:
        """Return the id of the next row, for messages about documents that cannot be read; None if it is not known."""
        try:
            row, _ = next(self._rows, (None, b""))
        except DataError:
            return None
        return row.id if row else None

    def counted(self, sizes: Iterable[int]) -> Iterator[list[Any]]:
        """Yield all rows, in blocks of these sizes, of a file that is known to describe these documents.

        Raises:
            AlignmentError: if there are fewer or more rows.
            DataError: if a row is none of attributes.
        """
        number = 0
        rows = self._decoded()
        for size in sizes:
            block = list(islice(rows, size))
            number += len(block)
            if len(block) < size:
                raise self._other(number + 1, "the end of the file")
            yield block
        if next(rows, None) is not None:
            raise self._too_many(number, None)

    def indexed(self, hashes: Iterable[list[int]]) -> Iterator[list[Any]]:
        """Yield all rows as `counted` does, of a file of another program, held against the hashes of the row index.

        Rows without source are taken on trust.
        """
        sizes, expected = tee(hashes)
        number = 0
        for rows, wanted in zip(self.counted(map(len, sizes)), expected, strict=True):
            for row, hash_ in zip(rows, wanted, strict=True):
                number += 1
                if row.source is not None and row_hash(row.source, row.id) != hash_:
                    raise self._other(number, f"those of {row.id!r} from {row.source!r}")
            yield rows

    def _other(self, number: int, got: str) -> AlignmentError:
        return AlignmentError(
            f"expected the attributes of {self._documents}:{number}, got {got}", path=self.path, line=number
        )

    def _decoded(self) -> Iterator[Any]:
        """Yield the rows, decoded many at a time."""
        decode = self._decoder.decode
        for block in self._lines.blocks():
            try:
                yield from list(map(decode, block))
            except BAD_ROW:
                self._lines.give_back(block)
                self._rows.number = self._lines.number
                yield from (row for row, _ in self._rows)  # which names the bad one

    def finish(self, rows: int) -> None:
        """Raise AlignmentError if there are more rows than documents."""
        row, _ = next(self._rows, (None, b""))
        if row is not None:
            raise self._too_many(rows, row.id)

    def _too_many(self, rows: int, id: str | None) -> AlignmentError:
        return AlignmentError(
            f"expected the end of the file after {rows} rows, as many as {self._documents} has, got another",
            path=self.path,
            line=rows + 1,
            id=id,
        )
