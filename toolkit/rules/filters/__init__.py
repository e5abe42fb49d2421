"""Dolma's filter languages, JSONPath and jq, as in Dolma 1.2.

    $.attributes[?(@.exp__tox__toxic && @.exp__tox__toxic[0] && @.exp__tox__toxic[0][2] >= 0.5)]
    (.attributes.exp__pii__EMAIL_ADDRESS // []) | length > 2

jq is run by its library. JSONPath is parsed by its library, but evaluated here, because Dolma's is an older dialect.

    text --jsonpath.parse--> path --evaluation.finder--> function of a document
                                  --translation.expression--> expression of rules, where both surely mean the same

Here is what differs by language, and jq; the modules below know JSONPath.
"""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from toolkit.distribution import missing_extra
from toolkit.errors import ConfigError, DataError

if TYPE_CHECKING:
    from toolkit.rules.filters.translation import KeyInfo

Syntax = Literal["jsonpath", "jq"]


def matcher(
    text: str, syntax: Syntax, *, strict: bool = False, exclude: bool = False
) -> Callable[[dict[str, Any]], bool]:
    """Return a function for matches of a filter.

    A JSONPath matches if it finds anything: a null or an empty list also. Of the values that a jq filter yields all
    must be true to include a document, and one to exclude it; 0, "", [] and {} count as false there.

    Args:
        text: Filter.
        syntax: Language.
        strict: True to take 1 and 1.0 for different numbers in JSONPath, as Dolma does.
        exclude: True if it says which documents go, not which stay.

    Returns:
        A function of a document with its attributes under ``attributes``. It raises DataError where jq fails.

    Raises:
        ConfigError: if it is not of the language, or means something that is not supported.
        MissingExtra: if the language's library is not installed.
    """
    find = _finder(text, syntax, strict=strict)
    if syntax == "jsonpath":
        return _matches(find)
    enough = any if exclude else all
    return lambda document: bool(values := find(document)) and enough(values)


def selection(text: str, syntax: Syntax) -> Callable[[dict[str, Any]], Any]:
    """Return a function for the selection of a selector of spans.

    Args:
        text: Selector.
        syntax: Language.

    Returns:
        A function of a document: the value that is found, None if there is none, a list of them if there are several.

    Raises:
        ConfigError: if it is not of the language, or means something that is not supported.
        MissingExtra: if the language's library is not installed.
    """
    find = _finder(text, syntax, strict=False)

    def select(document: dict[str, Any]) -> Any:
        values = find(document)
        return values if len(values) > 1 else values[0] if values else None

    return select


def _finder(text: str, syntax: Syntax, *, strict: bool) -> Callable[[Any], list[Any]]:
    from toolkit.rules.filters import tree
    from toolkit.rules.filters.jsonpath import parse

    return jq_finder(text) if syntax == "jq" else tree.finder(parse(text), strict=strict)


def translate(text: str, syntax: Syntax, keys: "Mapping[str, KeyInfo]") -> str | None:
    """Return the equivalent expression of rules for a filter.

    The documents must have attributes of the types of ``keys``, and at least one set must have been joined to them,
    even if it has no key. Numbers are compared as numbers, as `matcher` does with ``strict=False``.

    Args:
        text: Filter.
        syntax: Language. Filters in jq are not translated.
        keys: Attributes, by their keys.

    Returns:
        The expression, or None where it cannot be told for sure: without any keys, of keys that are not known or no
        identifiers, of values of any type, of anything but attributes, of whether a list of spans is missing or empty.

    Raises:
        ConfigError: if it is not of the language, or means something that is not supported.
        MissingExtra: if the language's library is not installed.
    """
    from toolkit.rules.filters import translation
    from toolkit.rules.filters.jsonpath import parse

    if syntax == "jq":
        jq_finder(text)  # is checked
        return None
    path = parse(text)
    return translation.expression(path, keys) if keys else None


def doubts(text: str, keys: "Mapping[str, KeyInfo]") -> list[str | Callable[[dict[str, Any]], bool]]:
    """Return the doubtful cases of a JSONPath for Dolma. It takes 1 and 1.0 for different numbers.

    Args:
        text: Filter.
        keys: Attributes, by their keys, as for `translate`.

    Returns:
        Conditions, of which one holds at least for each document that the filter matches in one of both meanings only:
        expressions of rules, or functions of a document where there is no expression. None for most filters.
    """
    from toolkit.rules.filters import translation, tree
    from toolkit.rules.filters.jsonpath import parse

    results: list[str | Callable[[dict[str, Any]], bool]] = []
    for path in tree.deciding(parse(text)):
        own = translation.expression(path, keys) if keys else None
        results.append(_matches(tree.finder(path, strict=False)) if own is None else own)
    return results


def _matches(find: Callable[[Any], list[Any]]) -> Callable[[dict[str, Any]], bool]:
    return lambda document: bool(find(document))


_SELECTED = {
    "jsonpath": re.compile(r"\$@?(?:\.attributes|\['attributes'\])(?:\.(\w+)|\['([^'\\]+)'\])", re.ASCII),
    "jq": re.compile(r'\.attributes\??(?:\.(\w+)|\.?\["([^"\\]+)"\])\??', re.ASCII),
}


def selected_key(text: str, syntax: Syntax) -> str | None:
    """Return the key of a wholly selected attribute; else None."""
    match = _SELECTED[syntax].fullmatch(text.strip())
    return match and (match[1] or match[2])


def named_keys(text: str, syntax: Syntax) -> set[str]:
    """Return the keys of a filter, without guarded keys of jq. They are guarded by a `?` or a default."""
    from toolkit.rules.filters import tree
    from toolkit.rules.filters.jsonpath import parse

    return tree.of_jq(text) if syntax == "jq" else tree.of_path(parse(text))


def all_keys(text: str, syntax: Syntax) -> set[str]:
    """Return all keys of attributes in a filter or selector."""
    return named_keys(text, syntax) | (guarded_keys(text) if syntax == "jq" else set())


def guarded_keys(text: str) -> set[str]:
    """Return the keys of attributes in a jq filter with a `?`."""
    from toolkit.rules.filters.tree import guarded_in_jq

    return guarded_in_jq(text)


_STRING_OR_ALTERNATIVE = re.compile(r'"(?:\\.|[^"\\])*"|\?//')


def jq_finder(text: str) -> Callable[[Any], list[Any]]:
    """Return a function for all values of a filter.

    Args:
        text: Filter.

    Returns:
        A function of a document. It raises DataError where the filter fails.

    Raises:
        ConfigError: if it is no jq.
        MissingExtra: if jq is not installed.
    """
    try:
        import jq
    except ImportError:
        raise missing_extra("dolma", "jq filters", "jq") from None
    # `.a?//0` is `.a? // 0` in Dolma; jq has an operator `?//`, of destructuring, which Dolma has not.
    program = _STRING_OR_ALTERNATIVE.sub(lambda match: "? //" if match[0] == "?//" else match[0], text)
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
