"""Starting processes that work for this one, what they hold and how they share the cores, and their end with it."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Collection
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess

ONE_THREAD = {
    f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "NUMBA", "RAYON")
} | {"TOKENIZERS_PARALLELISM": "false"}
"""What keeps libraries from starting threads of their own: processes are what is parallel."""


def hold_standard_streams() -> set[int]:
    """Opens what the caller has closed of the standard streams, so that no file of ours gets their number; which.

    What is written to standard output then is an error still, what is written to standard error goes nowhere.
    """
    closed = set()
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
            closed.add(number)
    if 1 in closed:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if 2 in closed:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    return closed


def one_thread_each() -> None:
    """For this process and those that it begins, where the user has not said otherwise; before numpy is imported."""
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)


def begin_masked(process: BaseProcess) -> None:
    """Starts a process that gets no SIGINT: that is for the calling process, and what is blocked now stays so in it.

    SIGTERM waits, too, until the process is known here, or nobody would end it; in the process until it calls
    `die_with_parent`.
    """
    resource_tracker.ensure_running()  # the first start does so too, and would unblock both before the process begins
    masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, masked)


def die_with_parent() -> None:
    """In a process that works for another: ends it when that one does, however that ends, or by SIGTERM."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        with contextlib.suppress(OSError):
            wait([parent.sentinel])
        os._exit(1)


def resident_memory(pids: Collection[int]) -> dict[int, int]:
    """Bytes of memory that processes hold, each with all those that it has begun; needs ``/proc``.

    Pages that processes share count in each of them.
    """
    page = os.sysconf("SC_PAGE_SIZE")
    children: dict[int, list[int]] = {}
    held: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat") as stat:  # it may end meanwhile
                fields = stat.read().rpartition(")")[2].split()  # from the third on, as proc(5) counts them
                children.setdefault(int(fields[1]), []).append(int(name))
                held[int(name)] = int(fields[21]) * page
    found = {}
    for pid in pids:
        family = [pid]
        for each in family:
            family += children.get(each, [])
        found[pid] = sum(held.get(each, 0) for each in family)
    return found


def import_no_scripts() -> None:
    """Takes the folder of the console script from where modules are looked for.

    Python puts it there, in front of all others, and packages put scripts into it that have the names of modules:
    jsonpath-rw, which mlcroissant needs, a ``jsonpath.py``.
    """
    scripts = os.path.realpath(os.path.dirname(sys.executable))
    sys.path[:] = [path for path in sys.path if _whole(path) != scripts]


def _whole(path: str) -> str | None:
    """Return an entry of `sys.path` as a path that links and the working directory have no part in; None if it is none.

    A relative one is none where the working directory is gone: the command says that of itself, a moment later.
    """
    try:
        return os.path.realpath(path or ".")
    except OSError:
        return None
