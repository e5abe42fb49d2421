r"""The quality signals of RedPajama-V2.

Source: Weber et al. 2024, arXiv:2411.12372; ``app/src/core/quality_signals`` of togethercomputer/RedPajama-Data at
855a8e0, whose names these are, spelling included. Importance: Xie et al. 2023, arXiv:2302.03169 (DSIR).
"""

import functools
import itertools
import math
import re
import string
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, cast
from urllib.parse import urlsplit

import msgspec
import numpy as np

from toolkit import (
    HAS_ALNUM,
    HAS_ASCII_LETTER,
    IS_UPPER,
    NUMBER,
    UPPER,
    Attribute,
    Batch,
    ConfigError,
    Document,
    Example,
    Files,
    LineTable,
    Model,
    Tagger,
    Words,
    characters,
    compiled,
    decomposed,
    entries,
    for_language,
    hashes_of,
    is_among,
    load_fasttext,
    read_list,
    resolve,
    stop_words,
    sums,
)

Array = np.ndarray[Any, np.dtype[Any]]

DECIMALS = 8
ASCII_PUNCTUATION = string.punctuation.encode()
BULLETS = "\u2022\u2023\u25b6\u25c0\u25e6\u25a0\u25a1\u25aa\u25ab\u2013"
LOREM_IPSUM = re.compile("lorem ipsum", re.IGNORECASE)
ELLIPSIS = "…".encode()
TOP, DUPE = range(2, 5), range(5, 11)
TARGETS = ("books", "openwebtext", "wikipedia")
EPSILON = 1e-8
MANY = 32
PRIME, SLOTS = np.uint64(0x9E3779B97F4A7C15), np.uint64(1 << 14)


class Signals(msgspec.Struct, frozen=True):
    """The value of `Redpajama`; lists have a number for each line of the document."""

    ccnet_language_score: float | None
    ccnet_perplexity: float | None
    rps_doc_books_importance: float | None
    rps_doc_books_importance_length_correction: float | None
    rps_doc_openwebtext_importance: float | None
    rps_doc_openwebtext_importance_length_correction: float | None
    rps_doc_wikipedia_importance: float | None
    rps_doc_wikipedia_importance_length_correction: float | None
    rps_doc_ml_wikiref_score: float | None
    rps_doc_ml_palm_score: float | None
    rps_doc_ml_wikipedia_score: float | None
    rps_doc_curly_bracket: float
    rps_doc_frac_all_caps_words: float | None
    rps_doc_frac_lines_end_with_ellipsis: float | None
    rps_doc_frac_no_alph_words: float | None
    rps_doc_lorem_ipsum: float
    rps_doc_mean_word_length: float | None
    rps_doc_stop_word_fraction: float | None
    rps_doc_symbol_to_word_ratio: float | None
    rps_doc_frac_unique_words: float | None
    rps_doc_unigram_entropy: float | None
    rps_doc_word_count: int
    rps_doc_num_sentences: int
    rps_doc_ldnoobw_words: int | None
    rps_doc_ut1_blacklist: int | None
    rps_doc_frac_chars_top_2gram: float
    rps_doc_frac_chars_top_3gram: float
    rps_doc_frac_chars_top_4gram: float
    rps_doc_frac_chars_dupe_5grams: float
    rps_doc_frac_chars_dupe_6grams: float
    rps_doc_frac_chars_dupe_7grams: float
    rps_doc_frac_chars_dupe_8grams: float
    rps_doc_frac_chars_dupe_9grams: float
    rps_doc_frac_chars_dupe_10grams: float
    rps_lines_ending_with_terminal_punctution_mark: list[int]
    rps_lines_javascript_counts: list[int]
    rps_lines_num_words: list[int]
    rps_lines_numerical_chars_fraction: list[float]
    rps_lines_start_with_bulletpoint: list[int]
    rps_lines_uppercase_letter_fraction: list[float]


EMPTY: dict[str, Any] = {
    name: 0 if kind is int else 0.0 if kind is float else [] if name.startswith("rps_lines") else None
    for name, kind in Signals.__annotations__.items()
}
"""The value for an empty text."""


