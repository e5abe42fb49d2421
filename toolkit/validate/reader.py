"""Checks by mlcroissant, the reference implementation: of a Croissant document, and of the records that it reads."""

import contextlib
import itertools
import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from toolkit.distribution import missing_extra
from toolkit.ingest.reading.croissant import first_line, quiet
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join
from toolkit.storage.stores.local.scratch import scratch
from toolkit.validate.findings import Finding, Severity
from toolkit.validate.nodes import Node, bytes_of, extract_of, fields_of, nodes, references_in

RECORDS = 100
"""Records of each record set that are read."""

SHOWN = 20
"""Errors of a document that are shown."""

LARGEST = 64 << 20
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
        data: Whether all records are read.
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
        if first is None and not data and large > LARGEST:
            message = f"{path}: no records read by mlcroissant: a file has {large:,} bytes; --first N does"
            yield Finding(message, "advice")
            return
        yield from _Records(path, document, dataset, first or (None if data else RECORDS)).check(present)


def _listed(path: str, text: str) -> Iterator[Finding]:
    """Yield the errors and warnings that the text of a `ValidationError` lists."""
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
        self._sets = {str(each.get("@id")): each for each in nodes(document, "recordSet")}
        self._files = {str(each.get("@id")): each for each in nodes(document, "distribution")}
        self._homes = {str(field.get("@id")): id_ for id_, each in self._sets.items() for field in fields_of(each)}
        self._targets = {
            str(field.get("@id")): target
            for each in self._sets.values()
            for field in fields_of(each)
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
        keys = [str(each.get("@id")) for each in nodes(record, "key")]
        fields = [field for field in self._values if self._homes.get(field) == id_]
        seen: set[tuple[Any, ...]] = set()
        count = 0
        try:
            for row in itertools.islice(self._dataset.records(id_), self._number):
                count += 1
                key = tuple(_value(row, name) for name in keys)
                if key in seen and any(part is not None for part in key):
                    shown = ", ".join(map(repr, key))
                    yield Finding(f"{self._path}: {id_}: expected each key once, got {shown} again in record {count}")
                seen.add(key)
                for field in fields:
                    if (value := _value(row, field)) is not None:
                        self._values[field].add(value)
        except Exception as error:
            yield Finding(f"{self._path}: mlcroissant: {id_}: {first_line(error)}", "reader")
            return
        if count != self._number:
            self._whole.add(id_)

    def _sources(self, id_: str) -> set[str]:
        """Return the ids of the files that the records of a set are read from, directly or through other sets."""
        found: set[str] = set()
        waiting, done = [id_], set[str]()
        while waiting:
            name = waiting.pop()
            if name in done:
                continue
            done.add(name)
            if name in self._files:
                found.add(name)
                waiting += references_in({"containedIn": self._files[name].get("containedIn")})
            elif name in self._sets:
                waiting += references_in(self._sets[name].get("field"))
            elif name in self._homes:
                waiting.append(self._homes[name])
        return found


def _value(row: dict[str, Any], id_: str) -> Any:
    """Return the value of a field of a record, or of a part of one, so that it can be compared."""
    value = row.get(id_)
    if id_ not in row:
        structs = (each for each in row.values() if isinstance(each, dict) and id_ in each)
        value = next((each[id_] for each in structs), None)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str | int | float | None) else str(value)
