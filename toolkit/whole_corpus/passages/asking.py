"""Steps 2b and 2c: the text of stretches that share an anchor, read again; and their passages, compared.

A unit is a range of anchors. Shards scatter stretches with their texts by unit, units scatter `SPAN` by shard.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from toolkit.config.settings import ConfigStruct
from toolkit.data.documents import DocumentRow
from toolkit.exchange.scatter import Scatter, once, pieces
from toolkit.exchange.sealed import read_sealed
from toolkit.execution.executors import Report
from toolkit.storage.paths import join
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Int64s, UInt8s, UInt32s
from toolkit.whole_corpus.exact.pieces import Texts
from toolkit.whole_corpus.exact.resolving import Whole, grouped, parts_of
from toolkit.whole_corpus.exact.runs import FIRST
from toolkit.whole_corpus.exact.table import numbered
from toolkit.whole_corpus.kind import NUMBERS, TEXTS
from toolkit.whole_corpus.passages.units import PLACE, Counted, Cut, buffer_of, first_bytes
from toolkit.whole_corpus.records import NumberedShard, SignedShard
from toolkit.whole_corpus.sign import documents_of

ASKED = "asked"
PLACES = "places"
"""File of a shard's signatures: the `PLACE` of each stretch."""


SPAN = np.dtype([(name, "<u4") for name in ("stretch", "begin", "behind", "start", "end")])
"""Characters of a stretch, by its number in the shard, that were there before: its bytes before them and to their end,
and its code points.
"""

_TEXTS = 1 << 22  # bytes of texts that are scattered at a time


def _type(ranks: str) -> np.dtype[Any]:
    """Return the type of a stretch whose text is compared, given that of its rank; its payload is the text.

    It has its shard, its number there, the hash of its anchor, its rank, passages, the code points where whole
    characters begin and end, and the bytes at the end that are part of another one.
    """
    numbers = [(name, "<u4") for name in ("shard", "stretch", "passages", "start", "end", "payload")]
    return np.dtype([("anchor", "<u8"), ("rank", ranks or NUMBERS), *numbers, ("over", "u1")])


class Asking(ConfigStruct):
    """How passages are compared.

    Attributes:
        length: Bytes of a passage.
        counted: What passages are counted in.
        units: Number of units.
        ranks: Type of the ranks of stretches; empty if they have none.
        shards: Number of shards.
        memory: Bytes of a task.
        folder: Folder of the work.
    """

    length: int
    counted: Counted
    units: int
    ranks: str
    shards: int
    memory: int
    folder: str


class ToAsk(ConfigStruct):
    """A shard of which the text of some stretches is read."""

    shard: NumberedShard
    asking: Asking


class Asked(ConfigStruct):
    """The objects that were written, and how many passages each unit has in them."""

    objects: list[str]
    passages: list[int]


