"""`statistics`: the mended variant beside a slow plain one, EuroLingua's by hand."""

import gzip
import json
import math
import random
import re
from collections import Counter
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from taggers.statistics import Statistics
from toolkit import Document
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
