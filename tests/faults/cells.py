"""One fault, one command, one kind of files: the cell is played and judged."""

import fnmatch
import json
import re
import shlex
import zlib
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from tests.conftest import Ran
from tests.faults import corpus
from tests.faults.columns import CLOCK, COLUMNS, MORE, STATES, Column
from tests.faults.judge import Disturbed, Undisturbed, different, judge
from tests.faults.kinds import kind_of
from tests.faults.places import Bucket, File, Folder, Place, Requests, State, Strike
from tests.faults.rows import ROWS, Row
from tests.faults.warm import Warm

DAMAGED = (
    "inputs", "documents", "attributes", "schemas", "shard_records", "row_indexes", "ingest_records", "manifest",
    "parts", "checksums", "failures", "leases", "hashes", "signatures", "resolution", "items", "map",
    "values", "sample", "answers", "ledger", "locks", "descriptions", "models",
)  # fmt: skip

SETTINGS = {
    "toolkit.storage.objects.SMALL": 900,
    "toolkit.storage.retrying.UNKNOWN_HOST": 0.3,
    "toolkit.storage.retrying.FIRST": 0.02,
}
"""Small enough that the corpus is uploaded in several parts, and that no test waits long for what does not come."""

IMPATIENT = {"toolkit.storage.retrying.READ": 1.0, "toolkit.storage.retrying.READ_STRANGER": 1.0}
"""Where requests hang. All other answers come: a busy machine does not make a fault of them."""

GIVE_UP, PATIENT = 0.3, 60.0
"""Seconds for which a server is waited for, `storage.give_up`: where a fault lasts, and where it passes."""


@dataclass(frozen=True)
class Cell:
    """A fault of a row, to a kind of files, under the command of a column."""

    row: Row
    column: Column
    kind: str

    @property
    def id(self) -> str:
        return f"{self.column.name}-{self.row.name}-{self.kind}"


def cells() -> list[Cell]:
    """All of the matrix, by column, so that what is there before need not change much from one to the next."""
    return [
        Cell(row, column, kind)
        for where in (("bucket",), ("disk", "file"))
        for column in COLUMNS
        for row in ROWS
        if row.where in where
        for kind in column.touches.split()
        if row.where != "file" or kind in DAMAGED
    ]


def marks_of(cell: Cell) -> set[str]:
    """What a part of the matrix must have of a cell: columns and kinds on a disk, where they cost least."""
    on_disk = {f"column {cell.column.name}", f"kind {cell.kind}"}
    return {f"row {cell.row.name}"} | (on_disk if cell.row.where != "bucket" else set())


def covering(times: int) -> list[Cell]:
    """A part of the matrix in which each row, column, and kind is at least so many times, as often as it is in all."""
    taken: Counter[str] = Counter()
    found = set()
    every = cells()
    shuffled = sorted(every, key=lambda each: zlib.crc32(each.id.encode()))
    for new in (3, 2, 1):  # first those that bring most
        for cell in shuffled:
            marks = marks_of(cell)
            if cell.id not in found and sum(taken[mark] < times for mark in marks) >= new:
                found.add(cell.id)
                taken.update(marks)
    return [cell for cell in every if cell.id in found]


SAMPLE = (
    "mix-gone-shard-throttle-lasts-ingest_records",
    "mix-cut-attributes",
    "mix-refuse-shard_records",
    "status-throttle-lasts-shard_records",
    "mix-gone-shard-EIO-ingest_records",
    "ingest-ENOSPC-documents",
    "status-EACCES-shard_records",
    "mix-gone-ingest_records",
)
"""Cells of the default suite; those on a bucket, which is made first, are of the slow one."""


@dataclass(frozen=True)
class Played:
    """What came of a cell, for each request that it struck; why there is none."""

    cell: Cell
    wrong: dict[str, list[str]]
    not_applicable: str = ""


