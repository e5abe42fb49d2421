"""Ridge and logistic regression by Newton's method, each step by conjugate gradients; float64, in a fixed order.

What is minimised is the sum over the rows of train of weight x loss, and alpha / 2 x the square of the weights' length;
the intercept is free. The loss of a ridge is half the squared error, so one step is all. Source: Lin, Weng, Keerthi,
Trust Region Newton Method for Large-Scale Logistic Regression, 2008; with a line search in place of a region.
"""

from dataclasses import dataclass

import numpy as np

from toolkit.text.kernels.signatures import Array
from toolkit.train.kinds.linear.counted import Counted

STEPS, INNER = 30, 25
"""Steps of Newton's method, and of conjugate gradients in each, at most: what they add later is noise."""

ENOUGH = 5e-3
"""The length of the gradient, as a part of what it was at the start, at which a solution is good enough."""


@dataclass
class Problem:
    """One output.

    Attributes:
        counted: the rows.
        idf: of each bucket.
        lengths: of each row.
        weights: of each row; 0 where it is not trained on.
        target: of each row.
        logistic: whether targets are 0 and 1 (or shares), and the loss logistic.
        alpha: the strength of the penalty.
    """

    counted: Counted
    idf: Array
    lengths: Array
    weights: Array
    target: Array
    logistic: bool
    alpha: float


@dataclass
class Solution:
    """The weights of the buckets (before idf), the intercept, and what is said of each row."""

    weights: Array
    intercept: float
    sums: Array


def solve(problem: Problem) -> Solution:
    """Return the solution; the same bytes for the same rows."""
    total = float(problem.weights.sum())
    mean = _dot(problem.weights, problem.target) / total
    intercept = float(np.log(mean / (1 - mean))) if problem.logistic else mean
    point = np.append(np.zeros(problem.counted.buckets), intercept)
    sums = np.full(problem.counted.rows, intercept)
    gradient = _gradient(problem, point, sums)
    wanted = ENOUGH * _length(gradient)
    for _ in range(STEPS if problem.logistic else 1):
        if _length(gradient) <= wanted:
            break
        enough = max(wanted / 2, 0.1 * _length(gradient)) if problem.logistic else wanted
        step = _step(problem, sums, gradient, enough)
        ahead = problem.counted.product(step[:-1] * problem.idf) / problem.lengths + step[-1]
        size = _size(problem, point, step, sums, ahead, _dot(gradient, step))
        if size == 0.0:
            break
        point, sums = point + size * step, sums + size * ahead
        if problem.logistic:
            gradient = _gradient(problem, point, sums)
    return Solution(point[:-1], float(point[-1]), sums)


def _dot(one: Array, other: Array) -> float:
    """Return the product of two vectors, whose order of additions no library's threads decide."""
    return float((one * other).sum())


def _length(vector: Array) -> float:
    return float(np.sqrt(_dot(vector, vector)))


def _ones(sums: Array) -> Array:
    found: Array = 1.0 / (1.0 + np.exp(-np.clip(sums, -700, 700)))
    return found


def _back(problem: Problem, factors: Array) -> Array:
    """Return the sum of the rows, each times its factor, and the sum of the factors."""
    found = problem.counted.sum(factors / problem.lengths) * problem.idf
    return np.append(found, factors.sum())


def _gradient(problem: Problem, point: Array, sums: Array) -> Array:
    error = (_ones(sums) if problem.logistic else sums) - problem.target
    found = _back(problem, problem.weights * error)
    found[:-1] += problem.alpha * point[:-1]
    return found


def _step(problem: Problem, sums: Array, gradient: Array, enough: float) -> Array:
    """Return Newton's step: what the second derivative takes to the negative gradient, about."""
    ones = _ones(sums)
    curve = problem.weights * (ones * (1 - ones) if problem.logistic else 1.0)

    def derivative(vector: Array) -> Array:
        of_rows = np.empty(problem.counted.rows)

        def factors(product: Array, rows: slice) -> Array:
            of_rows[rows] = curve[rows] * (product / problem.lengths[rows] + vector[-1])
            scaled: Array = of_rows[rows] / problem.lengths[rows]
            return scaled

        found = problem.counted.back_and_forth(vector[:-1] * problem.idf, factors) * problem.idf
        return np.append(found + problem.alpha * vector[:-1], of_rows.sum())

    scale = np.append(np.ones(len(gradient) - 1), 1.0 / max(float(curve.sum()), 1e-12))  # the intercept is in all rows
    step, left = np.zeros(len(gradient)), -gradient
    scaled = scale * left
    direction, square = scaled.copy(), _dot(left, scaled)
    for _ in range(INNER):
        if _length(left) <= enough:
            break
        image = derivative(direction)
        size = square / _dot(direction, image)
        step += size * direction
        left -= size * image
        scaled = scale * left
        before, square = square, _dot(left, scaled)
        direction = scaled + (square / before) * direction
    return step


def _size(problem: Problem, point: Array, step: Array, sums: Array, ahead: Array, slope: float) -> float:
    """Return how far to go along a step: halved until the loss falls enough."""
    if not problem.logistic:
        return 1.0
    here = _loss(problem, point, sums)
    size = 1.0
    while size > 1e-6:
        if _loss(problem, point + size * step, sums + size * ahead) <= here + 1e-4 * size * slope:
            return size
        size /= 2
    return 0.0


def _loss(problem: Problem, point: Array, sums: Array) -> float:
    lost = np.logaddexp(0.0, sums) - problem.target * sums
    return _dot(problem.weights, lost) + problem.alpha / 2 * _dot(point[:-1], point[:-1])
