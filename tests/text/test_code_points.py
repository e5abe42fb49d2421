"""Code points of a kind are counted as Python has them."""

import hypothesis.strategies as st
from hypothesis import given

from toolkit import split_lines
from toolkit.text import NUMBER, SPACE, UPPER, LineTable, count_code_points

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
