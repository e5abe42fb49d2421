"""RefinedWeb's rules for lines, one step after the other on the whole text, as DCLM does them."""

import re
from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from taggers.refinedweb_lines import COUNTED, RefinedwebLines, Removed
from tests.taggers.test_c4 import left, real_texts
from toolkit import Batch, Document

PIECES = st.sampled_from([
    "word ", "WORD ", "É", "é", " ", "\n", "\n\n", "\n\r\n", "12", "3.5K likes", " 7 Followers!", "likes", "一二", "½",
    "٣", "\t", "\0", "\u00a0", "\u2003", "_", "3 items in cart", " Items in CART", "Read more...",
    "read more \u00bb\u00bb",
    "Sign-in", "sign-in ", "\u0130", "ǅ", "two words\n", "x ", "👍",
])  # fmt: skip
COUNTER = re.compile(rf"^\W*\d(?:,|\.|\d)*(?:k|m|b)?\s+(?:{COUNTED.replace(' ', '|')})\W*$")


def slow_words(text: str) -> int:
    return sum(1 for word in re.split("[ \t\n\v\f\r\0]", text) if word[:1].isalnum())


def slow_result(text: str) -> str:
    steps: list[Callable[[str], bool]] = [
        lambda line: sum(map(str.isupper, line)) / len(line) > 0.5,
        str.isdigit,
        lambda line: COUNTER.search(line.lower()) is not None,
        lambda line: len(line.split()) < 2,
    ]
    for goes in steps:
        text = "\n".join(line for line in text.split("\n") if not line or not goes(line))
    for part in (r"\s?items in cart", r"\s?read more...$", r"^sign-in\s?"):
        lines = []
        for line in text.split("\n"):
            other = re.sub(part, "", line, flags=re.IGNORECASE) if len(line.split()) <= 10 else line
            if not line or other.strip():
                lines.append(other)
        text = "\n".join(lines)
    return text


def check(text: str, found: Removed) -> None:
    expected = slow_result(text)
    assert left(text, found.cuts).rstrip("\n") == expected.rstrip("\n")
    words = slow_words(text)
    assert (found.words, found.removed_words) == (words, words - slow_words(expected))


@given(st.lists(st.lists(PIECES, max_size=25).map("".join), max_size=4))
def test_what_is_left_is_what_dclm_leaves(texts: list[str]) -> None:
    for text, found in zip(texts, RefinedwebLines().tag_batch([Document(text) for text in texts]), strict=True):
        check(text, found)


def test_what_is_left_of_real_documents_is_what_dclm_leaves(shared: Path) -> None:
    batch = Batch([Document(text) for text in real_texts(shared, 150)])
    for document, found in zip(batch, RefinedwebLines().tag_batch(batch), strict=True):
        check(document.text, found)


def test_lines_count_for_the_first_rule_that_they_break() -> None:
    long = "a " * 9 + "read more..."
    lines = ["A", "1", "2 VIEWS", "2 views", "word", "items in cart", "Sign-in items in cart", "Sign-in now", long]
    found = RefinedwebLines().tag(Document("\n".join(lines)))
    assert (found.uppercase, found.numeric, found.counter, found.short) == (2, 1, 1, 1)
    assert (found.emptied, found.trimmed) == (2, 1)
    assert left("\n".join(lines), found.cuts) == f"now\n{long}"
