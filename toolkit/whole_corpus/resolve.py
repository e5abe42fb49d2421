"""Step 2, whole, and step 3, per shard: what is resolved, the attribute files of that, and what of it is done."""

import os
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import msgspec
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.data import row_index, schema
from toolkit.data.dataset import Dataset
from toolkit.errors import DataError, StaleError, ToolkitError
from toolkit.execution.executors import Report, Run, Task
from toolkit.execution.grouped import SMALL, ShardDone, Work, log_of_dataset, run_batch
from toolkit.execution.progress import Share
from toolkit.records import sets, takedown
from toolkit.records.set_declaration import digest_of
from toolkit.rules.text_edits import PlaceMap, edits_in, in_whole
from toolkit.storage import json_files, outputs, paths, store_of, threads
from toolkit.storage.freshness import State, state
from toolkit.storage.record_log import Group
from toolkit.text.editing import Edit
from toolkit.whole_corpus import records, sign
from toolkit.whole_corpus.corpus_config import Entry
from toolkit.whole_corpus.kind import ResolveJob
from toolkit.whole_corpus.sign import edits_of, folder_of, names_of


def signed_shards(dataset: Dataset, entry: Entry, shards: Sequence[str]) -> list[records.SignedShard]:
    """Return the shards with the records of their signatures, in order: first those of datasets compared with.

    Raises:
        DataError: naming those without.
    """
    listed = [(other, shard) for other in entry.against for shard in other.shards()]
    listed += [(dataset, shard) for shard in shards]
    with paths.listing_cache(*(folder_of(where, entry) for where in (*entry.against, dataset))):
        results = threads.for_each(lambda item: records.load_signatures(item[0], entry.set, item[1]), listed)
    if missing := [shard for (_, shard), record in zip(listed, results, strict=True) if record is None]:
        raise DataError(
            f"expected the signatures of all shards, got none of {missing[0]}"
            + (f" and {len(missing) - 1} others" if missing[1:] else "")
            + "; run `toolkit dedup`",
            path=folder_of(dataset, entry),
        )
    return [
        records.SignedShard(
            dataset=where, folder=folder_of(where, entry), shard=shard, number=i, record=record, own=where is dataset
        )
        for i, ((where, shard), record) in enumerate(zip(listed, results, strict=True))
        if record
    ]


def key_of(entry: Entry, signed: Sequence[records.SignedShard]) -> str:
    """Return a digest of all inputs of the decisions."""
    digest = xxhash.xxh3_128(msgspec.json.encode(entry.recorded, order="sorted"))
    for signed_shard in signed:
        digest.update(msgspec.json.encode([signed_shard.shard, signed_shard.own, signed_shard.record.digest]))
    return digest.hexdigest()


def resolution_state(entry: Entry, resolution: records.Resolution | None, key: str, folder: str) -> State:
    """Return the state of a resolution: of these signatures, with its files there, and of what was fitted last.

    Args:
        entry: Entry of the section.
        resolution: the resolution.
        key: Key of the signatures (see `key_of`).
        folder: Folder of the fates.
    """

    def inputs() -> Iterator[tuple[str, str]]:
        yield "", key
        yield "files", _files_of(folder)
        yield "fit", entry.configured().fitted(folder)

    return state(resolution, inputs())


def _files_of(folder: str) -> str:
    """Return a digest of the names of the files of fates: to read, a shard without one has no finds."""
    return json_files.json_digest(list(paths.list_files(folder)))


def resolve(
    dataset: Dataset, entry: Entry, signed: Sequence[records.SignedShard], run: Run, *, refit: bool = False
) -> records.Resolution:
    """Return the decisions about all documents, made now unless up to date.

    The records of attributes that are not what was resolved are deleted before the new resolution is noted, so that
    none of an earlier one can be taken for one of the new. With `refit` what was fitted before is fitted anew.
    """
    key = key_of(entry, signed)
    old = records.load_resolution(dataset, entry.set)
    folder = records.fates_folder(dataset, entry.set, key)
    kind = entry.configured()
    state_of_old = resolution_state(entry, old, key, folder)
    if state_of_old.changed == "files":
        paths.remove_tree(folder)  # what is left of it may be of no use
    elif old and state_of_old.is_done and not refit:
        return old
    reads = {name: digest_of(sets.load_schema(dataset, name)) for name in entry.reads}
    work = ResolveJob(
        shards=list(signed),
        folder=folder,
        home=records.set_folder(dataset, entry.set),
        settings=json_files.json_digest([entry.recorded, reads]),
        refit=refit,
        memory=entry.memory,
        run=run,
    )
    result = kind.resolve(work)
    for name in store_of(folder).folders(folder):
        if name.startswith(records.SCRATCH):  # of attempts with another memory, too
            paths.remove_tree(paths.join(folder, name))
    new = records.Resolution(
        key=key,
        counts=result.counts,
        notes=result.notes,
        tables=result.tables,
        model=result.model,
        files=_files_of(folder),
    )
    if new.model:
        sets.save_models(dataset, entry.set, {new.model.digest: os.path.basename(new.model.path)}, only=True)
    own = {signed_shard.shard: signed_shard.record.input.content for signed_shard in signed if signed_shard.own}
    resolved = {shard: records.ResolvedShard(content, result.fates[shard]) for shard, content in own.items()}
    same = {
        shard
        for shard, before in records.load_resolved(dataset, entry.set).items()
        if shard in resolved and resolved[shard].fate == before.fate
    }
    sets.forget_all(dataset, [entry.set], {*sets.recorded_shards(dataset, entry.set)} - same)
    records.save_resolution(dataset, entry.set, new, resolved)
    _remove_other_fates(dataset, entry.set, folder)
    return new


