"""Sets up the process before the command line is imported: UTF-8 mode, and a clean exit on signals.

This module is imported before all others of ours, and imports next to nothing. What is interrupted is half a second of
imports, of which nothing stays; libraries that are interrupted there have crashed.
"""

import gc
import os
import signal
import sys
from types import FrameType

from toolkit.distribution import COMMANDS

OBJECTS = 20_000
"""Allocations between garbage collections. Python's default, 700, is reached after a few dozen documents; collecting
that often cost 3 % of a run."""

SAID = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}


def is_program() -> bool:
    """Return True if this process is the command line. It is a console script, or ``python -m toolkit``."""
    first, arguments = (getattr(sys, "argv", None) or [""])[0], sys.orig_argv
    if first == "-m":  # as long as Python looks for the module
        return ("-m", "toolkit") in zip(arguments, arguments[1:], strict=False)  # noqa: RUF007  # nothing more is imported
    # what is begun by `multiprocessing` has only the first
    return os.path.basename(first) in COMMANDS and first in arguments


def use_utf8() -> None:
    """Restart Python in UTF-8 mode, if the locale has another encoding.

    There, names of files would be other texts, so that ids that are made of them would be other ones; output would be
    no JSON in UTF-8, or an error at the first letter that the encoding lacks.
    """
    if sys.getfilesystemencoding() != "utf-8" and not sys.flags.utf8_mode:
        environment = {**os.environ, "PYTHONUTF8": "1"}  # for the processes that this one begins
        same_program = [sys.executable, "-X", "utf8", *sys.orig_argv[1:]]
        os.execve(sys.executable, same_program, environment)  # noqa: S606


def end_by_signals() -> None:
    """Let SIGINT and SIGTERM end the process at once. Ignored signals, and other handlers, stay."""
    for number in SAID:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end)


def collect_garbage() -> None:
    """Start the garbage collector for new objects."""
    gc.freeze()
    gc.enable()


def _end(number: int, frame: FrameType | None) -> None:
    try:
        os.write(2, f"{SAID[signal.Signals(number)]}; no work had started\n".encode())
    finally:
        os._exit(128 + number)


if is_program():
    use_utf8()
    end_by_signals()
    gc.disable()  # next to nothing of what imports make is garbage
    gc.set_threshold(OBJECTS, *gc.get_threshold()[1:])
