"""Drops documents in place by columns, before rows are made."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress, repeat
from math import isfinite
from typing import Any, Self

import msgspec

from toolkit.data.tables.from_arrow import not_finite, plain_schema, utf8_of, values_of
from toolkit.errors import DataError
from toolkit.execution.blocks import Block
from toolkit.mix.bindings import ShardToMix
from toolkit.mix.join import Joiner, RowsAhead
from toolkit.mix.orphans import Copies
from toolkit.mix.rule_effects.counts import CHARS, Counted, Tally, labels_of, note
from toolkit.rules.compiling import compile_function
from toolkit.rules.ruleset import Outcome
from toolkit.text.counting import measure

_INSIDE = "metadata."


class _RowFields(msgspec.Struct, gc=False):
    """The fields of a document, under their names in code."""

    id: str
    source: str
    utf8: memoryview
    metadata: dict[str, Any]
    own: dict[str, Any]

    def field(self, name: str) -> Any:
        return self.own.get(name)

    @property
    def chars(self) -> int:
        return len(str(self.utf8, "utf-8"))


class TableSieve:
    """Decides about rows of tables as the rules do row by row. It is a `toolkit.mix.join.Sieve`.

    Rules see the values that rows would have. Where they cannot (a value of another type than numbers, texts and
    booleans, an error of a rule, a set with other rows) all rows are made, and looked at one by one.
    """

    attribute_rows: list[RowsAhead]

    def __init__(self, work: ShardToMix, fields: set[str], *, leaves_gaps: bool) -> None:
        self.leaves_gaps = leaves_gaps
        self._work, self._fields = work, sorted(fields - {"id", "source"})
        self._rules, self._unicode = work.compile_rules(), work.settings.unicode_words
        self._joiner = Joiner(work, self._rules.needs.keys, self._rules.needs.fields)
        self._start()

    @classmethod
    def of(cls, work: ShardToMix) -> Self | None:
        """Return the sieve of a shard; None if rules look at more of documents, or dropped ones are noted."""
        rules, stream = work.compile_rules(), work.stream
        looks = rules.blocklists or rules.may_differ or rules.needs.joined or stream.text or Copies(rules, work).rules
        if work.dataset.in_place is None or work.settings.rejected is not None or looks or rules.own_fields is None:
            return None
        writer, asks = work.settings.writer(), rules.edits or rules.applies or rules.repeats or rules.budget
        # an inherited answer says nothing of an `encode` of the class's own
        leaves_gaps = not asks and "copies_text" in vars(type(writer)) and writer.copies_text()
        is_worth = leaves_gaps or any(rule.drops for rule in rules.rules)
        return cls(work, rules.own_fields, leaves_gaps=leaves_gaps) if is_worth else None

    def _start(self) -> None:
        self._counted, self._tally = Counted.none(len(self._rules.rules)), Tally(unicode=self._unicode)

    def take_counts(self) -> Counted:
        """Return the counts of rows dropped since the last call."""
        result = self._counted
        result.statistics = self._tally.counted()
        self._start()
        return result

    def __call__(self, number: int, columns: Mapping[str, Any]) -> tuple[Sequence[bool], Callable[[], None]] | None:
        result = self._values(number, columns)
        if result is None:
            return None
        try:
            outcomes, labels = self._rules.outcomes(result), labels_of(self._rules, result)
        except DataError:
            return None
        dropped = [isinstance(outcome, int) for outcome in outcomes]
        return [not item for item in dropped], lambda: self._count(result, dropped, labels, outcomes)

    def _values(self, number: int, columns: Mapping[str, Any]) -> list[Sequence[Any]] | None:
        """Return the values of rows by argument, with stand-ins for documents."""
        utf8, begins, ends = utf8_of(columns["text"])
        rows = len(begins)
        beside = [Block(rows_of.ahead(number, rows)) for rows_of in self.attribute_rows]
        if any(len(item.lines) < rows for item in beside):
            return None
        ids, sources = columns["id"], columns["source"]
        own: dict[str, Sequence[Any]] = {"id": ids, "source": sources}
        inside: dict[str, Sequence[Any]] = {}
        for name in self._fields:
            values = _plain(columns[name]) if name in columns else [None] * rows
            if values is None:
                return None
            (inside if name.startswith(_INSIDE) else own)[name.removeprefix(_INSIDE)] = values
        sets = self._joiner.columns(ids, sources, beside)
        if sets is None:
            return None
        texts = (utf8[begin:end] for begin, end in zip(begins.tolist(), ends.tolist(), strict=True))
        return [*sets, [*map(_RowFields, ids, sources, texts, _objects(inside), _objects(own))]]

    def _count(
        self,
        columns: Sequence[Sequence[Any]],
        dropped: Sequence[bool],
        labels: Sequence[str],
        outcomes: Sequence[Outcome],
    ) -> None:
        columns = [[*compress(column, dropped)] for column in columns]
        measured = measure([document.utf8 for document in columns[-1]], unicode=self._unicode).tolist()
        note(
            self._counted,
            self._tally,
            self._rules,
            columns,
            measured,
            labels=[*compress(labels, dropped)],
            outcomes=[*compress(outcomes, dropped)],
        )
        self._counted.totals.rows += len(measured)
        self._counted.totals.chars += sum(item[CHARS] for item in measured)


def _objects(columns: Mapping[str, Sequence[Any]]) -> Iterable[dict[str, Any]]:
    """Return an object for each row; endless if there are no columns."""
    names = [f"value_{i}" for i in range(len(columns))]
    make = compile_function(
        f"{{{', '.join(f'{key!r}: {name}' for key, name in zip(columns, names, strict=True))}}}", (*names,)
    )
    return map(make, *columns.values()) if columns else repeat({})


def _plain(column: Any) -> list[Any] | None:
    """Return a column as values of rows; None for values of other types. Numbers, texts and booleans are values of
    rows.
    """
    import pyarrow as pa

    is_, (field,) = pa.types, plain_schema(pa.schema([pa.field("", column.type)]), "")
    type_ = field.type
    plain = (is_.is_boolean, is_.is_integer, is_.is_float64, is_.is_string, is_.is_large_string)
    if not any(item(type_) for item in plain):
        return None
    result: list[Any] = values_of(column, type_)
    return [item if item is not None and isfinite(item) else None for item in result] if not_finite(column) else result
