"""Tables as text, with a delimiter between fields: fields are columns, by name.

Source: RFC 4180; dialects of other programs by options.
"""

import csv
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any, Literal

import msgspec

from toolkit.data.documents import BAD_ROW
from toolkit.errors import DataError, amount
from toolkit.ingest.reader import Draft, Input
from toolkit.ingest.tables.fields import FieldReader
from toolkit.storage.reading import Lines, LongLine

_ASCII = bytes(range(128))
_TRUTH = {"true": True, "false": False, "1": True, "0": False}
_NUMBERS = {
    "int": re.compile(r"[+-]?(?:0|[1-9]\d*)", re.ASCII),
    "float": re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII),
}
_CHARACTER = msgspec.Meta(min_length=1, max_length=1)

Delimiter = Annotated[str, _CHARACTER, msgspec.Meta(description="the character between fields")]


class Csv(FieldReader):
    """One row a document, as RFC 4180 has it: quoted fields may have delimiters, line breaks and doubled quotes.

    Values are texts, unless `typed` says something else. An empty field is null, except the text of a document,
    which may be empty, unless `null_text` is `skip` or `error`. The number of a document is the line at which its
    row begins; it is part of the id of a document without one. Blank lines between rows are counted. A row of more
    or fewer fields than there are columns is bad. `metadata` may be JSON texts.

    Attributes:
        quote: the character around fields; null if the file does not quote fields
        escape: the character before a quote inside of a quoted field, if quotes are not doubled
        header: the names of the columns, if the first row of the file does not have them
        typed: types of columns by name; `bool`: true, false, 1 or 0; `json`: any JSON text
        encoding: the encoding of the file, if not UTF-8: any of Python's that extend ASCII
    """

    LINES = True
    SUFFIXES = (".csv", ".tsv", ".tab", ".txt")
    CHECKED = ("not_null",)

    delimiter: Delimiter = ","
    quote: Annotated[str, _CHARACTER] | None = '"'
    escape: Annotated[str, _CHARACTER] | None = None
    header: Literal[True] | tuple[str, ...] = True
    typed: dict[str, Literal["str", "int", "float", "bool", "json"]] = {}
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            if _ASCII.decode(self.encoding) != _ASCII.decode():
                raise UnicodeError
        except (LookupError, UnicodeError):
            raise ValueError(
                f"expected an encoding in which ASCII is ASCII, got {self.encoding!r}; convert the file: iconv -t UTF-8"
            ) from None
        marks = [item for item in (self.delimiter, self.quote, self.escape) if item is not None]
        if len(set(marks)) < len(marks) or set(marks) & {"\r", "\n"}:
            raise ValueError("expected `delimiter`, `quote` and `escape` to differ, and not to be line ends")

    def read(self, source: Input) -> Iterator[Draft]:
        with source.lines() as lines:
            rows = _Rows(self, lines, source)
            names = self.header if self.header is not True else self._header(rows, source)
            self.columns(names, source.path)
            if inside := [name for name in self.typed if name not in names]:
                raise DataError(f"expected columns in `typed`, got the path {inside[0]!r}", path=source.path)
            for number, fields in rows:
                try:
                    row = self._row(names, fields, empty=source.null_text in (None, "empty"))
                    draft: Draft | None = self.draft(row, number)
                except (*BAD_ROW, DataError) as error:
                    draft = source.refuse(error, rows.raw(), number)
                if draft is not None:
                    yield draft

    def _header(self, rows: "_Rows", source: Input) -> tuple[str, ...]:
        for _, fields in rows.of_names():
            return tuple(name or f"column_{i}" for i, name in enumerate(fields, 1))
        raise DataError("expected a row with the names of the columns, got an empty file", path=source.path)

    def _row(self, names: tuple[str, ...], fields: list[str], *, empty: bool) -> dict[str, Any]:
        """Return the fields of a row by name, null if empty; texts may be `empty`."""
        if len(fields) != len(names):
            raise DataError(f"expected {amount(len(names), 'field')} as there are columns, got {len(fields)}")
        texts = self.fields.of("text") if empty else ()
        row: dict[str, Any] = {
            name: field or (field if name in texts else None) for name, field in zip(names, fields, strict=True)
        }
        for name, kind in self.typed.items():
            row[name] = _parse_value(row[name], kind, name)
        return row


