"""Lists of a million rows, packed in memory."""

import heapq
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain, islice, pairwise
from typing import Generic, TypeVar, overload

import msgspec

from toolkit.storage.compression import compress_fast, decompress

T = TypeVar("T")

PACKED = 512
"""Rows that are packed together."""

SORTED = 16 * PACKED
"""Rows that are sorted together."""


class PackedRows(Sequence[T]):
    """A list of rows in compressed blocks; each is decoded on access.

    Args:
        type_: Type of a row.
        rows: First rows.
    """

    def __init__(self, type_: type[T], rows: Iterable[T] = ()) -> None:
        self._blocks: list[bytes] = []
        self._loose: list[T] = []
        decoder = msgspec.msgpack.Decoder(list[type_])  # type: ignore[valid-type]
        self._unpack: Callable[[int], list[T]] = partial(_unpacked, decoder, self._blocks)
        self._recent = lru_cache(2)(self._unpack)
        for row in rows:
            self.append(row)

    def append(self, row: T) -> None:
        self._loose.append(row)
        if len(self._loose) == PACKED:
            self._blocks.append(compress_fast(msgspec.msgpack.encode(self._loose)))
            self._loose = []

    def __len__(self) -> int:
        return PACKED * len(self._blocks) + len(self._loose)

    def __iter__(self) -> Iterator[T]:
        return chain(chain.from_iterable(map(self._unpack, range(len(self._blocks)))), self._loose)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        if isinstance(place, slice):
            return [self[i] for i in range(len(self))[place]]
        block, number = divmod(range(len(self))[place], PACKED)
        return (self._recent(block) if block < len(self._blocks) else self._loose)[number]


def sort_packed(type_: type[T], rows: Iterable[T], key: Callable[[T], str]) -> Iterator[T]:
    """Yield rows in order, equal ones in the given order; few of them are unpacked at a time."""
    rest = iter(rows)
    runs = [PackedRows(type_, run) for run in iter(lambda: sorted(islice(rest, SORTED), key=key), [])]
    if all(key(run[-1]) <= key(following[0]) for run, following in pairwise(runs)):  # as most listings are
        return chain.from_iterable(runs)
    return heapq.merge(*runs, key=key)


class PackedMap(Generic[T]):
    """Values by key, in compressed blocks.

    Args:
        type_: Type of a value.
        items: Keys and values, sorted by key.
    """

    def __init__(self, type_: type[T], items: Iterable[tuple[str, T]]) -> None:
        self._firsts, self._blocks, rest = list[str](), list[bytes](), iter(items)
        decoder = msgspec.msgpack.Decoder(dict[str, type_])  # type: ignore[valid-type]
        self._unpack: Callable[[int], dict[str, T]] = partial(_unpacked, decoder, self._blocks)
        self._recent = lru_cache(2)(self._unpack)
        while block := dict(islice(rest, PACKED)):
            self._firsts.append(next(iter(block)))
            self._blocks.append(compress_fast(msgspec.msgpack.encode(block)))

    def items(self) -> Iterator[tuple[str, T]]:
        return chain.from_iterable(self._unpack(number).items() for number in range(len(self._blocks)))

    def values(self) -> Iterator[T]:
        return (value for _, value in self.items())

    def get(self, key: str) -> T | None:
        number = bisect_right(self._firsts, key) - 1
        return self._recent(number).get(key) if number >= 0 else None


def _unpacked(decoder: "msgspec.msgpack.Decoder[T]", blocks: list[bytes], number: int) -> T:
    """Return the rows of a block. No method, because a cache of one keeps its object until garbage is collected."""
    return decoder.decode(decompress(blocks[number], "gzip-fast"))
