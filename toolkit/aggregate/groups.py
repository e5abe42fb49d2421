"""Sums by group, of any number of groups in bounded memory."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

import msgspec

from toolkit.lazy_numpy import np
from toolkit.storage.compression import compress_fast
from toolkit.storage.outputs import OutputBatch, RowOutput
from toolkit.storage.paths import join
from toolkit.storage.reading import Lines
from toolkit.text.counting import COLUMNS, Counts
from toolkit.text.kernels.signatures import Array

HELD = 100_000
"""Groups in memory; about 30 MB."""

_WIDTH = 1 + len(COLUMNS)
_ROW = msgspec.json.Decoder(tuple[str, list[int]])
_MAX_ROW = 1 << 30
_MERGED = 4096
"""Groups that are merged at a time."""

Group = tuple[str, list[int]]
"""A key, and its documents with the sums of `COLUMNS`."""


class Groups:
    """Sums by key.

    Args:
        folder: Folder for groups beyond the memory.
        held: groups in memory.
    """

    def __init__(self, folder: str, limit: int = HELD) -> None:
        self._folder = folder
        self._limit = limit
        self._runs = 0
        self._clear()

    def _clear(self) -> None:
        self._places: dict[str, int] = {}
        self._sums = np.zeros((256, _WIDTH), dtype=np.int64)

    def add(self, keys: Sequence[str], rows: Array) -> None:
        """Add documents.

        Args:
            keys: Keys of each.
            rows: Measures of `toolkit.text.counting.measure`.
        """
        self.add_sums(keys, np.hstack([np.ones((len(rows), 1), dtype=np.int64), rows]))

    def add_sums(self, keys: Sequence[str], rows: Any) -> None:
        """Add sums of other documents, as `Group` rows."""
        places = [self._places.setdefault(key, len(self._places)) for key in keys]
        while len(self._places) > len(self._sums):
            self._sums = np.vstack([self._sums, np.zeros_like(self._sums)])
        np.add.at(self._sums, places, rows)
        if len(self._places) > self._limit:
            write(join(self._folder, f"{self._runs}.groups"), self._in_memory())
            self._runs += 1
            self._clear()

    def _in_memory(self) -> Iterator[Group]:
        for key in sorted(self._places):
            yield key, self._sums[self._places[key]].tolist()

    def __iter__(self) -> Iterator[Group]:
        """Yield all groups, sorted by key."""
        runs = [read(join(self._folder, f"{i}.groups")) for i in range(self._runs)]
        for key, result in groupby(heapq.merge(self._in_memory(), *runs, key=itemgetter(0)), key=itemgetter(0)):
            yield key, [sum(column) for column in zip(*(row for _, row in result), strict=True)]


def write(path: str, groups: Iterator[Group], together: OutputBatch | None = None) -> int:
    """Write groups to a file; return how many. With `together` it appears with other files."""
    with RowOutput(path, compress=compress_fast, together=together) as out:
        out.write_rows(msgspec.json.encode(group) for group in groups)
    return out.rows


def read(path: str) -> Iterator[Group]:
    """Yield the groups of a file."""
    with Lines(path, _MAX_ROW) as lines:
        for line in lines:
            yield _ROW.decode(line)


def merged(paths: Iterable[str], folder: str) -> Groups:
    """Return the groups of several files; folder: for what does not fit into memory."""
    groups = Groups(folder)
    for path in paths:
        rows = read(path)
        while some := list(islice(rows, _MERGED)):
            groups.add_sums([key for key, _ in some], [row for _, row in some])
    return groups


def counts_of(row: list[int], *, unicode: bool) -> Counts:
    """Return a group's sums by their names."""
    documents, lines, chars, size, words, unicode_words = row
    return Counts(documents, lines, chars, size, words, unicode_words if unicode else None)
