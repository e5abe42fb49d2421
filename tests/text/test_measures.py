"""Measures of lines, paragraphs and words, by hand; the tagger `statistics` has them beside a slow plain reference."""

import json
import math
import sys
from collections import Counter

import msgspec
import numpy as np
import pytest
import xxhash
from hypothesis import example, given, settings, strategies as st

from toolkit import Batch, Document
from toolkit.data.documents import split_lines
from toolkit.text import Repeated, Sequences, Top
from toolkit.text.counting import Counts, measure, measure_json
from toolkit.text.line_table import LineTable
from toolkit.text.measures import LineMeasures, WordMeasures
from toolkit.text.words import Words, words_of


def segments(*texts: str) -> Words:
    return Words.of(LineTable.of(list(texts)), "segments")


@pytest.mark.parametrize(
    ("line", "item", "numbered", "ended"),
    [
        ("", False, False, False),
        (" \t", False, False, False),
        ("• a", True, False, False),
        ("•a", True, False, False),
        ("-a", False, False, False),
        (" - a.  ", True, False, True),
        ("-", False, False, False),
        ("1. a", False, True, False),
        ("1.5 a", False, False, False),
        ("1234. a", False, False, False),
        ("(b) a", False, True, False),
        ("b)a", False, False, False),
        ("[xviii] 。", False, True, True),
        ("bc) »", False, False, True),
    ],
)
def test_edges_of_lines(line: str, item: bool, numbered: bool, ended: bool) -> None:
    found = LineMeasures.of(segments("x\n" + line + "\nx"))
    assert (found.items[1], found.numbered[1], found.ended[1]) == (item, numbered, ended)
    assert found.filled.tolist() == [True, bool(line.strip()), True]


@pytest.mark.parametrize(
    ("line", "repeated", "ellipses", "urls", "emails"),
    [
        ("aa   bb", 0, 0, 0, 0),
        ("aaa......", 2, 2, 0, 0),
        ("…日日日", 1, 1, 0, 0),
        ("http://a.b www.c,www.d", 2, 0, 2, 0),
        ("WWW.ä awww.b ://c 1://c", 2, 0, 1, 0),
        ("a@b.c, a@b a@b.c@d.e", 0, 0, 0, 3),
        ("http://a@b.c\u3000a@b.c", 0, 0, 1, 1),
    ],
)
def test_what_is_within_lines(line: str, repeated: int, ellipses: int, urls: int, emails: int) -> None:
    found = LineMeasures.of(segments(line))
    counts = [int(each[0]) for each in (found.repeated_chars, found.ellipses, found.urls, found.emails)]
    assert counts == [repeated, ellipses, urls, emails]


def test_lines_and_paragraphs_that_occur_again() -> None:
    found = LineMeasures.of(segments("a\nbc\n\n\na\nbc\n \nbc\na\n", "", "\n", "a\n\nbc"))
    lines, paragraphs = found.not_blank(), found.paragraphs()
    assert lines.sizes.tolist() == [1, 2, 1, 2, 2, 1, 1, 2]
    assert paragraphs.sizes.tolist() == [4, 4, 4, 1, 2]
    assert paragraphs.bounds.tolist() == [0, 3, 3, 3, 5]
    assert [each.tolist() for each in lines.repeated(1)[1:]] == [[6, 0, 0, 0], [6, 0, 0, 2], [6, 0, 0, 0], [2, 0, 0, 2]]
    assert paragraphs.repeated(1).again.tolist() == [4, 0, 0, 0]  # the other order of lines is another paragraph


def test_words() -> None:
    found = WordMeasures.of(segments("no No NO iPhone 3 日 , no no\nno", "", "!"))
    assert {name: column.tolist() for name, column in zip(found._fields, found, strict=True)} == {
        "chars": [21, 0, 1], "words": [9, 0, 0], "word_chars": [20, 0, 0], "letters": [8, 0, 0],
        "punctuation": [1, 0, 1], "lower": [4, 0, 0], "upper": [1, 0, 0], "title": [1, 0, 0], "mixed": [1, 0, 0],
        "distinct": [4, 0, 0], "said_again": [1, 0, 0],
        "entropy": [pytest.approx(-(6 / 9 * math.log(6 / 9) + 3 / 9 * math.log(1 / 9))), 0.0, 0.0],
    }  # fmt: skip


