"""The keys that documents are grouped by: label, source, crawl or host, or the value of an expression."""

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from toolkit.data.addresses import host_of, url_of
from toolkit.data.documents import Document
from toolkit.data.schema import Type
from toolkit.errors import ConfigError
from toolkit.ingest import folders
from toolkit.mix.joined_sets import null_safe
from toolkit.rules import LABEL, RuleSet
from toolkit.rules.checker import Name
from toolkit.rules.expression_tree import ExpressionError
from toolkit.rules.expressions import check
from toolkit.rules.kinds.set import Set

LABELS = (LABEL, "language")
NAMED = (*LABELS, "source", "crawl", "host", "reason")
"""What can be grouped by without an expression; an attribute that is called so stands in parentheses."""

NOTHING = "null"
"""The key of documents that have no value."""

_SCALARS = ("bool", "int", "float", "str", "any", "null")
_WITH_HOST = re.compile(
    r"""(?xi) (?: [a-z][a-z0-9+.-]* :// (?: [^/?\#@]* @ )? [^\s/?\#@]+  # what a scheme stands before
              | [\w-]+ (?: \.[\w-]+ )+ \.? (?: : \d+ )? )              # example.org/page, without one
        (?: [/?\#] | $ )"""
)


class Keys:
    """Gives the keys of documents: JSON texts, one for each way to group.

    Args:
        by: `NAMED` ones and expressions.
        names: what expressions may use.
        arguments: the variables that the names' code refers to, the document last.
        label: expression of the label, None if there is none.
        path: of the file, in which the name of a crawl may stand.

    Attributes:
        used: the attribute keys that are needed.
        used_fields: the fields of their values.

    Raises:
        ConfigError: for what cannot be grouped by.
    """

    def __init__(
        self, by: Sequence[str], names: Mapping[str, Name], arguments: tuple[str, ...], label: str | None, path: str
    ) -> None:
        expressions = [_expression(text, names, label) for text in by if text not in NAMED]
        rules = [Set(name=text, field=f"by{i}", expression=text, place="--by") for i, text in enumerate(expressions)]
        self._rules = RuleSet(rules, names, arguments, label)
        self.used = self._rules.needs.keys
        self.used_fields = self._rules.needs.fields
        self._functions: list[Callable[..., str]] = []
        number = 0
        for text in by:
            if text in LABELS:
                self._functions.append(self.label)
            elif text in NAMED:
                self._functions.append(functools.partial(_OF_DOCUMENT[text], path))
            else:
                self._functions.append(functools.partial(self._value, number))
                number += 1

    def of(self, values: Sequence[Any], document: Document) -> list[str]:
        """Return the keys of a document.

        Raises:
            DataError: if an expression cannot use its values.
        """
        return [function(*values, document) for function in self._functions]

    def label(self, *values: Any) -> str:
        """Return the key of the label."""
        return _json(self._rules.label(*values)) if self._rules.label else NOTHING

    def _value(self, number: int, *values: Any) -> str:
        found: msgspec.Raw = self._rules.set_fields([number], *values)[f"by{number}"]
        return bytes(found).decode()


def _expression(text: str, names: Mapping[str, Name], label: str | None) -> str:
    """Return the expression, made null where a part of a path is; its value can be a group."""
    known = {LABEL: Name(Type("nullable", Type("str")), "None"), **names} if label else names
    path = re.fullmatch(r"[\w.]+", text.strip())
    text = (null_safe(text.strip(), known) if path else None) or text
    try:
        type_ = check(text, known).type
    except ExpressionError as error:
        raise ConfigError(f"--by {text}: {error}; or one of {', '.join(NAMED)}") from None
    inside = type_.not_null
    if inside.kind not in _SCALARS:
        hint = f" (a field of it: {', '.join(name for name, _ in inside.fields)})" if inside.fields else ""
        raise ConfigError(f"--by {text}: expected a number, a text, true or false, got a value of type {inside}{hint}")
    return text


@functools.lru_cache(1 << 16)
def _json(text: str | None) -> str:
    return msgspec.json.encode(text).decode()


def _source(path: str, *values: Any) -> str:
    return _json(values[-1].source or None)


def _crawl(path: str, *values: Any) -> str:
    """Return the crawl that the metadata name, else the path of the file, else the source."""
    document = values[-1]
    metadata = document.metadata
    for found in (*(metadata.get(field) for field in folders.FIELDS), path, document.source):
        if isinstance(found, str) and (match := folders.NAMES.search(found)):
            return _json(match[0])
    return NOTHING


def _host(path: str, *values: Any) -> str:
    """Return the host of the URL that blocklists look at, too; null for what is no URL, or has no host."""
    url = url_of({"metadata": values[-1].metadata})
    return _json(host_of(url) or None) if url and _WITH_HOST.match(url) else NOTHING


def _reason(path: str, *values: Any) -> str:
    """Return the rule for which a mix has dropped the document and kept it aside; null of all others."""
    rejected = values[-1].rejected
    return _json(rejected.rule if rejected else None)


_OF_DOCUMENT: dict[str, Callable[..., str]] = {"source": _source, "crawl": _crawl, "host": _host, "reason": _reason}


def of_document(name: str, path: str, document: Document) -> str:
    """Return the key of a document, in a file, for one of `NAMED` but the label's."""
    return _OF_DOCUMENT[name](path, document)
