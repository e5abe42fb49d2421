"""Evaluates a JSONPath on a document, with the meaning of Dolma 1.2.

Dolma's library (jsonpath-rust 0.3) is an older dialect than RFC 9535: a filter is applied to an object itself, not to
its values; a path that is not there compares as unequal to everything but another such path; only numbers have an
order. Dolma also takes 1 and 1.0 for different numbers, so that ``>= 1.0`` is false for 1: that happens here only if
asked for.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from toolkit.data.schema import is_number
from toolkit.rules.filters import tree

_Find = Callable[[Any, Any], list[Any]]
"""Functions that find values from a value; the second argument is the whole document."""
_Holds = Callable[[Any, Any], bool]


def finder(path: tree.Path, *, strict: bool) -> Callable[[Any], list[Any]]:
    """Return a function that gives all values that a path finds, in order.

    Args:
        path: the path.
        strict: 1 and 1.0 are different numbers.

    Returns:
        A function of a document.
    """
    find = _path(path, strict)
    return lambda document: find(document, document)


def _path(path: tree.Path, strict: bool) -> _Find:
    steps = [_step(step, strict) for step in path]

    def find(value: Any, document: Any) -> list[Any]:
        values = [value]
        for step in steps:
            values = [found for each in values for found in step(each, document)]
        return values

    return find


def _step(step: tree.Step, strict: bool) -> _Find:
    match step:
        case tree.Key(name=name):
            return lambda value, _: [value[name]] if isinstance(value, dict) and name in value else []
        case tree.Element(index=i):
            return lambda value, _: [value[i]] if isinstance(value, list) and i < len(value) else []
        case tree.Slice(start=start, end=end, step=by):
            return lambda value, _: _sliced(value, start, end, by) if isinstance(value, list) else []
        case tree.Children():
            return lambda value, _: _children(value)
        case tree.Descendants(name=only):
            return lambda value, _: _descendants(value, only)
        case tree.Several(steps=steps):
            finds = [_step(each, strict) for each in steps]
            return lambda value, document: [found for find in finds for found in find(value, document)]
        case tree.Filter(test=test):
            holds = _test(test, strict)
            return lambda value, document: [
                each for each in (value if isinstance(value, list) else [value]) if holds(each, document)
            ]


def _test(test: tree.Test, strict: bool) -> _Holds:
    match test:
        case tree.And(left=left, right=right):
            a, b = _test(left, strict), _test(right, strict)
            return lambda value, document: a(value, document) and b(value, document)
        case tree.Or(left=left, right=right):
            a, b = _test(left, strict), _test(right, strict)
            return lambda value, document: a(value, document) or b(value, document)
        case tree.Not(test=inner):
            holds = _test(inner, strict)
            return lambda value, document: not holds(value, document)
        case tree.Comparison(left=one, operator=operator, right=other):
            return _comparison(_operand(one, strict), operator, _operand(other, strict), strict)
        case tree.Query():
            find = _operand(test, strict)
            return lambda value, document: bool(find(value, document))


def _operand(operand: tree.Operand, strict: bool) -> _Find:
    match operand:
        case tree.Constant(value=constant):
            return lambda _, __: [constant]
        case tree.Query(path=path, of_document=True):
            find = _path(path, strict)
            return lambda _, document: find(document, document)
        case tree.Query(path=path):
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
    """Yield all that is anywhere in a value, or all that has a name; what holds another value comes before it."""
    if name is None:
        return [found for child in _children(value) for found in (child, *_descendants(child, None))]
    own = [value[name]] if isinstance(value, dict) and name in value else []
    return own + [found for child in _children(value) for found in _descendants(child, name)]


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
