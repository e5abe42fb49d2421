"""Code points of a kind are counted as Python has them."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from toolkit.text import NUMBER, SPACE, UPPER, LineTable, count_code_points, count_marked, split_lines

TEXTS = st.lists(st.text("aA1 \t\r\n\x85éÉ一½Ⅷ\u2028\U0001d400\U0001f600"), max_size=4)


@given(TEXTS)
def test_code_points_of_a_kind_are_counted(texts: list[str]) -> None:
    lines = [line for text in texts for line in split_lines(text)]
    table = LineTable.of(texts)
    for kind, is_kind in ((UPPER, str.isupper), (NUMBER, str.isnumeric), (SPACE, str.isspace)):
        expected = [sum(map(is_kind, line)) for line in lines]
        assert count_code_points(table, kind).tolist() == expected
    either = [sum(c.isupper() or c.isspace() for c in line) for line in lines]
    assert count_code_points(table, UPPER | SPACE).tolist() == either


@given(TEXTS)
def test_code_points_that_a_table_marks_are_counted(texts: list[str]) -> None:
    lines = [line for text in texts for line in split_lines(text)]
    found = count_marked(LineTable.of(texts), lambda last: (np.arange(last + 1) % 3 == 0).astype(np.uint8))
    assert found.tolist() == [sum(ord(c) % 3 == 0 for c in line) for line in lines]


@pytest.mark.parametrize("last", [0x7F, 0x80, 0x7FF, 0x800, 0xFFFF, 0x10000, 0x3FFFF, 0x40000, 0x10FFFF])
def test_a_table_of_marks_is_as_long_as_the_text_needs(last: int) -> None:
    asked = []

    def marks(last: int) -> "np.ndarray[tuple[int], np.dtype[np.uint8]]":
        asked.append(last)
        return np.ones(last + 1, np.uint8)

    assert count_marked(LineTable.of([f"a\n{chr(last)}"]), marks).tolist() == [1, 1]
    assert next(each for each in (0x7F, 0x7FF, 0xFFFF, 0x3FFFF, 0x10FFFF) if each >= last) == asked[0]
