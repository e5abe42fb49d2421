"""Which fields of rows become which of a document, by their names and by what is in the first rows."""

import functools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

import msgspec

from toolkit.data.documents import BAD_ROW
from toolkit.ingest.reader import READERS, Draft, Input, Sample, first_drafts
from toolkit.ingest.reading.preview import Unkept
from toolkit.ingest.tables.fields import FieldReader

TEXTS = ("text", "content", "raw_content", "body", "article", "document", "review", "sentence", "page_content")
IDS = ("id", "doc_id", "docid", "document_id", "_id", "uuid", "record_id", "warc_record_id", "key")
METADATA = ("metadata", "meta")

LONG = 20
"""Characters that texts have on average, at least, where no name tells them."""

Row = dict[str, Any]


def first_rows(format: str, options: dict[str, Any], path: str) -> list[Row] | None:
    """Return the first rows of a file, as they are in it; None if its items have no named fields.

    Raises:
        DataError: if it is damaged.
    """
    class_ = READERS.find(format)
    if not issubclass(class_, FieldReader):
        return None
    reader = msgspec.convert(options, _raw(class_))
    source = Input(path, None, 1 << 30, Unkept(), sample=Sample())
    return [draft.extra for draft in first_drafts(reader, [source])]


@functools.cache
def _raw(class_: type[FieldReader]) -> type[FieldReader]:
    """Return the reader of a format with rows as they are, in place of documents."""
    methods = {
        "draft": lambda _, row, number: Draft(text="", number=number, extra=row),
        "columns": lambda _, there, path: list(there),
    }
    made: Any = msgspec.defstruct(f"{class_.__name__}Rows", [], bases=(class_,), namespace=methods, frozen=True)
    return cast("type[FieldReader]", made)