class Redpajama(Tagger):
    r"""All signals of RedPajama-V2 that are computed from a document, rounded to 8 decimals.

    Two kinds of words. **Normal**: ``N(text).split()``, where N deletes the 32 ASCII punctuation characters, puts in
    lower case, takes each run of white space for a space, and decomposes (NFD); other punctuation stays. **Raw**:
    ``\w+|[^\w\s]+``, so ``...`` is one word, ``don't`` three. Lines are ours: the originals have their line end, too,
    which matters where it is said. Null where a share has no denominator, unless it is said. Lower case and NFD are
    those of this Python, the rest is Unicode as the toolkit has it.

    Of the document, ``rps_doc_…``:

    - ``word_count``, ``mean_word_length``, ``frac_unique_words``, ``unigram_entropy`` (natural logarithm): of normal
      words.
    - ``num_sentences``: matches of ``\b[^.!?]+[.!?]*``.
    - ``symbol_to_word_ratio``: ``#``, ``...`` and ``…`` in the text, by raw words.
    - ``frac_no_alph_words``: raw words without an ASCII letter; wrong for other scripts. ``frac_all_caps_words``: raw
      words that are upper case (``str.isupper``).
    - ``frac_lines_end_with_ellipsis``: ``...`` or ``…``, white space behind it left out; of all lines, blank ones too.
    - ``stop_word_fraction``: raw words that are stop words as they stand, a capital makes another word; 0 without
      normal words. Null without a list for the language. (RedPajama takes stopwords-json: another list by
      `stop_words`.)
    - ``lorem_ipsum``: how often it is in N(text), by its code points; ``curly_bracket``: ``{`` and ``}`` by code points
      of the text; 0 for nothing.
    - ``frac_chars_top_2gram`` … ``4gram``: what all occurrences of the most frequent n-gram have of the code points of
      normal words; 0 if none occurs twice. Of several, the first in the text counts.
    - ``frac_chars_dupe_5grams`` … ``10grams``: code points of the words in n-grams that occur at least twice, each word
      once; the first occurrence counts, too.
    - ``ldnoobw_words``: n-grams of normal words that are in the list `ldnoobw` as it stands: entries with capitals,
      ASCII punctuation or composed accents are never found. Null without a list for the language.
    - ``ut1_blacklist``: the number that `ut1` has for the host (and port) of the URL (``metadata.source_domain``, else
      that of ``metadata.warc_headers.warc-target-uri`` or ``metadata.url``), null for others.
    - ``books_importance``, ``openwebtext_importance``, ``wikipedia_importance``: over raw words and pairs of them, the
      sum of ln(share of its bucket in the target + 1e-8) - ln(that in the source + 1e-8). ``…_length_correction``: to
      this is added ln(Poisson(code points; target) + 1e-8) - ln(likewise of the source). Null without `importance`, and
      for an empty text.
    - ``ml_wikiref_score``, ``ml_palm_score``, ``ml_wikipedia_score``: the probability of the best label, or 1 less that
      if the label is ``cc``, for the text with spaces for line ends. Null without the model, or without words.

    Of each line, ``rps_lines_…``: ``num_words`` and ``javascript_counts`` (how many are that word) of the normal words;
    ``numerical_chars_fraction``: ``str.isnumeric`` in N(line), 0 if that is empty; ``uppercase_letter_fraction``:
    ``str.isupper`` by code points of the line with its line end; ``ending_with_terminal_punctution_mark``: 1 for a line
    that ends in ``. ! ? ”``, white space left out; ``start_with_bulletpoint``: 1 for one that begins with a
    bullet, triangle or square (U+2022, 2023, 25B6, 25C0, 25E6, 25A0, 25A1, 25AA, 25AB) or an en dash.

    ``ccnet_language_score`` and ``ccnet_perplexity`` are copied from other attributes, if these are named. The other
    ``ccnet_`` signals tell how CCNet changed the text, and are not here, nor are MinHash signatures: neither are those
    of a document. A list of words has one entry a line; a file is for all languages, a folder has one for
    each, named by it (``de`` or ``de.txt``).

    An `importance` file has arrays of equal length, ``source`` and any of ``books``, ``openwebtext``, ``wikipedia``:
    how often each bucket occurs; and, all or none of them, ``source_length``, ``books_length`` …: code points of a text
    on average. `feature_counts` makes them. Files that RedPajama made cannot be read: their buckets are those of
    Python's ``hash``.
    """

    EXAMPLES = (
        Example("", EMPTY),
        Example(
            "Say it once, say it AGAIN.\n\n# 3 {more}...",
            EMPTY
            | {
                "rps_doc_curly_bracket": 0.04878049,
                "rps_doc_frac_all_caps_words": 0.07692308,
                "rps_doc_frac_lines_end_with_ellipsis": 0.33333333,
                "rps_doc_frac_no_alph_words": 0.46153846,
                "rps_doc_mean_word_length": 3.0,
                "rps_doc_symbol_to_word_ratio": 0.15384615,
                "rps_doc_frac_unique_words": 0.75,
                "rps_doc_unigram_entropy": 1.73286795,
                "rps_doc_word_count": 8,
                "rps_doc_num_sentences": 2,
                "rps_doc_frac_chars_top_2gram": 0.41666667,
                "rps_lines_ending_with_terminal_punctution_mark": [1, 0, 1],
                "rps_lines_javascript_counts": [0, 0, 0],
                "rps_lines_num_words": [6, 0, 2],
                "rps_lines_numerical_chars_fraction": [0.0, 0.0, 0.16666667],
                "rps_lines_start_with_bulletpoint": [0, 0, 0],
                "rps_lines_uppercase_letter_fraction": [0.22222222, 0.0, 0.0],
            },
        ),
        Example(
            "• Der Größe wegen…",
            EMPTY
            | {
                "rps_doc_frac_all_caps_words": 0.0,
                "rps_doc_frac_lines_end_with_ellipsis": 1.0,
                "rps_doc_frac_no_alph_words": 0.4,
                "rps_doc_mean_word_length": 4.0,
                "rps_doc_stop_word_fraction": 0.2,
                "rps_doc_symbol_to_word_ratio": 0.2,
                "rps_doc_frac_unique_words": 1.0,
                "rps_doc_unigram_entropy": 1.38629436,
                "rps_doc_word_count": 4,
                "rps_doc_num_sentences": 1,
                "rps_lines_ending_with_terminal_punctution_mark": [0],
                "rps_lines_javascript_counts": [0],
                "rps_lines_num_words": [4],
                "rps_lines_numerical_chars_fraction": [0.0],
                "rps_lines_start_with_bulletpoint": [1],
                "rps_lines_uppercase_letter_fraction": [0.11111111],
            },
            options={"language": "de"},
        ),
    )

    language: Annotated[
        str | None,
        Attribute("language.label", str | None, or_value=True),
        msgspec.Meta(description="of the document: for stop words and bad words"),
    ] = None
    stop_words: Annotated[Files | None, msgspec.Meta(description="lists of stop words; else stopwords-iso")] = None
    ldnoobw: Annotated[Files | None, msgspec.Meta(description="lists of bad words and phrases")] = None
    ut1: Annotated[Model | None, msgspec.Meta(description="a JSON object: a number for each domain")] = None
    importance: Annotated[Model | None, msgspec.Meta(description="an .npz file of feature counts")] = None
    wikiref_model: Annotated[Model | None, msgspec.Meta(description="fastText, for `ml_wikiref_score`")] = None
    palm_model: Annotated[Model | None, msgspec.Meta(description="fastText, for `ml_palm_score`")] = None
    wikipedia_model: Annotated[Model | None, msgspec.Meta(description="fastText, for `ml_wikipedia_score`")] = None
    language_score: Annotated[
        str | None,
        Attribute("language_score", float | None),
        msgspec.Meta(description="what `ccnet_language_score` is: `language-0.language.prob`, for example"),
    ] = None
    perplexity: Annotated[
        str | None, Attribute("perplexity", float | None), msgspec.Meta(description="what `ccnet_perplexity` is")
    ] = None

    def tag(self, document: Document) -> Signals:
        return self.tag_batch([document])[0]

    def tag_batch(self, documents: Sequence[Document]) -> list[Signals]:
        batch = Batch.of(documents)
        texts = [document.text for document in batch]
        raw = batch.words("word_punct")
        of_texts, normal = _of_texts(texts, batch.lines, raw)
        columns: dict[str, Sequence[Any]] = {
            "ccnet_language_score": self._copied(batch, self.language_score),
            "ccnet_perplexity": self._copied(batch, self.perplexity),
            "rps_doc_ml_wikiref_score": _scores(self.wikiref_model, texts),
            "rps_doc_ml_palm_score": _scores(self.palm_model, texts),
            "rps_doc_ml_wikipedia_score": _scores(self.wikipedia_model, texts),
            **_importance(self.importance, raw, texts),
            **of_texts,
            **_of_raw_words(raw),
            **_of_normal_words(normal),
            **_of_lines(batch.lines, raw, normal, texts),
            **self._of_lists(batch, raw, normal),
        }
        return list(map(Signals, *(columns[name] for name in Signals.__struct_fields__)))

    def _copied(self, batch: Batch, option: str | None) -> Sequence[float | None]:
        return batch.attribute(option) if option else [None] * len(batch)

    def _of_lists(self, batch: Batch, raw: Words, normal: Words) -> dict[str, Sequence[Any]]:
        languages: Sequence[str | None] = batch.given(self.language)
        stopped: list[float | None] = []
        bad: list[int | None] = []
        for i, language in enumerate(languages):
            words, more = raw.hashes[slice(*raw.bounds[i : i + 2])], normal.hashes[slice(*normal.bounds[i : i + 2])]
            known, phrases = _stop_words(self.stop_words, language), _phrases(self.ldnoobw, language)
            some = sum(int(np.count_nonzero(row[words % SLOTS] == words)) for row in known) if len(more) else 0
            stopped.append(round(some / max(len(words), 1), DECIMALS) if known else None)
            found = [int(np.count_nonzero(is_among(_grams(more, n), grams))) for n, grams in (phrases or {}).items()]
            bad.append(None if phrases is None else sum(found))
        numbers = _numbers(self.ut1) if self.ut1 else {}
        return {
            "rps_doc_stop_word_fraction": stopped,
            "rps_doc_ldnoobw_words": bad,
            "rps_doc_ut1_blacklist": [numbers.get(_domain(each.metadata)) if numbers else None for each in batch],
        }


