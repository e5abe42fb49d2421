"""SIGTERM as an interruption: schedulers send it some time before they kill."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType

STATUS = 128 + signal.SIGTERM
"""The exit status of a process that SIGTERM has ended."""

AGAIN = 0.1
"""Seconds after which a signal is sent again whose exception was lost."""


AWAKE = 0.2
"""Seconds between two looks of a waiting thread at whether the process ends."""


class Terminated(KeyboardInterrupt):
    """SIGTERM has come; it ends a run as Ctrl-C does."""


class Ended(SystemExit):
    """SIGTERM has come to a process that works for another."""

    def __init__(self) -> None:
        super().__init__(STATUS)


_has_come = threading.Event()
_interrupted = threading.Event()
_interrupting = threading.Event()  # by `interrupt`, until it is heard


def is_terminated() -> bool:
    """Return whether SIGTERM has come; native code may have made a plain `KeyboardInterrupt` of it."""
    return _has_come.is_set()


def is_ending() -> bool:
    """Return whether a signal has come that ends this process: nothing is waited for any more."""
    return _has_come.is_set() or _interrupted.is_set()


def pause(seconds: float) -> None:
    """Wait; a thread beside the main one wakes when a signal ends the process, which raises only in the main one."""
    if threading.current_thread() is threading.main_thread():
        time.sleep(seconds)
        return
    end = time.monotonic() + seconds
    while not is_ending() and (left := end - time.monotonic()) > 0:
        _interrupted.wait(min(left, AWAKE))


def note_sigint() -> None:
    """Let SIGINT raise `KeyboardInterrupt`, and be seen by `is_ending`; where it is ignored, only `interrupt` does."""
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN

    def heard(number: int, frame: FrameType | None) -> None:
        if ignored and not _interrupting.is_set():
            return
        _interrupting.clear()
        _interrupted.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, heard)


def raise_on_sigterm(error: type[Terminated | Ended]) -> None:
    """Let SIGTERM raise an error in the main thread, once: a second one would interrupt the cleaning up.

    Python drops an exception that a signal raises inside a finalizer, or inside a function that native code has called.
    Then the signal is sent again. What finalizers raise after the signal is not reported: it may have come while a
    library made an object, which is left without what its finalizer needs.
    """
    raised = False
    report = sys.unraisablehook

    def terminate(number: int, frame: FrameType | None) -> None:
        nonlocal raised
        _has_come.set()
        if not raised:
            raised = True
            raise error()

    def again() -> None:
        nonlocal raised
        raised = False
        os.kill(os.getpid(), signal.SIGTERM)

    def dropped(unraisable: "sys.UnraisableHookArgs") -> None:
        if not isinstance(unraisable.exc_value, error):
            if not _has_come.is_set():
                report(unraisable)
            return
        timer = threading.Timer(AGAIN, again)  # until then another signal would interrupt this here
        timer.daemon = True
        timer.start()

    sys.unraisablehook = dropped
    signal.signal(signal.SIGTERM, terminate)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Let SIGINT and SIGTERM wait for the end of the ``with`` block.

    A mask of the main thread does not do that: the system gives a signal to any thread that does not block it, and
    Python calls the handler in the main thread all the same. In another thread, which no handler interrupts, nothing
    changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    with contextlib.ExitStack() as restored:
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if callable(handler):  # what is ignored stays so, in processes that begin here, too
                restored.callback(signal.signal, number, handler)
                signal.signal(number, lambda number, frame: came.append(number))
        yield
    for one in dict.fromkeys(came):
        signal.raise_signal(one)


def hear_interrupts() -> None:
    """Let `interrupt` reach this process where SIGINT is ignored; SIGINT from outside stays without effect there.

    A shell without job control ignores it for what it starts in the background (``nohup toolkit run … &`` in a script).
    In another thread than the main one, which cannot do that, nothing happens.
    """

    def heard(number: int, frame: FrameType | None) -> None:
        if _interrupting.is_set():
            _interrupting.clear()
            raise KeyboardInterrupt

    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, heard)


def interrupt() -> None:
    """Interrupt the main thread from another one, as Ctrl-C does."""
    _interrupting.set()
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def ignore_sigterm() -> None:
    """Ignore SIGTERM in a process that is about to end by itself, so that its status stays."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
