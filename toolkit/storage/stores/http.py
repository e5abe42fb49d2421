"""Files on the web, for reading: politely, and going on at the byte where a connection broke.

`requests` keeps connections open between requests and verifies who answers. Its streams, and those of smart_open over
them, wait for a whole buffer: what has arrived of it is lost when the connection breaks, so `WebReader` takes what is
there.
"""

import functools
import importlib.metadata
import io
import os
import re
import urllib.parse
from http.cookiejar import DefaultCookiePolicy
from typing import Any, NoReturn

from toolkit import distribution
from toolkit.errors import DataError, Unreadable
from toolkit.session import cached
from toolkit.storage import retrying
from toolkit.storage.addresses import reveal_url
from toolkit.storage.retrying import RetryableError, bound_headers
from toolkit.storage.store import BUFFER, Stat, Store

BUSY = (403, 408, 429)
"""Answers that may be others later, beside those from 500."""

REFUSED = 403
"""That is how Common Crawl's servers ask for patience, and others refuse for good."""

KNOWN = (401, 404, 405, 410, 416, 501)
"""Answers that mean something to those who asked."""


class Http(Store):
    """Files on the web, read by name alone."""

    can_list = False
    can_write = False

    def name_of(self, path: str) -> str:
        """Return the address without user and query."""
        scheme, _, place = path.partition("://")
        host, slash, name = place.partition("/")
        return f"{scheme}://{host.rpartition('@')[2]}{slash}{name.partition('?')[0]}"

    def quoted(self, name: str) -> str:
        return urllib.parse.quote(name, safe="/=")

    def stat(self, path: str) -> Stat | None:
        """Return size and stamp by the server; the stamp is its ETag, or its date."""
        answer = ask(path, "HEAD")
        if answer.status_code in (405, 501):  # a server that knows no HEAD
            answer.close()
            answer = ask(path, "GET")
        with answer:
            if answer.status_code in (404, 410):
                return None
            if answer.status_code != 200:
                raise Unreadable(f"expected the file, got {_status_of(answer)}", path=path)
            return _stat(answer)

    def open(self, path: str, offset: int = 0, expected: Stat | None = None) -> io.BufferedReader:
        return io.BufferedReader(WebReader(path, offset, expected), BUFFER)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        if length is not None and not length:
            return b""
        with io.BufferedReader(WebReader(path, offset, length=length), BUFFER) as stream:
            return stream.read()


class WebReader(io.RawIOBase):
    """The bytes of a file; the same version of it to the end, or an error.

    Args:
        path: Path of the file.
        offset: Offset of the first byte.
        expected: the version that it must be.
        headers: Headers of each request, beside those of a range.
        length: Bytes that are wanted, of which a file may have fewer; None for all to its end.

    Attributes:
        version: the version that is read; its size is 0 if the server does not say it.

    Raises:
        Unreadable: if the server does not give them.
        DataError: if the file changes meanwhile.
        FileNotFoundError: if there is none.
    """

    def __init__(
        self,
        path: str,
        offset: int = 0,
        expected: Stat | None = None,
        headers: dict[str, str] | None = None,
        length: int | None = None,
    ) -> None:
        super().__init__()
        self._headers = headers or {}
        self.version = expected
        self._path = path
        self._at = offset
        self._end = None if length is None else offset + length
        self._size = expected.size or None if expected else None
        self._answer: Any = None
        self._before = 0  # bytes that the answer has before those that are wanted
        if not self._is_at_end():
            self._connect()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = len(buffer)
        data = retrying.retry(_host(self._path), self._path, lambda: self._receive(size), self._judged)
        buffer[: len(data)] = data
        return len(data)

    def _is_at_end(self) -> bool:
        return any(end is not None and self._at >= end for end in (self._size, self._end))

    def _receive(self, size: int) -> bytes:
        """Return the bytes received so far, at most this many; none at the end."""
        try:
            if self._answer is None and not self._is_at_end():
                self._connect()
            if self._is_at_end():
                return b""
            self._skip()
            data = _receive(self._answer, size if self._end is None else min(size, self._end - self._at))
            if not data and self._size is not None:
                raise ConnectionError(f"the connection ended at byte {self._at:,} of {self._size:,}")
        except BaseException:
            self._close_answer()
            raise
        self._at += len(data)
        return data

    def _judged(self, error: Exception) -> RetryableError | None:
        """Return the trouble of a broken connection; None for other errors."""
        import urllib3.exceptions

        if isinstance(error, FileNotFoundError) or not isinstance(error, urllib3.exceptions.HTTPError | OSError):
            return None
        cause = f"none of it ({retrying.root_cause(error)})"
        return RetryableError(cause, expected=f"the rest from byte {self._at:,}")

    def _connect(self) -> None:
        """Request the rest of the file.

        A server may answer with the file from its beginning, which is then skipped, but not with any other part.
        """
        self._answer = answer = ask(
            self._path, "GET", self._headers | ({"Range": requested} if (requested := self._range()) else {})
        )
        if answer.status_code in (404, 410):
            self._fail(FileNotFoundError(2, "No such file", self._path))
        first, total = _content_range(answer)
        if answer.status_code == 416:
            if self._end is not None and total <= self._at:  # nothing of what is wanted is there
                self._size = total or self._at
                return self._close_answer()
            if self._size is None and total == self._at:  # the connection ended just before its end was told
                self._size = total
                return self._close_answer()
            size = f"{self._size:,} bytes, as the server said" if self._size else f"more than {self._at:,} bytes"
            self._fail(DataError(f"expected a file of {size}, got none after byte {self._at:,}", path=self._path))
        if answer.status_code not in (200, 206):
            self._fail(Unreadable(f"expected the file, got {_status_of(answer)}", path=self._path))
        if answer.status_code == 206 and first != self._at:
            got = answer.headers.get("Content-Range")
            self._fail(DataError(f"expected the bytes from {self._at:,}, got the range {got!r}", path=self._path))
        stat = _stat(answer)
        self._check_same(stat)
        if self.version is None or stat.size:
            self.version = stat
            self._size = stat.size or None
        self._before = self._at if answer.status_code == 200 else 0

    def _range(self) -> str:
        """Return the range of the rest; empty for the whole file."""
        if self._end is None:
            return f"bytes={self._at}-" if self._at else ""
        return f"bytes={self._at}-{self._end - 1}"

    def _check_same(self, now: Stat) -> None:
        before = self.version
        if before and (before.stamp != now.stamp or (before.size and now.size and before.size != now.size)):
            self._fail(
                DataError(
                    "expected a file that does not change while it is read, got one that has changed", path=self._path
                )
            )

    def _skip(self) -> None:
        while self._before:
            data = _receive(self._answer, min(self._before, BUFFER))
            if not data:
                raise ConnectionError("the connection ended before the byte to go on at")
            self._before -= len(data)

    def _fail(self, error: Exception) -> NoReturn:
        self._close_answer()
        raise error

    def _close_answer(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def close(self) -> None:
        self._close_answer()
        super().close()


def _receive(answer: Any, size: int) -> bytes:
    """Return the bytes received so far. Waiting for more would lose them if the connection breaks."""
    raw = answer.raw
    data: bytes = raw.read1(size) if hasattr(raw, "read1") else raw.read(min(size, 1 << 16))  # urllib3 < 2.1
    return data


CONNECTIONS = 32
"""Connections to one host that are kept open between requests."""


@cached(1)
def _session(_process: int) -> Any:
    """Return the HTTP session of this process, shared by all threads."""
    import requests
    from requests.adapters import HTTPAdapter

    session = requests.Session()
    session.headers.update({"User-Agent": _user_agent(), "Accept-Encoding": "identity"})
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))  # no request knows of another
    for scheme in ("http://", "https://"):
        session.mount(scheme, adapter := HTTPAdapter(pool_maxsize=CONNECTIONS))
        bound_headers(adapter.poolmanager)
    return session


