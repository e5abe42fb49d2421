"""Finds the values of each document by its id: rows of inputs and documents are scattered by hash, and joined.

inputs ──`read_input`──> values ─┐
                                 ├──`join_part`──> rows of the set, which `toolkit.align.join` puts in order
shards ──`read_shard`──> names ──┘

Below the folder of a set are objects of `toolkit.exchange`, and a record beside those of each task:

    values-N   payload: the id as JSON, a line end, the values as JSON; N is the number of the input
    names-N    payload: the source and the id of a document, as its row begins; N is the hash of the shard
    rows-N     payload: rows of the set

Attribute files of shards are written from the joined rows.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import xxhash

from toolkit.align import align_config
from toolkit.align.align_config import Entry, value_struct
from toolkit.config.settings import ConfigStruct
from toolkit.data import dataset, row_index, schema
from toolkit.data.dataset import Dataset
from toolkit.data.documents import BAD_ROW, Rows, explain_bad_row
from toolkit.errors import DataError
from toolkit.exchange.scatter import Scatter, gather, once, outcome
from toolkit.execution.executors import Report
from toolkit.execution.progress import Position, Share
from toolkit.ingest.input_rows.input_bytes import InputBytes
from toolkit.ingest.reader import Draft, Input
from toolkit.records import sets, takedown
from toolkit.records.sets import ShardAttributes
from toolkit.records.takedown import cleared_attributes
from toolkit.storage import Stat, json_files
from toolkit.storage.outputs import RowOutput
from toolkit.storage.paths import join, missing_reason, stat
from toolkit.text.kernels.signatures import Array

SHOWN = 5
"""Ids of a kind that are named."""

BLOCK = 1 << 14
"""Rows of all shards together that are a partition of the set."""

_HASH = "xxh3-128 of source and id, behind the length of the source"

_KEY = [("hi", "<u8"), ("lo", "<u8"), ("shard", "<u8")]
"""The hash of an id, and that of the shard; of values that are of any shard 0, of those of one row that of the row."""

_VALUE = np.dtype([*_KEY, ("row", "<u8"), ("input", "<u4"), ("payload", "<u4")])
_NAME = np.dtype([*_KEY, ("place", "<u8"), ("row", "<u8"), ("payload", "<u4")])
ROW = np.dtype([("row", "<u8"), ("payload", "<u4"), ("missing", "u1")])

_DRAFTS = 1 << 10  # that are scattered at a time, at least
_ENCODER = msgspec.json.Encoder()


def hash_of(source: str | None, id: str, shard: str | None = None) -> bytes:
    """Return the xxh3-128 of an id, with source and shard if given."""
    name = _key(source, id)
    return xxhash.xxh3_128_digest((name if shard is None else f"{name}\0\0{shard}").encode())


def _key(source: str | None, id: str) -> str:
    return id if source is None else f"{len(source)}:{source}{id}"


def shard_hash(shard: str) -> int:
    """Return the hash of a shard's name, for values and names; of a row in it by ``FILE:ROW``."""
    return xxhash.xxh3_64_intdigest(shard.encode()) | 1


def _scatter(
    scatter: Scatter, task: Any, keys: list[str], payload: list[bytes], type: np.dtype[Any], **columns: Any
) -> None:
    """Scatter rows by the hash of their key; `columns` has the other fields of their records."""
    records = np.zeros(len(keys), dtype=type)
    halves = np.frombuffer(b"".join(map(xxhash.xxh3_128_digest, map(str.encode, keys))), dtype=">u8").reshape(-1, 2)
    records["hi"], records["lo"] = halves[:, 0], halves[:, 1]
    for name, column in columns.items():
        records[name] = column
    partitions = (records["hi"] >> np.uint64(32)) * np.uint64(task.partitions) >> np.uint64(32)
    scatter.add(records, partitions.astype(np.int64), payload)


