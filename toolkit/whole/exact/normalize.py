"""Normalisations: what is the same is made equal before it is compared. Line ends stay where they are."""

import itertools
import re
import sys
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

import numpy as np

from toolkit.errors import DataError

Normalisation = Literal["none", "dolma", "ccnet", "unicode", "url"]


def ccnet(text: str) -> str:
    """Return a text in lower case, digits as 0, without punctuation, accents and controls.

    As Wenzek et al. 2020 (CCNet), section 3.1, describe it: "lower-case all characters, replace numbers by a
    placeholder (i.e. 0) and remove all Unicode punctuation and accent marks". Punctuation are the categories P, accents
    the category Mn of the decomposed text. Their code (``normalize_for_dedup``) removes controls and 33 signs beyond
    ASCII; it leaves ASCII punctuation and accents. Five of these signs are symbols, which are removed here, too, so
    that what counts as equal there does here.
    """
    text = text.lower()
    if text.isascii():
        return text.translate(_ascii())
    decomposed = unicodedata.normalize("NFD", text)
    codes = _table()[np.frombuffer(decomposed.encode("utf-32-le", "surrogatepass"), dtype="<u4")]
    kept: bytes = codes[codes != GONE].tobytes()
    return kept.decode("utf-32-le", "surrogatepass")


_SYMBOLS = "´∶～━►"

GONE = 0
"""What the table has for what goes away; U+0000 itself does."""


@cache
def _ascii() -> dict[int, str | None]:
    return {code: chr(to) if to else None for code, to in enumerate(_table()[:128].tolist())}


@cache
def _table() -> "np.ndarray[Any, np.dtype[np.uint32]]":
    """Return what each code point becomes."""
    found = np.arange(sys.maxunicode + 1, dtype="<u4")
    for code in itertools.chain(range(0x20000), range(0xE0000, 0xE0200)):  # in between are ideographs and nothing
        category = unicodedata.category(chr(code))
        if category == "Nd":
            found[code] = ord("0")
        elif (category[0] == "P" or category in ("Mn", "Cc") or chr(code) in _SYMBOLS) and code != ord("\n"):
            found[code] = GONE
    return found


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
