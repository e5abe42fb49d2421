"""The sampler: of each of some keys the items of least rank, the same for any number of shards and processes.

A document drawn by lot has a hash (of source and id) as rank; one near a threshold the distance to it, then the hash;
one in which two sets differ the negative difference. Each shard keeps those that may be among the least of all.
"""

import heapq
from bisect import insort
from collections.abc import Iterable
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import xxhash

from toolkit.data.documents import Document
from toolkit.data.urls import url_of
from toolkit.lazy_numpy import np

Item = TypeVar("Item", bound=Any)


class Rank(NamedTuple):
    """A document of a shard, with its rank.

    Attributes:
        distance: Distance to a threshold; 0 of a random document.
        hash: Hash of source and id.
        row: Row, from 1.
    """

    distance: float
    hash: int
    row: int


class Least(Generic[Item]):
    """The items of least rank, for each of some keys; items are compared by their order.

    Attributes:
        items: Items by key, the least first.
    """

    def __init__(self) -> None:
        self.items: dict[str, list[Item]] = {}

    def has_room(self, key: str, most: int, rank: Any) -> bool:
        """Return True if an item of this rank would be kept; both are tuples."""
        items = self.items.get(key, [])
        return len(items) < most or bool(most and rank < items[-1])

    def add(self, key: str, most: int, items: Iterable[Item]) -> None:
        """Add items, and keep the least ones of the key."""
        ranked = self.items.setdefault(key, [])
        for item in items:
            if len(ranked) < most or (most and item < ranked[-1]):
                insort(ranked, item)
                del ranked[most:]


def add_ranks(
    least: Least[Rank],
    key: str,
    most: int,
    hashes: "np.ndarray[Any, Any]",
    rows: "np.ndarray[Any, Any]",
    distances: "np.ndarray[Any, Any] | None" = None,
) -> None:
    """Add documents.

    Args:
        least: takes them.
        key: Key that they are chosen for.
        most: Largest number of documents to keep.
        hashes: uint64 of each document.
        rows: int64 of each document.
        distances: float64 of each document; none where they are drawn.
    """
    if not len(hashes):
        return
    far = np.zeros(len(hashes)) if distances is None else distances
    ranks = least.items.get(key, [])
    if len(ranks) == most:
        last = ranks[-1]
        able = (far < last.distance) | ((far == last.distance) & (hashes <= np.uint64(last.hash)))
        hashes, rows, far = hashes[able], rows[able], far[able]
    if len(hashes) > most:
        first = np.lexsort((hashes, far))[:most]
        hashes, rows, far = hashes[first], rows[first], far[first]
    least.add(key, most, map(Rank, far.tolist(), hashes.tolist(), rows.tolist()))


# --- documents that are shown -----------------------------------------------------------------------------------------

CHARS = 600
"""Of a text that are kept."""

_SEED = b"sample\0"


class SampledDocument(msgspec.Struct, frozen=True, order=True):
    """A document.

    Attributes:
        digest: Digest of its id, by which samples are chosen.
        label: JSON text.
        id: empty if it has none.
        url: URL of its metadata; empty if there is none.
        chars: code points of the whole text.
        text: the first of them.
    """

    digest: str
    label: str
    id: str
    url: str
    chars: int
    text: str


class Samples:
    """The samples of one file.

    Args:
        number: Number that are wanted.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._least = Least[tuple[str, SampledDocument]]()

    def add(self, name: str, label: str, document: Document) -> None:
        """Add a document; name: what it is called where it has no id."""
        digest = xxhash.xxh3_64_hexdigest(_SEED + (document.id or name).encode(errors="surrogatepass"))
        if self._least.has_room(label, self._number, (digest,)):
            url, text = url_of({"metadata": document.metadata}) or "", document.text
            sample = SampledDocument(digest, label, document.id, url, len(text), text[:CHARS])
            self._least.add(label, self._number, [(digest, sample)])

    def finish(self) -> list[SampledDocument]:
        """Return the samples, sorted."""
        return chosen((sample for some in self._least.items.values() for _, sample in some), self._number)


def chosen(samples: Iterable[SampledDocument], number: int) -> list[SampledDocument]:
    """Return some samples, sorted, of as many labels as possible; those of some files are enough for all."""
    ranked = sorted(samples)
    first: dict[str, SampledDocument] = {}
    for sample in ranked:
        first.setdefault(sample.label, sample)
    selected = heapq.nsmallest(number, first.values())
    rest = (sample for sample in ranked if sample not in selected)
    return sorted([*selected, *heapq.nsmallest(number - len(selected), rest)])