def _of_texts(texts: Sequence[str], lines: LineTable, raw: Words) -> tuple[dict[str, Sequence[Any]], Words]:
    """What is counted in whole texts; and the normal words, in the same lines."""
    utf8, at = lines.utf8.tobytes(), 1
    ends = np.append(1, lines.ends + 1 + _carriage_returns(lines))  # of lines with their line ends
    marks = raw.sums(~_is_word(raw) & (raw.ends - raw.starts - raw.chars >= MANY))
    symbols, brackets, lorem, normal = [], [], [], []
    for end, many in zip(ends[lines.bounds[1:]].tolist(), marks.tolist(), strict=True):
        data, at = utf8[at:end], end
        symbols.append(data.count(b"#") + data.count(b"...") + data.count(ELLIPSIS))
        brackets.append(data.count(b"{") + data.count(b"}"))
        text = data.translate(None, ASCII_PUNCTUATION).decode().lower()
        if not text.isascii():  # many marks in a row, or what will be, take Python's own way forever
            text = decomposed(text) if many or data.count(b"_") >= MANY else unicodedata.normalize("NFD", text)
        normal.append(text)
        lorem.append(_lorem_ipsum(text))
    columns: dict[str, Sequence[Any]] = {
        "rps_doc_symbol_to_word_ratio": _shares(symbols, raw.counts, none=True),
        "rps_doc_curly_bracket": _shares(brackets, list(map(len, texts))),
        "rps_doc_lorem_ipsum": lorem,
    }
    table = LineTable.of(["".join(normal)])._replace(bounds=lines.bounds)
    return columns, Words.of(table, "white_space")