def chosen(rows: Sequence[Row], *, typed: bool) -> dict[str, Any]:
    """Return the options of a format that say which fields become which.

    Args:
        rows: the first.
        typed: whether values are texts, of which types must be declared.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    fields = _mapped(rows, names)
    options: dict[str, Any] = {"fields": fields} if fields else {}
    named = [fields.get(name, name) for name in ("id", "text", "source", "added", "created")]
    used = {name for name in named if isinstance(name, str)}
    others = set(names) - used
    if others and fields.get("metadata", "metadata") not in names:
        options["metadata"] = "rest"
    elif "annotation" in others:  # which tables have for themselves
        options["metadata"] = ["annotation"]
    if typed:
        types = {name: type_ for name in names if name not in used and (type_ := _type_of(rows, name))}
        options |= {"typed": types} if types else {}
    elif lacking := list(dict.fromkeys(name for row in rows for name in _not_finite(row) if name not in used)):
        options["typed"] = dict.fromkeys(lacking, "float")
    return options


def _not_finite(row: Row, inside: str = "") -> Iterator[str]:
    """Yield the names of fields with a number that JSON does not have, which will be null."""
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _not_finite(value, f"{inside}{name}.")
        elif isinstance(value, float) and not math.isfinite(value):
            yield inside + name


def _mapped(rows: Sequence[Row], names: list[str]) -> Row:
    """Return the option `fields`: what is not called as documents have it, or is not of the type."""
    fields: dict[str, Any] = {}
    if (text := _text_of(rows, names)) not in (None, "text"):
        fields["text"] = text
    id = next((name for name in IDS if name in names and _is_id(rows, name)), None)
    if id not in (None, "id"):
        fields["id"] = id
    elif id is None and "id" in names:
        fields["id"] = []
    for name in ("source", "added", "created"):
        values = _values(rows, name)
        is_text = all(isinstance(value, str) or hasattr(value, "isoformat") for value in values)
        if name in names and not (is_text and (name != "source" or len(values) == len(rows))):
            fields[name] = []  # a null source would become that of the configuration
    metadata = next((name for name in METADATA if name in names and _are_objects(_values(rows, name))), None)
    if metadata not in (None, "metadata"):
        fields["metadata"] = metadata
    elif metadata is None and "metadata" in names:
        fields["metadata"] = []
    return fields


def _values(rows: Iterable[Row], name: str) -> list[Any]:
    return [value for row in rows if (value := row.get(name)) is not None]


def _text_of(rows: Sequence[Row], names: Iterable[str]) -> str | None:
    """Return the field of the texts: by its name, else that in which there is most of it."""
    sizes = {}
    for name in names:
        values = _values(rows, name)
        if values and all(isinstance(value, str) for value in values):
            sizes[name] = sum(map(len, values))
    named = [name for name in TEXTS if name in sizes]
    if named:
        return named[0]
    long = [name for name, size in sizes.items() if size >= LONG * len(rows)]
    return max(long, key=lambda name: sizes[name], default=None)


def _is_id(rows: Sequence[Row], name: str) -> bool:
    """Return whether values may be ids: texts or integers, each once, never null."""
    values = [row.get(name) for row in rows]
    plain = all(isinstance(value, str | int) and not isinstance(value, bool) for value in values)
    return plain and len(set(values)) == len(values) > 0


def _are_objects(values: Iterable[Any]) -> bool:
    for value in values:
        if isinstance(value, dict):
            continue
        try:
            msgspec.json.decode(value if isinstance(value, str) else b"", type=dict[str, Any] | None)
        except BAD_ROW:
            return False
    return True


_INT, _FLOAT = re.compile(r"[+-]?(?:0|[1-9]\d*)", re.ASCII), re.compile(r"[+-]?(?:0|[1-9]\d*)?\.\d+", re.ASCII)
_ADDRESS = re.compile(r"[a-z]+:/+\w")


def _type_of(rows: Sequence[Row], name: str) -> str | None:
    """Return the type that all texts of a column can be declared as; None if they are just texts."""
    values = [value for value in _values(rows, name) if isinstance(value, str) and value]
    if not values:
        return None
    if all(_INT.fullmatch(value) for value in values):
        return "int"
    if all(_INT.fullmatch(value) or _FLOAT.fullmatch(value) for value in values):
        return "float"
    return "bool" if all(value.lower() in ("true", "false") for value in values) else None


def names_without_header(row: Row) -> list[str]:
    """Return names for the columns of a file whose first row is one of values; none if it may have names."""
    if any(_INT.fullmatch(name) or _FLOAT.fullmatch(name) or _ADDRESS.match(name) for name in row):
        return [f"column_{i}" for i in range(1, len(row) + 1)]
    return []


def lacks_text(rows: Sequence[Row], options: dict[str, Any]) -> tuple[int, int]:
    """Return how many rows lack the field of the text, and in how many it is null."""
    name = options.get("fields", {}).get("text", "text")
    lacking = sum(name not in row for row in rows)
    return lacking, sum(row.get(name) is None for row in rows) - lacking


def example_rule(documents: Sequence[Row]) -> str | None:
    """Return an expression over the metadata of some documents that keeps some of them; None if none comes to mind."""
    names = list(dict.fromkeys(name for row in documents for name in row.get("metadata") or {}))
    for name in names:
        values = [(row.get("metadata") or {}).get(name) for row in documents]
        told = [value for value in values if value is not None]
        if not name.isidentifier() or not told:
            continue
        if all(isinstance(value, str) and len(value) < 20 for value in told):
            (value, count), *_ = Counter(told).most_common(1)
            if count > 1 and len(set(told)) < len(told) / 2 + 1:
                return f"metadata.{name} == {msgspec.json.encode(value).decode()}"
        elif all(isinstance(value, int | float) and not isinstance(value, bool) for value in told):
            middle = sorted(told)[len(told) // 2]
            test = f"metadata.{name} is not None and "
            return f"{test}metadata.{name} >= {middle:g}" if middle < 1e6 else None
    return None
