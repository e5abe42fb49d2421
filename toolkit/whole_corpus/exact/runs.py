"""Hashes of a shard in sorted runs; hash table; Bloom filter.

The Bloom filter: Bloom 1970; two hashes stand for all (Kirsch, Mitzenmacher 2008), which are the halves of the one that
there is. A filter is made for the hashes of one partition, of whose number its size follows: so it is as full as is
planned for, and neither memory nor processes change what it says.

``runs.bin``, which is sealed, has for each run (about `ITEMS` items: it ends with a document), little-endian:

    fan     2^bits + 1 uint32: how many keys are below each value of the first bits of a hash
    keys    a record a distinct hash, sorted by it: the hash, what `KeyLayout` adds
    names   for documents: ``["source","id"]`` of the one that stays of the run's equals, in the order of the keys
    items   a uint32 an item, in order: the number of its key in the run, + `FIRST` for the one that stays of the run's
            equals; `ABSENT` if it is not compared
    sizes   for pieces: a uint32 a piece, its code points
    bounds  for pieces: two uint32 a document: its pieces, and the code points before the first
"""

import math
from array import array
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np

from toolkit.exchange.checksummed import bounds_of, read_sealed
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Float64s, Int32s, Int64s, UInt64, UInt64s
from toolkit.whole_corpus.exact.pieces import Pieces, numbers_of
from toolkit.whole_corpus.kind import Files
from toolkit.whole_corpus.records import SignedShard


class Hashes(NamedTuple):
    """The hashes of items.

    Attributes:
        high: uint64, the upper halves.
        low: uint64, the lower ones; those of 64 bits are `high` again.
        ranks: float64, of the items; read only if `ranked`.
        items: Number of items.
        ranked: True if the item with the lowest rank is chosen, else the first.
    """

    high: UInt64s
    low: UInt64s
    ranks: Float64s
    items: int
    ranked: bool


class Table(NamedTuple):
    """Room for a table.

    Attributes:
        tags: uint64, upper halves.
        slots: int32, their numbers; -1 where there is none.
        mask: Number of slots, a power of two above that of the items, less 1.
        least: the least upper half. Those that come in their order are looked up in the order of the table.
        factor: Factor for slots: the upper 64 bits of its product with an upper half, counted from the least.
    """

    tags: UInt64s
    slots: Int32s
    mask: int
    least: UInt64
    factor: UInt64


class Numbered(NamedTuple):
    """Numbers of equal hashes.

    Attributes:
        numbers: int32, of each item, that of its hash; they count in the order in which hashes come.
        chosen: int32, of each hash the item with the lowest rank, and of these the first.
        different: int64, how many hashes there are, as the only value.
    """

    numbers: Int32s
    chosen: Int32s
    different: Int64s


_number = Compiled("toolkit.whole_corpus.exact.exact_kernel:number", Hashes, Table, Numbered)


