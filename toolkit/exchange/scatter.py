"""Scatters rows of shards to partitions, and gathers them.

a group of shards ──`Scatter`──> objects ──`settle`──> at most `MOST` of them ──`gather`──> some partitions of all

An object has rows sorted by partition, and an index. It is sealed (see `toolkit.exchange.checksummed`), little-endian:

    head     uint64, its length; then JSON, a `_ScatterHead`
    index    uint64 (partitions + 1, 2): where the rows of each partition begin, and their payload
    rows     records of a NumPy type, those of a partition in the order in which they were added
    payload  bytes of each row, where the type has the field `payload`, which is their number

So objects grow with what is scattered, never with groups times partitions. A partition is the least that is gathered;
a task gathers as many as fit into its memory (`ranges`). Gathered rows are in the order of the objects, then of the
partitions, then as they were added: the same for any number of partitions, processes and bytes of memory.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain, pairwise
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

import msgspec
import numpy as np

from toolkit.config.settings import ConfigStruct
from toolkit.errors import DataError
from toolkit.exchange.checksummed import Sealed, SealedOutput, bounds_of
from toolkit.exchange.tables import MEMORY
from toolkit.execution.executors import Report, Run, Task
from toolkit.storage import freshness, json_files, paths, threads
from toolkit.text.kernels.signatures import Array

T = TypeVar("T")

MOST = 512
"""Objects that are gathered at a time."""

_PIECE, _PIECE_BYTES = 1 << 16, 1 << 24
"""Rows, and bytes of their payload, that are read at a time where not all are."""

_ROW = 150
"""Bytes of memory that a row takes beside its record and its payload, about: objects of Python."""


class _ScatterHead(msgspec.Struct):
    """The number of partitions, and the type of the rows."""

    partitions: int
    type: list[Any]


class GatheredRows(NamedTuple):
    """Gathered rows: their records, and the payload of each, where they have one."""

    records: Array
    payload: list[bytes]


class Scatter:
    """Writes rows to objects; a context manager. An object is written when so many bytes have been added.

    Args:
        stem: Path of the objects, without their numbers.
        type: Type of the records; its field `payload` is filled in.
        partitions: Number of partitions.
        memory: Bytes of the task; `MEMORY` by default.

    Attributes:
        objects: Paths of the objects.
    """

    def __init__(self, stem: str, type: np.dtype[Any], partitions: int, memory: int | None = None) -> None:
        self._stem, self._type, self._partitions, self._most = stem, type, partitions, (memory or MEMORY) // 8
        self._number = np.min_scalar_type(partitions)  # NumPy sorts numbers of at most 16 bits by radix
        self.objects: list[str] = []
        self._reset()

    def _reset(self) -> None:
        self._records: list[Array] = []
        self._numbers: list[Array] = []
        self._payload: list[bytes] = []
        self._buffered = 0

    def add(self, records: Array, partitions: Array, payload: Sequence[bytes] = ()) -> None:
        """Add rows.

        Args:
            records: Records of the type.
            partitions: Partition of each, from 0.
            payload: Bytes of each, where the type has the field `payload`.
        """
        if "payload" in (self._type.names or ()):
            records["payload"] = np.fromiter(map(len, payload), dtype=np.int64, count=len(records))
            self._buffered += int(records["payload"].sum(dtype=np.int64)) + _ROW * len(records)
        self._records.append(records)
        self._numbers.append(partitions.astype(self._number))
        self._payload += payload
        self._buffered += records.nbytes + partitions.nbytes
        if self._buffered >= self._most:
            self._flush()

    def _flush(self) -> None:
        path = f"{self._stem}.{len(self.objects):04d}.rows"
        numbers = np.concatenate([np.zeros(0, dtype=self._number), *self._numbers])
        order = np.argsort(numbers, kind="stable")
        records = np.concatenate([np.zeros(0, dtype=self._type), *self._records])
        self._records.clear()  # so that rows are there twice, and not more often
        ends = np.searchsorted(numbers[order], np.arange(self._partitions + 1))
        at = bounds_of(records["payload"][order])[ends] if self._payload else np.zeros_like(ends)
        with SealedOutput(path) as output:
            output.write(_head(self._partitions, self._type))
            output.write(np.stack([ends, at], axis=1).astype("<u8").tobytes())
            for begin in range(0, len(order), _PIECE):
                output.write(records[order[begin : begin + _PIECE]].tobytes())
            output.write(b"".join([self._payload[i] for i in order.tolist()] if self._payload else []))
        self.objects.append(path)
        self._reset()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is None and self._buffered:
            self._flush()


def _head(partitions: int, type: np.dtype[Any]) -> bytes:
    text = msgspec.json.encode(_ScatterHead(partitions, type.descr))
    return len(text).to_bytes(8, "little") + text


class _Object:
    """Reads an object; a context manager."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> Self:
        try:
            self._file = Sealed(self._path)
        except FileNotFoundError:
            raise self._damaged() from None
        try:
            self._read_head()
        except BaseException:
            self._file.__exit__()
            raise
        return self

    def _read_head(self) -> None:
        length = int.from_bytes(self._at(0, 8), "little")
        try:
            head = msgspec.json.decode(self._at(8, length), type=_ScatterHead)
        except msgspec.DecodeError:
            raise self._damaged() from None
        self.partitions, self.type = head.partitions, np.dtype([(name, code) for name, code in head.type])
        self._index = 8 + length
        self._rows = self._index + 16 * (head.partitions + 1)
        self._payload = self._rows + self.type.itemsize * int(self.index(head.partitions)[0, 0])

    def __exit__(self, *_: object) -> None:
        self._file.__exit__()

    def _at(self, offset: int, size: int) -> bytes:
        """Return a piece, as it was written."""
        try:
            piece = self._file.at(offset, size) if size else b""
        except DataError:
            piece = b""
        if len(piece) < size:
            raise self._damaged()
        return piece

    def _damaged(self) -> DataError:
        folder = paths.parent_of(self._path)
        message = "expected what was written, got other bytes, or none: it was damaged"
        return DataError(f"{message}; delete {folder}, then run again", path=self._path)

    def pieces(self, first: int, last: int, *, payload: bool) -> Iterator[GatheredRows]:
        """Yield the rows of partitions, some at a time; `payload` says whether their payload is wanted."""
        (begin, at), (end, _) = (self.index(number)[0].tolist() for number in (first, last))
        size = self.type.itemsize
        while begin < end:
            data = self._at(self._rows + begin * size, min(_PIECE, end - begin) * size)
            records = np.frombuffer(data, dtype=self.type)
            bounds = bounds_of(records["payload"])
            count = max(1, int(np.searchsorted(bounds, _PIECE_BYTES)) - 1) if payload else len(records)
            texts = self._at(self._payload + at, int(bounds[count])) if payload else b""
            yield GatheredRows(records[:count], _cut(texts, bounds[: count + 1]) if payload else [])
            begin, at = begin + count, at + int(bounds[count])

    def index(self, first: int, last: int | None = None) -> Array:
        """Return the offsets of rows and payload of partitions: uint64 (partitions, 2)."""
        count = 1 if last is None else last - first
        return np.frombuffer(self._at(self._index + 16 * first, 16 * count), dtype="<u8").reshape(-1, 2)

    def sections(self, first: int, last: int, column: int) -> list[bytes]:
        """Return the rows of each partition, as bytes; or with 1 as column their payload."""
        at, size = (self._payload, 1) if column else (self._rows, self.type.itemsize)
        bounds = self.index(first, last + 1)[:, column].astype(np.int64) * size
        return _cut(self._at(at + int(bounds[0]), int(bounds[-1] - bounds[0])), bounds - bounds[0])

    def read(self, first: int, last: int) -> tuple[Array, bytes]:
        """Return the records of partitions, and their payload."""
        (begin, at), (end, to) = (self.index(number)[0].tolist() for number in (first, last))
        size = self.type.itemsize
        records = self._at(self._rows + begin * size, (end - begin) * size)
        return np.frombuffer(records, dtype=self.type), self._at(self._payload + at, to - at)


