r"""Counts and shares over the lines, words and characters of a document, with the names of EuroLingua's raw format.

Source: ml_filter (Modalities, formerly EuroLingua-GPT), ``documentation/data_format.md``, whose names these are. How
EuroLingua computes them is published nowhere: the definitions of `eurolingua` were found by comparing with 1,000
documents of that corpus. Several features are those of Rae et al. 2021 (Gopher), arXiv:2112.11446, and of FineWeb,
arXiv:2406.17557.
"""

import functools
import math
import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import unquote

import msgspec
import numpy as np

from toolkit import (
    ALL_PUNCTUATION,
    ALPHA,
    HAS_ALNUM,
    HAS_ALPHA,
    IS_LOWER,
    IS_TITLE,
    IS_UPPER,
    NUMBER,
    SPACE,
    UPPER,
    Attribute,
    Batch,
    ConfigError,
    Document,
    Example,
    Files,
    LineTable,
    MissingExtra,
    Model,
    SpacyKind,
    Tagger,
    Words,
    characters,
    compiled,
    entries,
    for_language,
    resolve,
    spacy_kind,
    spacy_words,
    stop_words,
    sums,
)

Array = np.ndarray[Any, np.dtype[Any]]

DECIMALS = 5
SHORT, VERY_SHORT = 100, 30


class Features(msgspec.Struct, frozen=True):
    """The value of `Statistics`."""

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


NAMES = Features.__struct_fields__
NOTHING: dict[str, Any] = {
    info.encode_name: None if type(None) in getattr(info.type, "__args__", ()) else info.type(0)
    for info in msgspec.structs.fields(Features)
}
"""The value for an empty text."""


