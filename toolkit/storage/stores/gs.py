"""Objects in Google Cloud Storage (extra ``gs``).

Credentials are those that Google's own tools find. A version is a generation, which is pinned while it is read. An
object larger than `toolkit.storage.objects.SMALL` is written by a resumable upload. Uploads that a killed process
leaves cannot be listed; Google deletes them after a week.
"""

import os
import time
from email.utils import parsedate_to_datetime
from typing import Any, cast

from toolkit.distribution import missing_extra
from toolkit.errors import ConfigError, Unreadable
from toolkit.storage import retrying
from toolkit.storage.addresses import redact_text
from toolkit.storage.objects import CONNECTIONS, NoUpload, Objects, Page, UploadPart, is_broken, split, trouble
from toolkit.storage.retrying import RetryableError
from toolkit.storage.store import BUFFER, Stat

SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"
EMULATOR = "STORAGE_EMULATOR_HOST"
_CREDENTIALS = "set GOOGLE_APPLICATION_CREDENTIALS, run `gcloud auth application-default login`, or `storage.anonymous`"


class Gs(Objects):
    """Objects as ``gs://BUCKET/KEY``."""

    service = "Google Cloud Storage"
    unit = 256 << 10

    def connect(self, connect: float, read: float) -> tuple[Any, str]:
        try:
            import google.auth
            from google.auth.credentials import AnonymousCredentials
            from google.auth.transport.requests import AuthorizedSession
            from google.cloud import storage
        except ImportError:
            raise missing_extra("gs", "gs://", "google-cloud-storage") from None
        from requests.adapters import HTTPAdapter

        url = os.environ.get(EMULATOR, "") or "https://storage.googleapis.com"
        try:
            is_open = self.options.anonymous or EMULATOR in os.environ
            credentials = AnonymousCredentials() if is_open else google.auth.default(scopes=[SCOPE])[0]
        except google.auth.exceptions.GoogleAuthError as error:
            raise ConfigError(f"gs://: expected credentials, got: {redact_text(str(error))}; {_CREDENTIALS}") from None
        self._session = AuthorizedSession(credentials)
        self._session.mount(url, HTTPAdapter(pool_maxsize=CONNECTIONS))
        self._session.hooks["response"].append(self._note_clock)
        self._ahead = 0.0
        options = {"api_endpoint": url}
        client = storage.Client("-", credentials=credentials, _http=self._session, client_options=options)
        return client, url

    def _note_clock(self, answer: Any, **_: Any) -> None:
        """Note by how many seconds the clock of the server is ahead."""
        if date := answer.headers.get("Date"):
            self._ahead = parsedate_to_datetime(date).timestamp() - time.time()

    @property
    def _once(self) -> dict[str, Any]:
        """Return the arguments of a request: the SDK does not repeat it, see `toolkit.storage.retrying`."""
        return {"retry": None, "timeout": retrying.timeouts(self.host)}

    def _blob(self, path: str, generation: int | None = None) -> Any:
        bucket, key = split(path)
        return self.client.bucket(bucket).blob(key, generation=generation)

    def explain(self, error: BaseException, path: str, bucket: str) -> RetryableError | Exception | None:
        import google.auth.exceptions as auth
        from google.api_core.exceptions import GoogleAPICallError
        from google.cloud.storage.exceptions import DataCorruption, InvalidResponse

        if isinstance(error, GoogleAPICallError):
            status, message = int(error.code or 0), str(error.message)
            if status == 404:
                return self._missing(message, path, bucket)
            later = retrying.retry_after(getattr(error.response, "headers", {}).get("Retry-After"))
            return self.answer(status, str(status), message, path, later)
        if isinstance(error, auth.RefreshError) and not error.retryable:
            text = f"expected credentials that can be renewed, got: {redact_text(str(error))}; {_CREDENTIALS}"
            return Unreadable(text, path=path, exit_code=2)
        if isinstance(error, auth.GoogleAuthError | DataCorruption | InvalidResponse) or is_broken(error):
            return trouble(error)
        return None

    def _missing(self, message: str, path: str, bucket: str) -> RetryableError | Exception | None:
        """Return the error for a missing object or bucket. An answer without its reason does not tell them apart."""
        from google.api_core.exceptions import NotFound

        if "No such object" not in message:
            try:
                next(iter(self.client.list_blobs(bucket, max_results=1, **self._once)), None)
            except NotFound:
                return self.no_bucket(path)
            except Exception as error:
                return self.explain(error, path, bucket)
        return FileNotFoundError(2, "No such object", path)

    def head(self, path: str) -> tuple[Stat, float] | None:
        try:
            blob = self._blob(path)
            self.ask(path, lambda: blob.reload(**self._once))
        except FileNotFoundError:
            return None
        return _stat(blob), time.time() + self._ahead - blob.updated.timestamp()

    def page(self, path: str, prefix: str, token: str | None, *, folders: bool = False, limit: int = 1000) -> Page:
        listed = self.client.list_blobs(
            split(path)[0],
            prefix=prefix,
            delimiter="/" if folders else None,
            page_token=token,
            page_size=limit,
            **self._once,
        )
        blobs = [(blob.name, _stat(blob)) for blob in next(listed.pages, ())]
        return Page(blobs, sorted(listed.prefixes), listed.next_page_token)

    def get(self, path: str, offset: int, length: int | None) -> bytes:
        end = None if length is None else offset + length - 1
        start = offset or (None if end is None else 0)
        blob = self._blob(path)
        return cast(
            "bytes", blob.download_as_bytes(start=start, end=end, raw_download=True, checksum=None, **self._once)
        )

    def stream(self, path: str, offset: int, expected: Stat) -> Any:
        from smart_open import gcs

        generation = expected.stamp.removeprefix("generation ")
        if not generation.isdigit():  # a version of something else
            raise FileExistsError(17, "expected a generation", path)
        version = _PinnedGeneration(self._blob(path, int(generation)))
        # bytes as they are stored, also of objects with `Content-Encoding: gzip`
        options = {"chunk_size": BUFFER, "raw_download": True, **self._once}
        stream = gcs.open(*split(path), "rb", client=cast("Any", version), blob_open_kwargs=options)
        if offset:
            stream.seek(offset)
        return stream

    def upload(self, path: str, data: bytes, *, new: bool = False) -> Stat:
        blob = self._blob(path)
        blob.upload_from_string(data, _TYPE, if_generation_match=0 if new else None, **self._once)
        return _stat(blob)

    def begin(self, path: str) -> str:
        return str(self.ask(path, lambda: self._blob(path).create_resumable_upload_session(_TYPE, **self._once)))

    def send(self, path: str, upload: str, part: UploadPart) -> Stat | None:
        """Send a part; what Google has of it already, because an answer was lost, it ignores.

        Returns:
            `Stat` of the object if it was the last part.
        """
        end = part.offset + len(part.body)
        at = part.offset
        while True:
            place = f"bytes {at}-{end - 1}/{end if part.last else '*'}"
            answer = self._put(path, upload, part.body[at - part.offset :], place)
            if answer.status_code in (200, 201):
                result = answer.json()
                return Stat(int(result["size"]), f"generation {result['generation']}")
            at = int(answer.headers.get("Range", "bytes=0--1").rpartition("-")[2]) + 1
            if at >= end and not part.last:
                return None
            if not part.offset <= at < end:
                message = f"expected Google Cloud Storage to take bytes {part.offset:,} to {end:,}, got {at:,} of them"
                raise NoUpload(message, path=path)

    def _put(self, path: str, upload: str, body: bytes, place: str) -> Any:
        from google.api_core.exceptions import from_http_response

        headers = {"Content-Range": place}
        answer = self._session.put(upload, data=body, headers=headers, timeout=retrying.timeouts(self.host))
        if answer.status_code in (404, 410):
            raise NoUpload("expected the upload that this run has begun, got none", path=path)
        if answer.status_code not in (200, 201, 308):
            raise from_http_response(answer)
        return answer

    def complete(self, path: str, upload: str, parts: list[Any]) -> Stat | None:
        return cast("Stat | None", parts[-1])

    def cancel(self, path: str, upload: str) -> None:
        self._session.delete(upload, timeout=retrying.timeouts(self.host))

    def copy(self, source: str, target: str, size: int) -> None:
        token = None
        while True:
            token = self.ask(target, lambda token=token: self._copy(source, target, token))  # type: ignore[misc]
            if not token:
                return

    def _copy(self, source: str, target: str, token: str | None) -> str | None:
        return cast("str | None", self._blob(target).rewrite(self._blob(source), token=token, **self._once)[0])

    def delete(self, path: str) -> None:
        self._blob(path).delete(**self._once)


_TYPE = "application/octet-stream"


def _stat(blob: Any) -> Stat:
    return Stat(int(blob.size), f"generation {blob.generation}")


class _PinnedGeneration:
    """A client for smart_open, pinned to one version; smart_open would look for the latest one."""

    def __init__(self, blob: Any) -> None:
        self._blob = blob

    def bucket(self, _name: str) -> "_PinnedGeneration":
        return self

    def get_blob(self, _key: str) -> Any:
        return self._blob
