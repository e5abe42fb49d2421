"""Processes by names that tell afterwards whether they still run: of temporary files, and of leases."""

import functools
import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import suppress

MACHINE_IDS = ("/etc/machine-id", "/var/lib/dbus/machine-id")
"""Files that have the number of a machine, where there is one."""


@functools.lru_cache(1)
def _owner(pid: int) -> str:
    """Return machine, process id, and when it began: ids are used again."""
    return f"{machine()}.{pid}-{_began(pid) or 0}"


def owner() -> str:
    """Return the name of this process: ``<machine>.<process id>-<when it began>``."""
    return _owner(os.getpid())


def is_gone(name: str) -> bool:
    """Return whether an owner was a process of this machine that has ended."""
    found = re.fullmatch(r"([^.]+)\.(\d+)-(\d+)", name)
    return bool(found and found[1] == machine() and not is_running(int(found[2]), int(found[3])))


@functools.lru_cache(1)
def machine() -> str:
    """Return the name of this machine, as it stands in the names of processes.

    Others may be called the same: a node of another team's cluster that works on the same bucket, a container with its
    own process ids beside this one. So the name has a digest of what tells them apart, which a restart does not change
    but for containers.
    """
    name = os.uname().nodename.replace(".", "-")
    known = hashlib.sha256("\0".join(_marks()).encode()).hexdigest()[:8]
    return f"{name}-{known}"


def _marks() -> Iterator[str]:
    """Yield what else tells this machine from others, and the process ids here from those elsewhere."""
    for path in MACHINE_IDS:
        with suppress(OSError), open(path, encoding="ascii", errors="replace") as stream:
            yield stream.read().strip()
    with suppress(OSError):
        yield str(os.stat("/proc/self/ns/pid").st_ino)


def is_running(pid: int, began: int) -> bool:
    """Return whether a process of this machine, that began then, has not ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    now = _began(pid)
    return now is None or now == began


def _began(pid: int) -> int | None:
    """Return when a process began, in the kernel's ticks; 0 for one that has ended, None where that cannot be known."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            state, *rest = stream.read().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0 if os.path.isdir("/proc/self") else None
    except OSError:
        return None
    return 0 if state in "ZX" else int(rest[18])
