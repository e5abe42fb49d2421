"""Turn types of rows into describable fields: scalars, structs of scalars, and lists of these.

Croissant's reader gives records of two levels: fields, and fields of structs. What lies deeper in an object is lifted
out, under the names of the keys that lead to it, joined by dots. What has no fixed keys cannot be described.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from toolkit.config.docstrings import attributes_of
from toolkit.data.documents import Span
from toolkit.data.schema import ANY, FLOAT, NEVER, NULL, SPANS, STR, Type, about, nullable
from toolkit.describe.model import RecordField, Undescribed

SPAN = attributes_of(Span)
"""Names of the numbers of a span, in their order."""

_HEADERS = {
    "content-length": "Bytes of the WARC record's block.",
    "content-type": "Media type of the WARC record's block.",
    "warc-block-digest": "Digest of the WARC record's block.",
    "warc-date": "When the WARC record was made, or what it is about was fetched.",
    "warc-identified-content-language": "Languages that the crawler found on the page, by ISO 639-3.",
    "warc-ip-address": "Address of the server that the page was fetched from.",
    "warc-payload-digest": "Digest of the WARC record's payload.",
    "warc-record-id": "Identifies the WARC record.",
    "warc-refers-to": "Identifies the WARC record that this one was made from.",
    "warc-target-uri": "Address of the page.",
    "warc-type": "Type of the WARC record, such as `conversion`.",
    "warc-warcinfo-id": "Identifies the WARC record that describes the file.",
}
"""By their names. Source: WARC format 1.1 (ISO 28500:2017), section 5; Common Crawl for the languages."""


def sentence(text: str) -> str:
    """Return a text as a sentence: it begins with a capital and ends with a full stop; nothing stays nothing."""
    text = " ".join(text.split())
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else ".")


def by_place(column: str, *keys: str | int) -> str:
    """Return a default description of a value by its place: a column of rows, and keys in it."""
    if len(keys) and "warc_headers" in (column, *keys[:-1]):
        return _HEADERS.get(str(keys[-1]), f"Header `{keys[-1]}` of the WARC record.")
    if (keys or (column,))[-1] == "warc_headers":
        return "Headers of the WARC record, names in lower case."
    if not keys:
        return f"Column `{column}` of the rows, as it is in the data."
    return f"Key `{keys[-1]}` of `{'.'.join(map(str, (column, *keys[:-1])))}`, as it is in the data."


TEXTS = ("str", "datetime", "digits", "url")
INTEGERS = ("int", "long", "huge")
SCALARS = ("bool", *INTEGERS, "float", "decimal", "date", "time", *TEXTS)

LONG, HUGE = Type("long"), Type("huge")
"""Integers of which one needs all 64 bits without a sign; of which one needs more bits."""

_NO_KEYS = ("", "*")
"""Keys that the parser of JSON paths has no words for: it takes ``*`` for any."""

KEYS = 64
"""Names that objects without declared keys may have; those that have more are maps."""


def bare(type_: Type) -> Type:
    """Return the type without ``| null``, described as before."""
    if type_.kind != "nullable" or not type_.item:
        return type_
    return about(type_.item, type_.description) if type_.description else type_.item


def merged(a: Type, b: Type) -> Type:
    """Return the type of values of either; as `schema.union`, but objects keep all keys, null where one lacks them."""
    kinds = {a.kind, b.kind}
    if NEVER in (a, b) or a == b:
        return a if b == NEVER else b
    if kinds & {"null", "nullable"}:
        inner = [bare(t) for t in (a, b) if t.kind != "null"]
        return nullable(merged(*inner) if len(inner) == 2 else inner[0])
    if kinds <= {*TEXTS}:
        return STR
    if kinds <= {*INTEGERS, "float"}:
        return FLOAT if "float" in kinds else max(a, b, key=lambda t: INTEGERS.index(t.kind))
    if kinds == {"list"}:
        return Type("list", merged(a.item or ANY, b.item or ANY))
    if kinds == {"object"}:
        return _merged_objects(dict(a.fields), dict(b.fields))
    return Type("map", ANY) if kinds <= {"map", "object"} else ANY


def _merged_objects(left: dict[str, Type], right: dict[str, Type]) -> Type:
    names = dict.fromkeys((*left, *right))
    if len(names) > KEYS:
        return Type("map", ANY)
    both = {name: merged(left[name], right[name]) for name in names if name in left and name in right}
    one = {name: nullable(type_) for name, type_ in (left | right).items() if name not in both}
    return Type("object", fields=tuple((name, (both | one)[name]) for name in names))


def completed(declared: Type, data: Type | None) -> Type:
    """Return a declared type with all keys of the data. Its description stays."""
    return declared if data is None else about(_completed(declared, data), declared.description)


def _completed(declared: Type, data: Type) -> Type:
    if declared.kind == "nullable" and declared.item:
        return nullable(completed(declared.item, bare(data)))
    if (declared.kind == "map" and bare(data).kind == "object") or (declared.kind == "int" and data in (LONG, HUGE)):
        return bare(data)
    if declared.kind == "object" and bare(data).kind == "object":
        keys = dict(bare(data).fields)
        inner = {name: completed(type_, keys.get(name)) for name, type_ in declared.fields}
        return Type("object", fields=tuple((inner | {n: t for n, t in keys.items() if n not in inner}).items()))
    return declared


def with_maps(type_: Type, declared: Type) -> Type:
    """Return the type with all declared maps, and the declared description."""
    return about(_with_maps(type_, declared), declared.description)


def _with_maps(type_: Type, declared: Type) -> Type:
    inner, other = bare(type_), bare(declared)
    if inner != type_:
        return nullable(with_maps(inner, other))
    if other.kind == "map" and inner.kind in ("object", "map"):
        return other
    if inner.kind == other.kind == "object":
        maps = dict(other.fields)
        return Type("object", fields=tuple((n, with_maps(t, maps[n]) if n in maps else t) for n, t in inner.fields))
    if inner.kind == other.kind == "list":
        return Type("list", with_maps(inner.item or ANY, other.item or ANY))
    return type_


def spans_of(types: Mapping[str, Type]) -> dict[str, Type]:
    """Return inferred types of external attributes; lists without values hold spans."""
    return {key: SPANS if type_ == Type("list", NEVER) else type_ for key, type_ in types.items()}


def fields_of(
    types: Iterable[tuple[str, Type]],
    opened: Collection[str] = (),
    descriptions: Mapping[str, str] | None = None,
    places: Collection[str] = (),
) -> tuple[list[RecordField], list[Undescribed]]:
    """Return the fields of rows with typed columns, and the undescribable values.

    Args:
        types: Types by column.
        opened: columns whose own keys are fields, by their names alone where these are free.
        descriptions: Descriptions of fields, by name.
        places: names of fields that say where a row lies.
    """
    listed = list(types)
    reserved = {name for name, _ in listed} | set(places)
    results: list[RecordField | Undescribed] = []
    for column, type_ in listed:
        if column not in opened or bare(type_).kind != "object":
            results += _flat(column, type_, column, ())
            continue
        for key, inner in bare(type_).fields:
            name = f"{column}.{key}" if key in reserved else key
            results += _flat(name, inner, column, (key,))
    texts = descriptions or {}
    names: dict[str, int] = {}
    for i, item in enumerate(results):
        if isinstance(item, RecordField) and names.setdefault(item.name, i) != i:
            results[i] = Undescribed(item.name, "another field has this name")
    fields = [item for item in results if isinstance(item, RecordField)]
    fields = [msgspec.structs.replace(f, description=sentence(texts.get(f.name) or f.type.description)) for f in fields]
    return fields, [item for item in results if isinstance(item, Undescribed)]


_EMPTY = "its objects have no keys"


def _flat(name: str, type_: Type, column: str, keys: tuple[str, ...]) -> Iterator[RecordField | Undescribed]:
    inner = bare(type_)
    if why := _refusal(inner) or ("its key is none of JSON paths" if (keys or (column,))[-1] in _NO_KEYS else ""):
        yield Undescribed(name, why)
    elif inner.kind == "object" and not inner.fields:
        yield Undescribed(name, _EMPTY)
    elif inner.kind == "object":
        here = [(key, t) for key, t in inner.fields if _is_leaf(key, t)]
        if here:
            yield RecordField(name, column, keys, Type("object", fields=tuple(here), description=inner.description))
        for key, t in inner.fields:
            if not _is_leaf(key, t):
                yield from _flat(f"{name}.{key}", t, column, (*keys, key))
    elif inner.kind == "list" and (item := bare(inner.item or ANY)).kind == "object":
        if not item.fields:
            yield Undescribed(name, _EMPTY)
        here = [(key, t) for key, t in item.fields if bare(t).kind in SCALARS and key not in _NO_KEYS]
        if here:
            objects = Type("object", fields=tuple(here))
            yield RecordField(name, column, keys, Type("list", objects, description=inner.description))
        for key, t in item.fields:
            if (key, t) not in here:
                yield Undescribed(f"{name}.{key}", "it lies in objects of a list")
    else:
        yield RecordField(name, column, keys, inner)


def _is_leaf(key: str, type_: Type) -> bool:
    """Return true if a value fits into a field of a struct."""
    inner = bare(type_)
    many = inner.kind == "list" and bare(inner.item or ANY).kind in SCALARS
    return key not in _NO_KEYS and (inner.kind in SCALARS or many)


def _refusal(type_: Type) -> str:
    """Return why values of a type cannot be described; empty if they can."""
    if type_.kind == "map":
        return "its keys are not fixed"
    if type_.kind in ("null", "never") or type_ == Type("list", NEVER) or type_ == Type("list", NULL):
        return "it never has a value"
    if type_.kind == "any":
        return "its values are of different types"
    if type_.kind in NO_TYPE:
        return f"Croissant has no type for {NO_TYPE[type_.kind]}"
    if type_.kind == "list":
        item = bare(type_.item or ANY)
        if item.kind in NO_TYPE:
            return _refusal(item)
        if item.kind not in (*SCALARS, "span", "object"):
            return "its lists hold more than values, spans and objects"
    return ""


NO_TYPE = {"bytes": "bytes", "duration": "durations"}
"""Kinds that Croissant has no type for, in words."""


def is_label(name: str, type_: Type) -> bool:
    """Return true if a field is the label of a result."""
    return name.rpartition(".")[2] == "label" and bare(type_).kind == "str"
