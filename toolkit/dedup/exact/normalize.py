"""Normalisations: what is the same is made equal before it is compared. Line ends stay where they are."""

import re
import sys
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from toolkit.errors import DataError

Normalisation = Literal["none", "dolma", "ccnet", "unicode", "url"]


def ccnet(text: str) -> str:
    """Return a text in lower case, digits as 0, without punctuation, accents and controls.

    As Wenzek et al. 2020 (CCNet), section 3.1, describe it: "lower-case all characters, replace numbers by a
    placeholder (i.e. 0) and remove all Unicode punctuation and accent marks". Punctuation are the categories P, accents
    the category Mn of the decomposed text. (Their code leaves ASCII punctuation and accents.)
    """
    text = text.lower()
    if text.isascii():
        return text.translate(_ascii())
    digits, away = _unlike_ascii()
    return away.sub("", digits.sub("0", unicodedata.normalize("NFD", text)))


@cache
def _ascii() -> dict[int, str | None]:
    found: dict[int, str | None] = dict.fromkeys(range(ord("0"), ord("9") + 1), "0")
    return found | dict.fromkeys(code for code in range(128) if _goes(chr(code)))


@cache
def _unlike_ascii() -> tuple[re.Pattern[str], re.Pattern[str]]:
    away = "".join(re.escape(chr(code)) for code in range(sys.maxunicode + 1) if _goes(chr(code)))
    return re.compile(r"\d"), re.compile(f"[{away}]+")


def _goes(character: str) -> bool:
    category = unicodedata.category(character)
    return (category[0] == "P" or category in ("Mn", "Cc")) and character != "\n"


def unicode(text: str) -> str:
    """Return a text in Unicode's form for caseless matching (NFKC, case folded), white space as one space each."""
    text = text.casefold() if text.isascii() else _folded(text)
    return _SPACES.sub(" ", text)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


_SPACES = re.compile(r"[^\S\n]+")

_PORTS = {"http": 80, "https": 443}


def url(text: str) -> str:
    """Return an address without its scheme, a leading ``www.``, the usual port, a fragment and a last slash.

    Scheme and host in lower case, the rest as it is.

    Raises:
        DataError: if it is no address.
    """
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError as error:
        raise DataError(f"expected an address, got {text!r}: {error}") from None
    host = (parts.hostname or "").removeprefix("www.")
    if port is not None and port != _PORTS.get(parts.scheme):
        host += f":{port}"
    return urlunsplit(("", "", f"{host}{parts.path}".rstrip("/"), parts.query, ""))


def as_it_is(text: str) -> str:
    """Return the text."""
    return text


FUNCTIONS: dict[Normalisation, Callable[[str], str]] = {
    "none": as_it_is,
    "dolma": as_it_is,
    "ccnet": ccnet,
    "unicode": unicode,
    "url": url,
}


def whole(name: Normalisation, text: str) -> str:
    """Return a whole text as it is compared; nothing is left of one that is not."""
    found = FUNCTIONS[name](text)
    if name == "unicode":
        return " ".join(found.split())
    if name == "dolma":  # its `skip_empty`
        return found if found.strip() else ""
    return found.strip() if name == "ccnet" else found


def lines(name: Normalisation, text: str) -> list[str]:
    r"""Return the lines of a text as they are compared; nothing is left of one that is not.

    Lines are those of `toolkit.data.documents.split_lines`.
    """
    if not text:
        return []
    found = FUNCTIONS[name](text).split("\n")
    if text.endswith("\n"):
        found.pop()
    if name in ("ccnet", "unicode"):
        return [line.strip() for line in found]
    found = [line.removesuffix("\r") for line in found]
    return [line if line.strip() else "" for line in found] if name == "dolma" else found
