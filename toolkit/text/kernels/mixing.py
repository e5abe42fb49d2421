"""Well mixed hashes, in compiled code."""

import functools
from typing import Any

import numba

_inline = functools.partial(numba.njit, inline="always")
_u64 = numba.uint64


@_inline
def mixed(hash_: Any) -> Any:
    """Return a hash all of whose bits depend on all bits of another (the finalizer of SplitMix64)."""
    hash_ = (hash_ ^ (hash_ >> _u64(30))) * _u64(0xBF58476D1CE4E5B9)
    hash_ = (hash_ ^ (hash_ >> _u64(27))) * _u64(0x94D049BB133111EB)
    return hash_ ^ (hash_ >> _u64(31))
