"""Fits maps: of each group that has enough documents, and of all together."""

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from toolkit.errors import ConfigError, DataError
from toolkit.whole.ranks import isotonic, sketches, steps
from toolkit.whole.ranks.fitted import Bin, FittedMap, GroupMap
from toolkit.whole.ranks.runs import LABELLED, runs_of
from toolkit.whole.ranks.steps import Steps
from toolkit.whole.records import SignedShard

Array = npt.NDArray[Any]

COST = 160
"""Bytes of memory that a document with a label takes while maps are fitted."""

BINS = 10
"""Of the calibration curve."""


def on_labels(empty: FittedMap, shards: Sequence[SignedShard], minimum: int, knots: int, memory: int) -> FittedMap:
    """Return a map that was fitted on documents with labels.

    Args:
        empty: the map as it is before.
        shards: in order.
        minimum: documents with labels that a group needs.
        knots: so many, at most, of a quantile map.
        memory: bytes that may be used.

    Raises:
        ConfigError: if more is needed.
        DataError: if there are too few.
    """
    all_ = [run for signed in shards for run in runs_of(signed)]
    if (needed := COST * sum(run.run.labelled for run in all_)) > memory:
        raise ConfigError(f"memory: expected at least {-(-needed // 10**6)} MB for all labels, got {memory:,} bytes")
    parts: dict[str, list[Array]] = {}
    for run in all_:
        rows = run.labelled()
        for i, label in enumerate(run.run.groups):
            mine = rows[rows["group"] == i]
            if len(mine):
                parts.setdefault(label, []).append(mine)
    together = np.concatenate([np.zeros(0, dtype=LABELLED), *(each for part in parts.values() for each in part)])
    _check_enough(len(together), minimum, "documents with both a score and a label")

    def fitted(rows: Array) -> GroupMap:
        scores, labels = rows["score"], rows["label"]
        if empty.method == "isotonic":
            x, y = isotonic.fit(scores, labels)
            found = _group(scores, x, y)
        else:
            values, counts = np.unique(labels, return_counts=True)
            of_labels = (np.cumsum(counts) - counts / 2) / len(labels)
            found = _mapped(steps.exact(scores, 1 / knots), of_labels, values)
        errors = np.abs(scores - labels).mean(), np.abs(found.of(scores) - labels).mean()
        return msgspec.structs.replace(found, errors=(float(errors[0]), float(errors[1])))

    grouped = {label: np.concatenate(parts[label]) for label in sorted(parts)}
    groups = {label: fitted(rows) for label, rows in grouped.items() if len(rows) >= minimum}
    used = [(rows, groups[label].of(rows["score"])) for label, rows in grouped.items() if label in groups]
    curve = _curve(np.concatenate([r for r, _ in used]), np.concatenate([v for _, v in used])) if used else []
    small = {label: len(rows) for label, rows in grouped.items() if len(rows) < minimum}
    return msgspec.structs.replace(
        empty, documents=len(together), groups=groups, small=small, pool=fitted(together), curve=curve
    )


def on_the_corpus(empty: FittedMap, shards: Sequence[SignedShard], minimum: int, knots: int, memory: int) -> FittedMap:
    """Return a quantile map that was fitted on all documents. Arguments and errors as of `on_labels`."""
    parts = sketches.collected(shards, 0, memory)
    error = 1 / knots
    together = [part for label in sorted(parts) for part in parts[label]]
    _check_enough(sum(map(_documents, together)), minimum, "documents with a score")
    pool = steps.added(together, error)
    small = {label: size for label in sorted(parts) if (size := sum(map(_documents, parts[label]))) < minimum}
    found = {label: steps.added(parts[label], error) for label in sorted(parts.keys() - small.keys())}

    def mapped(ranked: Steps) -> GroupMap:
        if empty.to == "corpus":
            return _mapped(ranked, pool.at, pool.scores)
        return _mapped(ranked, np.array([0.0, 1.0]), np.array([0.0, 1.0]))

    return msgspec.structs.replace(
        empty,
        documents=pool.documents,
        groups={label: mapped(ranked) for label, ranked in found.items()},
        small=small,
        pool=mapped(pool),
    )


def _check_enough(documents: int, minimum: int, what: str) -> None:
    if documents < minimum:
        raise DataError(f"expected at least {minimum:,} {what} (`minimum`) to fit a map on, got {documents:,}")


def _documents(knots: Array) -> int:
    return int(knots["below"][-1]) + int(knots["count"][-1])


def _group(scores: Array, x: Array, y: Array) -> GroupMap:
    return GroupMap(len(scores), float(scores.min()), float(scores.max()), x.tolist(), y.tolist())


def _mapped(ranked: Steps, at: Array, values: Array) -> GroupMap:
    """Return the map of ranks to the values that have these ranks, between which it is interpolated."""
    y, between = (np.interp(each, at, values).tolist() for each in (ranked.at, ranked.between))
    x = ranked.scores.tolist()
    return GroupMap(ranked.documents, x[0], x[-1], x, y, between)


def _curve(rows: Array, values: Array) -> list[Bin]:
    """Return means of documents with labels, in bins with about as many documents, none of which parts equal scores."""
    _, inverse, counts = np.unique(rows["score"], return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2) / len(rows)
    bins = np.minimum((ranks * BINS).astype(np.int64), BINS - 1)[inverse]
    found = []
    for number in np.unique(bins).tolist():
        mine = bins == number
        score, label, value = (float(each[mine].mean()) for each in (rows["score"], rows["label"], values))
        found.append(Bin(int(mine.sum()), score, label, value))
    return found
