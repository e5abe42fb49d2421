"""Decomposition against Python's own, and in linear time."""

import random
import time
import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.text import decomposed
from toolkit.text.normal_forms import SHORT

MARKS = "\u0301\u0323\u0344\u0f73\u0f71\u05b0\u0345\U0001d165"


@settings(deadline=None)
@given(st.text() | st.text("aệ한\u1100\u1161" + MARKS))
def test_it_is_what_python_has(text: str) -> None:
    assert decomposed(text) == unicodedata.normalize("NFD", text)


def test_it_is_what_python_has_where_many_marks_follow_each_other() -> None:
    rand = random.Random(3)
    for size in (SHORT - 1, SHORT, SHORT + 1, 500):
        for before in ("", "a", "ệ", "한"):
            text = before + "".join(rand.choices(MARKS, k=size)) + "é"
            assert decomposed(text) == unicodedata.normalize("NFD", text)


def test_marks_without_end_take_linear_time() -> None:
    start = time.process_time()
    decomposed("a" + "\u0301\u0323" * 200_000)
    decomposed("\u0f73" * 200_000)
    assert time.process_time() - start < 5
