"""The Hugging Face Hub: a dataset repository there, in which an output is published.

files ──those that are not there with the same digest──> uploaded, some at a time ──> a commit ──> compared once more

Content is uploaded first, and is visible to nobody. The commit makes it appear: all at once, up to `COMMIT` files. What
was uploaded by a run that ended before its commit is not sent again, which the Hub decides by its sha256.
"""

import hashlib
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from toolkit.distribution import NAME, missing_extra
from toolkit.errors import ConfigError, DataError, Forbidden, ToolkitError, Unreadable
from toolkit.publish.fetching import FileState
from toolkit.publish.folder import published_paths
from toolkit.publish.release import Address, ReleaseFile
from toolkit.session import current
from toolkit.storage import retrying, store_of
from toolkit.storage.addresses import hub_endpoint, redact_text
from toolkit.storage.paths import fault_of_name, join
from toolkit.storage.retrying import RetryableError
from toolkit.storage.stores.local.scratch import scratch

COMMIT = 1000
"""Files of a commit at most: the Hub is slow with more."""

BATCH = 50
"""Files that are uploaded together, by five threads of the library."""

CONNECT, READ = 10.0, 120.0
"""Seconds that a connection, and an answer, are waited for: a commit of many files takes a while."""

_TOKENS = "`hf auth login`, or set HF_TOKEN"

T = TypeVar("T")


class _RemoteFile(msgspec.Struct, frozen=True):
    """A file of a repository: its sha256 if it is a large one, else the digest that git gives it."""

    size: int
    sha256: str | None
    blob: str

    def is_(self, file: ReleaseFile, path: str) -> bool:
        """Return True for the bytes of a file at a path."""
        if self.sha256 is not None:
            return self.sha256 == file.digest
        return self.size == file.size and self.blob == _blob(path)


def _blob(path: str) -> str:
    """Return the git digest of a file."""
    data = store_of(path).read(path)
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


class _Tree(msgspec.Struct):
    """The files of a repository at a commit."""

    commit: str | None
    private: bool
    files: dict[str, _RemoteFile] = {}


