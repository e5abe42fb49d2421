"""Maps: a score as another one, by a rising function that is fitted once and stays."""

import os
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np

from toolkit.config.scale import ScaleOption
from toolkit.config.scale import check as check_scale
from toolkit.config.settings import ConfigStruct, Description
from toolkit.data.schema import Type
from toolkit.errors import ConfigError, ToolkitError, amount
from toolkit.exchange.sealed import damaged
from toolkit.execution.executors import Report, Task
from toolkit.storage import models
from toolkit.storage.paths import join
from toolkit.whole_corpus.kind import Asked, Resolved, Work
from toolkit.whole_corpus.ranks import fitting, runs
from toolkit.whole_corpus.ranks.fitting import FittedMap, GroupMap, load_map, load_map_if_there, save_map, sealed_map
from toolkit.whole_corpus.ranks.runs import ABSENT, Calibrating, Layout, may_be_null, runs_of, some
from toolkit.whole_corpus.records import Model, NumberedShards, SignedShard

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


class Map(Calibrating, kw_only=True):
    """A rising function of a score, for each group, that is fitted once."""

    FITTED: ClassVar[bool] = True

    score: Annotated[str, Description(description="SET.KEY.field or an expression: a number, or null")]
    method: Annotated[
        Literal["isotonic", "quantile"] | None,
        Description(description="isotonic: nearest to labels; quantile: the score with the same rank among others"),
    ] = None
    labels: Annotated[
        str | None,
        Description(description="an expression: the label of a document, a number, or null for one without"),
    ] = None
    scale: ScaleOption = None
    to: Annotated[
        Literal["corpus", "uniform"] | None,
        Description(
            description="for a quantile map without labels; corpus: to the scores of all groups; uniform: to ranks"
        ),
    ] = None
    minimum: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        Description(description=f"documents (with labels) that a group needs for a map of its own ({MINIMUM})"),
    ] = None
    small: Annotated[
        Literal["none", "pool"],
        Description(
            description="groups without a map of their own; none: they have no values; pool: the map of all together"
        ),
    ] = "none"
    knots: Annotated[
        Annotated[int, msgspec.Meta(ge=10, le=100_000)] | None,
        Description(description=f"of a quantile map: ranks within 1/knots ({KNOTS})"),
    ] = None
    model: Annotated[
        str | None, Description(description="the file of a map that was fitted before, in place of `method`")
    ] = None

    def check(self) -> None:
        """Raise ConfigError for options that do not go together, or a file that is no map."""
        check_scale(self.scale, "the labels of a map")
        if self.model is not None:
            others = ("method", "labels", "scale", "to", "minimum", "knots")
            given = [name for name in others if getattr(self, name) is not None]
            if given:
                raise ConfigError(f"expected `model` without {', '.join(given)}: its map was fitted before")
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
        """Return the map that was fitted before."""
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
    def layout(self) -> Layout:
        """Return what is kept of each document."""
        sketch = 1 / (self.knots or KNOTS) if self.to is not None else None
        return Layout(1, sketch, labels=self.labels is not None)

    def value_type(self) -> Any:
        """Return the type of the values."""
        return MaybeMapped

    def typed(self, types: Mapping[str, Type]) -> Any:
        """Return the type of the values, which are never null where all documents have scores and there is a map."""
        lacks = may_be_null(types["score"]) or "when" in types or (self.groups and self.small == "none")
        return MaybeMapped if lacks else Mapped

    def asked(self) -> dict[str, Asked]:
        """Return the expressions of the options."""
        labels = {"labels": Asked(self.labels, "score")} if self.labels is not None else {}
        return super().asked() | labels

    def facts(self) -> dict[str, Any]:
        """Return the digest of a map that was fitted before."""
        return {"model": self._fitted_before().digest} if self.model is not None else {}

    def resolve(self, work: Work) -> Resolved:
        """Fit the map, unless that was done before."""
        path = join(work.home, _FILE)
        kept = None
        if self.model is not None:
            fitted_map, path = self._fitted_before(), self.model
        else:
            kept = None if work.refit else load_map_if_there(path, _REMEDY)
            kept = kept if kept and kept.settings == work.settings else None
            fitted_map = kept or self._fit(work, path)
        save_map(join(work.folder, _FILE), fitted_map)
        fates = {shard.shard: f"{fitted_map.digest} {shard.record.files[runs.FILE].sha256}" for shard in work.shards}
        counts = {"with a score": sum(shard.record.counts["ranked"] for shard in work.shards)}
        counts |= {"groups": len(fitted_map.groups) + len(fitted_map.small)} if self.groups else {}
        tables = {"groups": _report(fitted_map), "curve": [msgspec.structs.asdict(bin_) for bin_ in fitted_map.curve]}
        notes = [*self._notes(fitted_map), *(_kept(kept, work) if kept else [])]
        return Resolved(fates, counts, notes, tables, Model(path, fitted_map.digest))

    def _fit(self, work: Work, path: str) -> FittedMap:
        result = ToFit(kind=msgspec.to_builtins(self), shards=work.all(), settings=work.settings, memory=work.memory)
        fitted_map: FittedMap
        (fitted_map,) = work.run("fitting the map of scores", fit, [Task("fit", result)])
        save_map(path, fitted_map)
        return fitted_map

    def _notes(self, fitted_map: FittedMap) -> list[str]:
        """Return what one should know of groups that are small, or have nothing to fit by."""
        notes = []
        maps = {label or "all documents": group for label, group in fitted_map.groups.items()}
        if flat := [
            label
            for label, group_map in maps.items()
            if group_map.lowest == group_map.highest and group_map.documents > 1
        ]:
            notes.append(f"warning: the score does not vary, so its map has one value: {some(flat)}")
        if fitted_map.method == "isotonic" and (
            level := [
                label
                for label, group_map in maps.items()
                if group_map.lowest < group_map.highest and len({*group_map.y}) == 1
            ]
        ):
            notes.append(f"warning: labels do not rise with the score, so its map has one value: {some(level)}")
        if fitted_map.small:
            what = "which use the map of all together" if self.small == "pool" else "which have no values"
            sizes = [f"{label} {size}" for label, size in fitted_map.small.items()]
            notes.append(f"groups too small for a map of their own, {what}: {some(sizes)}")
        return notes

    def fitted(self, fates: str) -> str:
        """Return the digest of the map that is to be used; "?" if it is not there, or the fates are of another one."""
        try:
            home = load_map(join(os.path.dirname(fates), _FILE), _REMEDY) if self.model is None else None
            used = load_map(join(fates, _FILE), _REMEDY)
        except (ToolkitError, OSError):
            return "?"
        return used.digest if home is None or home.digest == used.digest else "?"

    def values(self, signed: SignedShard, fates: str) -> Iterator[Any]:
        """Yield what the score of each document becomes."""
        path = join(fates, _FILE)
        fitted_map = load_map_if_there(path, "delete it, then run again")
        if fitted_map is None:
            raise damaged(path)
        for run in runs_of(signed):
            column = run.run.columns[0]
            keys, starts = run.keys(column), run.starts(column).tolist()
            values = np.full(len(keys) + 1, np.nan)
            for label, begin, end in zip(run.run.groups, starts[:-1], starts[1:], strict=True):
                of_group = fitted_map.groups.get(label) or (fitted_map.pool if self.small == "pool" else None)
                if of_group is not None:
                    values[begin:end] = of_group.of(keys[begin:end])
            items = run.items(column)
            for value in values[np.where(items == ABSENT, len(keys), items)].tolist():
                yield MaybeMapped(None if value != value else value)  # noqa: PLR0124 - nan


