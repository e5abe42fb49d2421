"""A Croissant document as it is read: its nodes, whatever may be wrong with them."""

import re
from collections.abc import Iterator
from typing import Any

from toolkit.inspect.describe.about import listed

Node = dict[str, Any]


def nodes(node: Node, key: str) -> list[Node]:
    """Return the objects at a key, which may have one or several values."""
    return [each for each in listed(node.get(key)) if isinstance(each, dict)]


def kind_of(node: Node) -> str:
    """Return the type of a node without its prefix."""
    return re.split(r"[:/]", str(node.get("@type")))[-1]


def fields_of(record: Node) -> Iterator[Node]:
    """Yield the fields of a record set, each followed by its parts."""
    for field in nodes(record, "field"):
        yield field
        yield from nodes(field, "subField")


def extract_of(field: Node) -> Node:
    """Return where in a file the values of a field are; empty if no object says it."""
    source = field.get("source")
    extract = source.get("extract") if isinstance(source, dict) else None
    return extract if isinstance(extract, dict) else {}


def all_nodes(document: Node) -> Iterator[Node]:
    """Yield the files, record sets and fields of a document."""
    yield from nodes(document, "distribution")
    for record in nodes(document, "recordSet"):
        yield record
        yield from fields_of(record)


def references_in(node: Any) -> Iterator[str]:
    """Yield the ids of the nodes that a node refers to in its fields, sources and `containedIn`."""
    if isinstance(node, list):
        for item in node:
            yield from references_in(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key in ("fileObject", "fileSet", "distribution", "field", "containedIn"):
                yield from (str(each["@id"]) for each in nodes(node, key) if "@id" in each)
            if key not in ("data", "examples"):
                yield from references_in(value)
