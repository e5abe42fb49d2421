"""Finds the values of each document by its id: rows of inputs and documents are scattered by hash, and joined.

inputs ──`read_input`──> values ─┐
                                 ├──`join_part`──> rows of the set, which `toolkit.align.write` puts in order
shards ──`read_shard`──> names ──┘

Below the folder of a set are objects of `toolkit.exchange`, and a record beside those of each task:

    values-N   payload: the id as JSON, a line end, the values as JSON
    names-N    payload: the source and the id of a document, as its row begins
    rows-N     payload: rows of the set
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import xxhash

from toolkit.align.rows import value_struct
from toolkit.align.section import Entry
from toolkit.config.settings import ConfigStruct
from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.data.documents import BAD_ROW, Rows, explain_bad_row
from toolkit.data.schema import from_json
from toolkit.errors import DataError
from toolkit.exchange.scatter import Scatter, gather, once
from toolkit.exchange.tables import MEMORY, Tables
from toolkit.execution.executors import Report
from toolkit.execution.progress import Share
from toolkit.ingest.reader import Draft, Input
from toolkit.ingest.reading.input_bytes import InputBytes
from toolkit.storage import Stat, json_files
from toolkit.storage.paths import join, lacking, stat
from toolkit.text.kernels.signatures import Array

SHOWN = 5
"""Ids of a kind that are named."""

BLOCK = 1 << 16
"""Rows of all shards together that are a partition of the set."""

_HASH = "xxh3-128 of source and id, behind the length of the source"

_KEY = [("hi", "<u8"), ("lo", "<u8"), ("shard", "<u8")]
"""The hash of an id, and that of a shard, or a row in it, where the values are of one; 0 where they are not."""

_VALUE = np.dtype([*_KEY, ("row", "<u8"), ("input", "<u4"), ("payload", "<u4")])
_NAME = np.dtype([*_KEY, ("place", "<u8"), ("row", "<u8"), ("number", "<u4"), ("payload", "<u4")])
ROW = np.dtype([("row", "<u8"), ("payload", "<u4"), ("missing", "u1")])

_DRAFTS = 1 << 10  # that are scattered at a time, at least
_ENCODER = msgspec.json.Encoder()


def hash_of(source: str | None, id: str, shard: str | None = None) -> bytes:
    """Return the xxh3-128 of an id, with its source where that counts, and its shard likewise."""
    name = id if source is None else f"{len(source)}:{source}{id}"
    return xxhash.xxh3_128_digest((name if shard is None else f"{name}\0\0{shard}").encode())


def _shard_hash(shard: str) -> int:
    return xxhash.xxh3_64_intdigest(shard.encode()) | 1


def _scatter(
    scatter: Scatter, task: Any, hashes: list[bytes], payload: list[bytes], type: np.dtype[Any], **columns: Any
) -> None:
    """Scatter rows by hash; `columns` has the other fields of their records."""
    records = np.zeros(len(hashes), dtype=type)
    halves = np.frombuffer(b"".join(hashes), dtype=">u8").reshape(-1, 2)
    records["hi"], records["lo"] = halves[:, 0], halves[:, 1]
    for name, column in columns.items():
        records[name] = column
    partitions = (records["hi"] >> np.uint64(32)) * np.uint64(task.partitions) >> np.uint64(32)
    scatter.add(records, partitions.astype(np.int64), payload)


class InputToRead(ConfigStruct):
    """An input whose values are read.

    Attributes:
        entry: Set of the section.
        types: Types of the values, in the form of `toolkit.data.schema`.
        path: Path of the input.
        number: Number of the input among all.
        folder: Folder of the objects.
        partitions: Number of partitions.
        limit: Bytes of a row, at most.
    """

    entry: Entry
    types: dict[str, Any]
    path: str
    number: int
    folder: str
    partitions: int
    limit: int


class InputRead(ConfigStruct):
    """What an input has.

    Attributes:
        path, size, stamp, content: Input, as it is stored.
        rows: Number of rows.
        objects: Objects of its rows.
        counts: What the rows say, counted by name, if the format counts that.
    """

    path: str
    size: int
    stamp: str
    content: str
    rows: int
    objects: list[str]
    counts: dict[str, int] = {}


def read_input(task: InputToRead, report: Report) -> InputRead:
    """Scatter the values of an input, unless that has been done.

    Raises:
        DataError: If the input is damaged, or has a row without id, or with values of another type.
    """
    state = stat(task.path)
    if state is None:
        raise DataError(f"expected a file with values, got {lacking(task.path)}", path=task.path)
    stem = join(task.folder, f"values-{task.number:06d}")
    key = [_HASH, task.entry.recorded(), task.types, task.path, state, task.partitions]
    return once(stem + ".json", key, InputRead, lambda: _read_input(task, stem, state, report))


def _read_input(task: InputToRead, stem: str, state: Stat, report: Report) -> InputRead:
    stored = InputBytes(task.path, state)
    source = Input(task.path, None, task.limit, None, stored.open)
    values = value_struct({name: from_json(value) for name, value in task.types.items()})
    before = rows = 0
    drafts: list[Draft] = []
    with Scatter(stem, _VALUE, task.partitions) as scatter:

        def scatter_drafts() -> None:
            ids = [draft.id or "" for draft in drafts]
            payload = _encoded(drafts, ids, values, task.path)
            shards = [0 if draft.shard is None else _shard_hash(draft.shard) for draft in drafts]
            numbers = [draft.number for draft in drafts]
            hashes = [hash_of(draft.source, id) for draft, id in zip(drafts, ids, strict=True)]
            _scatter(scatter, task, hashes, payload, _VALUE, shard=shards, row=numbers, input=task.number)
            drafts.clear()

        try:
            for batch in _batches(task.entry, source):
                drafts += batch
                rows += len(batch)
                if len(drafts) >= _DRAFTS:
                    scatter_drafts()
                    report(0, stored.stored() - before)
                    before = stored.stored()
        except DataError:
            scatter_drafts()  # an earlier row may be wrong, too
            raise
        scatter_drafts()
        report(0, stored.stored() - before)
    if stored.can_change and stat(task.path) != state:
        raise DataError(
            "expected a file that does not change while it is read, got one that has changed; run "
            "again when no program writes to it",
            path=task.path,
        )
    counts = {name: count for name, count in source.counts.items() if count}
    return InputRead(
        path=task.path, size=state.size, stamp=state.stamp, content=stored.content(), rows=rows,
        objects=scatter.objects, counts=counts,
    )  # fmt: skip


def _encoded(drafts: Sequence[Draft], ids: list[str], type: type[msgspec.Struct], path: str) -> list[bytes]:
    """Return the payload of each row: its id, a line end, and its values, which are of the type."""
    texts = [_ENCODER.encode(draft.extra) for draft in drafts]
    decoder = msgspec.json.Decoder(type)
    try:
        values = [*map(decoder.decode, texts)]
    except msgspec.ValidationError:
        for draft, id, text in zip(drafts, ids, texts, strict=True):
            try:
                decoder.decode(text)
            except msgspec.ValidationError as error:
                reason = explain_bad_row(text, error).replace("- at $.", "- at ")
                hint = "its type is that of the first rows, or the columns of all files: name it under `typed:`"
                raise DataError(f"{reason}; {hint}", path=path, line=draft.number, id=id) from None
        raise
    return [b"%b\n%b" % pair for pair in zip(map(_ENCODER.encode, ids), map(_ENCODER.encode, values), strict=True)]


def _batches(entry: Entry, source: Input) -> Iterator[Sequence[Draft]]:
    """Yield the batches of a reader; the error of a bad row says what to do."""
    try:
        yield from entry.reader().read_batches(source)
    except DataError as error:
        if error.line is None:
            raise
        message = f"{error.message}; correct the file, or restore it"
        raise DataError(message, path=error.path, line=error.line, id=error.id) from None


class _Named(msgspec.Struct, gc=False):
    """The names of a document; its text is not read."""

    source: str
    id: str


_NAMED = msgspec.json.Decoder(_Named)


class ShardToRead(ConfigStruct):
    """A shard whose names are read.

    Attributes:
        dataset: Dataset of the shard.
        shard: Name of the shard.
        number: Number of the shard among all.
        folder: Folder of the objects.
        partitions: Number of partitions.
        by_source: True if ids count together with sources.
        by_shard: True if rows of values may name shards, or places in these.
        limit: Bytes of a row, at most.
    """

    dataset: Dataset
    shard: str
    number: int
    folder: str
    partitions: int
    by_source: bool
    by_shard: bool
    limit: int


class ShardRead(ConfigStruct):
    """A digest of a shard's documents, their number, and the objects of their names."""

    content: str
    documents: int
    objects: list[str]