def _is_word(raw: Words) -> Array:
    r"""Which raw words are of ``\w``, and not of what is no ``\w``."""
    return cast("Array", ((raw.kinds & HAS_ALNUM) != 0) | (raw.lines.utf8[raw.starts] == ord("_")))


def _lorem_ipsum(text: str) -> float:
    if "lorem" not in text:
        return 0.0
    text = " ".join(text.split())
    return round(len(LOREM_IPSUM.findall(text)) / len(text), DECIMALS) if "lorem ipsum" in text else 0.0


def _of_raw_words(raw: Words) -> dict[str, Sequence[Any]]:
    n = raw.counts
    latin, upper = (raw.sums((raw.kinds & kind) != 0) for kind in (HAS_ASCII_LETTER, IS_UPPER))
    sentences = np.zeros(len(n), dtype=np.int64)
    is_word = _is_word(raw).view(np.int8)
    _count_sentences(raw.lines.utf8, raw.starts, raw.ends, is_word, raw.bounds, len(n), sentences)
    return {
        "rps_doc_frac_no_alph_words": _shares(1 - latin / np.maximum(n, 1), n > 0, none=True),
        "rps_doc_frac_all_caps_words": _shares(upper, n, none=True),
        "rps_doc_num_sentences": sentences.tolist(),
    }


