"""Views over streams: their columns, of the declared types."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple

import msgspec

from toolkit.data.schema import Type
from toolkit.mix.join import JoinedShard
from toolkit.mix.joined_sets import JoinedSet
from toolkit.records import sets as records
from toolkit.sql.streams import DOCUMENT, PLACE, Faults, Shards, Stream, column_of
from toolkit.storage.options import StorageOptions

_PLAIN = {"bool": "BOOLEAN", "int": "BIGINT", "float": "DOUBLE", "float32": "FLOAT", "str": "VARCHAR"}
_SPAN = 'STRUCT("start" BIGINT, "end" BIGINT, "score" DOUBLE)'


def quoted(name: str) -> str:
    """Return a name as SQL has it, whatever is in it.

    >>> quoted("lines-0"), quoted('a"b')
    ('"lines-0"', '"a""b"')
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as SQL has it."""
    return "'" + text.replace("'", "''") + "'"


def distinct(names: Iterable[str]) -> bool:
    """Return whether names differ for SQL, which does not tell upper from lower case."""
    listed = list(names)
    return len({name.casefold() for name in listed}) == len(listed)


def type_of(type_: Type) -> str:
    """Return the type of a column: what may be null is of the type without that.

    A span is a struct of ``start``, ``end`` and ``score``, a map a MAP; a value of no declared type is JSON, and so is
    an object whose fields SQL cannot tell apart, or that has none.
    """
    match type_.kind:
        case "span":
            return _SPAN
        case "object" if _is_struct(type_):
            fields = (f"{quoted(name)} {type_of(inner)}" for name, inner in type_.fields)
            return f"STRUCT({', '.join(fields)})"
    if type_.item is not None:
        inner = type_of(type_.item)
        return {"list": f"{inner}[]", "map": f"MAP(VARCHAR, {inner})"}.get(type_.kind, inner)
    return _PLAIN.get(str(type_), "JSON")


def parsed_type(type_: Type) -> str:
    """Return the type that the JSON of a value is parsed as: that of the column, but a span is a list of numbers."""
    match type_.kind:
        case "span":
            return "DOUBLE[]"
        case "object" if _is_struct(type_):
            fields = (f"{quoted(name)} {parsed_type(inner)}" for name, inner in type_.fields)
            return f"STRUCT({', '.join(fields)})"
    if type_.item is not None:
        inner = parsed_type(type_.item)
        return {"list": f"{inner}[]", "map": f"MAP(VARCHAR, {inner})"}.get(type_.kind, inner)
    return _PLAIN.get(str(type_), "JSON")


def _is_struct(type_: Type) -> bool:
    return bool(type_.fields) and distinct(name for name, _ in type_.fields)


def row_type(types: Mapping[str, Type]) -> str:
    """Return the type that a row of attributes is parsed as, with exactly these keys."""
    keys = ", ".join(f"{quoted(key)} {parsed_type(type_)}" for key, type_ in types.items())
    return f'STRUCT("source" VARCHAR, "id" VARCHAR, "attributes" STRUCT({keys}))'


def value_of(type_: Type, parsed: str) -> str:
    """Return the expression that makes the value of a column from what was parsed.

    Args:
        type_: the declared one.
        parsed: an expression of the type `parsed_type`.
    """
    return _value(type_, parsed, count())


def _value(type_: Type, parsed: str, numbers: "count[int]") -> str:
    if not _has_span(type_):
        return parsed
    match type_.kind:
        case "span":
            parts = f"{{'start': {parsed}[1]::BIGINT, 'end': {parsed}[2]::BIGINT, 'score': {parsed}[3]}}"
            return _unless_null(parsed, parts)
        case "object":
            fields = (
                f"{literal(name)}: {_value(inner, f'{parsed}.{quoted(name)}', numbers)}" for name, inner in type_.fields
            )
            return _unless_null(parsed, f"{{{', '.join(fields)}}}")
    assert type_.item
    if type_.kind == "nullable":
        return _value(type_.item, parsed, numbers)
    each = f"x{next(numbers)}"
    change = f"lambda {each}: {_value(type_.item, each, numbers)}"
    if type_.kind == "map":
        return f"map(map_keys({parsed}), list_transform(map_values({parsed}), {change}))"
    return f"list_transform({parsed}, {change})"


def _unless_null(parsed: str, value: str) -> str:
    return f"CASE WHEN {parsed} IS NULL THEN NULL ELSE {value} END"


def _has_span(type_: Type) -> bool:
    """Return whether there is a span where the type is no JSON."""
    if type_.kind == "object" and not _is_struct(type_):
        return False
    return type_.kind == "span" or any(
        _has_span(inner) for inner in (type_.item, *(inner for _, inner in type_.fields)) if inner
    )


TEXT = "text->>'$'"
"""The text of a document: it stands in the file as JSON."""

METADATA = "metadata::JSON"

STREAM = "{stream}"
"""Stands in a query for the name that the stream has in the session."""


class View(NamedTuple):
    """What is read, and the query over it that the view is, in which `STREAM` stands for it."""

    stream: Stream
    query: str


class Reading(NamedTuple):
    """What all views of a dataset are made of.

    Attributes:
        works: its shards.
        storage: how remote files are reached.
        faults: takes the errors of scans.
    """

    works: Sequence[JoinedShard]
    storage: StorageOptions
    faults: Faults


def of_documents(reading: Reading) -> View:
    """Return the view of documents: shard, row, chars and bytes (of the row index), and their fields."""
    shown = [*map(quoted, (*PLACE, "id", "source")), f"{TEXT} AS text", "added", "created", f"{METADATA} AS metadata"]
    stream = Shards(reading.works, [], reading.faults, reading.storage)
    return View(stream, f"SELECT {', '.join(shown)} FROM {STREAM}")


def of_set(reading: Reading, joined: JoinedSet) -> View:
    """Return the view of a set: shard, row, id, source, and its keys."""
    stream = Shards(reading.works, [joined], reading.faults, reading.storage, all_sets=True)
    own = ["shard", "row", "id", "source"]
    shown = ["shard", quoted("row"), "a0.id AS id", "a0.source AS source", *_keys([joined], own)]
    return View(stream, f"SELECT {', '.join(shown)} FROM {_parsed([joined])}")


def of_joined(reading: Reading, sets: Sequence[JoinedSet]) -> View:
    """Return the view of documents joined with sets, row by row: the columns of documents, and each key."""
    stream = Shards(reading.works, sets, reading.faults, reading.storage)
    named = _least(reading.works, sets)
    id, source = ("id", "source") if named is None else (f"a{named}.id AS id", f"a{named}.source AS source")
    shown = [*map(quoted, PLACE), id, source, f"{TEXT} AS text", "added", "created", f"{METADATA} AS metadata"]
    shown += _keys(sets, [*PLACE, *DOCUMENT])
    return View(stream, f"SELECT {', '.join(shown)} FROM {_parsed(sets)}")


def _parsed(sets: Sequence[JoinedSet]) -> str:
    """Return the query that parses the rows of sets; what is not used of it, DuckDB leaves out."""
    parsed = []
    for i, joined in enumerate(sets):
        type_ = row_type({key.key: key.declared for key in joined.keys})
        structure = literal(msgspec.json.encode(type_).decode())
        parsed.append(f", from_json_strict({column_of(i)}, {structure}) AS a{i}")
    return f"(SELECT * {''.join(parsed)} FROM {STREAM})"


def _keys(sets: Sequence[JoinedSet], taken: Sequence[str]) -> Iterator[str]:
    """Yield the columns of keys; one that is called as another column has the name of its set before its own."""
    known = {name.casefold() for name in taken}
    for i, joined in enumerate(sets):
        for key in joined.keys:
            name = key.name
            if name.casefold() in known or key.hidden:
                name = f"{joined.set}.{key.name}"
            while name.casefold() in known:
                name += "_"
            known.add(name.casefold())
            parsed = f"a{i}.attributes.{quoted(key.key)}"
            yield f"{value_of(key.declared, parsed)} AS {quoted(name)}"


def _least(works: Sequence[JoinedShard], sets: Sequence[JoinedSet]) -> int | None:
    """Return which set tells ids and sources with the least reading; None if only the documents can be relied on."""
    sizes = {}
    for i, joined in enumerate(sets):
        if joined.ours and works:
            record = records.load_record(works[0].dataset, joined.set, works[0].shard)
            sizes[i] = record.output.content_size if record else 0
    return min(sizes, key=lambda i: sizes[i], default=None)
