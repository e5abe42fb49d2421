"""Steps 2b and 2c: the text of stretches that share an anchor, read again; and their passages, compared.

A unit is a range of anchors. Files are sections by unit; a section has, of some stretches of the unit in their order:
ranks, hashes of anchors, numbers in the shard, passages, code points where whole characters begin and end, bytes at
the end that are part of another one (one number each), and texts, as long as the passages say.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from toolkit.config.settings import ConfigStruct
from toolkit.data.documents import DocumentRow
from toolkit.exchange.sealed import Sections, packed, read_sealed, unpacked, write_sections
from toolkit.execution.executors import Report
from toolkit.storage.json_files import load, save
from toolkit.storage.paths import exists, join
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Int64s, UInt8s, UInt32s
from toolkit.text.line_table import PADDING
from toolkit.whole.exact.pieces import Texts
from toolkit.whole.exact.resolving import Whole, grouped, parts_of
from toolkit.whole.exact.runs import FIRST
from toolkit.whole.exact.table import numbered
from toolkit.whole.kind import NUMBERS, TEXTS
from toolkit.whole.passages.units import PLACE, Counted, Cut, first_bytes
from toolkit.whole.records import SignedShard
from toolkit.whole.sign import documents_of

ASKED = "asked"
PLACES = "places"
"""File of a shard's signatures: the `PLACE` of each stretch."""

TYPES = ("<u8", "<u4", "<u4", "<u4", "<u4", "u1", "u1")
_PART = 12  # of the memory: of texts that are held, so that their passages have room when they are compared
_ROW = 400  # bytes of memory that a stretch takes beside its text


class ToAsk(ConfigStruct):
    """A shard of which the text of some stretches is read.

    Attributes:
        signed: the shard.
        resolved: folder of what is known of equal stretches.
        length: bytes of a passage.
        counted: what passages are counted in.
        units: how many there are.
        memory: bytes that may be used.
        folder: to write to.
    """

    signed: SignedShard
    resolved: str
    length: int
    counted: Counted
    units: int
    memory: int
    folder: str


class Asked(ConfigStruct):
    """How many files were written, and how many passages each unit has in them."""

    files: int
    passages: list[int]


class Stretch(NamedTuple):
    """Stretches of a run, of which texts are read, column by column, in their order.

    Attributes:
        rows: of their documents in the shard.
        begins: bytes of the document before each.
        items: their numbers in the shard.
        passages: how many each has.
        anchors: the hash of the anchor of each.
        ranks: the least stays.
        places: `PLACE`.
    """

    rows: Array
    begins: Array
    items: Array
    passages: Array
    anchors: Array
    ranks: Array
    places: Array


def asked_runs(work: ToAsk) -> Iterator[Stretch]:
    """Yield the stretches of each run of a shard whose text is to be read."""
    whole, numbers = parts_of(work.resolved, work.signed.number)
    rows = items = 0
    for number in numbers:
        yield _asked(work, whole, number, rows, items)
        rows, items = rows + whole.runs[number].run.documents, items + whole.runs[number].run.items


def _asked(work: ToAsk, whole: Whole, number: int, row: int, first: int) -> Stretch:
    run = whole.runs[number]
    items, counts, sizes = run.items(), run.bounds()[:, 0].astype(np.int64), run.sizes()
    keys = (items & np.uint32(FIRST - 1)).astype(np.int64)
    which = np.flatnonzero(((items & np.uint32(FIRST)) != 0) & grouped(work.resolved, number)[keys])
    documents = np.repeat(np.arange(len(counts)), counts)
    known = run.read(run.run.at, run.run.keys, whole.layout.dtype)[keys[which]]
    ranks = whole.layout.ranks or NUMBERS
    least: Any = b"" if ranks == TEXTS else 0.0 if run.own else -np.inf
    return Stretch(
        rows=row + documents[which],
        begins=first_bytes(sizes, counts)[which],
        items=first + which,
        passages=sizes[which].astype(np.int64),
        anchors=known["hi"],
        ranks=known["rank"] if whole.layout.ranks and run.own else np.full(len(which), least, dtype=ranks),
        places=places_of(work.signed, first, len(items))[which],
    )


def places_of(signed: SignedShard, first: int, count: int) -> Array:
    """Return the places of some stretches of a shard that follow one another."""
    data = read_sealed(signed.path(PLACES), PLACE.itemsize * first, PLACE.itemsize * count)
    return np.frombuffer(data, dtype=PLACE)


def ask_shard(work: ToAsk, report: Report) -> Asked:
    """Write the text of the stretches of a shard that are to be compared, unless that was done before.

    Raises:
        DataError: if the documents are others than those that have been signed.
    """
    path = join(work.folder, f"{ASKED}-{work.signed.number}")
    if done := load(path + ".json", Asked):
        return done
    is_wanted = np.zeros(work.signed.record.rows, dtype=bool)
    for stretches in asked_runs(work):
        is_wanted[stretches.rows] = True
    passages = [0] * work.units
    files = 0
    if is_wanted.any():
        documents = documents_of(work.signed, is_wanted)
        for files, (stretches, texts) in enumerate(_texts_of_stretches(work, documents), 1):  # how many there are
            write_sections(f"{path}-{files - 1}", _sections_of_stretches(stretches, texts, passages))
        next(documents, None)  # which are held against what was signed when all have been read
    found = Asked(files=files, passages=passages)
    save(path + ".json", found)
    return found