class Bench:
    """What cells are played on: a bucket, a folder, the states between commands, and what these do undisturbed.

    Args:
        warm: runs commands.
        folder: for the corpus, and for what is beside it.
        bucket: if there is one.
        endpoint: of a server of language models.
    """

    def __init__(self, warm: Warm, folder: Path, bucket: Bucket | None, endpoint: str) -> None:
        self.warm = warm
        self._endpoint = endpoint
        self.bucket = bucket
        self.folder = Folder(folder)
        self._work = folder
        self._states: dict[tuple[str, str], State] = {}
        self._undisturbed: dict[tuple[str, str], tuple[Undisturbed, Requests]] = {}

    def place(self, row: Row) -> Place:
        """Where a row's faults happen."""
        if row.where != "bucket":
            return self.folder
        assert self.bucket
        return self.bucket

    @cached_property
    def _inputs(self) -> State:
        return {name: File("1700000000000000000", data) for name, data in corpus.inputs().items()}

    def state(self, place: Place, name: str) -> State:
        """What is there in a state; made once, by undisturbed commands."""
        if (place.root, name) not in self._states:
            before, command = STATES[name]
            place.restore(self.state(place, before) if before else self._inputs)
            if command:
                making = Column(name, command, "", "", MORE.get(name, ()), change=CLOCK)
                self.run(place, making, Strike()).succeeds()
            self._states[place.root, name] = place.state()
        return self._states[place.root, name]

    def run(self, place: Place, column: Column, strike: Strike, change: str = "") -> Ran:
        """What a column's command does while a fault strikes."""
        storage = {"give_up": GIVE_UP if strike.fault and not strike.times else PATIENT}
        config = corpus.config(place.root, storage=storage)
        for name, value in column.more:
            config[name] = {**config.get(name, {}), **value} if isinstance(value, dict) else value
        for name in column.without:
            del config[name]
        path = self._work / "c.yaml"
        text = json.dumps(config).replace("{root}", place.root).replace("{answers}", place.answers)
        path.write_text(text.replace("{endpoint}", self._endpoint))
        arguments = shlex.split(column.command.format(root=place.root, labels=place.labels))
        arguments += ["-c", str(path)] if column.configured else []
        with place.striking(strike) as (env, disk):
            settings = SETTINGS | dict(column.constants) | (IMPATIENT if strike.fault == "hang" else {})
            settings["toolkit.session.DEFAULTS"] = storage["give_up"]
            if not strike.fault:  # a busy server is no fault
                del settings["toolkit.storage.retrying.UNKNOWN_HOST"]
            changes = [each for each in (column.change, change) if each]
            return self.warm.run(arguments, env, disk=disk, settings=settings, changes=changes)

    def undisturbed(self, place: Place, column: Column) -> tuple[Undisturbed, Requests]:
        """What a column's command does, and which requests it makes.

        Raises:
            RuntimeError: if it does not end as the column says: nothing can be judged by a command that fails.
        """
        if (place.root, column.name) not in self._undisturbed:
            before, strike = dict(self.state(place, column.before)), Strike()
            if column.lacks:
                before = {name: file for name, file in before.items() if not _lacks(column.lacks, name)}
            place.restore(before)
            ran = self.run(place, column, strike)
            if ran.code != column.code:
                raise RuntimeError(f"{column.name}: expected status {column.code} of it undisturbed, got {ran}")
            after, seconds = place.state(), self.warm.seconds
            passes = self.state(place, column.passes) if column.passes else {}
            self._undisturbed[place.root, column.name] = Undisturbed(before, ran, after, passes, seconds), strike.seen
        return self._undisturbed[place.root, column.name]

    def play(self, cell: Cell, change: str = "") -> Played:
        """Lets the fault happen to each kind of request that the command makes, one after the other.

        Args:
            cell: that is played.
            change: a function that changes the toolkit, for tests of the judge.
        """
        place = self.place(cell.row)
        undisturbed, requests = self.undisturbed(place, cell.column)
        if cell.row.where == "file":
            return self._damaged(cell, undisturbed, change)
        struck = [what for what in cell.row.requests if requests[what, cell.kind]]
        if not struck:
            return Played(cell, {}, "it makes no such request")
        wrong = {what: self._struck(cell, what, undisturbed, change) for what in struck}
        return Played(cell, wrong)

    def _struck(self, cell: Cell, request: str, undisturbed: Undisturbed, change: str) -> list[str]:
        place, row = self.place(cell.row), cell.row
        place.restore(undisturbed.before)
        strike = Strike(row.fault, cell.kind, request, 0 if row.lasts else row.times, row.spreads)
        ran = self.run(place, cell.column, strike, change)
        after = place.state()
        found = Disturbed(place.root, strike.paths, ran, after, *self._again(cell, undisturbed, ran, after, change))
        return judge(row, cell.column, undisturbed, found) if strike.paths else ["0: nothing was struck"]

    def _again(self, cell: Cell, undisturbed: Undisturbed, ran: Ran, after: State, change: str) -> tuple[Ran, State]:
        """The rerun, and what is there after it; where nothing was written it would be the undisturbed run."""
        if after == undisturbed.before:
            return undisturbed.ran, undisturbed.after
        is_as_ever = ran.code == undisturbed.ran.code and after.keys() == undisturbed.after.keys()
        if is_as_ever and not different(undisturbed, ran, after):
            return ran, after
        place = self.place(cell.row)
        return self.run(place, cell.column, Strike(), change), place.state()

    def _damaged(self, cell: Cell, undisturbed: Undisturbed, change: str) -> Played:
        victims = [name for name in sorted(undisturbed.before) if kind_of(name) == cell.kind]
        if not victims:
            return Played(cell, {}, "there is no such file before it")
        wrong = {}
        for victim in dict.fromkeys(victims[:1] + victims[-1:]):
            place, sound = self.folder, undisturbed.before[victim]
            place.restore(undisturbed.before)
            damage(place, victim, sound, cell.row.fault)
            ran = self.run(place, cell.column, Strike(), change)
            is_remade = not is_damaged(place, victim, sound, cell.row.fault)
            if not is_remade:
                repair(place, victim, sound)
            after = place.state()
            again = self._again(cell, undisturbed, ran, after, change)
            found = Disturbed(place.root, [victim], ran, after, *again, is_remade)
            wrong[victim] = judge(cell.row, cell.column, undisturbed, found)
        return Played(cell, wrong)