def numbered(high: Array, low: Array | None, ranks: Array | None) -> tuple[Array, Array]:
    """Return the number of each item's hash, and each hash's chosen item; both int32.

    Args:
        high: uint64, the upper halves of the hashes.
        low: the lower halves; None for hashes of 64 bits.
        ranks: Ranks of the items, numbers or bytes, of which the least is chosen; None if the first is chosen.
    """
    items = len(high)
    if ranks is not None and ranks.dtype.kind == "S":
        ranks = np.unique(ranks, return_inverse=True)[1].astype(np.float64)
    room = 1 << max(4, (items + items // 2).bit_length())
    result = Numbered(np.empty(items, dtype=np.int32), np.empty(items, dtype=np.int32), np.zeros(1, dtype=np.int64))
    hashes = Hashes(
        high, high if low is None else low, np.zeros(1) if ranks is None else ranks, items, ranks is not None
    )
    least, most = (int(high.min()), int(high.max())) if items else (0, 0)
    factor = min((room << 64) // (most - least + 1), (1 << 64) - 1)
    table = Table(np.empty(room, dtype=np.uint64), np.full(room, -1, dtype=np.int32), room - 1, least, factor)
    _number(hashes, table, result)
    return result.numbers, result.chosen[: result.different[0]]


_order = Compiled("toolkit.whole_corpus.exact.exact_kernel:order", Hashes, "int64 int32* int32*")

_LARGEST = 256
"""Hashes of a bucket that are sorted by inserting them."""


def in_order(high: Array, low: Array | None) -> Array:
    """Return the order of different hashes, int32; by buckets of their upper bits, because hashes are spread evenly."""
    items = len(high)
    bits = max(1, items.bit_length() - 1)
    result, ends = np.empty(items, dtype=np.int32), np.zeros((1 << bits) + 1, dtype=np.int32)
    np.cumsum(np.bincount((high >> np.uint64(64 - bits)).view(np.int64), minlength=1 << bits), out=ends[1:])
    if items and np.diff(ends).max() > _LARGEST:  # which are not
        return np.lexsort((high if low is None else low, high)).astype(np.int32)
    _order(Hashes(high, high if low is None else low, np.zeros(1), items, False), 64 - bits, ends, result)
    return result


KEYS = 1 << 20
"""Hashes of a partition, about."""

BYTES = 64
"""Bytes of memory that a hash of a partition takes while it is looked up, beside the filter."""

_SPARE = 1.1  # of the bits: what two hashes for all cost, and partitions that have some more hashes than others

_fill = Compiled("toolkit.whole_corpus.exact.exact_kernel:fill", Hashes, "uint64* int64 int64 uint8*")


def bits_of(keys: int, rate: float) -> int:
    """Return the bits of a filter for a number of hashes: its false positives are at most `rate` of them."""
    return max(64, 64 * math.ceil(_SPARE * keys * -math.log(rate) / math.log(2) ** 2 / 64))


def first_seen(high: Array, low: Array | None, rate: float) -> Array:
    """Return a mask of hashes new to those before; bool. `rate` of those that are new count as seen, at most."""
    keys = len(high)
    size, functions = bits_of(keys, rate), max(1, round(-math.log2(rate)))
    result = np.zeros(keys, dtype=np.uint8)
    hashes = Hashes(high, high if low is None else low, np.zeros(1), keys, False)
    _fill(hashes, np.zeros(size // 64, dtype=np.uint64), size, functions, result)
    return result.astype(bool)


ITEMS = 1 << 19
NAMES = 1 << 25
"""Bytes of names after which a run ends, too."""
FIRST = 1 << 31
ABSENT = (1 << 32) - 1
FILE = "runs.bin"
_CELL = 512
"""Keys of a cell of the fan, about."""


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


_enter = Compiled("toolkit.whole_corpus.exact.exact_kernel:enter", "int32* int64", Sorted, "uint32* uint32* uint32*")


class KeyLayout(msgspec.Struct, frozen=True):
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


class KeyRun(msgspec.Struct, frozen=True):
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

    def __init__(self, files: Files, layout: KeyLayout) -> None:
        self._out = files.open(FILE)
        self._layout = layout
        self.runs: list[KeyRun] = []
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

    def add_documents(self, hashes: Array, compared: Array, ranks: Array, names: list[bytes]) -> None:
        """Append documents.

        Args:
            hashes: uint64 (compared, 1 or 2), of the texts that are compared.
            compared: bool, which documents are.
            ranks: the least stays.
            names: JSON texts of sources and ids, of all.
        """
        sizes = bounds_of(compared * np.fromiter(map(len, names), dtype=np.int64, count=len(names)))
        counts, first = bounds_of(compared), 0
        while first < len(names):
            full = int(np.searchsorted(sizes[1:], sizes[first] + NAMES - self._named)) + 1
            last = min(len(names), first + ITEMS - self._count, full)
            results = compared[first:last].nonzero()[0] + first
            self._hashes.append(hashes[counts[first] : counts[last]])
            self._places.frombytes((results - first + self._count).astype("<u4").tobytes())
            if self._layout.ranks:
                self._ranks.append(ranks[results])
            self._names += [names[i] for i in results.tolist()]
            self._named += int(sizes[last] - sizes[first])
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
        """Write the added items as a run."""
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
        self.runs.append(KeyRun(len(keys), len(items), self._documents, bits, *at))


class RunOfKeys(msgspec.Struct, frozen=True):
    """A run with its place: its file, the number of its shard, its own number in that, and whether it gets fates."""

    path: str
    shard: int
    number: int
    run: KeyRun
    own: bool

    def read(self, offset: int, count: int, dtype: Any) -> Array:
        """Return values from an offset of the file."""
        dtype = np.dtype(dtype)
        return np.frombuffer(read_sealed(self.path, offset, count * dtype.itemsize), dtype=dtype)

    def bytes_at(self, offset: int, size: int) -> bytes:
        return read_sealed(self.path, offset, size)

    def slice(self, layout: KeyLayout, part: int, parts: int) -> tuple[int, Array]:
        """Return the keys of a range of hashes, and their offset."""
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


def runs_of(signed: SignedShard) -> Iterator[RunOfKeys]:
    """Yield the runs of a shard, in order."""
    for number, run in enumerate(msgspec.convert(signed.record.details, list[KeyRun])):
        yield RunOfKeys(signed.path(FILE), signed.number, number, run, signed.own)
