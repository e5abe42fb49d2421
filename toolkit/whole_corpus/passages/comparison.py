"""Comparison of passages, and spans of repeats in each shard.

Step 2b reads the text of stretches that share an anchor again, step 2c compares their passages. A unit is a range of
anchors: shards scatter stretches with their texts by unit, units scatter `SPAN` by shard. Step 2d, per shard, joins
equal stretches and compared passages to spans:

``fates-N``  of each row with spans `ROWS`, `COUNTS` (of its spans) and `BYTES` (of all of them), and `STARTS` and
             `ENDS` of all spans, in order: code points
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np
import xxhash
from msgspec.structs import replace

from toolkit.config.settings import ConfigStruct
from toolkit.data.documents import DocumentRow, Span
from toolkit.exchange.checksummed import packed, read_sealed, unpacked, write_sealed
from toolkit.exchange.scatter import Scatter, gather, once, pieces, settle
from toolkit.execution.executors import Report, Task
from toolkit.storage.json_files import load, save
from toolkit.storage.paths import exists, join, remove, remove_tree
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Int64s, UInt8s, UInt32s
from toolkit.whole_corpus.exact.decisions import KeyRuns, grouped, parts_of, resolve_parts, staying
from toolkit.whole_corpus.exact.pieces import Texts
from toolkit.whole_corpus.exact.runs import FIRST, KeyLayout, numbered
from toolkit.whole_corpus.kind import NUMBERS, TEXTS, Decisions, ResolveJob
from toolkit.whole_corpus.passages.chunks import PLACE, Cut, LengthUnit, buffer_of, first_bytes
from toolkit.whole_corpus.records import NumberedShard, SignedShard
from toolkit.whole_corpus.sign import documents_of, names_of_rows

ASKED = "asked"
PLACES = "places"
"""File of a shard's signatures: the `PLACE` of each stretch."""


SPAN = np.dtype([(name, "<u4") for name in ("stretch", "begin", "behind", "start", "end")])
"""Characters of a stretch, by its number in the shard, that were there before: its bytes before them and to their end,
and its code points.
"""

_TEXTS = 1 << 22  # bytes of texts that are scattered at a time


def _type(ranks: str) -> np.dtype[Any]:
    """Return a stretch's type, with text, for a type of ranks; its payload is the text.

    It has its shard, its number there, the hash of its anchor, its rank, passages, the code points where whole
    characters begin and end, and the bytes at the end that are part of another one.
    """
    numbers = [(name, "<u4") for name in ("shard", "stretch", "passages", "start", "end", "payload")]
    return np.dtype([("anchor", "<u8"), ("rank", ranks or NUMBERS), *numbers, ("over", "u1")])


class PassageComparison(ConfigStruct):
    """How passages are compared.

    Attributes:
        length: Bytes of a passage.
        counted: Unit of lengths.
        units: Number of units.
        ranks: Type of the ranks of stretches; empty if they have none.
        shards: Number of shards.
        memory: Bytes of a task.
        folder: Folder of the work.
    """

    length: int
    counted: LengthUnit
    units: int
    ranks: str
    shards: int
    memory: int
    folder: str


class ToAsk(ConfigStruct):
    """A shard of stretches to read."""

    shard: NumberedShard
    asking: PassageComparison


class ScatteredTexts(ConfigStruct):
    """The objects of a shard, and their number of passages by unit."""

    objects: list[str]
    passages: list[int]


