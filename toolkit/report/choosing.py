"""Documents that are chosen as samples, by the least ranks: the same for any number of shards and processes.

A document drawn by lot has its hash (of source and id) as rank; one that is near a threshold the distance to it, then
the hash. Of each shard those are kept that may be among the least of all.
"""

import heapq
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

DRAWN = 5
"""Documents of each label that are drawn, beside those of rules."""

DROPPED = 10
"""Documents of each label that a rule drops."""

APPLIED = 5
"""Documents that a rule annotates or edits."""

NEAR = 5
"""Documents on each side of a threshold."""


class Rank(NamedTuple):
    """A document of a shard, with what it is chosen by.

    Attributes:
        distance: to a threshold; 0 of what is drawn.
        hash: of source and id.
        row: from 1.
    """

    distance: float
    hash: int
    row: int


Ranks = dict[str, list[Rank]]
"""The documents that are chosen for something, the least rank first."""


class Least:
    """The documents with the least ranks, for each of some keys."""

    def __init__(self) -> None:
        self._heaps: dict[str, list[tuple[float, int, int]]] = {}
        self._most: dict[str, int] = {}

    def add(
        self,
        key: str,
        most: int,
        hashes: "np.ndarray[Any, Any]",
        rows: "np.ndarray[Any, Any]",
        distances: "np.ndarray[Any, Any] | None" = None,
    ) -> None:
        """Add documents.

        Args:
            key: that they are chosen for.
            most: of them that are kept.
            hashes: uint64 of each.
            rows: likewise.
            distances: likewise; none where they are drawn.
        """
        import numpy as np

        far = np.zeros(len(hashes)) if distances is None else distances
        heap = self._heaps.setdefault(key, [])
        self._most[key] = most
        if len(heap) == most:
            able = (far < -heap[0][0]) | ((far == -heap[0][0]) & (hashes <= np.uint64(-heap[0][1])))
            hashes, rows, far = hashes[able], rows[able], far[able]
        if len(hashes) > most:
            least = np.lexsort((hashes, far))[:most]
            hashes, rows, far = hashes[least], rows[least], far[least]
        for distance, hash_, row in zip(far.tolist(), hashes.tolist(), rows.tolist(), strict=True):
            _push(heap, most, (-distance, -hash_, -row))

    def found(self) -> Ranks:
        """Return what is chosen."""
        return {
            key: [Rank(-distance, -hash_, -row) for distance, hash_, row in sorted(heap, reverse=True)]
            for key, heap in self._heaps.items()
            if heap
        }


def _push(heap: list[tuple[float, int, int]], most: int, entry: tuple[float, int, int]) -> None:
    if len(heap) < most:
        heapq.heappush(heap, entry)
    elif entry > heap[0]:
        heapq.heapreplace(heap, entry)


class Chosen(NamedTuple):
    """A document that is chosen among those of all shards.

    Attributes:
        distance, hash: its rank.
        shard: number of the shard.
        row: in it, from 1.
    """

    distance: float
    hash: int
    shard: int
    row: int


MOST = {"label": DRAWN, "dropped": DROPPED, "applied": APPLIED, "near": NEAR, "pair": 12}
"""Documents of each kind of key."""


def key_of(kind: str, *of: object) -> str:
    """Return the key of a kind: ``label``, ``dropped``, ``applied``, ``near`` or ``pair``, and what it is of."""
    return "\n".join([kind, *map(str, of)])
