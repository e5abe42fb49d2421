"""Fields of documents by their paths: in options that may name an attribute, too, and counted over a shard."""

import math
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from toolkit.data import schema
from toolkit.data.documents import BAD_ROW, Document
from toolkit.errors import DataError, in_words, short

METADATA = "metadata"
"""Prefix of an option that names a field of the metadata."""

DOCUMENT = "document"
"""Prefix of an option that names a top-level field."""

ROOTS = (METADATA, DOCUMENT)
"""No attribute set of the section ``tag:`` is called so."""

NAMES = (f"{DOCUMENT}.id", f"{DOCUMENT}.source")
"""Fields that are a text in each document."""

HEADERS = "metadata.warc_headers"
"""The path of the headers of a WARC record; their names are not counted."""

_SAME = {
    f"{name}={HEADERS}.{header}": (name, header)
    for name, header in (("id", "warc-record-id"), ("added", "warc-date"), ("created", "warc-date"))
}
SAME = {same: name for same, (name, _) in _SAME.items()}
"""The fields of which it is counted, too, how many documents have the value in a header; by what is counted."""

MOST_FIELDS = 200
"""Fields that an object has in rows; one with more has keys that are data, and its fields have no types."""

DOT = "\u2024"
"""Stands in paths for a dot that is in the name of a field."""

_PATTERNS = 4096
"""Patterns of fields that are counted before they are taken apart."""

_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _WarcHeaders(msgspec.Struct, gc=False, rename="kebab"):
    warc_record_id: Any = None
    warc_date: Any = None


_HEADERS = msgspec.json.Decoder(_WarcHeaders)


