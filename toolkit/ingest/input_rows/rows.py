"""From one input to rows of documents: trimmed, with ids, as JSON.

The inputs of a shard, or of several shards: read one behind the other, their documents as rows.

    a.txt ──bytes──> reader ──drafts──> rows ──┐
    b.txt ──bytes──> reader ──drafts──> rows ──┴──> the shard of a pack

Small objects of a bucket are fetched some at a time, because the answer of each takes as long as that of a large one.
"""

import bz2
import io
import lzma
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache, partial
from itertools import compress, repeat
from math import isfinite
from typing import IO, Any, NamedTuple, TypeVar, cast

import msgspec
import xxhash

from toolkit.data import row_index
from toolkit.data.dataset import GappedRow, IndexRow
from toolkit.data.document_fields import DOT, METADATA, MOST_FIELDS, OwnTypes, RowCheck
from toolkit.data.documents import (
    BAD_ROW,
    WHOLE_ROW,
    Document,
    FreshDocument,
    explain_bad_row,
    fault_of,
    fault_of_spans,
    joined_lines,
)
from toolkit.data.tables.from_arrow import listed
from toolkit.errors import DataError, ToolkitError, amount
from toolkit.ingest import ingest_config, plan, reader
from toolkit.ingest.file_kinds import LOOKED_AT, wrong_format
from toolkit.ingest.ingest_config import Common
from toolkit.ingest.input_rows.input_bytes import Blocks, DownloadCache, InputBytes, Members
from toolkit.ingest.reader import Draft, DraftColumns, Input, Reader
from toolkit.ingest.tables.arrow import TableRows
from toolkit.ingest.tables.fields import OWN
from toolkit.lazy_numpy import np
from toolkit.records.ingested import InputOfPack
from toolkit.records.left_out import LeftOutOutput, identity
from toolkit.records.takedown import Takedown, cleared_row, empty, takedown_of
from toolkit.storage import Stat, compression as compressions, paths, threads
from toolkit.storage.reading import HEAD


class OutputRow(msgspec.Struct, gc=False):
    """A document as it is written.

    Attributes:
        number: ordinal of its item in the input.
        id, source: of the document.
        chars: code points of its text.
        line: the document as JSON.
        utf8: its text in UTF-8, if it is at hand.
        paths: the paths of its fields, if they are known (see `toolkit.data.document_fields.paths_in`).
        has_own: True if it may have attributes of its own.
        draft: Draft that it was made of, if that is at hand.
    """

    number: int
    id: str
    source: str
    chars: int
    line: bytes
    utf8: bytes | None
    paths: tuple[str, ...] | None = None
    has_own: bool = False
    draft: Draft | None = None


P = TypeVar("P")
R = TypeVar("R")

ENCODER = msgspec.json.Encoder()


class _Fields(msgspec.Struct, omit_defaults=True):
    """A row without other top-level keys."""

    id: str
    text: str
    source: str
    added: str | None = None
    created: str | None = None
    metadata: dict[str, Any] | msgspec.Raw | None = None


_COLUMNS = {"number", "id", "added", "created", "metadata", "paths"}
"""Of documents that are made at once."""

_TYPES: dict[str, tuple[type, ...]] = {
    "text": (str,),
    **dict.fromkeys(("id", "source", "added", "created"), (str, type(None))),
    "metadata": (dict, msgspec.Raw, type(None)),
}
"""Types of fields of a `Draft`, which a reader may have filled with anything."""


class _Metadata(msgspec.Struct):
    metadata: dict[str, Any] | None = None


_EXPANDED = 10
"""Times the bytes of rows of a table that these have as JSON, at most, with some room for names."""


_INSIDE = f"{METADATA}."


def _nested(inside: Mapping[str, list[Any]]) -> list[Any]:
    """Return the metadata of rows with these fields."""
    names = tuple(name.removeprefix(_INSIDE) for name in inside)
    try:
        row = _row_of(names)
    except ValueError:  # msgspec has no fields whose names JSON escapes
        return [dict(zip(names, values, strict=True)) for values in zip(*inside.values(), strict=True)]
    return [*map(row, *inside.values())]


