"""The state of one command: two commands in one process, or two calls from Python in two threads, share none of it.

a command, a call, a `Dataset`: Session() ──bound──> `current()` in all that it calls, and in its threads
  ├── `part(here=True)` ──> its processes on this machine (`toolkit.execution.pool`)
  └── `part()`, in the function of each task (`InSession`) ──> elsewhere ──> `TaskAnswer`: the hosts that answered there

What a module keeps for a command (stores, record logs, listings) it keeps by `Session.get_or_make`, or by `cached`.
"""

import functools
import os
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, ParamSpec, Self, TypeVar, cast

import msgspec

from toolkit.storage_options import DEFAULTS, StorageOptions

T = TypeVar("T")
P = TypeVar("P")
A = TypeVar("A")
R = TypeVar("R")
Q = ParamSpec("Q")


class Part(msgspec.Struct, frozen=True):
    """The part of a session for tasks elsewhere. It has no repr, because addresses have secrets.

    Attributes:
        roots: Roots by path, device and inode, for processes of the same machine; see `toolkit.storage.store`.
        scratch: Path of the folder for ephemeral records, for processes of the same machine.
        root: Base folder of relative paths in the configuration; empty without one.
    """

    id: str
    options: StorageOptions
    addresses: Mapping[str, str]
    hosts: frozenset[str]
    stage: str
    roots: Mapping[str, tuple[int, int]] = {}
    scratch: str = ""
    root: str = ""

    __repr__ = object.__repr__


class Session:
    """The state of one command.

    Attributes:
        id: Name, shared with its processes.
        addresses: Whole addresses with their secrets, by their redacted form; see `toolkit.storage.addresses`.
        inputs: whole addresses of single inputs, which do not travel: each task has its own.
        hosts: Hosts that have answered; see `toolkit.storage.retrying`.
        roots: Folders that existed at its start; see `toolkit.storage.store`.
        columns: Text and id columns of external files, if the user names them; see `toolkit.interop.external_rows`.
        scratch: Path of the folder for ephemeral records of this run; see `toolkit.storage.ephemeral`.
        apart: Folder for ephemeral records of one task; empty if records are kept.
        stores: Stores by scheme; see `toolkit.storage.store_of`.
        has_remote_stores: True if a store is not local: an answer takes the time of a request.
        stage: name of the stage in which record logs are read once; empty between commands.
        root: Base folder of relative paths in the configuration; see `toolkit.config.root`.
        fault: Error that ends the command; see `toolkit.interrupts.check`.
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
        """Start a stage with fresh record logs, or return to one; return the one before."""
        before, self.stage = self.stage, os.urandom(16).hex() if stage is None else stage
        return before

    def learn(self, part: Part) -> None:
        """Take over the command's later knowledge in this process."""
        self.hosts |= part.hosts
        self.stage = part.stage

    @property
    def options(self) -> StorageOptions:
        """Return the storage options; stores are made anew when they change."""
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
        """Yield from an iterator; each step runs in this session."""
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
        """Return the object of a key; the first call makes it."""
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
    """Return the current session; outside of any command a new one with defaults, kept for this context."""
    try:
        return _current.get()
    except LookupError:
        _current.set(session := Session())
        return session


class Cached(Generic[Q, T]):
    """A function with a cache in each session."""

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
    """Return a decorator to cache a function's last results during a command."""
    return lambda function: Cached(function, size)


def cached_last(function: Callable[[T], R]) -> Callable[[T], R]:
    """Return a function with its last result in each session.

    Arguments are compared by identity: those of very many shards have one object in common.
    """

    @functools.wraps(function)
    def cached_function(argument: T) -> R:
        last: list[tuple[T, R]] = current().get_or_make((cached_last, function), list)
        for before, result in last[:1]:
            if before is argument:
                return result
        result = function(argument)
        last[:] = [(argument, result)]
        return result

    return cached_function


class TaskAnswer(msgspec.Struct, Generic[T], frozen=True):
    """The value of a task, and the reachable hosts."""

    value: T
    hosts: frozenset[str]


class InSession(msgspec.Struct, Generic[P, A, T], frozen=True):
    """The function of tasks, in the session of their command.

    A process of another machine makes the session with its first task, and keeps it for those that follow.
    """

    part: Part
    function: Callable[[P, A], T]

    def __call__(self, payload: P, report: A) -> TaskAnswer[T]:
        session = current()
        if session.id == self.part.id:
            session.learn(self.part)
        else:
            inputs = session.inputs  # with that of the task, which unpickling it has registered
            _current.set(session := Session.of(self.part))
            session.inputs.update(inputs)
        value = self.function(payload, report)
        return TaskAnswer(value, frozenset(session.hosts - self.part.hosts))
