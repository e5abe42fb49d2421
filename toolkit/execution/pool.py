"""Runs calls in processes: each is pickled, done, and answered; a death costs one call.

    Pool.give(call) ──its argument──> pipe ──> a process: function(argument) ──answer──> pipe ──> Pool.receive()

Tasks (`toolkit.execution.executors.local`), blocks of a shard (`toolkit.execution.blocks`) and what may crash
(`Isolated`) are calls. A process may have calls ahead of the one that it works on: as many as its pipe holds, so that
sending never waits for it. Limits are the kernel's. Processes hear no SIGINT, because the calling one decides what
ends, and they end when that one does, however it ends.
"""

import contextlib
import fcntl
import pickle
import resource
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from io import BytesIO
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, Literal, NamedTuple, Self, TypeVar, cast

from toolkit.data.excerpts import make_harmless
from toolkit.errors import ToolkitError
from toolkit.execution import forkserver
from toolkit.execution.processes import one_thread_each, set_up_malloc
from toolkit.interrupts import AWAKE, Ended, check, note_signals
from toolkit.session import Part, Session, current

P = TypeVar("P")
R = TypeVar("R")

AHEAD = 3
"""Blocks that a process has at a time: it works on one, and the others wait for it."""

PIPE = 1 << 20
"""Bytes that a pipe is to hold: a block and its result pass at once. Where the system gives less, fewer wait in it."""

MARGIN = 1 << 14
"""Bytes of a pipe that may stay unused, because a message begins a page."""

END_SECONDS = 3.0
"""Seconds that a process has to end before it is killed."""

Tell = Callable[[Any], None]
"""Sends news of a call, before its answer."""

Make = Callable[[Any, Tell], Callable[[Any], Any]]
"""Gives the function of a process, of what `Pool` was given as `work`; called once, with its first call."""


class Died(Exception):
    """A process has ended; the message tells the cause: ``was ended by SIGKILL``, ``ended with status 3``.

    Attributes:
        cause: ``SIGKILL``, ``exit status 3``.
        by_signal: True if a signal has ended it.
        is_late: True if a call took longer than it may.
        had_function: False if it ended before its function was made.
    """

    def __init__(self, code: int, had_function: bool) -> None:
        self.cause = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        self.by_signal = code < 0
        self.is_late = code in (-signal.SIGPROF, -signal.SIGALRM)
        self.had_function = had_function
        super().__init__(f"was ended by {self.cause}" if code < 0 else f"ended with status {code}")