@lru_cache(64)
def _row_of(names: tuple[str, ...]) -> Any:
    """Return the type of rows with these fields, in this order."""
    fields: list[Any] = [f"f{i}" for i in range(len(names))]
    return msgspec.defstruct("Row", fields, rename=dict(zip(fields, names, strict=True)), gc=False)


def _paths(
    fields: Mapping[str, Sequence[Any]], inside: Mapping[str, Sequence[Any]]
) -> Iterator[tuple[str, ...] | None]:
    """Yield the paths of fields of rows, as `toolkit.data.document_fields.paths_in`; None where objects have some.

    Args:
        fields: Fields of rows, in order.
        inside: Fields of their metadata, by path.
    """
    flat: dict[str, Sequence[Any]] = {}
    for name, values in fields.items():
        flat |= {_INSIDE: [True] * len(values), **inside} if name == METADATA else {name.replace(".", DOT): values}
    kinds = {name: {*map(type, values)} for name, values in flat.items()}
    if f"{_INSIDE}warc_headers" in flat or len(inside) > MOST_FIELDS or any(dict in kind for kind in kinds.values()):
        yield from repeat(None)
    masks = [
        [item is not None and (not isinstance(item, float) or isfinite(item)) for item in values]
        if kinds[name] & {float, type(None)}
        else repeat(True)
        for name, values in flat.items()
    ]
    yield from (tuple(compress(flat, mask)) for mask in zip(*masks, strict=False))


def _without_nulls(fields: _Fields) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(fields).items() if value is not None}


def _with(row: bytes | None, **fields: str) -> bytes | None:
    """Return the row of a document with other values of some fields."""
    if row is None:
        return None
    return ENCODER.encode(msgspec.json.decode(row, type=dict[str, msgspec.Raw]) | fields)


