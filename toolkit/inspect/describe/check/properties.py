"""Checks of the terms of a Croissant document: its context, the properties of the dataset, the names of all keys.

Source: Croissant 1.0 and 1.1, "Dataset-level information" and appendix "JSON-LD context"; Croissant RAI Vocabulary 1.0;
schema.org.
"""

import datetime as dt
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from toolkit.errors import did_you_mean
from toolkit.inspect.describe.about import Rai, listed
from toolkit.inspect.describe.check.nodes import (
    FieldNode,
    Node,
    all_fields,
    fields_of,
    fits,
    is_ours,
    kind_of,
    nodes,
    one_group,
    steps,
)
from toolkit.inspect.describe.croissant import jsonld
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


def node_faults(document: Node) -> Iterator[str]:
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


def faults(document: Node) -> Iterator[str]:
    """Yield what is wrong with the terms of a document."""
    yield from _context_faults(document)
    if document.get("@type") not in ("sc:Dataset", "Dataset", "schema.org/Dataset"):
        yield f"expected @type sc:Dataset, got {document.get('@type')!r}"
    yield from _version_faults(listed(document.get("conformsTo")))
    for each in _PROPERTIES:
        value = document.get(each.name)
        if each.required and not value:
            yield f"expected {each.name}, which Croissant requires, got none"
        for one in listed(value):
            if not each.fits(one):
                yield f"expected {each.wanted} as {each.name}, got {one!r:.80}"
        if each.single and isinstance(value, list):
            yield f"expected one value as {each.name}, got a list"
    for name, value in document.items():
        if name.startswith("rai:"):
            yield from _rai_faults(name.removeprefix("rai:"), value)
    if is_ours(document):
        known = {key: value for key, value in document.items() if not key.startswith(("rai:", "prov:"))}
        yield from _unknown_keys(known, _DATASET, "the dataset")


# --- properties of the dataset ----------------------------------------------------------------------------------------

_DATE = re.compile(r"\d{4}(-\d\d(-\d\d([T ].+)?)?)?")
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)([-+][0-9A-Za-z.+-]+)?")
_LANGUAGE = re.compile(r"([A-Za-z]{2,8}|[xi])(-[A-Za-z0-9]{1,8})*")


def _is_url(value: Any) -> bool:
    """Return whether a value is an absolute URL."""
    return isinstance(value, str) and re.fullmatch(r"[a-z][a-z0-9+.-]*://[^\s/]+\S*", value) is not None


def _is_date(value: Any) -> bool:
    """Return whether a value is a date of the calendar, with a time or without, as ISO 8601 writes them."""
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        return False
    try:
        dt.datetime.fromisoformat(value + "-01-01"[len(value) - 4 :] if len(value) < len("2026-01-31") else value)
    except ValueError:
        return False
    return True


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_work(value: Any) -> bool:
    """Return whether a value is a page, or an object that says what it is."""
    return _is_url(value) or (isinstance(value, dict) and any(map(value.get, ("url", "@id", "name"))))


def _is_agent(value: Any) -> bool:
    return isinstance(value, dict) and kind_of(value) in ("Person", "Organization") and _is_text(value.get("name"))


def _is_version(value: Any) -> bool:
    return not isinstance(value, bool) and _VERSION.fullmatch(str(value)) is not None


def _is_language(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, str) and _LANGUAGE.fullmatch(value) is not None)


class _Property(NamedTuple):
    """A property of the dataset: its name, a test of each value, words for what passes."""

    name: str
    fits: Callable[[Any], bool]
    wanted: str
    required: bool = False
    single: bool = False


_LICENCE = "a URL (such as https://spdx.org/licenses/CC0-1.0.html)"
_AGENT = "a sc:Person or sc:Organization with a name"
_DAY = "a date (2026-01-31)"

_PROPERTIES = (
    _Property("name", _is_text, "a text", required=True, single=True),
    _Property("description", _is_text, "a text", required=True, single=True),
    _Property("license", _is_work, _LICENCE, required=True),
    _Property("url", _is_url, "a URL", required=True, single=True),
    _Property("creator", _is_agent, _AGENT, required=True),
    _Property("datePublished", _is_date, _DAY, required=True, single=True),
    _Property("distribution", lambda value: True, "files", required=True),
    _Property("sdLicense", _is_work, _LICENCE),
    _Property("sameAs", _is_url, "a URL"),
    _Property("publisher", _is_agent, _AGENT),
    _Property("dateCreated", _is_date, _DAY),
    _Property("dateModified", _is_date, _DAY),
    _Property("version", _is_version, "MAJOR.MINOR.PATCH", single=True),
    _Property("isLiveDataset", lambda value: isinstance(value, bool), "true or false", single=True),
    _Property("inLanguage", _is_language, "a BCP 47 code"),
    _Property("keywords", lambda value: isinstance(value, dict) or _is_text(value), "a text"),
    _Property("citeAs", _is_text, "a text"),
)


