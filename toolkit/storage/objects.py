"""Objects in buckets: the part that the stores of all clouds share.

A cloud's store makes single requests with the cloud's SDK and says what its errors mean. Everything else is here:
repeating requests, listing page by page, reading one version of an object from the byte where a connection broke, and
writing an object that appears when it is complete.
"""

import io
import os
import posixpath
import re
import threading
import urllib.parse
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple, TypeVar

import xxhash

from toolkit.errors import ConfigError, DataError, Forbidden, Unreadable
from toolkit.storage import retrying
from toolkit.storage.addresses import redact_text, redact_url
from toolkit.storage.retrying import RetryableError, root_cause
from toolkit.storage.store import BUFFER, Stat, Store, Writing
from toolkit.storage.threads import for_each
from toolkit.storage_options import DEFAULTS, StorageOptions

T = TypeVar("T")

SMALL = 8 << 20
"""Bytes up to which an object is written by one request; also the first size of the parts of larger ones."""

PART_GROWTH = 1000
"""Parts after which their size is doubled: S3 takes 10,000 of them."""

CONNECTIONS = 32
"""Connections that a client keeps open."""

UPLOAD = "?uploadId="
"""Separator between the path and the upload in the name of a leftover."""


class NoUpload(Unreadable):
    """The store knows no such upload (any more)."""


class Broken(Exception):
    """A connection broke in the middle of an object; holds the error that says so."""


class Page(NamedTuple):
    """A page of a listing: keys with their `Stat`, keys of folders, and the token of the next page."""

    objects: Sequence[tuple[str, Stat | None]]
    folders: list[str]
    next: str | None = None


class UploadPart(NamedTuple):
    """A part of an object: its number from 1, its offset, its bytes, and whether it is the last one."""

    number: int
    offset: int
    body: bytes
    last: bool


def split(path: str) -> tuple[str, str]:
    """Return bucket and key; ``.`` and ``..`` in a key are resolved, as in a path."""
    scheme, _, rest = path.partition("://")
    bucket, _, key = rest.partition("/")
    if not re.fullmatch(r"[A-Za-z0-9$][A-Za-z0-9._-]*", bucket):
        raise ConfigError(f"{path}: expected {scheme}://BUCKET/KEY")
    if any(part in (".", "..") for part in key.split("/")):
        key = posixpath.normpath(key)
    return bucket, key


def prefix_of(key: str) -> str:
    """Return the beginning of the keys of all objects in a folder."""
    return key.rstrip("/") + "/" if key else ""


