"""Attribute files of shards from the joined rows: and what of a set is done."""

import time
from collections.abc import Sequence

import msgspec
import numpy as np

from toolkit.align import align_config
from toolkit.align.join import BLOCK, ROW
from toolkit.config.settings import ConfigStruct
from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.errors import DataError
from toolkit.exchange.scatter import gather
from toolkit.execution.executors import Report
from toolkit.execution.progress import Share
from toolkit.records import sets, takedown
from toolkit.records.sets import ShardAttributes
from toolkit.records.takedown import cleared_attributes
from toolkit.storage.outputs import RowOutput

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
