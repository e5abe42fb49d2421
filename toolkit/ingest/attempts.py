"""Attempts at inputs that have not ended: the shards that they may have written, which nobody else may take.

``.toolkit/ingest/<source>/<path of the input>.json.started``  an `Attempt`, until there is a record
``.toolkit/ingest/<id>.together.started``                      a `Together` of small inputs, until all have records

Those of a pack have the name of its shard. Attempts are files of their own: there are only as many as processes work,
and as inputs have failed; and each look at one must see what other processes have noted.

What was made of inputs that other packs have now: it goes before those are made, or documents would be there twice.

A pack has the name of its first input, so one that begins with another input is another pack. An input that grows gets
a shard of its own; one that shrinks, or gets neighbours, joins a pack.
"""

import re
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Self

import msgspec

from toolkit.data import journals, row_index
from toolkit.data.dataset import Dataset
from toolkit.data.journals import INGEST
from toolkit.errors import DataError
from toolkit.ingest.plan import InputToIngest
from toolkit.records import ingested, left_out, sets
from toolkit.records.ingested import InputRecord
from toolkit.runs import claims
from toolkit.storage import json_files
from toolkit.storage.journal import Group
from toolkit.storage.paths import exists, join, list_files, remove, remove_with_folders, stat_each
from toolkit.storage.threads import for_each

LOOKS = 50
"""Times that it is looked whose a shard is, if another run works on the same inputs."""

STARTED = ".json.started"
TOGETHER = ".together.started"


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """An input whose ingest was begun and has not ended well, with the shards that it may have written.

    Attributes:
        keys: of the inputs, if it is a pack.
    """

    input: str
    shards: list[str]
    keys: list[str] = []


