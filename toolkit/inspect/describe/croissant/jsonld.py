"""The JSON-LD of Croissant as typed structures, and its contexts.

Source: the Croissant Format Specification 1.0 and 1.1 (docs.mlcommons.org/croissant). The contexts have the terms that
mlcroissant 1.1 asks for, so that it has nothing to warn of.
"""

from typing import Any

import msgspec

BASE = "http://mlcommons.org/croissant/"
RAI = f"{BASE}RAI/1.0"

_TERMS = (
    "column extract field fileObject fileProperty fileSet format includes isLiveDataset jsonPath key md5 parentField "
    "path recordSet references regex repeated replace separator source subField transform citeAs"
)
_TERMS_10 = "equivalentProperty samplingRate"
_TERMS_11 = (
    "annotation arrayShape containedIn equivalentProperty excludes isArray readLines samplingRate sdVersion unArchive"
)


def context(version: str) -> dict[str, Any]:
    """Return the ``@context`` of a version, sorted."""
    terms = [*_TERMS.split(), *(_TERMS_11 if version == "1.1" else _TERMS_10).split()]
    found: dict[str, Any] = {term: f"cr:{term}" for term in terms}
    found |= {
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
    return dict(sorted(found.items()))


class _Node(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """Base: fields that have no value are left out, names are those of the specification."""


class Reference(_Node, kw_only=True):
    """Another node, by its id."""

    id: str = msgspec.field(name="@id")


class Agent(_Node, kw_only=True):
    """A person or an organization."""

    type: str = msgspec.field(name="@type")
    name: str
    url: str | None = None
    email: str | None = None


class FileObject(_Node, kw_only=True, tag_field="@type", tag="cr:FileObject"):
    """A file."""

    id: str = msgspec.field(name="@id")
    name: str
    content_url: str
    content_size: str | None = None
    encoding_format: str
    sha256: str | None = None


class PropertyValue(_Node, kw_only=True, tag_field="@type", tag="sc:PropertyValue"):
    """A name for something by what it is."""

    property_id: str = msgspec.field(name="propertyID")
    name: str | None = None
    value: str


class FileSet(_Node, kw_only=True, tag_field="@type", tag="cr:FileSet"):
    """Files of one kind."""

    id: str = msgspec.field(name="@id")
    name: str
    description: str
    encoding_format: str
    includes: str | list[str]
    identifier: list[PropertyValue] | None = None


class Extract(_Node, kw_only=True):
    """The place of a value in a file."""

    column: str | None = None
    file_property: str | None = None


class Transform(_Node, kw_only=True):
    """A change of a value."""

    json_path: str | None = None
    regex: str | None = None


class Source(_Node, kw_only=True):
    """The files and places that the values of a field come from."""

    file_set: Reference
    extract: Extract
    transform: Transform | list[Transform] | None = None


class References(_Node, kw_only=True):
    """The field of another record set that has the values of this one, in the form that mlcroissant takes."""

    field: Reference


class Field(_Node, kw_only=True, tag_field="@type", tag="cr:Field"):
    """A field of a record set."""

    id: str = msgspec.field(name="@id")
    name: str
    description: str | None = None
    data_type: str | list[str] | None = None
    repeated: bool = False
    is_array: bool = False
    array_shape: str | None = None
    references: References | None = None
    source: Source | None = None
    sub_field: list["Field"] | None = None


class RecordSet(_Node, kw_only=True, tag_field="@type", tag="cr:RecordSet"):
    """Records of one kind."""

    id: str = msgspec.field(name="@id")
    name: str
    description: str
    data_type: str | None = None
    key: Reference | list[Reference] | None = None
    data: list[dict[str, Any]] | None = None
    examples: list[dict[str, Any]] | None = None
    field: list[Field]


class Dataset(_Node, kw_only=True, tag_field="@type", tag="sc:Dataset"):
    """The whole document, but for the terms of other vocabularies."""

    context: dict[str, Any] = msgspec.field(name="@context")
    name: str
    description: str
    conforms_to: str | list[str]
    license: str | list[str]
    url: str
    creator: Agent | list[Agent]
    publisher: Agent | list[Agent] | None = None
    date_published: str
    date_created: str | None = None
    date_modified: str | None = None
    version: str | None = None
    cite_as: str | None = None
    keywords: list[str] | None = None
    same_as: str | list[str] | None = None
    sd_license: str | list[str] | None = None
    in_language: list[str] | None = None
    is_live_dataset: bool
    distribution: list[FileObject | FileSet]
    record_set: list[RecordSet]


FROM_PATHS = ("fullpath", "filename")
"""File properties that are read from the path of a file."""


def path_part(path: str, file_property: str) -> str:
    """Return what a file property is of a path: ``filename`` is its last part, any other one all of it."""
    return path.rpartition("/")[2] if file_property == "filename" else path


def one_or_list(values: list[Any]) -> Any:
    """Return a single value by itself, several as a list, none as None."""
    return None if not values else values[0] if len(values) == 1 else values


def to_bytes(document: dict[str, Any]) -> bytes:
    """Return the bytes of a file: keys in their order, two blanks a level."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