def _lacks(what: str, name: str) -> bool:
    """Whether a file is the one, or in the folder, that a column says is not there."""
    return name.startswith(what) if what.endswith("/") else fnmatch.fnmatchcase(name, what)


_MATTERS = (re.compile(rb'"(?:content|documents)": ?"([0-9a-f]{32})"'), re.compile(rb'"tagger": ?"(.)'))
"""In a record, a digest, else a tagger. A bit elsewhere may be of a time stamp, or of a description, and do nothing."""


def _damaged_bytes(data: bytes, how: str) -> bytes:
    if how == "truncated":
        return data[: len(data) // 2 - 1]  # which is not the end of a line where all lines are as long
    if how == "flipped":
        found = filter(None, (each.search(data) for each in _MATTERS)) if data.startswith(b"{") else iter(())
        matters = next(found, None)
        place, bit = (matters.start(1), 1) if matters else (len(data) // 2, 0x10)
        return data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :]
    return b""


def damage(place: Folder, name: str, file: File, how: str) -> None:
    """Damages a file; its time stays, as when a disk rots."""
    if how == "folder":
        Path(place.root, name).unlink()
        Path(place.root, name).mkdir()
    else:
        place.put(name, replace(file, data=_damaged_bytes(file.data, how)))


def is_damaged(place: Folder, name: str, file: File, how: str) -> bool:
    """Whether the file is as `damage` left it."""
    path = Path(place.root, name)
    if how == "folder":
        return path.is_dir()
    return path.is_file() and path.read_bytes() == _damaged_bytes(file.data, how)


def repair(place: Folder, name: str, file: File) -> None:
    """Puts the file back, as from a copy."""
    if Path(place.root, name).is_dir():
        Path(place.root, name).rmdir()
    place.put(name, file)
