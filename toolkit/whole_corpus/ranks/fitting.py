"""Fits maps: of each group that has enough documents, and of all together; and the file of a fitted map.

Isotonic regression: the rising function of a score that is nearest to labels, by squares (pool adjacent violators).

Barlow, Bartholomew, Bremner and Brunk, Statistical inference under order restrictions, 1972. Between the scores that it
was fitted on the function is interpolated, and constant beyond them, as scikit-learn's `IsotonicRegression` with
``out_of_bounds="clip"``.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec
import numpy as np

from toolkit.config.scale import Declared, Scale
from toolkit.errors import ConfigError, DataError
from toolkit.storage import store_of
from toolkit.storage.outputs import write_file
from toolkit.text.kernels.signatures import Array
from toolkit.whole_corpus.ranks import runs
from toolkit.whole_corpus.ranks.runs import LABELLED, Steps, runs_of, stepped
from toolkit.whole_corpus.records import SignedShard


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
    for sum_, weight in zip(sums, weights, strict=True):
        total, mass, size = sum_, weight, 1
        while blocks and blocks[-1][0] * mass >= total * blocks[-1][1]:  # the mean before is not below
            before = blocks.pop()
            total, mass, size = total + before[0], mass + before[1], size + before[2]
        blocks.append((total, mass, size))
    return np.repeat([total / mass for total, mass, _ in blocks], [size for _, _, size in blocks])


class GroupMap(msgspec.Struct, frozen=True, omit_defaults=True):
    """The map of a group.

    Attributes:
        documents: Documents that it was fitted on; those with a label, where there are labels.
        lowest, highest: scores among them.
        x: knots, ascending scores.
        y: what they become.
        between: empty where values between knots are interpolated; else the value of what is below the first knot, of
            what is between each and the next, and of what is above the last one.
        errors: the mean distance of scores from labels, and that of values; none without labels.
    """

    documents: int
    lowest: float
    highest: float
    x: list[float]
    y: list[float]
    between: list[float] = []
    errors: tuple[float, float] | None = None

    def of(self, scores: Array) -> Array:
        """Return what scores become."""
        x, y = np.array(self.x), np.array(self.y)
        return stepped(x, y, np.array(self.between), scores) if self.between else np.interp(scores, x, y)


class Bin(msgspec.Struct, frozen=True):
    """Some documents with labels, next to each other by score: how many, and means."""

    documents: int
    score: float
    label: float
    value: float


class FittedMap(msgspec.Struct, frozen=True, kw_only=True):
    """A fitted map.

    Attributes:
        digest: sha256 of all else.
        method, score, within, labels, to: options with which it was fitted.
        settings: a digest of all options, and of those of the sets that it was made from.
        shards, documents: that it was fitted on.
        groups: Groups by label; without `within` there is one.
        small: groups that were too small for a map, with their documents.
        pool: the map of all groups together.
        curve: Curve of the documents with labels, from the lowest scores to the highest.
    """

    version: Literal[1] = 1
    digest: str = ""
    method: Literal["isotonic", "quantile"]
    score: str
    within: list[str]
    labels: str | None
    to: str | None
    settings: str
    shards: int
    documents: int
    groups: dict[str, GroupMap]
    small: dict[str, int]
    pool: GroupMap
    curve: list[Bin]


def sealed_map(fitted_map: FittedMap) -> FittedMap:
    """Return the map with its digest."""
    return msgspec.structs.replace(fitted_map, digest=_digest(fitted_map))


def _digest(fitted_map: FittedMap) -> str:
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(fitted_map, digest=""))).hexdigest()


def save_map(path: str, fitted_map: FittedMap) -> None:
    """Write a map."""
    write_file(path, b"".join(_lines(fitted_map)))


def _lines(fitted_map: FittedMap) -> Iterator[bytes]:
    fields = msgspec.structs.asdict(fitted_map)
    for i, (name, value) in enumerate(fields.items()):
        yield (b",\n " if i else b"{\n ") + msgspec.json.encode(name) + b": "
        if name == "groups":
            rows = [msgspec.json.encode(label) + b": " + msgspec.json.encode(item) for label, item in value.items()]
            yield b"{\n  " + b",\n  ".join(rows) + b"\n }"
        else:
            yield msgspec.json.encode(value)
    yield b"\n}\n"


def load_map(path: str, remedy: str) -> FittedMap:
    """Return a map.

    Raises:
        DataError: if it is not what was written; `remedy` says what to do then.
        FileNotFoundError: if there is no such file.
    """
    try:
        fitted_map = msgspec.json.decode(store_of(path).read(path), type=FittedMap)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DataError(f"expected a map as `toolkit calibrate` writes it, got: {error}; {remedy}", path=path) from None
    if _digest(fitted_map) != fitted_map.digest:
        raise DataError(f"expected a map as it was fitted, got one that was changed afterwards; {remedy}", path=path)
    return fitted_map


def load_map_if_there(path: str, remedy: str) -> FittedMap | None:
    """Return a map, or None if there is no such file."""
    try:
        return load_map(path, remedy)
    except (FileNotFoundError, NotADirectoryError):
        return None


COST = 160
"""Bytes of memory that a document with a label takes while maps are fitted."""

KNOT_COST = 96
"""Bytes of memory that a knot takes while all are added up."""

BINS = 10
"""Of the calibration curve."""


def on_labels(
    empty: FittedMap, shards: Sequence[SignedShard], minimum: int, knots: int, memory: int, scale: Declared = None
) -> FittedMap:
    """Return a map that was fitted on documents with labels.

    Args:
        empty: the map as it is before.
        shards: in order.
        minimum: documents with labels that a group needs.
        knots: so many, at most, of a quantile map.
        memory: bytes that may be used.
        scale: declared for the labels.

    Raises:
        ConfigError: if more is needed.
        DataError: if there are too few, or one is not on the scale.
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
    together = np.concatenate([np.zeros(0, dtype=LABELLED), *(item for part in parts.values() for item in part)])
    _check_enough(len(together), minimum, "documents with both a score and a label")
    if isinstance(scale, Scale):
        least, greatest = scale.bounds
        if len(wrong := together["label"][(together["label"] < least) | (together["label"] > greatest)]):
            raise DataError(f"labels: expected values on {scale}, got {wrong[0]:g}")

    def fitted(rows: Array) -> GroupMap:
        scores, labels = rows["score"], rows["label"]
        if empty.method == "isotonic":
            x, y = fit(scores, labels)
            group_map = _group(scores, x, y)
        else:
            values, counts = np.unique(labels, return_counts=True)
            of_labels = (np.cumsum(counts) - counts / 2) / len(labels)
            group_map = _mapped(runs.exact(scores, 1 / knots), of_labels, values)
        errors = np.abs(scores - labels).mean(), np.abs(group_map.of(scores) - labels).mean()
        return msgspec.structs.replace(group_map, errors=(float(errors[0]), float(errors[1])))

    grouped = {label: np.concatenate(parts[label]) for label in sorted(parts)}
    groups = {label: fitted(rows) for label, rows in grouped.items() if len(rows) >= minimum}
    used = [(rows, groups[label].of(rows["score"])) for label, rows in grouped.items() if label in groups]
    curve = _curve(np.concatenate([r for r, _ in used]), np.concatenate([v for _, v in used])) if used else []
    small = {label: len(rows) for label, rows in grouped.items() if len(rows) < minimum}
    return msgspec.structs.replace(
        empty, documents=len(together), groups=groups, small=small, pool=fitted(together), curve=curve
    )


