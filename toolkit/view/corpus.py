"""Browsed documents by their places, and queries over all of them.

A query looks at all shards in a thread of its own, in the order of the corpus or by a score. What it finds is 8 bytes a
document, with a score 16. At most `MOST` places are kept: the first ones, or those with the best scores; how many there
are in all is counted.
"""

import ctypes
import threading
import time
from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol, TypeVar

import msgspec

from toolkit.data.schema import Type
from toolkit.errors import ToolkitError
from toolkit.lazy_numpy import np
from toolkit.storage.threads import Thread

K = TypeVar("K")
V = TypeVar("V")


class QueryEnded(BaseException):
    """The question is not asked any more. Nothing that looks for errors catches it."""


class Stop:
    """Ends the work of one thread.

    Attributes:
        ended: True if it was ended.
    """

    def __init__(self) -> None:
        self.ended = False
        self._computing: int | None = None
        self._lock = threading.Lock()

    def end(self) -> None:
        """End the work, at once during a computation."""
        if self.ended:
            return
        with self._lock:
            self.ended = True
            if self._computing is not None:
                _raise_in(self._computing, QueryEnded)

    def check(self) -> None:
        """Raise `QueryEnded` if the work was ended."""
        if self.ended:
            raise QueryEnded

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Allow an interruption of the thread in the block, a pure computation."""
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
    """Raise an error in a thread at its next Python instruction; None takes one back that it has not met."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), ctypes.py_object(error) if error is not None else ctypes.py_object()
    )


class Recent(OrderedDict[K, V]):
    """A cache of recently used values; `use` and `keep` may be called by several threads.

    Args:
        most: Bound of the sum of sizes; one value is kept in any case.
        size: Function that returns the size of a value; 1 by default.

    Attributes:
        lock: Lock of the cache, for other methods.
    """

    def __init__(self, most: int, size: Callable[[V], int] = lambda value: 1) -> None:
        super().__init__()
        self._most, self._size = most, size
        self.lock = threading.RLock()

    def use(self, key: K) -> V | None:
        """Return a value and mark it as recently used; None if it is not here."""
        with self.lock:
            if key in self:
                self.move_to_end(key)
            return self.get(key)

    def keep(self, key: K, value: V) -> V:
        """Keep a value in the place of the oldest ones."""
        with self.lock:
            self[key] = value
            while len(self) > 1 and sum(map(self._size, self.values())) > self._most:
                self.popitem(last=False)
        return value


class At(NamedTuple):
    """The place of a document: the number of its shard (or file), and that of its row there, both from 0."""

    shard: int
    row: int


class Shard(msgspec.Struct, frozen=True):
    """A file of documents.

    Attributes:
        name: Name for people.
        path: Path of the file.
        rows: documents; None if nobody has counted them.
    """

    name: str
    path: str
    rows: int | None


class ValueSet(msgspec.Struct, frozen=True):
    """A set of values of documents: its name, and the types of its keys."""

    name: str
    types: dict[str, Type]


class CorpusRow(msgspec.Struct):
    """A browsed document, or the faults of its reading.

    Attributes:
        at: its place.
        id, source, text: of it.
        fields: all others that its row has, by name.
        values: Values by set and key.
        faults: why it, or a set of it, could not be read.
    """

    at: At
    id: str = ""
    source: str = ""
    text: str = ""
    fields: dict[str, Any] = {}
    values: dict[str, dict[str, Any]] = {}
    faults: list[str] = []


class Scanned(NamedTuple):
    """Consecutive documents after a scan.

    Attributes:
        looked_at: Number of scanned documents.
        rows: Rows of those that fit, from 0, in the shard.
        scores: Scores of these; nothing where none was asked for, None for null.
    """

    looked_at: int
    rows: list[int]
    scores: list[float | None]


class Question(Protocol):
    """A checked query over all documents."""

    @property
    def reads_documents(self) -> bool:
        """Return True if it needs the documents' texts."""

    def scan(self, shard: int, stop: Stop) -> Iterator[Scanned]:
        """Yield the results for the documents of a shard, in order.

        Raises:
            Ended: if the work was ended.
            ToolkitError: if the shard, or what is joined to it, is not what it should be.
        """


