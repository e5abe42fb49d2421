"""The structure of a Croissant file: what must be there, and what refers to what."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from toolkit.inspect.describe.about import listed
from toolkit.inspect.describe.check import properties, terms
from toolkit.inspect.describe.check.properties import kind_of
from toolkit.inspect.describe.check.values import fits, steps
from toolkit.inspect.describe.croissant import jsonld

_ATOMIC = frozenset(
    [f"sc:{name}" for name in ("Text", "URL", "Boolean", "Integer", "Float", "Date", "DateTime", "Time")]
    + [f"sc:{name}Object" for name in ("Image", "Audio", "Video")]
    + ["sc:GeoCoordinates", "sc:GeoShape", "cr:BoundingBox", "cr:SegmentationMask"]
    + [f"cr:{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)]
    + [f"cr:Float{bits}" for bits in (16, 32, 64)]
)
"""Types of values; readers take others (`cr:Label`) beside one of these only."""

_PROPERTIES = ("fullpath", "filename", "content", "lines", "lineNumbers")


def check_structure(path: str, document: dict[str, Any]) -> list[str]:
    """The findings about the document itself."""
    return [f"{path}: {finding}" for finding in _structure(document)]


def _structure(document: dict[str, Any]) -> Iterator[str]:
    yield from terms.faults(document)
    if document.get("@type") not in ("sc:Dataset", "Dataset", "schema.org/Dataset"):
        yield f"expected @type sc:Dataset, got {document.get('@type')!r}"
    yield from _conforms(listed(document.get("conformsTo")))
    yield from properties.faults(document)
    for key, kinds in (("distribution", ("FileObject", "FileSet")), ("recordSet", ("RecordSet",))):
        for node in listed(document.get(key)):
            if not isinstance(node, dict) or kind_of(node) not in kinds:
                got = node.get("@type") if isinstance(node, dict) else node
                yield f"expected {' or '.join(f'cr:{kind}' for kind in kinds)} in {key}, got {got!r:.80}"
    counts = Counter(str(node.get("@id")) for node in _all_nodes(document))
    for id_, count in counts.items():
        if count > 1:
            yield f"expected each @id once, got {id_!r} {count} times"
        if re.search(r"\s", id_) or id_ == "None":
            yield f"expected @id without white space, got {id_!r}"
    files = {str(node.get("@id")) for node in nodes(document, "distribution")}
    records = nodes(document, "recordSet")
    known = {str(each.get("@id")) for record in records for each, _ in fields_of(record)}
    for record in records:
        yield from _record_structure(record, files, known)


def _conforms(given: list[Any]) -> Iterator[str]:
    versions = [f"{jsonld.BASE}1.0", f"{jsonld.BASE}1.1"]
    named = [each for each in map(str, given) if each in versions]
    others = [each for each in map(str, given) if re.fullmatch(rf"{jsonld.BASE}\d.*", each) and each not in versions]
    if len(named) != 1 or others:
        yield f"expected conformsTo {' or '.join(versions)}, got {given[0] if len(given) == 1 else given!r}"


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


def _record_structure(record: dict[str, Any], files: set[str], known: set[str]) -> Iterator[str]:
    name = record.get("@id")
    fields = list(fields_of(record))
    ids = {str(each.get("@id")) for each, _ in fields}
    if not fields:
        yield f"{name}: expected fields, got none"
    for key in nodes(record, "key"):
        if key.get("@id") not in ids:
            yield f"{name}: expected a key among its fields, got {key.get('@id')!r}"
    rows = listed(record.get("data"))
    yield from _data(record, rows)
    yield from _examples(record)
    for each, _ in fields:
        id_ = each.get("@id")
        if kind_of(each) != "Field":
            yield f"{id_}: expected @type cr:Field, got {each.get('@type')!r}"
        yield from _type(each)
        yield from _references(each, known)
        if not each.get("subField") and not rows and "value" not in each:
            yield from _source(each, files, known)


def _data(record: dict[str, Any], rows: list[Any]) -> Iterator[str]:
    """Rows that stand in the file."""
    fields = nodes(record, "field")
    types = {str(each.get(key)): _types(each)[:1] for each in fields for key in ("@id", "name")}
    for row in rows:
        if not isinstance(row, dict) or not any(set(row) == {str(f.get(k)) for f in fields} for k in ("@id", "name")):
            yield f"{record.get('@id')}: expected data with exactly its fields, got {row!r:.200}"
            return
        for id_, value in row.items():
            if types[id_] and value is not None and not fits(value, types[id_][0]):
                yield f"{id_}: expected {types[id_][0]}, got {value!r:.80}"


def _examples(record: dict[str, Any]) -> Iterator[str]:
    """Rows that are shown: with fields of the record set only."""
    inner = {
        str(each.get(key)): {str(sub.get(k)) for sub in nodes(each, "subField") for k in ("@id", "name")}
        for each in nodes(record, "field")
        for key in ("@id", "name")
    }
    for row in listed(record.get("examples")):
        if not isinstance(row, dict):
            yield f"{record.get('@id')}: expected examples that are records, got {row!r:.80}"
            continue
        for key, value in row.items():
            if key not in inner:
                yield f"{record.get('@id')}: expected examples of its fields, got {key!r}"
                continue
            for each in listed(value):
                for sub in each if isinstance(each, dict) and inner[key] else ():
                    if sub not in inner[key]:
                        yield f"{record.get('@id')}: expected examples of its fields, got {sub!r} in {key!r}"


def _types(each: dict[str, Any]) -> list[str]:
    return [str(type_) for type_ in listed(each.get("dataType"))]


def _type(each: dict[str, Any]) -> Iterator[str]:
    types = _types(each)
    if not types and not each.get("subField"):
        yield f"{each.get('@id')}: expected a dataType, got none"
    ours = [type_ for type_ in types if re.match(r"(sc|cr):", type_)]
    if types and not each.get("subField") and len(ours) == len(types) and not _ATOMIC & set(types):
        yield f"{each.get('@id')}: expected a dataType such as sc:Text, got {' and '.join(types)}"


def _references(each: dict[str, Any], known: set[str]) -> Iterator[str]:
    """What a field refers to; the specification's short form names the field at once."""
    for found in listed(each.get("references")):
        target = found.get("field", found) if isinstance(found, dict) else found
        id_ = target.get("@id") if isinstance(target, dict) else target
        if id_ not in known or id_ == each.get("@id"):
            yield f"{each.get('@id')}: expected references to a field, got {id_!r}"


