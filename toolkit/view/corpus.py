"""What is browsed: documents by their places, with values beside them, and questions that are asked of all of them."""

import ctypes
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from toolkit.data.schema import Type


class Ended(BaseException):
    """The question is not asked any more. Nothing that looks for errors catches it."""


class Stop:
    """Ends the work of one thread.

    Attributes:
        ended: whether it was ended.
    """

    def __init__(self) -> None:
        self.ended = False
        self._computing: int | None = None
        self._lock = threading.Lock()

    def end(self) -> None:
        """End the work, at once where it computes."""
        if self.ended:
            return
        with self._lock:
            self.ended = True
            if self._computing is not None:
                _raise_in(self._computing, Ended)

    def check(self) -> None:
        """Raise `Ended` if the work was ended."""
        if self.ended:
            raise Ended

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Let the thread be interrupted in the block, which computes and reads nothing."""
        with self._lock:
            self.check()
            self._computing = threading.get_ident()
        try:
            yield
        finally:
            with self._lock:
                mine, self._computing = self._computing, None
                if self.ended and mine is not None:
                    _raise_in(mine, None)  # it may be under way yet
        self.check()


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raise an error in a thread when it next runs code of Python; None takes one back that it has not met."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), ctypes.py_object(error) if error is not None else ctypes.py_object()
    )


class At(NamedTuple):
    """The place of a document: the number of its shard (or file), and that of its row there, both from 0."""

    shard: int
    row: int


@dataclass(frozen=True)
class Shard:
    """A file of documents.

    Attributes:
        name: for people.
        path: of the file.
        rows: documents; None if nobody has counted them.
    """

    name: str
    path: str
    rows: int | None


@dataclass(frozen=True)
class Values:
    """A set of values that documents have: its name, and the types of its keys."""

    name: str
    types: dict[str, Type]


@dataclass
class Found:
    """A document that was read, or why it could not be.

    Attributes:
        at: its place.
        id, source, text: of it.
        fields: all others that its row has, by name.
        values: by set and key.
        faults: why it, or a set of it, could not be read.
    """

    at: At
    id: str = ""
    source: str = ""
    text: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


class Scanned(NamedTuple):
    """Some documents in a row that were looked at.

    Attributes:
        looked_at: how many.
        rows: of those that fit, from 0, in the shard.
        scores: of these; nothing where none was asked for, None for null.
    """

    looked_at: int
    rows: list[int]
    scores: list[float | None]


class Question(Protocol):
    """What is asked of all documents, checked."""

    @property
    def reads_documents(self) -> bool:
        """Return whether it asks for more than attributes and row indexes tell, so that the texts are read."""

    def scan(self, shard: int, stop: Stop) -> Iterator[Scanned]:
        """Yield what the documents of a shard say, in order.

        Raises:
            Ended: if the work was ended.
            ToolkitError: if the shard, or what is joined to it, is not what it should be.
        """


class Corpus(Protocol):
    """What is browsed."""

    title: str
    kind: str
    shards: Sequence[Shard]
    sets: Sequence[Values]

    def look_again(self) -> None:
        """Forget what has been read of files that have changed since."""

    def read(self, places: Sequence[At], sets: Sequence[str]) -> list[Found]:
        """Return documents, in the order that is asked for; places behind the end of a shard are left out.

        Args:
            places: of them.
            sets: whose values are read, too.
        """

    def label_places(self, found: Found) -> Sequence[str]:
        """Return what tells a document from others with its source and id in a file of labels.

        Nothing where there are no others, else its shard, or shard and row. The first counts for new labels; those
        behind it are what earlier ones may have.
        """

    def places_of(self, id: str) -> list[At] | None:
        """Return the places of the documents with an id; None if only a look at all documents can tell."""

    def question(self, where: str, sort: str, sets: Sequence[str]) -> Question:
        """Return what is asked of all documents.

        Args:
            where: a condition, as rules have it; all documents if it is empty.
            sort: an expression that gives a number, or null; empty for none.
            sets: whose keys are meant where several sets have one.

        Raises:
            ConfigError: if they are no expressions over what is here.
        """
