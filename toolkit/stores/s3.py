"""Objects in S3, and in what speaks its protocol (extra ``s3``).

Credentials, region and endpoint come from the usual environment and files of AWS, and from `StorageOptions`. An object
appears when it is complete: a small one by one request, a larger one by a multipart upload that is aborted on failure;
what a killed process leaves of one is found by `S3.leftovers`. Reading goes on at the byte where a connection broke, of
the same version of the object or not at all.
"""

import email.utils
import io
import os
import posixpath
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import IO, Any, TypeVar, cast

from toolkit.errors import ConfigError, DataError, MissingExtra
from toolkit.stores import Stat
from toolkit.stores.addresses import cleaned, whole
from toolkit.stores.options import StorageOptions, options

T = TypeVar("T")

SMALL = 8 << 20
"""Bytes up to which an object is written by one request; also the size of the parts of others, at the beginning."""

PART_GROWTH = 1000
"""Parts after which their size is doubled: 10,000 are the limit."""

BUFFER = 1 << 20
"""Bytes that are read at a time."""

CONNECT, READ = 10, 60
"""Seconds without an answer, to a connection and to a request."""

ATTEMPTS = 6


def make() -> "S3":
    """The store with the options of this process."""
    return S3(options())


class S3:
    """The `toolkit.stores.Store` of ``s3://BUCKET/KEY``; one client a process, made when it is first needed."""

    def __init__(self, options: StorageOptions) -> None:
        self.options = options
        self._lock = threading.Lock()
        self._made: tuple[int, Any] | None = None
        self._payer = {"RequestPayer": "requester"} if options.request_payer else {}

    @property
    def client(self) -> Any:
        """A client of boto3; another one behind a fork."""
        with self._lock:
            if self._made is None or self._made[0] != os.getpid():
                self._made = os.getpid(), self._connect()
            return self._made[1]

    def _connect(self) -> Any:
        try:
            import boto3
            import botocore.exceptions
            from botocore import UNSIGNED
            from botocore.config import Config
        except ImportError:
            raise MissingExtra("s3:// needs the package boto3: pip install 'tagmix[s3]'") from None
        options = self.options
        config = Config(
            connect_timeout=CONNECT,
            read_timeout=READ,
            retries={"mode": "standard", "max_attempts": ATTEMPTS},
            max_pool_connections=32,
            s3={"addressing_style": options.addressing_style},
            signature_version=UNSIGNED if options.anonymous else None,
        )
        try:
            session = boto3.session.Session(profile_name=options.profile, region_name=options.region)
            endpoint = options.endpoint_url and whole(options.endpoint_url)
            return session.client("s3", endpoint_url=endpoint, config=config)
        except (botocore.exceptions.BotoCoreError, ValueError) as error:
            raise ConfigError(
                f"storage: expected options that S3 can be reached with, got: {cleaned(str(error))}"
            ) from None

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
        try:
            return self._ask(path, lambda: self.client.head_object(Bucket=bucket, Key=key, **self._payer))
        except FileNotFoundError:
            return None

    def is_folder(self, path: str) -> bool:
        bucket, key = split(path)
        prefix = _folder(key)
        return bool(self._page(path, Bucket=bucket, Prefix=prefix, MaxKeys=1).get("KeyCount"))

    def files(self, root: str) -> Iterator[str]:
        bucket, key = split(root)
        prefix = _folder(key)
        found = [
            entry["Key"][len(prefix) :]
            for page in self._pages(root, Bucket=bucket, Prefix=prefix)
            for entry in page.get("Contents", ())
        ]
        return iter(sorted(name for name in found if name and not name.endswith("/")))  # not all servers sort

    def folders(self, root: str) -> list[str]:
        bucket, key = split(root)
        prefix = _folder(key)
        return sorted(
            entry["Prefix"][len(prefix) : -1]
            for page in self._pages(root, Bucket=bucket, Prefix=prefix, Delimiter="/")
            for entry in page.get("CommonPrefixes", ())
        )

    def _page(self, path: str, **arguments: Any) -> dict[str, Any]:
        return cast("dict[str, Any]", self._ask(path, lambda: self.client.list_objects_v2(**arguments, **self._payer)))

    def _pages(self, path: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        while True:
            page = self._page(path, **arguments)
            yield page
            if not page.get("IsTruncated"):
                return
            arguments["ContinuationToken"] = page["NextContinuationToken"]

    # --- reading ------------------------------------------------------------------------------------------------------

    def open(self, path: str) -> IO[bytes]:
        bucket, key = split(path)
        found = self.stat(path)
        if found is None:
            self._page(path, Bucket=bucket, MaxKeys=1)  # which says if it is the bucket that is not there
            raise FileNotFoundError(2, "No such object", path)
        from smart_open import s3

        same = {"IfMatch": found.stamp.removeprefix("etag ")}
        parameters = {"client": self.client, "client_kwargs": {"S3.Client.get_object": same | self._payer}}
        # the URI is taken apart again there: characters that mean something in one must not
        opened = s3.open(bucket, key, "rb", buffer_size=BUFFER, defer_seek=True, **parameters)
        return io.BufferedReader(_Reading(opened, path, self._explained), BUFFER)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        bucket, key = split(path)
        if length == 0:
            return b""
        asked = {"Range": f"bytes={offset}-{'' if length is None else offset + length - 1}"} if offset or length else {}

        def get() -> bytes:
            body = self.client.get_object(Bucket=bucket, Key=key, **asked, **self._payer)["Body"]
            return cast("bytes", body.read())

        for attempt in range(ATTEMPTS):
            try:
                return self._ask(path, get)
            except _Broken:
                if attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError

    def pieces(self, path: str) -> "_Pieces":
        return _Pieces(self, path)

    # --- writing ------------------------------------------------------------------------------------------------------

    def writing(self, path: str) -> "_Writing":
        return _Writing(self, path)

    def create(self, path: str, data: bytes) -> bool:
        """By a conditional request; a server that knows none (and says so) lets nobody create anything."""
        bucket, key = split(path)
        try:
            self._ask(path, lambda: self.client.put_object(Bucket=bucket, Key=key, Body=data, IfNoneMatch="*"))
        except FileExistsError:
            return False
        return True

    def move(self, source: str, target: str) -> None:
        bucket, key = split(source)
        to_bucket, to_key = split(target)
        given = {"Bucket": bucket, "Key": key}
        self._ask(target, lambda: self.client.copy(given, to_bucket, to_key))  # in parts, where it is large
        self.remove(source)

    def remove(self, path: str) -> None:
        bucket, key = split(path)
        self._ask(path, lambda: self.client.delete_object(Bucket=bucket, Key=key))

    def remove_tree(self, root: str) -> None:
        bucket, key = split(root)
        names = list(self.files(root))
        for first in range(0, len(names), 1000):
            objects = [{"Key": _folder(key) + name} for name in names[first : first + 1000]]
            done = self._ask(
                root,
                lambda objects=objects: self.client.delete_objects(  # type: ignore[misc]
                    Bucket=bucket, Delete={"Objects": objects, "Quiet": True}
                ),
            )
            for error in done.get("Errors", ()):
                raise DataError(
                    f"expected to delete, got: {error.get('Message')}", path=f"s3://{bucket}/{error['Key']}"
                )

    def remove_empty_folders(self, folder: str, root: str) -> None:
        """There are none."""

    def check_writable(self, folder: str, where: str) -> None:
        """By an upload that is begun and aborted."""
        bucket, key = split(folder)
        probe = _folder(key) + ".toolkit/probe"

        def probed() -> None:
            made = self.client.create_multipart_upload(Bucket=bucket, Key=probe)
            self.client.abort_multipart_upload(Bucket=bucket, Key=probe, UploadId=made["UploadId"])

        try:
            self._ask(folder, probed)
        except (DataError, OSError) as error:
            raise ConfigError(f"{where}: expected a folder that may be written in: {cleaned(str(error))}") from None

    def leftovers(self, root: str, *, others: bool = True) -> list[str]:
        """Multipart uploads that are neither complete nor aborted; of living processes, too: see when they began."""
        bucket, key = split(root)
        found: list[str] = []
        more: dict[str, str] = {}
        while True:
            page = self._ask(
                root,
                lambda more=more: self.client.list_multipart_uploads(  # type: ignore[misc]
                    Bucket=bucket, Prefix=_folder(key), **more
                ),
            )
            found += [f"s3://{bucket}/{entry['Key']}?uploadId={entry['UploadId']}" for entry in page.get("Uploads", ())]
            if not page.get("IsTruncated"):
                return sorted(found)
            more = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}

    def discard(self, leftover: str) -> None:
        path, _, upload = leftover.rpartition("?uploadId=")
        bucket, key = split(path)
        with suppress(FileNotFoundError):
            self._ask(path, lambda: self.client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload))

    # --- errors -------------------------------------------------------------------------------------------------------

    def _ask(self, path: str, request: Callable[[], T]) -> T:
        """What a request gives, its errors in our words."""
        try:
            return request()
        except Exception as error:
            explained = self._explained(path, error)
            if explained is None:
                raise
            raise explained from None

    def _explained(self, path: str, error: BaseException) -> Exception | None:
        """What an error of boto3 means; None if it is none."""
        import botocore.exceptions as known

        error = getattr(error, "backend_error", None) or error  # smart_open puts it into an OSError
        bucket, _ = split(path)
        if isinstance(error, known.ClientError):
            answer = error.response
            code = answer.get("Error", {}).get("Code", "")
            status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
            if code == "NoSuchBucket":
                return ConfigError(f"s3://{bucket}: expected a bucket, got none of that name")
            if code in ("404", "NoSuchKey", "NotFound", "NoSuchUpload"):
                return FileNotFoundError(2, "No such object", path)
            if code in ("InvalidRange", "416"):
                return EOFError()
            if code in ("PreconditionFailed", "412", "ConditionalRequestConflict"):
                return FileExistsError(17, "expected the object as it was, it has been changed meanwhile", path)
            if code in ("InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"):
                return ConfigError(f"{path}: expected credentials that S3 knows, got {code}; check key and secret")
            if status in (401, 403):
                return ConfigError(f"{path}: expected permission for this, got {code or status}; check the credentials")
            if status in (301, 307, 400) and code in ("PermanentRedirect", "301", "AuthorizationHeaderMalformed"):
                return ConfigError(f"s3://{bucket}: expected its own region, got {code}; set `storage.region`")
            return DataError(f"expected an answer of S3, got {code or status}: {cleaned(str(error))}", path=path)
        if isinstance(error, known.NoCredentialsError | known.PartialCredentialsError):
            return ConfigError(f"{path}: expected credentials, got none; set AWS_ACCESS_KEY_ID, or `storage.anonymous`")
        if isinstance(error, known.EndpointConnectionError | known.ConnectTimeoutError | known.ProxyConnectionError):
            return _Unreachable(f"expected a server, got: {cleaned(str(error))}", path=path)
        if isinstance(error, known.BotoCoreError):
            return _Broken(f"expected an answer of S3, got: {cleaned(str(error))}", path=path)
        if type(error).__module__.startswith("urllib3"):
            return _Broken(f"expected an answer of S3, got {type(error).__name__}", path=path)
        return None


