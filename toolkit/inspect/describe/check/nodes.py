"""A Croissant document as it is read: its nodes, whatever may be wrong with them."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data.documents import BAD_ROW
from toolkit.data.schema import is_number
from toolkit.errors import DataError
from toolkit.inspect.describe.about import listed
from toolkit.inspect.describe.croissant.jsonld import FROM_PATHS
from toolkit.storage import store_of

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


Node = dict[str, Any]


def read(path: str) -> tuple[Node, list[str]]:
    """Return the document of a file, and findings about keys that one of its objects has twice.

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
        found = dict(pairs)
        if len(found) < len(pairs):
            twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
            where = f" in {found['@id']}" if "@id" in found else ""
            findings.append(f"{path}: expected each key once, got {' and '.join(map(repr, twice))} again{where}")
        return found

    json.loads(data, object_pairs_hook=note)
    return document, findings


def nodes(node: Node, key: str) -> list[Node]:
    """Return the objects at a key, which may have one or several values."""
    return [each for each in listed(node.get(key)) if isinstance(each, dict)]


def kind_of(node: Node) -> str:
    """Return the type of a node without its prefix."""
    return re.split(r"[:/]", str(node.get("@type")))[-1]


def is_ours(document: Node) -> bool:
    """Return whether `toolkit croissant` wrote a document, so that the meaning of all its keys is known."""
    return any(
        node.get("@id") == "documents-files" and kind_of(node) == "FileSet" for node in nodes(document, "distribution")
    )


@dataclass(frozen=True)
class FieldNode:
    """A field of a record set.

    Attributes:
        node: as it stands in the document.
        parent: the field that it is a part of; empty for a field of the record set itself.
    """

    node: Node
    parent: Node

    @property
    def id(self) -> str:
        """Return the id of the field."""
        return str(self.node.get("@id"))

    @property
    def types(self) -> list[str]:
        """Return the types of its values."""
        return [str(each) for each in listed(self.node.get("dataType"))]

    @property
    def source(self) -> Node:
        """Return where its values come from; empty if that is not said by an object."""
        return _object(self.node, "source")

    @property
    def extract(self) -> Node:
        """Return where in a file its values are; empty if that is not said by an object."""
        return _object(self.source, "extract")

    @property
    def file_set(self) -> str:
        """Return the id of the files that it is read from; empty if these are no file set."""
        found = _object(self.source, "fileSet")
        return str(found.get("@id")) if found else ""

    @property
    def path_property(self) -> str:
        """Return the file property by which it is read from the path of a file; empty if it is read otherwise."""
        found = self.extract.get("fileProperty")
        return found if found in FROM_PATHS else ""

    @property
    def column(self) -> Column | None:
        """Return the column of rows that it is read from; None if it is read otherwise."""
        if "column" not in self.extract:
            return None
        return Column(
            id=self.id,
            column=str(self.extract["column"]),
            paths=self.transforms("jsonPath"),
            data_type=(self.types or [""])[0],
            many=any(bool(node.get("repeated") or node.get("isArray")) for node in (self.node, self.parent)),
        )

    def transforms(self, kind: str) -> list[str]:
        """Return what is done to its values, of one kind, in order."""
        return [str(each[kind]) for each in nodes(self.source, "transform") if kind in each]


def _object(node: Node, key: str) -> Node:
    found = node.get(key)
    return found if isinstance(found, dict) else {}


def fields_of(record: Node) -> Iterator[FieldNode]:
    """Yield the fields of a record set, each followed by its parts."""
    for node in nodes(record, "field"):
        yield FieldNode(node, {})
        yield from (FieldNode(part, node) for part in nodes(node, "subField"))


def all_fields(document: Node) -> Iterator[FieldNode]:
    """Yield the fields of all record sets."""
    for record in nodes(document, "recordSet"):
        yield from fields_of(record)


def one_group(pattern: str) -> re.Pattern[str] | None:
    """Return a regular expression; None if it is not one, or has not just one group."""
    try:
        found = re.compile(pattern)
    except re.error:
        return None
    return found if found.groups == 1 else None
