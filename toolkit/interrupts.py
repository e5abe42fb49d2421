"""SIGTERM as an interruption: schedulers send it some time before they kill."""

import _thread
import contextlib
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from types import FrameType

STATUS = 128 + signal.SIGTERM
"""The exit status of a process that SIGTERM has ended."""

AGAIN = 0.1
"""Seconds after which a signal is sent again that was not heard, or whose exception was lost."""

SOON = 0.005
"""Seconds after which a signal is heard again that came where nothing may be raised: less than what is waited for."""

AWAKE = 0.2
"""Seconds between two looks of a waiting thread at whether the process ends."""

LOCKING = ("threading", "queue", "concurrent", "contextlib", "importlib", "_frozen_importlib")
"""Packages whose code, interrupted, may leave a lock that nobody opens, or a ``with`` block that nobody leaves."""


class Terminated(KeyboardInterrupt):
    """SIGTERM has come; it ends a run as Ctrl-C does."""


class Ended(SystemExit):
    """SIGTERM has come to a process that works for another."""

    def __init__(self) -> None:
        super().__init__(STATUS)


# What handlers change is changed at once: a second signal interrupts the handler of the first one, where a lock, such
# as that of a `threading.Event`, would be waited for by the one that holds it.
_come: set[int] = set()  # the signals that end this process
_postponed: set[int] = set()  # those whose handlers wait for a better moment
_raised: set[int] = set()  # SIGTERM, unless its exception was dropped
_raised_by_sigterm: list[type[Terminated | Ended]] = []
_interrupting: set[int] = set()  # SIGINT, by `interrupt`, until it is heard
_begun: Counter[int] = Counter()  # how often handlers of ours were called
_handlers: list[object] = []  # those of ours


def is_terminated() -> bool:
    """Return whether SIGTERM has come; native code may have made a plain `KeyboardInterrupt` of it."""
    return signal.SIGTERM in _come


def is_ending() -> bool:
    """Return whether a signal has come that ends this process: nothing is waited for any more."""
    return bool(_come)


def pause(seconds: float) -> None:
    """Wait; a thread beside the main one wakes when a signal ends the process, which raises only in the main one."""
    if threading.current_thread() is threading.main_thread():
        time.sleep(SOON if seconds is None else seconds)
        return
    end = time.monotonic() + seconds
    while not is_ending() and (left := end - time.monotonic()) > 0:
        time.sleep(min(left, AWAKE))


_last: list[tuple[int, int]] = []


def _is_bad_moment(frame: FrameType | None) -> bool:
    """Return whether code is interrupted that has to go on, and which was not found waiting there just before."""
    if frame is None or not (_may_lock(frame) or _is_in_finalizer(frame)):
        return False
    here = (id(frame), frame.f_lasti)
    waits = here in _last
    _last[:] = [here]
    return not waits


def _may_lock(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] in LOCKING


def _is_in_finalizer(frame: FrameType | None) -> bool:
    """Return whether an object is tidied away: Python drops what a signal raises there, and the object stays untidy."""
    while frame is not None and frame.f_code.co_name != "__del__":
        frame = frame.f_back
    return frame is not None


def _postpone(number: int, seconds: float | None = None) -> None:
    """Send a signal again, a little later; from a bare thread: what is interrupted may be the code of `threading`."""

    def again() -> None:
        time.sleep(SOON if seconds is None else seconds)
        _postponed.discard(number)
        _send(number)

    _postponed.add(number)
    _thread.start_new_thread(again, ())


def _send(number: int) -> None:
    """Send a signal to the main thread from another one, until a handler of ours has begun; to other handlers, once.

    A thread often runs on when the main one is about to wait: a signal that comes just before does not end the waiting.
    """
    before = _begun[number]
    while True:
        signal.pthread_kill(threading.main_thread().ident or 0, number)
        time.sleep(AGAIN)
        if _begun[number] != before or signal.getsignal(number) not in _handlers:
            return


_report = [sys.unraisablehook]


def _notice_what_is_lost() -> None:
    """Have signals sent again whose exceptions Python drops."""
    if sys.unraisablehook is not _lost:
        _report[:] = [sys.unraisablehook]
        sys.unraisablehook = _lost


def _lost(unraisable: "sys.UnraisableHookArgs") -> None:
    """Send a signal again whose exception is dropped: raised in a finalizer, or in what native code has called.

    What else finalizers raise after a signal is not reported: it may have come while a library made an object, which is
    left without what its finalizer needs.
    """
    error = unraisable.exc_value
    if isinstance(error, Terminated | Ended):
        _postponed.add(signal.SIGTERM)  # from now on, because another signal would interrupt this here
        _raised.clear()
        _postpone(signal.SIGTERM, AGAIN)
    elif isinstance(error, KeyboardInterrupt):
        _postponed.add(signal.SIGINT)
        _interrupting.add(signal.SIGINT)
        _postpone(signal.SIGINT, AGAIN)
    elif not is_ending():
        _report[0](unraisable)


def note_sigint() -> None:
    """Let SIGINT raise `KeyboardInterrupt`, and be seen by `is_ending`; where it is ignored, only `interrupt` does."""
    _hear_sigint(_come)


def hear_interrupts() -> None:
    """Let `interrupt` reach this process, also where SIGINT is ignored; from outside it stays without effect there.

    A shell without job control ignores it for what it starts in the background (``nohup toolkit run … &`` in a script).
    Python's own handler gives way to ours, which does the same and tells that it was called. In another thread than the
    main one, which cannot do that, nothing happens.
    """
    found = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is threading.main_thread() and found in (signal.SIG_IGN, signal.default_int_handler):
        _hear_sigint(set())


def _hear_sigint(come: set[int]) -> None:
    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN

    def heard(number: int, frame: FrameType | None) -> None:
        _begun[number] += 1
        if ignored and not _interrupting:
            return
        come.add(number)
        if number in _postponed:
            return
        if _is_bad_moment(frame):
            _postpone(number)
            return
        _interrupting.clear()
        raise KeyboardInterrupt

    _notice_what_is_lost()
    _handlers.append(heard)
    signal.signal(signal.SIGINT, heard)


def raise_on_sigterm(error: type[Terminated | Ended]) -> None:
    """Let SIGTERM raise an error in the main thread, once: a second one would interrupt the cleaning up.

    Where Python drops the exception, it is raised again a little later.
    """
    _raised.clear()
    _raised_by_sigterm[:] = [error]

    def terminate(number: int, frame: FrameType | None) -> None:
        _begun[number] += 1
        _come.add(number)
        if number in _postponed or number in _raised:
            return
        if _is_bad_moment(frame):
            _postpone(number)
            return
        _raised.add(number)
        raise error()

    _notice_what_is_lost()
    _handlers.append(terminate)
    signal.signal(signal.SIGTERM, terminate)


def check() -> None:
    """Raise again what SIGTERM has raised, before more work is begun: a plugin or library may catch all there is."""
    if is_terminated() and threading.current_thread() is threading.main_thread():
        _raised.add(signal.SIGTERM)
        raise _raised_by_sigterm[0]


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


def interrupt() -> None:
    """Interrupt the main thread from another one, as Ctrl-C does."""
    _interrupting.add(signal.SIGINT)
    _send(signal.SIGINT)


def keep_status(status: int) -> None:
    """Let a process that is about to end by itself end with this status, though a signal comes meanwhile."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: os._exit(status))
