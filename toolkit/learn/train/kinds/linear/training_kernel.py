"""Products of counted texts with vectors, in compiled code. Used by `toolkit.learn.train.kinds.linear.solver`."""

from typing import Any

import numba


def add_squares(buckets: Any, times: Any, bounds: Any, rows: Any, tf: Any, idf: Any, out: Any) -> None:
    """Write the squared length of each row; ``idf`` is that of each bucket."""
    for row in range(rows):
        total = 0.0
        for i in range(bounds[row], bounds[row + 1]):
            value = tf[times[i]] * idf[numba.int64(buckets[i])]
            total += value * value
        out[row] = total


def multiply(buckets: Any, times: Any, bounds: Any, rows: Any, tf: Any, vector: Any, out: Any) -> None:
    """Write the product of each row with a vector."""
    for row in range(rows):
        total = 0.0
        for i in range(bounds[row], bounds[row + 1]):
            total += tf[times[i]] * vector[numba.int64(buckets[i])]
        out[row] = total


def add_rows(buckets: Any, times: Any, bounds: Any, rows: Any, tf: Any, factors: Any, out: Any) -> None:
    """Add each row, times its factor, to a vector."""
    for row in range(rows):
        factor = factors[row]
        if factor == 0.0:
            continue
        for i in range(bounds[row], bounds[row + 1]):
            out[numba.int64(buckets[i])] += factor * tf[times[i]]
