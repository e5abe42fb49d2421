"""Baselines: predictions that know nothing of a document, or its source alone.

The majority of a group is the most frequent label in it, or the mean. The source-only baseline predicts the same of the
documents with the same source, in the other folds: documents are in `FOLDS` folds by the hash of source and id, and
nothing is predicted of a document by a value that its own label is part of. Where the other folds have no document of a
source, it is what they have of all.

Its ranks are compared within folds, and the mean over the folds is told. Across folds they would be worse than by
chance: where the labels of a fold are high, what the others predict for it is low (Parker, Günter and Bedo 2007).
"""

import numpy as np

from toolkit.evaluating.agreement import Array

FOLDS = 5


def folds(hashes: Array) -> Array:
    """Return the fold of each document, by the xxh3-64 of source and id."""
    mixed = hashes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # apart from samples, which use the hash itself
    return ((mixed >> np.uint64(33)) % np.uint64(FOLDS)).astype(np.int64)


def mean_of(labels: Array) -> float:
    """Return the mean."""
    return float(labels.mean()) if len(labels) else 0.0


def most_frequent(labels: Array) -> int:
    """Return the most frequent code; of several the least."""
    return int(np.bincount(labels).argmax()) if len(labels) else 0


def of_sources(labels: Array, sources: Array, fold: Array, *, numbers: bool) -> Array:
    """Return what the source alone predicts of each document.

    Args:
        labels: numbers, or codes.
        sources: codes, -1 for documents without one: they are a source, too.
        fold: of each document.
        numbers: whether labels are numbers, of which the mean is predicted.
    """
    found = np.empty(len(labels), dtype=np.float64 if numbers else np.int64)
    sources = sources.astype(np.int64) + 1
    size = int(sources.max(initial=0)) + 1
    for number in range(FOLDS):
        own, others = fold == number, fold != number
        if numbers:
            sums = np.bincount(sources[others], labels[others], size)
            counts = np.bincount(sources[others], minlength=size)
            means = np.full(size, mean_of(labels[others]))
            np.divide(sums, counts, out=means, where=counts > 0)
            found[own] = means[sources[own]]
        else:
            best = np.full(size, most_frequent(labels[others]))
            table = int(labels.max(initial=0)) + 1
            pairs, counts = np.unique(sources[others] * table + labels[others], return_counts=True)
            order = np.lexsort(
                (-pairs, counts)
            )  # the last one of a source is its most frequent, the least label of several
            best[pairs[order] // table] = pairs[order] % table
            found[own] = best[sources[own]]
    return found
