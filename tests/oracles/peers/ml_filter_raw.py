"""EuroLingua's features of pages, each by its formula, with spaCy's own tokens: a slow reference.

    PEER/bin/python ml_filter_raw.py PAGES VERDICTS LISTS

The formulas are those that give what 1,000 published documents of that corpus carry. LISTS has bad words by language.
"""

import json
import math
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import spacy
import stopwordsiso

TOKENIZE = spacy.blank("xx").tokenizer


def kind(token: Any) -> str:
    """Return the first of these classes that a token is of."""
    if token.is_space:
        return "space"
    if token.text.isalnum():
        return "word"
    if token.is_punct:
        return "punct"
    if token.like_num:
        return "number"
    if token.like_url:
        return "url"
    return "email" if token.like_email else "other"


def share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def case(word: str) -> str:
    if word.islower():
        return "lower"
    if word.isupper():
        return "upper"
    return "title" if word.istitle() else "mixed"


def repeated(units: list[str]) -> tuple[int, int]:
    """Return how many units were there before, and their code points."""
    seen: set[str] = set()
    count = chars = 0
    for unit in units:
        if unit in seen:
            count += 1
            chars += len(unit)
        seen.add(unit)
    return count, chars


def paragraphs_of(text: str) -> list[str]:
    """Return the stretches of lines between blank ones."""
    found: list[list[str]] = [[]]
    for line in text.split("\n"):
        if line.strip():
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return ["\n".join(lines) for lines in found if lines]


def features(text: str, language: str | None, url: str | None, lists: Path) -> dict[str, Any]:
    """Return all features of a text, rounded to five places where the corpus rounds."""
    tokens = list(TOKENIZE(text))
    kinds = [kind(token) for token in tokens]
    of = Counter(kinds)
    words = [token.text for token, each in zip(tokens, kinds, strict=True) if each == "word"]
    low = [word.lower() for word in words]
    cases = Counter(map(case, words))
    solid = len(tokens) - of["space"]
    lines = text.split("\n")
    n, size, n_words = len(lines), len(text), len(words)
    part = n // 10 + 1
    paragraphs = paragraphs_of(text)
    again, again_chars = repeated(lines)
    paragraphs_again, paragraphs_again_chars = repeated(paragraphs)
    items = sum(bool(re.match(r"\s*[-\u2022]", line)) for line in lines)
    numbered = sum(bool(re.match(r"\s*[\(\[]?(?:[1-9]|1[0-2]|[a-z]|[ivx]+)[.)\]]", line)) for line in lines)
    chars3 = len(re.findall(r"(\w)\1{3,}", text))
    words3 = len(re.findall(r"(\w+)\s+\1{3,}", text))
    letters = sum(any(c.isalpha() for c in token.text) for token in tokens)
    last = text.rfind("\n")
    before = sum(each == "word" and token.idx < last for token, each in zip(tokens, kinds, strict=True))
    stop = stopwordsiso.stopwords(language) if language and stopwordsiso.has_lang(language) else None
    own = lists / (language or "")
    bad: set[str] = set()
    if language and own.is_file():
        bad = {entry for path in (own, lists / "en") for entry in path.read_text(encoding="utf-8").lower().split("\n")}
        bad -= {""}
    pieces = re.split(r"\W+", text)
    filled = sum(bool(line.strip()) for line in lines)
    entropy = 0.0
    for count in Counter(low).values():
        entropy -= count / n_words * math.log(count / n_words)
    rounded = {
        "avg_line_len": share(sum(map(len, lines)), n),
        "avg_para_len": share(sum(map(len, paragraphs)), len(paragraphs)),
        "avg_words_per_line": share(before, n - 1),
        "pct_itemize_lines": share(items, n),
        "pct_enumerate_lines": share(numbered, n),
        "avg_word_len": share(sum(map(len, words)), n_words),
        "ttr_words_lower": share(len(set(low)), n_words),
        "pct_space": share(sum(len(t.text) for t, each in zip(tokens, kinds, strict=True) if each == "space"), size),
        **{f"pct_{each}": share(cases[each], n_words) for each in ("lower", "upper", "title", "mixed")},
        "pct_puncts": share(of["punct"], solid),
        "pct_words": share(n_words, solid),
        "pct_numbers": share(of["number"], solid),
        "pct_others": share(of["other"], solid),
        "pct_short_lines": share(sum(len(line) < 100 for line in lines), n),
        "line_punct_ratio": share(sum(line.endswith((".", "'", '"', "!", "?")) for line in lines), n),
        "short_line_ratio": share(sum(len(line) <= 30 for line in lines), n),
        "char_duplicates_ratio": share(again_chars, size),
        "list_ratio": share(text.count("\n"), solid),
        "unigram_entropy": entropy,
        "pct_emails": share(of["email"], n_words),
        "pct_urls": share(of["url"], solid),
        "pct_non_empty_lines": share(filled, n),
        "pct_repeated_chars3": share(chars3, size),
        "pct_repeated_words3": share(words3, n_words),
        "pct_duplicates_line_chars": share(again_chars, size),
        "pct_dup_line_char": share(again_chars, size),
        "pct_dup_line": share(again, n),
        "pct_list": share(text.count("\n"), size),
        "pct_non_alpha_words": share(letters, len(tokens)),
    }
    found = {
        "num_lines": n,
        "num_nonempty_lines": filled,
        "num_paras": len(paragraphs),
        "num_short_lines": sum(len(line) < 100 for line in lines),
        "has_short_header": int(all(len(line) < 100 for line in lines[:part])),
        "has_short_footer": int(all(len(line) < 100 for line in lines[-part:])),
        "num_itemize_lines": items,
        "num_enumerate_lines": numbered,
        "num_repeated_chars3": chars3,
        "num_repeated_words3": words3,
        "num_urls": of["url"],
        "num_emails": of["email"],
        "num_words": n_words,
        "dup_line_frac": share(again, n),
        "dup_line_char_frac": share(again_chars, size),
        "dup_line_char_frac ": share(again_chars, size),
        "dup_para_frac": share(paragraphs_again, len(paragraphs)),
        "dup_para_char_frac": share(paragraphs_again_chars, size),
        "symbol_to_word_ratio_hash": share(text.count("#"), len(tokens)),
        "symbol_to_word_ratio_ellipsis": share(text.count("...") + text.count("\u2026"), len(tokens)),
        "non_alpha_words_ratio": share(letters, len(tokens)),
        "bad_word_rate": sum(piece.lower() in bad for piece in pieces) / len(pieces) * 1000,
        "pct_stopwords": None if stop is None else round(share(sum(word in stop for word in low), n_words), 5),
        "num_bad_words_in_url": None if url is None else sum(p.lower() in bad for p in re.split(r"\W+", url)),
    }
    return found | {name: round(value, 5) + 0.0 for name, value in rounded.items()}


def main(pages: str, verdicts: str, lists: str) -> None:
    """Write a verdict for each page."""
    with open(pages, encoding="utf-8") as rows, open(verdicts, "w", encoding="utf-8") as out:
        for row in rows:
            page = json.loads(row)
            metadata = page["metadata"]
            values = features(page["text"], metadata["language"], metadata.get("url"), Path(lists))
            out.write(json.dumps({"id": page["id"], "text": page["text"], "values": values}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
