"""Checksum files, in all the spellings that releases of OSCAR had.

``<hex><two spaces><name>`` and ``<hex> *<name>`` (sha256sum), ``<hex> <name>`` (ungoliant), ``<name><TAB><hex>``
(2019), SHA-256 or SHA-384.
"""

import hashlib
import re

from toolkit.storage.reading import stored_digest

_FORMS = (
    re.compile(r"(?P<hex>[0-9a-fA-F]{64,96})[ \t][ *]?(?P<name>\S.*)"),
    re.compile(r"(?P<name>\S.*?)[ \t]+(?P<hex>[0-9a-fA-F]{64,96})"),
)


def parsed(line: str) -> tuple[str, str] | None:
    """Return the digest (hex, lower case) and the file's name that a line has; None if it is no such line."""
    for form in _FORMS:
        if (match := form.fullmatch(line.rstrip("\r"))) and len(match["hex"]) in (64, 96):
            return match["hex"].lower(), match["name"]
    return None


def algorithm(digest: str) -> str:
    """Return the name that hashlib has for the algorithm of a digest (hex)."""
    return "sha384" if len(digest) == 96 else "sha256"


def stored(path: str, digest: str) -> str:
    """Return the digest (hex) of the bytes of a file as they are stored, by the algorithm of another digest."""
    return stored_digest(path, hashlib.new(algorithm(digest)))
