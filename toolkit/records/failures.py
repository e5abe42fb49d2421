"""Failures: a record of each failed task and its cause, until it has been done.

``failed STAGE`` KEY  a `FailureRecord`, in the record log of the dataset or of the output

The run that starts tasks notes their failures, so that there is a note also where a worker was killed.
"""

from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property

import msgspec

from toolkit.data import record_logs
from toolkit.data.dataset import Dataset
from toolkit.errors import ToolkitError
from toolkit.storage.record_log import RecordLog


class FailureRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The failure of a task.

    Attributes:
        task: Name of the task.
        message: Message for the user.
        details: Traceback, if the message is not enough.
    """

    task: str
    message: str
    details: str = ""


class FailureRecords:
    """The failures of a stage.

    Args:
        owner: Dataset, or bookkeeping folder of an output.
        stage: Stage, such as ``ingest``, ``tag`` or ``mix``.
    """

    def __init__(self, owner: Dataset | str, stage: str) -> None:
        self.stage = stage
        self._owner = owner
        self._kind = f"failed {stage}"

    @cached_property
    def _log(self) -> RecordLog:
        return record_logs.of_output(self._owner) if isinstance(self._owner, str) else record_logs.of(self._owner)

    def load(self) -> dict[str, FailureRecord]:
        """Return all failures, by key."""
        results = {key: self._log.load(self._kind, key, FailureRecord) for key in self._log.keys(self._kind)}
        return {key: record for key, record in results.items() if record}

    def note(self, key: str, record: FailureRecord) -> None:
        """Record a failure. If that is impossible, the end of the run still reports it."""
        with suppress(ToolkitError, OSError):
            self._log.save({(self._kind, key): msgspec.json.encode(record)})

    def forget(self, *keys: str) -> None:
        """Forget the failures of finished tasks."""
        with suppress(ToolkitError, OSError):
            self._log.forget((self._kind, key) for key in keys)

    def keep_only(self, keys: Iterable[str]) -> None:
        """Forget the failures of tasks with other keys."""
        if recorded := self.keys():
            self.forget(*recorded.difference(keys))

    def keys(self) -> set[str]:
        """Return the keys of all failures; none if the notes cannot be read, for no work depends on them."""
        with suppress(ToolkitError, OSError):
            return {*self._log.keys(self._kind)}
        return set()
