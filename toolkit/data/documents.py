"""Documents, as the stages read them, and the lines of their texts."""

import codecs
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, overload

import msgspec

from toolkit.errors import DataError, in_words


def split_lines(text: str) -> list[str]:
    r"""Return the lines of a text: split at ``\n``, one trailing ``\r`` of each stripped, no last empty line.

    What Rust's ``str::lines`` yields, hence what OSCAR's tools counted; never ``str.splitlines``, which also splits at
    form feeds, U+2028 and others.

    >>> split_lines("a\r\nb\n\nc\n")
    ['a', 'b', '', 'c']
    """
    if not text:
        return []
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    if "\r" in text:
        lines = [line[:-1] if line.endswith("\r") else line for line in lines]
    return lines


def joined_lines(text: str) -> str:
    r"""Join the lines of a text by ``\n``, without a final one.

    >>> joined_lines("a\r\nb\n\nc\n")
    'a\nb\n\nc'
    """
    return "\n".join(split_lines(text)) if "\r" in text else text.removesuffix("\n")


T = TypeVar("T")


class Span(NamedTuple):
    """A stretch of a document's text: code point offsets, end exclusive, and a score.

    On disk ``[start, end, score]``, as in the Dolma format.

    Attributes:
        start: Code point of the text at which it begins, from 0.
        end: Code point of the text behind its last one.
        score: Its score, which is 1 where nothing is measured.
    """

    start: int
    end: int
    score: float = 1.0


def spans_in(value: Any) -> list[Span]:
    """Return the spans in a value, at any depth."""
    if isinstance(value, Span):
        return [value]
    if isinstance(value, msgspec.Struct):
        return spans_in(list(msgspec.structs.asdict(value).values()))
    if isinstance(value, dict):
        return spans_in(list(value.values()))
    return [span for item in value for span in spans_in(item)] if isinstance(value, list) else []


def fault_of_spans(value: Any, chars: int) -> str:
    """Return the fault of a span outside of so many code points; empty without one."""
    for start, end, _ in spans_in(value):
        if not 0 <= start <= end <= chars:
            return f"expected spans of code points from 0 to {chars}, got [{start}, {end}]"
    return ""


class Prediction(msgspec.Struct, frozen=True, gc=False):
    """A label with its probability, float32 by nature; may exceed 1 by fastText's rounding.

    Attributes:
        label: The label that is most probable.
        prob: The probability of the label, which may exceed 1 by rounding.
    """

    label: str
    prob: float


class Labelled(msgspec.Struct, frozen=True, gc=False):
    """A label with its probability, if known: a label of the metadata may be a text alone."""

    label: str
    prob: float | None = None


def is_reference(option: str) -> bool:
    """Return True for an attribute (``SET.KEY``, ``SET.KEY.field``), False for a value."""
    return "." in option


def value_at(fields: Any, path: str) -> Any:
    """Return the value at a dotted path through mappings; None where there is none.

    >>> value_at({"a": {"b": 1}}, "a.b"), value_at({"a": 1}, "a.b")
    (1, None)
    """
    for key in path.split("."):
        fields = fields.get(key) if isinstance(fields, dict | Mapping) else None  # what most are is looked for first
    return fields


class _Later(NamedTuple):
    make: Callable[[int], Any]
    place: int


NO_ATTRIBUTES = msgspec.Raw(b"")
"""The attributes of a row without attributes of its own."""


class DocumentRow(msgspec.Struct):
    """One line of a documents file. Other top-level keys are allowed and stay in the file."""

    id: str
    text: str
    source: str
    added: str | None = None
    created: str | None = None
    metadata: msgspec.Raw = msgspec.Raw(b"null")
    attributes: msgspec.Raw = NO_ATTRIBUTES


class Rejected(msgspec.Struct, frozen=True):
    """Why a mix dropped a document: the rule, and the values that it saw."""

    rule: str
    values: dict[str, Any] = {}


class _RowWithRejection(msgspec.Struct):
    rejected: Rejected | None = None


_REJECTED = msgspec.json.Decoder(_RowWithRejection)


def _no_words(text: str) -> list[str]:
    raise NotImplementedError("import toolkit first")


split_words: Callable[[str], list[str]] = _no_words
"""`Document.words` calls it. `toolkit` sets it when it is imported: here nothing is known of compiled code."""


