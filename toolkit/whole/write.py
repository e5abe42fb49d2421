"""Step 3, per shard: the attribute file, from signatures and fates; no text is read."""

import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data import row_index
from toolkit.errors import DataError
from toolkit.records import sets
from toolkit.records.outdated import is_outdated
from toolkit.runs.executors import Report
from toolkit.runs.progress import Share
from toolkit.storage.outputs import RowOutput
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
