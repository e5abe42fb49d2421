"""What runs on a node of a cluster: does a task there as the calling process would."""

import contextlib
import os
import pickle
import socket
from collections.abc import Callable
from typing import Any, NamedTuple

from toolkit import distribution
from toolkit.distribution import NAME
from toolkit.execution.executors import Report, Task, attempt, packed
from toolkit.execution.lifeline import Address, held

CARRIED = ("AWS_", "AZURE_", "GOOGLE_", "HF_", "STORAGE_EMULATOR_HOST", "TOOLKIT_CACHE")
"""Environment variables that begin so are the calling process's in every task: libraries read their credentials there.

The state of the command is in the tasks (`toolkit.session.InSession`)."""


class Caller(NamedTuple):
    """What a task takes over from the calling process."""

    version: str
    folder: str
    environment: dict[str, str]
    line: Address | None = None
    token: bytes = b""


class Unfit(NamedTuple):
    """Why a node cannot do any task."""

    reason: str


class Returned(NamedTuple):
    """What a node did: the result, pickled by `packed`, and what was reported."""

    result: bytes
    documents: int = 0
    bytes: int = 0


def version() -> str:
    """Return the version that is installed here."""
    return distribution.version()


def caller(line: Address | None = None) -> Caller:
    """Return what tasks take over from this process; they hold on to `line` while they run. `token` is a task's own."""
    carried = {name: value for name, value in os.environ.items() if name.startswith(CARRIED)}
    return Caller(version(), os.getcwd(), carried, line)


def work(given: Caller, pickled: bytes) -> bytes:
    """Do a task.

    Args:
        given: from whom it comes.
        pickled: the function and the task.

    Returns:
        `Returned` or `Unfit`, pickled.
    """
    with held(given.line, given.token) if given.line else contextlib.nullcontext() as tell:
        return pickle.dumps(_unfitness(given) or _done(pickled, tell))


def _unfitness(given: Caller) -> Unfit | None:
    """Make this process like the calling one; return why that is impossible, None if it was possible."""
    here = socket.gethostname()
    if version() != given.version:
        return Unfit(f"expected {NAME} {given.version} on every node, got {version()} on {here}; install the same")
    try:
        os.chdir(given.folder)
    except OSError as error:
        return Unfit(
            f"expected the working directory {given.folder} on every node, got on {here}: {error.strerror}; "
            "run in a folder that all nodes share"
        )
    for prefix in CARRIED:  # half of the one's credentials and half of the other's are none
        if any(name.startswith(prefix) for name in given.environment):
            for name in [name for name in os.environ if name.startswith(prefix)]:
                del os.environ[name]
    os.environ.update(given.environment)
    return None


def _done(pickled: bytes, tell: Report | None) -> Returned | Unfit:
    try:
        loaded: tuple[Callable[[Any, Report], Any], Task[Any]] = pickle.loads(pickled)  # noqa: S301  # from the caller
    except Exception as error:
        here, problem = socket.gethostname(), f"{type(error).__name__}: {error}"
        return Unfit(f"expected the Python modules of the calling process on every node, got on {here}: {problem}")
    function, task = loaded
    documents = size = 0

    def report(more: int, longer: int) -> None:
        nonlocal documents, size
        documents, size = documents + more, size + longer
        if tell:
            tell(more, longer)

    result = packed(attempt(function, task, report))
    return Returned(result, documents, size)
