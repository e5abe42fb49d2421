"""The outputs of fastText models, compiled: the most probable labels. See `toolkit.text.fasttext.fasttext_kernel`."""

import math
from typing import Any

import numba

from toolkit.text.fasttext.arrays import STEPS, Best, Model, Scratch
from toolkit.text.fasttext.model_file import SOFTMAX
from toolkit.text.kernels.intrinsics import dot_eights, float_of, inline


@inline
def _dot(hidden: Any, matrix: Any, row: Any, dim: Any) -> Any:
    """Return the product of two rows.

    The order of additions is the same on every machine.
    """
    total = dot_eights(hidden, matrix, row, dim >> 3)
    for d in range(dim & ~7, dim):
        total += hidden[d] * matrix[row + d]
    return total


@inline
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


# The k best labels are a heap from `first` on, the least probable one on top, as in fastText: of equal labels the moves
# of libstdc++'s `push_heap`, `pop_heap` and `sort_heap` decide which stay, and their order. So each move is theirs.


@inline
def _move(best: Best, source: Any, target: Any) -> None:
    best.probs[target] = best.probs[source]
    best.labels[target] = best.labels[source]


@inline
def _rise(best: Best, first: Any, hole: Any, prob: Any, label: Any) -> None:
    """Put a label into a hole of the heap, or above it."""
    while hole > 0 and best.probs[first + ((hole - 1) >> 1)] > prob:
        _move(best, first + ((hole - 1) >> 1), first + hole)
        hole = (hole - 1) >> 1
    best.probs[first + hole] = prob
    best.labels[first + hole] = numba.int32(label)


@inline
def _replace_top(best: Best, first: Any, n: Any, prob: Any, label: Any) -> None:
    """Replace the least probable label in a heap of n."""
    hole = child = numba.int64(0)
    while child < (n - 1) >> 1:
        child = 2 * (child + 1)
        if best.probs[first + child] > best.probs[first + child - 1]:
            child -= 1
        _move(best, first + child, first + hole)
        hole = child
    if n & 1 == 0 and child == (n - 2) >> 1:
        child = 2 * child + 1
        _move(best, first + child, first + hole)
        hole = child
    _rise(best, first, hole, prob, label)


@inline
def _insert(best: Best, label: Any, prob: Any, n: Any, first: Any) -> Any:
    """Put a label among the k best; return how many there are then."""
    if n < best.k:
        _rise(best, first, n, prob, label)
        return n + 1
    if prob >= best.probs[first]:
        parent = (n - 1) >> 1
        last, its_label = prob, numba.int32(label)
        if best.probs[first + parent] > prob:
            last, its_label = best.probs[first + parent], best.labels[first + parent]
            _rise(best, first, parent, prob, label)
        _replace_top(best, first, n, last, its_label)
    return n


@inline
def _sort(best: Best, n: Any, first: Any) -> None:
    """Sort the heap, the best first."""
    for end in range(n - 1, 0, -1):
        prob, label = best.probs[first + end], best.labels[first + end]
        _move(best, first, first + end)
        _replace_top(best, first, end, prob, label)


@inline
def best_of_tree(model: Model, room: Scratch, best: Best, first_of_row: Any) -> None:
    """Find the most probable leaves. Each decision's probability is p + 1e-5, as fastText has it."""
    n, nodes, scores = model.labels, room.nodes, room.values
    small = numba.float32(1e-5)
    limit = best.threshold + small
    result = 0
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
            result = _insert(best, node, score, result, first_of_row)
            if result == best.k:
                limit = max(limit, best.probs[first_of_row])
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
    _sort(best, result, first_of_row)


@inline
def best_of_all(model: Model, room: Scratch, best: Best, first_of_row: Any) -> None:
    """Find the most probable labels, with an output for each."""
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
    result = 0
    for i in range(n):
        if values[i] >= best.threshold:
            result = _insert(best, i, values[i] + numba.float32(1e-5), result, first_of_row)
    _sort(best, result, first_of_row)
