"""Groups of documents by their length in code points."""

import numpy as np

from toolkit.evaluating.columns import Column

BINS = (20, 50, 100, 200, 500, 1_000, 5_000, 20_000)
"""Where bins begin, behind the first."""

_EDGES = (0, *BINS)
NAMES = [f"{low:,} to {high - 1:,}" for low, high in zip(_EDGES, BINS, strict=False)] + [f"from {BINS[-1]:,}"]


def binned(chars: Column) -> Column:
    """Return the bin of each length."""
    return Column("label", np.searchsorted(BINS, chars.values, side="right").astype(np.int32), NAMES)
