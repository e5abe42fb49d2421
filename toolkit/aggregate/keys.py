"""Keys for grouping documents: label, source, crawl or host, or the value of an expression."""

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from toolkit.data.documents import Document
from toolkit.data.schema import Type
from toolkit.data.urls import before_path, host_of
from toolkit.errors import ConfigError, DataError
from toolkit.ingest import folders
from toolkit.mix.join import null_safe
from toolkit.rules.checker import Name
from toolkit.rules.expression_tree import ExpressionError
from toolkit.rules.expressions import check
from toolkit.rules.kinds.set import Set
from toolkit.rules.rule import LABEL
from toolkit.rules.ruleset import RuleSet
from toolkit.text.kernels.signatures import Array

LABELS = (LABEL, "language")
NAMED = (*LABELS, "source", "crawl", "host", "reason")
"""Keys to group by without an expression; an attribute of the same name stands in parentheses."""

NOTHING = "null"
"""The key of documents that have no value."""

_SCALARS = ("bool", "int", "float", "str", "any", "null")
_WITH_HOST = re.compile(
    r"""(?xi) (?: [a-z][a-z0-9+.-]* :// (?: [^/?\#@]* @ )? [^\s/?\#@]+  # what a scheme stands before
              | [\w-]+ (?: \.[\w-]+ )+ \.? (?: : \d+ )? )              # example.org/page, without one
        (?: [/?\#] | $ )"""
)


class CountedRows(NamedTuple):
    """Documents in a row, as they are counted.

    Attributes:
        number: Number of documents before them.
        arguments: Arguments of expressions for each document, the document last.
        sizes: the numbers of `toolkit.text.counting.COLUMNS`, int64 (documents, 5).
        named: keys that are known without the documents, by `NAMED`.
    """

    number: int
    arguments: Sequence[Sequence[Any]]
    sizes: Array
    named: Mapping[str, list[str]]


class Keys:
    """Gives the keys of documents: JSON texts, one for each way to group.

    Args:
        by: `NAMED` ones and expressions.
        names: Names for expressions.
        arguments: the variables that the names' code refers to, the document last.
        label: expression of the label, None if there is none.
        path: Path of the file, in which the name of a crawl may stand.

    Attributes:
        rules: the expressions as rules, which say what is needed for them.
        needs_documents: True if more than their sizes must be known of documents.

    Raises:
        ConfigError: for what cannot be grouped by.
    """

    def __init__(
        self, by: Sequence[str], names: Mapping[str, Name], arguments: tuple[str, ...], label: str | None, path: str
    ) -> None:
        self._by, self._path = by, path
        expressions = [_expression(text, names, label) for text in by if text not in NAMED]
        rules = [Set(name=text, field=f"by{i}", expression=text, place="--by") for i, text in enumerate(expressions)]
        self.rules = RuleSet(rules, names, arguments, label)
        self.needs_documents = self.rules.needs.documents or "rejected" in self.rules.needs.keys or "reason" in by

    def of(self, rows: CountedRows) -> Iterator[list[str]]:
        """Yield the keys of documents, for each way to group.

        Raises:
            DataError: if an expression cannot use the values of one; its line is that of the document.
        """
        number = 0
        for text in self._by:
            if text in LABELS:
                yield self.labels(rows)
            elif text == "reason":
                yield [
                    _json(argument[-1].rejected.rule if argument[-1].rejected else None) for argument in rows.arguments
                ]
            elif text in NAMED:
                yield (rows.named or of_documents(self._path, (argument[-1] for argument in rows.arguments)))[text]
            else:
                yield _of_each(functools.partial(self._value, number), rows)
                number += 1

    def labels(self, rows: CountedRows) -> list[str]:
        """Return the keys of the labels; errors as of `of`."""
        label = self.rules.label
        return _of_each(lambda *values: _json(label(*values)), rows) if label else [NOTHING] * len(rows.arguments)

    def _value(self, number: int, *values: Any) -> str:
        result: msgspec.Raw = self.rules.set_fields([number], *values)[f"by{number}"]
        return bytes(result).decode()


def _of_each(function: Callable[..., str], rows: CountedRows) -> list[str]:
    results: list[str] = []
    for values in rows.arguments:
        try:
            results.append(function(*values))
        except DataError as error:
            raise DataError(error.message, line=rows.number + len(results) + 1, id=values[-1].id or None) from None
    return results


def _expression(text: str, names: Mapping[str, Name], label: str | None) -> str:
    """Return the expression, null-safe if it is a path; its value can be a group."""
    named = {LABEL: Name(Type("nullable", Type("str")), "None"), **names} if label else names
    path = re.fullmatch(r"[\w.]+", text.strip())
    text = (null_safe(text.strip(), named) if path else None) or text
    try:
        type_ = check(text, named).type
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


class _Headers(msgspec.Struct, gc=False):
    url: Any = msgspec.field(default=None, name="warc-target-uri")


class _Metadata(msgspec.Struct, gc=False):
    """Fields to group documents by; nothing else of their metadata is decoded."""

    warc_headers: msgspec.Raw = msgspec.Raw(b"null")
    url: Any = None
    crawl: Any = None
    dump: Any = None


_METADATA = msgspec.json.Decoder(_Metadata | None)
_HEADERS = msgspec.json.Decoder(_Headers)


def of_documents(path: str, documents: Iterable[Document]) -> dict[str, list[str]]:
    """Return the source, crawl and host of each document.

    The crawl is that which the metadata name, else the path, else the source; the host that of the URL which blocklists
    look at, too, and null for what is no URL, or has no host.
    """
    results: dict[str, list[str]] = {"source": [], "crawl": [], "host": []}
    for document in documents:
        metadata, source = _METADATA.decode(document.raw_metadata) or _Metadata(), document.source
        headers = bytes(metadata.warc_headers)
        url = _HEADERS.decode(headers).url if headers[:1] == b"{" else None
        url = url if isinstance(url, str) else metadata.url
        names = (_crawl_in(item) for item in (metadata.crawl, metadata.dump, path, source) if isinstance(item, str))
        results["source"].append(_json(source or None))
        results["crawl"].append(next(filter(None, names), NOTHING))
        results["host"].append(_host_in(before_path(url)) if isinstance(url, str) and url else NOTHING)
    return results


@functools.lru_cache(1 << 10)
def _crawl_in(text: str) -> str:
    return _json(match[0]) if (match := folders.NAMES.search(text)) else ""


@functools.lru_cache(1 << 14)
def _host_in(url: str) -> str:
    return _json(host_of(url) or None) if _WITH_HOST.match(url) else NOTHING