class _Busy(Exception):
    """Raised for an answer of a busy server."""


def _host(path: str) -> str:
    return urllib.parse.urlsplit(path).netloc.rpartition("@")[2]


def ask(path: str, method: str, headers: dict[str, str] | None = None) -> Any:
    """Return an answer to a request; wait while the server is busy."""
    host = _host(path)

    def request() -> Any:
        answer = _session(os.getpid()).request(
            method,
            reveal_url(path),
            headers=headers,
            stream=method != "HEAD",  # what is read to its end gives its connection back
            timeout=retrying.timeouts(host),
            allow_redirects=True,
        )
        status = answer.status_code
        if status in BUSY or (status >= 500 and status not in KNOWN):
            answer.close()
            raise _Busy(answer)
        return answer

    answer = retrying.retry(host, path, request, lambda error: _classify(error, path))
    if answer.status_code >= 400 and answer.status_code not in KNOWN:
        answer.close()
        raise Unreadable(f"expected the file, got {_status_of(answer)}", path=path)
    return answer


def _classify(error: Exception, path: str) -> RetryableError | Unreadable | None:
    """Return the meaning of a request's error. A server that refuses from the beginning may do so for good."""
    import requests

    if isinstance(error, _Busy):
        answer = error.args[0]
        later = retrying.retry_after(answer.headers.get("Retry-After"))
        refuses = answer.status_code == REFUSED
        advice = (
            "the server refuses this address, or asks for patience: try again later, or another one" if refuses else ""
        )
        return RetryableError(_status_of(answer), answered=not refuses, later=later, expected="the file", advice=advice)
    if not isinstance(error, requests.exceptions.RequestException | ValueError):
        return None
    if _is_hopeless(error):
        return Unreadable(f"expected an answer, got: {retrying.root_cause(error)}", path=path)
    return RetryableError(f"none: {retrying.root_cause(error)}")


def _status_of(answer: Any) -> str:
    return f"the answer {answer.status_code} {answer.reason}"


def _is_hopeless(error: Exception) -> bool:
    """Return True if the same request would fail the same way."""
    from requests import exceptions

    return (
        isinstance(error, ValueError | exceptions.TooManyRedirects)  # URLs that are none are ValueErrors, too
        or "CERTIFICATE_VERIFY_FAILED" in str(error)
    )


@functools.cache
def _user_agent() -> str:
    """Return the name of the toolkit for servers."""
    try:
        return f"{distribution.NAME}/{distribution.version()}"
    except importlib.metadata.PackageNotFoundError:
        return distribution.NAME


def _content_range(answer: Any) -> tuple[int | None, int]:
    """Return first byte and file size by ``Content-Range``; None and 0 without one."""
    match = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)", answer.headers.get("Content-Range", "").strip())
    if not match:
        return None, 0
    return _number(match[1]), _number(match[2]) or 0


def _number(text: str | None) -> int | None:
    """Return a number of bytes; None for what no file can have, which a stranger may send."""
    return int(text) if text and re.fullmatch("[0-9]{1,18}", text) else None


def _stat(answer: Any) -> Stat:
    headers = answer.headers
    length = headers.get("Content-Length", "")
    size = _content_range(answer)[1] if answer.status_code == 206 else _number(length) or 0
    return Stat(size, f"etag {headers['ETag']}" if "ETag" in headers else f"date {headers.get('Last-Modified')}")
