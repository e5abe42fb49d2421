"""Addresses on the web: where a document has its own, and their hosts."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import SplitResult, urlsplit

from toolkit.data.documents import Document, value_at

URL_FIELDS = ("metadata.warc_headers.warc-target-uri", "metadata.url")
"""Where documents of WET input, and of Dolma's own tools, have their URL."""

LONGEST_HOST = 253

_SCHEME = re.compile(r"(?i)[a-z][a-z0-9+.-]*://")


def url_of(fields: Mapping[str, Any], path: str = "") -> str | None:
    """Return the URL of a document, without angle brackets; None if it has none.

    Args:
        fields: Fields of its row; of the metadata only `URL_FIELDS` if the path is empty.
        path: dotted; empty for the first of `URL_FIELDS`.
    """
    for url_field in (path,) if path else URL_FIELDS:
        if isinstance(value := value_at(fields, url_field), str):
            return bare_url(value)
    return None


def url_of_document(document: Document) -> str | None:
    """Return the URL of a document, None if it has none.

    Metadata come first, then the field `url` of the row.
    """
    url = url_of({"metadata": document.metadata})
    return url if url is not None else url_of({"url": document.field("url")}, "url")


def bare_url(url: str) -> str:
    """Return a URL without the angle brackets of WARC 1.0."""
    return url[1:-1] if url.startswith("<") and url.endswith(">") else url


def before_path(url: str) -> str:
    """Return a URL up to its path; pages of one host share it."""
    url = bare_url(url)
    match = _BEFORE_PATH.match(url)
    return match[0] if match else url


def has_scheme(text: str) -> bool:
    """Return True if a text begins with a scheme, such as ``https://``."""
    return _SCHEME.match(text) is not None


def split_url(text: str) -> SplitResult:
    """Return the parts of a URL with or without scheme.

    Raises:
        ValueError: if it is none.
    """
    return urlsplit(text if has_scheme(text) else f"//{text}")


def host_of(text: str) -> str:
    """Return the host of a URL or host, in lower case. Other scripts are as the domain name system has them.

    A text without a host has the host ``""``.
    """
    return _host_of(before_path(text))


_BEFORE_PATH = re.compile(r"(?i)[a-z][a-z0-9+.-]*://[^/?#\\\x00-\x20]*(?=[/?#])")


@lru_cache(1 << 14)
def _host_of(text: str) -> str:
    try:
        host = (split_url(text).hostname or "").rstrip(".")
        return host if host.isascii() else host[: LONGEST_HOST + 1].encode("idna").decode()
    except ValueError:
        return ""