def _of_normal_words(normal: Words) -> dict[str, Sequence[Any]]:
    n, chars = normal.counts, normal.sums(normal.chars)
    longest, texts = int(np.max(n, initial=0)), len(n)
    room = 1 << max(4, (2 * longest).bit_length())
    occurrences = np.zeros(len(normal.hashes), dtype=np.int64)
    top, dupe = np.zeros((len(TOP), texts), dtype=np.int64), np.zeros((len(DUPE), texts), dtype=np.int64)
    tables = np.zeros((3, room), dtype=np.int64), np.zeros((2, longest), dtype=np.int64)
    keys, grams = np.zeros(room, dtype=np.uint64), np.zeros(longest, dtype=np.uint64)
    _repetition(
        normal.hashes, normal.chars, normal.bounds, texts, *tables[0], *tables[1], keys, grams, occurrences, top, dupe
    )  # fmt: skip
    return {
        "rps_doc_word_count": n.tolist(),
        "rps_doc_mean_word_length": _shares(chars, n, none=True),
        "rps_doc_frac_unique_words": _shares(normal.sums(occurrences > 0), n, none=True),
        "rps_doc_unigram_entropy": _shares(_entropies(occurrences, normal), n > 0, none=True),
        **{f"rps_doc_frac_chars_top_{size}gram": _shares(top[i], chars) for i, size in enumerate(TOP)},
        **{f"rps_doc_frac_chars_dupe_{size}grams": _shares(dupe[i], chars) for i, size in enumerate(DUPE)},
    }


def _entropies(occurrences: Array, normal: Words) -> Array:
    """Of each text ln T - sum of c ln c / T, for T words of which different ones occur c times."""
    first = np.flatnonzero(occurrences > 1)
    different, which = np.unique(occurrences[first], return_inverse=True)
    terms = np.array([c * math.log(c) for c in different.tolist()])
    text = np.searchsorted(normal.bounds, first, side="right") - 1
    total = np.bincount(text, weights=terms[which], minlength=len(normal.counts))  # one after the other, in any batch
    n = np.maximum(normal.counts, 1)
    logs = np.array([math.log(c) for c in n.tolist()])
    return cast("Array", np.maximum(logs - total / n, 0))


def _of_lines(lines: LineTable, raw: Words, normal: Words, texts: Sequence[str]) -> dict[str, Sequence[Any]]:
    n = len(lines.starts)
    of_raw, of_normal = raw.of_lines(), normal.of_lines()
    some = of_raw[1:] > of_raw[:-1]
    head, tail = np.zeros((2, n), dtype=np.int64)
    head[some] = _three_bytes(lines, raw.starts[of_raw[:-1][some]])
    tail[some] = _three_bytes(lines, raw.ends[of_raw[1:][some] - 1] - 3)
    ellipsis = _is_one_of(tail, ("...", "…"))
    terminal = _is_one_of(tail & 255, ".!?") | _is_one_of(tail, "”")
    words = np.diff(of_normal)
    normal_chars = sums(normal.chars, of_normal) + np.maximum(words - 1, 0)
    upper, numeric = np.zeros((2, n), dtype=np.int64)
    known = characters()
    for table, kind, found in ((lines, UPPER, upper), (normal.lines, NUMBER, numeric)):
        _count_kind(table.utf8, table.starts, table.ends, n, known.blocks, known.classes, kind, found)
    chars = lines.chars + 1 + _carriage_returns(lines)
    open_ended = [text != "" and not text.endswith("\n") for text in texts]
    chars[lines.bounds[1:][open_ended] - 1] -= 1

    def split(values: Array) -> list[Any]:
        every, bounds = values.tolist(), lines.bounds.tolist()
        return [every[a:b] for a, b in itertools.pairwise(bounds)]

    javascript = normal.hashes == hashes_of(["javascript"])[0]
    return {
        "rps_doc_frac_lines_end_with_ellipsis": _shares(lines.sums(ellipsis), np.diff(lines.bounds), none=True),
        "rps_lines_ending_with_terminal_punctution_mark": split(terminal.astype(np.int64)),
        "rps_lines_javascript_counts": split(sums(javascript, of_normal)),
        "rps_lines_num_words": split(words),
        "rps_lines_numerical_chars_fraction": split(_rounded(numeric / np.maximum(normal_chars, 1))),
        "rps_lines_start_with_bulletpoint": split(_is_one_of(head, BULLETS).astype(np.int64)),
        "rps_lines_uppercase_letter_fraction": split(_rounded(upper / chars)),
    }