class InputToRead(ConfigStruct):
    """An input of values to read.

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

    @property
    def stem(self) -> str:
        """Path of the objects and of the record, without their ends."""
        return join(self.folder, f"values-{self.number:06d}")


class InputRead(ConfigStruct):
    """The rows of an input.

    Attributes:
        path, size, stamp, content: Input, as it is stored.
        rows: Number of rows.
        objects: Objects of its rows.
        counts: Counts of the rows by name, if the format counts.
    """

    path: str
    size: int
    stamp: str
    content: str
    rows: int
    objects: list[str]
    counts: dict[str, int] = {}


def read_input(task: InputToRead, report: Report) -> InputRead:
    """Scatter the values of an input, once.

    Raises:
        DataError: If the input is damaged, or has a row without id, or with values of another type.
    """
    state = stat(task.path)
    if state is None:
        raise DataError(f"expected a file with values, got {missing_reason(task.path)}", path=task.path)
    key = [_HASH, task.entry.recorded(), task.types, task.path, state, task.partitions]
    return once(task.stem + ".json", key, InputRead, lambda: _read_input(task, state, report))


def _read_input(task: InputToRead, state: Stat, report: Report) -> InputRead:
    stored = InputBytes(task.path, state)
    source = Input(task.path, None, task.limit, None, stored.open)
    values = value_struct({name: schema.from_json(value) for name, value in task.types.items()})
    before = rows = 0
    drafts: list[Draft] = []
    with Scatter(task.stem, _VALUE, task.partitions) as scatter:

        def scatter_drafts() -> None:
            ids = [draft.id or "" for draft in drafts]
            payload = _encoded(drafts, ids, values, task.path)
            shards = [0 if draft.shard is None else shard_hash(draft.shard) for draft in drafts]
            numbers = [draft.number for draft in drafts]
            keys = [_key(draft.source, id) for draft, id in zip(drafts, ids, strict=True)]
            _scatter(scatter, task, keys, payload, _VALUE, shard=shards, row=numbers, input=task.number)
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
    try:
        values = msgspec.json.decode(_ENCODER.encode([draft.extra for draft in drafts]), type=list[type])  # type: ignore[valid-type]
    except msgspec.ValidationError:
        for draft, id in zip(drafts, ids, strict=True):
            text = _ENCODER.encode(draft.extra)
            try:
                msgspec.json.decode(text, type=type)
            except msgspec.ValidationError as error:
                reason = explain_bad_row(text, error).replace("- at $.", "- at ")
                hint = "its type is that of the first rows, or the columns of all files: name it under `typed:`"
                raise DataError(f"{reason}; {hint}", path=path, line=draft.number, id=id) from None
        raise
    lines = (_ENCODER.encode_lines(item).split(b"\n")[:-1] for item in (ids, values))
    return [*map(b"\n".join, zip(*lines, strict=True))]


def _batches(entry: Entry, source: Input) -> Iterator[Sequence[Draft]]:
    """Yield the batches of a reader; the error of a bad row says what to do."""
    try:
        yield from entry.reader().read_batches(source)
    except DataError as error:
        if error.line is None:
            raise
        message = f"{error.message}; correct the file, or restore it"
        raise DataError(message, path=error.path, line=error.line, id=error.id) from None


class _DocumentNames(msgspec.Struct, gc=False):
    """The names of a document; its text is not read."""

    source: str
    id: str


_NAMED = msgspec.json.Decoder(_DocumentNames)


class ShardToRead(ConfigStruct):
    """A shard of names to read.

    Attributes:
        dataset: Dataset of the shard.
        shard: Name of the shard.
        folder: Folder of the objects.
        partitions: Number of partitions.
        by_source: True if ids count together with sources.
        by_shard: True if rows of values may name shards, or places in these.
        limit: Bytes of a row, at most.
    """

    dataset: Dataset
    shard: str
    folder: str
    partitions: int
    by_source: bool
    by_shard: bool
    limit: int

    @property
    def stem(self) -> str:
        """Path of the objects and of the record, without their ends."""
        return join(self.folder, f"names-{shard_hash(self.dataset.file_of(self.shard)):016x}")

    def key(self, content: str) -> list[Any]:
        """Return the inputs of the names, given the digest of the documents."""
        return [_HASH, self.shard, content, self.by_source, self.by_shard, self.partitions]


class ShardRead(ConfigStruct):
    """A shard's digest, its number of documents, and the objects of names."""

    content: str
    documents: int
    objects: list[str]


