"""Documents' own fields, ``metadata.lang`` and ``document.url``: their types, and values by their paths.

They are known before documents are made, each row is held against them when it is, and they are recorded with it: so
rules over such fields can be checked before anything is read.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import reduce
from typing import Any

import msgspec

from toolkit.data import schema
from toolkit.data.documents import BAD_ROW, Document, explain_bad_row
from toolkit.data.schema import ANY, FLOAT, NEVER, NULL, SPAN, SPANS, Type, from_json, list_of, nullable, to_json
from toolkit.data.tables.to_arrow import unified
from toolkit.errors import DataError, in_words, short
from toolkit.storage.json_files import decoder_of

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


COLUMNS = "the columns of all files"
"""By what types are known that schemas tell."""

_PYTHON: dict[str, Any] = {"bool": bool, "int": int, "float": float, "str": str}


class OwnTypes(msgspec.Struct, frozen=True, kw_only=True):
    """The types of the own fields of documents.

    Attributes:
        fields: Types by root (`metadata`, `document`), then by name, in the form of `toolkit.data.schema`; fields of
            unknown type are ``any``, or absent.
        closed: dotted paths of objects that have no other fields than these.
        known_by: Source for messages: ``the schemas of all files``, ``the first 1,000 rows``.
        arrow: the schema of the documents, where tables tell it (see `toolkit.data.tables.to_arrow.to_text`).
    """

    fields: dict[str, dict[str, Any]] = {}
    closed: list[str] = []
    known_by: str = ""
    arrow: str = ""

    def of(self, root: str) -> tuple[tuple[str, Type], ...]:
        """Return the fields of a root, with objects as partly typed maps."""
        return tuple((name, _as_values(from_json(value))) for name, value in self.fields.get(root, {}).items())


def own_types(fields: Mapping[str, Mapping[str, Type]], closed: Iterable[str], known_by: str) -> OwnTypes:
    """Return the types of fields by root and name; those that no Struct can have are of any type, and not named."""
    listed = {
        root: {name: to_json(type_) for name, type_ in inner.items() if schema.is_field(name)}
        for root, inner in fields.items()
    }
    return OwnTypes(fields=listed, closed=sorted(closed), known_by=known_by)


def together(own_types: Iterable[OwnTypes | None]) -> OwnTypes | None:
    """Return the common types of documents of several places. Return None if those of one are unknown."""
    different = dict[bytes, OwnTypes]()
    for types in own_types:
        if types is None:
            return None
        different.setdefault(msgspec.json.encode(types), types)
    return reduce(_both, different.values()) if different else None


def is_within(narrow: OwnTypes, wide: OwnTypes) -> bool:
    """Return True if all documents of the first types fit the second."""
    if narrow == wide:  # as of most inputs
        return True
    both = _both(narrow, wide)
    return (both.fields, both.closed) == (_both(wide, wide).fields, sorted(wide.closed))


def _both(a: OwnTypes, b: OwnTypes) -> OwnTypes:
    fields = {}
    for root in ROOTS:
        one, other = (
            {name: from_json(value) for name, value in own_types.fields.get(root, {}).items()} for own_types in (a, b)
        )
        open_in = [root not in own_types.closed for own_types in (a, b)]
        fields[root] = {name: to_json(type_) for name, type_ in _merged_fields(one, other, open_in)}
    closed = sorted(set(a.closed) & set(b.closed))
    known_by = a.known_by if a.known_by == b.known_by else "all inputs"
    return OwnTypes(fields=fields, closed=closed, known_by=known_by, arrow=unified(a.arrow, b.arrow))


def _merged_fields(one: dict[str, Type], other: dict[str, Type], open_in: list[bool]) -> list[tuple[str, Type]]:
    """Return the fields of two objects; a field that an open object does not name is of any type in it."""
    results = []
    for name in dict.fromkeys((*one, *other)):
        if name in one and name in other:
            results.append((name, merged(one[name], other[name])))
        else:
            absent_open = open_in[0] if name not in one else open_in[1]
            results.append((name, ANY if absent_open else nullable(one.get(name) or other[name])))
    return results


# --- from rows --------------------------------------------------------------------------------------------------------


def infer(value: Any, *, spans: bool = False) -> Type:
    """Return the type of a decoded JSON value; what is in objects may be absent in others, so it may be null.

    Args:
        value: the value.
        spans: True if a list of ``[int, int, number]`` is one of spans.
    """
    if scalar := schema.SCALARS.get(type(value)):
        return scalar
    if isinstance(value, list):
        if spans and value and all(isinstance(item, list) and schema.infer(item) == SPAN for item in value):
            return SPANS
        return list_of(reduce(merged, (infer(item, spans=spans) for item in value), NEVER))
    if isinstance(value, dict):
        if len(value) > MOST_FIELDS or not all(map(schema.is_field, value)):
            return Type("map", ANY)
        return Type(
            "object", fields=tuple((str(name), _optional(infer(inner, spans=spans))) for name, inner in value.items())
        )
    return ANY


def merged(a: Type, b: Type) -> Type:
    """Return the common type of both; a missing field counts as null."""
    if b in (a, NEVER):
        return a
    if a == NEVER or ANY in (a, b):
        return b if a == NEVER else ANY
    if {"null", "nullable"} & {a.kind, b.kind}:
        inner = [t.not_null for t in (a, b) if t.kind != "null"]
        return nullable(reduce(merged, inner)) if inner else NULL
    return _of_kinds(a, b)


def _of_kinds(a: Type, b: Type) -> Type:
    """Return the common type of two types, neither of them null."""
    match {a.kind, b.kind}:
        case kinds if kinds <= {"int", "float"}:
            return FLOAT
        case kinds if kinds in ({"list"}, {"map"}):
            return Type(a.kind, merged(a.item or ANY, b.item or ANY))
        case kinds if kinds == {"list", "span"}:
            return merged(*(list_of(FLOAT) if type_ == SPAN else type_ for type_ in (a, b)))
        case kinds if kinds == {"object"}:
            fields = _merged_fields(dict(a.fields), dict(b.fields), [False, False])
            return Type("object", fields=tuple(fields)) if len(fields) <= MOST_FIELDS else Type("map", ANY)
        case kinds if kinds == {"object", "map"}:
            return Type("map", ANY)
    return ANY


def _optional(type_: Type) -> Type:
    return ANY if type_ == NULL else nullable(type_)


def of_rows(rows: Iterable[Mapping[str, Any]], known_by: str) -> OwnTypes:
    """Return the types of documents, as far as their first rows tell; each field may be null in others.

    Fields in which there are values of several types, or nulls alone, are of any type.
    """
    metadata, top_level = [], []
    for row in rows:
        inside = row.get(METADATA)
        metadata.append(inside if isinstance(inside, dict) else {})
        top_level.append({name: value for name, value in row.items() if name not in KEYS})
    results = {METADATA: field_types(metadata), DOCUMENT: field_types(top_level)}
    fields = {root: {} if len(types) > MOST_FIELDS else types for root, types in results.items()}
    return own_types(fields, (), known_by)


def field_types(rows: Iterable[Mapping[str, Any]], *, spans: bool = False) -> dict[str, Type]:
    """Return the types of objects' fields; each may be null. See `infer`."""
    types: dict[str, Type] = {}
    for row in rows:
        for name, value in row.items():
            type_ = infer(value, spans=spans)
            types[name] = merged(types[name], type_) if name in types else type_
    return {name: _optional(type_) for name, type_ in types.items()}


