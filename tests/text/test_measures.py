"""Measures of lines, paragraphs and words, by hand; the tagger `statistics` has them beside a slow plain reference."""

import math

import pytest

from toolkit.text.line_table import LineTable
from toolkit.text.measures import LineMeasures, WordMeasures
from toolkit.text.words import Words


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
