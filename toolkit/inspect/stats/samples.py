"""Samples of documents: those whose ids have the smallest digests, so that they are the same whenever they are drawn.

A digest says nothing of what a document is like, so these are random ones; which they are depends on the ids alone, and
not on the order of files. Each label gives one before any gives two.
"""

import heapq
from collections.abc import Iterable

import msgspec
import xxhash

from toolkit.data.addresses import url_of
from toolkit.data.documents import Document

CHARS = 600
"""Of a text that are kept."""

_SEED = b"sample\0"


class Sample(msgspec.Struct, frozen=True, order=True):
    """A document.

    Attributes:
        digest: of its id, by which samples are chosen.
        label: JSON text.
        id: empty if it has none.
        url: of its metadata; empty if there is none.
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
        number: that are wanted.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._by_label: dict[str, list[Sample]] = {}

    def add(self, name: str, label: str, document: Document) -> None:
        """Add a document; name: what it is called where it has no id."""
        digest = xxhash.xxh3_64_hexdigest(_SEED + (document.id or name).encode(errors="surrogatepass"))
        some = self._by_label.setdefault(label, [])
        if len(some) == self._number and digest >= some[-1].digest:
            return
        url = url_of({"metadata": document.metadata}) or ""
        text = document.text
        some.append(Sample(digest, label, document.id, url, len(text), text[:CHARS]))
        some.sort()
        del some[self._number :]

    def kept(self) -> list[Sample]:
        """Return the samples, sorted."""
        return chosen((each for some in self._by_label.values() for each in some), self._number)


def chosen(samples: Iterable[Sample], number: int) -> list[Sample]:
    """Return so many samples, sorted, of as many labels as there can be; those of some files are enough for all."""
    ranked = sorted(samples)
    first: dict[str, Sample] = {}
    for each in ranked:
        first.setdefault(each.label, each)
    taken = heapq.nsmallest(number, first.values())
    others = (each for each in ranked if each not in taken)
    return sorted([*taken, *heapq.nsmallest(number - len(taken), others)])
