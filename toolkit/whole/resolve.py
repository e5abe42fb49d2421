"""Step 2, whole: what is resolved, whether that was done before, and which attributes it makes outdated."""

import os
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import xxhash

from toolkit.data.dataset import Dataset
from toolkit.errors import DataError
from toolkit.records import sets
from toolkit.runs.executors import Report, Task
from toolkit.storage import json_files, store_of
from toolkit.storage.json_files import json_digest
from toolkit.storage.paths import join, list_files, looking, remove_tree
from toolkit.storage.threads import for_each
from toolkit.tag.declared import digest_of
from toolkit.whole.kind import Work
from toolkit.whole.records import (
    Resolution,
    SignedShard,
    copy_records,
    fates_folder,
    load_resolution,
    load_signatures,
    resolution_path,
    set_folder,
)
from toolkit.whole.section import Entry
from toolkit.whole.sign import folder_of

Run = Callable[[str, Callable[[Any, Report], Any], list[Task[Any]]], list[Any]]


def signed_shards(dataset: Dataset, entry: Entry, shards: Sequence[str]) -> list[SignedShard]:
    """Return the shards with the records of their signatures, in order: first those of datasets compared with.

    Raises:
        DataError: naming those without.
    """
    listed = [(other, shard) for other in entry.against for shard in other.shards()]
    listed += [(dataset, shard) for shard in shards]
    with looking(*(folder_of(where, entry) for where in (*entry.against, dataset))):
        found = for_each(lambda each: load_signatures(folder_of(each[0], entry), each[1]), listed)
    if missing := [shard for (_, shard), record in zip(listed, found, strict=True) if record is None]:
        raise DataError(
            f"expected the signatures of all shards, got none of {missing[0]}"
            + (f" and {len(missing) - 1} others" if missing[1:] else "")
            + "; run `toolkit dedup`",
            path=folder_of(dataset, entry),
        )
    return [
        SignedShard(
            dataset=where, folder=folder_of(where, entry), shard=shard, number=i, record=record, own=where is dataset
        )
        for i, ((where, shard), record) in enumerate(zip(listed, found, strict=True))
        if record
    ]


def key_of(entry: Entry, signed: Sequence[SignedShard]) -> str:
    """Return a digest of all that fates depend on."""
    digest = xxhash.xxh3_128(msgspec.json.encode(entry.recorded, order="sorted"))
    for each in signed:
        digest.update(msgspec.json.encode([each.shard, each.own, each.record.digest]))
    return digest.hexdigest()


def is_current(entry: Entry, found: Resolution, key: str, folder: str) -> bool:
    """Return whether a resolution is one of these signatures, and of what was fitted last, and its files are there.

    Args:
        entry: of the section.
        found: the resolution.
        key: of the signatures (see `key_of`).
        folder: of the fates.
    """
    return found.key == key and found.files == _files_of(folder) and _is_of_last_fit(entry, found, folder)


def _is_of_last_fit(entry: Entry, found: Resolution, folder: str) -> bool:
    return entry.configured().fitted(folder) == (found.model.digest if found.model else "")


def _files_of(folder: str) -> str:
    """Return a digest of the names of the files of fates: to read, a shard without one has no finds."""
    return json_digest(list(list_files(folder)))


def resolve(
    dataset: Dataset, entry: Entry, signed: Sequence[SignedShard], run: Run, *, refit: bool = False
) -> Resolution:
    """Return what became of all documents, found out now unless that was done before.

    The records of attributes that are not what was resolved are deleted before the new resolution is noted, so that
    none of an earlier one can be taken for one of the new. With `refit` what was fitted before is fitted anew.
    """
    key = key_of(entry, signed)
    old = load_resolution(dataset, entry.set)
    folder = fates_folder(dataset, entry.set, key)
    kind = entry.configured()
    if old and old.key == key:
        if old.files != _files_of(folder):
            remove_tree(folder)  # what is left of it may be of no use
        elif not refit and _is_of_last_fit(entry, old, folder):
            return old
    reads = {name: digest_of(sets.load_schema(dataset, name)) for name in entry.reads}
    work = Work(
        shards=list(signed),
        folder=folder,
        home=set_folder(dataset, entry.set),
        settings=json_digest([entry.recorded, reads]),
        refit=refit,
        memory=entry.memory,
        run=run,
    )
    found = kind.resolve(work)
    new = Resolution(
        key=key,
        shards={each.shard: each.record.input.content for each in signed if each.own},
        fates=found.fates,
        counts=found.counts,
        notes=found.notes,
        tables=found.tables,
        model=found.model,
        files=_files_of(folder),
    )
    if new.model:
        sets.save_models(dataset, entry.set, {new.model.digest: os.path.basename(new.model.path)}, only=True)
    before = old.fates if old else {}
    made = sets.recorded_shards(dataset, entry.set)
    others = [each for each in made if each not in new.fates or before.get(each) != new.fates[each]]
    sets.forget_all(dataset, [entry.set], others)
    copy_records(folder_of(dataset, entry), signed)
    json_files.save(resolution_path(dataset, entry.set), new)
    _remove_other_fates(dataset, entry.set, folder)
    return new


def _remove_other_fates(dataset: Dataset, set_name: str, folder: str) -> None:
    above = set_folder(dataset, set_name)
    for name in store_of(above).folders(above):
        if name.startswith("fates-") and join(above, name) != folder:
            remove_tree(join(above, name))
