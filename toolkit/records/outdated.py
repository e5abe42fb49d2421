"""Decides whether a shard of a set is done again: whether it was made from something else than there is now.

Inputs are judged likewise by `toolkit.ingest.inputs.why_not_done`, shards of a mix by `toolkit.mix.stage.made_from`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from toolkit.data.dataset import Dataset
from toolkit.data.row_index import ShardState
from toolkit.errors import DataError, StaleError
from toolkit.records.foreign import look_at
from toolkit.records.sets import ShardRecord, command_of, is_intact, load_record, load_schema, missing_attributes
from toolkit.storage.paths import exists


def is_outdated(
    dataset: Dataset,
    set_name: str,
    shard: str,
    documents: ShardState | None,
    settings: Mapping[str, Any],
    reads: Iterable[str],
    *,
    learn: bool = False,
) -> bool:
    """Return whether a shard of a set must be done, or done again.

    Args:
        dataset: of the shard.
        set_name: of the set.
        shard: of the dataset.
        documents: as they are now; None if that is not known.
        settings: that the set is to be made with.
        reads: the sets that it is to be made from.
        learn: as of `toolkit.records.sets.is_intact`.
    """
    record = load_record(dataset, set_name, shard)
    return (
        record is None
        or documents is None
        or record.input.content != documents.content
        or record.settings != settings
        or not is_intact(dataset, set_name, shard, record, learn=learn)
        or any(_has_changed(dataset, other, shard, record, documents) for other in reads)
    )


def _has_changed(dataset: Dataset, other: str, shard: str, record: ShardRecord, documents: ShardState) -> bool:
    """Return whether a set that was read is another now, or is itself made from something that has changed."""
    try:
        check_lineage(dataset, other, shard, documents)
    except StaleError:
        return True
    return content_of(dataset, other, shard) != record.reads.get(other)


def content_of(dataset: Dataset, set_name: str, shard: str) -> str:
    """Return the content digest of an attribute file, from its record or, in a foreign set, from what was seen.

    Raises:
        DataError: if there is no such file, or it is not the one that its record describes.
    """
    path = dataset.attribute_path(set_name, shard)
    if load_schema(dataset, set_name) is None:
        return look_at(dataset, set_name, shard).content
    record = load_record(dataset, set_name, shard)
    if not exists(path):
        raise missing_attributes(dataset, set_name, shard)
    run = f"run `toolkit {command_of(dataset, set_name)}`"
    if record is None:
        raise DataError(f"expected a complete file, got one without its completion record; {run}", path=path)
    if not is_intact(dataset, set_name, shard, record):
        raise DataError(
            f"expected the file that its record describes, got one that was changed later; {run}", path=path
        )
    return record.output.content


def check_lineage(dataset: Dataset, set_name: str, shard: str, documents: ShardState) -> None:
    """Raise StaleError if a shard of a set was made from other documents, or other attributes, than there are now."""
    record = load_record(dataset, set_name, shard)
    if record is None:
        return
    path = dataset.attribute_path(set_name, shard)
    if record.input.content != documents.content:
        raise StaleError(
            f"expected attributes of {dataset.shard_path(shard)} as it is now, got those of an earlier version; "
            f"run `toolkit {command_of(dataset, set_name)}`",
            path=path,
        )
    for other, digest in record.reads.items():
        check_lineage(dataset, other, shard, documents)
        if content_of(dataset, other, shard) != digest:
            raise StaleError(
                f"expected attributes made from the set {other} as it is now, got those made from an earlier version; "
                f"run `toolkit {command_of(dataset, set_name)}`",
                path=path,
            )
