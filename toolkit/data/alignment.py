"""Reading attributes beside their documents: row n of one describes row n of the other, or it is an error."""

from collections.abc import Iterable, Iterator
from itertools import islice, tee
from types import TracebackType
from typing import Any, Self

import msgspec

from toolkit.data.dataset import Dataset, MadeLines
from toolkit.data.documents import BAD_ROW, DOCUMENT_DECODER, AttributesRow, Rows
from toolkit.data.row_index import row_hash
from toolkit.data.tables import TABLE
from toolkit.errors import AlignmentError, DataError
from toolkit.storage.paths import missing_reason
from toolkit.storage.reading import Lines

MAX_ROW = 1_000_000_000
"""Bytes of a row of attributes; a longer one is an error."""


def attribute_lines(path: str, *, digest: bool = False, ahead: bool = False) -> Lines:
    """Return the rows of an attribute file or table as JSON. Use it in a ``with`` block.

    Nothing else opens attributes.

    Args:
        path: Path of the file.
        digest: True to compute the digest of all rows (`Lines.content`).
        ahead: True if a thread may read the next block meanwhile.
    """
    if path.endswith(TABLE):
        from toolkit.data.tables.attributes import AttributeTableRows

        return MadeLines(AttributeTableRows(path), path, digest=digest)
    return Lines(path, MAX_ROW, digest=digest, ahead=ahead, fixed=True)


def _in_order(path: str) -> str:
    """Return the next step for an external file in another order."""
    if not path.endswith(TABLE):
        return ""
    return "; its rows must be in the order of the documents: where they are not, `toolkit align` finds values by id"


_PLAIN = msgspec.json.Decoder(AttributesRow)


def missing_file(path: str, dataset: Dataset, shard: str, command: str | None) -> AlignmentError:
    """Return the error for a missing attribute file. It names the first document without attributes.

    Args:
        path: Path of the attributes.
        dataset: Dataset of the documents.
        shard: Shard of the dataset.
        command: Command that makes such files; None for those of other programs.
    """
    documents = dataset.shard_path(shard)
    first: str | None = None
    try:
        with dataset.lines(shard, MAX_ROW) as lines:
            first = next((row.id for row, _ in Rows(lines, DOCUMENT_DECODER, documents)), None)
    except DataError:
        pass  # the documents are reported where they are read
    way_out = f"run `toolkit {command}`" if command else "another program made the set, and must write this file, too"
    message = f"expected the attributes of {documents}:1, got {missing_reason(path)}; {way_out}"
    return AlignmentError(message, path=path, line=1, id=first)


def is_of_experiment(key: str, keys: Iterable[str]) -> bool:
    """Return True for a key of Dolma's tagger, one of an experiment.

    Rows lack ``exp__tagger__label`` where there are no spans of the label.
    """
    experiment = key.partition("__")[0] + "__"
    return key.count("__") > 1 and any(key.startswith(experiment) for key in keys)


def _those_of(row: Any) -> str:
    return f"those of {row.id!r}" + ("" if row.source is None else f" from {row.source!r}")


class AttributeRows:
    """The rows of an attribute file, each taken for a document. A context manager.

    Args:
        path: Path of the attribute file.
        documents: path of the documents, for messages.
        decoder: Decoder of rows with ``id``, ``source`` and ``attributes``.
        any_source: True if rows may lack ``source``, as those of Dolma's deduper do.
        block: rows of the file that have been read; then the context manager is not needed.
        number: Number of rows before these.
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
            self._lines = attribute_lines(path)
        else:
            self._rows = Rows(iter(block), decoder, path, number)

    def __enter__(self) -> Self:
        self._rows = Rows(self._lines.__enter__(), self._decoder, self.path)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._lines.__exit__(kind, error, tb)

    def stored(self) -> int:
        """Return the stored bytes read so far."""
        return self._lines.stored()

    def can_go_on(self, error: DataError) -> bool:
        """Return True if an error of `take` is about one row. After an error of the file, no row can be read."""
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
            got = "the end of the file" if row is None else _those_of(row)
            raise self._other(number, got, id)
        return row, line

    def next_id(self) -> str | None:
        """Return the id of the next row, for messages; None if unknown."""
        try:
            row, _ = next(self._rows, (None, b""))
        except DataError:
            return None
        return row.id if row else None

    def counted(self, sizes: Iterable[int]) -> Iterator[list[Any]]:
        """Yield all rows of an aligned file, in blocks of these sizes.

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

    def indexed(self, hashes: Iterable[list[int]], sources: Iterable[str] = ()) -> Iterator[list[Any]]:
        """Yield all rows as `counted` does, checked against the row index. It is for files of other programs.

        Args:
            hashes: Hashes of the documents, in blocks.
            sources: Sources of the documents, each once, which are asked for where rows have none.
        """
        sizes, expected = tee(hashes)
        sources_read, more = list[str](), iter(sources)
        number = 0
        for rows, hashes_of_rows in zip(self.counted(map(len, sizes)), expected, strict=True):
            for row, hash_ in zip(rows, hashes_of_rows, strict=True):
                number += 1
                if row.source is None:
                    while not any(row_hash(item, row.id) == hash_ for item in sources_read):
                        if (another := next(more, None)) is None:
                            raise self._other(number, _those_of(row))
                        sources_read.append(another)
                elif row_hash(row.source, row.id) != hash_:
                    raise self._other(number, _those_of(row))
            yield rows

    def _other(self, number: int, got: str, id: str | None = None) -> AlignmentError:
        message = f"expected the attributes of {self._documents}:{number}, got {got}{_in_order(self.path)}"
        return AlignmentError(message, path=self.path, line=number, id=id)

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
            f"expected the end of the file after {rows} rows, as many as {self._documents} has, got another"
            + _in_order(self.path),
            path=self.path,
            line=rows + 1,
            id=id,
        )
