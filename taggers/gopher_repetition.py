r"""Share of a document in repeated lines, paragraphs and n-grams.

Source: Rae et al. 2021 (Gopher), arXiv:2112.11446, appendix A.1.1 and table A1, which drops above: duplicate lines and
paragraphs 0.30, their characters 0.20; characters of the top 2-, 3-, 4-gram 0.20, 0.18, 0.16; of duplicate 5- to
10-grams 0.15, 0.14, 0.13, 0.12, 0.11, 0.10. The paper leaves open how each is counted; the variants count as these do:
datatrove 0.10 (``gopher_repetition_filter.py``), Dolma 1.2 (``gopher_v1``, ``gopher_v2``), RedPajama-Data V2
(``repetitions.py``).
"""

import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import msgspec

from taggers._options import Language, PaperSplitter, Variant, check_language, words_in
from toolkit import Batch, ConfigError, Document, Example, Tagger, text as measures
from toolkit.text import SPACE, decoded, np, number_of

TOP, DUPLICATE = range(2, 5), range(5, 11)


class Repetition(msgspec.Struct, frozen=True):
    """The value of `GopherRepetition`, shares; what has nothing to be counted in is 0.

    Attributes:
        duplicate_line_share: Share of the lines that are duplicates of another one.
        duplicate_line_char_share: Share of the characters that is in duplicate lines.
        duplicate_paragraph_share: Share of the paragraphs that are duplicates of another one.
        duplicate_paragraph_char_share: Share of the characters that is in duplicate paragraphs.
        top_2gram_char_share: Share of the words' characters that the occurrences of the most frequent 2-gram have.
        top_3gram_char_share: Share of the words' characters that the occurrences of the most frequent 3-gram have.
        top_4gram_char_share: Share of the words' characters that the occurrences of the most frequent 4-gram have.
        duplicate_5gram_char_share: Share of the words' characters that is in 5-grams which occur at least twice.
        duplicate_6gram_char_share: Share of the words' characters that is in 6-grams which occur at least twice.
        duplicate_7gram_char_share: Share of the words' characters that is in 7-grams which occur at least twice.
        duplicate_8gram_char_share: Share of the words' characters that is in 8-grams which occur at least twice.
        duplicate_9gram_char_share: Share of the words' characters that is in 9-grams which occur at least twice.
        duplicate_10gram_char_share: Share of the words' characters that is in 10-grams which occur at least twice.
    """

    duplicate_line_share: float
    duplicate_line_char_share: float
    duplicate_paragraph_share: float
    duplicate_paragraph_char_share: float
    top_2gram_char_share: float
    top_3gram_char_share: float
    top_4gram_char_share: float
    duplicate_5gram_char_share: float
    duplicate_6gram_char_share: float
    duplicate_7gram_char_share: float
    duplicate_8gram_char_share: float
    duplicate_9gram_char_share: float
    duplicate_10gram_char_share: float


NOTHING = dict.fromkeys(Repetition.__struct_fields__, 0.0)


