"""Room on disk below a bound: what a run keeps is measured, what its tasks may yet write is reserved.

folders ──measured, now and then──┐
tasks that run ──reserved─────────┴──> does the next one fit? ──no──> it waits until another has ended

What a task needs is an estimate. As tasks end, estimates are held against what is measured, and corrected.
"""

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from toolkit.errors import ToolkitError
from toolkit.execution.executors import Task
from toolkit.storage_options import size_in_words

BLOCK = 4096
"""Bytes in which file systems give room; a folder takes one, too."""

MARGIN = 1.1
"""By which tasks may need more than is expected."""

SURE = 1 << 20
"""Bytes that should be expected, or have been written, before estimates are corrected."""

LEAST = 0.25
"""To which they are corrected at least."""

PAUSE = 20
"""Measuring takes at most one part of so many of the time."""


class Need(NamedTuple):
    """Bytes that a task is expected to need on disk.

    Attributes:
        peak: at most, while it is worked on.
        kept: once it has ended.
        later: Later that later stages make of what it keeps.
    """

    peak: int
    kept: int
    later: int = 0


NOTHING = Need(0, 0)

Needs = Callable[[Task[Any]], Need | None]
"""Gives what a task needs; None if that cannot be told: such a task is done alone, and taken to need as much as others
of its kind before it have kept."""


class NoRoom(ToolkitError):
    """The output does not fit below the bound."""


