"""`statistics`: the mended variant beside a slow plain one, EuroLingua's by hand."""

import gzip
import json
import math
import random
import re
import string
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import regex
from fastwarc.warc import ArchiveIterator, WarcRecordType
from hypothesis import given, settings, strategies as st

from taggers._eurolingua import eurolingua_statistics
from taggers.redpajama import Redpajama
from taggers.redpajama_models import RedpajamaModels, feature_counts
from taggers.statistics import Statistics
from toolkit import ConfigError, Document
from toolkit.text import LineTable, Words, load_fasttext, stop_words
from toolkit.text.unicode_table import NUMERALS_SINCE
from toolkit.text.words import words_of

BULLETS = "•‣⁃⁌⁍∙■□▪▫▶▸►◆◇○●◦✓✔➔➢➤"


def values(text: str, metadata: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    tagger = msgspec.convert(options, Statistics)
    found = json.loads(msgspec.json.encode(tagger.tag(Document(text, metadata=metadata))))
    assert isinstance(found, dict)
    return found


def share(above: float, below: float) -> float:
    return round(above / below, 5) if below else 0.0


def is_word(segment: str) -> bool:
    return any(c.isalpha() or c.isnumeric() for c in segment)


def lines_of(text: str) -> list[str]:
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def words_in_a_row(text: str, segments: list[str]) -> int:
    """Stretches of three or more of the same word with only white space between."""
    count = run = at = 0
    before = None
    for segment in segments:
        begin = text.index(segment, at)
        run = run + 1 if segment == before and begin > at and is_word(segment) else 1
        count += run == 3
        before, at = segment, begin + len(segment)
    return count


URL = regex.compile(r"(?:(?<=[A-Za-z])://|(?<![A-Za-z0-9])(?i:www)\.)(?=[\[\p{L}\p{N}])")
ADDRESS = re.compile(r"(?<=[A-Za-z0-9._%+-])@(?=(?:[A-Za-z0-9][A-Za-z0-9-]*\.)+[A-Za-z0-9])")


def urls_and_emails(chunk: str) -> tuple[int, int]:
    """Count URLs and addresses; one that begins before a URL is an address, though its host is in the URL."""
    url = URL.search(chunk)
    end = url.start() if url else len(chunk)
    return int(url is not None), sum(found.start() < end for found in ADDRESS.finditer(chunk))


def plain(text: str) -> dict[str, Any]:
    """What the variant `fixed` gives, one thing after the other."""
    lines = lines_of(text)
    filled = [line for line in lines if line.strip()]
    paragraphs = ["\n".join(group) for some, group in groupby(lines, lambda line: bool(line.strip())) if some]
    segments = words_of(text, "segments")
    words = [segment for segment in segments if is_word(segment)]
    folded = Counter(word.casefold() for word in words)
    cases = Counter(
        "lower" if word.islower() else "upper" if word.isupper() else "title" if word.istitle() else
        "mixed" if any(map(str.isupper, word)) else "none" for word in words
    )  # fmt: skip
    letters = sum(any(map(str.isalpha, segment)) for segment in segments)
    puncts = sum(bool(regex.fullmatch(r"[\p{P}\p{S}]+", segment)) for segment in segments)
    items = sum(bool(re.match(rf"\s*(?:[{BULLETS}]|[-*+·–—]\s+\S)", line)) for line in lines)
    numbered = sum(
        bool(re.match(r"\s*[(\[]?(?:[0-9]{1,3}[.)\]](?![0-9])|(?:[A-Za-z]|[ivx]{1,6}|[IVX]{1,6})[.)\]](?!\S))", line))
        for line in lines
    )
    marked = sum(bool(regex.match(r"[\p{STerm}\p{Quotation_Mark}…]", line.rstrip()[-1])) for line in filled)
    repeated = sum(len(re.findall(r"(\S)\1{2,}", line)) for line in lines)
    chunks = [chunk for line in lines for chunk in line.split()]
    short = [len(line) < 100 for line in lines]
    part = len(lines) // 10 + 1
    again = len(filled) - len(set(filled))
    again_chars = sum(map(len, filled)) - sum(map(len, set(filled)))
    paragraphs_again_chars = sum(map(len, paragraphs)) - sum(map(len, set(paragraphs)))
    entropy = -sum(c / len(words) * math.log(c / len(words)) for c in folded.values())
    in_a_row, feeds, n, size = words_in_a_row(text, segments), text.count("\n"), len(words), len(text)
    urls, emails = (sum(each) for each in zip((0, 0), *map(urls_and_emails, chunks), strict=True))
    ellipses = sum(line.count("...") for line in lines) + text.count("…")
    return {
        "num_bad_words_in_url": None,
        "bad_word_rate": None,
        "num_lines": len(lines),
        "num_nonempty_lines": len(filled),
        "num_paras": len(paragraphs),
        "avg_line_len": share(sum(map(len, lines)), len(lines)),
        "avg_para_len": share(sum(map(len, paragraphs)), len(paragraphs)),
        "avg_words_per_line": share(n, len(lines)),
        "num_short_lines": sum(short),
        "has_short_header": int(bool(lines) and all(short[:part])),
        "has_short_footer": int(bool(lines) and all(short[-part:])),
        "num_itemize_lines": items,
        "num_enumerate_lines": numbered,
        "pct_itemize_lines": share(items, len(lines)),
        "pct_enumerate_lines": share(numbered, len(lines)),
        "num_repeated_chars3": repeated,
        "num_repeated_words3": in_a_row,
        "num_urls": urls,
        "num_emails": emails,
        "num_words": n,
        "avg_word_len": share(sum(map(len, words)), n),
        "ttr_words_lower": share(len(folded), n),
        "pct_space": share(sum(map(str.isspace, text)), size),
        **{f"pct_{case}": share(cases[case], n) for case in ("lower", "upper", "title", "mixed")},
        "pct_puncts": share(puncts, len(segments)),
        "pct_words": share(letters, len(segments)),
        "pct_numbers": share(n - letters, len(segments)),
        "pct_others": share(len(segments) - n - puncts, len(segments)),
        "pct_short_lines": share(sum(short), len(lines)),
        "pct_stopwords": None,
        "line_punct_ratio": share(marked, len(filled)),
        "short_line_ratio": share(sum(len(line) <= 30 for line in filled), len(filled)),
        "char_duplicates_ratio": share(again_chars, sum(map(len, lines))),
        "list_ratio": share(feeds, n),
        "unigram_entropy": round(entropy, 5) + 0.0,
        "dup_para_frac": share(len(paragraphs) - len(set(paragraphs)), len(paragraphs)),
        "dup_para_char_frac": share(paragraphs_again_chars, size),
        "dup_line_frac": share(again, len(filled)),
        "dup_line_char_frac": share(again_chars, size),
        "dup_line_char_frac ": None,
        "symbol_to_word_ratio_hash": share(text.count("#"), n),
        "symbol_to_word_ratio_ellipsis": share(ellipses, n),
        "non_alpha_words_ratio": share(len(segments) - letters, len(segments)),
        "token_count": None,
        "pct_emails": share(emails, n),
        "pct_non_empty_lines": share(len(filled), len(lines)),
        "pct_repeated_chars3": share(repeated, size),
        "pct_repeated_words3": share(in_a_row, n),
        "pct_urls": share(urls, n),
        "pct_duplicates_line_chars": share(again_chars, size),
        "pct_dup_line": share(again, len(filled)),
        "pct_list": share(feeds, size),
        "pct_dup_line_char": share(again_chars, size),
        "pct_non_alpha_words": share(len(segments) - letters, len(segments)),
    }


PIECES = [
    "a", "B", "no", "No", "NO", "Hello", "iPhone", "word", "été", "Ночь", "İstanbul’a", "日本", "é", "😀", "12", "3.5",
    "1.", "(b)", "iv]", "-", "•", "·", "–", "*", "#", "...", "…", ".", "!", "。", "»", "'", '"', "www.", "http://",
    "x.org", "a@b.org", "@", " ", " ", " ", "  ", "\t", "\u3000", "\xa0", "\n", "\n", "\n\n", "\r\n", "\r", "x" * 99,
]  # fmt: skip


def assert_same(text: str) -> None:
    found, wanted = values(text), plain(text)
    assert list(found) == list(wanted)
    near = {
        key: pytest.approx(value, abs=1.1e-5) if isinstance(value, float) else value for key, value in wanted.items()
    }
    assert found == near, text


@settings(deadline=None)  # the first text waits for the compiler
@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_the_mended_variant_is_the_plain_one(text: str) -> None:
    assert_same(text)


@pytest.mark.slow
def test_the_mended_variant_is_the_plain_one_on_real_documents(shared: Path) -> None:
    texts = []
    for name in ("dclm_majority_data", "fineweb2_spa_Latn_sampled_500k_0_to_600"):
        with gzip.open(shared / "quality" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as stream:
            texts += [json.loads(line)["text"] for line in stream]
    with gzip.open(shared / "labelled" / "labelled_subset.jsonl.gz", "rt", encoding="utf-8") as stream:
        texts += [json.loads(line)["text"] for line in stream]
    for text in random.Random(1).sample(texts, 400):
        assert_same(text[:5000])


def test_words_without_case_and_numbers_are_not_mixed() -> None:
    found = values("iPhone 2024 日 x X Xy")
    assert [found[f"pct_{case}"] for case in ("lower", "upper", "title", "mixed")] == [0.16667] * 4


EUROLINGUA = "Menu:\n- 30 000 km, bla bla bla\n1) soooo e.g. http://a.org, x@y.org\nEND...\nMenu:"


def test_eurolingua_by_hand() -> None:
    """26 tokens, 4 of them line ends; 11 words: Menu 30 000 km bla bla bla 1 soooo END Menu; 79 characters."""
    nothing = dict.fromkeys(("num_bad_words_in_url", "bad_word_rate", "pct_stopwords", "token_count"))
    entropy = -(2 * math.log(2 / 11) + 3 * math.log(3 / 11) + 6 * math.log(1 / 11)) / 11
    assert values(EUROLINGUA, variant="eurolingua") == nothing | {
        "num_lines": 5, "num_nonempty_lines": 5, "num_paras": 1, "avg_line_len": 15.0, "avg_para_len": 79.0,
        "avg_words_per_line": 2.5, "num_short_lines": 5, "has_short_header": 1, "has_short_footer": 1,
        "num_itemize_lines": 1, "num_enumerate_lines": 1, "pct_itemize_lines": 0.2, "pct_enumerate_lines": 0.2,
        "num_repeated_chars3": 1, "num_repeated_words3": 1, "num_urls": 1, "num_emails": 1, "num_words": 11,
        "avg_word_len": 3.0, "ttr_words_lower": 0.72727, "pct_space": 0.05063, "pct_lower": 0.45455,
        "pct_upper": 0.09091, "pct_title": 0.18182, "pct_mixed": 0.27273, "pct_puncts": 0.36364, "pct_words": 0.5,
        "pct_numbers": 0.0, "pct_others": 0.04545, "pct_short_lines": 1.0, "line_punct_ratio": 0.2,
        "short_line_ratio": 0.8, "char_duplicates_ratio": 0.06329, "list_ratio": 0.18182,
        "unigram_entropy": round(entropy, 5), "dup_para_frac": 0.0, "dup_para_char_frac": 0.0, "dup_line_frac": 1 / 5,
        "dup_line_char_frac": 5 / 79, "dup_line_char_frac ": 5 / 79, "symbol_to_word_ratio_hash": 0.0,
        "symbol_to_word_ratio_ellipsis": 1 / 26, "non_alpha_words_ratio": 11 / 26, "pct_emails": 0.09091,
        "pct_non_empty_lines": 1.0, "pct_repeated_chars3": 0.01266, "pct_repeated_words3": 0.09091,
        "pct_urls": 0.04545, "pct_duplicates_line_chars": 0.06329, "pct_dup_line": 0.2, "pct_list": 0.05063,
        "pct_dup_line_char": 0.06329, "pct_non_alpha_words": 0.42308,
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["30 000", "0 00000 000", "a aaa aaa aaa", "bla bla bla", "x ababab abab", "ab aba ababab\tab", "a  aaaa a a"],
)
def test_repeated_words_of_eurolingua_are_those_of_its_pattern(text: str) -> None:
    for each in (text, text + " " + text, text * 2, text[::-1]):
        found = values(each, variant="eurolingua")["num_repeated_words3"]
        assert found == len(re.findall(r"(\w+)\s+\1{3,}", each)), each


@settings(deadline=None)
@given(st.text(alphabet="ab0 \n.", max_size=40))
def test_repeated_words_of_eurolingua_are_those_of_its_pattern_on_any_text(text: str) -> None:
    assert values(text, variant="eurolingua")["num_repeated_words3"] == len(re.findall(r"(\w+)\s+\1{3,}", text))


def test_stop_words_are_those_of_the_language_or_null() -> None:
    text = "The bible is on the Table"
    assert [values(text, language=each)["pct_stopwords"] for each in ("en", "de", "xx")] == [0.66667, 0.0, None]
    assert values(text, language="en", variant="eurolingua")["pct_stopwords"] == 0.66667


def test_bad_words(tmp_path: Path) -> None:
    (tmp_path / "en").write_text("darn\nholy cow\n", encoding="utf-8")
    (tmp_path / "fr").write_text("zut\n", encoding="utf-8")
    text, metadata = "Zut! DARN holy, cow darned", {"url": "https://darn.example/zut/a_darn"}

    def found(language: str | None, **options: Any) -> tuple[Any, Any]:
        value = values(text, metadata, language=language, **options)
        return value["bad_word_rate"], value["num_bad_words_in_url"]

    folder = str(tmp_path)
    assert found("en", bad_words=folder) == (400.0, 2)
    assert found("fr", bad_words=folder) == (200.0, 1)
    assert found("de", bad_words=folder) == (None, None)
    assert found(None, bad_words=f"{folder}/en") == (400.0, 2)
    assert found("fr", bad_words=folder, variant="eurolingua") == (400.0, 2)
    assert found("de", bad_words=folder, variant="eurolingua") == (0.0, 0)
    assert found(None, bad_words=folder, variant="eurolingua") == (0.0, 0)
    assert found("de", bad_words=f"{folder}/en", variant="eurolingua") == (200.0, 1)
    assert found("fr", variant="eurolingua") == (None, None)
    assert found("en") == (None, None)
    assert values("darn", {}, language="en", bad_words=folder)["num_bad_words_in_url"] is None


def test_lists_are_chosen_document_by_document() -> None:
    documents = [Document("the die un"), Document("the die un"), Document("the die un")]
    for document, language in zip(documents, ("en", None, "de"), strict=True):
        document.give("set.language.label", language)
    found = [value.pct_stopwords for value in Statistics(language="set.language.label").tag_batch(documents)]
    assert found == [
        values("the die un", language="en")["pct_stopwords"],
        None,
        values("the die un", language="de")["pct_stopwords"],
    ]
    assert found[0] != found[2]


def test_tokens_are_counted(tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    model = {"type": "WordLevel", "vocab": {"[UNK]": 0, "a": 1}, "unk_token": "[UNK]"}
    empty = dict.fromkeys(("truncation", "padding", "normalizer", "post_processor", "decoder"))
    made = {"version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"}, "model": model} | empty
    (tmp_path / "tokenizer.json").write_text(json.dumps(made), encoding="utf-8")
    assert values("a b, a", tokenizer=str(tmp_path / "tokenizer.json"))["token_count"] == 4


def test_any_batch_gives_the_same() -> None:
    texts = ["".join(random.Random(i).choices(PIECES, k=50)) for i in range(20)]
    at_once = Statistics().tag_batch([Document(text) for text in texts])
    assert at_once == [Statistics().tag(Document(text)) for text in texts]
    assert all(b == a for a, b in pairwise(Statistics().tag_batch([Document(texts[0])] * 3)))


# EuroLingua's counts: nothing is counted of nothing; the rest is with the tagger `statistics`.


def test_of_an_empty_text_all_is_0_but_its_one_line() -> None:
    found = eurolingua_statistics("", None, None)
    nothing = dict.fromkeys(("pct_stopwords", "bad_word_rate"))
    one = {
        "num_lines",
        "num_short_lines",
        "has_short_header",
        "has_short_footer",
        "pct_short_lines",
        "short_line_ratio",
    }
    assert {name: value for name, value in found.items() if value} == dict.fromkeys(one, 1)
    assert {name for name, value in found.items() if value is None} == set(nothing)


@pytest.mark.parametrize(("text", "rate"), [("Darn it", 500.0), ("darned", 0.0), ("darn", 1000.0), ("darn.", 500.0)])
def test_bad_words_are_by_pieces_the_empty_one_too(text: str, rate: float) -> None:
    assert eurolingua_statistics(text, None, frozenset({"darn"}))["bad_word_rate"] == rate


def test_the_rate_of_bad_words_is_not_rounded() -> None:
    rate = eurolingua_statistics("darn it or not it is so too far", None, frozenset({"darn"}))["bad_word_rate"]
    assert rate == 1 / 9 * 1000 != 1000 * 1 / 9


def test_without_a_list_of_its_own_a_language_has_no_bad_words() -> None:
    assert eurolingua_statistics("darn", None, frozenset())["bad_word_rate"] == 0.0


# RedPajama's signals against a slow rendering of their formulas, word by word.

TERMINAL = (".", "!", "?", "\u201d")
REDPAJAMA_BULLETS = tuple(map(chr, (0x2022, 0x2023, 0x25B6, 0x25C0, 0x25E6, 0x25A0, 0x25A1, 0x25AA, 0x25AB, 0x2013)))


def normal(text: str) -> str:
    kept = "".join(c for c in text if c not in string.punctuation)
    return unicodedata.normalize("NFD", re.sub(r"\s+", " ", kept.lower().strip()))


def grams(words: Sequence[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def slow(text: str, stopped: frozenset[str]) -> dict[str, Any]:
    """All signals without models and lists, each by its formula."""
    words, raw = normal(text).split(), re.findall(r"\w+|[^\w\s]+", text)
    lines = [match.group() for match in re.finditer(r"[^\n]*\n|[^\n]+$", text)]
    normal_lines = list(map(normal, lines))
    chars = sum(map(len, words))

    def of_words(count: float) -> float | None:
        return round(count / len(words), 8) if words else None

    def of_raw(count: float) -> float | None:
        return round(count / len(raw), 8) if raw else None

    def of_lines(count: float) -> float | None:
        return round(count / len(lines), 8) if lines else None

    def top(n: int) -> float:
        found = Counter(grams(words, n)).most_common(1)
        return round(sum(map(len, found[0][0])) * found[0][1] / chars, 8) if found and found[0][1] > 1 else 0.0

    def dupe(n: int) -> float:
        counts = Counter(grams(words, n))
        marked = {i + j for i, gram in enumerate(grams(words, n)) if counts[gram] > 1 for j in range(n)}
        return round(sum(len(words[i]) for i in marked) / chars, 8) if chars else 0.0

    doc = {
        "curly_bracket": round((text.count("{") + text.count("}")) / len(text), 8) if text else 0.0,
        "frac_all_caps_words": of_raw(sum(word.isupper() for word in raw)),
        "frac_lines_end_with_ellipsis": of_lines(sum(line.rstrip().endswith(("...", "…")) for line in lines)),
        "frac_no_alph_words": None
        if not raw
        else round(1 - sum(bool(re.search("[a-zA-Z]", word)) for word in raw) / len(raw), 8),
        "lorem_ipsum": round(normal(text).count("lorem ipsum") / len(normal(text)), 8) if normal(text) else 0.0,
        "mean_word_length": of_words(chars),
        "stop_word_fraction": (of_raw(sum(word in stopped for word in raw)) if words else 0.0) if stopped else None,
        "symbol_to_word_ratio": of_raw(sum(text.count(symbol) for symbol in ("#", "...", "…"))),
        "frac_unique_words": of_words(len(set(words))),
        "unigram_entropy": round(
            math.fsum(-n / len(words) * math.log(n / len(words)) for n in Counter(words).values()) + 0.0, 8
        )
        if words
        else None,
        "word_count": len(words),
        "num_sentences": len(re.findall(r"\b[^.!?]+[.!?]*", text)),
        **{f"frac_chars_top_{n}gram": top(n) for n in (2, 3, 4)},
        **{f"frac_chars_dupe_{n}grams": dupe(n) for n in range(5, 11)},
    }
    of_each = {
        "ending_with_terminal_punctution_mark": [int(line.rstrip().endswith(TERMINAL)) for line in lines],
        "javascript_counts": [line.split().count("javascript") for line in normal_lines],
        "num_words": [len(line.split()) for line in normal_lines],
        "numerical_chars_fraction": [
            round(sum(c.isnumeric() and c not in NUMERALS_SINCE for c in line) / len(line), 8) if line else 0.0
            for line in normal_lines
        ],
        "start_with_bulletpoint": [int(line.lstrip().startswith(REDPAJAMA_BULLETS)) for line in lines],
        "uppercase_letter_fraction": [round(sum(map(str.isupper, line)) / len(line), 8) for line in lines],
    }
    return {f"rps_doc_{k}": v for k, v in doc.items()} | {f"rps_lines_{k}": v for k, v in of_each.items()}


def differences(texts: Sequence[str], language: str) -> list[tuple[str, str, Any, Any]]:
    found = []
    values = Redpajama(language=language).tag_batch([Document(text) for text in texts])
    for text, value in zip(texts, map(msgspec.to_builtins, values), strict=True):
        for name, expected in slow(text, stop_words(language)).items():
            if value[name] != expected:
                found.append((text, name, expected, value[name]))
    return found


CHARACTERS = st.characters(
    codec="utf-8", exclude_categories=["Cn"], exclude_characters="\u10fc\ua7f2\ua7f3\ua7f4\uab69"
)
MARKS = "aB1_ .!?#{}-–•”…\n\r\t\f\x85\u2028éÉﬁΣσςİſ½一Ⅷ\u0301\u0323\u1fef\u2126"
WORDS = ["the", "THE", "Lorem, ipsum", "javascript", "Java-Script!", "it is what it is ", "a b c d e f g h i j k "]
REDPAJAMA_PIECES = st.sampled_from([*MARKS, *WORDS, "...", "\r\n", "\n\n"])


@given(
    st.lists(
        st.one_of(st.text(CHARACTERS, max_size=30), st.lists(REDPAJAMA_PIECES, max_size=60).map("".join)), max_size=4
    )
)
def test_signals_are_those_of_the_formulas(texts: list[str]) -> None:
    assert differences(texts, "en") == []


def documents(shared: Path, each: int, chars: int = 5000) -> Iterator[tuple[str, list[str]]]:
    """The first documents of each language."""
    bench = shared / "wet" / "bench"
    with gzip.open(bench / "labels.tsv.gz", "rt", encoding="utf-8") as table:
        rows = (line.split("\t") for line in table)
        language_of = {row[0]: row[3] for row in rows}
    found: dict[str, list[str]] = {}
    for path in sorted(bench.glob("*.warc.wet.gz")):
        with path.open("rb") as stream:
            for record in ArchiveIterator(stream, record_types=WarcRecordType.conversion):
                language = language_of.get(record.headers["WARC-Record-ID"], "")
                if len(have := found.setdefault(language, [])) < each:
                    have.append(record.reader.read().decode(errors="replace")[:chars])
    yield from ((language, texts) for language, texts in sorted(found.items()) if language)


@pytest.mark.slow
def test_signals_of_real_documents(shared: Path) -> None:
    for language, texts in documents(shared, 2, 2000):
        assert [found[1:] for found in differences(texts, language)] == []


@pytest.mark.slow
def test_signals_of_many_real_documents(shared: Path) -> None:
    n = 0
    for language, texts in documents(shared, 25):
        assert [found[1:] for found in differences(texts, language)] == []
        n += len(texts)
    assert n >= 800


def signals(text: str, metadata: dict[str, Any] | None = None, **options: Any) -> dict[str, Any]:
    value = Redpajama(**options).tag(Document(text, metadata=metadata))
    return {name.removeprefix("rps_doc_"): v for name, v in msgspec.to_builtins(value).items()}


def test_long_n_grams_are_found_where_only_their_ends_differ() -> None:
    words = list("bcdefghijk")
    text = " ".join([*words, "x", *words[:9], "y", *words[1:], "z", *words])
    assert differences([text, text + " " + text, "a " * 50, "a b " * 50], "en") == []


@pytest.mark.slow
def test_rounding_is_that_of_python() -> None:
    texts = ["A" * a + "b" * (n - a) for n in (512, 2560, 12800) for a in range(0, 500, 7)]
    assert differences(["\n".join(texts)], "en") == []


def test_lists_of_words_are_of_a_language_or_of_all(tmp_path: Path) -> None:
    by_language, plain = tmp_path / "lists", tmp_path / "plain"
    by_language.mkdir()
    (by_language / "en.txt").write_text("bad\nvery bad\nBad\nso  bad\nit\n")
    (by_language / "fr").write_text("été", encoding="utf-8")
    plain.write_text("bad\nvery bad\n\nbad\n")
    text = "Bad, it's very BAD; été."
    assert signals(text, language="en", ldnoobw=str(by_language))["ldnoobw_words"] == 3
    assert signals(text, ldnoobw=str(plain))["ldnoobw_words"] == 3
    assert signals(text, language="fr", ldnoobw=str(by_language))["ldnoobw_words"] == 0, "the words are decomposed"
    assert signals(text, language="de", ldnoobw=str(by_language))["ldnoobw_words"] is None
    assert signals("", language="en", ldnoobw=str(by_language))["ldnoobw_words"] == 0
    assert signals(text, language="en", stop_words=str(by_language))["stop_word_fraction"] == 0.2
    assert signals("...", language="en", stop_words=str(by_language))["stop_word_fraction"] == 0
    assert signals(text, language="de", stop_words=str(by_language))["stop_word_fraction"] is None
    assert signals(text)["stop_word_fraction"] is None


@pytest.mark.slow
def test_real_lists_of_bad_words(shared: Path) -> None:
    text = (shared / "lists" / "ldnoobw" / "README.md").read_text(encoding="utf-8")
    for path in map(str, sorted((shared / "lists" / "ldnoobw").glob("??"))):
        entries = {line.strip() for line in Path(path).read_text(encoding="utf-8").split("\n")}
        words = normal(text + " ".join(sorted(entries))).split()
        expected = sum(
            " ".join(gram) in entries for n in {e.count(" ") + 1 for e in entries} for gram in grams(words, n)
        )
        assert signals(text + " ".join(sorted(entries)), ldnoobw=path)["ldnoobw_words"] == expected, path


def test_a_domain_has_its_number(tmp_path: Path) -> None:
    numbers = tmp_path / "numbers.json"
    numbers.write_text('{"example.org": 7}')
    for metadata, number in (
        ({"warc_headers": {"warc-target-uri": "https://example.org/a?b"}}, 7),
        ({"url": "http://example.org"}, 7),
        ({"source_domain": "example.org"}, 7),
        ({"url": "http://www.example.org"}, None),
        ({"url": "http://[example.org"}, None),
        ({"url": 3}, None),
        ({}, None),
    ):
        assert signals("a", metadata, ut1=str(numbers))["ut1_blacklist"] == number


def test_values_of_other_attributes_are_copied() -> None:
    document = Document("a")
    document.give("language-0.language.prob", 0.5)
    value = Redpajama(language_score="language-0.language.prob").tag(document)
    assert (value.ccnet_language_score, value.ccnet_perplexity) == (0.5, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "a" * 10**6,
        " " * 10**6,
        "a " * 10**6,
        "\n" * 10**6,
        "a\n" * 10**5,
        "@" * 10**6,
        "1." * 10**6,
        "é" * 10**6,
        "a" + "\u0301\u0323" * 10**5,
    ],
    ids=str.split,
)
def test_no_text_takes_more_than_its_length(text: str) -> None:
    assert Redpajama(language="en").tag(Document(text))


# Importance weights by their formula, scores as fastText gives them.


def signals_redpajama_models(text: str, **options: Any) -> dict[str, Any]:
    value = RedpajamaModels(**options).tag(Document(text))
    return {name.removeprefix("rps_doc_"): v for name, v in msgspec.to_builtins(value).items()}


def test_importance_is_the_sum_over_raw_words_and_pairs(tmp_path: Path) -> None:
    source, books = feature_counts(["a b c", "b c d e"], 16), feature_counts(["a a a", "b"], 16)
    np.savez(tmp_path / "i.npz", source=source[0], books=books[0], source_length=source[1], books_length=books[1])
    text = "A a... b"
    one = Words.of(LineTable.of([text]), "word_punct").hashes
    two = one[:-1] * np.uint64(0x9E3779B97F4A7C15) + one[1:]
    logs = [np.log(counts / counts.sum() + 1e-8) for counts, _ in (books, source)]
    expected = sum(logs[0][h % 16] - logs[1][h % 16] for h in [*one.tolist(), *two.tolist()])
    found = signals_redpajama_models(text, importance=str(tmp_path / "i.npz"))
    assert found["books_importance"] == pytest.approx(expected, abs=1e-8)
    poisson = [math.exp(-mean) * mean ** len(text) / math.factorial(len(text)) for _, mean in (books, source)]
    correction = math.log(poisson[0] + 1e-8) - math.log(poisson[1] + 1e-8)
    assert found["books_importance_length_correction"] == pytest.approx(expected + correction, abs=2e-8)
    assert found["wikipedia_importance"] is None
    assert signals_redpajama_models("", importance=str(tmp_path / "i.npz"))["books_importance"] is None
    np.savez(tmp_path / "bad.npz", books=books[0])
    with pytest.raises(ConfigError, match="with `source` among them"):
        signals_redpajama_models(text, importance=str(tmp_path / "bad.npz"))


def test_scores_are_probabilities_of_not_being_from_the_crawl(tmp_path: Path) -> None:
    import fasttext

    lines = ["__label__cc buy now cheap", "__label__wiki the river is long"] * 50
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n")
    model = fasttext.train_supervised(str(tmp_path / "lines.txt"), thread=12, verbose=0, epoch=20, dim=8, minCount=1)
    model.save_model(path := str(tmp_path / "model.bin"))
    for text, sign in (("buy now\ncheap", -1), ("the river\r\n is long", 1)):
        (best,) = load_fasttext(path).predict([" ".join(text.splitlines())])[0]
        prob = float(np.float32(best.prob))
        found = signals_redpajama_models(text, palm_model=path)
        assert found["ml_palm_score"] == round(prob if sign > 0 else 1 - prob, 8)
        assert (found["ml_palm_score"] > 0.5) is (sign > 0)
        assert found["ml_wikiref_score"] is None
    assert signals_redpajama_models("", palm_model=path)["ml_palm_score"] is None
