"""Read any Croissant document, also a faulty one: its nodes, files, and records by mlcroissant."""

import contextlib
import hashlib
import itertools
import json
import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Literal
from urllib.parse import unquote

import msgspec

from toolkit.data.documents import BAD_ROW
from toolkit.describe.about import as_list
from toolkit.describe.croissant import REQUIRED
from toolkit.describe.record_types import matching
from toolkit.distribution import missing_extra
from toolkit.errors import DataError, ToolkitError
from toolkit.ingest.formats.croissant import first_line, quiet
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import exists, is_folder, join, list_files, size_of
from toolkit.storage.reading import stored_digest
from toolkit.storage.stores.local.scratch import scratch
from toolkit.storage.threads import for_each

Severity = Literal["specification", "reader", "advice"]
"""Severity of a finding: data or a description that break their specification, or contradict each other; a program
that cannot read them; something that is right, and may be meant otherwise."""


class Finding(msgspec.Struct, frozen=True):
    """A result of a check.

    Attributes:
        message: Text ``place: expected …, got …``.
        severity: Kind of the finding; `advice` is no fault.
    """

    message: str
    severity: Severity = "specification"

    def __str__(self) -> str:
        return self.message if self.severity == "specification" else f"{self.severity}: {self.message}"


Node = dict[str, Any]

LARGEST = 64 << 20
"""Bytes of a Croissant document, at most."""

_HEAD = 1 << 16


def is_croissant(path: str) -> bool:
    """Return true for a Croissant document, by content or name."""
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
    """Return a file's document, and findings about repeated keys and ids.

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


def text_of(value: Any) -> str:
    """Return the beginning of a value as text, for messages."""
    if value is None:
        return "none"
    return f"{value if isinstance(value, str) else msgspec.json.encode(value).decode():.200}"


def nodes(node: Node, key: str) -> list[Node]:
    """Return the objects at a key with one or several values."""
    return [item for item in as_list(node.get(key)) if isinstance(item, dict)]


def kind_of(node: Node) -> str:
    """Return the type of a node without its prefix."""
    return re.split(r"[:/]", str(node.get("@type")))[-1]


def fields_of(record: Node) -> Iterator[Node]:
    """Yield the fields of a record set, each followed by its parts."""
    for field in nodes(record, "field"):
        yield field
        yield from nodes(field, "subField")


def extract_of(field: Node) -> Node:
    """Return the place of a field's values in a file; empty if no object gives it."""
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
    """Yield the ids in a node's fields, sources and `containedIn`."""
    if isinstance(node, list):
        for item in node:
            yield from references_in(item)
    elif isinstance(node, dict):
        for key, value in node.items():
            if key in ("fileObject", "fileSet", "distribution", "field", "containedIn"):
                yield from (str(node["@id"]) for node in nodes(node, key) if "@id" in node)
            if key not in ("data", "examples"):
                yield from references_in(value)


# --- files ------------------------------------------------------------------------------------------------------------

_BYTES = re.compile(r"(\d+)\s*(?:B|bytes)?", re.IGNORECASE)


