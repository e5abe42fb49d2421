"""Retries of failed requests, and deadlines of answers.

A host that has answered in this run is waited for up to `storage.give_up`: it is busy, or away for a while. One that
has never answered is most likely a wrong name, so it is given up soon, and so is one that was waited for in vain, until
it answers again. What is final (a wrong bucket, a refusal) is not asked twice: that is for the caller to say.

`urllib3.Retry` and boto3's retries are switched off. They count attempts of one request, and not the time that a host
has been away for all of them; they sleep through a signal; they say nothing; and they end where the answer begins, but
most of what breaks is a body.
"""

import random
import re
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from toolkit.errors import Unreadable, duration
from toolkit.interrupts import is_ending, pause
from toolkit.session import current
from toolkit.storage.addresses import redact_text

T = TypeVar("T")

CONNECT = 5.0
"""Seconds without an answer to a connection."""

READ, READ_STRANGER = 30.0, 8.0
"""Seconds without a byte of an answer, of a host that has answered before, and of one that has not."""

UNKNOWN_HOST = 6.0
"""Seconds after which a host that has never answered is asked no more."""

FIRST, LONGEST = 0.25, 10.0
"""Seconds before the second attempt, and between two later ones, unless the host asks for other ones."""

SHORTEST = 1e-6
"""Seconds of a pause at least: what is left of the time may be too little to move a clock of floating-point numbers."""

LONGEST_ASKED = 60.0
"""Seconds between two attempts, whatever the host asks for."""

SILENT, SAID = 5.0, 30.0
"""Seconds of waiting until it is said, and until it is said again."""

SHOWN = 300
"""Characters of an error of a library that are shown; it may quote what a server has said."""

clock = time.monotonic


class RetryableError(msgspec.Struct, frozen=True):
    """Cause of a failed request with a chance of success later.

    Attributes:
        cause: Cause in words, such as ``503 SlowDown``.
        answered: True if the host itself answered; otherwise it may not exist.
        later: seconds that the host asks for.
        expected: Expected result of the request.
        advice: Next step if the trouble lasts.
    """

    cause: str
    answered: bool = False
    later: float | None = None
    expected: str = "an answer"
    advice: str = ""


