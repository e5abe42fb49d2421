"""Numbers that are float32 by nature, written as the shortest text that gives back the same float32."""

from collections.abc import Iterable
from typing import Any


def shortest_float32(values: Iterable[Any]) -> list[float]:
    """For each float32, the float whose text is the shortest that reads back as that float32.

    Source: OSCAR's files, written by Rust's float32 formatting.

    >>> shortest_float32([0.8999999761581421])
    [0.9]
    """
    import numpy as np

    return [float(text) for text in map(str, np.fromiter(values, dtype=np.float32))]
