"""Checks of the examples in a document of ours: each is a row, with its texts and lists cut."""

from collections.abc import Iterator
from typing import Any

from toolkit.config.settings import ConfigStruct
from toolkit.inspect.describe.about import listed
from toolkit.inspect.describe.check.nodes import FieldNode, Node, fields_of, nodes, one_group
from toolkit.inspect.describe.check.values import Column
from toolkit.inspect.describe.croissant.document import CUT
from toolkit.inspect.describe.croissant.jsonld import path_part


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