def is_read(task: ShardToRead) -> bool:
    """Return True if the names of the present documents have been scattered."""
    state = row_index.current(task.dataset, task.shard)
    return bool(state and outcome(task.stem + ".json", task.key(state.content), ShardRead))


def read_shard(task: ShardToRead, report: Report) -> ShardRead:
    """Scatter the names of a shard's documents, once; a new shard is indexed on the way."""
    dataset, shard = task.dataset, task.shard
    state, objects = row_index.current(dataset, shard), list[str]()
    if is_new := state is None:
        with row_index.indexing(dataset, shard, task.limit) as index:
            blocks = map(index.documents, index.lines.blocks())
            names = ([_DocumentNames(document.source, document.id) for document in documents] for documents in blocks)
            objects = _scatter_names(task, names, Position(report, index.lines.stored))
        state = index.state
    content, documents = state.content, state.rows

    def read() -> ShardRead:
        if is_new:
            return ShardRead(content=content, documents=documents, objects=objects)
        with dataset.lines(shard, task.limit) as lines:
            share = Position(report, lines.stored)
            return ShardRead(
                content=content, documents=documents, objects=_scatter_names(task, _names_in(lines), share)
            )

    return once(task.stem + ".json", task.key(content), ShardRead, read)


def _names_in(lines: dataset.ShardLines) -> Iterator[list[_DocumentNames]]:
    row = 0
    for block in lines.blocks():
        try:
            yield [*map(_NAMED.decode, block)]
        except BAD_ROW:
            yield [name for name, _ in Rows(iter(block), _NAMED, lines.path, row)]  # which names the bad one
        row += len(block)


def _scatter_names(task: ShardToRead, names_in: Iterable[list[_DocumentNames]], share: Position) -> list[str]:
    """Scatter names, and return the objects."""
    file, row = task.dataset.file_of(task.shard), 0
    with Scatter(task.stem, _NAME, task.partitions) as scatter:
        for names in names_in:
            rows = range(row + 1, row + len(names) + 1)
            places = [shard_hash(f"{file}:{number}") for number in rows] if task.by_shard else 0
            keys = [_key(name.source, name.id) if task.by_source else name.id for name in names]
            payload = _ENCODER.encode_lines(names).split(b"}\n")[:-1]
            _scatter(scatter, task, keys, payload, _NAME, row=rows, shard=shard_hash(file), place=places)
            row += len(names)
            share(len(names))
    return scatter.objects


class JoinLayout(ConfigStruct):
    """The description of a join, in a file of the folder.

    Attributes:
        made_of: Digest of all inputs and documents.
        keys: Keys of the set.
        shards: Hash of each shard.
        starts: Number of the first row of each shard, and of the first after the last, among those of all shards.
    """

    made_of: str
    keys: list[str]
    shards: list[int]
    starts: list[int]


LAYOUT = "layout.json"


class PartToJoin(ConfigStruct):
    """Partitions of ids to join: folder, number of the task, and the first one in it, and after it."""

    folder: str
    number: int
    first: int
    last: int


