"""What is there when the power is back: of what was not synced some, none, or parts."""

import base64
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.cells import Bench
from tests.faults.columns import COLUMNS, Column
from tests.faults.judge import Disturbed, half_written, rerun, shown
from tests.faults.places import File, State, Strike
from tests.kills.rounds import KILLED


def column(name: str) -> Column:
    return next(each for each in COLUMNS if each.name == name)


def durable(log: Path, chance: random.Random | None) -> State:
    """Return the files that are there after a loss.

    Args:
        log: of the shim.
        chance: decides of each folder whether its names are those that were synced or those that were visible, and of
            each file that was not synced how much of it is there; without it, only what was synced is.
    """
    known = json.loads(log.read_text())
    contents, now = ({int(k): v for k, v in known[name].items()} for name in ("contents", "now"))
    synced, visible = ({int(k): v for k, v in known[name].items()} for name in ("synced", "visible"))
    found: State = {}

    def content(inode: int) -> File:
        data, stamp = contents.get(inode) or ["", now[inode][1]]
        kept = base64.b64decode(data)
        if chance and inode in now and now[inode] != contents.get(inode):
            whole = base64.b64decode(now[inode][0])
            kept = chance.choice([kept, whole, whole[: len(whole) // 2], bytes(len(whole))])
            stamp = now[inode][1]
        return File(str(stamp), kept)

    def look(folder: int, path: str) -> None:
        names = synced.get(folder, {})
        if chance and folder in visible and chance.random() < 0.5:
            names = visible[folder]
        for name, inode in names.items():
            below = f"{path}/{name}" if path else name
            if inode in synced or inode in visible:
                look(inode, below)
            elif inode in contents or inode in now:
                found[below] = content(inode)

    look(known["root"], "")
    return found


@dataclass(frozen=True)
class Loss:
    """A power cut while a command ran.

    Attributes:
        column: of the command.
        call: of `os.fsync`, which the cut came before; 0 for after its end.
        seed: of what was left; None if it is what was synced.
        wrong: as the judge says it.
    """

    column: str
    call: int
    seed: int | None
    wrong: list[str]

    def __str__(self) -> str:
        return f"{self.column}, before sync {self.call}, seed {self.seed}"


class Losses:
    """Power cuts on a bench's folder.

    Attributes:
        change: the function that installs the shim.
    """

    def __init__(self, bench: Bench, folder: Path) -> None:
        self._bench, self._log = bench, folder / "shim.json"
        self.change = "tests.power.shim:install"

    @contextmanager
    def _shim(self, calls: int) -> Iterator[None]:
        self._bench.warm.env = {
            "SHIM_ROOT": self._bench.folder.root, "SHIM_LOG": str(self._log), "SHIM_CALLS": str(calls),
        }  # fmt: skip
        yield
        self._bench.warm.env = {}

    def _run(self, of: Column, calls: int) -> Any:
        with self._shim(calls):
            return self._bench.run(self._bench.folder, of, Strike(), self.change)

    def calls(self, name: str) -> int:
        """Return how often a command syncs something."""
        of, place = column(name), self._bench.folder
        undisturbed, _ = self._bench.undisturbed(place, of)
        place.restore(undisturbed.before)
        self._log.unlink(missing_ok=True)
        self._run(of, 0)
        return int(json.loads(self._log.read_text())["calls"]) if self._log.exists() else 0

    def after_the_end(self, name: str) -> Loss:
        """Cut the power when a command has ended: all that it has made is there."""
        calls, undisturbed = self.calls(name), self._bench.undisturbed(self._bench.folder, column(name))[0]
        left = shown(durable(self._log, None)) if calls else shown(undisturbed.before)
        wanted = shown(undisturbed.after)
        return Loss(name, 0, None, [f"{path} is lost" for path in sorted(wanted) if left.get(path) != wanted[path]])

    def cut(self, name: str, call: int, seed: int | None) -> Loss:
        """Cut the power before a call, and run the command again."""
        of, place = column(name), self._bench.folder
        undisturbed, _ = self._bench.undisturbed(place, of)
        place.restore(undisturbed.before)
        ran = self._run(of, call)
        if ran.code >= 0:  # threads sync now more, now less often, as they meet
            return Loss(name, 0, seed, [])
        left = durable(self._log, None if seed is None else random.Random(f"{name} {call} {seed}"))
        place.restore(left)
        again = self._bench.run(place, of, Strike())
        found = Disturbed(place.root, [], ran, left, again, place.state())
        return Loss(name, call, seed, half_written(KILLED, undisturbed, found) + rerun(KILLED, of, undisturbed, found))
