"""Ridge and logistic regression by Newton's method, out of core.

What is minimised is the sum over the rows of train of weight x loss, and alpha / 2 x the square of the weights' length;
the intercept is free. The loss of a ridge is half the squared error, so one step is all. Source: Lin, Weng, Keerthi,
Trust Region Newton Method for Large-Scale Logistic Regression, 2008; with a line search in place of a region.

The counted n-grams of all rows, out of core: read in pieces, in order, and multiplied with vectors.

Of a shard: ``buckets.bin`` (uint32) and ``times.bin`` (uint8), row by row, ``rows.bin`` (uint32, how many each row
has). The matrix has a row for each piece of a document, tf x idf / length of the row; it is never made. Vectors over
buckets are multiplied with idf beforehand, factors of rows divided by their lengths.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import NamedTuple, cast

import msgspec
import numpy as np

from toolkit.exchange.checksummed import Sealed, read_sealed
from toolkit.interrupts import check
from toolkit.storage.paths import join
from toolkit.storage.threads import pool
from toolkit.text.kernels.compiling import Compiled
from toolkit.text.kernels.signatures import Array
from toolkit.text.linear.model import tf_table

FILES = BUCKETS, TIMES, ROWS = ("buckets.bin", "times.bin", "rows.bin")

PIECE = 1 << 21
"""N-grams that are looked at together; a row with more stands alone."""

LANES = 2
"""Sums that are made at once, whatever the number of threads."""

_OVER = "uint32* uint8* int64* int64 float64* float64* float64*"
_add_squares = Compiled("toolkit.learn.train.kinds.linear.training_kernel:add_squares", _OVER)
_multiply = Compiled("toolkit.learn.train.kinds.linear.training_kernel:multiply", _OVER)
_add_rows = Compiled("toolkit.learn.train.kinds.linear.training_kernel:add_rows", _OVER)


class Piece(NamedTuple):
    """Some rows: their n-grams, where those of each begin, and the number of the first."""

    buckets: Array
    times: Array
    bounds: Array
    first: int

    @property
    def rows(self) -> int:
        return len(self.bounds) - 1

    @property
    def slice(self) -> slice:
        return slice(self.first, self.first + self.rows)


class CountedNgrams:
    """The counted n-grams of all rows.

    Args:
        shards: the folders of what was gathered.
        buckets: Number of buckets.
        threads: Threads that look at pieces at once; they change nothing but the time.

    Attributes:
        rows: Number of rows.
        bytes: Bytes of their n-grams.
    """

    def __init__(self, shards: Sequence[str], buckets: int, threads: int = 1) -> None:
        self._shards, self.buckets, self._threads = shards, buckets, threads
        self._sizes = [np.frombuffer(read_sealed(join(shard, ROWS)), "<u4").astype(np.int64) for shard in shards]
        self.rows = sum(map(len, self._sizes))
        self.bytes = 5 * sum(int(sizes.sum()) for sizes in self._sizes)
        self._tf = tf_table()

    def pieces(self) -> Iterator[Piece]:
        """Yield all rows, in order.

        Raises:
            DataError: if a file is not what was written.
        """
        first = 0
        for shard, sizes in zip(self._shards, self._sizes, strict=True):
            with ExitStack() as stack:
                buckets, times = (stack.enter_context(Sealed(join(shard, name))) for name in (BUCKETS, TIMES))
                ends = np.cumsum(sizes)
                at = before = 0
                while at < len(sizes):
                    end = max(at + 1, int(np.searchsorted(ends, before + PIECE, side="right")))
                    count = int(ends[end - 1]) - before
                    bounds = np.concatenate([[before], ends[at:end]]) - before
                    yield Piece(
                        np.frombuffer(buckets.read(4 * count), "<u4"), np.frombuffer(times.read(count), "u1"),
                        bounds, first + at,
                    )  # fmt: skip
                    at, before = end, before + count
            first += len(sizes)

    def _visit(self, look: Callable[[Piece, int], None]) -> None:
        """Call a function with each piece and its lane's number; a lane's pieces come in order.

        Pieces are in lanes in turn, whatever the number of threads, so that sums over lanes are always the same.
        """
        if self._threads == 1:
            for i, piece in enumerate(self.pieces()):
                check()
                look(piece, i % LANES)
            return
        pieces = self.pieces()
        with pool(min(self._threads, LANES)) as threads:
            while together := [*islice(pieces, LANES)]:
                check()
                for future in [threads.submit(look, piece, lane) for lane, piece in enumerate(together)]:
                    future.result()

    def _rows(self, function: Compiled, vector: Array) -> Array:
        """Return the outputs of a function for all rows."""
        result = np.empty(self.rows)

        def look(piece: Piece, _: int) -> None:
            out = np.empty(piece.rows)
            function(*piece[:3], piece.rows, self._tf, vector, out)
            result[piece.slice] = out

        self._visit(look)
        return result

    def lengths(self, idf: Array) -> Array:
        """Return the length of each row, at least a tiny number; float64."""
        return np.maximum(np.sqrt(self._rows(_add_squares, idf)), 1e-150)

    def product(self, vector: Array) -> Array:
        """Return the product of each row with a vector over buckets; float64 (rows)."""
        return self._rows(_multiply, vector)

    def sum(self, factors: Array, tf: Array | None = None) -> Array:
        """Return the sum of all rows, each times its factor; `tf` is what n-grams count by their times."""
        weights = self._tf if tf is None else tf
        return self._sum(weights, lambda piece: factors[piece.slice])

    def frequencies(self, rows: Array) -> Array:
        """Return in how many of the wanted rows (bool) each bucket is; float64."""
        return self.sum(rows.astype(np.float64), np.ones(len(self._tf)))

    def back_and_forth(self, vector: Array, factors: Callable[[Array, slice], Array]) -> Array:
        """Return the sum of all rows, each times its factor.

        The factor depends on the product with a vector. Over buckets.

        Args:
            vector: over buckets.
            factors: Factors of the products of some rows, and which rows they are; called for several pieces at once.
        """

        def of_piece(piece: Piece) -> Array:
            out = np.empty(piece.rows)
            _multiply(*piece[:3], piece.rows, self._tf, vector, out)
            return factors(out, piece.slice)

        return self._sum(self._tf, of_piece)

    def _sum(self, tf: Array, factors: Callable[[Piece], Array]) -> Array:
        lanes = np.zeros((LANES, self.buckets))
        self._visit(lambda piece, lane: _add_rows(*piece[:3], piece.rows, tf, factors(piece), lanes[lane]))
        return cast("Array", lanes.sum(axis=0))


STEPS, INNER = 30, 25
"""Steps of Newton's method, and of conjugate gradients in each, at most: what they add later is noise."""

