"""The state of one command: two commands in one process, or two calls from Python in two threads, share none of it.

a command, a call, a `Dataset`: Session() ──bound──> `current()` in all that it calls, and in its threads
  ├── `part(here=True)` ──> its processes on this machine (`toolkit.execution.pool`)
  └── `part()`, in the function of each task (`InSession`) ──> any machine ──> `Answer`: the hosts that answered there

What a module keeps for a command (stores, record logs, listings) it keeps by `Session.get_or_make`, or by `cached`.
"""

import functools
import os
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic, ParamSpec, Self, TypeVar, cast

from toolkit.storage_options import DEFAULTS, StorageOptions

T = TypeVar("T")
P = TypeVar("P")
A = TypeVar("A")
Q = ParamSpec("Q")


@dataclass(frozen=True, slots=True, repr=False)
class Part:
    """The part of a session that travels; without a repr, because addresses have secrets.

    Attributes:
        roots: Roots by path, device and inode, for processes of the same machine; see `toolkit.storage.store`.
        scratch: path of the folder for what is kept apart, for processes of the same machine.
        root: folder that relative paths of the configuration are below; empty without one.
    """

    id: str
    options: StorageOptions
    addresses: Mapping[str, str]
    hosts: frozenset[str]
    stage: str
    roots: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    scratch: str = ""
    root: str = ""


class Session:
    """The state of one command.

    Attributes:
        id: its name, which its processes have, too.
        addresses: whole addresses with their secrets, by what is shown of them; see `toolkit.storage.addresses`.
        inputs: whole addresses of single inputs, which do not travel: each task has its own.
        hosts: those that have answered; see `toolkit.storage.retrying`.
        roots: folders that were there when it began; see `toolkit.storage.store`.
        columns: text and id of external files, where the user names them; see `toolkit.interop.foreign`.
        scratch: path of the folder for what is kept apart in this run; see `toolkit.storage.ephemeral`.
        apart: folder for what is kept apart in one task; empty where records are kept.
        stores: the stores made so far, by scheme; see `toolkit.storage.store_of`.
        has_remote_stores: True if a store is not local: an answer takes the time of a request.
        stage: name of the stage in which record logs are read once; empty between commands.
        root: folder that relative paths of the configuration are below; see `toolkit.config.root`.
        fault: why the command must end; see `toolkit.interrupts.check`.
    """

    def __init__(self, options: StorageOptions | None = None) -> None:
        self.id = os.urandom(16).hex()
        self._options = options or DEFAULTS
        self.addresses: dict[str, str] = {}
        self.inputs: dict[str, str] = {}
        self.hosts: set[str] = set()
        self.roots: dict[str, tuple[int, int]] = {}
        self.columns: tuple[str | None, str | None] = (None, None)
        self.has_remote_stores = False
        self.scratch = self.apart = self.stage = self.root = ""
        self.stores: dict[str, Any] = {}
        self.fault: BaseException | None = None
        self._objects: dict[Hashable, Any] = {}

    @classmethod
    def of(cls, part: Part) -> Self:
        """Return the session of a command in another process of it."""
        session = cls(part.options)
        session.id, session.scratch, session.root = part.id, part.scratch, part.root
        session.addresses.update(part.addresses)
        session.roots.update(part.roots)
        session.learn(part)
        return session

    def part(self, *, here: bool = False) -> Part:
        """Return the part for a process of the command; with `here`, for one of this machine."""
        roots, scratch = (dict(self.roots), self.scratch) if here else ({}, "")
        return Part(
            self.id, self.options, dict(self.addresses), frozenset(self.hosts), self.stage, roots, scratch, self.root
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return Session.of, (self.part(),)

    def begin(self, stage: str | None = None) -> str:
        """Begin a stage, in which record logs are read anew, or go back to one; return the one before."""
        before, self.stage = self.stage, os.urandom(16).hex() if stage is None else stage
        return before

    def learn(self, part: Part) -> None:
        """Take over what the command has learnt since this process began."""
        self.hosts |= part.hosts
        self.stage = part.stage

    @property
    def options(self) -> StorageOptions:
        """Return the options by which remote files are reached; stores are made anew when they change."""
        return self._options

    @options.setter
    def options(self, options: StorageOptions) -> None:
        if options != self._options:
            self._options, self.stores = options, {}

    @contextmanager
    def bound(self) -> Iterator[Self]:
        """Make this session the current one of the ``with`` block."""
        token = _current.set(self)
        try:
            yield self
        finally:
            _current.reset(token)

    def steps(self, rows: Iterator[T]) -> Iterator[T]:
        """Yield from an iterator, each of whose steps runs in this session, whoever asks for it."""
        end = object()
        try:
            while True:
                with self.bound():
                    row = next(rows, end)
                if row is end:
                    return
                yield cast("T", row)
        finally:
            with self.bound():
                getattr(rows, "close", lambda: None)()

    def get_or_make(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the object of a key, made when the session is first asked for it."""
        objects = self._objects
        return cast("T", objects[key] if key in objects else objects.setdefault(key, make()))

    def drop(self, key: Hashable) -> None:
        """Forget the object of a key."""
        self._objects.pop(key, None)

    def warn(self, message: str) -> None:
        """Print a message on standard error, once in a session."""
        printed = self.get_or_make("told", set[str])
        if message not in printed:
            printed.add(message)
            print(message, file=sys.stderr)


_current: ContextVar[Session] = ContextVar("session")


def current() -> Session:
    """Return the session of what runs here; outside of any command a new one with defaults, kept for this context."""
    try:
        return _current.get()
    except LookupError:
        _current.set(session := Session())
        return session


class Cached(Generic[Q, T]):
    """A function whose last results are kept in each session by itself."""

    def __init__(self, function: Callable[Q, T], size: int) -> None:
        functools.update_wrapper(self, function)
        self._function, self._size = function, size

    def __call__(self, *arguments: Q.args, **options: Q.kwargs) -> T:
        cache = current().get_or_make(self, lambda: functools.lru_cache(self._size)(self._function))
        return cache(*arguments, **options)  # type: ignore[arg-type]  # which is why they can be hashed

    def cache_clear(self) -> None:
        """Forget the results of the current session."""
        current().drop(self)


def cached(size: int) -> Callable[[Callable[Q, T]], Cached[Q, T]]:
    """Return a decorator that keeps the last results of a function, so many of them, for the length of a command."""
    return lambda function: Cached(function, size)


@dataclass(frozen=True)
class Answer(Generic[T]):
    """The value of a task, and the hosts that answered where it was done."""

    value: T
    hosts: frozenset[str]


@dataclass(frozen=True)
class InSession(Generic[P, A, T]):
    """The function of tasks, in the session of their command, wherever it is called.

    A process of another machine makes the session with its first task, and keeps it for those that follow.
    """

    part: Part
    function: Callable[[P, A], T]

    def __call__(self, payload: P, report: A) -> Answer[T]:
        session = current()
        if session.id == self.part.id:
            session.learn(self.part)
        else:
            _current.set(session := Session.of(self.part))
        value = self.function(payload, report)
        return Answer(value, frozenset(session.hosts - self.part.hosts))
