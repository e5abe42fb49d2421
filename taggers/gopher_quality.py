r"""The figures in Gopher's quality rules: words, symbols, bullets, ellipses, stop words.

Source: Rae et al. 2021 (Gopher), arXiv:2112.11446, appendix A.1.1, which keeps a document of 50 to 100,000 words with a
mean length of 3 to 10, at most 0.1 hashes and at most 0.1 ellipses a word, at most 90 % of lines with a bullet and 30 %
that end in an ellipsis, at least 80 % of words with a letter, and at least two of eight stop words. The paper leaves
open how each is counted; the variants count as these do: datatrove 0.10 (``gopher_quality_filter.py``), Dolma 1.2
(``gopher_v1``, ``gopher_v2``), RedPajama-Data V2 (``natural_language.py``, ``lines.py``, ``content.py``).
"""

import functools
import itertools
import re
import string
from collections.abc import Callable, Sequence
from statistics import median
from typing import Annotated, Any, NamedTuple

import msgspec

from taggers._options import Label, PaperSplitter, Variant, check_language, words_in
from toolkit import Added, Batch, ConfigError, Document, Example, Files, Tagger, text as measures
from toolkit.text import SPACE, decoded, np, number_of, stop_words

ENGLISH = ("the", "be", "to", "of", "and", "that", "have", "with")
BULLETS = "*-–•‣⁃∙·●○◦■□▪▫▶▸►◀◆◇➢➤"


class Quality(msgspec.Struct, frozen=True):
    """The value of `GopherQuality`; what has nothing to be counted in is 0.

    Attributes:
        words: Words of the text.
        mean_word_length: Mean length of the words in code points.
        median_word_length: Median length of the words in code points.
        hashes_per_word: Number signs divided by words.
        ellipses_per_word: Ellipses divided by words.
        symbols_per_word: Number signs and ellipses divided by words.
        bullet_line_share: Share of the lines that begin with a bullet.
        ellipsis_line_share: Share of the lines that end in an ellipsis.
        alphabetic_word_share: Share of the words that have a letter.
        stop_words: Words that are in the stop list.
        distinct_stop_words: Entries of the stop list that the text has.
        stop_word_share: Share of the words that are in the stop list.
        stop_list: Entries of the stop list; 0 if there is none for the language.
    """

    words: int
    mean_word_length: float
    median_word_length: float
    hashes_per_word: float
    ellipses_per_word: float
    symbols_per_word: float
    bullet_line_share: float
    ellipsis_line_share: float
    alphabetic_word_share: float
    stop_words: int
    distinct_stop_words: int
    stop_word_share: float
    stop_list: int


