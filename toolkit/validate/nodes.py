"""A Croissant document as it is read, whatever may be wrong with it: its nodes and its files."""

import hashlib
import json
import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import msgspec

from toolkit.data.documents import BAD_ROW
from toolkit.describe.about import listed
from toolkit.describe.croissant import REQUIRED
from toolkit.describe.records import matching
from toolkit.errors import DataError, ToolkitError
from toolkit.storage import store_of
from toolkit.storage.paths import exists, is_folder, join, list_files, size_of
from toolkit.storage.reading import stored_digest
from toolkit.storage.threads import for_each
from toolkit.validate.findings import Finding, Severity

Node = dict[str, Any]

LARGEST = 64 << 20
"""Bytes of a Croissant document, at most."""

_HEAD = 1 << 16


def is_croissant(path: str) -> bool:
    """Return whether a file is a Croissant document, by its content, or at least by its name."""
    if path.endswith("croissant.json"):
        return True
    if not exists(path) or is_folder(path) or size_of(path) > LARGEST:
        return False
    store = store_of(path)
    if b'"@context"' not in store.read(path, 0, _HEAD):
        return False
    try:
        document = msgspec.json.decode(store.read(path))
    except BAD_ROW:
        return False
    return isinstance(document, dict) and bool({"distribution", "recordSet", "conformsTo"} & document.keys())


def read(path: str) -> tuple[Node, list[str]]:
    """Return the document of a file, and findings about keys that one of its objects has twice, and ids that several.

    Raises:
        DataError: if there is no such file, or it holds no JSON object.
    """
    try:
        data = store_of(path).read(path)
        document = msgspec.json.decode(data, type=Node)
    except OSError as error:
        raise DataError(f"expected a Croissant file, got: {error.strerror or error}", path=path) from None
    except BAD_ROW as error:
        raise DataError(f"expected a Croissant file (a JSON object), got: {error}", path=path) from None
    findings: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> Node:
        node = dict(pairs)
        if len(node) < len(pairs):
            twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
            where = f" in {node['@id']}" if "@id" in node else ""
            findings.append(f"{path}: expected each key once, got {' and '.join(map(repr, twice))} again{where}")
        return node

    json.loads(data, object_pairs_hook=note)
    ids = Counter(str(node["@id"]) for node in _all_nodes(document) if "@id" in node)
    findings += [
        f"{path}: expected each @id once, got {id_!r} {count} times" for id_, count in ids.items() if count > 1
    ]
    return document, findings


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


def _all_nodes(document: Node) -> Iterator[Node]:
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


# --- files ------------------------------------------------------------------------------------------------------------

_BYTES = re.compile(r"(\d+)\s*(?:B|bytes)?", re.IGNORECASE)


def check_files(path: str, document: Node, first: int | None, *, data: bool) -> tuple[list[Finding], set[str]]:
    """Return the findings about the files of an external description, and the ids of those that can be read.

    Args:
        path: Path of the document.
        document: Its content.
        first: Rows that are read; with a number, no checksums are computed.
        data: Whether files that are not here are faults, and files of the web may be read.
    """
    missing: Severity = "specification" if data else "advice"
    findings = [
        Finding(f"{path}: expected {name}, which Croissant requires, got none", "advice")
        for name in REQUIRED  # many descriptions lack some, and mlcroissant reads those, too
        if not document.get(name)
    ]
    folder, present, files = path.rpartition("/")[0] or ".", set[str](), list[tuple[Node, str]]()
    for node in nodes(document, "distribution"):
        id_, url = str(node.get("@id") or node.get("name")), node.get("contentUrl")
        if node.get("containedIn"):  # read where what it is in can be
            present.add(id_)
        elif kind_of(node) == "FileSet":
            globs = [str(glob) for glob in listed(node.get("includes"))]
            there = list(list_files(folder, hidden=True)) if globs and is_folder(folder) else []
            if matching(there, globs):
                present.add(id_)
            elif globs:
                wanted = " or ".join(map(repr, globs))
                findings.append(Finding(f"{path}: {id_}: expected files that match {wanted}, got none", missing))
        elif isinstance(url, str) and re.match(r"[a-z][a-z0-9+.-]*://", url):
            present |= {id_} if data else set()
        elif isinstance(url, str) and url:
            if posixpath.isabs(url) or posixpath.normpath(url).split("/")[0] == "..":
                message = f"{path}: {id_}: expected a file below the folder of the Croissant file, got {url!r}"
                findings.append(Finding(message))
                continue
            stored = next((each for each in (join(folder, url), join(folder, unquote(url))) if exists(each)), "")
            if stored:
                present.add(id_)
                files.append((node, stored))
            else:
                findings.append(Finding(f"{path}: {id_}: expected the file {url}, got none there", missing))
    for faults in for_each(lambda file: list(_faults(*file, digests=first is None)), files):
        findings += map(Finding, faults)
    return findings, present


def bytes_of(node: Node) -> int | None:
    """Return the size that a file states; None if it is not stated in bytes."""
    found = _BYTES.fullmatch(str(node.get("contentSize", "")).strip())
    return int(found[1]) if found else None


def _faults(node: Node, path: str, *, digests: bool) -> Iterator[str]:
    """Yield the differences of a file from the size and the checksums that are stated."""
    size = bytes_of(node)
    if size is not None and size != (got := size_of(path)):
        yield f"{path}: expected {size} bytes by the Croissant file, got {got}"
        return
    for name in ("sha256", "md5") if digests else ():
        try:
            if node.get(name) and (digest := stored_digest(path, hashlib.new(name))) != node[name]:
                yield f"{path}: expected {name} {node[name]} by the Croissant file, got {digest}"
        except ToolkitError as error:
            yield str(error)