class Document:
    """One document, with shared, lazily computed views on its text.

    Attributes:
        id: unique together with ``source``, the same in every version of the data.
        source: Source of the document.
        text: never changed by taggers.
        row: the line of the documents file (empty for a document that is not from one).
        place: shard and row, ``SHARD:ROW``, where documents may have equal ids; empty where (source, id) identifies.
    """

    place: str = ""
    _join: Callable[[], dict[str, Any]] | None = None
    _joined: dict[str, Any] | None = None

    def __init__(
        self,
        text: str,
        *,
        id: str = "",
        source: str = "",
        metadata: Mapping[str, Any] | msgspec.Raw | None = None,
        attributes: Mapping[str, Any] | None = None,
        row: bytes = b"",
    ) -> None:
        self.text = text
        self.row = row
        self.id = id
        self.source = source
        self._metadata = metadata
        self._attributes: dict[str, Any] = dict(attributes or {})

    @cached_property
    def utf8(self) -> bytes:
        """The text in UTF-8."""
        return self.text.encode()

    @cached_property
    def lines(self) -> list[str]:
        """The lines of the text, without their ends (see `split_lines`)."""
        return split_lines(self.text)

    @cached_property
    def line_bytes(self) -> list[int]:
        """The UTF-8 length of each line, without its end."""
        if self.text.isascii():
            return list(map(len, self.lines))
        if "\r" not in self.text:
            pieces = self.text.encode().split(b"\n")
            return list(map(len, pieces if pieces[-1] else pieces[:-1]))
        return [len(line.encode()) for line in self.lines]

    @cached_property
    def line_spans(self) -> list[tuple[int, int]]:
        """The code point offsets ``(start, end)`` of each line, without its end."""
        spans, start = [], 0
        for raw, line in zip(self.text.split("\n"), self.lines, strict=False):
            spans.append((start, start + len(line)))
            start += len(raw) + 1
        return spans

    @cached_property
    def rejected(self) -> Rejected | None:
        """The rule of a dropped document in `rejected`; None for all others.

        Raises:
            DataError: if the row has a key `rejected` of another kind.
        """
        try:
            return _REJECTED.decode(self.row).rejected if self.row else None
        except BAD_ROW as error:
            raise DataError(f"expected the rule that dropped the document under `rejected`, got: {error}") from None

    @cached_property
    def words(self) -> list[str]:
        """The words of the text: segments between Unicode's word boundaries with a letter or a number in them.

        Many documents at once are split faster by `toolkit.Batch.words`.
        """
        return split_words(self.text)

    def field(self, name: str) -> Any:
        """Return the value of a top-level field of the row; None where it is absent."""
        value = self._fields.get(name)
        return None if value is None else msgspec.json.decode(value)

    @cached_property
    def _fields(self) -> dict[str, msgspec.Raw]:
        return msgspec.json.decode(self.row, type=dict[str, msgspec.Raw]) if self.row else {}

    @cached_property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata object, empty if the document has none."""
        if isinstance(self._metadata, msgspec.Raw):
            return msgspec.json.decode(self._metadata) or {}
        return self._metadata or {}

    @property
    def raw_metadata(self) -> msgspec.Raw:
        """The metadata as the JSON text of the file (``null`` if absent)."""
        if isinstance(self._metadata, msgspec.Raw):
            return self._metadata
        return msgspec.Raw(msgspec.json.encode(self._metadata))

    @property
    def chars(self) -> int:
        """The number of code points of the text."""
        return len(self.text)

    @property
    def joined(self) -> dict[str, Any]:
        """All fields of the row, with joined attributes (see `join`)."""
        if self._joined is None:
            fields = msgspec.json.decode(self.row)
            if self._join:
                fields["attributes"] = (fields.get("attributes") or {}) | self._join()
            self._joined = fields
        return self._joined

    def join(self, attributes: Callable[[], dict[str, Any]]) -> None:
        """Set the function for the attributes of `joined`; the engine calls it."""
        self._join = attributes

    def with_text(self, text: str) -> "Document":
        """Return the same document with another text, in its row too."""
        fields = msgspec.json.decode(self.row, type=dict[str, msgspec.Raw])
        fields["text"] = msgspec.Raw(msgspec.json.encode(text))
        return Document(text, id=self.id, source=self.source, metadata=self._metadata, row=msgspec.json.encode(fields))

    def attribute(self, path: str) -> Any:
        """Return the value of a declared attribute, by the option's text (``SET.KEY``)."""
        value = self._attributes[path]
        if isinstance(value, _Later):
            value = self._attributes[path] = value.make(value.place)
        return value

    def given(self, option: str | None) -> Any:
        """Return the value of an option: an attribute, or the option itself. See `toolkit.Attribute`."""
        return self.attribute(option) if option is not None and is_reference(option) else option

    def give(self, path: str, value: Any) -> None:
        """Make a value available to `attribute`; the engine calls it before the tagger."""
        self._attributes[path] = value

    def give_later(self, path: str, make: Callable[[int], Any], index: int) -> None:
        """Provide a value on first use, by ``make(index)``."""
        self._attributes[path] = _Later(make, index)


class LateRow(msgspec.Struct):
    """A `DocumentRow` with its text still as JSON."""

    id: str
    text: msgspec.Raw
    source: str
    added: str | None = None
    created: str | None = None
    metadata: msgspec.Raw = msgspec.Raw(b"null")


