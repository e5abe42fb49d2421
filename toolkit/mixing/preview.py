"""What a mix would drop, from attributes and row indexes alone: no text is read, nothing is written."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from toolkit import rowindex
from toolkit.alignment import AttributeRows
from toolkit.config import ConfigStruct
from toolkit.errors import DataError
from toolkit.mixing.effects import RuleCount, Totals, count
from toolkit.mixing.join import RowDecoder, Work, inputs_of
from toolkit.mixing.settings import compile_rules

Report = Callable[[int, int], None]


class Preview(ConfigStruct):
    """What the rules do to the documents of a shard.

    Attributes:
        totals: read and kept.
        effects: of each rule.
        only: for each rule, documents that no other one would drop.
    """

    totals: Totals
    effects: list[RuleCount]
    only: list[int]


def preview_shard(work: Work, report: Report) -> Preview:
    """The effects of the rules on one shard.

    Raises:
        DataError: as a mix of it would, as far as attributes are concerned.
    """
    state, _ = inputs_of(work)
    rules = compile_rules(work.settings, work.sets)
    effects = [RuleCount() for _ in rules.rules]
    only = [0] * len(effects)
    totals = Totals(rows=state.rows, chars=state.chars)
    for number, (values, chars, path) in enumerate(_rows(work, rules.used), 1):
        try:
            decision = rules.decide(*values)
            edits = rules.preview_edits(*values) if rules.edits and decision.dropped is None else []
        except DataError as error:
            raise DataError(error.message, path=path, line=number, id=values[-1].id) from None
        count(effects, decision, chars)
        if decision.dropped is None:
            totals.kept += 1
            totals.kept_chars += chars
            for effect, (spans, cut) in zip(effects, edits, strict=False):
                if spans:
                    effect.documents += 1
                    effect.spans += spans
                    effect.chars += cut or 0
        else:
            only[decision.dropped] += rules.only_drop(decision, *values)
    report(state.rows, 0)
    return Preview(totals=totals, effects=effects, only=only)


def _rows(work: Work, used: set[str]) -> Iterator[tuple[list[Any], int, str]]:
    """For each document: the values of the rules' arguments, its code points, and where they were found."""
    dataset, shard = work.dataset, work.shard
    documents = dataset.shard_path(shard)
    needed = [i for i, joined in enumerate(work.sets) if any(key.name in used for key in joined.keys)]
    needed = needed or ([0] if work.sets else [])
    decoders = {i: RowDecoder(work.sets[i], used) for i in needed}
    with ExitStack() as stack:
        sets = {
            i: stack.enter_context(
                AttributeRows(
                    dataset.attribute_path(work.sets[i].set, shard),
                    documents,
                    decoders[i].decoder,
                    any_source=not work.sets[i].ours,
                )
            )
            for i in needed
        }
        number = 0
        for block in rowindex.read(dataset, shard):
            hashes, all_chars = block["hash"].tolist(), block["chars"].tolist()
            for expected, chars in zip(hashes, all_chars, strict=True):
                number += 1
                values: list[Any] = [None] * len(work.sets)
                document: Any = None
                for i, rows in sets.items():
                    row = rows.take_indexed(expected, number)
                    values[i] = decoders[i].values(row)
                    document = document or row
                yield [*values, document], chars, documents
        for rows in sets.values():
            rows.finish(number)
