"""Checks of the terms of a Croissant document: its context, the properties of the dataset, the names of all keys.

Source: Croissant 1.0 and 1.1, "Dataset-level information" and appendix "JSON-LD context"; Croissant RAI Vocabulary 1.0;
schema.org.
"""

import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from toolkit.errors import did_you_mean
from toolkit.inspect.describe.about import Rai, listed
from toolkit.inspect.describe.check.nodes import Node, is_ours, kind_of
from toolkit.inspect.describe.croissant import jsonld


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
