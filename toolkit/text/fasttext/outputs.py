"""The outputs of fastText models, compiled: the most probable labels. See `toolkit.text.fasttext.kernel`."""

import functools
import math
from typing import Any

import numba

from toolkit.text.fasttext.arrays import STEPS, Best, Model, Room
from toolkit.text.fasttext.model_file import SOFTMAX
from toolkit.text.kernels.intrinsics import dot_eights, float_of

_inline = functools.partial(numba.njit, inline="always")


@_inline
def _dot(hidden: Any, matrix: Any, row: Any, dim: Any) -> Any:
    """Return the product of two rows, in the same order on every machine."""
    total = dot_eights(hidden, matrix, row, dim >> 3)
    for d in range(dim & ~7, dim):
        total += hidden[d] * matrix[row + d]
    return total


@_inline
def _exp(x: Any) -> Any:
    """Return e^x to 1e-12: the range cut to half a binary digit, then Taylor's series, in pairs that do not wait."""
    y = numba.float64(x)
    y = y if y > -80.0 else -80.0  # so is what is no number, if a mapped file has changed
    y = y if y < 80.0 else 80.0
    k = math.floor(y * 1.4426950408889634 + 0.5)
    r = (y - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r) + r2 * (1 / 2 + r * (1 / 6))
    middle = (1 / 24 + r * (1 / 120)) + r2 * (1 / 720 + r * (1 / 5040))
    high = (1 / 40320 + r * (1 / 362880)) + r2 * (1 / 3628800)
    return (low + r4 * (middle + r4 * high)) * float_of(numba.int64(k + 1023) << numba.int64(52))


@_inline
def _insert(best: Best, label: Any, prob: Any, n: Any, first: Any) -> Any:
    """Put a label among the k best, which are sorted and stand from `first`; return how many there are then.

    Of equal ones for which there is no room the first stays; if k is 1 the last, as in fastText, whose heap of one
    replaces its only element.
    """
    least = best.probs[first + best.k - 1]
    if n == best.k and (prob < least or (prob == least and best.k > 1)):
        return n
    at = first + (n if n < best.k else best.k - 1)
    while at > first and best.probs[at - 1] < prob:
        best.probs[at] = best.probs[at - 1]
        best.labels[at] = best.labels[at - 1]
        at -= 1
    best.probs[at] = prob
    best.labels[at] = numba.int32(label)
    return min(n + 1, best.k)


@_inline
def best_of_tree(model: Model, room: Room, best: Best, first_of_row: Any) -> None:
    """Find the most probable leaves. Each decision's probability is p + 1e-5, as fastText has it."""
    n, nodes, scores = model.labels, room.nodes, room.values
    small = numba.float32(1e-5)
    limit = best.threshold + small
    found = 0
    nodes[0] = numba.int32(2 * n - 2)
    scores[0] = numba.float32(1)
    waiting = 1
    while waiting > 0:
        waiting -= 1
        node = numba.int64(nodes[waiting])
        score = scores[waiting]
        if score < limit:
            continue
        if node < n:
            found = _insert(best, node, score, found, first_of_row)
            if found == best.k:
                limit = max(limit, best.probs[first_of_row + best.k - 1])
            continue
        product = _dot(room.hidden, model.output, (node - n) * model.dim, model.dim)
        p = numba.float32(1.0 / (1.0 + _exp(-product)))
        left = score * (numba.float32(1) - p + small)
        right = score * (p + small)
        first, second, low, high = model.right[node], model.left[node], right, left
        if right > left:
            first, second, low, high = second, first, left, right
        if low >= limit:
            nodes[waiting] = first
            scores[waiting] = low
            waiting += 1
        if high >= limit:
            nodes[waiting] = second
            scores[waiting] = high
            waiting += 1


@_inline
def best_of_all(model: Model, room: Room, best: Best, first_of_row: Any) -> None:
    """Find the most probable labels where each has an output of its own."""
    n, values = model.labels, room.values
    for i in range(n):
        values[i] = _dot(room.hidden, model.output, i * model.dim, model.dim)
    if model.loss == SOFTMAX:
        highest = values[0]
        for i in range(1, n):
            highest = max(highest, values[i])
        total = numba.float32(0)
        for i in range(n):
            values[i] = numba.float32(_exp(values[i] - highest))
            total += values[i]
        for i in range(n):
            values[i] = values[i] / total
    else:
        for i in range(n):
            x = values[i]
            if x > 8:
                values[i] = numba.float32(1)
            elif x >= -8:
                values[i] = model.sigmoid[numba.int64((x + numba.float32(8)) * numba.float32(STEPS / 16))]
            else:  # so is what is no number, if a mapped file has changed
                values[i] = numba.float32(0)
    found = 0
    for i in range(n):
        if values[i] >= best.threshold:
            found = _insert(best, i, values[i] + numba.float32(1e-5), found, first_of_row)
