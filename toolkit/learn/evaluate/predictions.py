"""What the expressions of an evaluation give for each document, per shard, in columns: 8 bytes a number, 4 a label."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np
import xxhash

from toolkit.aggregate.keys import of_documents
from toolkit.align.join import hash_of
from toolkit.config.settings import ConfigStruct
from toolkit.data.documents import Document
from toolkit.data.row_index import row_hash
from toolkit.errors import ConfigError, DataError, short
from toolkit.execution.executors import Report
from toolkit.learn.evaluate.metrics import Array
from toolkit.mix.join import JoinedShard, at_document, inputs_of, joint_rows
from toolkit.whole.expressions import Checked, Evaluator, checked
from toolkit.whole.kind import Asked

Match = Literal["", "id", "source and id", "text"]
"""By what documents are found in files of labels."""

Kind = Literal["null", "number", "bool", "label", "list"]
"""What the values of a column are, beside null: ``null`` of one that has nothing else."""

_ENCODER = msgspec.json.Encoder(order="sorted")


class Part(ConfigStruct):
    """The column of a shard, as it is sent from its worker.

    Attributes:
        kind: of the values.
        data: float64, not a number for null; or int32 codes, -1 for null.
        table: the values of codes, as JSON; a list is a set, its members sorted.
    """

    kind: Kind
    data: bytes
    table: list[str] = []


@dataclass(frozen=True)
class Column:
    """The values of all documents; `values` and `table` as in `Part`, the table in order."""

    kind: Kind
    values: Array
    table: list[Any]

    @property
    def is_null(self) -> Array:
        """Return where there is no value."""
        null: Array = np.isnan(self.values) if self.values.dtype.kind == "f" else self.values < 0
        return null

    def taken(self, rows: Array) -> "Column":
        """Return the column of some rows."""
        return Column(self.kind, self.values[rows], self.table)


def part_of(values: Sequence[Any], what: str) -> Part:
    """Return the column of some values.

    Raises:
        ConfigError: if they are not all of a kind that can be judged.
    """
    kind: Kind = "null"
    for value in values:
        if value is None:
            continue
        found = _kind(value)
        if found is None or kind not in ("null", found):
            other = "" if kind == "null" else f" beside a {kind}"
            raise ConfigError(
                f"{what}: expected numbers, texts, true and false, or lists of texts; got {short(value)}{other}"
            )
        kind = found
    if kind in ("null", "number"):
        return Part(kind, np.array([np.nan if v is None else v for v in values], dtype=np.float64).tobytes())
    table: dict[str, int] = {}
    codes = [-1 if value is None else table.setdefault(_text(value), len(table)) for value in values]
    return Part(kind, np.array(codes, dtype=np.int32).tobytes(), list(table))


def _kind(value: Any) -> Kind | None:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "label"
    is_list = isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)
    return "list" if is_list else None


def _text(value: Any) -> str:
    return _ENCODER.encode(sorted(set(value)) if isinstance(value, list | tuple) else value).decode()


def joined(parts: Iterable[Part], what: str) -> Column:
    """Return the column of all shards.

    Raises:
        ConfigError: if they are of several kinds.
    """
    listed = list(parts)
    kinds = {part.kind for part in listed} - {"null"}
    if len(kinds) > 1:
        raise ConfigError(f"{what}: expected values of one kind, got {' and '.join(sorted(kinds))}")
    if not kinds or kinds == {"number"}:
        numbers = [np.frombuffer(part.data, dtype=np.float64) for part in listed]
        return Column(kinds.pop() if kinds else "null", np.concatenate([np.empty(0), *numbers]), [])
    decoded = {text: msgspec.json.decode(text) for part in listed for text in part.table}
    texts = sorted(decoded, key=lambda text: decoded[text])
    places = {text: i for i, text in enumerate(texts)}
    codes = [np.empty(0, dtype=np.int32)]
    for part in listed:
        if part.kind == "null":
            codes.append(np.full(len(part.data) // 8, -1, dtype=np.int32))
        else:
            new = np.array([*(places[text] for text in part.table), -1], dtype=np.int32)
            codes.append(new[np.frombuffer(part.data, dtype=np.int32)])
    return Column(kinds.pop(), np.concatenate(codes), [decoded[text] for text in texts])


BINS = (20, 50, 100, 200, 500, 1_000, 5_000, 20_000)
"""Where bins begin, behind the first."""

_EDGES = (0, *BINS)
NAMES = [f"{low:,} to {high - 1:,}" for low, high in zip(_EDGES, BINS, strict=False)] + [f"from {BINS[-1]:,}"]


def binned_lengths(chars: Column) -> Column:
    """Return the bin of each length."""
    return Column("label", np.searchsorted(BINS, chars.values, side="right").astype(np.int32), NAMES)


# --- per shard --------------------------------------------------------------------------------------------------------

WHERE = "when"
"""The name of the question which documents are looked at."""

NAMED = ("source", "host", "crawl")
"""Groups of documents without an expression."""


class Question(ConfigStruct):
    """The expressions to evaluate for each document.

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
    """The answers of a shard's documents.

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


def text_hash(text: str) -> bytes:
    """Return what a text is found by: its words, as white space parts them, which is all that fastText sees."""
    return xxhash.xxh3_128_digest(" ".join(text.split()).encode("utf-8", "replace"))


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
