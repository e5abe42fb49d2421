"""How long the lines of a document are.

Source: ungoliant 1.1 to 2.0: ``filtering/record.rs`` (long lines: at least 100 code points),
``transformers/sentence_filter.rs`` (short lines: at most 100 code points), ``transformers/header.rs`` (header and
footer: a fifth of the lines, short below 100 *bytes*). The published description of OSCAR 22.01 says 400 bytes for
short lines; the code that made the corpus says 100 code points, and its files agree with the code.
"""

from collections.abc import Sequence
from typing import Annotated, cast

import msgspec

from toolkit import Batch, Document, Example, Tagger
from toolkit.text import Array, np

Limit = Annotated[int, msgspec.Meta(ge=0)]
Fraction = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Shape(msgspec.Struct, frozen=True):
    """Counts over the lines of a document, without line ends.

    Attributes:
        lines: Lines of the text.
        chars: Code points of all lines, without line ends.
        bytes: Bytes (UTF-8) of all lines, without line ends.
        short: Short lines.
        long_chars: Code points in long lines.
        header_lines: Lines that count as the head of the text.
        header_short: Short lines at the head.
        footer_lines: Lines that count as the foot of the text.
        footer_short: Short lines at the foot.
    """

    lines: int
    chars: int
    bytes: int
    short: int
    long_chars: int
    header_lines: int
    header_short: int
    footer_lines: int
    footer_short: int


class LineShape(Tagger):
    """Numbers of lines, short lines and characters in long lines; numbers of short lines at the head and at the foot.

    - ``lines``, ``chars`` (code points), ``bytes`` (UTF-8): all lines, without line ends.
    - ``short``: lines of at most `short_chars` code points. ``long_chars``: code points in lines of at least
      `long_from`.
    - ``header_lines``: floor(`header_share` x lines), ``header_short``: how many of these first lines have fewer than
      `header_bytes` bytes; ``footer_lines`` and ``footer_short``: the same of the last lines.

    Attributes:
        short_chars: code points up to which a line is short
        long_from: code points from which a line is long
        header_share: share of the lines that count as the header
        footer_share: share of the lines that count as the footer
        header_bytes: bytes below which a header line is short
        footer_bytes: bytes below which a footer line is short
    """

    EXAMPLES = (
        Example(
            "",
            {
                "lines": 0, "chars": 0, "bytes": 0, "short": 0, "long_chars": 0,
                "header_lines": 0, "header_short": 0, "footer_lines": 0, "footer_short": 0,
            },
        ),
        Example(
            "Menu\n" + "x" * 120 + "\n" + "y" * 100 + "\nz\r\n\n",
            {
                "lines": 5, "chars": 225, "bytes": 225, "short": 4, "long_chars": 220,
                "header_lines": 1, "header_short": 1, "footer_lines": 1, "footer_short": 1,
            },
        ),
        Example(
            "ü" * 60 + "\n" + "ü" * 40,
            {
                "lines": 2, "chars": 100, "bytes": 200, "short": 2, "long_chars": 60,
                "header_lines": 1, "header_short": 0, "footer_lines": 1, "footer_short": 1,
            },
            options={"header_share": 0.5, "footer_share": 0.5, "long_from": 60},
        ),
    )  # fmt: skip

    short_chars: Limit = 100
    long_from: Limit = 100
    header_share: Fraction = 0.2
    footer_share: Fraction = 0.2
    header_bytes: Limit = 100
    footer_bytes: Limit = 100

    def tag_batch(self, documents: Sequence[Document]) -> list[Shape]:
        lines = Batch.of(documents).lines
        chars, sizes, begin, end = lines.chars, lines.bytes, lines.bounds[:-1], lines.bounds[1:]
        header = (self.header_share * (end - begin)).astype(np.int64)
        footer = (self.footer_share * (end - begin)).astype(np.int64)
        columns = (
            end - begin,
            lines.sums(chars),
            lines.sums(sizes),
            lines.sums(chars <= self.short_chars),
            lines.sums(np.where(chars >= self.long_from, chars, 0)),
            header,
            _between(sizes < self.header_bytes, begin, begin + header),
            footer,
            _between(sizes < self.footer_bytes, end - footer, end),
        )
        return list(map(Shape, *(column.tolist() for column in columns)))


def _between(mask: Array, begin: Array, end: Array) -> Array:
    """How many are found in each stretch of lines."""
    before = np.concatenate([[0], np.cumsum(mask)])
    return cast("Array", before[end] - before[begin])
