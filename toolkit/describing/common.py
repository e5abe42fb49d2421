"""What describing a dataset and describing an output have in common."""

import dataclasses
import fnmatch
import os
import re
from collections.abc import Callable, Iterable, Sequence

from toolkit import schema
from toolkit.describing.facts import Field, Group, PathField, RecordType, Undescribed
from toolkit.describing.fields import SCALARS, bare, fields_of
from toolkit.describing.looking import DATES, Looked, Work
from toolkit.paths import strip_suffix
from toolkit.schema import Type

Looks = Callable[[list[Work]], list[Looked]]
"""Runs looks, in the order given."""

MEDIA_TYPES = {".jsonl": "application/jsonlines", ".json": "application/jsonlines", ".txt": "text/plain"}
MEDIA_TYPES |= {".parquet": "application/x-parquet", ".zst": "application/zstd"}
"""By the last suffix, that of gzip taken off: readers find gzip by itself."""

_DOCUMENT = {
    "id": "unique within its source",
    "source": "where the document comes from",
    "text": "of the document",
    "added": "when the document was added; for Common Crawl when the page was fetched",
    "created": "when the document was made",
    "metadata": "of the source",
}


_ANY_TYPE = "application/octet-stream"


def media_type(path: str) -> str:
    return MEDIA_TYPES.get(os.path.splitext(path.removesuffix(".gz"))[1], _ANY_TYPE)


def matches(path: str, pattern: str) -> bool:
    """As mlcroissant matches: ``*`` spans folders."""
    return fnmatch.fnmatchcase(path, pattern)


def matching(paths: Iterable[str], globs: Iterable[str]) -> list[str]:
    """The paths that some glob matches."""
    listed = list(globs)
    plain = {glob for glob in listed if not re.search(r"[*?\[]", glob)}
    others = [glob for glob in listed if glob not in plain]
    return [path for path in paths if path in plain or any(matches(path, glob) for glob in others)]


def group_of(name: str, description: str, paths: Sequence[str], globs: Iterable[str], there: Sequence[str]) -> Group:
    """Files as globs, if these match no others of those that are there; else each by its path."""
    includes = [glob for glob in globs if any(matches(path, glob) for path in paths)]
    if set(matching(there, includes)) != set(paths):
        includes = [re.sub(r"([*?\[])", r"[\1]", path) for path in paths]
    types = {media_type(path) for path in paths}
    return Group(name, description, types.pop() if len(types) == 1 else _ANY_TYPE, includes, list(paths))


def suffix_of(paths: Sequence[str], suffixes: Sequence[str]) -> str:
    """The suffix that all paths have; empty if there are several."""
    found = {path[len(strip_suffix(path, suffixes)) :] for path in paths}
    return found.pop() if len(found) == 1 else ""


def apart(places: Iterable[PathField], fields: Iterable[Field]) -> list[PathField]:
    """The fields that say where a row lies, under other names where a field of the rows has theirs."""
    taken = {field.name for field in fields}
    return [dataclasses.replace(p, name=f"path_{p.name}") if p.name in taken else p for p in places]


def not_read(what: str) -> str:
    return f"{what}: no record set, because Croissant's reader does not take such files; they are listed"


def documents(
    group: Group,
    types: dict[str, Type],
    absent: set[str],
    examples: Sequence[dict[str, object]],
    places: list[PathField],
) -> RecordType:
    """The record type of documents."""
    described, refused = columns(types, absent)
    order = dict.fromkeys((*_DOCUMENT, *described))
    fields, more = fields_of([(k, described[k]) for k in order if k in described], descriptions=_DOCUMENT)
    return RecordType(
        name="documents",
        description="One record a document.",
        group=group.name,
        key=["source", "id"] if {"source", "id"} <= described.keys() else [],
        places=apart(places, fields),
        fields=fields,
        undescribed=[*refused, *more],
        examples=[(group.paths[0], i, dict(row)) for i, row in enumerate(examples)],
    )


def columns(types: dict[str, Type], absent: set[str]) -> tuple[dict[str, Type], list[Undescribed]]:
    """The columns that pandas reads as they are, and the others."""
    described, refused = {}, []
    for name, type_ in types.items():
        if name in absent:
            refused.append(Undescribed(name, "some files have no such key in any row that was looked at"))
        elif DATES.fullmatch(name) and bare(type_).kind in SCALARS:
            refused.append(Undescribed(name, "Croissant's reader makes dates of columns of this name"))
        else:
            described[name] = type_
    return described, refused


def numeric_notes(paths: Sequence[str], looked: Sequence[Looked], columns: Sequence[str]) -> list[str]:
    return [
        f"{path}: every `{name}` is a number; Croissant's reader changes such texts (0001 becomes 1)"
        for path, found in zip(paths, looked, strict=True)
        for name in found.numeric
        if name in columns
    ]


def headers(types: dict[str, Type]) -> list[str]:
    found = bare(types.get("warc_headers") or _member(types.get("metadata"), "warc_headers"))
    return [name for name, _ in found.fields]


def _member(type_: Type | None, name: str) -> Type:
    return (bare(type_).get(name) if type_ else None) or schema.NEVER


def dates(looked: Sequence[Looked]) -> tuple[str, str] | None:
    found = [each.dates for each in looked if each.dates]
    if not found or not all(each.whole for each in looked):
        return None
    return min(first for first, _ in found), max(last for _, last in found)
