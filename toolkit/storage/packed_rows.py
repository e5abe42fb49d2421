"""Lists of a million rows, packed in memory."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import chain
from operator import itemgetter
from typing import Generic, TypeVar

import msgspec

from toolkit.storage.compression import compress_fast, decompress

T = TypeVar("T")

PACKED = 512
"""Rows that are packed together."""


class PackedRows(Generic[T]):
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

    def __getitem__(self, place: int) -> T:
        block, number = divmod(range(len(self))[place], PACKED)
        return self.block(block)[number]

    def block(self, number: int) -> list[T]:
        """Return the rows of a block, `PACKED` ones; the last may have fewer."""
        return self._recent(number) if number < len(self._blocks) else self._loose


class PackedMap(Generic[T]):
    """Values by key, in compressed blocks; keys are put in order.

    Args:
        type_: Type of a value.
    """

    def __init__(self, type_: type[T]) -> None:
        self._rows = PackedRows(tuple[str, type_])  # type: ignore[valid-type]
        self._firsts, self._last = list[str](), ""

    def put(self, key: str, value: T) -> None:
        """Put a value; one whose key is not behind the last key is left out."""
        if key > self._last:
            self._firsts += [] if len(self._rows) % PACKED else [key]
            self._rows.append((key, value))
            self._last = key

    def get(self, key: str) -> T | None:
        number = bisect_right(self._firsts, key) - 1
        rows = self._rows.block(number) if number >= 0 else []
        place = bisect_left(rows, key, key=itemgetter(0))
        return rows[place][1] if rows[place : place + 1] and rows[place][0] == key else None


def _unpacked(decoder: "msgspec.msgpack.Decoder[list[T]]", blocks: list[bytes], number: int) -> list[T]:
    """Return the rows of a block. No method, because a cache of one keeps its object until garbage is collected."""
    return decoder.decode(decompress(blocks[number], "gzip-fast"))