# Counts of texts are those of Python's own methods, whatever the texts, and as they stand in JSON.

SPACES = [chr(c) for c in range(sys.maxunicode + 1) if chr(c).isspace()]
ODD = st.sampled_from(
    [*SPACES, "\0", "\r\n", "\u200b", "\ufeff", "a", "é", "名", "🙂", "\u0301", "\u180e", "\\", '"', "/"]
)
TEXTS = st.lists(st.one_of(st.text(max_size=30), st.lists(ODD, max_size=20).map("".join)), max_size=6)


def slowly(text: str) -> list[int]:
    return [len(split_lines(text)), len(text), len(text.encode()), len(text.split()), len(words_of(text))]


@settings(deadline=None)  # something may be compiled
@given(TEXTS)
@example(["", "a\u0085b\u2028c\rd\x00e \x1c f", "", "\n", "\r", " ", "x"])
@example(["".join(f"x{space}" for space in SPACES)])
def test_numbers_are_those_of_slow_methods(texts: list[str]) -> None:
    assert measure(texts, unicode=True).tolist() == [slowly(text) for text in texts]
    assert measure([text.encode() for text in texts])[:, :4].tolist() == [slowly(text)[:4] for text in texts]


@pytest.mark.parametrize("odd", [" ", "\u00a0", "\u2028x", "\u3000 \u3000", "é", "名", "🙂", "«\n", "\x1c\u1680"])
def test_long_texts_are_counted_alike_wherever_something_stands_in_them(odd: str) -> None:
    texts = [before * n + odd + behind * 300 for n in range(120, 140) for before in "x é" for behind in ("y", "z ")]
    assert measure(texts)[:, :4].tolist() == [slowly(text)[:4] for text in texts]


@settings(deadline=None)  # something may be compiled
@given(TEXTS, st.booleans())
def test_texts_in_json_are_counted_alike_however_they_are_escaped(texts: list[str], ascii_only: bool) -> None:
    raws = [msgspec.Raw(json.dumps(text, ensure_ascii=ascii_only).encode()) for text in texts]
    found, bad = measure_json(raws, unicode=True)
    assert (found.tolist(), bad) == ([slowly(text) for text in texts], [])


def test_all_escapes_of_json() -> None:
    found, bad = measure_json([msgspec.Raw(rb'"\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE42\u0000\u2028z"')], unicode=True)
    assert (found.tolist(), bad) == ([slowly('"\\/\b\f\n\r\té🙂\0\u2028z')], [])


@pytest.mark.parametrize(
    "raw",
    [
        b"null", b"1", b"[]", b"", b'"', rb'"\ud83d"', rb'"\ude42"', rb'"\ud83dx"', rb'"\ud83d\u0041"', rb'"\u12"',
        rb'"\q"', b'"\xff"', b'"\xc0\xaf"', b'"\xed\xa0\x80"', b'"\xe2\x82"', b'"\xf4\x90\x80\x80"',
        b'"\xf0\x80\x80\x80"', b'"\xc3"', b'"a\x01"',
    ],
)  # fmt: skip
def test_what_is_no_text_is_told_and_the_others_are_counted(raw: bytes) -> None:
    found, bad = measure_json([msgspec.Raw(b'"a b"'), msgspec.Raw(raw), msgspec.Raw(b'"c"')])
    assert bad == [1]
    assert found[[0, 2], :4].tolist() == [slowly("a b")[:4], slowly("c")[:4]]


@settings(deadline=None)  # something may be compiled
@given(st.binary(max_size=12))
def test_utf8_is_taken_where_python_takes_it(data: bytes) -> None:
    data = bytes(byte for byte in data if byte >= 32 and byte not in b'"\\')
    try:
        expected = [slowly(data.decode())[:4]]
    except UnicodeDecodeError:
        expected = []
    found, bad = measure_json([msgspec.Raw(b'"' + data + b'"')])
    assert (found[:, :4].tolist() if not bad else []) == expected


