"""What a Croissant file says of the whole dataset: is all there, and in the form that the specification asks for?

Source: Croissant 1.0, "Dataset-level information"; schema.org.
"""

import datetime as dt
import re
from collections.abc import Callable, Iterator
from typing import Any

from toolkit.inspect.describe.about import listed

REQUIRED = ("name", "description", "license", "url", "creator", "datePublished", "distribution")
"""Properties of a dataset, by the specification."""

_DATE = re.compile(r"\d{4}(-\d\d(-\d\d([T ].+)?)?)?")
_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)([-+][0-9A-Za-z.+-]+)?")
_LANGUAGE = re.compile(r"([A-Za-z]{2,8}|[xi])(-[A-Za-z0-9]{1,8})*")
_AGENTS = ("Person", "Organization")


def kind_of(node: dict[str, Any]) -> str:
    """The type of a node without its prefix."""
    return re.split(r"[:/]", str(node.get("@type")))[-1]


def is_ours(document: dict[str, Any]) -> bool:
    """Return whether `toolkit croissant` wrote a document, so that all is known that it says."""
    files = [node for node in listed(document.get("distribution")) if isinstance(node, dict)]
    return any(node.get("@id") == "documents-files" and kind_of(node) == "FileSet" for node in files)


def faults(document: dict[str, Any]) -> Iterator[str]:
    """What is missing, or is not of its form."""
    yield from (f"expected {name}, which Croissant requires, got none" for name in REQUIRED if not document.get(name))
    for name, (is_right, wanted) in _FORMS.items():
        for value in listed(document.get(name)):
            if not is_right(value):
                yield f"expected {wanted} as {name}, got {value!r:.80}"
    for name in ("name", "description", "url", "datePublished", "version", "isLiveDataset"):
        if isinstance(document.get(name), list):
            yield f"expected one value as {name}, got a list"


def is_url(value: Any) -> bool:
    """Whether a value is an absolute URL."""
    return isinstance(value, str) and re.fullmatch(r"[a-z][a-z0-9+.-]*://[^\s/]+\S*", value) is not None


def is_date(value: Any) -> bool:
    """Whether a value is a date of the calendar, or one with a time, as ISO 8601 writes them."""
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        return False
    try:
        dt.datetime.fromisoformat(value + "-01-01"[len(value) - 4 :] if len(value) < len("2026-01-31") else value)
    except ValueError:
        return False
    return True


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_work(value: Any) -> bool:
    """A page, or an object that says what it is."""
    return is_url(value) or (isinstance(value, dict) and any(map(value.get, ("url", "@id", "name"))))


def _is_agent(value: Any) -> bool:
    return isinstance(value, dict) and kind_of(value) in _AGENTS and _is_text(value.get("name"))


def _is_version(value: Any) -> bool:
    return not isinstance(value, bool) and _VERSION.fullmatch(str(value)) is not None


def _is_language(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, str) and _LANGUAGE.fullmatch(value) is not None)


def _is_word(value: Any) -> bool:
    return isinstance(value, dict) or _is_text(value)


_FORMS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "name": (_is_text, "a text"),
    "description": (_is_text, "a text"),
    "url": (is_url, "a URL"),
    "license": (_is_work, "a URL (such as https://spdx.org/licenses/CC0-1.0.html)"),
    "sdLicense": (_is_work, "a URL (such as https://spdx.org/licenses/CC0-1.0.html)"),
    "sameAs": (is_url, "a URL"),
    "creator": (_is_agent, "a sc:Person or sc:Organization with a name"),
    "publisher": (_is_agent, "a sc:Person or sc:Organization with a name"),
    "datePublished": (is_date, "a date (2026-01-31)"),
    "dateCreated": (is_date, "a date (2026-01-31)"),
    "dateModified": (is_date, "a date (2026-01-31)"),
    "version": (_is_version, "MAJOR.MINOR.PATCH"),
    "isLiveDataset": (lambda value: isinstance(value, bool), "true or false"),
    "inLanguage": (_is_language, "a BCP 47 code"),
    "keywords": (_is_word, "a text"),
    "citeAs": (_is_text, "a text"),
}
