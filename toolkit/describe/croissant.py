"""The Croissant document of a dataset or an output, made from facts.

Source: the Croissant Format Specification 1.0 and 1.1 (docs.mlcommons.org/croissant). The contexts have the terms that
mlcroissant 1.1 asks for, so that it has nothing to warn of.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import msgspec

from toolkit.config.scale import Scale
from toolkit.data.schema import ANY, Type
from toolkit.describe import model, provenance, scan, splits
from toolkit.describe.about import About, Agent, as_list
from toolkit.describe.fields import SPAN, bare, by_place, is_label, sentence
from toolkit.text.languages.labels import code_of, tag_of, tags_of

Node = dict[str, Any]

NAME = "croissant.json"
BASE = "http://mlcommons.org/croissant/"
RAI = f"{BASE}RAI/1.0"

_TERMS = (
    "column extract field fileObject fileProperty fileSet format includes isLiveDataset jsonPath key md5 parentField "
    "path recordSet references regex repeated replace separator source subField transform citeAs equivalentProperty "
    "samplingRate"
)
_TERMS_11 = "annotation arrayShape containedIn excludes isArray readLines sdVersion unArchive"


def context(version: str) -> Node:
    """Return the ``@context`` of a version, sorted."""
    terms = [*_TERMS.split(), *(_TERMS_11.split() if version == "1.1" else ())]
    results: Node = {term: f"cr:{term}" for term in terms}
    results |= {
        "@language": "en",
        "@vocab": "https://schema.org/",
        "conformsTo": "dct:conformsTo",
        "cr": BASE,
        "data": {"@id": "cr:data", "@type": "@json"},
        "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
        "dct": "http://purl.org/dc/terms/",
        "examples": {"@id": "cr:examples", "@type": "@json"},
        "prov": "http://www.w3.org/ns/prov#",
        "rai": f"{BASE}RAI/",
        "sc": "https://schema.org/",
    }
    return dict(sorted(results.items()))


PROPERTIES = {
    "name": "name",
    "description": "description",
    "conformsTo": "croissant",
    "license": "license",
    "url": "url",
    "creator": "creator",
    "publisher": "publisher",
    "datePublished": "date_published",
    "dateCreated": "date_created",
    "dateModified": "date_modified",
    "version": "version",
    "citeAs": "citation",
    "keywords": "keywords",
    "sameAs": "same_as",
    "sdLicense": "sd_license",
    "inLanguage": "in_language",
    "isLiveDataset": "live",
}
"""Settings of the section `about:` that give the properties of a dataset, in the order in which these are written."""

REQUIRED = ("name", "description", "license", "url", "creator", "datePublished")
"""Properties that Croissant requires."""


def document(facts: model.Facts, about: About, version: str) -> Node:
    """Return the document, in the order of writing."""
    rai = provenance.rai_terms(facts, about)
    results = {
        name: one_or_list(list(map(_plain, as_list(getattr(about, key) or None)))) for name, key in PROPERTIES.items()
    }
    # 1.0 says: one
    results["conformsTo"] = one_or_list([f"{BASE}{version}", *([RAI] if rai and version != "1.0" else [])])
    results["keywords"] = about.keywords or None
    results["inLanguage"] = as_list(about.in_language) or tags_of(facts.languages) or None
    results["isLiveDataset"] = bool(about.live)
    usage = [{"@type": "sc:CreativeWork", "url": url} for url in as_list(about.usage)]
    results["usageInfo"] = one_or_list(usage) if version != "1.0" else None
    last = {"distribution": _distribution(facts, about), "recordSet": _record_sets(facts, about, version)}
    head = {"@context": context(version), "@type": "sc:Dataset"}
    built: Node = msgspec.to_builtins(_without_none({**head, **results, **rai, **provenance.prov_terms(facts), **last}))
    return built


def to_bytes(document: Node) -> bytes:
    """Return the bytes of a file: keys in their order, two blanks a level."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def without_examples(data: bytes) -> bytes:
    """Return a description without examples."""
    document: Node = msgspec.json.decode(data)
    for record in document.get("recordSet", ()):
        record.pop("examples", None)
    return to_bytes(document)


def _without_none(node: Node) -> Node:
    """Return a node without its empty properties."""
    return {name: value for name, value in node.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, Agent):
        return _without_none({"@type": f"sc:{value.type}", "name": value.name, "url": value.url, "email": value.email})
    return value


def one_or_list(values: list[Any]) -> Any:
    """Return none as None, one value by itself, several as a list."""
    return None if not values else values[0] if len(values) == 1 else values


