"""float32 as text: the shortest that reads back, as numpy's own formatting of single numbers has it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from toolkit.numbers import shortest_float32

PROBABILITIES = st.floats(0, 1 + 2**-13, width=32)
ANY = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.lists(PROBABILITIES | ANY, max_size=3))
def test_many_numbers_get_the_text_of_each(values: list[float]) -> None:
    wanted = [float(str(np.float32(value))) for value in values]
    assert shortest_float32(values) == wanted
    assert shortest_float32(values * 20) == wanted * 20, "from some number on all together"


def test_a_hundred_thousand_probabilities_are_the_shortest() -> None:
    values = np.random.default_rng(3).random(100_000, dtype=np.float32)
    assert shortest_float32(values) == [float(str(value)) for value in values]
