"""A browsed dataset: its documents joined with attributes, read from the middle of their files."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from threading import Lock
from typing import Any

import msgspec

from toolkit.data import row_index
from toolkit.data.alignment import MAX_ROW, attribute_lines
from toolkit.data.document_fields import OwnTypes
from toolkit.data.documents import BAD_ROW, DOCUMENT_DECODER, DocumentRow, Rows
from toolkit.data.row_index import row_hash
from toolkit.data.tables import TABLE
from toolkit.errors import AlignmentError, DataError, StepFailed, ToolkitError
from toolkit.lazy_numpy import np
from toolkit.mix.bindings import ShardToMix
from toolkit.mix.join import inputs_of
from toolkit.mix.rule_effects.explain import explain_row
from toolkit.mix.rule_effects.preview import blocks
from toolkit.records import identity
from toolkit.records.sets import missing_attributes
from toolkit.session import current
from toolkit.source import Resolved, values_beside
from toolkit.storage import Stat
from toolkit.storage.paths import stat
from toolkit.storage.threads import for_each
from toolkit.view.corpus import At, CorpusRow, Question, Recent, Scanned, Shard, Stop, ValueSet
from toolkit.view.questions import DatasetQuery, DatasetQuestion, MixNames
from toolkit.view.random_access import MemberFile, OrderedFile, Pieces, RowFile

FILES = 256
"""Files of which places are known at a time."""

HASHES = 1 << 26
"""Bytes of the hashes of documents, 8 each, that are held at a time; those of one shard at least."""

DOCUMENTS = ""
"""Stands for the documents where files are called by their set."""


Lines = dict[int, bytes] | ToolkitError
"""Rows of a file by number, or the error of the file."""


class _Names(msgspec.Struct):
    id: str
    source: str | None = None


_NAMES = msgspec.json.Decoder(_Names)


class DatasetCorpus:
    """A dataset.

    Args:
        title: Name for people.
        resolved: shards, and its attribute sets, each as it is joined alone.
        own: types of the documents' own fields.
        sources: Sources that documents may have, as far as they are known beforehand.
        max_bytes: a longer row is an error.
        mix: Mix whose rules may be asked as they are written.
    """

    kind = "dataset"

    def __init__(
        self,
        title: str,
        resolved: Resolved,
        *,
        own: OwnTypes | None,
        sources: Iterable[str],
        max_bytes: int,
        mix: MixNames = MixNames(),  # noqa: B008  # which nobody changes
    ) -> None:
        self.title, self.dataset, self.own, self.mix = title, resolved.stream.dataset, own, mix
        self.names, self.max_bytes = resolved.shards, max_bytes
        self._resolved, self._joined = resolved, {joined.set: joined for joined in resolved.sets}
        self.sets: Sequence[ValueSet] = [
            ValueSet(joined.set, {key.name: key.declared for key in joined.keys}) for joined in resolved.sets
        ]
        self.pieces = Pieces()
        self._sources = dict.fromkeys(sources)
        self._files = Recent[tuple[int, str], tuple[Stat, RowFile]](FILES)
        self._hashes = Recent[int, "np.ndarray"](HASHES, lambda hashes: hashes.nbytes)
        self._states: list[row_index.ShardState | None] = []
        self.shards: Sequence[Shard] = []
        self._look()

    def _look(self) -> None:
        dataset = self.dataset
        with dataset.listing_cache():
            self._states = for_each(lambda shard: row_index.current(dataset, shard), self.names)
        self._sources |= dict.fromkeys(state.source for state in self._states if state and state.source)
        self.shards = [
            Shard(dataset.file_of(name), dataset.shard_path(name), state.rows if state else None)
            for name, state in zip(self.names, self._states, strict=True)
        ]

    def refresh(self) -> None:
        current().begin()
        self.__dict__.pop("_repeated", None)
        before = self._states
        self._look()
        with self._files.lock:
            files = list(self._files.items())
        stats = for_each(lambda item: stat(self._path(*item[0])), files)
        with self._files.lock, self._hashes.lock:
            for (key, (version, _)), result in zip(files, stats, strict=True):
                if version != result or before[key[0]] != self._states[key[0]]:
                    self._files.pop(key, None)
            for number in [number for number in self._hashes if before[number] != self._states[number]]:
                del self._hashes[number]

    # --- documents ----------------------------------------------------------------------------------------------------

    def read(self, places: Sequence[At], sets: Sequence[str]) -> list[CorpusRow]:
        by_shard = groupby(sorted({*places}), lambda at: at.shard)
        requested_rows = [(number, [at.row for at in group]) for number, group in by_shard]
        requests = [(number, name, rows) for number, rows in requested_rows for name in (DOCUMENTS, *sets)]
        lines = {(number, name): results for number, name, results in for_each(self._lines, requests, always=True)}
        results = {
            At(number, row): result
            for number, rows in requested_rows
            for row in rows
            if (result := self._document(number, row, {name: lines[number, name] for name in (DOCUMENTS, *sets)}))
        }
        return [results[at] for at in places if at in results]

    def _lines(self, request: tuple[int, str, list[int]]) -> tuple[int, str, Lines]:
        """Return rows of a file, or why there are none."""
        number, name, rows = request
        results: dict[int, bytes] = {}
        try:
            file = self._file(number, name)
            runs = _runs(rows)
            if len(runs) > 1:
                file.fetch([first for first, _ in runs])
            for first, count in runs:
                results.update(enumerate(file.rows(first, count), first))
        except ToolkitError as error:
            return number, name, error
        return number, name, results

    def _document(self, number: int, row: int, lines: Mapping[str, Lines]) -> CorpusRow | None:
        documents, path, at = lines[DOCUMENTS], self.shards[number].path, At(number, row)
        if isinstance(documents, ToolkitError):
            return CorpusRow(at, faults=[str(documents)])
        if row not in documents:
            return None
        try:
            document, _ = next(Rows(iter([documents[row]]), DOCUMENT_DECODER, path, row))
            fields = {name: value for name, value in msgspec.json.decode(documents[row]).items() if name not in _SHOWN}
        except DataError as error:
            return CorpusRow(at, faults=[str(error)])
        self._sources.setdefault(document.source)
        result = CorpusRow(at, document.id, document.source, document.text, fields)
        for name, rows in lines.items():
            if name != DOCUMENTS:
                try:
                    result.values[name] = self._values(at, name, document, rows)
                except ToolkitError as error:
                    result.faults.append(str(error))
        return result

    def _values(self, at: At, name: str, document: DocumentRow, lines: Lines) -> dict[str, Any]:
        if isinstance(lines, ToolkitError):
            raise lines
        work, row = self._resolved.joined_to(self.names[at.shard]), at.row
        return values_beside(document, self._joined[name], work, row, [lines[row]] if row in lines else [])

    def lines_at(self, at: At, sets: Sequence[str]) -> tuple[bytes, list[bytes]]:
        """Return the rows of a document and its sets, as JSON.

        Raises:
            ToolkitError: if one cannot be read, or is not there.
        """
        results = [self._lines((at.shard, name, [at.row])) for name in (DOCUMENTS, *sets)]
        rows = []
        for number, name, lines in results:
            if isinstance(lines, ToolkitError):
                raise lines
            if at.row not in lines:
                path = self._path(number, name)
                raise AlignmentError(f"expected a row {at.row + 1}, got the end of the file", path=path)
            rows.append(lines[at.row])
        return rows[0], rows[1:]

    # --- files --------------------------------------------------------------------------------------------------------

    def _path(self, number: int, name: str) -> str:
        work = self._resolved.joined_to(self.names[number])
        return work.path if name == DOCUMENTS else work.attributes_of(self._joined[name])

    def _file(self, number: int, name: str) -> RowFile:
        key = (number, name)
        if cached := self._files.use(key):
            return cached[1]
        path = self._path(number, name)
        version = stat(path)
        if version is None:
            if name == DOCUMENTS:
                raise DataError("expected documents, got no file; load the page again", path=path)
            raise missing_attributes(self.dataset, name, self.names[number])
        return self._files.keep(key, (version, self._opened(number, name, path, version)))[1]

    def _opened(self, number: int, name: str, path: str, version: Stat) -> RowFile:
        dataset, shard = self.dataset, self.names[number]
        if name == DOCUMENTS and dataset.in_place:

            def before(row: int) -> tuple[Any, int]:
                begin = row_index.begin_of(dataset, shard, row)
                return dataset.lines(shard, self.max_bytes, begin=begin), begin.row

            return OrderedFile(before)
        if path.endswith(TABLE):
            return OrderedFile(lambda row: (attribute_lines(path), 0))
        limit = self.max_bytes if name == DOCUMENTS else MAX_ROW
        return MemberFile(path, version, self.pieces, self.shards[number].rows, self._number_of(number), limit)

    def _number_of(self, number: int) -> Callable[[bytes], int | None]:
        """Return a function from a row to its number."""

        def number_of(line: bytes) -> int | None:
            try:
                named = _NAMES.decode(line)
            except BAD_ROW:
                return None
            if named.source is None:
                return None
            rows = (self._hashes_of(number) == row_hash(named.source, named.id)).nonzero()[0]
            return int(rows[0]) if len(rows) == 1 else None

        return number_of

    def _hashes_of(self, number: int) -> "np.ndarray":
        if (cached := self._hashes.use(number)) is not None:
            return cached

        blocks = [block["hash"] for block in row_index.read(self.dataset, self.names[number])]
        return self._hashes.keep(number, np.concatenate([np.empty(0, dtype=np.uint64), *blocks]))

    # --- looking for documents ----------------------------------------------------------------------------------------

    def label_places(self, document: CorpusRow) -> Sequence[str]:
        number, row = document.at
        name = self.shards[number].name
        if not all(self._states):
            return name, ""  # whether others have its id is not known
        hash_ = row_hash(document.source, document.id)
        if hash_ in self._repeated:
            alone = int((self._hashes_of(number) == hash_).sum()) < 2
            return (name,) if alone else (f"{name}:{row + 1}",)
        return "", name

    @functools.cached_property
    def _repeated(self) -> frozenset[int]:
        """The hashes of several documents each."""
        states = zip(self.names, self._states, strict=True)
        indexed = [identity.IndexedDocuments(self.dataset, name, state.rows) for name, state in states if state]
        return frozenset(hash_ for some in identity.repeated_hashes(indexed) for hash_ in some.tolist())

    def places_of(self, id: str) -> list[At] | None:
        hashes = np.array([row_hash(source, id) for source in self._sources], dtype=np.uint64)

        def rows_in(number: int) -> list[At]:
            return [At(number, int(row)) for row in np.isin(self._hashes_of(number), hashes).nonzero()[0]]

        indexed = [number for number, state in enumerate(self._states) if state]
        return [at for places in for_each(rows_in, indexed) for at in places] or None

    def question(self, where: str, sort: str, sets: Sequence[str]) -> DatasetQuestion:
        query = DatasetQuery(where, sort, sets)
        return DatasetQuestion(self._resolved, self.own, self.max_bytes, query=query, mix=self.mix)


def _runs(rows: Sequence[int]) -> list[tuple[int, int]]:
    """Return ascending rows as stretches: the first of each, and how many it has."""
    results: list[tuple[int, int]] = []
    for row in rows:
        if results and sum(results[-1]) == row:
            results[-1] = (results[-1][0], results[-1][1] + 1)
        else:
            results.append((row, 1))
    return results


_SHOWN = {"id", "source", "text"}


class Explainer:
    """Explains documents of a dataset by a mix.

    Args:
        corpus: Corpus of the dataset.
        prepared: gives the shards of the mix, and for those that are not in it why; called once, when it is first
            needed: it looks at all shards, and a budget at all their attributes.
        trace: Function that returns what is known of a row, from 1, of a shard of the mix: its input and its tokens.
    """

    def __init__(
        self,
        corpus: DatasetCorpus,
        prepared: Callable[[], tuple[Sequence[ShardToMix], Mapping[str, str]]],
        trace: Callable[[ShardToMix, int], dict[str, Any]],
    ) -> None:
        self._corpus, self._prepared, self._trace = corpus, prepared, trace
        self._works: dict[str, list[ShardToMix]] | ToolkitError | None = None
        self._lock = Lock()

    def forget(self) -> None:
        """Prepare the mix anew when it is needed again."""
        with self._lock:
            self._works = None

    def explain(self, at: At) -> list[dict[str, Any]]:
        """Return the decisions of the mix's rules on a document, by stream; nothing if it is in none.

        Raises:
            ToolkitError: if the mix cannot be made, or the document cannot be read.
        """
        results = []
        for work in self._of(self._corpus.names[at.shard]):
            line, attribute_lines = self._corpus.lines_at(at, [joined.set for joined in work.sets])
            explanation = msgspec.to_builtins(explain_row(work, at.row, line, attribute_lines))
            results.append({"stream": work.stream.name, **explanation})
        return results

    def trace(self, at: At) -> list[dict[str, Any]]:
        """Return the input and the tokens of a document, by stream."""
        works = self._of(self._corpus.names[at.shard])
        return [{"stream": work.stream.name, **self._trace(work, at.row + 1)} for work in works]

    def rows_dropped_by(self, shard: int, rule: str | None, stop: Stop) -> set[int]:
        """Return the rows of a shard dropped first by a rule; those that stay without a rule.

        Of several streams that take the shard, one is enough.

        Raises:
            ToolkitError: as of `explain`.
        """
        results: set[int] = set()
        for work in self._of(self._corpus.names[shard]):
            inputs_of(work)
            rules, first = work.compile_rules(), 0
            for block in blocks(work, rules, stop.computing):
                stop.check()
                for row, outcome in enumerate(block.outcomes, first):
                    if (rules.rules[outcome].name if isinstance(outcome, int) else None) == rule:
                        results.add(row)
                first += len(block.outcomes)
        return results

    def _of(self, shard: str) -> list[ShardToMix]:
        with self._lock:
            if self._works is None:
                try:
                    self._works = self._prepare_works()
                except ToolkitError as error:
                    self._works = error
            if isinstance(self._works, ToolkitError):
                raise self._works
            return self._works.get(shard, [])

    def _prepare_works(self) -> dict[str, list[ShardToMix]]:
        works, unreadable = self._prepared()
        results: dict[str, list[ShardToMix]] = {}
        for work in works:
            if work.dataset.documents == self._corpus.dataset.documents:
                results.setdefault(work.shard, []).append(work)
        if unreadable and not results:
            raise StepFailed(*unreadable.values())
        return results


class DroppedBy:
    """A query over the documents dropped by a rule of the mix.

    Args:
        question: about these.
        explainer: Explainer of the mix.
        rule: its name; None for the documents that stay.
    """

    def __init__(self, question: Question, explainer: Explainer, rule: str | None) -> None:
        self._question, self._explainer, self._rule = question, explainer, rule
        self.reads_documents = question.reads_documents

    def scan(self, shard: int, stop: Stop) -> Iterator[Scanned]:
        """Yield the results for these documents of a shard, in order."""
        among = self._explainer.rows_dropped_by(shard, self._rule, stop)
        for block in self._question.scan(shard, stop):
            chosen = [i for i, row in enumerate(block.rows) if row in among]
            scores = [block.scores[i] for i in chosen] if block.scores else []
            yield Scanned(block.looked_at, [block.rows[i] for i in chosen], scores)