_RESERVED = re.compile(r'[\s\x00-\x1f/%?#<>"{}|\\^`]')
_RELATIVE = re.compile(r"^\.(?=\.?$)")


def _quoted(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


def identifier(*parts: str) -> str:
    """Return an ``@id``: parts join_digests by ``/``; what may not stand in one is written as in URLs."""
    return "/".join(_RELATIVE.sub(_quoted, _RESERVED.sub(_quoted, part)) for part in parts)


# --- files ------------------------------------------------------------------------------------------------------------


def _distribution(facts: model.Facts, about: About) -> list[Node]:
    files = [
        {
            "@type": "cr:FileObject",
            "@id": identifier(*file.path.split("/")),
            "name": file.path.rpartition("/")[2],
            "contentUrl": file.path,
            "contentSize": None if about.grows(file.path) else f"{file.size} B",
            "encodingFormat": file.media_type,
            "sha256": None if about.grows(file.path) else file.sha256,
        }
        for file in facts.files
    ]
    groups = [
        {
            "@type": "cr:FileSet",
            "@id": identifier(group.name),
            "name": group.name,
            "description": group.description,
            "encodingFormat": group.media_type,
            "includes": one_or_list(group.includes),
            "identifier": _contents(facts, group) or None,
        }
        for group in facts.groups
    ]
    return [_without_none(node) for node in (*files, *groups)]


def _contents(facts: model.Facts, group: model.FileGroup) -> list[Node]:
    """Return a digest of each label's lines, with its files in order."""
    files = {file.path: file for file in facts.files}
    labels = facts.labels if group is facts.groups[0] else []
    named: list[tuple[str | None, list[str]]] = [(label.label, label.paths) for label in labels]
    results = []
    for name, paths in named or [(None, group.paths)]:
        lines = [files[path].lines for path in sorted(paths, key=_natural)]
        if all(lines):
            number, digest = scan.join_digests(line for line in lines if line)
            value = f"{number}-{digest:032x}"
            results.append(
                _without_none({"@type": "sc:PropertyValue", "propertyID": "lines-xxh3", "name": name, "value": value})
            )
    return results


def _natural(path: str) -> list[str | int]:
    """Return a sort key to order parts by their numbers."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path)]


def path_part(path: str, file_property: str) -> str:
    """Return a file property of a path: its last part for ``filename``, else the path."""
    return path.rpartition("/")[2] if file_property == "filename" else path


# --- enumerations -----------------------------------------------------------------------------------------------------


def language_url(label: str) -> str:
    """Return the ISO 639 page of a label's language; empty without a code."""
    tag = tag_of(label)
    code = code_of(tag) if tag else "mul" if label.lower() == "multi" else ""
    if not code:
        return ""
    two = f"https://id.loc.gov/vocabulary/iso639-1/{code}"
    return two if len(code) == 2 else f"https://iso639-3.sil.org/code/{code}"


_SPLITS = {
    "cr:TrainingSplit": ("train", "training"),
    "cr:ValidationSplit": ("validation", "valid", "val", "dev"),
    "cr:TestSplit": ("test", "eval"),
}
"""The classes of splits that Croissant knows, and what such splits are called."""


def _record_sets(facts: model.Facts, about: About, version: str) -> list[Node]:
    """Return the record sets; a label or split that nobody else has a page for is a part of the page of the dataset."""
    results, page = [], about.url or ""
    if facts.labels:
        kind = facts.label_name
        rows = []
        for label in facts.labels:
            url = (language_url(label.label) if kind == "language" else "") or f"{page}#{kind}-{quote(label.label)}"
            rows.append({"code": label.label, "name": label.label, "url": url, "documents": label.documents})
        fields: dict[str, tuple[str, str | list[str]]] = {
            "code": (f"The {kind} as it stands in the paths of files.", "sc:Text"),
            "name": (f"What the {kind} is called.", "sc:Text"),
            "url": (f"A page about the {kind}.", "sc:URL"),
            "documents": (f"Documents of the {kind}.", "sc:Integer"),
        }
        if any(label.documents is None for label in facts.labels):
            del fields["documents"]
        results.append(_listing(f"{kind}s", f"The {kind}s of the documents.", "sc:Enumeration", fields, rows))
    if facts.splits:
        fields = {
            "name": ("What the split is called.", "sc:Text"),
            "url": ("What the split is for, as Croissant knows it.", ["sc:URL", "cr:Split"]),
            "share": ("The share of the documents that was asked for.", "sc:Float"),
            "documents": ("Documents of the split.", "sc:Integer"),
        }
        rows = []
        for split in facts.splits:
            split_url = next((url for url, names in _SPLITS.items() if split.name.lower() in names), "")
            rows.append({**split._asdict(), "url": split_url or f"{page}#split-{quote(split.name)}"})
        results.append(_listing("splits", "The splits of the documents, by hash of the id.", "cr:Split", fields, rows))
    results += [_scale(name, scale) for record in facts.records for name, scale in record.scales.items()]
    return results + [_record_set(record, about.examples, version) for record in facts.records]


def _scale(name: str, scale: Scale) -> Node:
    """Return the enumeration of the values of a scale, in their order."""
    whole = all(isinstance(grade, int) for grade in scale.grades)
    fields: dict[str, tuple[str, str | list[str]]] = {
        "value": ("A value of the scale.", "sc:Text" if scale.is_text else "sc:Integer" if whole else "sc:Float"),
        "order": ("Place of the value on the scale, from 0.", "sc:Integer"),
    }
    rows = [{"value": grade, "order": place} for place, grade in enumerate(scale.grades)]
    about = f"The values of {scale}, which the labels declare."
    return _listing(identifier(name), about, "sc:Enumeration", fields, rows)


def _listing(
    name: str,
    description: str,
    data_type: str,
    fields: Mapping[str, tuple[str, str | list[str]]],
    rows: Iterable[Mapping[str, Any]],
) -> Node:
    """Return a record set with its data; of each field what it is and its type are given, the first one is the key."""
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": description,
        "dataType": data_type,
        "key": {"@id": f"{name}/{next(iter(fields))}"},
        "data": [{f"{name}/{field}": row[field] for field in fields} for row in rows],
        "field": [_field(f"{name}/{field}", field, *item) for field, item in fields.items()],
    }


