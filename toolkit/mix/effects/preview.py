"""Previews a mix from attributes and row indexes alone: no text is read, nothing is written."""

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import msgspec

from toolkit.config.settings import ConfigStruct
from toolkit.data import row_index
from toolkit.data.alignment import AttributeRows, attribute_lines
from toolkit.data.documents import LATE_DECODER, Rows
from toolkit.errors import DataError
from toolkit.mix.effects.counts import (
    NO_LABEL,
    GroupCount,
    RuleCount,
    Totals,
    count_group,
    count_nulls,
    count_repeats,
    finish,
)
from toolkit.mix.join import (
    JoinedShard,
    RawAttributes,
    RowDecoder,
    ShardToMix,
    at_document,
    inputs_of,
    joint_rows,
    plain_values,
)
from toolkit.mix.joined_sets import JoinedSet
from toolkit.mix.orphans import Copies, Fates
from toolkit.mix.writer import not_carried
from toolkit.rules import Outcome, RuleSet, rules_in
from toolkit.runs.executors import Report
from toolkit.runs.progress import Share
from toolkit.storage.stores.local.scratch import move_scratch, open_scratch


class LabelCount(Totals):
    """Documents of a label, and how many of them each rule drops."""

    dropped: list[int] = msgspec.field(default_factory=list)


class Preview(ConfigStruct):
    """The effects of the rules on the documents of a shard.

    Attributes:
        totals: read and kept.
        effects: of each rule.
        only: for each rule, documents that no other one would drop.
        labels: the same by label, before any `route`.
        matched: for each blocklist, by index of its rule, the entries that documents matched.
        groups: what a budget takes of each group.
        seen: bits by the text of a place of the rules (see `toolkit.rules.occurrence`).
        texts: whether the documents had to be read.
        not_carried: documents that have a field which the output does not carry, by its path.
        unlike_dolma: documents of which Dolma decides otherwise.
        kept: a bit of each document that says whether it stays, where a mix notes which ids it writes.
        fates: which documents stay, and which are dropped as copies, unless a folder took that; None without rules
            about copies.
    """

    totals: Totals
    effects: list[RuleCount]
    only: list[int]
    labels: dict[str, LabelCount]
    matched: dict[int, list[int]]
    texts: bool
    not_carried: dict[str, int]
    unlike_dolma: int
    kept: bytes = b""
    fates: Fates | None = None
    groups: dict[str, GroupCount] = {}
    seen: dict[str, int] = {}


class ShardToPreview(ConfigStruct):
    """A shard, and the files that take what becomes of its documents, if they can: they may be on another machine."""

    work: ShardToMix
    kept: str
    copies: str


def preview_with_fates(shown: ShardToPreview, report: Report) -> Preview:
    """Return the effects of the rules on one shard; write to files, or return, what becomes of its documents."""
    copies = Copies(shown.work.compile_rules(), shown.work)
    if not copies.rules:
        return preview_shard(shown.work, report)
    found: list[Fates] = []
    if not os.path.isdir(os.path.dirname(shown.kept)):
        preview = preview_shard(shown.work, report, copies, found.append)
        together = Fates(b"".join(each.kept for each in found), b"".join(each.copies for each in found))
        return msgspec.structs.replace(preview, fates=together)
    mine = f".{os.getpid()}"  # the task may run twice
    with open_scratch(shown.kept + mine) as kept, open_scratch(shown.copies + mine) as dropped:

        def write(fates: Fates) -> None:
            kept.write(fates.kept)
            dropped.write(fates.copies)

        preview = preview_shard(shown.work, report, copies, write)
    for path in (shown.kept, shown.copies):
        move_scratch(path + mine, path)
    return preview


