"""Dolma's filter languages, JSONPath and jq, with the meaning that Dolma 1.2 gives them.

    $.attributes[?(@.exp__tox__toxic && @.exp__tox__toxic[0] && @.exp__tox__toxic[0][2] >= 0.5)]
    (.attributes.exp__pii__EMAIL_ADDRESS // []) | length > 2

jq is run by its library. JSONPath is parsed by its library, but evaluated here, because Dolma's (jsonpath-rust 0.3) is
an older dialect than RFC 9535: a filter is applied to an object itself, not to its values; a path that is not there
compares as unequal to everything but another such path; only numbers have an order. Dolma also takes 1 and 1.0 for
different numbers, so that ``>= 1.0`` is false for 1: that happens here only if asked for.

`translate` turns JSONPath filters of attributes into expressions of rules, where both surely mean the same.
"""

import keyword
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from toolkit.errors import ConfigError, DataError, MissingExtra
from toolkit.schema import BOOL, SPANS, STR, Type

if TYPE_CHECKING:
    from jsonpath import JSONPath
    from jsonpath.filter import BaseExpression
    from jsonpath.segments import JSONPathSegment
    from jsonpath.selectors import Filter, JSONPathSelector

Syntax = Literal["jsonpath", "jq"]
_Find = Callable[[Any], list[Any]]
"""What a pattern finds in a document: all the values, in order."""


def matcher(
    text: str, syntax: Syntax, *, strict: bool = False, exclude: bool = False
) -> Callable[[dict[str, Any]], bool]:
    """Whether a document matches a filter.

    A JSONPath matches if it finds anything: a null or an empty list also. Of the values that a jq filter yields all
    must be true to include a document, and one to exclude it; 0, "", [] and {} count as false there.

    Args:
        text: the filter.
        syntax: its language.
        strict: as Dolma, take 1 and 1.0 for different numbers in JSONPath.
        exclude: it says which documents go, not which stay.

    Returns:
        A function of a document with its attributes under ``attributes``. It raises DataError where jq fails.

    Raises:
        ConfigError: if it is not of the language, or means something that is not supported.
        MissingExtra: if the language's library is not installed.
    """
    if syntax == "jsonpath":
        find = _Evaluator(text, strict=strict).find
        return lambda document: bool(find(document))
    outputs, enough = _jq(text), any if exclude else all
    return lambda document: bool(values := outputs(document)) and enough(values)


def selection(text: str, syntax: Syntax) -> Callable[[dict[str, Any]], Any]:
    """What a selector of spans selects in a document.

    Args:
        text: the selector.
        syntax: its language.

    Returns:
        A function of a document: the value that is found, None if there is none, a list of them if there are several.

    Raises:
        ConfigError: if it is not of the language, or means something that is not supported.
        MissingExtra: if the language's library is not installed.
    """
    find = _Evaluator(text, strict=False).find if syntax == "jsonpath" else _jq(text)

    def select(document: dict[str, Any]) -> Any:
        values = find(document)
        return values if len(values) > 1 else values[0] if values else None

    return select


# --- jq ---------------------------------------------------------------------------------------------------------------

_JQ_STRING_OR_ALTERNATIVE = re.compile(r'"(?:\\.|[^"\\])*"|\?//')


def _jq(text: str) -> _Find:
    try:
        import jq
    except ImportError:
        raise MissingExtra("jq filters need the package jq: pip install 'corpus-toolkit[dolma]'") from None
    # `.a?//0` is `.a? // 0` in Dolma; jq has an operator `?//`, of destructuring, which Dolma has not.
    program = _JQ_STRING_OR_ALTERNATIVE.sub(lambda match: "? //" if match[0] == "?//" else match[0], text)
    try:
        compiled = jq.compile(program)
    except ValueError as error:
        raise ConfigError(f"expected a jq filter, got {text!r}: {str(error).splitlines()[0]}") from None

    def find(document: Any) -> list[Any]:
        try:
            return list(compiled.input_value(document))
        except ValueError as error:
            raise DataError(f"the jq filter {text!r} failed: {error}") from None

    return find


# --- JSONPath: parsed -------------------------------------------------------------------------------------------------

