"""Starting processes that work for this one, and their end with it."""

import contextlib
import multiprocessing
import os
import signal
import threading
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess


def begin_masked(process: BaseProcess) -> None:
    """Starts a process that gets no SIGINT: that is for the calling process, and what is blocked now stays so in it."""
    resource_tracker.ensure_running()  # the first start does so too, and would unblock SIGINT before the process begins
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)


def die_with_parent() -> None:
    """In a process that works for another: ends it when that one does, however that ends."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        with contextlib.suppress(OSError):
            wait([parent.sentinel])
        os._exit(1)
