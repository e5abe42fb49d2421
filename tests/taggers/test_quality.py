"""The variant `paper` against a slow rendering of its definitions; other variants against what their origins give."""

import gzip
import itertools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from taggers._c4_lines import CLOSERS, POLICIES, QUOTES
from taggers.c4 import C4, Page
from taggers.fineweb import Fineweb, Ratios
from taggers.gopher_quality import BULLETS, ENGLISH, GopherQuality, Quality
from taggers.gopher_repetition import GopherRepetition, Repetition
from taggers.refinedweb_lines import COUNTED, RefinedwebLines, Removed
from taggers.roots import Ratios as RootsRatios, Roots
from toolkit import Batch, ConfigError, Document, Span
from toolkit.text import TERMINALS, spacy_words, split_lines, stop_words
from toolkit.text.editing import apply, edits_of_spans
from toolkit.text.words import words_of


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


@pytest.mark.slow
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


# The variant `paper` against a slow rendering of its definitions; other variants against what their origins give.

TEXT = (
    "The small museum opens at 9.30 a.m. #culture … and closes at five...\n"
    "\n"
    "- Don't bring food; don't bring drinks.\n"
    "• Don't bring food; don't bring drinks.\n"
    "* tickets cost $5.00 (students: $2) ...\n"
    "\n\n"
    "To reach the small museum, take line 4 to the end of the park…\n"
    "To reach the small museum, take line 4 to the end of the park, and walk.\r\n"
    " – Öffnungszeiten: 9–17 Uhr ‽ » \n"
    "\n"
    "- Don't bring food; don't bring drinks."
)


def real_texts(shared: Path, each: int = 25) -> list[str]:
    """Some documents of each file: English, Spanish, Serbian."""
    texts = []
    for path in sorted((shared / "quality").glob("*.jsonl.gz")):
        with gzip.open(path) as stream:
            texts += [msgspec.json.decode(row)["text"] for row in itertools.islice(stream, each)]
    assert texts
    return texts


def again(parts: Sequence[Sequence[str]]) -> tuple[float, float]:
    """Of parts that are lines, which have characters: the share of those that came before, and of their characters."""
    sizes = [sum(map(len, part)) for part in parts]
    seen = [part in parts[:i] for i, part in enumerate(parts)]
    chars = sum(size for size, known in zip(sizes, seen, strict=True) if known)
    return sum(seen) / max(len(parts), 1), chars / max(sum(sizes), 1)


def slow_paper_gopher_repetition(text: str, *, case: bool = False) -> Repetition:
    lines = [line.strip() for line in Document(text).lines]
    paragraphs = [list(group) for some, group in itertools.groupby(lines, bool) if some]
    shares = [*again([[line] for line in lines if line]), *again(paragraphs)]
    words = Document(text).words
    sizes = list(map(len, words))
    for n in range(2, 11):
        ngrams = [tuple(map(str if case else str.lower, words[i : i + n])) for i in range(len(words) - n + 1)]
        counts = Counter(ngrams)
        if n < 5:
            top, count = max(counts.items(), key=lambda item: item[1], default=((), 0))
            first = ngrams.index(top) if top else 0
            shares.append(min(sum(sizes[first : first + n]) * count / max(sum(sizes), 1), 1) if count > 1 else 0.0)
        else:
            covered = {i + j for i, ngram in enumerate(ngrams) if counts[ngram] > 1 for j in range(n)}
            shares.append(sum(sizes[i] for i in covered) / max(sum(sizes), 1))
    return Repetition(*shares)


PIECES = ["a", "A", "bc", "é", "一", "\U0001f600", "\n\n", "\r\n", *"-\n  \t\x85\xa0\u1680\u3000"]
GOPHER_REPETITION_TEXTS = st.lists(st.sampled_from(PIECES), max_size=80).map("".join) | st.text("ab \n", max_size=200)


@settings(deadline=None)
@given(st.lists(GOPHER_REPETITION_TEXTS, min_size=1, max_size=4), st.booleans())
def test_paper_is_as_defined_in_any_batch_gopher_repetition(texts: list[str], case: bool) -> None:
    found = GopherRepetition(case=case).tag_batch([Document(text) for text in texts])
    assert found == [slow_paper_gopher_repetition(text, case=case) for text in texts]


@pytest.mark.slow
def test_paper_is_as_defined_on_real_documents_gopher_repetition(shared: Path) -> None:
    texts = real_texts(shared)
    for case in (False, True):
        found = GopherRepetition(case=case).tag_batch([Document(text) for text in texts])
        assert found == [slow_paper_gopher_repetition(text, case=case) for text in texts]


def test_case_is_of_the_variant_paper() -> None:
    with pytest.raises(ConfigError, match="case: expected the variant paper with it, got 'dolma'"):
        GopherRepetition(variant="dolma", case=True).check()


