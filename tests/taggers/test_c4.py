"""C4's rules against a slow rendering of what the documentation says, and the order in which C4's code has them."""

import gzip
import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taggers._c4_lines import CLOSERS, POLICIES, QUOTES
from taggers.c4 import C4, Page
from toolkit import Batch, Document, Span
from toolkit.text import TERMINALS, split_lines
from toolkit.text.editing import apply, edits_of_spans
from toolkit.text.words import words_of

CITATION = re.compile(r"\[[0-9]*\]|\[edit\]|\[citation needed\]")
LOWER = {ord(c): c.lower() for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}

PIECES = st.sampled_from([
    "word", "Word ", "words of ", " ", "\n", "\r\n", "\t", ".", "...", "!", "?", '"', "'", ")", ",", "。", "」", "؟ ",
    "…", "é", "É", "一", "3", "[1]", "[]", "[edit]", "[citation needed]", "[1", "[edit", "JavaScript", "java", "script",
    "lorem", " IPSUM", "{", "terms of use", "We use cookies", "uses\u00a0cookies", "\u2028", "\u0301", "x" * 30, "👍",
    "A.\n", "It is a test of all.\n",
])  # fmt: skip
TEXTS = st.lists(PIECES, max_size=40).map("".join)


def real_texts(shared: Path, each: int) -> list[str]:
    """Some documents of each file: English, Spanish, Serbian."""
    texts = []
    for path in sorted((shared / "quality").glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            texts += [json.loads(line)["text"] for _, line in zip(range(each), stream, strict=False)]
    return texts


def left(text: str, cuts: list[Span]) -> str:
    return apply(text, edits_of_spans(cuts, "", text)).text


def slow_sentences(line: str) -> int:
    begun, behind = 0, None
    for c in line:
        if not c.isalnum():
            behind = None if behind is None else behind + c
            continue
        if behind is None:
            begun += 1
        elif marks := [i for i, mark in enumerate(behind) if mark in TERMINALS]:
            mark, after = behind[marks[-1]], behind[marks[-1] + 1 :]
            apart = not mark.isascii() or after.lstrip(CLOSERS)[:1].isspace()
            begun += apart and not (mark == "." and c.islower())
        behind = ""
    return begun


def slow_page(text: str, max_word_chars: int = 1000) -> tuple[str, dict[str, Any]]:
    """What is left of a text, and the figures."""
    found: dict[str, Any] = dict.fromkeys(Page.__struct_fields__, 0) | {"line_ends": []}
    found["lines"] = len(split_lines(text))
    kept = []
    for line in split_lines(text):
        lower, seen = line.translate(LOWER), CITATION.sub("", line).strip()
        cited = sum(len(words_of(citation)) for citation in CITATION.findall(line))
        words = len(words_of(line)) - cited
        found["lorem_first"] |= "lorem ipsum" in lower and not found["curly_bracket"]
        found["lorem_ipsum"] |= "lorem ipsum" in lower
        found["curly_bracket"] |= "{" in line
        found["paragraphs"] += len(line) >= 200
        if any(len(word) > max_word_chars for word in CITATION.sub("", line).split()):
            found["long_word"] += 1
        elif seen[-1:] not in TERMINALS | set(QUOTES) or seen.endswith("..."):
            found["no_end_mark"] += 1
        elif words < 5:
            found["few_words"] += 1
        elif "javascript" in lower:
            found["javascript"] += 1
        elif any(policy in lower for policy in POLICIES):
            found["policy"] += 1
        else:
            kept.append(seen)
            found["words"] += words
            found["sentences"] += slow_sentences(seen)
    found["kept_lines"] = len(kept)
    return "\n".join(kept), found


def check(text: str, page: Page, **options: int) -> None:
    expected, figures = slow_page(text, **options)
    assert left(text, page.cuts) == expected
    got = {name: getattr(page, name) for name in figures}
    assert got == figures | {"cuts": page.cuts, "bad_word": None}


@given(st.lists(TEXTS, max_size=4))
def test_lines_figures_and_cuts_are_as_described(texts: list[str]) -> None:
    tagger = C4(max_word_chars=25)
    for text, page in zip(texts, tagger.tag_batch([Document(text) for text in texts]), strict=True):
        check(text, page, max_word_chars=25)


@pytest.mark.slow
def test_real_documents_are_as_described(shared: Path) -> None:
    texts = real_texts(shared, 100)
    for text, page in zip(texts, C4().tag_batch(Batch([Document(text) for text in texts])), strict=True):
        check(text, page)


def test_cuts_never_touch_each_other() -> None:
    text = "No mark\n[1] One two three four five.[2][3]  \n\nNo\nSix seven eight nine ten![4]\nNo"
    page = C4().tag(Document(text))
    assert left(text, page.cuts) == "One two three four five.\nSix seven eight nine ten!"
    assert all(a.end < b.start for a, b in pairwise(page.cuts))


KEPT = "This line stays as it is."


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("lorem ipsum { without a mark", {"lorem_ipsum": False, "curly_bracket": False, "no_end_mark": 1}),
        ("Lorem ipsum { if javascript.", {"lorem_ipsum": True, "curly_bracket": False, "javascript": 1}),
        ("Terms of use { and more words.", {"curly_bracket": True, "policy": 1}),
        ("w" * 1001 + " and some more words.", {"long_word": 1}),
        ("One two three four[1].", {"few_words": 1}),
        ("One two three four five. [1]", {"no_end_mark": 1}),
        ("One two three four five...", {"no_end_mark": 1}),
        ("One two three four 'five'", {"no_end_mark": 1}),
    ],
)
def test_code_has_the_order_of_the_reference_code(line: str, expected: dict[str, Any]) -> None:
    page = C4(variant="code").tag(Document(f"{KEPT}\n{line}"))
    assert {name: getattr(page, name) for name in expected} == expected
    assert left(f"{KEPT}\n{line}", page.cuts) == KEPT


def test_datatrove_counts_words_with_citations_and_takes_apostrophes() -> None:
    text = " Three words [1].\u2028'It was'[2]\r\n\r\n 'That was all' "
    page = C4(variant="datatrove").tag(Document(text))
    assert left(text, page.cuts) == "Three words .\n'That was all'"
    assert (page.lines, page.kept_lines, page.words, page.few_words) == (4, 2, 6, 1)


@pytest.mark.parametrize("variant", ["paper", "code", "datatrove"])
def test_bad_words_are_whole_words(variant: Any, tmp_path: Path) -> None:
    (tmp_path / "en").write_text("hell\nvery bad\ns&m\n")

    def found(middle: str, language: str | None = "en") -> bool | None:
        tagger = C4(variant=variant, bad_words=str(tmp_path), language=language)
        return tagger.tag_batch([Document(f"This is a line with {middle} in it.")])[0].bad_word

    assert [found(each) for each in ("HELL", "very bad", "s&m")] == [True, True, True]
    assert [found(each) for each in ("shell", "hello", "very, bad", "sizes S, M")] == [False, False, False, False]
    assert found("hell", None) is None
    assert found("hell", "fr") is None


@pytest.mark.parametrize("variant", ["paper", "code", "datatrove"])
def test_a_word_of_chinese_is_found_anywhere(variant: Any, tmp_path: Path) -> None:
    (tmp_path / "zh").write_text("地獄\n")
    tagger = C4(variant=variant, bad_words=str(tmp_path), language="zh", min_words=0)
    assert [tagger.tag(Document(text)).bad_word for text in ("在地獄裡!", "在地裡獄!")] == [True, False]
