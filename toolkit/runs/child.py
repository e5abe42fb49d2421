"""A process of ours that works for this one: how it begins, what is said, how it ends, and why it died.

this process: Child(serve, …) ──messages, pickled, over a pipe──> a new process: serve(connection, …)

There are three kinds of them: workers do tasks (`toolkit.runs.executors.local`), helpers compute parts of a shard
(`toolkit.runs.blocks`), and what may crash is called in a process of its own (`toolkit.runs.isolated`). All of them
hear no SIGINT, because the calling process decides what ends, and all end when that one does, however it ends.
"""

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from toolkit.data.excerpts import make_harmless
from toolkit.errors import ToolkitError
from toolkit.interrupts import Ended, raise_on_sigterm
from toolkit.runs import forkserver
from toolkit.runs.processes import one_thread_each, share_arenas
from toolkit.session import Part, Session, current

JOIN_SECONDS = 5
"""How long a process may take to end that has closed its pipe."""

STOP_TRIES = 3
STOP_SECONDS = 1.0

READY_SECONDS = 1.0

C = TypeVar("C", bound="Child")


class Died(Exception):
    """A process has ended; the message says how: ``was ended by SIGKILL``, ``ended with status 3``.

    Attributes:
        code: its exit status, or its signal as a negative number.
        cause: ``SIGKILL``, ``exit status 3``.
    """

    def __init__(self, code: int) -> None:
        self.code = code
        self.cause = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        super().__init__(f"was ended by {self.cause}" if code < 0 else f"ended with status {code}")


class Child:
    """A process that works for this one.

    Args:
        serve: a module-level function that runs in the process, with its end of the pipe and the arguments. It may let
            `EOFError` and `OSError` of the pipe pass, which end it.
        arguments: can be pickled.
        tidy: SIGTERM unwinds what the process does, so that temporary files are deleted, and the process may have
            children of its own; else SIGTERM ends it at once.
    """

    def __init__(self, serve: Callable[..., None], *arguments: Any, tidy: bool = False) -> None:
        self.connection, theirs = multiprocessing.Pipe()
        with theirs:
            part = current().part(here=True)
            self.process = forkserver.begun(_live, (theirs, tidy, part, serve, arguments), daemon=not tidy)

    def send(self, message: Any) -> None:
        """Send a message; that the process has died shows when an answer is awaited."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(message)

    def ask(self, argument: Any) -> "Answer":
        """Return what `answer_calls` answers in the process.

        Raises:
            Died: if the process ended before it did.
        """
        try:
            self.send(argument)
            answer: Answer = self.connection.recv()
        except (EOFError, OSError):  # half an answer is an OSError
            raise self.death() from None
        return answer

    def death(self) -> Died:
        """Return how the process has ended that has closed its pipe."""
        self.process.join(JOIN_SECONDS)
        self.process.kill()  # changes nothing if it is ending
        self.process.join()
        return Died(self.process.exitcode or 0)


def _live(
    connection: "Connection[Any, Any]", tidy: bool, part: Part, serve: Callable[..., None], arguments: Any
) -> None:
    """Run a process from its beginning to its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if tidy:
        raise_on_sigterm(Ended)
    else:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    one_thread_each()
    share_arenas()
    make_harmless()
    _die_with_parent()
    with (
        Session.of(part).bound(),
        contextlib.suppress(EOFError, OSError),  # the calling process has gone, or needs it no more
    ):
        serve(connection, *arguments)


def _die_with_parent() -> None:
    """End this process when the calling one ends, however that does, and by SIGTERM from now on."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    forkserver.wait_for_parent()
    os._exit(1)


# --- calls ------------------------------------------------------------------------------------------------------------


@dataclass
class Answer:
    """What became of a call: a value or an error, pickled by itself so that the caller is told what cannot be sent."""

    data: bytes
    is_error: bool = False
    cause: str = ""

    def value(self) -> Any:
        """Return the value, or raise the error."""
        found = pickle.loads(self.data)  # noqa: S301  # from a process of ours
        if not self.is_error:
            return found
        raise found from (_Remote(self.cause) if self.cause else None)


class _Remote(Exception):  # it is the cause of an error
    """A traceback in another process."""


def answer_calls(connection: "Connection[Any, Any]", make: Callable[[Any], Callable[[Any], Any]], work: Any) -> None:
    """Call a function with each argument that arrives, and send the answer; what a `Child` serves for `Child.ask`.

    Args:
        connection: to the calling process.
        make: gives the function; called once, with the first argument.
        work: what the function is made of.
    """
    function: Callable[[Any], Any] | None = None
    while True:
        argument = connection.recv()
        try:
            function = function or make(work)
            answer = Answer(pickle.dumps(function(argument), pickle.HIGHEST_PROTOCOL))
        except BaseException as error:  # native code panics with exceptions that are no Exception
            answer = failed(error)
        connection.send(answer)


def failed(error: BaseException) -> Answer:
    """Return the answer to a call that has raised an error."""
    if isinstance(error, StopIteration):
        error = not_the_end(error)
    cause = error if not isinstance(error, ToolkitError) else error.__cause__
    text = "".join(traceback.format_exception(cause)) if cause else ""
    try:
        data = pickle.dumps(error)
        pickle.loads(data)  # noqa: S301  # some classes can be sent and not be read
    except Exception:
        data = pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return Answer(data, is_error=True, cause=text)


def not_the_end(error: StopIteration) -> RuntimeError:
    """Return the error to raise for one of a function, which would end the iterator that calls it."""
    return RuntimeError(f"StopIteration: {error}")


# --- several of them --------------------------------------------------------------------------------------------------


def ready(children: Collection[C]) -> list[C]:
    """Return those that have sent something, or have ended, after a moment at most."""
    watched: dict[Any, C] = {}
    for child in children:
        watched[child.connection] = watched[child.process.sentinel] = child
    found = [watched[thing] for thing in wait(list(watched), timeout=READY_SECONDS)]
    return list(dict.fromkeys(found))


def kill(children: Collection[Child]) -> None:
    """End processes at once, whatever they do: they leave nothing behind."""
    for child in children:
        child.process.kill()
    for child in children:
        child.process.join()
        child.connection.close()


def stop(idle: Sequence[Child], busy: Sequence[Child]) -> None:
    """End processes: the idle by a word (None), the busy by SIGTERM, so that they delete their temporary files.

    A signal that meets the end of an interpreter makes it complain, so the idle get one only if the word did not help.
    Those that do not hear it are killed.
    """
    for child in idle:
        with contextlib.suppress(OSError):
            child.connection.send(None)
    for child in busy:
        child.process.terminate()
    everyone = [*idle, *busy]
    _join(everyone)
    for _ in range(STOP_TRIES):
        for child in everyone:
            if child.process.is_alive():
                child.process.terminate()
        _join(everyone)
    kill(everyone)


def _join(children: Collection[Child]) -> None:
    deadline = time.monotonic() + STOP_SECONDS
    for child in children:
        child.process.join(max(0.0, deadline - time.monotonic()))
