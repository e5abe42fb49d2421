"""Columns of an evaluation: what its expressions give for each document, and labels that lie in files.

A shard gives columns of 8 bytes a number, 4 a label. Rows of files have an id and a value; lines of fastText are found
by their text.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, islice
from typing import Any, Literal

import msgspec
import numpy as np
import xxhash

from toolkit.aggregate.keys import of_documents
from toolkit.align.align_config import Entry
from toolkit.align.join import hash_of
from toolkit.config import settings as config
from toolkit.config.scale import ScaleOption, check
from toolkit.config.settings import ConfigStruct
from toolkit.data.documents import Document, value_at
from toolkit.data.row_index import row_hash
from toolkit.errors import ConfigError, DataError, amount, short
from toolkit.execution.executors import Report
from toolkit.ingest import folders
from toolkit.ingest.input_rows.input_bytes import InputBytes
from toolkit.ingest.reader import Input
from toolkit.learn.evaluate.metrics import Array
from toolkit.mix.join import JoinedShard, Joint, at_document, inputs_of, joint_rows
from toolkit.storage.paths import missing_reason, stat
from toolkit.storage.reading import Lines
from toolkit.text.batch import Batch
from toolkit.text.fasttext.labelled import parted
from toolkit.whole_corpus.expressions import Checked, Evaluator, checked
from toolkit.whole_corpus.kind import Query, TextBlock

Match = Literal["", "id", "source and id", "text"]
"""By what documents are found in files of labels."""

Kind = Literal["null", "number", "bool", "label", "list"]
"""Type of a column's values beside null; ``null`` for a column without any."""

_ENCODER = msgspec.json.Encoder(order="sorted")


class Part(ConfigStruct):
    """The column of a shard, as it is sent from its worker.

    Attributes:
        kind: Kind of the values.
        data: float64, not a number for null; or int32 codes, -1 for null.
        table: the values of codes, as JSON; a list is a set, its members sorted.
    """

    kind: Kind
    data: bytes
    table: list[str] = []


class AnswerColumn(msgspec.Struct, frozen=True):
    """The values of all documents; `values` and `table` as in `Part`, the table in order."""

    kind: Kind
    values: Array
    table: list[Any]

    @property
    def is_null(self) -> Array:
        """Return True for each document without a value."""
        null: Array = np.isnan(self.values) if self.values.dtype.kind == "f" else self.values < 0
        return null

    def at(self, rows: Array) -> "AnswerColumn":
        """Return the column of some rows."""
        return AnswerColumn(self.kind, self.values[rows], self.table)


def part_of(values: Sequence[Any], name: str) -> Part:
    """Return the column of some values.

    Raises:
        ConfigError: if they are not all of a kind that can be judged.
    """
    kind: Kind = "null"
    for value in values:
        if value is None:
            continue
        result = _kind(value)
        if result is None or kind not in ("null", result):
            other = "" if kind == "null" else f" beside a {kind}"
            raise ConfigError(
                f"{name}: expected numbers, texts, true and false, or lists of texts; got {short(value)}{other}"
            )
        kind = result
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
    is_list = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    return "list" if is_list else None


def _text(value: Any) -> str:
    return _ENCODER.encode(sorted(set(value)) if isinstance(value, list | tuple) else value).decode()


def joined(parts: Iterable[Part], name: str) -> AnswerColumn:
    """Return the column of all shards.

    Raises:
        ConfigError: if they are of several kinds.
    """
    listed = list(parts)
    kinds = {part.kind for part in listed} - {"null"}
    if len(kinds) > 1:
        raise ConfigError(f"{name}: expected values of one kind, got {' and '.join(sorted(kinds))}")
    if not kinds or kinds == {"number"}:
        numbers = [np.frombuffer(part.data, dtype=np.float64) for part in listed]
        return AnswerColumn(kinds.pop() if kinds else "null", np.concatenate([np.empty(0), *numbers]), [])
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
    return AnswerColumn(kinds.pop(), np.concatenate(codes), [decoded[text] for text in texts])


BINS = (20, 50, 100, 200, 500, 1_000, 5_000, 20_000)
"""Where bins begin, behind the first."""

_EDGES = (0, *BINS)
NAMES = [f"{low:,} to {high - 1:,}" for low, high in zip(_EDGES, BINS, strict=False)] + [f"from {BINS[-1]:,}"]


