"""A throwaway sample of a dataset: some of its documents in a dataset of their own, on which taggers are tried.

``.toolkit/samples/documents/sample-*.jsonl.gz``  the documents, copied
``.toolkit/samples/attributes/SET/…``             the sets that taggers make of them, and rows of sets that are read
``.toolkit/samples/sample.json``                  a `SampleRecord`: written last

Which documents these are depends on their sources and ids, and on the seed: on nothing else.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple

import msgspec
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.data import row_index
from toolkit.data.alignment import attribute_lines
from toolkit.data.dataset import Dataset
from toolkit.data.documents import LATE_DECODER, AttributesRow, Rows
from toolkit.errors import AlignmentError
from toolkit.execution.executors import Report
from toolkit.execution.grouped import ShardWork
from toolkit.lazy_numpy import np
from toolkit.records import sets
from toolkit.records.sets import ShardAttributes
from toolkit.storage import json_files, paths, reading
from toolkit.storage.outputs import RowOutput

FOLDER = "samples"
GROUP_SHARDS = 64
GROUP_BYTES = 64_000_000
"""Shards, and bytes of documents drawn from them, that a file of the sample has at most, about."""

_ROWS = msgspec.json.Decoder(AttributesRow)


class SampleRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a sample.

    Attributes:
        documents: Documents that it has.
        of: Number of documents of the dataset.
        seed: Seed of the draw.
        input: digest of the documents of the dataset.
        sets: Sets that were made of it.
    """

    version: int = 1
    documents: int
    of: int
    seed: int
    input: str
    sets: list[str]

    def __str__(self) -> str:
        return f"on a sample: {self.documents:,} of {self.of:,} documents (seed {self.seed})"


def folder_of(dataset: Dataset) -> str:
    """Return the folder of a dataset's sample."""
    return paths.join(dataset.bookkeeping, FOLDER)


def dataset_of(dataset: Dataset) -> Dataset:
    """Return the sample of a dataset as a dataset."""
    root = folder_of(dataset)
    return Dataset(paths.join(root, "documents"), paths.join(root, "attributes"), notes=paths.join(root, "notes"))


def load(dataset: Dataset) -> SampleRecord | None:
    """Return the record of a dataset's sample; None without one."""
    return json_files.load(_mark(dataset), SampleRecord)


def save(dataset: Dataset, sample: SampleRecord) -> None:
    """Declare a sample complete."""
    json_files.save(_mark(dataset), sample)


def delete(dataset: Dataset) -> None:
    """Delete the sample of a dataset, if there is one."""
    paths.remove_tree(folder_of(dataset))


def _mark(dataset: Dataset) -> str:
    return paths.join(folder_of(dataset), "sample.json")


def digest(states: Mapping[str, row_index.ShardState]) -> str:
    """Return a digest of documents, given the states of their shards."""
    return xxhash.xxh3_128_hexdigest(
        msgspec.json.encode(sorted((name, state.content) for name, state in states.items()))
    )


# --- drawing ----------------------------------------------------------------------------------------------------------


class ShardToIndex(ShardWork, kw_only=True):
    """Shard without a row index."""

    max_document_bytes: int


def index_shard(work: ShardToIndex, report: Report) -> row_index.ShardState:
    """Return the state of a shard; index it if that has not been done."""
    state = row_index.ensure(work.dataset, work.shard, work.max_document_bytes)
    report(state.rows, 0)
    return state


class SampleDrawTask(ShardWork, kw_only=True):
    """Shard to draw documents from: those with keys up to a limit."""

    seed: int
    limit: int


class Drawn(ConfigStruct):
    """Documents of a shard, by row number from 0: their keys, and the bytes of their texts."""

    rows: list[int]
    keys: list[int]
    sizes: list[int]


def draw_shard(work: SampleDrawTask, report: Report) -> Drawn:
    """Return the documents of a shard with keys up to a limit; in order."""
    drawn = Drawn([], [], [])
    first = 0
    for block in row_index.read(work.dataset, work.shard):
        hashes: np.ndarray = block["hash"]
        if work.dataset.duplicate_ids == "allow":
            begin = xxhash.xxh3_64_intdigest(work.shard.encode()) % 2**63 + first
            hashes = hashes + np.arange(begin, begin + len(block), dtype=np.uint64)
        keys = keys_of(hashes, work.seed)
        rows = np.flatnonzero(keys <= np.uint64(work.limit))
        drawn.rows.extend((rows + first).tolist())
        drawn.keys.extend(keys[rows].tolist())
        drawn.sizes.extend(block["bytes"][rows].tolist())
        first += len(block)
    report(first, 0)
    return drawn