def check_files(path: str, document: Node, first: int | None, *, data: bool) -> tuple[list[Finding], set[str]]:
    """Return findings about an external description's files, and readable files' ids.

    Args:
        path: Path of the document.
        document: Its content.
        first: Rows that are read; with a number, no checksums are computed.
        data: True if missing files are faults, and files of the web may be read.
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
            globs = [str(glob) for glob in as_list(node.get("includes"))]
            present_paths = list(list_files(folder, hidden=True)) if globs and is_folder(folder) else []
            if matching(present_paths, globs):
                present.add(id_)
            elif globs:
                expected = " or ".join(map(repr, globs))
                findings.append(Finding(f"{path}: {id_}: expected files that match {expected}, got none", missing))
        elif isinstance(url, str) and re.match(r"[a-z][a-z0-9+.-]*://", url):
            present |= {id_} if data else set()
        elif isinstance(url, str) and url:
            if posixpath.isabs(url) or posixpath.normpath(url).split("/")[0] == "..":
                message = f"{path}: {id_}: expected a file below the folder of the Croissant file, got {url!r}"
                findings.append(Finding(message))
                continue
            stored = next((item for item in (join(folder, url), join(folder, unquote(url))) if exists(item)), "")
            if stored:
                present.add(id_)
                files.append((node, stored))
            else:
                findings.append(Finding(f"{path}: {id_}: expected the file {url}, got none there", missing))
    for faults in for_each(lambda file: list(_faults(*file, digests=first is None)), files):
        findings += map(Finding, faults)
    return findings, present


def bytes_of(node: Node) -> int | None:
    """Return the stated size of a file; None if it is not in bytes."""
    match = _BYTES.fullmatch(str(node.get("contentSize", "")).strip())
    return int(match[1]) if match else None


def _faults(node: Node, path: str, *, digests: bool) -> Iterator[str]:
    """Yield the differences of a file from its stated size and checksums."""
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


RECORDS = 100
"""Records of each record set that are read."""

SHOWN = 20
"""Errors of a document that are shown."""

LARGEST_FILE = 64 << 20
"""Stored bytes of a file up to which records are read: mlcroissant holds about seven times its content."""


def is_installed() -> bool:
    return find_spec("mlcroissant") is not None


def check(path: str, document: Node, present: set[str] | None, first: int | None, *, data: bool) -> Iterator[Finding]:
    """Load a document and its first records, and yield the findings.

    Args:
        path: Path of the document.
        document: Its content.
        present: Ids of the files that can be read; None for a description of ours, whose files are all here.
        first: Records of each record set; None for `RECORDS`, and none if a file is large.
        data: True to read all records.
    """
    if not is_installed():
        missing = missing_extra("croissant", "reading by Croissant", "mlcroissant")
        yield Finding(f"{path}: not read by mlcroissant: {missing}", "advice" if present is None else "reader")
        return
    with quiet(), contextlib.ExitStack() as stack:
        import mlcroissant

        local = path
        if not store_of(path).is_local:
            local = join(stack.enter_context(scratch()), "croissant.json")
            write_file(local, store_of(path).read(path))
            present = set()
        try:
            dataset = mlcroissant.Dataset(local)
        except mlcroissant.ValidationError as error:
            yield from _listed(path, str(error))
            return
        except Exception as error:
            yield Finding(f"{path}: mlcroissant: {first_line(error)}", "reader")
            return
        issues = dataset.metadata.ctx.issues
        yield from (Finding(f"{path}: mlcroissant: {message}") for message in sorted(issues.errors))
        yield from (Finding(f"{path}: mlcroissant: {message}", "advice") for message in sorted(issues.warnings))
        large = max((bytes_of(node) or 0 for node in nodes(document, "distribution")), default=0)
        if first is None and not data and large > LARGEST_FILE:
            message = f"{path}: no records read by mlcroissant: a file has {large:,} bytes; --first N does"
            yield Finding(message, "advice")
            return
        yield from _Records(path, document, dataset, first or (None if data else RECORDS)).check(present)


def _listed(path: str, text: str) -> Iterator[Finding]:
    """Yield the errors and warnings in the text of a `ValidationError`."""
    severity: Severity = "specification"
    for number, line in enumerate(text.splitlines()):
        if line.startswith("Found the following"):
            severity = "advice" if "warning" in line else "specification"
        elif line.strip() and number <= SHOWN:
            yield Finding(f"{path}: mlcroissant: {re.sub(r'^ *-  ', '', line)}", severity)


class _Records:
    """The records of a description, as mlcroissant reads them.

    Args:
        path: Path of the document.
        document: Its content.
        dataset: The same, loaded by mlcroissant.
        number: Records of each set that are read; None for all.
    """

    def __init__(self, path: str, document: Node, dataset: Any, number: int | None) -> None:
        self._path = path
        self._dataset = dataset
        self._number = number
        self._sets = {str(node.get("@id")): node for node in nodes(document, "recordSet")}
        self._files = {str(node.get("@id")): node for node in nodes(document, "distribution")}
        self._homes = {str(field.get("@id")): id_ for id_, item in self._sets.items() for field in fields_of(item)}
        self._targets = {
            str(field.get("@id")): target
            for item in self._sets.values()
            for field in fields_of(item)
            for target in references_in(field.get("references"))
        }
        self._values: dict[str, set[Any]] = {id_: set() for pair in self._targets.items() for id_ in pair}
        self._whole: set[str] = set()

    def check(self, present: set[str] | None) -> Iterator[Finding]:
        """Yield findings about reading, keys and foreign keys.

        Args:
            present: Ids of the files that can be read; None for all.
        """
        absent = []
        for id_, record in self._sets.items():
            if any(extract_of(field).get("fileProperty") == "lines" for field in fields_of(record)):
                message = f"{self._path}: {id_} is not read: mlcroissant takes lines of text for CSV"
                yield Finding(message, "advice")
            elif present is not None and not self._sources(id_) <= present:
                absent.append(id_)
            elif "data" in record or self._sources(id_):
                yield from self._check_set(id_, record)
        if absent:
            message = f"{self._path}: {', '.join(absent)} not read: files are not here; --data reads them"
            yield Finding(message, "advice")
        for id_, target in self._targets.items():
            lost = self._values[id_] - self._values[target]
            if lost and self._homes.get(target) in self._whole:
                value = min(map(repr, lost))
                yield Finding(f"{self._path}: {id_}: expected values that {target} has, got {value}")

    def _check_set(self, id_: str, record: Node) -> Iterator[Finding]:
        keys = [str(node.get("@id")) for node in nodes(record, "key")]
        fields = [field for field in self._values if self._homes.get(field) == id_]
        keys_before: set[tuple[Any, ...]] = set()
        count = 0
        try:
            for row in itertools.islice(self._dataset.records(id_), self._number):
                count += 1
                key = tuple(_value(row, name) for name in keys)
                if key in keys_before and any(part is not None for part in key):
                    text = ", ".join(map(repr, key))
                    yield Finding(f"{self._path}: {id_}: expected each key once, got {text} again in record {count}")
                keys_before.add(key)
                for field in fields:
                    if (value := _value(row, field)) is not None:
                        self._values[field].add(value)
        except Exception as error:
            yield Finding(f"{self._path}: mlcroissant: {id_}: {first_line(error)}", "reader")
            return
        if count != self._number:
            self._whole.add(id_)

    def _sources(self, id_: str) -> set[str]:
        """Return the ids of a set's files, directly or through other sets."""
        results: set[str] = set()
        waiting, visited = [id_], set[str]()
        while waiting:
            name = waiting.pop()
            if name in visited:
                continue
            visited.add(name)
            if name in self._files:
                results.add(name)
                waiting += references_in({"containedIn": self._files[name].get("containedIn")})
            elif name in self._sets:
                waiting += references_in(self._sets[name].get("field"))
            elif name in self._homes:
                waiting.append(self._homes[name])
        return results


def _value(row: dict[str, Any], id_: str) -> Any:
    """Return a comparable value of a record's field or its part."""
    value = row.get(id_)
    if id_ not in row:
        structs = (item for item in row.values() if isinstance(item, dict) and id_ in item)
        value = next((struct[id_] for struct in structs), None)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str | int | float | None) else str(value)