class _Host:
    """The state of a host.

    Attributes:
        good: when it last did what it was asked for.
        given_up: True if it was waited for in vain since then.
        printed: Time of the last message that it is waited for.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.good = float("-inf")
        self.given_up = False
        self.printed = float("-inf")

    @property
    def is_known(self) -> bool:
        """Return True if the host has answered in this run."""
        return self.name in current().hosts


_lock = threading.Lock()


def has_answered(host: str) -> bool:
    """Return True if a host has answered in this run."""
    return host in current().hosts


def timeouts(host: str) -> tuple[float, float]:
    """Return the timeouts (seconds) of a connection and of a byte."""
    read = READ if has_answered(host) else READ_STRANGER
    return CONNECT, max(1.0, min(read, current().options.give_up))


def note_answer(host: str) -> None:
    """Remember an answer of a host, for this session."""
    current().hosts.add(host)


def retry(
    host: str, path: str, request: Callable[[], T], judge: Callable[[Exception], RetryableError | Exception | None]
) -> T:
    """Return the result of a request; repeat it while it may succeed later.

    Args:
        host: Host that is asked.
        path: Path that it is asked about, for messages.
        request: may be made several times.
        judge: says of an error whether it may pass; else what it means, or None if it means itself.

    Raises:
        Unreadable: when it is given up, with the true cause.
    """
    output = current().get_or_make((_Host, host), lambda: _Host(host))
    began: float | None = None
    attempt = 0
    while True:
        try:
            result = request()
        except Exception as error:
            judged = judge(error)
            if judged is None:
                raise
            if not isinstance(judged, RetryableError):
                raise judged from None
            trouble = judged
        else:
            note_answer(host)
            output.good, output.given_up = clock(), False
            return result
        if trouble.answered:
            note_answer(host)
        attempt += 1
        now = clock()
        began = now if began is None else began
        limit = current().options.give_up if output.is_known else UNKNOWN_HOST
        if output.given_up:
            limit = UNKNOWN_HOST if trouble.answered else 0.0
        left = limit - (now - began)
        if left <= 0 or is_ending():
            if output.good <= began:
                output.given_up = True
            raise _failure(trouble, path, output, now - began, attempt) from None
        seconds = max(SHORTEST, min(left, _wait(attempt, trouble.later)))
        if now - began + seconds >= SILENT:
            _report(output, trouble.cause, now, now - began, left)
        pause(seconds)


def _wait(attempt: int, requested: float | None) -> float:
    """Return the seconds before the next attempt: about twice as long each time, and as long as the host asks."""
    seconds = min(LONGEST, FIRST * 2.0 ** min(attempt - 1, 16)) * random.uniform(0.5, 1)  # noqa: S311
    return max(seconds, min(LONGEST_ASKED, requested or 0.0))


def _failure(trouble: RetryableError, path: str, host: _Host, waited: float, attempts: int) -> Unreadable:
    for_ = f" for {duration(waited)}" if waited >= 1 else ""
    times = f" ({attempts} attempts)" if attempts > 1 else ""
    if is_ending():
        advice = "the run was ended meanwhile"
    elif trouble.advice:
        advice = trouble.advice
    elif host.is_known:
        advice = f"run again when {host.name} answers, or raise `storage.give_up`"
    else:
        advice = f"{host.name} has never answered: is the address right, and the network there?"
    return Unreadable(f"expected {trouble.expected}, got {trouble.cause}{for_}{times}; {advice}", path=path)


def _report(host: _Host, cause: str, now: float, waited: float, left: float) -> None:
    """Print the cause of a pause, once for all threads."""
    with _lock:
        if now - host.printed < SAID:
            return
        host.printed = now
    option = " (`storage.give_up`)" if host.is_known else ""
    print(
        f"waiting for {host.name}: {cause}; {duration(waited)} so far, at most {duration(left)} more{option}",
        file=sys.stderr,
        flush=True,
    )


def root_cause(error: BaseException) -> str:
    """Return the root cause of a library's error, without object names."""
    while True:
        inside = (getattr(error, "kwargs", {}).get("error"), getattr(error, "reason", None), *reversed(error.args))
        inner = next((item for item in inside if isinstance(item, BaseException)), None)
        if inner is None:
            text = re.sub(r"^(<.*>|\w+\(host=.*?\)): ", "", str(error)).strip().rstrip(".")
            return redact_text(text)[:SHOWN]
        error = inner


def retry_after(header: str | None) -> float | None:
    """Return the seconds of a ``Retry-After``, a number or a date; None if it is malformed."""
    if header is None:
        return None
    try:
        if re.fullmatch(r"\s*[0-9]+(\.[0-9]+)?\s*", header):
            return float(header)
        import email.utils  # 5 ms

        return email.utils.parsedate_to_datetime(header).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None


def bound_headers(pools: Any) -> None:
    """Bound the time of response headers by the request's timeout. It holds for new connections.

    Args:
        pools: A pool manager of urllib3, without connections.
    """
    import urllib3

    class Connection(_Bounded, urllib3.connection.HTTPConnection):
        pass

    class SecureConnection(_Bounded, urllib3.connection.HTTPSConnection):
        pass

    class Pool(urllib3.HTTPConnectionPool):
        ConnectionCls = Connection

    class SecurePool(urllib3.HTTPSConnectionPool):
        ConnectionCls = SecureConnection

    pools.pool_classes_by_scheme = {"http": Pool, "https": SecurePool}


class _Bounded:
    """A connection with a deadline for response headers."""

    sock: Any
    timeout: float | None

    def getresponse(self) -> Any:
        """Return the answer.

        Raises:
            TimeoutError: If its headers are late; the connection has ended then.
        """
        if self.timeout is None or self.sock is None:
            return super().getresponse()  # type: ignore[misc]  # of what is mixed in
        is_late = threading.Event()
        timer = threading.Timer(self.timeout, _cut, [self.sock, is_late])
        timer.daemon = True
        timer.start()
        try:
            return super().getresponse()  # type: ignore[misc]
        finally:
            timer.cancel()
            if is_late.is_set():  # the end of the connection looks like that of the headers
                raise TimeoutError("the headers of the answer are late")


def _cut(connected: socket.socket, is_late: threading.Event) -> None:
    is_late.set()
    with suppress(OSError):  # it is closed already
        socket.socket.shutdown(connected, socket.SHUT_RDWR)  # of TLS, too, whose own state is another thread's
