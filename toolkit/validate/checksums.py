"""Parse checksum files in all spellings of OSCAR's releases.

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
    """Return the digest (lower case) and file name of a line; None otherwise."""
    for form in _FORMS:
        if (match := form.fullmatch(line.rstrip("\r"))) and len(match["hex"]) in (64, 96):
            return match["hex"].lower(), match["name"]
    return None


def algorithm(digest: str) -> str:
    """Return hashlib's name for the algorithm of a digest (hex)."""
    return "sha384" if len(digest) == 96 else "sha256"


def stored(path: str, digest: str) -> str:
    """Return the digest (hex) of stored bytes, by another digest's algorithm."""
    return stored_digest(path, hashlib.new(algorithm(digest)))
