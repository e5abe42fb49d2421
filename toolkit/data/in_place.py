r"""Documents of external files as rows: the contract of `Dataset.lines` and readers.

documents/X.jsonl.gz ──decompress, split──────────────────────> ShardLines ──rows as JSON──> tag, dedup, mix, stats …
others/X.parquet     ──reader of `ingest`, trim, ids──rows────> MadeLines ──rows as JSON──> the same, which do not know

Nothing here knows how external files are read: what does (`toolkit.ingest.in_place`) is passed in with the dataset.
The rows are those that an ingest would write, byte by byte, and so are their digest, and the row index.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol, Self

import msgspec

from toolkit.data.documents import FreshDocument
from toolkit.data.own_types import OwnTypes
from toolkit.errors import DataError
from toolkit.storage.reading import Lines

SUFFIX = ".jsonl.gz"
"""Suffix of the attributes of an external file, after its name."""

_ROWS, _BYTES = 256, 1 << 19


class Begin(NamedTuple):
    """A place in an external file to start reading at.

    Attributes:
        row: documents before it.
        number: items of the file before it; more than `row` where some become no document.
        place: Place for its reader: an offset in the stored bytes, or the number of a part of the file.
    """

    row: int = 0
    number: int = 0
    place: int = 0


START = Begin()


class Sieve(Protocol):
    """Choice of rows of a table to make.

    Attributes:
        leaves_gaps: True if made rows are `GappedRow`.
    """

    leaves_gaps: bool

    def __call__(self, number: int, columns: Mapping[str, Any]) -> tuple[Sequence[bool], Callable[[], None]] | None:
        """Return a mask of rows, and a function to call after.

        Return None for all rows. The function is called when rows are made. Rows that are not made are empty bytes.

        Args:
            number: Number of rows before them.
            columns: Their fields as columns of Arrow; `id` and `source` are lists.
        """


class GappedRow(bytes):
    """A row with an empty text.

    Attributes:
        utf8: Text of the document.
    """

    utf8: bytes

    @classmethod
    def of(cls, row: bytes, utf8: bytes) -> Self:
        """Return a row with a text beside it."""
        result = cls(row)
        result.utf8 = utf8
        return result

    def filled(self) -> bytes:
        """Return the row with the text in it."""
        fields = msgspec.json.decode(self, type=dict[str, msgspec.Raw])
        return msgspec.json.encode(fields | {"text": self.utf8.decode()})


class IndexRow(bytes):
    """A row without attributes of its own, made without Python's JSON.

    Attributes:
        document: Document.
        paths: Paths of its fields; None if they are not known.
    """

    document: FreshDocument
    paths: tuple[str, ...] | None

    @classmethod
    def of(cls, document: FreshDocument, paths: tuple[str, ...] | None) -> Self:
        """Return the row of a document."""
        result = cls(document.row)
        result.document, result.paths = document, paths
        return result


class MadeRows(Protocol):
    """The rows made of a file while it is read.

    Attributes:
        counts: Counts by reason, of what became documents and what did not, so far.
        begins: places from which rows can be read, in order, when all have been given; none if nothing tells.
        source: Source of all rows, when all have been given; empty if they have several.
    """

    counts: Mapping[str, int]
    begins: Sequence[Begin]
    source: str

    def rows(self) -> Iterator[bytes]:
        """Yield the documents as JSON, without line ends.

        Raises:
            DataError: as ingest does: if the file is damaged, or an item of it does not fit.
        """

    def stored(self) -> int:
        """Return how many bytes of the file have been read."""

    def close(self) -> None:
        """End the reading."""


class InPlace(Protocol):
    """How external files are read as documents. It can be hashed, and sent to other processes."""

    @property
    def pattern(self) -> str:
        """Return the path, glob or folder of the files."""

    @property
    def is_flat(self) -> bool:
        """Return True if all files lie in one folder."""

    def files(self) -> Mapping[str, int | None]:
        """Return the files below the documents root, with stored bytes if known.

        Raises:
            NothingThere: if there is none.
        """

    def read(
        self, path: str, relative: str, max_bytes: int, begin: Begin, sieve: Sieve | None, *, indexes: bool = False
    ) -> MadeRows:
        """Return the row maker of a file.

        Args:
            path: Path of the file.
            relative: the same below the documents root, of which ids are made.
            max_bytes: a larger document is an error.
            begin: Place to start at.
            sieve: asked before rows are made, where a file is a table whose columns are fields.
            indexes: True if rows of such a table are `IndexRow`.
        """

    def tables(self, path: str, relative: str, fields: Collection[str]) -> Iterator[dict[str, Any]] | None:
        """Yield fields of documents as columns of Arrow, in batches. Return None if rows must be made.

        Args:
            path: Path of the file.
            relative: Meaning as in `read`.
            fields: Fields of ``id``, ``source``, ``text``, ``added``, ``created``, and ``metadata``, which is JSON.

        Raises:
            DataError: if the file is damaged.
        """

    def own_types(self) -> OwnTypes | None:
        """Return the types of the documents' own fields; None if they are not known."""

    def settings(self) -> dict[str, Any]:
        """Return the settings of the reader, part of the lineage."""


class ShardLines(Lines):
    """The rows of a shard.

    Attributes:
        counts: Counts by reason, of what its file had beside documents; nothing of documents as the toolkit writes
            them.
    """

    counts: Mapping[str, int] = {}  # nobody adds to it

    @property
    def begins(self) -> Sequence[Begin]:
        """The places to start reading at, after all rows were read. Our files have only their start."""
        return ()

    @property
    def source(self) -> str:
        """The source of all rows, after the file was read; empty if several."""
        return ""


class MadeLines(ShardLines):
    """The rows made of an external file.

    Args:
        made: the rows.
        path: Path of the file.
        digest: True to compute `content`: of the rows with line ends, as in a shard.
    """

    def __init__(self, rows: MadeRows, path: str, *, digest: bool) -> None:
        super().__init__(path, 0, digest=digest)
        self._rows = rows
        self.counts = rows.counts

    def __enter__(self) -> Self:
        self._blocks = self._split()
        return self

    def __exit__(self, *_: object) -> None:
        self._rows.close()

    def stored(self) -> int:
        return self._rows.stored()

    @property
    def begins(self) -> Sequence[Begin]:
        return self._rows.begins

    @property
    def source(self) -> str:
        return self._rows.source

    def _split(self) -> Iterator[list[bytes]]:
        rows, fault = self._rows.rows(), None
        while fault is None:
            block: list[bytes] = []
            size = 0
            try:
                for row in islice(rows, _ROWS):
                    block.append(row)
                    if (size := size + len(row) + 1) >= _BYTES:
                        break
            except DataError as error:
                fault = error
            if not block:
                break
            self.size += size
            if self._hash:
                self._hash.update(b"\n".join((*block, b"")))
            yield block
        if fault:
            raise fault
        if self._hash:
            self.content = self._hash.hexdigest()