def _carriage_returns(lines: LineTable) -> Array:
    """Whether a line has one before its line feed."""
    return cast("Array", lines.utf8[lines.ends] == ord("\r"))


def _three_bytes(lines: LineTable, at: Array) -> Array:
    """The three bytes from each offset on, as a number."""
    first, second, third = (lines.utf8[at + i].astype(np.int64) & 255 for i in range(3))
    return cast("Array", first << 16 | second << 8 | third)


def _is_one_of(found: Array, marks: Iterable[str]) -> Array:
    return functools.reduce(np.bitwise_or, (found == int.from_bytes(mark.encode()) for mark in marks))


def _shares(parts: Any, wholes: Any, *, none: bool = False) -> list[Any]:
    """What parts have of wholes, rounded; without a whole 0, or null."""
    whole = np.asarray(wholes, dtype=np.int64)
    found = _rounded(np.asarray(parts) / np.maximum(whole, 1)).tolist()
    return [share if n else None for share, n in zip(found, whole.tolist(), strict=True)] if none else found


def _rounded(values: Array) -> Array:
    """As ``round(value, 8)`` has it, without a call for each."""
    scaled = values * 10.0**DECIMALS
    found = np.rint(scaled) / 10.0**DECIMALS
    for i in np.flatnonzero((np.abs(scaled % 1 - 0.5) < 1e-4) | (scaled > 1e10)):  # arithmetic does not tell these
        found[i] = round(float(values[i]), DECIMALS)
    return cast("Array", found)


@compiled("int8* int64* int64* int64 int64* int64* int64 int64*")
def _count_kind(utf8: Any, starts: Any, ends: Any, n: Any, blocks: Any, classes: Any, kind: Any, found: Any) -> None:
    """How many code points of each line are of a kind, a bit of `characters`."""
    for line in range(n):
        at, count = starts[line], 0
        while at < ends[line]:
            first = utf8[at] + 0
            if first >= 0:
                point, at = first, at + 1
            elif first < -32:
                point, at = (first & 31) << 6 | (utf8[at + 1] & 63), at + 2
            elif first < -16:
                point, at = (first & 15) << 12 | (utf8[at + 1] & 63) << 6 | (utf8[at + 2] & 63), at + 3
            else:
                point = (first & 7) << 18 | (utf8[at + 1] & 63) << 12 | (utf8[at + 2] & 63) << 6 | (utf8[at + 3] & 63)
                at += 4
            count += (classes[blocks[point >> 8] << 8 | point & 255] & kind) != 0
        found[line] = count


@compiled("int8* int64* int64* int8* int64* int64 int64*")
def _count_sentences(utf8: Any, starts: Any, ends: Any, is_word: Any, bounds: Any, texts: Any, found: Any) -> None:
    r"""How many stretches without ``. ! ?`` have a ``\w``: each has one match of the pattern."""
    for text in range(texts):
        between = True
        for i in range(bounds[text], bounds[text + 1]):
            if is_word[i]:
                found[text] += between
                between = False
            else:
                for j in range(starts[i], ends[i]):
                    between |= (utf8[j] == 46) | (utf8[j] == 33) | (utf8[j] == 63)


