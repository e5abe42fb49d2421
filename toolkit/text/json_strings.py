"""JSON strings as texts in UTF-8, many at once, for code that needs no text of Python's."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import msgspec

from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array
from toolkit.text.line_table import PADDING, LineTable

_PADDING, _BEFORE = 16, 3
"""Bytes behind the last string, and before the first one, for code that reads several at once."""

_decode = Compiled(
    "toolkit.text.kernels.json_strings:decode",
    "int8* int64* int64",
    LineTable,
    "int64* int64*",
    uses=["toolkit.text.kernels.counting", "toolkit.text.kernels.intrinsics"],
)


class Decoded(NamedTuple):
    """Texts that stood in JSON.

    Attributes:
        lines: of all texts.
        places: int64 (texts, 2), where each text begins and ends in the table's buffer; a line feed that the table has
            added is not part of it.
    """

    lines: LineTable
    places: Array

    @property
    def open_ended(self) -> Array:
        """Return whether the last line of each text has no line feed; bool."""
        import numpy as np

        begins, ends = self.places[:, 0], self.places[:, 1]
        return cast("Array", np.append(begins[1:], len(self.lines.utf8) - PADDING) > ends)


def decoded(raws: Sequence[msgspec.Raw]) -> Decoded | None:
    """Return the texts that JSON strings are; None if one of them is none.

    Args:
        raws: JSON strings as msgspec found them, with their quotes; some may be other values, or not in UTF-8.
    """
    import numpy as np

    source_bounds, bounds = np.zeros((2, len(raws) + 1), dtype=np.int64)
    np.cumsum([_BEFORE, *(memoryview(raw).nbytes for raw in raws)], out=source_bounds)
    source = np.frombuffer(b"".join([b" " * _BEFORE, *raws, b" " * _PADDING]), dtype=np.int8)
    most = int(np.count_nonzero(source == ord("\\"))) + len(raws)  # a line feed is written with a backslash
    starts, ends, chars = np.empty((3, most), dtype=np.int64)
    utf8 = np.empty(len(source) + PADDING, dtype=np.int8)
    places, found = np.empty((len(raws), 2), dtype=np.int64), np.zeros(3, dtype=np.int64)
    _decode(source, source_bounds, len(raws), LineTable(utf8, starts, ends, chars, bounds), places.reshape(-1), found)
    lines, end, sound = found.tolist()
    if sound < len(raws):
        return None
    utf8[end : end + PADDING] = ord("\n")
    return Decoded(LineTable(utf8[: end + PADDING], starts[:lines], ends[:lines], chars[:lines], bounds), places)
