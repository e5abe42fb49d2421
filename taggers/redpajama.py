r"""The quality signals of RedPajama-V2 without a trained model.

The others are those of `redpajama_models`.

Source: Weber et al. 2024, arXiv:2411.12372; ``app/src/core/quality_signals`` of togethercomputer/RedPajama-Data at
855a8e0, whose names these are, spelling included.
"""

import functools
import itertools
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, cast
from urllib.parse import urlsplit

import msgspec

from taggers._options import Label
from toolkit import Attribute, Batch, ConfigError, Document, Example, Files, Model, Tagger, cached, text as measures
from toolkit.text import HAS_ALNUM, np, stop_words

DECIMALS = 8
ASCII_PUNCTUATION = string.punctuation.encode()
BULLETS = "\u2022\u2023\u25b6\u25c0\u25e6\u25a0\u25a1\u25aa\u25ab\u2013"
LOREM_IPSUM = re.compile("lorem ipsum", re.IGNORECASE)
TOP, DUPE = range(2, 5), range(5, 11)


class Signals(msgspec.Struct, frozen=True):
    """The value of `Redpajama`; lists have a number for each line of the document.

    Attributes:
        ccnet_language_score: Score of the language, copied from another attribute; null if none is named.
        ccnet_perplexity: Perplexity, copied from another attribute; null if none is named.
        rps_doc_curly_bracket: Curly brackets divided by code points of the text.
        rps_doc_frac_all_caps_words: Share of the raw words that are in capitals.
        rps_doc_frac_lines_end_with_ellipsis: Share of the lines that end in an ellipsis.
        rps_doc_frac_no_alph_words: Share of the raw words without an ASCII letter.
        rps_doc_lorem_ipsum: Occurrences of "lorem ipsum" divided by code points of the normalized text.
        rps_doc_mean_word_length: Mean length of the normal words in code points.
        rps_doc_stop_word_fraction: Stop words divided by raw words; null without a list for the language.
        rps_doc_symbol_to_word_ratio: Number signs and ellipses divided by raw words.
        rps_doc_frac_unique_words: Different normal words divided by all of them.
        rps_doc_unigram_entropy: Entropy of the normal words in nats.
        rps_doc_word_count: Normal words of the text.
        rps_doc_num_sentences: Sentences of the text.
        rps_doc_ldnoobw_words: Occurrences of entries of the list of bad words; null without a list for the language.
        rps_doc_ut1_blacklist: Number that the UT1 list has for the page's host; null for other hosts.
        rps_doc_frac_chars_top_2gram: Share of the words' code points that the occurrences of the most frequent 2-gram
            have.
        rps_doc_frac_chars_top_3gram: Share of the words' code points that the occurrences of the most frequent 3-gram
            have.
        rps_doc_frac_chars_top_4gram: Share of the words' code points that the occurrences of the most frequent 4-gram
            have.
        rps_doc_frac_chars_dupe_5grams: Share of the words' code points that is in 5-grams which occur at least twice.
        rps_doc_frac_chars_dupe_6grams: Share of the words' code points that is in 6-grams which occur at least twice.
        rps_doc_frac_chars_dupe_7grams: Share of the words' code points that is in 7-grams which occur at least twice.
        rps_doc_frac_chars_dupe_8grams: Share of the words' code points that is in 8-grams which occur at least twice.
        rps_doc_frac_chars_dupe_9grams: Share of the words' code points that is in 9-grams which occur at least twice.
        rps_doc_frac_chars_dupe_10grams: Share of the words' code points that is in 10-grams which occur at least twice.
        rps_lines_ending_with_terminal_punctution_mark: One number a line: 1 if it ends in a terminal mark, else 0.
        rps_lines_javascript_counts: One number a line: the number of its words that are "javascript".
        rps_lines_num_words: One number a line: the number of its normal words.
        rps_lines_numerical_chars_fraction: One number a line: the share of its characters that are numeric.
        rps_lines_start_with_bulletpoint: One number a line: 1 if it begins with a bullet point, else 0.
        rps_lines_uppercase_letter_fraction: One number a line: the share of its characters that are capitals.
    """

    ccnet_language_score: float | None
    ccnet_perplexity: float | None
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
    r"""All signals of RedPajama-V2 from a document alone or with lists; rounded to 8 decimals.

    There are two kinds of words. **Normal** words are ``N(text).split()``. N deletes the 32 ASCII punctuation
    characters, puts the text in lower case, turns each run of white space into a space, and decomposes it (NFD); other
    punctuation stays. **Raw** words are matches of ``\w+|[^\w\s]+``, so ``...`` is one word, and ``don't`` is three.
    Lines are those of the toolkit. RedPajama's lines include the line end; below we say where this matters. A share is
    null if its denominator is 0, unless something else is said below. Lower case and NFD are those of this Python, all
    else is Unicode as the toolkit has it.

    Of the document, ``rps_doc_…``:

    - ``word_count``, ``mean_word_length``, ``frac_unique_words`` and ``unigram_entropy`` (natural logarithm) are about
      normal words.
    - ``num_sentences``: matches of ``\b[^.!?]+[.!?]*``.
    - ``symbol_to_word_ratio``: the number of ``#``, ``...`` and ``…``, divided by the number of raw words.
    - ``frac_no_alph_words``: the share of raw words without an ASCII letter, which makes no sense for other scripts.
      ``frac_all_caps_words``: the share of raw words in upper case (``str.isupper``).
    - ``frac_lines_end_with_ellipsis``: the share of all lines, also of blank ones, that end in ``...`` or ``…``; white
      space after it does not matter.
    - ``stop_word_fraction``: the number of raw words that are stop words, divided by that of raw words. Case matters: a
      word with a capital is another word. 0 without normal words, null without a list for the language. (RedPajama
      takes the lists of stopwords-json; `stop_words` can name them.)
    - ``lorem_ipsum``: how often it occurs in N(text), divided by the code points of N(text); ``curly_bracket``: the
      number of ``{`` and ``}``, divided by the code points of the text. Both are 0 for an empty text.
    - ``frac_chars_top_2gram`` … ``4gram``: the share of the code points of normal words that is in occurrences of the
      most frequent n-gram; 0 if none occurs twice. If several are equally frequent, the first one counts.
    - ``frac_chars_dupe_5grams`` … ``10grams``: the share of the code points of normal words that is in n-grams which
      occur at least twice. Each word counts once; the first occurrence counts, too.
    - ``ldnoobw_words``: the number of n-grams of normal words that are in the list `ldnoobw`. The list is used as it
      is, so entries with capitals, ASCII punctuation or composed accents are never found. Null without a list for the
      language.
    - ``ut1_blacklist``: the number that `ut1` has for the host (and port) of the URL; null if it has none. The host is
      ``metadata.source_domain``, or else that of ``metadata.warc_headers.warc-target-uri`` or ``metadata.url``.

    Of each line, ``rps_lines_…``:

    - ``num_words``: the number of its normal words; ``javascript_counts``: how many of them are "javascript".
    - ``numerical_chars_fraction``: the share of N(line) that is ``str.isnumeric``; 0 if N(line) is empty. Ideographs
      that Unicode calls numerals only since 2023, such as 京 and 两, do not count.
    - ``uppercase_letter_fraction``: the number of characters that are ``str.isupper``, divided by the code points of
      the line with its line end.
    - ``ending_with_terminal_punctution_mark``: 1 for a line that ends in ``. ! ? ”``; white space after it does not
      matter.
    - ``start_with_bulletpoint``: 1 for a line that begins with a bullet, triangle or square (U+2022, 2023, 25B6, 25C0,
      25E6, 25A0, 25A1, 25AA, 25AB) or an en dash.

    ``ccnet_language_score`` and ``ccnet_perplexity`` are copied from other attributes, if options name these. The other
    ``ccnet_`` signals say how CCNet has changed the text. They and the MinHash signatures are no signals of the
    document itself, so they are not here. A list of words has one entry on each line. A file is for all languages; a
    folder has a file for each language, with its name (``de`` or ``de.txt``).

    Attributes:
        language: the language of the document, for stop words and bad words
        stop_words: lists of stop words; by default those of stopwords-iso
        ldnoobw: lists of bad words and phrases
        ut1: a JSON object: a number for each domain
        language_score: the value of `ccnet_language_score`, for example `language-0.language.prob`
        perplexity: the value of `ccnet_perplexity`
    """

    PER_LINE = tuple(name for name in Signals.__annotations__ if name.startswith("rps_lines"))

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

    VERSION = "2"

    language: Label = None
    stop_words: Files | None = None
    ldnoobw: Files | None = None
    ut1: Model | None = None
    language_score: Annotated[str | None, Attribute("language_score", float | None)] = None
    perplexity: Annotated[str | None, Attribute("perplexity", float | None)] = None

    def tag_batch(self, documents: Sequence[Document]) -> list[Signals]:
        batch = Batch.of(documents)
        texts = [document.text for document in batch]
        raw = batch.words("word_punct")
        normal, lorem = _normal(batch.lines)
        columns: dict[str, Sequence[Any]] = {
            "ccnet_language_score": self._copied(batch, self.language_score),
            "ccnet_perplexity": self._copied(batch, self.perplexity),
            "rps_doc_lorem_ipsum": lorem,
            **_of_raw_words(raw, texts),
            **_of_normal_words(normal),
            **_of_lines(batch, raw, normal),
            **self._of_lists(batch, raw, normal),
        }
        return list(map(Signals, *(columns[name] for name in Signals.__struct_fields__)))

    def _copied(self, batch: Batch, option: str | None) -> Sequence[float | None]:
        return batch.attribute(option) if option else [None] * len(batch)

    def _of_lists(self, batch: Batch, raw: measures.Words, normal: measures.Words) -> dict[str, Sequence[Any]]:
        languages: Sequence[str | None] = batch.given(self.language)
        lists = [_stop_words(self.stop_words, language) for language in languages]
        stopped = raw.sums(measures.places_among(raw.hashes, raw.bounds, lists) >= 0)
        shares = _shares(np.where(normal.counts > 0, stopped, 0), np.maximum(raw.counts, 1))
        phrases = [_phrases(self.ldnoobw, language) for language in languages]
        bad = np.zeros(len(batch), dtype=np.int64)
        for n in {n for listed in phrases for n in listed or ()}:
            grams = measures.Sequences.of(normal).joined(n)
            among = measures.places_among(
                grams.hashes, grams.bounds, [listed.get(n) if listed else None for listed in phrases]
            )
            bad += measures.sums(among >= 0, grams.bounds)
        numbers = _numbers(self.ut1) if self.ut1 else {}
        return {
            "rps_doc_stop_word_fraction": [None if of is None else n for n, of in zip(shares, lists, strict=True)],
            "rps_doc_ldnoobw_words": [None if of is None else n for n, of in zip(bad.tolist(), phrases, strict=True)],
            "rps_doc_ut1_blacklist": [
                numbers.get(_domain(document.metadata)) if numbers else None for document in batch
            ],
        }