def read_shard(task: ShardToRead, report: Report) -> ShardRead:
    """Scatter the names of a shard's documents, unless that has been done."""
    state = row_index.ensure(task.dataset, task.shard, task.limit)
    stem = join(task.folder, f"names-{task.number:06d}")
    key = [_HASH, task.shard, state.content, task.by_source, task.by_shard, task.partitions]
    return once(stem + ".json", key, ShardRead, lambda: _read_shard(task, stem, state, report))


def _read_shard(task: ShardToRead, stem: str, state: row_index.ShardState, report: Report) -> ShardRead:
    dataset, path = task.dataset, task.dataset.shard_path(task.shard)
    file, share = dataset.file_of(task.shard), Share(report, state.rows, state.size)
    row = 0
    with dataset.lines(task.shard, task.limit) as lines, Scatter(stem, _NAME, task.partitions) as scatter:
        for block in lines.blocks():
            try:
                names = [*map(_NAMED.decode, block)]
            except BAD_ROW:
                names = [name for name, _ in Rows(iter(block), _NAMED, path, row)]  # which names the bad one
            rows = range(row + 1, row + len(names) + 1)
            columns: dict[str, Any] = {"row": rows, "number": task.number}
            if task.by_shard:
                columns |= {"shard": _shard_hash(file), "place": [_shard_hash(f"{file}:{number}") for number in rows]}
            hashes = [hash_of(name.source if task.by_source else None, name.id) for name in names]
            payload = [_ENCODER.encode(name)[:-1] for name in names]
            _scatter(scatter, task, hashes, payload, _NAME, **columns)
            row += len(names)
            share(len(names))
    return ShardRead(content=state.content, documents=row, objects=scatter.objects)