def _parse_value(text: str | None, kind: str, name: str) -> Any:
    """Return the value of a field by its type; null of an empty one."""
    if not text or kind == "str":
        return text
    if kind == "json":
        with suppress(msgspec.DecodeError):
            return msgspec.json.decode(text)
    elif kind == "bool":
        if text.lower() in _TRUTH:
            return _TRUTH[text.lower()]
    elif _NUMBERS[kind].fullmatch(text):
        return int(text) if kind == "int" else float(text)
    raise DataError(f"expected {kind} in the column {name!r}, got {text[:80]!r}")


class _DecodedLines(Iterator[str]):
    """The lines of a file with their ends, decoded; what a missing quote opens is held up to the size of a document.

    It is no generator, because reading goes on behind a line that is not of the encoding.

    Attributes:
        lines: the lines of the row.
        first: the line at which it begins.
    """

    def __init__(self, lines: Lines, source: Input, encoding: str, hint: str) -> None:
        self._lines, self._source, self._encoding, self._hint = lines, source, encoding, hint
        self.begin()

    def begin(self) -> None:
        """Begin a row."""
        self.lines: list[bytes] = []
        self.first = self._lines.number + 1
        self._size = 0

    def __next__(self) -> str:
        line = next(self._lines)
        self._size += (line.size if isinstance(line, LongLine) else len(line)) + 1
        if self._size > self._source.max_bytes:
            raise DataError(
                f"expected a row of at most {self._source.max_bytes:,} bytes, got a longer one: a quote that closes a "
                f"field may be missing; {self._hint}, or raise `max_document_bytes`",
                path=self._source.path,
                line=self.first,
            )
        self.lines.append(line)
        return line.decode(self._encoding) + "\n"


class _Rows(Iterator[tuple[int, list[str]]]):
    """The rows of a file, with the numbers of their first lines."""

    def __init__(self, format: Csv, lines: Lines, source: Input) -> None:
        self._source, self._encoding, self._escapes = source, format.encoding, format.escape
        self._must_be_good = False
        self._hint = "if quotes mean nothing in this file, say so: `quote: null`" if format.quote else "see `delimiter`"
        self._text = _DecodedLines(lines, source, format.encoding, self._hint)
        csv.field_size_limit((1 << 31) - 1)  # `_DecodedLines` has a lower limit
        self._reader = csv.reader(
            self._text,
            delimiter=format.delimiter,
            quotechar=format.quote,
            escapechar=format.escape,
            doublequote=format.escape is None,
            quoting=csv.QUOTE_MINIMAL if format.quote else csv.QUOTE_NONE,
            strict=True,
        )

    def of_names(self) -> "_Rows":
        """Return the rows from the one with the names on; if that is bad, it is an error: no other has the names."""
        self._must_be_good = True
        return self

    def raw(self) -> bytes:
        """Return the bytes of the last row."""
        return b"\n".join(self._text.lines)

    def __next__(self) -> tuple[int, list[str]]:
        while True:
            self._text.begin()
            try:
                fields = next(self._reader)
            except csv.Error as error:
                self._refuse(error)
            except UnicodeDecodeError as error:
                message = (
                    f"expected {self._encoding.upper()}, got {error.reason} at byte {error.start + 1} of a line; if "
                    "the file has another encoding, give it: `encoding: windows-1252`"
                )
                self._bad("invalid UTF-8", message, self._text.first + len(self._text.lines) - 1)
            else:
                if fields:
                    self._must_be_good = False
                    return self._text.first, fields
                self._source.counts["blank_line"] += 1

    def _refuse(self, error: csv.Error) -> None:
        """Treat an invalid row as bad; one that does not end is an error: nobody knows where the next begins."""
        first = self._text.first
        if "unexpected end of data" in str(error):
            message = "expected a quote that closes the field which this row opens, got the end of the file"
            raise DataError(f"{message}; {self._hint}", path=self._source.path, line=first)
        if "new-line character" in str(error):
            message = "expected rows that end in \\n or \\r\\n, got a \\r inside a row; a field with one needs quotes"
            hint = "if \\r alone ends rows, convert the file: tr '\\r' '\\n'"
            return self._bad("not of the format", f"{message}; {hint}", first)
        reason = str(error).replace("'", "")
        message = f"expected a row of CSV, got: {reason}; {self._hint}"
        if "expected after" in reason and self._escapes is None:
            message += "; if a backslash stands before quotes inside of fields: `escape: \\`"
        return self._bad("not of the format", message, first)

    def _bad(self, reason: str, message: str, line: int) -> None:
        if self._must_be_good:
            raise DataError(message, path=self._source.path, line=line)
        self._source.bad(reason, message, self.raw(), line)