_JSONPATH_STRING = re.compile(r"""('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")""")
_UNSUPPORTED = re.compile(r"~=|=~|\.length\(\)|(?<![\w.@-])(?:nin|size|anyOf|noneOf|subsetOf|contains)(?![\w-])")
_COMPARISONS = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""The comparisons, with what they become when the sides are exchanged."""


def _parse(text: str) -> "tuple[JSONPathSegment, ...]":
    try:
        from jsonpath import JSONPath, JSONPathEnvironment
        from jsonpath.exceptions import JSONPathError
    except ImportError:
        raise MissingExtra(
            "JSONPath filters need the package python-jsonpath: pip install 'corpus-toolkit[dolma]'"
        ) from None
    parts = _JSONPATH_STRING.split(text.strip())
    for i, part in enumerate(parts):
        if i % 2 == 0:
            if found := _UNSUPPORTED.search(part):
                raise _unsupported(text, f"`{found[0]}`")
            part = re.sub(r"(?<!\.)\.\[", "[", part)  # `$.attributes.['key']` is Dolma's for `$.attributes['key']`
            parts[i] = re.sub(r"(?<![\w.])(-?\d+)(?=[eE]\+?\d)", r"\1.0", part)  # the library reads 1e3 as an integer
        elif "\\" in part:
            raise _unsupported(text, "a backslash between quotes")
    path = re.sub(r"^(\$@|@|\$|(?=\.))", "$", "".join(parts))  # Dolma's examples begin with `$@.attributes`
    if not path.startswith("$"):
        raise ConfigError(f"expected a JSONPath such as `$.attributes.KEY`, got {text!r}")
    try:
        parsed = JSONPathEnvironment(well_typed=False).compile(path)
    except JSONPathError as error:
        raise ConfigError(f"expected a JSONPath, got {text!r}: {error.args[0]}") from None
    except RecursionError:
        raise ConfigError("expected a JSONPath, got one that is nested too deeply") from None
    if not isinstance(parsed, JSONPath):
        raise _unsupported(text, "a union of paths")
    return parsed.segments


def _unsupported(text: str, what: str) -> ConfigError:
    return ConfigError(
        f"expected a JSONPath of keys, elements, filters, comparisons and `in`, got {text!r}: {what} is not supported; "
        "write it in jq (`syntax: jq`)"
    )


# --- JSONPath: evaluated ----------------------------------------------------------------------------------------------

_Step = Callable[[Any, Any], list[Any]]
"""What is found from a value; the second argument is the whole document."""
_Test = Callable[[Any, Any], bool]


class _Evaluator:
    """A JSONPath as functions.

    Args:
        text: the path.
        strict: 1 and 1.0 are different numbers.

    Raises:
        ConfigError: if it is none, or not supported.
    """

    def __init__(self, text: str, *, strict: bool) -> None:
        self.text = text
        self.strict = strict
        step = self._path(_parse(text))
        self.find: _Find = lambda document: step(document, document)

    def _path(self, segments: "tuple[JSONPathSegment, ...]") -> _Step:
        steps = [self._segment(segment) for segment in segments]

        def find(value: Any, document: Any) -> list[Any]:
            values = [value]
            for step in steps:
                values = [found for each in values for found in step(each, document)]
            return values

        return find

    def _segment(self, segment: "JSONPathSegment") -> _Step:
        from jsonpath.segments import JSONPathRecursiveDescentSegment
        from jsonpath.selectors import IndexSelector, NameSelector, WildcardSelector

        if isinstance(segment, JSONPathRecursiveDescentSegment):
            match segment.selectors:
                case [NameSelector(name=name)]:
                    return lambda value, _: _descendants(value, name)
                case [WildcardSelector()]:
                    return lambda value, _: _descendants(value, None)
            raise _unsupported(self.text, "`..` before anything but a key or `*`")
        union = (NameSelector, IndexSelector)
        if len(segment.selectors) > 1 and not any(
            all(isinstance(selector, kind) for selector in segment.selectors) for kind in union
        ):
            raise _unsupported(self.text, f"`{segment}`")
        steps = [self._selector(selector) for selector in segment.selectors]
        if len(steps) == 1:
            return steps[0]
        return lambda value, document: [found for step in steps for found in step(value, document)]

    def _selector(self, selector: "JSONPathSelector") -> _Step:
        from jsonpath.selectors import Filter, IndexSelector, NameSelector, SliceSelector, WildcardSelector

        match selector:
            case NameSelector(name=name):
                return lambda value, _: [value[name]] if isinstance(value, dict) and name in value else []
            case IndexSelector(index=i) if i >= 0:
                return lambda value, _: [value[i]] if isinstance(value, list) and i < len(value) else []
            case SliceSelector(slice=slice_) if slice_.step is None or slice_.step > 0:
                return lambda value, _: _sliced(value, slice_) if isinstance(value, list) else []
            case WildcardSelector():
                return lambda value, _: _children(value)
            case Filter(expression=expression):
                test = self._test(expression.expression)
                return lambda value, document: [
                    each for each in (value if isinstance(value, list) else [value]) if test(each, document)
                ]
        raise _unsupported(self.text, f"`[{selector}]`")

    def _test(self, node: "BaseExpression") -> _Test:
        from jsonpath.filter import FilterQuery, InfixExpression, PrefixExpression

        match node:
            case InfixExpression(left=left, operator="&&", right=right):
                a, b = self._test(left), self._test(right)
                return lambda value, document: a(value, document) and b(value, document)
            case InfixExpression(left=left, operator="||", right=right):
                a, b = self._test(left), self._test(right)
                return lambda value, document: a(value, document) or b(value, document)
            case InfixExpression(left=PrefixExpression(right=left), operator=operator, right=right):
                # `!@.a == 1` is `!(@.a == 1)` in Dolma, `(!@.a) == 1` to the library.
                test = self._test(InfixExpression(left, operator, right))
                return lambda value, document: not test(value, document)
            case InfixExpression(left=left, operator=operator, right=right):
                return self._comparison(self._operand(left), operator, self._operand(right))
            case PrefixExpression(right=right):
                test = self._test(right)
                return lambda value, document: not test(value, document)
            case FilterQuery():
                find = self._operand(node)
                return lambda value, document: bool(find(value, document))
        raise _unsupported(self.text, f"`{node}` as a condition")

    def _operand(self, node: "BaseExpression") -> _Step:
        from jsonpath.filter import RelativeFilterQuery, RootFilterQuery

        match node:
            case RelativeFilterQuery(path=path):
                return self._path(path.segments)
            case RootFilterQuery(path=path) if not path.pseudo_root:
                find = self._path(path.segments)
                return lambda _, document: find(document, document)
        value = _literal(node, self.text)
        return lambda _, __: [value]

    def _comparison(self, left: _Step, operator: str, right: _Step) -> _Test:
        strict = self.strict

        def equal(a: list[Any], b: list[Any]) -> bool:
            return len(a) == len(b) and all(_same(x, y, strict) for x, y in zip(a, b, strict=True))

        def inside(a: list[Any], b: list[Any]) -> bool:
            inner = b[0] if b else None
            among = inner if isinstance(inner, list) else list(inner.values()) if isinstance(inner, dict) else []
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
        if operator not in compare:
            raise _unsupported(self.text, f"`{operator}`")
        holds = compare[operator]
        return lambda value, document: holds(left(value, document), right(value, document))


def _literal(node: "BaseExpression", text: str) -> Any:
    """The value of a literal, of a list of texts or of numbers also."""
    from jsonpath.filter import FilterExpressionLiteral, ListLiteral, Nil

    match node:
        case Nil():
            return None
        case FilterExpressionLiteral(value=value):
            if isinstance(value, bool | str | float) or (isinstance(value, int) and abs(value) < 2**53):
                return value
        case ListLiteral(items=items):
            values = [_literal(item, text) for item in items]
            if all(isinstance(value, str) for value in values) and values:
                return values
            if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
                if len(values) > 1:
                    return values
                # Dolma reads `[1]` as the element 1 of the value that is tested, so that it matches nothing.
                raise _unsupported(text, f"`{node}`, a list of one number,")
    raise _unsupported(text, f"`{node}`")


def _children(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def _descendants(value: Any, name: str | None) -> list[Any]:
    """All that is anywhere in a value, or all that has a name; what holds another value comes before it."""
    if name is None:
        return [found for child in _children(value) for found in (child, *_descendants(child, None))]
    own = [value[name]] if isinstance(value, dict) and name in value else []
    return own + [found for child in _children(value) for found in _descendants(child, name)]


def _sliced(values: list[Any], slice_: slice) -> list[Any]:
    """As Dolma: nothing if a bound is outside of the list, and an end of 0 is the end of the list."""
    start, end = slice_.start or 0, slice_.stop or 0
    if not (-len(values) <= start <= len(values) and -len(values) <= end <= len(values)):
        return []
    start, end = (bound + len(values) if bound < 0 else bound for bound in (start, end))
    return values[start : end or len(values) : slice_.step]


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _less(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) == 1 and _number(a[0]) and _number(b[0]) and a[0] < b[0]


def _same(a: Any, b: Any, strict: bool) -> bool:
    """Whether two JSON values are equal; to Python True is 1, to JSON it is not."""
    if _number(a) and _number(b):
        return bool(a == b) and not (strict and isinstance(a, float) != isinstance(b, float))
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_same(x, y, strict) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(x, b[key], strict) for key, x in a.items())
    return type(a) is type(b) and bool(a == b)


# --- translated -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class KeyInfo:
    """What is known of an attribute.

    Attributes:
        type: of its value, where there is one.
        optional: rows may lack it; expressions then see [] for spans, None for anything else.
    """

    type: Type
    optional: bool


_SPANS_KEY = {
    "jsonpath": re.compile(r"\$@?(?:\.attributes|\['attributes'\])(?:\.(\w+)|\['([^'\\]+)'\])", re.ASCII),
    "jq": re.compile(r'\.attributes\??(?:\.(\w+)|\.?\["([^"\\]+)"\])\??', re.ASCII),
}


def selected_key(text: str, syntax: Syntax) -> str | None:
    """The key of the attribute whose value a selector selects, whatever it is; None if it selects anything else."""
    found = _SPANS_KEY[syntax].fullmatch(text.strip())
    return found and (found[1] or found[2])


_NAMED = {
    "jsonpath": re.compile(r"(?:attributes|@)(?:\.(\w+)|\['([^'\\]+)'\])", re.ASCII),
    "jq": re.compile(r'\.attributes(?:\.(\w+)|\.?\["([^"\\]+)"\])(?!\w*\s*(?:\?|//))', re.ASCII),
}


def named_keys(text: str, syntax: Syntax) -> set[str]:
    """The keys of attributes that a filter surely asks for; those that jq has with a `?` or a default are left out."""
    if syntax == "jsonpath" and not re.match(r"\$?@?\.?(?:attributes\b|\['attributes'\])", text.strip()):
        return set()
    return {first or second for first, second in _NAMED[syntax].findall(text)}


_GUARDED = re.compile(r"\.attributes\??(?:\.(\w+)[\w.\[\]]*\?)", re.ASCII)


def guarded_keys(text: str) -> set[str]:
    """The keys of attributes that a jq filter asks for with a `?`."""
    return set(_GUARDED.findall(text))


def translate(text: str, syntax: Syntax, keys: Mapping[str, KeyInfo]) -> str | None:
    """An expression of rules that is true for the same documents as a filter.

    That holds for documents whose attributes have the types of ``keys``, and which have attributes, be it none: those
    that any set was joined to. Numbers are compared as numbers, as by `matcher` with ``strict=False``.

    Args:
        text: the filter.
        syntax: its language. Filters in jq are not translated.
        keys: the attributes, by their keys.

    Returns:
        The expression, or None where it cannot be told for sure: without any keys, of keys that are not known or no
        identifiers, of values of any type, of anything but attributes, of whether a list of spans is missing or empty.

    Raises:
        ConfigError: if it is not of the language, or means something that is not supported.
        MissingExtra: if the language's library is not installed.
    """
    matcher(text, syntax)
    if syntax == "jq" or not keys:
        return None
    try:
        return _joined(_Translator(text, keys).found(_parse(text), None))
    except _Untold:
        return None


class _Untold(Exception):
    """What a path finds cannot be told from the types."""


@dataclass(frozen=True)
class _Place:
    """What a path leads to.

    Attributes:
        code: the expression of the value.
        type: of the value.
        guards: what must hold for there to be a value, and the expression to be evaluated.
        told: whether there is a value exactly where the guards hold.
    """

    code: str
    type: Type
    guards: tuple[str, ...] = ()
    told: bool = True


_ATTRIBUTES = Type("attributes")
"""Of the object that holds all attributes, which no expression names."""
_FALSE = ["False"]


def _joined(conditions: list[str]) -> str:
    """All of some conditions; each is an operand of `and`."""
    return "False" if "False" in conditions else " and ".join(dict.fromkeys(conditions)) or "True"


class _Translator:
    # Conditions are lists whose elements must all hold; without elements they are true.

    def __init__(self, text: str, keys: Mapping[str, KeyInfo]) -> None:
        self.text = text
        self.keys = keys
        self.depth = 0

    def found(self, segments: "tuple[JSONPathSegment, ...]", at: _Place | None) -> list[str]:
        """When a path finds something, from a place or from the document."""
        from jsonpath.selectors import Filter

        if segments and isinstance(last := segments[-1].selectors[0], Filter):
            place = self._place(segments[:-1], at)
            return _FALSE if place is None else self._filtered(place, last)
        place = self._place(segments, at)
        if place is None:
            return _FALSE
        if not place.told:
            raise _Untold
        return list(place.guards)

    def _filtered(self, place: _Place, filter_: "Filter") -> list[str]:
        test = filter_.expression.expression
        if place.type.kind != "list":  # the filter is applied to the value itself
            if not place.told or place.type.kind in ("nullable", "span"):
                raise _Untold
            return [*place.guards, *self._test(test, replace(place, guards=()))]
        names = (f"x{n or ''}" for n in range(self.depth, len(self.keys) + self.depth + 1))
        name = next(name for name in names if name not in self.keys)
        self.depth += 1
        condition = _joined(self._test(test, _Place(name, _item(place.type))))
        self.depth -= 1
        return [*place.guards, f"any({condition} for {name} in {place.code})"]

    def _place(self, segments: "tuple[JSONPathSegment, ...]", at: _Place | None) -> _Place | None:
        """Where a path leads to; None if to nothing, ever."""
        from jsonpath.segments import JSONPathChildSegment
        from jsonpath.selectors import IndexSelector, NameSelector

        place = at
        for segment in segments:
            if not isinstance(segment, JSONPathChildSegment) or len(segment.selectors) != 1:
                raise _Untold
            match segment.selectors[0]:
                case NameSelector(name=name):
                    place = self._named(place, name)
                case IndexSelector(index=i):
                    place = self._element(place, i)
                case _:
                    raise _Untold
            if place is None:
                return None
        if place is None:
            raise _Untold  # the document
        return place

    def _named(self, place: _Place | None, name: str) -> _Place | None:
        if place is None:
            if name != "attributes":
                raise _Untold
            return _Place("", _ATTRIBUTES)
        if place.type == _ATTRIBUTES:
            return self._attribute(name)
        place = _not_null(place)
        if place.type.kind == "map":
            code = f"{place.code}[{name!r}]"
            return replace(
                place, code=code, type=_item(place.type), guards=(*place.guards, f"{name!r} in {place.code}")
            )
        if place.type.kind != "object":
            return None
        type_ = place.type.get(name)
        if type_ is None:
            raise _Untold  # rows may have fields that are not declared
        plain = name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("__")
        return replace(place, code=f"{place.code}.{name}" if plain else f"{place.code}[{name!r}]", type=_certain(type_))

    def _attribute(self, key: str) -> _Place:
        info = self.keys.get(key)
        if info is None or not key.isidentifier() or keyword.iskeyword(key):
            raise _Untold
        type_ = _certain(info.type)
        if not info.optional:
            return _Place(key, type_)
        if type_ == SPANS or type_.kind == "nullable":
            return _Place(key, type_, told=False)
        return _Place(key, type_, (f"{key} is not None",))

    def _element(self, place: _Place | None, i: int) -> _Place | None:
        if place is None:
            return None
        place = _not_null(place)
        if place.type.kind == "span":
            return replace(place, code=f"{place.code}[{i}]", type=Type("float" if i == 2 else "int")) if i < 3 else None
        if place.type.kind != "list":
            return None
        guard = f"len({place.code}) > {i}"
        return replace(place, code=f"{place.code}[{i}]", type=_item(place.type), guards=(*place.guards, guard))

    def _test(self, node: "BaseExpression", at: _Place) -> list[str]:
        from jsonpath.filter import InfixExpression, PrefixExpression, RelativeFilterQuery, RootFilterQuery

        match node:
            case InfixExpression(operator="&&"):
                return self._all(node, at)
            case InfixExpression(left=left, operator="||", right=right):
                either = [_joined(self._test(side, at)) for side in (left, right)]
                if "True" in either:
                    return []
                either = [side for side in either if side != "False"]
                return [f"({' or '.join(map(_operand, either))})"] if either else _FALSE
            case InfixExpression(left=PrefixExpression(right=left), operator=operator, right=right):
                return _negated(self._compared(left, operator, right, at))
            case InfixExpression(left=left, operator=operator, right=right):
                return self._compared(left, operator, right, at)
            case PrefixExpression(right=right):
                return _negated(self._test(right, at))
            case RelativeFilterQuery(path=path):
                return self.found(path.segments, at)
            case RootFilterQuery(path=path):
                return self.found(path.segments, None)
        raise _Untold

    def _all(self, node: "BaseExpression", at: _Place) -> list[str]:
        """Of tests that must all hold. Whether `@.a` exists need not be told beside a test that needs `@.a[0]`."""
        from jsonpath.filter import RelativeFilterQuery

        tests = _conjuncts(node)
        conditions = []
        for test in tests:
            others = [other for other in tests if other is not test]
            if isinstance(test, RelativeFilterQuery) and any(_needs(other, test.path) for other in others):
                continue
            conditions += self._test(test, at)
        return conditions

    def _compared(self, left: "BaseExpression", operator: str, right: "BaseExpression", at: _Place) -> list[str]:
        from jsonpath.filter import FilterQuery

        if isinstance(right, FilterQuery):
            if isinstance(left, FilterQuery) or operator == "in":
                raise _Untold
            left, operator, right = right, _COMPARISONS[operator], left
        place = self._queried(left, at)
        if operator == "!=":
            return _negated(_FALSE if place is None else _holds(place, "==", _literal(right, self.text)))
        return _FALSE if place is None else _holds(place, operator, _literal(right, self.text))

    def _queried(self, node: "BaseExpression", at: _Place) -> _Place | None:
        from jsonpath.filter import RelativeFilterQuery, RootFilterQuery

        match node:
            case RelativeFilterQuery(path=path):
                return self._place(path.segments, at)
            case RootFilterQuery(path=path):
                return self._place(path.segments, None)
        raise _Untold


def _certain(type_: Type) -> Type:
    """A type, if it tells what its values are."""
    if (type_.item or type_ if type_.kind == "nullable" else type_).kind in ("any", "null", "never"):
        raise _Untold
    return type_


def _item(type_: Type) -> Type:
    assert type_.item
    return _certain(type_.item)


def _not_null(place: _Place) -> _Place:
    """A place, with the null that it may hold ruled out; what is found there is told even if the place is not."""
    if place.type.kind != "nullable":
        return replace(place, told=True)
    return replace(place, type=_item(place.type), guards=(*place.guards, f"{place.code} is not None"), told=True)


def _conjuncts(node: "BaseExpression") -> "list[BaseExpression]":
    from jsonpath.filter import InfixExpression

    if isinstance(node, InfixExpression) and node.operator == "&&":
        return _conjuncts(node.left) + _conjuncts(node.right)
    return [node]


def _needs(test: "BaseExpression", path: "JSONPath") -> bool:
    """Whether a test only holds where there is something at a path."""
    from jsonpath.filter import FilterQuery, InfixExpression, PrefixExpression, RelativeFilterQuery

    wanted = [str(segment) for segment in path.segments]
    match test:
        case RelativeFilterQuery(path=tested):
            return len(tested.segments) > len(wanted) and [str(s) for s in tested.segments[: len(wanted)]] == wanted
        case InfixExpression(left=left, operator=operator, right=right) if operator not in ("!=", "&&", "||"):
            sides = (left, right)
            if isinstance(left, PrefixExpression) or all(isinstance(side, FilterQuery) for side in sides):
                return False
            queries = [side.path.segments for side in sides if isinstance(side, RelativeFilterQuery)]
            return any([str(s) for s in segments[: len(wanted)]] == wanted for segments in queries)
    return False


def _negated(conditions: list[str]) -> list[str]:
    if "False" in conditions:
        return []
    return [f"not ({_joined(conditions)})"] if conditions else _FALSE


def _operand(condition: str) -> str:
    return f"({condition})" if " and " in condition else condition


def _holds(place: _Place, operator: str, value: Any) -> list[str]:
    """When a value compares with a literal. Of what is no number only equality is known; `<=` holds if it does."""
    if place.type == _ATTRIBUTES:
        raise _Untold
    equality = operator in ("==", "<=", ">=")
    if value is None:
        if not equality or place.type.kind != "nullable":
            return _FALSE
        if not place.told:
            raise _Untold
        return [*place.guards, f"{place.code} is None"]
    place = _not_null(place)
    type_, guards, code = place.type, list(place.guards), place.code
    numeric = type_.kind in ("int", "float")
    if operator == "in":
        if type_ == BOOL or not isinstance(value, list):
            raise _Untold
        among = [each for each in value if (_number(each) if numeric else type_ == STR and isinstance(each, str))]
        return [*guards, f"{code} in {among!r}"] if among else _FALSE
    if _number(value):
        return [*guards, f"{code} {operator} {value!r}"] if numeric else _FALSE
    if isinstance(value, list):
        raise _Untold
    if isinstance(value, bool):
        return [*guards, code if value else f"not {code}"] if equality and type_ == BOOL else _FALSE
    return [*guards, f"{code} == {value!r}"] if equality and type_ == STR else _FALSE