class Corpus(Protocol):
    """The browsed corpus."""

    title: str
    kind: str
    shards: Sequence[Shard]
    sets: Sequence[ValueSet]

    def refresh(self) -> None:
        """Drop cached data of changed files."""

    def read(self, places: Sequence[At], sets: Sequence[str]) -> list[CorpusRow]:
        """Return documents, in the order of the places; places behind the end of a shard are left out.

        Args:
            places: Places of them.
            sets: Sets whose values are read, too.
        """

    def label_places(self, document: CorpusRow) -> Sequence[str]:
        """Return the distinguishing places of a document in a file of labels.

        Nothing where there are no others, else its shard, or shard and row. The first counts for new labels; those
        behind it are what earlier ones may have.
        """

    def places_of(self, id: str) -> list[At] | None:
        """Return the places of the documents with an id; None if only a look at all documents can tell."""

    def question(self, where: str, sort: str, sets: Sequence[str]) -> Question:
        """Return a checked query over all documents.

        Args:
            where: a condition, as rules have it; all documents if it is empty.
            sort: an expression that gives a number, or null; empty for none.
            sets: Sets whose keys are meant where several sets have one.

        Raises:
            ConfigError: if they are no expressions over what is here.
        """


MOST = 1_000_000
"""Places that a query keeps. To order them takes 200 MB for a moment."""

KEPT = 8
"""Queries whose answers are kept."""

ABANDONED = 20.0
"""Seconds after which a query ends that nobody asks for: the page asks more often."""

_ROW_BITS = 40


class QuerySpec(NamedTuple):
    """The goal of a query.

    Attributes:
        where: the condition.
        sort: the expression that gives scores.
        descending: True if the highest scores come first.
        sets: Sets whose keys are meant where several have one.
        rule: Rule of the mix, that drops the documents, by its number; -1 for those that stay, None for all.
    """

    where: str
    sort: str
    descending: bool
    sets: tuple[str, ...]
    rule: int | None = None


class Query:
    """A running query.

    Args:
        corpus: Corpus that it looks at.
        question: Question of it.
        spec: Description of the query.

    Attributes:
        scanned: documents that were looked at.
        matches: documents that fit.
        without: Without of these, those without a score, which are not listed.
        faults: Faults of shards that could not be looked at.
        is_complete: True if all has been looked at.
    """

    def __init__(self, corpus: Corpus, question: Question, spec: QuerySpec) -> None:
        self.spec, self._corpus, self._question = spec, corpus, question
        self.scanned = self.matches = self.without = 0
        self.faults: list[str] = []
        self.is_complete = False
        self._stop = Stop()
        self.reads_documents = question.reads_documents
        self._places = array("Q")
        self._best: _Best | None = _Best(descending=spec.descending) if spec.sort else None
        self._changed = threading.Condition()
        self._last_asked = time.monotonic()
        for work in (self._run, self._watch):
            Thread(target=work, name="query", daemon=True).start()

    def end(self) -> None:
        """End the work."""
        if not self.is_complete:
            self._stop.end()

    @property
    def ended(self) -> bool:
        """Return True if it has ended early."""
        return self._stop.ended and not self.is_complete

    @property
    def is_cut(self) -> bool:
        """Return True if it has more matches than places."""
        return self.matches - self.without > MOST

    def wait_for(self, count: int, seconds: float) -> None:
        """Wait for so many places, or the end of the work; at most some seconds."""
        self._last_asked = time.monotonic()
        with self._changed:
            self._changed.wait_for(lambda: self.is_complete or self.ended or len(self._places) >= count, seconds)

    def places(self, first: int, count: int) -> list[tuple[At, float | None]]:
        """Return some places, from the first one's number, with their scores.

        Those that are ordered by scores are there when all has been looked at.
        """
        if self._best is None:
            with self._changed:
                return [(_at(place), None) for place in self._places[first : first + count]]
        return self._best.listed(first, count) if self.is_complete else []

    def _run(self) -> None:
        try:
            for number in range(len(self._corpus.shards)):
                try:
                    for block in self._question.scan(number, self._stop):
                        self._stop.check()
                        self._add(number, block)
                except ToolkitError as error:
                    self.faults.append(str(error))
            is_complete = True
        except QueryEnded:
            is_complete = False
        except BaseException as error:  # which nobody else would hear of
            self.faults.append(f"{type(error).__name__}: {error}")
            is_complete = True
            raise
        finally:
            with self._changed:
                if self._best:
                    self._best.order()
                self.is_complete = is_complete
                self._changed.notify_all()

    def _watch(self) -> None:
        """End the work when nobody asks for it any more: the browser has gone, or asks for something else."""
        with self._changed:
            while not (self.is_complete or self.ended):
                seconds = self._last_asked + ABANDONED - time.monotonic()
                if seconds <= 0:
                    self._stop.end()
                self._changed.wait(min(max(seconds, 0.01), 1.0))

    def _add(self, number: int, block: Scanned) -> None:
        base = number << _ROW_BITS
        with self._changed:
            self.scanned += block.looked_at
            self.matches += len(block.rows)
            if self._best is None:
                room = MOST - len(self._places)
                self._places.extend([base | row for row in block.rows[:room]])
                self._changed.notify_all()
                return
        pairs = [(base | row, score) for row, score in zip(block.rows, block.scores, strict=True) if score is not None]
        self.without += len(block.rows) - len(pairs)
        self._best.add(pairs)


