"""The Croissant document of a dataset or an output, made from facts."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import msgspec

from toolkit.config.scale import Scale
from toolkit.data.schema import ANY, Type
from toolkit.inspect.describe.about import About, Agent, listed
from toolkit.inspect.describe.croissant import jsonld, responsible
from toolkit.inspect.describe.facts import Facts, Field, Group, PathField, RecordType
from toolkit.inspect.describe.facts.data_file import joined
from toolkit.inspect.describe.facts.fields import SPAN, bare, by_place, is_label, sentence
from toolkit.inspect.describe.facts.splits import REFERENCES as SPLIT_NAMES
from toolkit.text.languages.labels import code_of, tag_of, tags_of

_SPLITS = {
    "cr:TrainingSplit": ("train", "training"),
    "cr:ValidationSplit": ("validation", "valid", "val", "dev"),
    "cr:TestSplit": ("test", "eval"),
}
"""The classes of splits that Croissant knows, and what such splits are called."""

_Fields = dict[str, tuple[str, str | list[str]]]
"""What a field is, and the type of its values, by name."""


def language_code(label: str) -> str:
    """Return the code of ISO 639 of a label's language, that of several languages for `multi`; empty for others."""
    tag = tag_of(label)
    return (code_of(tag) or "") if tag else "mul" if label.lower() == "multi" else ""


def language_url(label: str) -> str:
    """Return the page of a label's language at who keeps the codes of ISO 639; empty for a label that has none."""
    code = language_code(label)
    if not code:
        return ""
    return (
        f"https://id.loc.gov/vocabulary/iso639-1/{code}" if len(code) == 2 else f"https://iso639-3.sil.org/code/{code}"
    )


def labels(facts: Facts, page: str) -> jsonld.RecordSet:
    """Return the enumeration of the languages, or other labels, by which an output is cut.

    Args:
        facts: of the output.
        page: of the dataset; a label that nobody else has a page for is a part of it.
    """
    name, what = f"{facts.label_name}s", facts.label_name
    rows = []
    for each in facts.labels:
        url = (language_url(each.label) if what == "language" else "") or f"{page}#{what}-{quote(each.label)}"
        rows.append({"code": each.label, "name": each.label, "url": url, "documents": each.documents})
    fields: _Fields = {
        "code": (f"The {what} as it stands in the paths of files.", "sc:Text"),
        "name": (f"What the {what} is called.", "sc:Text"),
        "url": (f"A page about the {what}.", "sc:URL"),
        "documents": (f"Documents of the {what}.", "sc:Integer"),
    }
    if any(each.documents is None for each in facts.labels):
        del fields["documents"]
    return _listing(name, f"The {name} of the documents.", "sc:Enumeration", "code", fields, rows)


def splits(facts: Facts, page: str) -> jsonld.RecordSet:
    """Return the record set of the splits."""
    rows = [
        {
            "name": each.name,
            "url": next((url for url, names in _SPLITS.items() if each.name.lower() in names), "")
            or f"{page}#split-{quote(each.name)}",
            "share": each.share,
            "documents": each.documents,
        }
        for each in facts.splits
    ]
    fields: _Fields = {
        "name": ("What the split is called.", "sc:Text"),
        "url": ("What the split is for, as Croissant knows it.", ["sc:URL", "cr:Split"]),
        "share": ("The share of the documents that was asked for.", "sc:Float"),
        "documents": ("Documents of the split.", "sc:Integer"),
    }
    return _listing("splits", "The splits of the documents, by hash of the id.", "cr:Split", "name", fields, rows)


def _listing(
    name: str,
    description: str,
    data_type: str,
    key: str,
    fields: _Fields,
    rows: Iterable[dict[str, Any]],
) -> jsonld.RecordSet:
    return jsonld.RecordSet(
        id=name,
        name=name,
        description=description,
        data_type=data_type,
        key=jsonld.Reference(id=f"{name}/{key}"),
        data=[{f"{name}/{field}": row[field] for field in fields} for row in rows],
        field=[
            jsonld.Field(id=f"{name}/{field}", name=field, description=about, data_type=type_)
            for field, (about, type_) in fields.items()
        ],
    )


NAME = "croissant.json"

