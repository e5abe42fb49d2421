"""Reading, writing and merging a record log; and groups of shards, whose files and records are made durable together.

    tombstones ──> all files synced ──> all files renamed ──> their folders synced ──> records

Each arrow waits until what is before it is durable. A kill, or a power cut, between two of them leaves data without
records, which is done again: it costs the group, and nothing that is recorded is not there.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from toolkit.decoders import decoded
from toolkit.errors import DataError, Unreadable, in_words
from toolkit.storage import store_of
from toolkit.storage.compression import compressor_for
from toolkit.storage.json_files import tell_damage
from toolkit.storage.outputs import RowOutput, Together
from toolkit.storage.paths import join, list_anew, list_files, remove
from toolkit.storage.record_log.entries import Contents, Entry, Place, State, header, line_of, one_line
from toolkit.storage.threads import for_each

T = TypeVar("T")

MERGED = "records"
SEGMENTS = "segments"
SUFFIX = ".jsonl.gz"
UNLIKE_DATA = ".records"
"""Suffix of the files of a record log that lies among external data, where a glob for data must not match them."""

AT_ONCE = 256
"""Segments that are in memory at a time."""

LOOKS = 100
"""Times that a record log is looked at which others merge meanwhile, each time again."""

REMEDY = "the toolkit ignores the damaged entries, and does the work that they record again"


@dataclass
class _Found:
    """The files of a record log.

    Attributes:
        state: that it comes to.
        taken: paths of segments that the state has.
        damaged: files that are damaged, with what is wrong with each.
    """

    state: State
    taken: list[str] = field(default_factory=list)
    damaged: dict[str, str] = field(default_factory=dict)


class RecordLog:
    """The records of a dataset, or of an output, as they are when it is made.

    Several threads may ask it; one thread writes. What others write meanwhile is seen by a new one.

    Attributes:
        damaged: files that are damaged, with what is wrong with each: of their entries, the sound ones count.

    Args:
        folder: of the record log.
        known: entries that another record log knew (see `entries`), to work with these alone: nothing is read.
        suffix: of its files, which are compressed in any case.
        remedy: what is told of damage, behind what is damaged.

    Raises:
        Unreadable: if it is not known what there is.
    """

    def __init__(
        self,
        folder: str,
        *,
        known: Iterable[Entry] | None = None,
        suffix: str = SUFFIX,
        remedy: str = REMEDY,
    ) -> None:
        self.folder = folder
        self._suffix = suffix
        self._remedy = remedy
        found = self._look() if known is None else _Found(State())
        found.state.add(known or ())
        self._state = found.state
        self.damaged = found.damaged

    # --- asking -------------------------------------------------------------------------------------------------------

    def get(self, kind: str, key: str) -> bytes | None:
        """Return a record, which is JSON; None if there is none."""
        entry = self._state.get((kind, key))
        return entry.record if entry else None

    def load(self, kind: str, key: str, type_: type[T]) -> T | None:
        """Return a record; None if there is none, or it is not one of this version: that is told, once."""
        record = self.get(kind, key)
        if record is None:
            return None
        try:
            return decoded(record, type_)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            got = in_words(str(error))
            message = f"expected a record of this version of the toolkit for {kind} {key}, got: {got}; {self._remedy}"
            tell_damage(f"{self.folder} {kind} {key}", DataError(message, path=self.folder))
            return None

    def keys(self, kind: str) -> list[str]:
        """Return the keys of all records of a kind, sorted."""
        return [entry.key for entry in self._state.of(kind) if entry.record is not None]

    def items(self, kind: str) -> Iterator[tuple[str, bytes]]:
        """Yield all records of a kind, which are JSON, each behind its key, sorted by this."""
        return ((entry.key, entry.record) for entry in self._state.of(kind) if entry.record is not None)

    def entries(self, places: Iterable[Place]) -> list[Entry]:
        """Return what a worker must know of these places to replace their records."""
        return [entry for place in places if (entry := self._state.get(place))]

    # --- writing ------------------------------------------------------------------------------------------------------

    def forget(self, places: Iterable[Place]) -> None:
        """Make it durable that there is no record of these places, before their data is replaced.

        Nothing is written if there is none.
        """
        known = [entry for place in dict.fromkeys(places) if (entry := self._state.get(place)) and entry.record]
        self._write([Entry(entry.kind, entry.key, entry.n + 1, None) for entry in known])

    def save(self, records: Mapping[Place, bytes | None], together: Together | None = None) -> None:
        """Make records durable, in one segment, when their data is durable.

        Args:
            records: JSON by place; None where there is to be no record.
            together: files with which the segment becomes durable; without them it is at once.
        """
        entries = (Entry(*place, self._next(place), record and one_line(record)) for place, record in records.items())
        self._write(sorted(entries, key=attrgetter("place")), together)

    def _next(self, place: Place) -> int:
        known = self._state.get(place)
        return known.n + 1 if known else 1

    def _write(self, entries: list[Entry], together: Together | None = None) -> None:
        if entries:
            path = join(self.folder, SEGMENTS, uuid.uuid4().hex + self._suffix)
            _write_entries(path, len(entries), entries, together=together)
            self._state.add(entries)

    def is_apart(self, *, forgive: bool = False) -> bool:
        """Return whether there is something to `merge`, whoever wrote it; a listing tells."""
        return forgive if self.damaged else bool(self._segments())

    def merge(self, *, forgive: bool = False) -> None:
        """Put all that there is now into one file, if it is not.

        The merged file appears first, then what it has taken up is deleted: who reads meanwhile finds the same in
        both. Only one process may do this at a time (see `toolkit.stages.running.merge`); others may read and write.

        Args:
            forgive: whether to merge what is damaged, too, of which nothing is left then but its sound entries: when
                all that the others may have been about was looked at. Else all stays as it is, so that each command
                tells of the damage, and a file can be put back from a copy.
        """
        found = self._look()
        if found.damaged and not forgive:
            self.damaged = found.damaged
            return
        if found.taken or found.damaged:
            _write_entries(self._merged, sum(1 for _ in found.state), found.state)
            for_each(remove, found.taken)
        self._state, self.damaged = found.state, {}

    # --- reading ------------------------------------------------------------------------------------------------------

    def _look(self) -> _Found:
        """Read all that there is.

        Segments that are gone when they are read have been merged meanwhile: what was read may be older than the merge,
        so all is looked at again, and listed anew, also in a block of `looking`.
        """
        for _ in range(LOOKS):
            try:
                return self._look_once()
            except FileNotFoundError:
                list_anew(self.folder)
        raise Unreadable(f"expected records that can be read, they changed {LOOKS} times meanwhile", path=self.folder)

    def _look_once(self) -> _Found:
        """Do so, once. What a merge may delete is listed before the merged file is read, which then has it."""
        segments = self._segments()
        merged = _contents(self._merged, there=False)
        found = _Found(State(merged), segments)
        found.damaged = {merged.path: merged.fault} if merged.fault else {}
        for first in range(0, len(segments), AT_ONCE):
            for each in for_each(_contents, segments[first : first + AT_ONCE]):
                found.state.add(each)
                if each.fault:
                    found.damaged[each.path] = each.fault
        for path, fault in found.damaged.items():
            tell_damage(path, f"{fault}; {self._remedy}")
        return found

    @property
    def _merged(self) -> str:
        return join(self.folder, MERGED + self._suffix)

    def _segments(self) -> list[str]:
        folder = join(self.folder, SEGMENTS)
        return [join(folder, name) for name in list_files(folder) if name.endswith(self._suffix)]


def _write_entries(path: str, count: int, entries: Iterable[Entry], together: Together | None = None) -> None:
    with RowOutput(path, compress=compressor_for(SUFFIX), together=together) as output:
        output.write_row(header(count))
        output.write_rows(map(line_of, entries))


def _contents(path: str, *, there: bool = True) -> Contents:
    """Return what a file has; of the merged one, which need not be `there` yet, maybe nothing.

    Raises:
        FileNotFoundError: if it is not there.
        Unreadable: if that is not known.
    """
    try:
        data = store_of(path).read(path)
    except FileNotFoundError:
        if there:
            raise
        return _Nothing(path, b"")
    return Contents(path, data)


class _Nothing(Contents):
    """The entries of a file that is not there."""

    def __iter__(self) -> Iterator[Entry]:
        return iter(())


class Group:
    """Files and records of some shards, not visible yet. A context manager: its end makes them durable.

    Attributes:
        files: that belong to it, for `toolkit.storage.outputs.Output`.

    Args:
        log: that knows the places of the shards.
    """

    def __init__(self, log: RecordLog) -> None:
        self.files = Together()
        self._log = log
        self._then: list[Callable[[], None]] = []
        self._noted: dict[str, _Noted] = {log.folder: _Noted(log)}

    def forget(self, *places: Place, log: RecordLog | None = None) -> None:
        """Note that the data of these places, of the group's record log or another one, will be replaced."""
        self._of(log).forgotten.extend(places)

    def save(self, place: Place, record: bytes, log: RecordLog | None = None) -> None:
        """Note a record, of the group's record log or another one, of data that belongs to the group, or is durable."""
        self._of(log).records[place] = record

    def _of(self, log: RecordLog | None) -> "_Noted":
        found = log or self._log
        return self._noted.setdefault(found.folder, _Noted(found))

    def then(self, function: Callable[[], None]) -> None:
        """Note what is done once all is durable."""
        self._then.append(function)

    @contextmanager
    def part(self) -> Iterator[None]:
        """Undo what the ``with`` block has added if it raises: of a shard that fails, nothing appears."""
        files, then = len(self.files), len(self._then)
        noted = {folder: each.copy() for folder, each in self._noted.items()}
        try:
            yield
        except BaseException:
            self.files.abort(files)
            self._noted = noted
            del self._then[then:]
            raise

    def commit(self) -> None:
        """Make all durable."""
        noted, self._noted = self._noted, {self._log.folder: _Noted(self._log)}
        for each in noted.values():
            each.log.forget(each.forgotten)
        self.files.commit()
        with Together() as segments:
            for each in noted.values():
                each.log.save(each.records, segments)
        done, self._then = self._then, []
        for function in done:
            function()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if kind is None:
                self.commit()
        finally:
            self.files.abort()


@dataclass
class _Noted:
    """The entries of a group in a record log: places without a record, then records."""

    log: RecordLog
    forgotten: list[Place] = field(default_factory=list)
    records: dict[Place, bytes] = field(default_factory=dict)

    def copy(self) -> "_Noted":
        return _Noted(self.log, list(self.forgotten), dict(self.records))
