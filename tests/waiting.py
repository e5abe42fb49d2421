"""Waiting for events. What is bounded here ends at once when all is well, and on no machine because it is busy."""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