EXAMPLE_CHARS = 200
"""Of a text in an example that are shown."""

CUT = " …"
"""Ends a text that was cut."""

EXAMPLE_ITEMS = 5
"""Of a list in an example that are shown."""

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


def document(facts: Facts, about: About, version: str) -> dict[str, Any]:
    """Return the document, in the order in which it is written."""
    rai = responsible.rai_terms(facts, about)
    conforms = [f"{jsonld.BASE}{version}", *([jsonld.RAI] if rai and version != "1.0" else [])]  # 1.0 says: one
    languages = about.language() or tags_of(facts.languages)
    found = jsonld.Dataset(
        context=jsonld.context(version),
        name=about.name or "",
        description=about.description or "",
        conforms_to=jsonld.one_or_list(conforms),
        license=jsonld.one_or_list(listed(about.license)),
        url=about.url or "",
        creator=jsonld.one_or_list(_agents(about.creator)),
        publisher=jsonld.one_or_list(_agents(about.publisher)),
        date_published=about.date_published or "",
        date_created=about.date_created,
        date_modified=about.date_modified,
        version=about.version,
        cite_as=about.citation,
        keywords=about.keywords or None,
        same_as=jsonld.one_or_list(listed(about.same_as)),
        sd_license=jsonld.one_or_list(listed(about.sd_license)),
        in_language=languages or None,
        is_live_dataset=bool(about.live),
        distribution=_distribution(facts, about),
        record_set=_record_sets(facts, about, version),
    )
    whole = msgspec.to_builtins(found)
    last = {key: whole.pop(key) for key in ("distribution", "recordSet")}
    return {"@context": whole.pop("@context"), **whole, **rai, **responsible.provenance(facts), **last}


def _agents(given: list[Agent] | Agent | None) -> list[jsonld.Agent]:
    return [jsonld.Agent(type=f"sc:{a.type}", name=a.name, url=a.url, email=a.email) for a in listed(given)]


_RESERVED = re.compile(r'[\s\x00-\x1f/%?#<>"{}|\\^`]')
_RELATIVE = re.compile(r"^\.(?=\.?$)")


def _quoted(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode())


def identifier(*parts: str) -> str:
    """Return an ``@id``: parts joined by ``/``; what may not stand in one is written as in URLs."""
    return "/".join(_RELATIVE.sub(_quoted, _RESERVED.sub(_quoted, part)) for part in parts)


def _distribution(facts: Facts, about: About) -> list[jsonld.FileObject | jsonld.FileSet]:
    files: list[jsonld.FileObject | jsonld.FileSet] = [
        jsonld.FileObject(
            id=identifier(*file.path.split("/")),
            name=file.path.rpartition("/")[2],
            content_url=file.path,
            content_size=None if about.grows(file.path) else f"{file.size} B",
            encoding_format=file.media_type,
            sha256=None if about.grows(file.path) else file.sha256,
        )
        for file in facts.files
    ]
    return files + [
        jsonld.FileSet(
            id=identifier(group.name),
            name=group.name,
            description=group.description,
            encoding_format=group.media_type,
            includes=jsonld.one_or_list(group.includes),
            identifier=_contents(facts, group) or None,
        )
        for group in facts.groups
    ]


def _contents(facts: Facts, group: Group) -> list[jsonld.PropertyValue]:
    """Return digests of the lines in the files of a group, in the order of the parts, one for each label."""
    files = {file.path: file for file in facts.files}
    labels = facts.labels if group is facts.groups[0] else []
    named: list[tuple[str | None, list[str]]] = [(each.label, each.paths) for each in labels]
    found = []
    for name, paths in named or [(None, group.paths)]:
        lines = [files[path].lines for path in sorted(paths, key=_natural)]
        if all(lines):
            number, digest = joined(each for each in lines if each)
            found.append(jsonld.PropertyValue(property_id=CONTENT, name=name, value=f"{number}-{digest:032x}"))
    return found


CONTENT = "lines-xxh3"
"""What the content of files is told by."""


def _natural(path: str) -> list[str | int]:
    """Return a key that sorts parts by their numbers."""
    return [int(each) if each.isdigit() else each for each in re.split(r"(\d+)", path)]


# --- record sets ------------------------------------------------------------------------------------------------------


