"""SplitMix64 without compiled code: numbers all of whose bits depend on all bits of others.

Source: Steele, Lea and Flood 2014, doi:10.1145/2660193.2660195; the finalizer has the constants of Stafford's "Mix13".
In compiled code the finalizer is `toolkit.text.kernels.mixing.mixed`.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

GAMMA = 0x9E3779B97F4A7C15
"""By which the state of SplitMix64 rises from one number to the next."""


def finalized(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return numbers, uint64, well mixed: different ones stay different."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: npt.NDArray[Any] = numbers ^ (numbers >> np.uint64(31))
    return result


def sequence(count: int) -> list[int]:
    """Return the first so many numbers of SplitMix64 from the state 0."""
    states = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(GAMMA)
    results: list[int] = finalized(states).tolist()
    return results