class _Best:
    """The places with the best scores; of equal ones those that come first."""

    def __init__(self, *, descending: bool) -> None:
        self._sign = -1.0 if descending else 1.0
        self._places = np.empty(0, dtype=np.uint64)
        self._scores = np.empty(0, dtype=np.float64)
        self._new_places = array("Q")
        self._new_scores = array("d")

    def add(self, pairs: list[tuple[int, float]]) -> None:
        self._new_places.extend([place for place, _ in pairs])
        self._new_scores.extend([float(score) * self._sign for _, score in pairs])
        if len(self._new_places) >= MOST:
            self.order()

    def order(self) -> None:
        """Sort the places, and keep the best."""
        places: np.ndarray = np.concatenate([self._places, np.array(self._new_places, dtype=np.uint64)])
        scores: np.ndarray = np.concatenate([self._scores, np.array(self._new_scores, dtype=np.float64)])
        order = np.lexsort((places, scores))[:MOST]
        self._places, self._scores = places[order], scores[order]
        self._new_places, self._new_scores = array("Q"), array("d")

    def listed(self, first: int, count: int) -> list[tuple[At, float | None]]:
        end = first + count
        places, scores = self._places[first:end].tolist(), (self._scores[first:end] * self._sign).tolist()
        return [(_at(place), value) for place, value in zip(places, scores, strict=True)]


def _at(place: int) -> At:
    return At(place >> _ROW_BITS, place & ((1 << _ROW_BITS) - 1))


class Queries:
    """The recent queries.

    Args:
        corpus: Corpus that they look at.
        made: makes the question of what is asked, checked.
    """

    def __init__(self, corpus: Corpus, question_of: Callable[[QuerySpec], Question]) -> None:
        self._corpus, self._question_of = corpus, question_of
        self._queries: OrderedDict[QuerySpec, Query] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, spec: QuerySpec) -> Query:
        """Return the query, started if it is new.

        Raises:
            ConfigError: if its expressions are none.
        """
        with self._lock:
            if spec in self._queries and not self._queries[spec].ended:
                self._queries.move_to_end(spec)
                return self._queries[spec]
            query = self._queries[spec] = Query(self._corpus, self._question_of(spec), spec)
            while len(self._queries) > KEPT:
                self._queries.popitem(last=False)[1].end()
            return query

    def forget(self) -> None:
        """End and forget all queries."""
        with self._lock:
            queries = list(self._queries.values())
            self._queries.clear()
        for query in queries:
            query.end()
