"""Step 2, whole: from the stretches of all shards to spans, task by task; and step 2d, per shard.

Step 2d, per shard: the spans of its documents, from what is known of equal stretches and of compared passages.

``fates-N`` has, of each row with spans, `ROWS`, `COUNTS` (of its spans) and `BYTES` (of all of them), and `STARTS` and
`ENDS` of all spans, in order: code points.
"""

from collections.abc import Iterator

import msgspec
import numpy as np
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.data.documents import Span
from toolkit.exchange.sealed import Sections, packed, read_sealed, unpacked, write_sealed
from toolkit.execution.executors import Report, Task
from toolkit.storage import store_of
from toolkit.storage.json_files import load, save
from toolkit.storage.paths import exists, join, remove, remove_tree
from toolkit.text.kernels.signatures import Array
from toolkit.whole.exact.resolving import Whole, parts_of, resolve_parts, staying
from toolkit.whole.exact.runs import FIRST, Layout
from toolkit.whole.kind import Resolved, Work
from toolkit.whole.passages.asking import (
    COMPARED,
    COST,
    FOUND,
    Asked,
    ToAsk,
    ToCompare,
    ask_shard,
    compare_unit,
    places_of,
)
from toolkit.whole.passages.units import Counted, Cut, first_bytes
from toolkit.whole.records import SignedShard
from toolkit.whole.sign import names_of

FATES = "fates"
TYPES = ROWS, COUNTS, BYTES, STARTS, ENDS = ("<u4", "<u4", "<u8", "<u4", "<u4")
SHOWN = 3
"""Longest spans that are shown."""


class Repeats(msgspec.Struct, frozen=True):
    """The passages of a document that stand at an earlier place, too.

    Attributes:
        spans: of whole characters; those next to each other are one.
        chars: code points of the spans.
        bytes: of the spans in UTF-8.
    """

    spans: list[Span] = []
    chars: int = 0
    bytes: int = 0


class ToGather(ConfigStruct):
    """A shard whose spans are gathered.

    Attributes:
        signed: the shard.
        resolved: folder of what is known of equal stretches.
        units: how many were compared.
        length: bytes of a passage.
        counted: what passages are counted in.
        folder: of what was compared.
        path: of its fates.
    """

    signed: SignedShard
    resolved: str
    units: int
    length: int
    counted: Counted
    folder: str
    path: str


class Gathered(ConfigStruct):
    """The fates of a shard: a digest, how much there is, and the longest spans: bytes, source and id, start, end."""

    digest: str
    documents: int
    spans: int
    bytes: int
    longest: list[tuple[int, list[str], int, int]]


def gather_shard(work: ToGather, report: Report) -> Gathered:
    """Write the spans of the documents of a shard."""
    whole, numbers = parts_of(work.resolved, work.signed.number)
    columns: list[list[Array]] = []
    row = first = 0
    compared = _compared(work)
    for number in numbers:
        run = whole.runs[number].run
        columns.append(_spans(work, whole, number, (row, first), compared))
        row, first = row + run.documents, first + run.items
    rows, starts, ends, sizes = (
        [np.concatenate(each) for each in zip(*columns, strict=True)] if columns else [np.empty(0, np.int64)] * 4
    )
    if work.counted.unit != "byte":
        places = work.counted.in_text(work.signed, rows, starts, ends)
        has_some = places[1] > places[0]  # a character may have many tokens, of which some are repeats
        rows, starts, ends, sizes = _united(*(column[has_some] for column in (rows, *places)))
    which, firsts, counts = np.unique(rows, return_index=True, return_counts=True)
    total = np.add.reduceat(sizes, firsts) if len(which) else sizes
    typed = zip((which, counts, total, starts, ends), TYPES, strict=True)
    data = packed([column.astype(type_) for column, type_ in typed])
    write_sealed(work.path, data)
    longest = np.argsort(-sizes, kind="stable")[:SHOWN]
    names = _names(work.signed, rows[longest].tolist())
    shown = [(int(sizes[i]), names[int(rows[i])], int(starts[i]), int(ends[i])) for i in longest.tolist()]
    return Gathered(
        digest=xxhash.xxh3_128_hexdigest(data),
        documents=len(which),
        spans=len(rows),
        bytes=int(sizes.sum()),
        longest=shown,
    )


def _compared(work: ToGather) -> list[Array]:
    """Return what was compared of the shard, in the order of its stretches."""
    parts = []
    for unit in range(work.units):
        with Sections(join(work.folder, f"{COMPARED}-{unit}")) as sections:
            parts.append(unpacked(sections.read(work.signed.number), FOUND))
    found = [np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True)]
    order = np.argsort(found[0], kind="stable")
    return [column[order] for column in found]


def _spans(work: ToGather, whole: Whole, number: int, at: tuple[int, int], compared: list[Array]) -> list[Array]:
    """Return row, first and last code point, and bytes of each span of a run, in order; int64.

    Args:
        work: of the shard.
        whole: what is resolved.
        number: of the run.
        at: documents and stretches of the shard before those of the run.
        compared: of the shard.
    """
    row, first = at
    run = whole.runs[number]
    items, counts, sizes = run.items(), run.bounds()[:, 0].astype(np.int64), run.sizes().astype(np.int64)
    documents, begins = row + np.repeat(np.arange(len(counts)), counts), first_bytes(sizes, counts)
    stays = staying(work.resolved, number)[(items & np.uint32(FIRST - 1)).astype(np.int64)]
    equal = np.flatnonzero(((items & np.uint32(FIRST)) == 0) | ~stays)
    places = places_of(work.signed, first, len(items))[equal]
    here = slice(*np.searchsorted(compared[0], [first, first + len(items)]).tolist())
    those, inner, behinds, starts, ends = (column[here] for column in compared)
    those = those - first
    rows = np.append(documents[equal], documents[those])
    byte_begins = np.append(begins[equal] + places["skipped"], begins[those] + inner)
    whole_ends = begins[equal] + sizes[equal] + (work.length - 1) - places["over"]
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


