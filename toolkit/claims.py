"""Claims: a run that works on an output says so, and another run with other settings is told.

A claim is a small file in a folder, one for each run, rewritten while the run lives. A run writes its own, then looks
at those of others: of two that begin at once both see each other, and the one that began later gives way. A claim that
has not been rewritten for `LEASE` seconds, by the clock of the store, is that of a run which was killed.
"""

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import msgspec

from toolkit.errors import ConfigError, ToolkitError
from toolkit.paths import join, list_files, remove
from toolkit.stores import store_of
from toolkit.stores.local import is_gone, owner
from toolkit.streams import write_file

LEASE = 120.0
"""Seconds after which a claim that is not renewed has ended."""

RENEWED = 20.0
"""Seconds between two renewals."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What a run says.

    Attributes:
        digest: of its settings; empty if it tolerates no other run.
        since: when it began, seconds since 1970 by its own clock.
        owner: its process.
    """

    digest: str
    since: float
    owner: str


@contextmanager
def claimed(folder: str, what: str, digest: str = "") -> Iterator[None]:
    """Holds a claim; deletes it at the end.

    Args:
        folder: of the claims.
        what: is worked on, for the message.
        digest: of the settings; runs with the same one work side by side. Without one no other run may work on it.

    Raises:
        ConfigError: if another run works on it.
    """
    claim = Claim(digest=digest, since=time.time(), owner=owner())
    path = join(folder, f"{claim.owner}.{uuid.uuid4().hex}.json")
    ended = threading.Event()
    data = msgspec.json.encode(claim)

    def renew() -> None:
        while not ended.wait(RENEWED):
            with suppress(ToolkitError, OSError):  # the next time, or the lease ends
                write_file(path, data)

    write_file(path, data)
    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        for other, theirs in _others(folder, path):
            if theirs.digest == digest and digest:
                continue
            if (theirs.since, other) < (claim.since, path):
                raise ConfigError(
                    f"{what}: expected no other run with other settings on it, one is working on it: {theirs.owner}; "
                    f"wait for it, or {LEASE:.0f} s if it was killed"
                )
        yield
    finally:
        ended.set()
        thread.join()
        remove(path)


def _others(folder: str, own: str) -> Iterator[tuple[str, Claim]]:
    for name in list_files(folder, hidden=True):
        path = join(folder, name)
        if path == own or not name.endswith(".json"):
            continue
        age = store_of(path).age(path)
        try:
            found = msgspec.json.decode(store_of(path).read(path), type=Claim)
        except (FileNotFoundError, msgspec.DecodeError):
            continue
        if age is None or age > LEASE or is_gone(found.owner):
            remove(path)
            continue
        yield path, found
