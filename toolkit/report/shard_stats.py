"""Counts of one shard for a report, and their sum over shards.

They are made from attributes, row index and columns, and kept.

``<folder>/<shard>.counts``  a `ShardCounts`, compressed
``<folder>/<shard>.groups``  sums by source, host, top-level domain and crawl, sorted
``<folder>/<shard>.kept``    where rules drop copies, what becomes of documents: `toolkit.mix.orphans.Fates`
``<folder>/<shard>.copies``  where rules drop copies, the documents that are dropped so: `toolkit.mix.orphans.Fates`
``<folder>/<shard>.shown``   the samples of the last report: `toolkit.report.samples`

The folder is that of the settings: rules and what is counted of attributes.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from toolkit import partial_sums
from toolkit.aggregate import groups
from toolkit.aggregate.columns import Columns, columns_of, decoding
from toolkit.aggregate.histogram import Cells, Spread
from toolkit.aggregate.samples import Least, Rank, add_ranks
from toolkit.config.settings import ConfigStruct
from toolkit.data import row_index
from toolkit.execution.executors import Report
from toolkit.lazy_numpy import np
from toolkit.mix.bindings import ShardToMix
from toolkit.mix.join import inputs_of
from toolkit.mix.orphans import Copies, Fates
from toolkit.mix.rule_effects.counts import GroupCount, RuleCount, Totals
from toolkit.mix.rule_effects.preview import Effects, RuleBlock, RuleDecisions, blocks
from toolkit.report import facts
from toolkit.report.attributes import APPLIED, DRAWN, DROPPED, MOST, PAIRS, Attributes, DuplicateCounts, Pair, key_of
from toolkit.report.fields import StreamFields
from toolkit.storage.freshness import Artifact, FileRecord, state
from toolkit.storage.json_files import json_digest
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import escape_path, join, remove
from toolkit.storage.record_log import Group

VERSION = 6
"""Of what is counted; shards that were counted by another version are counted anew."""

SIZES = ("documents", "chars", "bytes", "lines", "words", "tokens")
"""Sums of each label, in this order."""

LABEL_CHARS = 100
"""Code points of a label; of a longer one only the beginning is counted by."""

EFFECT = ("documents", "chars", "unique")
"""Sums of each rule and label."""


class ShardToCount(ConfigStruct):
    """A shard to count.

    Attributes:
        work: the shard with its mix.
        fields: Fields to count.
        folder: Folder of the counts of all settings.
        columns: folder for the columns of shards.
    """

    work: ShardToMix
    fields: StreamFields
    folder: str
    columns: str

    @property
    def settings(self) -> str:
        """Return the digest of all settings beside the inputs."""
        work = self.work
        result = (VERSION, work.settings.stage_digest(), work.stream.name, work.settings.label, self.fields)
        return json_digest(msgspec.to_builtins(result))

    @property
    def base(self) -> str:
        """Return the path of the counts, without its suffix."""
        return join(self.folder, self.settings, escape_path(self.work.shard))


class Sums(msgspec.Struct, kw_only=True):
    """The additive counts of a shard.

    Attributes:
        totals: documents and code points.
        effects: Effects of each rule, in order.
        by_label: Numbers of `EFFECT` for each label and rule; the label is empty for documents without one.
        before, after: for each label, the numbers of `SIZES`; after with copies, before edits.
        budget: Amounts of each group of a budget.
        unlike_dolma: documents of which Dolma decides otherwise.
        marks: Documents beyond each threshold of each score, by label.
        spans: Documents with spans, spans and their code points for each attribute, by label.
        duplicates: Duplicates of each set.
    """

    totals: Totals
    effects: list[RuleCount]
    by_label: dict[str, list[list[int]]] = {}
    before: dict[str, list[int]] = {}
    after: dict[str, list[int]] = {}
    budget: dict[str, GroupCount] = {}
    unlike_dolma: int = 0
    marks: list[list[dict[str, int]]]
    spans: list[dict[str, list[int]]]
    duplicates: list[DuplicateCounts]


class ShardCounts(Artifact, frozen=True, kw_only=True):
    """The counts of a shard.

    Attributes:
        content, attributes: digests of the inputs.
        labels: Labels that there are, in the order of their numbers in what follows.
        lengths: Lengths of documents.
        scores: distributions, in the order of `StreamFields`.
        ranks: samples.
        pairs: Pairs of near duplicates, by the number of their set.
        fates: bytes of what is noted of documents, where rules drop copies.
    """

    content: str
    attributes: dict[str, str]
    labels: list[str]
    sums: Sums
    lengths: Cells
    scores: list[Cells]
    ranks: dict[str, list[Rank]]
    pairs: dict[str, list[Pair]]
    fates: int | None = None

    @property
    def lineage(self) -> dict[str, str]:
        return {"": self.content, **self.attributes}


def count_shard(task: ShardToCount, report: Report, group: Group | None = None) -> int:
    """Count a shard, unless it is counted; return its number of documents.

    With a group, what is counted becomes durable with it.

    Raises:
        DataError: as a mix of it would, as far as attributes are concerned.
    """
    documents, inputs = inputs_of(task.work)
    together = group.files if group else None

    def files(shard_counts: ShardCounts) -> list[FileRecord]:
        suffixes = ("groups",) if shard_counts.fates is None else ("groups", "kept", "copies")
        return [FileRecord(f"{task.base}.{suffix}") for suffix in suffixes]

    if not state(load(task), [("", documents.content), *inputs.items()], files=files).is_done:
        remove(f"{task.base}.counts")
        columns = columns_of(task.work, task.columns, report, group)
        counting = _ShardCounter(task, columns)
        counting.run()
        groups.write(f"{task.base}.groups", counting.groups(), together)
        shard_counts = counting.counts(documents.content, inputs)
        if shard_counts.fates is not None:
            write_file(f"{task.base}.kept", counting.fates.staying, together)
            write_file(f"{task.base}.copies", counting.fates.copies, together)
        partial_sums.save(f"{task.base}.counts", shard_counts, together)
    report(documents.rows, 0)
    return documents.rows


def load(task: ShardToCount) -> ShardCounts | None:
    """Return the counts of a shard; None if there is nothing, or it is damaged."""
    return partial_sums.load(f"{task.base}.counts", ShardCounts)


class _ShardCounter:
    """Counts a shard, block by block.

    Args:
        task: the shard.
        columns: Columns of its documents.
    """

    def __init__(self, task: ShardToCount, columns: Columns) -> None:
        self._work, self._columns = task.work, columns
        self._rules = decoding(task.work.compile_rules(), task.fields.keys)
        self._copies = Copies(self._rules, task.work)
        self.fates = Fates()
        self._lines, self._words = columns.array(columns.lines), columns.array(columns.words)
        self._places = {kind: columns.array(data) for kind, data in columns.places.items()}
        self._hashes = row_index.hashes(task.work.dataset, task.work.shard)
        self._effects = Effects(task.work, self._rules, self._copies)
        self._labels, self._rows = self._effects.labels, 0
        self._sizes = [_zeros(64, len(SIZES)) for _ in range(2)]
        self._least = Least[Rank]()
        self._attributes = Attributes(task.work.sets, task.fields, self._least, self._rules, self._labels)
        self._sums = {kind: _zeros(len(values), 6) for kind, values in columns.values.items()}

    def run(self) -> None:
        for block in blocks(self._work, self._rules):
            self._add(block)
        self.fates = self._copies.take()

    def _add(self, block: RuleBlock) -> None:
        begin = self._rows
        self._rows += len(block.chars)
        here = slice(begin, self._rows)
        rows = np.arange(begin + 1, self._rows + 1)
        chars, sizes = np.array(block.chars, dtype=np.int64), np.array(block.bytes, dtype=np.int64)
        decided = self._effects.add(block, map(_label_key, block.labels))
        labels, dropped, copies = decided[:3]
        tokens = self._attributes.tokens(block)
        measured = np.stack([np.ones_like(chars), chars, sizes, self._lines[here], self._words[here], tokens], axis=1)
        written = measured * copies[:, None]
        for number, counts in enumerate((measured, written)):
            np.add.at(self._sizes_of(number), labels, counts)
        for kind, place in self._places.items():
            np.add.at(self._sums[kind], place[here], np.hstack([measured[:, :3], written[:, :3]]))
        self._choose(decided, self._hashes[here], rows)
        self._attributes.add(block, labels, dropped, self._hashes[here], rows)

    def _sizes_of(self, number: int) -> Any:
        while len(self._sizes[number]) < len(self._labels):
            self._sizes[number] = np.vstack([self._sizes[number], np.zeros_like(self._sizes[number])])
        return self._sizes[number]

    def _choose(self, decided: RuleDecisions, hashes: Any, rows: Any) -> None:
        names, labels, dropped = list(self._labels), decided.labels, decided.dropped
        for rule in set(decided.rules.tolist()):
            met = decided.places[decided.rules == rule]
            add_ranks(self._least, key_of("applied", rule), APPLIED, hashes[met], rows[met])
        for label in set(labels.tolist()):
            here = labels == label
            add_ranks(self._least, key_of("label", names[label]), DRAWN, hashes[here], rows[here])
            for rule in set(dropped[here].tolist()) - {-1}:
                selected = here & (dropped == rule)
                add_ranks(self._least, key_of("dropped", rule, names[label]), DROPPED, hashes[selected], rows[selected])

    def counts(self, content: str, inputs: dict[str, str]) -> ShardCounts:
        """Return the counts."""
        of, names = self._attributes, list(self._labels)
        before, after = (dict(zip(names, self._sizes_of(number).tolist(), strict=False)) for number in (0, 1))
        totals, effects, _ = self._effects.counted()
        sums = Sums(
            totals=totals,
            effects=effects,
            by_label={label: of_rules for label, (_, of_rules) in self._effects.by_label().items()},
            before=before,
            after=after,
            budget=self._effects.groups,
            unlike_dolma=self._effects.unlike_dolma,
            marks=of.marks,
            spans=of.spans,
            duplicates=of.duplicates,
        )
        return ShardCounts(
            content=content,
            attributes=inputs,
            labels=names,
            sums=sums,
            lengths=of.lengths.packed(),
            scores=[score.packed() for score in of.scores],
            ranks=self._least.items,
            pairs=of.pairs.items,
            fates=len(self.fates.staying) + len(self.fates.copies) if self._copies.rules else None,
        )

    def groups(self) -> Iterator[groups.Group]:
        """Yield sizes before and after, by source, host, domain and crawl."""
        results: dict[str, list[int]] = {}
        for kind, values in self._columns.values.items():
            for value, sums in zip(values, self._sums[kind].tolist(), strict=True):
                results[msgspec.json.encode([kind, value]).decode()] = sums
                if kind == "host":
                    key = msgspec.json.encode(["tld", _tld(value)]).decode()
                    before = results.get(key, [0] * len(sums))
                    results[key] = [a + b for a, b in zip(before, sums, strict=True)]
        yield from sorted(results.items())


def _label_key(label: str | None) -> str:
    """Return a label as documents are counted by it: the beginning of a long one."""
    return label[: LABEL_CHARS - 1] + "…" if label and len(label) > LABEL_CHARS else label or ""


def _tld(host: str) -> str:
    """Return the key of the top-level domain of a host's key; null of what has none, as addresses have."""
    name = (msgspec.json.decode(host) or "").rstrip(".").rpartition(".")[2]
    return msgspec.json.encode(name if name and not name[-1].isdigit() and ":" not in name else None).decode()