class Stretch(NamedTuple):
    """Stretches of a run with texts to read, as columns.

    Attributes:
        rows: Rows of their documents in the shard.
        begins: bytes of the document before each.
        items: their numbers in the shard.
        passages: Number of passages of each.
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
    """Yield the stretches of each run of a shard, with texts."""
    whole, numbers = parts_of(folder, signed.number)
    rows = items = 0
    for number in numbers:
        yield _stretches_of_run(signed, folder, whole, number, rows, items)
        rows, items = rows + whole.runs[number].run.documents, items + whole.runs[number].run.items


def _stretches_of_run(signed: SignedShard, folder: str, whole: KeyRuns, number: int, row: int, first: int) -> Stretch:
    run = whole.runs[number]
    items, counts, sizes = run.items(), run.bounds()[:, 0].astype(np.int64), run.sizes()
    keys = (items & np.uint32(FIRST - 1)).astype(np.int64)
    places = np.flatnonzero(((items & np.uint32(FIRST)) != 0) & grouped(folder, number)[keys])
    documents = np.repeat(np.arange(len(counts)), counts)
    keys_of_places = run.read(run.run.at, run.run.keys, whole.layout.dtype)[keys[places]]
    ranks = whole.layout.ranks or NUMBERS
    least: Any = b"" if ranks == TEXTS else 0.0 if run.own else -np.inf
    return Stretch(
        rows=row + documents[places],
        begins=first_bytes(sizes, counts)[places],
        items=first + places,
        passages=sizes[places].astype(np.int64),
        anchors=keys_of_places["hi"],
        ranks=keys_of_places["rank"] if whole.layout.ranks and run.own else np.full(len(places), least, dtype=ranks),
        places=places_of(signed, first, len(items))[places],
    )


def places_of(signed: SignedShard, first: int, count: int) -> Array:
    """Return the places of consecutive stretches of a shard."""
    data = read_sealed(signed.path(PLACES), PLACE.itemsize * first, PLACE.itemsize * count)
    return np.frombuffer(data, dtype=PLACE)


def ask_shard(task: ToAsk, report: Report) -> ScatteredTexts:
    """Scatter the ambiguous stretches of a shard with their texts, once.

    Raises:
        DataError: If the documents are others than those that have been signed.
    """
    path = join(task.asking.folder, f"{ASKED}-{task.shard.number}.json")
    return once(path, "", ScatteredTexts, lambda: _ask(task.shard.load(), task.asking))


def _ask(signed: SignedShard, asking: PassageComparison) -> ScatteredTexts:
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
    return ScatteredTexts(objects=scatter.objects, passages=passages.tolist())


def _texts_of_stretches(
    signed: SignedShard, asking: PassageComparison, documents: Iterator[DocumentRow]
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
        is_repeat: uint8, of each passage, whether it was there before.
        starts: uint32, of each stretch, the code point of its first whole character.
        ends: uint32, of each stretch, that behind its last one.
        over: uint8, of each stretch, bytes at its end that are part of another character.
    """

    is_repeat: UInt8s
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
    "toolkit.whole_corpus.passages.passage_kernel:fingerprints",
    Texts,
    Cut,
    "uint64* uint64*",
)
_find_spans = Compiled("toolkit.whole_corpus.passages.passage_kernel:spans", Texts, Cut, Compared, Spans)


class ToCompare(ConfigStruct):
    """A unit of passages to compare: its number, and how many passages it has."""

    number: int
    passages: int
    asking: PassageComparison


def compare_unit(task: ToCompare, report: Report) -> list[str]:
    """Scatter the repeated characters of a unit's stretches by shard; return the objects."""
    return once(join(task.asking.folder, f"{COMPARED}-{task.number}.json"), "", list[str], lambda: _compare_unit(task))