class Layout(ConfigStruct):
    """What is joined, in a file of the folder.

    Attributes:
        made_of: Digest of all inputs and documents.
        keys: Keys of the set.
        starts: Number of the first row of each shard, and of the first after the last, among those of all shards.
    """

    made_of: str
    keys: list[str]
    starts: list[int]


LAYOUT = "layout.json"


class PartToJoin(ConfigStruct):
    """Partitions of ids that are joined: folder, number of the task, and the first one in it, and after it."""

    folder: str
    number: int
    first: int
    last: int


class Joined(ConfigStruct):
    """What documents and values of some partitions have of each other.

    Attributes:
        objects: Objects of the rows.
        counts: Ids, repeated, missing, surplus and shared ones.
        repeated: Some rows that repeat an id: the id, and number and row of the input of both.
        surplus: Some ids without a document.
        missing, shared: The first documents without values, and with an id of others: number of the shard, row, id.
    """

    objects: list[str]
    counts: dict[str, int]
    repeated: list[tuple[str, int, int, int, int]]
    surplus: list[str]
    missing: list[tuple[int, int, str]]
    shared: list[tuple[int, int, str]]


def join_part(task: PartToJoin, report: Report) -> Joined:
    """Scatter the rows of a set, unless that has been done."""
    layout = json_files.load_strictly(join(task.folder, LAYOUT), Layout)
    assert layout is not None
    stem = join(task.folder, f"rows-{task.number:06d}")
    key = [layout.made_of, layout.starts, task.first, task.last]
    return once(stem + ".json", key, Joined, lambda: _join(task, layout, stem))


_IDS = "SELECT n, row_number() OVER (PARTITION BY hi, lo, shard ORDER BY n) AS again FROM v ORDER BY hi, lo, shard, n"

_MATCHES = """
SELECT d.n AS d, v.n AS v FROM d JOIN v USING (hi, lo) WHERE v.is_first AND (v.shard IN (0, d.shard, d.place))
QUALIFY row_number() OVER (PARTITION BY d.n ORDER BY v.shard = d.place DESC, v.shard = d.shard DESC) = 1
"""
"""Of values of one id, those of the document's row count before those of its shard, and these before others."""


