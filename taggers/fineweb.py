r"""The figures in FineWeb's rules: ends of lines, short lines, repeated lines, line feeds.

Source: Penedo et al. 2024 (FineWeb), arXiv:2406.17557, section 3.6, as computed by datatrove 0.10
(``fineweb_quality_filter.py``, ``utils/text.py``). FineWeb drops a document with ``line_punct_ratio`` < 0.12,
``short_line_ratio`` > 0.67, ``char_dup_ratio`` > 0.01 (so the code; the paper says 0.1) or ``list_ratio`` > 0.3.
"""

import functools
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec

from taggers._options import Language, check_language
from toolkit import Batch, ConfigError, Document, Example, Tagger, text as measures
from toolkit.text import SPACE, decoded, np, number_of

BLANK, MARKED = 1, 2
ODD_ENDS = re.compile("\r\n|[\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")
"""Where `str.splitlines` ends a line, but for the line feed alone."""


class Ratios(msgspec.Struct, frozen=True):
    """The value of `Fineweb`; what has nothing to be counted in is 0.

    Attributes:
        lines: Lines that are not blank.
        line_punct_ratio: Share of the lines that are not blank which end in an end mark of a sentence.
        short_line_ratio: Share of the lines that are not blank which are short.
        char_dup_ratio: Code points of the lines that occurred before, divided by those of all lines.
        list_ratio: Line feeds divided by words.
    """

    lines: int
    line_punct_ratio: float
    short_line_ratio: float
    char_dup_ratio: float
    list_ratio: float


class Fineweb(Tagger):
    r"""Shares of marked, short and repeated lines, without blank ones; line feeds per word.

    - ``lines``: lines that are not blank. FineWeb drops a document without any.
    - ``line_punct_ratio``: the share of these lines that end in a terminal mark of some script, such as ``. ! ? 。 ؟
      ।``. A line with a quotation mark or white space after the mark does not count.
    - ``short_line_ratio``: the share of these lines that have at most `short_line_chars` code points.
    - ``char_dup_ratio``: code points of the lines that occurred before in the document, divided by those of all lines,
      without line ends.
    - ``list_ratio``: the number of ``\n`` divided by the number of words, or by 1 if there are no words.

    Variant ``ours``: ``\r`` does not belong to the line, words are Unicode's. Variant ``datatrove``: ``\r`` belongs to
    the line, words are the tokens that datatrove makes for `language`, punctuation included. datatrove has a tokenizer
    for each of 2,017 languages and scripts. Most work by rules, which need no package here (the rules of spaCy and of
    the Indic NLP Library). The others need a dictionary or a model, which an extra brings (ja, zh, vi, th, ko, km, lo,
    my, bo, kk, be, cy …). A document whose language is null, or to which datatrove gives no tokenizer, is split by
    spaCy's rules for all languages.

    Attributes:
        variant: the project whose words and line ends are used
        short_line_chars: code points up to which a line is short
        line_ends: the ends of lines for `datatrove`. `feeds`: `\n`; `all`: wherever `str.splitlines` splits, as in text
            of which C4 has made new lines
    """

    EXAMPLES = (
        Example("", Ratios(0, 0.0, 0.0, 0.0, 0.0)),
        Example(
            "The library is open.\n\nMenu\nMenu\nEverybody is welcome in all of our rooms\r\n",
            Ratios(4, 0.25, 0.75, 0.058823529411764705, 0.35714285714285715),
        ),
        Example("図書館は九時に開きます。\nMenü\nMenü", Ratios(3, 0.3333333333333333, 1.0, 0.2, 0.15384615384615385)),
        Example(
            "The library's open.\n\nMenu\nMenu\n",
            Ratios(3, 0.3333333333333333, 0.6666666666666666, 0.14814814814814814, 0.5714285714285714),
            options={"variant": "datatrove", "short_line_chars": 18},
        ),
        Example(
            "The library's open.\u2028Menu\rMenu",
            Ratios(3, 0.3333333333333333, 0.6666666666666666, 0.14814814814814814, 0.2857142857142857),
            options={"variant": "datatrove", "short_line_chars": 18, "line_ends": "all"},
        ),
    )

    variant: Literal["ours", "datatrove"] = "ours"
    short_line_chars: Annotated[int, msgspec.Meta(ge=0)] = 30

    line_ends: Literal["feeds", "all"] = "feeds"

    language: Language = None

    def check(self) -> None:
        check_language(self.variant, self.language)
        if self.line_ends == "all" and self.variant != "datatrove":
            raise ConfigError(
                "line_ends: expected `feeds` with the variant `ours`, got `all`; set `variant: datatrove`"
            )

    def tag_batch(self, documents: Sequence[Document]) -> list[Ratios]:
        batch = Batch.of(documents)
        if self.variant == "datatrove":
            words = map(len, batch.datatrove_words(self.language))
            return [self._of_datatrove(document.text, count) for document, count in zip(batch, words, strict=True)]
        lines = batch.lines
        result, hashes = _look(lines)
        some = result & BLANK == 0
        before = np.append(0, np.cumsum(some))
        counts = lines.sums(some)
        lines_of = np.maximum(counts, 1)
        again = measures.Sequences(hashes[some], lines.chars[some], before[lines.bounds]).repeated(1).again
        columns = (
            counts,
            lines.sums(some & (result & MARKED > 0)) / lines_of,
            lines.sums(some & (lines.chars <= self.short_line_chars)) / lines_of,
            again / np.maximum(lines.sums(lines.chars), 1),
            batch.feeds / np.maximum(batch.words().counts, 1),
        )
        return list(map(Ratios, *(column.tolist() for column in columns)))

    def _of_datatrove(self, text: str, words: int) -> Ratios:
        if self.line_ends == "all":
            text = ODD_ENDS.sub("\n", text)
        lines = [line for line in text.split("\n") if line.strip()]
        n, earlier, again = max(len(lines), 1), set[str](), 0
        for line in lines:
            again += len(line) if line in earlier else 0
            earlier.add(line)
        return Ratios(
            len(lines),
            sum(line[-1] in measures.TERMINALS for line in lines) / n,
            sum(len(line) <= self.short_line_chars for line in lines) / n,
            again / max(len(text) - text.count("\n"), 1),
            text.count("\n") / max(words, 1),
        )


