"""Reading objects of S3: one version of an object, gone on with at the byte where a connection broke."""

import io
from typing import Any, cast

from toolkit.errors import DataError
from toolkit.storage.store import BUFFER, Stat
from toolkit.storage.stores.s3.errors import Broken
from toolkit.storage.stores.s3.names import split
from toolkit.storage.stores.s3.requests import Requests


class Reading(io.RawIOBase):
    """One version of an object, by smart_open; opened again at the byte where a connection broke."""

    def __init__(self, store: Requests, path: str, offset: int, found: Stat) -> None:
        super().__init__()
        self._store = store
        self._path = path
        self._place = split(path)
        self._same: dict[str, Any] = {"IfMatch": found.stamp.removeprefix("etag ")} | store.payer
        self._size = found.size
        self._at = offset
        self._stream: Any = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._at >= self._size:
            return 0
        try:
            data = self._store.ask(self._path, lambda: self._read(len(buffer)))
        except FileExistsError:
            message = "expected an object that does not change while it is read, got one that has changed"
            raise DataError(message, path=self._path) from None
        except FileNotFoundError:
            message = "expected an object that stays while it is read, got one that was deleted"
            raise DataError(message, path=self._path) from None
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _read(self, size: int) -> bytes:
        from smart_open import s3

        try:
            if self._stream is None:
                parameters: dict[str, Any] = {
                    "client": _Once(self._store.client),
                    "client_kwargs": {"S3.Client.get_object": self._same},
                }
                # the URI is taken apart again there: characters that mean something in one must not
                self._stream = s3.open(*self._place, "rb", buffer_size=BUFFER, defer_seek=True, **parameters)
                self._stream.seek(self._at)
            data = cast("bytes", self._stream.read(size))
            if not data:
                raise ConnectionError(f"the end at byte {self._at:,} of {self._size:,}")
        except BaseException:
            self._close_stream()
            raise
        return data

    def _close_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def close(self) -> None:
        self._close_stream()
        super().close()


class _Once:
    """A client whose bodies raise errors that smart_open does not know, or it would wait and read on by itself."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def get_object(self, **asked: Any) -> Any:
        answer = self._client.get_object(**asked)
        return answer | {"Body": _Body(answer["Body"])}


class _Body:
    def __init__(self, body: Any) -> None:
        self._body = body

    def read(self, size: int | None = None) -> bytes:
        try:
            return cast("bytes", self._body.read(size))
        except Exception as error:
            raise Broken(error) from None

    def close(self) -> None:
        self._body.close()