class GopherQuality(Tagger):
    r"""Counts and lengths of words; shares of symbols, bullets, ellipses, letters and stop words in words and lines.

    Values per word are 0 for a document without words, and values per line are 0 for a document without lines. With the
    variant `paper`:

    - ``words``, ``mean_word_length``, ``median_word_length`` (code points) are about the words that `splitter` finds.
      Punctuation is no word, unless `splitter` makes it one; a Chinese or Japanese ideograph is a word of length 1.
    - ``hashes_per_word``, ``ellipses_per_word``, ``symbols_per_word``: the number of ``#``, the number of ellipses
      (runs of U+2026, and runs of three or more full stops), and both together, divided by the number of words.
    - ``bullet_line_share``, ``ellipsis_line_share``: the share of the lines that are not blank whose first character
      after white space is one of `bullets`, and of those that end in an ellipsis, also with white space after it.
    - ``alphabetic_word_share``: the share of words with a letter of any script.
    - ``stop_words``, ``distinct_stop_words``: how many words are in the stop list, and how many entries of the list the
      text has, regardless of case; ``stop_word_share``: the share of words in the list. ``stop_list``: the length of
      the list, 0 if there is none for the language. An entry of several words counts in this length, but is never
      found.

    Other variants measure as the program from which they come. They distinguish upper and lower case:

    - ``datatrove``: tokens are those of datatrove for `language` (see `fineweb`), by default for English. ``words`` and
      lengths leave out tokens of punctuation only; all other values use all tokens. Lines are those of
      ``str.splitlines``.
    - ``dolma``, ``dolma_v2``: words are the pieces between white space; ``…_per_word`` are the shares of words that
      contain ``#``, U+2026, or one of both. Lines are the pieces between ``\n``, with ``dolma_v2`` between runs of
      ``\n``. Dolma itself has only the median length.
    - ``redpajama``: ``words`` and lengths are those of the text without ASCII punctuation, in lower case and NFD; all
      other values use matches of ``\w+|[^\w\s]+``. Only ASCII letters are letters. Values are rounded to 8 places.
      Where RedPajama has null, the value is 0.

    Attributes:
        stop_words: the stop list; if not given, the paper's eight words, or those of `language`
        stop_lists: a table of stop lists, a row for each language: its label, then its words, between tabs; or
            `fineweb-2-baedee4-stop-words`, which comes with the toolkit; needs `language`
        language: a language, or the attribute with the language of each document, for the stop words (the paper's eight
            are those of `en`), and for words with the variant `datatrove` or `splitter: dictionary`
        bullets: the characters that begin a line with a bullet, with the variant `paper`
    """

    VERSION = "3"

    EXAMPLES = (
        Example(
            "",
            {
                "words": 0, "mean_word_length": 0.0, "median_word_length": 0.0, "hashes_per_word": 0.0,
                "ellipses_per_word": 0.0, "symbols_per_word": 0.0, "bullet_line_share": 0.0,
                "ellipsis_line_share": 0.0, "alphabetic_word_share": 0.0, "stop_words": 0, "distinct_stop_words": 0,
                "stop_word_share": 0.0, "stop_list": 8,
            },
        ),
        Example(
            "The end of the 3 days...\n\n - #1 of many",
            {
                "words": 9, "mean_word_length": 2.5555555555555554, "median_word_length": 3.0,
                "hashes_per_word": 0.1111111111111111, "ellipses_per_word": 0.1111111111111111,
                "symbols_per_word": 0.2222222222222222, "bullet_line_share": 0.5, "ellipsis_line_share": 0.5,
                "alphabetic_word_share": 0.7777777777777778, "stop_words": 4, "distinct_stop_words": 2,
                "stop_word_share": 0.4444444444444444, "stop_list": 8,
            },
        ),
        Example(
            "• Étude nº 5 …\n一二",
            {
                "words": 5, "mean_word_length": 2.0, "median_word_length": 1.0, "hashes_per_word": 0.0,
                "ellipses_per_word": 0.2, "symbols_per_word": 0.2, "bullet_line_share": 0.5,
                "ellipsis_line_share": 0.5, "alphabetic_word_share": 0.8, "stop_words": 1, "distinct_stop_words": 1,
                "stop_word_share": 0.2, "stop_list": 2,
            },
            options={"stop_words": ["étude", "la"]},
        ),
        Example(
            "The end of the 3 days...\n\n - #1 of many",
            {
                "words": 9, "mean_word_length": 2.5555555555555554, "median_word_length": 3.0,
                "hashes_per_word": 0.08333333333333333, "ellipses_per_word": 0.08333333333333333,
                "symbols_per_word": 0.16666666666666666, "bullet_line_share": 0.3333333333333333,
                "ellipsis_line_share": 0.3333333333333333, "alphabetic_word_share": 0.5833333333333334,
                "stop_words": 3, "distinct_stop_words": 2, "stop_word_share": 0.25, "stop_list": 8,
            },
            options={"variant": "datatrove"},
        ),
        Example(
            "The end of the 3 days...\n\n- #1 of many",
            {
                "words": 10, "mean_word_length": 2.8, "median_word_length": 2.5, "hashes_per_word": 0.1,
                "ellipses_per_word": 0.0, "symbols_per_word": 0.1, "bullet_line_share": 0.5,
                "ellipsis_line_share": 0.0, "alphabetic_word_share": 0.7, "stop_words": 3, "distinct_stop_words": 2,
                "stop_word_share": 0.3, "stop_list": 8,
            },
            options={"variant": "dolma_v2"},
        ),
        Example(
            "– Étude #5…",
            {
                "words": 3, "mean_word_length": 3.0, "median_word_length": 2.0, "hashes_per_word": 0.2,
                "ellipses_per_word": 0.2, "symbols_per_word": 0.4, "bullet_line_share": 1.0,
                "ellipsis_line_share": 1.0, "alphabetic_word_share": 0.2, "stop_words": 0, "distinct_stop_words": 0,
                "stop_word_share": 0.0, "stop_list": 8,
            },
            options={"variant": "redpajama"},
        ),
    )  # fmt: skip

    variant: Variant = "paper"
    splitter: PaperSplitter = "unicode"
    stop_words: tuple[str, ...] | None = None
    stop_lists: Files | None = None
    language: Label = None

    bullets: Annotated[str, Added] = BULLETS

    def check(self) -> None:
        if self.variant != "paper" and self.bullets != BULLETS:
            raise ConfigError("bullets: expected the variant `paper`, others have bullets of their own")
        if self.variant == "datatrove" or self.splitter == "dictionary":
            check_language("datatrove", self.language, self.splitter)
        if self.stop_lists is not None:
            if self.language is None or self.stop_words is not None:
                raise ConfigError("stop_lists: expected the option `language`, and `stop_words` not given")
            measures.stop_word_lists(self.stop_lists)

    def tag_batch(self, documents: Sequence[Document]) -> list[Quality]:
        batch = Batch.of(documents)
        lists = self._lists(batch)
        if self.variant == "paper":
            return _paper(batch, words_in(batch, self.splitter, self.language), lists, self.bullets)
        if self.variant == "datatrove":
            words = batch.datatrove_words(self.language)
            return list(map(_datatrove, [document.text for document in batch], words, lists))
        measure = _VARIANTS[self.variant]
        return [measure(document.text, stop_list) for document, stop_list in zip(batch, lists, strict=True)]

    def _lists(self, batch: Batch) -> list[frozenset[str]]:
        """Return the stop list of each document."""
        if self.stop_words is not None or self.language is None:
            return [frozenset(ENGLISH if self.stop_words is None else self.stop_words)] * len(batch)
        if self.stop_lists is not None:
            table = measures.stop_word_lists(self.stop_lists)
            return [table.get(language or "", frozenset()) for language in batch.given(self.language)]
        return [_list_of(language) for language in batch.given(self.language)]


