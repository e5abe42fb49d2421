"""Datasets of the Hugging Face Hub, for reading: ``hf://datasets/USER/NAME@REVISION/PATH``.

A revision is resolved to its commit once in a process, and files are read on the web at addresses of that commit: what
is read does not change. `toolkit publish` writes. A token (`HF_TOKEN`, or that of ``hf auth login``) is sent to the Hub
alone.
"""

import io
import json
import os
import re
import urllib.parse
from collections.abc import Iterator
from typing import Any

from toolkit.errors import ConfigError, DataError, Unreadable
from toolkit.storage import retrying
from toolkit.storage.addresses import hub_endpoint
from toolkit.storage.objects import is_broken, trouble
from toolkit.storage.store import BUFFER, Stat, Store
from toolkit.storage.stores.http import WebReader, ask
from toolkit.storage_options import DEFAULTS, StorageOptions

_PATH = re.compile(r"hf://datasets/([\w.-]+/[\w.-]+)(?:@(refs/\w+/[^/]+|[^/@]+))?(?:/(.*))?", re.DOTALL)


class Hf(Store):
    """Files of datasets on the Hub."""

    can_write = False

    def __init__(self, options: StorageOptions = DEFAULTS) -> None:
        super().__init__(options)
        self._commits: dict[tuple[str, str], str] = {}
        self._trees: dict[str, dict[str, Stat]] = {}

    def _split(self, path: str) -> tuple[str, str, str]:
        """Return the name, the commit, and the path in the dataset.

        Raises:
            Unreadable: if there is no such dataset, or no such revision.
        """
        match = _PATH.fullmatch(path)
        if not match:
            raise ConfigError(f"{path}: expected hf://datasets/USER/NAME@REVISION/PATH")
        name, revision = match[1], urllib.parse.unquote(match[2] or "main")
        if (name, revision) not in self._commits:
            status, content, _ = self._ask(f"{name}/revision/{urllib.parse.quote(revision, safe='')}")
            if status != 200:
                message = f"expected a dataset with the revision {revision}, got none; a private one needs HF_TOKEN"
                raise Unreadable(message, path=path, exit_code=2)
            self._commits[name, revision] = str(json.loads(content)["sha"])
        return name, self._commits[name, revision], (match[3] or "").strip("/")

    def _ask(self, place: str) -> tuple[int, bytes, str | None]:
        """Return status, body and next page's URL of an answer."""
        url = place if "://" in place else f"{hub_endpoint()}/api/datasets/{place}"

        def fetch() -> tuple[int, bytes, str | None]:
            with ask(url, "GET", self._headers()) as answer:
                return answer.status_code, answer.content, answer.links.get("next", {}).get("url")

        host = urllib.parse.urlsplit(url).netloc.rpartition("@")[2]
        return retrying.retry(host, url, fetch, lambda error: trouble(error) if is_broken(error) else None)

    def _headers(self) -> dict[str, str]:
        token = "" if self.options.anonymous else _token()
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _tree(self, name: str, commit: str, folder: str, *, deep: bool) -> dict[str, Stat]:
        """Return the files of a folder by their paths in the dataset; with `deep`, those of its folders, too."""
        url: str | None = (
            f"{name}/tree/{commit}/{urllib.parse.quote(folder)}".rstrip("/") + f"?recursive={str(deep).lower()}"
        )
        key = f"{url}"
        if key not in self._trees:
            results: dict[str, Stat] = {}
            while url:
                status, content, url = self._ask(url)
                if status == 404:
                    break
                if status != 200:
                    raise Unreadable(f"expected the files of the dataset, got the answer {status}", path=name)
                results.update(
                    (entry["path"], _stat(entry)) for entry in json.loads(content) if entry["type"] == "file"
                )
            self._trees[key] = results
        return self._trees[key]

    def stat(self, path: str) -> Stat | None:
        name, commit, inside = self._split(path)
        return self._tree(name, commit, inside.rpartition("/")[0], deep=False).get(inside)

    def files(self, root: str) -> Iterator[str]:
        return (name for name, _ in self.listing(root))

    def listing(self, root: str) -> Iterator[tuple[str, Stat | None]]:
        name, commit, inside = self._split(root)
        folder = inside + "/" if inside else ""
        results = sorted(self._tree(name, commit, inside, deep=True).items())
        return ((path[len(folder) :], stat) for path, stat in results if path.startswith(folder))

    def open(self, path: str, offset: int = 0, expected: Stat | None = None) -> io.BufferedReader:
        stat = self.stat(path)
        if stat is None:
            raise FileNotFoundError(2, "No such file", path)
        if expected not in (None, stat):
            raise DataError("expected a file that has not changed, got another version", path=path)
        if offset >= stat.size:
            return io.BufferedReader(io.BytesIO())
        name, commit, inside = self._split(path)
        url = f"{hub_endpoint()}/datasets/{name}/resolve/{commit}/{urllib.parse.quote(inside)}"
        return io.BufferedReader(WebReader(url, offset, headers=self._headers()), BUFFER)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        with self.open(path, offset) as stream:
            return stream.read() if length is None else stream.read(length)


def _stat(entry: dict[str, Any]) -> Stat:
    return Stat(entry["size"], f"oid {(entry.get('lfs') or entry)['oid']}")


def _token() -> str:
    if token := os.environ.get("HF_TOKEN"):
        return token
    try:
        import huggingface_hub
    except ImportError:
        return ""
    return huggingface_hub.get_token() or ""
