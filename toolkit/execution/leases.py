"""Keeps runs with different settings off the same files, by lease files.

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

import msgspec

from toolkit.errors import ConfigError, ToolkitError, Unreadable
from toolkit.interrupts import check as check_signals, pause
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


def _undeleted() -> set[str]:
    """Return the command's ended leases with a failed deletion."""
    return current().get_or_make("leases left", set[str])


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a lease file.

    Attributes:
        holds: Digest of the settings, for each leased thing; an empty one tolerates no other run.
        since: Start time, seconds since 1970 by its own clock, for people.
        owner: Process of the run.
        waits: True before the run may work, by the last renewal.
        run: Command and share, for people.
        doing: Current work, by the last renewal.
    """

    holds: dict[str, str]
    since: float
    owner: str
    waits: bool = False
    run: str = ""
    doing: dict[str, list[str]] = {}


class ActiveLease(msgspec.Struct, frozen=True):
    """A lease of a live run, with the seconds since its renewal."""

    path: str
    lease: Lease
    age: float


Doing = Callable[[], Mapping[str, Sequence[str]]]
"""Current work of a run: keys by stage."""


@contextmanager
def hold(folder: str, subject: str, holds: Mapping[str, str], run: str = "", doing: Doing = dict) -> Iterator[None]:
    """Hold a lease in the block, and delete it afterwards.

    Args:
        folder: Folder of the leases.
        subject: Name of the leased data, for the message.
        holds: Digest of the settings for each leased thing. Runs with the same digest work side by side; an empty
            digest tolerates no other run.
        run: Command, for people.
        doing: Function that returns the current work, called at each renewal.

    Raises:
        ConfigError: if another run works on it otherwise.
        ToolkitError: if the lease was lost and another run works on it since then.
    """
    own = _Own(folder, subject, dict(holds), run, doing)
    try:
        own.take()
        yield
        check_signals()
    finally:
        own.release()


def folder_in(bookkeeping: str) -> str:
    """Return the lease folder of a bookkeeping folder."""
    return join(bookkeeping, "leases")


def check(folder: str, subject: str, holds: Mapping[str, str]) -> None:
    """Compare leases of other runs with this run's parts; write nothing.

    Raises:
        ConfigError: if another run works on it otherwise.
    """
    own = _Own(folder, subject, dict(holds), "", dict)
    if rivals := [other for other in active(folder) if not other.lease.waits and own.contested(other)]:
        raise own.refusal(rivals)


class Waiting:
    """Prints a notice once, if a run waits for long."""

    def __init__(self) -> None:
        self._until = time.monotonic() + NOTICE_AFTER

    def tell(self, why: object) -> None:
        """Print the reason for waiting, if it is time."""
        if time.monotonic() >= self._until:
            self._until = math.inf
            print(f"waiting: {why}", file=sys.stderr)


class _Own:
    """The run's own lease, renewed by a thread; the run must end when it is lost."""

    def __init__(self, folder: str, subject: str, holds: dict[str, str], run: str, doing: Doing) -> None:
        self._folder = folder
        self._subject = subject
        self._lease = Lease(holds=holds, since=time.time(), owner=owner(), waits=True, run=run)
        self._doing = doing
        self._path = join(folder, f"{self._lease.owner}.{uuid.uuid4().hex}.json")
        self._writing = threading.Lock()
        self._ended = threading.Event()
        self._thread = Thread(target=self._renew, name="lease", daemon=True)

    def take(self) -> None:
        self._write()
        self._thread.start()
        rivals = met = self._conflicts()
        waiting = Waiting()
        while rivals:
            if any(not other.lease.waits or _order(other.path) < _order(self._path) for other in rivals):
                raise self.refusal(rivals)
            waiting.tell(self.refusal(rivals))
            pause(POLL_INTERVAL)
            rivals = self._conflicts()
        with self._writing:
            self._lease = msgspec.structs.replace(self._lease, waits=False)
        if met:  # else the first renewal is soon enough: it is a write for each run
            self._write()

    def release(self) -> None:
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join()
        current().fault = None
        try:
            remove(self._path)
        except Unreadable:  # it ends by itself; this run may lease the same again before
            _undeleted().add(self._path)

    def _write(self) -> None:
        now = {stage: list(keys) for stage, keys in self._doing().items() if keys}
        with self._writing:
            self._lease = msgspec.structs.replace(self._lease, doing=now)
            write_file(self._path, msgspec.json.encode(self._lease))

    def _conflicts(self) -> list[ActiveLease]:
        """Return the leases of conflicting runs."""
        return [other for other in active(self._folder, own=self._path) if self.contested(other)]

    def contested(self, other: ActiveLease) -> list[str]:
        """Return the common things of two runs with different settings."""
        ours, theirs = self._lease.holds, other.lease.holds
        return [name for name in sorted(ours.keys() & theirs.keys()) if not ours[name] or ours[name] != theirs[name]]

    def refusal(self, rivals: list[ActiveLease]) -> ConfigError:
        return ConfigError(
            f"{self._subject}: {self._conflict_text(rivals)}; wait for it, or {EXPIRES_AFTER:.0f} s if it was killed"
        )

    def _conflict_text(self, rivals: list[ActiveLease]) -> str:
        first, name = rivals[0].lease, self.contested(rivals[0])[0]
        otherwise = " with other settings" if self._lease.holds[name] and first.holds[name] else ""
        at = f" ({first.run})" if first.run else ""
        return f"expected no other run{otherwise} on {name}, got one that works on it now: {first.owner}{at}"

    def _renew(self) -> None:
        pause = 1.0
        while not self._ended.wait(pause):
            pause = min(RENEW_INTERVAL, 2 * pause)
            with suppress(ToolkitError, OSError):  # the next time, or the lease ends
                is_deleted = store_of(self._path).age(self._path) is None
                self._write()
                if is_deleted and (rivals := self._conflicts()):
                    current().fault = ToolkitError(
                        f"{self._subject}: this run's lease has expired (was the machine asleep?): "
                        f"{self._conflict_text(rivals)}; run again later"
                    )
                    return


def _order(path: str) -> str:
    """Return the random name of a lease."""
    return path.rsplit(".", 2)[-2]


def active(folder: str, *, own: str | None = None) -> list[ActiveLease]:
    """Return the leases of live runs.

    Args:
        folder: Folder of the leases.
        own: The caller's own lease, which is skipped; leases of dead runs are then deleted.

    Raises:
        DataError: for one that is damaged: nobody knows what its run works on.
        Unreadable: if it is not known which there are.
    """
    now = 0.0 if own is None else store_of(own).age(own) or 0.0  # another machine's clock may be another
    results = []
    for name in list_files(folder, hidden=True):
        path = join(folder, name)
        if path == own or path in _undeleted() or not name.endswith(".json"):
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