def _source(each: dict[str, Any], files: set[str], known: set[str]) -> Iterator[str]:
    id_, source = each.get("@id"), each.get("source")
    if isinstance(source, dict) and isinstance(field := source.get("field"), dict):
        if field.get("@id") not in known:
            yield f"{id_}: expected a source among the fields, got {field!r}"
        return
    extract = source.get("extract") if isinstance(source, dict) else None
    if not isinstance(source, dict) or not isinstance(extract, dict):
        yield f"{id_}: expected a source with `extract`, got {source!r:.200}"
        return
    yield from terms.source_faults(id_, source)
    place = source.get("fileSet") or source.get("fileObject") or source.get("distribution")
    if not isinstance(place, dict) or place.get("@id") not in files:
        yield f"{id_}: expected a source among the distribution, got {place!r:.200}"
    if "fileProperty" in extract and extract["fileProperty"] not in _PROPERTIES:
        yield f"{id_}: expected a file property ({', '.join(_PROPERTIES)}), got {extract['fileProperty']!r}"
    for pattern in transforms(source, "regex"):
        if compiled(pattern) is None:
            yield f"{id_}: expected a regular expression of one group, got {pattern!r}"
    for path in transforms(source, "jsonPath"):
        if steps(path) is None and not _is_path(path):
            yield f"{id_}: expected a JSON path, got {path!r}"


def _is_path(text: str) -> bool:
    """Whether a JSON path of another form than ours may be one."""
    return (
        text.count("[") == text.count("]") and text.count("(") == text.count(")") and not re.search(r"\.(\[|$)", text)
    )


def transforms(source: dict[str, Any], kind: str) -> list[str]:
    """What a source does to its values, of one kind, in order."""
    return [str(each[kind]) for each in nodes(source, "transform") if kind in each]


def compiled(pattern: str) -> re.Pattern[str] | None:
    """A regular expression of one group; None if it is none."""
    try:
        found = re.compile(pattern)
    except re.error:
        return None
    return found if found.groups == 1 else None
