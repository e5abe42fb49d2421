"""External rows: JSON Lines and Parquet with a text, in which nothing else need be as in documents."""

from collections.abc import Generator, Iterable, Iterator
from typing import Any

import msgspec

from toolkit.data.documents import BAD_ROW, Document
from toolkit.data.schema import Type, from_json, to_json, to_python
from toolkit.data.tables.parquet import open_parquet
from toolkit.errors import ConfigError, DataError, ToolkitError, did_you_mean
from toolkit.ingest.formats.parquet import Parquet
from toolkit.ingest.input_rows.preview import UnwrittenRejects
from toolkit.ingest.reader import Input
from toolkit.ingest.tables.arrow import column_types
from toolkit.ingest.tables.fields import Fields
from toolkit.mix.writer import Mixed, Reading, Writer
from toolkit.session import current

TEXTS = ("text", "content")
"""Keys of a row that its text can have."""

LONGEST = 1 << 30
"""Bytes of a row, at most."""


class ForeignRows(Writer):
    """Objects with a text under one key. They are read and described; no mix writes them.

    Attributes:
        text: the key of the text
        id: the key of the id
    """

    text: str = TEXTS[0]
    id: str | None = None

    @property
    def ID(self) -> tuple[str, ...]:  # type: ignore[override]  # noqa: N802  # as READING
        """Return the key of the id, if it was named; ids of others may be anything."""
        return () if self.id is None else (self.id,)

    @property
    def READING(self) -> Reading:  # type: ignore[override]  # noqa: N802  # that of a format, which has options
        """Return the fields of a row. `source` and `metadata` of others may be of any type, and are not read."""
        return Reading(text=self.text, headers="warc_headers")

    def check(self, line: bytes) -> str | None:
        """Return the fault of a row: it must be an object with a text."""
        try:
            row = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
            if self.text not in row:
                hint = did_you_mean(self.text, row) or f"; it has: {', '.join(row)}"
                return f"expected an object with {self.text!r}, got one without{hint}"
            msgspec.json.decode(row[self.text], type=str)
            if self.id is not None and (self.id not in row or not isinstance(msgspec.json.decode(row[self.id]), str)):
                return f"expected a text under {self.id!r}, which is the id, got none"
        except BAD_ROW as error:
            return f"expected an object with a text under {self.text!r}, got: {error}"
        return None

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        raise ConfigError("this format can only be read; choose another output format")


class ForeignTable(Writer):
    """Parquet with a column of texts. It is read and described; no mix writes it.

    Attributes:
        text: the column of the texts
        id: the column of the ids
        columns: types of the columns
    """

    SUFFIX = ".parquet"
    CONCATENATES = False

    text: str = TEXTS[0]
    id: str = "id"
    columns: dict[str, Any] = {}

    def line(self) -> Any:
        """Return the type of a row."""
        return to_python(
            Type("object", fields=tuple((name, from_json(column)) for name, column in self.columns.items()))
        )

    def read_file(self, path: str) -> Iterator[tuple[Document, str | None]]:
        for document in self._documents(Input(path, None, LONGEST, None)):
            yield document, None

    def _documents(self, source: Input) -> Iterator[Document]:
        reader = Parquet(fields=Fields(text=self.text, id=self.id))
        for batch in reader.read_batches(source):
            for draft in batch:
                metadata = draft.metadata if isinstance(draft.metadata, dict) else None
                yield Document(draft.text, id=draft.id or "", source=draft.source or "", metadata=metadata)

    def read_rows(self, path: str) -> Generator[dict[str, Any], None, None]:
        import pyarrow as pa

        try:
            with open_parquet(path) as file:
                for batch in file.iter_batches(1, use_threads=False):
                    yield from msgspec.json.decode(msgspec.json.encode(batch.to_pylist()))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise DataError(f"expected a sound Parquet file, got damage: {error}", path=path) from None

    def check_file(
        self, path: str, documents: int | None = None, first: int | None = None
    ) -> Iterator[tuple[int | None, str]]:
        bad = _RowFaults()
        try:
            results = list(column_types(Input(path, None, LONGEST, None))[0])
            if "id" != self.id not in results:
                yield None, f"expected the column {self.id!r} of ids, got none{did_you_mean(self.id, results)}"
            for row, _ in enumerate(self._documents(Input(path, None, LONGEST, bad)), 1):
                if first is not None and row >= first:
                    break
                yield from bad.flush()
            yield from bad.flush()
        except DataError as error:
            yield error.line, error.message

    def encode(self, document: Document, mixed: Mixed) -> Iterable[tuple[str, bytes]]:
        raise ConfigError("this format can only be read; choose another output format")


class _RowFaults(UnwrittenRejects):
    """Bad rows with their faults."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[tuple[int, str]] = []

    def add(self, input: str, reason: str, message: str, raw: bytes, number: int, **_: Any) -> None:
        self._rows.append((number, message))

    def flush(self) -> Iterator[tuple[int, str]]:
        """Yield those since the last time."""
        yield from self._rows
        self._rows.clear()


# --- which of them a file is ------------------------------------------------------------------------------------------


def of_table(path: str) -> dict[str, Any] | None:
    """Return the options of `ForeignTable` for a Parquet file; None if a mix wrote it, or it has no text.

    Raises:
        ConfigError: if it has no such column as was named.
    """
    text_field, id_field = current().columns
    try:
        results = column_types(Input(path, None, LONGEST, None))[0]
    except (ToolkitError, ImportError):
        return None  # it is damaged, or pyarrow is not here: who reads it says so
    if text_field is None and "annotation" in results:
        return None
    text = text_field or next((name for name in TEXTS if name in results), None)
    if text is None:
        return None
    for name in (text, id_field):
        if name is not None and name not in results:
            hint = did_you_mean(name, results) or f"; there are: {', '.join(results)}"
            raise ConfigError(f"{path}: expected the column {name!r}, got none{hint}")
    columns = {name: to_json(type_) for name, type_ in results.items()}
    return {"text": text, "id": id_field or "id", "columns": columns}


def of_line(line: bytes) -> dict[str, Any] | None:
    """Return the options of `ForeignRows` for a file with this first line; None if it has documents, or no text."""
    try:
        row = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    except BAD_ROW:
        return None
    text_field, id_field = current().columns
    if text_field is not None:
        return {"text": text_field, **({} if id_field is None else {"id": id_field})}
    texts = [key for key, value in row.items() if bytes(memoryview(value)[:1]) == b'"']
    key = next((key for key in TEXTS if key in texts), None)
    if key is None or {"id", "source", "text"} <= set(texts):
        return None
    return {"text": key} if key != TEXTS[0] else {}
