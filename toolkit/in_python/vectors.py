"""The vectors of an attribute as one array of numpy."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.data.schema import is_number
from toolkit.errors import DataError

if TYPE_CHECKING:
    from toolkit.in_python.rows import Row
    from toolkit.text.kernels.signatures import Array

_TOGETHER = 4096


class Vectors(NamedTuple):
    """The vectors of documents, in the order of shards and rows.

    Attributes:
        ids: of the documents.
        sources: of the documents; source and id identify one.
        values: float16 (documents, numbers).
    """

    ids: list[str]
    sources: list[str]
    values: "Array"


def vectors_of(rows: "Iterable[Row]", attribute: str, path: Sequence[str]) -> Vectors:
    """Return the vectors of rows.

    Args:
        rows: joined with the set.
        attribute: as it was asked for, for messages.
        path: its key, and fields inside.

    Raises:
        DataError: if a row has no vector, or of another length than the first.
    """
    import numpy as np

    found = Vectors([], [], np.empty((0, 0), np.float16))
    parts: list[Array] = []
    block: list[list[float]] = []
    length = 0

    def add(row: "Row") -> None:
        nonlocal length
        value: Any = row.attributes
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        length = length or (len(value) if isinstance(value, list) else 0)
        if not isinstance(value, list) or not value or len(value) != length or not all(map(is_number, value)):
            wanted = f"{length:,} numbers" if length else "a list of numbers"
            got = f"{len(value):,} values" if isinstance(value, list) else "null" if value is None else str(value)[:40]
            hint = "; leave out documents without by `where`" if value is None else ""
            message = f"{attribute}: expected {wanted}, got {got}{hint}"
            raise DataError(message, path=row.shard, line=row.number, id=row.document.id)
        found.ids.append(row.document.id)
        found.sources.append(row.document.source)
        block.append(value)

    for row in rows:
        add(row)
        if len(block) == _TOGETHER:
            parts.append(np.array(block, np.float16))
            block.clear()
    if block:
        parts.append(np.array(block, np.float16))
    return found._replace(values=np.concatenate(parts)) if parts else found