class Limits(NamedTuple):
    """Limits of a process, enforced by the kernel.

    Attributes:
        cpu: Seconds of processor time of a call.
        wall: Seconds of a call by the clock.
        memory: Bytes of memory.
    """

    cpu: float = 0
    wall: float = 0
    memory: int | None = None

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of a function within the limits of a call."""
        timers = [(signal.ITIMER_PROF, self.cpu), (signal.ITIMER_REAL, self.wall)] if self.cpu or self.wall else []
        try:
            for timer, seconds in timers:
                signal.setitimer(timer, seconds)
            return function(*arguments)
        finally:
            for timer, _ in timers:
                signal.setitimer(timer, 0)

    def bound(self) -> None:
        """Bound this process: memory in use counts, addresses without memory do not."""
        if self.cpu or self.wall:
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        if self.memory is not None:
            with open("/proc/self/status") as status:
                now = {line.split()[0]: int(line.split()[1]) << 10 for line in status if line.startswith("Vm")}
            most = max(self.memory - now["VmRSS:"], 0) + now["VmData:"]
            resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))


class Call:
    """A call and its result.

    Args:
        argument: Argument of the function; can be pickled.

    Attributes:
        is_done: True if there is a result, or an error.
        deaths: Number of processes that have ended during it.
    """

    def __init__(self, argument: Any) -> None:
        self.argument = argument
        self.is_done, self.deaths = False, 0
        self._result: Any = None
        self._error: BaseException | None = None

    def begun(self) -> None:
        """Note the start; again after a process has died."""

    def update(self, news: Any) -> None:
        """Take an update."""

    def answered(self, result: Any) -> None:
        self._result, self.is_done, self.argument = result, True, None

    def failed(self, error: BaseException) -> None:
        self._error, self.is_done, self.argument = error, True, None

    def died(self, died: Died) -> None:
        """Note the death of its process. One death may have a cause outside, two may not."""
        self.deaths += 1
        if died.is_late or self.deaths > 1:
            self.failed(died)

    def result(self) -> Any:
        """Return the result, or raise the error: that of the function, or `Died`."""
        if self._error:
            raise self._error
        return self._result


class Pool:
    """Processes, begun when there is a call for them. A context manager, which ends them, whatever they do.

    Args:
        make: Function that returns the function of a process. A module-level function, or a class.
        work: Argument of `make`.
        processes: Largest number of processes.
        limits: Limits of each process.
        ahead: Largest number of calls of a process.
        recycle: calls after which a process is replaced.
        tidy: SIGTERM unwinds what a process does, so that temporary files are deleted, and it may have processes of
            its own; else it leaves nothing behind and is killed.
    """

    def __init__(
        self,
        make: Make,
        work: Any,
        processes: int,
        *,
        limits: Limits = Limits(),  # noqa: B008  # it is a tuple
        ahead: int = 1,
        recycle: int | None = None,
        tidy: bool = False,
    ) -> None:
        self._begin: Callable[[], _WorkerProcess] = lambda: _WorkerProcess(
            make, work, limits, recycle, tidy=tidy, wide=ahead > 1
        )
        self._processes, self._ahead, self._tidy = processes, ahead, tidy
        self._all: list[_WorkerProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        processes, self._all = self._all, []
        for process in processes if self._tidy else ():
            process.leave() if not process.calls else process.process.terminate()
        deadline = time.monotonic() + (END_SECONDS if self._tidy else 0)
        for process in processes:
            process.process.join(max(0, deadline - time.monotonic()))
        for process in processes:
            process.kill()

    @property
    def has_room(self) -> bool:
        """Return True if a process takes another call."""
        return len(self._all) < self._processes or any(len(process.calls) < self._ahead for process in self._all)

    def give(self, call: Call) -> None:
        """Give a call to the least busy or a new process."""
        for dead in [process for process in self._all if not (process.calls or process.process.is_alive())]:
            self._all.remove(dead)
            dead.kill()
        process = min(self._all, key=lambda item: len(item.calls), default=None)
        if process is None or (process.calls and len(self._all) < self._processes):
            self._all.append(process := self._begin())
        process.give(call)

    def receive(self, seconds: float | None = None) -> None:
        """Receive answers.

        Args:
            seconds: Longest time to wait for an answer; None for as long as it takes.

        Raises:
            KeyboardInterrupt: if a signal has come that ends this process.
        """
        busy = {
            thing: process
            for process in self._all
            if process.calls
            for thing in (process.answers, process.process.sentinel)
        }
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            check()
            timeout = AWAKE if end is None else min(AWAKE, max(0, end - time.monotonic()))
            ready = wait(list(busy), timeout) if busy else []
            if ready or not busy or (end is not None and time.monotonic() >= end):
                break
        for process in dict.fromkeys(busy[thing] for thing in ready):  # type: ignore[index]  # they are ours
            if died := process.receive():
                self._all.remove(process)
                process.calls[0].died(died)
                for call in [call for call in process.calls if not call.is_done]:
                    self.give(call)
            elif process.calls_left is not None and process.calls_left <= 0 and not process.calls:
                self._all.remove(process)
                process.leave()
                process.process.join(END_SECONDS)
                process.kill()


class _WorkerProcess:
    """A process, and its calls, in order."""

    def __init__(self, make: Make, work: Any, limits: Limits, recycle: int | None, *, tidy: bool, wide: bool) -> None:
        theirs, self._requests = Pipe(duplex=False)
        self.answers, answers = Pipe(duplex=False)
        self._room = min(map(_widened, (self._requests, answers))) - MARGIN if wide else 0
        with theirs, answers:
            arguments = (theirs, answers, tidy, current().part(here=True), limits, (make, work))
            self.process = forkserver.begun(_live, arguments, daemon=not tidy)
        self.calls: deque[Call] = deque()
        self._unsent: deque[bytes] = deque()
        self._ahead: deque[int] = deque()  # bytes of those that were sent and have no answer
        self.calls_left = recycle
        self._has_function = False

    def give(self, call: Call) -> None:
        call.begun()
        try:
            self._unsent.append(pickle.dumps((call.argument,), pickle.HIGHEST_PROTOCOL))
        except Exception as error:  # it cannot be pickled
            call.failed(error)
            return
        self.calls.append(call)
        self._send()

    def _send(self) -> None:
        """Send calls as far as the pipe has room; larger ones wait for an idle process."""
        while self._unsent and (
            not self._ahead or sum(self._ahead) - self._ahead[0] + len(self._unsent[0]) <= self._room
        ):
            self._ahead.append(len(self._unsent[0]))
            with contextlib.suppress(OSError):  # that it has died shows when an answer is awaited
                self._requests.send_bytes(self._unsent.popleft())

    def receive(self) -> Died | None:
        """Receive one message; return the death of the process, if it has ended."""
        try:
            if not self.answers.poll():  # what it has begun may hold the other end of the pipe
                return self._death()
            message = self.answers.recv_bytes()
        except (EOFError, OSError):  # half an answer is an OSError
            return self._death()
        kind, data = message[0], memoryview(message)[1:]
        if kind == _HAS_FUNCTION:
            self._has_function = True
            return None
        try:
            value = pickle.loads(data)  # noqa: S301  # from a process of ours
        except BaseException as error:
            kind, value = _ERROR, _Raised(error)
        if kind == _NEWS:
            self.calls[0].update(value)
            return None
        self._ahead.popleft()
        self.calls_left = None if self.calls_left is None else self.calls_left - 1
        call = self.calls.popleft()
        self._send()
        call.answered(value) if kind == _RESULT else call.failed(value.error())
        return None

    def leave(self) -> None:
        """Tell an idle process to end."""
        with contextlib.suppress(OSError):
            self._requests.send(None)

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self._requests.close()
        self.answers.close()

    def _death(self) -> Died:
        self.process.join(END_SECONDS)
        self.kill()  # changes nothing if it was ending
        return Died(self.process.exitcode or 0, self._has_function)


def _widened(pipe: "Connection[Any, Any]") -> int:
    """Enlarge a pipe, if the system can; return its size."""
    with contextlib.suppress(AttributeError, OSError):
        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIPE)
    with contextlib.suppress(AttributeError, OSError):
        return fcntl.fcntl(pipe.fileno(), fcntl.F_GETPIPE_SZ)
    return MARGIN


# --- in the process ---------------------------------------------------------------------------------------------------

_RESULT, _ERROR, _NEWS, _HAS_FUNCTION = b"vent"


def _live(
    requests: "Connection[Any, Any]",
    answers: "Connection[Any, Any]",
    tidy: bool,
    part: Part,
    limits: Limits,
    made_of: tuple[Make, Any],
) -> None:
    """Run a process from start to end: do calls until told to leave."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if tidy:
        note_signals(Ended, sigint=False)
    else:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    one_thread_each()
    set_up_malloc()
    make_harmless()
    threading.Thread(target=forkserver.end_with_parent, daemon=True).start()
    limits.bound()

    def send(kind: int, value: Any) -> None:
        file = BytesIO(bytes([kind]))
        file.seek(1)
        pickle.dump(value, file, pickle.HIGHEST_PROTOCOL)
        answers.send_bytes(file.getbuffer())

    make, work = made_of
    function: Callable[[Any], Any] | None = None
    with (
        Session.of(part).bound(),
        contextlib.suppress(EOFError, OSError),  # the calling process has gone, or needs it no more
    ):
        while request := requests.recv():
            try:
                if function is None:
                    function = make(work, lambda news: send(_NEWS, news))
                    send(_HAS_FUNCTION, None)
                send(_RESULT, limits.call(function, *request))
            except Ended:
                raise
            except BaseException as error:  # native code panics with exceptions that are no Exception
                send(_ERROR, _Raised(error))


