"""Checks of the nodes of a Croissant document: what must be in them, and what they refer to."""

import re
from collections import Counter
from collections.abc import Iterator

from toolkit.inspect.describe.about import listed
from toolkit.inspect.describe.check.nodes import (
    FieldNode,
    Node,
    all_fields,
    fields_of,
    is_ours,
    kind_of,
    nodes,
    one_group,
)
from toolkit.inspect.describe.check.values import fits, steps
from toolkit.inspect.describe.croissant.jsonld import FROM_PATHS

_ATOMIC = frozenset(
    [f"sc:{name}" for name in ("Text", "URL", "Boolean", "Integer", "Float", "Date", "DateTime", "Time")]
    + [f"sc:{name}Object" for name in ("Image", "Audio", "Video")]
    + ["sc:GeoCoordinates", "sc:GeoShape", "cr:BoundingBox", "cr:SegmentationMask"]
    + [f"cr:{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)]
    + [f"cr:Float{bits}" for bits in (16, 32, 64)]
)
"""Types of values; readers take others (`cr:Label`) beside one of these only."""

_KINDS = {"distribution": ("FileObject", "FileSet"), "recordSet": ("RecordSet",)}
_FILE_PROPERTIES = (*FROM_PATHS, "content", "lines", "lineNumbers")
_EXTRACTS = ("column", "fileProperty", "jsonPath", "jsonQuery")
_TRANSFORMS = frozenset(
    ["jsonPath", "jsonQuery", "regex", "replace", "separator", "delimiter", "format", "readLines", "unArchive"]
)


def faults(document: Node) -> Iterator[str]:
    """Yield what is wrong with the files, record sets and fields that a document describes."""
    for key, kinds in _KINDS.items():
        for node in listed(document.get(key)):
            if not isinstance(node, dict) or kind_of(node) not in kinds:
                got = node.get("@type") if isinstance(node, dict) else node
                yield f"expected {' or '.join(f'cr:{kind}' for kind in kinds)} in {key}, got {got!r:.80}"
    files, records = nodes(document, "distribution"), nodes(document, "recordSet")
    fields = {each.id for each in all_fields(document)}
    ids = [*(str(node.get("@id")) for node in (*files, *records)), *(each.id for each in all_fields(document))]
    for id_, count in Counter(ids).items():
        if count > 1:
            yield f"expected each @id once, got {id_!r} {count} times"
        if re.search(r"\s", id_) or id_ == "None":
            yield f"expected @id without white space, got {id_!r}"
    sources, ours = {str(node.get("@id")) for node in files}, is_ours(document)
    for record in records:
        yield from _record_faults(record)
        has_rows = bool(listed(record.get("data")))
        for each in fields_of(record):
            yield from _field_faults(each, fields)
            if not each.node.get("subField") and not has_rows and "value" not in each.node:
                yield from _source_faults(each, sources, fields, ours=ours)


def _record_faults(record: Node) -> Iterator[str]:
    name, fields = record.get("@id"), list(fields_of(record))
    ids = {each.id for each in fields}
    if not fields:
        yield f"{name}: expected fields, got none"
    for key in nodes(record, "key"):
        if str(key.get("@id")) not in ids:
            yield f"{name}: expected a key among its fields, got {key.get('@id')!r}"
    yield from _data_faults(record, [each for each in fields if not each.parent])
    yield from _example_faults(record)


def _data_faults(record: Node, fields: list[FieldNode]) -> Iterator[str]:
    """Yield what is wrong with the rows that stand in the document."""
    types = {str(each.node.get(key)): each.types[:1] for each in fields for key in ("@id", "name")}
    allowed = [{str(each.node.get(key)) for each in fields} for key in ("@id", "name")]
    for row in listed(record.get("data")):
        if not isinstance(row, dict) or set(row) not in allowed:
            yield f"{record.get('@id')}: expected data with exactly its fields, got {row!r:.200}"
            return
        for id_, value in row.items():
            if types[id_] and value is not None and not fits(value, types[id_][0]):
                yield f"{id_}: expected {types[id_][0]}, got {value!r:.80}"


def _example_faults(record: Node) -> Iterator[str]:
    """Yield what the examples have that is no field of the record set."""
    parts = {
        str(each.get(key)): {str(part.get(k)) for part in nodes(each, "subField") for k in ("@id", "name")}
        for each in nodes(record, "field")
        for key in ("@id", "name")
    }
    for row in listed(record.get("examples")):
        if not isinstance(row, dict):
            yield f"{record.get('@id')}: expected examples that are records, got {row!r:.80}"
            continue
        for key, value in row.items():
            if key not in parts:
                yield f"{record.get('@id')}: expected examples of its fields, got {key!r}"
            elif parts[key]:
                others = (part for each in listed(value) if isinstance(each, dict) for part in each.keys() - parts[key])
                yield from (
                    f"{record.get('@id')}: expected examples of its fields, got {part!r} in {key!r}" for part in others
                )


def _field_faults(each: FieldNode, fields: set[str]) -> Iterator[str]:
    if kind_of(each.node) != "Field":
        yield f"{each.id}: expected @type cr:Field, got {each.node.get('@type')!r}"
    types = each.types
    if not each.node.get("subField"):
        if not types:
            yield f"{each.id}: expected a dataType, got none"
        elif all(re.match(r"(sc|cr):", type_) for type_ in types) and not _ATOMIC & set(types):
            yield f"{each.id}: expected a dataType such as sc:Text, got {' and '.join(types)}"
    for reference in listed(each.node.get("references")):
        target = reference.get("field", reference) if isinstance(reference, dict) else reference
        id_ = target.get("@id") if isinstance(target, dict) else target
        if str(id_) not in fields or id_ == each.id:
            yield f"{each.id}: expected references to a field, got {id_!r}"


def _source_faults(each: FieldNode, sources: set[str], fields: set[str], *, ours: bool) -> Iterator[str]:
    """Yield what is wrong with where the values of a field come from."""
    source, extract = each.source, each.extract
    if isinstance(other := source.get("field"), dict):
        if str(other.get("@id")) not in fields:
            yield f"{each.id}: expected a source among the fields, got {other!r}"
        return
    if not isinstance(source.get("extract"), dict):
        yield f"{each.id}: expected a source with `extract`, got {each.node.get('source')!r:.200}"
        return
    if not any(name in extract for name in _EXTRACTS):
        yield f"{each.id}: expected {', '.join(_EXTRACTS[:3])} in `extract`, got {', '.join(extract) or 'nothing'}"
    place = source.get("fileSet") or source.get("fileObject") or source.get("distribution")
    if not isinstance(place, dict) or str(place.get("@id")) not in sources:
        yield f"{each.id}: expected a source among the distribution, got {place!r:.200}"
    if "fileProperty" in extract and extract["fileProperty"] not in _FILE_PROPERTIES:
        yield f"{each.id}: expected a file property ({', '.join(_FILE_PROPERTIES)}), got {extract['fileProperty']!r}"
    yield from _transform_faults(each, ours=ours)


def _transform_faults(each: FieldNode, *, ours: bool) -> Iterator[str]:
    """Yield what is wrong with what is done to the values of a field."""
    for transform in listed(each.source.get("transform")):
        if not isinstance(transform, dict) or not _TRANSFORMS & transform.keys():
            yield f"{each.id}: expected jsonPath, regex … in `transform`, got {transform!r:.80}"
    for pattern in each.transforms("regex"):
        if one_group(pattern) is None:
            yield f"{each.id}: expected a regular expression of one group, got {pattern!r}"
    for path in each.transforms("jsonPath"):
        if steps(path) is None and not _may_be_path(path):
            yield f"{each.id}: expected a JSON path, got {path!r}"
        elif steps(path) is None and ours:
            yield f"{each.id}: expected a JSON path of keys and indexes, got {path!r}"


def _may_be_path(text: str) -> bool:
    """Return whether a text may be a JSON path, of another form than those that we write."""
    even = text.count("[") == text.count("]") and text.count("(") == text.count(")")
    return even and not re.search(r"\.(\[|$)", text)
