"""Counts of texts are those of Python's own methods, whatever the texts, and as they stand in JSON."""

import json
import sys

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolkit.data.lines import split_lines
from toolkit.text.counting import Counts, measure, measure_json
from toolkit.text.words import words_of

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
        b'"\xf0\x80\x80\x80"', b'"\xc3"', b'"a\x01"', b'"a"b"',
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
