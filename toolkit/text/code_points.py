"""How many code points of each line are of a kind, in compiled code."""

from typing import TYPE_CHECKING, Any

from toolkit.text.kernels.compiling import compiled
from toolkit.text.line_table import LineTable
from toolkit.text.unicode_table import Characters, characters

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


def count_code_points(lines: LineTable, kind: int) -> "Array":
    """Of each line, the code points with some bit of `kind` in the table `characters`, such as ``UPPER``; int64."""
    import numpy as np

    n, table = len(lines.starts), characters()
    found = np.zeros(n, dtype=np.int64)
    _count(lines, n, table, kind, found)
    return found


@compiled(LineTable, "int64", Characters, "int64 int64*")
def _count(lines: LineTable, n: Any, table: Characters, kind: Any, found: Any) -> None:
    utf8 = lines.utf8
    for line in range(n):
        at, end, count = lines.starts[line], lines.ends[line], 0
        while at < end:
            first = utf8[at] + 0
            if first >= 0:
                point, at = first, at + 1
            elif first < -32:
                point, at = (first & 31) << 6 | (utf8[at + 1] & 63), at + 2
            elif first < -16:
                point, at = (first & 15) << 12 | (utf8[at + 1] & 63) << 6 | (utf8[at + 2] & 63), at + 3
            else:
                point = (first & 7) << 18 | (utf8[at + 1] & 63) << 12 | (utf8[at + 2] & 63) << 6 | (utf8[at + 3] & 63)
                at += 4
            count += (table.classes[table.blocks[point >> 8] << 8 | point & 255] & kind) != 0
        found[line] = count
