"""Step 2, whole: from the stretches of all shards to spans, task by task; and step 2d, per shard.

Step 2d, per shard: the spans of its documents, from what is known of equal stretches and of compared passages.

``fates-N`` has, of each row with spans, `ROWS`, `COUNTS` (of its spans) and `BYTES` (of all of them), and `STARTS` and
`ENDS` of all spans, in order: code points.
"""

from collections.abc import Iterator
from dataclasses import replace

import msgspec
import numpy as np
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.data.documents import Span
from toolkit.exchange.scatter import gather, settle
from toolkit.exchange.sealed import packed, read_sealed, unpacked, write_sealed
from toolkit.execution.executors import Report, Task
from toolkit.storage.json_files import load, save
from toolkit.storage.paths import exists, join, remove, remove_tree
from toolkit.text.kernels.signatures import Array
from toolkit.whole_corpus.exact.resolving import Whole, parts_of, resolve_parts, staying
from toolkit.whole_corpus.exact.runs import FIRST, Layout
from toolkit.whole_corpus.kind import Resolved, Work
from toolkit.whole_corpus.passages.asking import (
    ASKED,
    COMPARED,
    COST,
    SPAN,
    Asked,
    Asking,
    ToAsk,
    ToCompare,
    ask_shard,
    compare_unit,
    places_of,
)
from toolkit.whole_corpus.passages.units import Counted, Cut, first_bytes
from toolkit.whole_corpus.records import NumberedShard, SignedShard
from toolkit.whole_corpus.sign import names_of_rows

FATES = "fates"
TYPES = ROWS, COUNTS, BYTES, STARTS, ENDS = ("<u4", "<u4", "<u8", "<u4", "<u4")
SHOWN = 3
"""Longest spans that are shown."""


class Repeats(msgspec.Struct, frozen=True):
    """The passages of a document that stand at an earlier place, too.

    Attributes:
        spans: Spans of whole characters; those next to each other are one.
        chars: code points of the spans.
        bytes: Bytes of the spans in UTF-8.
    """

    spans: list[Span] = []
    chars: int = 0
    bytes: int = 0


class ToGather(ConfigStruct):
    """A shard whose spans are gathered, and the path of its fates."""

    shard: NumberedShard
    asking: Asking
    path: str


class Gathered(ConfigStruct):
    """The fates of a shard: a digest, how much there is, and the longest spans: bytes, source and id, start, end."""

    digest: str
    documents: int
    spans: int
    bytes: int
    longest: list[tuple[int, list[str], int, int]]


def gather_shard(task: ToGather, report: Report) -> Gathered:
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
    which, firsts, counts = np.unique(rows, return_index=True, return_counts=True)
    total = np.add.reduceat(sizes, firsts) if len(which) else sizes
    typed = zip((which, counts, total, starts, ends), TYPES, strict=True)
    data = packed([column.astype(type_) for column, type_ in typed])
    write_sealed(task.path, data)
    longest = np.argsort(-sizes, kind="stable")[:SHOWN]
    named = np.unique(rows[longest])
    names = dict(zip(named.tolist(), names_of_rows(signed, named), strict=True))
    shown = [(int(sizes[i]), names[int(rows[i])], int(starts[i]), int(ends[i])) for i in longest.tolist()]
    return Gathered(
        digest=xxhash.xxh3_128_hexdigest(data),
        documents=len(which),
        spans=len(rows),
        bytes=int(sizes.sum()),
        longest=shown,
    )


