"""Running tasks somewhere: the contract that all executors keep.

A task is idempotent and may run twice, even at once. The function is a module-level function (workers find it by
name), its payload can be pickled. An error is a value of the result, so that no task stops another.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

P = TypeVar("P")
R = TypeVar("R")

Report = Callable[[int, int], None]
"""Called by a running task with documents and bytes done since the last call."""

Begun = Callable[[str], None]
"""Called in the calling process with the name of a task that is given away to be done; again when it is retried."""


@dataclass(frozen=True)
class Task(Generic[P]):
    """Something to do.

    Attributes:
        name: for messages; each once in a run.
        key: in records; each once in a run, too.
        payload: what the function gets.
        size: roughly how much work it is; the largest are begun first, so that no core is left with one at the end.
        processes: that the task itself keeps busy.
    """

    name: str
    payload: P
    size: int = 0
    processes: int = 1
    key: str = ""


@dataclass(frozen=True)
class Failure:
    """Why a task failed.

    Attributes:
        message: for the user.
        exit_code: that the command should end with.
        details: traceback, for those who debug a tagger of their own; empty where the message says it all.
    """

    message: str
    exit_code: int = 1
    details: str = ""


@dataclass(frozen=True)
class Result(Generic[R]):
    """What became of a task: a value, or a failure."""

    name: str
    value: R | None = None
    failure: Failure | None = None


def unheard(name: str) -> None:
    """Is told that a task has begun, and does nothing."""


class Executor(Protocol):
    """Runs tasks; results come in any order, each once."""

    def run(
        self, function: Callable[[P, Report], R], tasks: Iterable[Task[P]], *, at_once: int | None = None
    ) -> Iterator[Result[R]]:
        """Closing the iterator early stops what is running; temporary files of it are deleted.

        Args:
            function: of the payloads.
            tasks: to run.
            at_once: at most so many, if not as many as the executor can.
        """
        ...


_frozen: list[bool] = []


def attempt(function: Callable[[P, Report], R], task: Task[P], report: Report) -> Result[Any]:
    """Runs one task, and makes a value of its error."""
    import gc
    import traceback

    if not _frozen:
        gc.freeze()  # modules and settings stay: looking at them again and again takes 5 % of the time
        _frozen.append(True)

    from toolkit.errors import ToolkitError

    try:
        return Result(task.name, value=function(task.payload, report))
    except ToolkitError as error:
        cause = "".join(traceback.format_exception(error.__cause__)) if error.__cause__ else ""
        return Result(task.name, failure=Failure(str(error), error.exit_code, cause))
    except OSError as error:
        return Result(task.name, failure=Failure(f"{task.name}: {error}", details=traceback.format_exc()))
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except MemoryError:
        message = f"{task.name}: expected enough memory, got none; use fewer processes, or lower `max_document_bytes`"
        return Result(task.name, failure=Failure(message, details=traceback.format_exc()))
    except BaseException as error:  # native code panics with exceptions that are no Exception
        message = f"{task.name}: {type(error).__name__}: {error}"
        return Result(task.name, failure=Failure(message, details=traceback.format_exc()))
