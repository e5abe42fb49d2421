"""How many code points of each line are of a kind, in compiled code."""

from collections.abc import Callable
from typing import Any

from toolkit.text.kernels.compiling import compiled
from toolkit.text.kernels.signatures import Array
from toolkit.text.line_table import LineTable
from toolkit.text.unicode_table import Characters, characters, decoded, number_of

LAST_BY_FIRST = ((0x80, 0x7F), (0xE0, 0x7FF), (0xF0, 0xFFFF), (0xF1, 0x3FFFF), (0x100, 0x10FFFF))
"""The last code point whose UTF-8 begins with a byte below another."""


def count_code_points(lines: LineTable, kind: int) -> Array:
    """Return how many code points of each line have some bit of `kind`, such as ``UPPER``, in `characters`; int64."""
    import numpy as np

    n, table = len(lines.starts), characters()
    found = np.zeros(n, dtype=np.int64)
    _count(lines, n, table, kind, found)
    return found


def count_marked(lines: LineTable, marks: Callable[[int], "Array"]) -> "Array":
    """Return how many code points of each line a table marks, int64.

    Args:
        lines: to count in.
        marks: gives the table: uint8, 0 or 1 for each code point up to the one that it is called with, which none of
            the lines is above.
    """
    import numpy as np

    n, first = len(lines.starts), int(lines.utf8.view(np.uint8).max())
    found = np.zeros(n, dtype=np.int64)
    _count_marked(lines, n, marks(next(last for above, last in LAST_BY_FIRST if first < above)), found)
    return found


@compiled(LineTable, "int64 uint8* int64*")
def _count_marked(lines: LineTable, n: Any, marked: Any, found: Any) -> None:
    utf8 = lines.utf8
    for line in range(n):
        at, end, count = lines.starts[line], lines.ends[line], 0
        while at < end:
            point, at = decoded(utf8, at)
            count += marked[point]
        found[line] = count


@compiled(LineTable, "int64", Characters, "int64 int64*")
def _count(lines: LineTable, n: Any, table: Characters, kind: Any, found: Any) -> None:
    utf8 = lines.utf8
    for line in range(n):
        at, end, count = lines.starts[line], lines.ends[line], 0
        while at < end:
            point, at = decoded(utf8, at)
            count += (number_of(table, point) & kind) != 0
        found[line] = count
