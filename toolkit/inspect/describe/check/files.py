"""Checks of a file that a Croissant document describes: its size, its checksums, its rows."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data.documents import BAD_ROW
from toolkit.errors import DataError, ToolkitError
from toolkit.inspect.describe.about import listed
from toolkit.inspect.describe.check.nodes import Column, FieldNode, Node, fields_of, nodes, one_group
from toolkit.inspect.describe.croissant.document import CUT
from toolkit.inspect.describe.croissant.jsonld import path_part
from toolkit.inspect.describe.facts.data_file import DATES, EXACT, NUMERIC
from toolkit.runs.executors import Report
from toolkit.runs.progress import Position
from toolkit.storage.paths import stat
from toolkit.storage.reading import Lines, stored_digest


class Part(ConfigStruct):
    """A value of an example, and where rows have it.

    Attributes:
        shown: as the example has it.
        column: of the rows; None for a value that is read from the file's path, or the row's number.
        pattern: that reads it from the path; None for the row's number.
        path_property: what of the path the pattern is for, by Croissant's name.
    """

    shown: Any
    column: Column | None = None
    pattern: str | None = None
    path_property: str = ""

    def is_of(self, path: str, number: int, row: Node) -> bool:
        """Return whether the value is that of a row."""
        if self.column is not None:
            return _is_cut(self.shown, self.column.value(row))
        if self.pattern is None:
            return bool(self.shown == number)
        pattern = one_group(self.pattern)
        found = pattern.match(path_part(path, self.path_property)) if pattern else None
        return found is None or bool(self.shown == found[1])


class Example(ConfigStruct):
    """An example of a record set.

    Attributes:
        place: of the record set and in its list, for messages.
    """

    place: str
    parts: list[Part]

    def is_row(self, path: str, number: int, row: Node) -> bool:
        """Return whether this is the row with a number, from 0, of the file with a path."""
        return all(part.is_of(path, number, row) for part in self.parts)


def examples(document: Node) -> dict[str, list[Example]]:
    """Return the examples of all record sets that are read from files, by the file set of their rows."""
    found: dict[str, list[Example]] = {}
    for record in nodes(document, "recordSet"):
        fields = list(fields_of(record))
        file_set = next((each.file_set for each in fields if each.source), "")
        for number, row in enumerate(listed(record.get("examples")) if file_set else (), 1):
            if isinstance(row, dict):
                place = f"{record.get('@id')}: example {number}"
                found.setdefault(file_set, []).append(Example(place=place, parts=list(_parts(fields, row))))
    return found


def _parts(fields: list[FieldNode], row: Node) -> Iterator[Part]:
    for each in fields:
        if each.parent:
            whole = row.get(str(each.parent.get("@id")))
            shown = [_inner(part, each.id) for part in whole] if isinstance(whole, list) else _inner(whole, each.id)
        elif each.id in row:
            shown = row[each.id]
        else:
            continue
        if column := each.column:
            yield Part(shown=shown, column=column)
        elif each.extract.get("fileProperty") == "lineNumbers":
            yield Part(shown=shown)
        elif each.path_property:
            for pattern in each.transforms("regex"):
                yield Part(shown=shown, pattern=pattern, path_property=each.path_property)


def _inner(value: Any, id_: str) -> Any:
    """Return a part of a struct, or of a span; None where the value is no struct."""
    return value.get(id_) if isinstance(value, dict) else None


def _is_cut(shown: Any, value: Any) -> bool:
    """Return whether a value that is shown is one of rows, its texts and lists cut."""
    if isinstance(shown, str) and isinstance(value, str):
        return shown == value or (shown.endswith(CUT) and value.startswith(shown.removesuffix(CUT)))
    if isinstance(shown, list) and isinstance(value, list):
        return len(shown) <= len(value) and all(map(_is_cut, shown, value)) and (bool(shown) or not value)
    if shown is None or shown == []:
        return value is None or value == [] or (isinstance(value, list) and not any(value))
    return bool(shown == value)


@dataclass
class Checked:
    """The outcome of a check.

    Attributes:
        findings, warnings: texts ``path: expected …, got …``.
        leads: of each field with JSON paths, whether they led to a key in some row; none if there was nothing to look
            in.
        rows: of the file, if they were counted.
        values: of the column that was asked for, with their numbers.
        examples: places of those that are rows of the file.
    """

    findings: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    leads: dict[str, bool] = field(default_factory=dict)
    rows: int | None = None
    values: Counter[str] = field(default_factory=Counter)
    examples: set[str] = field(default_factory=set)


class FileCheck(ConfigStruct):
    """A file to check.

    Attributes:
        name: relative to the Croissant file.
        first: rows that are looked at.
        max_bytes: of a row.
        size: as listed, in bytes.
        hashes: checksums as listed, by the name of the property; none if they are not to be computed.
        columns: of its rows, if it has any.
        count: whether all rows are counted.
        values: a column whose values are counted.
        search: whether only `Checked.leads` are wanted, of all rows.
        examples: of the file's rows, some of which may be in it.
    """

    name: str
    path: str
    first: int
    max_bytes: int
    size: int | None = None
    hashes: dict[str, str] = {}
    columns: list[Column] = []
    count: bool = False
    values: str = ""
    search: bool = False
    examples: list[Example] = []


def check_file(work: FileCheck, report: Report) -> Checked:
    """Return what is wrong with one file."""
    checked = Checked()
    found = stat(work.path)
    if found is None:
        checked.findings.append(f"{work.path}: expected a file, got none there")
        return checked
    if work.size is not None and found.size != work.size:
        checked.findings.append(f"{work.path}: expected {work.size} bytes by the Croissant file, got {found.size}")
    else:
        for name, digest in work.hashes.items():
            if (got := stored_digest(work.path, hashlib.new(name))) != digest:
                checked.findings.append(f"{work.path}: expected {name} {digest} by the Croissant file, got {got}")
    try:
        if work.search:
            _search(work, checked, report)
        elif work.columns or work.count:
            _check_rows(work, checked, report)
    except ToolkitError as error:
        checked.findings.append(str(error))
    return checked


def _decoded(line: bytes, path: str, number: int) -> Node:
    try:
        return msgspec.json.decode(line, type=Node)
    except BAD_ROW as error:
        raise DataError(f"expected a JSON object, got: {error}", path=path, line=number) from None


def _lead(column: Column, row: Node, checked: Checked) -> None:
    if column.paths and not checked.leads.get(column.id) and (led := column.leads(row)) is not None:
        checked.leads[column.id] = led


def _search(work: FileCheck, checked: Checked, report: Report) -> None:
    """Read on until the paths of all columns have led somewhere."""
    with Lines(work.path, work.max_bytes * 2) as lines:
        done = Position(report, lines.stored)
        for line in lines:
            row = _decoded(line, work.path, lines.number)
            for column in work.columns:
                _lead(column, row, checked)
            done(1)
            if all(checked.leads.get(column.id) for column in work.columns):
                return


def _check_rows(work: FileCheck, checked: Checked, report: Report) -> None:
    look = _FirstRows(work, checked)
    missing, rows, whole = set(look.names), 0, True
    with Lines(work.path, work.max_bytes * 2) as lines:
        done = Position(report, lines.stored)
        for line in lines:
            if lines.number > work.first and not missing and not work.values:
                whole = False
                if not work.count:
                    break
                rows += 1 if line.strip() else 0
                continue
            row = _decoded(line, work.path, lines.number)
            if lines.number <= work.first:
                look.add(row, rows, lines.number)
            rows += 1
            missing -= row.keys()
            if isinstance(value := row.get(work.values), str):
                checked.values[value] += 1
            done(1)
        checked.rows = rows if work.count else None
        if lines.number:
            look.finish(missing, whole=whole)


class _FirstRows:
    """A look at the first rows of a file: values of wrong types, values that readers by pandas change.

    Attributes:
        names: of the columns that rows should have.
    """

    def __init__(self, work: FileCheck, checked: Checked) -> None:
        self.names = sorted({column.column for column in work.columns})
        self._work = work
        self._checked = checked
        self._numeric: dict[str, bool] = {}  # columns with texts: whether all are numbers
        self._large: set[str] = set()  # columns with integers that not every float is
        self._partly: set[str] = set()  # columns with rows that have none, or fractions
        self._wrong: dict[str, str] = {}

    def add(self, row: Node, number: int, line: int) -> None:
        """Check a row; its number is counted from 0, its line from 1."""
        work, checked = self._work, self._checked
        for name in self.names:
            value = row.get(name)
            if isinstance(value, str) and self._numeric.get(name, True):
                self._numeric[name] = NUMERIC.fullmatch(value) is not None
            elif isinstance(value, int) and abs(value) > EXACT:
                self._large.add(name)
            elif value is None or isinstance(value, float):
                self._partly.add(name)
        checked.examples |= {each.place for each in work.examples if each.is_row(work.name, number, row)}
        for column in work.columns:
            _lead(column, row, checked)
            if column.id not in self._wrong and (fault := column.fault(row)):
                self._wrong[column.id] = f"{work.path}:{line}: {fault}"

    def finish(self, missing: set[str], *, whole: bool) -> None:
        """Add what was found; missing: columns that no row has; whole: whether these were all rows."""
        path, checked = self._work.path, self._checked
        checked.findings += self._wrong.values()
        checked.findings += [f"{path}: expected the column {name!r} in some row, got none" for name in sorted(missing)]
        told = "rows" if whole else f"of the first {self._work.first} rows"
        for name in self.names:
            if name in self._large & self._partly:
                checked.warnings.append(
                    f"{path}: {name!r} has integers beyond 2^53, and rows without one; mlcroissant rounds them"
                )
            if self._numeric.get(name):
                checked.warnings.append(
                    f"{path}: all {told} have a number as {name!r}; mlcroissant changes such texts (0001 becomes 1)"
                )
            if DATES.fullmatch(name):
                checked.warnings.append(f"{path}: mlcroissant makes dates of columns that are called {name!r}")