def test_paragraphs_end_with_the_document() -> None:
    texts = ["a\nb\n\na\nb", "a\nb", "", "\n", "a\n\na\n", "a\nb\n \t\r\na\nb\n\n"]
    found = GopherRepetition().tag_batch([Document(text) for text in texts])
    assert [each.duplicate_paragraph_share for each in found] == [0.5, 0, 0, 0, 0.5, 0.5]
    assert [each.duplicate_line_share for each in found] == [0.5, 0, 0, 0, 0.5, 0.5]


COLUMNS = Repetition.__struct_fields__
GOPHER_REPETITION_ORIGINS: dict[str, list[float]] = {
    # by datatrove 0.10.1, Dolma 1.2.1, RedPajama-V2's formulas; else as `paper`
    "datatrove": [
        0.125, 0.09701492537313433, 0.0, 0.0, 0.13432835820895522, 0.08955223880597014, 0.12686567164179105,
        0.27860696517412936, 0.1791044776119403, 0.20398009950248755, 0.1890547263681592, 0.21890547263681592,
        0.24129353233830847,
    ],
    "dolma": [
        0.5, 0.2445141065830721, 0.0, 0.0, 0.09404388714733543, 0.14106583072100312, 0.18808777429467086,
        0.34561286001339586, 0.2743764172335601, 0.20236920039486672, 0.1471747700394218, 0.12564203871987356,
        0.10154843356139719,
    ],
    "dolma_v2": [
        0.25, 0.2445141065830721, 0.0, 0.0, 0.09404388714733543, 0.14106583072100312, 0.18808777429467086,
        0.34561286001339586, 0.2743764172335601, 0.20236920039486672, 0.1471747700394218, 0.12564203871987356,
        0.10154843356139719,
    ],
    "redpajama": [
        0.125, 0.10051546391752578, 0.0, 0.0, 0.19014084507042253, 0.14788732394366197, 0.1795774647887324,
        0.5985915492957746, 0.5985915492957746, 0.3028169014084507, 0.3028169014084507, 0.3028169014084507,
        0.3028169014084507,
    ],
}  # fmt: skip


@pytest.mark.parametrize("variant", GOPHER_REPETITION_ORIGINS)
def test_other_variants_are_what_their_origins_give_gopher_repetition(variant: Any) -> None:
    found = msgspec.structs.astuple(GopherRepetition(variant=variant).tag(Document(TEXT)))
    assert dict(zip(COLUMNS, found, strict=True)) == dict(zip(COLUMNS, GOPHER_REPETITION_ORIGINS[variant], strict=True))


@pytest.mark.parametrize("variant", GOPHER_REPETITION_ORIGINS)
def test_other_variants_are_the_same_in_any_batch(variant: Any) -> None:
    tagger = GopherRepetition(variant=variant)
    documents = [Document(text) for text in ("", TEXT, "a", " \n", "a b " * 20, TEXT[:50], "")]
    assert list(tagger.tag_batch(documents)) == [tagger.tag(document) for document in documents]


def test_what_overlaps_is_at_most_all() -> None:
    document = Document("a " * 100)
    assert GopherRepetition().tag(document).top_2gram_char_share == 1
    assert GopherRepetition(variant="redpajama").tag(document).top_2gram_char_share == 1.98
    assert GopherRepetition(variant="dolma").tag(document).duplicate_5gram_char_share == 1


# C4's rules against a slow rendering of what the documentation says, and the order in which C4's code has them.

CITATION = re.compile(r"\[[0-9]*\]|\[edit\]|\[citation needed\]")
LOWER = {ord(c): c.lower() for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}

C4_PIECES = st.sampled_from([
    "word", "Word ", "words of ", " ", "\n", "\r\n", "\t", ".", "...", "!", "?", '"', "'", ")", ",", "。", "」", "؟ ",
    "…", "é", "É", "一", "3", "[1]", "[]", "[edit]", "[citation needed]", "[1", "[edit", "JavaScript", "java", "script",
    "lorem", " IPSUM", "{", "terms of use", "We use cookies", "uses\u00a0cookies", "\u2028", "\u0301", "x" * 30, "👍",
    "A.\n", "It is a test of all.\n",
])  # fmt: skip
C4_TEXTS = st.lists(C4_PIECES, max_size=40).map("".join)


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


@given(st.lists(C4_TEXTS, max_size=4))
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


# FineWeb's figures against datatrove's definitions, with the words of each variant.