def _normal(lines: measures.LineTable) -> tuple[measures.Words, list[float]]:
    """Return the normal words, and the shares of lorem ipsum."""
    texts = measures.lower_decomposed(lines, ASCII_PUNCTUATION)
    return measures.Words.of(measures.LineTable.of(texts), "white_space"), [_lorem_ipsum(text) for text in texts]


def _lorem_ipsum(utf8: bytes) -> float:
    if b"lorem" not in utf8:
        return 0.0
    text = " ".join(utf8.decode().split())
    return round(len(LOREM_IPSUM.findall(text)) / len(text), DECIMALS) if "lorem ipsum" in text else 0.0


def _of_raw_words(raw: measures.Words, texts: Sequence[str]) -> dict[str, Sequence[Any]]:
    n = raw.counts
    latin, upper = (raw.sums((raw.kinds & kind) != 0) for kind in (measures.HAS_ASCII_LETTER, measures.IS_UPPER))
    sentences, symbols, brackets = np.zeros((3, len(n)), dtype=np.int64)
    _count_marks(raw, len(n), sentences, symbols, brackets)
    return {
        "rps_doc_symbol_to_word_ratio": _shares(symbols, n, none=True),
        "rps_doc_curly_bracket": _shares(brackets, list(map(len, texts))),
        "rps_doc_frac_no_alph_words": _shares(1 - latin / np.maximum(n, 1), n > 0, none=True),
        "rps_doc_frac_all_caps_words": _shares(upper, n, none=True),
        "rps_doc_num_sentences": sentences.tolist(),
    }


