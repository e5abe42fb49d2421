"""The folders that counts are kept in: our records of a dataset or an output, the user's cache for other files.

``<bookkeeping>/stats/v<VERSION>/<digest of what was asked>/``, and in the cache folder likewise. Nothing is written
beside files that are not ours.
"""

import re
from contextlib import suppress

from toolkit.errors import ConfigError, ToolkitError
from toolkit.inspect.stats.one_file import VERSION
from toolkit.inspect.targets import Home
from toolkit.mix.settings import work_folder
from toolkit.storage import store_of
from toolkit.storage.models import cache_folder
from toolkit.storage.paths import BOOKKEEPING, join, remove_empty_folders, remove_tree

_FORMER = re.compile(r"[0-9a-f]{32}|v(\d+)")


def base_folder(home: Home) -> str:
    """Return the bookkeeping folder that counts of what lies in a home are kept below; the cache for files of others.

    Raises:
        ConfigError: if it is the cache of a user who has none.
    """
    if home.kind == "files":
        try:
            return cache_folder()
        except RuntimeError:
            raise ConfigError("expected a home folder, got a user without one; set TOOLKIT_CACHE") from None
    return work_folder(home.root) if home.kind == "output" else join(home.root, BOOKKEEPING)


def counts_folder(folder: str) -> str:
    """Return the folder below a bookkeeping folder for what this version counts."""
    return join(folder, "stats", f"v{VERSION}")


def forget_former(folder: str) -> None:
    """Delete what an earlier version has kept below a bookkeeping folder, which nobody can ask for any more."""
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