def preview_shard(
    work: ShardToMix,
    report: Report,
    copies: Copies | None = None,
    noted: Callable[[Fates], object] = lambda fates: None,
) -> Preview:
    """Return the effects of the rules on one shard.

    Args:
        work: the shard.
        report: is told of each block.
        copies: tells which documents are dropped as copies.
        noted: is given what becomes of the documents, some at a time.

    Raises:
        DataError: as a mix of it would, as far as attributes are concerned.
    """
    import numpy as np

    state, _ = inputs_of(work)
    rules = work.compile_rules()
    effects = [RuleCount() for _ in rules.rules]
    only = [0] * len(effects)
    cells, groups, seen = _Cells(), dict[str, GroupCount](), dict[str, int]()
    number = unlike_dolma = 0
    kept = bytearray()
    done = Share(report, state.rows, state.size)
    for block in blocks(work, rules):
        cells.add(block)
        rules.occurrence.note_all(seen, block.columns)
        kept.extend(not isinstance(outcome, int) for outcome in block.outcomes)
        if rules.may_differ:
            unlike_dolma += sum(map(rules.differs, block.outcomes, *block.columns))
        for values, chars, size, outcome, label in zip(
            block.values(), block.chars, block.bytes, block.outcomes, block.labels, strict=True
        ):
            number += 1
            if rules.compares_nulls:
                count_nulls(effects, rules, outcome, values)
            if copies:
                _note(copies, work, number, outcome, values)
            if isinstance(outcome, int):
                only[outcome] += rules.only_drop(outcome, *values)
            elif rules.applies or rules.edits or rules.repeats:
                try:
                    again = _count_kept(effects, rules, values, chars)
                    cells.add_copies(label, again, again * chars)
                    if rules.budget:
                        count_group(groups, *rules.budget.of(values, chars, size), again + 1)
                except DataError as error:
                    raise at_document(error, work, number, values[-1].id) from None
        if copies:
            noted(copies.taken())
        done(len(block.chars))
    totals, labels = _added(cells, effects)
    finish(effects, rules.rules, totals)
    matched = {i: sorted(watch.matched) for i, watch in rules.blocklists.items()}
    texts = _reads_documents(work, rules)
    return Preview(
        totals=totals,
        effects=effects,
        only=only,
        labels=labels,
        matched=matched,
        texts=texts,
        not_carried=not_carried(work.settings.writer(), state.all_fields),
        unlike_dolma=unlike_dolma,
        kept=np.packbits(np.frombuffer(kept, np.uint8)).tobytes() if work.settings.notes_ids else b"",
        groups=groups,
        seen=seen,
    )


def _added(cells: "_Cells", effects: list[RuleCount]) -> tuple[Totals, dict[str, LabelCount]]:
    """Return the totals, and those of each label; add what rules do to their effects."""
    labels: dict[str, LabelCount] = {}
    totals = Totals()
    for label, outcome, documents, chars in cells.found():
        found = labels.setdefault(label or NO_LABEL, LabelCount(dropped=[0] * len(effects)))
        dropped = isinstance(outcome, int)
        for each in (totals, found):
            each.rows += documents
            each.chars += chars
            each.kept += 0 if dropped else documents
            each.kept_chars += 0 if dropped else chars
        for i in rules_in(outcome):
            effects[i].documents += documents
            effects[i].chars += chars
            found.dropped[i] += documents if dropped else 0
    for label, (copies, chars) in cells.copies.items():
        for each in (totals, labels[label or NO_LABEL]):
            each.copies += copies
            each.copy_chars += chars
    return totals, labels


def _note(copies: Copies, work: ShardToMix, number: int, outcome: Outcome, values: tuple[Any, ...]) -> None:
    try:
        copies.note(outcome, number, values)
    except DataError as error:
        raise at_document(error, work, number, values[-1].id) from None


class _Cells:
    """Documents and their code points, by label and outcome."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str | None, Outcome], int] = defaultdict(lambda: len(self._codes))
        self._documents: Counter[int] = Counter()
        self._chars: Counter[int] = Counter()
        self.copies: dict[str | None, tuple[int, int]] = {}

    def add_copies(self, label: str | None, documents: int, chars: int) -> None:
        """Add a document of a label that is written again so often, and the code points of that."""
        before = self.copies.get(label, (0, 0))
        self.copies[label] = before[0] + documents, before[1] + chars

    def add(self, block: "Block") -> None:
        import numpy as np

        codes = list(map(self._codes.__getitem__, zip(block.labels, block.outcomes, strict=True)))
        self._documents.update(codes)
        for code, chars in enumerate(np.bincount(codes, weights=block.chars)):  # exact below 2^53
            self._chars[code] += int(chars)

    def found(self) -> Iterator[tuple[str | None, Outcome, int, int]]:
        """Yield label, outcome, documents, code points."""
        for (label, outcome), code in self._codes.items():
            yield label, outcome, self._documents[code], self._chars[code]


def _count_kept(effects: list[RuleCount], rules: RuleSet, values: tuple[Any, ...], chars: int) -> int:
    """Add what rules do to a document that stays; return how often it is written again."""
    for i in rules.applied(*values) if rules.applies else ():
        effects[i].documents += 1
        effects[i].chars += chars
    for effect, rule in zip(effects, rules.compiled, strict=True) if rules.edits else ():
        spans, cut = rule.preview(values)
        if spans:
            effect.documents += 1
            effect.spans += spans
            effect.chars += cut or 0
    copies = rules.copies(*values)
    if rules.repeats:
        count_repeats(effects, rules, copies, values)
    return copies - 1


# --- blocks of documents ----------------------------------------------------------------------------------------------

BLOCK = 4096
"""Documents that are looked at together: their attributes are in memory at a time."""


@dataclass(frozen=True)
class Block:
    """Some documents in a row.

    Attributes:
        columns: the values of each of the rules' arguments, the document last.
        chars: code points of each.
        bytes: of each, in UTF-8.
        outcomes: what is decided of each.
        labels: of each, None where there is none.
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
) -> Iterator[Block]:
    """Yield the documents of a shard, with what is decided of them.

    Args:
        work: the shard.
        rules: that decide.
        computing: entered around what computes and reads nothing.

    Raises:
        DataError: naming the document.
    """
    number = 0
    found = _with_documents(work, rules) if _reads_documents(work, rules) else _without_documents(work, rules)
    for columns, chars, sizes in found:
        try:
            with computing():
                outcomes = rules.outcomes(columns)
                labels = rules.labels(columns)
        except DataError as error:
            raise at_document(error, work, number + (error.line or 0), error.id) from None
        yield Block(columns, chars, sizes, outcomes, labels)
        number += len(chars)


