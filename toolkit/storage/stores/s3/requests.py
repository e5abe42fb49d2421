"""Requests to S3: the client that makes them, and what their errors mean."""

import os
import threading
import urllib.parse
from collections.abc import Callable
from typing import Any, TypeVar

from toolkit.distribution import missing_extra
from toolkit.errors import ConfigError, Unreadable
from toolkit.storage import retrying
from toolkit.storage.addresses import cleaned, hidden, whole
from toolkit.storage.retrying import Trouble
from toolkit.storage.store import Store
from toolkit.storage.stores.s3.errors import explain
from toolkit.storage.stores.s3.names import split
from toolkit.storage_options import DEFAULTS, StorageOptions

T = TypeVar("T")


class Requests(Store):
    """A store that can ask S3: a client a process, made when it is first needed."""

    def __init__(self, options: StorageOptions = DEFAULTS) -> None:
        super().__init__(options)
        self._lock = threading.Lock()
        self._pid = 0
        self._session: Any = None
        self._made: dict[tuple[float, float], Any] = {}
        self._host = ""
        self._granted: set[str] = set()
        self.payer = {"RequestPayer": "requester"} if self.options.request_payer else {}

    @property
    def client(self) -> Any:
        """Return a client of boto3: another one after a fork, and one that waits longer once the host has answered."""
        with self._lock:
            if self._pid != os.getpid():
                self._pid, self._session, self._made = os.getpid(), None, {}
            patience = retrying.patience(self._host)
            if patience not in self._made:
                self._made[patience] = made = self._connect(*patience)
                hidden(made.meta.endpoint_url, carry=False)  # it may be one of the environment, with a password
                self._host = urllib.parse.urlsplit(made.meta.endpoint_url).netloc.rpartition("@")[2]
            return self._made[patience]

    def _connect(self, connect: float, read: float) -> Any:
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
            max_pool_connections=32,
            s3={"addressing_style": self.options.addressing_style},
            signature_version=UNSIGNED if self.options.anonymous else None,
        )
        try:
            if self._session is None:
                self._session = boto3.session.Session(
                    profile_name=self.options.profile, region_name=self.options.region
                )
            endpoint = self.options.endpoint_url and whole(self.options.endpoint_url)
            return self._session.client("s3", endpoint_url=endpoint, config=config)
        except (botocore.exceptions.BotoCoreError, ValueError) as error:
            raise ConfigError(
                f"storage: expected options that S3 can be reached with, got: {cleaned(str(error))}"
            ) from None

    def ask(self, path: str, request: Callable[[], T]) -> T:
        """Return what a request gives, made again where that may help; its errors in our words."""
        bucket, _ = split(path)
        self.client  # noqa: B018  # which finds out the host
        found = retrying.persist(self._host, path, request, lambda error: self._judged(path, error))
        self._granted.add(bucket)
        return found

    def _judged(self, path: str, error: BaseException) -> Trouble | Exception | None:
        """Return what an error means: that the request may be made again, or another error; None for others' errors."""
        bucket, _ = split(path)
        judged = explain(getattr(error, "backend_error", None) or error, path, bucket)  # smart_open wraps them
        if isinstance(judged, Unreadable) and bucket in self._granted:
            judged.exit_code = 1  # it was no fault of the configuration, and something may have been written
        return judged
