"""Previews a mix from attributes and row indexes alone: no text is read, nothing is written."""

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data import row_index
from toolkit.data.alignment import AttributeRows, attribute_lines
from toolkit.data.documents import LATE_DECODER, Rows
from toolkit.errors import DataError
from toolkit.execution.executors import Report
from toolkit.execution.progress import Share
from toolkit.lazy_numpy import np
from toolkit.mix.bindings import ShardToMix
from toolkit.mix.join import (
    JoinedSet,
    JoinedShard,
    RawAttributes,
    RowDecoder,
    at_document,
    inputs_of,
    joint_rows,
    plain_values,
)
from toolkit.mix.orphans import Copies, Fates
from toolkit.mix.rule_effects import counts as effect_counts
from toolkit.mix.writer import not_carried
from toolkit.rules.ruleset import Outcome, RuleSet
from toolkit.storage.stores.local.scratch import move_scratch, open_scratch

if TYPE_CHECKING:
    from toolkit.text.kernels.signatures import Array


class LabelCount(effect_counts.Totals):
    """Documents of a label, and how many of them each rule drops."""

    dropped: list[int] = msgspec.field(default_factory=list)


_ENOUGH, _FACTOR, _LEAST = 100, 3, 10
"""Documents of a label that is looked at, how many times the share of the others it may lose, and documents lost."""


def uneven_losses(labels: Mapping[str, tuple[int, int, int]]) -> list[str]:
    """Return warnings about labels with far larger losses than all others.

    A label that one rule drops as a whole is left out: a recipe for some languages means that.

    Args:
        labels: Documents by label, those that stay, and the most that one rule drops.
    """
    counts = {label: (rows, staying) for label, (rows, staying, most) in labels.items() if most < rows}
    all_rows, all_kept = (sum(column) for column in zip(*counts.values(), strict=True)) if counts else (0, 0)
    results = []
    for label, (rows, staying) in sorted(counts.items()):
        rest, lost, lost_of_others = all_rows - rows, rows - staying, all_rows - all_kept - rows + staying
        if rows >= _ENOUGH and lost >= _LEAST and lost * rest > _FACTOR * lost_of_others * rows:
            results.append(
                f"the rules drop {lost / rows:.0%} of {rows:,} documents of {label or 'no label'}, and "
                f"{lost_of_others / rest:.1%} of the others: do they fit this language? `--explain ID` shows why"
            )
    return results


class Preview(effect_counts.ShardEffects, frozen=True, kw_only=True):
    """The effects of rules on a shard, without its texts.

    Attributes:
        only: Number of documents that each rule alone drops.
        labels: Counts by label, before any `route`.
        texts: True if the documents had to be read.
        stays: Bit of each document, 1 if it stays, where a mix notes the ids that it writes.
        fates: Outcomes of documents, unless they went to files; None without rules about copies.
    """

    only: list[int]
    labels: dict[str, LabelCount]
    texts: bool
    stays: bytes = b""
    fates: Fates | None = None


class ShardToPreview(ConfigStruct):
    """A shard, and the files for the outcomes of its documents. Their folder may be on another machine."""

    work: ShardToMix
    staying: str
    copies: str


def preview_with_fates(target: ShardToPreview, report: Report) -> Preview:
    """Return the effects of the rules on one shard; write to files, or return, what becomes of its documents."""
    copies = Copies(target.work.compile_rules(), target.work)
    if not copies.rules:
        return preview_shard(target.work, report)
    fates: list[Fates] = []
    if not os.path.isdir(os.path.dirname(target.staying)):
        preview = preview_shard(target.work, report, copies, fates.append)
        together = Fates(b"".join(fates.staying for fates in fates), b"".join(fates.copies for fates in fates))
        return msgspec.structs.replace(preview, fates=together)
    mine = f".{os.getpid()}"  # the task may run twice
    with open_scratch(target.staying + mine) as kept_file, open_scratch(target.copies + mine) as dropped:

        def write(fates: Fates) -> None:
            kept_file.write(fates.staying)
            dropped.write(fates.copies)

        preview = preview_shard(target.work, report, copies, write)
    for path in (target.staying, target.copies):
        move_scratch(path + mine, path)
    return preview


