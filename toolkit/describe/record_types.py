"""Files and their rows in groups: globs, media types, the record type of documents, and notes about values."""

import contextlib
import itertools
import os
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from glob import escape
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from toolkit.config.scale import Scale
from toolkit.data import schema
from toolkit.data.dataset import Dataset
from toolkit.data.schema import Type
from toolkit.describe.fields import INTEGERS, SCALARS, TEXTS, bare, by_place, fields_of, merged, sentence
from toolkit.describe.model import Crawled, ExampleRow, FileGroup, PathField, RecordField, RecordType, Undescribed
from toolkit.describe.scan import FileScan, ScanJob
from toolkit.storage.paths import join, strip_suffix
from toolkit.storage.reading import Lines

MEDIA_TYPES = {".jsonl": "application/jsonlines", ".json": "application/jsonlines", ".txt": "text/plain"}
MEDIA_TYPES |= {".parquet": "application/x-parquet", ".zst": "application/zstd", ".zstd": "application/zstd"}
"""By the last suffix, that of gzip taken off: readers find gzip by itself."""

_ANY_TYPE = "application/octet-stream"


def media_type(path: str) -> str:
    suffix = os.path.splitext(path.removesuffix(".gz"))[1]
    return MEDIA_TYPES.get(suffix or (".jsonl" if path.endswith(".gz") else ""), _ANY_TYPE)


def matching(paths: Iterable[str], globs: Iterable[str]) -> list[str]:
    """Return the paths with a matching glob, as in mlcroissant: ``*`` spans folders."""
    listed = list(globs)
    plain = {glob for glob in listed if not re.search(r"[*?\[]", glob)}
    patterns = [glob for glob in listed if glob not in plain]
    return [path for path in paths if path in plain or any(fnmatchcase(path, glob) for glob in patterns)]


def group_of(
    name: str, description: str, paths: Sequence[str], globs: Iterable[str], present: Sequence[str]
) -> FileGroup:
    """Return files as globs for exactly these; else each by its path."""
    includes = [glob for glob in globs if any(fnmatchcase(path, glob) for path in paths)]
    if set(matching(present, includes)) != set(paths):
        includes = [escape(path) for path in paths]
    types = {media_type(path) for path in paths}
    return FileGroup(name, description, types.pop() if len(types) == 1 else _ANY_TYPE, includes, list(paths))


def suffix_of(paths: Sequence[str], suffixes: Sequence[str]) -> str:
    """Return the common suffix of all paths; empty for several."""
    results = suffixes_of(paths, suffixes)
    return results[0] if len(results) == 1 else ""


def suffixes_of(paths: Sequence[str], suffixes: Sequence[str]) -> list[str]:
    """Return the suffixes of paths, in their order, out of a choice."""
    return list(dict.fromkeys(path[len(strip_suffix(path, suffixes)) :] for path in paths))


def not_read(subject: str, paths: Sequence[str]) -> str:
    """Return the reason for a missing record set, with an unread file."""
    unread = [path for path in paths if media_type(path) != MEDIA_TYPES[".jsonl"]]
    more = f" and {len(unread) - 1:,} more" if unread[1:] else ""
    return (
        f"{subject}: no record set, because Croissant's reader does not take files such as {unread[0]}{more}; they are "
        "listed"
    )


def odd_paths_note(paths: Iterable[str]) -> list[str]:
    """Return a note on paths with characters outside URLs: readers take ``contentUrl`` for a path as it is."""
    odd = [path for path in paths if quote(path, safe="/~!$&'()*+,;=:@") != path]
    more = f" (and {len(odd) - 1:,} more)" if odd[1:] else ""
    text = "has signs that a URL may not have; Croissant's reader wants it as it is, other programs may not take it"
    return [f"{odd[0]}: its path {text}{more}"] if odd else []


def merge_types(scans: Sequence[FileScan]) -> tuple[dict[str, Type], set[str]]:
    """Return the types over all files, and keys missing from some file."""
    types: dict[str, Type] = {}
    files = [scan for scan in scans if scan.types]
    for scan in files:
        for key, type_ in scan.types.items():
            types[key] = merged(types[key], type_) if key in types else type_
    absent = {key for key in types if any(key not in scan.types for scan in files)}
    return types, absent


class DescribeRequest(NamedTuple):
    """The request for a description, and how files are looked at.

    Attributes:
        looks: Runs looks at files, in the order given.
        aligns: Checks the attribute files of a set beside the documents of shards.
        first: Rows of each file that are looked at; None for all.
        examples: Rows that are kept.
        max_bytes: Limit of a document.
    """

    looks: Callable[[list[ScanJob]], list[FileScan]]
    aligns: Callable[[Dataset, str, Sequence[str]], object]
    first: int | None
    examples: int
    max_bytes: int


DATES = re.compile(r".+(_at|_time)|modified|date|timestamp.*", re.IGNORECASE)
"""Names of columns that pandas makes dates of."""

DOCUMENT = {
    "id": "Identifies the document within its source.",
    "source": "Where the document comes from.",
    "text": "The text of the document.",
    "added": "When the document was gathered; for Common Crawl when the page was fetched.",
    "created": "Best guess of when the document was made; of a WARC file the date that the server sent.",
    "metadata": "What the source says of the document.",
}


