"""The file of a fitted map: JSON with a line for each group, and a digest of what it says."""

import hashlib
from collections.abc import Iterator
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from toolkit.errors import DataError
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.whole.ranks.steps import stepped

Array = npt.NDArray[Any]


class GroupMap(msgspec.Struct, frozen=True, omit_defaults=True):
    """The map of a group.

    Attributes:
        documents: that it was fitted on; those with a label, where there are labels.
        lowest, highest: scores among them.
        x: knots, ascending scores.
        y: what they become.
        between: empty where values between knots are interpolated; else the value of what is below the first knot, of
            what is between each and the next, and of what is above the last one.
        errors: the mean distance of scores from labels, and that of values; none without labels.
    """

    documents: int
    lowest: float
    highest: float
    x: list[float]
    y: list[float]
    between: list[float] = []
    errors: tuple[float, float] | None = None

    def of(self, scores: Array) -> Array:
        """Return what scores become."""
        x, y = np.array(self.x), np.array(self.y)
        return stepped(x, y, np.array(self.between), scores) if self.between else np.interp(scores, x, y)


class Bin(msgspec.Struct, frozen=True):
    """Some documents with labels, next to each other by score: how many, and means."""

    documents: int
    score: float
    label: float
    value: float


class FittedMap(msgspec.Struct, frozen=True, kw_only=True):
    """A fitted map.

    Attributes:
        digest: sha256 of all else.
        method, score, within, labels, to: options with which it was fitted.
        settings: a digest of all options, and of those of the sets that it was made from.
        shards, documents: that it was fitted on.
        groups: by label; without `within` there is one.
        small: groups that were too small for a map, with their documents.
        pool: the map of all groups together.
        curve: of the documents with labels, from the lowest scores to the highest.
    """

    version: Literal[1] = 1
    digest: str = ""
    method: Literal["isotonic", "quantile"]
    score: str
    within: list[str]
    labels: str | None
    to: str | None
    settings: str
    shards: int
    documents: int
    groups: dict[str, GroupMap]
    small: dict[str, int]
    pool: GroupMap
    curve: list[Bin]


def sealed(found: FittedMap) -> FittedMap:
    """Return the map with its digest."""
    return msgspec.structs.replace(found, digest=_digest(found))


def _digest(found: FittedMap) -> str:
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(found, digest=""))).hexdigest()


def save(path: str, found: FittedMap) -> None:
    """Write a map."""
    write_file(path, b"".join(_lines(found)))


def _lines(found: FittedMap) -> Iterator[bytes]:
    fields = msgspec.structs.asdict(found)
    for i, (name, value) in enumerate(fields.items()):
        yield (b",\n " if i else b"{\n ") + msgspec.json.encode(name) + b": "
        if name == "groups":
            rows = [msgspec.json.encode(label) + b": " + msgspec.json.encode(each) for label, each in value.items()]
            yield b"{\n  " + b",\n  ".join(rows) + b"\n }"
        else:
            yield msgspec.json.encode(value)
    yield b"\n}\n"


def load(path: str, remedy: str) -> FittedMap:
    """Return a map.

    Raises:
        DataError: if it is not what was written; `remedy` says what to do then.
        FileNotFoundError: if there is no such file.
    """
    try:
        found = msgspec.json.decode(store_of(path).read(path), type=FittedMap)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"expected a map as `toolkit calibrate` writes it, got: {error}; {remedy}", path=path) from None
    if _digest(found) != found.digest:
        raise DataError(f"expected a map as it was fitted, got one that was changed afterwards; {remedy}", path=path)
    return found


def load_if_there(path: str, remedy: str) -> FittedMap | None:
    """Return a map, or None if there is no such file."""
    try:
        return load(path, remedy)
    except (FileNotFoundError, NotADirectoryError):
        return None