def _zeros(*shape: int) -> "np.ndarray[Any, Any]":
    return np.zeros(shape, dtype=np.int64)


# --- of all shards ----------------------------------------------------------------------------------------------------

BINS = 40
"""Bins of a histogram; of a score with thresholds there are more."""

MARKED_BINS = 100

MOST_LABELS = 200
"""Labels whose distributions are shown, those with most documents; all others are one, called ``*``."""


class SampleCandidate(NamedTuple):
    """A candidate for the samples of all shards.

    Attributes:
        distance, hash: its rank.
        shard: number of the shard.
        row: Row of the shard, from 1.
    """

    distance: float
    hash: int
    shard: int
    row: int


class StreamCounts:
    """The counts of a stream.

    Attributes:
        sums: Sums of all shards.
        chosen: samples, by key.
        pairs: Pairs of near duplicates, by the number of their set: hash, number of the shard, row, and the rest.
        fates: Bytes of the notes on a shard's documents, by its number, where rules drop copies.
    """

    def __init__(self, rules: int, fields: StreamFields) -> None:
        self.sums = Sums(
            totals=Totals(),
            effects=[RuleCount() for _ in range(rules)],
            marks=[[{} for _ in score.marks] for score in fields.scores],
            spans=[{} for _ in fields.spans],
            duplicates=[DuplicateCounts() for _ in fields.duplicates],
        )
        self.lengths, self.scores = Spread(), [Spread() for _ in fields.scores]
        self.chosen, self.pairs = Least[SampleCandidate](), Least[tuple[Any, ...]]()
        self.fates: dict[int, int] = {}

    def add(self, shard: int, shard_counts: ShardCounts) -> None:
        """Add those of a shard, by its number."""
        partial_sums.add(self.sums, shard_counts.sums)
        if shard_counts.fates is not None:
            self.fates[shard] = shard_counts.fates
        for mine, theirs in zip(
            [self.lengths, *self.scores], [shard_counts.lengths, *shard_counts.scores], strict=True
        ):
            mine.merge(theirs, shard_counts.labels)
        for key, ranks in shard_counts.ranks.items():
            here = (SampleCandidate(rank.distance, rank.hash, shard, rank.row) for rank in ranks)
            self.chosen.add(key, MOST[key.partition("\n")[0]], here)
        for key, pairs in shard_counts.pairs.items():
            self.pairs.add(key, PAIRS, ((hash_, shard, *rest) for hash_, *rest in pairs))


def sizes_of(numbers: Sequence[int], *, tokens: bool) -> facts.Sizes:
    """Return sums in the order of `SIZES` by their names."""
    sizes = facts.Sizes(**dict(zip(SIZES, numbers, strict=True)))
    sizes.tokens = sizes.tokens if tokens else None
    return sizes
