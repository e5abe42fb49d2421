"""Expressions of a set of duplicates over earlier sets, checked and evaluated; and groups by them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress, starmap
from typing import Any

import msgspec

from toolkit.data import chosen_text, document_fields, schema
from toolkit.data.documents import Document
from toolkit.errors import ConfigError, DataError
from toolkit.mix.join import JoinedSet, names_for_rules, null_safe
from toolkit.rules import expressions
from toolkit.rules.checker import Name
from toolkit.rules.compiling import compile_function
from toolkit.rules.expression_tree import ExpressionError
from toolkit.rules.expressions import Expression, check, check_condition
from toolkit.rules.text_edits import edited, edits_in
from toolkit.text.batch import Batch
from toolkit.whole_corpus.kind import Query, TextBlock

MOST = 10_000
"""Groups of a set: more are a mistake, as a rule, say an expression over the id."""


class GroupNumbers:
    """Numbers the groups of a shard's documents, in order of appearance.

    Args:
        option: Option that says what the groups are, for messages.
        what: they are, for messages.
    """

    def __init__(self, option: str, noun: str) -> None:
        self._option, self._noun = option, noun
        self._numbers: dict[str, int] = {}

    def numbers(self, columns: Sequence[Sequence[Any]], counts: Sequence[bool], otherwise: int) -> list[int]:
        """Return the numbers of the groups of documents; without columns all are in one.

        Args:
            columns: Values of each document.
            counts: True for a document that is in a group.
            otherwise: Number of the others.

        Raises:
            DataError: If there are too many groups.
        """
        rows = [*zip(*columns, strict=True)] if columns else [()] * len(counts)
        if all({*map(type, column)} <= {str, type(None)} for column in columns):  # elsewhere 1, 1.0 and true are equal
            numbers = {row: self._number(row) for row in dict.fromkeys(compress(rows, counts))}
            return [numbers[row] if mine else otherwise for row, mine in zip(rows, counts, strict=True)]
        return [self._number(row) if mine else otherwise for row, mine in zip(rows, counts, strict=True)]

    def _number(self, values: Sequence[Any]) -> int:
        label = "/".join(map(_label, values))
        number = self._numbers.setdefault(label, len(self._numbers))
        if number >= MOST:
            raise DataError(
                f"{self._option}: expected at most {MOST:,} {self._noun}, got more; the last one is {label!r}"
            )
        return number

    @property
    def all(self) -> list[str]:
        """Return the labels, by their numbers."""
        return [*self._numbers]


def _label(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()


_NUMBERS = ("int", "float")

_BITS = 1023
"""Bits of an integer that always fits into a 64-bit float, at most."""

_EXPECTED = {
    "number": "a number that is never null",
    "order": "a number that is never null, or a text",
    "score": "a number, or null",
    "spans": "spans, a list of [start, end, score]",
    "text": "a text, or null",
}


class Checked(msgspec.Struct, frozen=True):
    """A checked expression.

    Attributes:
        name: Name of the expression.
        place: Place in the configuration, for messages.
        query: Query of the kind.
        expression: over the arguments of all joined sets, and the document.
    """

    name: str
    place: str
    query: Query
    expression: Expression


def names_of(sets: Iterable[JoinedSet], own: document_fields.OwnTypes | None) -> dict[str, Name]:
    """Return the names for expressions: as rules do, and the text of the document."""
    names = names_for_rules(sets, own)
    if names["document"].code == "document":
        names["document"] = expressions.of_document(text=True, own=own)["document"]
    return names


def checked(
    name: str, query: Query, sets: Sequence[JoinedSet], own: document_fields.OwnTypes | None, place: str
) -> Checked:
    """Check an expression against the types of sets and documents.

    Raises:
        ConfigError: naming the place.
    """
    names = names_of(sets, own)
    try:
        text = reference(query.text, sets, names) or query.text
        expression = check_condition(text, names) if query.kind == "condition" else check(text, names)
    except ExpressionError as error:
        raise ConfigError(f"{place}: {name}: {error}") from None
    if not _fits(query.kind, expression.type):
        hint = ""
        inner = expression.type.not_null
        if query.kind in ("number", "order") and expression.type.kind == "nullable" and inner.kind in _NUMBERS:
            hint = f"; say what to use in place of null: `{query.text} if {query.text} is not None else 0`"
        expected = _EXPECTED[query.kind]
        raise ConfigError(f"{place}: {name}: expected {expected}, got a value of type {expression.type}{hint}")
    return Checked(name, place, query, expression)


def reference(text: str, sets: Iterable[JoinedSet], names: Mapping[str, Name]) -> str | None:
    """Return the expression for ``SET[.KEY[.field]]``, if there is the set; else None.

    Raises:
        ExpressionError: if the set has no such key, or several where none is named.
    """
    keys = {item.set: {key.key: key.name for key in item.keys} for item in sets}
    target = expressions.resolve_reference(text, keys)
    if target is None:
        return None
    name = keys[target.set][target.key]
    path = ".".join((name, *target.path))
    result = null_safe(path, names)
    if result is None:
        check(f"{path} if {name} is not None else None", names)  # which says what is wrong
        check(path, names)
    return result


def _fits(kind: str, type_: schema.Type) -> bool:
    inner = type_.not_null
    if schema.ANY in (type_, inner) or kind in ("condition", "value"):
        return True
    if kind == "number" or (kind == "order" and inner.kind != "str"):
        return type_.kind in _NUMBERS
    if kind == "order":
        return True
    if kind == "spans":
        return inner == schema.SPANS
    if kind == "score":
        return inner is not None and inner.kind in (*_NUMBERS, "null")
    return inner is not None and inner.kind in ("str", "null")


def spans_of_edits(text: str | None) -> dict[str, Query]:
    """Return expressions for the spans of edits, by name."""
    named = [edit.spans for edit in edits_in(text) if edit.spans]
    return {f"{chosen_text.OPTION} {i}": Query(spans, "spans") for i, spans in enumerate(named, 1)}


class Evaluator:
    """Runs the expressions of an entry.

    Args:
        found: checked; the one called ``when`` says whether a document competes.
        arguments: Number of joined sets.
        text: the option, which may have edits whose spans are among the expressions.
    """

    def __init__(self, expressions_: Iterable[Checked], arguments: int, text: str | None = None) -> None:
        names = (*(f"r{i}" for i in range(arguments)), "document")
        functions = {item.name: (item, compile_function(item.expression.code, names)) for item in expressions_}
        self._when = functions.pop("when", None)
        self._text = functions.pop(chosen_text.OPTION, None)
        self._edits = edits_in(text)
        self._spans = [functions.pop(name) for name in spans_of_edits(text)]
        self._functions = functions

    @property
    def names(self) -> list[str]:
        return list(self._functions)

    def chosen(self, values: Sequence[Any], document: Document) -> Document | None:
        """Return the document with its chosen or edited text; None if that is null."""
        if self._edits:
            return edited(document, self._edits, [_run(*span, values, document) for span in self._spans])
        if self._text is None:
            return document
        text = _run(*self._text, values, document)
        return None if text is None else chosen_text.TextDocument(document, text)

    def competes(self, values: Sequence[Any], document: Document) -> bool:
        """Return True if a document is compared."""
        return self._when is None or _run(*self._when, values, document)

    def values(self, values: Sequence[Any], document: Document) -> list[Any]:
        """Return the answers for a competing document, in the order of `names`."""
        return [_run(item, function, values, document) for item, function in self._functions.values()]

    def block(self, first: int, documents: Batch, rows: Iterable[Sequence[Any]]) -> TextBlock:
        """Return the answers for documents, from the values of their sets; `first` documents are before them.

        Raises:
            DataError: with the row and the id of the document that cannot be asked.
        """
        rows = [*rows]
        if not (self._text or self._edits) and (block := self._at_once(first, documents, rows)):
            return block
        competes: list[bool] = []
        columns: list[list[Any]] = []
        chosen: list[Document] = []
        blank = [None] * len(self._functions)
        for number, (document, values) in enumerate(zip(documents, rows, strict=True), first + 1):
            try:
                chosen_document = self.chosen(values, document)
                chosen.append(chosen_document or chosen_text.TextDocument(document, ""))
                competes.append(chosen_document is not None and self.competes(values, chosen_document))
                columns.append(self.values(values, chosen[-1]) if competes[-1] else blank)
            except DataError as error:
                error.line, error.id = number, document.id
                raise
        by_name = {name: [row[i] for row in columns] for i, name in enumerate(self.names)}
        return TextBlock(first, Batch(chosen) if self._text or self._edits else documents, competes, by_name)

    def _at_once(self, first: int, documents: Batch, rows: Iterable[Sequence[Any]]) -> TextBlock | None:
        """Return the answers, column by column; None if a value is not of a type that needs no second look."""
        arguments = [(*values, document) for values, document in zip(rows, documents, strict=True)]
        competes = _column(*self._when, arguments) if self._when else [True] * len(arguments)
        if competes is None:
            return None
        places, by_name = [i for i, mine in enumerate(competes) if mine], {}
        for name, (item, function) in self._functions.items():
            results = _column(item, function, compress(arguments, competes))
            if results is None:
                return None
            by_name[name] = results
            if len(places) < len(arguments):
                by_name[name] = [None] * len(arguments)
                for i, value in zip(places, results, strict=True):
                    by_name[name][i] = value
        return TextBlock(first, documents, competes, by_name)


_PLAIN: Mapping[str, set[type]] = {
    "condition": {bool},
    "number": {float, int},
    "order": {float, int, str, type(None)},
    "score": {float, int, type(None)},
    "spans": {list, type(None)},
    "text": {str, type(None)},
    "value": {bool, float, int, str, type(None)},
}


_TYPES: Mapping[str, Any] = {
    "number": int | float,
    "order": int | float | str | None,
    "score": int | float | None,
    "text": str | None,
}


def _column(item: Checked, function: Callable[..., Any], arguments: Iterable[Sequence[Any]]) -> list[Any] | None:
    try:
        values = [*starmap(function, arguments)]
    except expressions.FAULTS:
        return None
    types = {*map(type, values)}
    if not types <= _PLAIN[item.query.kind]:
        return None
    is_small = int not in types or all(value.bit_length() <= _BITS for value in values if type(value) is int)
    return values if is_small or item.query.kind == "value" else None


def _run(item: Checked, function: Callable[..., Any], values: Sequence[Any], document: Document) -> Any:
    value = expressions.ask(function, (*values, document), f"{item.place}: {item.name}: `{item.query.text}`")
    kind = item.query.kind
    if kind == "condition" and not isinstance(value, bool):
        raise _unlike(item, "true or false", value)
    if kind in _TYPES and (isinstance(value, bool) or not isinstance(value, _TYPES[kind])):
        raise _unlike(item, _EXPECTED[kind], value)
    if kind in ("number", "order", "score") and isinstance(value, int) and value.bit_length() > _BITS:
        message = (
            f"{item.place}: {item.name}: `{item.query.text}`: expected a number that fits into a 64-bit float, got"
        )
        raise DataError(f"{message} an integer of {value.bit_length():,} bits")
    return msgspec.to_builtins(value) if kind == "value" else value


def _unlike(item: Checked, expected: str, value: Any) -> DataError:
    return DataError(f"{item.place}: {item.name}: `{item.query.text}`: expected {expected}, got {value!r}")