@pytest.mark.parametrize(("text", "lines"), [("", 0), ("a", 1), ("a\n", 2), ("\n", 2), ("a\nb", 2), ("a\n\n", 3)])
def test_lines_that_are_joined_by_line_feeds(text: str, lines: int) -> None:
    assert measure([text], joined=True)[0, 0] == lines


def test_sums_have_unicode_words_where_they_were_counted() -> None:
    rows = [[1, 2, 3, 4, 5], [10, 20, 30, 40, 50]]
    counts = Counts()
    counts.add_rows(rows, unicode=False)
    assert counts == Counts(2, 11, 22, 33, 44)
    counts.add_rows(rows, unicode=True)
    assert counts.unicode_words == 55


# n-grams are counted as a few lines of plain Python count them.

Texts = list[list[tuple[int, int]]]


def sequences(texts: Texts) -> Sequences:
    """Of numbers and their sizes."""
    flat = [word for text in texts for word in text]
    return Sequences(
        np.array([number for number, _ in flat], dtype=np.uint64),
        np.array([size for _, size in flat], dtype=np.int64),
        np.cumsum([0, *map(len, texts)], dtype=np.int64),
    )


def slow_top(text: list[tuple[int, int]], n: int) -> tuple[int, int]:
    grams = [tuple(number for number, _ in text[i : i + n]) for i in range(len(text) - n + 1)]
    if not grams:
        return 0, 0
    gram, count = Counter(grams).most_common(1)[0]  # the first of several
    at = grams.index(gram)
    return count, sum(size for _, size in text[at : at + n])


def slow_repeated(text: list[tuple[int, int]], n: int) -> tuple[int, int, int, int, int]:
    grams = [tuple(number for number, _ in text[i : i + n]) for i in range(len(text) - n + 1)]
    counts = Counter(grams)
    covered: set[int] = set()
    again: set[int] = set()
    seen = set()
    for i, gram in enumerate(grams):
        if counts[gram] > 1:
            covered |= set(range(i, i + n))
        if gram in seen:
            again |= set(range(i, i + n))
        seen.add(gram)
    sizes = [size for _, size in text]
    several = sum(count for count in counts.values() if count > 1)
    return sum(sizes[i] for i in covered), sum(sizes[i] for i in again), len(grams), several, len(counts)


NUMBERS = st.integers(0, 3) | st.integers(0, 2**64 - 1).map(
    lambda number: xxhash.xxh3_64_intdigest(str(number).encode())
)
"""As hashes of words are: numbers that are chosen for it give two n-grams one hash."""

WORD = st.tuples(NUMBERS, st.integers(0, 5))
NGRAMS_TEXTS = st.lists(st.lists(WORD, max_size=30), max_size=5)


@given(NGRAMS_TEXTS, st.integers(1, 6))
@example([], 2)
@example([[]], 1)
@example([[], [(1, 1)], [(1, 1), (1, 2), (1, 4)], []], 2)
@example([[(0, 1)] * 20, [(0, 1)] * 19], 3)
@example([[(1, 1), (2, 1), (1, 2), (2, 2), (3, 1)]], 1)
def test_ngrams_are_those_of_plain_python(texts: Texts, n: int) -> None:
    found = sequences(texts)
    top, repeated = found.top(n), found.repeated(n)
    assert isinstance(top, Top)
    assert isinstance(repeated, Repeated)
    assert list(zip(*(column.tolist() for column in top), strict=True)) == [slow_top(text, n) for text in texts]
    columns = zip(*(column.tolist() for column in repeated), strict=True)
    assert list(columns) == [slow_repeated(text, n) for text in texts]
    assert found.totals.tolist() == [sum(size for _, size in text) for text in texts]
    joined = found.joined(n)
    for at, text in enumerate(texts):
        grams = [tuple(number for number, _ in text[i : i + n]) for i in range(len(text) - n + 1)]
        hashes = joined.hashes[slice(*joined.bounds[at : at + 2])].tolist()
        assert len(set(zip(grams, hashes, strict=True))) == len(set(grams)) == len(set(hashes))
    assert joined.totals.tolist() == [
        sum(size for i in range(len(text) - n + 1) for _, size in text[i : i + n]) for text in texts
    ]


