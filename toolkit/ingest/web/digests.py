"""Digests that WARC records carry, checked against their blocks.

Source: WARC 1.0/1.1 (ISO 28500), ``WARC-Block-Digest`` and ``WARC-Payload-Digest``. Common Crawl writes SHA-1 in
base32; others write hexadecimal digits, lower-case base32, or other algorithms.
"""

import base64
import binascii
import functools
import hashlib
import re

from toolkit.ingest.reader import Input
from toolkit.ingest.web.plain_records import Record
from toolkit.storage.reading import HEAD

_DIGEST = re.compile(rb'"warc-(block|payload)-digest":"(md5|sha1|sha256|sha512):([A-Za-z0-9=]+)"', re.IGNORECASE)


def digest_fault(record: Record) -> str | None:
    """Return what is wrong with a record whose block is not that of its digest; None if nothing can be said.

    The digest of the payload counts only in a record without one of the block, and only where programs agree on what
    the payload is: the body of an HTTP message that is neither chunked nor truncated.

    Args:
        record: Record with its block.
    """
    block = record.block
    if block is None:
        return None
    for kind, algorithm, digest in sorted(_DIGEST.findall(bytes(record.headers))):
        hasher = functools.partial(hashlib.new, algorithm.decode().lower(), usedforsecurity=False)
        expected = _decoded(digest.decode(), hasher().digest_size)
        texts = [block]
        if kind.lower() == b"payload":
            head, _, body = block.partition(b"\r\n\r\n")
            if b"chunked" in head.lower() or b'"warc-truncated":' in bytes(record.headers):
                return None
            texts.append(body)
        if expected is None or any(hasher(text).digest() == expected for text in texts):
            return None
        name = f"WARC-{kind.decode().title()}-Digest"
        return f"expected a block of {name} {algorithm.decode()}:{digest.decode()}, got one of other bytes"
    return None


def is_sound(record: Record, number: int, source: Input) -> bool:
    """Return whether a record has the bytes of its digest; another one is an error, or kept aside."""
    fault = digest_fault(record)
    if fault is not None:
        block = record.block or b""
        size, offset = len(block), record.offset
        source.bad("digest", fault, block[:HEAD], number, record.id, size=size, offset=offset)
    return fault is None


def _decoded(text: str, size: int) -> bytes | None:
    """Return the bytes of a digest of a size, in hexadecimal digits or base32; None if it is in neither form."""
    try:
        found = bytes.fromhex(text) if len(text) == 2 * size else base64.b32decode(text + "=" * (-len(text) % 8), True)
    except (ValueError, binascii.Error):
        return None
    return found if len(found) == size else None