KEYS = ("id", "text", "source", "added", "created", "metadata", "attributes")
"""Fields of every document, which are none of its own."""


# --- the check of a row -----------------------------------------------------------------------------------------------


class RowCheck:
    """Holds documents against the types of their own fields.

    Args:
        types: Types of their fields.
        path: Path of the input, for messages.
    """

    def __init__(self, types: OwnTypes) -> None:
        fields = {root: types.fields.get(root, {}).items() for root in ROOTS}
        roots = {root: _parts((name, from_json(value)) for name, value in inner) for root, inner in fields.items()}
        parts = roots[DOCUMENT]
        if inside := roots[METADATA]:
            needed = any(len(part) == 2 for part in inside)  # a field without a default
            metadata = _struct(inside)
            parts = [(METADATA, metadata), *parts] if needed else [*parts, (METADATA, metadata | None, None)]
        self.checks = bool(parts)
        self._decode = decoder_of(_struct(parts)).decode
        self._types = types

    def check(self, line: bytes) -> None:
        """Check a row.

        Raises:
            DataError: if a field is of another type, or null where none may be.
        """
        try:
            self._decode(line)
        except msgspec.ValidationError as error:
            text = explain_bad_row(line, error).replace("- at $.", "- at ")
            if self._types.known_by.startswith(COLUMNS):  # in which there may be numbers that become null
                text = text.replace("expected a number, got null", "expected a number, got null or NaN")
            hint = "name it under `typed:` if it may be null or is of another type"
            message = f"{text}; its type is that of {self._types.known_by}: {hint}"
            raise DataError(message) from None
        except BAD_ROW:
            return  # it is told where the row is decoded


def _parts(fields: Iterable[tuple[str, Type]]) -> list[Any]:
    """Return fields for `msgspec.defstruct`: required ones first, without those of any type."""
    listed = [*fields]
    required = [(name, _checked_type(type_)) for name, type_ in listed if type_.kind not in ("nullable", "any", "null")]
    return [*required, *((name, _checked_type(type_), None) for name, type_ in listed if type_.kind == "nullable")]


def _struct(parts: list[Any]) -> Any:
    names = {f"f{i}": part[0] for i, part in enumerate(parts)}
    listed: list[Any] = [(f"f{i}", *part[1:]) for i, part in enumerate(parts)]
    return msgspec.defstruct("Row", listed, rename=names, gc=False)


def _checked_type(type_: Type) -> Any:
    """Return the msgspec type for values of a type."""
    return schema.python_type(type_, _PYTHON, lambda object_: _struct(_parts(object_.fields)))


def _as_values(type_: Type) -> Type:
    """Return the type as expressions see plain JSON values: objects are maps that have types for some keys."""
    if type_.kind == "object":
        return Type("map", ANY, fields=tuple((name, _as_values(inner)) for name, inner in type_.fields))
    if type_.kind == "nullable":
        return nullable(_as_values(type_.item or ANY))
    if type_.kind in ("list", "map"):
        inner = _as_values(type_.item or ANY)
        return Type(type_.kind, inner if inner.not_null.kind in _PYTHON else ANY)
    return type_