@compiled("uint64* int64* int64* int64 int64* int64* int64* int64* int64* uint64* uint64* int64* int64* int64*")
def _repetition(
    hashes: Any, sizes: Any, bounds: Any, texts: Any, stamps: Any, counts: Any, firsts: Any, slots: Any, places: Any,
    keys: Any, grams: Any, occurrences: Any, top: Any, dupe: Any,
) -> None:  # fmt: skip
    """What repeated n-grams have of each text. A longer one can only be where shorter ones are.

    From `stamps` to `grams` it is room to work in: a hash table of twice the longest text (`stamps`, `counts`, `firsts`
    and `keys`), and for each n where the n-grams are that may be repeated (`places`, `slots`, `grams`). Found are, for
    each word, how often it occurs in its text, at its first occurrence (`occurrences`); for n of 2 to 4 and each text,
    the sizes of all occurrences of the most frequent n-gram (`top`); for n of 5 to 10, those of the words in repeated
    n-grams (`dupe`).
    """
    stamp = 0
    for text in range(texts):
        begin = bounds[text]
        left = bounds[text + 1] - begin
        mask = 15
        while mask + 1 < 2 * left:
            mask = 2 * mask + 1
        for i in range(left):
            places[i], grams[i] = begin + i, hashes[begin + i]
        for n in range(1, 11):
            stamp += 1
            for i in range(left):
                key = grams[i]
                key ^= key >> 29
                key *= 0xBF58476D1CE4E5B9
                key ^= key >> 32
                slot = key & mask
                while stamps[slot] == stamp and keys[slot] != grams[i]:
                    slot = (slot + 1) & mask
                if stamps[slot] != stamp:
                    stamps[slot], keys[slot], counts[slot], firsts[slot] = stamp, grams[i], 0, places[i]
                counts[slot] += 1
                slots[i] = slot
            best, best_at, to_here, kept = 1, 0, 0, 0
            for i in range(left):
                count, at = counts[slots[i]], places[i]
                if n == 1 and firsts[slots[i]] == at:
                    occurrences[at] = count
                if count < 2:
                    continue
                if count > best:
                    best, best_at = count, at
                if n >= 5:
                    for j in range(max(at, to_here), at + n):
                        dupe[(n - 5) * texts + text] += sizes[j]
                    to_here = at + n
                if i + 1 < left and places[i + 1] == at + 1 and counts[slots[i + 1]] > 1:
                    places[kept], grams[kept] = at, grams[i] * 0x9E3779B97F4A7C15 + hashes[at + n]
                    kept += 1
            if best > 1 and 2 <= n <= 4:
                for j in range(best_at, best_at + n):
                    top[(n - 2) * texts + text] += best * sizes[j]
            left = kept
            if left == 0:
                break


# --- lists of words ---------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def _stop_words(path: str | None, language: str | None) -> list[Array]:
    """Hashes of the stop words of a language, each at its place in one of the arrays; none if there is no list."""
    words = _listed(path, language) if path else stop_words(language) if language else ()
    left = hashes_of(word for word in words or () if word.split() == [word])
    rows = []
    while len(left):
        row = np.zeros(SLOTS, dtype=np.uint64)
        row[left % SLOTS] = left
        rows.append(row)
        left = left[row[left % SLOTS] != left]
    return rows


@functools.lru_cache(maxsize=1024)
def _phrases(path: str | None, language: str | None) -> dict[int, Array] | None:
    """Hashes of the phrases of a language, by how many words they have; none if there is no list."""
    if not path or (listed := _listed(path, language)) is None:
        return None
    by_words: dict[int, list[str]] = {}
    for entry in listed:
        if (words := entry.split(" ")) == entry.split():
            by_words.setdefault(len(words), []).append(entry)
    found = {}
    for n, phrases in by_words.items():
        hashes = Words.of(LineTable.of(phrases), "white_space").hashes
        found[n] = np.unique(np.concatenate([_grams(hashes[i : i + n], n) for i in range(0, len(hashes), n)]))
    return found


def _grams(hashes: Array, n: int) -> Array:
    """A hash of each n words in a row."""
    count = max(len(hashes) - n + 1, 0)
    found = hashes[:count]
    for i in range(1, n):
        found = found * PRIME + hashes[i : i + count]
    return found