@pytest.mark.slow
@given(NGRAMS_TEXTS, st.integers(0, 6))
@example([], 2)
@example([[], [(1, 1)]], 3)
@example([[(0, 1)] * 20, [(0, 1), (1, 2)] * 19], 6)
@example([[(1, 1), (2, 1), (3, 1), (9, 1), (2, 1), (3, 1), (8, 1), (1, 1), (2, 1), (3, 1)]], 4)
def test_repetition_of_all_lengths_is_that_of_each(texts: Texts, longest: int) -> None:
    found = sequences(texts).repetition(longest)
    assert found.top.shape == found.covered.shape == (longest + 1, len(texts))
    assert not found.top[0].any()
    assert not found.covered[0].any()
    for n in range(1, longest + 1):
        tops = [slow_top(text, n) for text in texts]
        assert found.top[n].tolist() == [count * size if count > 1 else 0 for count, size in tops]
        assert found.covered[n].tolist() == [slow_repeated(text, n)[0] for text in texts]
    numbers = [[number for number, _ in text] for text in texts]
    first = [[number not in text[:i] for i, number in enumerate(text)] for text in numbers]
    expected = [
        text.count(number) if is_first else 0
        for text, firsts in zip(numbers, first, strict=True)
        for number, is_first in zip(text, firsts, strict=True)
    ]
    assert found.occurrences.tolist() == (expected if longest else [0] * len(expected))


def test_texts_of_very_different_lengths_are_counted_in_one_table() -> None:
    chance = np.random.default_rng(7)
    texts = [
        [(int(number), int(number) % 7) for number in chance.integers(0, 50, size)]
        for size in (3000, 1, 0, 40, 2500, 3)
    ]
    found = sequences(texts)
    for n in (1, 2, 5, 10):
        assert list(zip(*(c.tolist() for c in found.top(n)), strict=True)) == [slow_top(text, n) for text in texts]
        columns = zip(*(c.tolist() for c in found.repeated(n)), strict=True)
        assert list(columns) == [slow_repeated(text, n) for text in texts]


def test_words_are_the_same_with_and_without_regard_to_case() -> None:
    words = Batch.of([Document("The cat. the cat! A dog"), Document("")]).words()
    assert Sequences.of(words).top(2).counts.tolist() == [1, 0]
    folded = Sequences.of(words, folded=True)
    assert [column.tolist() for column in folded.top(2)] == [[2, 0], [6, 0]]
    assert folded.repeated(2).covered.tolist() == [12, 0]
    assert folded.totals.tolist() == [16, 0]


def test_order_counts() -> None:
    assert sequences([[(1, 1), (2, 1), (2, 1), (1, 1)]]).repeated(2).distinct.tolist() == [3]
    assert sequences([[(1, 1), (2, 1), (3, 1), (3, 1), (2, 1), (1, 1)]]).repeated(3).several.tolist() == [0]


@pytest.mark.slow
@pytest.mark.parametrize("different", [1, 2, 1_000_000], ids=["one word", "two words", "all different"])
def test_a_million_words_take_no_more_than_their_number(different: int) -> None:
    numbers = np.arange(1_000_000, dtype=np.uint64) % np.uint64(different)
    sizes = np.ones(len(numbers), dtype=np.int64)
    found = Sequences(numbers, sizes, np.array([0, len(numbers)], dtype=np.int64))
    for n in (1, 10):
        repeated = found.repeated(n)
        assert repeated.total[0] == 1_000_000 - n + 1
        assert repeated.distinct[0] == min(different, 1_000_000 - n + 1)
        assert repeated.covered[0] == (0 if different == 1_000_000 else 1_000_000)
    assert found.repetition(10).covered[1:, 0].tolist() == [0 if different == 1_000_000 else 1_000_000] * 10
