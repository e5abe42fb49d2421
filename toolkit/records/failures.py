"""What failed, and why: a small file for each task that did, until it has been done.

``<folder>/<stage>/<key>.json``, the key by `toolkit.storage.paths.unlike_data`, below the bookkeeping folder of a
dataset (``failed/ingest``, ``failed/tag``) or of an output (``failed/mix``). The run that starts tasks writes them,
so that there is one also where a worker was killed.
"""

from collections.abc import Collection
from contextlib import suppress

import msgspec

from toolkit.errors import ToolkitError
from toolkit.storage.json_files import load, save
from toolkit.storage.paths import from_unlike_data, join, list_files, remove, unlike_data

FAILED = "failed"
"""Folder of the failures of all stages, below the bookkeeping folder."""


class FailureRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The failure of a task.

    Attributes:
        task: its name.
        message: for the user.
        details: traceback, where the message does not say it all.
    """

    task: str
    message: str
    details: str = ""


class FailureRecords:
    """The failures of a stage.

    Args:
        folder: the bookkeeping folder of a dataset or an output.
        stage: ``ingest``, ``tag`` or ``mix``.
    """

    def __init__(self, folder: str, stage: str) -> None:
        self.stage = stage
        self._folder = join(folder, FAILED, stage)
        self._known: set[str] | None = None

    def load(self) -> dict[str, FailureRecord]:
        """Return all of them, by key."""
        found = {}
        for key in sorted(self._keys()):
            if record := load(self._path(key), FailureRecord):  # else mended meanwhile
                found[key] = record
        return found

    def note(self, key: str, record: FailureRecord) -> None:
        """Note that a task failed. What cannot be noted is still told at the end of the run."""
        with suppress(ToolkitError, OSError):
            save(self._path(key), record)
            self._keys().add(key)

    def forget(self, key: str) -> None:
        """Forget the failure of a task that is done."""
        if key in self._keys():
            with suppress(ToolkitError, OSError):
                remove(self._path(key))
            self._keys().discard(key)

    def keep_only(self, keys: Collection[str]) -> None:
        """Forget the failures of tasks with other keys, which are not wanted any more."""
        for key in sorted(self._keys().difference(keys)):
            self.forget(key)

    def _keys(self) -> set[str]:
        if self._known is None:
            paths = list_files(self._folder, hidden=True)
            names = (path.removesuffix(".json") for path in paths if path.endswith(".json"))
            self._known = {from_unlike_data(name) for name in names}
        return self._known

    def _path(self, key: str) -> str:
        return join(self._folder, unlike_data(key) + ".json")
