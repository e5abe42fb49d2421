"""Writing objects of S3, which appear when they are complete; every request may be made again."""

from contextlib import suppress
from typing import Any

import xxhash

from toolkit.errors import DataError, Unreadable
from toolkit.storage.store import BUFFER, Stat, Writing
from toolkit.storage.stores.s3.errors import NoUpload
from toolkit.storage.stores.s3.names import split
from toolkit.storage.stores.s3.requests import Requests
from toolkit.storage.threads import for_each

SMALL = 8 << 20
"""Bytes up to which an object is written by one request; also the size of the parts of others, at the beginning."""

PART_GROWTH = 1000
"""Parts after which their size is doubled: 10,000 are the limit."""

COPIED = 64 << 20
"""Bytes that S3 copies by one request, of a larger object; 10,000 are the limit."""


class MultipartWriting(Writing):
    """Held in memory up to `SMALL`, then a multipart upload."""

    def __init__(self, store: Requests, path: str) -> None:
        self._store = store
        self._path = path
        self._bucket, self._key = split(path)
        self._held: list[bytes] = []
        self._size = 0
        self._part = SMALL
        self._upload: str | None = None
        self._parts: list[dict[str, Any]] = []
        self._content = xxhash.xxh3_128()

    def write(self, data: bytes) -> None:
        self._held.append(data)
        self._size += len(data)
        if self._size >= self._part:
            self._send()

    def commit(self) -> Stat:
        if self._upload is None:
            body = b"".join(self._held)
            done = self._asked("put_object", Body=body)
            return Stat(len(body), f"etag {done['ETag']}")
        if self._size:
            self._send()
        self._complete()
        found = self._store.stat(self._path)
        if found is None:
            raise DataError("expected the object that was just written, got none", path=self._path)
        return found

    def copy(self, source: str, size: int) -> None:
        """Write what another object has, which S3 copies by itself."""
        bucket, key = split(source)
        given = {"Bucket": bucket, "Key": key}
        if size <= COPIED:
            self._asked("copy_object", CopySource=given)
            return
        self._begin()
        step = max(COPIED, -(-size // 10_000))

        def copy_part(first: int) -> dict[str, Any]:
            number, piece = first // step + 1, f"bytes={first}-{min(size, first + step) - 1}"
            done = self._asked(
                "upload_part_copy", UploadId=self._upload, PartNumber=number, CopySource=given, CopySourceRange=piece
            )
            return {"ETag": done["CopyPartResult"]["ETag"], "PartNumber": number}

        self._parts = for_each(copy_part, range(0, size, step))
        self._complete(source)

    def _complete(self, source: str = "") -> None:
        """Make the object appear. The answer may be lost: then there is no such upload any more, but the object."""
        attempts = 0

        def complete() -> None:
            nonlocal attempts
            attempts += 1
            self._store.client.complete_multipart_upload(
                Bucket=self._bucket, Key=self._key, UploadId=self._upload, MultipartUpload={"Parts": self._parts}
            )

        try:
            self._store.ask(self._path, complete)
        except NoUpload:
            if attempts == 1 or not self._is_there(source):
                raise
        self._upload = None

    def _is_there(self, source: str) -> bool:
        """Return whether the object is the one that was written."""
        try:
            wanted = stored_content(self._store, source) if source else self._content.digest()
            return stored_content(self._store, self._path) == wanted
        except FileNotFoundError:
            return False

    def abort(self) -> None:
        upload, self._upload = self._upload, None
        if upload is not None:
            with suppress(Unreadable):  # why it is aborted is what is told; `toolkit clean` finds it
                self._store.discard(f"{self._path}?uploadId={upload}")

    def _begin(self) -> None:
        self._upload = str(self._asked("create_multipart_upload")["UploadId"])

    def _send(self) -> None:
        if self._upload is None:
            self._begin()
        number = len(self._parts) + 1
        body = b"".join(self._held)
        self._content.update(body)
        done = self._asked("upload_part", UploadId=self._upload, PartNumber=number, Body=body)
        self._parts.append({"ETag": done["ETag"], "PartNumber": number})
        self._held, self._size = [], 0
        if number % PART_GROWTH == 0:
            self._part *= 2

    def _asked(self, request: str, **arguments: Any) -> Any:
        def ask() -> Any:
            return getattr(self._store.client, request)(Bucket=self._bucket, Key=self._key, **arguments)

        return self._store.ask(self._path, ask)


def stored_content(store: Requests, path: str) -> bytes:
    """Return the xxh3-128 of an object's bytes."""
    digest = xxhash.xxh3_128()
    with store.open(path) as stream:
        while block := stream.read(BUFFER):
            digest.update(block)
    return digest.digest()
