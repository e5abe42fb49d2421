"""Running tasks somewhere: the contract that all executors keep. Each is a module here, named as in ``executor:``.

A task is idempotent and may run twice, even at once. The function is a module-level function (workers find it by
name), its payload can be pickled. An error is a value of the result, so that no task stops another.

An executor for a cluster finds in `toolkit.execution.node` what runs on the other machines.
"""

import atexit
import gc
import pickle
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.errors import MissingExtra, ToolkitError
from toolkit.interrupts import Ended, check
from toolkit.session import current

P = TypeVar("P")
R = TypeVar("R")

Report = Callable[[int, int], None]
"""Called by a running task with what is done since the last call: documents, and bytes of its input as stored."""


class Sending:
    """Sums up the reports of a task, and sends them in intervals.

    Args:
        send: Function that takes documents and bytes.
        seconds: Time between two calls of it, at least.
    """

    def __init__(self, send: Report, seconds: float) -> None:
        self._send, self._seconds = send, seconds
        self._documents = self._bytes = 0
        self._last = time.monotonic()

    def __call__(self, documents: int, size: int) -> None:
        self._documents += documents
        self._bytes += size
        if time.monotonic() - self._last >= self._seconds:
            self.flush()

    def flush(self) -> None:
        """Send pending reports."""
        self._send(self._documents, self._bytes)
        self._documents = self._bytes = 0
        self._last = time.monotonic()


Begun = Callable[[str], None]
"""Called in the calling process with the name of a task that is given away to be done; again when it is retried."""


CanStart = Callable[["Task[Any]", bool], bool]
"""Asked in the calling process before a task is given away, and whether others are running: False if it must wait."""


class TaskOutcome(Protocol):
    """The outcome of a task."""

    @property
    def documents(self) -> int:
        """Return how many documents it was about."""


class Task(msgspec.Struct, Generic[P], frozen=True):
    """Something to do.

    Attributes:
        name: Name for messages; unique in a run.
        key: Key in records; unique in a run.
        payload: Argument of the function.
        size: Stored bytes of its input; None if unknown. The largest tasks start first, so that no core is left with
            one at the end.
        processes: Processes that the task itself keeps busy.
        outcome: Result that needs no work: then no executor gets the task.
    """

    name: str
    payload: P
    size: int | None = None
    processes: int = 1
    key: str = ""
    outcome: TaskOutcome | None = None


Run = Callable[[str, Callable[[Any, Report], Any], list[Task[Any]]], list[Any]]
"""Runs tasks, of which a step is told what they do; returns their values in order."""


class Failure(msgspec.Struct, frozen=True):
    """Why a task failed.

    Attributes:
        message: Message for the user.
        details: Traceback, for authors of taggers; empty if the message is enough.
    """

    message: str
    details: str = ""


class Result(msgspec.Struct, Generic[R], frozen=True):
    """The outcome of a task: a value, or a failure.

    Attributes:
        reported: Bytes of its input that it has processed; fewer than all if it had nothing to do.
    """

    name: str
    value: R | None = None
    failure: Failure | None = None
    reported: int = 0


def largest_first(tasks: Iterable[Task[P]]) -> list[Task[P]]:
    """Return tasks in start order; those of unknown size last, as they come."""
    return sorted(tasks, key=lambda task: -(task.size or 0))


def always_start(task: Task[Any], running: bool) -> bool:
    """Admit a task."""
    return True


def ignore_start(name: str) -> None:
    """Default start callback: do nothing."""