class LateDocument(Document):
    """A document with its text decoded on first use.

    Attributes:
        raw_text: the text as it stands in the file; it may be none.
        counted: its code points, once they have been counted.
    """

    counted: int | None = None

    def __init__(
        self,
        raw_text: msgspec.Raw,
        *,
        id: str = "",
        source: str = "",
        metadata: Mapping[str, Any] | msgspec.Raw | None = None,
        row: bytes = b"",
    ) -> None:
        self.raw_text = raw_text  # all that `Document` sets but its text; made for each row of a shard
        self.row = row
        self.id = id
        self.source = source
        self._metadata = metadata
        self._attributes = {}

    def __getattr__(self, name: str) -> Any:
        if name != "text":
            raise AttributeError(name)
        self.text = msgspec.json.decode(self.raw_text, type=str)
        return self.text

    @property
    def chars(self) -> int:
        return len(self.text) if self.counted is None else self.counted


class LateDocuments(Sequence[Document]):
    """Documents of rows, made on first use.

    Args:
        rows: their JSON, with a line feed between two.
        count: Number of documents.
    """

    def __init__(self, rows: bytes, count: int) -> None:
        self._rows, self._count = rows, count

    @cached_property
    def _documents(self) -> list[Document]:
        lines = self._rows.split(b"\n")
        rows = zip(map(LATE_DECODER.decode, lines), lines, strict=True)
        return [
            LateDocument(row.text, id=row.id, source=row.source, metadata=row.metadata, row=line) for row, line in rows
        ]

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Document: ...
    @overload
    def __getitem__(self, index: slice) -> list[Document]: ...
    def __getitem__(self, index: int | slice) -> Document | list[Document]:
        return self._documents[index]


class _OnlyMetadata(msgspec.Struct):
    metadata: msgspec.Raw = msgspec.Raw(b"null")


_METADATA = msgspec.json.Decoder(_OnlyMetadata)


class FreshDocument(Document):
    """A new document with its text and metadata decoded on first use."""

    def __init__(self, id: str, source: str, row: bytes, utf8: bytes, chars: int) -> None:
        self.id = id  # all that `Document` sets but its text and metadata; made for each row
        self.source = source
        self.row = row
        self.utf8 = utf8
        self._chars = chars
        self._attributes = {}

    def __getattr__(self, name: str) -> Any:
        if name == "text":
            self.text = self.utf8.decode()
            return self.text
        if name != "_metadata":
            raise AttributeError(name)
        self._metadata = _METADATA.decode(self.row).metadata
        return self._metadata

    @property
    def chars(self) -> int:
        return self._chars


class AttributesRow(msgspec.Struct):
    """One line of an attribute file, its values left as JSON text."""

    attributes: msgspec.Raw
    id: str | None = None
    source: str | None = None


BAD_ROW = (ValueError, OverflowError, RecursionError, MemoryError)
"""Errors of libraries about a row that they cannot read or write: not JSON, not UTF-8, too large, too deep."""

MAX_NESTING = 120
"""Lists and objects in each other that a document may have; parsers of other languages end at 128."""

_BRACKETS = re.compile(rb'"(?>(?:[^"\\]|\\.)*)"|[\[{]|[\]}]', re.DOTALL)


def is_nested_too_deeply(line: bytes) -> bool:
    """Return True if a JSON text is nested more than `MAX_NESTING` deep."""
    if line.count(b"[") + line.count(b"{") <= MAX_NESTING:
        return False
    depth = 0
    for match in _BRACKETS.finditer(line):
        depth += 1 if match[0] in b"[{" else -1 if match[0] in b"]}" else 0
        if depth > MAX_NESTING:
            return True
    return False


class Rows(Iterator[tuple[T, bytes]]):
    """Decodes lines one by one; names file and line of bad ones.

    Args:
        lines: rows without their line ends.
        decoder: gives the row's type; unknown keys are ignored.
        path: Path for messages.
        number: Number of rows before these.
    """

    def __init__(self, lines: Iterator[bytes], decoder: msgspec.json.Decoder[T], path: str, number: int = 0) -> None:
        self.path = path
        self.number = number
        self._lines = lines
        self._decode = decoder.decode

    def __next__(self) -> tuple[T, bytes]:
        line = next(self._lines)
        self.number += 1
        try:
            return self._decode(line), line
        except BAD_ROW as error:
            raise DataError(explain_bad_row(line, error), path=self.path, line=self.number, id=_id_of(line)) from None