# --- records ----------------------------------------------------------------------------------------------------------


def _record_set(record: model.RecordType, examples: int, version: str) -> Node:
    description = record.description
    if record.undescribed:
        listed_ = "; ".join(f"{item.name} ({item.why})" for item in record.undescribed)
        description += f" Not described, to be read from the files: {listed_}."
    keys = [{"@id": identifier(record.name, *name.split("/"))} for name in record.key]
    fields = [_path_field(record, place) for place in record.places]
    return _without_none(
        {
        "@type": "cr:RecordSet",
        "@id": identifier(record.name),
        "name": record.name,
        "description": description,
        "key": one_or_list(keys),
        "examples": [_example(record, version, row) for row in record.examples[:examples]] or None,
        "field": fields + [_FieldNode(record, field, version).node() for field in record.fields],
    })  # fmt: skip


def _field(id_: str, name: str, about: str, type_: str | list[str] | None, references: str = "", **more: Any) -> Node:
    """Return a field; references: the id of the one that lists its values, empty for none."""
    types = ["sc:Text", "cr:Split"] if references == splits.REFERENCES else type_
    node = {"@type": "cr:Field", "@id": id_, "name": name, "description": about, "dataType": types}
    node |= {key: more.pop(key, None) for key in ("repeated", "isArray", "arrayShape")}
    return _without_none({**node, "references": {"field": {"@id": references}} if references else None, **more})


def _path_field(record: model.RecordType, place: model.PathField) -> Node:
    extract = {"fileProperty": place.property or ("fullpath" if place.pattern else "lineNumbers")}
    transform = {"transform": {"regex": place.pattern}} if place.pattern else {}
    return _field(
        identifier(record.name, place.name),
        place.name,
        sentence(place.description),
        "sc:Text" if place.pattern or place.property else "sc:Integer",
        place.references,
        source={"fileSet": {"@id": identifier(record.group)}, "extract": extract, **transform},
    )


def json_path(keys: Sequence[str | int]) -> str:
    """Return the JSON path of keys and indexes. mlcroissant's parser takes any key in this form."""

    def quoted(key: str) -> str:
        escaped = key.replace("\\", "\\\\").replace("'", "\\'")
        return f"['{escaped}']"

    return "$" + "".join(f"[{key}]" if isinstance(key, int) else quoted(key) for key in keys)


_DATA_TYPES = {
    "bool": "sc:Boolean",
    "int": "sc:Integer",
    "long": "sc:Integer",
    "huge": "sc:Integer",
    "float": "sc:Float",
    "str": "sc:Text",
    "datetime": "sc:DateTime",
    "date": "sc:Date",
    "time": "sc:Time",
    "decimal": "sc:Float",
    "digits": "sc:Integer",
    "url": "sc:URL",
}

_SPAN = tuple(
    (name, i, Type(kind, description=SPAN.get(name, "")))
    for i, (name, kind) in enumerate((("start", "int"), ("end", "int"), ("score", "float")))
)
"""The parts of a span: name, place, type."""

_Paths = tuple[Sequence[str | int], ...]


