"""What a mix would do, from attributes and row indexes alone: no text is read, nothing is written."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import msgspec

from toolkit import rowindex
from toolkit.alignment import AttributeRows
from toolkit.config import ConfigStruct
from toolkit.errors import DataError
from toolkit.mixing.effects import RuleCount, Totals, finish
from toolkit.mixing.join import RowDecoder, Work, inputs_of, joint_rows
from toolkit.rules import Decision, RuleSet

Report = Callable[[int, int], None]

NO_LABEL = ""
"""Stands for the label of documents that have none, or none that is known before they are encoded."""


class LabelCount(Totals):
    """Documents of a label, and how many of them each rule drops."""

    dropped: list[int] = msgspec.field(default_factory=list)


class Preview(ConfigStruct):
    """What the rules do to the documents of a shard.

    Attributes:
        totals: read and kept.
        effects: of each rule.
        only: for each rule, documents that no other one would drop.
        labels: the same by label, before any `route`.
        matched: for each blocklist, by index of its rule, the entries that documents matched.
        texts: whether the documents had to be read.
    """

    totals: Totals
    effects: list[RuleCount]
    only: list[int]
    labels: dict[str, LabelCount]
    matched: dict[int, list[int]]
    texts: bool


def preview_shard(work: Work, report: Report) -> Preview:
    """The effects of the rules on one shard.

    Raises:
        DataError: as a mix of it would, as far as attributes are concerned.
    """
    state, _ = inputs_of(work)
    rules = work.compile_rules()
    effects = [RuleCount() for _ in rules.rules]
    only = [0] * len(effects)
    cells: dict[tuple[str | None, int | None], list[int]] = defaultdict(lambda: [0, 0])
    watch_others = sum(rule.drops for rule in rules.rules) > 1
    for decision, label, values, chars in decisions(work, rules):
        cell = cells[label, decision.dropped]
        cell[0] += 1
        cell[1] += chars
        if decision.dropped is not None:
            only[decision.dropped] += not watch_others or rules.only_drop(decision, *values)
        elif decision.annotated or rules.applies or rules.edits:
            _count_kept(effects, rules, decision, values, chars)
    labels: dict[str, LabelCount] = {}
    totals = Totals()
    for (label, dropped), (documents, chars) in cells.items():
        found = labels.setdefault(label or NO_LABEL, LabelCount(dropped=[0] * len(effects)))
        for each in (totals, found):
            each.rows += documents
            each.chars += chars
            if dropped is None:
                each.kept += documents
                each.kept_chars += chars
        if dropped is not None:
            found.dropped[dropped] += documents
            effects[dropped].documents += documents
            effects[dropped].chars += chars
    finish(effects, rules.rules, totals)
    report(state.rows, 0)
    matched = {i: sorted(found) for i, found in rules.matched.items()}
    texts = _reads_documents(work, rules)
    return Preview(totals=totals, effects=effects, only=only, labels=labels, matched=matched, texts=texts)


def _count_kept(effects: list[RuleCount], rules: RuleSet, decision: Decision, values: list[Any], chars: int) -> None:
    for i in (*decision.annotated, *(rules.applied(*values) if rules.applies else ())):
        effects[i].documents += 1
        effects[i].chars += chars
    for effect, (spans, cut) in zip(effects, rules.preview_edits(*values) if rules.edits else (), strict=False):
        if spans:
            effect.documents += 1
            effect.spans += spans
            effect.chars += cut or 0


def decisions(work: Work, rules: RuleSet) -> Iterator[tuple[Decision, str | None, list[Any], int]]:
    """For each document: what is decided, its label, the values of the rules' arguments, and its code points.

    Raises:
        DataError: naming the document.
    """
    decide, label_of = rules.decide, rules.label
    rows = _with_documents(work, rules) if _reads_documents(work, rules) else _without_documents(work, rules)
    for number, (values, chars) in enumerate(rows, 1):
        try:
            yield decide(*values), label_of(*values) if label_of else None, values, chars
        except DataError as error:
            raise DataError(error.message, path=work.path, line=number, id=values[-1].id) from None


def _reads_documents(work: Work, rules: RuleSet) -> bool:
    return rules.reads_documents or not work.sets


def _with_documents(work: Work, rules: RuleSet) -> Iterator[tuple[list[Any], int]]:
    with ExitStack() as stack:
        rows = joint_rows(work, stack, rules.used | rules.label_names, joined=rules.joins)
        for document, _, _, values in rows:
            yield [*values, document], len(document.text)


class _Row(msgspec.Struct, gc=False):
    """What rules know of a document without its text."""

    id: str
    source: str | None
    chars: int


def _without_documents(work: Work, rules: RuleSet) -> Iterator[tuple[list[Any], int]]:
    used = rules.used | rules.label_names
    needed = [i for i, joined in enumerate(work.sets) if any(key.name in used for key in joined.keys)] or [0]
    places = {i: place for place, i in enumerate(needed)}
    decoders = [RowDecoder(work.sets[i], used) for i in needed]
    values_of = [decoder.values for decoder in decoders]
    order = [places.get(i) for i in range(len(work.sets))]
    with ExitStack() as stack:
        sets = [
            stack.enter_context(
                AttributeRows(
                    work.dataset.attribute_path(work.sets[i].set, work.shard),
                    work.path,
                    decoder.decoder,
                    any_source=not work.sets[i].ours,
                )
            )
            for i, decoder in zip(needed, decoders, strict=True)
        ]
        columns = [rows.indexed(_hashes(work)) for rows in sets]
        for chars, *rows in zip(_chars(work), *columns, strict=False):
            found = [values(row) for values, row in zip(values_of, rows, strict=True)]
            first = rows[0]
            values: list[Any] = [None if place is None else found[place] for place in order]
            values.append(_Row(first.id, first.source, chars))
            yield values, chars
        for column in columns:
            next(column, None)  # which says if there are more rows


def _hashes(work: Work) -> Iterator[int]:
    for block in rowindex.read(work.dataset, work.shard):
        yield from block["hash"].tolist()


def _chars(work: Work) -> Iterator[int]:
    for block in rowindex.read(work.dataset, work.shard):
        yield from block["chars"].tolist()
