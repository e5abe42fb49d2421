"""Ledger of a set: the attempts of all its runs with their tokens and cost, on disk before they are sent.

An attempt is a line before its request is sent, with the most that it can take, and a second line after its reply,
with what it took. Its files are those of answers (`OwnFile`); of lines with the same key the last one
counts, as in answers. An attempt whose reply is lost (a kill, a timeout) has no second line: it counts with the most
that it can take. A run replaces its lines by their sums when they grow and at its end, so the file has a bounded size.

Runs with `max_cost` admit attempts one at a time, under a lock. The file of the lock has the sum of all runs, so an
admission reads no other file. The sum may be too large, and never too small: a run that has no money left by it adds up
the files again.

How fast a run asks, and whether it goes on.
"""

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import IO

import msgspec

from toolkit.errors import ToolkitError, Unreadable, advice
from toolkit.learn.annotate.answers import OwnFile, files_in, make_own_folder
from toolkit.storage.json_files import warn_damage
from toolkit.storage.store import check_roots
from toolkit.storage.stores.local.scratch import open_scratch

Clock = Callable[[], float]


class RateLimiter:
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
        self._interval, self._token_interval = (60 / requests if requests else 0.0), (60 / tokens if tokens else 0.0)
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
        """Wait for the turn of a request with so many tokens; return False if the run stops."""
        with self._lock:
            now = self._clock()
            at = max(self._next, now) if self._interval or self._token_interval else now
            self._next = at + max(self._interval, self._token_interval * prompt)
        while (seconds := max(at, self._not_before) - self._clock()) > 0:
            if self.stopped.wait(seconds):
                break
        return not self.stopped.is_set()

    def add_answer(self, tokens: int) -> None:
        """Count the tokens of an answer, too."""
        with self._lock:
            self._next += self._token_interval * tokens

    def slow_down(self, seconds: float) -> None:
        """Let no request begin for some seconds."""
        self._not_before = max(self._not_before, self._clock() + seconds)

    def pause(self, seconds: float) -> bool:
        """Wait; return False if the run stops."""
        return not self.stopped.wait(seconds)


MILLION = 1e6
_MOST_BYTES = 1 << 20
_TRUSTED = 5.0
"""Seconds for which a run believes the sum in the lock's file: runs without `max_cost` do not add to it."""

_SUM_BYTES = 128
_PAUSE = 0.2
"""Seconds between two looks of a thread that waits for money at whether the run stops."""


class LedgerLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line: an attempt, or several together.

    Attributes:
        key: Number of the attempt in its file; 0 for all with a reply, -1 for all without.
        attempts: Number of attempts.
        prompt_tokens: Tokens of prompts.
        completion_tokens: Tokens of answers.
        cost: Price of these tokens when they were sent.
        ratio: Largest quotient so far of a cost and the most that was expected.
        open: True without a reply: then tokens and cost are the most of the attempt.
    """

    key: int
    attempts: int = 1
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0
    ratio: float = 0.0
    open: bool = False

    def __add__(self, other: "LedgerLine") -> "LedgerLine":
        return msgspec.structs.replace(
            self,
            attempts=self.attempts + other.attempts,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cost=self.cost + other.cost,
            ratio=max(self.ratio, other.ratio),
        )


class Spending(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of a ledger.

    Attributes:
        attempts: Requests sent, repetitions included.
        without_reply: Those of them without a reply, or under way; they count with the most that they can take.
        prompt_tokens: Tokens of prompts.
        completion_tokens: Tokens of answers.
        cost: Price of all tokens, each at the price of its time.
    """

    attempts: int
    without_reply: int
    prompt_tokens: int
    completion_tokens: int
    cost: float


class _Total(msgspec.Struct, frozen=True):
    """Sum in the file of the lock.

    Attributes:
        sum: Time at which the files were added up, in nanoseconds; it identifies the sum.
        cost: Cost of all attempts, those under way with the most that they can take.
        ratio: Largest ratio of an attempt.
    """

    sum: int
    cost: float
    ratio: float