class Room:
    """Decides which tasks may begin.

    Args:
        limit: bytes that the folders may hold together.
        folders: on disk, which are counted whoever writes in them; they need not be there.
        shares: runs that work on the same at a time; each takes the others to need as much as it does.
        certain: the part of what tasks keep that they are expected to keep in any case.
        clock: gives seconds.

    Attributes:
        held: bytes in the folders when they were last measured.
    """

    def __init__(
        self,
        limit: int,
        folders: Iterable[str],
        shares: int = 1,
        certain: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limit = limit
        self.held = 0
        self._folders = list(folders)
        self._shares = shares
        self._certain = certain
        self._clock = clock
        self._looked = self._cost = 0.0
        self._factor = 1.0
        self._flying: dict[str, Need | None] = {}
        self._needs: Needs = lambda task: NOTHING
        self._before = self._ended = self._unseen = self._later = 0
        self._alone: int | None = None
        """Bytes that were held when a task began of which nothing was known; it is the only one since."""
        self._most = 0
        """That such a task has kept."""

    def look(self) -> int:
        """Return how many bytes the folders hold now, in whole blocks."""
        begin = self._clock()
        self._unseen = 0
        self.held = bytes_below(self._folders)
        self._looked = self._clock()
        self._cost = self._looked - begin
        self._correct()
        return self.held

    def begin(self, needs: Needs) -> None:
        """Begin a stage; `needs` gives what each of its tasks needs."""
        self._needs, self._factor, self._flying = needs, 1.0, {}
        self._ended = self._unseen = self._later = self._most = 0
        self._alone = None
        self._before = self.look()

    def check(self, needs: Iterable[Need | None]) -> None:
        """Check that what tasks need can fit, one after the other.

        Raises:
            NoRoom: if it cannot.
        """
        total = most_of(list(needs), self._shares)
        if total and self.look() + total > self.limit:
            raise NoRoom(
                f"max_disk: expected room for about {size_in_words(total)} more, got {self.left()}; raise "
                f"`max_disk`, or delete files that you do not need any more"
            )

    def admits(self, task: Task[Any], running: bool) -> bool:
        """Return whether a task may begin now; it is reserved for then.

        Args:
            task: to begin.
            running: True if others run, for whose end it may wait.

        Raises:
            NoRoom: if it would wait for ever.
        """
        need = self._needs(task)
        if need is not None and not need.peak:
            self._later += need.later
            return True
        if not running or self._clock() - self._looked >= PAUSE * self._cost:
            self.look()
        self._flying.pop(task.name, None)  # of an attempt with which its process died
        if self._alone is not None and not running:
            self._most, self._alone = max(self._most, self.held - self._alone), None
        if self._fits(need):
            self._flying[task.name] = need
            if need is None:
                self._alone = self.held
            return True
        if running:
            return False
        expected = self._unknown if need is None else self._wanted(need)
        wanted = f" for about {size_in_words(expected)}" if expected else ""
        if self._later or (need and need.later):
            wanted += " (with what the last steps of finished tasks will write)"
        raise NoRoom(
            f"max_disk: expected room{wanted} to begin {task.name}, got {self.left()}; raise "
            f"`max_disk`, or delete files that you do not need any more, and run again; "
            f"finished work stays"
        )

    def end(self, name: str) -> None:
        """Note that a task has ended, and holds no more than what it keeps."""
        need = self._flying.pop(name, None)
        if need:
            self._ended += need.kept
            self._unseen += need.kept
            self._later += need.later

    def left(self) -> str:
        """Return in words what is left of the bound."""
        left, limit, held = map(size_in_words, (max(self.limit - self.held, 0), self.limit, self.held))
        return f"{left} of {limit} ({held} in use)"

    def _fits(self, need: Need | None) -> bool:
        if need is None or None in self._flying.values():
            return not self._flying and self.held < self.limit and self.held + self._unknown <= self.limit
        return self.held + self._wanted(need) <= self.limit

    @property
    def _unknown(self) -> int:
        """Return what is expected of a task of which nothing is known."""
        return round(MARGIN * self._shares * self._most)

    def _wanted(self, need: Need) -> int:
        """Return what is expected to come to what was measured, if a task begins: while it runs, or in the end.

        A correction is of what tasks keep. What they delete again is expected to be more, but never less.
        """
        flying = [item for item in (*self._flying.values(), need) if item]
        kept = self._factor * sum(item.kept for item in flying)
        gone = max(self._factor * self._certain, 1) * sum(item.peak - item.kept for item in flying)
        later = self._factor * (self._later + sum(item.later for item in flying))
        most = max(MARGIN * (kept + gone), kept + later)
        return round(self._factor * self._unseen + self._shares * most)

    def _correct(self) -> None:
        """Correct estimates that what was measured shows to be wrong, whatever the running tasks have written of it."""
        grown = self.held - self._before
        if not self._ended or max(grown, self._ended) < SURE:
            return
        running = self._factor * self._shares * sum(item.peak for item in self._flying.values() if item)
        least, most = max(grown - running, 0) / self._ended, grown / self._ended
        self._factor = min(max(self._factor, least, LEAST), max(most, LEAST))


def most_of(needs: Iterable[Need | None], shares: int = 1) -> int:
    """Return the bytes that tasks need which are done one after the other, in each of the shares.

    That is while the one runs that deletes most of what it writes, or in the end, when later stages are done.
    """
    results = sorted((need for need in needs if need and need.peak), key=lambda need: need.peak - need.kept)
    if not results:
        return 0
    kept, last = sum(need.kept for need in results), results[-1]
    return round(max(kept + sum(need.later for need in results), kept - last.kept + MARGIN * shares * last.peak))


def bytes_below(folders: Iterable[str]) -> int:
    """Return the bytes that folders hold, those in each other once; what goes meanwhile is not counted."""
    return sum(map(_bytes_of, _topmost(folders)))


def _topmost(folders: Iterable[str]) -> Iterator[str]:
    results: list[str] = []
    for folder in sorted(map(os.path.realpath, folders)):
        if not any(folder == above or folder.startswith(above.rstrip("/") + "/") for above in results):
            results.append(folder)
            yield folder


def _bytes_of(root: str) -> int:
    total, linked, waiting = 0, set[tuple[int, int]](), [root]
    while waiting:
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(waiting.pop()) as entries:
            total += BLOCK
            for entry in entries:
                with suppress(FileNotFoundError):
                    result = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(result.st_mode):
                        waiting.append(entry.path)
                    elif result.st_nlink == 1 or (result.st_dev, result.st_ino) not in linked:
                        total += -(-result.st_size // BLOCK) * BLOCK
                        if result.st_nlink > 1:
                            linked.add((result.st_dev, result.st_ino))
    return total
