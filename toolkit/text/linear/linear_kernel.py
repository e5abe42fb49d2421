"""N-grams of words and characters, counted by their buckets, in compiled code. Used by `toolkit.text.linear.model`."""

from typing import Any

import numba

from toolkit.text.kernels.intrinsics import inline, prefetch
from toolkit.text.kernels.words import decoded, number_of
from toolkit.text.linear.model import BETWEEN, EDGE, MANY, WORD, NgramCounts, Orders, Weights, Workspace
from toolkit.text.unicode_table import FOLD, Characters
from toolkit.text.words import PRIME, SEED, Words

AHEAD = 24
"""N-grams whose weights are asked for before they are needed: they lie anywhere in a table that no cache holds."""


@inline
def _met(hash_: Any, kind: Any, mask: Any, times_of: Any, buckets: Any, n: Any) -> Any:
    """Count an n-gram; return how many buckets have been met. Those of words are even, those of characters odd.

    Without a branch, which nobody could predict: so there is one more place in ``buckets`` than can be met.
    """
    mixed = (hash_ ^ (hash_ >> numba.uint64(32))) * numba.uint64(PRIME)
    bucket = numba.int64((mixed >> numba.uint64(32)) & mask) | kind
    times = numba.int64(times_of[bucket])
    buckets[n] = bucket
    times_of[bucket] = times + (times < MANY)
    return n + (times == 0)


@inline
def _count(
    words: Words, first: Any, last: Any, orders: Orders, table: Characters, room: Workspace, buckets: Any, n: Any
) -> Any:
    """Count the n-grams of a text in ``room.times``; return where the list of the buckets that were met ends."""
    mask = numba.uint64(orders.buckets - 2)
    points = room.points
    for i in range(first, last):
        hash_ = numba.uint64(WORD)
        for j in range(i, min(i + orders.most_words, last)):
            hash_ = (hash_ ^ words.folded[j]) * numba.uint64(PRIME)
            if j - i + 1 >= orders.least_words:
                n = _met(hash_, 0, mask, room.times, buckets, n)
            hash_ = hash_ ^ numba.uint64(BETWEEN)
        at, end, length = words.starts[i], words.ends[i], numba.int64(1)
        while at < end:
            point, at = decoded(words.lines.utf8, at)
            points[length] = point + (number_of(table, point) >> FOLD)
            length += 1
        points[0] = points[length] = EDGE
        length += 1
        for j in range(length):
            hash_ = numba.uint64(SEED)
            for k in range(j, min(j + orders.most_characters, length)):
                hash_ = (hash_ ^ points[k]) * numba.uint64(PRIME)
                if k - j + 1 >= orders.least_characters:
                    n = _met(hash_, 1, mask, room.times, buckets, n)
    return n


def count(words: Words, texts: Any, orders: Orders, table: Characters, room: Workspace, counts: NgramCounts) -> None:
    """Count the n-grams of some texts.

    Args:
        words: Words of the texts.
        texts: Number of texts.
        orders: Lengths of n-grams.
        table: Table of the code points.
        room: Scratch arrays.
        counts: Result.
    """
    n = numba.int64(0)
    counts.bounds[0] = 0
    for text in range(texts):
        begin = n
        n = _count(words, words.bounds[text], words.bounds[text + 1], orders, table, room, counts.buckets, n)
        for i in range(begin, n):
            counts.times[i] = room.times[counts.buckets[i]]
            room.times[counts.buckets[i]] = 0
        counts.bounds[text + 1] = n


def predict(
    words: Words, texts: Any, orders: Orders, table: Characters, room: Workspace, weights: Weights, sums: Any
) -> None:
    """Compute the outputs of a model for texts.

    Args:
        words: Words of the texts.
        texts: Number of texts.
        orders: Lengths of n-grams.
        table: Table of the code points.
        room: Scratch arrays.
        weights: Weights of the model.
        sums: float64 (texts, outputs), what is computed: without intercepts.
    """
    outputs = weights.outputs
    width = outputs + 1
    for text in range(texts):
        n = _count(words, words.bounds[text], words.bounds[text + 1], orders, table, room, room.met, numba.int64(0))
        square = 0.0
        for k in range(outputs):
            sums[text * outputs + k] = 0.0
        for i in range(n):
            prefetch(weights.table, numba.int64(room.met[min(i + AHEAD, n - 1)]) * width)
            bucket = numba.int64(room.met[i])
            value = weights.tf[room.times[bucket]] * numba.float64(weights.table[bucket * width])
            room.times[bucket] = 0
            square += value * value
            for k in range(outputs):
                sums[text * outputs + k] += value * numba.float64(weights.table[bucket * width + 1 + k])
        if square > 0.0:
            for k in range(outputs):
                sums[text * outputs + k] /= square**0.5