class _Sums:
    """Sums of a file, and its attempts without a reply by key."""

    def __init__(self, path: str = "") -> None:
        self.path = path
        self.ended, self.open = LedgerLine(key=0, attempts=0), dict[int, LedgerLine]()
        self.head, self.at = b"", 0

    def add(self, attempt: LedgerLine) -> None:
        if attempt.open:
            self.open[attempt.key] = attempt
        else:
            self.open.pop(attempt.key, None)
            self.ended += attempt

    def lose(self, key: int) -> None:
        """Count an attempt as one without a reply."""
        lost = self.open.pop(-1, LedgerLine(key=-1, attempts=0, open=True))
        self.open[-1] = lost + self.open.pop(key)

    @property
    def cost(self) -> float:
        return self.ended.cost + sum(attempt.cost for attempt in self.open.values())

    def lines(self) -> bytes:
        """Return as few lines as have the same sums."""
        attempts = [self.ended, *self.open.values()]
        return b"".join(_ENCODER.encode(attempt) + b"\n" for attempt in attempts if attempt.attempts)

    def read(self) -> "_Sums":
        """Read the new lines of the file; return these sums, or new ones of a file that was replaced."""
        try:
            with open(self.path, "rb") as stream:
                head = stream.readline()
                if not head.endswith(b"\n"):
                    warn_damage(f"{self.path}: expected the requests of a run, got no whole line")
                sums = (
                    self if head == self.head else _Sums(self.path)
                )  # a replaced file has other sums in its first line
                sums.head = head
                stream.seek(sums.at)
                for line in stream:
                    if not line.endswith(b"\n"):  # of a run that was killed, or that writes just now
                        break
                    sums.at += len(line)
                    try:
                        sums.add(_DECODER.decode(line))
                    except ValueError as error:
                        warn_damage(f"{self.path}: expected a request in each line, got: {error}")
        except OSError as error:
            check_roots(self.path)
            raise Unreadable(f"expected to read the ledger, got: {advice(error)}", path=self.path) from None
        return sums


_DECODER = msgspec.json.Decoder(LedgerLine)
_TOTAL = msgspec.json.Decoder(_Total)
_ENCODER = msgspec.json.Encoder()


def spending_of(folder: str) -> Spending:
    """Return the sums of a ledger; nothing is written."""
    return _spending(_Sums(path).read() for path in files_in(folder))


def _spending(files: Iterable[_Sums]) -> Spending:
    ended, lost = LedgerLine(key=0, attempts=0), LedgerLine(key=-1, attempts=0)
    for sums in files:
        ended, lost = ended + sums.ended, reduce(LedgerLine.__add__, sums.open.values(), lost)
    both = ended + lost
    return Spending(
        attempts=both.attempts,
        without_reply=lost.attempts,
        prompt_tokens=both.prompt_tokens,
        completion_tokens=both.completion_tokens,
        cost=round(both.cost, 9),
    )


