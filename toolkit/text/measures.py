"""Measures of lines, paragraphs and words in compiled code: what quality signals are made of.

All begin with the segments of some texts, ``Batch.words("segments")``, and count without thresholds: what is much or
little is for those to say who ask.
"""

import functools
import string
from typing import NamedTuple

from toolkit.lazy_numpy import np
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array, Int64s, UInt64s
from toolkit.text.languages.spacy_words import characters_in
from toolkit.text.line_table import LineTable
from toolkit.text.ngrams import Sequences
from toolkit.text.portable_floats import natural_logs
from toolkit.text.unicode_table import Characters, characters
from toolkit.text.words import PRIME, SEED, Words

END_MARKS = (
    "21-22 27 2e 3f ab bb 589 61d-61f 6d4 700-702 7f9 837 839 83d-83e 964-965 104a-104b 1362 1367-1368 166e 1735-1736 "
    "17d4-17d5 1803 1809 1944-1945 1aa8-1aab 1b4e-1b4f 1b5a-1b5b 1b5e-1b5f 1b7d-1b7f 1c3b-1c3c 1c7e-1c7f 2018-201f "
    "2024 2026 2039-203a 203c-203d 2047-2049 2cf9-2cfb 2e2e 2e3c 2e42 2e53-2e54 2e60-2e61 3002 300c-300f 301d-301f "
    "a4ff a60e-a60f a6f3 a6f7 a876-a877 a8ce-a8cf a92f a9c8-a9c9 aa5d-aa5f aaf0-aaf1 abeb fe12 fe15-fe16 fe41-fe44 "
    "fe52 fe56-fe57 ff01-ff02 ff07 ff0e ff1f ff61-ff63 10a56-10a57 10f55-10f59 10f86-10f89 11047-11048 110be-110c1 "
    "11141-11143 111c5-111c6 111cd 111de-111df 11238-11239 1123b-1123c 112a9 113d4-113d5 1144b-1144c 115c2-115c3 "
    "115c9-115d7 11641-11642 1173c-1173e 11944 11946 11a42-11a43 11a9b-11a9c 11c41-11c42 11ef7-11ef8 11f43-11f44 "
    "16a6e-16a6f 16af5 16b37-16b38 16b44 16d6e-16d6f 16e98 1bc9f 1da88"
)
"""Code points that end a sentence: Unicode 18.0's Sentence_Terminal and Quotation_Mark, and the ellipsis."""
BULLETS = (
    "2022-2023 2043 204c-204d 2219 25a0-25a1 25aa-25ab 25b6 25b8 25ba 25c6-25c7 25cb 25cf 25e6 2713-2714 2794 27a2 27a4"
)
DASHES = "2a-2b 2d b7 2013-2014"

MARK, BULLET, DASH = 1, 2, 4
"""Bits of what a character is where a line begins or ends."""
LETTER, DIGIT, LOCAL, SMALL_ROMAN, ROMAN, CLOSING = (1 << bit for bit in range(6))
"""Bits of what a byte is; `LOCAL`: may be before the @ of an address; `CLOSING`: of the number of an item."""
ITEM, NUMBERED, MARKED = 1, 2, 4
"""Bits of what a line begins with or ends in."""


class Roles(NamedTuple):
    """Roles of bytes and characters: bits.

    They matter at the edges of a line, or in an address.
    """

    of_bytes: Int64s
    of_points: Int64s


class WordCounts(NamedTuple):
    """Hash table of word counts.

    A slot is empty unless it has the text's stamp.
    """

    keys: UInt64s
    stamps: Int64s
    counts: Int64s
    slots: Int64s


_within_lines = Compiled(
    "toolkit.text.kernels.measures:within_lines", LineTable, "int64", Roles, Characters, "uint64* int64*"
)
_line_edges = Compiled("toolkit.text.kernels.measures:line_edges", Words, "int64 int64*", Roles, "int64*")
_count_words = Compiled(
    "toolkit.text.kernels.measures:count_words",
    Words,
    "int64",
    Characters,
    "float64*",
    WordCounts,
    "int64* float64*",
)