@functools.cache
def _list_of(language: str | None) -> frozenset[str]:
    return frozenset(ENGLISH) if language == "en" else stop_words(language or "")


# --- the variant `paper` ----------------------------------------------------------------------------------------------


def _paper(batch: Batch, words: measures.Words, lists: list[frozenset[str]], bullet_marks: str) -> list[Quality]:
    lines, counts = batch.lines, words.counts
    n_lines, bullets, trailing, hashes, ellipses = result = _Counted(*np.zeros((5, len(batch)), dtype=np.int64))
    marks = np.array(list(map(ord, bullet_marks)), dtype=np.int64)
    _look(lines, len(batch), measures.characters(), marks, len(marks), result)
    stops, distinct = _stop_words(words, lists)
    by_word, by_line = np.maximum(counts, 1), np.maximum(n_lines, 1)
    columns = (
        counts,
        words.sums(words.chars) / by_word,
        _medians(words),
        hashes / by_word,
        ellipses / by_word,
        (hashes + ellipses) / by_word,
        bullets / by_line,
        trailing / by_line,
        words.sums((words.kinds & measures.HAS_ALPHA) != 0) / by_word,
        stops,
        distinct,
        stops / by_word,
        np.array(list(map(len, lists)), dtype=np.int64),
    )
    return list(map(Quality, *(column.tolist() for column in columns)))


def _medians(words: measures.Words) -> measures.Array:
    result = np.zeros(len(words.bounds) - 1)
    for i, (begin, end) in enumerate(itertools.pairwise(words.bounds.tolist())):
        if end > begin:
            ordered = np.sort(words.chars[begin:end])
            n = end - begin
            result[i] = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    return result


def _stop_words(words: measures.Words, lists: list[frozenset[str]]) -> tuple[measures.Array, measures.Array]:
    """Count the words of each text in its list, and distinct ones."""
    hashes = list(map(_folded, lists))
    places = measures.places_among(words.folded, words.bounds, hashes)
    at = np.flatnonzero(places >= 0)
    text = np.searchsorted(words.bounds[1:], at, side="right")
    hits = np.zeros((len(lists), max(map(len, hashes), default=0)), dtype=bool)
    hits[text, places[at]] = True
    return np.bincount(text, minlength=len(lists)), np.count_nonzero(hits, axis=1)


@functools.cache
def _folded(entries: frozenset[str]) -> measures.Array:
    """Return the hashes of single words."""
    return measures.hashes_of([word for word in entries if len(word.split()) == 1], folded=True)


class _Counted(NamedTuple):
    """Of each document: lines that are not blank, with a bullet, with an ellipsis; hashes and ellipses."""

    lines: measures.Int64s
    bullets: measures.Int64s
    trailing: measures.Int64s
    hashes: measures.Int64s
    ellipses: measures.Int64s


