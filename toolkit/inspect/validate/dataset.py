"""Checks of a dataset as a whole: files of no shard, what ingest recorded, documents that are there twice."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from toolkit.data import row_index
from toolkit.data.dataset import Dataset
from toolkit.errors import DataError
from toolkit.records import identity, ingested
from toolkit.storage.paths import join, lacking, list_files, stat


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


def duplicates(dataset: Dataset, shards: list[str]) -> Iterator[Callable[[], DataError]]:
    """Yield what makes the error of each document whose (source, id) an earlier one has, within or across shards.

    Shards without index (those in which something else was found) are left out.
    """
    states = {shard: state for shard in shards if (state := row_index.current(dataset, shard))}
    indexed = [identity.IndexedDocuments(dataset, shard, state.rows) for shard, state in states.items()]
    for duplicate in identity.find_duplicate_ids(indexed) if dataset.duplicate_ids == "refuse" else ():
        yield partial(duplicate.error, indexed)