class _Broken(DataError):
    """A connection broke; the request may be made again."""


class _Unreachable(DataError):
    """Nobody answers."""


class _Reading(io.RawIOBase):
    """A stream of smart_open, its errors in our words."""

    def __init__(self, stream: Any, path: str, explained: Callable[[str, BaseException], Exception | None]) -> None:
        super().__init__()
        self._stream = stream
        self._path = path
        self._explained = explained

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except Exception as error:
            explained = self._explained(self._path, error)
            if isinstance(explained, FileExistsError):
                message = "expected the object as it was, it was changed while it was read"
                raise DataError(message, path=self._path) from None
            if explained:
                raise explained from None
            if isinstance(error, OSError):
                raise DataError(f"expected a connection that lasts, got: {error}", path=self._path) from None
            raise
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


class _Pieces:
    """A request for each."""

    def __init__(self, store: S3, path: str) -> None:
        self._store = store
        self._path = path

    def read(self, offset: int, length: int) -> bytes:
        return self._store.read(self._path, offset, length)

    def close(self) -> None:
        pass


class _Writing:
    """Held in memory up to `SMALL`, then a multipart upload."""

    def __init__(self, store: S3, path: str) -> None:
        self._store = store
        self._path = path
        self._bucket, self._key = split(path)
        self._held: list[bytes] = []
        self._size = 0
        self._part = SMALL
        self._upload: str | None = None
        self._parts: list[dict[str, Any]] = []

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
        done = self._asked("complete_multipart_upload", UploadId=self._upload, MultipartUpload={"Parts": self._parts})
        self._upload = None
        found = self._store.stat(self._path)
        if found is None:
            raise DataError("expected the object that was just written, got none", path=self._path)
        return found

    def abort(self) -> None:
        upload, self._upload = self._upload, None
        if upload is not None:
            self._store.discard(f"{self._path}?uploadId={upload}")

    def _send(self) -> None:
        if self._upload is None:
            self._upload = str(self._asked("create_multipart_upload")["UploadId"])
        number = len(self._parts) + 1
        done = self._asked("upload_part", UploadId=self._upload, PartNumber=number, Body=b"".join(self._held))
        self._parts.append({"ETag": done["ETag"], "PartNumber": number})
        self._held, self._size = [], 0
        if number % PART_GROWTH == 0:
            self._part *= 2

    def _asked(self, request: str, **arguments: Any) -> Any:
        ask = getattr(self._store.client, request)
        return self._store._ask(self._path, lambda: ask(Bucket=self._bucket, Key=self._key, **arguments))  # noqa: SLF001


def split(path: str) -> tuple[str, str]:
    """Bucket and key; ``.`` and ``..`` in a key are resolved, as in a path."""
    bucket, _, key = path.removeprefix("s3://").partition("/")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", bucket):
        raise ConfigError(f"{path}: expected s3://BUCKET/KEY")
    if any(part in (".", "..") for part in key.split("/")):
        key = posixpath.normpath(key)
    return bucket, key


def _folder(key: str) -> str:
    return key.rstrip("/") + "/" if key else ""
