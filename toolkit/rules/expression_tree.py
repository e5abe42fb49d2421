"""An expression as a tree, bounded before anything walks over it; and what documents have where it names a value.

Expressions may come with somebody else's rules.
"""

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from toolkit.config.syntax_trees import parse_expression


class ExpressionError(Exception):
    """An error of an expression. The caller knows the file and the line."""


class UnknownName(ExpressionError):
    """An error of an expression with an unknown name.

    Attributes:
        name: Name.
        message: Error without its hint.
    """

    def __init__(self, name: str, message: str, hint: str) -> None:
        self.name, self.message = name, message
        super().__init__(message + hint)


MAX_CHARS = 1_000_000
"""Characters of an expression; longer lists of values are blocklists."""

MAX_DEPTH = 60
"""Operators, calls and brackets in each other; Python's own parser takes little more than twice as many."""

MAX_LOOPS = 3
"""``for`` in each other: what it costs for each document grows with the product of the lists' lengths."""


def parse(text: str) -> ast.expr:
    """Return the tree of an expression, bounded for recursive walks.

    Raises:
        ExpressionError: if it is none, or too long, nested too deeply, or has a number of more than 64 bits.
    """
    if len(text) > MAX_CHARS:
        raise ExpressionError(f"expected an expression of at most {MAX_CHARS:,} characters, got {len(text):,}")
    excerpt = text if len(text) <= 200 else text[:200] + "…"
    try:
        tree = parse_expression(text.strip())
    except SyntaxError as error:
        raise ExpressionError(f"expected an expression, got {excerpt!r}{_way_out(text) or f': {error.msg}'}") from None
    except ValueError as error:  # a NUL among others
        raise ExpressionError(f"expected an expression, got {excerpt!r}: {error}") from None
    except (RecursionError, MemoryError):
        raise ExpressionError("expected an expression, got one that is nested too deeply") from None
    waiting: list[tuple[ast.AST, int, int]] = [(tree, 1, 0)]
    while waiting:
        node, depth, loops = waiting.pop()
        if depth > MAX_DEPTH:
            raise ExpressionError(
                f"expected an expression, got one that is nested too deeply: more than {MAX_DEPTH} levels"
            )
        if isinstance(node, ast.ListComp | ast.GeneratorExp) and (loops := loops + len(node.generators)) > MAX_LOOPS:
            raise ExpressionError(f"expected at most {MAX_LOOPS} `for` in each other, got more")
        if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value >> 64:
            raise ExpressionError("expected numbers of at most 64 bits, got a larger one")
        below = depth + isinstance(node, ast.expr)
        waiting += ((child, below, loops) for child in ast.iter_child_nodes(node))
    return tree


_STRINGS = re.compile(r"\"[^\"]*\"|'[^']*'")
_SET_AND_KEY = re.compile(r"\b[A-Za-z_]\w*(?:-\w+)+\.(?=[A-Za-z_])")
_OPERATORS = {
    "&&": (r"&&", "`and`"),
    "||": (r"\|\|", "`or`"),
    "!": (r"!(?!=)", "`not`"),
    "=": (r"(?<![=!<>:])=(?!=)", "`==`"),
}
"""Operators of other languages, each with its pattern and its name here."""


def without_sets(text: str) -> str:
    """Return the remedy for keys in the form ``SET.KEY``; else nothing."""
    short = _SET_AND_KEY.sub("", text)
    return f"; in expressions, keys stand as names: write `{short}`" if short != text else ""


def _way_out(text: str) -> str:
    """Return a replacement for an invalid expression, if known."""
    plain = _STRINGS.sub('""', text)
    words = [f"{name} for {operator}" for operator, (pattern, name) in _OPERATORS.items() if re.search(pattern, plain)]
    return (f"; write {', '.join(words)}" if words else "") + without_sets(text)


ABSENT, BOOLEAN, NUMBER, TEXT, LIST, OBJECT = (1 << bit for bit in range(6))
"""Bits of the kinds of values that documents have at a place; null and empty lists are `ABSENT`."""

WORDS = {BOOLEAN: "true or false", NUMBER: "a number", TEXT: "a text", LIST: "a list", OBJECT: "an object"}

_KINDS = {type(None): ABSENT, bool: BOOLEAN, int: NUMBER, float: NUMBER, str: TEXT, list: LIST, tuple: LIST}


class Place(NamedTuple):
    """A part of an expression without a value in some documents.

    Attributes:
        text: Text for people: ``metadata.adlut``, ``label == "german"``.
        code: Code of its value; of a comparison with a text, true or false.
        compares: True if it is a comparison, which has to be true once.
    """

    text: str
    code: str
    compares: bool = False


class Occurrence:
    """The places of a stream's rules.

    Args:
        places: Places of each rule, by its index.
        function: Function that compiles code to a function of the values of a document.

    Attributes:
        rules: Indexes of the rules that have a place, by its text.
        compared: Texts of places that are comparisons.
    """

    def __init__(self, places: Mapping[int, Iterable[Place]], function: Callable[[str], Callable[..., Any]]) -> None:
        listed = {place.text: place for of_rule in places.values() for place in of_rule}
        self.rules = {
            text: [i for i, of_rule in places.items() if any(place.text == text for place in of_rule)]
            for text in listed
        }
        self.compared = {text for text, place in listed.items() if place.compares}
        self._fields = {text: place.code for text, place in listed.items() if not place.compares}
        self._comparisons = {text: function(listed[text].code) for text in listed if text in self.compared}
        self._of_fields = function("".join(f"{code}, " for code in self._fields.values())) if self._fields else None
        self._function = function

    def note(self, bits_by_place: dict[str, int], columns: Sequence[Sequence[Any]]) -> None:
        """Add the kinds of fields of documents.

        Args:
            bits_by_place: Bits by the text of a place.
            columns: Values of each argument, the documents last.
        """
        if self._of_fields is None or not columns[-1]:
            return
        try:
            result: Iterable[Iterable[Any]] = zip(*map(self._of_fields, *columns), strict=True)
        except Exception:  # of one of them: a rule that comes to it tells that
            functions = map(self._function, self._fields.values())
            result = [[_value(function, values) for values in zip(*columns, strict=True)] for function in functions]
        for text, values in zip(self._fields, result, strict=True):
            kinds = {ABSENT if value == [] else _KINDS.get(type(value), OBJECT) for value in values}
            bits_by_place[text] = bits_by_place.get(text, 0) | sum(kinds)

    def note_all(self, bits_by_place: dict[str, int], columns: Sequence[Sequence[Any]]) -> None:
        """Add the kinds of fields of documents, and true comparisons. Arguments are those of `note`."""
        self.note(bits_by_place, columns)
        for text, function in self._comparisons.items():
            if not bits_by_place.get(text, 0) & BOOLEAN:
                rows = zip(*columns, strict=True)
                bits_by_place[text] = BOOLEAN if any(_value(function, values) for values in rows) else ABSENT


def _value(function: Callable[..., Any], values: Sequence[Any]) -> Any:
    try:
        return function(*values)
    except Exception:
        return None


def merge(mine: dict[str, int], theirs: Mapping[str, int]) -> None:
    """Add the bits of other documents."""
    for text, bits in theirs.items():
        mine[text] = mine.get(text, 0) | bits