def _spans(
    signed: SignedShard, asking: Asking, whole: Whole, number: int, at: tuple[int, int], compared: Array
) -> list[Array]:
    """Return row, first and last code point, and bytes of each span of a run, in order; int64.

    Args:
        signed: Shard.
        asking: How passages are compared.
        whole: What is resolved.
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
    those, inner, behinds, starts, ends = (here[name].astype(np.int64) for name in SPAN.names or ())
    those = those - first
    rows = np.append(documents[equal], documents[those])
    byte_begins = np.append(begins[equal] + places["skipped"], begins[those] + inner)
    whole_ends = begins[equal] + sizes[equal] + (asking.length - 1) - places["over"]
    byte_ends = np.append(whole_ends, begins[those] + behinds)
    starts, ends = np.append(places["start"].astype(np.int64), starts), np.append(places["end"].astype(np.int64), ends)
    return _united(rows, starts, ends, byte_begins, byte_ends)


def _united(rows: Array, starts: Array, ends: Array, begins: Array, behinds: Array) -> list[Array]:
    """Return spans, of which those that overlap or touch are one: row, start, end, bytes."""
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
    """Yield the value of each row of a shard, of whose fates this is the path."""
    which, counts, total, starts, ends = (column.tolist() for column in unpacked(read_sealed(path), TYPES))
    row = at = 0
    for mine, count, size in zip(which, counts, total, strict=True):
        for _ in range(row, mine):
            yield _NONE
        spans = [Span(*item) for item in zip(starts[at : at + count], ends[at : at + count], strict=True)]
        yield Repeats(spans, sum(span.end - span.start for span in spans), size)
        row, at = mine + 1, at + count
    for _ in range(row, rows):
        yield _NONE


_DONE = "gathered.json"


class Done(ConfigStruct):
    """Result of the step."""

    fates: dict[str, str]
    counts: dict[str, int]
    notes: list[str]


def resolve(work: Work, length: int, counted: Counted, *, ranks: str) -> Resolved:
    """Find which characters lie in passages that stand elsewhere before, unless that was done."""
    path = join(work.folder, _DONE)
    done = load(path, Done)
    if done is None:
        if exists(path):  # it is damaged
            remove_tree(work.scratch)
            remove(path)
            work = replace(work)
        done = _resolved(work, length, counted, ranks)
        save(path, done)
    return Resolved(done.fates, done.counts, done.notes)


def _resolved(work: Work, length: int, counted: Counted, ranks: str) -> Done:
    folder = work.scratch
    parts, _ = resolve_parts(work, Layout(128, ranks, False, grouped=True), folder)
    passages = sum(part.grouped for part in parts) * Cut.of(length).runs
    asking = Asking(
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
    asked: list[Asked] = work.run("reading again what may be a repeat", ask_shard, tasks)
    settle(work.run, folder, ASKED, [path for item in asked for path in item.objects])
    totals = [sum(column) for column in zip(*(item.passages for item in asked), strict=True)]
    units = [Task(f"unit {i}", ToCompare(number=i, passages=n, asking=asking)) for i, n in enumerate(totals)]
    objects: list[list[str]] = work.run("comparing passages", compare_unit, units)
    settle(work.run, folder, COMPARED, [path for object_ in objects for path in object_])
    to_gather = [
        Task(name, ToGather(shard=shard, asking=asking, path=fates_path(work.folder, shard.number)))
        for name, shard in work.numbered()
    ]
    gathered: list[Gathered] = work.run("putting what was found in the order of the documents", gather_shard, to_gather)
    own = [shard for shard in work.shards if shard.own]
    counts = {
        "bytes": sum(int(signed_shard.record.counts["bytes"]) for signed_shard in own),
        "repeated bytes": sum(item.bytes for item in gathered),
        "spans": sum(item.spans for item in gathered),
        "documents with spans": sum(item.documents for item in gathered),
    }
    fates = {signed_shard.shard: result.digest for signed_shard, result in zip(own, gathered, strict=True)}
    return Done(fates=fates, counts=counts, notes=_longest(gathered))


def fates_path(folder: str, number: int) -> str:
    """Return the path of the spans of a shard."""
    return join(folder, f"{FATES}-{number}")


def _longest(gathered: list[Gathered]) -> list[str]:
    """Return sentences about the longest spans."""
    every = sorted((item for shard in gathered for item in shard.longest), key=lambda item: -item[0])
    return [
        f"{size:,} bytes in {name[1]} ({name[0]}), characters {start:,} to {end:,}, stand elsewhere before"
        for size, name, start, end in every[:SHOWN]
    ]
