"""PackedMap against a dict."""

from hypothesis import given, settings, strategies as st

from toolkit.storage.packed_rows import PACKED, PackedMap


@settings(deadline=None)
@given(st.sets(st.text(max_size=3), max_size=40), st.integers(0, 2 * PACKED + 1), st.text(max_size=3))
def test_a_map_has_what_it_was_made_of(keys: set[str], more: int, absent: str) -> None:
    expected = {key: {"": key} for key in sorted({*keys, *(f"{number:06}" for number in range(more))})}
    values = PackedMap(dict[str, str], iter(expected.items()))
    assert {key: values.get(key) for key in expected} == expected
    assert values.get(absent) == expected.get(absent)
    assert dict(values.items()) == expected
    assert [*values.values()] == [*expected.values()]
