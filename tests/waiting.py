"""Waiting for events. What is bounded here ends at once when all is well, and on no machine because it is busy."""

import time
from collections.abc import Callable

PATIENCE = 600.0
"""Seconds that nothing takes, however busy the machine is: what takes longer hangs."""

LOOK = 0.02


def wait_until(condition: Callable[[], object]) -> bool:
    """Wait for a condition; return whether it holds."""
    end = time.monotonic() + PATIENCE
    while not (holds := bool(condition())) and time.monotonic() < end:
        time.sleep(LOOK)
    return holds