class Statistics(Tagger):
    r"""Counts and shares over lines, words and characters; 0 where a share has no denominator.

    Words are by Unicode's word boundaries, and have a letter or a number; with all that stands between them but white
    space they are segments. Lengths are in code points. A blank line has nothing but white space. Shares and means are
    rounded to 5 places.

    - ``num_lines``; ``num_nonempty_lines``, ``pct_non_empty_lines``: not blank. ``num_paras``: stretches of lines that
      are not blank; ``avg_para_len``: their mean length, line ends within counted. ``avg_line_len``,
      ``avg_words_per_line``: over all lines.
    - ``num_short_lines``, ``pct_short_lines``: below 100; ``has_short_header``, ``has_short_footer``: 1 if all of the
      first (last) floor(lines / 10) + 1 lines are. ``short_line_ratio``: up to 30, among lines that are not blank.
    - ``num_itemize_lines``, ``pct_itemize_lines``: lines that begin with a bullet, or with a hyphen, dash, ``*``, ``+``
      or ``·`` and white space. ``num_enumerate_lines``, ``pct_enumerate_lines``: lines that begin, perhaps after ``(``
      or ``[``, with up to three digits, then ``.``, ``)`` or ``]`` and no further digit; or with one ASCII letter, or
      up to six of ``ivx`` or ``IVX``, then the same and white space.
    - ``line_punct_ratio``: of the lines that are not blank, those that end in the end mark of a sentence in some
      script, or in a quotation mark.
    - ``num_repeated_chars3``: three or more of the same character in a row, no white space, ``pct_repeated_chars3``: by
      code points; ``num_repeated_words3``: three or more of the same word with only white space between,
      ``pct_repeated_words3``: by words.
    - ``num_urls``: stretches without white space that have ``://`` between an ASCII letter and a host, or ``www.``,
      behind no ASCII letter or digit, and a host; ``num_emails``: ASCII addresses elsewhere; ``pct_urls``,
      ``pct_emails``: by words.
    - ``num_words``, ``avg_word_len``; ``ttr_words_lower``: different ones, without regard to case; ``unigram_entropy``:
      of these, in nats. ``pct_lower``, ``pct_upper``, ``pct_title``: of words, as ``str.islower`` and so on, the first
      that holds; ``pct_mixed``: with other capitals. Words without case are none of these.
    - ``pct_words`` (with a letter), ``pct_numbers`` (other words), ``pct_puncts`` (punctuation and symbols),
      ``pct_others``: of segments; ``non_alpha_words_ratio``, ``pct_non_alpha_words``: segments without a letter.
    - ``pct_space``: white space, by code points. ``list_ratio``: line feeds by words, ``pct_list``: by code points.
      ``symbol_to_word_ratio_hash``, ``…_ellipsis``: ``#``, ``...`` or ``…`` by words.
    - ``dup_line_frac``, ``pct_dup_line``: lines that occurred before, among those that are not blank;
      ``char_duplicates_ratio``: their code points by those of all lines; ``dup_line_char_frac``, ``pct_dup_line_char``,
      ``pct_duplicates_line_chars``: by those of the text. ``dup_para_frac``, ``dup_para_char_frac``: of paragraphs.
    - ``pct_stopwords``: of words; null without a list for the language. ``token_count``: null without `tokenizer`.
      ``bad_word_rate``: occurrences of entries of the list, as whole words in any case, per 1,000 words;
      ``num_bad_words_in_url``: words of ``metadata.url`` (or ``metadata.warc_headers.warc-target-uri``) that are
      entries, null without a URL. Both are null without a list for the language.

    The variant ``eurolingua`` has the values of that corpus, flaws included; it is many times slower:

    - Lines are what stands between ``\n``, carriage returns belong to them; the last line may be empty. Tokens are
      spaCy's (``xx``), words those that are ``str.isalnum``; ``pct_puncts``, ``_numbers`` (with a sign, full stop,
      comma) and ``_others`` are of tokens that are not white space; so are ``num_urls`` and ``num_emails``, which are
      none of these. Digits count as mixed.
    - ``avg_words_per_line`` leaves out the last line, and is 0 for a single one. Bullets are ``-`` and ``•``; ``e.g.``
      begins an enumeration; ``num_repeated_chars3`` asks for four, ``num_repeated_words3`` is
      ``(\w+)\s+\1{3,}``, which finds "30 000" and not "bla bla bla". ``pct_space`` has no blank that stands alone.
    - ``non_alpha_words_ratio`` is the share of tokens with a letter. It and the symbol ratios have white space among
      the tokens, and with the shares of duplicates they are not rounded. ``list_ratio`` and ``pct_urls`` are by tokens
      that are no white space. End marks are ``. ' " ! ?``, ratios of lines count blank ones, ``char_duplicates_ratio``
      is by the text. ``dup_line_char_frac`` is there a second time, its key with a blank at the end.
    - ``bad_word_rate`` counts pieces between ``\W`` that are entries of the language's list or the English one. Which
      lists of bad words and stop words EuroLingua had is not known; its tokenizer was that of GPT-2.
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
                "line_punct_ratio": 0.42857, "short_line_ratio": 1.0, "char_duplicates_ratio": 0.05263,
                "list_ratio": 0.46667, "unigram_entropy": 2.07915, "dup_line_frac": 0.14286,
                "dup_line_char_frac": 0.04819, "non_alpha_words_ratio": 0.45833, "pct_emails": 0.06667,
                "pct_non_empty_lines": 0.875, "pct_repeated_chars3": 0.01205, "pct_repeated_words3": 0.06667,
                "pct_urls": 0.06667, "pct_duplicates_line_chars": 0.04819, "pct_dup_line": 0.14286,
                "pct_list": 0.08434, "pct_dup_line_char": 0.04819, "pct_non_alpha_words": 0.45833,
            },
        ),
        Example(
            "– Die Größe…",
            NOTHING
            | {
                "num_lines": 1, "num_nonempty_lines": 1, "num_paras": 1, "avg_line_len": 12.0, "avg_para_len": 12.0,
                "avg_words_per_line": 2.0, "num_short_lines": 1, "has_short_header": 1, "has_short_footer": 1,
                "num_itemize_lines": 1, "pct_itemize_lines": 1.0, "num_words": 2, "avg_word_len": 4.0,
                "ttr_words_lower": 1.0, "pct_space": 0.16667, "pct_title": 1.0, "pct_puncts": 0.5, "pct_words": 0.5,
                "pct_short_lines": 1.0, "pct_stopwords": 0.5, "line_punct_ratio": 1.0, "short_line_ratio": 1.0,
                "unigram_entropy": 0.69315, "symbol_to_word_ratio_ellipsis": 0.5, "non_alpha_words_ratio": 0.5,
                "pct_non_empty_lines": 1.0, "pct_non_alpha_words": 0.5,
            },
            options={"language": "de"},
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

    variant: Annotated[
        Literal["fixed", "eurolingua"], msgspec.Meta(description="whose definitions: mended, or as in the corpus")
    ] = "fixed"
    language: Annotated[
        str | None,
        Attribute("language.label", str | None, or_value=True),
        msgspec.Meta(description="of the document, which chooses the lists of stop words and bad words"),
    ] = None
    bad_words: Annotated[
        Files | None,
        msgspec.Meta(description="a list, an entry a line; or a folder of lists that are called as languages are"),
    ] = None
    tokenizer: Annotated[
        Model | None, msgspec.Meta(description="a tokenizer.json of Hugging Face tokenizers, for `token_count`")
    ] = None

    def tag(self, document: Document) -> Features:
        return self.tag_batch([document])[0]

    def tag_batch(self, documents: Sequence[Document]) -> list[Features]:
        batch = Batch.of(documents)
        texts = [document.text for document in batch]
        languages: Sequence[str | None] = batch.given(self.language)
        bad = [_bad_words(self.bad_words, language, self.variant) for language in languages]
        columns: Mapping[str, Sequence[Any]]
        if self.variant == "fixed":
            columns = _fixed(batch, texts, languages, bad)
        else:
            rows = [_eurolingua(*each) for each in zip(texts, languages, bad, strict=True)]
            columns = {name: [row[name] for row in rows] for name in rows[0]} if rows else {}
        columns = {
            **columns,
            "num_bad_words_in_url": [
                None if known is None else _bad_in_url(document, known, self.variant)
                for document, known in zip(batch, bad, strict=True)
            ],
            "token_count": [self._tokens(text) for text in texts],
        }
        return list(map(Features, *(columns[name] for name in NAMES))) if texts else []

    def _tokens(self, text: str) -> int | None:
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids) if self._tokenizer else None

    @cached_property
    def _tokenizer(self) -> Any:
        if self.tokenizer is None:
            return None
        try:
            import tokenizers
        except ImportError:
            message = "token_count needs the package tokenizers: pip install 'corpus-toolkit[tokens]'"
            raise MissingExtra(message) from None
        path = resolve(self.tokenizer)
        try:
            tokenizer = tokenizers.Tokenizer.from_file(path)
        except Exception as error:  # it raises nothing more precise
            raise ConfigError(f"{path}: expected a tokenizer.json, got: {error}") from None
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer


# --- fixed ------------------------------------------------------------------------------------------------------------

MARKS = (
    "21-22 27 2e 3f ab bb 589 61d-61f 6d4 700-702 7f9 837 839 83d-83e 964-965 104a-104b 1362 1367-1368 166e 1735-1736 "
    "17d4-17d5 1803 1809 1944-1945 1aa8-1aab 1b4e-1b4f 1b5a-1b5b 1b5e-1b5f 1b7d-1b7f 1c3b-1c3c 1c7e-1c7f 2018-201f "
    "2024 2026 2039-203a 203c-203d 2047-2049 2cf9-2cfb 2e2e 2e3c 2e42 2e53-2e54 2e60-2e61 3002 300c-300f 301d-301f "
    "a4ff a60e-a60f a6f3 a6f7 a876-a877 a8ce-a8cf a92f a9c8-a9c9 aa5d-aa5f aaf0-aaf1 abeb fe12 fe15-fe16 fe41-fe44 "
    "fe52 fe56-fe57 ff01-ff02 ff07 ff0e ff1f ff61-ff63 10a56-10a57 10f55-10f59 10f86-10f89 11047-11048 110be-110c1 "
    "11141-11143 111c5-111c6 111cd 111de-111df 11238-11239 1123b-1123c 112a9 113d4-113d5 1144b-1144c 115c2-115c3 "
    "115c9-115d7 11641-11642 1173c-1173e 11944 11946 11a42-11a43 11a9b-11a9c 11c41-11c42 11ef7-11ef8 11f43-11f44 "
    "16a6e-16a6f 16af5 16b37-16b38 16b44 16d6e-16d6f 16e98 1bc9f 1da88"
)
"""What a sentence ends in: Unicode 18.0's Sentence_Terminal and Quotation_Mark, and the ellipsis; code points."""
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
WORDS, WORD_CHARS, CHARS, LETTERS, PUNCTUATED, ALL_LOWER, ALL_UPPER, TITLED, MIXED, DIFFERENT, SAID_AGAIN, N_COUNTS = (
    range(12)
)
SEED, PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x9E3779B97F4A7C15)