class Ledger:
    """Ledger of a set: admits attempts as long as there is money. Threads and processes share it.

    Args:
        folder: Folder of the ledger, on a disk.
        limits: Limits of the run, which ends when no attempt can be paid.
        prices: Prices of a million tokens of prompts and of answers.
        most: Cost of all runs of the set, at most; None without a bound.
    """

    def __init__(
        self, folder: str, limits: RateLimiter, prices: tuple[float, float] = (0.0, 0.0), most: float | None = None
    ) -> None:
        self._folder, self._limits, self._prices, self._most = folder, limits, prices, most
        self._file, self._own = OwnFile(folder, "an attempt"), _Sums()
        self._other_runs = {path: _Sums(path).read() for path in files_in(folder)}
        self._changed = threading.Condition()
        self._under_way: set[int] = set()
        self._last, self._room = 0, _MOST_BYTES
        self._ratio = max([0.0, *(sums.ended.ratio for sums in self._other_runs.values())])
        self._sum, self._summed_at = 0, 0.0
        self._unspent = 0.0
        """Unspent part of the expected cost of this run's ended attempts, since its last admission."""

    @property
    def spending(self) -> Spending:
        """Return the sums of all runs."""
        with self._changed:
            self._look()
            return _spending([*self._other_runs.values(), self._own])

    @property
    def cost(self) -> float:
        """Return the cost of this run."""
        with self._changed:
            return self._own.cost

    def add(self, attempts: int, prompt: int, answer: int) -> None:
        """Note attempts with replies from elsewhere, and their tokens; durable when this returns."""
        with self._changed:
            self._last += 1
            cost = self._cost(prompt, answer)
            attempt = LedgerLine(
                key=self._last, attempts=attempts, prompt_tokens=prompt, completion_tokens=answer, cost=cost
            )
            self._write(attempt)
        self._file.sync()

    def begin(self, prompt: int, answer: int) -> int | None:
        """Note an attempt of at most so many tokens, once affordable. Return its key; None if the run stops.

        With a bound on the cost the first one is alone, unless earlier runs had replies: its reply says whether the
        server counts more than expected.
        """
        key: int | None = None
        with self._changed:
            while key is None and not self._limits.stopped.is_set():
                if self._most is None or self._ratio or not self._under_way:
                    if self._most is None:
                        key = self._note(prompt, answer, self._cost(prompt, answer))
                    else:
                        with self._alone() as total:
                            key = self._admit(prompt, answer, total, self._most)
                if key is None:
                    self._changed.wait(_PAUSE)
        if key is not None:
            self._file.sync()
        return key

    def _admit(self, prompt: int, answer: int, file: IO[bytes], most: float) -> int | None:
        """Write the line and the cost of an attempt; return its key, None without money."""
        total = self._read_total(file)
        cost = self._cost(prompt, answer) * max(total.ratio, 1.0)
        if total.cost + cost > most * (1 + 1e-9):
            total = self._add_up()
        is_paid = total.cost + cost <= most * (1 + 1e-9)
        file.seek(0)
        file.write(_ENCODER.encode(msgspec.structs.replace(total, cost=total.cost + cost * is_paid)).ljust(_SUM_BYTES))
        file.flush()  # before the line: a kill between them leaves too large a sum
        if is_paid:
            key = self._note(prompt, answer, cost)
            self._file.sync()  # other machines see it when the lock is free
            return key
        if not self._under_way:
            self._limits.stop(
                f"another request may cost more than `max_cost: {most:g}` leaves: up to {cost:.4g}, and all runs of "
                f"the set have cost {total.cost:.4g}"
            )
        return None

    def _read_total(self, file: IO[bytes]) -> _Total:
        """Return the sum of all runs; it is added up if nobody has done so for some time."""
        if not self._summed_at or time.monotonic() - self._summed_at > _TRUSTED:
            return self._add_up()
        try:
            total = _TOTAL.decode(file.read(_SUM_BYTES))
        except ValueError:  # of a machine that has lost its power
            return self._add_up()
        unspent = self._unspent if total.sum == self._sum else min(self._unspent, 0.0)  # or it was added up since
        self._sum, self._unspent, self._ratio = total.sum, 0.0, max(self._ratio, total.ratio)
        return _Total(total.sum, total.cost - unspent, self._ratio)

    def _add_up(self) -> _Total:
        self._look()
        self._sum, self._summed_at, self._unspent = time.time_ns(), time.monotonic(), 0.0
        cost = self._own.cost + sum(sums.cost for sums in self._other_runs.values())
        return _Total(self._sum, cost, self._ratio)

    def _note(self, prompt: int, answer: int, cost: float) -> int:
        """Write the line of an attempt; return its key."""
        self._last += 1
        self._write(LedgerLine(key=self._last, prompt_tokens=prompt, completion_tokens=answer, cost=cost, open=True))
        self._under_way.add(self._last)
        return self._last

    def end(self, key: int, prompt: int | None, answer: int | None) -> None:
        """Note the tokens of an attempt; a number of tokens that is not known is the most that it can be."""
        with self._changed:
            self._under_way.discard(key)
            most = self._own.open[key]
            tokens = (
                most.prompt_tokens if prompt is None else prompt,
                most.completion_tokens if answer is None else answer,
            )
            cost, expected = self._cost(*tokens), self._cost(most.prompt_tokens, most.completion_tokens)
            if cost and expected:
                self._ratio = max(self._ratio, 1.0, cost / expected)
            self._unspent += most.cost - cost
            self._write(
                LedgerLine(key=key, prompt_tokens=tokens[0], completion_tokens=tokens[1], cost=cost, ratio=self._ratio)
            )
            self._changed.notify_all()

    def lose(self, key: int) -> None:
        """Note an attempt without a reply: it stays noted with the most that it can take."""
        with self._changed:
            self._under_way.discard(key)
            self._own.lose(key)
            self._changed.notify_all()

    def close(self) -> None:
        """Replace the lines of this run by their sums; close its file."""
        with self._changed:
            if self._file.size:
                self._file.replace(self._own.lines())
            self._file.close()

    def _cost(self, prompt: int, answer: int) -> float:
        return (prompt * self._prices[0] + answer * self._prices[1]) / MILLION

    def _write(self, attempt: LedgerLine) -> None:
        if self._file.size > self._room:
            self._file.replace(self._own.lines())
            self._room = max(_MOST_BYTES, 2 * self._file.size)
        self._file.write(_ENCODER.encode(attempt) + b"\n")
        self._own.add(attempt)

    def _look(self) -> None:
        """Read the new lines of other runs."""
        for path in files_in(self._folder):
            if path != self._file.path:
                self._other_runs[path] = sums = self._other_runs.get(path, _Sums(path)).read()
                self._ratio = max(self._ratio, sums.ended.ratio)

    @contextmanager
    def _alone(self) -> Iterator[IO[bytes]]:
        """Keep other processes from spending; give the file of the lock."""
        path = os.path.join(self._folder, "lock")
        try:
            if not os.path.exists(path):
                make_own_folder(self._folder)
                open_scratch(path, "ab").close()
            with open_scratch(path, "r+b") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield lock
        except OSError as error:
            raise ToolkitError(
                f"{self._folder}: expected a folder on a file system with locks for `max_cost`, got: {advice(error)}; "
                "name another one by `answers`"
            ) from None