def explain_bad_row(line: bytes | msgspec.Raw, error: Exception) -> str:
    """Return the fault of a bad row as ``expected …, got …``."""
    if not bytes(line).strip():
        return "expected a JSON object, got a blank line"
    if isinstance(error, RecursionError):
        return "expected a JSON object, got one with lists and objects nested too deeply"
    if isinstance(error, MemoryError):
        return f"expected a line that fits in memory, got one of {len(line):,} bytes that does not; use fewer processes"
    text = str(error)
    if text.startswith("Object missing required field"):
        name, _, place = text.removeprefix("Object missing required field ").partition(" - at ")
        return f"expected field {name.strip('`')}, got an object without it" + (f" - at {place}" if place else "")
    if "out of range" in text and " - at " in text:
        return (
            f"expected numbers of at most 64 bits, got one out of range{text[text.rindex(' - at ') :].replace('`', '')}"
        )
    if isinstance(error, msgspec.ValidationError):
        return in_words(text)
    return f"expected a JSON object{_reason(bytes(line), text)}"


def _reason(line: bytes, text: str) -> str:
    """Return the reason why a line is not a JSON object."""
    if match := _NOT_IN_JSON.search(line, *_place_in(text)):
        return f", got {match[0].decode()} in it, a number that JSON does not have; write null"
    if half := lone_surrogate(line):
        return f" of characters, got {half} in it, half of a surrogate pair; replace it, as by \\ufffd"
    if line.startswith(codecs.BOM_UTF8):
        return ", got a byte order mark before it; remove it, or let `toolkit ingest` read the file"
    return f" in UTF-8, got a line that is not: {text}"


_NOT_IN_JSON = re.compile(rb"-?(?:NaN|Infinity)\b")
"""Numbers that some programs write all the same, Python's `json` among them."""


_LONE = re.compile(rb"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)")
"""Escapes of backslashes and of pairs, which are passed over, and of halves of a pair."""


def lone_surrogate(line: bytes) -> str:
    """Return the first escaped half of a surrogate pair; empty without one."""
    return next((match[1].decode(errors="replace") for match in _LONE.finditer(line) if match[1]), "")


def without_lone_surrogates(data: bytes) -> bytes:
    """Return JSON with U+FFFD in place of escaped halves of surrogate pairs."""
    return _LONE.sub(lambda match: rb"\ufffd" if match[1] else match[0], data)


def _place_in(text: str) -> tuple[int, int]:
    """Return the byte range around an error of msgspec. It is at the end if the error has no place."""
    match = re.search(r"\(byte (\d+)\)", text)
    return (max(0, int(match[1]) - 1), int(match[1]) + 9) if match else (1 << 30, 1 << 30)


def fault_of(line: bytes, error: Exception) -> str:
    """Return a short name for the fault of a row, for counts."""
    if not line.strip():
        return "blank line"
    if isinstance(error, UnicodeError) or str(error).startswith("Invalid UTF-8"):  # of msgspec before 0.23, and since
        return "invalid UTF-8"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, MemoryError):
        return "too large for the memory"
    if isinstance(error, ValueError | OverflowError) and not isinstance(error, msgspec.MsgspecError):
        return "value out of range"
    if not isinstance(error, msgspec.ValidationError):
        return "invalid JSON"
    return "missing field" if "missing required field" in str(error) or "without it" in str(error) else "wrong type"


class _OnlyId(msgspec.Struct):
    id: str


def _id_of(line: bytes) -> str | None:
    try:
        return msgspec.json.decode(line, type=_OnlyId).id
    except BAD_ROW:
        return None


def check_metadata(metadata: msgspec.Raw) -> None:
    """Raise for metadata other than an object in UTF-8 or null.

    The errors are msgspec.ValidationError and UnicodeDecodeError.
    """
    raw = bytes(metadata)
    if raw[:1] not in (b"{", b"n"):
        raise msgspec.ValidationError("Expected `object | null` - at `$.metadata`")
    if not raw.isascii():
        raw.decode()


def to_document(row: DocumentRow | LateRow, rows: Rows[Any], line: bytes = b"") -> Document:
    """Return the document of a row just read; a late one of a late row.

    Raises:
        DataError: if ``metadata`` is neither an object nor null.
    """
    try:
        check_metadata(row.metadata)
    except BAD_ROW as error:
        message = explain_bad_row(bytes(row.metadata), error)
        raise DataError(message, path=rows.path, line=rows.number, id=row.id) from None
    if isinstance(row, LateRow):
        return LateDocument(row.text, id=row.id, source=row.source, metadata=row.metadata, row=line)
    return Document(row.text, id=row.id, source=row.source, metadata=row.metadata, row=line)


DOCUMENT_DECODER = msgspec.json.Decoder(DocumentRow)
LATE_DECODER = msgspec.json.Decoder(LateRow)


class _WholeRow(DocumentRow):
    metadata: dict[str, Any] | None = None  # type: ignore[assignment]


WHOLE_ROW = msgspec.json.Decoder(_WholeRow)
"""Decodes the metadata, too: for rows of plugins."""
