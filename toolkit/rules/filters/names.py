"""The attributes that a filter asks for, by their names.

Those of a JSONPath are read from its steps. A jq filter is searched for the ways in which attributes are commonly asked
for, as its library gives no tree: `.attributes.k`, `.attributes["k"]`, `.["attributes"].k`, `.attributes | .k`.
"""

import re
from collections.abc import Iterator

from toolkit.rules.filters import tree

_ATTRIBUTES = "attributes"


def of_path(path: tree.Path) -> set[str]:
    """Return the keys of attributes that a JSONPath asks for, in its filters too."""
    return set(_asked(path, in_attributes=False))


def _asked(path: tree.Path, *, in_attributes: bool, at_document: bool = True) -> Iterator[str]:
    """Give the keys asked for by a path that begins at the document, at its attributes, or elsewhere."""
    for step in path:
        if isinstance(step, tree.Filter):  # applied to an object itself, and to the elements of a list
            yield from _asked_in(step.test, in_attributes=in_attributes, at_document=at_document)
            continue
        names = _names(step)
        if in_attributes:
            yield from names
        in_attributes, at_document = at_document and _ATTRIBUTES in names, False


def _names(step: tree.Step) -> list[str]:
    match step:
        case tree.Key(name=name):
            return [name]
        case tree.Several(steps=steps):
            return [name for each in steps for name in _names(each)]
    return []


def _asked_in(test: tree.Test, *, in_attributes: bool, at_document: bool) -> Iterator[str]:
    match test:
        case tree.And(left=left, right=right) | tree.Or(left=left, right=right):
            yield from _asked_in(left, in_attributes=in_attributes, at_document=at_document)
            yield from _asked_in(right, in_attributes=in_attributes, at_document=at_document)
        case tree.Not(test=inner):
            yield from _asked_in(inner, in_attributes=in_attributes, at_document=at_document)
        case tree.Comparison(left=left, right=right):
            for side in (left, right):
                if isinstance(side, tree.Query):
                    yield from _asked_in(side, in_attributes=in_attributes, at_document=at_document)
        case tree.Query(path=path, of_document=True):
            yield from _asked(path, in_attributes=False)
        case tree.Query(path=path):
            yield from _asked(path, in_attributes=in_attributes, at_document=at_document)


_TEXT = re.compile(r'(\[\s*|\.)?"((?:\\.|[^"\\])*)"(\s*\])?|#[^\n]*')
_JQ_ATTRIBUTES = r'\.(?:attributes|"attributes"|\[\s*"attributes"\s*\])\??'
_JQ_KEY = r'\.?(?:(?<=\.)(\w+)|(?<=\.)"([^"\\]+)"|\[\s*"([^"\\]+)"\s*\])'
_JQ_NAMED = re.compile(
    rf"(?<![\w\])]){_JQ_ATTRIBUTES}\s*(?:\|\s*\(?\s*)?{_JQ_KEY}(?!\w)(?:[\w.]|\[-?\d*\])*\s*(\?|//)?", re.ASCII
)


def of_jq(text: str) -> set[str]:
    """Return the keys of attributes that a jq filter asks for without a `?` or a default."""
    return {key for key, guard in _named(text) if not guard}


def guarded_in_jq(text: str) -> set[str]:
    """Return the keys of attributes that a jq filter asks for with a `?`."""
    return {key for key, guard in _named(text) if guard == "?"}


def _named(text: str) -> list[tuple[str, str]]:
    """Return keys with the guard behind them: a `?`, a `//`, or none."""
    return [("".join(keys), guard) for *keys, guard in _JQ_NAMED.findall(_without_texts(text))]


def _without_texts(text: str) -> str:
    """Return a jq filter without comments, and with empty texts where these are no keys."""

    def kept(found: re.Match[str]) -> str:
        if found[2] is None:
            return ""
        is_key = found[1] == "." or (found[1] and found[3])
        return found[0] if is_key else f'{found[1] or ""}""{found[3] or ""}'

    return _TEXT.sub(kept, text)
