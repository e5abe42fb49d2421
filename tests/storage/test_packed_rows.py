"""Packed rows and maps against lists and dicts."""

from operator import itemgetter

from hypothesis import given, settings, strategies as st

from toolkit.storage.packed_rows import PACKED, SORTED, PackedMap, PackedRows, sort_packed


@settings(deadline=None)
@given(st.sets(st.text(max_size=3), max_size=40), st.integers(0, 2 * PACKED + 1), st.text(max_size=3))
def test_a_map_has_what_it_was_made_of(keys: set[str], more: int, absent: str) -> None:
    expected = {key: {"": key} for key in sorted({*keys, *(f"{number:06}" for number in range(more))})}
    values = PackedMap(dict[str, str], iter(expected.items()))
    assert {key: values.get(key) for key in expected} == expected
    assert values.get(absent) == expected.get(absent)
    assert dict(values.items()) == expected
    assert [*values.values()] == [*expected.values()]


def test_rows_are_sorted_in_runs_and_equal_ones_keep_their_order() -> None:
    rows = [(f"{number * 7919 % 40_000:06d}", number) for number in range(2 * SORTED + 5)]
    assert [*sort_packed(tuple[str, int], rows, itemgetter(0))] == sorted(rows, key=itemgetter(0))
    assert [*sort_packed(tuple[str, int], [], itemgetter(0))] == []


def test_slices_of_rows_are_lists() -> None:
    rows = [*range(PACKED + 3)]
    assert PackedRows(int, rows)[PACKED - 1 :] == rows[PACKED - 1 :]
