"""The media type of an answer, by its header or by its first bytes.

Source: WHATWG MIME Sniffing standard, as far as it tells HTML, plain text and binary data apart.
"""

import re

_TYPE = re.compile(r"[\w.+!#$&^-]{1,60}/[\w.+!#$&^*-]{1,60}", re.A)
_CHARSET = re.compile(r"""[;,]\s*charset\s*=\s*["']?\s*([^\s"';,]+)""", re.I)
_HTML = re.compile(
    rb"<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|meta)[\s/>]|<!--|<\?xml",
    re.I,
)
_MAGIC = re.compile(
    rb"%PDF-|\x89PNG|GIF8[79]a|\xff\xd8\xff|PK\x03\x04|\x1f\x8b|Rar!\x1a|\xd0\xcf\x11\xe0|OggS|ID3[\x02-\x04]"
)
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")
_BOMS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_WIDE = ("utf-16", "utf-32", "ucs-2", "iso-10646-ucs", "unicode")
_SEEN = 1445
"""Bytes that the standard looks at."""


def parse_content_type(value: str) -> tuple[str, str]:
    """Media type (lower-case) and charset of a ``Content-Type``; empty where there is none or it is none.

    >>> parse_content_type('Text/HTML; Charset="UTF-8"')
    ('text/html', 'UTF-8')
    """
    kind = re.split("[;,]", value, maxsplit=1)[0].strip().lower()
    charset = _CHARSET.search(value)
    return kind if _TYPE.fullmatch(kind) else "", charset[1] if charset else ""


def sniffed(body: bytes) -> str:
    """Return the type of bytes that nobody has named: HTML, plain text, or binary data."""
    head = body[:_SEEN]
    for mark in _BOMS:
        if head.startswith(mark):
            head = head[len(mark) :].replace(b"\0", b"")  # as ASCII, where it is UTF-16
            return "text/html" if _HTML.match(head.lstrip()) else "text/plain"
    if _HTML.match(head.lstrip()):
        return "text/html"
    return "application/octet-stream" if _BINARY.search(head) else "text/plain"


def is_binary(body: bytes, charset: str = "") -> bool:
    """Return whether bytes that are called text are none.

    They begin as a well-known format does, or have more bytes that no text has than a damaged text would: random bytes
    have five times as many.
    """
    if _MAGIC.match(body):
        return True
    if body.startswith(_BOMS) or charset.lower().startswith(_WIDE):
        return False
    head = body[:_SEEN]
    return len(_BINARY.findall(head)) > max(2, len(head) // 50)
