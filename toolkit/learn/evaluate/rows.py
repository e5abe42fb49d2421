"""Per shard: what the expressions of an evaluation give for each document, in columns."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import msgspec
import numpy as np

from toolkit.aggregate.keys import of_documents
from toolkit.align.join import hash_of
from toolkit.config.settings import ConfigStruct
from toolkit.data.documents import Document
from toolkit.data.row_index import row_hash
from toolkit.errors import ConfigError, DataError
from toolkit.execution.executors import Report
from toolkit.learn.evaluate.columns import Part, part_of
from toolkit.learn.evaluate.labels import Match, text_hash
from toolkit.mix.join import JoinedShard, at_document, inputs_of, joint_rows
from toolkit.whole.expressions import Checked, Evaluator, checked
from toolkit.whole.kind import Asked

WHERE = "when"
"""The name of the question which documents are looked at."""

NAMED = ("source", "host", "crawl")
"""What documents can be grouped by without an expression."""


class Question(ConfigStruct):
    """What is asked of each document.

    Attributes:
        name: what the values are called; the one called `WHERE` says which documents are looked at.
        text: an expression, or one of `NAMED`.
        sets: that it reads.
        option: that it is given by, for messages.
    """

    name: str
    text: str
    sets: list[str] = []
    option: str = ""

    @property
    def is_named(self) -> bool:
        return self.text in NAMED and not self.sets

    def checked(self, work: JoinedShard) -> Checked:
        """Return the expression, checked against the types of the sets that it reads.

        Raises:
            ConfigError: if it is none.
        """
        sets = [joined for joined in work.sets if joined.set in self.sets]
        wanted: Any = "condition" if self.name == WHERE else "value"
        return checked(self.name, Asked(self.text, wanted), sets, work.stream.own, self.option)

    def check(self, work: JoinedShard) -> None:
        """Raise ConfigError if it cannot be asked of documents with these sets."""
        if not self.is_named:
            self.checked(work)


class ShardAsked(ConfigStruct):
    """A shard with the sets that are read, and what is asked; the question `WHERE` says which documents count."""

    work: JoinedShard
    questions: list[Question]

    def made_of(self) -> list[str]:
        """Return the digests of the documents, and of their attributes in each set.

        Raises:
            DataError: if one is not there, not whole, or stale.
        """
        state, digests = inputs_of(self.work)
        return [state.content, *(digests[joined.set] for joined in self.work.sets)]

    @property
    def others(self) -> list[Question]:
        """Return what is asked of documents that count."""
        return [question for question in self.questions if question.name != WHERE]

    def answers(self) -> Iterator[tuple[int, Document, list[Any]]]:
        """Yield the documents that count: the number of the row, from 1, and what was asked, as plain values."""
        where = next((Asking(each, self.work) for each in self.questions if each.name == WHERE), None)
        others = [Asking(question, self.work) for question in self.others]
        used = {name for each in [*others, *([where] if where else [])] for name in each.used}
        with ExitStack() as stack:
            for document, number, _, values in joint_rows(self.work, stack, used):
                try:
                    if where is None or where.holds(document, values):
                        yield number, document, [each.of(document, values) for each in others]
                except DataError as error:
                    raise at_document(error, self.work, number, document.id) from None


class ShardToAsk(ShardAsked):
    """A shard of which answers are kept in columns; arguments as of `toolkit.learn.evaluate.labels.Labels`."""

    match: Match = ""
    by_shard: bool = False


class Answers(ConfigStruct):
    """What was asked of a shard's documents.

    Attributes:
        documents: in the shard.
        columns: of those that are looked at, by question.
        hashes: xxh3-64 of source and id of each.
        keys: by which they are found in files of labels, 16 bytes each; with `by_shard` three of each document, the
            narrowest first.
    """

    documents: int
    columns: dict[str, Part]
    hashes: bytes
    keys: bytes = b""


def ask_shard(job: ShardToAsk, report: Report) -> Answers:
    """Ask a shard's documents.

    Raises:
        DataError: if documents or sets are not what they should be, or an expression cannot use their values.
    """
    work = job.work
    state, _ = inputs_of(work)
    columns: list[list[Any]] = [[] for _ in job.others]
    hashes: list[int] = []
    keys = bytearray()
    for number, document, found in job.answers():
        for column, value in zip(columns, found, strict=True):
            column.append(value)
        hashes.append(row_hash(document.source, document.id))
        if job.by_shard:
            shard = work.dataset.file_of(work.shard)
            keys += _key(document, job.match, f"{shard}:{number}") + _key(document, job.match, shard)
        keys += _key(document, job.match)
    report(state.rows, 0)
    try:
        parts = {each.name: part_of(column, each.text) for each, column in zip(job.others, columns, strict=True)}
    except ConfigError as error:
        raise DataError(str(error), path=work.path) from None
    return Answers(state.rows, parts, np.array(hashes, dtype=np.uint64).tobytes(), bytes(keys))


def _key(document: Document, match: Match, shard: str | None = None) -> bytes:
    if not match:
        return b""
    if match == "text":
        return text_hash(document.text)
    return hash_of(document.source if match == "source and id" else None, document.id, shard)


class Asking:
    """Asks one question.

    Attributes:
        used: names that are joined for it.
    """

    def __init__(self, question: Question, work: JoinedShard) -> None:
        self.question, self._path = question, work.path
        self.used: set[str] = set()
        if question.is_named:
            return
        found = question.checked(work)
        self._columns = [i for i, joined in enumerate(work.sets) if joined.set in question.sets]
        self._evaluator = Evaluator([found], len(self._columns))
        self.used = {name for name in found.expression.names if name != "document"}

    def holds(self, document: Document, values: list[Any]) -> bool:
        return self._evaluator.competes([values[i] for i in self._columns], document)

    def of(self, document: Document, values: list[Any]) -> Any:
        if self.question.is_named:
            return msgspec.json.decode(of_documents(self._path, [document])[self.question.text][0])
        return self._evaluator.values([values[i] for i in self._columns], document)[0]
