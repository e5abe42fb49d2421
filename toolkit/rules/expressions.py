"""The expressions of rules: a small part of Python, checked against declared types before anything runs.

Allowed are comparisons, ``is None``, ``and or not``, arithmetic with ``//``, ``in``, access to fields and elements,
``x if c else y``, the functions ``len any all min max sum abs get lower startswith endswith matches``, and
comprehensions over lists. An expression is parsed once, checked, and compiled to Python code that touches nothing but
the values given to it.

A value that may be null must be tested (``x is None``) or defaulted (``get(map, key, default)``) before it is used; the
checker knows where a test has been made, also by the rules before.

Expressions that other sections than ``mix:`` ask of documents: which sets they read, and how they are run.
"""

import ast
import keyword
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from toolkit.data.chosen_text import SetReference, split_reference
from toolkit.data.document_fields import DOCUMENT, KEYS, METADATA, ROOTS, OwnTypes
from toolkit.data.schema import ANY, BOOL, INT, STR, Type, is_field
from toolkit.errors import DataError, did_you_mean
from toolkit.rules.checker import FUNCTIONS, Checker, Facts, Name
from toolkit.rules.expression_tree import ExpressionError, Place, parse
from toolkit.storage.paths import is_set_name

WHOLE = ""
"""Stands among the fields of a value for the value itself."""

_NOTHING: Facts = frozenset()


A_NAME = "a name that rules can use (letters, digits and _; no word with a meaning there, such as len, document or is)"
"""Description of what `is_name` accepts, for messages."""


def is_name(text: str) -> bool:
    """Return True if a text can name an attribute in expressions: an identifier that means nothing else there."""
    reserved = (*FUNCTIONS, "document", "line")
    return text.isidentifier() and not keyword.iskeyword(text) and text not in reserved


class Expression(msgspec.Struct, frozen=True):
    """A checked expression.

    Attributes:
        text: Text of the expression.
        type: Type of its value.
        code: Python, with the names of the arguments given to `toolkit.rules.compiling.compile_function`.
        noting: the same code with a further argument `seen`, a list that gets an element for each null that is
            compared; empty if none can be.
        names: Attribute keys that it uses, sorted.
        if_true, if_false: Facts after it was true, or false.
        places: Parts whose values may occur in no document.
    """

    text: str
    type: Type
    code: str
    noting: str
    names: tuple[str, ...]
    if_true: Facts
    if_false: Facts
    places: tuple[Place, ...] = ()


def check(text: str, names: Mapping[str, Name], facts: Facts = _NOTHING) -> Expression:
    """Parse and check an expression.

    Args:
        text: Expression.
        names: Names that it may use.
        facts: Expressions that are not null.

    Raises:
        ExpressionError: saying what was expected and what was found.
    """
    tree = parse(text)
    checker = Checker(names, text)
    type_, code = checker.check(tree, facts, {})
    true, false = checker.facts(tree, facts)
    noting = ""
    if checker.compares_nulls:
        noting = Checker(names, text, noting=True).check(tree, facts, {})[1]
    return Expression(text, type_, code, noting, tuple(sorted(checker.used)), true, false, tuple(checker.places))


def check_condition(text: str, names: Mapping[str, Name], facts: Facts = _NOTHING) -> Expression:
    """Parse and check a condition. Arguments and errors are those of `check`."""
    expression = check(text, names, facts)
    if expression.type not in (BOOL, ANY):
        hint = " (write `len(…) > 0`)" if expression.type.kind in ("list", "map", "str") else ""
        raise ExpressionError(f"expected a condition, true or false, got a value of type {expression.type}{hint}")
    return expression


def paths_in(text: str, names: Mapping[str, Name]) -> list[str]:
    """Return the attributes in an expression, with their fields. Each is there once, in order: ``language.prob``."""
    results: dict[str, None] = {}

    def visit(node: ast.AST) -> None:
        base = node
        while isinstance(base, ast.Attribute):
            base = base.value
        if isinstance(base, ast.Name) and base.id in names:
            results[ast.unparse(node)] = None
        else:
            for child in ast.iter_child_nodes(node):
                visit(child)

    visit(parse(text))
    return list(results)


def everything_known(path: str) -> Facts:
    """Return all parts of a path, as known not to be null: for looking at values whatever they are."""
    parts = path.split(".")
    return frozenset(".".join(parts[:i]) for i in range(1, len(parts)))


_NO_TYPES = OwnTypes()

FAULTS = (KeyError, IndexError, AttributeError, TypeError, ValueError, ZeroDivisionError, DataError)
"""Errors of an expression about the values of a document."""


def of_document(*, text: bool = False, own: OwnTypes | None = None) -> dict[str, Name]:
    """Return the names without any set.

    Args:
        text: True if ``document.text`` is one; rules do not see it.
        own: Types of the own fields of documents, if they are known.
    """
    own = own or _NO_TYPES
    metadata, closed = Type("map", ANY, fields=own.of(METADATA)), tuple(own.closed)
    fields = (("id", STR), ("source", STR), ("chars", INT), ("metadata", metadata))
    document = Type("object", fields=(*fields, ("text", STR)) if text else fields)
    return {
        "document": Name(document, "document", open=True, own=own.of(DOCUMENT), closed=closed),
        METADATA: Name(metadata, "document.metadata", open=True, closed=closed),
    }


