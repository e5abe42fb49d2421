"""Objects in S3, and in what speaks its protocol (extra ``s3``).

Credentials, region and endpoint come from the usual environment and files of AWS, and from `StorageOptions`. An object
appears when it is complete: a small one by one request, a larger one by a multipart upload that is aborted on failure;
what a killed process leaves of one is found by `S3.leftovers`. Reading goes on at the byte where a connection broke, of
the same version of the object or not at all.
"""

import email.utils
import io
from collections.abc import Iterator
from contextlib import suppress
from operator import itemgetter
from typing import Any, cast

from toolkit.errors import ConfigError, Forbidden, Unreadable
from toolkit.storage.store import BUFFER, Stat, Writing
from toolkit.storage.stores.s3.errors import NoUpload, Unsaid
from toolkit.storage.stores.s3.names import prefix_of, split
from toolkit.storage.stores.s3.reading import Reading
from toolkit.storage.stores.s3.requests import Requests
from toolkit.storage.stores.s3.writing import MultipartWriting

HEADS = 3
"""Times that an object is looked for whose HEAD and GET say different things."""


class S3(Requests):
    """Objects as ``s3://BUCKET/KEY``."""

    # --- looking ------------------------------------------------------------------------------------------------------

    def stat(self, path: str) -> Stat | None:
        found = self._head(path)
        return Stat(found["ContentLength"], f"etag {found['ETag']}") if found else None

    def age(self, path: str) -> float | None:
        found = self._head(path)
        if found is None:
            return None
        now = email.utils.parsedate_to_datetime(found["ResponseMetadata"]["HTTPHeaders"]["date"])
        return float((now - found["LastModified"]).total_seconds())

    def _head(self, path: str) -> Any:
        bucket, key = split(path)
        if not key or key.endswith("/"):
            return None
        said: object = None
        for _ in range(HEADS):
            try:
                return self.ask(path, lambda: self.client.head_object(Bucket=bucket, Key=key, **self.payer))
            except Unsaid as error:  # why: an answer to HEAD has no body
                said = error
            try:
                self.read(path, 0, 1)
            except FileNotFoundError:
                return None
        message = f"expected the same answer to HEAD as to GET, got {said} for HEAD only; check the network between"
        raise Unreadable(f"{message} this machine and the bucket, then run again", path=path)

    def is_folder(self, path: str) -> bool:
        bucket, key = split(path)
        prefix = prefix_of(key)
        return bool(self._page(path, Bucket=bucket, Prefix=prefix, MaxKeys=1).get("KeyCount"))

    def files(self, root: str) -> Iterator[str]:
        return (name for name, _ in self.listing(root))

    def listing(self, root: str) -> Iterator[tuple[str, Stat | None]]:
        bucket, key = split(root)
        prefix = prefix_of(key)
        found = [
            (entry["Key"][len(prefix) :], _listed(entry))
            for page in self._pages(root, Bucket=bucket, Prefix=prefix)
            for entry in page.get("Contents", ())
        ]
        files = (each for each in found if each[0] and not each[0].endswith("/"))
        return iter(sorted(files, key=itemgetter(0)))  # not all servers sort

    def folders(self, root: str) -> list[str]:
        bucket, key = split(root)
        prefix = prefix_of(key)
        return sorted(
            entry["Prefix"][len(prefix) : -1]
            for page in self._pages(root, Bucket=bucket, Prefix=prefix, Delimiter="/")
            for entry in page.get("CommonPrefixes", ())
        )

    def _page(self, path: str, **arguments: Any) -> dict[str, Any]:
        page = cast("dict[str, Any]", self.ask(path, lambda: self.client.list_objects_v2(**arguments, **self.payer)))
        if "IsTruncated" not in page:  # an answer without content has nothing in it, either
            raise Unreadable("expected a listing, got an answer of S3 without one", path=path)
        return page

    def _pages(self, path: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        while True:
            page = self._page(path, **arguments)
            yield page
            if not page["IsTruncated"]:
                return
            if not page.get("NextContinuationToken"):
                raise Unreadable(
                    "expected a whole listing, got one that is cut short without saying how it goes on", path=path
                )
            arguments["ContinuationToken"] = page["NextContinuationToken"]

    # --- reading ------------------------------------------------------------------------------------------------------

    def open(self, path: str, offset: int = 0, expected: Stat | None = None) -> io.BufferedReader:
        found = expected or self.stat(path)
        if found is None:
            raise FileNotFoundError(2, "No such object", path)
        return io.BufferedReader(Reading(self, path, offset, found), BUFFER)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        bucket, key = split(path)
        if length == 0:
            return b""
        asked = {"Range": f"bytes={offset}-{'' if length is None else offset + length - 1}"} if offset or length else {}

        def get() -> bytes:
            body = self.client.get_object(Bucket=bucket, Key=key, **asked, **self.payer)["Body"]
            return cast("bytes", body.read())

        try:
            return self.ask(path, get)
        except EOFError:  # it ends before, or is empty
            return b""

    # --- writing ------------------------------------------------------------------------------------------------------

    def writing(self, path: str) -> Writing:
        return MultipartWriting(self, path)

    def create(self, path: str, data: bytes) -> bool:
        """Write a small object by a conditional request; a server that knows none says so, and nothing is created.

        The answer to a request that succeeded may be lost: the object is then there because of it.
        """
        bucket, key = split(path)
        attempts = 0

        def put() -> None:
            nonlocal attempts
            attempts += 1
            self.client.put_object(Bucket=bucket, Key=key, Body=data, IfNoneMatch="*")

        try:
            self.ask(path, put)
        except FileExistsError:
            return attempts > 1 and self.read(path) == data
        return True

    def move(self, source: str, target: str) -> None:
        found = self.stat(source)
        if found is None:
            raise FileNotFoundError(2, "No such object", source)
        writing = MultipartWriting(self, target)
        try:
            writing.copy(source, found.size)
        finally:
            writing.abort()
        self.remove(source)

    def remove(self, path: str) -> None:
        bucket, key = split(path)
        with suppress(FileNotFoundError):
            self.ask(path, lambda: self.client.delete_object(Bucket=bucket, Key=key))

    def remove_tree(self, root: str) -> None:
        bucket, key = split(root)
        names = list(self.files(root))
        for first in range(0, len(names), 1000):
            objects = [{"Key": prefix_of(key) + name} for name in names[first : first + 1000]]
            done = self.ask(
                root,
                lambda objects=objects: self.client.delete_objects(  # type: ignore[misc]
                    Bucket=bucket, Delete={"Objects": objects, "Quiet": True}
                ),
            )
            for error in done.get("Errors", ()):
                got = error.get("Message") or error.get("Code")
                raise Unreadable(f"expected to delete it, got: {got}", path=f"s3://{bucket}/{error['Key']}")

    def check_writable(self, folder: str, where: str) -> None:
        """Begin an upload below the folder, and abort it."""
        bucket, key = split(folder)
        probe = prefix_of(key) + ".toolkit/probe"

        try:
            made = self.ask(folder, lambda: self.client.create_multipart_upload(Bucket=bucket, Key=probe))
            self.discard(f"s3://{bucket}/{probe}?uploadId={made['UploadId']}")
        except Forbidden as error:
            raise ConfigError(f"{where}: expected a folder that may be written in: {error}") from None

    def leftovers(self, root: str, *, others: bool = False) -> list[str]:
        """Return multipart uploads that are neither complete nor aborted; nobody knows whose they are."""
        if not others:
            return []
        bucket, key = split(root)
        found: list[str] = []
        more: dict[str, str] = {}
        while True:
            page = self.ask(
                root,
                lambda more=more: self.client.list_multipart_uploads(  # type: ignore[misc]
                    Bucket=bucket, Prefix=prefix_of(key), **more
                ),
            )
            found += [f"s3://{bucket}/{entry['Key']}?uploadId={entry['UploadId']}" for entry in page.get("Uploads", ())]
            if not page.get("IsTruncated"):
                return sorted(found)
            more = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}

    def discard(self, leftover: str) -> None:
        path, _, upload = leftover.rpartition("?uploadId=")
        bucket, key = split(path)
        with suppress(NoUpload):
            self.ask(path, lambda: self.client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload))


def _listed(entry: dict[str, Any]) -> Stat | None:
    """Return what a listing says of an object; None if its server says less than S3 does."""
    return Stat(entry["Size"], f"etag {entry['ETag']}") if "ETag" in entry else None
