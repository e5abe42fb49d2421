"""Leases: a run says what it works on, and another run with other settings is told.

A lease is a small file in a folder, one for each run, rewritten while the run lives. A run writes one that waits, looks
at those of others, and then holds:

- one that holds is met: the run is told;
- none is met: whoever comes later sees the run's own;
- others that wait are met: one of them goes on, by the random names of their leases. It waits until the others have
  given way, or hold, because they may have looked before it wrote.

So no clock decides who was first. A lease that has not been rewritten for `EXPIRES_AFTER` seconds, by the clock of the
store, is that of a run which was killed; a run whose lease was deleted meanwhile, say because its machine slept, ends.
"""

import math
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import msgspec

from toolkit.errors import ConfigError, ToolkitError, Unreadable
from toolkit.interrupts import check as check_signals
from toolkit.interrupts import pause
from toolkit.session import current
from toolkit.storage import store_of
from toolkit.storage.json_files import load_strictly
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join, list_files, remove
from toolkit.storage.stores.local.scratch import is_gone, owner
from toolkit.storage.threads import Thread

EXPIRES_AFTER = 120.0
"""Seconds after which a lease that is not renewed has ended."""

RENEW_INTERVAL = 20.0
"""Seconds between two renewals; the first ones come sooner, so that others soon see what the run is at."""

POLL_INTERVAL = 0.2
"""Seconds between two looks at others that wait."""

NOTICE_AFTER = 5.0
"""Seconds after which a run that waits for another says so."""