class Repository:
    """A dataset of the Hub as the place of a publication; it may have an earlier one, or not be there yet.

    Args:
        address: Address of it.
        output: the folder of the files, on a disk.
        files: Files that are published.

    Attributes:
        address: Address of it.
        exists: True if it is there.
        private: True if only those who may see it; of one that is not there, whether it will be.

    Raises:
        ConfigError: if nobody is logged in, or something else is there that would be taken for its data.
        Unreadable: if the Hub does not answer, or refuses.
    """

    def __init__(self, address: Address, output: str, files: Sequence[ReleaseFile], *, public: bool) -> None:
        if not store_of(output).is_local:
            raise ConfigError(f"{output}: expected an output on a disk for {address}; copy it there, with its .toolkit")
        self.address, self._output, self._public = address, output, public
        self._files = {file.path: file for file in files}
        self._api = _api()
        tree = self._tree()
        self.exists = tree is not None
        self.private = tree.private if tree else not public
        self._published: set[str] = set()
        self._additions: dict[str, Any] = {}
        self.up_to_date: set[str] = set()
        self.replaced: set[str] = set()
        if tree:
            with scratch() as folder:
                self._published = published_paths(
                    str(address), set(self._files), sorted(tree.files), lambda path: self._read(path, folder)
                )
            self.up_to_date = {path for path, file in self._files.items() if self._is_there(tree, file)}
            self.replaced = {path for path in self._files if path in tree.files} - self.up_to_date

    @property
    def missing(self) -> list[ReleaseFile]:
        """Return the files to send, in order."""
        return [file for path, file in self._files.items() if path not in self.up_to_date]

    def became(self, file: ReleaseFile) -> FileState:
        """Return the outcome of a publication for a file."""
        return "there" if file.path in self.up_to_date else "replaced" if file.path in self.replaced else "fetched"

    def create(self) -> None:
        """Make the repository, if it is not there."""
        if not self.exists:
            self._ask(
                lambda: self._api.create_repo(
                    self.address.name, repo_type="dataset", private=not self._public, exist_ok=True
                )
            )

    def upload(self, files: Sequence[ReleaseFile]) -> None:
        """Upload the content of files; nobody sees it yet.

        Raises:
            DataError: if a file has changed since it was checked.
        """
        from huggingface_hub import CommitOperationAdd

        for file in files:
            self._additions[file.path] = CommitOperationAdd(file.path, self._path(file))
        mine = [self._additions[file.path] for file in files]
        self._ask(
            lambda: self._api.preupload_lfs_files(
                self.address.name, mine, repo_type="dataset", revision=self.address.revision, free_memory=False
            )
        )
        for file, addition in zip(files, mine, strict=True):
            if addition.upload_info.sha256.hex() != file.digest:
                raise DataError(
                    f"expected the checksum {file.digest} of {file.listed}, got another: it has changed; run again",
                    path=self._path(file),
                )

    def commit(self, message: str) -> list[str]:
        """Commit the uploads, and delete files of the last publication alone; return these."""
        paths = list(self._additions)
        groups = [paths[at : at + COMMIT] for at in range(0, len(paths), COMMIT)] or [[]]
        deleted: list[str] = []
        for number, group in enumerate(groups):
            is_last = number == len(groups) - 1
            deleted = self._ask(lambda group=group, is_last=is_last: self._commit(group, message, is_last=is_last))  # type: ignore[misc]
        return deleted

    def _commit(self, group: Sequence[str], message: str, *, is_last: bool) -> list[str]:
        """Commit the missing files. A repeated call after a lost answer makes no second commit."""
        from huggingface_hub import CommitOperationDelete

        tree = self._tree()
        if tree is None:
            raise Unreadable("expected the dataset, got none: it is gone; run again", path=str(self.address))
        additions = [self._additions[path] for path in group if not self._is_there(tree, self._files[path])]
        deleted = sorted(self._published - set(self._files)) if is_last else []
        deletions = [CommitOperationDelete(path, is_folder=False) for path in deleted if path in tree.files]
        if additions or deletions:
            self._api.create_commit(
                self.address.name,
                [*additions, *deletions],
                commit_message=message,
                repo_type="dataset",
                revision=self.address.revision,
                parent_commit=tree.commit,
            )
        return deleted

    def differences(self) -> Iterator[str]:
        """Yield a message for each wrong or missing file on the Hub."""
        tree = self._tree()
        self.private = tree.private if tree else self.private
        for path, file in self._files.items():
            if tree is None or not self._is_there(tree, file):
                yield f"{join(str(self.address), path)}: expected the sha256 {file.digest}, got another file; run again"

    def _is_there(self, tree: _Tree, file: ReleaseFile) -> bool:
        result = tree.files.get(file.path)
        return result is not None and result.is_(file, self._path(file))

    def _path(self, file: ReleaseFile) -> str:
        return join(self._output, file.path)

    def _tree(self) -> _Tree | None:
        """Return the files of the repository; None if it does not exist."""
        return self._ask(self._looked)

    def _looked(self) -> _Tree | None:
        from huggingface_hub import RepoFile
        from huggingface_hub.errors import RepositoryNotFoundError

        name, revision = self.address.name, self.address.revision
        try:
            info = self._api.repo_info(name, repo_type="dataset")
        except RepositoryNotFoundError as error:
            if error.response.status_code == 404:
                return None
            raise
        listed = self._api.list_repo_tree(name, repo_type="dataset", revision=revision, recursive=True)
        refs = info.sha if revision == "main" else self._api.repo_info(name, repo_type="dataset", revision=revision).sha
        files = {
            item.path: _RemoteFile(item.size, item.lfs.sha256 if item.lfs else None, item.blob_id)
            for item in listed
            if isinstance(item, RepoFile)
        }
        return _Tree(refs, bool(info.private), files)

    def _read(self, path: str, folder: str) -> bytes:
        """Return a small file of the repository.

        Raises:
            DataError: if its path leads out of the folder.
        """
        if fault := fault_of_name(path):
            raise DataError(fault, path=str(self.address))
        name, revision = self.address.name, self.address.revision
        result = self._ask(
            lambda: self._api.hf_hub_download(name, path, repo_type="dataset", revision=revision, local_dir=folder)
        )
        with open(result, "rb") as stream:
            return stream.read()

    def _ask(self, request: Callable[[], T]) -> T:
        """Return an answer of the Hub; repeat a request with a chance of success."""
        host = urllib.parse.urlsplit(hub_endpoint()).hostname or hub_endpoint()

        def quietly() -> T:
            with _quietly():
                return request()

        return retrying.retry(host, str(self.address), quietly, self._judged)

    def _judged(self, error: Exception) -> RetryableError | Exception | None:
        """Return the meaning of a library's error. It is not shown, because it may quote signed addresses."""
        from huggingface_hub import errors

        while type(error) is RuntimeError and isinstance(error.__cause__, Exception):
            error = error.__cause__  # of the upload of one file
        if isinstance(error, ToolkitError):
            return None
        where = str(self.address)
        if isinstance(error, errors.HfHubHTTPError):
            return self._answered(error)
        if isinstance(error, errors.OfflineModeIsEnabled):
            return ConfigError(f"{where}: expected the network, got HF_HUB_OFFLINE=1; unset it")
        if type(error).__module__.partition(".")[0] in ("httpx", "httpx2") or isinstance(error, ConnectionError):
            return RetryableError(retrying.root_cause(error) or type(error).__name__)
        text = _redacted(str(error))
        return ToolkitError(f"{where}: expected the Hub to take the files, got: {text}; run again, and see {_STATUS}")

    def _answered(self, error: Any) -> RetryableError | Exception:
        """Return the meaning of an answer of the Hub."""
        code, where, name = error.response.status_code, str(self.address), self.address.name
        text = _redacted(error.server_message or "")
        got = f"got {code}" + (f" ({text})" if text else "")
        if code in (409, 412, 429) or code >= 500:
            busy = {409: "another change at the same time", 412: "another commit meanwhile", 429: "too many requests"}
            later = retrying.retry_after(error.response.headers.get("Retry-After"))
            return RetryableError(f"{code} {busy.get(code, '')}".strip() + (f" ({text})" if text else ""), True, later)
        if code == 401:
            return Forbidden(f"expected a token that the Hub knows, {got}; make one there, then {_TOKENS}", path=where)
        if code == 403:
            return Forbidden(f"expected a token that may write {name}, {got}; make one, then {_TOKENS}", path=where)
        if code == 404:
            return Unreadable(f"expected the dataset and its branch, {got}; make the branch there", path=where)
        return Unreadable(f"expected the Hub to take the files, {got}; correct that, and run again", path=where)