def _join(task: PartToJoin, layout: Layout, stem: str) -> Joined:
    values, lines = gather(task.folder, "values", task.first, task.last, _VALUE)
    names, documents = gather(task.folder, "names", task.first, task.last, _NAME)
    of_values, of_names = _columns(values, "hi", "lo", "shard"), _columns(names, "hi", "lo", "shard", "place")
    with Tables(MEMORY) as tables:
        ids = tables.query(_IDS, v=of_values)
        first = np.zeros(len(values), dtype=bool)
        first[ids["n"][ids["again"] == 1]] = True
        matches = tables.query(_MATCHES, v=of_values | {"is_first": first}, d=of_names)
    places = np.full(len(names), -1, dtype=np.int64)
    places[matches["d"]] = matches["v"]
    with_values = np.flatnonzero(places >= 0)
    is_shared = np.ones(len(with_values), dtype=bool)
    is_shared[np.unique(places[with_values], return_index=True)[1]] = False
    is_surplus = first.copy()
    is_surplus[places[with_values]] = False
    missing, shared = np.flatnonzero(places < 0), with_values[is_shared]
    again = np.flatnonzero(ids["again"] > 1)
    pairs = zip(ids["n"][again[:SHOWN] - 1].tolist(), ids["n"][again[:SHOWN]].tolist(), strict=True)
    surplus = [n for n in ids["n"].tolist() if is_surplus[n]][:SHOWN] if is_surplus.any() else []
    null = b"{" + b",".join(_ENCODER.encode(key) + b":null" for key in layout.keys) + b"}"
    rows = np.zeros(len(names), dtype=ROW)
    rows["row"] = np.array(layout.starts, dtype="<u8")[names["number"]] + names["row"] - np.uint64(1)
    rows["missing"] = places < 0
    with Scatter(stem, ROW, -(-layout.starts[-1] // BLOCK)) as scatter:
        payload = [
            b'%b,"attributes":%b}' % (name, null if place < 0 else lines[place].partition(b"\n")[2])
            for name, place in zip(documents, places.tolist(), strict=True)
        ]
        scatter.add(rows, (rows["row"] // BLOCK).astype(np.int64), payload)

    def examples(numbers: Array) -> list[tuple[int, int, str]]:
        order = np.lexsort((names["row"][numbers], names["number"][numbers]))[:SHOWN]
        return [(int(names["number"][n]), int(names["row"][n]), _id(documents[n])) for n in numbers[order].tolist()]

    return Joined(
        objects=scatter.objects,
        counts={"ids": int(first.sum()), "repeated": len(again), "missing": len(missing),
                "surplus": int(is_surplus.sum()), "shared": len(shared)},
        repeated=[(msgspec.json.decode(lines[j].partition(b"\n")[0]), *values[["input", "row"]][i].item(),
                   *values[["input", "row"]][j].item()) for i, j in pairs],
        surplus=[msgspec.json.decode(lines[n].partition(b"\n")[0]) for n in surplus],
        missing=examples(missing),
        shared=examples(shared),
    )  # fmt: skip


def _columns(records: Array, *names: str) -> dict[str, Array]:
    return {name: np.ascontiguousarray(records[name]) for name in names} | {"n": np.arange(len(records))}


def _id(name: bytes) -> str:
    return msgspec.json.decode(name + b"}", type=_Named).id


class Sums(ConfigStruct):
    """What documents and values have of each other, with some examples of each kind.

    Attributes:
        counts: documents, ids, missing, surplus, repeated ids among values, shared among documents.
        examples: by kind.
    """

    counts: dict[str, int]
    examples: dict[str, list[str]]


def sum_up(parts: Iterable[Joined], documents: int, inputs: Sequence[str], shards: Sequence[str]) -> Sums:
    """Return what documents and values have of each other; `inputs` and `shards` are the paths of both."""
    parts = list(parts)
    kinds = ("ids", "missing", "surplus", "repeated", "shared")
    counts = {"documents": documents} | {kind: sum(part.counts[kind] for part in parts) for kind in kinds}
    missing = sorted(example for part in parts for example in part.missing)[:SHOWN]
    shared = sorted(example for part in parts for example in part.shared)[:SHOWN]
    examples = {
        "missing": [f"{id!r} in {shards[number]}:{row}" for number, row, id in missing],
        "surplus": [repr(id) for part in parts for id in part.surplus][:SHOWN],
        "repeated": [
            f"{id!r} in {inputs[i]}:{row} and {inputs[j]}:{other}"
            for part in parts
            for id, i, row, j, other in part.repeated
        ][:SHOWN],
        "shared": list(dict.fromkeys(repr(id) for _, _, id in shared)),
    }
    return Sums(counts=counts, examples=examples)