def _of_normal_words(normal: measures.Words) -> dict[str, Sequence[Any]]:
    n, chars = normal.counts, normal.sums(normal.chars)
    occurrences, top, covered = measures.Sequences.of(normal).repetition(max(DUPE))
    return {
        "rps_doc_word_count": n.tolist(),
        "rps_doc_mean_word_length": _shares(chars, n, none=True),
        "rps_doc_frac_unique_words": _shares(normal.sums(occurrences > 0), n, none=True),
        "rps_doc_unigram_entropy": _shares(_entropies(occurrences, normal), n > 0, none=True),
        **{f"rps_doc_frac_chars_top_{size}gram": _shares(top[size], chars) for size in TOP},
        **{f"rps_doc_frac_chars_dupe_{size}grams": _shares(covered[size], chars) for size in DUPE},
    }


def _entropies(occurrences: measures.Array, normal: measures.Words) -> measures.Array:
    """Return the entropy of each text: ln T - sum of c ln c / T.

    It has T words; different ones occur c times.
    """
    first = np.flatnonzero(occurrences > 1)
    different, inverse = np.unique(occurrences[first], return_inverse=True)
    terms = different * measures.natural_logs(different)
    text = np.searchsorted(normal.bounds, first, side="right") - 1
    total = np.bincount(text, weights=terms[inverse], minlength=len(normal.counts))  # one after the other, in any batch
    n = np.maximum(normal.counts, 1)
    return cast("measures.Array", np.maximum(measures.natural_logs(n) - total / n, 0))