class _Raised:
    """An error of a call, pickled separately. So a failure to pickle is reported."""

    data: bytes
    cause: str

    def __init__(self, error: BaseException) -> None:
        if isinstance(error, StopIteration):
            error = not_the_end(error)
        cause = error if not isinstance(error, ToolkitError) else error.__cause__
        self.cause = "".join(traceback.format_exception(cause)) if cause else ""
        try:
            self.data = pickle.dumps(error)
            pickle.loads(self.data)  # noqa: S301  # some classes can be sent and not be read
        except Exception:
            self.data = pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))

    def error(self) -> BaseException:
        result: BaseException = pickle.loads(self.data)  # noqa: S301
        if self.cause:
            result.__cause__ = _Remote(self.cause)
        return result


class _Remote(Exception):  # it is the cause of an error
    """A traceback in another process."""


def not_the_end(error: StopIteration) -> RuntimeError:
    """Return an error in place of StopIteration. That would end the caller's iterator."""
    return RuntimeError(f"StopIteration: {error}")


# --- what may crash ---------------------------------------------------------------------------------------------------

WALL_FACTOR = 50
"""A process that waits for something is given up after so many times its limit, by the clock."""


class Lost(Exception):
    """A call without a result.

    Attributes:
        reason: ``timeout`` or ``crash``.
    """

    def __init__(self, reason: Literal["timeout", "crash"], message: str) -> None:
        super().__init__(message)
        self.reason = reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.reason, str(self))


