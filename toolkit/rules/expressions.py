"""The expressions of rules: a small part of Python, checked against declared types before anything runs.

Allowed are comparisons, ``is None``, ``and or not``, arithmetic with ``//``, ``in``, access to fields and elements,
``x if c else y``, the functions ``len any all min max sum abs get lower startswith endswith matches``, and
comprehensions over lists. An expression is parsed once, checked, and compiled to Python code that touches nothing but
the values given to it.

A value that may be null must be tested (``x is None``) or defaulted (``get(map, key, default)``) before it is used; the
checker knows where a test has been made, also by the rules before.
"""

import ast
import keyword
from collections.abc import Mapping
from dataclasses import dataclass

from toolkit.data.schema import ANY, BOOL, Type
from toolkit.rules.checker import FUNCTIONS, Checker, Facts, Name
from toolkit.rules.expression_tree import ExpressionError, parse
from toolkit.rules.occurrence import Place

_NOTHING: Facts = frozenset()


A_NAME = "a name that rules can use (letters, digits and _; no word with a meaning there, such as len, document or is)"
"""What `is_name` asks for, for people."""


def is_name(text: str) -> bool:
    """Return True if a text can name an attribute in expressions: an identifier that means nothing else there."""
    reserved = (*FUNCTIONS, "document", "line")
    return text.isidentifier() and not keyword.iskeyword(text) and text not in reserved


@dataclass(frozen=True)
class Expression:
    """A checked expression.

    Attributes:
        text: as written.
        type: of its value.
        code: Python, with the names of the arguments given to `toolkit.rules.running.compile_function`.
        noting: the same code with a further argument `seen`, a list that gets an element for each null that is
            compared; empty if none can be.
        names: the attribute keys that it uses, sorted.
        if_true, if_false: what is known not to be null after it was true, or false.
        places: the parts whose values may occur in no document.
    """

    text: str
    type: Type
    code: str
    noting: str
    names: tuple[str, ...]
    if_true: Facts
    if_false: Facts
    places: tuple[Place, ...] = ()


def check(text: str, names: Mapping[str, Name], known: Facts = _NOTHING) -> Expression:
    """Parse and check an expression.

    Args:
        text: the expression.
        names: what it may use.
        known: what is known not to be null.

    Raises:
        ExpressionError: saying what was expected and what was found.
    """
    tree = parse(text)
    checker = Checker(names, text)
    type_, code = checker.check(tree, known, {})
    true, false = checker.facts(tree, known)
    noting = ""
    if checker.compares_nulls:
        noting = Checker(names, text, noting=True).check(tree, known, {})[1]
    return Expression(text, type_, code, noting, tuple(sorted(checker.used)), true, false, tuple(checker.places))


def check_condition(text: str, names: Mapping[str, Name], known: Facts = _NOTHING) -> Expression:
    """Parse and check an expression that must be true or false; arguments and errors as of `check`."""
    found = check(text, names, known)
    if found.type not in (BOOL, ANY):
        hint = " (write `len(…) > 0`)" if found.type.kind in ("list", "map", "str") else ""
        raise ExpressionError(f"expected a condition, true or false, got a value of type {found.type}{hint}")
    return found


def paths_in(text: str, names: Mapping[str, Name]) -> list[str]:
    """Return the attributes, with their fields, that an expression mentions: ``language.prob``; each once, in order."""
    found: dict[str, None] = {}

    class Visitor(ast.NodeVisitor):
        def visit_Attribute(self, node: ast.Attribute) -> None:
            base = node.value
            while isinstance(base, ast.Attribute):
                base = base.value
            if isinstance(base, ast.Name) and base.id in names:
                found[ast.unparse(node)] = None
            else:
                self.generic_visit(node)

        def visit_Name(self, node: ast.Name) -> None:
            if node.id in names:
                found[node.id] = None

    Visitor().visit(parse(text))
    return list(found)


def everything_known(path: str) -> Facts:
    """Return all parts of a path, as known not to be null: for looking at values whatever they are."""
    parts = path.split(".")
    return frozenset(".".join(parts[:i]) for i in range(1, len(parts)))
