"""Expressions that other sections than ``mix:`` ask of documents: which sets they read, and how they are run."""

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from toolkit.data.metadata_fields import DOCUMENT, METADATA, ROOTS
from toolkit.data.own_types import KEYS, OwnTypes
from toolkit.data.schema import ANY, INT, STR, Type, is_field
from toolkit.errors import DataError, did_you_mean
from toolkit.rules.checker import Name
from toolkit.rules.expression_tree import ExpressionError, parse
from toolkit.storage.paths import is_set_name

_NO_TYPES = OwnTypes()

_REFERENCE = re.compile(r"\s*([\w-]+)(?:\.(\w+)(?:\.\w+)*)?\s*")
"""``SET[.KEY[.field]]``, if the set is there."""

FAULTS = (KeyError, IndexError, AttributeError, TypeError, ValueError, ZeroDivisionError, DataError)
"""Errors of an expression about the values of a document."""


def of_document(*, text: bool = False, own: OwnTypes | None = None) -> dict[str, Name]:
    """Return the names that are there without any set.

    Args:
        text: whether ``document.text`` is one; rules do not see it.
        own: types of the own fields of documents, if they are known.
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
    """Return the names that an expression uses, but for those of its own loops and of the document.

    Raises:
        ExpressionError: if it is none.
    """
    tree = parse(text)
    own = {node.id for each in ast.walk(tree) if isinstance(each, ast.comprehension) for node in ast.walk(each.target)
           if isinstance(node, ast.Name)}  # fmt: skip
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    return names - own - called - {"document"}


def reads_document(text: str) -> bool:
    """Return whether an expression uses own fields of the document.

    Raises:
        ExpressionError: if it is none.
    """
    return any(isinstance(node, ast.Name) and node.id in ROOTS for node in ast.walk(parse(text)))


def absent(path: Sequence[str], names: Mapping[str, Name]) -> str | None:
    """Return what is wrong with a field of documents that an option names, if none of them can have it.

    Args:
        path: one of `ROOTS`, then keys, one inside the other.
        names: as of `of_document`, with the types that are known.
    """
    root, *keys = path
    known = names[root]
    fields, place = dict(known.own if root == DOCUMENT else known.type.fields), root
    for key in keys:
        if key not in fields:
            if place not in known.closed or not is_field(key) or (root == place == DOCUMENT and key in KEYS):
                return None
            hint = did_you_mean(key, fields) or f"; there are: {', '.join(fields) or 'none'}"
            return f"expected a field that documents have, got {'.'.join(path)!r}{hint}"
        type_ = fields[key].not_null
        fields, place = dict(type_.fields), f"{place}.{key}"
    return None


def check_form(text: str) -> None:
    """Check what can be told of a text without knowing any set: it is an expression, or ``SET[.KEY[.field]]``.

    Raises:
        ExpressionError: if it is neither.
    """
    if _REFERENCE.fullmatch(text) is None:
        parse(text)


def sets_read(
    text: str,
    given: Mapping[str, Iterable[str]],
    here: Mapping[str, Iterable[str]],
    there: Callable[[], Mapping[str, Iterable[str]]],
) -> dict[str, str | None]:
    """Return the sets that an expression reads, each with the key that asked for it.

    An expression may also be ``SET[.KEY[.field]]`` as a whole; then the key is None. A name that no set has is left
    out: the check of the expression says what is wrong with it.

    Args:
        text: the expression.
        given: names by set, of the sets that the configuration names; a key of theirs is looked for nowhere else.
        here: keys by set, of the sets of the configuration, which are taken before those that are only on disk.
        there: gives the same of the others on disk, when they are asked for.

    Raises:
        ExpressionError: if it is no expression, names a set that is not there, or several sets have a key.
    """
    set_name = text.partition(".")[0].strip()
    if is_reference(text, here) or (
        is_set_name(set_name) and not set_name.isidentifier() and is_reference(text, there())
    ):
        return {set_name: None}
    found: dict[str, str | None] = {}
    try:
        keys = sorted(keys_in(text))
    except ExpressionError:
        if _REFERENCE.fullmatch(text) is None or not is_set_name(set_name):
            raise
        hint = did_you_mean(set_name, [*here, *there()])
        raise ExpressionError(f"expected an attribute set or an expression, got {set_name!r}{hint}") from None
    for key in keys:
        if any(key in names for names in given.values()):
            continue
        sets = _with(key, here) or (_with(key, there()) if key != METADATA else [])
        if len(sets) > 1:
            raise ExpressionError(
                f"expected {key!r} in one set, got it in {', '.join(sets)}; say which: `attributes: [SET]`"
            )
        found |= dict.fromkeys(sets, key)
    return found


def is_reference(text: str, known: Mapping[str, Iterable[str]]) -> bool:
    """Return whether a text is ``SET[.KEY[.field]]`` as a whole, of a set with these keys.

    Where a set is called as a key is, a text that does not go on with a key of the set begins with that key.
    """
    match = _REFERENCE.fullmatch(text)
    if match is None or match[1] not in known:
        return False
    return not match[2] or match[2] in known[match[1]] or not any(match[1] in keys for keys in known.values())


def _with(key: str, known: Mapping[str, Iterable[str]]) -> list[str]:
    return [name for name, keys in known.items() if key in keys]


def key_of(set_name: str, key: str, keys: Iterable[str]) -> str:
    """Return the key that ``SET[.KEY]`` names; one that is not named is the only one of the set.

    Raises:
        ExpressionError: if the set has no such key, or several where none is named.
    """
    listed = list(keys)
    if not key and len(listed) == 1:
        return listed[0]
    if key not in listed:
        hint = did_you_mean(key, listed) or f"; there are: {', '.join(listed)}"
        raise ExpressionError(f"expected a key of the set {set_name}, got {key!r}{hint}")
    return key


def ask(function: Callable[..., Any], arguments: Iterable[Any], what: str) -> Any:
    """Return what a compiled expression gives for a document.

    Args:
        function: compiled.
        arguments: of it.
        what: is asked, with its place, for messages.

    Raises:
        DataError: if it cannot be computed of these values.
    """
    try:
        return function(*arguments)
    except FAULTS as error:
        said = error.message if isinstance(error, DataError) else f"{type(error).__name__}: {error}"
        raise DataError(f"{what} failed: {said}") from None
