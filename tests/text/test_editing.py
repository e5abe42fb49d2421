"""Edits of texts, against a slow and obvious reference."""

import pytest
from hypothesis import given, settings, strategies as st

from toolkit import DataError, Span
from toolkit.text import split_lines
from toolkit.text.editing import Edit, along, apply, check_replacement, edits_of_lines, edits_of_spans, line_starts

TEXT = "0123456789"


def edited(text: str, *rules: tuple[str, list[tuple[int, int]]]) -> str:
    edits = [e for by, spans in rules for e in edits_of_spans([Span(*s) for s in spans], by, text)]
    return apply(text, edits).text


@pytest.mark.parametrize(
    ("rules", "result"),
    [
        ([("<X>", [(2, 4)])], "01<X>456789"),
        ([("<X>", [(2, 4), (4, 6)])], "01<X><X>6789"),
        ([("<X>", [(2, 6), (4, 8)])], "01<X>89"),
        ([("<X>", [(2, 8), (4, 6)])], "01<X>89"),
        ([("<X>", [(2, 4), (2, 4)])], "01<X>456789"),
        ([("<X>", [(3, 3)])], TEXT),
        ([("<X>", [(3, 3), (5, 6)])], "01234<X>6789"),
        ([("<{}>", [(2, 4)])], "01<23>456789"),
        ([("<{}>", [(2, 6), (4, 8)])], "01<234567>89"),
        ([("<{}>", [(2, 6)]), ("", [(4, 8)])], "0189"),
        ([("a", [(2, 6)]), ("b", [(1, 8)])], "0b89"),
        ([("a", [(2, 6)]), ("b", [(2, 8)])], "01a89"),
        ([("", [(0, 10)])], ""),
    ],
)
def test_spans_that_meet_have_defined_results(rules: list[tuple[str, list[tuple[int, int]]]], result: str) -> None:
    assert edited(TEXT, *rules) == result


@pytest.mark.parametrize("span", [(-1, 2), (3, 11), (5, 4)])
def test_a_span_out_of_range_is_an_error(span: tuple[int, int]) -> None:
    with pytest.raises(DataError, match="expected spans between 0 and 10"):
        edited(TEXT, ("", [span]))


def test_a_replacement_with_carriage_returns_is_refused() -> None:
    with pytest.raises(ValueError, match="got a carriage return"):
        check_replacement("a\r\nb")


@pytest.mark.parametrize(
    ("text", "span", "by", "result", "values"),
    [
        ("ab\ncd\u2028ef\ngh", (5, 6), "\n", "ab\ncd\nef\ngh", [0, 1, 1, 2]),
        ("ab\ncd", (0, 1), "\n\n", "\n\nb\ncd", [0, 0, 0, 1]),
        ("ab\ncd", (1, 4), "x\ny", "ax\nyd", [0, 0]),
        ("ab\ncd", (4, 5), "{}\n", "ab\ncd\n", [0, 1]),
        ("ab", (0, 2), "\n", "\n", [0]),
    ],
)
def test_new_lines_have_the_values_of_the_line_that_they_begin_in(
    text: str, span: tuple[int, int], by: str, result: str, values: list[int]
) -> None:
    found = apply(text, edits_of_spans([Span(*span)], check_replacement(by), text))
    assert (found.text, along(found, [0, 1, 2][: found.lines])) == (result, values)


texts = st.text(alphabet="ab\n\r\U0001f600é", max_size=30)


def reference(text: str, edits: list[Edit]) -> str:
    """Character by character: each is kept, or belongs to the edit of its group."""
    owner: list[int | None] = [None] * len(text)
    group = list(range(len(edits)))

    def root(i: int) -> int:
        return i if group[i] == i else root(group[i])

    for position in range(len(text)):
        here = [i for i, e in enumerate(edits) if e.start <= position < e.end]
        for i in here:
            group[root(i)] = root(here[0])
        owner[position] = here[0] if here else None
    result, position = "", 0
    while position < len(text):
        own = owner[position]
        if own is None:
            result += text[position]
            position += 1
            continue
        members = [e for j, e in enumerate(edits) if root(j) == root(own)]
        end = max(e.end for e in members)
        strict = [e for e in members if "{}" not in e.by] or members
        by = min(strict, key=lambda e: (e.start, edits.index(e))).by
        result += by.replace("{}", text[position:end])
        position = end
    return result


@st.composite
def edits_in(draw: st.DrawFn) -> tuple[str, list[Edit]]:
    text = draw(texts)
    edits = []
    for _ in range(draw(st.integers(0, 6))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, len(text)))
        if start < end:
            edits.append(Edit(start, end, draw(st.sampled_from(["", "X", "<{}>", "YZ"]))))
    return text, edits


@given(edits_in())
def test_edits_equal_the_reference(case: tuple[str, list[Edit]]) -> None:
    text, edits = case
    found = apply(text, edits)
    assert found.text == reference(text, edits)
    assert len(found.origins) == len(split_lines(found.text))
    assert found.origins == sorted(found.origins)
    assert all(0 <= origin < len(split_lines(text)) for origin in found.origins)


@given(texts, st.data())
def test_cut_lines_leave_the_others_as_they_were(text: str, data: st.DataObject) -> None:
    lines = split_lines(text)
    cut = data.draw(st.sets(st.integers(0, len(lines) - 1))) if lines else set()
    found = apply(text, edits_of_lines(sorted(cut), text))
    kept = [i for i in range(len(lines)) if i not in cut]
    assert split_lines(found.text) == [lines[i] for i in kept]
    assert found.origins == kept


@given(texts)
def test_line_starts_are_those_of_the_lines(text: str) -> None:
    starts, lines = line_starts(text), split_lines(text)
    assert len(starts) == len(lines)
    assert all(text[start:].startswith(line) for start, line in zip(starts, lines, strict=True))


@given(texts)
@settings(max_examples=50)
def test_no_edit_changes_nothing(text: str) -> None:
    found = apply(text, [])
    assert (found.text, found.origins, found.edits) == (text, list(range(len(split_lines(text)))), [])