class GopherRepetition(Tagger):
    r"""Shares of repeated lines, paragraphs and n-grams of words in a document.

    With the variant `paper`:

    - Lines are compared without white space at their ends; blank lines do not count. A paragraph is the text between
      blank lines. A line or paragraph is a duplicate if an equal one comes before it, so of two equal lines one is a
      duplicate. ``…_line_share`` and ``…_paragraph_share`` are shares of all lines and paragraphs, ``…_char_share`` are
      shares of the characters of all stripped lines.
    - n-grams consist of the words that `splitter` finds, and may cross line ends. They are compared regardless of
      case, or, with `case`, with it. Only characters of words count; shares are shares of the characters of all words.
    - ``top_ngram_char_share``: the number of occurrences of the most frequent n-gram times its characters; if several
      are equally frequent, the first one counts. It is 0 if the n-gram occurs once, and at most 1, although occurrences
      may overlap.
    - ``duplicate_ngram_char_share``: the words that are in an n-gram which occurs at least twice. The first occurrence
      counts, too; each word counts once.

    With the splitter ``unicode``, an ideograph or a Thai letter is a word. So in these languages n-grams consist of
    characters, and more of them are repeated.

    Other variants measure as the program from which they come. What that program does not measure, they measure as
    `paper` does:

    - ``datatrove``: lines are the pieces between runs of ``\n``, paragraphs those between runs of two or more. A
      duplicate is one that has come before. n-grams consist of tokens (by default those of spaCy's blank English
      pipeline), with their case. The top n-gram counts with the blanks between its words, also if it occurs once. Of
      duplicate n-grams, the second and later occurrences count, without those that overlap. All characters are divided
      by those of the text.
    - ``dolma``, ``dolma_v2``: lines are the pieces between ``\n``, with ``dolma_v2`` between runs of ``\n``. All lines
      that are equal to another one are duplicates, also the first of them and empty ones. Words are the pieces between
      white space; characters are divided by those of words. The top n-gram counts also if it occurs once. Of duplicate
      n-grams, all occurrences count, divided by all n-grams, and overlaps count each time. There are no paragraphs.
    - ``redpajama``: n-grams as in `paper`, but of words without ASCII punctuation, in lower case and NFD; the value of
      the top n-gram may exceed 1. There are no lines and no paragraphs. Values are rounded to 8 places.

    Attributes:
        case: true distinguishes n-grams in upper and lower case, with the variant `paper`
    """

    EXAMPLES = (
        Example("", NOTHING),
        Example(
            "One line\n two\n\none line\nONE LINE\n\n two\nend of one line",
            NOTHING | {
                "duplicate_line_share": 0.16666666666666666, "duplicate_line_char_share": 0.06666666666666667,
                "top_2gram_char_share": 0.717948717948718, "top_3gram_char_share": 0.5128205128205128,
            },
        ),
        Example(
            "a é\n\nA É b c\n\na é\n",
            NOTHING | {
                "duplicate_line_share": 0.3333333333333333, "duplicate_line_char_share": 0.23076923076923078,
                "duplicate_paragraph_share": 0.3333333333333333, "duplicate_paragraph_char_share": 0.23076923076923078,
                "top_2gram_char_share": 0.75,
            },
        ),
        Example("日本語、日本語", NOTHING | {"top_2gram_char_share": 0.6666666666666666, "top_3gram_char_share": 1.0}),
        Example(
            "a b A b a b",
            NOTHING | {"top_2gram_char_share": 0.6666666666666666},
            options={"case": True},
        ),
        Example(
            "a b a b a b a b",
            NOTHING | {
                "top_2gram_char_share": 0.8, "top_3gram_char_share": 1.0, "top_4gram_char_share": 1.4,
                "duplicate_5gram_char_share": 0.3333333333333333, "duplicate_6gram_char_share": 0.4,
            },
            options={"variant": "datatrove"},
        ),
    )  # fmt: skip

    variant: Variant = "paper"
    splitter: PaperSplitter = "unicode"

    case: bool = False

    language: Language = None

    def check(self) -> None:
        check_language(self.variant, self.language, self.splitter)
        if self.case and self.variant != "paper":
            raise ConfigError(f"case: expected the variant paper with it, got {self.variant!r}")

    def tag_batch(self, documents: Sequence[Document]) -> list[Repetition]:
        batch = Batch.of(documents)
        texts = [document.text for document in batch]
        if self.variant == "datatrove":
            return list(map(_datatrove, texts, batch.datatrove_words(self.language)))
        if self.variant == "paper":
            words = measures.Sequences.of(words_in(batch, self.splitter, self.language), folded=not self.case)
            columns = [*_lines(batch.lines), *_ngrams(words, 1.0)]
        elif self.variant == "redpajama":
            plain = measures.Words.of(measures.LineTable.of(list(map(_without_punctuation, texts))), "white_space")
            columns = [*_lines(batch.lines), *_ngrams(measures.Sequences.of(plain), np.inf)]
        else:
            words = measures.Sequences.of(batch.words("white_space"))
            lines = [_dolma_lines(text, blank=self.variant == "dolma") for text in texts]
            columns = [*np.array(lines).reshape(-1, 2).T, *_lines(batch.lines)[2:], *_dolma_ngrams(words)]
        return list(map(Repetition, *(column.tolist() for column in columns)))


def _share(part: measures.Array, whole: measures.Array) -> measures.Array:
    return cast("measures.Array", part / np.maximum(whole, 1))


# --- the variant `paper` ----------------------------------------------------------------------------------------------


def _lines(lines: measures.LineTable) -> list[measures.Array]:
    """Return the shares of duplicate lines, paragraphs and their characters."""
    texts = len(lines.bounds) - 1
    result = np.zeros((4, len(lines.starts)), dtype=np.int64)
    bounds = np.zeros((2, texts + 1), dtype=np.int64)
    parts = [_Parts(result[2 * i], result[2 * i + 1], bounds[i]) for i in range(2)]
    _look(lines, texts, measures.characters(), *parts)
    shares = []
    for hashes, sizes, item in parts:
        of = measures.Sequences(hashes[: item[-1]].view(np.uint64), sizes[: item[-1]], item)
        repeated = of.repeated(1)
        shares += [_share(repeated.total - repeated.distinct, repeated.total), _share(repeated.again, of.totals)]
    return shares