@measures.compiled(measures.LineTable, "int64", measures.Characters, "int64* int64", _Counted)
def _look(
    lines: measures.LineTable, documents: Any, table: measures.Characters, marks: Any, n_marks: Any, counts: _Counted
) -> None:
    """Fill `_Counted` of each document."""
    utf8 = lines.utf8
    n_lines, bullets, trailing, hashes, ellipses = counts
    for document in range(documents):
        for line in range(lines.bounds[document], lines.bounds[document + 1]):
            at, end, first, dots, ended, dotted = lines.starts[line], lines.ends[line], -1, 0, False, False
            while at < end:
                point, at = decoded(utf8, at)
                if number_of(table, point) & SPACE:
                    dots, dotted = 0, False
                    continue
                if first < 0:
                    first = point
                dots = dots + 1 if point == 46 else 0
                ellipses[document] += dots == 3 or (point == 0x2026 and not dotted)
                dotted = point == 0x2026
                ended = dots >= 3 or dotted
                hashes[document] += point == 35
            n_lines[document] += first >= 0
            trailing[document] += ended
            for i in range(n_marks):
                bullets[document] += first == marks[i]


# --- other variants ---------------------------------------------------------------------------------------------------


def _quality(  # noqa: PLR0913  # what is counted is given by its name
    words: Sequence[str], tokens: Sequence[str], stop_list: frozenset[str], *, hashes: int, ellipses: int, symbols: int,
    alphabetic: int, lines: int, bullets: int, trailing: int,
) -> Quality:  # fmt: skip
    by_word, by_line = max(len(tokens), 1), max(lines, 1)
    lengths = list(map(len, words))
    stops = [token for token in tokens if token in stop_list]
    return Quality(
        words=len(words),
        mean_word_length=sum(lengths) / max(len(words), 1),
        median_word_length=float(median(lengths)) if lengths else 0.0,
        hashes_per_word=hashes / by_word,
        ellipses_per_word=ellipses / by_word,
        symbols_per_word=symbols / by_word,
        bullet_line_share=bullets / by_line,
        ellipsis_line_share=trailing / by_line,
        alphabetic_word_share=alphabetic / by_word,
        stop_words=len(stops),
        distinct_stop_words=len(set(stops)),
        stop_word_share=len(stops) / by_word,
        stop_list=len(stop_list),
    )


_DATATROVE_PUNCTUATION = measures.TERMINALS.union(
    measures.characters_in(
        "0-8 b-1f 22-2f 3a-40 5b-60 7b-9f ab b4 bb 2013-2014 2019 201c-201e 2026 2236 2501 25ba 3001 3008-300d "
        "3010-3011 ff05 ff08-ff09 ff0c ff11 ff1a-ff1b ff5e"
    )
)


def _datatrove(text: str, tokens: list[str], stop_list: frozenset[str]) -> Quality:
    lines = text.splitlines()
    hashes, ellipses = text.count("#"), text.count("...") + text.count("…")
    return _quality(
        list(itertools.filterfalse(_DATATROVE_PUNCTUATION.issuperset, tokens)),
        tokens,
        stop_list,
        hashes=hashes,
        ellipses=ellipses,
        symbols=hashes + ellipses,
        alphabetic=sum(any(map(str.isalpha, token)) for token in tokens),
        lines=len(lines),
        bullets=sum(line.lstrip().startswith(("•", "-")) for line in lines),
        trailing=sum(line.rstrip().endswith(("...", "…")) for line in lines),
    )


def _dolma(text: str, stop_list: frozenset[str], *, blank_lines: bool = True) -> Quality:
    words = text.split()
    lines = text.split("\n") if blank_lines else re.split("\n+", text)
    return _quality(
        words,
        words,
        stop_list,
        hashes=sum("#" in word for word in words),
        ellipses=sum("…" in word for word in words),
        symbols=sum("#" in word or "…" in word for word in words),
        alphabetic=sum(any(map(str.isalpha, word)) for word in words),
        lines=len(lines),
        bullets=sum(line.startswith(("*", "-")) for line in lines),
        trailing=sum(line.endswith("…") for line in lines),
    )


def _redpajama(text: str, stop_list: frozenset[str]) -> Quality:
    plain = measures.decomposed(text.translate(dict.fromkeys(map(ord, string.punctuation))).lower())
    tokens = re.findall(r"\w+|[^\w\s]+", text)
    lines = Document(text).lines
    hashes, ellipses = text.count("#"), text.count("...") + text.count("…")
    return _quality(
        plain.split(),
        tokens,
        stop_list,
        hashes=hashes,
        ellipses=ellipses,
        symbols=hashes + ellipses,
        alphabetic=sum(re.search("[a-zA-Z]", token) is not None for token in tokens),
        lines=len(lines),
        bullets=sum(line.lstrip().startswith(tuple("•‣▶◀◦■□▪▫–")) for line in lines),
        trailing=sum(line.rstrip().endswith(("...", "…")) for line in lines),
    )


_VARIANTS: dict[str, Callable[[str, frozenset[str]], Quality]] = {
    "dolma": _dolma,
    "dolma_v2": functools.partial(_dolma, blank_lines=False),
    "redpajama": _redpajama,
}