def _fixed(
    batch: Batch, texts: Sequence[str], languages: Sequence[str | None], bad: Sequence[frozenset[str] | None]
) -> dict[str, Sequence[Any]]:
    lines, segments = batch.lines, batch.words("segments")
    of_lines, (found, entropy) = _of_lines(lines, segments), _of_words(segments)
    n, words, n_lines, filled = segments.counts, found[WORDS], np.diff(lines.bounds), of_lines["num_nonempty_lines"]
    line_chars, chars = lines.sums(lines.chars), np.array([len(text) for text in texts], dtype=np.int64)
    feeds, hashes = (np.array([text.count(each) for text in texts], dtype=np.int64) for each in ("\n", "#"))
    counts = {**of_lines, "num_lines": n_lines, "num_words": words, "num_repeated_words3": found[SAID_AGAIN]}
    shares = {
        "avg_line_len": (line_chars, n_lines),
        "avg_para_len": (counts["paragraph_chars"], counts["num_paras"]),
        "avg_words_per_line": (words, n_lines),
        "pct_itemize_lines": (counts["num_itemize_lines"], n_lines),
        "pct_enumerate_lines": (counts["num_enumerate_lines"], n_lines),
        "avg_word_len": (found[WORD_CHARS], words),
        "ttr_words_lower": (found[DIFFERENT], words),
        "pct_space": (chars - found[CHARS], chars),
        "pct_lower": (found[ALL_LOWER], words),
        "pct_upper": (found[ALL_UPPER], words),
        "pct_title": (found[TITLED], words),
        "pct_mixed": (found[MIXED], words),
        "pct_puncts": (found[PUNCTUATED], n),
        "pct_words": (found[LETTERS], n),
        "pct_numbers": (words - found[LETTERS], n),
        "pct_others": (n - words - found[PUNCTUATED], n),
        "pct_short_lines": (counts["num_short_lines"], n_lines),
        "line_punct_ratio": (counts["marked"], filled),
        "short_line_ratio": (counts["very_short"], filled),
        "char_duplicates_ratio": (counts["again_chars"], line_chars),
        "list_ratio": (feeds, words),
        "unigram_entropy": (entropy, words > 0),
        "dup_para_frac": (counts["paragraphs_again"], counts["num_paras"]),
        "dup_para_char_frac": (counts["paragraphs_again_chars"], chars),
        "dup_line_frac": (counts["again"], filled),
        "dup_line_char_frac": (counts["again_chars"], chars),
        "symbol_to_word_ratio_hash": (hashes, words),
        "symbol_to_word_ratio_ellipsis": (counts["ellipses"], words),
        "non_alpha_words_ratio": (n - found[LETTERS], n),
        "pct_emails": (counts["num_emails"], words),
        "pct_non_empty_lines": (filled, n_lines),
        "pct_repeated_chars3": (counts["num_repeated_chars3"], chars),
        "pct_repeated_words3": (found[SAID_AGAIN], words),
        "pct_urls": (counts["num_urls"], words),
        "pct_list": (feeds, chars),
    }
    above, below = (np.array(each, dtype=np.float64) for each in zip(*shares.values(), strict=True))
    rounded = np.round(np.where(below > 0, above, 0) / np.maximum(below, 1), DECIMALS)
    columns: dict[str, Sequence[Any]] = {name: column.tolist() for name, column in counts.items()}
    columns |= {name: row.tolist() for name, row in zip(shares, rounded, strict=True)}
    return columns | {
        "pct_duplicates_line_chars": columns["dup_line_char_frac"],
        "pct_dup_line": columns["dup_line_frac"],
        "pct_dup_line_char": columns["dup_line_char_frac"],
        "pct_non_alpha_words": columns["non_alpha_words_ratio"],
        "dup_line_char_frac_": [None] * len(texts),
        "pct_stopwords": _hits(segments, found[WORDS], [_stop_words(language) for language in languages], 1),
        "bad_word_rate": _hits(segments, found[WORDS], [_phrases(each) if each else None for each in bad], 1000),
    }


