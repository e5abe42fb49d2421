"""Ranks within an error: from few of the scores of each run, whatever the others are.

Of a run that has n scores of a group, knots are kept: the least score, the greatest, and so many between that from one
to the next there are at most e · n scores. How many scores of the run are below one that lies between two knots is then
known to e · n / 2, so over all runs the share is known to e / 2. What has been added up is thinned in the same way:
that is the other e / 2.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Steps(NamedTuple):
    """The ranks of a group's scores, as steps.

    Attributes:
        documents: of the group.
        scores: float64, ascending.
        at: float64, the ranks of these scores.
        between: float64, the rank of what is below the first score, of what is between each and the next, and of what
            is above the last one.
    """

    documents: int
    scores: Array
    at: Array
    between: Array


def thinned(below: Array, counts: Array, error: float) -> list[int]:
    """Return which of sorted distinct scores are knots.

    Args:
        below: how many are below each.
        counts: how many have each.
        error: between two knots there are at most so many, as a share of all.
    """
    if not len(below):
        return []
    above = below + counts
    gap = int(error * int(above[-1]))
    return _chosen(below, above, gap)


def _chosen(begins: Array, ends: Array, gap: int) -> list[int]:
    """Return numbers from the first to the last: each begins at most so far behind the end of the one before."""
    kept, last = [0], len(begins) - 1
    while kept[-1] < last:
        bound = int(ends[kept[-1]]) + gap
        kept.append(max(kept[-1] + 1, int(np.searchsorted(begins, bound, side="right")) - 1))
    return kept


def added(parts: Sequence[Array], error: float) -> Steps:
    """Return the ranks of a group within an error, from the knots of all runs that have it (see `runs.KNOT`)."""
    documents = sum(int(part["below"][-1]) + int(part["count"][-1]) for part in parts)
    scores = np.unique(np.concatenate([part["score"] for part in parts]))
    at = np.zeros(len(scores), dtype=np.int64)  # twice how many are below, and half of those that are equal
    between = np.zeros(len(scores), dtype=np.int64)  # the same for what is above a score, and below the next
    for part in parts:
        below, counts = part["below"].astype(np.int64), part["count"].astype(np.int64)
        above = below + counts
        after = np.r_[0, above + np.r_[below[1:], above[-1]]]
        places = np.searchsorted(part["score"], scores, side="right")
        is_knot = np.isin(scores, part["score"], assume_unique=True)
        knots = np.maximum(places - 1, 0)
        between += after[places]
        at += np.where(is_knot, below[knots] + above[knots], after[places])
    return _thinned(documents, scores, at, between, error)


def _thinned(documents: int, scores: Array, at: Array, between: Array, error: float) -> Steps:
    """Return steps, of which each stands for scores whose ranks are within an error."""
    kept = np.array(_chosen(np.r_[0, between[:-1]], between, int(2 * error * documents)))
    low, high = between[kept[:-1]], between[kept[1:] - 1]
    middle = (low + high) / (4 * documents)
    return Steps(documents, scores[kept], at[kept] / (2 * documents), np.r_[0.0, middle, 1.0])


def exact(scores: Array, error: float) -> Steps:
    """Return the ranks of scores that are in memory, thinned to steps within an error."""
    found, counts = np.unique(scores, return_counts=True)
    below = np.cumsum(counts) - counts
    return _thinned(len(scores), found, 2 * below + counts, 2 * (below + counts), error)


def ranks(steps: Steps, scores: Array) -> Array:
    """Return the rank of each score."""
    return stepped(steps.scores, steps.at, steps.between, scores)


def stepped(knots: Array, at: Array, between: Array, scores: Array) -> Array:
    """Return the value of each score: `at` for a knot, `between` for what lies between."""
    places = np.searchsorted(knots, scores, side="right")
    is_knot = knots[np.maximum(places - 1, 0)] == scores
    return np.where(is_knot, at[np.maximum(places - 1, 0)], between[places])
