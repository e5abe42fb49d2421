"""Coefficients of agreement between two annotators, of weighted units; None where one is not defined.

Sources: Cohen 1960, doi:10.1177/001316446002000104; Cohen 1968, doi:10.1037/h0026256 (quadratic weights); Krippendorff,
"Computing Krippendorff's Alpha-Reliability", 2011 (two observers, no missing data). A unit of weight w
counts as w units.
"""

from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Level = Literal["nominal", "ordinal", "interval"]

_NOTHING = 1e-12
"""What rounding leaves of a sum that is 0, beside its terms."""


def cohen(one: Array, other: Array, same: Array, weights: Array) -> float | None:
    """Return Cohen's kappa of labels, unweighted.

    Args:
        one: total weight of each label, of the one annotator.
        other: likewise, of the other.
        same: whether the two agree on each unit.
        weights: of units.
    """
    total = float(weights.sum())
    expected = float(one @ other) / total**2 if total else 1.0
    return (float(weights @ same) / total - expected) / (1 - expected) if 1 - expected > _NOTHING else None


def cohen_quadratic(one: Array, other: Array, weights: Array) -> float | None:
    """Return Cohen's kappa of numbers, weighted by the square of their difference."""
    total = float(weights.sum())
    if not total:
        return None
    means = [float(weights @ values) / total for values in (one, other)]
    spread = sum(float(weights @ (v - m) ** 2) for v, m in zip((one, other), means, strict=True)) / total
    expected = spread + (means[0] - means[1]) ** 2
    scale = max(float(np.abs(one).max(initial=1)), float(np.abs(other).max(initial=1))) ** 2
    return 1 - float(weights @ (one - other) ** 2) / total / expected if expected > _NOTHING * scale else None


def alpha_nominal(one: Array, other: Array, same: Array, weights: Array) -> float | None:
    """Return Krippendorff's alpha of labels; arguments as of `cohen`."""
    total = 2 * float(weights.sum())
    pooled = one + other
    expected = total * total - float(pooled @ pooled)
    if total < 2 or expected <= _NOTHING * total * total:
        return None
    return 1 - (total - 1) * total * (1 - 2 * float(weights @ same) / total) / expected


def alpha_numbers(one: Array, other: Array, weights: Array) -> float | None:
    """Return Krippendorff's alpha of numbers, whose differences count squared (interval level)."""
    total = 2 * float(weights.sum())
    if total < 2:
        return None
    mean = float(weights @ one + weights @ other) / total
    expected = (float(weights @ (one - mean) ** 2) + float(weights @ (other - mean) ** 2)) / (total - 1)
    scale = max(float(np.abs(one).max(initial=1)), float(np.abs(other).max(initial=1))) ** 2
    return 1 - float(weights @ (one - other) ** 2) / total / expected if expected > _NOTHING * scale else None


def alpha_ordinal(one: Array, other: Array, ranks: int, weights: Array) -> float | None:
    """Return Krippendorff's alpha of ranks (ordinal level), which is that of their pooled mid-ranks as numbers.

    Args:
        one: codes of the values of the one annotator, in the order of the values.
        other: likewise, of the other.
        ranks: how many codes there are.
        weights: of units.
    """
    pooled = np.bincount(one, weights, ranks) + np.bincount(other, weights, ranks)
    middle = np.cumsum(pooled) - pooled / 2
    return alpha_numbers(middle[one], middle[other], weights)
