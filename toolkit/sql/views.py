"""Views over streams: their columns, of the declared types."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from toolkit.mix.join import JoinedShard
from toolkit.mix.joined_sets import JoinedSet
from toolkit.records import sets as records
from toolkit.sql.columns import literal, quoted, row_type, value_of
from toolkit.sql.streams import DOCUMENT, PLACE, Faults, Shards, Stream, column_of
from toolkit.storage.options import StorageOptions

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
