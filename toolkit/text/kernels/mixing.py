"""Well mixed hashes, in compiled code."""

from typing import Any

import numba

from toolkit.text.kernels.intrinsics import inline

_u64 = numba.uint64


@inline
def mixed(hash_: Any) -> Any:
    """Return a hash mixed by the finalizer of SplitMix64.

    Each of its bits depends on all bits of the other.
    """
    hash_ = (hash_ ^ (hash_ >> _u64(30))) * _u64(0xBF58476D1CE4E5B9)
    hash_ = (hash_ ^ (hash_ >> _u64(27))) * _u64(0x94D049BB133111EB)
    return hash_ ^ (hash_ >> _u64(31))
