"""Rows as they are described: the record type of documents, examples, where they come from, what readers change."""

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any

import msgspec

from toolkit.data.schema import Type
from toolkit.inspect.describe.facts import Crawled, Field, Group, PathField, RecordType, Undescribed
from toolkit.inspect.describe.facts.data_file import DATES, FromWarc, Looked, LookJob
from toolkit.inspect.describe.facts.fields import INTEGERS, KEYS, SCALARS, TEXTS, bare, fields_of
from toolkit.storage.paths import join
from toolkit.storage.reading import Lines

Looks = Callable[[list[LookJob]], list[Looked]]
"""Runs looks, in the order given."""

DOCUMENT = {
    "id": "Identifies the document within its source.",
    "source": "Where the document comes from.",
    "text": "The text of the document.",
    "added": "When the document was gathered; for Common Crawl when the page was fetched.",
    "created": "Best guess of when the document was made; of a WARC file the date that the server sent.",
    "metadata": "What the source says of the document.",
}


def apart(places: Iterable[PathField], fields: Iterable[Field]) -> list[PathField]:
    """Return the fields that say where a row lies, under other names where a field of the rows has theirs."""
    taken = {field.name for field in fields}
    return [dataclasses.replace(p, name=f"path_{p.name}") if p.name in taken else p for p in places]


Rows = Callable[[str], Generator[dict[str, Any], None, None]]
"""Reads a file row by row."""


def json_rows(max_bytes: int) -> Rows:
    """Return a reader of files whose lines are objects."""

    def rows(path: str) -> Generator[dict[str, Any], None, None]:
        with Lines(path, max_bytes) as lines:
            yield from (msgspec.json.decode(line) for line in lines if line.strip())

    return rows


def first_rows(root: str, paths: Iterable[str], number: int, rows: Rows) -> list[tuple[str, int, dict[str, Any]]]:
    """Return the first rows over the files in order, each with its file's path and its number in it."""
    found: list[tuple[str, int, dict[str, Any]]] = []
    for path in paths:
        if len(found) == number:
            break
        with contextlib.closing(rows(join(root, path))) as some:
            found += [(path, i, row) for i, row in enumerate(itertools.islice(some, number - len(found)))]
    return found


def documents(
    group: Group,
    types: dict[str, Type],
    absent: set[str],
    examples: list[tuple[str, int, dict[str, Any]]],
    places: list[PathField],
) -> RecordType:
    """Return the record type of documents."""
    described, refused = columns(types, absent)
    order = dict.fromkeys((*DOCUMENT, *described))
    fields, more = fields_of([(k, described[k]) for k in order if k in described], descriptions=DOCUMENT)
    return RecordType(
        name="documents",
        description="One record a document.",
        group=group.name,
        key=["source", "id"] if {"source", "id"} <= {field.name for field in fields} else [],
        places=apart(places, fields),
        fields=fields,
        undescribed=[*refused, *more],
        examples=examples,
    )


def columns(types: dict[str, Type], absent: set[str]) -> tuple[dict[str, Type], list[Undescribed]]:
    """Return the columns that pandas reads as they are, and the others."""
    described, refused = {}, []
    for name, type_ in types.items():
        if name in absent:
            refused.append(Undescribed(name, "some files have no such key in any row that was looked at"))
        elif DATES.fullmatch(name) and bare(type_).kind in SCALARS:
            refused.append(Undescribed(name, "Croissant's reader makes dates of columns of this name"))
        else:
            described[name] = type_
    return described, refused


def changed_notes(paths: Sequence[str], looked: Sequence[Looked], record: RecordType | None) -> list[str]:
    """Return notes about values at top level that readers change; they leave what lies deeper as it is."""
    kinds = {field.column: field.type.kind for field in record.fields if not field.keys} if record else {}
    texts = [column for column, kind in kinds.items() if kind in TEXTS and kind != "digits"]
    numbers = [column for column, kind in kinds.items() if kind in (*INTEGERS, "float")]
    found = list(zip(paths, looked, strict=True))
    changed = "every `{}` is a number; Croissant's reader changes such texts (0001 becomes 1)"
    rounded = "`{}` has integers beyond 2^53, and rows without one; Croissant's reader rounds such integers"
    notes = [_note([path for path, each in found if name in each.numeric], changed.format(name)) for name in texts]
    notes += [_note([path for path, each in found if name in each.rounded], rounded.format(name)) for name in numbers]
    return [note for note in notes if note]


def unreadable_notes(paths: Sequence[str], looked: Sequence[Looked]) -> list[str]:
    """Return a note about values because of which readers take nothing of a file."""
    large = [f"{path}:{each.too_large}" for path, each in zip(paths, looked, strict=True) if each.too_large]
    note = _note(large, "an integer of 2^64 or more; Croissant's reader cannot read the file")
    return [note] if note else []


def _note(places: Sequence[str], text: str) -> str:
    more = f" (and in {len(places) - 1:,} more files)" if places[1:] else ""
    return f"{places[0]}: {text}{more}" if places else ""


def crawled(looked: Sequence[Looked]) -> list[Crawled]:
    """Return the documents of WARC records in all files, by source, sorted."""
    sources: dict[str, FromWarc] = {}
    for each in looked:
        for source, found in each.warc.items():
            sources.setdefault(source, FromWarc()).add(found)
    return [
        Crawled(source, found.number, list(found.headers) if len(found.headers) <= KEYS else [], found.dates)
        for source, found in sorted(sources.items())
    ]


def origins(looked: Sequence[Looked], *, whole: bool) -> dict[str, Any]:
    """Return what the rows of documents tell of where they come from, as facts; whole: whether these are all."""
    return {
        "crawled": crawled(looked),
        "crawls": sorted({crawl for each in looked for crawl in each.crawls}),
        "rows": sum(each.number for each in looked) if whole else None,
    }
