"""How fast a run asks, and what it may spend."""

import threading
import time
from collections.abc import Callable

MILLION = 1e6

Clock = Callable[[], float]


class Limits:
    """Lets requests begin: evenly spread over a minute, none while the server wants none, and none that costs too much.

    Threads share it.

    Args:
        requests, tokens: in a minute, at most; None without a bound.
        cost: of a run, at most; None without a bound.
        prices: of a million tokens of prompts and of answers.
        clock: gives seconds.

    Attributes:
        stopped: set when the run stops, for whatever reason.
        why: it stops; empty if somebody else stops it.
        spent: on what was answered.
    """

    def __init__(
        self,
        requests: float | None,
        tokens: float | None,
        cost: float | None,
        prices: tuple[float, float] = (0.0, 0.0),
        clock: Clock = time.monotonic,
    ) -> None:
        self.stopped = threading.Event()
        self.why = ""
        self.spent = 0.0
        self._each, self._token = (60 / requests if requests else 0.0), (60 / tokens if tokens else 0.0)
        self._cost, self._prices, self._clock = cost, prices, clock
        self._next = self._not_before = clock()
        self._reserved, self._flying = 0.0, 0
        self._more: float | None = None
        self._changed = threading.Condition()

    def stop(self, why: str = "") -> None:
        """Stop the run; the first reason counts."""
        with self._changed:
            if not self.stopped.is_set():
                self.why = why
            self.stopped.set()
            self._changed.notify_all()

    def cost_of(self, prompt: int, answer: int) -> float:
        """Return what so many tokens cost."""
        return (prompt * self._prices[0] + answer * self._prices[1]) / MILLION

    def begin(self, prompt: int, answer: int) -> bool:
        """Wait until a request of so many tokens, about, may begin; return False if the run stops.

        With a bound on the cost the first one is alone: its reply says how much more the server counts.
        """
        most = self.cost_of(prompt, answer)
        with self._changed:
            while self._cost is not None and (
                (self._more is None and self._flying)
                or self.spent + (self._reserved + most) * (self._more or 1.0) > self._cost
            ):
                if self.stopped.is_set():
                    return False
                if not self._flying:
                    self.stop(f"another request may cost more than `max_cost: {self._cost:g}` leaves")
                    return False
                self._changed.wait()
            self._reserved, self._flying = self._reserved + most, self._flying + 1
        if self.turn(prompt):
            return True
        self._settle(most)
        return False

    def turn(self, prompt: int) -> bool:
        """Wait until a request with so many tokens may be made, or made again; return False if the run stops."""
        with self._changed:
            now = self._clock()
            at = max(self._next, now) if self._each or self._token else now
            self._next = at + max(self._each, self._token * prompt)
        while (left := max(at, self._not_before) - self._clock()) > 0:
            if self.stopped.wait(left):
                break
        return not self.stopped.is_set()

    def end(self, prompt: int, answer: int, used: tuple[int, int]) -> None:
        """Note that a request that was expected to take so many tokens has ended, and has used others."""
        with self._changed:
            cost, expected = self.cost_of(*used), self.cost_of(prompt, answer)
            self.spent += cost
            if expected and any(used):
                self._more = max(self._more or 1.0, cost / expected)
            self._next += self._token * used[1]
        self._settle(self.cost_of(prompt, answer))

    def _settle(self, most: float) -> None:
        with self._changed:
            self._flying -= 1
            self._reserved = self._reserved - most if self._flying else 0.0
            self._changed.notify_all()

    def slow_down(self, seconds: float) -> None:
        """Let no request begin for some seconds."""
        self._not_before = max(self._not_before, self._clock() + seconds)

    def pause(self, seconds: float) -> bool:
        """Wait; return False if the run stops."""
        return not self.stopped.wait(seconds)
