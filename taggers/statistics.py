r"""Counts and shares of lines, words and characters, with EuroLingua's names.

Source: ml_filter (Modalities, formerly EuroLingua-GPT), ``documentation/data_format.md``, whose names these are. How
EuroLingua computes them is published nowhere: the definitions of `eurolingua` were found by comparing with 1,000
documents of that corpus. Several features are those of Rae et al. 2021 (Gopher), arXiv:2112.11446, and of FineWeb,
arXiv:2406.17557.
"""

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal
from urllib.parse import unquote

import msgspec

from taggers._eurolingua import eurolingua_statistics
from taggers._options import Label
from toolkit import Batch, Document, Example, Files, Model, Tagger, cached, text as measures
from toolkit.text import entries, np

DECIMALS = 5
SHORT, VERY_SHORT = 100, 30


class Features(msgspec.Struct, frozen=True):
    """The value of `Statistics`.

    Attributes:
        num_bad_words_in_url: Words of the URL that are in the list of bad words; null without a URL or a list.
        bad_word_rate: Bad words per 1,000 words; null without a list for the language.
        num_lines: Lines of the text.
        num_nonempty_lines: Lines that are not blank.
        num_paras: Paragraphs of the text.
        avg_line_len: Mean length of the lines in code points.
        avg_para_len: Mean length of the paragraphs in code points.
        avg_words_per_line: Mean number of words of a line.
        num_short_lines: Lines of fewer than 100 code points.
        has_short_header: 1 if all of the first lines are short, else 0.
        has_short_footer: 1 if all of the last lines are short, else 0.
        num_itemize_lines: Lines that begin with a bullet.
        num_enumerate_lines: Lines that begin with a number or letter of an enumeration.
        pct_itemize_lines: Share of the lines that begin with a bullet.
        pct_enumerate_lines: Share of the lines that begin with a number or letter of an enumeration.
        num_repeated_chars3: Runs of the same character.
        num_repeated_words3: Runs of the same word.
        num_urls: Web addresses in the text.
        num_emails: E-mail addresses in the text.
        num_words: Words of the text.
        avg_word_len: Mean length of the words in code points.
        ttr_words_lower: Different words divided by all of them, regardless of case.
        pct_space: Share of the code points that are white space.
        pct_lower: Share of the words that are in lower case.
        pct_upper: Share of the words that are in upper case.
        pct_title: Share of the words that begin with a capital and go on in lower case.
        pct_mixed: Share of the words with capitals in other places.
        pct_puncts: Share of the segments that are punctuation or symbols.
        pct_words: Share of the segments that have a letter.
        pct_numbers: Share of the segments that are numbers.
        pct_others: Share of the segments that are something else.
        pct_short_lines: Share of the lines that have fewer than 100 code points.
        pct_stopwords: Share of the words that are stop words; null without a list for the language.
        line_punct_ratio: Share of the lines that end in an end mark or a quotation mark.
        short_line_ratio: Share of the lines that have at most 30 code points.
        char_duplicates_ratio: Code points of the lines that occurred before, divided by those of all lines.
        list_ratio: Line feeds divided by words.
        unigram_entropy: Entropy of the words in nats, regardless of case.
        dup_para_frac: Share of the paragraphs that occurred before.
        dup_para_char_frac: Code points of the paragraphs that occurred before, divided by those of the text.
        dup_line_frac: Share of the lines that occurred before.
        dup_line_char_frac: Code points of the lines that occurred before, divided by those of the text.
        dup_line_char_frac_: The same again under a key with a blank at its end, as EuroLingua has it; else null.
        symbol_to_word_ratio_hash: Number signs divided by words.
        symbol_to_word_ratio_ellipsis: Ellipses divided by words.
        non_alpha_words_ratio: Share of the segments without a letter.
        token_count: Tokens of the text; null without a tokenizer.
        pct_emails: E-mail addresses divided by words.
        pct_non_empty_lines: Share of the lines that are not blank.
        pct_repeated_chars3: Runs of the same character divided by code points.
        pct_repeated_words3: Runs of the same word divided by words.
        pct_urls: Web addresses divided by words.
        pct_duplicates_line_chars: Code points of the lines that occurred before, divided by those of the text.
        pct_dup_line: Share of the lines that occurred before.
        pct_list: Line feeds divided by code points.
        pct_dup_line_char: Code points of the lines that occurred before, divided by those of the text.
        pct_non_alpha_words: Share of the segments without a letter.
    """

    num_bad_words_in_url: int | None
    bad_word_rate: float | None
    num_lines: int
    num_nonempty_lines: int
    num_paras: int
    avg_line_len: float
    avg_para_len: float
    avg_words_per_line: float
    num_short_lines: int
    has_short_header: int
    has_short_footer: int
    num_itemize_lines: int
    num_enumerate_lines: int
    pct_itemize_lines: float
    pct_enumerate_lines: float
    num_repeated_chars3: int
    num_repeated_words3: int
    num_urls: int
    num_emails: int
    num_words: int
    avg_word_len: float
    ttr_words_lower: float
    pct_space: float
    pct_lower: float
    pct_upper: float
    pct_title: float
    pct_mixed: float
    pct_puncts: float
    pct_words: float
    pct_numbers: float
    pct_others: float
    pct_short_lines: float
    pct_stopwords: float | None
    line_punct_ratio: float
    short_line_ratio: float
    char_duplicates_ratio: float
    list_ratio: float
    unigram_entropy: float
    dup_para_frac: float
    dup_para_char_frac: float
    dup_line_frac: float
    dup_line_char_frac: float
    dup_line_char_frac_: float | None = msgspec.field(name="dup_line_char_frac ")
    symbol_to_word_ratio_hash: float
    symbol_to_word_ratio_ellipsis: float
    non_alpha_words_ratio: float
    token_count: int | None
    pct_emails: float
    pct_non_empty_lines: float
    pct_repeated_chars3: float
    pct_repeated_words3: float
    pct_urls: float
    pct_duplicates_line_chars: float
    pct_dup_line: float
    pct_list: float
    pct_dup_line_char: float
    pct_non_alpha_words: float