def preview_shard(
    work: ShardToMix, report: Report, copies: Copies | None = None, note: Callable[[Fates], object] = lambda fates: None
) -> Preview:
    """Return the effects of the rules on one shard.

    Args:
        work: Shard.
        report: Report of progress.
        copies: Finder of documents dropped as copies.
        note: Function that takes outcomes of documents.

    Raises:
        DataError: as a mix of it would, as far as attributes are concerned.
    """
    state, _ = inputs_of(work)
    rules = work.compile_rules()
    effects, bits, stays = Effects(work, rules, copies), dict[str, int](), bytearray()
    progress = Share(report, state.rows, state.size)
    for block in blocks(work, rules):
        effects.add(block, [label or effect_counts.NO_LABEL for label in block.labels])
        rules.occurrence.note_all(bits, block.columns)
        stays.extend(not isinstance(outcome, int) for outcome in block.outcomes)
        if copies:
            note(copies.take())
        progress(len(block.chars))
    totals, counts, only = effects.counted()
    drops = [rule.drops for rule in rules.rules]
    labels = {
        label: LabelCount(
            **msgspec.structs.asdict(totals), dropped=[of[0] * drop for of, drop in zip(of_rules, drops, strict=True)]
        )
        for label, (totals, of_rules) in effects.by_label().items()
    }
    return Preview(
        totals=totals,
        rules=counts,
        only=only,
        labels=labels,
        matched={i: sorted(watch.matched) for i, watch in rules.blocklists.items()},
        texts=_reads_documents(work, rules),
        not_carried=not_carried(work.settings.writer(), state.all_fields),
        unlike_dolma=effects.unlike_dolma,
        stays=np.packbits(np.frombuffer(stays, np.uint8)).tobytes() if work.settings.notes_ids else b"",
        groups=effects.groups,
        kinds=bits,
    )


class RuleDecisions(NamedTuple):
    """The decisions of rules about the documents of a block.

    Attributes:
        labels: Numbers of their labels.
        dropped: Rules that drop them, -1 of those that stay.
        copies: Number of copies of each document.
        places, rules: Documents, by their places, that rules are applied to which do not drop them, and these rules.
    """

    labels: "Array"
    dropped: "Array"
    copies: "Array"
    places: "Array"
    rules: "Array"


class Effects:
    """Counts the effects of rules on a shard by label.

    Args:
        work: Shard.
        rules: Rules that decide.
        copies: Finder of documents dropped as copies.

    Attributes:
        labels: Numbers of labels.
        groups: Amounts that a budget takes, by group.
        unlike_dolma: Documents of which Dolma decides otherwise.
    """

    def __init__(self, work: ShardToMix, rules: RuleSet, copies: Copies | None = None) -> None:
        self._work, self._rules, self._copies = work, rules, copies if copies and copies.rules else None
        self.labels: dict[str, int] = {}
        self.groups: dict[str, effect_counts.GroupCount] = {}
        self.unlike_dolma = self._rows = 0
        self._counts = [effect_counts.RuleCount() for _ in rules.rules]
        self._sizes = np.zeros((64, len(effect_counts.Totals.__struct_fields__)), dtype=np.int64)
        self._of_rules = np.zeros((64, len(rules.rules), 3), dtype=np.int64)

    def add(self, block: "RuleBlock", labels: Iterable[str]) -> RuleDecisions:
        """Add documents with their labels.

        Raises:
            DataError: naming the document of which a rule cannot use the values.
        """
        numbers = np.array([self.labels.setdefault(label, len(self.labels)) for label in labels], dtype=np.int64)
        while len(self._sizes) < len(self.labels):
            self._sizes, self._of_rules = (
                np.concatenate([item, np.zeros_like(item)]) for item in (self._sizes, self._of_rules)
            )
        unique, copies, applied = self._count_documents(block)
        chars, often = np.array(block.chars, dtype=np.int64), np.array(copies, dtype=np.int64)
        dropped = np.array([outcome if isinstance(outcome, int) else -1 for outcome in block.outcomes], dtype=np.int64)
        one, drops, stays = np.ones_like(chars), dropped >= 0, (dropped < 0).astype(np.int64)
        again = (often - 1) * stays
        np.add.at(self._sizes, numbers, np.stack([one, chars, stays, stays * chars, again, again * chars], axis=1))
        places, rules, sizes = np.array(applied, dtype=np.int64).reshape(-1, 3).T
        by_rule = (numbers[drops], dropped[drops]), (numbers[places], rules)
        counts = np.stack([one, chars, unique], axis=1)[drops], np.stack([one[places], sizes, 0 * sizes], axis=1)
        for place, count in zip(by_rule, counts, strict=True):
            np.add.at(self._of_rules, place, count)
        self._rows += len(chars)
        return RuleDecisions(numbers, dropped, often, places, rules)

    def _count_documents(self, block: "RuleBlock") -> tuple[list[bool], list[int], list[tuple[int, int, int]]]:
        """Return single-handed drops, numbers of copies, and (place, rule, code points).

        The last are of documents which rules are applied to that do not drop them.
        """
        rules, counts = self._rules, self._counts
        unique, copies, applied = [False] * len(block.chars), [1] * len(block.chars), list[tuple[int, int, int]]()
        for i, (values, outcome, chars) in enumerate(zip(block.values(), block.outcomes, block.chars, strict=True)):
            try:
                if rules.compares_nulls:
                    effect_counts.count_nulls(counts, rules, outcome, values)
                if rules.may_differ:
                    self.unlike_dolma += rules.differs(outcome, *values)
                if self._copies:
                    self._copies.note(outcome, self._rows + 1 + i, values)
                if isinstance(outcome, int):
                    unique[i], copies[i] = rules.only_drop(outcome, *values), 0
                    continue
                applied += [(i, rule, chars) for rule in outcome]
                applied += [(i, rule, cut) for rule, cut in self._applied(values, chars)]
                if rules.repeats or rules.budget:
                    copies[i] = rules.copies(*values)
                if rules.repeats:
                    effect_counts.count_repeats(counts, rules, copies[i], values)
                if rules.budget:
                    effect_counts.count_group(self.groups, *rules.budget.of(values, chars, block.bytes[i]), copies[i])
            except DataError as error:
                raise at_document(error, self._work, self._rows + 1 + i, values[-1].id) from None
        return unique, copies, applied

    def _applied(self, values: tuple[Any, ...], chars: int) -> Iterator[tuple[int, int]]:
        """Yield the rules with changes, and the code points for each."""
        for i in self._rules.applied(*values) if self._rules.applies else ():
            yield i, chars
        for i, rule in enumerate(self._rules.compiled) if self._rules.edits else ():
            spans, cut = rule.preview(values)
            if spans:
                self._counts[i].spans += spans
                yield i, min(cut or 0, chars)  # an end past the text may be clamped

    def counted(self) -> tuple[effect_counts.Totals, list[effect_counts.RuleCount], list[int]]:
        """Return totals, effects of rules, and single-handed drops."""
        totals, of_rules = effect_counts.Totals(*self._sizes.sum(axis=0).tolist()), self._of_rules.sum(axis=0).tolist()
        for count, (documents, chars, _) in zip(self._counts, of_rules, strict=True):
            count.documents, count.chars = documents, chars
        effect_counts.finish(self._counts, self._rules.rules, totals)
        return totals, self._counts, [unique for _, _, unique in of_rules]

    def by_label(self) -> dict[str, tuple[effect_counts.Totals, list[list[int]]]]:
        """Return the totals of each label; of each rule documents, code points, and documents that it alone drops."""
        result = zip(map(effect_counts.Totals, *self._sizes.T.tolist()), self._of_rules.tolist(), strict=True)
        return dict(zip(self.labels, result, strict=False))