def _of_lines(batch: Batch, raw: measures.Words, normal: measures.Words) -> dict[str, Sequence[Any]]:
    lines, n = batch.lines, len(batch.lines.starts)
    of_raw, of_normal = raw.of_lines(), normal.of_lines()
    some = of_raw[1:] > of_raw[:-1]
    head, tail = np.zeros((2, n), dtype=np.int64)
    head[some] = _three_bytes(lines, raw.starts[of_raw[:-1][some]])
    tail[some] = _three_bytes(lines, raw.ends[of_raw[1:][some] - 1] - 3)
    ellipsis = _is_one_of(tail, ("...", "…"))
    terminal = _is_one_of(tail & 255, ".!?") | _is_one_of(tail, "”")
    words = np.diff(of_normal)
    normal_chars = measures.sums(normal.chars, of_normal) + np.maximum(words - 1, 0)
    upper, numeric = (
        measures.count_code_points(lines, measures.UPPER),
        measures.count_code_points(normal.lines, measures.NUMBER),
    )
    chars = lines.chars + 1 + _carriage_returns(lines)
    chars[lines.bounds[1:][batch.open_ended] - 1] -= 1

    def split(values: measures.Array) -> list[Any]:
        every, bounds = values.tolist(), lines.bounds.tolist()
        return [every[a:b] for a, b in itertools.pairwise(bounds)]

    javascript = normal.hashes == measures.hashes_of(["javascript"])[0]
    return {
        "rps_doc_frac_lines_end_with_ellipsis": _shares(lines.sums(ellipsis), np.diff(lines.bounds), none=True),
        "rps_lines_ending_with_terminal_punctution_mark": split(terminal.astype(np.int64)),
        "rps_lines_javascript_counts": split(measures.sums(javascript, of_normal)),
        "rps_lines_num_words": split(words),
        "rps_lines_numerical_chars_fraction": split(_rounded(numeric / np.maximum(normal_chars, 1))),
        "rps_lines_start_with_bulletpoint": split(_is_one_of(head, BULLETS).astype(np.int64)),
        "rps_lines_uppercase_letter_fraction": split(_rounded(upper / chars)),
    }


def _carriage_returns(lines: measures.LineTable) -> measures.Array:
    """Return a mask of the lines with a final carriage return."""
    return cast("measures.Array", lines.utf8[lines.ends] == ord("\r"))


def _three_bytes(lines: measures.LineTable, at: measures.Array) -> measures.Array:
    """Return the three bytes from each offset on, as a number."""
    first, second, third = (lines.utf8[at + i].astype(np.int64) & 255 for i in range(3))
    return cast("measures.Array", first << 16 | second << 8 | third)