def _listed(path: str, language: str | None) -> list[str] | None:
    file = for_language(path, language, ("", ".txt"))
    return entries(file) if file else None


@functools.lru_cache(maxsize=4)
def _numbers(path: str) -> dict[str, int]:
    try:
        return msgspec.json.decode(read_list(resolve(path)), type=dict[str, int])
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path}: expected a JSON object of numbers, got: {error}") from None


def _domain(metadata: Mapping[str, Any]) -> str:
    headers = metadata.get("warc_headers")
    url = headers.get("warc-target-uri") if isinstance(headers, Mapping) else metadata.get("url")
    try:
        return str(metadata.get("source_domain") or urlsplit(str(url)).netloc)
    except ValueError:  # no URL
        return ""


# --- models -----------------------------------------------------------------------------------------------------------


def _scores(model: str | None, texts: Sequence[str]) -> list[float | None]:
    if model is None:
        return [None] * len(texts)
    found = load_fasttext(model).predict([" ".join(text.splitlines()).strip() for text in texts])
    probs = [(best[0].label, float(np.float32(best[0].prob))) if best else None for best in found]
    return [round(1 - of[1] if of[0] == "cc" else of[1], DECIMALS) if of else None for of in probs]


def feature_counts(texts: Iterable[str], buckets: int = 10_000) -> tuple[Array, float]:
    """How often raw words, and pairs of them, fall into each bucket; and the mean code points of a text.

    Args:
        texts: of the source, or of a target; held in memory.
        buckets: of an `importance` file; all its counts have as many.
    """
    words = Words.of(LineTable.of(every := list(texts)), "word_punct")
    counts = np.zeros(buckets, dtype=np.int64)
    for a, b in itertools.pairwise(words.bounds.tolist()):
        counts += np.bincount(_buckets(words.hashes[a:b], buckets), minlength=buckets)
    return counts, sum(map(len, every)) / max(len(every), 1)


def _buckets(hashes: Array, buckets: int) -> Array:
    return cast("Array", (np.concatenate([hashes, _grams(hashes, 2)]) % np.uint64(buckets)).astype(np.int64))


def _importance(path: str | None, raw: Words, texts: Sequence[str]) -> dict[str, Sequence[Any]]:
    kept = _feature_counts(path) if path else {}
    columns: dict[str, Sequence[Any]] = {}
    for target in TARGETS:
        found: list[float | None] = [None] * len(texts)
        corrected = found.copy()
        if target in kept:
            logs = [np.log(kept[name] / kept[name].sum() + EPSILON) for name in (target, "source")]
            for i, text in enumerate(texts):
                buckets = _buckets(raw.hashes[slice(*raw.bounds[i : i + 2])], len(logs[0]))
                score = math.fsum((logs[0] - logs[1])[buckets].tolist())
                found[i] = round(score, DECIMALS) if text else None
                if text and {f"{target}_length", "source_length"} <= kept.keys():
                    means = (float(kept[f"{name}_length"]) for name in (target, "source"))
                    by_target, by_source = (math.log(_poisson(len(text), mean) + EPSILON) for mean in means)
                    corrected[i] = round(score + by_target - by_source, DECIMALS)
        columns[f"rps_doc_{target}_importance"] = found
        columns[f"rps_doc_{target}_importance_length_correction"] = corrected
    return columns


def _poisson(n: int, mean: float) -> float:
    if mean <= 0:
        return 0.0
    return math.exp(n * math.log(mean) - mean - math.lgamma(n + 1))


@functools.lru_cache(maxsize=4)
def _feature_counts(path: str) -> dict[str, Array]:
    try:
        with np.load(resolve(path), allow_pickle=False) as kept:
            found = {name: kept[name] for name in kept.files}
        sizes = {found[name].shape for name in ("source", *TARGETS) if name in found}
    except (OSError, ValueError, AttributeError) as error:
        raise ConfigError(f"{path}: expected an .npz file of feature counts, got: {error}") from None
    if (
        "source" not in found
        or len(sizes) != 1
        or not all(found[name].sum() > 0 for name in {"source", *TARGETS} & {*found})
    ):
        raise ConfigError(
            f"{path}: expected counts, in arrays of one length, with `source` among them, got {sorted(found)}"
        )
    return found
