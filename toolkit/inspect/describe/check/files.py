"""Checks of a file that a Croissant file describes: its size and checksum, and its rows."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.errors import DataError, ToolkitError
from toolkit.inspect.describe.check.distribution import stored_hash
from toolkit.inspect.describe.check.examples import Example, is_row
from toolkit.inspect.describe.check.values import Column, fault, leads
from toolkit.inspect.describe.facts.data_file import DATES, EXACT, NUMERIC
from toolkit.storage.paths import stat
from toolkit.storage.reading import Lines

Report = Callable[[int, int], None]


@dataclass
class Checked:
    """What was found.

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


class Work(ConfigStruct):
    """A file to check.

    Attributes:
        name: relative to the Croissant file.
        size: as listed.
        hashes: as listed, by the name of the property.
        columns: of its rows, if it has any.
        digest: whether its checksums are computed.
        first: rows that are looked at.
        max_bytes: of a row.
        count: whether all rows are counted.
        values: a column whose values are.
        search: whether only `Checked.leads` are wanted, of all rows.
        examples: of the file's rows, some of which may be in it.
    """

    name: str
    path: str
    size: int | None
    hashes: dict[str, str]
    columns: list[Column]
    digest: bool
    first: int
    max_bytes: int
    count: bool = False
    values: str = ""
    search: bool = False
    examples: list[Example] = []


def check_file(work: Work, report: Report) -> Checked:
    """The findings and warnings about one file."""
    checked = Checked()
    found = stat(work.path)
    if found is None:
        checked.findings.append(f"{work.path}: expected a file, got none there")
        return checked
    if work.size is not None and found.size != work.size:
        checked.findings.append(f"{work.path}: expected {work.size} bytes by the Croissant file, got {found.size}")
    elif work.digest and not work.search:
        for name, digest in work.hashes.items():
            if (got := stored_hash(work.path, name)) != digest:
                checked.findings.append(f"{work.path}: expected {name} {digest} by the Croissant file, got {got}")
    try:
        if work.search:
            _search(work, checked, report)
        elif work.columns or work.count:
            _check_rows(work, checked, report)
    except ToolkitError as error:
        checked.findings.append(str(error))
    return checked


def _decoded(line: bytes, path: str, number: int) -> dict[str, Any]:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"expected a JSON object, got: {error}", path=path, line=number) from None


def _lead(column: Column, row: dict[str, Any], checked: Checked) -> None:
    if column.paths and not checked.leads.get(column.id) and (led := leads(column, row)) is not None:
        checked.leads[column.id] = led


def _search(work: Work, checked: Checked, report: Report) -> None:
    """Reads on until all paths have led somewhere."""
    with Lines(work.path, work.max_bytes * 2) as lines:
        for line in lines:
            row = _decoded(line, work.path, lines.number)
            for column in work.columns:
                _lead(column, row, checked)
            report(1, len(line))
            if all(checked.leads.get(column.id) for column in work.columns):
                return


def _check_rows(work: Work, checked: Checked, report: Report) -> None:
    missing = {column.column for column in work.columns}
    names = sorted(missing)
    texts: dict[str, bool] = {}
    large: set[str] = set()  # columns with integers that not every float is
    partly: set[str] = set()  # columns with rows that have none, or fractions
    wrong: dict[str, str] = {}
    whole, rows = True, 0
    with Lines(work.path, work.max_bytes * 2) as lines:
        for line in lines:
            if lines.number > work.first and not missing and not work.values:
                whole = False
                if not work.count:
                    break
                rows += 1 if line.strip() else 0
                continue
            row = _decoded(line, work.path, lines.number)
            rows += 1
            missing -= row.keys()
            report(1, len(line))
            if isinstance(value := row.get(work.values), str):
                checked.values[value] += 1
            if lines.number > work.first:
                continue
            for name, value in row.items():
                if isinstance(value, str) and texts.get(name, True):
                    texts[name] = NUMERIC.fullmatch(value) is not None
            for name in names:
                value = row.get(name)
                if isinstance(value, int) and abs(value) > EXACT:
                    large.add(name)
                elif value is None or isinstance(value, float):
                    partly.add(name)
            checked.examples |= {e.place for e in work.examples if is_row(e, work.name, rows - 1, row)}
            for column in work.columns:
                _lead(column, row, checked)
                if column.id not in wrong and (wrong_value := fault(column, row)):
                    wrong[column.id] = f"{work.path}:{lines.number}: {wrong_value}"
        checked.rows = rows if work.count else None
        if not lines.number:
            return
    checked.findings += wrong.values()
    checked.findings += [f"{work.path}: expected the column {name!r} in some row, got none" for name in sorted(missing)]
    for name in names:
        if name in large & partly:
            checked.warnings.append(
                f"{work.path}: {name!r} has integers beyond 2^53, and rows without one; mlcroissant rounds them"
            )
        if texts.get(name):
            told = "rows" if whole else f"of the first {work.first} rows"
            checked.warnings.append(
                f"{work.path}: all {told} have a number as {name!r}; mlcroissant changes such texts (0001 becomes 1)"
            )
        if DATES.fullmatch(name):
            checked.warnings.append(f"{work.path}: mlcroissant makes dates of columns that are called {name!r}")
