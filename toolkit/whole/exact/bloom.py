"""A Bloom filter for the hashes of a partition: which of them were there before, or seem so.

Source: Bloom 1970; two hashes stand for all (Kirsch, Mitzenmacher 2008), which are the halves of the one that there is.
A filter is made for the hashes of one partition, of whose number its size follows: so it is as full as is planned for,
and neither memory nor processes change what it says.
"""

import math

import numpy as np

from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array
from toolkit.whole.exact.table import Hashes

KEYS = 1 << 20
"""Hashes of a partition, about."""

BYTES = 64
"""Bytes of memory that a hash of a partition takes while it is looked up, beside the filter."""

_SPARE = 1.1  # of the bits: what two hashes for all cost, and partitions that have some more hashes than others

_fill = Compiled(
    "toolkit.whole.exact.kernel:fill", Hashes, "uint64* int64 int64 uint8*", uses=["toolkit.text.kernels.mixing"]
)


def bits_of(keys: int, rate: float) -> int:
    """Return the bits of a filter of which so many hashes are asked: its false positives are at most `rate` of them."""
    return max(64, 64 * math.ceil(_SPARE * keys * -math.log(rate) / math.log(2) ** 2 / 64))


def first_seen(high: Array, low: Array | None, rate: float) -> Array:
    """Return whether each hash is new to those before it; bool. `rate` of those that are new count as seen, at most."""
    keys = len(high)
    size, functions = bits_of(keys, rate), max(1, round(-math.log2(rate)))
    found = np.zeros(keys, dtype=np.uint8)
    hashes = Hashes(high, high if low is None else low, np.zeros(1), keys, False)
    _fill(hashes, np.zeros(size // 64, dtype=np.uint64), size, functions, found)
    return found.astype(bool)