# --- blocks of documents ----------------------------------------------------------------------------------------------

BLOCK = 4096
"""Documents that are looked at together: their attributes are in memory at a time."""


class RuleBlock(msgspec.Struct, frozen=True):
    """Some documents in a row.

    Attributes:
        columns: Values of each of the rules' arguments, the document last.
        chars: Code points of each.
        bytes: Bytes of each, in UTF-8.
        outcomes: Decision on each document.
        labels: Labels of each, None where there is none.
    """

    columns: list[list[Any]]
    chars: list[int]
    bytes: list[int]
    outcomes: list[Outcome]
    labels: Sequence[str | None]

    def values(self) -> Iterator[tuple[Any, ...]]:
        """Return the arguments of each document."""
        return zip(*self.columns, strict=True)


def blocks(
    work: JoinedShard, rules: RuleSet, computing: Callable[[], AbstractContextManager[None]] = nullcontext
) -> Iterator[RuleBlock]:
    """Yield the documents of a shard with the decisions on them.

    Args:
        work: Shard.
        rules: Rules that decide.
        computing: Context around computations without reads.

    Raises:
        DataError: naming the document.
    """
    number = 0
    result = _with_documents(work, rules) if _reads_documents(work, rules) else _without_documents(work, rules)
    for columns, chars, sizes in result:
        try:
            with computing():
                outcomes = rules.outcomes(columns)
                labels = rules.labels(columns)
        except DataError as error:
            raise at_document(error, work, number + (error.line or 0), error.id) from None
        yield RuleBlock(columns, chars, sizes, outcomes, labels)
        number += len(chars)


def _reads_documents(work: JoinedShard, rules: RuleSet) -> bool:
    if rules.needs.documents or not work.sets or work.stream.text is not None:
        return True
    return rules.needs.source and not any(_has_source(work, joined) for joined in work.sets)


def _has_source(work: JoinedShard, joined: JoinedSet) -> bool:
    """Return True if rows of a set name sources. Those of Dolma's deduper do not."""
    if joined.ours:
        return True
    path = work.attributes_of(joined)
    with attribute_lines(path) as lines:
        first = next(Rows(lines, _PLAIN, path), None)
    return first is None or first[0].source is not None


_Columns = tuple[list[list[Any]], list[int], list[int]]
"""The values of documents by argument, and the code points and bytes of their texts."""