def _reads_documents(work: JoinedShard, rules: RuleSet) -> bool:
    if rules.needs.documents or not work.sets or work.stream.text is not None:
        return True
    return rules.needs.source and not any(_has_source(work, joined) for joined in work.sets)


def _has_source(work: JoinedShard, joined: JoinedSet) -> bool:
    """Return True if the rows of a set name the source of their documents; those of Dolma's deduper do not."""
    if joined.ours:
        return True
    path = work.attributes_of(joined)
    with attribute_lines(path) as lines:
        first = next(Rows(lines, _SOURCES, path), None)
    return first is None or first[0].source is not None


class _Sourced(msgspec.Struct):
    source: str | None = None


_SOURCES = msgspec.json.Decoder(_Sourced)


_Columns = tuple[list[list[Any]], list[int], list[int]]
"""The values of documents by argument, and the code points and bytes of their texts."""


def _with_documents(work: JoinedShard, rules: RuleSet) -> Iterator[_Columns]:
    with ExitStack() as stack:
        rows = joint_rows(work, stack, rules.needs.keys, rules.needs.fields, joined=rules.needs.joined)
        while some := [(values, document) for document, _, _, values in islice(rows, DOCUMENTS)]:
            documents = [document for _, document in some]
            columns = [list(column) for column in zip(*(values for values, _ in some), strict=True)]
            texts = [document.text for document in documents]
            yield [*columns, documents], list(map(len, texts)), [len(text.encode()) for text in texts]


DOCUMENTS = 64
"""Documents that are looked at together where whole documents are in memory."""


class _Row(msgspec.Struct, gc=False):
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


@dataclass(frozen=True)
class _JoinedRow:
    """A document without its text, but with its attributes, for patterns that ask for nothing else."""

    id: str
    source: str | None
    chars: int
    place: str
    sets: list[JoinedSet]
    rows: tuple[_PlainRow, ...]

    @property
    def joined(self) -> dict[str, Any]:
        """Return the attributes of a document as its row would have them, decoded anew."""
        return {"attributes": plain_values(self.sets, self.rows)}


def _without_documents(work: JoinedShard, rules: RuleSet) -> Iterator[_Columns]:
    """Yield the columns of blocks of documents, from the files of sets that the rules need and the row index.

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
            rows = {i: next(each) for i, each in sets.items()}
            nothing = [None] * len(chars)
            columns = [decoders[i].columns(rows[i]) if i in rows else nothing for i in range(len(work.sets))]
            documents = rows[names]
            places = [work.dataset.place_of(work.shard, i) for i in range(number + 1, number + len(chars) + 1)]
            number += len(chars)
            if rules.may_differ:
                raws = zip(*(next(each) for each in plain), strict=True)
                documents = [
                    _JoinedRow(row.id, row.source, n, place, work.sets, raw)
                    for row, n, place, raw in zip(documents, chars, places, raws, strict=True)
                ]
            elif "document" in used or any(places):
                documents = [
                    _Row(row.id, row.source, *others) for row, *others in zip(documents, chars, places, strict=True)
                ]
            yield [*columns, documents], chars, index["bytes"].tolist()
        for each in (*sets.values(), *plain):
            next(each, None)  # which says if there are more rows


def indexed_rows(
    work: JoinedShard, joined: JoinedSet, decoder: msgspec.json.Decoder[Any], index: Iterable[Any], stack: ExitStack
) -> Iterator[list[Any]]:
    """Yield the rows of a set without the documents, in the blocks of the row index.

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
    seen = set[str]()
    with work.dataset.lines(work.shard, work.max_document_bytes) as lines:
        for row, _ in Rows(lines, LATE_DECODER, work.path):
            if row.source not in seen:
                seen.add(row.source)
                yield row.source
