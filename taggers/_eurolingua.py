r"""Counts and shares of a text as in EuroLingua's corpus, flaws included; in plain Python.

Source: found by comparing with 1,000 documents of that corpus, as how they were computed is published nowhere; the
names are those of ml_filter (Modalities, formerly EuroLingua-GPT), ``documentation/data_format.md``. What they mean is
said at the tagger `statistics`.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolkit.text import SpacyKind, spacy_kind, spacy_words, stop_words

DECIMALS = 5
SHORT, VERY_SHORT = 100, 30
END_MARKS = (".", "'", '"', "!", "?")

BULLETED = re.compile(r"\s*[-\u2022]")
ENUMERATED = re.compile(r"\s*[(\[]?(?:[1-9]|1[0-2]|[a-z]|[ivx]+)[.)\]]")
FOUR_CHARS = re.compile(r"(\w)\1{3,}")
MAYBE_REPEATED = re.compile(r"(?<=\w)\s++(?=(\w{1,20}?)\1\1|\w{63})")
WORD = re.compile(r"\w+")
LONGEST_REPEATED = 1000  # of what is repeated, so that time stays linear


class _Kinds(dict[str, SpacyKind]):
    """Cache of the kind of each word."""

    def __missing__(self, word: str) -> SpacyKind:
        kind = spacy_kind(word)
        if len(self) > 100_000:
            self.clear()
        if len(word) <= 40:
            self[word] = kind
        return kind


_kinds = _Kinds()


def eurolingua_statistics(text: str, language: str | None, bad_words: frozenset[str] | None) -> dict[str, Any]:
    """Return all statistics of a text, by the names of the corpus.

    Args:
        text: Text of any length; time is linear in it.
        language: chooses the stop words.
        bad_words: Bad words in lower case; without them their rate is null, with an empty set 0.
    """
    tokens = spacy_words(text, "xx")
    kinds = list(map(_kinds.__getitem__, tokens))
    of = Counter(kinds)
    words = [token for token, kind in zip(tokens, kinds, strict=True) if kind == "word"]
    spaces = [token for token, kind in zip(tokens, kinds, strict=True) if kind == "space"]
    low = [word.lower() for word in words]
    counts = Counter(low)
    cases = Counter(map(_case, words))
    lines = text.split("\n")
    paragraphs = [paragraph.strip("\n") for paragraph in re.split(r"\n(?:[^\S\n]*+\n)+", text) if paragraph.strip()]
    sizes = list(map(len, lines))
    short = [size < SHORT for size in sizes]
    part = len(lines) // 10 + 1
    again, again_chars = _repeated(lines)
    paragraphs_again, paragraphs_again_chars = _repeated(paragraphs)
    letters = sum(any(map(str.isalpha, token)) for token in tokens)
    stops = stop_words(language) if language else frozenset()
    n, size, n_words, n_tokens = len(lines), len(text), len(words), len(tokens) - len(spaces)
    counted = {
        "num_lines": n,
        "num_nonempty_lines": sum(map(bool, map(str.strip, lines))),
        "num_paras": len(paragraphs),
        "num_short_lines": sum(short),
        "has_short_header": int(all(short[:part])),
        "has_short_footer": int(all(short[-part:])),
        "num_itemize_lines": sum(map(bool, map(BULLETED.match, lines))),
        "num_enumerate_lines": sum(map(bool, map(ENUMERATED.match, lines))),
        "num_repeated_chars3": sum(1 for _ in FOUR_CHARS.finditer(text)),
        "num_repeated_words3": _repeated_words(text),
        "num_urls": of["url"],
        "num_emails": of["email"],
        "num_words": n_words,
    }
    exact = {
        "dup_para_frac": _share(paragraphs_again, len(paragraphs)),
        "dup_para_char_frac": _share(paragraphs_again_chars, size),
        "dup_line_frac": _share(again, n),
        "dup_line_char_frac": _share(again_chars, size),
        "dup_line_char_frac ": _share(again_chars, size),
        "symbol_to_word_ratio_hash": _share(text.count("#"), len(tokens)),
        "symbol_to_word_ratio_ellipsis": _share(text.count("...") + text.count("\u2026"), len(tokens)),
        "non_alpha_words_ratio": _share(letters, len(tokens)),
    }
    by_lines = {
        "avg_line_len": sum(sizes),
        "pct_itemize_lines": counted["num_itemize_lines"],
        "pct_enumerate_lines": counted["num_enumerate_lines"],
        "pct_short_lines": counted["num_short_lines"],
        "pct_non_empty_lines": counted["num_nonempty_lines"],
        "line_punct_ratio": sum(line.endswith(END_MARKS) for line in lines),
        "short_line_ratio": sum(size <= VERY_SHORT for size in sizes),
        "pct_dup_line": again,
    }
    by_words = {
        "avg_word_len": sum(map(len, words)),
        "ttr_words_lower": len(counts),
        **{f"pct_{case}": cases[case] for case in ("lower", "upper", "title", "mixed")},
        "pct_emails": of["email"],
        "pct_repeated_words3": counted["num_repeated_words3"],
    }
    by_tokens = {
        "pct_puncts": of["punctuation"],
        "pct_words": n_words,
        "pct_numbers": of["number"],
        "pct_others": of["other"],
        "pct_urls": of["url"],
        "list_ratio": n - 1,
    }
    by_chars = {
        "pct_space": sum(map(len, spaces)),
        "pct_repeated_chars3": counted["num_repeated_chars3"],
        "pct_list": n - 1,
        **dict.fromkeys(("char_duplicates_ratio", "pct_duplicates_line_chars", "pct_dup_line_char"), again_chars),
    }
    return {
        **counted,
        **exact,
        **_rounded(by_lines, n),
        **_rounded(by_words, n_words),
        **_rounded(by_tokens, n_tokens),
        **_rounded(by_chars, size),
        **_rounded({"pct_non_alpha_words": letters}, len(tokens)),
        **_rounded({"avg_para_len": sum(map(len, paragraphs))}, len(paragraphs)),
        **_rounded({"avg_words_per_line": _words_before_the_last_line(tokens, kinds)}, n - 1),
        "unigram_entropy": round(-sum(c / n_words * math.log(c / n_words) for c in counts.values()), DECIMALS) + 0.0,
        "pct_stopwords": round(_share(sum(map(stops.__contains__, low)), n_words), DECIMALS) if stops else None,
        "bad_word_rate": None if bad_words is None else _bad_word_rate(text, bad_words),
    }


def _share(above: int, below: int) -> float:
    return above / below if below else 0.0


def _rounded(above: Mapping[str, int], below: int) -> dict[str, float]:
    return {name: round(_share(value, below), DECIMALS) for name, value in above.items()}


def _case(word: str) -> str:
    return "lower" if word.islower() else "upper" if word.isupper() else "title" if word.istitle() else "mixed"


def _repeated(stretches: Iterable[str]) -> tuple[int, int]:
    """Return how many were there before, and their code points."""
    counts = Counter(stretches)
    return sum(counts.values()) - len(counts), sum((count - 1) * len(key) for key, count in counts.items())


def _words_before_the_last_line(tokens: Sequence[str], kinds: Sequence[SpacyKind]) -> int:
    end = next((i for i in reversed(range(len(tokens))) if "\n" in tokens[i]), 0)
    return kinds[:end].count("word")


def _bad_word_rate(text: str, bad: frozenset[str]) -> float:
    pieces = re.split(r"\W+", text)
    return sum(piece.lower() in bad for piece in pieces) / len(pieces) * 1000  # in this order, and not rounded


def _repeated_words(text: str) -> int:
    r"""Count matches of ``(\w+)\s+\1{3,}``.

    The module `re` finds them in quadratic time.

    The group is the longest end of a word that the next word begins with three times.
    """
    count = end_of_last = 0
    for gap in MAYBE_REPEATED.finditer(text):
        left, right = gap.span()
        word = WORD.match(text, right)
        most = min((word.end() - right) // 3 if word else 0, left - end_of_last, LONGEST_REPEATED)
        for size in range(most, 0, -1):
            if text[left - size] == text[right] and text[left - size : left] == text[right : right + size]:
                group = text[right : right + size]
                end = right + size
                while text.startswith(group, end):
                    end += size
                if end - right >= 3 * size:
                    count, end_of_last = count + 1, end
                    break
    return count
