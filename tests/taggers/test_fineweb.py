"""FineWeb's figures against datatrove's definitions, with the words of each variant."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taggers.fineweb import Fineweb, Ratios
from tests.taggers.test_c4 import real_texts
from toolkit import Batch, Document
from toolkit.text import TERMINALS, spacy_words, split_lines
from toolkit.text.words import words_of

MARKS = tuple(TERMINALS)
PIECES = st.sampled_from([
    "a", "word ", " ", "\n", "\r\n", "\n\n", ".", "!", "?", '"', "。", "؟", "।", "៙", "\U00016e98", "é", "一", "\u00a0",
    "\u2003", "\u0301", "👍", "The same line.\n", "x" * 29, "1,5",
])  # fmt: skip


def slow_ratios(lines: list[str], chars: int, feeds: int, words: int, short: int) -> Ratios:
    lines = [line for line in lines if line.strip()]
    n = max(len(lines), 1)
    again = sum(len(line) for i, line in enumerate(lines) if line in lines[:i])
    return Ratios(
        len(lines),
        sum(line.endswith(MARKS) for line in lines) / n,
        sum(len(line) <= short for line in lines) / n,
        again / max(chars, 1),
        feeds / max(words, 1),
    )


def check(text: str, ours: Ratios, theirs: Ratios, short: int = 30) -> None:
    lines = split_lines(text)
    assert ours == slow_ratios(lines, sum(map(len, lines)), text.count("\n"), len(words_of(text)), short)
    lines = text.split("\n")
    words = sum(1 for word in spacy_words(text, "en") if word.strip())
    assert theirs == slow_ratios(lines, sum(map(len, lines)), text.count("\n"), words, short)


@given(st.lists(st.lists(PIECES, max_size=30).map("".join), max_size=4))
def test_figures_are_as_described(texts: list[str]) -> None:
    documents = [Document(text) for text in texts]
    found = [
        Fineweb(short_line_chars=28).tag_batch(documents),
        Fineweb(variant="datatrove", short_line_chars=28).tag_batch(documents),
    ]
    for text, ours, theirs in zip(texts, *found, strict=True):
        check(text, ours, theirs, 28)


def test_real_documents_are_as_described(shared: Path) -> None:
    batch = Batch([Document(text) for text in real_texts(shared, 40)])
    for document, ours, theirs in zip(
        batch, Fineweb().tag_batch(batch), Fineweb(variant="datatrove").tag_batch(batch), strict=True
    ):
        check(document.text, ours, theirs)


@pytest.mark.parametrize("variant", ["ours", "datatrove"])
def test_no_lines_and_no_words_give_zeros(variant: str) -> None:
    tagger = Fineweb(variant=variant)  # type: ignore[arg-type]
    assert tagger.tag(Document(" \n\u00a0\n")) == Ratios(0, 0.0, 0.0, 0.0, 2.0)