def _ngrams(words: measures.Sequences, most: float) -> list[measures.Array]:
    totals, result = words.totals, words.repetition(max(DUPLICATE))
    shares = [np.minimum(_share(result.top[n], totals), most) for n in TOP]
    return shares + [_share(result.covered[n], totals) for n in DUPLICATE]


class _Parts(NamedTuple):
    """Lines or paragraphs of documents: hashes, code points, the first of each document and the end of all."""

    hashes: measures.Int64s
    sizes: measures.Int64s
    bounds: measures.Int64s


@measures.compiled(measures.LineTable, "int64", measures.Characters, _Parts, _Parts)
def _look(
    table_of_lines: measures.LineTable,
    documents: Any,
    table: measures.Characters,
    of_lines: _Parts,
    of_paragraphs: _Parts,
) -> None:
    """Find the stripped lines, without blank ones, and the paragraphs."""
    utf8, starts, ends, _, bounds = table_of_lines
    hashes, sizes, line_bounds = of_lines
    paragraphs, paragraph_sizes, paragraph_bounds = of_paragraphs
    lines = n = 0
    for document in range(documents):
        hash_of_paragraph = size_of_paragraph = 0
        for line in range(bounds[document], bounds[document + 1]):
            at, chars, size, hash_, stripped = starts[line], 0, 0, 1, 0
            while at < ends[line]:
                point, at = decoded(utf8, at)
                space = number_of(table, point) & SPACE
                if space and not chars:
                    continue
                hash_ = ((hash_ ^ point) * 0x1E3779B97F4A7C15) & 0x7FFFFFFFFFFFFFFF
                chars += 1
                if not space:
                    size, stripped = chars, hash_
            if size:
                hashes[lines], sizes[lines] = stripped, size
                lines += 1
                hash_of_paragraph = ((hash_of_paragraph ^ stripped) * 0x1E3779B97F4A7C15) & 0x7FFFFFFFFFFFFFFF
                size_of_paragraph += size
            if size_of_paragraph and (not size or line + 1 == bounds[document + 1]):
                paragraphs[n], paragraph_sizes[n] = hash_of_paragraph, size_of_paragraph
                n += 1
                hash_of_paragraph = size_of_paragraph = 0
        line_bounds[document + 1], paragraph_bounds[document + 1] = lines, n


# --- other variants ---------------------------------------------------------------------------------------------------


def _without_punctuation(text: str) -> str:
    return measures.decomposed(text.translate(dict.fromkeys(map(ord, string.punctuation))).lower())


def _dolma_lines(text: str, *, blank: bool) -> tuple[float, float]:
    lines = text.split("\n") if blank else re.split("\n+", text)
    several = {line: count for line, count in Counter(lines).items() if count > 1}
    chars = sum(len(line) * count for line, count in several.items())
    return sum(several.values()) / len(lines), chars / max(sum(map(len, text.split())), 1)


def _dolma_ngrams(words: measures.Sequences) -> list[measures.Array]:
    tops = [words.top(n) for n in TOP]
    ngrams = [words.joined(n) for n in DUPLICATE]
    shares = [_share(top.counts * top.sizes, words.totals) for top in tops]
    return shares + [_share(ngram.repeated(1).covered, ngram.totals) for ngram in ngrams]


def _datatrove(text: str, words: list[str]) -> Repetition:
    size = max(len(text), 1)
    shares = []
    for parts in (re.split("\n+", text), re.split("\n{2,}", text.strip())):
        first = dict.fromkeys(parts)
        shares += [(len(parts) - len(first)) / len(parts), (sum(map(len, parts)) - sum(map(len, first))) / size]
    for n in TOP:
        counts = Counter(" ".join(words[i : i + n]) for i in range(len(words) - n + 1))
        ngram, count = max(counts.items(), key=lambda item: item[1], default=("", 0))
        shares.append(len(ngram) * count / size)
    return Repetition(*shares, *(_greedy(words, n) / size for n in DUPLICATE))


def _greedy(words: list[str], n: int) -> int:
    """Return the characters of repeated n-grams.

    They are taken from the start on, and do not overlap.
    """
    ngrams = set[str]()
    at = chars = 0
    while at + n <= len(words):
        ngram = "".join(words[at : at + n])
        again = ngram in ngrams
        chars += len(ngram) * again
        at += n if again else 1
        ngrams.add(ngram)
    return chars