def _left() -> set[str]:
    """Return the leases of the command that it does not hold any more, and could not delete."""
    return current().kept("leases left", set[str])


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a lease.

    Attributes:
        holds: the digest of its settings, for each thing that it works on; an empty one tolerates no other run.
        since: when it began, seconds since 1970 by its own clock, for people.
        owner: its process.
        waits: it does not work yet, by the time of the last renewal.
        run: the command, and its share, for people.
        doing: what it is at, by the time of the last renewal.
    """

    holds: dict[str, str]
    since: float
    owner: str
    waits: bool = False
    run: str = ""
    doing: dict[str, list[str]] = {}


@dataclass(frozen=True)
class ActiveLease:
    """A lease that is alive, and the seconds since its run last said so."""

    path: str
    lease: Lease
    age: float


Doing = Callable[[], Mapping[str, Sequence[str]]]
"""Current work of a run: keys by stage."""


@contextmanager
def hold(folder: str, what: str, holds: Mapping[str, str], run: str = "", doing: Doing = dict) -> Iterator[None]:
    """Hold a lease while the ``with`` block runs, and delete it at its end.

    Args:
        folder: Folder of the leases.
        what: is worked on, for the message.
        holds: a digest of the settings for each thing that is worked on. Runs with the same digest work on it side by
            side; where it is empty, no other run may.
        run: the command, for people.
        doing: is asked at each renewal.

    Raises:
        ConfigError: if another run works on it otherwise.
        ToolkitError: if the lease was lost and another run works on it since then.
    """
    own = _Own(folder, what, dict(holds), run, doing)
    try:
        own.take()
        yield
        check_signals()
    finally:
        own.release()


def folder_in(bookkeeping: str) -> str:
    """Return the folder of the leases of a dataset or an output, by the folder of its records."""
    return join(bookkeeping, "leases")


def check(folder: str, what: str, holds: Mapping[str, str]) -> None:
    """Check, before a run begins, that no other run holds what it will hold later; write nothing.

    Raises:
        ConfigError: if another run works on it otherwise.
    """
    own = _Own(folder, what, dict(holds), "", dict)
    own.check(active(folder))


class Waiting:
    """Tells on standard error for whom a run waits, once, if that takes a while."""

    def __init__(self) -> None:
        self._until = time.monotonic() + NOTICE_AFTER

    def tell(self, why: object) -> None:
        """Say why it waits, if it is time."""
        if time.monotonic() >= self._until:
            self._until = math.inf
            print(f"waiting: {why}", file=sys.stderr)


class _Own:
    """A run's own lease, renewed by a thread; the run must end when it is lost."""

    def __init__(self, folder: str, what: str, holds: dict[str, str], run: str, doing: Doing) -> None:
        self._folder = folder
        self._what = what
        self._lease = Lease(holds=holds, since=time.time(), owner=owner(), waits=True, run=run)
        self._doing = doing
        self._path = join(folder, f"{self._lease.owner}.{uuid.uuid4().hex}.json")
        self._writing = threading.Lock()
        self._ended = threading.Event()
        self._thread = Thread(target=self._renew, name="lease", daemon=True)

    def take(self) -> None:
        self._write()
        self._thread.start()
        others = met = self._others()
        waiting = Waiting()
        while others:
            if self._gives_way_to(others):
                raise self._refused(others)
            waiting.tell(self._refused(others))
            pause(POLL_INTERVAL)
            others = self._others()
        with self._writing:
            self._lease = msgspec.structs.replace(self._lease, waits=False)
        if met:  # else the first renewal is soon enough: it is a write for each run
            self._write()

    def check(self, active_leases: list[ActiveLease]) -> None:
        if others := [other for other in active_leases if not other.lease.waits and self._contested(other)]:
            raise self._refused(others)

    def release(self) -> None:
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()
        current().fault = None
        try:
            remove(self._path)
        except Unreadable:  # it ends by itself; this run may lease the same again before
            _left().add(self._path)

    def _write(self) -> None:
        now = {stage: list(keys) for stage, keys in self._doing().items() if keys}
        with self._writing:
            self._lease = msgspec.structs.replace(self._lease, doing=now)
            write_file(self._path, msgspec.json.encode(self._lease))

    def _others(self) -> list[ActiveLease]:
        """Return the leases whose runs cannot go on beside this one."""
        return [other for other in active(self._folder, own=self._path) if self._contested(other)]

    def _contested(self, other: ActiveLease) -> list[str]:
        """Return what both runs work on with different settings."""
        ours, theirs = self._lease.holds, other.lease.holds
        return [name for name in sorted(ours.keys() & theirs.keys()) if not ours[name] or ours[name] != theirs[name]]

    def _gives_way_to(self, others: list[ActiveLease]) -> bool:
        return any(not other.lease.waits or _order(other.path) < _order(self._path) for other in others)

    def _refused(self, others: list[ActiveLease]) -> ConfigError:
        return ConfigError(f"{self._what}: {self._met(others)}; wait for it, or {EXPIRES_AFTER:.0f} s if it was killed")

    def _met(self, others: list[ActiveLease]) -> str:
        first, name = others[0].lease, self._contested(others[0])[0]
        otherwise = " with other settings" if self._lease.holds[name] and first.holds[name] else ""
        at = f" ({first.run})" if first.run else ""
        return f"expected no other run{otherwise} on {name}, got one that works on it now: {first.owner}{at}"

    def _renew(self) -> None:
        pause = 1.0
        while not self._ended.wait(pause):
            pause = min(RENEW_INTERVAL, 2 * pause)
            with suppress(ToolkitError, OSError):  # the next time, or the lease ends
                gone = store_of(self._path).age(self._path) is None
                self._write()
                if gone and (others := self._others()):
                    current().fault = ToolkitError(
                        f"{self._what}: this run's lease has expired (was the machine asleep?): {self._met(others)}; "
                        "run again later"
                    )
                    return


def _order(path: str) -> str:
    """Return the random name of a lease."""
    return path.rsplit(".", 2)[-2]


def active(folder: str, *, own: str | None = None) -> list[ActiveLease]:
    """Return the leases of runs that are alive.

    Args:
        folder: Folder of the leases.
        own: the caller's own lease. It is not among them; those of runs that are not alive are then deleted.

    Raises:
        DataError: for one that is damaged: nobody knows what its run works on.
        Unreadable: if it is not known which there are.
    """
    now = 0.0 if own is None else store_of(own).age(own) or 0.0  # another machine's clock may be another
    results = []
    for name in list_files(folder, hidden=True):
        path = join(folder, name)
        if path == own or path in _left() or not name.endswith(".json"):
            continue
        age = store_of(path).age(path)
        if age is None:
            continue
        ended = age - now > EXPIRES_AFTER
        lease = None if ended else load_strictly(path, Lease, "if no run works here, delete it")
        if lease and not is_gone(lease.owner):
            results.append(ActiveLease(path, lease, age - now))
        elif own is not None and (ended or lease):
            remove(path)
    return results
