"""From one input to rows of documents: trimmed, with ids, as JSON."""

import itertools
from collections.abc import Generator, Iterator
from typing import Any

import msgspec
import xxhash

from toolkit.data.documents import BAD_ROW, NO_ATTRIBUTES, Document, DocumentRow, explain_bad_row, fault_of
from toolkit.data.lines import joined_lines
from toolkit.data.own_types import OwnTypes, RowCheck
from toolkit.errors import DataError, ToolkitError
from toolkit.ingest.reader import Draft, Input, Reader
from toolkit.ingest.recognised import LOOKED_AT, recognised
from toolkit.ingest.section import Common
from toolkit.records.left_out import identity
from toolkit.records.takedown import Takedown, cleared_row, empty
from toolkit.storage.reading import HEAD

Written = tuple[Draft, DocumentRow, bytes]
"""A draft, the row that is made of it, and that row as JSON."""

ENCODER = msgspec.json.Encoder()


class _Fields(msgspec.Struct, omit_defaults=True):
    """A row without other top-level keys."""

    id: str
    text: str
    source: str
    added: str | None = None
    created: str | None = None
    metadata: dict[str, Any] | msgspec.Raw | None = None


class _Metadata(msgspec.Struct):
    metadata: dict[str, Any] | None = None


def _without_nulls(fields: _Fields) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(fields).items() if value is not None}


def _with(row: bytes | None, **fields: str) -> bytes | None:
    """Return a row that already is a document, with other values of some fields."""
    if row is None:
        return None
    return ENCODER.encode(msgspec.json.decode(row, type=dict[str, msgspec.Raw]) | fields)


class Documents:
    """The documents of an input, as rows.

    Args:
        source: the input.
        common: options of its entry.
        reader: of its format.
        relative: its path, of which ids are made.
        types: that the documents' own fields must have, if that is known.
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
        found = None if types is None else RowCheck(types)
        self._check = found.check if found and found.checks else None
        self._types, self._takedown = types, takedown

    def rows(self) -> Generator[Written, None, None]:
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
                found = recognised(source.head(LOOKED_AT), format)
            except ToolkitError:  # that it cannot be read is what the error says
                raise error from None
            if not found or found in error.message:
                raise
            message = f"{error.message}; the file is {found}, and is read here as `format: {format}`"
            raise DataError(message, path=error.path, line=error.line, id=error.id) from None

    def _rows(self) -> Iterator[Written]:
        counts, source = self._source.counts, self._source
        for draft in itertools.chain.from_iterable(self._reader.read_batches(source)):
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
                row, line = self._row(draft)
                if self._takedown and self._takedown.find(_document_of(row, line)):
                    counts["takedown"] += 1
                    draft, row, line = self._cleared(draft, row, len(line))
            except BAD_ROW as error:
                raw = draft.raw or draft.text.encode(errors="replace")
                message = explain_bad_row(raw, error) if raw else str(error)
                source.bad(fault_of(raw or b"{", error), message, raw, draft.number, draft.id)
                continue
            if self._check:
                try:
                    self._check(line)
                except DataError as error:
                    source.bad("wrong type", error.message, draft.raw or line, draft.number, row.id)
                    continue
            if len(line) > source.max_bytes:
                source.too_large("document", line[:HEAD], draft.number, len(line), id=row.id)
            else:
                counts["documents"] += 1
                if source.left_out is not None:
                    source.left_out.document(draft.number)
                yield draft, row, line

    def _cleared(self, draft: Draft, row: DocumentRow, size: int) -> Written:
        """Return a document that a takedown lists as it is written; `size` is that of its row before."""
        line = cleared_row(row.source, row.id, self._types)
        values = {key: msgspec.Raw(ENCODER.encode(empty(type_))) for key, type_ in self._reader.types().items()}
        attributes = {name: {key: values[key] for key in found} for name, found in (draft.attributes or {}).items()}
        cleared = Draft(
            text="",
            number=draft.number,
            id=row.id,
            raw=line,
            utf8=b"",
            attributes=attributes,
            cleared=size - len(line),
        )
        return cleared, DocumentRow(id=row.id, text="", source=row.source, attributes=NO_ATTRIBUTES), line

    def _names_of(self, draft: Draft) -> dict[str, str | None]:
        """Return id, URL and source of a document that is left out; its id may be known only of its whole text."""
        row = draft.raw or ENCODER.encode({**draft.extra, "metadata": draft.metadata})
        id = draft.id
        if self._common.ids != "content" and (id is None or self._common.qualifies):
            id = self._new_id(draft)
        return {"id": id, "url": identity(row)[1], "source": draft.source}

    def _row(self, draft: Draft) -> tuple[DocumentRow, bytes]:
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
        own = msgspec.Raw(b"{}") if has_own else NO_ATTRIBUTES
        return DocumentRow(id=id, text=draft.text, source=source, attributes=own), line

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


def _document_of(row: DocumentRow, line: bytes) -> Document:
    fields = msgspec.json.decode(line, type=_Metadata)
    return Document(row.text, id=row.id, source=row.source, metadata=fields.metadata)


def trim(text: str, min_chars: int) -> str | None:
    r"""Return the text without leading and trailing lines of fewer than `min_chars` code points; None if none is left.

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
