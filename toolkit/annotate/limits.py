"""How fast a run asks, and whether it goes on."""

import threading
import time
from collections.abc import Callable

Clock = Callable[[], float]


class Limits:
    """Lets requests begin: evenly spread over a minute, and none while the server wants none.

    Threads share it.

    Args:
        requests, tokens: in a minute, at most; None without a bound.
        clock: gives seconds.

    Attributes:
        stopped: set when the run stops, for whatever reason.
        why: it stops; empty if somebody else stops it.
    """

    def __init__(self, requests: float | None, tokens: float | None, clock: Clock = time.monotonic) -> None:
        self.stopped = threading.Event()
        self.why = ""
        self._each, self._token = (60 / requests if requests else 0.0), (60 / tokens if tokens else 0.0)
        self._clock = clock
        self._next = self._not_before = clock()
        self._lock = threading.Lock()

    def stop(self, why: str = "") -> None:
        """Stop the run; the first reason counts."""
        with self._lock:
            if not self.stopped.is_set():
                self.why = why
            self.stopped.set()

    def turn(self, prompt: int) -> bool:
        """Wait until a request with so many tokens may be made, or made again; return False if the run stops."""
        with self._lock:
            now = self._clock()
            at = max(self._next, now) if self._each or self._token else now
            self._next = at + max(self._each, self._token * prompt)
        while (left := max(at, self._not_before) - self._clock()) > 0:
            if self.stopped.wait(left):
                break
        return not self.stopped.is_set()

    def add_answer(self, tokens: int) -> None:
        """Count the tokens of an answer, too."""
        with self._lock:
            self._next += self._token * tokens

    def slow_down(self, seconds: float) -> None:
        """Let no request begin for some seconds."""
        self._not_before = max(self._not_before, self._clock() + seconds)

    def pause(self, seconds: float) -> bool:
        """Wait; return False if the run stops."""
        return not self.stopped.wait(seconds)
