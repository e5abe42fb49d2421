"""Checks of a file that a Croissant document describes: its size, its checksums, its rows."""

import hashlib
from collections import Counter
from dataclasses import dataclass, field

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data.documents import BAD_ROW
from toolkit.errors import DataError, ToolkitError
from toolkit.inspect.describe.check.examples import Example
from toolkit.inspect.describe.check.nodes import Node
from toolkit.inspect.describe.check.values import Column
from toolkit.inspect.describe.facts.data_file import DATES, EXACT, NUMERIC
from toolkit.runs.executors import Report
from toolkit.runs.progress import Position
from toolkit.storage.paths import stat
from toolkit.storage.reading import Lines, stored_digest


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
