"""Where counts are kept: with our own records of a dataset or an output; those of other files in the user's cache.

``<bookkeeping>/stats/v<VERSION>/<digest of what was asked>/``, and in the cache folder likewise. Nothing is written
beside files that are not ours.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from toolkit.errors import ConfigError, Forbidden, ToolkitError
from toolkit.inspect.stats.shard import VERSION
from toolkit.mix import publish
from toolkit.mix.settings import work_folder
from toolkit.storage import store_of
from toolkit.storage.models import cache_folder
from toolkit.storage.paths import BOOKKEEPING, absolute, exists, is_folder, join, remove_empty_folders, remove_tree

_FORMER = re.compile(r"[0-9a-f]{32}|v(\d+)")


class Home(NamedTuple):
    """What a path belongs to.

    Attributes:
        root: of the dataset or the output; of other files their folder.
        kind: which of them.
    """

    root: str
    kind: str

    def folder(self) -> str:
        """That counts are kept below.

        Raises:
            ConfigError: if it is the cache of a user who has none.
        """
        if self.kind == "files":
            try:
                return cache_folder()
            except RuntimeError:
                raise ConfigError("expected a home folder, got a user without one; set TOOLKIT_CACHE") from None
        return work_folder(self.root) if self.kind == "output" else join(self.root, BOOKKEEPING)

    def name(self, path: str) -> str:
        """Of a file below the root."""
        return absolute(path)[len(self.root) :].lstrip("/")


def home_of(path: str) -> Home:
    """The output or the dataset that a file or a folder lies in, else the folder itself, or that of the file."""
    path = absolute(path)
    if store_of(path).can_list:
        for root in _above(path):
            with suppress(Forbidden):  # what nobody may look at is not ours
                if exists(publish.manifest_path(root)):
                    return Home(root, "output")
                inside = path[len(root) + 1 :].partition("/")[0]
                if inside in ("documents", "attributes") and _is_dataset(root):
                    return Home(root, "dataset")
    return Home(path if is_folder(path) else path.rpartition("/")[0], "files")


def _above(path: str) -> Iterator[str]:
    """The path, and the folders that it is in, but for the root of the store."""
    while path and not path.endswith(":/"):
        yield path
        path = path.rpartition("/")[0]


def _is_dataset(root: str) -> bool:
    """A folder `documents` alone may be anybody's."""
    return is_folder(join(root, "documents")) and any(
        is_folder(join(root, each)) for each in (BOOKKEEPING, "attributes")
    )


def kept(folder: str) -> str:
    """The folder below a bookkeeping folder for what this version counts."""
    return join(folder, "stats", f"v{VERSION}")


def forget_former(folder: str) -> None:
    """Deletes what an earlier version has kept below a bookkeeping folder, which nobody can ask for any more."""
    stats = join(folder, "stats")
    with suppress(ToolkitError, OSError):  # it may not be ours to write in
        former = [name for name in store_of(stats).folders(stats) if _is_former(name)]
        for name in former:
            remove_tree(join(stats, name))
        if former:
            remove_empty_folders(stats, folder.rpartition("/")[0])


def _is_former(name: str) -> bool:
    found = _FORMER.fullmatch(name)
    return found is not None and int(found[1] or 0) < VERSION
