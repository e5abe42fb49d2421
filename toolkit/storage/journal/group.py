"""A group of shards: their files and records are made durable together.

    tombstones ──> all files synced ──> all files renamed ──> their folders synced ──> records

Each arrow waits until what is before it is durable. A kill, or a power cut, between two of them leaves data without
records, which is done again: it costs the group, and nothing that is recorded is not there.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from toolkit.storage.journal.entries import Place
from toolkit.storage.journal.journal import Journal
from toolkit.storage.outputs import Together


class Group:
    """What a worker has made of some shards and nobody sees yet. A context manager: its end makes it durable.

    Attributes:
        files: that belong to it, for `toolkit.storage.outputs.Output`.

    Args:
        journal: that knows the places of the shards.
    """

    def __init__(self, journal: Journal) -> None:
        self.files = Together()
        self._journal = journal
        self._then: list[Callable[[], None]] = []
        self._noted: dict[str, _Noted] = {journal.folder: _Noted(journal)}

    def forget(self, *places: Place, journal: Journal | None = None) -> None:
        """Note that the data of these places, of the group's journal or another one, will be replaced."""
        self._of(journal).forgotten.extend(places)

    def save(self, place: Place, record: bytes, journal: Journal | None = None) -> None:
        """Note a record, of the group's journal or another one, of data that belongs to the group, or is durable."""
        self._of(journal).records[place] = record

    def _of(self, journal: Journal | None) -> "_Noted":
        found = journal or self._journal
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
        noted, self._noted = self._noted, {self._journal.folder: _Noted(self._journal)}
        for each in noted.values():
            each.journal.forget(each.forgotten)
        self.files.commit()
        with Together() as segments:
            for each in noted.values():
                each.journal.save(each.records, segments)
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
    """What a group notes in a journal: places without a record, then records."""

    journal: Journal
    forgotten: list[Place] = field(default_factory=list)
    records: dict[Place, bytes] = field(default_factory=dict)

    def copy(self) -> "_Noted":
        return _Noted(self.journal, list(self.forgotten), dict(self.records))
