"""Browsed files: those of an output, a release, or of documents, each as its format reads it, in order."""

import threading
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import msgspec

from toolkit.data.document_fields import METADATA
from toolkit.data.documents import Document
from toolkit.errors import ToolkitError
from toolkit.inspect.documents import ARGUMENTS, FileDocuments, names_in_file, types_of
from toolkit.mix.writer import Writer
from toolkit.rules import compiling, expressions
from toolkit.view.corpus import At, CorpusRow, Recent, Scanned, Shard, Stop, ValueSet
from toolkit.view.questions import FILTER, condition_of, score, score_of

HELD = 400
"""Documents that are kept: those that were looked at last."""

HELD_CHARS = 16_000_000
"""Code points of their texts, at most."""

OPEN = 8
"""Files that are being read at a time."""

BLOCK = 64

SET = "values"
"""Name of the values of a file, which are in no set."""


class FileCorpus:
    """Files of one format. A document is reached by reading those before it, once, and going on from there.

    Args:
        title: Name for people.
        kind: Kind of the files: ``output``, ``release`` or ``documents``.
        files: names and paths.
        rows: Rows of each, where that is known.
        writer: Writer of their format; None for documents.
        merged: types of the attributes that are in the documents, by key.
        max_bytes: a longer line is an error.
        is_unique: True if (source, id) identifies a document, as far as is known.
    """

    def __init__(
        self,
        title: str,
        kind: str,
        files: Sequence[tuple[str, str, int | None]],
        *,
        writer: Writer | None,
        merged: dict[str, Any],
        max_bytes: int,
        is_unique: bool,
    ) -> None:
        self.title, self.kind = title, kind
        self.shards: Sequence[Shard] = [Shard(*file) for file in files]
        self._writer, self._merged, self._max, self._is_unique = writer, merged, max_bytes, is_unique
        types = types_of(writer, merged)
        self.sets: Sequence[ValueSet] = [ValueSet(SET, types)] if types else []
        self._open = Recent[int, _OpenFile](OPEN)
        self._documents = Recent[At, CorpusRow](HELD_CHARS, lambda char: max(len(char.text), HELD_CHARS // HELD))
        self._lock = threading.Lock()

    def refresh(self) -> None:
        with self._lock:
            self._open.clear()
            self._documents.clear()

    def read(self, places: Sequence[At], sets: Sequence[str]) -> list[CorpusRow]:
        with self._lock:
            results: dict[At, CorpusRow] = {}
            for at in sorted({*places}):
                try:
                    if (result := self._at(at)) is not None:
                        results[at] = result
                except ToolkitError as error:
                    self._open.pop(at.shard, None)
                    results[at] = CorpusRow(at, faults=[str(error)])
            return [results[at] for at in places if at in results]

    def _at(self, at: At) -> CorpusRow | None:
        if cached := self._documents.use(at):
            return cached
        reading = self._open.use(at.shard)
        if reading is None or reading.row > at.row:
            reading = self._open.keep(at.shard, _OpenFile(self.documents_of(at.shard)))
        next(islice(reading.documents, at.row - reading.row, at.row - reading.row), None)
        reading.row = at.row
        result = next(reading.documents, None)
        if result is None:
            del self._open[at.shard]
            return None
        reading.row += 1
        return self._documents.keep(at, self._document(at, *result))

    def _document(self, at: At, document: Document, values: list[Any]) -> CorpusRow:
        plain: dict[str, Any] = {}
        for value in values:
            if value is not None:
                plain |= value._asdict() if hasattr(value, "_asdict") else msgspec.to_builtins(value)
        present = {name: item for name, item in plain.items() if item is not None}
        fields = {METADATA: dict(document.metadata)} if document.metadata else {}
        return CorpusRow(at, document.id, document.source, document.text, fields, {SET: present} if self.sets else {})

    def label_places(self, document: CorpusRow) -> Sequence[str]:
        name = self.shards[document.at.shard].name
        return ("", name) if self._is_unique else (name, "")

    def places_of(self, id: str) -> list[At] | None:
        return None

    def question(self, where: str, sort: str, sets: Sequence[str]) -> "_FileQuestion":
        return _FileQuestion(self, where, sort)

    def documents_of(self, number: int) -> Iterator[tuple[Document, list[Any]]]:
        """Yield the documents of a file, with the values of expressions."""
        names = {name: {""} for name in types_of(self._writer, self._merged)}
        return iter(FileDocuments(self.shards[number].path, self._writer, self._max, names, self._merged))

    @property
    def names(self) -> Any:
        """Return the names for expressions."""
        return names_in_file(self._writer, self._merged)


class _OpenFile:
    """An open file: its documents, and the number of the next one, from 0."""

    def __init__(self, documents: Iterator[tuple[Document, list[Any]]]) -> None:
        self.documents, self.row = documents, 0


class _FileQuestion:
    """A query over files, by reading their documents."""

    reads_documents = True

    def __init__(self, corpus: FileCorpus, where: str, sort: str) -> None:
        self._corpus, self._where, self._sort = corpus, where, sort
        names = corpus.names
        expression = expressions.check_condition(condition_of(where, names), names) if where else None
        self._fits = compiling.compile_function(expression.code, ARGUMENTS) if expression else None
        self._score = compiling.compile_function(score_of(sort, sort, names).code, ARGUMENTS) if sort else None

    def scan(self, shard: int, stop: Stop) -> Iterator[Scanned]:
        documents, first = self._corpus.documents_of(shard), 0
        while block := list(islice(documents, BLOCK)):
            rows: list[int] = []
            scores: list[float | None] = []
            with stop.computing():
                for row, (document, values) in enumerate(block, first):
                    arguments = (*(values or [None]), document)
                    if self._fits and not expressions.ask(self._fits, arguments, f"{FILTER}: `{self._where}`"):
                        continue
                    rows.append(row)
                    if self._score:
                        scores.append(score(self._score, arguments, self._sort))
            yield Scanned(len(block), rows, scores)
            first += len(block)