class Together(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts at small inputs, by key, which are made durable together: those that have a record since have ended."""

    attempts: dict[str, Attempt]


def _folder(dataset: Dataset) -> str:
    return join(dataset.bookkeeping, INGEST)


def attempt_path(dataset: Dataset, key: str) -> str:
    """Return the path of the note of an attempt at an input, or a pack, with this key."""
    return join(_folder(dataset), key + STARTED)


class Attempts:
    """All attempts that did not end, as they are when it is made.

    Attributes:
        alone: keys of those that have a note of their own.
        together: those of groups, by the paths of their notes; some may have a record since.
        damaged: paths of notes of groups that cannot be read.
    """

    def __init__(self, dataset: Dataset) -> None:
        names = list(list_files(_folder(dataset), hidden=True))
        paths = [join(_folder(dataset), name) for name in names if name.endswith(TOGETHER)]
        loaded = for_each(lambda path: json_files.load(path, Together), paths)
        self._dataset = dataset
        self.alone = {name.removesuffix(STARTED) for name in names if name.endswith(STARTED)}
        self.together = {path: found.attempts for path, found in zip(paths, loaded, strict=True) if found}
        self.damaged = [path for path, found in zip(paths, loaded, strict=True) if not found and exists(path)]

    def keys(self) -> list[str]:
        """Return the keys of the inputs with an attempt that did not end, sorted."""
        recorded = journals.inputs_of(self._dataset)
        grouped = {key for group in self.together.values() for key in group}
        return sorted(self.alone | {key for key in grouped if recorded.get(INGEST, key) is None})

    def shards(self, key: str) -> set[str]:
        """Return the shards that attempts in groups may have written of an input."""
        return {shard for group in self.together.values() if key in group for shard in group[key].shards}


def attempts(dataset: Dataset) -> list[str]:
    """Return the keys of the inputs with an attempt that did not end, sorted."""
    return Attempts(dataset).keys()


def load_attempt(dataset: Dataset, key: str) -> Attempt | None:
    """Return the attempt at an input that did not end; None if there is none, or its note is damaged: that is told."""
    alone = json_files.load(attempt_path(dataset, key), Attempt)
    return alone or next((group[key] for group in Attempts(dataset).together.values() if key in group), None)


def forget_attempt(work: InputToIngest) -> None:
    """Forget the attempt at an input that is done: it was killed, or could not delete its note, just before its end."""
    remove(attempt_path(work.dataset, work.key))


def forget_ended(dataset: Dataset) -> None:
    """Delete the notes of groups of which all inputs have a record, or an attempt of their own, since."""
    found, recorded = Attempts(dataset), journals.inputs_of(dataset)
    for path, group in found.together.items():
        if all(key in found.alone or recorded.get(INGEST, key) is not None for key in group):
            remove(path)


def forget_attempts(works: Iterable[InputToIngest], dataset: Dataset) -> None:
    """Forget failed attempts at inputs that are not wanted any more, where they have left no shard."""
    known, found = {work.key for work in works}, Attempts(dataset)

    def is_wanted(key: str, attempt: Attempt | None) -> bool:
        return key in known or attempt is None or any(exists(dataset.shard_path(shard)) for shard in attempt.shards)

    for key in found.alone:
        if not is_wanted(key, load_attempt(dataset, key)):
            remove(attempt_path(dataset, key))
    wanted = {path for path, group in found.together.items() if any(map(is_wanted, group, group.values()))}
    for path in (*(found.together.keys() - wanted), *found.damaged):
        remove(path)


def unfinished(dataset: Dataset, among: Iterable[InputToIngest] | None = None) -> list[str]:
    """Return the paths of inputs whose ingest failed or was interrupted, and has not been done since.

    Args:
        dataset: whose records are read.
        among: the inputs that matter, if not all do.
    """
    keys = attempts(dataset)
    if among is not None:
        ours = {work.key for work in among}
        keys = [key for key in keys if key in ours]
    found = [load_attempt(dataset, key) for key in keys]
    return sorted(attempt.input for attempt in found if attempt)


def shards_of(works: Iterable[InputToIngest], dataset: Dataset) -> set[str]:
    """Return the shards that these inputs have written, or have begun, as it is known now."""
    keys, found = {work.key for work in works}, Attempts(dataset)
    begun = for_each(lambda key: json_files.load(attempt_path(dataset, key), Attempt), sorted(keys & found.alone))
    shards = {shard for each in begun if each for shard in each.shards} | ingested.shards_now(dataset, keys)
    return shards.union(*(attempt.shards for group in found.together.values() for key, attempt in group.items()))


# --- claims -----------------------------------------------------------------------------------------------------------


class Claims:
    """Keeps the shards that are an input's to write: those of its record, and of attempts that did not end.

    They are kept beside the record until there is a new one, so that no attempt takes a file that is somebody else's,
    and none leaves one behind. Two attempts at once take the same files, and write the same into them.

    Attributes:
        shards: that are the input's.
    """

    def __init__(self, work: InputToIngest, record: InputRecord | None, *, damaged: bool) -> None:
        self._work = work
        self._path = attempt_path(work.dataset, work.key)
        self.shards: set[str] = set(record.shards if record else ())
        others = Attempts(work.dataset)
        self.shards |= others.shards(work.key)
        old, damaged_too = json_files.load_told(self._path, Attempt)
        if old:
            self.shards |= set(old.shards)
        if damaged or damaged_too or others.damaged:
            self.shards |= _shards_named(work)
        self._write()

    def take(self, shard: str, set_names: Sequence[str]) -> None:
        """Claim a shard, and its attributes in sets.

        Raises:
            DataError: if there is a file that is not this input's.
        """
        if shard in self.shards:
            return
        if path := _in_the_way(self._work, shard, set_names):
            for _ in range(LOOKS):
                if self._is_noted(shard):
                    break
                if not _is_shared(self._work.dataset):
                    raise _not_ours(self._work, path)
                time.sleep(claims.LOOK)
            else:
                raise _not_ours(self._work, path)
        self.shards.add(shard)
        self._write()

    def _is_noted(self, shard: str) -> bool:
        """Return whether a shard is the input's by another attempt, which may have ended, or be at work."""
        dataset, key = self._work.dataset, self._work.key
        attempt = load_attempt(dataset, key)
        return shard in {*(attempt.shards if attempt else ()), *ingested.shards_now(dataset, [key])}

    def group(self) -> AbstractContextManager[Group]:
        """Return the group of a shard."""
        return Group(journals.of(self._work.dataset))

    def save(self, record: InputRecord, then: Callable[[], None]) -> None:
        """Save the record of the input, whose shards are durable, and forget the claims: the record has them now."""
        ingested.save(self._work.dataset, self._work.key, record)
        then()
        remove(self._path)

    def _write(self) -> None:
        attempt = json_files.load(self._path, Attempt)
        self.shards |= set(attempt.shards if attempt else ())
        if attempt is None or self.shards != set(attempt.shards):  # another attempt may be adding to it
            json_files.save(self._path, _attempt_at(self._work, self.shards))


class Grouped:
    """Small inputs that have not been begun, claimed together, and the group that makes them durable together.

    A context manager: its end commits the group and deletes the claims. Of an input that fails a claim stays,
    so nothing is claimed where there is a file of somebody else's: such an input is done by itself, and fails.

    Attributes:
        group: of all that is made of the inputs.

    Args:
        works: of one dataset.
    """

    def __init__(self, works: Sequence[InputToIngest]) -> None:
        self._dataset = works[0].dataset
        self.group = Group(journals.of(self._dataset))
        self._path = join(_folder(self._dataset), uuid.uuid4().hex + TOGETHER)
        before = Attempts(self._dataset)
        self._formerly = {work.key: before.shards(work.key) for work in works}
        listed = [work for work in works if self._can_take(work, before)]
        taken = _not_free([work for work in listed if not self._formerly[work.key]])
        self._claimed = {work.key: _attempt_at(work) for work in listed if work.key not in taken}

    def _can_take(self, work: InputToIngest, before: Attempts) -> bool:
        """Return whether an input becomes one shard, whose name is known, and nothing was, or may have been, made."""
        journal = journals.inputs_of(self._dataset)
        fresh = work.key not in before.alone and journal.get(INGEST, work.key) is None
        is_known = not (before.damaged or journal.damaged or work.is_cut)
        return fresh and is_known and self._formerly[work.key] <= {work.shard_name()}

    def __enter__(self) -> Self:
        if self._claimed:
            json_files.save(self._path, Together(attempts=self._claimed))
        self.group.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.group.__exit__(kind, error, tb)
        if kind is None:
            remove(self._path)

    def claims(self, work: InputToIngest) -> "Claims | None":
        """Return the claims of an input; None if it is not one of these."""
        found = self._claimed.get(work.key)
        return _ClaimsInGroup(work, found, self.group) if found else None

    def failed(self, work: InputToIngest) -> None:
        """Note that an input has failed, which keeps its claims."""
        if attempt := self._claimed.get(work.key):
            json_files.save(attempt_path(self._dataset, work.key), attempt)


class _ClaimsInGroup(Claims):
    """The shard of an input that a group has claimed."""

    def __init__(self, work: InputToIngest, attempt: Attempt, group: Group) -> None:
        self._work = work
        self.shards = set(attempt.shards)
        self._group = group

    def take(self, shard: str, set_names: Sequence[str]) -> None:
        """Do nothing: it was free when the group claimed it."""

    def group(self) -> AbstractContextManager[Group]:
        return nullcontext(self._group)

    def save(self, record: InputRecord, then: Callable[[], None]) -> None:
        journal = journals.inputs_of(self._work.dataset)
        self._group.save((INGEST, self._work.key), msgspec.json.encode(record), journal)
        self._group.then(then)


def _attempt_at(work: InputToIngest, shards: Iterable[str] | None = None) -> Attempt:
    """Return what is noted of an attempt at an input that may write some shards, by default the only one."""
    keys = [file.key for file in work.files] if work.is_pack else []
    return Attempt(input=work.name, shards=sorted([work.shard_name()] if shards is None else shards), keys=keys)


def _is_shared(dataset: Dataset) -> bool:
    """Return whether another run works on the inputs, too: of what it has just written the note may be to come.

    Two attempts at an input have one note, and one that writes it may undo what the other has added meanwhile; when the
    other has ended, there is a record.
    """
    held = claims.held(claims.folder_in(dataset.bookkeeping))
    return sum(any(name.startswith("the source ") for name in each.claim.holds) for each in held) > 1


def _in_the_way(work: InputToIngest, shard: str, set_names: Sequence[str]) -> str:
    """Return the path of a file where one will be written, and may not; empty if there is none."""
    dataset = work.dataset
    paths = [dataset.shard_path(shard), *(dataset.attribute_path(name, shard) for name in set_names)]
    return next((path for path in paths if not work.overwrite and exists(path)), "")


def _not_free(works: Sequence[InputToIngest]) -> set[str]:
    """Return the keys of inputs for whose only shard, or the attributes that it carries, a file is in the way."""
    paths: list[tuple[str, str]] = []
    for work in works:
        if not work.overwrite:
            shard, names = work.shard_name(), work.entry.reader().attribute_sets()
            paths.append((work.key, work.dataset.shard_path(shard)))
            paths += ((work.key, work.dataset.attribute_path(name, shard)) for name in names)
    found = stat_each([path for _, path in paths])
    return {key for (key, _), there in zip(paths, found, strict=True) if there is not None}


def _not_ours(work: InputToIngest, path: str) -> DataError:
    return DataError(
        f"expected no file here yet, got one that was not made from {work.name}; move it, choose another `source:` "
        "(or `set:`), or --overwrite",
        path=path,
    )


def _shards_named(work: InputToIngest) -> set[str]:
    """Return the shards that there are, by their names, of an input whose record is damaged."""
    number = r"\.\d{5,}" if work.entry.settings().shard_size else ""
    name = re.compile(re.escape(work.shard) + number + re.escape(work.suffix))
    return {shard for shard in list_files(work.dataset.documents) if name.fullmatch(shard)}


class Superseded(msgspec.Struct, frozen=True):
    """An input, or pack, of former runs, of which inputs are in other packs now.

    Attributes:
        key: of its record.
        made: that record, if it was done.
        shards: that it may have.
        by: what is made of one of its inputs now.
    """

    key: str
    made: InputRecord | None
    shards: list[str]
    by: InputToIngest


def find_superseded(
    works: Iterable[InputToIngest], planned: Iterable[InputToIngest], dataset: Dataset
) -> list[Superseded]:
    """Return what the works of a run supersede, sorted by record.

    Args:
        works: of the run.
        planned: of all inputs that there are.
        dataset: of the records.
    """
    known = {work.key for work in planned}
    now = {file.key: work for work in works for file in work.files}
    begun_keys = {*attempts(dataset)}
    found = []
    for name in sorted(({*ingested.keys(dataset)} | begun_keys) - known):
        made = ingested.load(dataset, name)
        begun = load_attempt(dataset, name) if name in begun_keys else None
        keys = [each.key for each in made.inputs] if made else []
        keys += begun.keys if begun else []
        if by := next((now[key] for key in keys or [name] if key in now), None):
            shards = {shard for noted in (made, begun) if noted for shard in noted.shards}
            found.append(Superseded(name, made, sorted(shards), by))
    return found


def lost_shards(
    works: Iterable[InputToIngest], planned: Sequence[InputToIngest], former: Iterable[Superseded]
) -> list[str]:
    """Return the paths of inputs that are not there any more and whose documents go, sorted: others of their pack stay.

    Args:
        works: of the run.
        planned: of all inputs that there are.
        former: what the works supersede.
    """
    there = {file.key for work in planned for file in work.files}
    packs = [ingested.load(work.dataset, work.key) for work in works if work.is_pack]
    records = [record for record in (*packs, *(each.made for each in former)) if record]
    return sorted(each.input for record in records for each in record.inputs if each.key not in there)


def forget_superseded(former: Iterable[Superseded], dataset: Dataset) -> None:
    """Delete the shards of what is superseded, then its records: killed between, the next run does the rest."""
    listed = list(former)
    forget_shards(dataset, [shard for each in listed for shard in each.shards])
    ingested.forget(dataset, [each.key for each in listed])
    for each in listed:
        if each.made:
            left_out.forget(dataset, each.made)
        remove(attempt_path(dataset, each.key))


def forget_shards(dataset: Dataset, shards: Sequence[str]) -> None:
    """Delete the documents of shards, their row indexes, and their attributes in the sets that we have made.

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
