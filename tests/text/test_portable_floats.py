"""float32 as text: the shortest that reads back, as numpy's own formatting has it. Logarithms, by exact decimals."""

import decimal
import math

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from toolkit.text.portable_floats import natural_logs, shortest_float32

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


@given(st.floats(1e-300, 1e300))
@example(1 - 2**-53)
@example(1 + 2**-52)
def test_logarithms_are_right_but_for_the_last_digit(value: float) -> None:
    found = natural_logs([value]).item()
    with decimal.localcontext(prec=50):
        error = abs(decimal.Decimal(found) - decimal.Decimal(value).ln())
    assert error <= decimal.Decimal(math.ulp(found))


def test_logarithms_of_whole_numbers_do_not_depend_on_how_many_there_are() -> None:
    together = natural_logs(np.arange(1, 10_001))
    assert together.tolist() == [natural_logs([i]).item() for i in range(1, 10_001)]
    assert np.abs(together - [math.log(i) for i in range(1, 10_001)]).max() <= math.ulp(8.0)