def _version_faults(given: list[Any]) -> Iterator[str]:
    versions = [f"{jsonld.BASE}1.0", f"{jsonld.BASE}1.1"]
    named = [each for each in map(str, given) if each in versions]
    others = [each for each in map(str, given) if re.fullmatch(rf"{jsonld.BASE}\d.*", each) and each not in versions]
    if len(named) != 1 or others:
        yield f"expected conformsTo {' or '.join(versions)}, got {given[0] if len(given) == 1 else given!r}"


def _rai_faults(name: str, value: Any) -> Iterator[str]:
    known = Rai.__struct_fields__
    if name not in known:
        yield f"expected a term of the RAI vocabulary, got rai:{name}{did_you_mean(name, known)}"
    elif name == "hasSyntheticData" and not isinstance(value, bool):
        yield f"expected true or false as rai:{name}, got {value!r:.80}"
    elif name != "hasSyntheticData" and not all(map(_is_text, listed(value))):
        yield f"expected text as rai:{name}, got {value!r:.80}"


# --- context ----------------------------------------------------------------------------------------------------------

_PREFIXES = {"cr": jsonld.BASE, "dct": "http://purl.org/dc/terms/", "sc": "https://schema.org/"}
_FREE = ("@language",)
"""Terms of a context whose meaning whoever writes the texts chooses."""


def _context_faults(document: Node) -> Iterator[str]:
    """Yield terms that the context explains otherwise than the specification, or that are used and it does not have."""
    context = document.get("@context")
    if not isinstance(context, dict):
        yield f"expected an object as @context, got {context!r:.80}"
        return
    if not re.fullmatch(r"https?://schema\.org/", str(context.get("@vocab"))) or context.get("cr") != jsonld.BASE:
        yield f"expected @context with @vocab of https://schema.org/ and cr of {jsonld.BASE}, got others"
        return
    terms = jsonld.context("1.1" if f"{jsonld.BASE}1.1" in listed(document.get("conformsTo")) else "1.0")
    for term, meaning in terms.items():
        if term in context and term not in _FREE and _expanded(context[term]) != _expanded(meaning):
            yield f"expected {term} as {_shown(meaning)} in @context, got {_shown(context[term])}"
    used = set(_keys({key: each for key, each in document.items() if key != "@context"}))
    croissant = {term for term, meaning in terms.items() if jsonld.BASE in str(_expanded(meaning))}
    prefixes = {term.partition(":")[0] for term in used if ":" in term}
    for term in sorted((used & croissant) | (prefixes & terms.keys())):
        if term not in context:
            yield f"expected {term} in @context, because it is used, got none"


def _keys(value: Any) -> Iterator[str]:
    """Yield the keys of all nodes, but not those of rows that stand in the document."""
    for each in listed(value):
        for key, inner in each.items() if isinstance(each, dict) else ():
            yield key
            if key not in ("data", "examples"):
                yield from _keys(inner)


def _expanded(meaning: Any) -> Any:
    """Return a meaning with whole addresses, and https for schema.org."""
    if isinstance(meaning, dict):
        return {key: _expanded(value) for key, value in meaning.items()}
    prefix, colon, name = str(meaning).partition(":")
    found = _PREFIXES[prefix] + name if colon and prefix in _PREFIXES else str(meaning)
    return re.sub(r"^http://schema\.org/", "https://schema.org/", found)


def _shown(meaning: Any) -> str:
    text = meaning if isinstance(meaning, str) else msgspec.json.encode(meaning).decode()
    return f"{text:.80}"


# --- keys that `toolkit croissant` does not write ---------------------------------------------------------------------

_DATASET = inspect.type_info(jsonld.Dataset)


def _unknown_keys(node: Node, type_: inspect.Type, place: str) -> Iterator[str]:
    """Yield the keys of a node, and of the nodes in it, that its structure in `jsonld` does not have."""
    found = next(
        (each for each in _structures(type_) if each.tag in (None, f"cr:{kind_of(node)}", node.get("@type"))), None
    )
    if found is None:
        return
    inner: Mapping[str, inspect.Type] = {field.encode_name: field.type for field in found.fields}
    known = {"@type", *inner}
    place = str(node.get("@id", place)) if {"@id", "name"} <= inner.keys() else place  # of a reference, where it stands
    for key in sorted(node.keys() - known):
        yield f"{place}: expected a key that `toolkit croissant` writes, got {key!r}{did_you_mean(key, known)}"
    for key in node.keys() & inner.keys():
        for each in listed(node[key]):
            if isinstance(each, dict):
                yield from _unknown_keys(each, inner[key], place)


def _structures(type_: inspect.Type) -> list[inspect.StructType]:
    """Return the structures that a type allows, by itself or in a list."""
    match type_:
        case inspect.StructType():
            return [type_]
        case inspect.UnionType():
            return [found for each in type_.types for found in _structures(each)]
        case inspect.ListType():
            return _structures(type_.item_type)
    return []
