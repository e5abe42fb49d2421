"""How long texts are: lines, code points, bytes and words, and code points of a kind, counted in compiled code."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from toolkit.lazy_numpy import np
from toolkit.text import json_strings
from toolkit.text.kernels.compiling import Compiled, compiled
from toolkit.text.kernels.signatures import Array
from toolkit.text.line_table import LineTable
from toolkit.text.unicode_table import characters, decoded, of_all
from toolkit.text.words import find_words

COLUMNS = ("lines", "chars", "bytes", "words", "unicode_words")
"""Columns of the result of `measure`, in order."""

_PADDING = 16
"""Bytes before the first text and behind the last, for code that reads several at once."""

_ROOM = 256
"""Bytes for compiled code to work in."""

_measure = Compiled("toolkit.text.kernels.counting:measure", "int8* int64* int64 int64 uint8* int64*")


class Counts(msgspec.Struct):
    r"""Totals of some documents.

    Attributes:
        documents: Documents of them.
        lines: Lines, as `toolkit.data.documents.split_lines` has them.
        chars: code points.
        bytes: Bytes of the texts in UTF-8.
        words: Pieces between white space, as ``str.split()`` has them.
        unicode_words: segments between Unicode's word boundaries with a letter or a number (see `words`); None
            where they were not counted.
    """

    documents: int = 0
    lines: int = 0
    chars: int = 0
    bytes: int = 0
    words: int = 0
    unicode_words: int | None = None

    def add(self, other: "Counts") -> None:
        """Add those of other documents."""
        self.documents += other.documents
        self.lines += other.lines
        self.chars += other.chars
        self.bytes += other.bytes
        self.words += other.words
        if other.unicode_words is not None:
            self.unicode_words = (self.unicode_words or 0) + other.unicode_words

    def add_rows(self, rows: Sequence[Sequence[int]], *, unicode: bool) -> None:
        """Add at least one measured document, a row for each."""
        lines, chars, size, words, unicode_words = map(sum, zip(*rows, strict=True))
        self.add(Counts(len(rows), lines, chars, size, words, unicode_words if unicode else None))


def measure(texts: Sequence[str | bytes | memoryview], *, unicode: bool = False, joined: bool = False) -> Array:
    """Return the numbers of `COLUMNS` of each text, int64 (texts, 5).

    Args:
        texts: Texts; bytes are UTF-8.
        unicode: True if Unicode's words are counted; they take as long as all others together.
        joined: True if line feeds stand between lines, and not behind each, as in OSCAR's ``content``.
    """
    pieces = [text.encode() if isinstance(text, str) else text for text in texts]
    bounds = np.cumsum([_PADDING, *[len(piece) + 1 for piece in pieces]])  # a line feed between them parts their words
    padding = b"\n" * _PADDING
    utf8 = np.frombuffer(bytearray(b"\n").join([padding[1:], *pieces, padding]), dtype=np.int8)
    result = np.zeros((len(pieces), len(COLUMNS)), dtype=np.int64)
    _measure(utf8, bounds, len(pieces), joined, np.empty(_ROOM, dtype=np.uint8), result)
    if unicode and pieces:
        starts, _ = find_words(utf8, int(bounds[-1]), "unicode")
        result[:, -1] = np.diff(np.searchsorted(starts, bounds))
    return result


def measure_json(
    raws: Sequence[msgspec.Raw], *, unicode: bool = False, joined: bool = False
) -> tuple[Array, list[int]]:
    """Measure JSON strings without Python texts.

    Return also the indexes of values that are no strings.

    Args:
        raws: JSON strings, with their quotes; some may be other values, or not in UTF-8.
        unicode: See `measure`.
        joined: See `measure`.
    """
    whole = json_strings.decoded(raws)
    parts = [whole] if whole else [json_strings.decoded([raw]) for raw in raws]
    texts = [text for part in parts for text in (part.texts if part else [b""])]
    bad = [i for i, part in enumerate(parts) if part is None]
    return measure(texts, unicode=unicode, joined=joined), bad


LAST_BY_FIRST = ((0x80, 0x7F), (0xE0, 0x7FF), (0xF0, 0xFFFF), (0xF1, 0x3FFFF), (0x100, 0x10FFFF))
"""The last code point whose UTF-8 begins with a byte below another."""


def count_code_points(lines: LineTable, kind: int) -> Array:
    """Count the code points of a kind in each line: int64.

    The kind has some bits of `characters`, such as ``UPPER``.
    """
    return count_marked(lines, lambda last: _marks_of(kind)[: last + 1])


@functools.cache
def _marks_of(kind: int) -> Array:
    return of_all((characters().classes & kind != 0).view(np.uint8))


def count_marked(lines: LineTable, marks: Callable[[int], Array]) -> Array:
    """Return how many code points of each line a table marks, int64.

    Args:
        lines: Lines of the texts.
        marks: gives the table: uint8, 0 or 1 for each code point up to the one that it is called with, which none of
            the lines is above.
    """
    n, first = len(lines.starts), int(lines.utf8.view(np.uint8).max())
    result = np.zeros(n, dtype=np.int64)
    _count_marked(lines, n, marks(next(last for above, last in LAST_BY_FIRST if first < above)), result)
    return result


@compiled(LineTable, "int64 uint8* int64*")
def _count_marked(lines: LineTable, n: Any, marked: Any, counts: Any) -> None:
    utf8 = lines.utf8
    for line in range(n):
        at, end, count = lines.starts[line], lines.ends[line], 0
        while at < end:
            point, at = decoded(utf8, at)
            count += marked[point]
        counts[line] = count
