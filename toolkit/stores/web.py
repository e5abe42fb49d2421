"""Files on the web, for reading: politely, and going on at the byte where a connection broke."""

import email.utils
import io
import random
import time
from collections.abc import Iterator
from typing import IO, Any, NoReturn

from toolkit.errors import ConfigError, DataError
from toolkit.stores import Stat

BUFFER = 1 << 20
"""Bytes that are read at a time."""

CONNECT, READ = 10, 60
"""Seconds without an answer, to a connection and to a request."""

ATTEMPTS = 8
"""Requests without any progress, before it is given up."""

LONGEST = 60.0
"""Seconds between two attempts, whatever the server asks for."""

BUSY = (403, 429, 500, 502, 503, 504)
"""Answers that may be others later; 403 is how Common Crawl's servers ask for patience."""


class Web:
    """The `toolkit.stores.Store` of ``http://`` and ``https://``."""

    def stat(self, path: str) -> Stat | None:
        """None where the server has no such file; the stamp is its ETag, or its date."""
        with _asked(path, "HEAD") as answer:
            if answer.status_code in (404, 410):
                return None
            return _stat(answer)

    def age(self, path: str) -> None:
        """Nobody asks."""

    def is_folder(self, path: str) -> bool:
        return False

    def open(self, path: str) -> IO[bytes]:
        return io.BufferedReader(_Reading(path), BUFFER)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        with io.BufferedReader(_Reading(path, offset), BUFFER) as stream:
            return stream.read() if length is None else stream.read(length)

    def files(self, root: str) -> Iterator[str]:
        raise ConfigError(f"{root}: expected a single file, the web has no folders to list")

    def folders(self, root: str) -> list[str]:
        raise ConfigError(f"{root}: expected a single file, the web has no folders to list")

    def leftovers(self, root: str, *, others: bool = False) -> list[str]:
        return []

    def check_writable(self, folder: str, where: str) -> NoReturn:
        raise ConfigError(f"{where}: expected a folder on disk or s3://, got {folder}")

    def pieces(self, path: str) -> NoReturn:
        _refuse(path)

    def writing(self, path: str) -> NoReturn:
        _refuse(path)

    def create(self, path: str, data: bytes) -> NoReturn:
        _refuse(path)

    def move(self, source: str, target: str) -> NoReturn:
        _refuse(target)

    def remove(self, path: str) -> NoReturn:
        _refuse(path)

    def remove_tree(self, root: str) -> NoReturn:
        _refuse(root)

    def remove_empty_folders(self, folder: str, root: str) -> NoReturn:
        _refuse(folder)

    def discard(self, leftover: str) -> NoReturn:
        _refuse(leftover)


def make() -> Web:
    return Web()


def _refuse(path: str) -> NoReturn:
    raise ConfigError(f"{path}: expected a place to write to, the web is for reading")


class _Reading(io.RawIOBase):
    """The bytes of a file; the same version of it to the end, or an error.

    Raises:
        DataError: if the server does not give them, or the file changes meanwhile.
        FileNotFoundError: if there is none.
    """

    def __init__(self, path: str, offset: int = 0) -> None:
        super().__init__()
        self._path = path
        self._at = offset
        self._size: int | None = None
        self._stamp: str | None = None
        self._answer: Any = None
        self._connect()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._piece(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _piece(self, size: int) -> bytes:
        import urllib3.exceptions

        for attempt in range(ATTEMPTS):
            try:
                if self._answer is None:
                    self._connect()
                data: bytes = self._answer.raw.read(size)
                if not data and self._size is not None and self._at < self._size:
                    raise ConnectionError(f"the connection ended at byte {self._at:,} of {self._size:,}")
                self._at += len(data)
                return data
            except (urllib3.exceptions.HTTPError, OSError) as error:
                self._close_answer()
                if attempt == ATTEMPTS - 1:
                    message = f"expected the rest from byte {self._at:,}, got: {error}"
                    raise DataError(message, path=self._path) from None
                _wait(attempt, None)
        raise AssertionError

    def _connect(self) -> None:
        headers = {"Accept-Encoding": "identity"}
        if self._at:
            headers["Range"] = f"bytes={self._at}-"
        answer = _asked(self._path, "GET", headers)
        if answer.status_code in (404, 410):
            raise FileNotFoundError(2, "No such file", self._path)
        if answer.status_code == 416:
            answer.close()
            raise DataError(f"expected a file of more than {self._at:,} bytes", path=self._path)
        found = _stat(answer)
        if self._stamp not in (None, found.stamp):
            answer.close()
            raise DataError("expected the file as it was, it was changed while it was read", path=self._path)
        self._stamp = found.stamp
        self._answer = answer
        length = answer.headers.get("Content-Length")
        if answer.status_code == 206:
            self._size = self._at + int(length) if length else None
        else:
            self._size = int(length) if length else None
            self._skip(self._at)  # a server that knows no ranges

    def _skip(self, count: int) -> None:
        while count:
            data = self._answer.raw.read(min(count, 1 << 20))
            if not data:
                raise ConnectionError("the connection ended before the byte to go on at")
            count -= len(data)

    def _close_answer(self) -> None:
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def close(self) -> None:
        self._close_answer()
        super().close()


def _asked(path: str, method: str, headers: dict[str, str] | None = None) -> Any:
    """An answer to a request, once the server is not too busy for it."""
    import requests

    for attempt in range(ATTEMPTS):
        last = attempt == ATTEMPTS - 1
        try:
            answer = requests.request(
                method, path, headers=headers, stream=True, timeout=(CONNECT, READ), allow_redirects=True
            )
        except requests.exceptions.RequestException as error:
            if last or isinstance(error, requests.exceptions.InvalidURL | requests.exceptions.InvalidSchema):
                raise DataError(f"expected an answer, got: {error}", path=path) from None
            _wait(attempt, None)
            continue
        if answer.status_code in BUSY and not last:
            answer.close()
            _wait(attempt, answer.headers.get("Retry-After"))
            continue
        if answer.status_code in BUSY or (answer.status_code >= 400 and answer.status_code not in (404, 410, 416)):
            answer.close()
            raise DataError(f"expected the file, got the answer {answer.status_code} {answer.reason}", path=path)
        return answer
    raise AssertionError


def _wait(attempt: int, asked: str | None) -> None:
    """As long as the server asks for; else twice as long each time, about."""
    seconds = min(LONGEST, 0.5 * 2**attempt) * random.uniform(0.5, 1)  # noqa: S311
    if asked is not None:
        if asked.strip().isdigit():
            seconds = float(asked)
        elif (when := email.utils.parsedate_to_datetime(asked)) is not None:
            seconds = when.timestamp() - time.time()
    time.sleep(max(0.0, min(LONGEST, seconds)))


def _stat(answer: Any) -> Stat:
    headers = answer.headers
    size = int(headers.get("Content-Length") or 0)
    if answer.status_code == 206:
        size = int(headers.get("Content-Range", "/0").rpartition("/")[2] or 0)
    return Stat(size, f"etag {headers['ETag']}" if "ETag" in headers else f"date {headers.get('Last-Modified')}")
