"""How much of a document is neither letters nor marks.

Source: ungoliant 1.1 to 2.0, ``transformers/noisy.rs``: Unicode general categories L* and M* are not noise, all else
is, white space and digits included. (The published description says punctuation only.)
"""

import functools
import unicodedata

import msgspec
import numpy as np

from toolkit import Document, Example, Tagger

PLANES = (0, 1, 2, 3, 14)
"""The planes of Unicode that have letters or marks: all others have nothing assigned, or are for private use."""


class Counts(msgspec.Struct, frozen=True):
    """Code points of the lines joined by line feeds, and those that are noise.

    Attributes:
        chars: Code points of the lines joined by line feeds.
        noise: Code points that are neither letter nor mark.
    """

    chars: int
    noise: int


class Noise(Tagger):
    r"""Code points of the text, and those that are neither Letter nor Mark.

    Counted over the lines joined by ``\n``, so with the line ends between lines. Unicode as this Python knows it.
    """

    EXAMPLES = (
        Example("", {"chars": 0, "noise": 0}),
        Example("On 24 May,\r\nat 9.\n", {"chars": 16, "noise": 9}),
        Example("naïve cafe\u0301 \U0001f600 日本語", {"chars": 17, "noise": 4}),
    )

    def tag(self, document: Document) -> Counts:
        text = "\n".join(document.lines)
        if text.isascii():
            table, points = _is_noise()[:128], np.frombuffer(text.encode(), dtype=np.uint8)
        else:
            table, points = _is_noise(), np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
        return Counts(len(text), int(np.count_nonzero(table[points])))


@functools.cache
def _is_noise() -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    found = np.ones(0x110000, np.bool_)
    for plane in PLANES:
        points = range(plane << 16, (plane + 1) << 16)
        kinds = "".join(map(unicodedata.category, map(chr, points))).encode()[::2]
        found[points.start : points.stop] = ~np.isin(np.frombuffer(kinds, np.uint8), [ord("L"), ord("M")])
    return found
