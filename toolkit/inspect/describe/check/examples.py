"""The examples of a Croissant file of ours beside the rows: each is a row, with its texts and lists cut."""

from collections.abc import Iterator
from typing import Any

from toolkit.config.settings import ConfigStruct
from toolkit.inspect.describe.about import listed
from toolkit.inspect.describe.check.structure import compiled, fields_of, nodes, transforms
from toolkit.inspect.describe.check.values import Column, value_of

CUT = " …"
"""What a text that was cut ends with."""


class Part(ConfigStruct):
    """A value of an example, and where it is in rows.

    Attributes:
        column: of the rows; None for a value that is read from the file's path, or the row's number.
        pattern: that reads it from the path; None for the row's number.
        by_name: whether from the last part of the path.
        shown: as the example has it.
    """

    column: Column | None
    pattern: str | None
    shown: Any
    by_name: bool = False


class Example(ConfigStruct):
    """An example of a record set.

    Attributes:
        place: of the record set and in its list, for messages.
    """

    place: str
    parts: list[Part]


def examples(document: dict[str, Any]) -> dict[str, list[Example]]:
    """Return the examples of all record sets that are read from files, by the file set of their rows."""
    found: dict[str, list[Example]] = {}
    for record in nodes(document, "recordSet"):
        fields = list(fields_of(record))
        sources = [source for each, _ in fields if isinstance(source := each.get("source"), dict)]
        if not sources or not isinstance(sources[0].get("fileSet"), dict):
            continue
        file_set = str(sources[0]["fileSet"].get("@id"))
        for number, row in enumerate(listed(record.get("examples"))):
            if isinstance(row, dict):
                place = f"{record.get('@id')}: example {number + 1}"
                found.setdefault(file_set, []).append(Example(place=place, parts=list(_parts(fields, row))))
    return found


def _parts(fields: list[tuple[dict[str, Any], dict[str, Any] | None]], row: dict[str, Any]) -> Iterator[Part]:
    for each, parent in fields:
        source, id_ = each.get("source"), str(each.get("@id"))
        if not isinstance(source, dict) or not isinstance(extract := source.get("extract"), dict):
            continue
        if parent is None:
            if id_ not in row:
                continue
            shown = row[id_]
        else:
            whole = row.get(str(parent.get("@id")))
            shown = [_inner(part, id_) for part in whole] if isinstance(whole, list) else _inner(whole, id_)
        if "column" in extract:
            many = any(bool(node.get("repeated") or node.get("isArray")) for node in (each, parent or {}))
            paths = transforms(source, "jsonPath")
            column = Column(id=id_, column=str(extract["column"]), paths=paths, data_type="", many=many)
            yield Part(column=column, pattern=None, shown=shown)
        elif extract.get("fileProperty") == "lineNumbers":
            yield Part(column=None, pattern=None, shown=shown)
        elif (what := extract.get("fileProperty")) in ("fullpath", "filename"):
            for text in transforms(source, "regex"):
                yield Part(column=None, pattern=text, shown=shown, by_name=what == "filename")


def _inner(value: Any, id_: str) -> Any:
    """A part of a struct, or of a span, which stands as it is where its record set does not part it."""
    return value.get(id_) if isinstance(value, dict) else None


def is_row(example: Example, path: str, number: int, row: dict[str, Any]) -> bool:
    """Return whether an example is this row of the file with this path, counted from 0."""
    return all(_is_same(part, path, number, row) for part in example.parts)


def _is_same(part: Part, path: str, number: int, row: dict[str, Any]) -> bool:
    if part.column is not None:
        return _is_cut(part.shown, value_of(part.column, row))
    if part.pattern is None:
        return bool(part.shown == number)
    pattern = compiled(part.pattern)
    found = pattern.match(path.rpartition("/")[2] if part.by_name else path) if pattern else None
    return found is None or bool(part.shown == found[1])


def _is_cut(shown: Any, value: Any) -> bool:
    """Whether a value that is shown is one of rows, its texts and lists cut."""
    if isinstance(shown, str) and isinstance(value, str):
        return shown == value or (shown.endswith(CUT) and value.startswith(shown.removesuffix(CUT)))
    if isinstance(shown, list) and isinstance(value, list):
        return len(shown) <= len(value) and all(map(_is_cut, shown, value)) and (bool(shown) or not value)
    if shown is None or shown == []:
        return value is None or value == [] or (isinstance(value, list) and not any(value))
    return bool(shown == value)
