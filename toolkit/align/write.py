"""Step 4, per shard: the attribute file, from the places of its documents' values; and what of a set is done."""

import time
from collections.abc import Sequence

import msgspec

from toolkit.align import section
from toolkit.align.match import Index, named_blocks, read_places
from toolkit.config.settings import ConfigStruct
from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.errors import DataError
from toolkit.records import aligned, sets
from toolkit.records.freshness import attributes_state
from toolkit.runs.executors import Report
from toolkit.runs.progress import Share
from toolkit.storage.outputs import RowOutput

_ENCODER = msgspec.json.Encoder()


class ShardToWrite(ConfigStruct):
    """A shard whose attributes are written.

    Attributes:
        keys: of the set, in order.
        settings: of the set, by key.
        folder: of what was matched.
        content: digest of the documents that were matched.
    """

    dataset: Dataset
    shard: str
    set: str
    keys: list[str]
    settings: dict[str, dict[str, object]]
    folder: str
    content: str
    limit: int


class WrittenShard(ConfigStruct):
    """The documents of a shard whose attributes were written, and those of them without values."""

    shard: str
    documents: int
    missing: int


def is_done(work: ShardToWrite) -> bool:
    """Return whether the attributes of a shard are there, of the documents of now."""
    state = row_index.current(work.dataset, work.shard)
    return attributes_state(work.dataset, work.set, work.shard, state, work.settings, ()).is_done


def write_shard(work: ShardToWrite, report: Report) -> WrittenShard:
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
    index, places = Index(work.folder), read_places(work.folder, shard)
    null = b"{" + b",".join(_ENCODER.encode(key) + b":null" for key in work.keys) + b"}"
    missing = done = 0
    sets.forget(dataset, work.set, shard)
    told = Share(report, state.rows, state.size)
    with RowOutput(dataset.attribute_path(work.set, shard)) as output:
        for block in named_blocks(dataset, shard, work.limit):
            found = places[done : done + len(block)]
            lines = iter(index.rows(found[found >= 0]))
            for row, place in zip(block, found, strict=True):
                values = null
                if place >= 0:
                    values = bytes(msgspec.json.decode(next(lines), type=list[msgspec.Raw])[-1])
                missing += values is null
                names = _ENCODER.encode({"source": row.source, "id": row.id})
                output.write_row(names[:-1] + b',"attributes":' + values + b"}")
            done += len(block)
            told(len(block))
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
    """What is to be done for a set: its inputs, its schema, and its shards that must be written."""

    inputs: list[str]
    schema: sets.SetSchema
    shards: list[str]


def progress_of(dataset: Dataset, entry: section.Entry, shards: Sequence[str], limit: int) -> Todo:
    """Return what is to be done for a set; nothing is written.

    Raises:
        ConfigError: if its inputs are not there, or the types of its values cannot be told.
    """
    inputs = entry.inputs()
    made, old = aligned.load_aligned(dataset, entry.set), sets.load_schema(dataset, entry.set)
    same = (
        made is not None
        and old is not None
        and [each.path for each in made.inputs] == inputs
        and all(key.settings == entry.recorded() for key in old.keys.values())
        and not aligned.changed_input(made)
    )
    if same and old is not None:
        works = works_to_write(dataset, entry, old, shards, "", limit)
        return Todo(inputs, old, [work.shard for work in works if not is_done(work)])
    return Todo(inputs, section.schema_of(entry, inputs, limit), list(shards))


def works_to_write(
    dataset: Dataset, entry: section.Entry, schema: sets.SetSchema, shards: Sequence[str], folder: str, limit: int
) -> list[ShardToWrite]:
    """Return the writing of each shard of a set."""
    settings = {key: found.settings for key, found in schema.keys.items()}
    return [
        ShardToWrite(
            dataset=dataset,
            shard=shard,
            set=entry.set,
            keys=list(schema.keys),
            settings=settings,
            folder=folder,
            content="",
            limit=limit,
        )
        for shard in shards
    ]
