"""Maps of scores: rising functions, fitted once for each group and for all together.

Isotonic regression: the rising function of a score that is nearest to labels, by squares (pool adjacent violators).
Source: Barlow, Bartholomew, Bremner and Brunk, Statistical inference under order restrictions, 1972. Between the scores
that it was fitted on the function is interpolated, and constant beyond them, as scikit-learn's `IsotonicRegression`
with ``out_of_bounds="clip"``.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np

from toolkit.config.scale import Declared, Scale, ScaleOption, check as check_scale
from toolkit.config.settings import ConfigStruct
from toolkit.data.schema import Type
from toolkit.errors import ConfigError, DataError, ToolkitError, amount
from toolkit.exchange.checksummed import damaged
from toolkit.execution.executors import Report, Task
from toolkit.storage import models, store_of
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join
from toolkit.text.kernels.signatures import Array
from toolkit.whole_corpus import score_runs
from toolkit.whole_corpus.kind import Decisions, Query, ResolveJob
from toolkit.whole_corpus.records import Model, NumberedShards, SignedShard


def fit_isotonic(scores: Array, labels: Array) -> tuple[Array, Array]:
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
    """Return the means of the fewest rising blocks, one for each neighbour."""
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
        y: Values at the knots.
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
        """Return the values of scores."""
        x, y = np.array(self.x), np.array(self.y)
        return score_runs.stepped(x, y, np.array(self.between), scores) if self.between else np.interp(scores, x, y)


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
    """Return a map fitted on documents with labels.

    Args:
        empty: the map as it is before.
        shards: Shards in order.
        minimum: documents with labels that a group needs.
        knots: so many, at most, of a quantile map.
        memory: bytes that may be used.
        scale: declared for the labels.

    Raises:
        ConfigError: if more is needed.
        DataError: if there are too few, or one is not on the scale.
    """
    all_ = [run for signed in shards for run in score_runs.runs_of(signed)]
    if (needed := COST * sum(run.run.labelled for run in all_)) > memory:
        raise ConfigError(f"memory: expected at least {-(-needed // 10**6)} MB for all labels, got {memory:,} bytes")
    parts: dict[str, list[Array]] = {}
    for run in all_:
        rows = run.labelled()
        for i, label in enumerate(run.run.groups):
            mine = rows[rows["group"] == i]
            if len(mine):
                parts.setdefault(label, []).append(mine)
    together = np.concatenate(
        [np.zeros(0, dtype=score_runs.LABELLED), *(item for part in parts.values() for item in part)]
    )
    _check_enough(len(together), minimum, "documents with both a score and a label")
    if isinstance(scale, Scale):
        least, greatest = scale.bounds
        if len(wrong := together["label"][(together["label"] < least) | (together["label"] > greatest)]):
            raise DataError(f"labels: expected values on {scale}, got {wrong[0]:g}")

    def fitted(rows: Array) -> GroupMap:
        scores, labels = rows["score"], rows["label"]
        if empty.method == "isotonic":
            x, y = fit_isotonic(scores, labels)
            group_map = _group(scores, x, y)
        else:
            values, counts = np.unique(labels, return_counts=True)
            of_labels = (np.cumsum(counts) - counts / 2) / len(labels)
            group_map = _mapped(score_runs.steps_of(scores, 1 / knots), of_labels, values)
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
    for run in (run for signed in shards for run in score_runs.runs_of(signed)):
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
    """Return a quantile map fitted on all documents. Arguments and errors as of `on_labels`."""
    parts = _collected(shards, 0, memory)
    error = 1 / knots
    together = [part for label in sorted(parts) for part in parts[label]]
    _check_enough(sum(map(_documents, together)), minimum, "documents with a score")
    pool = score_runs.added(together, error)
    small = {label: size for label in sorted(parts) if (size := sum(map(_documents, parts[label]))) < minimum}
    results = {label: score_runs.added(parts[label], error) for label in sorted(parts.keys() - small.keys())}

    def mapped(ranked: score_runs.RankSteps) -> GroupMap:
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


def _check_enough(documents: int, minimum: int, label: str) -> None:
    if documents < minimum:
        raise DataError(f"expected at least {minimum:,} {label} (`minimum`) to fit a map on, got {documents:,}")


def _documents(knots: Array) -> int:
    return int(knots["below"][-1]) + int(knots["count"][-1])


def _group(scores: Array, x: Array, y: Array) -> GroupMap:
    return GroupMap(len(scores), float(scores.min()), float(scores.max()), x.tolist(), y.tolist())


def _mapped(ranked: score_runs.RankSteps, at: Array, values: Array) -> GroupMap:
    """Return the map of ranks to values, interpolated."""
    y, between = (np.interp(item, at, values).tolist() for item in (ranked.at, ranked.between))
    x = ranked.scores.tolist()
    return GroupMap(ranked.documents, x[0], x[-1], x, y, between)


def _curve(rows: Array, values: Array) -> list[Bin]:
    """Return the means of labelled documents in bins of about equal size; no bin parts equal scores."""
    _, inverse, counts = np.unique(rows["score"], return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2) / len(rows)
    bins = np.minimum((ranks * BINS).astype(np.int64), BINS - 1)[inverse]
    results = []
    for number in np.unique(bins).tolist():
        mine = bins == number
        score, label, value = (float(item[mine].mean()) for item in (rows["score"], rows["label"], values))
        results.append(Bin(int(mine.sum()), score, label, value))
    return results


MINIMUM = 10
"""Documents that a group needs for a map, unless another number is given."""

KNOTS = 1000
"""Of a quantile map, about, unless another number is given."""

_FILE = "map.json"
_REMEDY = "restore it, or `toolkit calibrate --refit`"
_EMPTY = GroupMap(0, 0.0, 0.0, [], [])


class Mapped(msgspec.Struct, frozen=True):
    """The calibrated score of a document.

    Attributes:
        score: The value that the map of its group gives for the document's score.
    """

    score: float


class MaybeMapped(msgspec.Struct, frozen=True):
    """The calibrated score of a document, or null.

    Attributes:
        score: The value that the map of its group gives for the document's score; null for a document that has no
            score, is not asked for, or whose group has no map.
    """

    score: float | None


class Map(score_runs.Calibrating, kw_only=True):
    """A rising function of a score, fitted once for each group.

    Attributes:
        score: SET.KEY.field or an expression: a number, or null
        method: isotonic: nearest to labels; quantile: the score with the same rank among others
        labels: an expression: the label of a document, a number, or null for one without
        to: target of a quantile map without labels: corpus: the scores of all groups; uniform: ranks
        minimum: documents (with labels) that a group needs for a map of its own (10)
        small: groups without a map of their own; none: they have no values; pool: the map of all together
        knots: knots of a quantile map: ranks within 1/knots (1000)
        model: the file of a map that was fitted before, in place of `method`
    """

    FITTED: ClassVar[bool] = True

    score: str
    method: Literal["isotonic", "quantile"] | None = None
    labels: str | None = None
    scale: ScaleOption = None
    to: Literal["corpus", "uniform"] | None = None
    minimum: Annotated[int, msgspec.Meta(ge=1)] | None = None
    small: Literal["none", "pool"] = "none"
    knots: Annotated[int, msgspec.Meta(ge=10, le=100_000)] | None = None
    model: str | None = None

    def check(self) -> None:
        """Refuse conflicting options and a damaged map with a ConfigError."""
        check_scale(self.scale, "the labels of a map")
        if self.model is not None:
            options = ("method", "labels", "scale", "to", "minimum", "knots")
            superfluous = [name for name in options if getattr(self, name) is not None]
            if superfluous:
                raise ConfigError(f"expected `model` without {', '.join(superfluous)}: its map was fitted before")
            self._check_model(self._fitted_before())
        elif self.scale is not None and self.labels is None:
            raise ConfigError("scale: expected it only with `labels`")
        elif self.method is None:
            raise ConfigError("expected `method: isotonic`, `method: quantile`, or `model: FILE`; got none")
        elif self.method == "isotonic" and (self.labels is None or self.to is not None or self.knots is not None):
            raise ConfigError("expected `labels` with `method: isotonic`, and neither `to` nor `knots`")
        elif self.method == "quantile" and (self.labels is None) == (self.to is None):
            raise ConfigError("expected `to: corpus`, `to: uniform` or `labels` with `method: quantile`, one of them")

    def label_expressions(self) -> list[str]:
        """Return the expression of the labels."""
        return [self.labels] if self.labels is not None else []

    def _fitted_before(self) -> FittedMap:
        """Return the map of the option `model`."""
        path = models.resolve(self.model or "")
        try:
            return load_map(path, "name the file that it has written")
        except ToolkitError as error:
            raise ConfigError(f"model: {error}") from None

    def _check_model(self, fitted_map: FittedMap) -> None:
        if bool(fitted_map.within) != bool(self.groups):
            raise ConfigError(
                f"expected `within` as the map was fitted with, {fitted_map.within or 'none'}, "
                f"got {self.groups or 'none'}"
            )

    @property
    def scores(self) -> list[str]:
        """Return the expression of the score."""
        return [self.score]

    @property
    def layout(self) -> score_runs.RunLayout:
        """Return the layout of stored scores."""
        sketch = 1 / (self.knots or KNOTS) if self.to is not None else None
        return score_runs.RunLayout(1, sketch, labels=self.labels is not None)

    def value_type(self) -> Any:
        """Return the type of the values."""
        return MaybeMapped

    def typed(self, types: Mapping[str, Type]) -> Any:
        """Return the type of the values, nullable if some may be missing."""
        lacks = score_runs.may_be_null(types["score"]) or "when" in types or (self.groups and self.small == "none")
        return MaybeMapped if lacks else Mapped

    def queries(self) -> dict[str, Query]:
        """Return the expressions of the options."""
        labels = {"labels": Query(self.labels, "score")} if self.labels is not None else {}
        return super().queries() | labels

    def facts(self) -> dict[str, Any]:
        """Return the digest of the map of the option `model`."""
        return {"model": self._fitted_before().digest} if self.model is not None else {}

    def resolve(self, work: ResolveJob) -> Decisions:
        """Fit the map, unless a fitted one can stay."""
        path = join(work.home, _FILE)
        earlier = None
        if self.model is not None:
            fitted_map, path = self._fitted_before(), self.model
        else:
            earlier = None if work.refit else load_map_if_there(path, _REMEDY)
            earlier = earlier if earlier and earlier.settings == work.settings else None
            fitted_map = earlier or self._fit(work, path)
        save_map(join(work.folder, _FILE), fitted_map)
        fates = {
            shard.shard: f"{fitted_map.digest} {shard.record.files[score_runs.FILE].sha256}" for shard in work.shards
        }
        counts = {"with a score": sum(shard.record.counts["ranked"] for shard in work.shards)}
        counts |= {"groups": len(fitted_map.groups) + len(fitted_map.small)} if self.groups else {}
        tables = {"groups": _report(fitted_map), "curve": [msgspec.structs.asdict(bin_) for bin_ in fitted_map.curve]}
        notes = [*self._notes(fitted_map), *(_notes_of_stored_map(earlier, work) if earlier else [])]
        return Decisions(fates, counts, notes, tables, Model(path, fitted_map.digest))

    def _fit(self, work: ResolveJob, path: str) -> FittedMap:
        result = MapFitTask(
            kind=msgspec.to_builtins(self), shards=work.all(), settings=work.settings, memory=work.memory
        )
        fitted_map: FittedMap
        (fitted_map,) = work.run("fitting the map of scores", fit, [Task("fit", result)])
        save_map(path, fitted_map)
        return fitted_map

    def _notes(self, fitted_map: FittedMap) -> list[str]:
        """Return notes on small groups, and groups without variation."""
        notes = []
        maps = {label or "all documents": group for label, group in fitted_map.groups.items()}
        if flat := [
            label
            for label, group_map in maps.items()
            if group_map.lowest == group_map.highest and group_map.documents > 1
        ]:
            notes.append(f"warning: the score does not vary, so its map has one value: {score_runs.some(flat)}")
        if fitted_map.method == "isotonic" and (
            level := [
                label
                for label, group_map in maps.items()
                if group_map.lowest < group_map.highest and len({*group_map.y}) == 1
            ]
        ):
            notes.append(
                f"warning: labels do not rise with the score, so its map has one value: {score_runs.some(level)}"
            )
        if fitted_map.small:
            consequence = "which use the map of all together" if self.small == "pool" else "which have no values"
            sizes = [f"{label} {size}" for label, size in fitted_map.small.items()]
            notes.append(f"groups too small for a map of their own, {consequence}: {score_runs.some(sizes)}")
        return notes

    def fitted(self, fates: str) -> str:
        """Return the digest of the map in use; "?" if it is not there, or the fates are of another one."""
        try:
            home = load_map(join(os.path.dirname(fates), _FILE), _REMEDY) if self.model is None else None
            used = load_map(join(fates, _FILE), _REMEDY)
        except (ToolkitError, OSError):
            return "?"
        return used.digest if home is None or home.digest == used.digest else "?"

    def values(self, signed: SignedShard, fates: str) -> Iterator[Any]:
        """Yield the calibrated score of each document."""
        path = join(fates, _FILE)
        fitted_map = load_map_if_there(path, "delete it, then run again")
        if fitted_map is None:
            raise damaged(path)
        for run in score_runs.runs_of(signed):
            column = run.run.columns[0]
            keys, starts = run.keys(column), run.starts(column).tolist()
            values = np.full(len(keys) + 1, np.nan)
            for label, begin, end in zip(run.run.groups, starts[:-1], starts[1:], strict=True):
                of_group = fitted_map.groups.get(label) or (fitted_map.pool if self.small == "pool" else None)
                if of_group is not None:
                    values[begin:end] = of_group.of(keys[begin:end])
            items = run.items(column)
            for value in values[np.where(items == score_runs.ABSENT, len(keys), items)].tolist():
                yield MaybeMapped(None if value != value else value)  # noqa: PLR0124 - nan


def _report(fitted_map: FittedMap) -> list[dict[str, Any]]:
    """Return a row for each group."""
    rows = []
    for label, group in fitted_map.groups.items():
        row = {"group": label, "documents": group.documents, "lowest": group.lowest, "highest": group.highest}
        row |= {"knots": len(group.x), "from": group.y[0], "to": group.y[-1]}
        if group.errors:
            row |= {"error_before": group.errors[0], "error_after": group.errors[1]}
        rows.append(row)
    return rows


def _notes_of_stored_map(fitted_map: FittedMap, work: ResolveJob) -> list[str]:
    """Return a note on a map fitted earlier."""
    if fitted_map.shards == len(work.shards):
        return []
    fitted_on = f"{amount(fitted_map.documents, 'document')} of {amount(fitted_map.shards, 'shard')}"
    return [f"the map stays as fitted, on {fitted_on}; there are {len(work.shards):,} now; `--refit` fits it again"]


class MapFitTask(ConfigStruct):
    """The input of a fit.

    Attributes:
        kind: its options.
        shards: Shards in order.
        settings: a digest of what it depends on.
        memory: bytes that may be used.
    """

    kind: dict[str, Any]
    shards: NumberedShards
    settings: str
    memory: int


def fit(work: MapFitTask, report: Report) -> FittedMap:
    """Return the fitted map."""
    kind = msgspec.convert(work.kind, Map)
    empty = FittedMap(
        method=kind.method or "isotonic", score=kind.score, within=kind.groups, labels=kind.labels, to=kind.to,
        settings=work.settings, shards=work.shards.last, documents=0, groups={}, small={}, pool=_EMPTY, curve=[],
    )  # fmt: skip
    shards = list(work.shards.load())
    minimum, knots = kind.minimum or MINIMUM, kind.knots or KNOTS
    if kind.labels is None:
        return sealed_map(on_the_corpus(empty, shards, minimum, knots, work.memory))
    return sealed_map(on_labels(empty, shards, minimum, knots, work.memory, kind.scale))
