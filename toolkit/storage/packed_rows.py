"""Lists of a million rows, packed in memory."""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import chain
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
        return self._recent(block)[number] if block < len(self._blocks) else self._loose[number]


def _unpacked(decoder: "msgspec.msgpack.Decoder[list[T]]", blocks: list[bytes], number: int) -> list[T]:
    """Return the rows of a block. No method, because a cache of one keeps its object until garbage is collected."""
    return decoder.decode(decompress(blocks[number], "gzip-fast"))