class Isolated(Generic[P, R]):
    """Calls a function in a separate process.

    A crash costs one call. For native code on input that nobody has vetted: it may crash, or take minutes for one page.
    The limit is on processor time, so that a loaded machine does not decide what is too slow. A context manager; the
    process starts with the first call and again after it has died.

    Args:
        make: Function that returns the function, in the process; its time (imports, models) does not count.
        seconds: Seconds of processor time for a call.
    """

    def __init__(self, make: Callable[[], Callable[[P], R]], seconds: float) -> None:
        self._seconds = seconds
        self._pool = Pool(_isolated, make, 1, limits=Limits(seconds, WALL_FACTOR * seconds))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.__exit__()

    def __call__(self, argument: P) -> R:
        """Return the function's result.

        Raises:
            Lost: if it took too long, raised an exception, or ended its process twice.
            ToolkitError: if the function raises one, or cannot be made.
        """
        self._pool.give(call := Call(argument))
        try:
            while not call.is_done:
                self._pool.receive()
            return cast("R", call.result())
        except Died as died:
            if not died.had_function:
                raise ToolkitError(f"expected a process that can do its work, got one that {died}") from None
            if died.is_late:
                spent = f"{self._seconds:g} seconds of processor time"
                raise Lost("timeout", f"expected a result, got none in {spent}") from None
            raise Lost("crash", f"expected a result, got the end of its process ({died.cause})") from None
        except BaseException:
            if not call.is_done:  # interrupted: its answer would be taken for that to the next call
                self._pool.__exit__()
            raise


def _isolated(make: Callable[[], Callable[[P], R]], tell: Tell) -> Callable[[P], R]:
    try:
        function = make()
    except ToolkitError:
        raise
    except BaseException as error:  # panics of Rust code are no Exception
        raise ToolkitError(f"expected a function, got {type(error).__name__}: {error}") from None

    def call(argument: P) -> R:
        try:
            return function(argument)
        except ToolkitError:
            raise
        except BaseException as error:
            raise Lost("crash", f"expected a result, got {type(error).__name__}: {error}") from None

    return call
