"""Checks of a Croissant document: ours by making it again, any other by mlcroissant, both against their files."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from toolkit.data.dataset import Dataset
from toolkit.data.documents import BAD_ROW
from toolkit.errors import DataError
from toolkit.inspect.describe.check import external, ours, reader
from toolkit.inspect.describe.check.nodes import Node, all_nodes
from toolkit.inspect.describe.check.ours import Describe
from toolkit.inspect.findings import Finding
from toolkit.storage import store_of
from toolkit.storage.paths import exists, is_folder, size_of

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


def check(
    path: str, describe: Describe, datasets: Sequence[Dataset], first: int | None, *, data: bool
) -> list[Finding]:
    """Return the findings about a Croissant document and the files that it describes.

    Args:
        path: Path of the document.
        describe: Makes the facts about a dataset or an output.
        datasets: Datasets of the configuration, one of which it may describe.
        first: Rows of each file that are read; None for all.
        data: Whether the files of an external description must be there, and all its records are read.
    """
    try:
        document, findings = read(path)
    except DataError as error:
        return [Finding(str(error))]
    findings += (f"{path}: {fault}" for fault in _repeated_ids(document))
    if ours.is_ours(document):
        found = list(ours.check(path, document, describe, datasets, first))
        present = None
    else:
        found, present = external.check(path, document, first, data=data)
    return [*map(Finding, findings), *found, *reader.check(path, document, present, first, data=data)]


def read(path: str) -> tuple[Node, list[str]]:
    """Return the document of a file, and findings about keys that one of its objects has twice.

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
    return document, findings


def _repeated_ids(document: Node) -> Iterator[str]:
    """Yield the ids that several files, record sets or fields have: mlcroissant takes one of them."""
    for id_, count in Counter(str(node["@id"]) for node in all_nodes(document) if "@id" in node).items():
        if count > 1:
            yield f"expected each @id once, got {id_!r} {count} times"
