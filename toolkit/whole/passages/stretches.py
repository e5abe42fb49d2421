"""Stretches of texts: their passages by the anchors of these, which the bytes of a passage alone decide.

Source: Schleimer, Wilkerson, Aiken, Winnowing: Local Algorithms for Document Fingerprinting (2003). The anchor of a
passage is, of all its runs of so many bytes, the one with the least hash, and of these the last. So equal passages have
equal anchors at equal places, and a passage that begins a byte later mostly has the same one: about two anchors are in
as many bytes as a passage has runs.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Int64s, UInt8s, UInt32s, UInt64s
from toolkit.text.line_table import PADDING
from toolkit.whole.exact.hashing import Texts, hashes_128
from toolkit.whole.sections import bounds_of

PLACE = np.dtype([("start", "<u4"), ("end", "<u4"), ("skipped", "u1"), ("over", "u1")])
"""Where the text of a stretch lies: code points of the whole characters in it, and the bytes before and behind them
that are parts of others."""


class Cut(NamedTuple):
    """How passages are looked at.

    Attributes:
        length: bytes of a passage.
        runs: of bytes in a passage, of which one is its anchor.
    """

    length: int
    runs: int

    @classmethod
    def of(cls, length: int) -> "Cut":
        """Return that for passages of so many bytes."""
        return cls(length, length // 2)


class Found(NamedTuple):
    """Room for stretches.

    Attributes:
        anchors: uint64, the hash of the anchor of each, spread evenly.
        passages: uint32, how many each has; the first begins with the text, the others each behind the one before.
        bounds: int64 (texts + 1), the first of each text, and the end of all.
    """

    anchors: UInt64s
    passages: UInt32s
    bounds: Int64s


class Places(NamedTuple):
    """Room for a `PLACE` of each stretch, column by column."""

    starts: UInt32s
    ends: UInt32s
    skipped: UInt8s
    over: UInt8s


_find = Compiled(
    "toolkit.whole.passages.kernel:stretches",
    Texts,
    Cut,
    "uint64*",
    Found,
    "int64",
    uses=["toolkit.text.kernels.mixing"],
)
_places = Compiled("toolkit.whole.passages.kernel:places", Texts, Cut, Found, Places)


class Stretches(NamedTuple):
    """The stretches of some texts.

    Attributes:
        keys: uint64 (stretches, 2): of each the hash of its anchor, and that of its text.
        passages: uint32, of each.
        counts: int64, of each text.
        places: `PLACE`, of each.
    """

    keys: Array
    passages: Array
    counts: Array
    places: Array


def stretches_of(texts: Sequence[bytes], cut: Cut, seeds: Sequence[int]) -> Stretches:
    """Return the stretches of texts in UTF-8; those of texts with other seeds are never equal."""
    whole = buffer_of(texts)
    found = _found(whole, cut)
    n, counts = int(found.bounds[-1]), np.diff(found.bounds)
    firsts = first_bytes(found.passages, counts)
    begins = np.repeat(whole.starts, counts) + firsts
    same = Texts(whole.utf8, begins, begins + found.passages + (cut.length - 1), n)
    seeded = np.repeat(np.array(seeds, dtype=np.uint64), counts)
    keys = np.stack([found.anchors, hashes_128(same)[:, 0]], axis=1) ^ seeded[:, None]
    places = Places(*np.empty((2, n), dtype=np.uint32), *np.empty((2, n), dtype=np.uint8))
    _places(whole, cut, found, places)
    rows = np.empty(n, dtype=PLACE)
    for name, column in zip(PLACE.names or (), places, strict=True):
        rows[name] = column
    return Stretches(keys, found.passages, counts, rows)


def buffer_of(texts: Sequence[bytes]) -> Texts:
    """Return texts in one buffer."""
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    utf8 = np.frombuffer(b"".join([*texts, bytes(PADDING)]), dtype=np.int8)
    return Texts(utf8, ends[:-1], ends[1:], len(texts))


def first_bytes(passages: Array, counts: Array) -> Array:
    """Return at which byte of its text each stretch begins, from the passages of each, and the stretches of texts."""
    before = bounds_of(passages)
    begins: Array = before[:-1] - np.repeat(before[bounds_of(counts)[:-1]], counts)
    return begins


def _found(texts: Texts, cut: Cut) -> Found:
    """Return the stretches; where there is room for fewer than there are, it is made for as many, once."""
    ring, room = np.empty(cut.runs, dtype=np.uint64), 64 + 2 * texts.items + 3 * len(texts.utf8) // cut.runs
    while True:
        bounds = np.zeros(texts.items + 1, dtype=np.int64)
        found = Found(np.empty(room, dtype=np.uint64), np.empty(room, dtype=np.uint32), bounds)
        _find(texts, cut, ring, found, room)
        n = int(bounds[-1])
        if n <= room:
            return Found(found.anchors[:n], found.passages[:n], bounds)
        room = n
