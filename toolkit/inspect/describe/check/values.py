"""Checks of the values of rows, which must be what the fields of a Croissant document say."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from toolkit.config.settings import ConfigStruct
from toolkit.data.schema import is_number

_STEP = re.compile(r"""\[(['"])((?:(?!\1)[^\\]|\\.)*)\1\]|\[(\d+)\]|\.([A-Za-z_]\w*)""")


class Column(ConfigStruct):
    """A field that is read from a column of the rows of a file.

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

    def fault(self, row: dict[str, Any]) -> str:
        """Return what is wrong with the value in a row; empty if it is right, or a path is of a form not known."""
        value, _ = self._at(row)
        if value is _UNKNOWN:
            return ""
        if self.many and value is not None and not isinstance(value, list):
            return f"expected a list at {self.id}, got {value!r:.80}"
        if not self.many and isinstance(value, list) and value:  # Dolma has [] for all values of a skipped document
            return f"expected a value at {self.id}, got a list"
        wrong = (each for each in _leaves(value) if not fits(each, self.data_type))
        return next((f"expected {self.data_type} at {self.id}, got {each!r:.80}" for each in wrong), "")

    def value(self, row: dict[str, Any]) -> Any:
        """Return the value in a row; None where a path is of a form not known."""
        value, _ = self._at(row)
        return None if value is _UNKNOWN else value

    def leads(self, row: dict[str, Any]) -> bool | None:
        """Return whether the paths lead to a key (of any value) in a row; None where there is nothing to look in."""
        return self._at(row)[1]

    def _at(self, row: dict[str, Any]) -> tuple[Any, bool | None]:
        """Return the value in a row, and whether the paths lead to a key."""
        value: Any = row.get(self.column)
        led: bool | None = True
        for path in self.paths:
            keys = steps(path)
            if keys is None:
                return _UNKNOWN, None
            if isinstance(value, list) and not (keys and isinstance(keys[0], int) and not self.many):
                pairs = [_follow(each, keys) for each in value]
                value, ways = [each for each, _ in pairs], {way for _, way in pairs}
                led = True if True in ways else False if False in ways else None
            else:
                value, led = _follow(value, keys)
        return value, led


_UNKNOWN = object()


@lru_cache(1024)
def steps(path: str) -> tuple[str | int, ...] | None:
    """Return the keys and indexes of a JSON path; None if it has another form than `croissant` writes."""
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
    return tuple(found)


def _follow(value: Any, keys: tuple[str | int, ...]) -> tuple[Any, bool | None]:
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
    """Return whether a value is of a data type; of one that is not known, any is."""
    name = data_type.rpartition(":")[2]
    if name in ("Text", "URL"):
        return isinstance(value, str)
    if name == "Boolean":
        return isinstance(value, bool)
    if name == "Integer" or re.fullmatch(r"U?Int\d+", name):
        digits = isinstance(value, str) and re.fullmatch(r"[+-]?\d+", value) is not None
        return digits or (isinstance(value, int) and not isinstance(value, bool))
    if re.fullmatch(r"Float\d*", name):
        return is_number(value)
    if name in ("DateTime", "Date"):
        return isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d", value) is not None
    return True
