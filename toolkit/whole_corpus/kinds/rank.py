"""Ranks: the share of the documents of its group with a lower score.

Exact ranks over all runs are an external sort whose partitions are ranges of groups and scores. The bounds of the
partitions are taken from the marks of all runs, so that each has about as many scores as fit into memory. Of each run a
partition has a contiguous slice, in order; so nothing is sorted twice, and any number of partitions gives the same.
Below the folder, for each of a document's scores:

``I-layout``             a `RankingInput`, sealed: the runs, the groups, and where partitions begin
``I-part-N-of-M``        an object of `toolkit.exchange`, whose partitions are the runs: for each key of a run twice the
                         number of documents of the partition and group below, and of equal ones; the record of a `Part`
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import xxhash

from toolkit.config.settings import ConfigStruct
from toolkit.data.schema import Type
from toolkit.errors import ConfigError
from toolkit.exchange.checksummed import damaged, read_sealed, write_sealed
from toolkit.exchange.scatter import gather_sections, once, scatter_sections, settle
from toolkit.execution.executors import Report, Task
from toolkit.storage.paths import join
from toolkit.storage.threads import for_each
from toolkit.text.kernels.signatures import Array
from toolkit.whole_corpus import kind, records, score_runs

COST = 96
"""Bytes of memory that a key takes while its partition is ranked."""


class RankGroup(msgspec.Struct):
    """The counts of a group: documents, different scores, the least and the greatest."""

    documents: int
    distinct: int
    lowest: float
    highest: float


class Part(msgspec.Struct, frozen=True):
    """The content of a partition, by group; and its objects."""

    groups: dict[str, RankGroup]
    objects: list[str]


class RankingInput(msgspec.Struct, frozen=True):
    """The input of a ranking.

    Attributes:
        column: Index of the score.
        runs: Runs of all shards, in order.
        groups: labels, sorted.
        bounds: label and score at which each partition but the first begins.
    """

    column: int
    runs: list[score_runs.RunOfScores]
    groups: list[str]
    bounds: list[tuple[str, float]]

    @property
    def parts(self) -> int:
        """Return the number of partitions."""
        return len(self.bounds) + 1


class PartToRank(ConfigStruct):
    """A partition, and the folder of the layout."""

    folder: str
    column: int
    part: int


class Ranking(msgspec.Struct, frozen=True):
    """Ranking of one score over all partitions.

    Attributes:
        groups: Groups by label.
        before: Number of documents of a partition's first group in earlier partitions, for each partition but the
            first.
    """

    groups: dict[str, RankGroup]
    before: list[int]


def rank_scores(work: kind.ResolveJob, column: int) -> Ranking:
    """Rank one of the documents' scores."""
    runs = [run for signed in work.shards for run in score_runs.runs_of(signed)]
    groups = sorted({group for run in runs for group in run.run.groups})
    total = sum(run.run.columns[column].total for run in runs)
    parts = max(1, -(-total * COST // max(work.memory, 1)))
    whole = RankingInput(column, runs, groups, _bounds(runs, groups, column, parts) if parts > 1 else [])
    records.save_layout(_layout(work.folder, column), whole)
    tasks = [Task(f"score {column} part {i}", PartToRank(work.folder, column, i)) for i in range(whole.parts)]
    results: list[Part] = work.run("ranking scores", rank_part, tasks)
    settle(work.run, work.folder, f"{column}-ranks", [path for part in results for path in part.objects])
    all_: dict[str, RankGroup] = {}
    before: list[int] = []
    for i, part in enumerate(results):
        if i:
            label = whole.bounds[i - 1][0]
            before.append(all_[label].documents if label in all_ else 0)
        for label, group in part.groups.items():
            merged = all_.setdefault(label, RankGroup(0, 0, group.lowest, group.highest))
            merged.documents += group.documents
            merged.distinct += group.distinct
            merged.highest = group.highest
    return Ranking(dict(sorted(all_.items())), before)


def _bounds(runs: list[score_runs.RunOfScores], groups: list[str], column: int, parts: int) -> list[tuple[str, float]]:
    """Return the bounds of partitions: at marks, so many apart that each partition has about as many keys."""
    numbers = {label: i for i, label in enumerate(groups)}

    def read(run: score_runs.RunOfScores) -> tuple[Array, Array, int]:
        result = run.run.columns[column]
        starts, marks = run.starts(result), run.marks(result)
        places = result.step // 2 + np.arange(len(marks)) * result.step
        table = np.array([numbers[label] for label in run.run.groups], dtype=np.uint32)
        return table[np.searchsorted(starts, places, side="right") - 1], marks, result.step

    results = for_each(read, runs)
    of_groups = np.concatenate([item[0] for item in results])
    scores = np.concatenate([item[1] for item in results])
    weights = np.concatenate([np.full(len(item[1]), item[2]) for item in results])
    order = np.lexsort((scores, of_groups))
    sums = np.cumsum(weights[order])
    at = np.searchsorted(sums, np.arange(1, parts) * (int(sums[-1]) / parts))
    chosen = dict.fromkeys((groups[of_groups[i]], float(scores[i])) for i in order[at].tolist())
    return [*chosen]


def _layout(folder: str, column: int) -> str:
    return join(folder, f"{column}-layout")


def rank_part(work: PartToRank, report: Report) -> Part:
    """Rank a partition, unless a record says it is done."""
    whole: RankingInput = records.load_layout(_layout(work.folder, work.column), RankingInput)
    stem = join(work.folder, f"{whole.column}-part-{work.part}-of-{whole.parts}")

    def rank() -> Part:
        slices = for_each(lambda run: _slice(whole, run, work.part), whole.runs)
        groups, ranked = _ranked(whole.groups, slices)
        ends = np.cumsum([len(item) for item, _, _ in slices], dtype=np.int64)
        sections = {i: part.astype("<u8").tobytes() for i, part in enumerate(np.split(ranked, ends[:-1]))}
        return Part(groups, scatter_sections(stem, len(slices), sections))

    return once(stem + ".json", "", Part, rank)


def _slice(whole: RankingInput, run: score_runs.RunOfScores, part: int) -> tuple[Array, Array, Array]:
    """Return groups, scores and counts of a run's keys in a partition."""
    column = run.run.columns[whole.column]
    starts = run.starts(column)
    marks = run.marks(column)
    first = run.place(column, starts, marks, *whole.bounds[part - 1]) if part else 0
    last = run.place(column, starts, marks, *whole.bounds[part]) if part < len(whole.bounds) else column.total
    numbers = {label: i for i, label in enumerate(whole.groups)}
    table = np.array([numbers[label] for label in run.run.groups] or [0], dtype=np.uint32)
    groups = table[np.searchsorted(starts, np.arange(first, last), side="right") - 1]
    return groups, run.keys(column, first, last), run.counts(column, first, last)


def _ranked(labels: list[str], slices: list[tuple[Array, Array, Array]]) -> tuple[dict[str, RankGroup], Array]:
    """Return a partition's groups, and twice the rank of each key."""
    groups = np.concatenate([np.zeros(0, dtype=np.uint32), *(slice_[0] for slice_ in slices)])
    scores = np.concatenate([np.zeros(0), *(slice_[1] for slice_ in slices)])
    counts = np.concatenate([np.zeros(0, dtype=np.uint32), *(slice_[2] for slice_ in slices)])
    if not len(scores):
        return {}, np.zeros(0, dtype=np.uint64)
    order = np.lexsort((scores, groups))
    groups, scores = groups[order], scores[order]
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (groups[1:] != groups[:-1]) | (scores[1:] != scores[:-1])
    first = np.flatnonzero(is_new)
    equal = np.add.reduceat(counts[order].astype(np.uint64), first)
    ends = np.cumsum(equal)
    groups, scores = groups[first], scores[first]
    starts = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
    sizes = np.diff(np.r_[starts, len(groups)])
    before = np.repeat((ends - equal)[starts], sizes)
    ranked = np.empty(len(order), dtype=np.uint64)
    ranked[order] = (2 * (ends - before) - equal)[np.cumsum(is_new) - 1]
    results = {
        labels[groups[start]]: RankGroup(
            int(ends[start + size - 1] - before[start]), size, float(scores[start]), float(scores[start + size - 1])
        )
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
    }
    return results, ranked


def ranks_of_keys(folder: str, ranking: Ranking, column: int, shard: int, number: int) -> Array:
    """Return the rank of each key of a run."""
    whole: RankingInput = records.load_layout(_layout(folder, column), RankingInput)
    first = next(i for i, run in enumerate(whole.runs) if run.shard == shard)
    run = whole.runs[first + number]
    starts = run.starts(run.run.columns[column])
    parts = gather_sections(folder, f"{column}-ranks", first + number)
    sections = [np.frombuffer(part, dtype="<u8") for part in parts]
    result = np.concatenate(sections)
    groups = np.searchsorted(starts, np.arange(len(result)), side="right") - 1
    numbers = {label: i for i, label in enumerate(run.run.groups)}
    ends = np.cumsum([len(section) for section in sections]).tolist()
    for (label, _), before, begin, end in zip(whole.bounds, ranking.before, ends[:-1], ends[1:], strict=True):
        if label in numbers:
            mine = result[begin:end]
            mine[groups[begin:end] == numbers[label]] += np.uint64(2 * before)
    documents = np.array([ranking.groups[label].documents for label in run.run.groups] or [1], dtype=np.int64)
    return result / (2 * documents[groups])


_FOUND = "ranked"


class Ranked(msgspec.Struct, frozen=True):
    """The rank of a document.

    Attributes:
        rank: The share of the documents of its group that have a lower score, and half of those that have the same.
    """

    rank: float


class MaybeRanked(msgspec.Struct, frozen=True):
    """The rank of a document within its group.

    Attributes:
        rank: Share of the documents of its group with a lower score, plus half of those with the same;
            null for a document without score, one that is not asked for, or a group that is too small.
    """

    rank: float | None


class Rank(score_runs.Calibrating, kw_only=True):
    """Ranks over the corpus, within groups.

    Attributes:
        score: SET.KEY.field or an expression: a number, or null; or a list of such, with `combine`
        combine: the way in which the ranks of several scores are combined
        minimum: number of documents that a group needs; documents of smaller groups have no rank
    """

    score: str | list[str]
    combine: Literal["max", "mean"] | None = None
    minimum: Annotated[int, msgspec.Meta(ge=1)] = 1

    def check(self) -> None:
        """Refuse conflicting options with a ConfigError."""
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
    def layout(self) -> score_runs.RunLayout:
        """Return the layout of stored scores."""
        return score_runs.RunLayout(len(self.scores), 0, labels=False)

    def value_type(self) -> Any:
        """Return the type of the values."""
        return MaybeRanked

    def typed(self, types: Mapping[str, Type]) -> Any:
        """Return the type of the values, nullable if some may be missing."""
        lacks = any(score_runs.may_be_null(types[name]) for name in score_runs.numbered("score", self.scores))
        return MaybeRanked if lacks or self.minimum > 1 or "when" in types else Ranked

    def resolve(self, work: kind.ResolveJob) -> kind.Decisions:
        """Rank all scores."""
        rankings = [rank_scores(work, i) for i in range(len(self.scores))]
        write_sealed(join(work.folder, _FOUND), msgspec.msgpack.encode(rankings))
        made_of = [shard.record.files[score_runs.FILE].sha256 for shard in work.shards]
        all_ = xxhash.xxh3_128_hexdigest(msgspec.json.encode(made_of))
        fates = {shard.shard: f"{all_} {own}" for shard, own in zip(work.shards, made_of, strict=True)}
        ranked = sum(shard.record.counts["ranked"] for shard in work.shards)
        report = self._report(rankings)
        counts = {"with a score": ranked} | ({"groups": len({row["group"] for row in report})} if self.groups else {})
        return kind.Decisions(fates, counts, self._notes(report), {"groups": report})

    def _report(self, rankings: list[Ranking]) -> list[dict[str, Any]]:
        """Return a row for each score and group."""
        return [
            ({"score": self.scores[i]} if self.combine else {}) | {"group": label} | msgspec.structs.asdict(group)
            for i, ranking in enumerate(rankings)
            for label, group in ranking.groups.items()
        ]

    def _notes(self, report: list[dict[str, Any]]) -> list[str]:
        """Return notes on small groups, and groups without variation."""
        notes = []
        rows = {self._named(row): row for row in report}
        if flat := [name for name, row in rows.items() if row["lowest"] == row["highest"] and row["documents"] > 1]:
            notes.append(
                f"warning: the score does not vary, so each document has the rank 0.5: {score_runs.some(flat)}"
            )
        if small := [f"{name} {row['documents']}" for name, row in rows.items() if row["documents"] < self.minimum]:
            notes.append(
                f"groups of fewer than {self.minimum:,} documents, which have no rank: {score_runs.some(small)}"
            )
        return notes

    def _named(self, row: dict[str, Any]) -> str:
        return " of ".join(([row["score"]] if self.combine else []) + [row["group"] or "all documents"])

    def values(self, signed: records.SignedShard, fates: str) -> Iterator[Any]:
        """Yield the rank of each document."""
        path = join(fates, _FOUND)
        try:
            rankings = msgspec.msgpack.decode(read_sealed(path), type=list[Ranking])
        except FileNotFoundError:
            raise damaged(path) from None
        for number, run in enumerate(score_runs.runs_of(signed)):
            for rank in self._combined(rankings, fates, run, number).tolist():
                yield MaybeRanked(None if rank < 0 else rank)

    def _combined(self, rankings: list[Ranking], fates: str, run: score_runs.RunOfScores, number: int) -> Array:
        """Return the rank of each row of a run; -1 for none."""
        ranks: list[Array] = []
        for i, column in enumerate(run.run.columns):
            of_keys = ranks_of_keys(fates, rankings[i], i, run.shard, number)
            starts = run.starts(column)
            for label, begin, end in zip(run.run.groups, starts[:-1].tolist(), starts[1:].tolist(), strict=True):
                if rankings[i].groups[label].documents < self.minimum:
                    of_keys[begin:end] = -1
            items = run.items(column)
            ranks.append(np.append(of_keys, -1.0)[np.where(items == score_runs.ABSENT, len(of_keys), items)])
        if len(ranks) == 1:
            return ranks[0]
        together = np.stack(ranks)
        combined: Array = together.max(axis=0) if self.combine == "max" else together.mean(axis=0)
        return combined
