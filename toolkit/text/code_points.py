"""How many code points of each line are of a kind, in compiled code."""

from typing import Any

from toolkit.text.kernels.compiling import compiled
from toolkit.text.kernels.signatures import Array
from toolkit.text.line_table import LineTable
from toolkit.text.unicode_table import Characters, characters, decoded, number_of


def count_code_points(lines: LineTable, kind: int) -> Array:
    """Return how many code points of each line have some bit of `kind`, such as ``UPPER``, in `characters`; int64."""
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
            point, at = decoded(utf8, at)
            count += (number_of(table, point) & kind) != 0
        found[line] = count
