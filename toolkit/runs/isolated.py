"""A function that runs in a process of its own, so that what it does to that process costs one call.

For native code on input that nobody has vetted: it may crash, or take minutes for one page. The limit is on processor
time, which the kernel enforces on the child, so that a loaded machine does not decide what is too slow.
"""

import signal
from collections.abc import Callable
from typing import Any, Generic, Literal, Self, TypeVar, cast

from toolkit.errors import ToolkitError
from toolkit.runs.child import Child, Died, answer_calls, kill

P = TypeVar("P")
R = TypeVar("R")

WALL_FACTOR = 50
"""A child that waits for something is given up after so many times its limit, by the clock."""


class Lost(Exception):
    """A call that gave no result.

    Attributes:
        reason: ``timeout`` or ``crash``.
    """

    def __init__(self, reason: Literal["timeout", "crash"], message: str) -> None:
        super().__init__(message)
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.reason, str(self))


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
        self._child: Child | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def __call__(self, argument: P) -> R:
        """Return the function's result.

        Raises:
            Lost: if it took too long, raised an exception, or ended its process twice.
            ToolkitError: if the function raises one.
        """
        for _ in range(2):  # what has ended the child may have come from outside
            child = self._child or self._begin()
            try:
                return cast("R", child.ask((argument,)).value())
            except Died as died:
                self._end()
                if died.code in (-signal.SIGPROF, -signal.SIGALRM):
                    spent = f"{self._seconds:g} seconds of processor time"
                    raise Lost("timeout", f"expected a result, got none in {spent}") from None
                cause = died.cause
        raise Lost("crash", f"expected a result, got the end of its process ({cause})")

    def _begin(self) -> Child:
        child = self._child = Child(answer_calls, _limited, (self._make, self._seconds))
        try:
            child.ask(()).value()
        except BaseException as error:
            self._end()
            if isinstance(error, Died):
                raise ToolkitError(f"expected a process that can do its work, got one that {error}") from None
            raise
        return child

    def _end(self) -> None:
        child, self._child = self._child, None
        if child:
            kill([child])


def _limited(work: tuple[Callable[[], Callable[[Any], Any]], float]) -> Callable[[tuple[Any, ...]], Any]:
    """Return a function that calls another one within its limit; without an argument it only shows that it is there."""
    make, seconds = work
    try:
        function = make()
    except ToolkitError:
        raise
    except BaseException as error:  # panics of Rust code are no Exception
        raise ToolkitError(f"expected a function, got {type(error).__name__}: {error}") from None
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def call(given: tuple[Any, ...]) -> Any:
        _limit(seconds if given else 0)
        try:
            return function(*given) if given else None
        except ToolkitError:
            raise
        except BaseException as error:
            raise Lost("crash", f"expected a result, got {type(error).__name__}: {error}") from None
        finally:
            _limit(0)

    return call


def _limit(seconds: float) -> None:
    """Let the kernel end this process after so much processor time; with 0, no more."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, WALL_FACTOR * seconds)
