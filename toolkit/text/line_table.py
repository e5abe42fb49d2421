"""Lines of several texts in one buffer, for one pass over all."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from toolkit.lazy_numpy import np
from toolkit.text.kernels.compiling import compiled
from toolkit.text.kernels.signatures import Array, Bytes, Int64s

PADDING = 16
"""Bytes behind the last line, for code that reads several at once."""

_FIRST, _FEED, _RETURN = (1,), 10, 13


class LineTable(NamedTuple):
    r"""The lines of some texts, as `toolkit.data.documents.split_lines` has them, in one buffer.

    Attributes:
        utf8: int8; the texts in UTF-8, each line with its ``\n``, one ``\n`` before the first, `PADDING` behind.
        starts: int64, offset of each line.
        ends: int64, exclusive, without the line's end.
        chars: int64, code points of each line.
        bounds: int64 (texts + 1), the first line of each text, and the end of all.
    """

    utf8: Bytes
    starts: Int64s
    ends: Int64s
    chars: Int64s
    bounds: Int64s

    @classmethod
    def of(cls, texts: Sequence[str | bytes]) -> "LineTable":
        """Return the lines of these texts; those that are bytes are in UTF-8."""
        pieces, sizes = [b"\n"], [1]
        for text in texts:  # one by one: what is ASCII is copied, not encoded
            data = text.encode() if isinstance(text, str) else text
            pieces.append(data)
            whole = not data or data.endswith(b"\n")
            if not whole:
                pieces.append(b"\n")
            sizes.append(len(data) + (not whole))
        pieces.append(b"\n" * PADDING)
        utf8 = np.frombuffer(bytearray().join(pieces), dtype=np.int8)
        feeds = np.flatnonzero(utf8[1:-PADDING] == _FEED) + 1
        starts = np.concatenate([_FIRST, feeds[:-1] + 1])[: len(feeds)]
        ends = feeds - ((utf8[feeds - 1] == _RETURN) & (feeds > starts))
        chars = np.empty(len(feeds), dtype=np.int64)
        _count_chars(utf8, starts, ends, len(feeds), chars)
        return cls(utf8, starts, ends, chars, feeds.searchsorted(np.cumsum(sizes)))

    @property
    def bytes(self) -> Array:
        """Return the UTF-8 length of each line."""
        return cast("Array", self.ends - self.starts)

    def sums(self, values: Array) -> Array:
        """Return the sum of line values for each text."""
        return sums(values, self.bounds)


def sums(values: Array, bounds: Array) -> Array:
    """Return the sums of values between bounds; int64 or float64."""
    wide = np.float64 if values.dtype.kind == "f" else np.int64
    if not len(values) or bounds[-2:][0] == len(values):  # a sum begins behind the last value
        values = np.append(values, values.dtype.type(0))
    result = np.add.reduceat(values, bounds[:-1], dtype=wide)
    return cast("Array", result * (bounds[1:] > bounds[:-1]))


@compiled("int8* int64* int64* int64 int64*")
def _count_chars(utf8: Any, starts: Any, ends: Any, n: Any, chars: Any) -> None:
    for line in range(n):
        inside = 0
        for i in range(starts[line], ends[line]):
            inside += utf8[i] < -64  # bytes that continue a code point
        chars[line] = ends[line] - starts[line] - inside
