"""Ranks: which share of the documents of its group a document's score is above."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import xxhash

from toolkit.config.settings import Description
from toolkit.data.schema import Type
from toolkit.errors import ConfigError
from toolkit.exchange.sealed import damaged, read_sealed, write_sealed
from toolkit.storage.paths import join
from toolkit.text.kernels.signatures import Array
from toolkit.whole_corpus.kind import Resolved, Work
from toolkit.whole_corpus.ranks import exact, runs
from toolkit.whole_corpus.ranks.runs import (
    ABSENT,
    Calibrating,
    Layout,
    RunOfShard,
    may_be_null,
    numbered,
    runs_of,
    some,
)
from toolkit.whole_corpus.records import SignedShard

_FOUND = "ranked"


class Ranked(msgspec.Struct, frozen=True):
    """The rank of a document.

    Attributes:
        rank: The share of the documents of its group that have a lower score, and half of those that have the same.
    """

    rank: float


class MaybeRanked(msgspec.Struct, frozen=True):
    """The rank of a document, which may have none.

    Attributes:
        rank: The share of the documents of its group that have a lower score, and half of those that have the same;
            null for a document that has no score, is not asked for, or whose group is too small.
    """

    rank: float | None


class Rank(Calibrating, kw_only=True):
    """Ranks over the corpus, within groups."""

    score: Annotated[
        str | list[str],
        Description(description="SET.KEY.field or an expression: a number, or null; or a list of such, with `combine`"),
    ]
    combine: Annotated[
        Literal["max", "mean"] | None, Description(description="how the ranks of several scores are combined")
    ] = None
    minimum: Annotated[
        Annotated[int, msgspec.Meta(ge=1)],
        Description(description="how many documents a group needs; documents of smaller groups have no rank"),
    ] = 1

    def check(self) -> None:
        """Raise ConfigError for options that do not go together."""
        if not self.scores:
            raise ConfigError("score: expected at least one, got none")
        if len(self.scores) > 1 and self.combine is None:
            raise ConfigError("expected `combine: max` or `combine: mean` with several scores, got none")
        if len(self.scores) == 1 and self.combine is not None:
            raise ConfigError("combine: expected several scores, `score: [A, B]`, got one")

    @property
    def scores(self) -> list[str]:
        """Return the expressions of the scores."""
        return [self.score] if isinstance(self.score, str) else self.score

    @property
    def layout(self) -> Layout:
        """Return what is kept of each document."""
        return Layout(len(self.scores), 0, labels=False)

    def value_type(self) -> Any:
        """Return the type of the values."""
        return MaybeRanked

    def typed(self, types: Mapping[str, Type]) -> Any:
        """Return the type of the values, whose rank is never null where each document has scores and is asked for."""
        lacks = any(may_be_null(types[name]) for name in numbered("score", self.scores))
        return MaybeRanked if lacks or self.minimum > 1 or "when" in types else Ranked

    def resolve(self, work: Work) -> Resolved:
        """Rank all scores."""
        rankings = [exact.rank(work, i) for i in range(len(self.scores))]
        write_sealed(join(work.folder, _FOUND), msgspec.msgpack.encode(rankings))
        made_of = [shard.record.files[runs.FILE].sha256 for shard in work.shards]
        all_ = xxhash.xxh3_128_hexdigest(msgspec.json.encode(made_of))
        fates = {shard.shard: f"{all_} {own}" for shard, own in zip(work.shards, made_of, strict=True)}
        ranked = sum(shard.record.counts["ranked"] for shard in work.shards)
        report = self._report(rankings)
        counts = {"with a score": ranked} | ({"groups": len({row["group"] for row in report})} if self.groups else {})
        return Resolved(fates, counts, self._notes(report), {"groups": report})

    def _report(self, rankings: list[exact.Ranking]) -> list[dict[str, Any]]:
        """Return what there is of each score in each group."""
        return [
            ({"score": self.scores[i]} if self.combine else {}) | {"group": label} | msgspec.structs.asdict(group)
            for i, ranking in enumerate(rankings)
            for label, group in ranking.groups.items()
        ]

    def _notes(self, report: list[dict[str, Any]]) -> list[str]:
        """Return what one should know of groups that are small, or have nothing to rank by."""
        notes = []
        rows = {self._named(row): row for row in report}
        if flat := [name for name, row in rows.items() if row["lowest"] == row["highest"] and row["documents"] > 1]:
            notes.append(f"warning: the score does not vary, so each document has the rank 0.5: {some(flat)}")
        if small := [f"{name} {row['documents']}" for name, row in rows.items() if row["documents"] < self.minimum]:
            notes.append(f"groups of fewer than {self.minimum:,} documents, which have no rank: {some(small)}")
        return notes

    def _named(self, row: dict[str, Any]) -> str:
        return " of ".join(([row["score"]] if self.combine else []) + [row["group"] or "all documents"])

    def values(self, signed: SignedShard, fates: str) -> Iterator[Any]:
        """Yield the rank of each document."""
        path = join(fates, _FOUND)
        try:
            rankings = msgspec.msgpack.decode(read_sealed(path), type=list[exact.Ranking])
        except FileNotFoundError:
            raise damaged(path) from None
        for number, run in enumerate(runs_of(signed)):
            for rank in self._combined(rankings, fates, run, number).tolist():
                yield MaybeRanked(None if rank < 0 else rank)

    def _combined(self, rankings: list[exact.Ranking], fates: str, run: RunOfShard, number: int) -> Array:
        """Return the rank of each row of a run; -1 for none."""
        ranks: list[Array] = []
        for i, column in enumerate(run.run.columns):
            of_keys = exact.ranks(fates, rankings[i], i, run.shard, number)
            starts = run.starts(column)
            for label, begin, end in zip(run.run.groups, starts[:-1].tolist(), starts[1:].tolist(), strict=True):
                if rankings[i].groups[label].documents < self.minimum:
                    of_keys[begin:end] = -1
            items = run.items(column)
            ranks.append(np.append(of_keys, -1.0)[np.where(items == ABSENT, len(of_keys), items)])
        if len(ranks) == 1:
            return ranks[0]
        together = np.stack(ranks)
        combined: Array = together.max(axis=0) if self.combine == "max" else together.mean(axis=0)
        return combined
