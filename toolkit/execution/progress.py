"""Progress on standard error: a bar on a terminal, a line every ten seconds elsewhere.

tasks ──documents, bytes of input──> Progress ──every moment, by a thread──> Pace ──in words──> standard error

Bytes are those of inputs as they are stored, as their listed sizes are, so that what is left can be told from them.
"""

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, MutableMapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Protocol, Self

import msgspec

from toolkit.errors import amount, duration
from toolkit.execution.executors import Report
from toolkit.storage.threads import Thread
from toolkit.storage_options import size_in_words

LINE_SECONDS = 10.0
"""After which a line is written where there is no terminal."""

BAR_SECONDS = 0.2
"""After which the bar is drawn anew."""

WINDOW_SECONDS = 60.0
"""The last part of a run, from which its pace is told."""

COLUMNS, ROWS = 80, 24
"""Of a terminal that does not say its size."""

BAR_COLUMNS = 20
"""For percentage and bar: with fewer, facts are left out, the last one first."""

_BAR = "{desc}: {percentage:3.0f} %|{bar}| {facts}"

Clock = Callable[[], float]


class Position:
    """Reports how far a task is in the bytes of its input.

    Args:
        report: takes documents and bytes.
        stored: returns how many bytes of the input have been read, as they are stored.
    """

    def __init__(self, report: Report, stored: Callable[[], int]) -> None:
        self._report = report
        self._stored = stored
        self._at = 0

    def __call__(self, documents: int) -> None:
        """Report documents that are done, and the bytes that have been read for them."""
        at = self._stored()
        self._report(documents, at - self._at)
        self._at = at