def keys_in(text: str) -> set[str]:
    """Return the names in an expression without loop variables and document.

    Raises:
        ExpressionError: if it is none.
    """
    tree = parse(text)
    own = {node.id for item in ast.walk(tree) if isinstance(item, ast.comprehension) for node in ast.walk(item.target)
           if isinstance(node, ast.Name)}  # fmt: skip
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return names - own - called - {"document"}


def reads_document(text: str) -> bool:
    """Return True if an expression uses own fields of the document.

    Raises:
        ExpressionError: if it is none.
    """
    return any(isinstance(node, ast.Name) and node.id in ROOTS for node in ast.walk(parse(text)))


def absent(path: Sequence[str], names: Mapping[str, Name]) -> str | None:
    """Return the fault of an option's field of documents, if any. It has one if no document can have the field.

    Args:
        path: One of `ROOTS`, then keys, one inside the other.
        names: Names of `of_document`, with the types that are known.
    """
    root, *keys = path
    root_name = names[root]
    fields, place = dict(root_name.own if root == DOCUMENT else root_name.type.fields), root
    for key in keys:
        if key not in fields:
            if place not in root_name.closed or not is_field(key) or (root == place == DOCUMENT and key in KEYS):
                return None
            hint = did_you_mean(key, fields) or f"; there are: {', '.join(fields) or 'none'}"
            return f"expected a field that documents have, got {'.'.join(path)!r}{hint}"
        type_ = fields[key].not_null
        fields, place = dict(type_.fields), f"{place}.{key}"
    return None


def check_form(text: str) -> None:
    """Check the form of an expression or ``SET[.KEY[.field]]``.

    Raises:
        ExpressionError: if it is neither.
    """
    if split_reference(text) is None:
        parse(text)


def sets_read(
    text: str,
    configured: Mapping[str, Iterable[str]],
    here: Mapping[str, Iterable[str]],
    on_disk: Callable[[], Mapping[str, Iterable[str]]],
) -> dict[str, str | None]:
    """Return the sets of an expression, each with its key.

    An expression may also be ``SET[.KEY[.field]]`` as a whole; then the key is None. A name that no set has is left
    out: the check of the expression says what is wrong with it.

    Args:
        text: Expression.
        configured: Names by set, of the sets that the configuration names; a key of theirs is looked for nowhere else.
        here: Keys by set, of the sets of the configuration, which are taken before those that are only on disk.
        on_disk: Function that returns the same of the others on disk.

    Raises:
        ExpressionError: if it is no expression, names a set that is not there, or several sets have a key.
    """
    set_name = text.partition(".")[0].strip()
    if is_reference(text, here) or (
        is_set_name(set_name) and not set_name.isidentifier() and is_reference(text, on_disk())
    ):
        return {set_name: None}
    results: dict[str, str | None] = {}
    try:
        keys = sorted(keys_in(text))
    except ExpressionError:
        if split_reference(text) is None or not is_set_name(set_name):
            raise
        hint = did_you_mean(set_name, [*here, *on_disk()])
        raise ExpressionError(f"expected an attribute set or an expression, got {set_name!r}{hint}") from None
    for key in keys:
        if any(key in names for names in configured.values()):
            continue
        sets = _with(key, here) or (_with(key, on_disk()) if key != METADATA else [])
        if len(sets) > 1:
            raise ExpressionError(
                f"expected {key!r} in one set, got it in {', '.join(sets)}; say which: `attributes: [SET]`"
            )
        results |= dict.fromkeys(sets, key)
    return results


def is_reference(text: str, keys_by_set: Mapping[str, Iterable[str]]) -> bool:
    """Return True if the whole text is ``SET[.KEY[.field]]`` of a set.

    Where a set is called as a key is, a text that does not go on with a key of the set begins with that key.
    """
    reference = split_reference(text)
    if reference is None or reference.set not in keys_by_set:
        return False
    return (
        not reference.key
        or reference.key in keys_by_set[reference.set]
        or not any(reference.set in keys for keys in keys_by_set.values())
    )


def resolve_reference(text: str, keys_by_set: Mapping[str, Iterable[str]]) -> SetReference | None:
    """Return the value of a whole ``SET[.KEY[.field]]``. It is None of a text that `is_reference` does not take.

    A key that is not named is the only one of the set.

    Raises:
        ExpressionError: if the set has no such key, or several where none is named.
    """
    reference = split_reference(text)
    if reference is None or not is_reference(text, keys_by_set):
        return None
    keys = list(keys_by_set[reference.set])
    if not reference.key and len(keys) == 1:
        return reference._replace(key=keys[0])
    if reference.key not in keys:
        hint = did_you_mean(reference.key, keys) or f"; there are: {', '.join(keys)}"
        raise ExpressionError(f"expected a key of the set {reference.set}, got {reference.key!r}{hint}")
    return reference


def _with(key: str, keys_by_set: Mapping[str, Iterable[str]]) -> list[str]:
    return [name for name, keys in keys_by_set.items() if key in keys]


def ask(function: Callable[..., Any], arguments: Iterable[Any], title: str) -> Any:
    """Return the value of a compiled expression for a document.

    Args:
        function: Compiled function.
        arguments: Arguments of it.
        title: Name of the value, with its place, for messages.

    Raises:
        DataError: if it cannot be computed of these values.
    """
    try:
        return function(*arguments)
    except FAULTS as error:
        message = error.message if isinstance(error, DataError) else f"{type(error).__name__}: {error}"
        raise DataError(f"{title} failed: {message}") from None