def _remove_other_fates(dataset: Dataset, set_name: str, folder: str) -> None:
    above = records.set_folder(dataset, set_name)
    for name in store_of(above).folders(above):
        if name.startswith(records.DECISIONS) and paths.join(above, name) != folder:
            paths.remove_tree(paths.join(above, name))


_ENCODER = msgspec.json.Encoder()
_ROWS = 1 << 10  # that are written at a time


class SetWriteTask(ConfigStruct):
    """A shard, for writing its attributes: its number among those that were signed; it holds no record.

    Attributes:
        fates: the folder of what was resolved.
    """

    entry: Entry
    dataset: Dataset
    shard: str
    number: int
    fates: str

    def signed(self) -> records.SignedShard:
        """Return the shard with its signatures."""
        record, folder = (
            records.load_record(self.dataset, self.entry.set, self.shard),
            folder_of(self.dataset, self.entry),
        )
        if record is None:
            raise DataError("expected the signatures of this shard, got none; run `toolkit dedup`", path=folder)
        return records.SignedShard(
            dataset=self.dataset, folder=folder, shard=self.shard, number=self.number, record=record
        )


def attributes_of(work: SetWriteTask, *, quick: bool = False, learn: bool = False) -> State:
    """Return the state of the attributes of a shard; `quick` and `learn` as of `ShardAttributes.state`."""
    dataset, shard, entry = work.dataset, work.shard, work.entry
    documents = row_index.current(dataset, shard)
    attributes = sets.ShardAttributes(dataset, entry.set, shard, documents)
    return attributes.state(entry.recorded, entry.reads, quick=quick, learn=learn)


def _to_write(dataset: Dataset, entry: Entry, shards: Iterable[records.SignedShard], fates: str) -> list[SetWriteTask]:
    return [
        SetWriteTask(entry=entry, dataset=dataset, shard=signed.shard, number=signed.number, fates=fates)
        for signed in shards
    ]


def works_to_write(
    dataset: Dataset, entry: Entry, signed: Sequence[records.SignedShard], fates: str
) -> list[Task[SetWriteTask]]:
    """Return tasks to write a dataset's own shards from decisions."""
    own = [signed_shard for signed_shard in signed if signed_shard.own]
    works = _to_write(dataset, entry, own, fates)

    def as_it_was(item: tuple[SetWriteTask, records.SignedShard]) -> ShardDone | None:
        """Return an unchanged shard's cached outcome, by records and stamps alone."""
        work, shard = item
        is_done = attributes_of(work, quick=True).is_done
        return ShardDone(shard=shard.shard, documents=shard.record.rows) if is_done else None

    with dataset.listing_cache({entry.set, *entry.reads}):
        before = threads.for_each(as_it_was, zip(works, own, strict=True))
    return [
        Task(
            dataset.attribute_path(entry.set, work.shard),
            work,
            signed_shard.record.input.size,
            key=work.shard,
            outcome=outcome,
        )
        for work, signed_shard, outcome in zip(works, own, before, strict=True)
    ]


def write_shard(work: SetWriteTask, report: Report, group: Group | None = None) -> ShardDone:
    """Write the attributes of a shard, if they are missing or outdated.

    Args:
        work: Shard to write.
        report: Report of the task.
        group: Group with which they become durable; without one, they are at the end.

    Raises:
        DataError: if signatures and fates do not fit together.
    """
    signed, entry = work.signed(), work.entry
    dataset, shard, record = signed.dataset, signed.shard, signed.record
    if attributes_of(work, learn=True).is_done:
        report(record.rows, 0)
        return ShardDone(shard=shard, documents=record.rows)
    start = time.perf_counter()
    path = dataset.attribute_path(entry.set, shard)
    sets.forget(dataset, entry.set, shard)
    values = iter(entry.configured().values(signed, work.fates))
    if takedown.takedown_of(dataset) and (own := sets.load_schema(dataset, entry.set)):
        values = takedown.without_nulls(values, own.types()[entry.key])  # listed documents are not compared
    if edits_in(entry.text):
        type_ = schema.from_annotation(entry.configured().value_type(), entry.place)
        values = _in_whole(values, edits_of(signed), type_) if schema.has_spans(type_) else values
    names = names_of(signed.folder, shard)
    before, behind = b',"attributes":{' + _ENCODER.encode(entry.key) + b":", b"}}"
    share = Share(report, record.rows, record.input.size)
    with outputs.RowOutput(path, together=group.files if group else None) as output:
        while some := [*islice(values, _ROWS)]:
            encoded = before + _ENCODER.encode_lines(some)[:-1].replace(b"\n", behind + b"\n" + before) + behind
            rows = zip(islice(names, len(some)), encoded.split(b"\n"), strict=True)
            output.write_rows([name[:-1] + value for name, value in rows])
            share(len(some))
        if output.rows != record.rows:
            raise DataError(f"expected {record.rows} rows, got {output.rows}; run `toolkit dedup`", path=path)
    shard_record = sets.ShardRecord(
        input=record.input,
        settings=entry.recorded,
        reads=record.reads,
        rows=output.rows,
        counts={"documents": output.rows},
        output=sets.output_state(output),
        seconds=round(time.perf_counter() - start, 3),
    )
    sets.save_records(dataset, shard, {entry.set: shard_record}, group)
    return ShardDone(shard=shard, documents=record.rows, written=[entry.set])


