"""ROOTS's figures against their definitions, in plain Python."""

import math
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taggers.roots import Ratios, Roots
from tests.taggers.test_c4 import real_texts
from toolkit import Batch, Document
from toolkit.text import stop_words
from toolkit.text.words import words_of

PIECES = st.sampled_from([
    "a", "b", "the ", "The ", "of the ", " ", "\n", ".", "é", "一", "👍", "½", "\r\n", "#", "3", "don't ", "\u200b",
])  # fmt: skip


def slow_ratios(text: str, chars: int, n: int, language: str | None) -> Ratios:
    words = [word.lower() for word in words_of(text)]
    of_chars = Counter(text[i : i + chars] for i in range(len(text) - chars + 1))
    several = sum(count > 1 for count in of_chars.values())
    k = min(math.isqrt(len(of_chars)), several)
    of_words = Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
    special = sum(c.isspace() or unicodedata.category(c)[0] in "PSN" or c == "\u200b" for c in text)
    listed = stop_words(language) if language else ()
    return Ratios(
        len(words),
        sum(sorted(of_chars.values())[::-1][:k]) / max(of_chars.total(), 1),
        sum(count for count in of_words.values() if count > 1) / max(of_words.total(), 1),
        special / max(len(text), 1),
        sum(word in listed for word in words) / max(len(words), 1) if listed else None,
        None,
    )


@given(st.lists(st.lists(PIECES, max_size=40).map("".join), max_size=4), st.integers(1, 4), st.integers(1, 3))
def test_figures_are_as_described(texts: list[str], chars: int, n: int) -> None:
    tagger = Roots(chars=chars, sequence_words=n, language="en")
    for text, found in zip(texts, tagger.tag_batch([Document(text) for text in texts]), strict=True):
        assert found == slow_ratios(text, chars, n, "en")


def test_real_documents_are_as_described(shared: Path) -> None:
    batch = Batch([Document(text) for text in real_texts(shared, 60)])
    for document, found in zip(batch, Roots().tag_batch(batch), strict=True):
        assert found == slow_ratios(document.text, 10, 5, None)


def test_words_between_white_space_are_without_special_characters_around(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolkit.text.languages.words.datatrove_words", lambda text, language: list(text))
    tagger = Roots(splitter="white_space", sequence_words=2, language="language-0.language.label")
    texts = [
        "“Don't,” he said… — 3 4 (don't) e-mail №\n\t#said\xa0\r\n",
        "一二 三",
        "一二 三",
        "-" * 200_000 + "a" + "-" * 200_000,
        "a\xa0b",
        "\u200bthe\u200b \u200b",
    ]
    batch = [Document(text) for text in texts]
    for document, label in zip(batch, ("en", "zh", "en", "en", "en", "en"), strict=True):
        document.give("language-0.language.label", label)
    found = tagger.tag_batch(batch)
    assert [each.words for each in found] == [6, 3, 2, 1, 1, 1]  # don't he said don't e-mail said
    words = ("don't", "he", "said", "don't", "e-mail", "said")
    assert found[0].stop_words == sum(word in stop_words("en") for word in words) / 6
    assert found[5].stop_words == 1
    assert tagger.tag_batch(batch[:1]) == found[:1]


def test_lists_go_by_language(tmp_path: Path) -> None:
    (tmp_path / "en.txt").write_text("Bad\nvery bad\nworse\n")
    documents = [Document("BAD, bad; worse or very good") for _ in range(3)]
    for document, label in zip(documents, ("en", "fr", None), strict=True):
        document.give("language-0.language.label", label)
    tagger = Roots(flagged_words=str(tmp_path), language="language-0.language.label")
    found = tagger.tag_batch(documents)
    assert [each.flagged_words for each in found] == [0.5, None, None]
    assert [each.stop_words is None for each in found] == [False, False, True]
    one_list = Roots(flagged_words=str(tmp_path / "en.txt")).tag(documents[2])
    assert one_list.flagged_words == pytest.approx(0.5)