class LineMeasures(NamedTuple):
    """Measures of each line of some texts; a line that is blank has white space alone.

    Attributes:
        lines: Line table.
        hashes: uint64; two lines are taken for the same where these are equal.
        filled: bool, not blank.
        items: bool, begins with a bullet, or with a hyphen, dash, ``*``, ``+`` or ``·`` and white space.
        numbered: bool, begins, perhaps after ``(`` or ``[``, with up to three digits, then ``.``, ``)`` or ``]`` and no
            further digit; or with one ASCII letter, or up to six of ``ivx`` or ``IVX``, then the same and white space.
        ended: bool, ends in one of `END_MARKS`, white space behind it left out.
        repeated_chars: int64, how often three or more of the same character stand in a row, white space left out.
        ellipses: int64, ``…``, and ``...`` that do not overlap.
        urls: int64, stretches without white space that have ``://`` between an ASCII letter and a host, or ``www.``,
            behind no ASCII letter or digit, and a host.
        emails: int64, ASCII addresses elsewhere.
    """

    lines: LineTable
    hashes: Array
    filled: Array
    items: Array
    numbered: Array
    ended: Array
    repeated_chars: Array
    ellipses: Array
    urls: Array
    emails: Array

    @classmethod
    def of(cls, segments: Words) -> "LineMeasures":
        """Measure the lines of segments."""
        lines, firsts, roles = segments.lines, segments.of_lines(), _roles()
        n = len(lines.starts)
        hashes, edges, counts = np.empty(n, np.uint64), np.zeros(n, np.int64), np.zeros((4, n), np.int64)
        _within_lines(lines, n, roles, characters(), hashes, counts)
        _line_edges(segments, n, firsts, roles, edges)
        bits = (edges & bit != 0 for bit in (ITEM, NUMBERED, MARKED))
        return cls(lines, hashes, firsts[1:] > firsts[:-1], *bits, *counts)

    def not_blank(self) -> Sequences:
        """Return the lines without blank ones.

        `Sequences.repeated` counts repeated ones.
        """
        bounds = np.concatenate([[0], np.cumsum(self.filled)])[self.lines.bounds]
        return Sequences(self.hashes[self.filled], self.lines.chars[self.filled], bounds)

    def paragraphs(self) -> Sequences:
        """Return runs of lines between blank ones, in the same form.

        Line ends inside count as code points.
        """
        hashes, chars, bounds = lines = self.not_blank()
        if not len(hashes):
            return lines
        rows = np.flatnonzero(self.filled)
        opens = np.ones(len(rows), dtype=bool)
        opens[1:] = np.diff(rows) > 1
        opens[bounds[:-1][np.diff(bounds) > 0]] = True
        heads = np.flatnonzero(opens)
        place = np.arange(len(rows)) - heads[np.cumsum(opens) - 1]
        mixed = (hashes + place.astype(np.uint64)) * np.uint64(PRIME)
        mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(SEED)
        sizes = np.add.reduceat(chars + (place > 0), heads)
        return Sequences(np.add.reduceat(mixed, heads), sizes, np.searchsorted(heads, bounds))


class WordMeasures(NamedTuple):
    """Counts of each text's segments; those with a letter or a number are words. int64, but for `entropy`.

    Attributes:
        chars: code points of all segments.
        words: Number of segments that are words.
        word_chars: code points of these.
        letters: words with a letter.
        punctuation: segments of punctuation and symbols alone.
        lower, upper, title: words by ``str.islower``, ``isupper``, ``istitle``, the first that holds.
        mixed: words with other capitals.
        distinct: different words without regard to case.
        said_again: Number of runs of three or more of the same word with only white space between.
        entropy: float64, of words without regard to case, in nats.
    """

    chars: Array
    words: Array
    word_chars: Array
    letters: Array
    punctuation: Array
    lower: Array
    upper: Array
    title: Array
    mixed: Array
    distinct: Array
    said_again: Array
    entropy: Array

    @classmethod
    def of(cls, segments: Words) -> "WordMeasures":
        """Measure the texts of segments."""
        texts, longest = len(segments.counts), int(np.max(segments.counts, initial=0))
        result, entropy = np.zeros((len(cls._fields) - 1, texts), dtype=np.int64), np.zeros(texts)
        logs = natural_logs(np.maximum(np.arange(longest + 1), 1))
        room = 1 << max(4, (2 * longest).bit_length())
        keys, slots = np.zeros(room, np.uint64), np.zeros(longest + 1, np.int64)
        stamps, counts = np.zeros((2, room), np.int64)
        _count_words(segments, texts, characters(), logs, WordCounts(keys, stamps, counts, slots), result, entropy)
        return cls._make((*result, entropy))


@functools.cache
def _roles() -> Roles:
    of_bytes, of_points = np.zeros(256, dtype=np.int64), np.zeros(0x20000, dtype=np.int64)
    for listed, bit in (
        (string.ascii_letters, LETTER),
        (string.digits, DIGIT),
        (string.ascii_letters + string.digits + "._%+-", LOCAL),
        ("ivx", SMALL_ROMAN),
        ("IVX", ROMAN),
        (".)]", CLOSING),
    ):
        of_bytes[list(map(ord, listed))] |= bit
    for ranges, bit in ((END_MARKS, MARK), (BULLETS, BULLET), (DASHES, DASH)):
        of_points[list(map(ord, characters_in(ranges)))] |= bit
    return Roles(of_bytes, of_points)
