"""The journals of a dataset: which entries its records are, and when they are read.

They are read once a stage (`Session.stage`), between commands whenever they are asked for; see `of`. Records of
inputs have a journal of their own (`inputs_of`): a lost one must not pass for "never ingested".

kind         key                    record
set NAME     shard                  `toolkit.records.sets.ShardRecord`
signatures … shard                  `toolkit.whole.records.SignatureRecord`
seen NAME    shard                  `toolkit.records.foreign.Seen`
aligned      set                    `toolkit.records.aligned.Aligned`
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
from toolkit.storage.journal import SUFFIX, UNLIKE_DATA, Journal, Place
from toolkit.storage.paths import join

FOLDER = "journal"
INPUTS = "inputs"
"""Folders of the journals, below the bookkeeping folder."""

ROWS = "rows"
INGEST = "ingest"

MAKES_INPUTS = "run `toolkit ingest`, which makes again what is lost"


def place_in_set(set_name: str, shard: str) -> Place:
    """Return the place of the completion record of a shard in a set."""
    return f"set {set_name}", shard


def open_journal(dataset: Dataset) -> Journal:
    """Return the journal of a dataset as it is now.

    Raises:
        Unreadable: if it is not known what there is.
    """
    return Journal(join(dataset.bookkeeping, FOLDER), suffix=_suffix(dataset))


def open_inputs(dataset: Dataset) -> Journal:
    """Return the journal of the inputs of a dataset as it is now.

    Raises:
        Unreadable: if it is not known what there is.
    """
    return Journal(join(dataset.bookkeeping, INPUTS), suffix=_suffix(dataset), remedy=MAKES_INPUTS)


def _suffix(dataset: Dataset) -> str:
    among_data = bool(dataset.notes) or dataset.bookkeeping.startswith(dataset.documents.rstrip("/") + "/")
    return UNLIKE_DATA if among_data else SUFFIX


class _Asked(NamedTuple):
    bookkeeping: str
    opened: Callable[[], Journal]


class _Journals:
    """The journals, by folder, that this process has asked for: as they are in a stage, and in the whole command."""

    def __init__(self) -> None:
        self.stage = ""
        self.open: dict[str, Journal] = {}
        self.seen: dict[str, _Asked] = {}
        self.lock = threading.RLock()


def _known() -> _Journals:
    return current().kept(_Journals, _Journals)


class Asked(NamedTuple):
    """A journal that this process has asked for.

    Attributes:
        journal: itself.
        bookkeeping: the folder of records that it is in.
        name: of its folder: `FOLDER`, `INPUTS`, or another one for a journal of an output.
    """

    journal: Journal
    bookkeeping: str
    name: str


def asked() -> list[Asked]:
    """Return the journals that this process has asked for since the command began."""
    return [
        Asked(_opened(folder, *found), found.bookkeeping, folder.rpartition("/")[2])
        for folder, found in list(_known().seen.items())
    ]


def of(dataset: Dataset) -> Journal:
    """Return the journal of a dataset as it was when this process first asked for it in this command, or stage.

    Raises:
        Unreadable: as `open_journal`.
    """
    return _opened(join(dataset.bookkeeping, FOLDER), dataset.bookkeeping, lambda: open_journal(dataset))


def inputs_of(dataset: Dataset) -> Journal:
    """Return the journal of the inputs of a dataset, as `of`."""
    return _opened(join(dataset.bookkeeping, INPUTS), dataset.bookkeeping, lambda: open_inputs(dataset))


def at(bookkeeping: str, folder: str) -> Journal:
    """Return the journal in a folder of an output, as `of`.

    Args:
        bookkeeping: folder of the output's records, in which that folder is.
        folder: of the journal.
    """
    return _opened(folder, bookkeeping, lambda: Journal(folder, suffix=UNLIKE_DATA))


def of_output(bookkeeping: str) -> Journal:
    """Return the journal of an output, as `of`."""
    return at(bookkeeping, join(bookkeeping, FOLDER))


def _opened(folder: str, bookkeeping: str, opened: Callable[[], Journal]) -> Journal:
    known, stage = _known(), current().stage
    with known.lock:
        if known.stage != stage:
            known.open, known.stage = {}, stage
        found = known.open.get(folder) or opened()
        if stage and folder not in known.open:
            known.open[folder], known.seen[folder] = found, _Asked(bookkeeping, opened)
        return found
