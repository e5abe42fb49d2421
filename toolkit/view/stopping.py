"""Questions that end before they are answered: between rows that are read, and at any moment where values are computed.

An expression may take minutes for one document, as `len([1 for a in xs for b in xs])` does. So the thread that computes
is interrupted there, and nowhere else: what it reads, and the locks and caches for that, stay whole.
"""

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Ended(BaseException):
    """The question is not asked any more. Nothing that looks for errors catches it."""


class Stop:
    """Ends the work of one thread.

    Attributes:
        ended: whether it was ended.
    """

    def __init__(self) -> None:
        self.ended = False
        self._computing: int | None = None
        self._lock = threading.Lock()

    def end(self) -> None:
        """End the work, at once where it computes."""
        if self.ended:
            return
        with self._lock:
            self.ended = True
            if self._computing is not None:
                _raise_in(self._computing, Ended)

    def check(self) -> None:
        """Raise `Ended` if the work was ended."""
        if self.ended:
            raise Ended

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Let the thread be interrupted in the block, which computes and reads nothing."""
        with self._lock:
            self.check()
            self._computing = threading.get_ident()
        try:
            yield
        finally:
            with self._lock:
                mine, self._computing = self._computing, None
                if self.ended and mine is not None:
                    _raise_in(mine, None)  # it may be under way yet
        self.check()


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raise an error in a thread when it next runs code of Python; None takes one back that it has not met."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), ctypes.py_object(error) if error is not None else ctypes.py_object()
    )
