r"""The one seam where the documents of a shard are opened: `Dataset.lines` gives their rows, wherever they come from.

documents/X.jsonl.gz ──decompress, split──────────────────────> ShardLines ──rows as JSON──> tag, dedup, mix, stats …
others/X.parquet     ──reader of `ingest`, trim, ids──rows────> MadeLines ──rows as JSON──> the same, which do not know

Nothing here knows how external files are read: what does (`toolkit.ingest.in_place`) is passed in with the dataset.
The rows are those that an ingest would write, byte by byte, and so are their digest, and the row index.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol, Self

from toolkit.data.own_types import OwnTypes
from toolkit.errors import DataError
from toolkit.storage.reading import Lines

SUFFIX = ".jsonl.gz"
"""Suffix of the attributes of an external file, after its name."""

_ROWS, _BYTES = 256, 1 << 19


class Begin(NamedTuple):
    """A place in an external file from which its documents can be read.

    Attributes:
        row: documents before it.
        number: items of the file before it; more than `row` where some become no document.
        place: for its reader: an offset in the stored bytes, or the number of a part of the file.
    """

    row: int = 0
    number: int = 0
    place: int = 0


START = Begin()


Sieve = Callable[[int, Mapping[str, Any]], tuple[Sequence[bool], Callable[[], None]] | None]
"""What is asked before rows of a table are made, with the number of rows before them and their fields as columns of
Arrow (`id` and `source` are lists): which are made; and what is called when these are. Others are empty bytes. None
where all are made."""


class MadeRows(Protocol):
    """The rows that are made of a file while it is read.

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
        """Return the path, glob or folder that names the files."""

    @property
    def is_flat(self) -> bool:
        """Return whether all files lie in one folder, and nothing below it can be one of them."""

    def files(self) -> Mapping[str, int | None]:
        """Return the files' paths below the documents root, with their stored bytes where they are known.

        Raises:
            NothingThere: if there is none.
        """

    def read(self, path: str, relative: str, max_bytes: int, begin: Begin, sieve: Sieve | None) -> MadeRows:
        """Return what makes rows of a file.

        Args:
            path: Path of the file.
            relative: the same below the documents root, of which ids are made.
            max_bytes: a larger document is an error.
            begin: where reading begins.
            sieve: asked before rows are made, where a file is a table whose columns are fields.
        """

    def tables(self, path: str, relative: str, fields: Collection[str]) -> Iterator[dict[str, Any]] | None:
        """Yield fields of documents as columns of Arrow, some rows at a time; None where rows are to be made.

        Args:
            path: Path of the file.
            relative: as of `read`.
            fields: Fields of ``id``, ``source``, ``text``, ``added``, ``created``, and ``metadata``, which is JSON.

        Raises:
            DataError: if the file is damaged.
        """

    def own_types(self) -> OwnTypes | None:
        """Return the types of the documents' own fields; None if they are not known."""

    def settings(self) -> dict[str, Any]:
        """Return all that decides what becomes of a file: part of the lineage of what is made from it."""


class ShardLines(Lines):
    """The rows of a shard.

    Attributes:
        counts: Counts by reason, of what its file had beside documents; nothing of documents as the toolkit writes
            them.
    """

    counts: Mapping[str, int] = {}  # nobody adds to it

    @property
    def begins(self) -> Sequence[Begin]:
        """The places from which rows can be read, when all have been read; none but the start of what we write."""
        return ()

    @property
    def source(self) -> str:
        """The source of all rows of a file in place, when all have been read; empty if they have several."""
        return ""


class MadeLines(ShardLines):
    """The rows that are made of an external file.

    Args:
        made: the rows.
        path: Path of the file.
        digest: whether to compute `content`: of the rows with line ends, as they would stand in a shard.
    """

    def __init__(self, made: MadeRows, path: str, *, digest: bool) -> None:
        super().__init__(path, 0, digest=digest)
        self._made = made
        self.counts = made.counts

    def __enter__(self) -> Self:
        self._blocks = self._split()
        return self

    def __exit__(self, *_: object) -> None:
        self._made.close()

    def stored(self) -> int:
        return self._made.stored()

    @property
    def begins(self) -> Sequence[Begin]:
        return self._made.begins

    @property
    def source(self) -> str:
        return self._made.source

    def _split(self) -> Iterator[list[bytes]]:
        rows, fault = self._made.rows(), None
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
