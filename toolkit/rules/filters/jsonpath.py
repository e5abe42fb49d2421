"""JSONPath, parsed by its library. Nothing else knows the library: what is not in our tree is refused here."""

import re
import warnings
from typing import TYPE_CHECKING, Any

from toolkit.data.schema import is_number
from toolkit.distribution import missing_extra
from toolkit.errors import ConfigError
from toolkit.rules.filters import tree

if TYPE_CHECKING:
    from jsonpath import JSONPath
    from jsonpath.filter import BaseExpression, FilterQuery
    from jsonpath.segments import JSONPathSegment
    from jsonpath.selectors import JSONPathSelector


def parse(text: str) -> tree.Path:
    """Return the steps of a JSONPath, from the document on.

    Args:
        text: Path.

    Returns:
        Its steps; none if it is the document.

    Raises:
        ConfigError: if it is no JSONPath, or not supported.
        MissingExtra: if the library is not installed.
    """
    try:
        return _path(_compiled(text))
    except RecursionError:
        raise ConfigError("expected a JSONPath, got one that is nested too deeply") from None
    except _Unsupported as what:
        raise ConfigError(
            f"expected a JSONPath of keys, elements, filters, comparisons and `in`, got {text!r}: {what} is not "
            "supported; write it in jq (`syntax: jq`)"
        ) from None


class _Unsupported(Exception):
    """An unsupported feature of Dolma or the library, named in the text."""


_STRING = re.compile(r"""('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")""")
_ONLY_DOLMAS = re.compile(r"~=|=~|\.length\(\)|(?<![\w.@-])(?:nin|size|anyOf|noneOf|subsetOf|contains)(?![\w-])")
_OPERATORS = ("==", "!=", "<", ">", "<=", ">=", "in")


