"""A function that runs in a process of its own, so that what it does to that process costs one call.

For native code on input that nobody has vetted: it may crash, or take minutes for one page. The limit is on processor
time, which the kernel enforces on the child, so that a loaded machine does not decide what is too slow.
"""

import contextlib
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar, cast

from toolkit.errors import ToolkitError

P = TypeVar("P")
R = TypeVar("R")

WALL_FACTOR = 50
"""A child that waits for something is given up after so many times its limit, by the clock."""
JOIN_SECONDS = 5


class Lost(Exception):
    """A call that gave no result.

    Attributes:
        reason: ``timeout`` or ``crash``.
    """

    def __init__(self, reason: Literal["timeout", "crash"], message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Isolated(Generic[P, R]):
    """Calls a function in a child process, which is begun with the first call and again after it has died.

    A context manager. The child ends with it, and with this process, however that ends.

    Args:
        make: gives the function, in the child; its time (imports, models) is not counted.
        cpu_seconds: of processor time for a call.
    """

    def __init__(self, make: Callable[[], Callable[[P], R]], cpu_seconds: float) -> None:
        self._make = make
        self._seconds = cpu_seconds
        self._process: BaseProcess | None = None
        self._connection: Connection[Any, Any]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._end(kill=kind is not None)

    def __call__(self, argument: P) -> R:
        """The function's result.

        Raises:
            Lost: if it took too long, raised an exception, or ended its process twice.
            ToolkitError: if the function raises one.
        """
        try:
            return self._call(argument)
        except Lost as lost:
            if lost.reason == "timeout" or self._process:
                raise
        return self._call(argument)  # what has ended the child may have come from outside

    def _call(self, argument: P) -> R:
        if self._process is None:
            self._begin()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it died; that is seen below
            self._connection.send(argument)
        state, value = self._answer()
        if state == "failed":
            raise Lost("crash", value)
        if state == "error":
            raise value
        return cast("R", value)

    def _begin(self) -> None:
        import multiprocessing

        from toolkit.runs.processes import begin_masked

        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs, self._make, self._seconds), daemon=True)
        begin_masked(process)
        theirs.close()
        self._process = process
        try:
            state, value = self._answer()
        except Lost as lost:
            raise ToolkitError(f"expected a process that can do its work, got one that ended: {lost}") from None
        if state == "done":
            return
        self._end(kill=True)
        raise value if state == "error" else ToolkitError(value)

    def _answer(self) -> tuple[str, Any]:
        with contextlib.suppress(EOFError, ConnectionResetError):
            return cast("tuple[str, Any]", self._connection.recv())
        process = self._process
        assert process
        process.join()
        code = process.exitcode
        self._end(kill=True)
        if code in (-signal.SIGPROF, -signal.SIGALRM):
            raise Lost("timeout", f"expected a result, got none in {self._seconds:g} seconds of processor time")
        raise Lost("crash", f"expected a result, got the end of its process ({_cause(code)})")

    def _end(self, *, kill: bool) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        self._connection.close()
        if kill:
            process.kill()
        process.join(JOIN_SECONDS)
        if process.exitcode is None:
            process.kill()
            process.join()
        process.close()


def _cause(code: int | None) -> str:
    if code is not None and code < 0:
        return signal.Signals(-code).name
    return f"exit status {code}"


def _work(connection: "Connection[Any, Any]", make: Callable[[], Callable[[Any], Any]], seconds: float) -> None:
    from toolkit.runs.processes import die_with_parent

    die_with_parent()
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    function: Any = None
    while True:
        try:
            if function is None:
                function, result = make(), None
            else:
                argument = connection.recv()
                _limit(seconds)
                result = function(argument)
            state, value = "done", result
        except EOFError:
            return
        except ToolkitError as error:
            state, value = "error", error
        except BaseException as error:  # panics of Rust code are no Exception
            state, value = "failed", f"expected a result, got {type(error).__name__}: {error}"
        _limit(0)
        connection.send((state, value))
        if function is None:
            return


def _limit(seconds: float) -> None:
    """Lets the kernel end this process after so much processor time; with 0, no more."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, WALL_FACTOR * seconds)