class _OfRecord(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """Metadata of a WARC record alone, by far the most frequent."""

    warc_headers: _WarcHeaders


_OF_RECORD, _BEGIN = msgspec.json.Decoder(_OfRecord), b'{"warc_headers":{'

OF_RECORD = ("id", "text", "source", "added", "created", *SAME, f"{METADATA}.", HEADERS)
"""Result of `paths_in` for a record of a WET file."""


def path_of(text: str) -> tuple[str, ...] | None:
    """Return the names in ``metadata.field…`` and ``document.field…``; None of another text."""
    path = tuple(text.split("."))
    return path if path[0] in ROOTS and len(path) > 1 and all(path) else None


def label_of(path: str) -> str:
    """Return the expression of an attribute's label, for `toolkit.Writer.label`.

    Args:
        path: ``KEY[.field…]``, whose value is an object with a ``label``; or ``metadata.field…`` (``document.field…``),
            whose value may also be the label itself.
    """
    result = path_of(path)
    if result is None:
        return f"{path}.label"
    if path in NAMES:
        return path
    value = value_of(result)
    if result[0] == METADATA:
        return f"get({value}, 'label', {value})"
    return f"get({value}, 'label', {value}) if {value} is not None else None"


def value_of(path: tuple[str, ...]) -> str:
    """Return the expression of a document's field; null if absent."""
    if path[0] == DOCUMENT:
        return ".".join(path)
    value = "document.metadata"
    for key in path[1:]:
        value = f"get({value}, {key!r}, None)"
    return value


class MetadataField(msgspec.Struct, frozen=True):
    """A field of a document, named by an option.

    Attributes:
        option: Option that names it.
        path: one of `ROOTS`, then keys, one inside the other.
        type: a msgspec type that the value is converted to.
    """

    option: str
    path: tuple[str, ...]
    type: Any

    @property
    def text(self) -> str:
        """The field as the option names it."""
        return ".".join(self.path)

    def of(self, document: Document) -> Any:
        """Return the value of a document; None where a field of the path is absent or null.

        Where an object with a ``label`` is wanted, a text is the label.

        Raises:
            DataError: if the value is not of the type, or a field on the way is no object.
        """
        root, *path = self.path
        value: Any = document.metadata if root == METADATA else {path[0]: document.field(path[0])}
        for i, key in enumerate(path, 1):
            if value is None:
                break
            if not isinstance(value, Mapping):
                inside = ".".join(self.path[:i])
                raise DataError(f"{self.option}: expected an object or null at {inside}, got {short(value)}")
            value = value.get(key)
        type_ = schema.from_annotation(self.type, self.text)
        candidate = {"label": value} if isinstance(value, str) and type_.get("label") else value
        try:
            return msgspec.convert(candidate, self.type)
        except msgspec.ValidationError as error:
            got = "nothing there, or null" if value is None else f"{short(value)} ({in_words(str(error))})"
            raise DataError(f"{self.option}: expected {self.text} of type {type_}, got {got}") from None


# --- counted ----------------------------------------------------------------------------------------------------------


def paths_in(row: bytes | Mapping[str, Any] | tuple[str, ...]) -> tuple[str, ...]:
    """Return the paths of non-null fields in a row, with `SAME`.

    A path with a dot at its end is that of an object which has fields.

    Args:
        row: JSON object, or top-level fields as values that JSON is made of; or these paths.
    """
    if isinstance(row, tuple):
        return row
    results: list[str] = []
    fields = _OBJECT.decode(row) if isinstance(row, bytes) else row
    for name, value in fields.items():
        if name == METADATA:
            _add_metadata(results, value, fields)
        elif name in ("id", "text", "source"):
            results.append(name)
        else:
            _add_paths(results, name.replace(".", DOT), value, is_whole=name == "attributes")
    return tuple(results)


def _add_metadata(paths: list[str], value: Any, fields: Mapping[str, Any]) -> None:
    if isinstance(value, msgspec.Raw) and bytes(value).startswith(_BEGIN):
        with suppress(*BAD_ROW):
            own = _OF_RECORD.decode(value).warc_headers
            for (same, name), header in zip(
                SAME.items(), (own.warc_record_id, own.warc_date, own.warc_date), strict=True
            ):
                if header is not None and header == _text(fields.get(name)):
                    paths.append(same)
            paths.extend((f"{METADATA}.", HEADERS))
            return
    metadata = _plain(value)
    if not isinstance(metadata, dict) or not metadata:
        return
    headers = metadata.get("warc_headers")
    if isinstance(headers, msgspec.Raw):
        decoded = _HEADERS.decode(headers) if memoryview(headers)[0] == _BRACE else _WarcHeaders()
        headers = {"warc-record-id": decoded.warc_record_id, "warc-date": decoded.warc_date}
    if isinstance(headers, dict):
        for same, (name, header) in _SAME.items():
            if (value := headers.get(header)) is not None and value == _text(fields.get(name)):
                paths.append(same)
    _add_paths(paths, METADATA, metadata)


def _text(value: Any) -> Any:
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value


def _add_paths(paths: list[str], path: str, value: Any, *, is_whole: bool = False) -> None:
    if isinstance(value, str):
        paths.append(path)
        return
    value = _plain(value)
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return
    if not isinstance(value, dict) or is_whole or path == HEADERS or not 0 < len(value) <= MOST_FIELDS:
        paths.append(path)
        return
    paths.append(f"{path}.")
    for name, inner in value.items():
        _add_paths(paths, f"{path}.{str(name).replace('.', DOT)}", inner)


def _plain(value: Any) -> Any:
    """Return null and objects for their JSON texts; all else as it is."""
    if not isinstance(value, msgspec.Raw):
        return value
    if not value or value == _NULL:
        return None
    return _OBJECT.decode(value) if memoryview(value)[0] == _BRACE else value


_NULL, _BRACE = msgspec.Raw(b"null"), ord("{")


class FieldCounts:
    """Counts documents by field; those with WARC headers separately.

    Of an object with more fields than `MOST_FIELDS` in all documents the object alone is counted.
    """

    def __init__(self) -> None:
        self._patterns: Counter[tuple[str, ...]] = Counter()
        self._counts: tuple[Counter[str], Counter[str]] = Counter(), Counter()
        self._maps: set[str] = set()

    def add(self, paths: tuple[str, ...]) -> None:
        """Add a document with these fields, as `paths_in` gives them."""
        self._patterns[paths] += 1
        if len(self._patterns) > _PATTERNS:
            self._count()

    def counted(self) -> list[dict[str, int]]:
        """Return the documents by path: of those without WARC headers, and of those with them."""
        self._count()
        return [dict(sorted(counts.items())) for counts in self._counts]

    def _count(self) -> None:
        for paths, documents in self._patterns.items():
            for path in {self._folded(path) for path in paths} if self._maps else paths:
                self._counts[HEADERS in paths][path] += documents
        self._patterns.clear()
        for counts in self._counts:
            inside = Counter(path.rstrip(".").rpartition(".")[0] for path in counts)
            self._maps |= {path for path, fields in inside.items() if path and fields > MOST_FIELDS}
        for counts in self._counts if self._maps else ():
            for path in [path for path in counts if self._folded(path) != path]:
                count = counts.pop(path)
                if path[:-1] in self._maps:
                    counts[path[:-1]] += count

    def _folded(self, path: str) -> str:
        return next((item for item in self._maps if path.startswith(f"{item}.")), path)