def binned_lengths(chars: AnswerColumn) -> AnswerColumn:
    """Return the bin of each length."""
    return AnswerColumn("label", np.searchsorted(BINS, chars.values, side="right").astype(np.int32), NAMES)


# --- per shard --------------------------------------------------------------------------------------------------------

WHERE = "when"
"""Name of the question that selects documents."""

ROWS = 64
"""Documents of a block, whose texts are in memory at a time."""

NAMED = ("source", "host", "crawl")
"""Groups of documents without an expression."""


class Question(ConfigStruct):
    """The expressions to evaluate for each document.

    Attributes:
        name: Name of the values; the question called `WHERE` selects documents.
        text: an expression, or one of `NAMED`.
        sets: Sets that it reads.
        option: Option that it is given by, for messages.
    """

    name: str
    text: str
    sets: list[str] = []
    option: str = ""

    @property
    def is_named(self) -> bool:
        return self.name != WHERE and self.text in NAMED and not self.sets

    def checked(self, work: JoinedShard) -> Checked:
        """Return the expression, checked against the types of its sets.

        Raises:
            ConfigError: if it is none.
        """
        sets = [joined for joined in work.sets if joined.set in self.sets]
        kind: Any = "condition" if self.name == WHERE else "value"
        return checked(self.name, Query(self.text, kind), sets, work.stream.own, self.option)

    def check(self, work: JoinedShard) -> None:
        """Raise ConfigError if it cannot be asked of documents with these sets."""
        if not self.is_named:
            self.checked(work)


class ShardQuestions(ConfigStruct):
    """A shard with the sets to read, and its questions; the question `WHERE` selects documents."""

    work: JoinedShard
    questions: list[Question]

    def lineage(self) -> list[str]:
        """Return the digests of the documents and of their attributes.

        Raises:
            DataError: If one is missing, damaged, or stale.
        """
        state, digests = inputs_of(self.work)
        return [state.content, *(digests[joined.set] for joined in self.work.sets)]

    @property
    def values(self) -> list[Question]:
        """Return the questions about selected documents."""
        return [question for question in self.questions if question.name != WHERE]

    def answers(self) -> Iterator[tuple[list[Joint], list[list[Any]]]]:
        """Yield blocks of selected documents, with a column for each question.

        The columns are those of `values`, as plain values.
        """
        where = [_Column(question, self.work) for question in self.questions if question.name == WHERE]
        columns = [_Column(question, self.work) for question in self.values]
        rows = joint_rows(self.work, {name for column in [*where, *columns] for name in column.names})
        while block := list(islice(rows, ROWS)):
            for column in where:
                block = [*compress(block, column.select(block))]
            yield block, [column.values(block) for column in columns]


class ShardToAsk(ShardQuestions):
    """A shard to read as columns of answers; arguments as of `toolkit.learn.evaluate.predictions.KeyedLabels`."""

    match: Match = ""
    by_shard: bool = False


class ShardAnswers(ConfigStruct):
    """The answers of a shard's documents.

    Attributes:
        documents: Number of documents in the shard.
        columns: Columns of the selected documents, by question.
        hashes: xxh3-64 of source and id of each.
        keys: Keys of each in files of labels, 16 bytes; with `by_shard` three keys of each document, the narrowest
            first.
    """

    documents: int
    columns: dict[str, Part]
    hashes: bytes
    keys: bytes = b""


def ask_shard(job: ShardToAsk, report: Report) -> ShardAnswers:
    """Return the answers of a shard's documents.

    Raises:
        DataError: If documents or sets are damaged, or an expression cannot use their values.
    """
    work = job.work
    state, _ = inputs_of(work)
    columns: list[list[Any]] = [[] for _ in job.values]
    hashes: list[int] = []
    keys = bytearray()
    shards = [work.dataset.file_of(work.shard)] if job.by_shard else []
    for block, values in job.answers():
        for column, more in zip(columns, values, strict=True):
            column += more
        for document, number, *_ in block:
            hashes.append(row_hash(document.source, document.id))
            for shard in shards:
                keys += _key(document, job.match, f"{shard}:{number}") + _key(document, job.match, shard)
            keys += _key(document, job.match)
    report(state.rows, 0)
    try:
        parts = {
            question.name: part_of(column, question.text) for question, column in zip(job.values, columns, strict=True)
        }
    except ConfigError as error:
        raise DataError(str(error), path=work.path) from None
    return ShardAnswers(state.rows, parts, np.array(hashes, dtype=np.uint64).tobytes(), bytes(keys))