MARKS = tuple(TERMINALS)
FINEWEB_PIECES = st.sampled_from([
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


def check_fineweb(text: str, ours: Ratios, theirs: Ratios, short: int = 30) -> None:
    lines = split_lines(text)
    assert ours == slow_ratios(lines, sum(map(len, lines)), text.count("\n"), len(words_of(text)), short)
    lines = text.split("\n")
    words = sum(1 for word in spacy_words(text, "en") if word.strip())
    assert theirs == slow_ratios(lines, sum(map(len, lines)), text.count("\n"), words, short)


@given(st.lists(st.lists(FINEWEB_PIECES, max_size=30).map("".join), max_size=4))
def test_figures_are_as_described(texts: list[str]) -> None:
    documents = [Document(text) for text in texts]
    found = [
        Fineweb(short_line_chars=28).tag_batch(documents),
        Fineweb(variant="datatrove", short_line_chars=28).tag_batch(documents),
    ]
    for text, ours, theirs in zip(texts, *found, strict=True):
        check_fineweb(text, ours, theirs, 28)


@pytest.mark.slow
def test_real_documents_are_as_described_fineweb(shared: Path) -> None:
    batch = Batch([Document(text) for text in real_texts(shared, 40)])
    for document, ours, theirs in zip(
        batch, Fineweb().tag_batch(batch), Fineweb(variant="datatrove").tag_batch(batch), strict=True
    ):
        check_fineweb(document.text, ours, theirs)


@pytest.mark.parametrize("variant", ["ours", "datatrove"])
def test_no_lines_and_no_words_give_zeros(variant: str) -> None:
    tagger = Fineweb(variant=variant)  # type: ignore[arg-type]
    assert tagger.tag(Document(" \n\u00a0\n")) == Ratios(0, 0.0, 0.0, 0.0, 2.0)


# RefinedWeb's rules for lines, one step after the other on the whole text, as DCLM does them.

REFINEDWEB_LINES_PIECES = st.sampled_from([
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


def check_refinedweb_lines(text: str, found: Removed) -> None:
    expected = slow_result(text)
    assert left(text, found.cuts).rstrip("\n") == expected.rstrip("\n")
    words = slow_words(text)
    assert (found.words, found.removed_words) == (words, words - slow_words(expected))


@given(st.lists(st.lists(REFINEDWEB_LINES_PIECES, max_size=25).map("".join), max_size=4))
def test_what_is_left_is_what_dclm_leaves(texts: list[str]) -> None:
    for text, found in zip(texts, RefinedwebLines().tag_batch([Document(text) for text in texts]), strict=True):
        check_refinedweb_lines(text, found)


@pytest.mark.slow
def test_what_is_left_of_real_documents_is_what_dclm_leaves(shared: Path) -> None:
    batch = Batch([Document(text) for text in real_texts(shared, 150)])
    for document, found in zip(batch, RefinedwebLines().tag_batch(batch), strict=True):
        check_refinedweb_lines(document.text, found)


def test_lines_count_for_the_first_rule_that_they_break() -> None:
    long = "a " * 9 + "read more..."
    lines = ["A", "1", "2 VIEWS", "2 views", "word", "items in cart", "Sign-in items in cart", "Sign-in now", long]
    found = RefinedwebLines().tag(Document("\n".join(lines)))
    assert (found.uppercase, found.numeric, found.counter, found.short) == (2, 1, 1, 1)
    assert (found.emptied, found.trimmed) == (2, 1)
    assert left("\n".join(lines), found.cuts) == f"now\n{long}"


# ROOTS's figures against their definitions, in plain Python.

ROOTS_PIECES = st.sampled_from([
    "a", "b", "the ", "The ", "of the ", " ", "\n", ".", "é", "一", "👍", "½", "\r\n", "#", "3", "don't ", "\u200b",
])  # fmt: skip


def slow_ratios_roots(text: str, chars: int, n: int, language: str | None) -> RootsRatios:
    words = [word.lower() for word in words_of(text)]
    of_chars = Counter(text[i : i + chars] for i in range(len(text) - chars + 1))
    several = sum(count > 1 for count in of_chars.values())
    k = min(math.isqrt(len(of_chars)), several)
    of_words = Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
    special = sum(c.isspace() or unicodedata.category(c)[0] in "PSN" or c == "\u200b" for c in text)
    listed = stop_words(language) if language else ()
    return RootsRatios(
        len(words),
        sum(sorted(of_chars.values())[::-1][:k]) / max(of_chars.total(), 1),
        sum(count for count in of_words.values() if count > 1) / max(of_words.total(), 1),
        special / max(len(text), 1),
        sum(word in listed for word in words) / max(len(words), 1) if listed else None,
        None,
    )


@given(st.lists(st.lists(ROOTS_PIECES, max_size=40).map("".join), max_size=4), st.integers(1, 4), st.integers(1, 3))
def test_figures_are_as_described_roots(texts: list[str], chars: int, n: int) -> None:
    tagger = Roots(chars=chars, sequence_words=n, language="en")
    for text, found in zip(texts, tagger.tag_batch([Document(text) for text in texts]), strict=True):
        assert found == slow_ratios_roots(text, chars, n, "en")


@pytest.mark.slow
def test_real_documents_are_as_described_roots(shared: Path) -> None:
    batch = Batch([Document(text) for text in real_texts(shared, 60)])
    for document, found in zip(batch, Roots().tag_batch(batch), strict=True):
        assert found == slow_ratios_roots(document.text, 10, 5, None)


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
