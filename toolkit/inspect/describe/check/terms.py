"""The terms of a Croissant file: what its ``@context`` says that they mean, and which there are.

Source: Croissant 1.0 and 1.1, appendix "JSON-LD context"; Croissant RAI Vocabulary 1.0.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from toolkit.errors import did_you_mean
from toolkit.inspect.describe.about import Rai, listed
from toolkit.inspect.describe.check.properties import is_ours, kind_of
from toolkit.inspect.describe.check.values import steps
from toolkit.inspect.describe.croissant import jsonld

_PREFIXES = {"cr": jsonld.BASE, "dct": "http://purl.org/dc/terms/", "sc": "https://schema.org/"}
_OPTIONAL = ("@language",)
"""Of a context: which language texts are in is for whoever writes them to say."""

_STRUCTS: tuple[type[msgspec.Struct], ...] = (
    jsonld.Dataset,
    jsonld.FileObject,
    jsonld.FileSet,
    jsonld.RecordSet,
    jsonld.Field,
    jsonld.Source,
    jsonld.Extract,
    jsonld.Transform,
)
_KNOWN = {each.__name__: {field.encode_name for field in msgspec.structs.fields(each)} | {"@type"} for each in _STRUCTS}
_INNER = {"source": "Source", "extract": "Extract", "transform": "Transform"}
_EXTRACTS = ("column", "fileProperty", "jsonPath", "jsonQuery")
_TRANSFORMS = (
    "jsonPath",
    "jsonQuery",
    "regex",
    "replace",
    "separator",
    "delimiter",
    "format",
    "readLines",
    "unArchive",
)


def faults(document: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the terms of a document."""
    context = document.get("@context")
    if not isinstance(context, dict):
        yield f"expected an object as @context, got {context!r:.80}"
    elif not re.fullmatch(r"https?://schema\.org/", str(context.get("@vocab"))) or context.get("cr") != jsonld.BASE:
        yield f"expected @context with @vocab of https://schema.org/ and cr of {jsonld.BASE}, got others"
    else:
        version = "1.1" if f"{jsonld.BASE}1.1" in listed(document.get("conformsTo")) else "1.0"
        used = set(_keys({key: each for key, each in document.items() if key != "@context"}))
        yield from _context(context, used, jsonld.context(version))
    for name, value in document.items():
        if name.startswith("rai:"):
            yield from _rai(name.removeprefix("rai:"), value)
    if is_ours(document):
        yield from _unknown(document)


def _context(context: dict[str, Any], used: set[str], terms: dict[str, Any]) -> Iterator[str]:
    """What a context says otherwise than the specification; terms that are used and that it does not have."""
    for term, meaning in terms.items():
        if term in context and term not in _OPTIONAL and _expanded(context[term]) != _expanded(meaning):
            yield f"expected {term} as {_short(meaning)} in @context, got {_short(context[term])}"
    croissant = {term for term, meaning in terms.items() if str(_expanded(meaning)).find(jsonld.BASE) >= 0}
    prefixes = {term.partition(":")[0] for term in used if ":" in term}
    for term in sorted((used & croissant) | (prefixes & terms.keys())):
        if term not in context:
            yield f"expected {term} in @context, because it is used, got none"


def _keys(value: Any) -> Iterator[str]:
    """The keys of all nodes; not those of rows that stand in the file."""
    for each in listed(value):
        if isinstance(each, dict):
            for key, inner in each.items():
                yield key
                if key not in ("data", "examples"):
                    yield from _keys(inner)


def _expanded(meaning: Any) -> Any:
    """A meaning with whole addresses; that of schema.org by either protocol."""
    if isinstance(meaning, dict):
        return {key: _expanded(value) for key, value in meaning.items()}
    prefix, colon, name = str(meaning).partition(":")
    found = _PREFIXES[prefix] + name if colon and prefix in _PREFIXES else str(meaning)
    return re.sub(r"^http://schema\.org/", "https://schema.org/", found)


def _short(meaning: Any) -> str:
    text = meaning if isinstance(meaning, str) else msgspec.json.encode(meaning).decode()
    return f"{text:.80}"


def _rai(name: str, value: Any) -> Iterator[str]:
    known = Rai.__struct_fields__
    if name not in known:
        yield f"expected a term of the RAI vocabulary, got rai:{name}{did_you_mean(name, known)}"
    elif name != "hasSyntheticData" and not all(isinstance(each, str) and each.strip() for each in listed(value)):
        yield f"expected text as rai:{name}, got {value!r:.80}"
    elif name == "hasSyntheticData" and not isinstance(value, bool):
        yield f"expected true or false as rai:{name}, got {value!r:.80}"


def _unknown(document: dict[str, Any]) -> Iterator[str]:
    """Keys that `toolkit croissant` does not write, in a file of its own."""
    whole = {key for key in document if not key.startswith(("rai:", "prov:"))}
    yield from _others(whole, "Dataset", "the dataset")
    for key in ("distribution", "recordSet"):
        for node in listed(document.get(key)):
            yield from _unknown_in(node)


def _unknown_in(node: Any) -> Iterator[str]:
    if not isinstance(node, dict) or kind_of(node) not in _KNOWN:
        return
    place = str(node.get("@id"))
    yield from _others(set(node), kind_of(node), place)
    yield from _of_source(node.get("source"), place)
    for key in ("field", "subField"):
        for inner in listed(node.get(key)):
            yield from _unknown_in(inner)


def _of_source(source: Any, place: str) -> Iterator[str]:
    if isinstance(source, dict):
        yield from _others(set(source), "Source", place)
        for key in ("extract", "transform"):
            for inner in listed(source.get(key)):
                if isinstance(inner, dict):
                    yield from _others(set(inner), _INNER[key], place)
                    if "jsonPath" in inner and steps(str(inner["jsonPath"])) is None:
                        yield f"{place}: expected a JSON path of keys and indexes, got {inner['jsonPath']!r}"


def _others(keys: set[str], kind: str, place: str) -> Iterator[str]:
    for key in sorted(keys - _KNOWN[kind]):
        yield f"{place}: expected a key that `toolkit croissant` writes, got {key!r}{did_you_mean(key, _KNOWN[kind])}"


def source_faults(id_: Any, source: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the terms by which a source says where values are, and what is done to them."""
    extract = source.get("extract")
    if isinstance(extract, dict) and not any(name in extract for name in _EXTRACTS):
        yield f"{id_}: expected {', '.join(_EXTRACTS[:3])} in `extract`, got {', '.join(extract) or 'nothing'}"
    for transform in listed(source.get("transform")):
        if not isinstance(transform, dict) or not any(name in transform for name in _TRANSFORMS):
            yield f"{id_}: expected jsonPath, regex … in `transform`, got {transform!r:.80}"