def _with_documents(work: JoinedShard, rules: RuleSet) -> Iterator[_Columns]:
    rows = joint_rows(work, rules.needs.keys, rules.needs.fields, joined=rules.needs.joined)
    while some := [(values, document) for document, _, _, values in islice(rows, DOCUMENTS)]:
        documents = [document for _, document in some]
        columns = [list(column) for column in zip(*(values for values, _ in some), strict=True)]
        texts = [document.text for document in documents]
        yield [*columns, documents], list(map(len, texts)), [len(text.encode()) for text in texts]


DOCUMENTS = 64
"""Documents that are looked at together where whole documents are in memory."""


class _ShortRow(msgspec.Struct, gc=False):
    """A document as rules know it without its text."""

    id: str
    source: str | None
    chars: int
    place: str


class _PlainRow(RawAttributes, gc=False):
    """A row of a set with its values as JSON texts."""

    id: str | None = None
    source: str | None = None


_PLAIN = msgspec.json.Decoder(_PlainRow)


class _JoinedRow(msgspec.Struct, frozen=True):
    """A document without its text, but with its attributes, for patterns."""

    id: str
    source: str | None
    chars: int
    place: str
    sets: list[JoinedSet]
    rows: tuple[_PlainRow, ...]

    @property
    def joined(self) -> dict[str, Any]:
        """Return the attributes of a document, decoded anew."""
        return {"attributes": plain_values(self.sets, self.rows)}


def _without_documents(work: JoinedShard, rules: RuleSet) -> Iterator[_Columns]:
    """Yield blocks of documents from attributes and the row index.

    The records of our own files say that these describe the documents row by row; the records have been checked.
    """
    used = rules.needs.keys
    needed = [i for i, joined in enumerate(work.sets) if any(key.name in used for key in joined.keys)] or [0]
    named = [i for i in needed if not rules.needs.source or _has_source(work, work.sets[i])]
    if not named:
        named = [next(i for i, joined in enumerate(work.sets) if _has_source(work, joined))]
        needed += named
    names = next((i for i in named if work.sets[i].ours), named[0])  # by which documents are called
    decoders = {
        i: RowDecoder(work.sets[i], used, rules.needs.fields, names=i == names or not work.sets[i].ours) for i in needed
    }
    with ExitStack() as stack:
        blocks = partial(row_index.read, work.dataset, work.shard, BLOCK)
        sets = {
            i: indexed_rows(work, work.sets[i], decoder.decoder, blocks(), stack) for i, decoder in decoders.items()
        }
        every = work.sets if rules.may_differ else ()
        plain = [indexed_rows(work, joined, _PLAIN, blocks(), stack) for joined in every]
        number = 0
        for index in blocks():
            chars = index["chars"].tolist()
            rows = {i: next(item) for i, item in sets.items()}
            nothing = [None] * len(chars)
            columns = [decoders[i].columns(rows[i]) if i in rows else nothing for i in range(len(work.sets))]
            documents = rows[names]
            places = [work.dataset.place_of(work.shard, i) for i in range(number + 1, number + len(chars) + 1)]
            number += len(chars)
            if rules.may_differ:
                raws = zip(*(next(item) for item in plain), strict=True)
                documents = [
                    _JoinedRow(row.id, row.source, n, place, work.sets, raw)
                    for row, n, place, raw in zip(documents, chars, places, raws, strict=True)
                ]
            elif "document" in used or any(places):
                documents = [
                    _ShortRow(row.id, row.source, *facts) for row, *facts in zip(documents, chars, places, strict=True)
                ]
            yield [*columns, documents], chars, index["bytes"].tolist()
        for item in (*sets.values(), *plain):
            next(item, None)  # which says if there are more rows


def indexed_rows(
    work: JoinedShard, joined: JoinedSet, decoder: msgspec.json.Decoder[Any], index: Iterable[Any], stack: ExitStack
) -> Iterator[list[Any]]:
    """Yield the rows of a set, in blocks of the row index. No documents are read.

    Rows of an external set are held against the hashes of the index; a record says of ours that they are the rows of
    the documents, so they are counted.
    """
    path = work.attributes_of(joined)
    rows = stack.enter_context(AttributeRows(path, work.path, decoder, any_source=not joined.ours))
    hashes = (block["hash"] for block in index)
    if joined.ours:
        return rows.counted(map(len, hashes))
    return rows.indexed((block.tolist() for block in hashes), stack.enter_context(closing(_sources_of(work))))


def _sources_of(work: JoinedShard) -> Generator[str, None, None]:
    """Yield the sources of a shard's documents, each once; of documents that share one, the first alone is read."""
    sources = set[str]()
    with work.dataset.lines(work.shard, work.max_document_bytes) as lines:
        for row, _ in Rows(lines, LATE_DECODER, work.path):
            if row.source not in sources:
                sources.add(row.source)
                yield row.source