def _record_sets(facts: Facts, about: About, version: str) -> list[jsonld.RecordSet]:
    found = []
    if facts.labels:
        found.append(labels(facts, about.url or ""))
    if facts.splits:
        found.append(splits(facts, about.url or ""))
    found += [_scale(name, scale) for record in facts.records for name, scale in record.scales.items()]
    return found + [_record_set(record, about.examples, version) for record in facts.records]


def _scale(name: str, scale: Scale) -> jsonld.RecordSet:
    """Return the enumeration of the values of a scale, in their order."""
    whole = all(isinstance(grade, int) for grade in scale.grades)
    type_ = "sc:Text" if scale.is_text else "sc:Integer" if whole else "sc:Float"
    fields: _Fields = {
        "value": ("A value of the scale.", type_),
        "order": ("Place of the value on the scale, from 0.", "sc:Integer"),
    }
    rows = [{"value": grade, "order": place} for place, grade in enumerate(scale.grades)]
    about = f"The values of {scale}, which the labels declare."
    return _listing(identifier(name), about, "sc:Enumeration", "value", fields, rows)


def _record_set(record: RecordType, examples: int, version: str) -> jsonld.RecordSet:
    made = [_path_field(record, place) for place in record.places]
    made += [_field(record, field, version) for field in record.fields]
    description = record.description
    if record.undescribed:
        listed_ = "; ".join(f"{each.name} ({each.why})" for each in record.undescribed)
        description += f" Not described, to be read from the files: {listed_}."
    shown = [_example(record, version, *row) for row in record.examples[:examples]]
    return jsonld.RecordSet(
        id=identifier(record.name),
        name=record.name,
        description=description,
        key=jsonld.one_or_list([jsonld.Reference(id=identifier(record.name, *name.split("/"))) for name in record.key]),
        examples=shown or None,
        field=made,
    )


def _path_field(record: RecordType, place: PathField) -> jsonld.Field:
    source = jsonld.Source(
        file_set=jsonld.Reference(id=identifier(record.group)),
        extract=jsonld.Extract(file_property=place.property or ("fullpath" if place.pattern else "lineNumbers")),
        transform=jsonld.Transform(regex=place.pattern) if place.pattern else None,
    )
    found = jsonld.Field(
        id=identifier(record.name, place.name),
        name=place.name,
        description=sentence(place.description),
        data_type="sc:Text" if place.pattern or place.property else "sc:Integer",
        source=source,
    )
    return _referring(found, place.references) if place.references else found


def json_path(keys: tuple[str | int, ...]) -> str:
    """Return the JSON path of keys and indexes, in the form in which mlcroissant's parser takes all of them."""

    def quoted(key: str) -> str:
        escaped = key.replace("\\", "\\\\").replace("'", "\\'")
        return f"['{escaped}']"

    return "$" + "".join(f"[{key}]" if isinstance(key, int) else quoted(key) for key in keys)


def _source(record: RecordType, field: Field, *paths: tuple[str | int, ...]) -> jsonld.Source:
    transforms = [jsonld.Transform(json_path=json_path(path)) for path in paths if path]
    return jsonld.Source(
        file_set=jsonld.Reference(id=identifier(record.group)),
        extract=jsonld.Extract(column=field.column),
        transform=jsonld.one_or_list(transforms),
    )


def _many(version: str, shape: str = "-1") -> dict[str, Any]:
    return {"is_array": True, "array_shape": shape} if version == "1.1" else {"repeated": True}


def _data_type(name: str, type_: Type) -> str | list[str]:
    found = _DATA_TYPES[bare(type_).kind]
    return [found, "cr:Label"] if is_label(name, type_) else found


