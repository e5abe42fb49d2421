"""Waiting for events. What is bounded here ends at once when all is well, and on no machine because it is busy."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PATIENCE = 600.0
"""Seconds that nothing takes, however busy the machine is: what takes longer hangs."""

LOOK = 0.02


def wait_until(condition: Callable[[], object]) -> bool:
    """Wait for a condition; return whether it holds."""
    end = time.monotonic() + PATIENCE
    while not (holds := bool(condition())) and time.monotonic() < end:
        time.sleep(LOOK)
    return holds


def group_ended(group: int) -> bool:
    """Wait until no process of a group runs; return whether that came. Zombies, which nobody reaps here, have ended.

    SIGKILL is no end: a process may be in the kernel for a while yet, and what it holds counts as held.
    """

    def states() -> Iterator[str]:
        for path in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                state, _, of, *_ = path.read_text(errors="replace").rpartition(")")[2].split()
                if int(of) == group:
                    yield state

    return wait_until(lambda: {*states()} <= {*"ZX"})


@contextmanager
def explained(process: subprocess.Popen[Any]) -> Iterator[None]:
    """Let a command that hangs tell on standard error where it is, and end, if the ``with`` block fails."""
    try:
        yield
    except BaseException:
        if process.poll() is None:
            process.send_signal(signal.SIGABRT)
            process.wait()
        raise
