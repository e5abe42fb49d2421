"""How many code points of each line are of a kind, in compiled code."""

from typing import TYPE_CHECKING, Any

from toolkit.text.kernels.compiling import compiled
from toolkit.text.line_table import LineTable
from toolkit.text.unicode_table import characters

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


def count_code_points(lines: LineTable, kind: int) -> "Array":
    """Of each line, the code points with some bit of `kind` in the table `characters`, such as ``UPPER``; int64."""
    import numpy as np

    n, table = len(lines.starts), characters()
    found = np.zeros(n, dtype=np.int64)
    _count(lines.utf8, lines.starts, lines.ends, n, table.blocks, table.classes, kind, found)
    return found


@compiled("int8* int64* int64* int64 int64* int64* int64 int64*")
def _count(utf8: Any, starts: Any, ends: Any, n: Any, blocks: Any, classes: Any, kind: Any, found: Any) -> None:
    for line in range(n):
        at, count = starts[line], 0
        while at < ends[line]:
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
            count += (classes[blocks[point >> 8] << 8 | point & 255] & kind) != 0
        found[line] = count