def _report(fitted_map: FittedMap) -> list[dict[str, Any]]:
    """Return what there is of each group."""
    rows = []
    for label, group in fitted_map.groups.items():
        row = {"group": label, "documents": group.documents, "lowest": group.lowest, "highest": group.highest}
        row |= {"knots": len(group.x), "from": group.y[0], "to": group.y[-1]}
        if group.errors:
            row |= {"error_before": group.errors[0], "error_after": group.errors[1]}
        rows.append(row)
    return rows


def _kept(fitted_map: FittedMap, work: Work) -> list[str]:
    """Return what is to be said of a map that stays."""
    if fitted_map.shards == len(work.shards):
        return []
    fitted_on = f"{amount(fitted_map.documents, 'document')} of {amount(fitted_map.shards, 'shard')}"
    return [f"the map stays as fitted, on {fitted_on}; there are {len(work.shards):,} now; `--refit` fits it again"]


class ToFit(ConfigStruct):
    """The points that a map is fitted on.

    Attributes:
        kind: its options.
        shards: in order.
        settings: a digest of what it depends on.
        memory: bytes that may be used.
    """

    kind: dict[str, Any]
    shards: NumberedShards
    settings: str
    memory: int


def fit(work: ToFit, report: Report) -> FittedMap:
    """Return the fitted map."""
    kind = msgspec.convert(work.kind, Map)
    empty = FittedMap(
        method=kind.method or "isotonic", score=kind.score, within=kind.groups, labels=kind.labels, to=kind.to,
        settings=work.settings, shards=work.shards.last, documents=0, groups={}, small={}, pool=_EMPTY, curve=[],
    )  # fmt: skip
    shards = list(work.shards.load())
    minimum, knots = kind.minimum or MINIMUM, kind.knots or KNOTS
    if kind.labels is None:
        return sealed_map(fitting.on_the_corpus(empty, shards, minimum, knots, work.memory))
    return sealed_map(fitting.on_labels(empty, shards, minimum, knots, work.memory, kind.scale))