class InputRows:
    """The documents of an input, as rows.

    Args:
        source: the input.
        common: options of its entry.
        reader: Reader of its format.
        relative: its path, of which ids are made.
        types: Types that the documents' own fields must have, if that is known.
        takedown: Lists of the dataset; the documents that they name are written without text and fields.
    """

    def __init__(
        self,
        source: Input,
        common: Common,
        reader: Reader,
        relative: str,
        types: OwnTypes | None = None,
        takedown: Takedown | None = None,
    ) -> None:
        self._source = source
        source.null_text = common.null_text
        self._common = common
        self._reader = reader
        self._relative = relative
        row_check = None if types is None else RowCheck(types)
        self._check = row_check.check if row_check and row_check.checks else None
        self._types, self._takedown = types, takedown
        self._attributes: msgspec.json.Decoder[Any] | None = None
        if not type(reader).__module__.startswith("toolkit."):  # nobody has tested what it gives
            names = {f"f{i}": key for i, key in enumerate(reader.TYPES)}
            fields = list(zip(names, reader.TYPES.values(), strict=True))
            attributes = msgspec.defstruct("Attributes", fields, rename=names, forbid_unknown_fields=True)
            self._attributes = msgspec.json.Decoder(attributes)

    def rows(self) -> Generator[OutputRow, None, None]:
        """Yield the documents; one that cannot be written is a bad item, too.

        Raises:
            DataError: it says what the input is, if nothing of it could be read in its format.
        """
        try:
            yield from self._rows()
        except DataError as error:
            source, format = self._source, self._common.format
            if source.counts["documents"] or error.path != source.path:
                raise
            try:
                result = wrong_format(source.head(LOOKED_AT), format)
            except ToolkitError:  # that it cannot be read is what the error says
                raise error from None
            if not result or result in error.message:
                raise
            message = f"{error.message}; the file is {result}, and is read here as `format: {format}`"
            raise DataError(message, path=error.path, line=error.line, id=error.id) from None

    def _rows(self) -> Iterator[OutputRow]:
        for batch in self._of_reader(self._reader.read_batches, self._source):
            at_once = self._of_table(batch) if isinstance(batch, TableRows) else None
            at_once = self._at_once(batch) if isinstance(batch, DraftColumns) else at_once
            yield from at_once or self._one_by_one(batch)

    def _of_reader(self, read: Callable[[P], Iterable[R]], argument: P) -> Iterator[R]:
        """Yield items from the reader's code. Its errors name the format, and the last line read."""
        try:
            yield from read(argument)
        except (ToolkitError, OSError, MemoryError):
            raise
        except Exception as error:
            name = type(self._reader).__name__
            message = f"format {name} failed: {type(error).__name__}: {error}; correct {name}.read"
            raise DataError(message, path=self._source.path, line=self._source.line) from error

    def _at_once(self, batch: DraftColumns) -> Iterator[OutputRow] | None:
        """Return the rows of many documents; None where each is to be looked at by itself."""
        columns, common, source = batch.columns, self._common, self._common.source
        none = [None] * len(batch)
        ids, paths = columns.get("id", none), columns.get("paths", none)
        item = self._check or self._takedown or common.qualifies or common.ids == "content" or None in ids
        if self._attributes or item or source is None or None in paths or columns.keys() - _COLUMNS:
            return None

        from toolkit.text.json_strings import encoded, trimmed

        begins, ends = (np.array(item, dtype=np.int64) for item in (batch.begins, batch.ends))
        states = [1] * len(batch)
        try:
            if common.trim:
                begins, ends, states = trimmed(batch.utf8, begins, ends, common.trim.min_chars)
            optional = [columns.get(name, none) for name in ("added", "created", "metadata")]
            rows = [ENCODER.encode(_Fields(id, "", source, *more)) for id, *more in zip(ids, *optional, strict=True)]
            lines, chars = encoded(batch.utf8, begins, ends, rows, b',"text":"')
        except (*BAD_ROW, ImportError, OSError, RuntimeError):  # or there is no code for this machine
            return None
        texts = (batch.utf8[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True))
        numbers = columns["number"]
        result = map(OutputRow, numbers, ids, repeat(source), chars, lines, texts, paths)
        return self._rows_of_batch(batch, zip(states, result, strict=True))

    @property
    def _reads_all(self) -> bool:
        """Return True if a row depends on more than its columns."""
        common = self._common
        return bool(common.trim or common.qualifies or common.ids == "content" or self._takedown)

    def tables(self, fields: Collection[str]) -> Iterator[dict[str, Any]] | None:
        """Yield fields of documents as columns, or None; as `toolkit.data.dataset.InPlace.tables`."""
        result = self._reader.tables(self._source, fields)
        if result is None or self._reads_all or self._common.null_text == "skip":
            return None
        return (self._fields_of(batch, fields) for batch in result)

    def _fields_of(self, batch: TableRows, fields: Collection[str]) -> dict[str, Any]:
        result, arrays = dict[str, Any](), batch.arrays
        if "id" in fields:
            has_all = "id" in arrays and not arrays["id"].null_count
            result["id"] = arrays["id"] if has_all else self._ids(batch)
        if "source" in fields:
            result["source"] = self._sources(batch)
        for name in {"text", "added", "created"}.intersection(fields):
            result[name] = arrays.get(name, [None] * batch.rows)
        if "text" in result and result["text"].null_count:
            result["text"] = result["text"].fill_null("")
        if METADATA in fields:
            inside = {name: values for name, values in batch.values().items() if name.startswith(_INSIDE)}
            result[METADATA] = [*map(ENCODER.encode, _nested(inside))] if inside else [None] * batch.rows
        return result

    def _ids(self, batch: TableRows) -> list[str]:
        ids = listed(batch.arrays["id"]) if "id" in batch.arrays else [None] * batch.rows
        named = enumerate(ids, batch.number + 1)
        return [self._common.new_id(self._relative, n) if id is None else str(id) for n, id in named]

    def _sources(self, batch: TableRows) -> list[str | None]:
        sources = listed(batch.arrays["source"]) if "source" in batch.arrays else [None] * batch.rows
        return [self._common.source if source is None else source for source in sources]

    def _of_table(self, batch: TableRows) -> Iterator[OutputRow] | None:
        """Return the rows of a table of fields; None where each is to be looked at by itself."""
        columns, common, source = batch.columns, self._common, self._source
        if columns is None or self._reads_all or ("source" not in columns and common.source is None):
            return None
        numbers = range(batch.number + 1, batch.number + 1 + batch.rows)
        try:
            from toolkit.text.json_strings import encoded

            ids, sources = self._ids(batch), self._sources(batch)
            if any("\0" in name for name in {*sources} if name):
                return None
            sieved = None
            if source.sieve and common.null_text != "skip" and _EXPANDED * batch.size < source.max_bytes:
                sieved = source.sieve(batch.number, {**columns, "id": ids, "source": sources})
            mask = sieved[0] if sieved else [True] * batch.rows
            chosen = np.array(mask, dtype=bool) if sieved else None
            values: dict[str, Any] = batch.values(chosen)
            utf8, begins, ends = batch.texts(chosen)
            places = zip(begins.tolist(), ends.tolist(), strict=True)
            texts = [utf8[begin:end].tobytes() for begin, end in places]
            own, values["id"], values["source"] = ([*compress(item, mask)] for item in (numbers, ids, sources))
            first = {name: values.pop(name) for name in OWN if name in values}
            first = {"id": first.pop("id"), "text": [""] * len(texts), **first}
            if inside := {name: values.pop(name) for name in [*values] if name.startswith(_INSIDE)}:
                first[METADATA] = _nested(inside)
            fields = first | values
            rows = [*map(ENCODER.encode, map(_row_of(tuple(fields)), *fields.values()))]
            if self._check:
                for row in rows:
                    self._check(row)
            lines: list[bytes]
            chars: Iterable[int] = repeat(0)
            if sieved and source.sieve and source.sieve.leaves_gaps:
                lines = [*map(GappedRow.of, rows, texts)]
            else:
                lines, chars = encoded(bytes(utf8), begins, ends, rows, b',"text":"')
        except (*BAD_ROW, DataError, ImportError, OSError, RuntimeError):  # or there is no code for this machine
            return None
        if any(len(line) > source.max_bytes for line in lines):
            return None
        batch.count_not_finite()
        if sieved:
            sieved[1]()
        if source.indexes and "attributes" not in fields:
            documents = map(FreshDocument, first["id"], first["source"], lines, texts, chars)
            lines = [*map(IndexRow.of, documents, _paths(fields, inside))]
        result = map(OutputRow, own, first["id"], first["source"], chars, lines, texts)
        return self._sieved(result, mask, numbers)

    def _sieved(self, rows: Iterator[OutputRow], mask: Sequence[bool], numbers: Iterable[int]) -> Iterator[OutputRow]:
        for number, is_kept in zip(numbers, mask, strict=True):
            yield self._counted(next(rows)) if is_kept else OutputRow(number, "", "", 0, b"", None)

    def _rows_of_batch(self, batch: DraftColumns, rows: Iterable[tuple[int, OutputRow]]) -> Iterator[OutputRow]:
        """Yield converted rows, without those left out; others one by one."""
        source = self._source
        for i, (state, row) in enumerate(rows):
            if state == 0:
                source.leave_out("trim", row.number, **self._names_of(batch[i]))
            elif state < 0 or len(row.line) > source.max_bytes:
                yield from self._one_by_one(batch[i : i + 1])
            else:
                yield self._counted(row)

    def _counted(self, row: OutputRow) -> OutputRow:
        """Count and return a document of the output."""
        self._source.counts["documents"] += 1
        if self._source.left_out is not None:
            self._source.left_out.document(row.number)
        return row

    def _one_by_one(self, batch: Sequence[Draft]) -> Iterator[OutputRow]:
        counts, source = self._source.counts, self._source
        for draft in self._of_reader(iter, batch):
            self._check_draft(draft)
            if draft.is_null and self._common.null_text == "skip":
                source.leave_out("null_text", draft.number, **self._names_of(draft))
                continue
            try:
                if self._common.trim:
                    trimmed = trim(draft.text, self._common.trim.min_chars)
                    if trimmed is None:
                        source.leave_out("trim", draft.number, **self._names_of(draft))
                        continue
                    if trimmed != draft.text:
                        draft.text, draft.raw, draft.utf8 = trimmed, _with(draft.raw, text=trimmed), None
                row = self._row(draft)
                self._check_row(draft, row)
                if self._takedown and self._takedown.find(_document_of(row, draft.text)):
                    counts["takedown"] += 1
                    row = self._cleared(draft, row)
            except BAD_ROW as error:
                raw = draft.raw or draft.text.encode(errors="replace")
                message = explain_bad_row(raw, error) if raw else str(error)
                source.bad(fault_of(raw or b"{", error), message, raw, draft.number, draft.id)
                continue
            if "\0" in row.source:
                message = row_index.NUL_IN_SOURCE.format(row.source)
                source.bad("wrong type", message, draft.raw or row.line, draft.number, row.id)
                continue
            if self._check:
                try:
                    self._check(row.line)
                except DataError as error:
                    source.bad(
                        "wrong type", error.message, (row.draft and row.draft.raw) or row.line, draft.number, row.id
                    )
                    continue
            if len(row.line) > source.max_bytes:
                source.too_large("document", row.line[:HEAD], draft.number, len(row.line), id=row.id)
            else:
                yield self._counted(row)

    def _check_draft(self, draft: object) -> None:
        """Raise DataError for anything but a draft with texts."""
        got, number = type(draft).__name__, None
        if isinstance(draft, Draft):
            if self._attributes is None:
                return
            wrong = next((name for name, kinds in _TYPES.items() if not isinstance(getattr(draft, name), kinds)), "")
            if not wrong:
                return
            got, number = f"{wrong} {getattr(draft, wrong)!r}", draft.number
        message = f"expected a Draft with texts of the format {type(self._reader).__name__}, got {got}"
        raise DataError(message, path=self._source.path, line=number)

    def _check_row(self, draft: Draft, row: OutputRow) -> None:
        """Raise DataError for an invalid row or attributes of an external reader.

        What is no document in a row of the data, passed on as `raw`, is one of `BAD_ROW`: no fault of the reader's.
        """
        if self._attributes is None:
            return
        raw, fault = row.line, ""
        document = WHOLE_ROW.decode(raw) if draft.raw is not None else None
        try:
            document = document or WHOLE_ROW.decode(raw)
            sets, declared = draft.attributes or {}, {*self._reader.attribute_sets()}
            if b"\n" in raw:
                fault = "expected a row without line feeds, got one inside"
            elif (document.id, document.text, document.source) != (row.id, draft.text, row.source):
                fault = "expected the id, text and source of the Draft in its `raw` and `extra`, got others"
            elif declared <= sets.keys() and (unknown := sets.keys() - declared):
                fault = f"expected attributes of `attribute_sets` alone, got also {min(unknown)}"
            else:
                for name in sorted(declared & sets.keys()):
                    values = self._attributes.decode(raw := ENCODER.encode(sets[name]))
                    fault = fault or fault_of_spans(values, row.chars)
                    fault = "expected attributes without line feeds, got one inside" if b"\n" in raw else fault
        except BAD_ROW as error:
            fault = explain_bad_row(raw, error)
        if fault:
            message = f"format {type(self._reader).__name__}: {fault}"
            raise DataError(message, path=self._source.path, line=draft.number, id=row.id)

    def _cleared(self, draft: Draft, row: OutputRow) -> OutputRow:
        """Return a document of a takedown in its written form."""
        line = cleared_row(row.source, row.id, self._types)
        values = {key: msgspec.Raw(ENCODER.encode(empty(type_))) for key, type_ in self._reader.types().items()}
        attributes = {
            name: {key: values[key] for key in attribute} for name, attribute in (draft.attributes or {}).items()
        }
        cleared = Draft(
            text="", number=draft.number, id=row.id, raw=line, attributes=attributes, cleared=len(row.line) - len(line)
        )
        return OutputRow(draft.number, row.id, row.source, 0, line, b"", draft=cleared)

    def _names_of(self, draft: Draft) -> dict[str, str | None]:
        """Return id, URL and source of a left out document; its id may be known only of its whole text."""
        row = draft.raw or ENCODER.encode({**draft.extra, "metadata": draft.metadata})
        id = draft.id
        if self._common.ids != "content" and (id is None or self._common.qualifies):
            id = self._new_id(draft)
        return {"id": id, "url": identity(row)[1], "source": draft.source}

    def _row(self, draft: Draft) -> OutputRow:
        source = draft.source if draft.source is not None else self._common.source
        if source is None:
            raise DataError(
                "expected field source, got none in the input; give the entry `source: NAME`",
                path=self._source.path,
                line=draft.number,
                id=draft.id,
            )
        id = draft.id if draft.id is not None and not self._common.qualifies else self._new_id(draft)
        if id != draft.id:
            draft.raw = _with(draft.raw, id=id)
        if draft.raw is not None:
            line, has_own = draft.raw, b'"attributes"' in draft.raw  # or so; more is not asked
        else:
            fields = _Fields(id, draft.text, source, draft.added, draft.created, draft.metadata)
            line = ENCODER.encode(fields if not draft.extra else _without_nulls(fields) | draft.extra)
            has_own = "attributes" in draft.extra
        return OutputRow(draft.number, id, source, len(draft.text), line, draft.utf8, None, has_own, draft)

    def _new_id(self, draft: Draft) -> str:
        if self._common.ids == "content":
            return xxhash.xxh3_128_hexdigest(draft.text.encode())
        if draft.id is None and self._common.qualifies:
            raise DataError(
                f"expected a document with an id, because of `ids: {self._common.ids}`, got one without; use "
                "`{index}` in place of `{id}`",
                path=self._source.path,
                line=draft.number,
            )
        return self._common.new_id(self._relative, draft.number, draft.id or "")


