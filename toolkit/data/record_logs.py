"""The record logs of a dataset: which entries its records are, and when they are read.

They are read once a stage (`Session.stage`), between commands whenever they are asked for; see `of`. Records of
inputs have a record log of their own (`inputs_of`): a lost one must not pass for "never ingested".

kind         key                    record
set NAME     shard                  `toolkit.records.sets.ShardRecord`
signatures … shard                  `toolkit.whole_corpus.records.SignatureRecord`
seen NAME    shard                  `toolkit.records.foreign.Seen`
aligned      set                    `toolkit.records.sets.Aligned`
models       set                    names of models by sha256 (`toolkit.records.sets.load_models`)
failed STAGE task                   `toolkit.records.failures.FailureRecord`
rows         shard                  `toolkit.data.row_index.ShardState`
identity     ids                    `toolkit.records.identity`
ingest       source/path of input   `toolkit.records.ingested`
"""

import threading
from collections.abc import Callable
from typing import NamedTuple

from toolkit.data.dataset import Dataset
from toolkit.session import current
from toolkit.storage.paths import join
from toolkit.storage.record_log import SUFFIX, UNLIKE_DATA, Place, RecordLog

FOLDER = "record-log"
INPUTS = "inputs"
"""Folders of the record logs, below the bookkeeping folder."""

ROWS = "rows"
INGEST = "ingest"

MAKES_INPUTS = "run `toolkit ingest`, which makes again what is lost"


def place_in_set(set_name: str, shard: str) -> Place:
    """Return the place of the completion record of a shard in a set."""
    return f"set {set_name}", shard


def open_log(dataset: Dataset) -> RecordLog:
    """Return the record log of a dataset as it is now.

    Raises:
        Unreadable: if it is not known what there is.
    """
    return RecordLog(join(dataset.bookkeeping, FOLDER), suffix=_suffix(dataset))


def open_inputs(dataset: Dataset) -> RecordLog:
    """Return the record log of the inputs of a dataset as it is now.

    Raises:
        Unreadable: if it is not known what there is.
    """
    return RecordLog(join(dataset.bookkeeping, INPUTS), suffix=_suffix(dataset), remedy=MAKES_INPUTS)


def _suffix(dataset: Dataset) -> str:
    among_data = bool(dataset.notes) or dataset.bookkeeping.startswith(dataset.documents.rstrip("/") + "/")
    return UNLIKE_DATA if among_data else SUFFIX


class _Asked(NamedTuple):
    bookkeeping: str
    opened: Callable[[], RecordLog]


class _RecordLogs:
    """The record logs, by folder, that this process has asked for: as they are in a stage, and in the whole command."""

    def __init__(self) -> None:
        self.stage = ""
        self.open: dict[str, RecordLog] = {}
        self.seen: dict[str, _Asked] = {}
        self.lock = threading.RLock()


def _known() -> _RecordLogs:
    return current().get_or_make(_RecordLogs, _RecordLogs)


class Asked(NamedTuple):
    """A record log that this process has asked for.

    Attributes:
        log: itself.
        bookkeeping: the folder of records that it is in.
        name: Name of its folder: `FOLDER`, `INPUTS`, or another one for a record log of an output.
    """

    log: RecordLog
    bookkeeping: str
    name: str


def asked() -> list[Asked]:
    """Return the record logs that this process has asked for since the command began."""
    return [
        Asked(_opened(folder, *result), result.bookkeeping, folder.rpartition("/")[2])
        for folder, result in list(_known().seen.items())
    ]


def of(dataset: Dataset) -> RecordLog:
    """Return the record log of a dataset as it was when this process first asked for it in this command, or stage.

    Raises:
        Unreadable: as `open_log`.
    """
    return _opened(join(dataset.bookkeeping, FOLDER), dataset.bookkeeping, lambda: open_log(dataset))


def inputs_of(dataset: Dataset) -> RecordLog:
    """Return the record log of the inputs of a dataset, as `of`."""
    return _opened(join(dataset.bookkeeping, INPUTS), dataset.bookkeeping, lambda: open_inputs(dataset))


def at(bookkeeping: str, folder: str) -> RecordLog:
    """Return the record log in a folder of an output, as `of`.

    Args:
        bookkeeping: folder of the output's records, in which that folder is.
        folder: Folder of the record log.
    """
    return _opened(folder, bookkeeping, lambda: RecordLog(folder, suffix=UNLIKE_DATA))


def of_output(bookkeeping: str) -> RecordLog:
    """Return the record log of an output, as `of`."""
    return at(bookkeeping, join(bookkeeping, FOLDER))


def _opened(folder: str, bookkeeping: str, opened: Callable[[], RecordLog]) -> RecordLog:
    known, stage = _known(), current().stage
    with known.lock:
        if known.stage != stage:
            known.open, known.stage = {}, stage
        record_log = known.open.get(folder) or opened()
        if stage and folder not in known.open:
            known.open[folder], known.seen[folder] = record_log, _Asked(bookkeeping, opened)
        return record_log