class Stretch(NamedTuple):
    """Stretches of a run, of which texts are read, column by column, in their order.

    Attributes:
        rows: Rows of their documents in the shard.
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


def asked_runs(signed: SignedShard, folder: str) -> Iterator[Stretch]:
    """Yield the stretches of each run of a shard whose text is to be read."""
    whole, numbers = parts_of(folder, signed.number)
    rows = items = 0
    for number in numbers:
        yield _asked(signed, folder, whole, number, rows, items)
        rows, items = rows + whole.runs[number].run.documents, items + whole.runs[number].run.items


def _asked(signed: SignedShard, folder: str, whole: Whole, number: int, row: int, first: int) -> Stretch:
    run = whole.runs[number]
    items, counts, sizes = run.items(), run.bounds()[:, 0].astype(np.int64), run.sizes()
    keys = (items & np.uint32(FIRST - 1)).astype(np.int64)
    which = np.flatnonzero(((items & np.uint32(FIRST)) != 0) & grouped(folder, number)[keys])
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
        places=places_of(signed, first, len(items))[which],
    )


def places_of(signed: SignedShard, first: int, count: int) -> Array:
    """Return the places of some stretches of a shard that follow one another."""
    data = read_sealed(signed.path(PLACES), PLACE.itemsize * first, PLACE.itemsize * count)
    return np.frombuffer(data, dtype=PLACE)


def ask_shard(task: ToAsk, report: Report) -> Asked:
    """Scatter the stretches of a shard that are to be compared with their texts, unless that was done before.

    Raises:
        DataError: If the documents are others than those that have been signed.
    """
    path = join(task.asking.folder, f"{ASKED}-{task.shard.number}.json")
    return once(path, "", Asked, lambda: _ask(task.shard.load(), task.asking))


def _ask(signed: SignedShard, asking: Asking) -> Asked:
    is_wanted = np.zeros(signed.record.rows, dtype=bool)
    for stretches in asked_runs(signed, asking.folder):
        is_wanted[stretches.rows] = True
    passages = np.zeros(asking.units, dtype=np.int64)
    stem = join(asking.folder, f"{ASKED}-{signed.number}")
    with Scatter(stem, _type(asking.ranks), asking.units, asking.memory) as scatter:
        documents = documents_of(signed, is_wanted) if is_wanted.any() else iter(())
        for stretches, texts in _texts_of_stretches(signed, asking, documents):
            units = (((stretches.anchors >> np.uint64(32)) * np.uint64(asking.units)) >> np.uint64(32)).astype(np.int64)
            np.add.at(passages, units, stretches.passages)
            records = np.zeros(len(texts), dtype=_type(asking.ranks))
            records["shard"], records["stretch"] = signed.number, stretches.items
            records["anchor"], records["rank"] = stretches.anchors, stretches.ranks
            records["passages"] = stretches.passages
            for name in ("start", "end", "over"):
                records[name] = stretches.places[name]
            scatter.add(records, units, texts)
        next(documents, None)  # which are held against what was signed when all have been read
    return Asked(objects=scatter.objects, passages=passages.tolist())


def _texts_of_stretches(
    signed: SignedShard, asking: Asking, documents: Iterator[DocumentRow]
) -> Iterator[tuple[Stretch, list[bytes]]]:
    """Yield stretches with their texts, some at a time."""
    form = asking.counted.form
    for stretches in asked_runs(signed, asking.folder):
        texts: list[bytes] = []
        begin = size = 0
        text, last = b"", -1
        ends = stretches.begins + stretches.passages + (asking.length - 1)
        places = zip(stretches.rows.tolist(), stretches.begins.tolist(), ends.tolist(), strict=True)
        for number, (row, first, behind) in enumerate(places, 1):
            if row != last:
                text, last = form(next(documents).text), row
            texts.append(text[first:behind])
            size += behind - first
            if size > _TEXTS or number == len(stretches.rows):
                yield Stretch(*(column[begin:number] for column in stretches)), texts
                begin, size, texts = number, 0, []


COMPARED = "compared"
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
    """Room for spans, int64: the number of the stretch, bytes of it before and up to the end, and code points."""

    stretches: Int64s
    begins: Int64s
    behinds: Int64s
    starts: Int64s
    ends: Int64s


_fingerprints = Compiled(
    "toolkit.whole_corpus.passages.kernel:fingerprints",
    Texts,
    Cut,
    "uint64* uint64*",
    uses=["toolkit.text.kernels.mixing"],
)
_spans = Compiled("toolkit.whole_corpus.passages.kernel:spans", Texts, Cut, Compared, Spans)


class ToCompare(ConfigStruct):
    """A unit whose passages are compared: its number, and how many passages it has."""

    number: int
    passages: int
    asking: Asking


def compare_unit(task: ToCompare, report: Report) -> list[str]:
    """Scatter which characters of the stretches of a unit were there before, by shard; return the objects."""
    return once(join(task.asking.folder, f"{COMPARED}-{task.number}.json"), "", list[str], lambda: _compare_unit(task))


def _compare_unit(task: ToCompare) -> list[str]:
    seen = np.zeros(task.passages, dtype=np.uint8)
    slices = max(1, -(-task.passages * COST // max(task.asking.memory // 2, 1)))
    for part in range(slices):
        _compare(task, part, slices, seen)
    return _scatter_spans(task, seen)


def _compare(task: ToCompare, part: int, slices: int, seen: Array) -> None:
    """Note which passages were there before, of those whose hash is in one of so many slices."""
    ranked = task.asking.ranks
    hashes = (np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, ranked or NUMBERS), np.empty(0, np.int64))
    kept: list[tuple[Array, ...]] = [hashes]
    at = 0
    for stretches, texts in _read(task):
        passages = stretches["passages"]
        n = int(passages.sum())
        high, low = np.empty((2, n), dtype=np.uint64)
        _fingerprints(texts, Cut.of(task.asking.length), high, low)
        high ^= np.repeat(stretches["anchor"], passages)  # which tell documents that are not compared with one another
        mine = np.flatnonzero(low % np.uint64(slices) == part) if slices > 1 else np.arange(n)
        of_mine = np.repeat(stretches["rank"], passages)[mine] if ranked else np.empty(0)
        kept.append((high[mine], low[mine], of_mine, mine + at))
        at += n
    high, low, ranks, places = (np.concatenate(columns) for columns in zip(*kept, strict=True))
    _, chosen = numbered(high, low, ranks if ranked else None)
    is_seen = np.ones(len(high), dtype=np.uint8)
    is_seen[chosen] = 0
    seen[places] = is_seen


def _read(task: ToCompare) -> Iterator[tuple[Array, Texts]]:
    """Yield stretches of a unit with their texts, some at a time."""
    for stretches, texts in pieces(task.asking.folder, ASKED, task.number, task.number + 1):
        yield stretches, buffer_of(texts)


def _scatter_spans(task: ToCompare, seen: Array) -> list[str]:
    cut, at = Cut.of(task.asking.length), 0
    with Scatter(
        join(task.asking.folder, f"{COMPARED}-{task.number}"), SPAN, task.asking.shards, task.asking.memory
    ) as scatter:
        for stretches, texts in _read(task):
            passages = stretches["passages"].astype(np.int64)
            n = int(passages.sum())
            mine = seen[at : at + n]
            at += n
            is_first = np.zeros(n, dtype=bool)
            is_first[np.cumsum(passages) - passages] = True
            count = int((mine & (is_first | ~np.append(False, mine[:-1]).astype(bool))).sum())
            spans = Spans(*np.empty((5, count), dtype=np.int64))
            compared = Compared(mine, *(np.ascontiguousarray(stretches[name]) for name in ("start", "end", "over")))
            _spans(texts, cut, compared, spans)
            records = np.zeros(count, dtype=SPAN)
            for name, column in zip(SPAN.names or (), (stretches["stretch"][spans.stretches], *spans[1:]), strict=True):
                records[name] = column
            scatter.add(records, stretches["shard"][spans.stretches].astype(np.int64))
    return scatter.objects