class Objects(Store):
    """Objects as ``SCHEME://BUCKET/KEY``; a client a process, made with its first request.

    The methods `head` to `delete` make single requests. They are called by `ask`, which may repeat them, and raise the
    errors of the SDK, which `explain` translates.

    Attributes:
        service: Name of the service in messages.
        hint: Possible cause of an unexpected answer, for messages.
        unit: Bytes of which each part but the last is a multiple; 1 where a last part need not be marked.
    """

    service: ClassVar[str]
    hint: ClassVar[str] = ""
    unit: ClassVar[int] = 1

    def __init__(self, options: StorageOptions = DEFAULTS) -> None:
        super().__init__(options)
        self.host = ""
        self._lock = threading.Lock()
        self._pid = 0
        self._clients: dict[tuple[float, float], Any] = {}
        self._granted: set[str] = set()

    # --- requests of a cloud ------------------------------------------------------------------------------------------

    @abstractmethod
    def connect(self, connect: float, read: float) -> tuple[Any, str]:
        """Return a client with these timeouts (seconds), and its server's URL."""

    @abstractmethod
    def explain(self, error: BaseException, path: str, bucket: str) -> RetryableError | Exception | None:
        """Return the meaning of an error: `RetryableError` if a request may be repeated; None for an error of our own.

        FileNotFoundError means that there is no such object, FileExistsError that a condition does not hold, EOFError
        that the object ends before the offset.
        """

    @abstractmethod
    def head(self, path: str) -> tuple[Stat, float] | None:
        """Return `Stat` and age in seconds of an object; None if there is no such object. Calls `ask` itself."""

    @abstractmethod
    def page(self, path: str, prefix: str, token: str | None, *, folders: bool = False, limit: int = 1000) -> Page:
        """Return a page of the objects with a prefix; with `folders`, only of those directly below it."""

    @abstractmethod
    def get(self, path: str, offset: int, length: int | None) -> bytes:
        """Return a piece of an object."""

    @abstractmethod
    def stream(self, path: str, offset: int, expected: Stat) -> Any:
        """Return a stream of smart_open for this version, from an offset."""

    @abstractmethod
    def upload(self, path: str, data: bytes, *, new: bool = False) -> Stat:
        """Write an object by one request; with `new`, only if there is none."""

    @abstractmethod
    def begin(self, path: str) -> str:
        """Begin an upload in parts, and return its id. Calls `ask` itself, if it makes a request."""

    @abstractmethod
    def send(self, path: str, upload: str, part: UploadPart) -> Any:
        """Send a part; return its receipt for `complete`."""

    @abstractmethod
    def complete(self, path: str, upload: str, parts: list[Any]) -> Stat | None:
        """Make the object of an upload appear; return its `Stat` if the answer has it."""

    @abstractmethod
    def cancel(self, path: str, upload: str) -> None:
        """Delete the parts of an upload."""

    @abstractmethod
    def copy(self, source: str, target: str, size: int) -> None:
        """Copy an object of so many bytes within the cloud. Calls `ask` itself."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Delete an object."""

    # --- asking -------------------------------------------------------------------------------------------------------

    @property
    def client(self) -> Any:
        """Return the client: another one after a fork, and one that waits longer once the host has answered."""
        with self._lock:
            if self._pid != os.getpid():
                self._pid, self._clients = os.getpid(), {}
            patience = retrying.timeouts(self.host)
            if patience not in self._clients:
                self._clients[patience], url = self.connect(*patience)
                redact_url(url, carry=False)  # it may be one of the environment, with a password
                self.host = urllib.parse.urlsplit(url).netloc.rpartition("@")[2]
            return self._clients[patience]

    def ask(self, path: str, request: Callable[[], T]) -> T:
        """Return the result of a request; repeat it if that may help. Its errors are those of `explain`."""
        bucket, _ = split(path)
        self.client  # noqa: B018  # sets the host

        def judged(error: Exception) -> RetryableError | Exception | None:
            meaning = self.explain(error, path, bucket)
            if isinstance(meaning, Unreadable) and bucket in self._granted:
                meaning.exit_code = 1  # the configuration is right, and something may have been written
            return meaning

        result = retrying.retry(self.host, path, request, judged)
        self._granted.add(bucket)
        return result

    def answer(
        self, status: int, reply: str, message: str, path: str, later: float | None = None, request: str = ""
    ) -> RetryableError | Exception:
        """Return the meaning of an answer other than 404 by its status.

        Args:
            status: HTTP status.
            reply: Status and code, for messages.
            message: Words of the server.
            path: Path of the object.
            later: Seconds that the server asks for.
            request: Name of the request, for messages.
        """
        if status in (408, 429) or (status >= 500 and status != 501):
            return RetryableError(reply, answered=True, later=later, expected=f"an answer of {self.service}")
        if status == 412:
            return FileExistsError(17, "expected the object as it was, it has been changed meanwhile", path)
        if status == 416:
            return EOFError()
        if status == 401:
            text = f"expected to be known to {self.service}, got {reply}; check or renew the credentials"
            return Unreadable(text, path=path, exit_code=2)
        if status == 403:
            text = f"expected permission{request and f' for {request}'}, got {reply}; check what these "
            text += (
                f"credentials may do with this bucket; {self.service} may also answer so if the object does not exist"
            )
            return Forbidden(text, path=path, exit_code=2)
        text = f"expected an answer of {self.service}{request and f' to {request}'}, got {reply}"
        return Unreadable(f"{text}: {redact_text(message)[: retrying.SHOWN]}{self.hint}", path=path, exit_code=2)

    def no_bucket(self, path: str) -> Unreadable:
        """Return the error for a missing bucket."""
        scheme, bucket = path.partition("://")[0], split(path)[0]
        return Unreadable("expected a bucket, got none of that name", path=f"{scheme}://{bucket}", exit_code=2)

    # --- looking ------------------------------------------------------------------------------------------------------

    def stat(self, path: str) -> Stat | None:
        result = self._head(path)
        return result and result[0]

    def age(self, path: str) -> float | None:
        result = self._head(path)
        return result and result[1]

    def _head(self, path: str) -> tuple[Stat, float] | None:
        key = split(path)[1]
        return self.head(path) if key and not key.endswith("/") else None

    def is_folder(self, path: str) -> bool:
        prefix = prefix_of(split(path)[1])
        return bool(self.ask(path, lambda: self.page(path, prefix, None, limit=1)).objects)

    def files(self, root: str) -> Iterator[str]:
        return (name for name, _ in self.listing(root))

    def listing(self, root: str) -> Iterator[tuple[str, Stat | None]]:
        length = len(prefix_of(split(root)[1]))
        result = ((key[length:], stat) for page in self._pages(root) for key, stat in page.objects)
        return iter(sorted(((name, stat) for name, stat in result if name and name[-1] != "/"), key=itemgetter(0)))

    def folders(self, root: str) -> list[str]:
        length = len(prefix_of(split(root)[1]))
        return sorted(key[length:-1] for page in self._pages(root, folders=True) for key in page.folders)

    def _pages(self, root: str, *, folders: bool = False) -> Iterator[Page]:
        prefix, token = prefix_of(split(root)[1]), None
        while True:
            page = self.ask(root, lambda token=token: self.page(root, prefix, token, folders=folders))  # type: ignore[misc]
            yield page
            if not (token := page.next):
                return

    # --- reading ------------------------------------------------------------------------------------------------------

    def open(self, path: str, offset: int = 0, expected: Stat | None = None) -> io.BufferedReader:
        stat = expected or self.stat(path)
        if stat is None:
            raise FileNotFoundError(2, "No such object", path)
        return io.BufferedReader(ObjectReader(self, path, offset, stat), BUFFER)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        if length == 0:
            return b""
        try:
            return self.ask(path, lambda: self.get(path, offset, length))
        except EOFError:  # it ends before, or is empty
            return b""

    # --- writing ------------------------------------------------------------------------------------------------------

    def writing(self, path: str) -> Writing:
        return ObjectWriting(self, path)

    def put(self, path: str, data: bytes) -> Stat:
        return self.ask(path, lambda: self.upload(path, data))

    def create(self, path: str, data: bytes) -> bool:
        """Write a small object by a conditional request.

        If the answer to a request that succeeded is lost, the next one finds the object: it is there because of it.
        """
        attempts = 0

        def upload() -> None:
            nonlocal attempts
            attempts += 1
            self.upload(path, data, new=True)

        try:
            self.ask(path, upload)
        except FileExistsError:
            return attempts > 1 and self.read(path) == data
        return True

    def move(self, source: str, target: str) -> None:
        stat = self.stat(source)
        if stat is None:
            raise FileNotFoundError(2, "No such object", source)
        self.copy(source, target, stat.size)
        self.remove(source)

    def remove(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self.ask(path, lambda: self.delete(path))

    def remove_tree(self, root: str) -> None:
        for_each(self.remove, [f"{root.rstrip('/')}/{name}" for name in self.files(root)])

    def check_writable(self, folder: str, where: str) -> None:
        bucket, key = split(folder)
        try:
            self.probe(f"{folder.partition('://')[0]}://{bucket}/{prefix_of(key)}.toolkit/probe")
        except Forbidden as error:
            raise ConfigError(f"{where}: expected a folder that may be written in: {error}") from None

    def probe(self, path: str) -> None:
        """Begin an upload, and cancel it."""
        self.discard(f"{path}{UPLOAD}{self.begin(path)}")

    def discard(self, leftover: str) -> None:
        path, _, upload = leftover.rpartition(UPLOAD)
        with suppress(NoUpload):
            self.ask(path, lambda: self.cancel(path, upload))


def is_broken(error: BaseException) -> bool:
    """Return True for a failed or broken connection of the HTTP client."""
    import requests
    import urllib3

    passing = requests.RequestException | urllib3.exceptions.HTTPError | ConnectionError | TimeoutError
    return isinstance(error, passing)


def trouble(error: BaseException, path: str = "") -> RetryableError | Unreadable:
    """Return the meaning of a failed or broken connection."""
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        message = f"expected a certificate that is trusted here, got: {redact_text(str(error))}"
        return Unreadable(message, path=path, exit_code=2)
    name = type(error).__name__
    if name in ("EndpointConnectionError", "ProxyConnectionError", "ConnectTimeoutError"):
        return RetryableError(root_cause(error), expected="a server")
    return RetryableError("no answer" if name == "ReadTimeoutError" else f"a broken connection ({root_cause(error)})")


class ObjectReader(io.RawIOBase):
    """One version of an object, by smart_open; opened again at the byte where a connection broke."""

    def __init__(self, store: Objects, path: str, offset: int, expected: Stat) -> None:
        super().__init__()
        self._store, self._path, self._at, self._expected = store, path, offset, expected
        self._stream: Any = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._at >= self._expected.size:
            return 0
        try:
            data = self._store.ask(self._path, lambda: self._read(len(buffer)))
        except (FileExistsError, EOFError):
            message = "expected an object that does not change while it is read, got one that has changed"
            raise DataError(message, path=self._path) from None
        except FileNotFoundError:
            message = "expected an object that stays while it is read, got one that was deleted"
            raise DataError(message, path=self._path) from None
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _read(self, size: int) -> bytes:
        try:
            if self._stream is None:
                self._stream = self._store.stream(self._path, self._at, self._expected)
            data: bytes = self._stream.read(size)
            if not data:
                raise ConnectionError(f"the end at byte {self._at:,} of {self._expected.size:,}")
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


class ObjectWriting(Writing):
    """An object in memory up to `SMALL`, then sent in parts; every request may be repeated."""

    def __init__(self, store: Objects, path: str) -> None:
        self._store, self._path = store, path
        self._blocks: list[bytes] = []
        self._size = self._sent = 0
        self._part = SMALL
        self.upload: str | None = None
        self.parts: list[Any] = []
        self._content = xxhash.xxh3_128()

    def write(self, data: bytes) -> None:
        self._blocks.append(data)
        self._size += len(data)
        if self._size >= self._part:
            self._send(last=False)

    def commit(self) -> Stat:
        if self.upload is None:
            return self._store.put(self._path, b"".join(self._blocks))
        try:
            self._send(last=True)
            return self.complete()
        except NoUpload:
            return self._replaced(self._content.digest())

    def complete(self, source: str = "") -> Stat:
        """Make the object appear; with a source, it is a copy of that."""
        upload = self.upload or ""
        try:
            stat = self._store.ask(self._path, lambda: self._store.complete(self._path, upload, self.parts))
        except NoUpload:
            stat = self._replaced(digest_of(self._store, source) if source else self._content.digest())
        self.upload = None
        stat = stat or self._store.stat(self._path)
        if stat is None:
            raise DataError("expected the object that was just written, got none", path=self._path)
        return stat

    def _replaced(self, digest: bytes) -> Stat:
        """Return the `Stat` of an object with these bytes; raise NoUpload if there is none.

        The answer to the end of an upload may be lost: the upload is gone then, but the object is there. So it is if
        another process has written the same one meanwhile.
        """
        self.upload = None
        with suppress(FileNotFoundError):
            if digest_of(self._store, self._path) == digest and (stat := self._store.stat(self._path)):
                return stat
        message = "expected the upload that this run has begun, got none; did `toolkit clean` run meanwhile?"
        raise NoUpload(message, path=self._path)

    def abort(self) -> None:
        upload, self.upload = self.upload, None
        if upload is not None:
            with suppress(Unreadable):  # the reason for the abort is the error to tell; `toolkit clean` finds the rest
                self._store.discard(f"{self._path}{UPLOAD}{upload}")

    def _send(self, *, last: bool) -> None:
        """Send the bytes in memory.

        Parts of a store with a unit are multiples of it, but for the last, which is marked and not empty.
        """
        if self.upload is None:
            self.upload = self._store.begin(self._path)
        upload, data = self.upload, b"".join(self._blocks)
        unit = self._store.unit
        end = len(data) if last or unit == 1 else (len(data) - 1) // unit * unit
        part = UploadPart(len(self.parts) + 1, self._sent, data[:end], last)
        self._content.update(part.body)
        if part.body:
            self.parts.append(self._store.ask(self._path, lambda: self._store.send(self._path, upload, part)))
        self._blocks, self._size, self._sent = [data[end:]], len(data) - end, self._sent + end
        if part.number % PART_GROWTH == 0:
            self._part *= 2


def digest_of(store: Objects, path: str) -> bytes:
    """Return the xxh3-128 of an object's bytes."""
    digest = xxhash.xxh3_128()
    with store.open(path) as stream:
        while block := stream.read(BUFFER):
            digest.update(block)
    return digest.digest()
