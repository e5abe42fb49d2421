"""Trimming: the lines that stay, held against the definition written out."""

from hypothesis import example, given
from hypothesis import strategies as st

from tests.data.test_documents import TEXTS
from toolkit.data.lines import split_lines
from toolkit.ingest.reading.rows import trim


@given(TEXTS, st.integers(1, 4))
@example("aaaa", 4)
@example("aaaa", 5)
@example("a\naaaa\na", 4)
@example("aaaa\r\na\naaaa\n\n", 4)
@example("\n\naaa\r\n", 4)
def test_short_lines_at_both_ends_are_left_out(text: str, min_chars: int) -> None:
    lines = split_lines(text)
    long = [i for i, line in enumerate(lines) if len(line) >= min_chars]
    assert trim(text, min_chars) == ("\n".join(lines[long[0] : long[-1] + 1]) if long else None)
