"""The structure of a Croissant file: what must be there, and what refers to what."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from toolkit.describing import jsonld
from toolkit.describing.about import listed

REQUIRED = ("name", "description", "license", "url", "creator", "datePublished", "distribution")
"""Properties of a dataset, by the specification."""


def check_structure(path: str, document: dict[str, Any]) -> list[str]:
    """The findings about the document itself."""
    return [f"{path}: {finding}" for finding in _structure(document)]


def _structure(document: dict[str, Any]) -> Iterator[str]:
    if not isinstance(document.get("@context"), dict):
        yield "expected an object as @context, got none"
    if document.get("@type") not in ("sc:Dataset", "Dataset", "schema.org/Dataset"):
        yield f"expected @type sc:Dataset, got {document.get('@type')!r}"
    versions = [f"{jsonld.BASE}1.0", f"{jsonld.BASE}1.1"]
    if not set(map(str, listed(document.get("conformsTo")))) & set(versions):
        yield f"expected conformsTo {' or '.join(versions)}, got {document.get('conformsTo')!r}"
    yield from (f"expected {name}, which Croissant requires, got none" for name in REQUIRED if not document.get(name))
    files = nodes(document, "distribution")
    counts = Counter(str(node.get("@id")) for node in _all_nodes(document))
    for id_, count in counts.items():
        if count > 1:
            yield f"expected each @id once, got {id_!r} {count} times"
        if re.search(r"\s", id_) or id_ == "None":
            yield f"expected @id without white space, got {id_!r}"
    known = {str(node.get("@id")) for node in files}
    for record in nodes(document, "recordSet"):
        yield from _record_structure(record, known)


def nodes(node: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """The objects at a key that may have one or several."""
    return [each for each in listed(node.get(key)) if isinstance(each, dict)]


def _all_nodes(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from nodes(document, "distribution")
    for record in nodes(document, "recordSet"):
        yield record
        yield from (found for found, _ in fields_of(record))


def fields_of(record: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """The fields of a record set, each with its parent."""
    for each in nodes(record, "field"):
        yield each, None
        yield from ((inner, each) for inner in nodes(each, "subField"))


def _record_structure(record: dict[str, Any], known: set[str]) -> Iterator[str]:
    name = record.get("@id")
    fields = list(fields_of(record))
    ids = {str(each.get("@id")) for each, _ in fields}
    if not fields:
        yield f"{name}: expected fields, got none"
    for key in nodes(record, "key"):
        if key.get("@id") not in ids:
            yield f"{name}: expected a key among its fields, got {key.get('@id')!r}"
    rows = listed(record.get("data"))
    for row in rows:
        if not isinstance(row, dict) or set(row) != {str(each.get("@id")) for each, parent in fields if not parent}:
            yield f"{name}: expected data with exactly its fields, got {row!r}"
            break
    for each, _ in fields:
        source = each.get("source")
        if each.get("subField"):
            continue
        if not each.get("dataType"):
            yield f"{each.get('@id')}: expected a dataType, got none"
        if rows:
            continue
        if not isinstance(source, dict) or not isinstance(source.get("extract"), dict):
            yield f"{each.get('@id')}: expected a source with `extract`, got {source!r}"
            continue
        place = source.get("fileSet") or source.get("fileObject")
        if not isinstance(place, dict) or place.get("@id") not in known:
            yield f"{each.get('@id')}: expected a source among the distribution, got {place!r}"
        for pattern in transforms(source, "regex"):
            if not _compiles(pattern):
                yield f"{each.get('@id')}: expected a regular expression of one group, got {pattern!r}"


def transforms(source: dict[str, Any], kind: str) -> list[str]:
    """What a source does to its values, of one kind, in order."""
    return [str(each[kind]) for each in nodes(source, "transform") if kind in each]


def _compiles(pattern: str) -> bool:
    try:
        return re.compile(pattern).groups == 1
    except re.error:
        return False