NOTHING: dict[str, Any] = {
    info.encode_name: None if type(None) in getattr(info.type, "__args__", ()) else info.type(0)
    for info in msgspec.structs.fields(Features)
}
"""The value for an empty text."""


class Statistics(Tagger):
    r"""Counts and shares over lines, words and characters; 0 where a share has no denominator.

    Segments are the pieces between Unicode's word boundaries, without white space. Words are the segments that have a
    letter or a number. Lengths are in code points. A blank line has nothing but white space. Shares and means are
    rounded to 5 places.

    - ``num_lines`` counts lines; ``num_nonempty_lines`` and ``pct_non_empty_lines`` those that are not blank.
      ``num_paras`` counts runs of lines that are not blank; ``avg_para_len`` is their mean length, with the line ends
      inside of them. ``avg_line_len`` and ``avg_words_per_line`` are means over all lines.
    - ``num_short_lines`` and ``pct_short_lines`` count lines of fewer than 100 code points; ``has_short_header`` and
      ``has_short_footer`` are 1 if all of the first (last) floor(lines / 10) + 1 lines are so short.
      ``short_line_ratio``: the share of lines of at most 30 code points among lines that are not blank.
    - ``num_itemize_lines``, ``pct_itemize_lines``: lines that begin with a bullet, or with a hyphen, dash, ``*``, ``+``
      or ``·`` and white space. ``num_enumerate_lines``, ``pct_enumerate_lines``: lines that begin, perhaps after ``(``
      or ``[``, with up to three digits and ``.``, ``)`` or ``]``, which no further digit follows; or with one ASCII
      letter, or up to six of ``ivx`` or ``IVX``, then one of the same marks and white space.
    - ``line_punct_ratio``: the share of lines that are not blank that end in the end mark of a sentence in some script,
      or in a quotation mark.
    - ``num_repeated_chars3``: runs of three or more of the same character, without white space;
      ``pct_repeated_chars3``: their number divided by the code points. ``num_repeated_words3``: runs of three or more
      of the same word with only white space between them; ``pct_repeated_words3``: their number divided by the words.
    - ``num_urls``: pieces between white space that have ``://`` between an ASCII letter and a host, or ``www.`` and a
      host, with no ASCII letter or digit before it. ``num_emails``: ASCII addresses outside of these. ``pct_urls``,
      ``pct_emails``: these numbers divided by the words.
    - ``num_words``, ``avg_word_len``: the number of words and their mean length. ``ttr_words_lower``: the number of
      different words, without regard to case, divided by the words; ``unigram_entropy``: their entropy in nats.
      ``pct_lower``, ``pct_upper``, ``pct_title``: the shares of words for which ``str.islower``, ``str.isupper`` or
      ``str.istitle`` is the first to hold; ``pct_mixed``: the share of words with capitals in other places. Words
      without case count in none of these.
    - ``pct_words`` (with a letter), ``pct_numbers`` (other words), ``pct_puncts`` (punctuation and symbols),
      ``pct_others``: shares of segments. ``non_alpha_words_ratio``, ``pct_non_alpha_words``: the share of segments
      without a letter.
    - ``pct_space``: the share of code points that are white space. ``list_ratio``: line feeds divided by words;
      ``pct_list``: line feeds divided by code points. ``symbol_to_word_ratio_hash``, ``…_ellipsis``: the number of
      ``#``, and of ``...`` and ``…``, divided by words.
    - ``dup_line_frac``, ``pct_dup_line``: the share of lines that occurred before, among those that are not blank.
      ``char_duplicates_ratio``: their code points divided by those of all lines; ``dup_line_char_frac``,
      ``pct_dup_line_char``, ``pct_duplicates_line_chars``: divided by those of the text. ``dup_para_frac``,
      ``dup_para_char_frac``: the same for paragraphs.
    - ``pct_stopwords``: the share of words in the list of stop words; null without a list for the language.
      ``token_count``: null without `tokenizer`. ``bad_word_rate``: occurrences of entries of the list of bad words, as
      whole words in any case, per 1,000 words; ``num_bad_words_in_url``: words of ``metadata.url`` (or
      ``metadata.warc_headers.warc-target-uri``) that are entries, null without a URL. Both are null without a list for
      the language.

    The variant ``eurolingua`` gives the values of that corpus, with its flaws. It is many times slower:

    - Lines are the pieces between ``\n``, with carriage returns; the last line may be empty. Tokens are spaCy's
      (``xx``), and words are the tokens that are ``str.isalnum``. ``pct_puncts``, ``pct_numbers`` (also with a sign,
      full stop or comma) and ``pct_others`` are shares of the tokens that are not white space. ``num_urls`` and
      ``num_emails`` count such tokens, too; these belong to none of the three. Digits count as mixed.
    - ``avg_words_per_line`` leaves out the last line, and is 0 for a single line. Bullets are ``-`` and ``•``. ``e.g.``
      begins an enumeration. ``num_repeated_chars3`` needs four characters. ``num_repeated_words3`` counts matches of
      ``(\w+)\s+\1{3,}``, which finds "30 000" and not "bla bla bla". ``pct_space`` leaves out single blanks.
    - ``non_alpha_words_ratio`` is the share of tokens with a letter. It and the symbol ratios count white space among
      the tokens; they and the shares of duplicates are not rounded. ``list_ratio`` and ``pct_urls`` are divided by the
      tokens that are not white space. End marks are ``. ' " ! ?``, ratios of lines count blank lines, and
      ``char_duplicates_ratio`` is divided by the code points of the text. ``dup_line_char_frac`` is there a second
      time, under a key with a blank at its end.
    - ``bad_word_rate`` counts pieces between ``\W`` that are entries of the list of the language or of the English one,
      divided by all pieces, times 1,000; it is not rounded. It is 0 for a language without a list of its own, because
      English is only added to another list. ``num_bad_words_in_url`` uses the same lists. We do not know which lists of
      bad words and stop words EuroLingua had; its tokenizer was that of GPT-2.

    Attributes:
        variant: the definitions: corrected, or as in EuroLingua's corpus
        language: the language of the document; chooses the lists of stop words and bad words
        bad_words: a list with an entry on each line; or a folder with a list for each language, which has its name
        tokenizer: a tokenizer.json of Hugging Face tokenizers, for `token_count`: path, URL, or `gpt2-tokenizer.json`,
            which EuroLingua had
    """

    EXAMPLES = (
        Example("", NOTHING),
        Example(
            "Contents\n1. Time\n- www.example.org, a@b.org\nNo, no, no no no\n NASA's 99!\n\nEnd.\nEnd.",
            NOTHING
            | {
                "num_lines": 8, "num_nonempty_lines": 7, "num_paras": 2, "avg_line_len": 9.5, "avg_para_len": 40.5,
                "avg_words_per_line": 1.875, "num_short_lines": 8, "has_short_header": 1, "has_short_footer": 1,
                "num_itemize_lines": 1, "num_enumerate_lines": 1, "pct_itemize_lines": 0.125,
                "pct_enumerate_lines": 0.125, "num_repeated_chars3": 1, "num_repeated_words3": 1, "num_urls": 1,
                "num_emails": 1, "num_words": 15, "avg_word_len": 3.86667, "ttr_words_lower": 0.66667,
                "pct_space": 0.19277, "pct_lower": 0.46667, "pct_title": 0.33333, "pct_mixed": 0.06667,
                "pct_puncts": 0.375, "pct_words": 0.54167, "pct_numbers": 0.08333, "pct_short_lines": 1.0,
                "pct_stopwords": 0.53333, "line_punct_ratio": 0.42857, "short_line_ratio": 1.0,
                "char_duplicates_ratio": 0.05263, "list_ratio": 0.46667, "unigram_entropy": 2.07915,
                "dup_line_frac": 0.14286, "dup_line_char_frac": 0.04819, "non_alpha_words_ratio": 0.45833,
                "pct_emails": 0.06667, "pct_non_empty_lines": 0.875, "pct_repeated_chars3": 0.01205,
                "pct_repeated_words3": 0.06667, "pct_urls": 0.06667, "pct_duplicates_line_chars": 0.04819,
                "pct_dup_line": 0.14286, "pct_list": 0.08434, "pct_dup_line_char": 0.04819,
                "pct_non_alpha_words": 0.45833,
            },
            options={"language": "en"},
        ),
        Example(
            "– Größe…\na) 3 000 km",
            NOTHING
            | {
                "num_lines": 2, "num_nonempty_lines": 2, "num_paras": 1, "avg_line_len": 9.5, "avg_para_len": 20.0,
                "avg_words_per_line": 1.0, "num_short_lines": 2, "has_short_header": 1, "has_short_footer": 1,
                "num_enumerate_lines": 1, "pct_enumerate_lines": 0.5, "num_words": 5, "avg_word_len": 2.4,
                "ttr_words_lower": 1.0, "pct_space": 0.05, "pct_lower": 0.4, "pct_title": 0.2, "pct_mixed": 0.4,
                "pct_puncts": 0.375, "pct_words": 0.625, "pct_short_lines": 1.0, "short_line_ratio": 1.0,
                "list_ratio": 0.125, "unigram_entropy": 1.60944, "dup_line_char_frac ": 0.0,
                "symbol_to_word_ratio_ellipsis": 0.1111111111111111, "non_alpha_words_ratio": 0.3333333333333333,
                "pct_non_empty_lines": 1.0, "pct_list": 0.05, "pct_non_alpha_words": 0.33333,
            },
            options={"variant": "eurolingua"},
        ),
    )  # fmt: skip

    VERSION = "2"

    variant: Literal["fixed", "eurolingua"] = "fixed"
    language: Label = None
    bad_words: Files | None = None
    tokenizer: Model | None = None

    def tag_batch(self, documents: Sequence[Document]) -> list[Features]:
        if not documents:
            return []
        batch = Batch.of(documents)
        texts, languages = [document.text for document in batch], batch.given(self.language)
        bad = [_bad_words(self.bad_words, language, self.variant) for language in languages]
        if self.variant == "fixed":
            columns = _fixed(batch, texts, [measures.stop_words(language or "") for language in languages], bad)
        else:
            rows = list(map(eurolingua_statistics, texts, languages, bad))
            columns = {name: [row[name] for row in rows] for name in rows[0]}
        columns["num_bad_words_in_url"] = [
            None if bad_words is None else _bad_in_url(document, bad_words, self.variant)
            for document, bad_words in zip(batch, bad, strict=True)
        ]
        columns["token_count"] = self._tokenizer.counts(texts) if self._tokenizer else [None] * len(texts)
        return list(map(Features, *(columns[name] for name in NOTHING)))

    @cached_property
    def _tokenizer(self) -> measures.Tokenizer | None:
        return measures.Tokenizer(self.tokenizer) if self.tokenizer else None


