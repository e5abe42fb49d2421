"""Checks of a Croissant file: its structure, and each file that it lists against the disk.

Findings are what is wrong. Warnings are what readers by pandas, as mlcroissant is one, make of data that are right.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from toolkit.config import ConfigStruct
from toolkit.describing.about import listed
from toolkit.describing.common import matches, matching
from toolkit.describing.looking import DATES, NUMERIC, sha256_of
from toolkit.describing.structure import fields_of, nodes, transforms
from toolkit.errors import DataError, ToolkitError
from toolkit.paths import exists, is_folder, join, list_files, stat
from toolkit.stores import store_of
from toolkit.streams import Lines

ROWS = 100
"""Of each file, that are looked at."""

_ROWS_OF = "application/jsonlines"

Report = Callable[[int, int], None]


@dataclass
class Checked:
    """What was found.

    Attributes:
        findings, warnings: texts ``path: expected …, got …``.
    """

    findings: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class Column(ConfigStruct):
    """A field that is to be found in the rows of a file.

    Attributes:
        id: of the field.
        paths: JSON paths, applied one after the other, to each element of a list.
        data_type: of the values.
        many: whether a value is a list.
    """

    id: str
    column: str
    paths: list[str]
    data_type: str
    many: bool


class Work(ConfigStruct):
    """A file to check.

    Attributes:
        size, sha256: as listed.
        columns: of its rows, if it has any.
        digest: whether its checksum is computed.
        first: rows that are looked at.
        max_bytes: of a row.
    """

    path: str
    size: int | None
    sha256: str
    columns: list[Column]
    digest: bool
    first: int
    max_bytes: int


def read(path: str) -> dict[str, Any]:
    """The document.

    Raises:
        DataError: if there is none, or it is no JSON object.
    """
    try:
        return msgspec.json.decode(store_of(path).read(path), type=dict[str, Any])
    except OSError as error:
        raise DataError(f"expected a Croissant file, got: {error.strerror or error}", path=path) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"expected a Croissant file (a JSON object), got: {error}", path=path) from None


def is_croissant(path: str) -> bool:
    """Whether a path is that of a Croissant file, by its name."""
    return path.rpartition("/")[2].endswith("croissant.json")


# --- files ------------------------------------------------------------------------------------------------------------


def plan(path: str, document: dict[str, Any], first: int | None, max_bytes: int) -> tuple[list[Work], list[str]]:
    """The files to check, and findings about globs and paths that lead nowhere."""
    folder = path.rpartition("/")[0] or "."
    there = list(list_files(folder, hidden=True)) if is_folder(folder) else []
    known_paths = set(there)
    findings: list[str] = []
    works: dict[str, Work] = {}
    live = document.get("isLiveDataset") is True
    columns = _columns(document)
    for node in nodes(document, "distribution"):
        url, id_ = str(node.get("contentUrl", "")), node.get("@id")
        if node.get("@type") == "cr:FileObject":
            if not re.match(r"[a-z][a-z0-9+.-]*://", url):
                findings += _listed_faults(path, node, exists(join(folder, url)), live=live)
                if exists(join(folder, url)):
                    works[url] = Work(
                        path=join(folder, url),
                        size=_bytes_of(node.get("contentSize")),
                        sha256=str(node.get("sha256") or ""),
                        columns=[],
                        digest=first is None,
                        first=first or ROWS,
                        max_bytes=max_bytes,
                    )
        elif not node.get("containedIn"):
            found = [str(glob) for glob in listed(node.get("includes"))]
            for glob in found or [""]:
                if glob not in known_paths and not any(_includes(each, glob) for each in there):
                    findings.append(f"{path}: {id_}: expected files that match {glob!r}, got none")
            if node.get("encodingFormat") == _ROWS_OF:
                for each in matching(there, found):
                    known = works.get(each) or Work(
                        path=join(folder, each),
                        size=None,
                        sha256="",
                        columns=[],
                        digest=False,
                        first=first or ROWS,
                        max_bytes=max_bytes,
                    )
                    more = [*known.columns, *columns.get(str(id_), ())]
                    works[each] = msgspec.structs.replace(known, columns=more)
    return list(works.values()), findings


def _includes(path: str, glob: str) -> bool:
    """Under either reading of globs: ``**/`` may or may not be no folder at all."""
    return matches(path, glob) or matches(path, glob.replace("**/", ""))


def _listed_faults(path: str, node: dict[str, Any], there: bool, *, live: bool) -> Iterator[str]:
    name = node.get("contentUrl") or node.get("@id")
    if not there:
        yield f"{path}: {node.get('@id')}: expected the file {name}, got none there"
    if not live and not (node.get("sha256") or node.get("md5")):
        yield f"{path}: {node.get('@id')}: expected sha256, because the dataset is not live, got none"


def _bytes_of(size: Any) -> int | None:
    found = re.fullmatch(r"(\d+)( B)?", str(size))
    return int(found[1]) if found else None


def _columns(document: dict[str, Any]) -> dict[str, list[Column]]:
    """The columns that rows must have, by file set."""
    found: dict[str, list[Column]] = {}
    for record in nodes(document, "recordSet"):
        for each, parent in fields_of(record):
            source = each.get("source")
            extract = source.get("extract") if isinstance(source, dict) else None
            if (
                not isinstance(source, dict)
                or not isinstance(extract, dict)
                or not isinstance(source.get("fileSet"), dict)
            ):
                continue
            if "column" in extract:
                many = any(bool(node.get("repeated") or node.get("isArray")) for node in (each, parent or {}))
                column = Column(
                    id=str(each.get("@id")),
                    column=str(extract["column"]),
                    paths=transforms(source, "jsonPath"),
                    data_type=str((listed(each.get("dataType")) or [""])[0]),
                    many=many,
                )
                found.setdefault(str(source["fileSet"].get("@id")), []).append(column)
    return found


def check_file(work: Work, report: Report) -> Checked:
    """The findings and warnings about one file."""
    checked = Checked()
    found = stat(work.path)
    if found is None:
        checked.findings.append(f"{work.path}: expected a file, got none there")
        return checked
    if work.size is not None and found.size != work.size:
        checked.findings.append(f"{work.path}: expected {work.size} bytes by the Croissant file, got {found.size}")
    elif work.digest and work.sha256 and (got := sha256_of(work.path)) != work.sha256:
        checked.findings.append(f"{work.path}: expected sha256 {work.sha256} by the Croissant file, got {got}")
    try:
        if work.columns:
            _check_rows(work, checked, report)
    except ToolkitError as error:
        checked.findings.append(str(error))
    return checked


def _check_rows(work: Work, checked: Checked, report: Report) -> None:
    missing = {column.column for column in work.columns}
    texts: dict[str, bool] = {}
    wrong: dict[str, str] = {}
    whole = True
    with Lines(work.path, work.max_bytes * 2) as lines:
        for line in lines:
            if lines.number > work.first and not missing:
                whole = False
                break
            try:
                row = msgspec.json.decode(line, type=dict[str, Any])
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise DataError(f"expected a JSON object, got: {error}", path=work.path, line=lines.number) from None
            missing -= row.keys()
            report(1, len(line))
            if lines.number > work.first:
                continue
            for name, value in row.items():
                if isinstance(value, str) and texts.get(name, True):
                    texts[name] = NUMERIC.fullmatch(value) is not None
            for column in work.columns:
                if column.id not in wrong and (fault := _fault(column, row)):
                    wrong[column.id] = f"{work.path}:{lines.number}: {fault}"
        if not lines.number:
            return
    checked.findings += wrong.values()
    checked.findings += [f"{work.path}: expected the column {name!r} in some row, got none" for name in sorted(missing)]
    for name in sorted({column.column for column in work.columns}):
        if texts.get(name):
            rows = "rows" if whole else f"of the first {work.first} rows"
            checked.warnings.append(
                f"{work.path}: all {rows} have a number as {name!r}; mlcroissant changes such texts (0001 becomes 1)"
            )
        if DATES.fullmatch(name):
            checked.warnings.append(f"{work.path}: mlcroissant makes dates of columns that are called {name!r}")


# --- values -----------------------------------------------------------------------------------------------------------

_STEP = re.compile(r"\['((?:[^'\\]|\\.)*)'\]|\[(\d+)\]|\.([A-Za-z_]\w*)")


def _fault(column: Column, row: dict[str, Any]) -> str:
    value: Any = row.get(column.column)
    for path in column.paths:
        steps = _steps(path)
        if steps is None:
            return ""  # a path of another form than ours
        value = [_follow(each, steps) for each in value] if isinstance(value, list) else _follow(value, steps)
    if column.many and value is not None and not isinstance(value, list):
        return f"expected a list at {column.id}, got {value!r:.80}"
    if not column.many and isinstance(value, list) and value:  # Dolma has [] for all attributes of a skipped document
        return f"expected a value at {column.id}, got a list"
    for each in _leaves(value):
        if not _fits(each, column.data_type):
            return f"expected {column.data_type} at {column.id}, got {each!r:.80}"
    return ""


def _steps(path: str) -> list[str | int] | None:
    steps: list[str | int] = []
    place = 1 if path.startswith("$") else 0
    while place < len(path):
        found = _STEP.match(path, place)
        if found is None:
            return None
        quoted, index, plain = found.groups()
        steps.append(int(index) if index else plain if plain is not None else re.sub(r"\\(.)", r"\1", quoted))
        place = found.end()
    return steps


def _follow(value: Any, steps: list[str | int]) -> Any:
    for step in steps:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    elif value is not None:
        yield value


def _fits(value: Any, data_type: str) -> bool:
    match data_type.rpartition(":")[2]:
        case "Text" | "URL":
            return isinstance(value, str)
        case "Boolean":
            return isinstance(value, bool)
        case "Integer" | "Int64" | "Int32":
            digits = isinstance(value, str) and re.fullmatch(r"[+-]?\d+", value) is not None
            return digits or (isinstance(value, int) and not isinstance(value, bool))
        case "Float" | "Float64" | "Float32":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "DateTime" | "Date":
            return isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d", value) is not None
    return True
