"""The entries of a journal in memory: those of 100,000 shards are some hundred MB of JSON, and a tenth of that packed.

The merged file is sorted. So its entries are kept as they come, in compressed blocks of which only the first place is
known; one is unpacked when an entry of it is asked for. Those of segments are kept as they are, and packed, too, when
they are many.
"""

import functools
import heapq
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import chain, dropwhile, groupby, takewhile
from operator import attrgetter

from toolkit.storage.compression import compress_fast, decompress
from toolkit.storage.journal.entries import Entry, Place, entry_of, line_of

BLOCK = 1 << 18
"""Bytes of entries that are packed together."""

UNPACKED = 32
"""Blocks that are kept unpacked: shards are asked for in their order, those of several kinds at a time."""

LOOSE = 50_000
"""Entries that are kept as they are, at most."""

_PLACE = attrgetter("place")
_RANK = attrgetter("rank")


class State:
    """The newest entry of each place. Several threads may ask it at a time.

    Args:
        merged: entries in order, each place once; one that is out of order is kept, too.
    """

    def __init__(self, merged: Iterable[Entry] = ()) -> None:
        self._loose: dict[Place, Entry] = {}
        self._packed: list[_Packed] = []
        self._packed.append(_Packed(self._in_order(merged)))

    def add(self, entries: Iterable[Entry]) -> None:
        """Add entries, in any order."""
        for entry in entries:
            known = self._loose.get(entry.place)
            if known is None or known.rank < entry.rank:
                self._loose[entry.place] = entry
            if len(self._loose) >= LOOSE:
                self._packed.append(_Packed(self._sorted()))
                self._loose = {}

    def get(self, place: Place) -> Entry | None:
        """Return the entry of a place that holds; None if there is none."""
        found = [self._loose.get(place), *(packed.get(place) for packed in self._packed)]
        return max((entry for entry in found if entry), key=_RANK, default=None)

    def __iter__(self) -> Iterator[Entry]:
        """Yield all entries that hold, sorted by place."""
        return self._from(("", ""))

    def of(self, kind: str) -> Iterator[Entry]:
        """Yield the entries of a kind that hold, sorted by key."""
        behind = dropwhile(lambda entry: entry.kind < kind, self._from((kind, "")))
        return takewhile(lambda entry: entry.kind == kind, behind)

    def _from(self, place: Place) -> Iterator[Entry]:
        """Yield the entries that hold from a place on, and maybe some before it."""
        all_ = heapq.merge(self._sorted(), *(packed.entries(place) for packed in self._packed), key=_PLACE)
        return (max(found, key=_RANK) for _, found in groupby(all_, _PLACE))

    def _sorted(self) -> list[Entry]:
        return sorted(self._loose.values(), key=_PLACE)

    def _in_order(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Yield the entries that are in order; others are added."""
        last: Place | None = None
        for entry in entries:
            if last is None or entry.place > last:
                last = entry.place
                yield entry
            else:
                self.add([entry])


class _Packed:
    """Entries in order, in compressed blocks."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._firsts: list[Place] = []
        self._blocks: list[bytes] = []
        self._unpacked = functools.lru_cache(UNPACKED)(self._unpack)
        lines: list[bytes] = []
        size = 0
        for entry in entries:
            if not lines:
                self._firsts.append(entry.place)
            lines.append(line_of(entry))
            size += len(lines[-1])
            if size >= BLOCK:
                self._keep(lines)
                lines, size = [], 0
        if lines:
            self._keep(lines)

    def get(self, place: Place) -> Entry | None:
        block = bisect_right(self._firsts, place) - 1
        return self._unpacked(block).get(place) if block >= 0 else None

    def entries(self, place: Place) -> Iterator[Entry]:
        """Yield the entries from the block on that a place would be in."""
        first = max(bisect_right(self._firsts, place) - 1, 0)
        blocks = map(self._unpack, range(first, len(self._blocks)))
        return chain.from_iterable(unpacked.values() for unpacked in blocks)

    def _keep(self, lines: list[bytes]) -> None:
        self._blocks.append(compress_fast(b"\n".join(lines)))

    def _unpack(self, number: int) -> dict[Place, Entry]:
        lines = decompress(self._blocks[number], "gzip-fast").split(b"\n")
        return {entry.place: entry for entry in map(entry_of, lines)}
