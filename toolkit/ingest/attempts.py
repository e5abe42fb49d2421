"""Ownership of inputs' shards, and shards of inputs in other packs.

An attempt is noted in place of the record of its input (`toolkit.records.ingested.Attempt`) before it writes; the
record replaces it. So an attempt that was killed, or has failed, keeps its shards, which nobody else may take.

What was made of inputs that other packs have now: it goes before those are made, or documents would be there twice.

A pack has the name of its first input, so one that begins with another input is another pack. An input that grows gets
a shard of its own; one that shrinks, or gets neighbours, joins a pack.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Self

import msgspec

from toolkit.data import record_logs, row_index
from toolkit.data.dataset import Dataset
from toolkit.data.record_logs import INGEST
from toolkit.errors import DataError
from toolkit.execution import leases
from toolkit.ingest.plan import InputToIngest
from toolkit.interrupts import pause
from toolkit.records import ingested, left_out, sets
from toolkit.records.ingested import Attempt, InputRecord
from toolkit.storage.paths import exists, join, list_files, remove_with_folders, stat_each
from toolkit.storage.record_log import Group

LOOKS = 50
"""Times that it is looked whose a shard is, if another run works on the same inputs."""


def forget_attempts(works: Iterable[InputToIngest], dataset: Dataset) -> None:
    """Forget failed attempts without shards at inputs of former configurations."""
    begun = ingested.attempts(dataset)
    keys = {work.key for work in works} if begun else set()
    listed = [(key, attempt) for key, attempt in begun.items() if key not in keys]
    unused = (key for key, attempt in listed if not any(exists(dataset.shard_path(shard)) for shard in attempt.shards))
    ingested.forget(dataset, unused)


# --- owners -----------------------------------------------------------------------------------------------------------


class ShardOwnership:
    """The shards of one input: those of its record, and of attempts that did not end.

    They are kept beside the record until there is a new one, so that no attempt takes a file that is somebody else's,
    and none leaves one behind. Two attempts at once take the same files, and write the same into them.

    Attributes:
        shards: Shards that are the input's.

    Args:
        work: Input.
        record: Record of it, if there is one.
        group: Group of small inputs with which all that is made of it becomes durable; without one each shard does by
            itself, and the record behind them.
        damaged: True if the record is damaged.
    """

    def __init__(
        self, work: InputToIngest, record: InputRecord | None, group: Group | None = None, *, damaged: bool
    ) -> None:
        self._work = work
        self._group = group
        self._attempt = ingested.load_attempt(work.dataset, work.key)
        self.shards = {shard for owner in (record, self._attempt) if owner for shard in owner.shards}
        if damaged:
            self.shards |= _shards_by_name(work)
        self._begin()

    def take(self, shard: str, set_names: Sequence[str]) -> None:
        """Own a shard, and its attributes in sets.

        Raises:
            DataError: if there is a file that is not this input's.
        """
        if shard in self.shards:
            return
        if path := _conflicting_path(self._work, shard, set_names):
            for _ in range(LOOKS):
                if shard in ingested.shards_now(self._work.dataset, [self._work.key]):
                    break
                if not _is_shared(self._work.dataset):
                    raise _conflict_error(self._work, path)
                pause(leases.POLL_INTERVAL)
            else:
                raise _conflict_error(self._work, path)
        self.shards.add(shard)
        self._begin()

    def group(self) -> AbstractContextManager[Group]:
        """Return the group of a shard."""
        return nullcontext(self._group) if self._group else Group(record_logs.of(self._work.dataset))

    def save(self, record: InputRecord, then: Callable[[], None]) -> None:
        """Save the record of the input or group over the attempt."""
        if self._group:
            place, log = (INGEST, self._work.key), record_logs.inputs_of(self._work.dataset)
            self._group.save(place, msgspec.json.encode(record), log)
            self._group.then(then)
            return
        ingested.save(self._work.dataset, self._work.key, record)
        then()

    def _begin(self) -> None:
        attempt = _attempt_at(self._work, self.shards)
        if attempt != self._attempt:
            ingested.begin(self._work.dataset, {self._work.key: attempt})
            self._attempt = attempt


class BatchedIngest:
    """A group of small inputs, durable together.

    A context manager: its end commits the group. Of an input that fails the attempt stays, so nothing is owned where
    there is a file of somebody else's: such an input is done by itself, and fails.

    Attributes:
        group: Group of all that is made of the inputs.

    Args:
        works: Works of one dataset.
    """

    def __init__(self, works: Sequence[InputToIngest]) -> None:
        self._dataset = works[0].dataset
        self.group = Group(record_logs.of(self._dataset))
        attempts = {work.key: ingested.load_attempt(self._dataset, work.key) for work in works}
        listed = [work for work in works if self._can_take(work, attempts[work.key])]
        conflicts = _conflicting_inputs([work for work in listed if not attempts[work.key]])
        self._attempts = {work.key: _attempt_at(work) for work in listed if work.key not in conflicts}

    def _can_take(self, work: InputToIngest, attempt: Attempt | None) -> bool:
        """Return True for a new input with one shard of known name."""
        record, damaged = ingested.load_told(self._dataset, work.key)
        is_known = not (record or damaged or work.is_cut)
        return is_known and {*(attempt.shards if attempt else ())} <= {work.shard_name()}

    def __enter__(self) -> Self:
        ingested.begin(self._dataset, self._attempts)
        self.group.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.group.__exit__(kind, error, tb)

    def of(self, work: InputToIngest) -> Group | None:
        """Return the group of an input; None if it is not one of these."""
        return self.group if work.key in self._attempts else None


def _attempt_at(work: InputToIngest, shards: Iterable[str] | None = None) -> Attempt:
    """Return an attempt with these shards, by default the only one."""
    keys = [file.key for file in work.files] if work.is_pack else []
    return Attempt(input=work.name, shards=sorted([work.shard_name()] if shards is None else shards), keys=keys)


def _is_shared(dataset: Dataset) -> bool:
    """Return True if another run works on the inputs, too: of what it has just written the note may be to come."""
    active = leases.active(leases.folder_in(dataset.bookkeeping))
    return sum(any(name.startswith("the source ") for name in active_lease.lease.holds) for active_lease in active) > 1


def _conflicting_path(work: InputToIngest, shard: str, set_names: Sequence[str]) -> str:
    """Return the path of a file in the way; empty if there is none."""
    paths = _paths(work, shard, set_names)
    return next((path for path in paths if not work.overwrite and exists(path)), "")


def _paths(work: InputToIngest, shard: str, set_names: Iterable[str]) -> list[str]:
    dataset = work.dataset
    return [dataset.shard_path(shard), *(dataset.attribute_path(name, shard) for name in set_names)]


def _conflicting_inputs(works: Sequence[InputToIngest]) -> set[str]:
    """Return the keys of inputs with a file in the way."""
    paths = [
        (work.key, path)
        for work in works
        if not work.overwrite
        for path in _paths(work, work.shard_name(), work.entry.reader().attribute_sets())
    ]
    results = stat_each([path for _, path in paths])
    return {key for (key, _), stat in zip(paths, results, strict=True) if stat is not None}


def _conflict_error(work: InputToIngest, path: str) -> DataError:
    return DataError(
        f"expected no file here yet, got one that was not made from {work.name}; move it, choose another `source:` "
        "(or `set:`), or --overwrite",
        path=path,
    )


def _shards_by_name(work: InputToIngest) -> set[str]:
    """Return the existing shards of an input with a damaged record."""
    number = r"\.\d{5,}" if work.entry.settings().shard_size else ""
    name = re.compile(re.escape(work.shard) + number + re.escape(work.suffix))
    return {shard for shard in list_files(work.dataset.documents) if name.fullmatch(shard)}


class SupersededInput(msgspec.Struct, frozen=True):
    """A former input or pack with inputs in other packs now.

    Attributes:
        key: Key of its record.
        record: Record of it, if it was done.
        shards: Shards that it may have.
        by: Work on one of its inputs now.
    """

    key: str
    record: InputRecord | None
    shards: list[str]
    by: InputToIngest


def find_superseded(
    works: Iterable[InputToIngest], planned: Iterable[InputToIngest], dataset: Dataset
) -> list[SupersededInput]:
    """Return the superseded inputs and packs, sorted by record.

    Args:
        works: Works of the run.
        planned: Works of all inputs that there are.
        dataset: Dataset of the records.
    """
    keys_now = {work.key for work in planned}
    attempts = ingested.attempts(dataset)
    former = sorted({key for keys in (ingested.keys(dataset), attempts) for key in keys if key not in keys_now})
    results = []
    now = {file.key: work for work in works for file in work.files} if former else {}
    for name in former:
        input_record, begun = ingested.load(dataset, name), attempts.get(name)
        keys = [input_.key for input_ in input_record.inputs] if input_record else []
        keys += begun.keys if begun else []
        by = next((now[key] for key in keys or [name] if key in now), None) or _reselection(name, input_record, works)
        if by:
            shards = {shard for source in (input_record, begun) if source for shard in source.shards}
            results.append(SupersededInput(name, input_record, sorted(shards), by))
    return results


def _reselection(name: str, input_record: InputRecord | None, works: Iterable[InputToIngest]) -> InputToIngest | None:
    """Return an input with other pages of the same crawl and subset; None if none is."""
    for work in works:
        common, (file, *_) = work.entry.settings(), work.files
        subset = file.path.rpartition("#")[2].partition("-")[0]
        beginning = join(common.source or "", common.crawl or "index")
        if file.selected and input_record and f"#{subset}" in input_record.input and name.startswith(f"{beginning}/"):
            return work
    return None


def removed_inputs(
    works: Iterable[InputToIngest], planned: Sequence[InputToIngest], former: Iterable[SupersededInput]
) -> list[str]:
    """Return the paths of removed inputs, sorted: of packs, and of earlier selections of pages. Their documents go.

    Args:
        works: Works of the run.
        planned: Works of all inputs that there are.
        former: Inputs and packs superseded by the works.
    """
    packs = [(work.key, ingested.load(work.dataset, work.key)) for work in works if work.is_pack]
    records = [*packs, *((item.key, item.record) for item in former)]
    paths = {key: path for name, record in records if record for key, path in record.paths_by_key(name).items()}
    keys = {file.key for work in planned for file in work.files} if paths else set()
    return sorted(path for key, path in paths.items() if key not in keys)


def forget_superseded(former: Iterable[SupersededInput], dataset: Dataset) -> None:
    """Delete the shards of superseded inputs, then their records: killed between, the next run does the rest."""
    listed = list(former)
    forget_shards(dataset, [shard for item in listed for shard in item.shards])
    ingested.forget(dataset, [item.key for item in listed])
    for item in listed:
        if item.record:
            left_out.forget(dataset, item.record)


def forget_shards(dataset: Dataset, shards: Sequence[str]) -> None:
    """Delete the documents, row indexes and our attributes of shards.

    Documents in place are those of others, and stay.
    """
    ours = [name for name in dataset.sets() if sets.load_schema(dataset, name) is not None] if shards else []
    row_index.forget(dataset, shards)
    sets.forget_all(dataset, ours, shards)
    for shard in shards:
        places = [(dataset.attribute_path(name, shard), dataset.attributes) for name in ours]
        places += [(dataset.shard_path(shard), root) for root in dataset.written]
        for path, root in places:
            remove_with_folders(path, root)