def _compare_unit(task: ToCompare) -> list[str]:
    is_repeat = np.zeros(task.passages, dtype=np.uint8)
    slices = max(1, -(-task.passages * COST // max(task.asking.memory // 2, 1)))
    for part in range(slices):
        _compare(task, part, slices, is_repeat)
    return _scatter_spans(task, is_repeat)


def _compare(task: ToCompare, part: int, slices: int, is_repeat: Array) -> None:
    """Mark the repeated passages of one slice of hashes."""
    ranked = task.asking.ranks
    hashes = (np.empty(0, np.uint64), np.empty(0, np.uint64), np.empty(0, ranked or NUMBERS), np.empty(0, np.int64))
    columns_of_pieces: list[tuple[Array, ...]] = [hashes]
    at = 0
    for stretches, texts in _read(task):
        passages = stretches["passages"]
        n = int(passages.sum())
        high, low = np.empty((2, n), dtype=np.uint64)
        _fingerprints(texts, Cut.of(task.asking.length), high, low)
        high ^= np.repeat(stretches["anchor"], passages)  # which tell documents that are not compared with one another
        mine = np.flatnonzero(low % np.uint64(slices) == part) if slices > 1 else np.arange(n)
        of_mine = np.repeat(stretches["rank"], passages)[mine] if ranked else np.empty(0)
        columns_of_pieces.append((high[mine], low[mine], of_mine, mine + at))
        at += n
    high, low, ranks, places = (np.concatenate(columns) for columns in zip(*columns_of_pieces, strict=True))
    _, chosen = numbered(high, low, ranks if ranked else None)
    is_seen = np.ones(len(high), dtype=np.uint8)
    is_seen[chosen] = 0
    is_repeat[places] = is_seen


def _read(task: ToCompare) -> Iterator[tuple[Array, Texts]]:
    """Yield stretches of a unit with their texts, some at a time."""
    for stretches, texts in pieces(task.asking.folder, ASKED, task.number, task.number + 1):
        yield stretches, buffer_of(texts)


def _scatter_spans(task: ToCompare, is_repeat: Array) -> list[str]:
    cut, at = Cut.of(task.asking.length), 0
    with Scatter(
        join(task.asking.folder, f"{COMPARED}-{task.number}"), SPAN, task.asking.shards, task.asking.memory
    ) as scatter:
        for stretches, texts in _read(task):
            passages = stretches["passages"].astype(np.int64)
            n = int(passages.sum())
            mine = is_repeat[at : at + n]
            at += n
            is_first = np.zeros(n, dtype=bool)
            is_first[np.cumsum(passages) - passages] = True
            count = int((mine & (is_first | ~np.append(False, mine[:-1]).astype(bool))).sum())
            spans = Spans(*np.empty((5, count), dtype=np.int64))
            compared = Compared(mine, *(np.ascontiguousarray(stretches[name]) for name in ("start", "end", "over")))
            _find_spans(texts, cut, compared, spans)
            records = np.zeros(count, dtype=SPAN)
            for name, column in zip(SPAN.names or (), (stretches["stretch"][spans.stretches], *spans[1:]), strict=True):
                records[name] = column
            scatter.add(records, stretches["shard"][spans.stretches].astype(np.int64))
    return scatter.objects


FATES = "fates"
TYPES = ROWS, COUNTS, BYTES, STARTS, ENDS = ("<u4", "<u4", "<u8", "<u4", "<u4")
SHOWN = 3
"""Longest spans that are shown."""


class Repeats(msgspec.Struct, frozen=True):
    """Passages of a document repeated from an earlier place.

    Attributes:
        spans: Spans of whole characters; adjacent ones are merged.
        chars: Code points of the spans.
        bytes: Bytes of the spans in UTF-8.
    """

    spans: list[Span] = []
    chars: int = 0
    bytes: int = 0


class ToGather(ConfigStruct):
    """A shard of spans to gather, and the path of its decisions."""

    shard: NumberedShard
    asking: PassageComparison
    path: str


class ShardPassages(ConfigStruct):
    """The fates of a shard: a digest, how much there is, and the longest spans: bytes, source and id, start, end."""

    digest: str
    documents: int
    spans: int
    bytes: int
    longest: list[tuple[int, list[str], int, int]]


def gather_shard(task: ToGather, report: Report) -> ShardPassages:
    """Write the spans of the documents of a shard."""
    signed, asking = task.shard.load(), task.asking
    whole, numbers = parts_of(asking.folder, signed.number)
    columns: list[list[Array]] = []
    row = first = 0
    compared = gather(asking.folder, COMPARED, signed.number, signed.number + 1, SPAN).records
    compared = compared[np.argsort(compared["stretch"], kind="stable")]
    for number in numbers:
        run = whole.runs[number].run
        columns.append(_spans(signed, asking, whole, number, (row, first), compared))
        row, first = row + run.documents, first + run.items
    rows, starts, ends, sizes = (
        [np.concatenate(item) for item in zip(*columns, strict=True)] if columns else [np.empty(0, np.int64)] * 4
    )
    if asking.counted.unit != "byte":
        places = asking.counted.in_text(signed, rows, starts, ends)
        has_some = places[1] > places[0]  # a character may have many tokens, of which some are repeats
        rows, starts, ends, sizes = _united(*(column[has_some] for column in (rows, *places)))
    distinct_rows, firsts, counts = np.unique(rows, return_index=True, return_counts=True)
    total = np.add.reduceat(sizes, firsts) if len(distinct_rows) else sizes
    typed = zip((distinct_rows, counts, total, starts, ends), TYPES, strict=True)
    data = packed([column.astype(type_) for column, type_ in typed])
    write_sealed(task.path, data)
    longest = np.argsort(-sizes, kind="stable")[:SHOWN]
    named = np.unique(rows[longest])
    names = dict(zip(named.tolist(), names_of_rows(signed, named), strict=True))
    longest_spans = [(int(sizes[i]), names[int(rows[i])], int(starts[i]), int(ends[i])) for i in longest.tolist()]
    return ShardPassages(
        digest=xxhash.xxh3_128_hexdigest(data),
        documents=len(distinct_rows),
        spans=len(rows),
        bytes=int(sizes.sum()),
        longest=longest_spans,
    )


def _spans(
    signed: SignedShard, asking: PassageComparison, whole: KeyRuns, number: int, at: tuple[int, int], compared: Array
) -> list[Array]:
    """Return row, code points and bytes of each span of a run; int64.

    Args:
        signed: Shard.
        asking: Parameters of the comparison.
        whole: Resolution of the stretches.
        number: Number of the run.
        at: Documents and stretches of the shard before those of the run.
        compared: `SPAN` of the shard, sorted by stretch.
    """
    row, first = at
    run = whole.runs[number]
    items, counts, sizes = run.items(), run.bounds()[:, 0].astype(np.int64), run.sizes().astype(np.int64)
    documents, begins = row + np.repeat(np.arange(len(counts)), counts), first_bytes(sizes, counts)
    stays = staying(asking.folder, number)[(items & np.uint32(FIRST - 1)).astype(np.int64)]
    equal = np.flatnonzero(((items & np.uint32(FIRST)) == 0) | ~stays)
    places = places_of(signed, first, len(items))[equal]
    here = compared[slice(*np.searchsorted(compared["stretch"], [first, first + len(items)]).tolist())]
    stretches, inner, behinds, starts, ends = (here[name].astype(np.int64) for name in SPAN.names or ())
    stretches = stretches - first
    rows = np.append(documents[equal], documents[stretches])
    byte_begins = np.append(begins[equal] + places["skipped"], begins[stretches] + inner)
    whole_ends = begins[equal] + sizes[equal] + (asking.length - 1) - places["over"]
    byte_ends = np.append(whole_ends, begins[stretches] + behinds)
    starts, ends = np.append(places["start"].astype(np.int64), starts), np.append(places["end"].astype(np.int64), ends)
    return _united(rows, starts, ends, byte_begins, byte_ends)


def _united(rows: Array, starts: Array, ends: Array, begins: Array, behinds: Array) -> list[Array]:
    """Merge spans with overlap or contact: row, start, end, bytes."""
    order = np.lexsort((starts, rows))
    rows, starts, begins = rows[order], starts[order], begins[order]
    upper = rows << 32  # so that what is furthest begins anew with each row
    furthest = np.maximum.accumulate((upper | ends[order]) if len(order) else upper)
    far_bytes = np.maximum.accumulate((upper | behinds[order]) if len(order) else upper)
    is_first = np.append(True, (upper[1:] | starts[1:]) > furthest[:-1])[: len(order)]
    firsts = np.flatnonzero(is_first)
    lasts = np.append(firsts[1:], len(order))[: len(firsts)] - 1
    low = (1 << 32) - 1
    return [rows[firsts], starts[firsts], furthest[lasts] & low, (far_bytes[lasts] & low) - begins[firsts]]


_NONE = Repeats()


def values_of(path: str, rows: int) -> Iterator[Repeats]:
    """Yield the value of each row of a shard, from its decisions."""
    rows_with_spans, counts, total, starts, ends = (column.tolist() for column in unpacked(read_sealed(path), TYPES))
    row = at = 0
    for mine, count, size in zip(rows_with_spans, counts, total, strict=True):
        for _ in range(row, mine):
            yield _NONE
        spans = [Span(*item) for item in zip(starts[at : at + count], ends[at : at + count], strict=True)]
        yield Repeats(spans, sum(span.end - span.start for span in spans), size)
        row, at = mine + 1, at + count
    for _ in range(row, rows):
        yield _NONE


_DONE = "gathered.json"


class ComparisonResult(ConfigStruct):
    """Result of the step."""

    fates: dict[str, str]
    counts: dict[str, int]
    notes: list[str]


def resolve(work: ResolveJob, length: int, counted: LengthUnit, *, ranks: str) -> Decisions:
    """Find the characters of repeated passages, unless a record has them."""
    path = join(work.folder, _DONE)
    result = load(path, ComparisonResult)
    if result is None:
        if exists(path):  # it is damaged
            remove_tree(work.scratch)
            remove(path)
            work = replace(work)
        result = _resolved(work, length, counted, ranks)
        save(path, result)
    return Decisions(result.fates, result.counts, result.notes)


def _resolved(work: ResolveJob, length: int, counted: LengthUnit, ranks: str) -> ComparisonResult:
    folder = work.scratch
    parts, _ = resolve_parts(work, KeyLayout(128, ranks, False, grouped=True), folder)
    passages = sum(part.grouped for part in parts) * Cut.of(length).runs
    asking = PassageComparison(
        length=length,
        counted=counted,
        units=max(1, -(-passages * COST // max(work.memory // 2, 1))),
        ranks=ranks,
        shards=len(work.shards),
        memory=work.memory,
        folder=folder,
    )
    every = work.numbered(range(len(work.shards)))
    rows = [shard.record.rows for shard in work.shards]
    tasks = [Task(name, ToAsk(shard=shard, asking=asking), rows[shard.number]) for name, shard in every]
    scattered: list[ScatteredTexts] = work.run("reading again what may be a repeat", ask_shard, tasks)
    settle(work.run, folder, ASKED, [path for item in scattered for path in item.objects])
    totals = [sum(column) for column in zip(*(item.passages for item in scattered), strict=True)]
    units = [Task(f"unit {i}", ToCompare(number=i, passages=n, asking=asking)) for i, n in enumerate(totals)]
    objects: list[list[str]] = work.run("comparing passages", compare_unit, units)
    settle(work.run, folder, COMPARED, [path for object_ in objects for path in object_])
    to_gather = [
        Task(name, ToGather(shard=shard, asking=asking, path=fates_path(work.folder, shard.number)))
        for name, shard in work.numbered()
    ]
    gathered: list[ShardPassages] = work.run(
        "putting what was found in the order of the documents", gather_shard, to_gather
    )
    own = [shard for shard in work.shards if shard.own]
    counts = {
        "bytes": sum(int(signed_shard.record.counts["bytes"]) for signed_shard in own),
        "repeated bytes": sum(item.bytes for item in gathered),
        "spans": sum(item.spans for item in gathered),
        "documents with spans": sum(item.documents for item in gathered),
    }
    fates = {signed_shard.shard: result.digest for signed_shard, result in zip(own, gathered, strict=True)}
    return ComparisonResult(fates=fates, counts=counts, notes=_longest(gathered))


def fates_path(folder: str, number: int) -> str:
    """Return the path of the spans of a shard."""
    return join(folder, f"{FATES}-{number}")


def _longest(gathered: list[ShardPassages]) -> list[str]:
    """Return sentences about the longest spans."""
    every = sorted((item for shard in gathered for item in shard.longest), key=lambda item: -item[0])
    return [
        f"{size:,} bytes in {name[1]} ({name[0]}), characters {start:,} to {end:,}, stand elsewhere before"
        for size, name, start, end in every[:SHOWN]
    ]
