"""Stored hashes of a shard: runs of sorted distinct hashes, and the index of each text's or piece's hash.

``runs.bin``, which is sealed, has for each run (about `ITEMS` items: it ends with a document), little-endian:

    fan     2^bits + 1 uint32: how many keys are below each value of the first bits of a hash
    keys    a record a distinct hash, sorted by it: the hash, what `Layout` adds
    names   for documents: ``["source","id"]`` of the one that stays of the run's equals, in the order of the keys
    items   a uint32 an item, in order: the number of its key in the run, + `FIRST` for the one that stays of the run's
            equals; `ABSENT` if it is not compared
    sizes   for pieces: a uint32 a piece, its code points
    bounds  for pieces: two uint32 a document: its pieces, and the code points before the first
"""

from array import array
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np

from toolkit.exchange.sealed import read_sealed
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Int32s
from toolkit.whole_corpus.exact.pieces import Pieces, numbers_of
from toolkit.whole_corpus.exact.table import in_order, numbered
from toolkit.whole_corpus.kind import Files
from toolkit.whole_corpus.records import SignedShard

ITEMS = 1 << 19
NAMES = 1 << 25
"""Bytes of names after which a run ends, too."""
FIRST = 1 << 31
ABSENT = (1 << 32) - 1
FILE = "runs.bin"
_CELL = 512
"""Keys of a cell of the fan, about."""

Array = np.ndarray[Any, np.dtype[Any]]


class Sorted(NamedTuple):
    """The hashes of a run in their order.

    Attributes:
        order: int32, of each its number.
        chosen: int32, of each the item that is chosen.
        keys: Number of keys.
    """

    order: Int32s
    chosen: Int32s
    keys: int


_enter = Compiled("toolkit.whole_corpus.exact.kernel:enter", "int32* int64", Sorted, "uint32* uint32* uint32*")


class Layout(msgspec.Struct, frozen=True):
    """The layout of the records of keys.

    Attributes:
        bits: Bits of the hashes, 64 or 128.
        ranks: Type of what says which of equal ones stays: the least; empty if the first does.
        names: True if there are names of documents.
        rate: Rate of new hashes that may count as seen, where a Bloom filter says what was seen; 0: all are compared.
        within: True if documents are compared with each other, and not only with other datasets.
        grouped: True if it is told of hashes that stay which have an upper half that other hashes have, too.
    """

    bits: int
    ranks: str
    names: bool
    rate: float = 0.0
    grouped: bool = False
    within: bool = True

    @property
    def dtype(self) -> np.dtype[Any]:
        fields = [("hi", "<u8")]
        fields += [("lo", "<u8")] if self.bits == 128 else []
        fields += [("rank", self.ranks)] if self.ranks else []
        fields += [("count", "<u4"), ("size", "<u4"), ("name", "<u8")] if self.names else []
        return np.dtype(fields)


class Run(msgspec.Struct, frozen=True):
    """A run: how many keys, items and documents it has, the bits of its fan, and where its parts begin."""

    keys: int
    items: int
    documents: int
    bits: int
    fan: int
    at: int
    names: int
    items_at: int
    sizes: int
    bounds: int