class _Objects(ConfigStruct):
    """The objects of one name in a folder, as paths below it."""

    objects: list[str]


def settle(run: Run, folder: str, name: str, objects: Sequence[str]) -> None:
    """Enter objects of a folder under a name, in their order; of more than `MOST` some are merged first.

    Args:
        run: Runs tasks, as of a command.
        folder: Folder that all of them are in.
        name: Name by which tasks gather them.
        objects: Paths.
    """
    level = 0
    while len(objects) > MOST:
        groups = [list(objects[i : i + MOST]) for i in range(0, len(objects), MOST)]
        targets = [paths.join(folder, f"{name}-{level}-{i:06d}.rows") for i in range(len(groups))]
        tasks = [Task(path, _ToMerge(group, path)) for group, path in zip(groups, targets, strict=True)]
        run(f"merging files of {name}", _merge, tasks)
        objects, level = targets, level + 1
    names = [path.removeprefix(folder).lstrip("/") for path in objects]
    json_files.save(paths.join(folder, f"{name}.json"), _Objects(names))


class _ToMerge(ConfigStruct):
    """Objects to merge into one."""

    objects: list[str]
    target: str


def _merge(task: _ToMerge, report: Report) -> None:
    """Write the object: an eighth of the memory at a time, or a partition."""
    with ExitStack() as stack, SealedOutput(task.target) as output:
        objects = [stack.enter_context(_Object(path)) for path in task.objects]
        partitions, type_ = objects[0].partitions, objects[0].type
        index = functools.reduce(np.add, (object_.index(0, partitions + 1) for object_ in objects))
        output.write(_head(partitions, type_) + index.tobytes())
        for column, size in enumerate((type_.itemsize, 1)):
            for first, last in _batches(np.diff(index[:, column].astype(np.int64)) * size, MEMORY // 8):
                sections = (object_.sections(first, last, column) for object_ in objects)
                output.write(b"".join(chain.from_iterable(zip(*sections, strict=True))))


def _paths(folder: str, name: str) -> list[str]:
    entered = json_files.load_strictly(paths.join(folder, f"{name}.json"), _Objects)
    return [paths.join(folder, path) for path in entered.objects] if entered else []


def _objects(folder: str, name: str) -> Iterator[_Object]:
    """Yield objects, each open until the next one."""
    for path in _paths(folder, name):
        with _Object(path) as object:
            yield object


def gather(folder: str, name: str, first: int, last: int, type: np.dtype[Any]) -> GatheredRows:
    """Return the rows of partitions, from the first to before the last.

    Raises:
        DataError: If an object is not what was written.
    """

    def read(path: str) -> tuple[Array, bytes]:
        with _Object(path) as object:
            return object.read(first, last)

    parts = threads.for_each(read, _paths(folder, name))
    records = np.concatenate([np.zeros(0, dtype=type), *(part[0] for part in parts)])
    if "payload" not in (type.names or ()):
        return GatheredRows(records, [])
    return GatheredRows(records, _cut(b"".join(part[1] for part in parts), bounds_of(records["payload"])))


def _cut(data: bytes, bounds: Array) -> list[bytes]:
    return [data[begin:end] for begin, end in pairwise(bounds.tolist())]


def pieces(folder: str, name: str, first: int, last: int, *, payload: bool = True) -> Iterator[GatheredRows]:
    """Yield the rows of `gather`, some at a time.

    Args:
        folder: Folder of the objects.
        name: Name of the objects, whose type has a payload.
        first: First partition.
        last: First partition after these.
        payload: False if only records are wanted.
    """
    for object in _objects(folder, name):
        yield from object.pieces(first, last, payload=payload)


SECTION = np.dtype([("payload", "<u4")])
"""Rows without records: only their payload counts."""


def scatter_sections(stem: str, partitions: int, sections: Mapping[int, bytes]) -> list[str]:
    """Write bytes for some partitions to one object; return its path, as a list."""
    with Scatter(stem, SECTION, partitions, 1 << 62) as scatter:
        scatter.add(np.zeros(len(sections), dtype=SECTION), np.array([*sections], dtype=np.int64), [*sections.values()])
    return scatter.objects


def gather_sections(folder: str, name: str, partition: int) -> list[bytes]:
    """Return the bytes of objects for a partition, in their order. Errors as of `gather`."""
    return gather(folder, name, partition, partition + 1, SECTION).payload


def ranges(folder: str, names: Iterable[str], memory: int | None = None) -> list[tuple[int, int]]:
    """Return ranges of partitions, each within an eighth of the memory.

    Args:
        folder: Folder of the objects.
        names: Names whose rows are gathered together.
        memory: Bytes of a task; `MEMORY` by default.
    """
    total: Array = np.zeros(1)
    for name in names:
        for object in _objects(folder, name):
            index = object.index(0, object.partitions + 1).astype(np.int64)
            size = object.type.itemsize
            cost = size + _ROW if "payload" in (object.type.names or ()) else 4 * size
            total = total + np.diff(index, axis=0) @ np.array([cost, 1])
    return _batches(total, (memory or MEMORY) // 8)


def _batches(sizes: Array, room: int) -> list[tuple[int, int]]:
    """Return ranges of partitions within a size, or of one."""
    result, first, total = list[tuple[int, int]](), 0, 0
    for i, size in enumerate(sizes.tolist()):
        if i > first and total + size > room:
            result.append((first, i))
            first, total = i, 0
        total += size
    return [*result, (first, len(sizes))]


def rows_in(folder: str, name: str, partition: int) -> int:
    """Return how many rows a partition has."""
    count = 0
    for object in _objects(folder, name):
        begin, end = object.index(partition, partition + 2)[:, 0].tolist()
        count += end - begin
    return count


class _Record(freshness.Derived, frozen=True, kw_only=True):
    """The outcome of a task."""

    value: msgspec.Raw


def outcome(path: str, key: Any, type: type[T]) -> T | None:
    """Return the recorded outcome of a task; None if it has not been done, or of something else."""
    record = json_files.load(path, _Record)
    if record and freshness.state(record, [("", json_files.json_digest(key))]).is_done:
        return msgspec.json.decode(record.value, type=type)
    return None


def once(path: str, key: Any, type: type[T], make: Callable[[], T]) -> T:
    """Return the outcome of a task: as recorded, if that was made of the same, or else made now.

    Args:
        path: Path of the record, which is written last.
        key: Inputs of the task, as JSON.
        type: Type of what it comes to.
        make: Does the work.
    """
    if (value := outcome(path, key, type)) is None:
        value = make()
        record = _Record(made_of=json_files.json_digest(key), value=msgspec.Raw(msgspec.json.encode(value)))
        json_files.save(path, record)
    return value