def _of_lines(lines: LineTable, segments: Words) -> dict[str, Array]:
    """What is counted of the lines of each text."""
    n, firsts, table, looks = len(lines.starts), segments.of_lines(), characters(), _tables()
    hashes, counts, edges = np.empty(n, dtype=np.uint64), np.zeros((4, n), dtype=np.int64), np.zeros(n, dtype=np.int64)
    _scan(lines.utf8, lines.starts, lines.ends, n, looks[0], table.blocks, table.classes, hashes, counts)
    _look(lines.utf8, lines.ends, n, firsts, segments.starts, segments.ends, *looks, edges)
    filled = firsts[1:] > firsts[:-1]
    begin, end = lines.bounds[:-1], lines.bounds[1:]
    part = np.minimum((end - begin) // 10 + 1, end - begin)
    long = np.concatenate([[0], np.cumsum(lines.chars >= SHORT)])

    which = np.flatnonzero(filled)
    bounds = np.concatenate([[0], np.cumsum(filled)])[lines.bounds]
    again, again_chars = _again(hashes[which], lines.chars[which], bounds)
    opens = np.ones(len(which), dtype=bool)  # a paragraph
    opens[1:] = np.diff(which) > 1
    opens[bounds[:-1][np.diff(bounds) > 0]] = True
    heads = np.flatnonzero(opens)
    place = np.arange(len(which)) - heads[np.cumsum(opens) - 1] if len(which) else which
    mixed = (hashes[which] + place.astype(np.uint64)) * PRIME
    mixed = (mixed ^ (mixed >> np.uint64(31))) * SEED
    paragraphs = np.add.reduceat(mixed, heads) if len(heads) else mixed
    chars = np.add.reduceat(lines.chars[which] + (place > 0), heads) if len(heads) else place
    of_texts = np.searchsorted(heads, bounds)
    paragraphs_again, paragraphs_again_chars = _again(paragraphs, chars, of_texts)
    return {
        "num_nonempty_lines": np.diff(bounds),
        "num_paras": np.diff(of_texts),
        "paragraph_chars": sums(chars, of_texts),
        "num_short_lines": lines.sums(lines.chars < SHORT),
        "has_short_header": ((part > 0) & (long[begin + part] == long[begin])).astype(np.int64),
        "has_short_footer": ((part > 0) & (long[end] == long[end - part])).astype(np.int64),
        "num_itemize_lines": lines.sums((edges & ITEM) != 0),
        "num_enumerate_lines": lines.sums((edges & NUMBERED) != 0),
        "num_repeated_chars3": lines.sums(counts[0]),
        "ellipses": lines.sums(counts[1]),
        "num_urls": lines.sums(counts[2]),
        "num_emails": lines.sums(counts[3]),
        "marked": lines.sums((edges & MARKED) != 0),
        "very_short": lines.sums((lines.chars <= VERY_SHORT) & filled),
        "again": again,
        "again_chars": again_chars,
        "paragraphs_again": paragraphs_again,
        "paragraphs_again_chars": paragraphs_again_chars,
    }


def _again(hashes: Array, chars: Array, bounds: Array) -> Array:
    """How many stretches of each text were there before, and their code points."""
    texts, room = len(bounds) - 1, _room(bounds)
    found = np.zeros((2, texts), dtype=np.int64)
    table = np.zeros(room, dtype=np.uint64), np.zeros(room, dtype=np.int64)
    _find_again(hashes, chars, bounds, texts, *table, *found)
    return found


def _of_words(segments: Words) -> tuple[Array, Array]:
    """What is counted of the segments of each text, and the entropy of its words."""
    texts, room = len(segments.bounds) - 1, _room(segments.bounds)
    longest = int(np.max(segments.counts, initial=0))
    found, entropy = np.zeros((N_COUNTS, texts), dtype=np.int64), np.zeros(texts)
    logs = np.log(np.maximum(np.arange(longest + 1), 1))
    table = np.zeros(room, dtype=np.uint64), *np.zeros((2, room), dtype=np.int64)
    of = characters()
    _count(
        segments.lines.utf8, *segments[1:], texts, of.blocks, of.classes, logs,
        *table, np.zeros(longest + 1, dtype=np.int64), found, entropy,
    )  # fmt: skip
    return found, entropy


def _room(bounds: Array) -> int:
    """Of a hash table for what the longest text has."""
    return 1 << max(4, (2 * int(np.max(np.diff(bounds), initial=0))).bit_length())


@functools.cache
def _tables() -> tuple[Array, Array]:
    """What each byte is, and each character."""
    of_bytes, of_points = np.zeros(256, dtype=np.int64), np.zeros(0x20000, dtype=np.int64)
    for characters_, bit in (
        (string.ascii_letters, LETTER),
        (string.digits, DIGIT),
        (string.ascii_letters + string.digits + "._%+-", LOCAL),
        ("ivx", SMALL_ROMAN),
        ("IVX", ROMAN),
        (".)]", CLOSING),
    ):
        of_bytes[list(map(ord, characters_))] |= bit
    for ranges, bit in ((MARKS, MARK), (BULLETS, BULLET), (DASHES, DASH)):
        for each in ranges.split():
            first, _, last = each.partition("-")
            of_points[int(first, 16) : int(last or first, 16) + 1] |= bit
    return of_bytes, of_points


@compiled("int8* int64* int64* int64 int64* int64* int64* uint64* int64*")
def _scan(
    utf8: Any, starts: Any, ends: Any, n: Any, of_bytes: Any, blocks: Any, classes: Any, hashes: Any, counts: Any
) -> None:
    """A hash of each line; repeated characters, ellipses, URLs and addresses in it."""
    for line in range(n):
        start, stop = starts[line], ends[line]
        at, before, run = start, -1, 0
        in_url, host = False, -1
        hash_ = SEED
        while at <= stop:
            point, behind = -1, at + 1  # the end of a line ends a run
            if at < stop:
                byte = int(utf8[at])
                if byte >= 0:
                    point = byte
                elif byte < -32:
                    point, behind = ((byte & 31) << 6) | (int(utf8[at + 1]) & 63), at + 2
                elif byte < -16:
                    point = ((byte & 15) << 12) | ((int(utf8[at + 1]) & 63) << 6) | (int(utf8[at + 2]) & 63)
                    behind = at + 3
                else:
                    point = ((byte & 7) << 18) | ((int(utf8[at + 1]) & 63) << 12)
                    point |= ((int(utf8[at + 2]) & 63) << 6) | (int(utf8[at + 3]) & 63)
                    behind = at + 4
                hash_ = (hash_ ^ np.uint64(point)) * PRIME
            if point == before:
                run += 1
            else:
                if run >= 3:
                    counts[line] += not classes[(blocks[before >> 8] << 8) | (before & 255)] & SPACE
                    if before == 46:
                        counts[n + line] += run // 3
                before, run = point, 1
            if at == host and point >= 0:
                kind = classes[(blocks[point >> 8] << 8) | (point & 255)]
                in_url = kind & (ALPHA | NUMBER) != 0 or point == 91
                counts[2 * n + line] += in_url
            if point <= 64:
                if 9 <= point <= 13 or 28 <= point <= 32:
                    in_url = False
                elif in_url:
                    pass
                elif point == 46:
                    if (
                        at >= start + 3
                        and utf8[at - 1] | 32 == 119
                        and utf8[at - 2] | 32 == 119
                        and utf8[at - 3] | 32 == 119
                        and not of_bytes[utf8[at - 4] & 255] & (LETTER | DIGIT)
                    ):
                        host = at + 1  # behind www.
                elif point == 58:
                    if (
                        at > start
                        and utf8[at + 1] == 47
                        and utf8[at + 2] == 47
                        and of_bytes[utf8[at - 1] & 255] & LETTER
                    ):
                        host = at + 3  # behind ://
                elif point == 64 and at > start and of_bytes[utf8[at - 1] & 255] & LOCAL:
                    i, inside, dotted, found = at + 1, False, False, False  # in a label; behind a label and a dot
                    while i < stop and not found:
                        if of_bytes[utf8[i] & 255] & (LETTER | DIGIT):
                            inside, found = True, dotted
                        elif utf8[i] == 46 and inside:
                            inside, dotted = False, True
                        elif utf8[i] != 45 or not inside:
                            break
                        i += 1
                    counts[3 * n + line] += found
            elif point == 0x2026:
                counts[n + line] += 1
            elif in_url and point > 127 and classes[(blocks[point >> 8] << 8) | (point & 255)] & SPACE:
                in_url = False
            at = behind
        hashes[line] = hash_ ^ (hash_ >> np.uint64(32))


@compiled("int8* int64* int64 int64* int64* int64* int64* int64* int64*")
def _look(
    utf8: Any, line_ends: Any, n: Any, firsts: Any, starts: Any, ends: Any, of_bytes: Any, of_points: Any, edges: Any
) -> None:
    """What each line begins with and ends in, by its first and its last segment."""
    for line in range(n):
        first, last = firsts[line], firsts[line + 1] - 1
        if last < first:
            continue
        stop = line_ends[line]
        for edge in range(2):
            at = starts[first]
            if edge:
                at = ends[last] - 1
                while -128 <= utf8[at] < -64:
                    at -= 1
            point, size = int(utf8[at]), 1
            if -128 <= point < -32:
                point, size = ((point & 31) << 6) | (int(utf8[at + 1]) & 63), 2
            elif -32 <= point < -16:
                point = ((point & 15) << 12) | ((int(utf8[at + 1]) & 63) << 6) | (int(utf8[at + 2]) & 63)
                size = 3
            elif point < 0:
                point = ((point & 7) << 18) | ((int(utf8[at + 1]) & 63) << 12)
                point |= ((int(utf8[at + 2]) & 63) << 6) | (int(utf8[at + 3]) & 63)
                size = 4
            role = of_points[point] if point < 0x20000 else 0
            if edge:
                if role & MARK:
                    edges[line] |= MARKED
            elif role & BULLET or (role & DASH and first < last and starts[first + 1] > at + size == ends[first]):
                edges[line] |= ITEM
        at = starts[first]
        at += utf8[at] == 40 or utf8[at] == 91  # ( or [
        i, common = at, DIGIT | LETTER | SMALL_ROMAN | ROMAN
        while i < at + 7 and i < stop and of_bytes[utf8[i] & 255] & (LETTER | DIGIT):
            common &= of_bytes[utf8[i] & 255]
            i += 1
        size = i - at
        if size and i < stop and of_bytes[utf8[i] & 255] & CLOSING:
            after = of_bytes[utf8[i + 1] & 255] if i + 1 < stop else 0
            behind = first
            while behind <= last and starts[behind] <= i:
                behind += 1
            space = ends[behind - 1] == i + 1 and (behind > last or starts[behind] > i + 1)
            if (common & DIGIT and size <= 3 and not after & DIGIT) or (
                space and ((common & LETTER and size == 1) or (common & (SMALL_ROMAN | ROMAN) and size <= 6))
            ):
                edges[line] |= NUMBERED


@compiled("uint64* int64* int64* int64 uint64* int64* int64* int64*")
def _find_again(
    hashes: Any, chars: Any, bounds: Any, texts: Any, keys: Any, stamps: Any, again: Any, again_chars: Any
) -> None:
    """Looks up each stretch among those before it; the table is emptied by a stamp."""
    for text in range(texts):
        mask = 15
        while mask + 1 < 2 * (bounds[text + 1] - bounds[text]):
            mask = 2 * mask + 1
        for i in range(bounds[text], bounds[text + 1]):
            slot = np.int64((hashes[i] * PRIME) >> np.uint64(32)) & mask
            while stamps[slot] == text + 1 and keys[slot] != hashes[i]:
                slot = (slot + 1) & mask
            if stamps[slot] == text + 1:
                again[text] += 1
                again_chars[text] += chars[i]
            stamps[slot], keys[slot] = text + 1, hashes[i]


@compiled(
    "int8* int64* int64* int64* int64* uint64* uint64* int64* int64 int64* int64* float64* "
    "uint64* int64* int64* int64* int64* float64*"
)
def _count(
    utf8: Any, starts: Any, ends: Any, chars: Any, kinds: Any, hashes: Any, folded: Any, bounds: Any, texts: Any,
    blocks: Any, classes: Any, logs: Any, keys: Any, stamps: Any, counts: Any, slots: Any, found: Any, entropy: Any,
) -> None:  # fmt: skip
    """Counts segments and words by kind, and how often each word occurs."""
    for text in range(texts):
        begin, end = bounds[text], bounds[text + 1]
        mask = 15
        while mask + 1 < 2 * (end - begin):
            mask = 2 * mask + 1
        different = words = run = 0
        for i in range(begin, end):
            kind = kinds[i]
            found[CHARS * texts + text] += chars[i]
            if not kind & HAS_ALNUM:
                found[PUNCTUATED * texts + text] += (kind & ALL_PUNCTUATION) != 0
                run = 0
                continue
            words += 1
            found[WORD_CHARS * texts + text] += chars[i]
            found[LETTERS * texts + text] += (kind & HAS_ALPHA) != 0
            if kind & IS_LOWER:
                found[ALL_LOWER * texts + text] += 1
            elif kind & IS_UPPER:
                found[ALL_UPPER * texts + text] += 1
            elif kind & IS_TITLE:
                found[TITLED * texts + text] += 1
            elif kind & HAS_ALPHA:
                at, capital = starts[i], hashes[i] != folded[i]
                while at < ends[i] and not capital:  # some capitals fold to two characters, and are not folded here
                    byte = int(utf8[at])
                    if byte >= 0:
                        point, at = byte, at + 1
                    elif byte < -32:
                        point, at = ((byte & 31) << 6) | (int(utf8[at + 1]) & 63), at + 2
                    elif byte < -16:
                        point = ((byte & 15) << 12) | ((int(utf8[at + 1]) & 63) << 6) | (int(utf8[at + 2]) & 63)
                        at += 3
                    else:
                        point = ((byte & 7) << 18) | ((int(utf8[at + 1]) & 63) << 12)
                        point |= ((int(utf8[at + 2]) & 63) << 6) | (int(utf8[at + 3]) & 63)
                        at += 4
                    capital = classes[(blocks[point >> 8] << 8) | (point & 255)] & UPPER != 0
                found[MIXED * texts + text] += capital
            if run and hashes[i] == hashes[i - 1] and starts[i] > ends[i - 1]:
                run += 1
                found[SAID_AGAIN * texts + text] += run == 3
            else:
                run = 1
            slot = np.int64(folded[i] & np.uint64(mask))
            while stamps[slot] == text + 1 and keys[slot] != folded[i]:
                slot = (slot + 1) & mask
            if stamps[slot] != text + 1:
                stamps[slot], keys[slot], counts[slot] = text + 1, folded[i], 0
                slots[different] = slot
                different += 1
            counts[slot] += 1
        found[WORDS * texts + text], found[DIFFERENT * texts + text] = words, different
        if different > 1:
            total = 0.0
            for j in range(different):
                total += counts[slots[j]] * logs[counts[slots[j]]]
            entropy[text] = logs[words] - total / words


# --- lists ------------------------------------------------------------------------------------------------------------


class _Known(NamedTuple):
    """A list: a hash table of its entries, 0 where there is none, and how many words the longest has."""

    table: Array
    longest: int


def _hits(segments: Words, n_words: Array, known: Sequence[_Known | None], scale: int) -> list[float | None]:
    """How often entries of a list occur in each text, by its words; null without a list."""
    lists = list({id(each): each for each in known if each}.values())
    if not lists:
        return [None] * len(known)
    places = np.concatenate([[0], np.cumsum([len(each.table) for each in lists])])
    numbers = {id(each): i for i, each in enumerate(lists)}
    which = np.array([numbers.get(id(each), -1) for each in known], dtype=np.int64)
    found = np.zeros(len(known), dtype=np.int64)
    bounds = np.concatenate([[0], np.cumsum(n_words)])
    _find_entries(
        segments.folded[(segments.kinds & HAS_ALNUM) != 0], bounds, len(known), which, places,
        np.array([each.longest for each in lists], dtype=np.int64), np.concatenate([each.table for each in lists]),
        found,
    )  # fmt: skip
    rates = np.round(scale * found / np.maximum(n_words, 1), DECIMALS).tolist()
    return [rate if number >= 0 else None for rate, number in zip(rates, which.tolist(), strict=True)]


@compiled("uint64* int64* int64 int64* int64* int64* uint64* int64*")
def _find_entries(
    words: Any, bounds: Any, texts: Any, which: Any, places: Any, longest: Any, tables: Any, found: Any
) -> None:
    """Counts the words, and words in a row, that are in the table of each text."""
    for text in range(texts):
        if which[text] < 0:
            continue
        begin, mask = places[which[text]], places[which[text] + 1] - places[which[text]] - 1
        for i in range(bounds[text], bounds[text + 1]):
            gram = np.uint64(0)
            for j in range(i, min(i + longest[which[text]], bounds[text + 1])):
                gram = gram * PRIME + words[j]
                slot = np.int64((gram * PRIME) >> np.uint64(32)) & mask
                while tables[begin + slot] and tables[begin + slot] != gram:
                    slot = (slot + 1) & mask
                found[text] += tables[begin + slot] != 0


@functools.cache
def _stop_words(language: str | None) -> _Known | None:
    found = stop_words(language) if language else frozenset()
    return _phrases(found) if found else None


@functools.lru_cache(maxsize=64)
def _phrases(known: frozenset[str]) -> _Known:
    words = Words.of(LineTable.of(sorted(known)))
    grams, longest = set[int](), 0
    for begin, end in zip(words.bounds[:-1].tolist(), words.bounds[1:].tolist(), strict=True):
        gram = 0
        for word in words.folded[begin:end].tolist():
            gram = (gram * int(PRIME) + word) & (1 << 64) - 1
        grams.add(gram)
        longest = max(longest, end - begin)
    table = np.zeros(1 << (2 * len(grams)).bit_length(), dtype=np.uint64)
    for gram in sorted(grams - {0}):
        slot = ((gram * int(PRIME) & (1 << 64) - 1) >> 32) & len(table) - 1
        while table[slot]:
            slot = (slot + 1) & len(table) - 1
        table[slot] = gram
    return _Known(table, longest)


@functools.lru_cache(maxsize=64)
def _bad_words(files: str | None, language: str | None, variant: str) -> frozenset[str] | None:
    """The bad words of a language, in lower case; in `eurolingua` with the English ones."""
    if files is None:
        return None
    languages = (language, "en") if variant == "eurolingua" else (language,)
    paths = [path for path in (for_language(files, each) for each in languages) if path]
    return frozenset(entry.lower() for path in paths for entry in entries(path)) if paths else None


def _bad_in_url(document: Document, known: frozenset[str], variant: str) -> int | None:
    headers = document.metadata.get("warc_headers")
    url = document.metadata.get("url") or (headers.get("warc-target-uri") if isinstance(headers, Mapping) else None)
    if not isinstance(url, str):
        return None
    pieces = re.split(r"\W+", url) if variant == "eurolingua" else re.split(r"[\W_]+", unquote(url))
    return sum(piece.lower() in known for piece in pieces)


# --- eurolingua -------------------------------------------------------------------------------------------------------

BULLETED = re.compile(r"\s*[-\u2022]")
ENUMERATED = re.compile(r"\s*[(\[]?(?:[1-9]|1[0-2]|[a-z]|[ivx]+)[.)\]]")
FOUR_CHARS = re.compile(r"(\w)\1{3,}")
MAYBE_REPEATED = re.compile(r"(?<=\w)\s++(?=(\w{1,20}?)\1\1|\w{63})")
WORD = re.compile(r"\w+")
LONGEST_REPEATED = 1000  # of what is repeated, so that time stays linear


class _Kinds(dict[str, SpacyKind]):
    """Of each word what it is, kept."""

    def __missing__(self, word: str) -> SpacyKind:
        kind = spacy_kind(word)
        if len(self) > 100_000:
            self.clear()
        if len(word) <= 40:
            self[word] = kind
        return kind


_kinds = _Kinds()


def _eurolingua(text: str, language: str | None, bad: frozenset[str] | None) -> dict[str, Any]:
    tokens = spacy_words(text, "xx")
    kinds = list(map(_kinds.__getitem__, tokens))
    of = Counter(kinds)
    words = [token for token, kind in zip(tokens, kinds, strict=True) if kind == "word"]
    spaces = [token for token, kind in zip(tokens, kinds, strict=True) if kind == "space"]
    low = [word.lower() for word in words]
    counts = Counter(low)
    cases = Counter(_case(word) for word in words)
    lines = text.split("\n")
    sizes = list(map(len, lines))
    n, size, n_words, n_tokens = len(lines), len(text), len(words), len(tokens) - len(spaces)
    filled = [line for line in lines if line.strip()]
    paragraphs = [paragraph.strip("\n") for paragraph in re.split(r"\n(?:[^\S\n]*+\n)+", text) if paragraph.strip()]
    short = [size < SHORT for size in sizes]
    part = n // 10 + 1
    items, numbered = sum(map(bool, map(BULLETED.match, lines))), sum(map(bool, map(ENUMERATED.match, lines)))
    chars3, words3 = sum(1 for _ in FOUR_CHARS.finditer(text)), _repeated_words(text)
    again, again_chars = _repeated(lines)
    paragraphs_again, paragraphs_again_chars = _repeated(paragraphs)
    letters = sum(any(map(str.isalpha, token)) for token in tokens)
    dup_line_frac, dup_line_char_frac, letters_share = (
        _share(again, n),
        _share(again_chars, size),
        _share(letters, len(tokens)),
    )
    known = stop_words(language) if language else frozenset()
    return {
        "num_lines": n,
        "num_nonempty_lines": len(filled),
        "num_paras": len(paragraphs),
        "avg_line_len": _rounded(sum(sizes), n),
        "avg_para_len": _rounded(sum(map(len, paragraphs)), len(paragraphs)),
        "avg_words_per_line": _rounded(_words_before_the_last_line(tokens, kinds), n - 1),
        "num_short_lines": sum(short),
        "has_short_header": int(all(short[:part])),
        "has_short_footer": int(all(short[-part:])),
        "num_itemize_lines": items,
        "num_enumerate_lines": numbered,
        "pct_itemize_lines": _rounded(items, n),
        "pct_enumerate_lines": _rounded(numbered, n),
        "num_repeated_chars3": chars3,
        "num_repeated_words3": words3,
        "num_urls": of["url"],
        "num_emails": of["email"],
        "num_words": n_words,
        "avg_word_len": _rounded(sum(map(len, words)), n_words),
        "ttr_words_lower": _rounded(len(counts), n_words),
        "pct_space": _rounded(sum(map(len, spaces)), size),
        **{f"pct_{case}": _rounded(cases[case], n_words) for case in ("lower", "upper", "title", "mixed")},
        "pct_puncts": _rounded(of["punctuation"], n_tokens),
        "pct_words": _rounded(n_words, n_tokens),
        "pct_numbers": _rounded(of["number"], n_tokens),
        "pct_others": _rounded(of["other"], n_tokens),
        "pct_short_lines": _rounded(sum(short), n),
        "pct_stopwords": _rounded(sum(map(known.__contains__, low)), n_words) if known else None,
        "line_punct_ratio": _rounded(sum(line.endswith((".", "'", '"', "!", "?")) for line in lines), n),
        "short_line_ratio": _rounded(sum(size <= VERY_SHORT for size in sizes), n),
        "char_duplicates_ratio": _rounded(again_chars, size),
        "list_ratio": _rounded(n - 1, n_tokens),
        "unigram_entropy": round(-sum(c / n_words * math.log(c / n_words) for c in counts.values()), DECIMALS) + 0.0,
        "dup_para_frac": _share(paragraphs_again, len(paragraphs)),
        "dup_para_char_frac": _share(paragraphs_again_chars, size),
        "dup_line_frac": dup_line_frac,
        "dup_line_char_frac": dup_line_char_frac,
        "dup_line_char_frac_": dup_line_char_frac,
        "symbol_to_word_ratio_hash": _share(text.count("#"), len(tokens)),
        "symbol_to_word_ratio_ellipsis": _share(text.count("...") + text.count("\u2026"), len(tokens)),
        "non_alpha_words_ratio": letters_share,
        "pct_emails": _rounded(of["email"], n_words),
        "pct_non_empty_lines": _rounded(len(filled), n),
        "pct_repeated_chars3": _rounded(chars3, size),
        "pct_repeated_words3": _rounded(words3, n_words),
        "pct_urls": _rounded(of["url"], n_tokens),
        "pct_duplicates_line_chars": round(dup_line_char_frac, DECIMALS),
        "pct_dup_line": round(dup_line_frac, DECIMALS),
        "pct_list": _rounded(n - 1, size),
        "pct_dup_line_char": round(dup_line_char_frac, DECIMALS),
        "pct_non_alpha_words": round(letters_share, DECIMALS),
        "bad_word_rate": None if bad is None else _bad_word_rate(text, bad),
    }


def _share(above: int, below: int) -> float:
    return above / below if below else 0.0


def _rounded(above: int, below: int) -> float:
    return round(_share(above, below), DECIMALS)


def _case(word: str) -> str:
    return "lower" if word.islower() else "upper" if word.isupper() else "title" if word.istitle() else "mixed"


def _repeated(stretches: Iterable[str]) -> tuple[int, int]:
    """How many were there before, and their code points."""
    counts = Counter(stretches)
    return sum(counts.values()) - len(counts), sum((count - 1) * len(each) for each, count in counts.items())


def _words_before_the_last_line(tokens: Sequence[str], kinds: Sequence[SpacyKind]) -> int:
    end = next((i for i in reversed(range(len(tokens))) if "\n" in tokens[i]), 0)
    return kinds[:end].count("word")


def _bad_word_rate(text: str, bad: frozenset[str]) -> float:
    pieces = re.split(r"\W+", text)
    return round(1000 * sum(piece.lower() in bad for piece in pieces) / len(pieces), DECIMALS)


def _repeated_words(text: str) -> int:
    r"""Matches of ``(\w+)\s+\1{3,}``, which the module `re` finds in quadratic time.

    The group is the longest end of a word that the next word begins with three times.
    """
    count = done = 0
    for gap in MAYBE_REPEATED.finditer(text):
        left, right = gap.span()
        word = WORD.match(text, right)
        most = min((word.end() - right) // 3 if word else 0, left - done, LONGEST_REPEATED)
        for size in range(most, 0, -1):
            if text[left - size] == text[right] and text[left - size : left] == text[right : right + size]:
                group = text[right : right + size]
                end = right + size
                while text.startswith(group, end):
                    end += size
                if end - right >= 3 * size:
                    count, done = count + 1, end
                    break
    return count