class _FieldNode:
    """A field of a record set, of a value of a row."""

    def __init__(self, record: model.RecordType, field: model.RecordField, version: str) -> None:
        self._group = identifier(record.group)
        self._id = identifier(record.name, field.name)
        self._field = field
        self._version = version

    def node(self) -> Node:
        field, inner = self._field, bare(self._field.type)
        about = field.description or by_place(field.column, *field.keys)
        many = inner.kind == "list"
        value = bare(inner.item or ANY) if many else inner
        if value.kind not in ("object", "span"):
            return self._leaf(self._id, field.name, about, field.type, (field.keys,), field.references)
        if many and value.kind == "span":
            about = field.description or f"Spans of `{field.name}`: start, end (code points) and score."
            if self._version == "1.1":
                shape = self._many("-1,3")
                return _field(self._id, field.name, about, "cr:Float64", source=self._source((field.keys,)), **shape)
        named = _SPAN if value.kind == "span" else [(name, name, type_) for name, type_ in value.fields]
        parts = self._parts(named, *((field.keys,) if many else ()))
        return _field(self._id, field.name, about, None, subField=parts, **(self._many() if many else {}))

    def _parts(self, named: Iterable[tuple[str, str | int, Type]], *before: Sequence[str | int]) -> list[Node]:
        """Return the fields of a struct, given by name, key, type; before: keys that lead to the structs of a list."""
        field, results = self._field, []
        for name, key, type_ in named:
            paths: _Paths = (*before, (key,)) if before else ((*field.keys, key),)
            about = sentence(type_.description) or by_place(field.column, *field.keys, key)
            references = field.references if is_label(name, type_) else ""
            results.append(self._leaf(f"{self._id}/{identifier(name)}", name, about, type_, paths, references))
        return results

    def _leaf(self, id_: str, name: str, about: str, type_: Type, paths: _Paths, references: str) -> Node:
        """Return the field of a value, or of a list of values."""
        inner = bare(type_)
        many = inner.kind == "list"
        value = bare(inner.item or ANY) if many else inner
        data_type: str | list[str] = _DATA_TYPES[value.kind]
        part = "" if id_ == self._id else name
        if is_label(name, value) or part in self._field.labels:
            data_type = [_DATA_TYPES[value.kind], "cr:Label"]
        return _field(
            id_, name, about, data_type, references, source=self._source(paths), **(self._many() if many else {})
        )

    def _source(self, paths: _Paths) -> Node:
        transforms = [{"jsonPath": json_path(path)} for path in paths if path]
        source = {"fileSet": {"@id": self._group}, "extract": {"column": self._field.column}}
        return _without_none({**source, "transform": one_or_list(transforms)})

    def _many(self, shape: str = "-1") -> Node:
        return {"isArray": True, "arrayShape": shape} if self._version == "1.1" else {"repeated": True}


# --- examples ---------------------------------------------------------------------------------------------------------

EXAMPLE_CHARS = 200
"""Limit of a text in an example."""

CUT = " …"
"""Ends a text that was cut."""

EXAMPLE_ITEMS = 5
"""Limit of a list in an example."""


def _example(record: model.RecordType, version: str, row: model.ExampleRow) -> Node:
    """Return a record as readers give it, its texts and lists cut."""
    example: Node = {}
    for place in record.places:
        match = re.match(place.pattern, path_part(row.path, place.property)) if place.pattern else None
        example[identifier(record.name, place.name)] = match[1] if match else row.number
    for field in record.fields:
        value: Any = row.value.get(field.column)
        for key in field.keys:
            value = value.get(key) if isinstance(value, dict) else None
        id_ = identifier(record.name, field.name)
        arrays = version == "1.1" and bare(bare(field.type).item or ANY).kind == "span"  # spans are arrays of numbers
        example[id_] = _cut("" if arrays else id_, field.type, value)
    return example


def _cut(id_: str, type_: Type, value: Any) -> Any:
    inner = bare(type_)
    if isinstance(value, str):
        return value if len(value) <= EXAMPLE_CHARS else value[:EXAMPLE_CHARS] + CUT
    if isinstance(value, Decimal):
        return float(value)
    if inner.kind == "list" and isinstance(value, list):
        return [_cut(id_, inner.item or ANY, item) for item in value[:EXAMPLE_ITEMS]]
    if inner.kind == "object" and isinstance(value, dict):
        return {f"{id_}/{identifier(key)}": _cut("", t, value.get(key)) for key, t in inner.fields}
    if inner.kind == "span" and isinstance(value, list) and id_:
        return dict(zip((f"{id_}/{name}" for name in ("start", "end", "score")), value, strict=False))
    return value