def text_hash(text: str) -> bytes:
    """Return the key of a text: a hash of its words, as white space separates them, which is all that fastText sees."""
    return xxhash.xxh3_128_digest(" ".join(text.split()).encode("utf-8", "replace"))


def _key(document: Document, match: Match, shard: str | None = None) -> bytes:
    if not match:
        return b""
    if match == "text":
        return text_hash(document.text)
    return hash_of(document.source if match == "source and id" else None, document.id, shard)


class _Column:
    """Evaluates a question over blocks of documents.

    Attributes:
        names: Names that are joined for it.
    """

    def __init__(self, question: Question, work: JoinedShard) -> None:
        self._question, self._work = question, work
        self.names: set[str] = set()
        if not question.is_named:
            checked = question.checked(work)
            self._sets = [i for i, joined in enumerate(work.sets) if joined.set in question.sets]
            self._evaluator = Evaluator([checked], len(self._sets))
            self.names = {name for name in checked.expression.names if name != "document"}

    def select(self, block: list[Joint]) -> Sequence[bool]:
        """Return the condition of each document."""
        return self._evaluate(block).competes

    def values(self, block: list[Joint]) -> list[Any]:
        """Return the value of each document."""
        if self._question.is_named:
            keys = of_documents(self._work.path, [row[0] for row in block])[self._question.text]
            return [msgspec.json.decode(key) for key in keys]
        return [*self._evaluate(block).values[self._question.name]]

    def _evaluate(self, block: list[Joint]) -> TextBlock:
        rows = [[values[i] for i in self._sets] for *_, values in block]
        try:
            return self._evaluator.block(0, Batch([row[0] for row in block]), rows)
        except DataError as error:
            raise at_document(error, self._work, block[(error.line or 1) - 1][1], error.id) from None


class LabelFiles(ConfigStruct, kw_only=True):
    """Files of labels: rows of ``jsonl``, ``csv``, ``parquet`` … as ``align`` reads them, or fastText's lines.

    Attributes:
        files: paths, globs or folders
        format: a format of `align:`, or fasttext; default: by the names of the files
        id: the column with the id of the document; default: that of the format
        source: the column with its source, if ids alone are not unique
        shard: the column with its shard, or `SHARD:ROW`, where ids repeat
        value: the column with the label
        duplicates: several rows of a document: an error, the first, their mean, or the most frequent value
    """

    files: list[str] | str
    format: str | None = None
    id: str | None = None
    source: str | None = None
    shard: str | None = None
    value: str = "label"
    duplicates: Literal["error", "first", "mean", "majority"] = "error"
    scale: ScaleOption = None

    @property
    def is_untyped(self) -> bool:
        """Return True if the files have only texts."""
        return self.format != "fasttext" and _entry(self).format in ("csv", "tsv")


def _entry(spec: LabelFiles) -> Entry:
    options: dict[str, Any] = {"values": [spec.value.partition(".")[0]]}
    options |= {"id": spec.id} if spec.id else {}
    options |= {name: column for name in ("source", "shard") if (column := getattr(spec, name))}
    common = {"from": spec.files, **({"format": spec.format} if spec.format else {})}
    return Entry(set="labels", common=common, options=options, place="--against")


def _as_numbers(texts: list[Any]) -> list[Any]:
    """Return texts as numbers, if all are some; an empty one is null."""
    values = [None if text == "" else text for text in texts]
    try:
        return [None if value is None else float(value) for value in values]
    except ValueError:
        return values


def read_spec(text: str) -> LabelFiles:
    """Return the files of labels of a mapping on the command line. The mapping is ``{files: …, id: …, value: …}``.

    Raises:
        ConfigError: if it is none.
    """
    label_files = config.convert(config.parse(text, "--against"), LabelFiles, "files of labels")
    check(label_files.scale)
    return label_files


