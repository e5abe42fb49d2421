"""Checks the numbers of copies in a file of an output whose mix repeats documents: each (source, id, copy) once."""

from array import array
from collections.abc import Iterator
from typing import Any

import msgspec
import xxhash

from toolkit.mix.settings import COPY
from toolkit.mix.writer import Writer


class CopyCheck:
    """Looks at the rows of a file; holds 8 bytes for each.

    Args:
        writer: whose format the file has.
    """

    def __init__(self, writer: Writer) -> None:
        self._id = writer.ID
        self._hashes = array("Q")

    def add(self, line: bytes) -> str | None:
        """Take the next row; return what is wrong with its number, or None."""
        self._hashes.append(0)
        try:
            row: dict[str, Any] = msgspec.json.decode(line, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None  # that is told by the check of the row
        metadata = row.get("metadata")
        number = metadata.get(COPY) if isinstance(metadata, dict) else None
        if type(number) is not int or number < 1:
            return f"expected the number of the copy, from 1, at $.metadata.{COPY}, got {number!r}"
        id_: Any = row
        for key in self._id:
            id_ = id_.get(key) if isinstance(id_, dict) else None
        if isinstance(id_, str):
            name = msgspec.json.encode((row.get("source"), id_, number))
            self._hashes[-1] = xxhash.xxh3_64_intdigest(name) or 1
        return None

    def repeated(self) -> Iterator[tuple[int, int]]:
        """Yield the rows, from 1, that have the source, id and copy of an earlier one, each with that one."""
        import numpy as np

        found = np.frombuffer(self._hashes, dtype=np.uint64)
        order = np.argsort(found, kind="stable")
        ordered = found[order]
        for i in np.flatnonzero((ordered[1:] == ordered[:-1]) & (ordered[1:] != 0)).tolist():
            yield int(order[i + 1]) + 1, int(order[i]) + 1