def _document_of(row: OutputRow, text: str) -> Document:
    fields = msgspec.json.decode(row.line, type=_Metadata)
    return Document(text, id=row.id, source=row.source, metadata=fields.metadata, row=row.line)


def trim(text: str, min_chars: int) -> str | None:
    r"""Return the text without short lines at its start and end; None if none is left.

    Inner short lines stay; lines are joined by ``\n``.

    >>> trim("menu\na long line\nx\nanother one\n", 8)
    'a long line\nx\nanother one'
    """
    text = joined_lines(text)
    begin, end = 0, text.find("\n")
    while 0 <= end < begin + min_chars:
        begin, end = end + 1, text.find("\n", end + 1)
    if end < 0 and len(text) - begin < min_chars:
        return None
    begin_of_last, end = text.rfind("\n") + 1, len(text)
    while end - begin_of_last < min_chars:
        begin_of_last, end = text.rfind("\n", 0, begin_of_last - 1) + 1, begin_of_last - 1
    return text[begin:end]


AHEAD_BYTES = 1 << 24
"""Of inputs that are fetched while another one is read, at most."""


def _selected(file: plan.InputFile, rate: float | None) -> InputBytes:
    """Return the records of a pack; what fetches them is imported where there is one."""
    from toolkit.ingest.index.ranges import RecordBytes

    return RecordBytes(file, rate)