def _collected(shards: Sequence[SignedShard], column: int, memory: int) -> dict[str, list[Array]]:
    """Return the knots of all runs, by label.

    Raises:
        ConfigError: if they need more memory than there may be.
    """
    results: dict[str, list[Array]] = {}
    needed = 0
    for run in (run for signed in shards for run in runs_of(signed)):
        for label, knots in run.knots(run.run.columns[column]):
            needed += len(knots) * KNOT_COST
            results.setdefault(label, []).append(knots)
    if needed > memory:
        raise ConfigError(
            f"memory: expected at least {-(-needed // 10**6)} MB for the knots of all groups of all shards, got "
            f"{memory:,} bytes; fewer `knots` need less"
        )
    return results


def on_the_corpus(empty: FittedMap, shards: Sequence[SignedShard], minimum: int, knots: int, memory: int) -> FittedMap:
    """Return a quantile map that was fitted on all documents. Arguments and errors as of `on_labels`."""
    parts = _collected(shards, 0, memory)
    error = 1 / knots
    together = [part for label in sorted(parts) for part in parts[label]]
    _check_enough(sum(map(_documents, together)), minimum, "documents with a score")
    pool = runs.added(together, error)
    small = {label: size for label in sorted(parts) if (size := sum(map(_documents, parts[label]))) < minimum}
    results = {label: runs.added(parts[label], error) for label in sorted(parts.keys() - small.keys())}

    def mapped(ranked: Steps) -> GroupMap:
        if empty.to == "corpus":
            return _mapped(ranked, pool.at, pool.scores)
        return _mapped(ranked, np.array([0.0, 1.0]), np.array([0.0, 1.0]))

    return msgspec.structs.replace(
        empty,
        documents=pool.documents,
        groups={label: mapped(ranked) for label, ranked in results.items()},
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
    y, between = (np.interp(item, at, values).tolist() for item in (ranked.at, ranked.between))
    x = ranked.scores.tolist()
    return GroupMap(ranked.documents, x[0], x[-1], x, y, between)


def _curve(rows: Array, values: Array) -> list[Bin]:
    """Return means of documents with labels, in bins with about as many documents, none of which parts equal scores."""
    _, inverse, counts = np.unique(rows["score"], return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2) / len(rows)
    bins = np.minimum((ranks * BINS).astype(np.int64), BINS - 1)[inverse]
    results = []
    for number in np.unique(bins).tolist():
        mine = bins == number
        score, label, value = (float(item[mine].mean()) for item in (rows["score"], rows["label"], values))
        results.append(Bin(int(mine.sum()), score, label, value))
    return results
