"""The variant `paper` against a slow rendering of its definitions; other variants against what their origins give."""

import re
from pathlib import Path
from statistics import mean, median
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taggers.gopher_quality import BULLETS, ENGLISH, GopherQuality, Quality
from tests.taggers.test_gopher_repetition import TEXT, real_texts
from toolkit import Batch, ConfigError, Document
from toolkit.text import stop_words


def slow_paper(text: str) -> Quality:
    document = Document(text)
    words, lines = document.words, [line.strip() for line in document.lines if line.strip()]
    n, n_lines = max(len(words), 1), max(len(lines), 1)
    hashes, ellipses = text.count("#"), len(re.findall(r"\.{3,}|…+", text))
    stops = [word.lower() for word in words if word.lower() in ENGLISH]
    return Quality(
        words=len(words),
        mean_word_length=mean(map(len, words)) if words else 0.0,
        median_word_length=float(median(map(len, words))) if words else 0.0,
        hashes_per_word=hashes / n,
        ellipses_per_word=ellipses / n,
        symbols_per_word=(hashes + ellipses) / n,
        bullet_line_share=sum(line[0] in BULLETS for line in lines) / n_lines,
        ellipsis_line_share=sum(line.endswith(("...", "…")) for line in lines) / n_lines,
        alphabetic_word_share=sum(any(map(str.isalpha, word)) for word in words) / n,
        stop_words=len(stops),
        distinct_stop_words=len(set(stops)),
        stop_word_share=len(stops) / n,
        stop_list=8,
    )


WORDS = [
    "The",
    "the",
    "be",
    "WITH",
    "that",
    "x",
    "Ω",
    "一",
    "\U00010400",
    "12",
    "#",
    ".",
    "..",
    "…",
    "-",
    "•",
    "\U0001f600",
]
SPACES = [*"    \n\n\n\t\x0b\x1c\x85\xa0\u1680\u2009\u2028\u3000\u200b", "\r\n"]
TEXTS = st.lists(st.sampled_from(WORDS + SPACES), max_size=60).map("".join) | st.text(
    st.characters(exclude_categories=["Cs", "Cn"])  # what this Python knows
)


@settings(deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_paper_is_as_defined_in_any_batch(texts: list[str]) -> None:
    assert GopherQuality().tag_batch([Document(text) for text in texts]) == [slow_paper(text) for text in texts]


def test_paper_is_as_defined_on_real_documents(shared: Path) -> None:
    texts = real_texts(shared)
    assert GopherQuality().tag_batch([Document(text) for text in texts]) == [slow_paper(text) for text in texts]


ORIGINS: dict[str, dict[str, float]] = {  # what datatrove 0.10.1, Dolma 1.2.1 and RedPajama-V2's formulas give
    "datatrove": {
        "words": 75, "mean_word_length": 3.84, "hashes_per_word": 0.00980392156862745,
        "ellipses_per_word": 0.0392156862745098, "alphabetic_word_share": 0.6666666666666666,
        "bullet_line_share": 0.25, "ellipsis_line_share": 0.25, "distinct_stop_words": 4,
    },
    "dolma": {
        "words": 77, "median_word_length": 4.0, "symbols_per_word": 0.03896103896103896,
        "alphabetic_word_share": 0.8051948051948052, "stop_words": 12, "bullet_line_share": 0.25,
        "ellipsis_line_share": 0.08333333333333333,
    },
    "dolma_v2": {
        "words": 77, "median_word_length": 4.0, "symbols_per_word": 0.03896103896103896,
        "alphabetic_word_share": 0.8051948051948052, "stop_words": 12, "bullet_line_share": 0.375,
        "ellipsis_line_share": 0.125,
    },
    "redpajama": {
        "words": 73, "mean_word_length": 3.8904109589041096, "symbols_per_word": 0.042735042735042736,
        "alphabetic_word_share": 0.5897435897435898, "stop_word_share": 0.10256410256410256,
        "ellipsis_line_share": 0.25, "bullet_line_share": 0.16666666666666666,
    },
}  # fmt: skip


@pytest.mark.parametrize("variant", ORIGINS)
def test_other_variants_are_what_their_origins_give(variant: Any) -> None:
    found = msgspec.to_builtins(GopherQuality(variant=variant).tag(Document(TEXT)))
    assert {name: found[name] for name in ORIGINS[variant]} == ORIGINS[variant]


def test_a_splitter_changes_what_words_are() -> None:
    document = Document("- - it's 5 €")
    assert GopherQuality().tag(document).words == 2
    assert GopherQuality(splitter="white_space").tag(document).words == 5
    assert GopherQuality(splitter="white_space").tag(document).alphabetic_word_share == 0.2


def test_stop_words_are_those_of_each_documents_language() -> None:
    texts = ["The end and the", "le fin et la", "le fin et la", "le and the", "le and the", ""]
    labels = ["en", "fr", "fr", None, "tlh", "en"]
    documents = [Document(text) for text in texts]
    for document, label in zip(documents, labels, strict=True):
        document.give("language-0.language.label", label)
    for variant in ("paper", "dolma"):
        tagger = GopherQuality(language="language-0.language.label", variant=variant)
        found = tagger.tag_batch(Batch(documents))
        assert [each.stop_list for each in found] == [8, *[len(stop_words("fr"))] * 2, 0, 0, 8]
        assert [each.distinct_stop_words for each in found] == [2, 3, 3, 0, 0, 0]
        assert [each.stop_words for each in found] == [3 if variant == "paper" else 2, 3, 3, 0, 0, 0]
    assert GopherQuality(language="fr").tag(documents[1]).distinct_stop_words == 3
    given = GopherQuality(language="fr", stop_words=("and", "the end"))
    assert [given.tag(document).stop_words for document in documents] == [1, 0, 0, 1, 1, 0]
    assert given.tag(documents[0]).stop_list == 2
    assert GopherQuality(stop_words=()).tag(documents[0]).stop_words == 0


def test_bullets_are_those_that_are_asked_for() -> None:
    text = "● one\n• two\n* three\n- four\n▶ five\n– six\nseven\neight"
    assert GopherQuality().tag(Document(text)).bullet_line_share == 6 / 8
    assert GopherQuality(bullets="●•*-").tag(Document(text)).bullet_line_share == 4 / 8
    with pytest.raises(ConfigError, match="expected the variant `paper`"):
        GopherQuality(variant="dolma", bullets="*").check()