class Executor:
    """Runs tasks. A context manager, which may keep its processes from one `run` to the next.

    Args:
        report: Function that receives the reports of tasks.
        begun: Function to call with the name of each task that is submitted.
        processes: Number of processes at a time on this machine.
        settings: Settings of the class's `Settings`; None for their defaults.

    Attributes:
        Settings: Struct of its options in ``executor:``.
        can_start: Function that decides whether a task may start; after a refusal it is called again when another has
            ended, and about once a second. It may raise an error that ends the run.
    """

    Settings: ClassVar[type[ConfigStruct]] = ConfigStruct
    settings: ConfigStruct

    def __init__(
        self, report: Report, begun: Begun = ignore_start, *, processes: int = 1, settings: ConfigStruct | None = None
    ) -> None:
        self.report = report
        self.begun = begun
        self.can_start: CanStart = always_start
        self.processes = processes
        self.settings = self.Settings() if settings is None else settings

    def check(self) -> None:
        """Raise MissingExtra if a package is missing; called before anything is written."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the kept processes."""

    @property
    def cores(self) -> tuple[int, int]:
        """The number of processes: at a time, and for one task."""
        return 1, 1

    def fitting(self, tasks: int) -> "Executor":
        """Return the executor for so many tasks: this one, or a simpler one."""
        return self

    def run(
        self, function: Callable[[P, Report], R], tasks: Iterable[Task[P]], *, at_once: int | None = None
    ) -> Iterator[Result[R]]:
        """Yield the results, in any order, each once.

        Closing the iterator early stops what is running; temporary files of it are deleted.

        Args:
            function: Function of the payloads.
            tasks: Tasks to run.
            at_once: Largest number of tasks at a time, if not as many as the executor can.
        """
        raise NotImplementedError


def run_task(
    function: Callable[[P, Report], R], task: Task[P], report: Report, *, memory: int | None = None
) -> Result[Any]:
    """Return the result of a task; an error becomes a failure.

    Args:
        function: Function of the task.
        task: Task to run.
        report: Function to call with progress.
        memory: Memory limit of this process in bytes, for the message of a task that needs more.
    """
    if not (frozen := current().get_or_make("frozen", list[bool])):
        gc.freeze()  # modules and settings stay: looking at them again and again takes 5 % of the time
        atexit.unregister(gc.unfreeze)
        atexit.register(gc.unfreeze)  # at the end modules go, too; some, such as DuckDB's, complain if they cannot
        frozen.append(True)
    reported = 0

    def counted(documents: int, size: int) -> None:
        nonlocal reported
        reported += size
        report(documents, size)
        check()

    try:
        value, failure = function(task.payload, counted), None
    except BaseException as error:
        value, failure = None, failure_of(error, task.name, memory)
    check()
    return Result(task.name, value, failure, reported)


def failure_of(error: BaseException, name: str, memory: int | None = None) -> Failure:
    """Return the failure for a caught error; raise errors that end the process.

    Args:
        error: Error of a task; native code panics with exceptions that are no `Exception`, and plugins call `sys.exit`.
        name: Name of the task.
        memory: Memory limit, see `run_task`.
    """
    if isinstance(error, KeyboardInterrupt | Ended | GeneratorExit):
        raise error
    if isinstance(error, ToolkitError):
        cause = "".join(traceback.format_exception(error.__cause__)) if error.__cause__ else ""
        return Failure(f"{name}: {error}" if isinstance(error, MissingExtra) else str(error), cause)
    message = f"{type(error).__name__}: {error}"
    if isinstance(error, OSError):
        message = str(error)
    elif isinstance(error, MemoryError):
        message = "expected enough memory, got none; use fewer processes, or lower `max_document_bytes`"
        if memory:
            message = (
                f"it needs more than the {memory / 1e6:,.0f} MB of executor.memory; raise the limit, with fewer "
                "processes if need be, and run again"
            )
    return Failure(f"{name}: {message}", details="".join(traceback.format_exception(error)))


@contextmanager
def gc_unfrozen() -> Iterator[None]:
    """Undo a freeze of the garbage collector after the block."""
    frozen = gc.get_freeze_count()
    try:
        yield
    finally:
        if gc.get_freeze_count() > frozen:
            gc.unfreeze()


def pickle_result(result: Result[Any]) -> bytes:
    """Return a result, pickled; if that is impossible, a failure."""
    try:
        return pickle.dumps(result)
    except Exception as error:
        problem = f"expected a result that can be sent, got {type(error).__name__}: {error}"
        failure = Failure(f"{result.name}: {problem}")
        return pickle.dumps(Result(result.name, failure=failure, reported=result.reported))
