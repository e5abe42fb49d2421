"""JSON strings as texts in UTF-8, many at once, for code that needs no text of Python's."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from toolkit.text.kernels.compiling import Compiled

_PADDING, _BEFORE = 16, 3
"""Bytes behind the last string, and before the first one, for code that reads several at once."""

_decode = Compiled(
    "toolkit.text.kernels.json_strings:decode",
    "int8* int64* int64* int8* int64* int64*",
    uses=["toolkit.text.kernels.counting"],
)


def decoded(raws: Sequence[msgspec.Raw]) -> list[bytes] | None:
    """Return the texts that JSON strings are, in UTF-8; None if one of them is none.

    Args:
        raws: JSON strings as msgspec found them, with their quotes; some may be other values, or not in UTF-8.
    """
    import numpy as np

    source_bounds, bounds = np.zeros((2, len(raws) + 1), dtype=np.int64)
    np.cumsum([_BEFORE, *(memoryview(raw).nbytes for raw in raws)], out=source_bounds)
    source = np.frombuffer(b"".join([b" " * _BEFORE, *raws, b" " * _PADDING]), dtype=np.int8)
    slashes = np.flatnonzero(source == ord("\\"))
    utf8 = np.empty(len(source), dtype=np.int8)
    counts = np.array([len(raws), len(slashes), 0])
    _decode(source, source_bounds, slashes, utf8, bounds, counts)
    if counts[2] < len(raws):
        return None
    data = utf8[: bounds[-1]].tobytes()
    return [data[begin:end] for begin, end in pairwise(bounds.tolist())]