WRITE = Work(write_shard, partial(run_batch, write_shard, log_of_dataset), small=64 * SMALL)  # which reads no text


def _in_whole(values: Iterable[Any], edits: Iterable[list[Edit]], type_: schema.Type) -> Iterator[Any]:
    """Convert spans in edited texts to spans in the original texts."""
    for value, own in zip(values, edits, strict=True):
        yield in_whole(msgspec.json.decode(_ENCODER.encode(value)), type_, PlaceMap(own)) if own else value


UNSIGNED = "its signatures are missing, or what they were made from has changed"
UNRESOLVED = "it has signatures; the set has not been resolved over all shards"
UNWRITTEN = "it is resolved; its attributes are missing, or what they were made from has changed"


def states_of(dataset: Dataset, entry: Entry, shards: Sequence[str], *, whole: bool = True) -> dict[str, str]:
    """Return why each shard of a set is not done; nothing for one that is.

    Args:
        dataset: Dataset of the set.
        entry: Entry of the section.
        shards: Shards to check.
        whole: True if these are all shards of the resolution; otherwise the others count as unchanged.
    """
    with dataset.listing_cache({entry.set, *entry.reads}), paths.listing_cache(sign.folder_of(dataset, entry)):
        return _look(dataset, entry, shards, whole=whole)


def _look(dataset: Dataset, entry: Entry, shards: Sequence[str], *, whole: bool) -> dict[str, str]:
    resolution = records.load_resolution(dataset, entry.set)

    def is_signed(shard: str) -> bool:
        try:
            documents = row_index.current(dataset, shard)
            return sign.signatures_state(dataset, entry, shard, documents).is_done
        except ToolkitError:
            return False

    results = {
        shard: "" if is_signed else UNSIGNED
        for shard, is_signed in zip(shards, threads.for_each(is_signed, shards), strict=True)
    }
    if resolution is None or any(results.values()):
        return {shard: why or UNRESOLVED for shard, why in results.items()}
    try:
        signed = signed_shards(dataset, entry, shards)
    except ToolkitError:
        return dict.fromkeys(shards, UNRESOLVED)
    fates = records.fates_folder(dataset, entry.set, resolution.key)
    if whole:
        resolved = resolution_state(entry, resolution, key_of(entry, signed), fates).is_done
    else:
        resolved_shards = records.load_resolved(dataset, entry.set)
        contents = {shard: item.content for shard, item in resolved_shards.items()}
        resolved = all(
            contents.get(signed_shard.shard) == signed_shard.record.input.content
            for signed_shard in signed
            if signed_shard.own
        )
    if not resolved:
        return dict.fromkeys(shards, UNRESOLVED)
    works = _to_write(dataset, entry, [signed_shard for signed_shard in signed if signed_shard.own], fates)
    states = threads.for_each(attributes_of, works)
    return {work.shard: "" if state.is_done else UNWRITTEN for work, state in zip(works, states, strict=True)}


FOUND = {"dedup": "a search for duplicates", "sample": "a sample", "calibrate": "a calibration", "make": "values"}
"""Names of the results of sections."""


def check_resolved(dataset: Dataset, set_name: str, shards: Collection[str], *, whole: bool) -> None:
    """Check a set's resolution against the present shards; other sets are fine.

    Args:
        dataset: Dataset of the set.
        set_name: Set name of any set.
        shards: Shards that are to be used with it.
        whole: True if these are all that there are.

    Raises:
        StaleError: if it was resolved over others, so that a document may count as a copy of one that is gone, or not
            as one of a document that is new.
    """
    if records.load_resolution(dataset, set_name) is None:
        return
    resolved = records.load_resolved(dataset, set_name)
    path, command = dataset.attribute_path(set_name, ""), sets.command_of(dataset, set_name)
    result, run = FOUND[command], f"; run `toolkit {command}`"
    if new := sorted({*shards} - resolved.keys()):
        raise StaleError(f"expected {result} of all shards, got one without {_some(new)}{run}", path=path)
    if whole and (missing := sorted(resolved.keys() - {*shards})):
        message = f"expected {result} of the present shards, got one with {_some(missing)}, which no longer exist"
        raise StaleError(message + run, path=path)


def _some(shards: list[str]) -> str:
    return shards[0] + (f" and {len(shards) - 1} others" if shards[1:] else "")