class Share:
    """Reports how far a task is in the bytes of its input, where only its documents are counted.

    Args:
        report: takes documents and bytes.
        whole: how many documents there are.
        size: bytes of the input, as they are stored.
    """

    def __init__(self, report: Report, whole: int, size: int) -> None:
        self._report = report
        self._whole, self._size = max(whole, 1), size
        self._done = self._at = 0

    def __call__(self, documents: int) -> None:
        """Report documents that are done, and their share of the bytes."""
        self._done += documents
        at = min(self._size * self._done // self._whole, self._size)
        self._report(documents, at - self._at)
        self._at = at


class Pace:
    """Counts what the tasks of a stage have done, and tells how fast and how long it will take.

    Bytes of tasks that had nothing to do count as done, and not for the pace.

    Args:
        input_sizes: bytes of the input of each task; None where that is not known.
        clock: gives seconds.

    Attributes:
        total: bytes of all inputs; None if one of them is not known, or all are empty.
        tasks: ended so far.
        documents: done so far.
    """

    def __init__(self, input_sizes: Iterable[int | None], clock: Clock = time.monotonic) -> None:
        known = list(input_sizes)
        self.total = (sum(size for size in known if size is not None) or None) if None not in known else None
        self.tasks = self.documents = 0
        self._worked = self._ended = self._ended_worked = 0
        self._clock = clock
        self._start = clock()
        self._seen = deque([(self._start, 0)])

    def add(self, documents: int, size: int) -> None:
        """Add documents and bytes of input; fewer than none where what was reported is done again."""
        self.documents += documents
        self._worked += size

    def end(self, size: int | None, worked: int) -> None:
        """Add a task that has ended.

        Args:
            size: bytes of its input.
            worked: how many of them it has reported.
        """
        self.tasks += 1
        self._ended += worked if size is None else size
        self._ended_worked += worked

    @property
    def done(self) -> int:
        """Return the bytes of input that are done: all those of the tasks that have ended, some of the others."""
        done = self._ended + max(self._worked - self._ended_worked, 0)
        return done if self.total is None else min(done, self.total)

    @property
    def seconds(self) -> float:
        """Return the time since the beginning."""
        return self._clock() - self._start

    def mean(self) -> float:
        """Return the bytes of input a second, from the beginning."""
        return self._worked / max(self.seconds, 1e-9)

    def look(self) -> None:
        """Note how far it is: `rate` is about the time since looks of a minute ago."""
        now = self._clock()
        self._seen.append((now, self._worked))
        while len(self._seen) > 2 and self._seen[1][0] <= now - WINDOW_SECONDS:
            self._seen.popleft()

    def rate(self) -> float:
        """Return the bytes of input a second that are worked on now."""
        then, worked = self._seen[0]
        return max(self._worked - worked, 0) / max(self._clock() - then, 1e-9)

    def left(self) -> float | None:
        """Return the seconds that the rest takes at this pace; None if that cannot be told."""
        rate = self.rate()
        return (self.total - self.done) / rate if self.total is not None and rate else None


class Reached(msgspec.Struct, frozen=True, kw_only=True):
    """How far a stage is.

    Attributes:
        stage: what is done: ``1 of 3: ingest``.
        tasks: shards, or what else is shared among processes, that are done.
        of: how many there are.
        unit: what they are.
        documents: Documents that are done.
        bytes: Bytes of input that are done, as they are stored.
        total: bytes of all input; None where that is not known.
        seconds: since the stage began.
    """

    stage: str
    tasks: int
    of: int
    unit: str
    documents: int
    bytes: int
    total: int | None
    seconds: float


Watch = Callable[[Reached], object]


class Progress:
    """Shows how far a stage is. A context manager, within which a thread draws the bar, or writes a line.

    Args:
        what: the stage.
        input_sizes: bytes of the input of each task; None where that is not known.
        unit: what tasks are.
        quiet: show nothing.
        watch: is told as often as the bar is drawn, and at the end; by the thread that runs the stage. Its error ends
            the stage when the next task has ended.
        more: returns what to show in place of bytes a second and of the time that is left.
        clock: gives seconds.
    """

    def __init__(
        self,
        what: str,
        input_sizes: Iterable[int | None],
        unit: str = "shards",
        *,
        quiet: bool = False,
        watch: Watch | None = None,
        more: Callable[[], list[str]] | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        listed = list(input_sizes)
        self.pace = Pace(listed, clock)
        self._what, self._unit, self._tasks = what, unit, len(listed)
        self._quiet = quiet
        self._terminal = not quiet and sys.stderr.isatty()
        self._clock = clock
        self._last = self._told = clock()
        self._watch, self._more = watch, more
        self._fault: Exception | None = None
        self._bar: _Bar | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = Thread(target=self._keep_showing, name="progress", daemon=True)

    def __enter__(self) -> Self:
        if self._terminal:
            self._bar = _bar(self._what, self.pace.total or max(self._tasks, 1))
        if not self._quiet:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is None:
            self._tell_watch(last=True)
        if self._quiet:
            return
        self._over.set()
        self._thread.join()
        if self._bar is not None:
            self._draw(self._bar)
            self._bar.close()
        seconds = self.pace.seconds
        facts = [*self._facts(self.pace.mean()), f"{seconds:.1f} s"]
        self._write(", ".join(facts) + (" done" if kind is None else " stopped"))

    def report(self, documents: int, size: int) -> None:
        """Add documents and bytes of input that were done since the last call."""
        self.pace.add(documents, size)
        try:
            self._tell_watch()
        except Exception as error:  # here it would be one of the task
            self._fault = error

    def end(self, size: int | None, worked: int) -> None:
        """Count a task that has ended, as `Pace.end`; raise the error of `watch`, if there was one."""
        self.pace.end(size, worked)
        if self._fault:
            raise self._fault
        self._tell_watch()

    def _tell_watch(self, *, last: bool = False) -> None:
        now = self._clock()
        if self._watch is None or self._fault or (now - self._told < BAR_SECONDS and not last):
            return
        self._told = now
        pace = self.pace
        self._watch(
            Reached(
                stage=self._what,
                tasks=pace.tasks,
                of=self._tasks,
                unit=self._unit,
                documents=pace.documents,
                bytes=pace.done,
                total=pace.total,
                seconds=pace.seconds,
            )
        )

    def tell(self, text: str) -> None:
        """Write a line of text, above the bar."""
        with self._lock:
            if self._bar is not None:
                self._bar.clear()
            print(text, file=sys.stderr, flush=True)

    def show(self) -> None:
        """Draw the bar; elsewhere write a line, if the last one was ten seconds ago."""
        with self._lock:
            self.pace.look()
            if self._bar is not None:
                self._draw(self._bar)
            elif self._clock() - self._last >= LINE_SECONDS:
                self._last = self._clock()
                facts = [*self._facts(self.pace.rate()), duration(self.pace.seconds)]
                left = None if self._more else self.pace.left()
                self._write(", ".join(facts) + ("" if left is None else f", about {duration(left)} left"))

    def _keep_showing(self) -> None:
        with suppress(OSError):  # nobody reads it any more
            while not self._over.wait(BAR_SECONDS):
                self.show()

    def _draw(self, bar: "_Bar") -> None:
        pace, columns = self.pace, _columns()
        bar.n = pace.done if pace.total is not None else pace.tasks
        bar.ncols = columns
        tasks, *counted = self._facts(pace.rate())
        left = None if self._more else pace.left()
        facts = [*counted[1:], *([] if left is None else [f"{duration(left)} left"]), *counted[:1], tasks]
        while len(facts) > 1 and len(self._what) + len(", ".join(facts)) > columns - BAR_COLUMNS:
            facts.pop()
        bar.facts = ", ".join(facts)
        bar.refresh()

    def _facts(self, rate: float) -> list[str]:
        """Return tasks, documents, bytes, and their rate, in words; of a step that counts neither, its tasks alone."""
        pace, tasks = self.pace, f"{self.pace.tasks}/{self._tasks} {self._unit}"
        if pace.total is None and not (pace.documents or pace.done or self._more):
            return [tasks]
        return [
            tasks,
            amount(pace.documents, "document"),
            size_in_words(pace.done, pace.total),
            *(self._more() if self._more else [f"{rate / 1e6:.1f} MB/s"]),
        ]

    def _write(self, text: str) -> None:
        print(f"{self._what}: {text}", file=sys.stderr, flush=True)


def _columns() -> int:
    """Return how wide the terminal is now."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or COLUMNS
    except (OSError, ValueError):
        return COLUMNS


class _Bar(Protocol):
    """The used part of a bar."""

    n: Any
    ncols: Any
    facts: str

    def refresh(self) -> object: ...
    def clear(self) -> object: ...
    def close(self) -> object: ...


def _bar(what: str, total: int) -> _Bar:
    from tqdm import tqdm

    class Bar(tqdm):  # type: ignore[type-arg]  # it is none of an iterable
        monitor_interval = 0  # a thread here draws it
        facts = ""

        @property
        def format_dict(self) -> MutableMapping[str, Any]:
            return {**super().format_dict, "facts": self.facts}

    return Bar(total=total, desc=what, bar_format=_BAR, file=sys.stderr, leave=False, ncols=_columns(), nrows=ROWS)
