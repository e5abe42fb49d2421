"""Objects in S3 and compatible servers (extra ``s3``).

Credentials, region and endpoint come from the usual environment and files of AWS, and from `StorageOptions`.
"""

import email.utils
from typing import Any, cast

from toolkit.distribution import missing_extra
from toolkit.errors import ConfigError, Unreadable
from toolkit.storage import addresses, objects as object_store, retrying, store, threads
from toolkit.storage_options import DEFAULTS, StorageOptions

HEADS = 3
"""Times that an object is looked for whose HEAD and GET say different things."""

COPIED = 64 << 20
"""Bytes that S3 copies by one request, of a larger object; 10,000 are the limit."""

BUSY = {
    "BadDigest",
    "ConditionalRequestConflict",
    "IncompleteBody",
    "InternalError",
    "OperationAborted",
    "RequestLimitExceeded",
    "RequestTimeout",
    "RequestTimeoutException",
    "ServiceUnavailable",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequests",
    "XAmzContentSHA256Mismatch",
}
"""Codes of requests that may succeed later, beside the statuses 408, 429 and those from 500."""

CREDENTIALS = {
    "AccountProblem": "ask Amazon about the account",
    "AuthorizationHeaderMalformed": "set `storage.region`",
    "ExpiredToken": "renew the session token; what is done stays done",
    "InvalidAccessKeyId": "check the key (AWS_ACCESS_KEY_ID), and that it is one of this server",
    "InvalidToken": "check the session token (AWS_SESSION_TOKEN): it may be of another key",
    "RequestTimeTooSkewed": "set this machine's clock, which differs from the server's",
    "SignatureDoesNotMatch": "check the secret (AWS_SECRET_ACCESS_KEY)",
    "TokenRefreshRequired": "renew the session token; what is done stays done",
}
"""Next steps for error codes about unknown credentials."""

REGION = ("PermanentRedirect", "301", "TemporaryRedirect", "IllegalLocationConstraintException")


class Unsaid(Exception):
    """The answer to a HEAD has a status and no reason."""