@functools.cache
def _marks() -> measures.Array:
    """Return a table of the code points at sentence ends."""
    result = np.zeros(0x110000, dtype=np.int8)
    result[list(map(ord, measures.TERMINALS))] = 1
    return result


def _look(lines: measures.LineTable) -> tuple[measures.Array, measures.Array]:
    """Return bits and a hash of each line."""
    n = len(lines.starts)
    result, hashes = np.zeros((2, n), dtype=np.int64)
    _look_at(lines, n, measures.characters(), _marks(), result, hashes)
    return result, hashes.view(np.uint64)


@measures.compiled(measures.LineTable, "int64", measures.Characters, "int8* int64* int64*")
def _look_at(
    lines: measures.LineTable, n: Any, table: measures.Characters, marks: Any, bits_of: Any, hashes: Any
) -> None:
    """Fill `bits_of` and `hashes` of n lines."""
    utf8 = lines.utf8
    for line in range(n):
        start, end = lines.starts[line], lines.ends[line]
        bits = BLANK
        at = start
        while at < end:
            point, at = decoded(utf8, at)
            if not number_of(table, point) & SPACE:
                bits = 0
                break
        if bits == 0:
            at = end - 1
            while utf8[at] < -64:  # bytes that continue a code point
                at -= 1
            point, at = decoded(utf8, at)
            if marks[point]:
                bits = MARKED
        bits_of[line] = bits
        hash_, at = end - start, start
        while at < end:
            some = 0
            for i in range(at, min(at + 7, end)):
                some = (some << 8) | (int(utf8[i]) & 255)
            hash_ = ((hash_ ^ some) * 0x1E3779B97F4A7C15) & 0x7FFFFFFFFFFFFFFF
            hash_ ^= hash_ >> 29
            at += 7
        hashes[line] = hash_
