"""Checks of a dataset as a whole: files of no shard, what ingest recorded, documents that are there twice."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from toolkit.data import row_index
from toolkit.data.alignment import MAX_ROW
from toolkit.data.dataset import Dataset
from toolkit.data.documents import DOCUMENT_DECODER, Rows
from toolkit.errors import DataError
from toolkit.records import ingested
from toolkit.storage.paths import join, lacking, list_files, stat

PARTITION = 1 << 24
"""Row hashes held at a time when duplicates are looked for."""


def extra_files(dataset: Dataset, set_name: str, shards: Iterable[str]) -> list[str]:
    """Return the files of a set that belong to no shard."""
    ways = (dataset.attribute_path, dataset.attribute_table)
    known = {way(set_name, shard) for shard in shards for way in ways}
    folder = join(dataset.attributes, set_name)
    return [path for path in list_files(folder) if join(folder, path) not in known]


def check_ingested(dataset: Dataset) -> list[str]:
    """Return findings about shards that are not what ingest made, or are gone."""
    inputs, findings = ingested.load_each(dataset)
    for record in inputs.values():
        for shard, output in record.shards.items() if not record.deleted else ():
            path = dataset.shard_path(shard)
            found, state = stat(path), row_index.current(dataset, shard)
            if found is None:
                found_there = f"{path}: expected the documents of {record.input}, got {lacking(path)}"
                findings.append(f"{found_there}; run `toolkit ingest`")
            elif state and state.content != output.content:
                findings.append(f"{path}: expected the documents as they were ingested, they were changed")
    return findings


def duplicates(dataset: Dataset, shards: list[str]) -> Iterator[str]:
    """Yield documents whose (source, id) another one has, within or across shards, from the row indexes.

    A mix numbers the documents that it repeats: copies of one document, with numbers that differ, are none.

    Holds `PARTITION` hashes at a time, and the keys that are suspect. Equal hashes are confirmed by reading the rows.
    Shards without index (those in which something else was found) are left out.
    """
    import numpy as np

    states = {shard: state for shard in shards if (state := row_index.current(dataset, shard))}
    indexed = list(states)
    partitions = -(-sum(state.rows for state in states.values()) // PARTITION) or 1
    suspects: dict[int, set[int]] = {}
    for partition in range(partitions):
        hashes, places = [], []
        for number, shard in enumerate(indexed):
            for block in row_index.read(dataset, shard):
                chosen = block["hash"][block["hash"] % partitions == partition]
                hashes.append(chosen)
                places.append(np.full(len(chosen), number, dtype=np.uint32))
        if not hashes:
            continue
        values, owners = np.concatenate(hashes), np.concatenate(places)
        order = np.lexsort((owners, values))
        values, owners = values[order], owners[order]
        for i in np.flatnonzero(values[1:] == values[:-1]):
            for j in (i, i + 1):
                suspects.setdefault(int(owners[j]), set()).add(int(values[j]))
    first: dict[tuple[str, str, int | None], str] = {}
    for owner in sorted(suspects):
        path = dataset.shard_path(indexed[owner])
        with dataset.lines(indexed[owner], MAX_ROW) as lines:
            rows = Rows(lines, DOCUMENT_DECODER, path)
            for row, _ in rows:
                if row_index.row_hash(row.source, row.id) not in suspects[owner]:
                    continue
                key = (row.source, row.id, _copy_of(row.metadata))
                place = f"{path}:{rows.number}"
                if (before := first.setdefault(key, place)) != place:
                    message = f"expected each (source, id) once, got that of {before} again"
                    yield str(DataError(message, path=path, line=rows.number, id=row.id))


class _Metadata(msgspec.Struct):
    copy: Any = None


_METADATA = msgspec.json.Decoder(_Metadata)


def _copy_of(metadata: msgspec.Raw | None) -> int | None:
    """Return the number of a copy, as a mix that repeats documents gives it; None if there is none."""
    found = None
    with contextlib.suppress(msgspec.DecodeError):
        found = _METADATA.decode(metadata or b"{}").copy
    return found if isinstance(found, int) else None