class S3(object_store.Objects):
    """Objects as ``s3://BUCKET/KEY``."""

    service = "S3"
    hint = "; is `storage.endpoint_url` right?"

    def __init__(self, options: StorageOptions = DEFAULTS) -> None:
        super().__init__(options)
        self._session: Any = None
        self.payer = {"RequestPayer": "requester"} if self.options.request_payer else {}

    def connect(self, connect: float, read: float) -> tuple[Any, str]:
        try:
            import boto3
            import botocore.exceptions
            from botocore import UNSIGNED
            from botocore.config import Config
        except ImportError:
            raise missing_extra("s3", "s3://", "boto3") from None
        config = Config(
            connect_timeout=connect,
            read_timeout=read,
            retries={"mode": "standard", "total_max_attempts": 1},  # see `toolkit.storage.retrying`
            max_pool_connections=object_store.CONNECTIONS,
            s3={"addressing_style": self.options.addressing_style},
            signature_version=UNSIGNED if self.options.anonymous else None,
        )
        try:
            if not self._clients:  # of this process
                self._session = boto3.session.Session(
                    profile_name=self.options.profile, region_name=self.options.region
                )
            endpoint = self.options.endpoint_url and addresses.reveal_url(self.options.endpoint_url)
            client = self._session.client("s3", endpoint_url=endpoint, config=config)
        except (botocore.exceptions.BotoCoreError, ValueError) as error:
            raise ConfigError(
                f"storage: expected options that S3 can be reached with, got: {addresses.redact_text(str(error))}"
            ) from None
        return client, client.meta.endpoint_url

    def explain(self, error: BaseException, path: str, bucket: str) -> retrying.RetryableError | Exception | None:
        import botocore.exceptions as known
        from botocore.parsers import ResponseParserError

        error = getattr(error, "backend_error", None) or error  # smart_open wraps them
        if isinstance(error, object_store.Broken):
            inner = error.args[0]
            return self.explain(inner, path, bucket) or object_store.trouble(inner, path)
        if isinstance(error, known.ClientError):
            return self._answered(error, path)
        passing = known.HTTPClientError | known.ConnectionError | known.IncompleteReadError
        damaged = known.ChecksumError | known.FlexibleChecksumError | ResponseParserError
        if isinstance(error, passing | damaged) or object_store.is_broken(error):
            return object_store.trouble(error, path)
        if isinstance(error, RecursionError):  # boto3 asks each place for the next
            message = f"an answer of S3, got redirections without end{self.hint}"
        elif isinstance(error, known.NoCredentialsError | known.PartialCredentialsError):
            message = "credentials, got none; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or `storage.anonymous`"
        elif isinstance(error, known.BotoCoreError):  # credentials that cannot be fetched, names that no request has
            message = f"a request that can be sent to S3, got: {addresses.redact_text(str(error))}"
        else:
            return None
        return Unreadable(f"expected {message}", path=path, exit_code=2)

    def _answered(self, error: Any, path: str) -> retrying.RetryableError | Exception:
        """Return the meaning of an answer of S3."""
        code = str(error.response.get("Error", {}).get("Code", ""))
        meta = error.response.get("ResponseMetadata", {})
        status, operation = int(meta.get("HTTPStatusCode") or 0), error.operation_name
        reply = code if code == str(status) or not status else f"{status} {code}".strip()
        is_busy = code in BUSY or status in (408, 429) or (status >= 500 and status != 501)
        if code == "NoSuchBucket":
            return self.no_bucket(path)
        if code == "NoSuchKey":
            return FileNotFoundError(2, "No such object", path)
        if code == "NoSuchUpload":
            expected = "expected the upload that this run has begun, got none; did `toolkit clean` run meanwhile?"
            return object_store.NoUpload(expected, path=path)
        if operation == "HeadObject" and status in (400, 403, 404) and not is_busy:
            return Unsaid(reply)
        if status >= 400 and code in ("", str(status)) and operation != "HeadObject" and status != 416 and not is_busy:
            cause = f"a broken answer ({status} without its reason)"
            return retrying.RetryableError(cause, answered=True, expected="an answer of S3")
        if code in CREDENTIALS:
            expected = "its own region" if code == "AuthorizationHeaderMalformed" else "to be known to S3"
            return Unreadable(f"expected {expected}, got {reply}; {CREDENTIALS[code]}", path=path, exit_code=2)
        if code in REGION or status in (301, 307):
            return Unreadable(f"expected its own region, got {reply}; set `storage.region`", path=path, exit_code=2)
        status = {"InvalidRange": 416, "416": 416, "PreconditionFailed": 412, "412": 412}.get(code, status)
        later = retrying.retry_after(meta.get("HTTPHeaders", {}).get("retry-after"))
        message = error.response.get("Error", {}).get("Message") or "no message"
        status = 503 if is_busy else 403 if status == 401 else status
        return self.answer(status, reply, message, path, later, operation)

    def head(self, path: str) -> tuple[store.Stat, float] | None:
        bucket, key = object_store.split(path)
        status: object = None
        for _ in range(HEADS):
            try:
                result = self.ask(path, lambda: self.client.head_object(Bucket=bucket, Key=key, **self.payer))
            except Unsaid as error:  # why: an answer to HEAD has no body
                status = error
            else:
                now = email.utils.parsedate_to_datetime(result["ResponseMetadata"]["HTTPHeaders"]["date"])
                return store.Stat(result["ContentLength"], f"etag {result['ETag']}"), (
                    now - result["LastModified"]
                ).total_seconds()
            try:
                self.read(path, 0, 1)
            except FileNotFoundError:
                return None
        message = f"expected the same answer to HEAD as to GET, got {status} for HEAD only; check the network between"
        raise Unreadable(f"{message} this machine and the bucket, then run again", path=path)

    def page(
        self, path: str, prefix: str, token: str | None, *, folders: bool = False, limit: int = 1000
    ) -> object_store.Page:
        options: dict[str, Any] = {"Delimiter": "/"} if folders else {}
        if token:
            options["ContinuationToken"] = token
        bucket = object_store.split(path)[0]
        page = self.client.list_objects_v2(Bucket=bucket, Prefix=prefix, MaxKeys=limit, **options, **self.payer)
        if "IsTruncated" not in page:  # an answer without content has nothing in it, either
            raise Unreadable("expected a listing, got an answer of S3 without one", path=path)
        following = page.get("NextContinuationToken") if page["IsTruncated"] else None
        if page["IsTruncated"] and not following:
            message = "expected a whole listing, got one that is cut short without saying how it goes on"
            raise Unreadable(message, path=path)
        return object_store.Page(
            [  # a server may say less than S3 does
                (entry["Key"], store.Stat(entry["Size"], f"etag {entry['ETag']}") if "ETag" in entry else None)
                for entry in page.get("Contents", ())
            ],
            [entry["Prefix"] for entry in page.get("CommonPrefixes", ())],
            following,
        )

    def get(self, path: str, offset: int, length: int | None) -> bytes:
        bucket, key = object_store.split(path)
        options = (
            {"Range": f"bytes={offset}-{'' if length is None else offset + length - 1}"} if offset or length else {}
        )
        body = self.client.get_object(Bucket=bucket, Key=key, **options, **self.payer)["Body"]
        return cast("bytes", body.read())

    def stream(self, path: str, offset: int, expected: store.Stat) -> Any:
        from smart_open import s3

        same = {"IfMatch": expected.stamp.removeprefix("etag ")} | self.payer
        parameters: dict[str, Any] = {"client": _Once(self.client), "client_kwargs": {"S3.Client.get_object": same}}
        # the URI is taken apart again there: characters that mean something in one must not
        stream = s3.open(*object_store.split(path), "rb", buffer_size=store.BUFFER, defer_seek=True, **parameters)
        stream.seek(offset)
        return stream

    def upload(self, path: str, data: bytes, *, new: bool = False) -> store.Stat:
        bucket, key = object_store.split(path)
        condition = {"IfNoneMatch": "*"} if new else {}  # a server that knows none says so
        answer = self.client.put_object(Bucket=bucket, Key=key, Body=data, **condition)
        return store.Stat(len(data), f"etag {answer['ETag']}")

    def begin(self, path: str) -> str:
        bucket, key = object_store.split(path)
        begun = self.ask(path, lambda: self.client.create_multipart_upload(Bucket=bucket, Key=key))
        return str(begun["UploadId"])

    def send(self, path: str, upload: str, part: object_store.UploadPart) -> Any:
        bucket, key = object_store.split(path)
        answer = self.client.upload_part(
            Bucket=bucket, Key=key, UploadId=upload, PartNumber=part.number, Body=part.body
        )
        return {"ETag": answer["ETag"], "PartNumber": part.number}

    def complete(self, path: str, upload: str, parts: list[Any]) -> None:
        bucket, key = object_store.split(path)
        self.client.complete_multipart_upload(Bucket=bucket, Key=key, UploadId=upload, MultipartUpload={"Parts": parts})

    def cancel(self, path: str, upload: str) -> None:
        bucket, key = object_store.split(path)
        self.client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload)

    def copy(self, source: str, target: str, size: int) -> None:
        """Copy an object; a large one in pieces."""
        bucket, key = object_store.split(target)
        copy_source = dict(zip(("Bucket", "Key"), object_store.split(source), strict=True))
        if size <= COPIED:
            self.ask(target, lambda: self.client.copy_object(Bucket=bucket, Key=key, CopySource=copy_source))
            return
        writing = object_store.ObjectWriting(self, target)
        writing.upload = self.begin(target)
        step = max(COPIED, -(-size // 10_000))

        def copy_part(first: int) -> dict[str, Any]:
            part = {
                "UploadId": writing.upload,
                "PartNumber": first // step + 1,
                "CopySource": copy_source,
                "CopySourceRange": f"bytes={first}-{min(size, first + step) - 1}",
            }
            answer = self.ask(target, lambda: self.client.upload_part_copy(Bucket=bucket, Key=key, **part))
            return {"ETag": answer["CopyPartResult"]["ETag"], "PartNumber": part["PartNumber"]}

        try:
            writing.parts = threads.for_each(copy_part, range(0, size, step))
            writing.complete(source)
        finally:
            writing.abort()

    def delete(self, path: str) -> None:
        bucket, key = object_store.split(path)
        self.client.delete_object(Bucket=bucket, Key=key)

    def remove_tree(self, root: str) -> None:
        bucket, key = object_store.split(root)
        names = list(self.files(root))
        for first in range(0, len(names), 1000):
            objects = [{"Key": object_store.prefix_of(key) + name} for name in names[first : first + 1000]]
            answer = self.ask(
                root,
                lambda objects=objects: self.client.delete_objects(  # type: ignore[misc]
                    Bucket=bucket, Delete={"Objects": objects, "Quiet": True}
                ),
            )
            for error in answer.get("Errors", ()):
                got = error.get("Message") or error.get("Code")
                raise Unreadable(f"expected to delete it, got: {got}", path=f"s3://{bucket}/{error['Key']}")

    def leftovers(self, root: str, *, any_owner: bool = False) -> list[str]:
        """Return unfinished multipart uploads; their owner is unknown."""
        if not any_owner:
            return []
        bucket, key = object_store.split(root)
        results: list[str] = []
        more: dict[str, str] = {}
        while True:
            page = self.ask(
                root,
                lambda more=more: self.client.list_multipart_uploads(  # type: ignore[misc]
                    Bucket=bucket, Prefix=object_store.prefix_of(key), **more
                ),
            )
            results += [
                f"s3://{bucket}/{entry['Key']}{object_store.UPLOAD}{entry['UploadId']}"
                for entry in page.get("Uploads", ())
            ]
            if not page.get("IsTruncated"):
                return sorted(results)
            more = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}


class _Once:
    """A client without retries for smart_open: its bodies raise errors unknown to smart_open."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def get_object(self, **options: Any) -> Any:
        answer = self._client.get_object(**options)
        return answer | {"Body": _Body(answer["Body"])}


class _Body:
    def __init__(self, body: Any) -> None:
        self._body = body

    def read(self, size: int | None = None) -> bytes:
        try:
            return cast("bytes", self._body.read(size))
        except Exception as error:
            raise object_store.Broken(error) from None

    def close(self) -> None:
        self._body.close()
