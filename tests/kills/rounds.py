"""A round: a command is sent a signal at a random moment, and run again; what is there each time is judged.

Commands, states between them and the judge are those of the fault matrix (`tests.faults`), so a command that gets a
column there is killed here, too.
"""

import random
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.faults.cells import Bench
from tests.faults.columns import COLUMNS, Column
from tests.faults.judge import Disturbed, Undisturbed, half_written, rerun
from tests.faults.places import Place, Strike
from tests.faults.rows import Row
from tests.faults.warm import Signal

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
"""One that cannot be heard is sent as often as the two that can."""

TOLD = {signal.SIGTERM: 143, signal.SIGINT: 130}
"""Exit status of a command that has heard a signal."""

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
        struck: whether it was still running then.
        wrong: as the judge says it.
    """

    column: Column
    where: str
    processes: int
    sent: Signal
    struck: bool
    wrong: list[str]

    def __str__(self) -> str:
        name = signal.Signals(self.sent.number).name
        whole = "" if self.sent.group else " to the first process alone"
        return f"{self.column.name} {self.where} {self.processes} {name}{whole} after {self.sent.seconds:.4f} s"


def several(name: str, processes: int) -> Column:
    """Return a column by its name, whose command has so many processes."""
    column = next(each for each in COLUMNS if each.name == name)
    if processes == 1:
        return column
    return replace(column, name=f"{name}*{processes}", more=(*column.more, ("processes", processes)))


class Campaign:
    """Rounds on a bench."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._known: dict[tuple[str, str], tuple[Undisturbed, float]] = {}

    def _place(self, where: str) -> Place:
        if where == "folder":
            return self._bench.folder
        assert self._bench.bucket
        return self._bench.bucket

    def _undisturbed(self, place: Place, column: Column) -> tuple[Undisturbed, float]:
        """What a command does when nobody disturbs it, and its seconds."""
        key = place.root, column.name
        if key not in self._known:
            undisturbed, _ = self._bench.undisturbed(place, column)
            place.restore(undisturbed.before)
            begin = time.monotonic()
            self._bench.run(place, column, Strike())
            self._known[key] = undisturbed, time.monotonic() - begin
        return self._known[key]

    def play(self, column: Column, where: str, processes: int, chance: random.Random) -> Round:
        """Play a round at a moment that is drawn."""
        place = self._place(where)
        column = several(column.name, processes)
        undisturbed, seconds = self._undisturbed(place, column)
        sent = Signal(chance.choice(SIGNALS), chance.uniform(0, 0.7) * seconds, processes == 1 or chance.random() < 0.7)
        place.restore(undisturbed.before)
        self._bench.warm.signal = sent
        ran = self._bench.run(place, column, Strike())
        struck, after = self._bench.warm.struck, place.state()
        again = self._bench.run(place, column, Strike())
        found = Disturbed(place.root, [], ran, after, again, place.state())
        row = KILLED if ran.code < 0 or not sent.group else TERMINATED
        wrong = half_written(row, undisturbed, found) + rerun(row, column, undisturbed, found)
        codes = {undisturbed.ran.code, -sent.number, TOLD.get(signal.Signals(sent.number), -sent.number)}
        if ran.code not in codes:
            wrong.append(f"expected status {sorted(codes)}, got {ran.code}: {ran.err[-500:]}")
        if "Traceback" in ran.err and ran.code >= 0:
            wrong.append(f"a traceback: {ran.err[-1500:]}")
        return Round(column, where, processes, sent, struck, wrong)


def rounds(campaign: Campaign, signals: int, seed: int, places: list[str], names: list[str]) -> Iterator[Round]:
    """Yield rounds until so many signals have met a running command: each command in turn, in an order that is drawn.

    Args:
        campaign: they are played in.
        signals: wanted.
        seed: of all that is drawn.
        places: `folder`, `bucket`.
        names: of columns; none are all.
    """
    chance, struck = random.Random(seed), 0
    columns = [column for column in COLUMNS if not names or column.name in names]
    while True:
        for column in chance.sample(columns, len(columns)):
            processes = 2 if column.configured and chance.random() < 0.15 else 1
            yield (found := campaign.play(column, chance.choice(places), processes, chance))
            struck += found.struck
            if struck >= signals:
                return