def keys_of(hashes: "np.ndarray", seed: int) -> "np.ndarray":
    """Return the sort keys of documents for the draw.

    They are hashes mixed with the seed (splitmix64).
    """
    from toolkit.text.kernels.split_mix import GAMMA, finalized

    return finalized(hashes.astype(np.uint64) + np.uint64((seed + 1) * GAMMA % 2**64))  # which is modulo 2**64


def key_of(hash_: int, seed: int) -> int:
    """Return the key of one document."""
    return int(keys_of(np.array([hash_], dtype=np.uint64), seed)[0])


def limit_for(count: int, total: int) -> int:
    """Return a key limit for a number of documents.

    Surely as many are below it, and not many more.
    """
    expected = count + 8 * count**0.5 + 16
    return 2**64 - 1 if expected >= total else int(expected / total * 2**64)


class Pick(NamedTuple):
    """Documents of a shard in the sample.

    Row numbers ascend; the size is the bytes of the texts.
    """

    shard: str
    rows: list[int]
    size: int


def least(drawn: Mapping[str, Drawn], count: int) -> list[Pick]:
    """Return so many documents with the least keys of all, by shard; of equal keys those that stand first."""
    ranked = sorted(
        (key, name, row, size)
        for name, drawn in drawn.items()
        for key, row, size in zip(drawn.keys, drawn.rows, drawn.sizes, strict=True)
    )[:count]
    picks: dict[str, list[tuple[int, int]]] = {}
    for _, name, row, size in ranked:
        picks.setdefault(name, []).append((row, size))
    return [
        Pick(name, sorted(row for row, _ in rows), sum(size for _, size in rows))
        for name, rows in sorted(picks.items())
    ]


# --- copying ----------------------------------------------------------------------------------------------------------


class FileToCopy(ConfigStruct):
    """A file of the sample.

    Attributes:
        dataset: Dataset that it is a sample of.
        name: Name of the file, as a shard of the sample.
        picks: shards, and the row numbers of their documents in it.
        sets: Sets of which the rows are copied, too.
    """

    dataset: Dataset
    name: str
    picks: list[tuple[str, list[int]]]
    sets: list[str]
    max_document_bytes: int


def files(picks: Sequence[Pick]) -> Iterator[list[tuple[str, list[int]]]]:
    """Yield the content of each file of the sample."""
    group: list[tuple[str, list[int]]] = []
    size = 0
    for pick in picks:
        group.append((pick.shard, pick.rows))
        size += pick.size
        if size >= GROUP_BYTES or len(group) >= GROUP_SHARDS:
            yield group
            group, size = [], 0
    if group:
        yield group


def copy_file(work: FileToCopy, report: Report) -> int:
    """Write a file of the sample; return its number of documents.

    Rows of the sets are copied, too.

    Raises:
        DataError: if documents, or rows of these sets, are not what they should be.
    """
    dataset, sample = work.dataset, dataset_of(work.dataset)
    with ExitStack() as stack:
        documents = stack.enter_context(RowOutput(sample.shard_path(work.name)))
        outputs = {name: stack.enter_context(RowOutput(sample.attribute_path(name, work.name))) for name in work.sets}
        for shard, numbers in work.picks:
            state = row_index.ensure(dataset, shard, work.max_document_bytes)
            names = []
            for line in reading.lines_at(dataset.lines(shard, work.max_document_bytes), numbers):
                row = LATE_DECODER.decode(line)
                names.append((row.id, row.source))
                documents.write_row(line)
            for name, output in outputs.items():
                ShardAttributes(dataset, name, shard, state).content()
                for line in _attributes(dataset, name, shard, numbers, names):
                    output.write_row(line)
            report(len(numbers), 0)
    shard_state = row_index.build(sample, work.name, work.max_document_bytes)
    for name, output in outputs.items():
        if set_schema := sets.load_schema(sample, name):
            record = sets.ShardRecord(
                input=shard_state,
                settings={key: key_schema.settings for key, key_schema in set_schema.keys.items()},
                reads={},
                rows=output.rows,
                counts={"documents": output.rows},
                output=sets.output_state(output),
                seconds=0.0,
            )
            sets.save_records(sample, work.name, {name: record})
    return shard_state.rows


def _attributes(
    dataset: Dataset, set_name: str, shard: str, numbers: list[int], names: list[tuple[str, str]]
) -> Iterator[bytes]:
    path = dataset.attribute_file(set_name, shard)
    if not paths.exists(path):
        raise sets.missing_attributes(dataset, set_name, shard)
    rows = Rows(reading.lines_at(attribute_lines(path), numbers), _ROWS, path)
    for number, (id, source) in zip(numbers, names, strict=True):
        row, line = next(rows, (None, b""))
        if row is None or row.id != id or row.source not in (source, None):
            got = f"those of {row.id!r}" if row else "no more rows"
            raise AlignmentError(
                f"expected the attributes of {dataset.shard_path(shard)}:{number + 1}, got {got}",
                path=path,
                line=number + 1,
                id=id,
            )
        yield line
