"""Values of rows, as the fields of a Croissant file say that they are."""

import re
from collections.abc import Iterator
from typing import Any

from toolkit.config.settings import ConfigStruct

_STEP = re.compile(r"""\[(['"])((?:(?!\1)[^\\]|\\.)*)\1\]|\[(\d+)\]|\.([A-Za-z_]\w*)""")


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


def fault(column: Column, row: dict[str, Any]) -> str:
    """What is wrong with the value of a field in a row; empty if it is right, or its path is of a form not known."""
    value, _ = _at(column, row)
    if value is _UNKNOWN:
        return ""
    if column.many and value is not None and not isinstance(value, list):
        return f"expected a list at {column.id}, got {value!r:.80}"
    if not column.many and isinstance(value, list) and value:  # Dolma has [] for all attributes of a skipped document
        return f"expected a value at {column.id}, got a list"
    for each in _leaves(value):
        if not fits(each, column.data_type):
            return f"expected {column.data_type} at {column.id}, got {each!r:.80}"
    return ""


def value_of(column: Column, row: dict[str, Any]) -> Any:
    """Return the value of a field in a row; of a path of a form that is not known, None."""
    value, _ = _at(column, row)
    return None if value is _UNKNOWN else value


def leads(column: Column, row: dict[str, Any]) -> bool | None:
    """Whether the paths of a field lead to a key (of any value) in a row; None where there is nothing to look in."""
    return _at(column, row)[1]


def steps(path: str) -> list[str | int] | None:
    """The keys and indexes of a JSON path; None if it is of another form than `croissant.json_path` writes."""
    found: list[str | int] = []
    path = path if path.startswith(("$", "[", ".")) else f".{path}"
    place = 1 if path.startswith("$") else 0
    while place < len(path):
        step = _STEP.match(path, place)
        if step is None:
            return None
        _, quoted, index, plain = step.groups()
        found.append(int(index) if index else plain if plain is not None else re.sub(r"\\(.)", r"\1", quoted))
        place = step.end()
    return found


_UNKNOWN = object()


def _at(column: Column, row: dict[str, Any]) -> tuple[Any, bool | None]:
    """The value of a field, and whether its paths lead somewhere."""
    value: Any = row.get(column.column)
    led: bool | None = True
    for path in column.paths:
        keys = steps(path)
        if keys is None:
            return _UNKNOWN, None
        if isinstance(value, list) and not (keys and isinstance(keys[0], int) and not column.many):
            pairs = [_follow(each, keys) for each in value]
            value, ways = [each for each, _ in pairs], {way for _, way in pairs}
            led = True if True in ways else False if False in ways else None
        else:
            value, led = _follow(value, keys)
    return value, led


def _follow(value: Any, keys: list[str | int]) -> tuple[Any, bool | None]:
    for key in keys:
        if value is None:
            return None, None
        if isinstance(key, int):
            if not isinstance(value, list) or key >= len(value):
                return None, None if isinstance(value, list) else False
            value = value[key]
        elif isinstance(value, dict) and key in value:
            value = value[key]
        else:
            return None, None if value == [] else False
    return value, True


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for each in value:
            yield from _leaves(each)
    elif value is not None:
        yield value


def fits(value: Any, data_type: str) -> bool:
    """Whether a value is one of a data type; any is of one that is not known."""
    name = data_type.rpartition(":")[2]
    if name in ("Text", "URL"):
        return isinstance(value, str)
    if name == "Boolean":
        return isinstance(value, bool)
    if name == "Integer" or re.fullmatch(r"U?Int\d+", name):
        digits = isinstance(value, str) and re.fullmatch(r"[+-]?\d+", value) is not None
        return digits or (isinstance(value, int) and not isinstance(value, bool))
    if re.fullmatch(r"Float\d*", name):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if name in ("DateTime", "Date"):
        return isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d", value) is not None
    return True