def _texts_of_stretches(work: ToAsk, documents: Iterator[DocumentRow]) -> Iterator[tuple[Stretch, list[bytes]]]:
    """Yield stretches with their texts, as many at a time as there is room for."""
    form = work.counted.form
    for stretches in asked_runs(work):
        held: list[bytes] = []
        begin = size = 0
        text, last = b"", -1
        ends = stretches.begins + stretches.passages + (work.length - 1)
        places = zip(stretches.rows.tolist(), stretches.begins.tolist(), ends.tolist(), strict=True)
        for number, (row, first, behind) in enumerate(places, 1):
            if row != last:
                text, last = form(next(documents).text), row
            held.append(text[first:behind])
            size += behind - first + _ROW
            if size > work.memory // _PART or number == len(stretches.rows):
                yield Stretch(*(column[begin:number] for column in stretches)), held
                begin, size, held = number, 0, []


def _sections_of_stretches(stretches: Stretch, texts: list[bytes], passages: list[int]) -> Iterator[bytes]:
    """Yield the section of each unit, whose passages are counted."""
    units = ((stretches.anchors >> np.uint64(32)) * np.uint64(len(passages))) >> np.uint64(32)
    order = np.argsort(units, kind="stable")
    edges = np.searchsorted(units[order], np.arange(len(passages) + 1)).tolist()
    for unit, (first, behind) in enumerate(pairwise(edges)):
        which = order[first:behind]
        passages[unit] += int(stretches.passages[which].sum())
        places = stretches.places[which]
        columns = [column[which] for column in (stretches.ranks, stretches.anchors, stretches.items)]
        columns += [stretches.passages[which], places["start"], places["end"], places["over"]]
        columns += [np.frombuffer(b"".join([texts[i] for i in which.tolist()]), dtype="u1")]
        typed = [column.astype(type_) for column, type_ in zip(columns[1:], TYPES, strict=True)]
        yield packed([columns[0], *typed]) if len(which) else b""


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
        ranks: Type of the ranks of stretches; empty if they have none.
        length: bytes of a passage.
        memory: bytes that may be used.
        folder: to read from and to write to.
    """

    number: int
    passages: int
    files: list[int]
    ranks: str
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
    write_sections(path, _sections_of_passages(work, seen))


def _compare(work: ToCompare, part: int, slices: int, seen: Array) -> None:
    """Note which passages were there before, of those whose hash is in one of so many slices."""
    hashes = (np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, work.ranks or NUMBERS), np.empty(0, np.int64))
    kept: list[tuple[Array, ...]] = [hashes]
    at = 0
    for shard in range(len(work.files)):
        for ranks, anchors, _, passages, _, _, _, utf8 in _read(work, shard):
            n = int(passages.sum())
            high, low = np.empty((2, n), dtype=np.uint64)
            _fingerprints(_texts_of_passages(work, passages, utf8), Cut.of(work.length), high, low)
            high ^= np.repeat(anchors, passages)  # which tell documents that are not compared with one another
            mine = np.flatnonzero(low % np.uint64(slices) == part) if slices > 1 else np.arange(n)
            of_mine = np.repeat(ranks, passages)[mine] if work.ranks else np.empty(0)
            kept.append((high[mine], low[mine], of_mine, mine + at))
            at += n
    high, low, ranks, places = (np.concatenate(columns) for columns in zip(*kept, strict=True))
    _, chosen = numbered(high, low, ranks if work.ranks else None)
    is_seen = np.ones(len(high), dtype=np.uint8)
    is_seen[chosen] = 0
    seen[places] = is_seen


def _read(work: ToCompare, shard: int) -> Iterator[list[Array]]:
    for i in range(work.files[shard]):
        with Sections(join(work.folder, f"{ASKED}-{shard}-{i}")) as sections:
            if data := sections.read(work.number):
                yield unpacked(data, (work.ranks or NUMBERS, *TYPES))


def _texts_of_passages(work: ToCompare, passages: Array, utf8: Array) -> Texts:
    """Return the texts of stretches."""
    ends = np.cumsum(passages.astype(np.int64) + (work.length - 1))
    padded = np.concatenate([utf8, np.zeros(PADDING, dtype=np.uint8)]).view(np.int8)
    return Texts(padded, np.append(0, ends)[:-1], ends, len(ends))


def _sections_of_passages(work: ToCompare, seen: Array) -> Iterator[bytes]:
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
            _spans(
                _texts_of_passages(work, passages, utf8), Cut.of(work.length), Compared(mine, starts, ends, over), spans
            )
            found.append([items[spans.stretches], *spans[1:]])
        columns = [np.concatenate(each) for each in zip(*found, strict=True)] if found else []
        yield packed([column.astype("<u4") for column in columns]) if found else b""
