"""Blobs in Azure Storage (extra ``az``); the account and its credentials are in the environment.

A version is an ETag, which every request of a stream names. A blob larger than `toolkit.storage.objects.SMALL` is
staged in blocks, which Azure makes a blob at once. There is no request that deletes blocks: an empty blob takes their
place, is marked so that this store does not see it, and is deleted. Under a name that has a blob, blocks stay
invisible; the next blob of that name deletes them, or Azure does after a week.
"""

import base64
import logging
import os
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Any, cast

from toolkit.distribution import missing_extra
from toolkit.errors import ConfigError, Unreadable
from toolkit.interrupts import pause
from toolkit.storage import objects, retrying
from toolkit.storage.addresses import redact_text
from toolkit.storage.retrying import RetryableError
from toolkit.storage.store import BUFFER, Stat

MARK = "toolkit_upload"
"""Metadata of an empty blob that takes the place of blocks."""

POLL = 0.5
"""Seconds between two looks at a copy that Azure has not finished."""

_ACCOUNT = "set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT"
_CREDENTIALS = "AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or `storage.anonymous`, or install azure-identity"


class Az(objects.Objects):
    """Blobs as ``az://CONTAINER/NAME``."""

    service = "Azure"

    def connect(self, connect: float, read: float) -> tuple[Any, str]:
        try:
            from azure.core.pipeline.transport import RequestsTransport
            from azure.storage.blob import BlobServiceClient
        except ImportError:
            raise missing_extra("az", "az://", "azure-storage-blob") from None
        import requests
        from requests.adapters import HTTPAdapter

        logging.getLogger("azure.core.pipeline.transport").setLevel(logging.ERROR)  # a broken connection is told by us
        session = requests.Session()
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(pool_maxsize=objects.CONNECTIONS))
        transport = RequestsTransport(
            session=session, session_owner=False, connection_timeout=connect, read_timeout=read
        )
        options: dict[str, Any] = {"transport": transport, "retry_total": 0}  # see `toolkit.storage.retrying`
        try:
            if connection := os.environ.get("AZURE_STORAGE_CONNECTION_STRING"):
                client = BlobServiceClient.from_connection_string(connection, **options)
            else:
                account, credential = self._account()
                client = BlobServiceClient(f"https://{account}.blob.core.windows.net", credential, **options)
        except ValueError as error:
            raise ConfigError(f"az://: expected an account, got: {redact_text(str(error))}; {_ACCOUNT}") from None
        return client, client.url.partition("?")[0]

    def _account(self) -> tuple[str, Any]:
        """Return the name of the account, and its credential."""
        named = os.environ.get
        account = named("AZURE_STORAGE_ACCOUNT") or named("AZURE_STORAGE_ACCOUNT_NAME")
        if not account:
            raise ConfigError(f"az://: expected an account, got none: {_ACCOUNT}")
        key = named("AZURE_STORAGE_KEY") or named("AZURE_STORAGE_ACCOUNT_KEY") or named("AZURE_STORAGE_SAS_TOKEN")
        if key or self.options.anonymous:
            return account, None if self.options.anonymous else key
        try:
            from azure.identity import DefaultAzureCredential
        except ImportError:
            raise ConfigError(f"az://: expected credentials, got none: set {_CREDENTIALS}") from None
        return account, DefaultAzureCredential()

    def _blob(self, path: str) -> Any:
        return self.client.get_blob_client(*objects.split(path))

    def explain(self, error: BaseException, path: str, bucket: str) -> RetryableError | Exception | None:
        from azure.core import exceptions as known

        if isinstance(error, known.IncompleteReadError) or objects.is_broken(error):
            return objects.trouble(error)
        if isinstance(error, known.HttpResponseError) and error.status_code:
            return self._answered(error, path)
        if isinstance(error, known.ClientAuthenticationError | ValueError):
            message = f"expected credentials, got: {redact_text(str(error))}; set {_CREDENTIALS}"
            return Unreadable(message, path=path, exit_code=2)
        return objects.trouble(error.inner_exception or error) if isinstance(error, known.AzureError) else None

    def _answered(self, error: Any, path: str) -> RetryableError | Exception:
        """Return the meaning of an answer of Azure."""
        status, code = int(error.status_code), getattr(error, "error_code", None) or ""
        code = str(getattr(code, "value", code))
        if code == "BlobNotFound":
            return FileNotFoundError(2, "No such object", path)
        if code == "ContainerNotFound":
            return self.no_bucket(path)
        if code in ("BlobAlreadyExists", "ConditionNotMet"):
            status = 412
        elif code == "InvalidBlockList":
            return objects.NoUpload("expected the blocks that this run has sent, got none", path=path)
        elif code in ("PendingCopyOperation", "ContainerBeingDeleted"):
            status = 503
        elif status == 412:  # a lease
            status = 409
        headers = error.response.headers if error.response else {}
        later = retrying.retry_after(headers.get("Retry-After"))
        message = str(error.message).partition("\n")[0]
        return self.answer(status, f"{error.status_code} {code}".strip(), message, path, later)

    def head(self, path: str) -> tuple[Stat, float] | None:
        headers: dict[str, str] = {}

        def note(answer: Any) -> None:
            headers["date"] = answer.http_response.headers["Date"]

        try:
            result = self.ask(path, lambda: self._blob(path).get_blob_properties(raw_response_hook=note))
        except FileNotFoundError:
            return None
        age = (parsedate_to_datetime(headers["date"]) - result.last_modified).total_seconds()
        return (_stat(result), age) if _is_file(result) else None

    def page(
        self, path: str, prefix: str, token: str | None, *, folders: bool = False, limit: int = 1000
    ) -> objects.Page:
        container = self.client.get_container_client(objects.split(path)[0])
        options = {"name_starts_with": prefix, "results_per_page": limit, "include": ["metadata"]}
        listed = container.walk_blobs(**options, delimiter="/") if folders else container.list_blobs(**options)
        pages = listed.by_page(token)
        results = list(next(pages, ()))
        return objects.Page(
            [(blob.name, _stat(blob)) for blob in results if hasattr(blob, "etag") and _is_file(blob)],
            [blob.name for blob in results if not hasattr(blob, "etag")],
            pages.continuation_token or None,
        )

    def get(self, path: str, offset: int, length: int | None) -> bytes:
        return cast("bytes", self._blob(path).download_blob(offset=offset, length=length, decompress=False).readall())

    def stream(self, path: str, offset: int, expected: Stat) -> Any:
        from smart_open import azure

        version = cast("Any", _PinnedBlob(self._blob(path), expected))
        stream = azure.open(*objects.split(path), "rb", client=version, buffer_size=BUFFER)
        stream.seek(offset)
        return stream

    def upload(self, path: str, data: bytes, *, new: bool = False) -> Stat:
        result = self._blob(path).upload_blob(data, overwrite=not new)
        return Stat(len(data), _stamp(result["etag"]))

    def begin(self, path: str) -> str:
        return os.urandom(8).hex()

    def send(self, path: str, upload: str, part: objects.UploadPart) -> tuple[str, int]:
        block = base64.b64encode(f"{upload}-{part.number:06}".encode()).decode()
        self._blob(path).stage_block(block, part.body)
        return block, len(part.body)

    def complete(self, path: str, upload: str, parts: list[Any]) -> Stat:
        from azure.storage.blob import BlobBlock

        result = self._blob(path).commit_block_list([BlobBlock(block) for block, _ in parts])
        return Stat(sum(size for _, size in parts), _stamp(result["etag"]))

    def cancel(self, path: str, upload: str) -> None:
        from azure.core import MatchConditions
        from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError

        blob = self._blob(path)
        with suppress(ResourceExistsError):
            blob.upload_blob(b"", overwrite=False, metadata={MARK: "cancelled"})
        with suppress(ResourceNotFoundError):
            try:
                result = blob.get_blob_properties()
            except ResourceNotFoundError:  # for azurite, blocks exist
                blob.delete_blob()
                return
            if MARK in result.metadata:
                blob.delete_blob(etag=result.etag, match_condition=MatchConditions.IfNotModified)

    def copy(self, source: str, target: str, size: int) -> None:
        """Copy a blob within Azure; wait for its end."""
        copy = self.ask(target, lambda: self._blob(target).start_copy_from_url(self._blob(source).url))
        status = copy["copy_status"]
        while status == "pending":
            pause(POLL)
            status = self.ask(target, self._blob(target).get_blob_properties).copy.status
        if status != "success":
            raise Unreadable(f"expected Azure to copy {source}, got a copy that is {status}", path=target)

    def delete(self, path: str) -> None:
        self._blob(path).delete_blob()

    def probe(self, path: str) -> None:
        """Commit a block nobody has sent. Azure refuses it after it has checked the right to write."""
        from azure.core.exceptions import HttpResponseError

        def ask() -> None:
            try:
                self.complete(path, "", [(base64.b64encode(os.urandom(8)).decode(), 0)])
            except HttpResponseError as error:
                if getattr(error, "error_code", None) != "InvalidBlockList":
                    raise

        self.ask(path, ask)

    def leftovers(self, root: str, *, any_owner: bool = False) -> list[str]:
        """Return blobs with uncommitted blocks alone; their owner is unknown."""
        if not any_owner:
            return []
        bucket, key = objects.split(root)
        options = {"name_starts_with": objects.prefix_of(key), "include": ["metadata", "uncommittedblobs"]}
        blobs = self.ask(root, lambda: list(self.client.get_container_client(bucket).list_blobs(**options)))
        names = {blob.name.removeprefix(objects.prefix_of(key)) for blob in blobs if not _is_folder(blob)}
        return sorted(f"{root.rstrip('/')}/{name}{objects.UPLOAD}" for name in names - {*self.files(root)})


def _stamp(etag: str) -> str:
    return f"etag {etag.strip(chr(34))}"  # listings have it without quotes


def _stat(blob: Any) -> Stat:
    return Stat(int(blob.size), _stamp(blob.etag))


def _is_folder(blob: Any) -> bool:
    """Return True for a folder of an account with a hierarchical namespace."""
    return (blob.metadata or {}).get("hdi_isfolder") == "true"


def _is_file(blob: Any) -> bool:
    return not _is_folder(blob) and MARK not in (blob.metadata or {})


class _PinnedBlob:
    """A blob for smart_open, pinned to one version; smart_open would read the latest one each time."""

    def __init__(self, blob: Any, expected: Stat) -> None:
        self._blob, self._expected = blob, expected

    def get_blob_properties(self) -> dict[str, int]:
        return {"size": self._expected.size}

    def download_blob(self, **options: Any) -> Any:
        from azure.core import MatchConditions

        etag = f'"{self._expected.stamp.removeprefix("etag ")}"'
        same = {"etag": etag, "match_condition": MatchConditions.IfNotModified}
        return self._blob.download_blob(**options, **same, decompress=False)