class JoinMatches(ConfigStruct):
    """Matches between documents and values, of some partitions.

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


def join_part(task: PartToJoin, report: Report) -> JoinMatches:
    """Scatter the rows of a set, once."""
    layout = json_files.load_strictly(join(task.folder, LAYOUT), JoinLayout)
    assert layout is not None
    stem = join(task.folder, f"rows-{task.number:06d}")
    key = [layout.made_of, layout.shards, layout.starts, task.first, task.last]
    return once(stem + ".json", key, JoinMatches, lambda: _join(task, layout, stem))


def _same(*columns: Array) -> Array:
    """Return equal numbers for equal rows, in the order of two columns."""
    order = np.lexsort(columns[::-1])
    is_new = np.zeros(len(order), dtype=bool)
    for column in columns:
        is_new[1:] |= column[order][1:] != column[order][:-1]
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.cumsum(is_new)
    return numbers


def _matches(values: Array, names: Array) -> tuple[Array, Array, Array]:
    """Match documents with values: those of its row count before those of its shard, and these before others.

    Returns:
        order: Numbers of the values by id, and those of one in their order.
        is_first: For each in this order, whether none before it is of the same id and shard.
        places: The number of the values of each document; -1 if it has none.
    """
    both = [np.concatenate([values[name], names[name]]) for name in ("hi", "lo")]
    ids = _same(*both)
    shards, shard = np.unique(values["shard"], return_inverse=True)
    keys = ids[: len(values)] * len(shards) + shard
    order = np.argsort(keys, kind="stable")
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = np.diff(keys[order]) != 0
    first = order[is_first]
    places = np.full(len(names), -1, dtype=np.int64)
    for column in (np.uint64(0), names["shard"], names["place"]) if len(shards) else ():
        number = np.minimum(np.searchsorted(shards, column), len(shards) - 1)
        keys_of_names = ids[len(values) :] * len(shards) + number
        at = np.minimum(np.searchsorted(keys[first], keys_of_names), len(first) - 1)
        result = (shards[number] == column) & (keys[first[at]] == keys_of_names)
        places[result] = first[at[result]]
    return order, is_first, places


def _join(task: PartToJoin, layout: JoinLayout, stem: str) -> JoinMatches:
    values, lines = gather(task.folder, "values", task.first, task.last, _VALUE)
    names, documents = gather(task.folder, "names", task.first, task.last, _NAME)
    order, is_first, places = _matches(values, names)
    with_values = np.flatnonzero(places >= 0)
    is_shared = np.ones(len(with_values), dtype=bool)
    is_shared[np.unique(places[with_values], return_index=True)[1]] = False
    is_matched = np.zeros(len(values), dtype=bool)
    is_matched[places[with_values]] = True
    missing, shared = np.flatnonzero(places < 0), with_values[is_shared]
    again, surplus = np.flatnonzero(~is_first), order[is_first & ~is_matched[order]]
    pairs = zip(order[again[:SHOWN] - 1].tolist(), order[again[:SHOWN]].tolist(), strict=True)
    by_hash = np.argsort(np.array(layout.shards, dtype="<u8"))
    numbers = by_hash[np.searchsorted(np.array(layout.shards, dtype="<u8")[by_hash], names["shard"])]
    null = b"{" + b",".join(_ENCODER.encode(key) + b":null" for key in layout.keys) + b"}"
    rows = np.zeros(len(names), dtype=ROW)
    rows["row"] = np.array(layout.starts, dtype="<u8")[numbers] + names["row"] - np.uint64(1)
    rows["missing"] = places < 0
    with Scatter(stem, ROW, -(-layout.starts[-1] // BLOCK)) as scatter:
        payload = [
            b'%b,"attributes":%b}' % (name, null if place < 0 else lines[place].partition(b"\n")[2])
            for name, place in zip(documents, places.tolist(), strict=True)
        ]
        scatter.add(rows, (rows["row"] // BLOCK).astype(np.int64), payload)

    def examples(some: Array) -> list[tuple[int, int, str]]:
        first = some[np.argsort(rows["row"][some])[:SHOWN]].tolist()
        return [(int(numbers[n]), int(names["row"][n]), _id(documents[n])) for n in first]

    return JoinMatches(
        objects=scatter.objects,
        counts={"ids": int(is_first.sum()), "repeated": len(again), "missing": len(missing),
                "surplus": len(surplus), "shared": len(shared)},
        repeated=[(msgspec.json.decode(lines[j].partition(b"\n")[0]), *values[["input", "row"]][i].item(),
                   *values[["input", "row"]][j].item()) for i, j in pairs],
        surplus=[msgspec.json.decode(lines[n].partition(b"\n")[0]) for n in surplus[:SHOWN].tolist()],
        missing=examples(missing),
        shared=examples(shared),
    )  # fmt: skip


def _id(name: bytes) -> str:
    return msgspec.json.decode(name + b"}", type=_DocumentNames).id


def sum_up(
    parts: Iterable[JoinMatches], documents: int, inputs: Sequence[str], shards: Sequence[str]
) -> tuple[dict[str, int], dict[str, list[str]]]:
    """Return counts and examples of matches, by paths of documents and values."""
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
    return counts, examples


_BLOCKS = 4
"""Blocks of rows that are read at a time."""


class AlignWriteTask(ConfigStruct):
    """A shard, for writing its attributes.

    Attributes:
        settings: Settings of the set, by key.
        folder: Folder of the rows.
        content: Digest of the documents that were read.
        first: Number of its first row among those of all shards.
    """

    dataset: Dataset
    shard: str
    set: str
    settings: dict[str, dict[str, object]]
    folder: str
    content: str
    limit: int
    first: int = 0


class WrittenShard(ConfigStruct):
    """Numbers of documents of a written shard, all and without values."""

    shard: str
    documents: int
    missing: int


def is_done(work: AlignWriteTask) -> bool:
    """Return True if a shard's attributes are up to date."""
    state = row_index.current(work.dataset, work.shard)
    return ShardAttributes(work.dataset, work.set, work.shard, state).state(work.settings, ()).is_done


