"""Signals as a flag: SIGINT and SIGTERM are noted, and looked at between blocks, so nothing is interrupted half-way.

signal ──> a note ──> `check()` between blocks, and where something is waited for, raises in the main thread
             └── nobody has looked for `LATE` seconds ──> it raises in what the main thread waits for: a lock, a socket

Native code that does not come back to Python hears no signal at all; a second Ctrl-C does not wait for anything else.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

import msgspec

from toolkit.session import current

STATUS = 128 + signal.SIGTERM
"""The exit status of a process that SIGTERM has ended."""

LATE = 1.0
"""Seconds in which a signal is looked at, or it interrupts what waits."""

AGAIN = 0.5
"""Seconds after which another Ctrl-C is a second one, and not the first one once more, sent to a group and to each."""

AWAKE = 0.2
"""Seconds between two looks of what waits."""

GOES_ON = "run the same command to resume"


class Terminated(KeyboardInterrupt):
    """SIGTERM has come; it ends a run as Ctrl-C does."""


class Ended(SystemExit):
    """SIGTERM in a helper process."""

    def __init__(self) -> None:
        super().__init__(STATUS)


class _Note:
    """A received signal; the first counts, later ones come while the process tidies up."""

    def __init__(self, number: int) -> None:
        self.number, self.since, self.is_seen = number, time.monotonic(), False


class _ProcessSignals(msgspec.Struct):
    """The received signals of this process, shared by its sessions.

    Handlers run in the main thread, between any two steps of it: they make one object, and take no lock.

    Attributes:
        notes: Signals that have come.
        raised: Errors for `check` to raise, by signal.
        open: Number of `raising` blocks.
        stopped: True if `stop` was called.
    """

    notes: list[_Note] = []
    raised: dict[int, Callable[[], BaseException]] = {}
    open: int = 0
    stopped: bool = False


_process = _ProcessSignals()


def is_terminated() -> bool:
    """Return True if SIGTERM has come, before any Ctrl-C."""
    return bool(_process.notes) and _process.notes[0].number == signal.SIGTERM


def is_signalled() -> bool:
    """Return True if a signal has come."""
    return bool(_process.notes)


def is_ending() -> bool:
    """Return True if nothing may wait any more."""
    return bool(_process.notes or _process.stopped or current().fault)


def check() -> None:
    """Raise the error for a signal, or the session's fault. To be called before more work starts. A signal raises in
    the main thread alone.
    """
    if fault := current().fault:
        raise fault
    if (_process.notes or _process.stopped) and threading.current_thread() is threading.main_thread():
        raise _error()


def _error() -> BaseException:
    if not _process.notes:
        return KeyboardInterrupt()
    acknowledge()
    return _process.raised.get(_process.notes[0].number, KeyboardInterrupt)()


def acknowledge() -> None:
    """Note the reaction to a signal: nothing reminds of it any more."""
    if _process.notes and not _process.notes[0].is_seen:
        _process.notes[0].is_seen = True
        if signal.getsignal(signal.SIGALRM) is _remind:
            signal.setitimer(signal.ITIMER_REAL, 0)


def pause(seconds: float) -> None:
    """Wait, no longer than until a signal ends the process."""
    end = time.monotonic() + seconds
    while not is_ending() and (remaining := end - time.monotonic()) > 0:
        time.sleep(min(remaining, AWAKE))
    check()


@contextlib.contextmanager
def raising() -> Iterator[None]:
    """Let a signal interrupt the block at once. Python's own handler does so, too. For waiting on a person."""
    _process.open += 1
    try:
        check()
        yield
    finally:
        _process.open -= 1


def note_signals(sigterm: Callable[[], BaseException], *, sigint: bool = True) -> None:
    """Note signals from now on, in our own process.

    Args:
        sigterm: Function that returns the error after SIGTERM.
        sigint: True to note SIGINT, too, unless it is ignored, as a shell without job control does for its background.
    """
    forget()
    _process.raised[signal.SIGTERM] = sigterm
    for number in (signal.SIGTERM, signal.SIGINT) if sigint else (signal.SIGTERM,):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _note)


@contextlib.contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Defer Ctrl-C in the block, in a process of others: its work stays whole, and a second one raises.

    Other handlers of the program, or the process, stay.
    """
    here = threading.current_thread() is threading.main_thread()
    if not here or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _note_for_others)
    try:
        yield
        if _process.notes:  # nobody has looked
            raise KeyboardInterrupt
    except Exception:
        if _process.notes:  # what was given up because of it
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        forget()


def forget() -> None:
    """Forget received signals: the process goes on."""
    acknowledge()
    _process.notes.clear()
    _process.stopped = False


def stop() -> None:
    """Let `check` raise `KeyboardInterrupt`, as after Ctrl-C; callable in any thread."""
    _process.stopped = True


def keep_status(status: int) -> None:
    """Keep this exit status, even if a signal comes before the end."""
    acknowledge()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda *_: os._exit(status))


def _note(number: int, frame: FrameType | None) -> None:
    _process.notes.append(note := _Note(number))
    first = _process.notes[0]
    if _process.open:
        raise _error()
    if note is first:
        signal.signal(signal.SIGALRM, _remind)  # a thread would wait for native code that keeps Python's lock
        signal.setitimer(signal.ITIMER_REAL, LATE)
    elif number == signal.SIGINT and note.since - first.since > AGAIN:
        _end(first)


def _note_for_others(number: int, frame: FrameType | None) -> None:
    _process.notes.append(_Note(number))
    if _process.open or len(_process.notes) > 1:
        raise _error()


def _remind(number: int, frame: FrameType | None) -> None:
    if _process.notes and not _process.notes[0].is_seen:
        raise _error()


def _end(note: _Note) -> None:
    """End the process; a worker of ours says nothing."""
    if _process.raised.get(signal.SIGTERM) is not Ended:
        event = "terminated" if note.number == signal.SIGTERM else "interrupted"
        with contextlib.suppress(OSError):
            os.write(2, f"{event}; {GOES_ON}\n".encode())
    os._exit(128 + note.number)