def _is_one_of(values: measures.Array, marks: Iterable[str]) -> measures.Array:
    return functools.reduce(np.bitwise_or, (values == int.from_bytes(mark.encode()) for mark in marks))


def _shares(parts: Any, wholes: Any, *, none: bool = False) -> list[Any]:
    """Return rounded shares; without a whole 0, or null."""
    whole = np.asarray(wholes, dtype=np.int64)
    result = _rounded(np.asarray(parts) / np.maximum(whole, 1)).tolist()
    return [share if n else None for share, n in zip(result, whole.tolist(), strict=True)] if none else result


def _rounded(values: measures.Array) -> measures.Array:
    """As ``round(value, 8)`` has it, without a call for each."""
    scaled = values * 10.0**DECIMALS
    result = np.rint(scaled) / 10.0**DECIMALS
    for i in np.flatnonzero((np.abs(scaled % 1 - 0.5) < 1e-4) | (scaled > 1e10)):  # arithmetic does not tell these
        result[i] = round(float(values[i]), DECIMALS)
    return cast("measures.Array", result)


@measures.compiled(measures.Words, "int64 int64* int64* int64*")
def _count_marks(words: measures.Words, texts: Any, sentences: Any, symbols: Any, brackets: Any) -> None:
    r"""Count sentences, symbols and curly brackets.

    Each stretch without ``. ! ?`` that has a ``\w`` has one match of the pattern of sentences.
    """
    utf8, starts, ends, bounds = words.lines.utf8, words.starts, words.ends, words.bounds
    for text in range(texts):
        between = True
        for i in range(bounds[text], bounds[text + 1]):
            if words.kinds[i] & HAS_ALNUM or utf8[starts[i]] == 95:  # a word has `\w` alone, or none
                sentences[text] += between
                between = False
                continue
            dots = 0
            for j in range(starts[i], ends[i]):
                byte = utf8[j]
                between |= (byte == 46) | (byte == 33) | (byte == 63)
                dots = dots + 1 if byte == 46 else 0
                symbols[text] += (byte == 35) | ((byte == -90) & (utf8[j - 1] == -128) & (utf8[j - 2] == -30))
                brackets[text] += (byte == 123) | (byte == 125)
                if dots == 3:
                    symbols[text] += 1
                    dots = 0


# --- lists of words ---------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=1024)
def _stop_words(path: str | None, language: str | None) -> measures.Array | None:
    """Hashes of the stop words of a language, if there are any."""
    words = _listed(path, language) if path else stop_words(language) if language else ()
    hashes = measures.hashes_of(word for word in words or () if word.split() == [word])
    return hashes if len(hashes) else None


@functools.lru_cache(maxsize=1024)
def _phrases(path: str | None, language: str | None) -> dict[int, measures.Array] | None:
    """Return the hashes of a language's phrases, by number of words.

    None without a list.
    """
    if not path or (listed := _listed(path, language)) is None:
        return None
    by_words: dict[int, list[str]] = {}
    for entry in listed:
        if (words := entry.split(" ")) == entry.split():
            by_words.setdefault(len(words), []).append(entry)
    return {
        n: measures.Sequences.of(measures.Words.of(measures.LineTable.of(phrases), "white_space")).joined(n).hashes
        for n, phrases in by_words.items()
    }


def _listed(path: str, language: str | None) -> list[str] | None:
    file = measures.for_language(path, language, ("", ".txt"))
    return measures.entries(file) if file else None


@cached(4)
def _numbers(path: str) -> dict[str, int]:
    try:
        return msgspec.json.decode(measures.read_list(measures.resolve(path)), type=dict[str, int])
    except msgspec.DecodeError as error:
        raise ConfigError(f"{path}: expected a JSON object of numbers, got: {error}") from None


def _domain(metadata: Mapping[str, Any]) -> str:
    headers = metadata.get("warc_headers")
    url = headers.get("warc-target-uri") if isinstance(headers, Mapping) else metadata.get("url")
    try:
        return str(metadata.get("source_domain") or urlsplit(str(url).strip("<>")).netloc)
    except ValueError:  # no URL
        return ""