def _redacted(text: str) -> str:
    """Return a message without signed addresses and the token."""
    import huggingface_hub

    token = huggingface_hub.get_token()
    return redact_text(text.replace(token, "…") if token else text)[: retrying.SHOWN]


_STATUS = "https://status.huggingface.co"


def _api() -> Any:
    """Return the client of the Hub.

    Raises:
        MissingExtra: if the library is not installed.
        ConfigError: if nobody is logged in.
    """
    try:
        import huggingface_hub
    except ImportError:
        raise missing_extra("hub", "the Hugging Face Hub", "huggingface_hub") from None
    if not huggingface_hub.get_token():
        raise ConfigError(f"expected a token of the Hugging Face Hub, got none: {_TOKENS}")
    return huggingface_hub.HfApi(endpoint=hub_endpoint(), library_name=NAME)


@contextmanager
def _quietly() -> Iterator[None]:
    """Silence the library, and bound its waiting. It draws no bars, and logs no signed addresses.

    It sends files by LFS, request by request. With ``hf_xet`` it would wait in native code for a server that does not
    answer: for minutes, whatever our bounds are, and deaf to signals.
    """
    from huggingface_hub import constants
    from huggingface_hub.utils import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
        get_session,
        logging,
    )

    session, level, has_bars = get_session(), logging.get_verbosity(), not are_progress_bars_disabled()
    before, has_no_xet = session.timeout, constants.HF_HUB_DISABLE_XET
    read = max(1.0, min(READ, current().options.give_up))
    session.timeout, constants.HF_HUB_DISABLE_XET = (CONNECT, read, read, read), True
    logging.set_verbosity_error()
    disable_progress_bars()
    try:
        yield
    finally:
        session.timeout, constants.HF_HUB_DISABLE_XET = before, has_no_xet
        logging.set_verbosity(level)
        if has_bars:
            enable_progress_bars()
