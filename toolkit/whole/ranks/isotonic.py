"""Isotonic regression: the rising function of a score that is nearest to labels, by squares (pool adjacent violators).

Barlow, Bartholomew, Bremner and Brunk, Statistical inference under order restrictions, 1972. Between the scores that it
was fitted on the function is interpolated, and constant beyond them, as scikit-learn's `IsotonicRegression` with
``out_of_bounds="clip"``.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def fit(scores: Array, labels: Array) -> tuple[Array, Array]:
    """Return the knots of the function: scores, ascending, and its values there; none that lies on a level line."""
    order = np.lexsort((labels, scores))  # by both, so that sums do not depend on the order of documents
    scores, labels = scores[order], labels[order]
    first = np.flatnonzero(np.r_[True, scores[1:] != scores[:-1]])
    weights = np.diff(np.r_[first, len(scores)]).astype(np.float64)
    values = _pooled(np.add.reduceat(labels, first).tolist(), weights.tolist())
    keeps = np.ones(len(values), dtype=bool)
    keeps[1:-1] = (values[1:-1] != values[:-2]) | (values[1:-1] != values[2:])
    return scores[first][keeps], values[keeps]


def _pooled(sums: list[float], weights: list[float]) -> Array:
    """Return the means of blocks of neighbours, the fewest that rise, one for each neighbour."""
    blocks: list[tuple[float, float, int]] = []  # sum, weight, how many
    for each, weight in zip(sums, weights, strict=True):
        total, mass, size = each, weight, 1
        while blocks and blocks[-1][0] * mass >= total * blocks[-1][1]:  # the mean before is not below
            before = blocks.pop()
            total, mass, size = total + before[0], mass + before[1], size + before[2]
        blocks.append((total, mass, size))
    return np.repeat([total / mass for total, mass, _ in blocks], [size for _, _, size in blocks])
