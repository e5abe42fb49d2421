"""Finds documents with equal (source, id), out of core.

row indexes, 8 bytes a document ──ranges of hashes, on local disk──> sorted ──equal hashes──> their documents are read
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeAlias

import msgspec
import xxhash

from toolkit.data import alignment, documents, record_logs, row_index
from toolkit.data.dataset import Dataset
from toolkit.errors import DataError, ToolkitError
from toolkit.lazy_numpy import np
from toolkit.storage.freshness import Artifact, state
from toolkit.storage.paths import join
from toolkit.storage.reading import open_stored
from toolkit.storage.stores.local.scratch import open_scratch, scratch
from toolkit.storage.threads import for_each

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"

MEMORY = 256_000_000
"""Bytes of a search, by default."""

_COST = 24
"""Bytes of memory that a document takes while its range of hashes is sorted."""

KEY = [("high", "<u8"), ("low", "<u8")]
"""Result of `toolkit.data.row_index.key_of`: documents with equal keys are the same."""

_PLACE = ("identity", "ids")

ADVICE = (
    'give ids that files share the path before them (`ids: "{path}/{id}"` of ingest, or of documents in place), or '
    "go on with `duplicate_ids: allow`"
)

ADVICE_FOR_STREAMS = (
    "leave each document to one stream by its rules, or give datasets that share no document a `source` of their own; "
    "or go on with `duplicate_ids: allow`"
)


class ShardDocuments(Protocol):
    """Documents of a shard, as the search reads them.

    Attributes:
        name: Path for people.
        rows: Number of documents.
    """

    @property
    def name(self) -> str: ...

    @property
    def rows(self) -> int: ...

    def hashes(self) -> Iterator[Array]:
        """Yield the xxh3-64 of (source, id) of all documents, in blocks."""

    def keys(self, places: Array) -> Array:
        """Return `KEY` of the documents at ascending places, from 0."""

    def row(self, place: int) -> int:
        """Return the row, from 1, of the document at a place."""

    def id(self, place: int) -> str | None:
        """Return the id of the document at a place; None if it cannot be read."""


class Duplicate(NamedTuple):
    """Two documents with equal (source, id): the shard of each by index, and its place there, from 0."""

    first: tuple[int, int]
    second: tuple[int, int]

    def error(self, shards: Sequence[ShardDocuments], advice: str = "") -> DataError:
        """Return the error with the id and both rows."""
        (first, first_place), (second, place) = self
        before = f"{shards[first].name}:{shards[first].row(first_place)}"
        message = f"expected each (source, id) once, got that of {before} again"
        of = shards[second]
        return DataError(message + (advice and f"; {advice}"), path=of.name, line=of.row(place), id=of.id(place))


def find_duplicate_ids(shards: Sequence[ShardDocuments], memory: int = MEMORY) -> Iterator[Duplicate]:
    """Yield documents with a repeated (source, id, copy number), and the first.

    Documents are read only where hashes are equal, which alone proves nothing.

    Args:
        shards: Documents to search, in order.
        memory: Bytes to hold at a time, about; hashes beyond are on local disk.
    """
    for repeated in repeated_hashes(shards, memory):
        yield from _confirmed(shards, repeated)


def repeated_hashes(shards: Sequence[ShardDocuments], memory: int = MEMORY) -> Iterator[Array]:
    """Yield repeated hashes, sorted; arguments as of `find_duplicate_ids`."""
    for hashes in _ranges(shards, memory):
        hashes.sort()
        repeated = hashes[1:][hashes[1:] == hashes[:-1]]
        del hashes
        if len(repeated):  # mostly there are none, and `unique` imports much
            yield np.unique(repeated)


def _ranges(shards: Sequence[ShardDocuments], memory: int) -> Iterator[Array]:
    """Yield the hashes of all documents, one range at a time."""
    count = 1 + sum(shard.rows for shard in shards) * _COST // memory
    blocks = (block for shard in shards for block in shard.hashes())
    if count == 1:
        yield np.concatenate([np.empty(0, "<u8"), *blocks])
        return
    bounds = np.array([(i << 64) // count for i in range(1, count)], dtype="<u8")
    with scratch() as folder:
        paths = [join(folder, str(i)) for i in range(count)]
        for block in blocks:
            ordered = np.sort(block)
            ends = [0, *np.searchsorted(ordered, bounds).tolist(), len(ordered)]
            for path, (begin, end) in zip(paths, pairwise(ends), strict=True):
                with open_scratch(path, "ab") as file:
                    ordered[begin:end].tofile(file)
        for path in paths:
            yield np.fromfile(path, "<u8")


def _confirmed(shards: Sequence[ShardDocuments], repeated: Array) -> Iterator[Duplicate]:
    """Yield the duplicates among documents with sorted hashes. Those of the first hash come first."""
    places: list[Array] = []
    indexes: list[Array] = []
    for shard in shards:
        first, results, mine = 0, [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for block in shard.hashes():
            near = np.minimum(np.searchsorted(repeated, block), len(repeated) - 1)
            matches = np.flatnonzero(repeated[near] == block)
            results.append(matches + first)
            mine.append(near[matches])
            first += len(block)
        places.append(np.concatenate(results))
        indexes.append(np.concatenate(mine))
    for low, high in ((0, 1), (1, len(repeated))):  # who looks for one reads a few documents
        chosen = [place[(low <= of) & (of < high)] for place, of in zip(places, indexes, strict=True)]
        number = np.repeat(np.arange(len(shards)), list(map(len, chosen)))
        place = np.concatenate(chosen)
        keys = np.concatenate([np.empty(0, KEY), *(s.keys(p) for s, p in zip(shards, chosen, strict=True) if len(p))])
        order = np.lexsort((place, number, keys["low"], keys["high"]))
        same = np.append(False, keys[order][1:] == keys[order][:-1])
        begins = np.maximum.accumulate(np.where(same, 0, np.arange(len(same))))
        again = np.flatnonzero(same)
        pairs = np.stack([order[begins[again]], order[again]])
        for one, other in pairs[:, np.argsort(pairs[1])].T.tolist():
            yield Duplicate((int(number[one]), int(place[one])), (int(number[other]), int(place[other])))


# --- documents of shards --------------------------------------------------------------------------------------------


class IndexedDocuments(msgspec.Struct, frozen=True):
    """The documents of a shard with a row index."""

    dataset: Dataset
    shard: str
    rows: int

    @property
    def name(self) -> str:
        return self.dataset.shard_path(self.shard)

    def hashes(self) -> Iterator[Array]:
        for block in row_index.read(self.dataset, self.shard):
            yield np.ascontiguousarray(block["hash"])

    def keys(self, places: Array) -> Array:
        return np.frombuffer(
            b"".join(row_index.key_of(row.source, row.id, row.metadata) for row in self._read(places)), KEY
        )

    def row(self, place: int) -> int:
        return place + 1

    def id(self, place: int) -> str | None:
        return next(self._read(np.array([place]))).id

    def _read(self, places: Array) -> Iterator[documents.DocumentRow]:
        path, first, position = self.name, 0, 0
        with self.dataset.lines(self.shard, alignment.MAX_ROW) as lines:
            for block in lines.blocks():
                behind = int(places.searchsorted(first + len(block)))
                for place in places[position:behind].tolist():
                    yield next(documents.Rows(iter([block[place - first]]), documents.DOCUMENT_DECODER, path, place))[0]
                first, position = first + len(block), behind
                if position == len(places):
                    return
        raise DataError("expected the documents that were indexed, got fewer; run again", path=path)


class ChosenDocuments(msgspec.Struct, frozen=True):
    """Some documents of a shard with a row index.

    Attributes:
        name: Path for people.
        bits: A bit of each document of the shard, set for the chosen ones.
        indexed: All documents of the shard.
    """

    name: str
    bits: bytes
    indexed: IndexedDocuments

    @property
    def places(self) -> Array:
        """Return the places of the documents in the shard, ascending, from 0."""
        return np.flatnonzero(np.unpackbits(np.frombuffer(self.bits, np.uint8)))

    @property
    def rows(self) -> int:
        return len(self.places)

    def hashes(self) -> Iterator[Array]:
        yield np.concatenate([np.empty(0, "<u8"), *self.indexed.hashes()])[self.places]

    def keys(self, places: Array) -> Array:
        return self.indexed.keys(self.places[places])

    def row(self, place: int) -> int:
        return int(self.places[place]) + 1

    def id(self, place: int) -> str | None:
        return self.indexed.id(int(self.places[place]))


NOTED = [("high", "<u8"), ("low", "<u8"), ("row", "<u4")]
"""Result of `toolkit.data.row_index.identity_record` for a document: its `KEY`, and its row, from 1."""


class NotedDocuments(msgspec.Struct, frozen=True):
    """The documents of a shard in the output of a mix.

    Attributes:
        name: Path for people.
        rows: Number of documents.
        path: Path of the file with `NOTED` of each.
        indexed: All documents of the shard, which need not be there any more.
    """

    name: str
    rows: int
    path: str
    indexed: IndexedDocuments

    def _read(self) -> Array:
        with open_stored(self.path) as stream:
            return np.frombuffer(stream.read(), NOTED)

    def hashes(self) -> Iterator[Array]:
        yield self._read()["low"]

    def keys(self, places: Array) -> Array:
        result = np.empty(len(places), KEY)
        chosen = self._read()[places]
        result["high"], result["low"] = chosen["high"], chosen["low"]
        return result

    def row(self, place: int) -> int:
        return int(self._read()["row"][place])

    def id(self, place: int) -> str | None:
        try:
            return self.indexed.id(self.row(place) - 1)
        except ToolkitError:
            return None


class _Checked(Artifact, frozen=True):
    """The record of a check: xxh3-64 of path and content of each shard among which no two ids are equal, sorted."""

    shards: bytes

    @classmethod
    def of(cls, digests: Iterable[bytes]) -> Self:
        return cls(b"".join(sorted(digests)))

    @property
    def lineage(self) -> dict[str, str]:
        return {"": self.shards.hex()}

    def among(self, digests: set[bytes]) -> Self:
        """Return the record of the same check, restricted to these shards."""
        return self.of({self.shards[i : i + 8] for i in range(0, len(self.shards), 8)} & digests)


def check_unique(dataset: Dataset, shards: Sequence[str], max_bytes: int, *, write: bool = True) -> None:
    """Check (source, id) for repetitions; skip shards that were checked before.

    Args:
        dataset: Dataset of the shards.
        shards: Shards to search.
        max_bytes: Bytes of a document, at most.
        write: True to record the check.

    Raises:
        DataError: for the first two that have, naming both.
    """
    if dataset.duplicate_ids == "allow":
        return
    log = record_logs.of(dataset)
    before = log.load(*_PLACE, _Checked)
    states = [row_index.recorded(dataset, shard) for shard in shards]
    now = {_digest(shard, indexed) for shard, indexed in zip(shards, states, strict=True) if indexed}
    inputs = _Checked.of(now).lineage if all(states) else {"": None}
    if state(before and before.among(now), inputs.items()).is_done:
        return
    ensured = for_each(partial(row_index.ensure, dataset, max_bytes=max_bytes), shards)
    indexed = [IndexedDocuments(dataset, *item) for item in zip(shards, (s.rows for s in ensured), strict=True)]
    for duplicate in find_duplicate_ids(indexed):
        raise duplicate.error(indexed, ADVICE)
    if write:
        log.save({_PLACE: msgspec.json.encode(_Checked.of(map(_digest, shards, ensured)))})


def _digest(shard: str, state: row_index.ShardState) -> bytes:
    return xxhash.xxh3_64_digest(f"{shard}\0{state.content}".encode())