# --- fixed ------------------------------------------------------------------------------------------------------------


def _fixed(
    batch: Batch, texts: Sequence[str], stops: Sequence[frozenset[str]], bad: Sequence[frozenset[str] | None]
) -> dict[str, list[Any]]:
    lines, segments = batch.lines, batch.words("segments")
    line, word = measures.LineMeasures.of(segments), measures.WordMeasures.of(segments)
    n_lines, n, line_chars = np.diff(lines.bounds), segments.counts, lines.sums(lines.chars)
    chars, hashes = np.array([(len(text), text.count("#")) for text in texts]).T
    long = np.concatenate([[0], np.cumsum(lines.chars >= SHORT)])
    begin, end = lines.bounds[:-1], lines.bounds[1:]
    part = np.minimum(n_lines // 10 + 1, n_lines)
    paragraphs = line.paragraphs()
    again, paragraphs_again = line.not_blank().repeated(1), paragraphs.repeated(1)
    filled, n_paragraphs, words = again.total, paragraphs_again.total, word.words
    counts = {
        "num_lines": n_lines,
        "num_nonempty_lines": filled,
        "num_paras": n_paragraphs,
        "num_short_lines": lines.sums(lines.chars < SHORT),
        "has_short_header": ((part > 0) & (long[begin + part] == long[begin])).astype(np.int64),
        "has_short_footer": ((part > 0) & (long[end] == long[end - part])).astype(np.int64),
        "num_itemize_lines": lines.sums(line.items),
        "num_enumerate_lines": lines.sums(line.numbered),
        "num_repeated_chars3": lines.sums(line.repeated_chars),
        "num_repeated_words3": word.said_again,
        "num_urls": lines.sums(line.urls),
        "num_emails": lines.sums(line.emails),
        "num_words": words,
    }
    shares = {
        "avg_line_len": (line_chars, n_lines),
        "avg_words_per_line": (words, n_lines),
        "pct_non_empty_lines": (filled, n_lines),
        **{f"pct_{item}_lines": (counts[f"num_{item}_lines"], n_lines) for item in ("itemize", "enumerate", "short")},
        "line_punct_ratio": (lines.sums(line.ended), filled),
        "short_line_ratio": (lines.sums((lines.chars <= VERY_SHORT) & line.filled), filled),
        **dict.fromkeys(("dup_line_frac", "pct_dup_line"), (filled - again.distinct, filled)),
        "avg_para_len": (paragraphs.totals, n_paragraphs),
        "dup_para_frac": (n_paragraphs - paragraphs_again.distinct, n_paragraphs),
        "avg_word_len": (word.word_chars, words),
        "ttr_words_lower": (word.distinct, words),
        **{f"pct_{case}": (getattr(word, case), words) for case in ("lower", "upper", "title", "mixed")},
        **{f"pct_{item}": (counts[f"num_{item}"], words) for item in ("urls", "emails", "repeated_words3")},
        "list_ratio": (batch.feeds, words),
        "symbol_to_word_ratio_hash": (hashes, words),
        "symbol_to_word_ratio_ellipsis": (lines.sums(line.ellipses), words),
        "unigram_entropy": (word.entropy, np.minimum(words, 1)),
        "pct_puncts": (word.punctuation, n),
        "pct_words": (word.letters, n),
        "pct_numbers": (words - word.letters, n),
        "pct_others": (n - words - word.punctuation, n),
        **dict.fromkeys(("non_alpha_words_ratio", "pct_non_alpha_words"), (n - word.letters, n)),
        "char_duplicates_ratio": (again.again, line_chars),
        **dict.fromkeys(("dup_line_char_frac", "pct_dup_line_char", "pct_duplicates_line_chars"), (again.again, chars)),
        "dup_para_char_frac": (paragraphs_again.again, chars),
        "pct_space": (chars - word.chars, chars),
        "pct_repeated_chars3": (counts["num_repeated_chars3"], chars),
        "pct_list": (batch.feeds, chars),
    }
    above, below = (np.array(item, dtype=np.float64) for item in zip(*shares.values(), strict=True))
    return {
        **{name: count.tolist() for name, count in counts.items()},
        **dict(zip(shares, _rounded(above, below).tolist(), strict=True)),
        "pct_stopwords": _rates(segments, words, stops, 1),
        "bad_word_rate": _rates(segments, words, bad, 1000),
        "dup_line_char_frac ": [None] * len(texts),
    }


def _rounded(above: measures.Array, below: measures.Array) -> measures.Array:
    return np.round(np.where(below > 0, above, 0) / np.maximum(below, 1), DECIMALS)


def _rates(
    segments: measures.Words, words: measures.Array, lists: Sequence[frozenset[str] | None], scale: int
) -> list[float | None]:
    """Return the rate of listed entries in each text; null without a list."""
    rates = _rounded(scale * measures.occurrences(segments, lists), words).tolist()
    return [rate if entries else None for rate, entries in zip(rates, lists, strict=True)]


# --- lists ------------------------------------------------------------------------------------------------------------


@cached(64)
def _bad_words(files: str | None, language: str | None, variant: str) -> frozenset[str] | None:
    """Return the bad words of a language, in lower case; None without a list of its own.

    In `eurolingua` the English ones belong to each list, and a language without a list has no bad words.
    """
    if files is None:
        return None
    own, english = (
        measures.for_language(files, language),
        measures.for_language(files, "en") if variant == "eurolingua" else None,
    )
    if own is None:
        return frozenset() if variant == "eurolingua" else None
    return frozenset(entry.lower() for path in {own, english or own} for entry in entries(path))


def _bad_in_url(document: Document, bad_words: frozenset[str], variant: str) -> int | None:
    url = document.metadata.get("url") or measures.value_at(document.metadata, "warc_headers.warc-target-uri")
    if not isinstance(url, str):
        return None
    pieces = re.split(r"\W+", url) if variant == "eurolingua" else re.split(r"[\W_]+", unquote(url))
    return sum(piece.lower() in bad_words for piece in pieces)