def _field(record: RecordType, field: Field, version: str) -> jsonld.Field:
    id_, inner = identifier(record.name, field.name), bare(field.type)
    item = bare(inner.item or ANY)
    about = field.description or by_place(field.column, *field.keys)
    given: dict[str, Any] = {"id": id_, "name": field.name, "description": about}

    def parts(named: Iterable[tuple[str, str | int, Type]], *before: tuple[str | int, ...]) -> list[jsonld.Field]:
        """Return the fields of a struct, given by name, key, type; before: keys that lead to the structs of a list."""
        found = []
        for name, key, type_ in named:
            paths = (*before, (key,)) if before else ((*field.keys, key),)
            told = sentence(type_.description) or by_place(field.column, *field.keys, key)
            part_id = f"{id_}/{identifier(name)}"
            leaf = _leaf(part_id, name, told, type_, _source(record, field, *paths), version)
            found.append(_referring(leaf, field.references) if field.references and is_label(name, type_) else leaf)
        return found

    if inner.kind == "object":
        return jsonld.Field(**given, sub_field=parts((name, name, type_) for name, type_ in inner.fields))
    if inner.kind == "span":
        return jsonld.Field(**given, sub_field=parts(_SPAN))
    if inner.kind == "list" and item.kind == "span":
        given["description"] = field.description or f"Spans of `{field.name}`: start, end (code points) and score."
        if version == "1.1":
            source = _source(record, field, field.keys)
            return jsonld.Field(**given, data_type="cr:Float64", source=source, **_many(version, "-1,3"))
        return jsonld.Field(**given, sub_field=parts(_SPAN, field.keys), **_many(version))
    if inner.kind == "list" and item.kind == "object":
        structs = parts(((name, name, type_) for name, type_ in item.fields), field.keys)
        return jsonld.Field(**given, sub_field=structs, **_many(version))
    leaf = _leaf(id_, field.name, about, field.type, _source(record, field, field.keys), version)
    if field.scale and isinstance(leaf.data_type, str):
        leaf = msgspec.structs.replace(leaf, data_type=[leaf.data_type, "cr:Label"])
    return _referring(leaf, field.references) if field.references else leaf


def _referring(field: jsonld.Field, id_: str) -> jsonld.Field:
    """Return the field of a split or a label, with a reference to the record set that lists these."""
    types = ["sc:Text", "cr:Split"] if id_ == SPLIT_NAMES else field.data_type
    return msgspec.structs.replace(field, data_type=types, references=jsonld.References(field=jsonld.Reference(id=id_)))


_SPAN = tuple(
    (name, i, Type(kind, description=SPAN.get(name, "")))
    for i, (name, kind) in enumerate((("start", "int"), ("end", "int"), ("score", "float")))
)
"""The parts of a span: name, place, type."""


def _leaf(id_: str, name: str, about: str, type_: Type, source: jsonld.Source, version: str) -> jsonld.Field:
    """Return the field of a value, or of a list of values."""
    inner = bare(type_)
    many = inner.kind == "list"
    kind = inner.item or ANY if many else inner
    more = _many(version) if many else {}
    return jsonld.Field(id=id_, name=name, description=about, data_type=_data_type(name, kind), source=source, **more)


# --- examples ---------------------------------------------------------------------------------------------------------


def _example(record: RecordType, version: str, path: str, number: int, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record as readers give it, its texts and lists cut."""
    shown: dict[str, Any] = {}
    for place in record.places:
        found = re.match(place.pattern, jsonld.path_part(path, place.property)) if place.pattern else None
        shown[identifier(record.name, place.name)] = found[1] if found else number
    for field in record.fields:
        value: Any = row.get(field.column)
        for key in field.keys:
            value = value.get(key) if isinstance(value, dict) else None
        id_ = identifier(record.name, field.name)
        arrays = version == "1.1" and bare(bare(field.type).item or ANY).kind == "span"  # spans are arrays of numbers
        shown[id_] = _shown("" if arrays else id_, field.type, value)
    return shown


def _shown(id_: str, type_: Type, value: Any) -> Any:
    inner = bare(type_)
    if isinstance(value, str):
        return value if len(value) <= EXAMPLE_CHARS else value[:EXAMPLE_CHARS] + CUT
    if isinstance(value, Decimal):
        return float(value)
    if inner.kind == "list" and isinstance(value, list):
        return [_shown(id_, inner.item or ANY, each) for each in value[:EXAMPLE_ITEMS]]
    if inner.kind == "object" and isinstance(value, dict):
        return {f"{id_}/{identifier(key)}": _shown("", t, value.get(key)) for key, t in inner.fields}
    if inner.kind == "span" and isinstance(value, list) and id_:
        return dict(zip((f"{id_}/{name}" for name in ("start", "end", "score")), value, strict=False))
    return value
