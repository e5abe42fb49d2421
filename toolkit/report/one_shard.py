"""What a report counts of one shard, from attributes, row index and columns; kept, so that it is counted once.

``<folder>/<shard>.counts``  a `ShardCounts`, compressed
``<folder>/<shard>.groups``  sums by source, host, top-level domain and crawl, sorted
``<folder>/<shard>.kept``    where rules drop copies, what becomes of documents: `toolkit.mix.orphans.Fates`
``<folder>/<shard>.copies``  likewise
``<folder>/<shard>.shown``   the samples of the last report: `toolkit.report.samples`

The folder is that of the settings: rules and what is counted of attributes.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit import partials
from toolkit.aggregate import groups
from toolkit.aggregate.columns import Columns, columns_of, decoding
from toolkit.aggregate.histogram import Cells
from toolkit.aggregate.samples import Least, Rank, add_ranks
from toolkit.config.settings import ConfigStruct
from toolkit.data import row_index
from toolkit.errors import DataError
from toolkit.mix.effects.counts import (
    GroupCount,
    RuleCount,
    Totals,
    count_group,
    count_nulls,
    count_repeats,
    finish,
)
from toolkit.mix.effects.preview import Block, blocks
from toolkit.mix.join import ShardToMix, at_document, inputs_of
from toolkit.mix.orphans import Copies, Fates
from toolkit.report.attributes import APPLIED, DRAWN, DROPPED, Attributes, DuplicateCounts, Pair, key_of
from toolkit.report.fields import Fields
from toolkit.rules import Outcome
from toolkit.runs.executors import Report
from toolkit.storage.artifact import Artifact, FileRecord, state
from toolkit.storage.json_files import json_digest
from toolkit.storage.outputs import write_file
from toolkit.storage.paths import join, remove, unlike_data

if TYPE_CHECKING:
    import numpy as np

VERSION = 6
"""Of what is counted; shards that were counted by another version are counted anew."""

SIZES = ("documents", "chars", "bytes", "lines", "words", "tokens")
"""What is summed up of each label, in this order."""

LABEL_CHARS = 100
"""Code points of a label; of a longer one only the beginning is counted by."""

EFFECT = ("documents", "chars", "unique")
"""What is summed up of each rule and label."""


class ShardToCount(ConfigStruct):
    """A shard to count.

    Attributes:
        work: the shard with its mix.
        fields: what is counted of attributes.
        folder: for what is kept of all settings.
        columns: folder for the columns of shards.
    """

    work: ShardToMix
    fields: Fields
    folder: str
    columns: str

    @property
    def settings(self) -> str:
        """Return the digest of what determines the counts beside the inputs."""
        work = self.work
        made = (VERSION, work.settings.stage_digest(), work.stream.name, work.settings.label, self.fields)
        return json_digest(msgspec.to_builtins(made))

    @property
    def base(self) -> str:
        """Return the path of what is kept, without its suffix."""
        return join(self.folder, self.settings, unlike_data(self.work.shard))


class Sums(msgspec.Struct, kw_only=True):
    """The counts of a shard that add up.

    Attributes:
        totals: documents and code points.
        effects: of each rule, in order.
        by_label: for each label and rule, the numbers of `EFFECT`; the label is empty for documents without one.
        before, after: for each label, the numbers of `SIZES`; after with copies, before edits.
        budget: what a budget takes of each group.
        unlike_dolma: documents of which Dolma decides otherwise.
        marks: for each score and threshold, documents for which the comparison holds, by label.
        spans: for each attribute, by label: documents with spans, spans, their code points.
        duplicates: of each set.
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
        labels: that there are, in the order of their numbers in what follows.
        lengths: of documents.
        scores: distributions, in the order of `Fields`.
        ranks: samples.
        pairs: of near duplicates, by the number of their set.
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


def count_shard(task: ShardToCount, report: Report) -> int:
    """Count a shard, unless that has been done; return its number of documents.

    Raises:
        DataError: as a mix of it would, as far as attributes are concerned.
    """
    documents, inputs = inputs_of(task.work)

    def files(found: ShardCounts) -> list[FileRecord]:
        suffixes = ("groups",) if found.fates is None else ("groups", "kept", "copies")
        return [FileRecord(f"{task.base}.{suffix}") for suffix in suffixes]

    if not state(load(task), [("", documents.content), *inputs.items()], files=files).is_done:
        remove(f"{task.base}.counts")
        columns = columns_of(task.work, task.columns, report)
        counting = _Counting(task, columns)
        counting.run()
        groups.write(f"{task.base}.groups", counting.groups())
        made = counting.counts(documents.content, inputs)
        if made.fates is not None:
            write_file(f"{task.base}.kept", counting.fates.kept)
            write_file(f"{task.base}.copies", counting.fates.copies)
        partials.save(f"{task.base}.counts", made)
    report(documents.rows, 0)
    return documents.rows