def apart(places: Iterable[PathField], fields: Iterable[RecordField]) -> list[PathField]:
    """Return the fields of places. A field gets another name if the rows have one of that name."""
    names = {field.name for field in fields}
    return [msgspec.structs.replace(p, name=f"path_{p.name}") if p.name in names else p for p in places]


Rows = Callable[[str], Generator[dict[str, Any], None, None]]
"""Reads a file row by row."""


def json_rows(max_bytes: int) -> Rows:
    """Return a reader of files with a JSON object a line."""

    def rows(path: str) -> Generator[dict[str, Any], None, None]:
        with Lines(path, max_bytes) as lines:
            yield from (msgspec.json.decode(line) for line in lines if line.strip())

    return rows


def first_rows(root: str, paths: Iterable[str], number: int, rows: Rows) -> list[ExampleRow]:
    """Return the first rows of files in order, with path and number."""
    results: list[ExampleRow] = []
    for path in paths:
        if len(results) == number:
            break
        with contextlib.closing(rows(join(root, path))) as some:
            results += [ExampleRow(path, i, row) for i, row in enumerate(itertools.islice(some, number - len(results)))]
    return results


def documents(
    group: FileGroup, types: dict[str, Type], absent: set[str], examples: list[ExampleRow], places: list[PathField]
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
    """Return the columns unchanged by pandas, and the others."""
    described, refused = {}, []
    for name, type_ in types.items():
        if name in absent:
            refused.append(Undescribed(name, "some files have no such key in any row that was looked at"))
        elif DATES.fullmatch(name) and bare(type_).kind in SCALARS:
            refused.append(Undescribed(name, "Croissant's reader makes dates of columns of this name"))
        else:
            described[name] = type_
    return described, refused


def changed_notes(paths: Sequence[str], scans: Sequence[FileScan], record: RecordType | None) -> list[str]:
    """Return notes on top-level values changed by readers. Deeper ones stay."""
    kinds = {field.column: field.type.kind for field in record.fields if not field.keys} if record else {}
    texts = [column for column, kind in kinds.items() if kind in TEXTS and kind != "digits"]
    numbers = [column for column, kind in kinds.items() if kind in (*INTEGERS, "float")]
    results = list(zip(paths, scans, strict=True))
    changed = "every `{}` is a number; Croissant's reader changes such texts (0001 becomes 1)"
    rounded = "`{}` has integers beyond 2^53, and rows without one; Croissant's reader rounds such integers"
    notes = [_note([path for path, item in results if name in item.numeric], changed.format(name)) for name in texts]
    notes += [_note([path for path, item in results if name in item.rounded], rounded.format(name)) for name in numbers]
    return [note for note in notes if note]


def notes_of(paths: Sequence[str], scans: Sequence[FileScan], record: RecordType | None) -> list[str]:
    """Return notes on values changed by readers, and on unreadable files."""
    large = [f"{path}:{item.too_large}" for path, item in zip(paths, scans, strict=True) if item.too_large]
    note = _note(large, "an integer of 2^64 or more; Croissant's reader cannot read the file")
    return [*changed_notes(paths, scans, record), *([note] if note else [])]


def on_scales(record: RecordType, scales: Mapping[str, tuple[str, Scale]]) -> RecordType:
    """Return a record type with scales: each attribute names the record set of its values.

    It is no `references`: mlcroissant joins by the whole column `attributes`, and loses all its values.

    Args:
        record: Record type with the attributes in the column ``attributes``.
        scales: Record set and scale by attribute; those without single values are left out.
    """
    fields, used = [], dict[str, Scale]()

    def with_scale(key: str, about: str, place: tuple[str, ...]) -> str:
        """Return the description of an attribute with its scale; unchanged without one."""
        name, scale = scales.get(key, ("", None))
        if scale is None or not scale.grades:
            return about
        used[name] = scale
        return f"{sentence(about) or by_place('attributes', *place)} On {scale} (`{name}`)."

    for field in record.fields:
        if field.column == "attributes" and field.keys:
            about = with_scale(field.keys[0], field.description, field.keys)
            labels: tuple[str, ...] = ("", "score") if about != field.description else ()
            fields.append(msgspec.structs.replace(field, description=about, labels=labels))
        elif field.column == "attributes" and field.type.kind == "object":
            parts = [(key, type_, with_scale(key, type_.description, (key,))) for key, type_ in field.type.fields]
            labels = tuple(key for key, type_, about in parts if about != type_.description)
            inner = tuple((key, schema.about(type_, about) if about else type_) for key, type_, about in parts)
            type_of = Type("object", fields=inner, description=field.type.description)
            fields.append(msgspec.structs.replace(field, type=type_of, labels=labels))
        else:
            fields.append(field)
    return msgspec.structs.replace(record, fields=fields, scales=used)


def _note(places: Sequence[str], text: str) -> str:
    more = f" (and in {len(places) - 1:,} more files)" if places[1:] else ""
    return f"{places[0]}: {text}{more}" if places else ""


def origins(scans: Sequence[FileScan], *, whole: bool) -> dict[str, Any]:
    """Return the origins of documents by their rows, as facts. `whole` is true for all rows."""
    sources: dict[str, Crawled] = {}
    for item in scans:
        for source, result in item.warc.items():
            sources.setdefault(source, Crawled()).add(result)
    return {
        "crawled": dict(sorted(sources.items())),
        "crawls": sorted({crawl for item in scans for crawl in item.crawls}),
        "rows": sum(item.number for item in scans) if whole else None,
    }
