"""Step 3, per shard: the attribute file, from signatures and fates; no text is read."""

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.errors import DataError
from toolkit.records import sets
from toolkit.records.outdated import is_outdated
from toolkit.runs.executors import Report, Task
from toolkit.runs.progress import Share
from toolkit.storage.outputs import RowOutput
from toolkit.storage.threads import for_each
from toolkit.whole.records import SignedShard
from toolkit.whole.section import Entry
from toolkit.whole.sign import names_of

_ENCODER = msgspec.json.Encoder()
_ROWS = 1 << 10  # that are written at a time


class ShardToWrite(ConfigStruct):
    """A shard whose attributes are written.

    Attributes:
        fates: the folder of what was resolved.
    """

    entry: Entry
    signed: SignedShard
    fates: str


class WrittenShard(ConfigStruct):
    """Whether the file of a shard was written, and its documents."""

    shard: str
    written: bool
    documents: int


def outdated(work: ShardToWrite, *, learn: bool = False) -> bool:
    """Return whether the attributes of a shard must be written."""
    dataset, shard, entry = work.signed.dataset, work.signed.shard, work.entry
    state = row_index.current(dataset, shard)
    return is_outdated(dataset, entry.set, shard, state, entry.recorded, entry.reads, learn=learn)


def works(dataset: Dataset, entry: Entry, signed: Sequence[SignedShard], fates: str) -> list[Task[ShardToWrite]]:
    """Return what is to be done of a dataset's own shards, of which `fates` has what was resolved."""
    mine = [ShardToWrite(entry=entry, signed=each, fates=fates) for each in signed if each.own]
    with dataset.looking({entry.set, *entry.reads}):
        before = for_each(as_it_was, mine)
    return [
        Task(
            dataset.attribute_path(entry.set, work.signed.shard),
            work,
            work.signed.record.input.size,
            key=work.signed.shard,
            known=done,
        )
        for work, done in zip(mine, before, strict=True)
    ]


def as_it_was(work: ShardToWrite) -> WrittenShard | None:
    """Return the outcome of a shard if nothing is to be done, by records, sizes and stamps; None if that is not known.

    Nothing is read but these, and nothing written.
    """
    dataset, shard, entry = work.signed.dataset, work.signed.shard, work.entry
    try:
        if not all(sets.is_as_recorded(dataset, name, shard) for name in (entry.set, *entry.reads)) or outdated(work):
            return None
    except DataError:  # told when the shard is worked on
        return None
    return WrittenShard(shard=shard, written=False, documents=work.signed.record.rows)


def write_shard(work: ShardToWrite, report: Report) -> WrittenShard:
    """Write the attributes of a shard, if they are missing or outdated.

    Raises:
        DataError: if signatures and fates do not fit together.
    """
    signed, entry = work.signed, work.entry
    dataset, shard, record = signed.dataset, signed.shard, signed.record
    if not outdated(work, learn=True):
        report(record.rows, 0)
        return WrittenShard(shard=shard, written=False, documents=record.rows)
    start = time.perf_counter()
    path = dataset.attribute_path(entry.set, shard)
    sets.forget(dataset, entry.set, shard)
    values = entry.configured().values(signed, work.fates)
    done = Share(report, record.rows, record.input.size)
    with RowOutput(path) as output:
        rows = zip(names_of(signed.folder, shard), _endings(entry.key, values), strict=True)
        while block := [name[:-1] + ending for name, ending in islice(rows, _ROWS)]:
            output.write_rows(block)
            done(len(block))
        if output.rows != record.rows:
            raise DataError(f"expected {record.rows} rows, got {output.rows}; run `toolkit dedup`", path=path)
    made = sets.ShardRecord(
        input=record.input,
        settings=entry.recorded,
        reads=record.reads,
        rows=output.rows,
        counts={"documents": output.rows},
        output=sets.output_state(output),
        seconds=round(time.perf_counter() - start, 3),
    )
    sets.save_records(dataset, shard, {entry.set: made})
    return WrittenShard(shard=shard, written=True, documents=record.rows)


def _endings(key: str, values: Iterable[Any]) -> Iterator[bytes]:
    """Yield what is behind the name in each row; of the same value again and again, which most rows have, made once."""
    middle = b',"attributes":{' + _ENCODER.encode(key) + b":"
    before, ending = None, middle + b"null}}"
    for value in values:
        if value is not before:
            before, ending = value, middle + _ENCODER.encode(value) + b"}}"
        yield ending
