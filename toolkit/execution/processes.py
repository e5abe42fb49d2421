"""Set up a process: its streams, its memory, its threads, its modules."""

import contextlib
import os
import sys

ONE_THREAD = {
    f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "NUMBA", "RAYON")
} | {"TOKENIZERS_PARALLELISM": "false"}
"""Environment that keeps libraries from starting threads: processes are the parallelism."""

is_program = False
"""Whether this process is the command line, and nobody else's: what it holds is known, so that it can be forked."""


def hold_standard_streams() -> set[int]:
    """Reopen closed standard streams; return their numbers.

    So no file gets these. Writing to a closed standard output stays an error; text for a closed standard error is
    dropped.
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


_MALLOC = {"ARENA_MAX": (-8, 1), "TRIM_THRESHOLD_": (-1, 1 << 25), "MMAP_THRESHOLD_": (-3, 1 << 25)}
"""Options of glibc's ``mallopt`` by their names in the environment: numbers of ``malloc.h``, and values."""


def one_thread_each() -> None:
    """Limit libraries to one thread, here and in child processes.

    Settings of the user stay. To be called before numpy is imported.
    """
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)


def set_up_malloc() -> None:
    """Share one malloc arena, and keep 32 MB of freed memory.

    Settings of the user stay. With an arena for each thread, memory that a thread has freed serves no other: a fifth of
    the memory of plans over very many shards, whose records several threads read. A block of rows takes some arrays of
    1 MB. If their memory went back to the system after each block, as glibc does by itself, the next block would get
    new pages, which took a quarter of the CPU of reading and decoding texts alone. Allocators of other systems stay as
    they are.
    """
    import ctypes

    with contextlib.suppress(AttributeError, OSError):
        for name, option in _MALLOC.items():
            if f"MALLOC_{name}" not in os.environ:
                ctypes.CDLL(None).mallopt(*option)


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def import_no_scripts() -> None:
    """Remove the folder of the console script from the module path.

    Python puts it in front of all others, and packages put scripts there that have the names of modules: jsonpath-rw,
    which mlcroissant needs, a ``jsonpath.py``.
    """
    scripts = os.path.realpath(os.path.dirname(sys.executable))
    sys.path[:] = [path for path in sys.path if _whole(path) != scripts]


def _whole(path: str) -> str | None:
    """Return an entry of `sys.path` without links, absolute; None if that is impossible.

    A relative one is None if the working directory is gone: the command reports that itself, a moment later.
    """
    try:
        return os.path.realpath(path or ".")
    except OSError:
        return None