class Sources:
    """The inputs of a piece of work.

    Args:
        work: the inputs.
        found: the versions that they should be.
        keep: Cache of the download from the web.
        rejects: Output for bad items.
        left_out: notes the items that become no document.

    Attributes:
        counts: Counts by reason, of all inputs.
        read: the inputs that have been read, whole.
        salvaged: Remarks on damaged inputs, a sentence for each.
    """

    def __init__(
        self,
        work: plan.InputToIngest,
        stats: Sequence[Stat],
        keep: DownloadCache | None,
        rejects: reader.Rejects | None,
        left_out: LeftOutOutput | None = None,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.read: list[InputOfPack] = []
        self.salvaged: list[str] = []
        self._work = work
        self._common = work.entry.settings()
        self._reader = work.entry.reader()
        self._rejects = rejects
        self._left_out = left_out
        self._stats = stats
        self._current = 0
        self._bytes = [
            _selected(file, self._common.rate) if file.selected else InputBytes(file.path, now, keep)
            for file, now in zip(work.files, stats, strict=True)
        ]

    def stored(self) -> int:
        """Return how many stored bytes have been read."""
        before = sum(stat.size for stat in self._stats[: self._current])
        return before + self._bytes[self._current].stored()

    @property
    def current(self) -> InputBytes:
        """Return the current input."""
        return self._bytes[self._current]

    def rows(self) -> Generator[OutputRow, None, None]:
        """Yield the documents of all inputs, in order.

        Raises:
            DataError: if an input is damaged. The others are read to their ends then, so that all damage is told.
        """
        faults: list[DataError] = []
        for number, (file, opened) in enumerate(zip(self._work.files, self._ahead(), strict=True)):
            self._current = number
            try:
                with opened:
                    yield from self._of(file, opened, faults)
            except DataError as error:
                faults.append(error)
        if not faults:
            faults = self._changed()
        if len(self._bytes) == 1 and faults:
            raise faults[0]
        if faults:
            wait = f"the other inputs of {self._work.name} wait until that is corrected: they share a shard"
            raise DataError("\n".join([*map(str, faults), wait]))

    def _of(self, file: plan.InputFile, opened: InputBytes, faults: Sequence[DataError]) -> Iterator[OutputRow]:
        """Yield the documents of an input; none behind a fault."""
        damage = None if file.selected else find_damage(self._work.entry, opened.open)
        open_ = opened.open if damage is None else partial(open_undamaged, opened.open, damage)
        source = reader.Input(file.path, self._common.source, self._work.max_document_bytes, self._rejects, open_)
        if file.selected:
            opened.source = source
        elif self._reader.RECORDS:
            opened.members = Members()
        if self._left_out is not None:
            source.left_out = self._left_out
            self._left_out.begin(file.key)
        rows = 0
        takedown = takedown_of(self._work.dataset)
        documents = InputRows(source, self._common, self._reader, file.relative, self._work.types, takedown)
        for row in documents.rows():
            rows += 1
            if not faults:
                yield row
        if damage:
            source.counts["salvaged"] += 1
            fault = "its end, too early," if damage.truncated else "damage"
            self.salvaged.append(
                f"{file.path}: expected a sound {damage.compression} file, got {fault} at byte {damage.byte:,}; kept "
                f"the {amount(rows, 'document')} before it; restore the file and run again"
            )
        stat = self._stats[self._current]
        content = opened.content()
        self.counts.update(source.counts)
        self.read.append(
            InputOfPack(input=file.path, key=file.key, size=stat.size, stamp=stat.stamp, content=content, rows=rows)
        )

    def _ahead(self) -> Iterator[InputBytes]:
        """Yield the inputs; the next ones are being fetched, if they come from afar."""
        fetched = pending_bytes = 0
        with ExitStack() as stack:
            for number, current in enumerate(self._bytes):
                while fetched < len(self._bytes) and fetched < number + threads.REQUESTS:
                    size = self._stats[fetched].size
                    if fetched > number and pending_bytes + size > AHEAD_BYTES:
                        break
                    stack.callback(self._bytes[fetched].close)
                    self._bytes[fetched].fetch()
                    pending_bytes += size
                    fetched += 1
                yield current
                pending_bytes -= self._stats[number].size

    def _changed(self) -> list[DataError]:
        """Return an error for each input changed during reading."""
        looked = [
            (file, was)
            for file, was, input_bytes in zip(self._work.files, self._stats, self._bytes, strict=True)
            if input_bytes.can_change
        ]
        now = paths.stat_each([file.path for file, _ in looked])
        message = (
            "expected a file that does not change while it is read, got one that has changed; run "
            "again when no program writes to it"
        )
        return [
            DataError(message, path=file.path) for (file, was), stat in zip(looked, now, strict=True) if stat != was
        ]

    def content(self) -> str:
        """Return the digest of the stored bytes: xxh3-128 (hex); of a pack, of the inputs' keys and digests."""
        if not self._work.is_pack:
            return self.read[0].content
        digest = xxhash.xxh3_128()
        for input_ in self.read:
            digest.update(f"{input_.key}\0{input_.content}\n".encode())
        return digest.hexdigest()

    def discard(self) -> None:
        """Delete cached downloads."""
        for input_bytes in self._bytes:
            input_bytes.discard()


# --- the sound beginning of a damaged file ----------------------------------------------------------------------------

_PIECE = 1 << 20
"""Uncompressed bytes at a time."""

_COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    **compressions.COMPRESSORS,
    "gzip": compressions.compress_fast,
    "bz2": bz2.compress,
    "xz": partial(lzma.compress, preset=0),
}


