"""What the errors of boto3 mean: whether a request may be made again, what is not there, what must be mended."""

from typing import Any

from toolkit.errors import Forbidden, Unreadable
from toolkit.storage.addresses import cleaned
from toolkit.storage.objects import Broken, NoUpload
from toolkit.storage.retrying import Trouble, bottom, seconds_asked

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
"""What to do about codes that say that the one who asks is not known."""

REGION = ("PermanentRedirect", "301", "TemporaryRedirect", "IllegalLocationConstraintException")


SAID = 200
"""Characters of a server's own words that are shown."""


class Unsaid(Exception):
    """The answer to a HEAD has a status and no reason."""


def explain(error: BaseException, path: str, bucket: str) -> Trouble | Exception | None:
    """Return what an error of boto3 means; None for an error of something else."""
    import botocore.exceptions as known
    from botocore.parsers import ResponseParserError

    if isinstance(error, Broken):
        inner = error.args[0]
        return explain(inner, path, bucket) or _trouble(inner)
    if isinstance(error, known.ClientError):
        return _answer(error, path, bucket)
    if isinstance(error, RecursionError):  # boto3 asks each place for the next
        what = "an answer of S3, got redirections without end; is `storage.endpoint_url` right?"
        return Unreadable(f"expected {what}", path=path, exit_code=2)
    if isinstance(error, known.NoCredentialsError | known.PartialCredentialsError):
        what = "credentials, got none; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or `storage.anonymous`"
        return Unreadable(f"expected {what}", path=path, exit_code=2)
    if isinstance(error, known.SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
        return Unreadable(
            f"expected a certificate that is trusted here, got: {cleaned(str(error))}", path=path, exit_code=2
        )
    passing = known.HTTPClientError | known.ConnectionError | known.IncompleteReadError
    damaged = known.ChecksumError | known.FlexibleChecksumError | ResponseParserError
    if isinstance(error, passing | damaged | ConnectionError | TimeoutError) or (
        type(error).__module__.startswith("urllib3")
    ):
        return _trouble(error)
    if isinstance(error, known.BotoCoreError):  # credentials that cannot be fetched, names that no request can have
        return Unreadable(
            f"expected a request that can be sent to S3, got: {cleaned(str(error))}", path=path, exit_code=2
        )
    return None


def _trouble(error: BaseException) -> Trouble:
    """Return that a connection was not made, or broke."""
    name = type(error).__name__
    if name in ("EndpointConnectionError", "ProxyConnectionError", "ConnectTimeoutError"):
        return Trouble(bottom(error), expected="a server")
    return Trouble({"ReadTimeoutError": "no answer"}.get(name) or f"a broken connection ({bottom(error)})")


def _answer(error: Any, path: str, bucket: str) -> Trouble | Exception:
    """Return what an answer of S3 means."""
    answer = error.response
    code = str(answer.get("Error", {}).get("Code", ""))
    meta = answer.get("ResponseMetadata", {})
    status = int(meta.get("HTTPStatusCode") or 0)
    said = code if code == str(status) or not status else f"{status} {code}".strip()
    is_head = error.operation_name == "HeadObject"
    if code in BUSY or status in (408, 429) or (status >= 500 and status != 501):
        later = seconds_asked(meta.get("HTTPHeaders", {}).get("retry-after"))
        return Trouble(said, answered=True, later=later, expected="an answer of S3")
    if missing := _missing(code, path, bucket):
        return missing
    if is_head and status in (400, 403, 404):
        return Unsaid(said)
    if status >= 400 and code in ("", str(status)) and not is_head and status != 416:
        return Trouble(f"a broken answer ({status} without its reason)", answered=True, expected="an answer of S3")
    return _refusal(error, code, status, said, path)


def _missing(code: str, path: str, bucket: str) -> Exception | None:
    """Return that the bucket, the object or the upload is not there, if S3 says so."""
    if code == "NoSuchBucket":
        return Unreadable("expected a bucket, got none of that name", path=f"s3://{bucket}", exit_code=2)
    if code == "NoSuchKey":
        return FileNotFoundError(2, "No such object", path)
    if code == "NoSuchUpload":
        return NoUpload(
            "expected the upload that this run has begun, got none; did `toolkit clean` run meanwhile?", path=path
        )
    return None


def _refusal(error: Any, code: str, status: int, said: str, path: str) -> Exception:
    """Return why S3 does not do what it was asked for, however often it is asked."""
    if code in ("InvalidRange", "416"):
        return EOFError()
    if code in ("PreconditionFailed", "412"):
        return FileExistsError(17, "expected the object as it was, it has been changed meanwhile", path)
    if code in CREDENTIALS:
        what = "its own region" if code == "AuthorizationHeaderMalformed" else "to be known to S3"
        return Unreadable(f"expected {what}, got {said}; {CREDENTIALS[code]}", path=path, exit_code=2)
    if code in REGION or status in (301, 307):
        return Unreadable(f"expected its own region, got {said}; set `storage.region`", path=path, exit_code=2)
    if status in (401, 403):
        advice = (
            "check what these credentials may do with this bucket; S3 may also answer so if the object does not exist"
        )
        return Forbidden(
            f"expected permission for {error.operation_name}, got {said}; {advice}", path=path, exit_code=2
        )
    message = cleaned(error.response.get("Error", {}).get("Message") or "no message")[:SAID]
    return Unreadable(
        f"expected an answer of S3 to {error.operation_name}, got {said}: {message}; is `storage.endpoint_url` right?",
        path=path,
        exit_code=2,
    )
