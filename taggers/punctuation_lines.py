r"""Lines without content: punctuation, symbols, emoji.

Source: Dolma 1.2.1, ``taggers/punctuation.py``, ``not_alphanum_paragraph_v1``. Unicode: that of `Batch.words`.
"""

import functools
from collections.abc import Iterator

from toolkit import Document, Example, Span, Tagger
from toolkit.text import PUNCTUATION, SPACE, Array, np, numbers_of_all

ALPHABETIC = ((0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))
"""Symbols that are alphabetic: letters in circles and squares."""
EMOJI = ((0x2600, 0x27BF), (0x1F300, 0x1F64F), (0x1F680, 0x1F6FF))
NO_SPACE = ((0x1C, 0x1F),)
"""White space to Python that Unicode has as control characters."""


class PunctuationLines(Tagger):
    r"""A span over each line of punctuation, symbols, emoji and white space; its score is 1, and its ``\n`` is
    included.

    Blank lines have no span. If there is no such line, there is one span over the text with score 0. Symbols that are
    letters (``Ⓐ``), digits of any script, marks and joiners do not count as symbols. So a line with ``❤️``, which has a
    variation selector, has no span.
    """

    EXAMPLES = (
        Example("", [[0, 0, 0.0]]),
        Example("One line.\n***\n\n- - -", [[10, 14, 1.0], [15, 20, 1.0]]),
        Example("……\n“”\n日本\nⒶ\n😀!\n…1", [[0, 3, 1.0], [3, 6, 1.0], [11, 14, 1.0]]),
        Example("Ein Wörtchen!", [[0, 13, 0.0]]),
    )

    def tag(self, document: Document) -> list[Span]:
        return list(_spans(document.text)) or [Span(0, document.chars, 0.0)]


def _spans(text: str) -> Iterator[Span]:
    start = 0
    for line in text.split("\n"):
        end = min(start + len(line) + 1, len(text))
        if line and not line.isspace() and not line[0].isalnum() and _says_nothing(line):
            yield Span(start, end)
        start = end


def _says_nothing(line: str) -> bool:
    return bool(_nothing()[np.frombuffer(line.encode("utf-32-le"), dtype=np.uint32)].all())


@functools.cache
def _nothing() -> Array:
    table = numbers_of_all() & (PUNCTUATION | SPACE) > 0
    for ranges, value in ((ALPHABETIC, False), (EMOJI, True), (NO_SPACE, False)):
        for first, last in ranges:
            table[first : last + 1] = value
    return table