def _compiled(text: str) -> "JSONPath":
    """Return a JSONPath as the library has it."""
    try:
        from jsonpath import JSONPath, JSONPathEnvironment
        from jsonpath.exceptions import JSONPathError
    except ImportError:
        raise missing_extra("dolma", "JSONPath filters", "python-jsonpath") from None
    path = re.sub(r"^(\$@|@|\$|(?=\.))", "$", _for_library(text))  # Dolma's examples begin with `$@.attributes`
    if not path.startswith("$"):
        raise ConfigError(f"expected a JSONPath such as `$.attributes.KEY`, got {text!r}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of regular expressions, which are refused below
            compiled = JSONPathEnvironment(well_typed=False).compile(path)
    except JSONPathError as error:
        raise ConfigError(f"expected a JSONPath, got {text!r}: {error.args[0]}") from None
    except RecursionError:
        raise ConfigError("expected a JSONPath, got one that is nested too deeply") from None
    except (ValueError, OverflowError, re.error) as error:  # of numbers that are too large, and regular expressions
        raise ConfigError(f"expected a JSONPath, got {text[:200]!r}: {error}") from None
    if not isinstance(compiled, JSONPath):
        raise _Unsupported("a union of paths")
    return compiled


def _for_library(text: str) -> str:
    """Dolma's JSONPath in the library's form."""
    parts = _STRING.split(text.strip())
    for i, part in enumerate(parts):
        if i % 2 == 0:
            if match := _ONLY_DOLMAS.search(part):
                raise _Unsupported(f"`{match[0]}`")
            part = re.sub(r"(?<!\.)\.\[", "[", part)  # `$.attributes.['key']` is Dolma's for `$.attributes['key']`
            parts[i] = re.sub(r"(?<![\w.])(-?\d+)(?=[eE]\+?\d)", r"\1.0", part)  # the library reads 1e3 as an integer
        elif "\\" in part:
            raise _Unsupported("a backslash between quotes")
    return "".join(parts)


def _path(path: "JSONPath") -> tree.Path:
    return tuple(_step(segment) for segment in path.segments)


def _step(segment: "JSONPathSegment") -> tree.Step:
    from jsonpath.segments import JSONPathRecursiveDescentSegment
    from jsonpath.selectors import IndexSelector, NameSelector, WildcardSelector

    selectors = segment.selectors
    if isinstance(segment, JSONPathRecursiveDescentSegment):
        match selectors:
            case [NameSelector(name=name)]:
                return tree.Descendants(name)
            case [WildcardSelector()]:
                return tree.Descendants(None)
        raise _Unsupported("`..` before anything but a key or `*`")
    if len(selectors) == 1:
        return _selected(selectors[0])
    if not any(all(isinstance(selector, kind) for selector in selectors) for kind in (NameSelector, IndexSelector)):
        raise _Unsupported(f"`{segment}`")
    return tree.Several(tuple(_selected(selector) for selector in selectors))


def _selected(selector: "JSONPathSelector") -> tree.Step:
    from jsonpath.selectors import (
        Filter as FilterSelector,
        IndexSelector,
        NameSelector,
        SliceSelector,
        WildcardSelector,
    )

    match selector:
        case NameSelector(name=name):
            return tree.Key(name)
        case IndexSelector(index=i) if i >= 0:
            return tree.Element(i)
        case SliceSelector(slice=slice(start=start, stop=end, step=step)) if step is None or step > 0:
            return tree.Slice(start or 0, end or 0, step or 1)
        case WildcardSelector():
            return tree.Children()
        case FilterSelector(expression=expression):
            return tree.Filter(_test(expression.expression))
    raise _Unsupported(f"`[{selector}]`")


def _test(node: "BaseExpression") -> tree.Test:
    from jsonpath.filter import FilterQuery, InfixExpression, PrefixExpression

    match node:
        case InfixExpression(left=left, operator="&&", right=right):
            return tree.And(_test(left), _test(right))
        case InfixExpression(left=left, operator="||", right=right):
            return tree.Or(_test(left), _test(right))
        case InfixExpression(left=PrefixExpression(right=left), operator=operator, right=right):
            # `!@.a == 1` is `!(@.a == 1)` in Dolma, `(!@.a) == 1` to the library.
            return tree.Not(_test(InfixExpression(left, operator, right)))
        case InfixExpression(left=left, operator=operator, right=right):
            comparison = tree.Comparison(_operand(left), operator, _operand(right))
            if operator not in _OPERATORS:
                raise _Unsupported(f"`{operator}`")
            return comparison
        case PrefixExpression(right=right):
            return tree.Not(_test(right))
        case FilterQuery():
            return _query(node)
    raise _Unsupported(f"`{node}` as a condition")


def _operand(node: "BaseExpression") -> tree.Operand:
    from jsonpath.filter import FilterQuery

    return _query(node) if isinstance(node, FilterQuery) else tree.Constant(_value(node))


def _query(node: "FilterQuery") -> tree.Query:
    from jsonpath.filter import RelativeFilterQuery, RootFilterQuery

    match node:
        case RelativeFilterQuery(path=path):
            return tree.Query(_path(path), of_document=False)
        case RootFilterQuery(path=path) if not path.pseudo_root:
            return tree.Query(_path(path), of_document=True)
    raise _Unsupported(f"`{node}`")


def _value(node: "BaseExpression") -> Any:
    from jsonpath.filter import FilterExpressionLiteral, ListLiteral, Nil

    match node:
        case Nil():
            return None
        case FilterExpressionLiteral(value=value):
            if isinstance(value, bool | str | float) or (isinstance(value, int) and abs(value) < 2**53):
                return value
        case ListLiteral(items=items):
            values = [_value(item) for item in items]
            if values and all(isinstance(value, str) for value in values):
                return values
            if all(is_number(value) for value in values):
                if len(values) > 1:
                    return values
                # Dolma reads `[1]` as the element 1 of the value that is tested, so that it matches nothing.
                raise _Unsupported(f"`{node}`, a list of one number,")
    raise _Unsupported(f"`{node}`")