class Damage(NamedTuple):
    """The damage of a file.

    Attributes:
        compression: Compression of the file.
        byte: Byte of the file as stored, at which it was noticed.
        whole: uncompressed bytes before it that can be kept.
        truncated: True if the file ends too early.
    """

    compression: str
    byte: int
    whole: int
    truncated: bool


def find_damage(entry: ingest_config.Entry, open_: Callable[[], IO[bytes]]) -> Damage | None:
    """Return the damage of a compressed file with a sound part; None of a sound one, and of any other.

    Args:
        entry: Entry of the configuration; says whether anything is kept.
        open_: opens the file as stored; is called twice if there is damage.
    """
    if entry.settings().on_error != "salvage":
        return None
    lines = entry.reader().LINES
    damage = _damage(open_, lines)
    if damage and not damage.truncated:
        damage = _damage(open_, lines, damage.byte - compressions.CHUNK)
    return damage if damage and damage.whole else None


def _damage(open_: Callable[[], IO[bytes]], lines: bool, *steps_from: int) -> Damage | None:
    with compressions.Stored(open_()) as stored:
        name = compressions.compression_in(stored.head(compressions.MAGIC_BYTES))
        if not name:
            return None
        frames, line_ends = compressions.Frames(stored, name, *steps_from), 0
        try:
            while piece := frames.read(_PIECE):
                if at := piece.rfind(b"\n") + 1:
                    line_ends = frames.size - len(piece) + at
        except EOFError:
            return Damage(name, stored.at, max(frames.whole, line_ends if lines else 0), truncated=True)
        except compressions.Damaged:
            return Damage(name, stored.at - 1, frames.whole, truncated=False)
    return None


def open_undamaged(open_: Callable[[], IO[bytes]], damage: Damage) -> IO[bytes]:
    """Return the sound part of a damaged file, in the same compression."""
    return cast("IO[bytes]", io.BufferedReader(Blocks(_recompressed(open_, damage))))


def _recompressed(open_: Callable[[], IO[bytes]], damage: Damage) -> Iterator[bytes]:
    remaining = damage.whole
    with compressions.Stored(open_()) as stored:
        frames = compressions.Frames(stored, damage.compression)
        while remaining:
            piece = frames.read(min(remaining, _PIECE))
            remaining -= len(piece)
            yield _COMPRESSORS[damage.compression](piece)