class RunsOutput:
    """Writes the runs of a shard.

    Args:
        files: Files of the shard.
        layout: Layout of the keys.
    """

    def __init__(self, files: Files, layout: Layout) -> None:
        self._out = files.open(FILE)
        self._layout = layout
        self.runs: list[Run] = []
        self.distinct = self.items = 0
        self._begin()

    def _begin(self) -> None:
        self._digests = bytearray()
        self._hashes: list[Array] = []
        self._places = array("I")
        self._ranks = list[Array]()
        self._names: list[bytes] = []
        self._sizes = array("I")
        self._bounds = array("I")
        self._count = self._documents = self._named = 0

    def add_documents(self, hashes: list[bytes | None], ranks: Array, names: list[bytes]) -> None:
        """Append documents.

        Args:
            hashes: Hashes of their texts; None for one that is not compared.
            ranks: the least stays.
            names: JSON texts of sources and ids, if the layout has names.
        """
        sizes = [0 if hash_ is None else len(name) for hash_, name in zip(hashes, names, strict=True)]
        ends, first = np.cumsum(sizes), 0
        while first < len(hashes):
            before = int(ends[first - 1]) if first else 0
            full = int(np.searchsorted(ends, before + NAMES - self._named)) + 1
            last = min(len(hashes), first + ITEMS - self._count, full)
            results = [i for i in range(first, last) if hashes[i] is not None]
            self._digests += b"".join(filter(None, hashes[first:last]))
            self._places.extend(i - first + self._count for i in results)
            if self._layout.ranks:
                self._ranks.append(ranks[results])
            if self._layout.names:
                self._names += [names[i] for i in results]
                self._named += int(ends[last - 1]) - before
            self._count += last - first
            self._documents += last - first
            if self._count >= ITEMS or self._named >= NAMES:
                self.flush()
            first = last

    def add(self, hashes: list[bytes]) -> None:
        """Append a document, by the hashes of its pieces."""
        self._digests += b"".join(hashes)
        self._places.extend(range(self._count, self._count + len(hashes)))
        self._sizes.extend([0] * len(hashes))
        self._bounds.extend((len(hashes), 0))
        self._count += len(hashes)
        self._documents += 1
        if self._count >= ITEMS:
            self.flush()

    def add_block(self, hashes: Array, pieces: Pieces, ranks: Array) -> None:
        """Append the pieces of some documents.

        Args:
            hashes: uint64 (pieces, 1 or 2), of those that are compared.
            pieces: all.
            ranks: Ranks of each document; the least stays.
        """
        compared = pieces.compared.nonzero()[0]
        self._hashes.append(hashes)
        self._places.frombytes((compared + self._count).astype("<u4").tobytes())
        if self._layout.ranks:
            self._ranks.append(np.repeat(ranks, pieces.counts)[compared])
        self._sizes.frombytes(pieces.sizes.astype("<u4").tobytes())
        self._bounds.frombytes(np.stack([pieces.counts, pieces.before], axis=1).astype("<u4").tobytes())
        self._count += len(pieces.sizes)
        self._documents += len(pieces.counts)
        if self._count >= ITEMS:
            self.flush()

    def flush(self) -> None:
        """Write what has been added as a run."""
        if not self._documents:
            return
        hashes = np.concatenate([numbers_of(self._digests, self._layout.bits), *self._hashes])
        high, low = hashes[:, 0].copy(), hashes[:, 1].copy() if self._layout.bits == 128 else None
        ranks = np.concatenate(self._ranks) if self._layout.ranks else None
        numbers, first = numbered(high, low, ranks)
        order = in_order(high[first], None if low is None else low[first])
        first = first[order]
        keys = np.zeros(len(first), dtype=self._layout.dtype)
        keys["hi"] = high[first]
        if low is not None:
            keys["lo"] = low[first]
        if ranks is not None:
            keys["rank"] = ranks[first]
        if self._layout.names:
            keys["count"] = np.bincount(numbers, minlength=len(first))[order]
        items = np.full(self._count, ABSENT, dtype="<u4")
        places = np.frombuffer(self._places, dtype="<u4")
        room = np.empty(len(first), dtype="<u4")
        _enter(numbers, len(numbers), Sorted(order, first, len(first)), places, room, items)
        if not self._layout.within:
            items[places] |= np.uint32(FIRST)
        self.distinct += len(keys)
        self.items += len(numbers)
        self._write(keys, first, items)
        self._begin()

    def _write(self, keys: Array, first: Array, items: Array) -> None:
        bits = max(0, (len(keys) // _CELL).bit_length() - 1)
        fan = (
            np.searchsorted(keys["hi"] >> np.uint64(64 - bits), np.arange((1 << bits) + 1)) if bits else [0, len(keys)]
        )
        names = [self._names[i] for i in first.tolist()] if self._layout.names else []
        if self._layout.names:
            keys["size"] = list(map(len, names))
            keys["name"] = np.r_[0, np.cumsum(keys["size"], dtype=np.uint64)[:-1]] if names else []
        at = [
            self._out.put(np.asarray(fan, dtype="<u4").tobytes()),
            self._out.put(keys.tobytes()),
            self._out.put(b"".join(names)),
        ]
        at += [self._out.put(items.tobytes())]
        at += [self._out.put(np.array(item, dtype="<u4").tobytes()) for item in (self._sizes, self._bounds)]
        self.runs.append(Run(len(keys), len(items), self._documents, bits, *at))


class RunOfShard(msgspec.Struct, frozen=True):
    """A run where it is: its file, the number of its shard, its own number in that, and whether it gets fates."""

    path: str
    shard: int
    number: int
    run: Run
    own: bool

    def read(self, offset: int, count: int, dtype: Any) -> Array:
        """Return values that begin at a byte of the file."""
        dtype = np.dtype(dtype)
        return np.frombuffer(read_sealed(self.path, offset, count * dtype.itemsize), dtype=dtype)

    def bytes_at(self, offset: int, size: int) -> bytes:
        return read_sealed(self.path, offset, size)

    def slice(self, layout: Layout, part: int, parts: int) -> tuple[int, Array]:
        """Return the keys of one of so many equal parts of all hashes, and how many keys of the run are before them."""
        low, high = (part << 64) // parts, ((part + 1) << 64) // parts
        bits, run = self.run.bits, self.run
        first, last = 0, run.keys
        if bits:
            cells = low >> (64 - bits), ((high - 1) >> (64 - bits)) + 1
            fan = self.read(run.fan + 4 * cells[0], cells[1] - cells[0] + 1, "<u4")
            first, last = int(fan[0]), int(fan[-1])
        keys = self.read(run.at + first * layout.dtype.itemsize, last - first, layout.dtype)
        begin = int(np.searchsorted(keys["hi"], np.uint64(low)))
        end = len(keys) if high >> 64 else int(np.searchsorted(keys["hi"], np.uint64(high)))
        return first + begin, keys[begin:end]

    def items(self) -> Array:
        return self.read(self.run.items_at, self.run.items, "<u4")

    def sizes(self) -> Array:
        return self.read(self.run.sizes, self.run.items, "<u4")

    def bounds(self) -> Array:
        return self.read(self.run.bounds, 2 * self.run.documents, "<u4").reshape(-1, 2)


def runs_of(signed: SignedShard) -> Iterator[RunOfShard]:
    """Yield the runs of a shard, in order."""
    for number, run in enumerate(msgspec.convert(signed.record.details, list[Run])):
        yield RunOfShard(signed.path(FILE), signed.number, number, run, signed.own)