class KeyedLabels:
    """Labels by keys of 16 bytes: a hash of the id, with the shard that a row names, or of the text.

    Args:
        spec: the files.
        limit: bytes of a row, at most.

    Attributes:
        match: Key of documents in the files.
        by_shard: True if rows name the shards of their documents, which then have three keys each.

    Raises:
        ConfigError: if there is no file, or the rows are not as the spec says.
        DataError: if one cannot be read.
    """

    def __init__(self, spec: LabelFiles, limit: int) -> None:
        is_text = spec.format == "fasttext"
        self.match: Match = "text" if is_text else "source and id" if spec.source else "id"
        self.by_shard = False
        keys, values, names = bytearray(), list[Any](), list[str]()
        for key, value, name, shard in _of_fasttext(spec, limit) if is_text else _of_rows(spec, limit):
            self.by_shard |= shard is not None
            keys += key
            values.append(value)
            names.append(name)
        values = _as_numbers(values) if spec.is_untyped else values
        if all(value is None for value in values):
            got = f"none in {len(values):,} rows" if values else "no rows"
            raise ConfigError(f"--against {spec.files}: expected labels in {spec.value!r} (`value:`), got {got}")
        self._keys, codes = np.unique(np.frombuffer(keys, dtype="S16"), return_inverse=True)
        self._column = joined([part_of(_one_each(values, codes, names, spec), str(spec.files))], str(spec.files))

    def column(self, keys: bytes) -> tuple[AnswerColumn, int]:
        """Return the labels of documents, by their keys; and how many labels are of none of these."""
        documents, codes = np.frombuffer(keys, dtype="S16").reshape(-1, 3 if self.by_shard else 1), self._keys
        near = np.minimum(np.searchsorted(codes, documents), len(codes) - 1)
        same = codes[near] == documents
        result, places = same.any(axis=1), near[np.arange(len(documents)), same.argmax(axis=1)]
        nothing: Any = np.nan if self._column.values.dtype.kind == "f" else -1
        values = np.where(result, self._column.values[places], nothing)
        unused = len(codes) - len(np.unique(places[result]))
        return AnswerColumn(self._column.kind, values, self._column.table), unused


def _one_each(values: list[Any], codes: Array, names: list[str], spec: LabelFiles) -> list[Any]:
    """Return one value for each different key, in their order."""
    grouped: list[list[int]] = [[] for _ in range(int(codes.max()) + 1)]
    for place, code in enumerate(codes.tolist()):
        grouped[code].append(place)
    twice = [places for places in grouped if len(places) > 1]
    if twice and spec.duplicates == "error":
        first = min(twice)
        raise ConfigError(
            f"--against {spec.files}: expected one label for each document, got {amount(len(twice), 'document')} with "
            f"several: {names[first[0]]} and {names[first[1]]}; say `duplicates: first`, `mean` or `majority`, or "
            "which column has the shard, if ids repeat (`shard:`)"
        )
    return [_one([values[place] for place in places], spec) for places in grouped]


def _one(values: list[Any], spec: LabelFiles) -> Any:
    if len(values) == 1 or spec.duplicates == "first":
        return values[0]
    present = [value for value in values if value is not None]
    if not present:
        return None
    if spec.duplicates == "majority":
        counted = Counter(msgspec.json.encode(value) for value in present)
        return msgspec.json.decode(min(counted, key=lambda item: (-counted[item], item)))
    if any(isinstance(value, bool) or not isinstance(value, int | float) for value in present):
        raise ConfigError(f"--against {spec.files}: expected numbers with `duplicates: mean`, got {present[0]!r}")
    return sum(present) / len(present)


_Row = tuple[bytes, Any, str, str | None]
"""Key and label of a document, the place of the row, and the shard that it names."""


def _of_rows(spec: LabelFiles, limit: int) -> Iterator[_Row]:
    entry = _entry(spec)
    reader = entry.reader()
    for path in entry.inputs():
        result = stat(path)
        if result is None:
            raise DataError(f"expected a file with labels, got {missing_reason(path)}", path=path)
        for batch in reader.read_batches(Input(path, None, limit, None, InputBytes(path, result).open)):
            for draft in batch:
                value = value_at(msgspec.json.decode(msgspec.json.encode(draft.extra)), spec.value)
                place = f"{path}:{draft.number} (id {draft.id!r})"
                key = hash_of(draft.source if spec.source else None, draft.id or "", draft.shard)
                yield key, value, place, draft.shard


def _of_fasttext(spec: LabelFiles, limit: int) -> Iterator[_Row]:
    patterns = [spec.files] if isinstance(spec.files, str) else spec.files
    for path in [path for pattern in patterns for path, _, _ in folders.list_inputs(pattern, ())]:
        with Lines(path, limit) as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    results, text = parted(line)
                except UnicodeDecodeError as error:
                    raise DataError(f"expected UTF-8, got {error.reason}", path=path, line=number) from None
                except DataError as error:
                    raise DataError(error.message, path=path, line=number) from None
                yield text_hash(text), results[0] if len(results) == 1 else results, f"{path}:{number}", None