def load(task: ShardToCount) -> ShardCounts | None:
    """Return what was counted of a shard; None if there is nothing, or it is damaged."""
    return partials.load(f"{task.base}.counts", ShardCounts)


class _Counting:
    """Counts a shard, block by block.

    Args:
        task: the shard.
        columns: of its documents.
    """

    def __init__(self, task: ShardToCount, columns: Columns) -> None:
        self._work, self._columns = task.work, columns
        self._rules = decoding(task.work.compile_rules(), task.fields.keys)
        self._copies = Copies(self._rules, task.work)
        self.fates = Fates()
        self._lines, self._words = columns.array(columns.lines), columns.array(columns.words)
        self._places = {kind: columns.array(data) for kind, data in columns.places.items()}
        self._hashes = row_index.hashes(task.work.dataset, task.work.shard)
        self._labels: dict[str, int] = {}
        self._effects = [RuleCount() for _ in self._rules.rules]
        self._by_label: list[Any] = []
        self._sizes: list[Any] = []
        self._least = Least[Rank]()
        self._attributes = Attributes(task.work.sets, task.fields, self._least, self._rules, self._labels)
        self._met: dict[int, list[int]] = {}
        self._budget: dict[str, GroupCount] = {}
        self._totals = Totals()
        self._unlike_dolma = 0
        self._sums = {kind: _zeros(len(values), 6) for kind, values in columns.values.items()}

    def run(self) -> None:
        for block in blocks(self._work, self._rules):
            self._add(block)
        self.fates = self._copies.taken()
        finish(self._effects, self._rules.rules, self._totals)

    def _add(self, block: Block) -> None:
        import numpy as np

        begin = self._totals.rows
        here = slice(begin, begin + len(block.chars))
        rows = np.arange(begin + 1, begin + 1 + len(block.chars))
        chars, sizes = np.array(block.chars, dtype=np.int64), np.array(block.bytes, dtype=np.int64)
        labels = np.array([self._label(label or "") for label in block.labels], dtype=np.int64)
        dropped = np.array([each if isinstance(each, int) else -1 for each in block.outcomes], dtype=np.int64)
        unique, copies = self._each(block, begin, labels)
        kept = dropped < 0
        self._decided(block, labels, chars, dropped, unique)
        tokens = self._attributes.tokens(block)
        measured = np.stack([np.ones_like(chars), chars, sizes, self._lines[here], self._words[here], tokens], axis=1)
        for number, weight in enumerate((1, copies)):
            np.add.at(self._sizes_of(number), labels, measured * np.reshape(weight, (-1, 1)))
        after = measured[:, :3] * copies[:, None]
        for kind, place in self._places.items():
            np.add.at(self._sums[kind], place[here], np.hstack([measured[:, :3], after]))
        self._totals.rows += len(chars)
        self._totals.chars += int(chars.sum())
        self._totals.kept += int(kept.sum())
        self._totals.kept_chars += int(chars[kept].sum())
        self._totals.copies += int((copies[kept] - 1).sum())
        self._totals.copy_chars += int(((copies - 1) * chars)[kept].sum())
        self._choose(labels, dropped, self._hashes[here], rows)
        self._attributes.add(block, labels, dropped, self._hashes[here], rows)

    def _label(self, label: str) -> int:
        if len(label) > LABEL_CHARS:
            label = label[: LABEL_CHARS - 1] + "…"
        if label not in self._labels:
            self._labels[label] = len(self._labels)
            self._by_label.append(_zeros(len(self._rules.rules), len(EFFECT)))
            for number in (0, 1):
                if len(self._sizes) <= number:
                    self._sizes.append(_zeros(64, len(SIZES)))
        return self._labels[label]

    def _sizes_of(self, number: int) -> Any:
        import numpy as np

        while len(self._sizes[number]) < len(self._labels):
            self._sizes[number] = np.vstack([self._sizes[number], np.zeros_like(self._sizes[number])])
        return self._sizes[number]

    def _each(self, block: Block, begin: int, labels: Any) -> tuple[Any, Any]:
        """Return for each document whether a rule alone drops it, and how often it is written; count what rules do."""
        import numpy as np

        rules, effects = self._rules, self._effects
        unique, copies = [False] * len(block.chars), [1] * len(block.chars)
        for i, (values, outcome) in enumerate(zip(block.values(), block.outcomes, strict=True)):
            if rules.compares_nulls:
                count_nulls(effects, rules, outcome, values)
            if rules.may_differ:
                self._unlike_dolma += rules.differs(outcome, *values)
            if self._copies.rules:
                self._note(outcome, begin + 1 + i, values)
            if isinstance(outcome, int):
                unique[i], copies[i] = rules.only_drop(outcome, *values), 0
                continue
            try:
                if rules.applies or rules.edits:
                    self._change(values, block.chars[i], int(labels[i]), i)
                if rules.repeats:
                    copies[i] = rules.copies(*values)
                    count_repeats(effects, rules, copies[i], values)
                elif rules.budget:
                    copies[i] = rules.copies(*values)
                if rules.budget:
                    count_group(self._budget, *rules.budget.of(values, block.chars[i], block.bytes[i]), copies[i])
            except DataError as error:
                raise at_document(error, self._work, begin + 1 + i, values[-1].id) from None
        return np.array(unique, dtype=bool), np.array(copies, dtype=np.int64)

    def _note(self, outcome: Outcome, number: int, values: tuple[Any, ...]) -> None:
        try:
            self._copies.note(outcome, number, values)
        except DataError as error:
            raise at_document(error, self._work, number, values[-1].id) from None

    def _change(self, values: tuple[Any, ...], chars: int, label: int, place: int) -> None:
        """Count the rules that give a document which stays a field, route it or edit it."""
        for i in self._rules.applied(*values) if self._rules.applies else ():
            self._applied(i, label, place, chars)
        for i, rule in enumerate(self._rules.compiled) if self._rules.edits else ():
            spans, cut = rule.preview(values)
            if spans:
                self._effects[i].spans += spans
                self._applied(i, label, place, cut or 0)

    def _applied(self, rule: int, label: int, place: int, chars: int) -> None:
        self._effects[rule].documents += 1
        self._effects[rule].chars += chars
        self._by_label[label][rule] += (1, chars, 0)
        self._met.setdefault(rule, []).append(place)

    def _decided(self, block: Block, labels: Any, chars: Any, dropped: Any, unique: Any) -> None:
        import numpy as np

        drops = dropped >= 0
        for label, rule in set(zip(labels[drops].tolist(), dropped[drops].tolist(), strict=True)):
            here = drops & (labels == label) & (dropped == rule)
            found = np.array([here.sum(), chars[here].sum(), unique[here].sum()])
            self._by_label[label][rule] += found
            self._effects[rule].documents += int(found[0])
            self._effects[rule].chars += int(found[1])
        for i, (outcome, size) in enumerate(zip(block.outcomes, block.chars, strict=True)):
            if not isinstance(outcome, int):
                for rule in outcome:
                    self._applied(rule, int(labels[i]), i, size)

    def _choose(self, labels: Any, dropped: Any, hashes: Any, rows: Any) -> None:
        names = list(self._labels)
        for rule, met in self._met.items():
            add_ranks(self._least, key_of("applied", rule), APPLIED, hashes[met], rows[met])
        self._met = {}
        for label in set(labels.tolist()):
            here = labels == label
            add_ranks(self._least, key_of("label", names[label]), DRAWN, hashes[here], rows[here])
            for rule in set(dropped[here].tolist()) - {-1}:
                those = here & (dropped == rule)
                add_ranks(self._least, key_of("dropped", rule, names[label]), DROPPED, hashes[those], rows[those])

    def counts(self, content: str, inputs: dict[str, str]) -> ShardCounts:
        """Return what was counted."""
        of, names = self._attributes, list(self._labels)
        before, after = (
            dict(zip(names, self._sizes_of(number).tolist(), strict=False)) if names else {} for number in (0, 1)
        )
        sums = Sums(
            totals=self._totals,
            effects=self._effects,
            by_label=dict(zip(names, (each.tolist() for each in self._by_label), strict=True)),
            before=before,
            after=after,
            budget=self._budget,
            unlike_dolma=self._unlike_dolma,
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
            scores=[each.packed() for each in of.scores],
            ranks=self._least.found,
            pairs=of.pairs.found,
            fates=len(self.fates.kept) + len(self.fates.copies) if self._copies.rules else None,
        )

    def groups(self) -> Iterator[groups.Group]:
        """Yield documents, code points and bytes, before and after, by source, host, top-level domain and crawl."""
        found: dict[str, list[int]] = {}
        for kind, values in self._columns.values.items():
            for value, sums in zip(values, self._sums[kind].tolist(), strict=True):
                found[msgspec.json.encode([kind, value]).decode()] = sums
                if kind == "host":
                    key = msgspec.json.encode(["tld", _tld(value)]).decode()
                    before = found.get(key, [0] * len(sums))
                    found[key] = [a + b for a, b in zip(before, sums, strict=True)]
        yield from sorted(found.items())


def _tld(host: str) -> str:
    """Return the key of the top-level domain of a host's key; null of what has none, as addresses have."""
    name = (msgspec.json.decode(host) or "").rstrip(".").rpartition(".")[2]
    return msgspec.json.encode(name if name and not name[-1].isdigit() and ":" not in name else None).decode()


def _zeros(*shape: int) -> "np.ndarray[Any, Any]":
    import numpy as np

    return np.zeros(shape, dtype=np.int64)