ENOUGH = 5e-3
"""The length of the gradient, as a part of what it was at the start, at which a solution is good enough."""


class Problem(msgspec.Struct):
    """One output.

    Attributes:
        counted: the rows.
        idf: Idf of each bucket.
        lengths: Lengths of each row.
        weights: Weights of each row; 0 where it is not trained on.
        target: Target of each row.
        logistic: True if targets are 0 and 1 (or shares), and the loss logistic.
        alpha: the strength of the penalty.
    """

    counted: CountedNgrams
    idf: Array
    lengths: Array
    weights: Array
    target: Array
    logistic: bool
    alpha: float


class LinearSolution(msgspec.Struct):
    """The weights of the buckets (before idf), the intercept, the rows' outputs."""

    weights: Array
    intercept: float
    sums: Array


def solve(problem: Problem) -> LinearSolution:
    """Return the solution; the same bytes for the same rows."""
    total = float(problem.weights.sum())
    mean = _dot(problem.weights, problem.target) / total
    intercept = float(np.log(mean / (1 - mean))) if problem.logistic else mean
    point = np.append(np.zeros(problem.counted.buckets), intercept)
    sums = np.full(problem.counted.rows, intercept)
    gradient = _gradient(problem, point, sums)
    target = ENOUGH * _length(gradient)
    for _ in range(STEPS if problem.logistic else 1):
        if _length(gradient) <= target:
            break
        enough = max(target / 2, 0.1 * _length(gradient)) if problem.logistic else target
        step = _step(problem, sums, gradient, enough)
        ahead = problem.counted.product(step[:-1] * problem.idf) / problem.lengths + step[-1]
        size = _size(problem, point, step, sums, ahead, _dot(gradient, step))
        if size == 0.0:
            break
        point, sums = point + size * step, sums + size * ahead
        if problem.logistic:
            gradient = _gradient(problem, point, sums)
    return LinearSolution(point[:-1], float(point[-1]), sums)


def _dot(one: Array, other: Array) -> float:
    """Return the product of two vectors. No library's threads decide the order of additions."""
    return float((one * other).sum())


def _length(vector: Array) -> float:
    return float(np.sqrt(_dot(vector, vector)))


def _ones(sums: Array) -> Array:
    result: Array = 1.0 / (1.0 + np.exp(-np.clip(sums, -700, 700)))
    return result


def _back(problem: Problem, factors: Array) -> Array:
    """Return the rows' weighted sum, and the sum of the factors."""
    result = problem.counted.sum(factors / problem.lengths) * problem.idf
    return np.append(result, factors.sum())


def _gradient(problem: Problem, point: Array, sums: Array) -> Array:
    error = (_ones(sums) if problem.logistic else sums) - problem.target
    result = _back(problem, problem.weights * error)
    result[:-1] += problem.alpha * point[:-1]
    return result


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

        result = problem.counted.back_and_forth(vector[:-1] * problem.idf, factors) * problem.idf
        return np.append(result + problem.alpha * vector[:-1], of_rows.sum())

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