def write_shard(work: AlignWriteTask, report: Report) -> WrittenShard:
    """Write the attributes of a shard.

    Raises:
        DataError: if its documents have changed since they were looked up.
    """
    start = time.perf_counter()
    dataset, shard = work.dataset, work.shard
    state = row_index.ensure(dataset, shard, work.limit)
    if state.content != work.content:
        raise DataError(
            "expected documents that do not change during a run, got some that have changed; run "
            "again when no program writes to them",
            path=dataset.shard_path(shard),
        )
    missing, last = 0, work.first + state.rows
    sets.forget(dataset, work.set, shard)
    cleared, schema = takedown.listed_rows(dataset, shard, work.limit), sets.load_schema(dataset, work.set)
    types = schema.types() if schema else {}
    share = Share(report, state.rows, state.size)
    end_block = -(-last // BLOCK)
    with RowOutput(dataset.attribute_path(work.set, shard)) as output:
        for block in range(work.first // BLOCK, end_block, _BLOCKS):
            records, lines = gather(work.folder, "rows", block, min(block + _BLOCKS, end_block), ROW)
            order = np.argsort(records["row"])
            begin, end = np.searchsorted(records["row"][order], [work.first, last]).tolist()
            mine = order[begin:end]
            missing += int(records["missing"][mine].sum())
            rows = enumerate((lines[i] for i in mine.tolist()), output.rows + 1)
            output.write_rows([cleared_attributes(line, types) if row in cleared else line for row, line in rows])
            share(end - begin)
        if output.rows != state.rows:
            raise DataError(f"expected {state.rows} rows, got {output.rows}; run again", path=output.path)
    record = sets.ShardRecord(
        input=state,
        settings=work.settings,
        reads={},
        rows=output.rows,
        counts={"documents": output.rows, "missing": missing},
        output=sets.output_state(output),
        seconds=round(time.perf_counter() - start, 3),
    )
    sets.save_records(dataset, shard, {work.set: record})
    return WrittenShard(shard=shard, documents=output.rows, missing=missing)


class Todo(msgspec.Struct):
    """Work for a set: its inputs, its schema, and the shards to write."""

    inputs: list[str]
    schema: sets.SetSchema
    shards: list[str]


def progress_of(dataset: Dataset, entry: align_config.Entry, shards: Sequence[str], limit: int) -> Todo:
    """Return the work left for a set; nothing is written.

    Raises:
        ConfigError: if its inputs are not there, or the types of its values cannot be told.
    """
    inputs = entry.inputs()
    result, old = sets.load_aligned(dataset, entry.set), sets.load_schema(dataset, entry.set)
    same = (
        result is not None
        and old is not None
        and [input_.path for input_ in result.inputs] == inputs
        and all(key.settings == entry.recorded() for key in old.keys.values())
        and not sets.changed_input(result)
    )
    if same and old is not None:
        works = works_to_write(dataset, entry, old, shards, "", limit)
        return Todo(inputs, old, [work.shard for work in works if not is_done(work)])
    return Todo(inputs, align_config.schema_of(entry, inputs, limit), list(shards))


def works_to_write(
    dataset: Dataset, entry: align_config.Entry, schema: sets.SetSchema, shards: Sequence[str], folder: str, limit: int
) -> list[AlignWriteTask]:
    """Return the writing of each shard of a set."""
    settings = {key: key_schema.settings for key, key_schema in schema.keys.items()}
    return [
        AlignWriteTask(
            dataset=dataset, shard=shard, set=entry.set, settings=settings, folder=folder, content="", limit=limit
        )
        for shard in shards
    ]
