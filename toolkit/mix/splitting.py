"""Which split a document is in: by hash of its id."""

from collections.abc import Mapping

import xxhash


def split_of(id: bytes, shares: Mapping[str, float]) -> str:
    """Return the split of an id: its xxh3-64 as a fraction of 2^64 lies in the share of one, in their order."""
    place, end = xxhash.xxh3_64_intdigest(id) / 2**64, 0.0
    for name, share in shares.items():
        end += share
        if place < end:
            return name
    return list(shares)[-1]
