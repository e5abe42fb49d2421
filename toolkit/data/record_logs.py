"""The record logs of a dataset: which entries its records are, and when they are read.

They are read once a stage (`Session.stage`), between commands whenever they are asked for; see `of`. Records of
inputs have a record log of their own (`inputs_of`): a lost one must not pass for "never ingested".

kind         key                    record
set NAME     shard                  `toolkit.records.sets.ShardRecord`
signatures … shard                  `toolkit.whole_corpus.records.SignatureRecord`
seen NAME    shard                  `toolkit.records.external_sets.ExternalContent`
aligned      set                    `toolkit.records.sets.Aligned`
models       set                    names of models by sha256 (`toolkit.records.sets.load_models`)
failed STAGE task                   `toolkit.records.failures.FailureRecord`
rows         shard                  `toolkit.data.row_index.ShardState`
identity     ids                    `toolkit.records.identity`
ingest       source/path of input   `toolkit.records.ingested`
"""

import threading
from collections.abc import Callable

from toolkit.data.dataset import Dataset
from toolkit.session import current
from toolkit.storage.paths import join
from toolkit.storage.record_log import SUFFIX, UNLIKE_DATA, RecordKey, RecordLog

FOLDER = "record-log"
INPUTS = "inputs"
"""Folders of the record logs, below the bookkeeping folder."""

ROWS = "rows"
INGEST = "ingest"

MAKES_INPUTS = "run `toolkit ingest`, which makes again what is lost"


def place_in_set(set_name: str, shard: str) -> RecordKey:
    """Return the place of a shard's completion record in a set."""
    return f"set {set_name}", shard


def open_log(dataset: Dataset) -> RecordLog:
    """Return the record log of a dataset as it is now.

    Raises:
        Unreadable: if it is not known what there is.
    """
    return RecordLog(join(dataset.bookkeeping, FOLDER), suffix=_suffix(dataset))


def open_inputs(dataset: Dataset) -> RecordLog:
    """Return the record log of a dataset's inputs, as it is now.

    Raises:
        Unreadable: if it is not known what there is.
    """
    return RecordLog(join(dataset.bookkeeping, INPUTS), suffix=_suffix(dataset), remedy=MAKES_INPUTS)


def _suffix(dataset: Dataset) -> str:
    among_data = bool(dataset.notes) or dataset.bookkeeping.startswith(dataset.documents.rstrip("/") + "/")
    return UNLIKE_DATA if among_data else SUFFIX


class _RecordLogs:
    """The open record logs of this process by bookkeeping folder and folder.

    Those of the stage are open; of those of the whole command it is known how to open them.
    """

    def __init__(self) -> None:
        self.stage = ""
        self.open: dict[tuple[str, str], RecordLog] = {}
        self.openers: dict[tuple[str, str], Callable[[], RecordLog]] = {}
        self.lock = threading.RLock()


def opened_logs() -> list[tuple[RecordLog, str]]:
    """Return the record logs opened in this command, with their bookkeeping folders."""
    openers = list(current().get_or_make(_RecordLogs, _RecordLogs).openers.items())
    return [(_log_of(*place, opener), place[0]) for place, opener in openers]


def of(dataset: Dataset) -> RecordLog:
    """Return the record log of a dataset, read once in a stage.

    Raises:
        Unreadable: as `open_log`.
    """
    return _log_of(dataset.bookkeeping, FOLDER, lambda: open_log(dataset))


def inputs_of(dataset: Dataset) -> RecordLog:
    """Return the record log of the inputs of a dataset, as `of`."""
    return _log_of(dataset.bookkeeping, INPUTS, lambda: open_inputs(dataset))


def at(bookkeeping: str, folder: str) -> RecordLog:
    """Return the record log in a folder of an output, as `of`.

    Args:
        bookkeeping: folder of the output's records, in which that folder is.
        folder: Folder of the record log.
    """
    return _log_of(bookkeeping, folder, lambda: RecordLog(folder, suffix=UNLIKE_DATA))


def of_output(bookkeeping: str) -> RecordLog:
    """Return the record log of an output, as `of`."""
    return at(bookkeeping, join(bookkeeping, FOLDER))


def _log_of(bookkeeping: str, folder: str, opener: Callable[[], RecordLog]) -> RecordLog:
    session, place = current(), (bookkeeping, folder)
    logs, stage = session.get_or_make(_RecordLogs, _RecordLogs), session.stage
    if stage and logs.stage == stage and (log := logs.open.get(place)):
        return log
    with logs.lock:
        if logs.stage != stage:
            logs.open, logs.stage = {}, stage
        log = logs.open.get(place) or opener()
        if stage and place not in logs.open:
            logs.open[place], logs.openers[place] = log, opener
        return log
