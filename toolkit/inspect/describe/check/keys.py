"""The key of rows in files: rows whose key an earlier one has are found out of core."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec
import numpy as np
import xxhash

from toolkit.records.identity import KEY, Array

_BLOCK = 1 << 12


@dataclass(frozen=True)
class KeyedRows:
    """The rows of a file with their keys, as `identity.find_duplicate_ids` searches them.

    Attributes:
        name: Path of the file.
        rows: Number of rows.
        read: Reads the rows.
        paths: Keys that lead to each part of the key of a row.
    """

    name: str
    rows: int
    read: Callable[[str], Iterable[dict[str, Any]]]
    paths: tuple[tuple[str, ...], ...]

    def hashes(self) -> Iterator[Array]:
        for block in self._blocks():
            yield np.ascontiguousarray(block["low"])

    def keys(self, places: Array) -> Array:
        return np.concatenate(list(self._blocks()))[places]

    def row(self, place: int) -> int:
        return place + 1

    def id(self, place: int) -> str | None:
        return None

    def _blocks(self) -> Iterator[Array]:
        encoder = msgspec.json.Encoder()
        rows = iter(self.read(self.name))
        while block := list(islice(rows, _BLOCK)):
            digests = [xxhash.xxh3_128_digest(encoder.encode([_at(row, path) for path in self.paths])) for row in block]
            yield np.frombuffer(b"".join(digests), KEY)


def _at(row: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        row = row.get(key) if isinstance(row, dict) else None
    return row
