"""Components of graphs that are larger than memory."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from toolkit.whole.near.connecting import Ranges, components


def slowly(pairs: list[tuple[int, int]]) -> dict[int, int]:
    """Of each number of a pair the least one that it is connected with."""
    found = {number: number for pair in pairs for number in pair}
    for _ in found:
        for a, b in pairs:
            found[a] = found[b] = min(found[a], found[b])
    return found


NUMBERS = st.integers(0, 20)


@given(st.lists(st.tuples(NUMBERS, NUMBERS)), st.integers(1, 25), st.integers(1, 5))
def test_components_are_those_of_plain_python(pairs: list[tuple[int, int]], size: int, pieces: int) -> None:
    rows = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    ranges = Ranges(21, size)
    found: dict[int, int] = {}
    for numbers, least in components(np.array_split(rows, pieces), ranges):
        assert (np.diff(numbers) > 0).all()
        found |= dict(zip(numbers.tolist(), least.tolist(), strict=True))
    assert found == slowly(pairs)


def test_a_chain_through_all_ranges_is_one_component() -> None:
    chain = np.stack([np.arange(999), np.arange(1, 1000)], axis=1)
    found = list(components([np.random.default_rng(1).permutation(chain)], Ranges(1000, 7)))
    assert {int(least) for _, every in found for least in every} == {0}
    assert sum(len(numbers) for numbers, _ in found) == 1000
