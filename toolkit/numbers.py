"""Numbers that are float32 by nature, written as the shortest text that gives back the same float32."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_FEW = 16  # for fewer numbers, numpy's own formatting is faster than arrays
_PLACES = 12  # decimals that are tried; 10^12 times a number below 1000 is exact enough in float64


def shortest_float32(values: "np.ndarray[Any, Any] | list[Any]") -> list[float]:
    """For each float32, the float whose text is the shortest that reads back as that float32.

    Source: OSCAR's files, written by Rust's float32 formatting.

    >>> shortest_float32([0.8999999761581421])
    [0.9]
    """
    import numpy as np

    exact = np.asarray(values, dtype=np.float32)
    if len(exact) < _FEW:
        return [float(str(value)) for value in exact]
    found = exact.astype(np.float64)
    usual = (np.abs(exact) >= 1e-3) & (np.abs(exact) < 1e3)
    left = np.flatnonzero(usual)
    for places in range(_PLACES, 0, -1):  # what fits in fewer decimals fits in more, too
        scale = 10.0**places
        rounded = np.rint(exact[left].astype(np.float64) * scale) / scale
        fits = rounded.astype(np.float32) == exact[left]
        left = left[fits]
        found[left] = rounded[fits]
        if not len(left):
            break
    for i in np.flatnonzero(~usual):
        found[i] = float(str(exact[i]))
    return found.tolist()  # type: ignore[no-any-return]
