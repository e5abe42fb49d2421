"""The state of the attributes of a shard: whether they are what their inputs, as they are now, make of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from toolkit.data.dataset import Dataset
from toolkit.data.row_index import ShardState
from toolkit.errors import DataError, StaleError
from toolkit.records import foreign
from toolkit.records.sets import ShardRecord, command_of, load_record, load_schema, missing_attributes, save_records
from toolkit.storage.artifact import FileRecord, State, state
from toolkit.storage.paths import exists

NOT_INDEXED = State("stale", "its documents are not indexed, or have changed")


def attributes_state(
    dataset: Dataset,
    set_name: str,
    shard: str,
    documents: ShardState | None,
    settings: Mapping[str, Any] | None = None,
    reads: Iterable[str] | None = None,
    *,
    quick: bool = False,
    learn: bool = False,
) -> State:
    """Return the state of the attributes of a shard.

    Args:
        dataset: Dataset of the shard.
        set_name: Name of a set of ours.
        shard: Shard of the dataset.
        documents: Documents as they are now; None if that is not known.
        settings: Settings that the set is to be made with; None if any will do.
        reads: Sets that it is to be made from; by default, those that it was made from.
        quick: As of `toolkit.storage.artifact.state`.
        learn: True if the record is to learn another stamp; those who only look write nothing.
    """
    record, found = _state(dataset, set_name, shard, documents, settings=settings, reads=reads, quick=quick)
    if record and learn and found.stamps:
        output = msgspec.structs.replace(record.output, stamp=found.stamps[dataset.attribute_path(set_name, shard)])
        save_records(dataset, shard, {set_name: msgspec.structs.replace(record, output=output)})
    return found


def _state(
    dataset: Dataset,
    set_name: str,
    shard: str,
    documents: ShardState | None,
    *,
    settings: Mapping[str, Any] | None = None,
    reads: Iterable[str] | None = None,
    quick: bool = False,
) -> tuple[ShardRecord | None, State]:
    """Return the record of the attributes of a shard, and their state."""
    record = load_record(dataset, set_name, shard)
    if record and documents is None:
        return record, NOT_INDEXED
    names = record.reads if record and reads is None else reads or ()
    inputs = inputs_now(dataset, shard, documents, names, quick=quick)
    return record, state(record, inputs, settings, files_in(dataset, set_name, shard), quick=quick)


def inputs_now(
    dataset: Dataset, shard: str, documents: ShardState | None, reads: Iterable[str], *, quick: bool = False
) -> Iterator[tuple[str, str | None]]:
    """Yield the digests of a shard's documents and of its attributes in sets, for `toolkit.storage.artifact.state`."""
    yield "", documents.content if documents else None
    for name in reads:
        yield name, digest_now(dataset, name, shard, documents, quick=quick)


def digest_now(
    dataset: Dataset, set_name: str, shard: str, documents: ShardState | None, *, quick: bool = False
) -> str | None:
    """Return the content digest of attributes; None if they are not what their inputs make of them now.

    Raises:
        DataError: if there is no such file of an external set, or it is not one of attributes.
    """
    if load_schema(dataset, set_name) is None:
        seen = foreign.seen_now(dataset, set_name, shard) if quick else foreign.look_at(dataset, set_name, shard)
        return seen.content if seen else None
    record, found = _state(dataset, set_name, shard, documents, quick=quick)
    return record.output.content if record and found.is_done else None


def content_of(
    dataset: Dataset, set_name: str, shard: str, documents: ShardState | None = None, *, learn: bool = False
) -> str:
    """Return the content digest of an attribute file, from its record or, in an external set, from what was seen.

    Args:
        dataset: Dataset of the shard.
        set_name: Name of the set.
        shard: Shard of the dataset.
        documents: Documents as they are now; None if it does not matter what the attributes were made of.
        learn: As of `attributes_state`.

    Raises:
        StaleError: if they were made from other documents, or other attributes, than there are now.
        DataError: if there is no such file, or it is not the one that its record describes.
    """
    path = dataset.attribute_path(set_name, shard)
    if load_schema(dataset, set_name) is None:
        return foreign.look_at(dataset, set_name, shard).content
    record, run = load_record(dataset, set_name, shard), f"run `toolkit {command_of(dataset, set_name)}`"
    if not exists(path):
        raise missing_attributes(dataset, set_name, shard)
    if record is None:
        raise DataError(f"expected a complete file, got one without its completion record; {run}", path=path)
    if documents:
        found = attributes_state(dataset, set_name, shard, documents, learn=learn)
    else:
        found = state(record, files=files_in(dataset, set_name, shard))
    if found.is_done:
        return record.output.content
    if found.name == "missing":
        raise DataError(
            f"expected the file that its record describes, got one that was changed later; {run}", path=path
        )
    if found.error:
        raise found.error
    if found.changed:
        content_of(dataset, found.changed, shard, documents)  # which raises where that is stale itself
    made, of = ("made from ", f"the set {found.changed}") if found.changed else ("of ", dataset.shard_path(shard))
    message = f"expected attributes {made}{of} as it is now, got those {made}an earlier version; {run}"
    raise StaleError(message, path=path)


def files_in(dataset: Dataset, set_name: str, shard: str) -> Callable[[ShardRecord], list[FileRecord]]:
    """Return the function that returns the files of a completion record."""
    path = dataset.attribute_path(set_name, shard)
    return lambda record: [FileRecord(path, record.output.size, record.output.stamp, record.output.content)]
