"""Step 2c, per unit: which passages of stretches were there before, by two hashes of each, of 125 bits together."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from toolkit.config.settings import ConfigStruct
from toolkit.runs.executors import Report
from toolkit.storage.paths import exists, join
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Int64s, UInt8s, UInt32s
from toolkit.text.line_table import PADDING
from toolkit.whole.exact.hashing import Texts
from toolkit.whole.exact.table import numbered
from toolkit.whole.passages.asking import ASKED, TYPES
from toolkit.whole.passages.stretches import Cut
from toolkit.whole.sections import Sections, packed, unpacked, write_sections

COMPARED = "compared"
FOUND = ITEMS, BEGINS, BEHINDS, STARTS, ENDS = ("<u4", "<u4", "<u4", "<u4", "<u4")
COST = 112
"""Bytes of memory that a passage takes while it is compared."""


class Compared(NamedTuple):
    """The passages of some stretches.

    Attributes:
        seen: uint8, of each passage, whether it was there before.
        starts: uint32, of each stretch, the code point of its first whole character.
        ends: uint32, of each stretch, that behind its last one.
        over: uint8, of each stretch, bytes at its end that are part of another character.
    """

    seen: UInt8s
    starts: UInt32s
    ends: UInt32s
    over: UInt8s


class Spans(NamedTuple):
    """Room for spans, int64: the number of the stretch, bytes of it before and up to the end, code points likewise."""

    stretches: Int64s
    begins: Int64s
    behinds: Int64s
    starts: Int64s
    ends: Int64s


_fingerprints = Compiled(
    "toolkit.whole.passages.kernel:fingerprints", Texts, Cut, "uint64* uint64*", uses=["toolkit.text.kernels.mixing"]
)
_spans = Compiled("toolkit.whole.passages.kernel:spans", Texts, Cut, Compared, Spans)


class ToCompare(ConfigStruct):
    """A unit whose passages are compared.

    Attributes:
        number: of it.
        passages: how many it has.
        files: of each shard.
        ranked: whether stretches have ranks.
        length: bytes of a passage.
        memory: bytes that may be used.
        folder: to read from and to write to.
    """

    number: int
    passages: int
    files: list[int]
    ranked: bool
    length: int
    memory: int
    folder: str


def compare_unit(work: ToCompare, report: Report) -> None:
    """Write which characters of the stretches of a unit were there before: sections by shard; once."""
    path = join(work.folder, f"{COMPARED}-{work.number}")
    if exists(path):
        return
    seen = np.zeros(work.passages, dtype=np.uint8)
    slices = max(1, -(-work.passages * COST // max(work.memory // 2, 1)))
    for part in range(slices):
        _compare(work, part, slices, seen)
    write_sections(path, _sections(work, seen))


def _compare(work: ToCompare, part: int, slices: int, seen: Array) -> None:
    """Note which passages were there before, of those whose hash is in one of so many slices."""
    hashes = (np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0), np.empty(0, np.int64))
    kept: list[tuple[Array, ...]] = [hashes]
    at = 0
    for shard in range(len(work.files)):
        for ranks, anchors, _, passages, _, _, _, utf8 in _read(work, shard):
            n = int(passages.sum())
            high, low = np.empty((2, n), dtype=np.uint64)
            _fingerprints(_texts(work, passages, utf8), Cut.of(work.length), high, low)
            high ^= np.repeat(anchors, passages)  # which tell documents that are not compared with one another
            mine = np.flatnonzero(low % np.uint64(slices) == part) if slices > 1 else np.arange(n)
            of_mine = np.repeat(ranks, passages)[mine] if work.ranked else np.empty(0)
            kept.append((high[mine], low[mine], of_mine, mine + at))
            at += n
    high, low, ranks, places = (np.concatenate(columns) for columns in zip(*kept, strict=True))
    _, chosen = numbered(high, low, ranks if work.ranked else None)
    is_seen = np.ones(len(high), dtype=np.uint8)
    is_seen[chosen] = 0
    seen[places] = is_seen


def _read(work: ToCompare, shard: int) -> Iterator[list[Array]]:
    for i in range(work.files[shard]):
        with Sections(join(work.folder, f"{ASKED}-{shard}-{i}")) as sections:
            if data := sections.read(work.number):
                yield unpacked(data, TYPES)


def _texts(work: ToCompare, passages: Array, utf8: Array) -> Texts:
    """Return the texts of stretches."""
    ends = np.cumsum(passages.astype(np.int64) + (work.length - 1))
    padded = np.concatenate([utf8, np.zeros(PADDING, dtype=np.uint8)]).view(np.int8)
    return Texts(padded, np.append(0, ends)[:-1], ends, len(ends))


def _sections(work: ToCompare, seen: Array) -> Iterator[bytes]:
    at = 0
    for shard in range(len(work.files)):
        found: list[list[Array]] = []
        for _, _, items, passages, starts, ends, over, utf8 in _read(work, shard):
            n = int(passages.sum())
            mine = seen[at : at + n]
            at += n
            is_first = np.zeros(n, dtype=bool)
            is_first[np.cumsum(passages) - passages] = True
            count = int((mine & (is_first | ~np.append(False, mine[:-1]).astype(bool))).sum())
            spans = Spans(*np.empty((5, count), dtype=np.int64))
            _spans(_texts(work, passages, utf8), Cut.of(work.length), Compared(mine, starts, ends, over), spans)
            found.append([items[spans.stretches], *spans[1:]])
        columns = [np.concatenate(each) for each in zip(*found, strict=True)] if found else []
        yield packed([column.astype("<u4") for column in columns]) if found else b""
