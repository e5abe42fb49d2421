"""A JSONPath as a tree: only what Dolma knows and we support; what it names, and what it gives for a document.

`$.attributes[?(@.k[0] > 0.5)]` is::

    (Key("attributes"), Filter(Comparison(Query((Key("k"), Element(0)), of_document=False), ">", Constant(0.5))))

The attributes that a filter asks for, by their names.

Those of a JSONPath are read from its steps. A jq filter is searched for the ways in which attributes are commonly asked
for, as its library gives no tree: `.attributes.k`, `.attributes["k"]`, `.["attributes"].k`, `.attributes | .k`.

Evaluates a JSONPath on a document, with the meaning of Dolma 1.2.

Dolma's library (jsonpath-rust 0.3) is an older dialect than RFC 9535: a filter is applied to an object itself, not to
its values; a path that is not there compares as unequal to everything but another such path; only numbers have an
order. Dolma also takes 1 and 1.0 for different numbers, so that ``>= 1.0`` is false for 1: that happens here only if
asked for.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from msgspec import Struct

from toolkit.data.schema import is_number


class Key(Struct, frozen=True):
    """From an object to the value of a key."""

    name: str


class Element(Struct, frozen=True):
    """From a list to an element, counted from 0."""

    index: int


class Slice(Struct, frozen=True):
    """From a list to some of its elements; negative bounds count from the end, an end of 0 is the end."""

    start: int
    end: int
    step: int


class Children(Struct, frozen=True):
    """To all values of an object or elements of a list."""


class Descendants(Struct, frozen=True):
    """To all values inside a value, or those with a name."""

    name: str | None


class Several(Struct, frozen=True):
    """To the results of several steps, all keys or all elements."""

    steps: "tuple[Step, ...]"


class Filter(Struct, frozen=True):
    """To the elements of a list, or the value, after a test."""

    test: "Test"


class Query(Struct, frozen=True):
    """A path, or the test of its success.

    Attributes:
        path: Path.
        of_document: True if it begins at the document, not at the value that is tested.
    """

    path: "Path"
    of_document: bool


class Constant(Struct, frozen=True):
    """A null, boolean, number or text; a list of texts, or of at least two numbers."""

    value: Any


class Comparison(Struct, frozen=True):
    """Operands with an operator between them: ``== != < > <= >= in``."""

    left: "Operand"
    operator: str
    right: "Operand"


class And(Struct, frozen=True):
    """Both tests hold."""

    left: "Test"
    right: "Test"


class Or(Struct, frozen=True):
    """One test holds at least."""

    left: "Test"
    right: "Test"


class Not(Struct, frozen=True):
    """A test does not hold."""

    test: "Test"


Step = Key | Element | Slice | Children | Descendants | Several | Filter
Path = tuple[Step, ...]
Operand = Query | Constant
Test = Query | Comparison | And | Or | Not


_ATTRIBUTES = "attributes"


def of_path(path: Path) -> set[str]:
    """Return the keys of attributes in a JSONPath, filters included."""
    return set(_keys_in_path(path, in_attributes=False))


def _keys_in_path(path: Path, *, in_attributes: bool, at_document: bool = True) -> Iterator[str]:
    """Yield the keys in a path from document, attributes, or elsewhere."""
    for step in path:
        if isinstance(step, Filter):  # applied to an object itself, and to the elements of a list
            yield from _keys_in_test(step.test, in_attributes=in_attributes, at_document=at_document)
            continue
        names = _names(step)
        if in_attributes:
            yield from names
        in_attributes, at_document = at_document and _ATTRIBUTES in names, False


def _names(step: Step) -> list[str]:
    match step:
        case Key(name=name):
            return [name]
        case Several(steps=steps):
            return [name for step in steps for name in _names(step)]
    return []


def _keys_in_test(test: Test, *, in_attributes: bool, at_document: bool) -> Iterator[str]:
    if isinstance(test, Query) and test.of_document:
        yield from _keys_in_path(test.path, in_attributes=False)
    elif isinstance(test, Query):
        yield from _keys_in_path(test.path, in_attributes=in_attributes, at_document=at_document)
    for inner in _inner_tests(test):
        yield from _keys_in_test(inner, in_attributes=in_attributes, at_document=at_document)


def _inner_tests(test: Test) -> list[Test]:
    match test:
        case And(left=left, right=right) | Or(left=left, right=right):
            return [left, right]
        case Not(test=inner):
            return [inner]
        case Comparison(left=left, right=right):
            return [side for side in (left, right) if isinstance(side, Query)]
    return []


_TEXT = re.compile(r'(\[\s*|\.)?"((?:\\.|[^"\\])*)"(\s*\])?|#[^\n]*')
_JQ_ATTRIBUTES = r'\.(?:attributes|"attributes"|\[\s*"attributes"\s*\])\??'
_JQ_KEY = r'\.?(?:(?<=\.)(\w+)|(?<=\.)"([^"\\]+)"|\[\s*"([^"\\]+)"\s*\])'
_JQ_NAMED = re.compile(
    rf"(?<![\w\])]){_JQ_ATTRIBUTES}\s*(?:\|\s*\(?\s*)?{_JQ_KEY}(?!\w)(?:[\w.]|\[-?\d*\])*\s*(\?|//)?", re.ASCII
)


def of_jq(text: str) -> set[str]:
    """Return the keys of attributes in jq without guard. Guards are a `?` or a default."""
    return {key for key, guard in _named(text) if not guard}


def guarded_in_jq(text: str) -> set[str]:
    """Return the keys of attributes in a jq filter with a `?`."""
    return {key for key, guard in _named(text) if guard == "?"}


def _named(text: str) -> list[tuple[str, str]]:
    """Return keys with the guard behind them: a `?`, a `//`, or none."""
    return [("".join(keys), guard) for *keys, guard in _JQ_NAMED.findall(_without_texts(text))]


def _without_texts(text: str) -> str:
    """Return a jq filter without comments and texts. Texts that are keys stay."""

    def without_text(match: re.Match[str]) -> str:
        if match[2] is None:
            return ""
        is_key = match[1] == "." or (match[1] and match[3])
        return match[0] if is_key else f'{match[1] or ""}""{match[3] or ""}'

    return _TEXT.sub(without_text, text)


def deciding(path: Path) -> list[Path]:
    """Return a path for each comparison sensitive to 1 and 1.0.

    Each finds something at least where its comparison meets a number that equals the other. Where none of them finds
    anything, the JSONPath means the same either way.
    """
    return list(_in_path(path))


def _in_path(path: Path) -> Iterator[Path]:
    for i, step in enumerate(path):
        if isinstance(step, Filter):
            yield from ((*path[:i], Filter(test)) for test in _in_test(step.test))


def _in_test(test: Test) -> Iterator[Test]:
    for inner in _inner_tests(test):
        yield from _in_test(inner)
    match test:
        case Query(path=path, of_document=of_document):
            yield from (Query(item, of_document) for item in _in_path(path))
        case Comparison(left=left, operator=operator, right=right):
            if operator not in ("<", ">") and _may_be_number(left) and _may_be_number(right):
                yield Comparison(left, "in" if operator == "in" else "==", right)


def _may_be_number(operand: Operand) -> bool:
    return isinstance(operand, Query) or _has_number(operand.value)


def _has_number(value: Any) -> bool:
    return any(map(_has_number, value)) if isinstance(value, list) else is_number(value)


_Find = Callable[[Any, Any], list[Any]]
"""Functions that find values from a value; the second argument is the whole document."""
_Holds = Callable[[Any, Any], bool]


def finder(path: Path, *, strict: bool) -> Callable[[Any], list[Any]]:
    """Return a function for all results of a path, in order.

    Args:
        path: Path.
        strict: 1 and 1.0 are different numbers.

    Returns:
        A function of a document.
    """
    find = _path(path, strict)
    return lambda document: find(document, document)


def _path(path: Path, strict: bool) -> _Find:
    steps = [_step(step, strict) for step in path]

    def find(value: Any, document: Any) -> list[Any]:
        values = [value]
        for step in steps:
            values = [result for value in values for result in step(value, document)]
        return values

    return find


def _step(step: Step, strict: bool) -> _Find:
    match step:
        case Key(name=name):
            return lambda value, _: [value[name]] if isinstance(value, dict) and name in value else []
        case Element(index=i):
            return lambda value, _: [value[i]] if isinstance(value, list) and i < len(value) else []
        case Slice(start=start, end=end, step=by):
            return lambda value, _: _sliced(value, start, end, by) if isinstance(value, list) else []
        case Children():
            return lambda value, _: _children(value)
        case Descendants(name=only):
            return lambda value, _: _descendants(value, only)
        case Several(steps=steps):
            finds = [_step(step, strict) for step in steps]
            return lambda value, document: [result for find in finds for result in find(value, document)]
        case Filter(test=test):
            holds = _test(test, strict)
            return lambda value, document: [
                item for item in (value if isinstance(value, list) else [value]) if holds(item, document)
            ]


def _test(test: Test, strict: bool) -> _Holds:
    match test:
        case And(left=left, right=right):
            a, b = _test(left, strict), _test(right, strict)
            return lambda value, document: a(value, document) and b(value, document)
        case Or(left=left, right=right):
            a, b = _test(left, strict), _test(right, strict)
            return lambda value, document: a(value, document) or b(value, document)
        case Not(test=inner):
            holds = _test(inner, strict)
            return lambda value, document: not holds(value, document)
        case Comparison(left=one, operator=operator, right=other):
            return _comparison(_operand(one, strict), operator, _operand(other, strict), strict)
        case Query():
            find = _operand(test, strict)
            return lambda value, document: bool(find(value, document))


def _operand(operand: Operand, strict: bool) -> _Find:
    match operand:
        case Constant(value=constant):
            return lambda _, __: [constant]
        case Query(path=path, of_document=True):
            find = _path(path, strict)
            return lambda _, document: find(document, document)
        case Query(path=path):
            return _path(path, strict)


def _comparison(left: _Find, operator: str, right: _Find, strict: bool) -> _Holds:
    equal = partial(_equal, strict=strict)

    def inside(a: list[Any], b: list[Any]) -> bool:
        among = _children(b[0]) if b else []
        return any(_same(x, y, strict) for x in a for y in among)

    compare: dict[str, Callable[[list[Any], list[Any]], bool]] = {
        "==": equal,
        "!=": lambda a, b: not equal(a, b),
        "<": _less,
        ">": lambda a, b: _less(b, a),
        "<=": lambda a, b: _less(a, b) or equal(a, b),
        ">=": lambda a, b: _less(b, a) or equal(a, b),
        "in": inside,
    }
    holds = compare[operator]
    return lambda value, document: holds(left(value, document), right(value, document))


def _children(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _descendants(value: Any, name: str | None) -> list[Any]:
    """Return all values inside a value, or those with a name. Outer values come before inner ones."""
    if name is None:
        return [descendant for child in _children(value) for descendant in (child, *_descendants(child, None))]
    own = [value[name]] if isinstance(value, dict) and name in value else []
    return own + [descendant for child in _children(value) for descendant in _descendants(child, name)]


def _sliced(values: list[Any], start: int, end: int, step: int) -> list[Any]:
    """Return a slice as Dolma: nothing if a bound is outside of the list; an end of 0 is the end of the list."""
    if not (-len(values) <= start <= len(values) and -len(values) <= end <= len(values)):
        return []
    start, end = (bound + len(values) if bound < 0 else bound for bound in (start, end))
    return values[start : end or len(values) : step]


def _less(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) == 1 and is_number(a[0]) and is_number(b[0]) and a[0] < b[0]


def _equal(a: list[Any], b: list[Any], strict: bool) -> bool:
    return len(a) == len(b) and all(_same(x, y, strict) for x, y in zip(a, b, strict=True))


def _same(a: Any, b: Any, strict: bool) -> bool:
    """Return True if two JSON values are equal; to Python True is 1, to JSON it is not."""
    if is_number(a) and is_number(b):
        return bool(a == b) and not (strict and isinstance(a, float) != isinstance(b, float))
    if isinstance(a, list) and isinstance(b, list):
        return _equal(a, b, strict)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(x, b[key], strict) for key, x in a.items())
    return type(a) is type(b) and bool(a == b)
