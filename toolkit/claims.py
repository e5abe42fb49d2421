"""Claims: a run says what it works on, and another run with other settings is told.

A claim is a small file in a folder, one for each run, rewritten while the run lives. A run writes its own, then looks
at those of others: of two that begin at once both see each other, and the one that began later gives way. A claim that
has not been rewritten for `LEASE` seconds, by the clock of the store, is that of a run which was killed.
"""

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import msgspec

from toolkit.errors import ConfigError, ToolkitError
from toolkit.paths import join, list_files, remove
from toolkit.stores import store_of
from toolkit.stores.local import is_gone, owner
from toolkit.streams import write_file

LEASE = 120.0
"""Seconds after which a claim that is not renewed has ended."""

RENEWED = 20.0
"""Seconds between two renewals; the first ones come sooner, so that others soon see what the run is at."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What a run says.

    Attributes:
        holds: the digest of its settings, for each thing that it works on; an empty one tolerates no other run.
        since: when it began, seconds since 1970 by its own clock.
        owner: its process.
        run: the command, and its share, for people.
        doing: what it is at, by the time of the last renewal.
    """

    holds: dict[str, str]
    since: float
    owner: str
    run: str = ""
    doing: dict[str, list[str]] = {}


@dataclass(frozen=True)
class Held:
    """A claim that is alive, and the seconds since its run last said so."""

    path: str
    claim: Claim
    age: float


Doing = Callable[[], Mapping[str, Sequence[str]]]
"""What a run is at now: the keys of what it works on, by stage."""


@contextmanager
def claimed(folder: str, what: str, holds: Mapping[str, str], run: str = "", doing: Doing = dict) -> Iterator[None]:
    """Holds a claim; deletes it at the end.

    Args:
        folder: of the claims.
        what: is worked on, for the message.
        holds: a digest of the settings for each thing that is worked on. Runs with the same digest work on it side by
            side; where it is empty, no other run may.
        run: the command, for people.
        doing: is asked at each renewal.

    Raises:
        ConfigError: if another run works on it otherwise.
    """
    own, since = owner(), time.time()
    path = join(folder, f"{own}.{uuid.uuid4().hex}.json")
    ended = threading.Event()

    def write() -> None:
        now = {stage: list(keys) for stage, keys in doing().items() if keys}
        claim = Claim(holds=dict(holds), since=since, owner=own, run=run, doing=now)
        write_file(path, msgspec.json.encode(claim))

    def renew() -> None:
        pause = 1.0
        while not ended.wait(pause):
            pause = min(RENEWED, 2 * pause)
            with suppress(ToolkitError, OSError):  # the next time, or the lease ends
                write()

    thread = threading.Thread(target=renew, daemon=True)
    try:
        write()
        thread.start()
        for other in held(folder, clean=True):
            theirs = other.claim
            if other.path == path or (since, path) < (theirs.since, other.path):
                continue
            for name in sorted(holds.keys() & theirs.holds.keys()):
                if not holds[name] or holds[name] != theirs.holds[name]:
                    at = f" ({theirs.run})" if theirs.run else ""
                    raise ConfigError(
                        f"{what}: expected no other run with other settings on {name}, one is working on it: "
                        f"{theirs.owner}{at}; wait for it, or {LEASE:.0f} s if it was killed"
                    )
        yield
    finally:
        ended.set()
        try:
            if thread.ident is not None:
                thread.join()
            remove(path)
        except KeyboardInterrupt:  # a signal has come just now
            remove(path)
            raise


def held(folder: str, *, clean: bool = False) -> list[Held]:
    """The claims of runs that are alive.

    Args:
        folder: of the claims.
        clean: whether those of runs that are not are deleted.
    """
    found = []
    for name in list_files(folder, hidden=True):
        path = join(folder, name)
        if not name.endswith(".json"):
            continue
        age = store_of(path).age(path)
        try:
            claim = msgspec.json.decode(store_of(path).read(path), type=Claim)
        except (FileNotFoundError, msgspec.DecodeError):
            continue
        if age is not None and age <= LEASE and not is_gone(claim.owner):
            found.append(Held(path, claim, age))
        elif clean:
            remove(path)
    return found
