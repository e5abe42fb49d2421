"""JSONPath filters as equivalent expressions of rules."""

import keyword
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from toolkit.data.schema import BOOL, SPANS, STR, Type, is_number
from toolkit.rules.filters import tree


class KeyInfo(msgspec.Struct, frozen=True):
    """The type of an attribute, as patterns see it.

    Attributes:
        type: Type of its value, where there is one.
        optional: True if rows may lack it; expressions then see [] for spans, None for anything else.
    """

    type: Type
    optional: bool


def expression(path: tree.Path, keys: Mapping[str, KeyInfo]) -> str | None:
    """Return the expression of a successful path; None if uncertain."""
    try:
        return _joined(_Translator(keys).conditions(path, _DOCUMENT))
    except _Untold:
        return None


class _Untold(Exception):
    """The types do not decide about a path."""


class _Place(msgspec.Struct, frozen=True):
    """The place of a path in a document.

    Attributes:
        code: Expression of the value.
        type: Type of the value.
        guards: Conditions for a value, and for evaluating the expression.
        certain: True if there is a value exactly where the guards hold.
    """

    code: str
    type: Type
    guards: tuple[str, ...] = ()
    certain: bool = True


_DOCUMENT = _Place("", Type("document"))
_ATTRIBUTES = _Place("", Type("attributes"))
"""The object that holds all attributes; no expression names it, or the document."""
_FALSE = ["False"]
"""Conditions that never hold."""
_EXCHANGED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""The comparisons with their sides exchanged; the others stay."""


class _Translator:
    """Finds the conditions of paths and tests, from a place.

    Conditions are lists whose elements must all hold; without elements they are true.
    """

    def __init__(self, keys: Mapping[str, KeyInfo]) -> None:
        self.keys = keys
        self.depth = 0

    def conditions(self, path: tree.Path, at: _Place) -> list[str]:
        """Return the conditions for a result of a path."""
        if path and isinstance(last := path[-1], tree.Filter):
            place = self._place(path[:-1], at)
            return _FALSE if place is None else self._filtered(place, last.test)
        place = self._place(path, at)
        if place is None:
            return _FALSE
        if not place.certain:
            raise _Untold
        return list(place.guards)

    def _filtered(self, place: _Place, test: tree.Test) -> list[str]:
        if place.type.kind != "list":  # the filter is applied to the value itself
            if not place.certain or place.type.kind in ("nullable", "span"):
                raise _Untold
            return [*place.guards, *self._test(test, replace(place, guards=()))]
        names = (f"x{n or ''}" for n in range(self.depth, len(self.keys) + self.depth + 1))
        name = next(name for name in names if name not in self.keys)
        self.depth += 1
        condition = _joined(self._test(test, _Place(name, _item(place.type))))
        self.depth -= 1
        return [*place.guards, f"any({condition} for {name} in {place.code})"]

    def _place(self, path: tree.Path, at: _Place) -> _Place | None:
        """Return the place of a path; None if it leads nowhere."""
        place = at
        for step in path:
            match step:
                case tree.Key(name=name):
                    result = self._named(place, name)
                case tree.Element(index=i):
                    result = _element(place, i)
                case _:
                    raise _Untold
            if result is None:
                return None
            place = result
        if place == _DOCUMENT:
            raise _Untold
        return place

    def _named(self, place: _Place, name: str) -> _Place | None:
        if place == _DOCUMENT:
            if name != "attributes":
                raise _Untold
            return _ATTRIBUTES
        return self._attribute(name) if place == _ATTRIBUTES else _field(place, name)

    def _attribute(self, key: str) -> _Place:
        info = self.keys.get(key)
        if info is None or not key.isidentifier() or keyword.iskeyword(key):
            raise _Untold
        type_ = _certain(info.type)
        if not info.optional:
            return _Place(key, type_)
        if type_ == SPANS or type_.kind == "nullable":
            return _Place(key, type_, certain=False)
        return _Place(key, type_, (f"{key} is not None",))

    def _test(self, test: tree.Test, at: _Place) -> list[str]:
        match test:
            case tree.And():
                return self._all(_conjuncts(test), at)
            case tree.Or(left=left, right=right):
                either = [_joined(self._test(side, at)) for side in (left, right)]
                if "True" in either:
                    return []
                either = [side for side in either if side != "False"]
                return [f"({' or '.join(map(_operand, either))})"] if either else _FALSE
            case tree.Not(test=inner):
                return _negated(self._test(inner, at))
            case tree.Comparison():
                return self._compared(test, at)
            case tree.Query():
                return self.conditions(test.path, _DOCUMENT if test.of_document else at)

    def _all(self, tests: list[tree.Test], at: _Place) -> list[str]:
        """Return the conditions of tests. The existence of `@.a` beside a test of `@.a[0]` is left out."""
        conditions = []
        for test in tests:
            if not any(_needs(other, test) for other in tests if other is not test):
                conditions += self._test(test, at)
        return conditions

    def _compared(self, comparison: tree.Comparison, at: _Place) -> list[str]:
        sides = _sides(comparison)
        if sides is None:
            raise _Untold
        query, operator, value = sides
        place = self._place(query.path, _DOCUMENT if query.of_document else at)
        return _negated(_holds(place, "==", value)) if operator == "!=" else _holds(place, operator, value)


def _field(place: _Place, name: str) -> _Place | None:
    """Return the value of a key of a map or an object."""
    place = _not_null(place)
    if place.type.kind == "map":
        code = f"{place.code}[{name!r}]"
        return replace(place, code=code, type=_item(place.type), guards=(*place.guards, f"{name!r} in {place.code}"))
    if place.type.kind != "object":
        return None
    type_ = place.type.get(name)
    if type_ is None:
        raise _Untold  # rows may have fields that are not declared
    plain = name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("__")
    return replace(place, code=f"{place.code}.{name}" if plain else f"{place.code}[{name!r}]", type=_certain(type_))


def _element(place: _Place, i: int) -> _Place | None:
    """Return an element of a list, or a part of a span."""
    place = _not_null(place)
    if place.type.kind == "span":
        return replace(place, code=f"{place.code}[{i}]", type=Type("float" if i == 2 else "int")) if i < 3 else None
    if place.type.kind != "list":
        return None
    guard = f"len({place.code}) > {i}"
    return replace(place, code=f"{place.code}[{i}]", type=_item(place.type), guards=(*place.guards, guard))


def _not_null(place: _Place) -> _Place:
    """Return a place without null. Its existence is then certain."""
    if place.type.kind != "nullable":
        return replace(place, certain=True)
    return replace(place, type=_item(place.type), guards=(*place.guards, f"{place.code} is not None"), certain=True)


def _item(type_: Type) -> Type:
    assert type_.item
    return _certain(type_.item)


def _certain(type_: Type) -> Type:
    """Return a type, unless it is unknown."""
    if type_.not_null.kind in ("any", "null", "never"):
        raise _Untold
    return type_


def _holds(place: _Place | None, operator: str, value: Any) -> list[str]:
    """Return when a value compares with a constant. What is no number can only be equal; `<=` holds if it is."""
    if place is None:
        return _FALSE
    if place == _ATTRIBUTES:
        raise _Untold
    equality = operator in ("==", "<=", ">=")
    if value is None:
        if not equality or place.type.kind != "nullable":
            return _FALSE
        if not place.certain:
            raise _Untold
        return [*place.guards, f"{place.code} is None"]
    place = _not_null(place)
    type_, guards, code = place.type, list(place.guards), place.code
    numeric = type_.kind in ("int", "float")
    if operator == "in":
        if type_ == BOOL or not isinstance(value, list):
            raise _Untold
        among = [item for item in value if (is_number(item) if numeric else type_ == STR and isinstance(item, str))]
        return [*guards, f"{code} in {among!r}"] if among else _FALSE
    if is_number(value):
        return [*guards, f"{code} {operator} {value!r}"] if numeric else _FALSE
    if isinstance(value, list):
        raise _Untold
    if isinstance(value, bool):
        return [*guards, code if value else f"not {code}"] if equality and type_ == BOOL else _FALSE
    return [*guards, f"{code} == {value!r}"] if equality and type_ == STR else _FALSE


def _conjuncts(test: tree.Test) -> list[tree.Test]:
    return _conjuncts(test.left) + _conjuncts(test.right) if isinstance(test, tree.And) else [test]


def _sides(comparison: tree.Comparison) -> tuple[tree.Query, str, Any] | None:
    """Return query, operator and constant of a comparison, or None."""
    operator = comparison.operator
    match comparison.left, comparison.right:
        case tree.Query() as query, tree.Constant(value=value):
            return query, operator, value
        case tree.Constant(value=value), tree.Query() as query if operator != "in":
            return query, _EXCHANGED.get(operator, operator), value
    return None


def _needs(test: tree.Test, other: tree.Test) -> bool:
    """Return True if a test implies another, on the way to it."""
    if not isinstance(other, tree.Query) or other.of_document:
        return False
    n = len(other.path)
    match test:
        case tree.Query(path=path, of_document=False):
            return len(path) > n and path[:n] == other.path
        case tree.Comparison() if test.operator != "!=" and (sides := _sides(test)):
            return not sides[0].of_document and sides[0].path[:n] == other.path
    return False


def _joined(conditions: list[str]) -> str:
    """Return the conjunction of conditions. Each is an operand of `and`."""
    return "False" if "False" in conditions else " and ".join(dict.fromkeys(conditions)) or "True"


def _negated(conditions: list[str]) -> list[str]:
    if "False" in conditions:
        return []
    return [f"not ({_joined(conditions)})"] if conditions else _FALSE


def _operand(condition: str) -> str:
    return f"({condition})" if " and " in condition else condition