def _names(signed: SignedShard, rows: list[int]) -> dict[int, list[str]]:
    """Return source and id of some rows."""
    found: dict[int, list[str]] = {}
    if rows:
        for row, line in enumerate(names_of(signed.folder, signed.shard)):
            if row in rows:
                name = msgspec.json.decode(line, type=dict[str, str])
                found[row] = [name["source"], name["id"]]
            if row == max(rows):
                break
    return found


_NONE = Repeats()


def values_of(path: str, rows: int) -> Iterator[Repeats]:
    """Yield the value of each row of a shard, of whose fates this is the path."""
    which, counts, total, starts, ends = (column.tolist() for column in unpacked(read_sealed(path), TYPES))
    row = at = 0
    for mine, count, size in zip(which, counts, total, strict=True):
        for _ in range(row, mine):
            yield _NONE
        spans = [Span(*each) for each in zip(starts[at : at + count], ends[at : at + count], strict=True)]
        yield Repeats(spans, sum(span.end - span.start for span in spans), size)
        row, at = mine + 1, at + count
    for _ in range(row, rows):
        yield _NONE


_WORK = "work-"
_DONE = "gathered.json"


class Done(ConfigStruct):
    """That the spans of all shards are there.

    Attributes:
        fates: of each shard, by its path, a digest.
        counts: for people.
        notes: sentences for people.
    """

    fates: dict[str, str]
    counts: dict[str, int]
    notes: list[str]


def resolve(work: Work, length: int, counted: Counted, *, ranks: str) -> Resolved:
    """Write the spans of all documents.

    What an earlier attempt has left is gone on with, until all is done: only then the folders of work go, one file
    after the other, so that what is left of them is of no use.
    """
    path = join(work.folder, _DONE)
    done = load(path, Done)
    if done is None:
        if exists(path):  # it is damaged
            _remove_work(work.folder)
            remove(path)
        done = _resolved(work, length, counted, ranks)
        save(path, done)
    _remove_work(work.folder)
    return Resolved(done.fates, done.counts, done.notes)


def _resolved(work: Work, length: int, counted: Counted, ranks: str) -> Done:
    folder = join(work.folder, f"{_WORK}{work.memory}")
    parts, _ = resolve_parts(work, Layout(128, ranks, False, grouped=True), folder)
    passages = sum(part.grouped for part in parts) * Cut.of(length).runs
    units = max(1, -(-passages * COST // max(work.memory // 2, 1)))
    asked = _ask(work, folder, length, counted, units)
    _compare(work, folder, length, units, ranks, asked)
    gathered = _gather(work, folder, length, counted, units)
    own = [each for each in work.shards if each.own]
    counts = {
        "bytes": sum(int(each.record.counts["bytes"]) for each in own),
        "repeated bytes": sum(each.bytes for each in gathered),
        "spans": sum(each.spans for each in gathered),
        "documents with spans": sum(each.documents for each in gathered),
    }
    fates = {each.shard: found.digest for each, found in zip(own, gathered, strict=True)}
    return Done(fates=fates, counts=counts, notes=_longest(gathered))


def _remove_work(folder: str) -> None:
    """Remove the folders of work, those of attempts with another memory, too."""
    for name in store_of(folder).folders(folder):
        if name.startswith(_WORK):
            remove_tree(join(folder, name))


def fates_path(folder: str, number: int) -> str:
    """Return the path of the spans of a shard."""
    return join(folder, f"{FATES}-{number}")


def _ask(work: Work, folder: str, length: int, counted: Counted, units: int) -> list[Asked]:
    tasks = [
        Task(
            f"{each.shard} ({each.number})",
            ToAsk(
                signed=each,
                resolved=folder,
                length=length,
                counted=counted,
                units=units,
                memory=work.memory,
                folder=folder,
            ),
            each.record.rows,
        )
        for each in work.shards
    ]
    return work.run("reading again what may be a repeat", ask_shard, tasks)


def _compare(work: Work, folder: str, length: int, units: int, ranks: str, asked: list[Asked]) -> None:
    tasks = [
        Task(
            f"unit {number}",
            ToCompare(
                number=number,
                passages=sum(each.passages[number] for each in asked),
                files=[each.files for each in asked],
                ranks=ranks,
                length=length,
                memory=work.memory,
                folder=folder,
            ),
        )
        for number in range(units)
    ]
    work.run("comparing passages", compare_unit, tasks)


def _gather(work: Work, folder: str, length: int, counted: Counted, units: int) -> list[Gathered]:
    tasks = []
    for each in work.shards:
        path = fates_path(work.folder, each.number)
        to_gather = ToGather(
            signed=each, resolved=folder, units=units, length=length, counted=counted, folder=folder, path=path
        )
        tasks += [Task(f"{each.shard} ({each.number})", to_gather)] * each.own
    return work.run("putting what was found in the order of the documents", gather_shard, tasks)


def _longest(gathered: list[Gathered]) -> list[str]:
    """Return sentences about the longest spans."""
    every = sorted((each for shard in gathered for each in shard.longest), key=lambda each: -each[0])
    return [
        f"{size:,} bytes in {name[1]} ({name[0]}), characters {start:,} to {end:,}, stand elsewhere before"
        for size, name, start, end in every[:SHOWN]
    ]
