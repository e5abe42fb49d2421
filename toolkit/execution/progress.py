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
    """Reports the progress of a task in bytes of its input.

    Args:
        report: Function of documents and bytes.
        stored: Function that returns the stored bytes of the input read so far.
    """

    def __init__(self, report: Report, stored: Callable[[], int]) -> None:
        self._report = report
        self._stored = stored
        self._at = 0

    def __call__(self, documents: int) -> None:
        """Report finished documents, and the bytes read for them."""
        at = self._stored()
        self._report(documents, at - self._at)
        self._at = at


class Share(Position):
    """Reports the progress of a task by its share of documents.

    Args:
        report: Function of documents and bytes.
        whole: Number of all documents.
        size: Stored bytes of the input.
    """

    def __init__(self, report: Report, whole: int, size: int) -> None:
        super().__init__(report, lambda: min(size * self._documents // max(whole, 1), size))
        self._documents = 0

    def __call__(self, documents: int) -> None:
        """Report finished documents, and their share of the bytes."""
        self._documents += documents
        super().__call__(documents)


class Pace:
    """Counts the work of a stage, and computes pace and remaining time.

    Bytes of tasks that had nothing to do count as done, and not for the pace.

    Args:
        input_sizes: Bytes of the input of each task; None if unknown.
        clock: Clock in seconds.

    Attributes:
        total: Bytes of all inputs; None if one is unknown, or all are empty.
        tasks: Number of ended tasks.
        documents: Number of documents done.
    """

    def __init__(self, input_sizes: Iterable[int | None], clock: Clock = time.monotonic) -> None:
        sizes = list(input_sizes)
        self.total = (sum(size for size in sizes if size is not None) or None) if None not in sizes else None
        self.tasks = self.documents = 0
        self._worked = self._ended = self._ended_worked = 0
        self._clock = clock
        self._start = clock()
        self._samples = deque([(self._start, 0)])

    def add(self, documents: int, size: int) -> None:
        """Add documents and bytes of input; negative for work that is done again."""
        self.documents += documents
        self._worked += size

    def end(self, size: int | None, worked: int) -> None:
        """Add a finished task.

        Args:
            size: Bytes of its input.
            worked: Bytes that it has reported.
        """
        self.tasks += 1
        self._ended += worked if size is None else size
        self._ended_worked += worked

    @property
    def bytes_done(self) -> int:
        """Return the processed bytes of input: all of ended tasks, some of the others."""
        worked = self._ended + max(self._worked - self._ended_worked, 0)
        return worked if self.total is None else min(worked, self.total)

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
        self._samples.append((now, self._worked))
        while len(self._samples) > 2 and self._samples[1][0] <= now - WINDOW_SECONDS:
            self._samples.popleft()

    def rate(self) -> float:
        """Return the current bytes of input a second."""
        then, worked = self._samples[0]
        return max(self._worked - worked, 0) / max(self._clock() - then, 1e-9)

    def seconds_left(self) -> float | None:
        """Return the estimated remaining seconds; None if unknown."""
        rate = self.rate()
        return (self.total - self.bytes_done) / rate if self.total is not None and rate else None


class Reached(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a stage.

    Attributes:
        stage: Name of the step: ``1 of 3: ingest``.
        tasks: Number of finished tasks: shards, or other units of work.
        of: Number of all tasks.
        unit: Noun for tasks.
        documents: Documents that are done.
        bytes: Bytes of input that are done, as they are stored.
        total: Bytes of all input; None if unknown.
        seconds: Seconds since the stage started.
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
    """Shows the progress of a stage. A context manager; a thread draws the bar, or writes lines.

    Args:
        what: the stage.
        input_sizes: Bytes of the input of each task; None if unknown.
        unit: Noun for tasks.
        quiet: True to show nothing.
        watch: Function to call as often as the bar is drawn, and at the end, by the thread that runs the stage. Its
            error ends the stage when the next task has ended.
        more: Function that returns facts in place of bytes a second and remaining time.
        clock: Clock in seconds.
    """

    def __init__(
        self,
        title: str,
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
        self._title, self._unit, self._tasks = title, unit, len(listed)
        self._quiet = quiet
        self._terminal = not quiet and sys.stderr.isatty()
        self._clock = clock
        self._last = self._watched_at = clock()
        self._watch, self._more = watch, more
        self._fault: Exception | None = None
        self._bar: _Bar | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = Thread(target=self._keep_showing, name="progress", daemon=True)

    def __enter__(self) -> Self:
        if self._terminal:
            self._bar = _bar(self._title, self.pace.total or max(self._tasks, 1))
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
        """Add documents and bytes since the last call."""
        self.pace.add(documents, size)
        try:
            self._tell_watch()
        except Exception as error:  # here it would be one of the task
            self._fault = error

    def end(self, size: int | None, worked: int) -> None:
        """Count an ended task, see `Pace.end`; raise the error of `watch`, if any."""
        self.pace.end(size, worked)
        if self._fault:
            raise self._fault
        self._tell_watch()

    def _tell_watch(self, *, last: bool = False) -> None:
        now = self._clock()
        if self._watch is None or self._fault or (now - self._watched_at < BAR_SECONDS and not last):
            return
        self._watched_at = now
        pace = self.pace
        self._watch(
            Reached(
                stage=self._title,
                tasks=pace.tasks,
                of=self._tasks,
                unit=self._unit,
                documents=pace.documents,
                bytes=pace.bytes_done,
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
                remaining = None if self._more else self.pace.seconds_left()
                self._write(", ".join(facts) + ("" if remaining is None else f", about {duration(remaining)} left"))

    def _keep_showing(self) -> None:
        with suppress(OSError):  # nobody reads it any more
            while not self._over.wait(BAR_SECONDS):
                self.show()

    def _draw(self, bar: "_Bar") -> None:
        pace, columns = self.pace, _columns()
        bar.n = pace.bytes_done if pace.total is not None else pace.tasks
        bar.ncols = columns
        tasks, *counted = self._facts(pace.rate())
        remaining = None if self._more else pace.seconds_left()
        facts = [*counted[1:], *([] if remaining is None else [f"{duration(remaining)} left"]), *counted[:1], tasks]
        while len(facts) > 1 and len(self._title) + len(", ".join(facts)) > columns - BAR_COLUMNS:
            facts.pop()
        bar.facts = ", ".join(facts)
        bar.refresh()

    def _facts(self, rate: float) -> list[str]:
        """Return tasks, documents, bytes, and their rate, in words; of a step that counts neither, its tasks alone."""
        pace, tasks = self.pace, f"{self.pace.tasks}/{self._tasks} {self._unit}"
        if pace.total is None and not (pace.documents or pace.bytes_done or self._more):
            return [tasks]
        return [
            tasks,
            amount(pace.documents, "document"),
            size_in_words(pace.bytes_done, pace.total),
            *(self._more() if self._more else [f"{rate / 1e6:.1f} MB/s"]),
        ]

    def _write(self, text: str) -> None:
        print(f"{self._title}: {text}", file=sys.stderr, flush=True)


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


def _bar(title: str, total: int) -> _Bar:
    from tqdm import tqdm

    class Bar(tqdm):  # type: ignore[type-arg]  # it is none of an iterable
        monitor_interval = 0  # a thread here draws it
        facts = ""

        @property
        def format_dict(self) -> MutableMapping[str, Any]:
            return {**super().format_dict, "facts": self.facts}

    return Bar(total=total, desc=title, bar_format=_BAR, file=sys.stderr, leave=False, ncols=_columns(), nrows=ROWS)
