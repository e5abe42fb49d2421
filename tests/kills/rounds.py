"""A round: a command is sent a signal at a random moment, and run again; what is there each time is judged.

Commands, states between them and the judge are those of the fault matrix (`tests.faults`), so a command that gets a
column there is killed here, too.
"""

import random
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from tests.conftest import Ran
from tests.faults.cells import Bench
from tests.faults.columns import COLUMNS, Column
from tests.faults.judge import Disturbed, half_written, rerun
from tests.faults.places import Place, Strike
from tests.faults.rows import Row
from tests.faults.warm import Signal

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
"""One that cannot be heard is sent as often as the two that can."""

TOLD = {signal.SIGTERM: 143, signal.SIGINT: 130}
"""Exit status of a command that has heard a signal."""

MISSES = 20
"""Signals that may miss a command, one after the other."""

KILLED = Row("killed", "gone", "disk", (), "")
"""As of a folder that vanishes: temporary files stay until the next run. It is what the judge asks a row for."""
TERMINATED = Row("told to end", "signal", "disk", (), "")


@dataclass(frozen=True)
class Round:
    """A command that was sent a signal.

    Attributes:
        column: of the command.
        where: `bucket` or `folder`.
        processes: that it had.
        sent: the signal, after so many seconds.
        missed: signals that came when the command had ended already, before this one met it.
        uploading: whether it left multipart uploads unfinished.
        wrong: as the judge says it.
    """

    column: Column
    where: str
    processes: int
    sent: Signal
    missed: int
    uploading: bool
    wrong: list[str]

    def __str__(self) -> str:
        name = signal.Signals(self.sent.number).name
        whole = "" if self.sent.group else " to the first process alone"
        when = "at an upload" if self.sent.seconds is None else f"after {self.sent.seconds:.4f} s"
        return f"{self.column.name} {self.where} {self.processes} {name}{whole} {when}"


def several(name: str, processes: int) -> Column:
    """Return a column by its name, whose command has so many processes."""
    column = next(each for each in COLUMNS if each.name == name)
    if processes == 1:
        return column
    return replace(column, name=f"{name}*{processes}", more=(*column.more, ("processes", processes)))


class Struck(NamedTuple):
    """A command that a signal has met, and how many signals had missed it before."""

    column: Column
    where: str
    processes: int
    sent: Signal
    missed: int


def drawn(processes: int, chance: random.Random, most: float | None) -> Signal:
    """Draw a signal for a command of so many processes; not later than so many seconds, or without a time."""
    whole = processes == 1 or chance.random() < 0.7
    return Signal(chance.choice(SIGNALS), None if most is None else chance.uniform(0, most), whole)


class Campaign:
    """Rounds on a bench."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._seconds: dict[tuple[str, str], float] = {}

    def place(self, where: str) -> Place:
        if where == "folder":
            return self.bench.folder
        assert self.bench.bucket
        return self.bench.bucket

    def play(self, column: Column, where: str, processes: int, chance: random.Random) -> Round:
        """Send a signal to a running command at a moment that is drawn from its whole time.

        That is the time of its last undisturbed run, and a tenth more: a signal that has missed its run tells how long
        it takes now, because a machine is now more busy, now less.
        """
        place = self.place(where)
        column = several(column.name, processes)
        undisturbed, _ = self.bench.undisturbed(place, column)
        key = place.root, column.name
        self._seconds.setdefault(key, undisturbed.seconds)
        for missed in range(MISSES):
            place.restore(undisturbed.before)
            sent = drawn(processes, chance, 1.1 * self._seconds[key])
            self.bench.warm.signal = sent
            ran = self.bench.run(place, column, Strike())
            if self.bench.warm.struck:
                return self.judged(Struck(column, where, processes, sent, missed), ran)
            self._seconds[key] = self.bench.warm.seconds
        raise RuntimeError(f"{column.name}: expected a signal to meet the command, {MISSES} have missed it")

    def judged(self, struck: Struck, ran: Ran) -> Round:
        """Judge what is there after a command that met a signal, and after a rerun."""
        column, where, processes, sent, missed = struck
        place = self.place(where)
        undisturbed, _ = self.bench.undisturbed(place, column)
        after = place.state()
        again = self.bench.run(place, column, Strike())
        found = Disturbed(place.root, [], ran, after, again, place.state())
        row = KILLED if ran.code < 0 or not sent.group else TERMINATED
        wrong = half_written(row, undisturbed, found) + rerun(row, column, undisturbed, found)
        codes = {undisturbed.ran.code, -sent.number, TOLD.get(signal.Signals(sent.number), -sent.number)}
        if ran.code not in codes:
            wrong.append(f"expected status {sorted(codes)}, got {ran.code}: {ran.err[-500:]}")
        if "Traceback" in ran.err and ran.code >= 0:
            wrong.append(f"a traceback: {ran.err[-1500:]}")
        uploading = any("?upload=" in name for name in after.keys() - undisturbed.before.keys())
        return Round(column, where, processes, sent, missed, uploading, wrong)


def rounds(campaign: Campaign, signals: int, seed: int, places: list[str], names: list[str]) -> Iterator[Round]:
    """Yield so many rounds: each command in turn, in an order that is drawn.

    Args:
        campaign: they are played in.
        signals: that meet a running command, one a round.
        seed: of all that is drawn.
        places: `folder`, `bucket`.
        names: of columns; none are all.
    """
    return islice(_endless(campaign, random.Random(seed), places, names), signals)


def _endless(campaign: Campaign, chance: random.Random, places: list[str], names: list[str]) -> Iterator[Round]:
    columns = [column for column in COLUMNS if not names or column.name in names]
    while True:
        for column in chance.sample(columns, len(columns)):
            processes = 2 if column.configured and chance.random() < 0.25 else 1
            yield campaign.play(column, chance.choice(places), processes, chance)
