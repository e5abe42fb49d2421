"""How much of a document is neither letters nor marks.

Source: ungoliant 1.1 to 2.0, ``transformers/noisy.rs``: Unicode general categories L* and M* are not noise, all else
is, white space and digits included. (The published description says punctuation only.)
"""

import functools
import unicodedata
from collections.abc import Sequence

import msgspec

from toolkit import Batch, Document, Example, Tagger
from toolkit.text import count_marked, np

PLANES = (0, 1, 2, 3, 14)
"""The planes of Unicode that have letters or marks: all others have nothing assigned, or are for private use."""


class Counts(msgspec.Struct, frozen=True):
    """Code points of lines joined by line feeds, and those of noise.

    Attributes:
        chars: Code points of the lines joined by line feeds.
        noise: Code points that are neither letter nor mark.
    """

    chars: int
    noise: int


class Noise(Tagger):
    r"""The number of code points, and of noise: neither Letter nor Mark.

    Both numbers are those of the lines joined by ``\n``, so line ends between lines count. Categories are those of
    Unicode in this version of Python.
    """

    EXAMPLES = (
        Example("", Counts(0, 0)),
        Example("On 24 May,\r\nat 9.\n", Counts(16, 9)),
        Example("naïve cafe\u0301 \U0001f600 日本語", Counts(17, 4)),
    )

    def tag_batch(self, documents: Sequence[Document]) -> list[Counts]:
        lines = Batch.of(documents).lines
        between = np.maximum(np.diff(lines.bounds) - 1, 0)  # line feeds, which are noise
        noise = lines.sums(count_marked(lines, _noise_up_to))
        return list(map(Counts, (lines.sums(lines.chars) + between).tolist(), (noise + between).tolist()))


@functools.cache
def _noise_up_to(last: int) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
    """Return 1 for code points of noise, 0 for letters and marks.

    All planes that exist would take 0.2 s.
    """
    result = np.ones(last + 1, np.uint8)
    for plane in PLANES:
        if points := range(plane << 16, min((plane + 1) << 16, last + 1)):
            kinds = "".join(map(unicodedata.category, map(chr, points))).encode()[::2]
            result[points.start : points.stop] = ~np.isin(np.frombuffer(kinds, np.uint8), [ord("L"), ord("M")])
    return result
