"""The media type and the character encoding of a web page.

The character encoding of a web page, found as browsers do, and its text.

Order: byte order mark, what the caller knows (HTTP's header), the page's own ``<meta>`` or XML declaration, then what
the bytes look like: UTF-8 where they are, else what uchardet finds, else windows-1252. Labels mean what they mean in
browsers: ``iso-8859-1`` is windows-1252, ``gb2312`` is GB 18030.

One thing browsers do not do: an encoding in which most of what is not ASCII is invalid is not believed.

Source: WHATWG Encoding and HTML standards.

The media type of an answer, by its header or by its first bytes.

Source: WHATWG MIME Sniffing standard, as far as it tells HTML, plain text and binary data apart.
"""

import codecs
import html
import re

import msgspec

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16le"), (codecs.BOM_UTF16_BE, "utf-16be"))
_HEAD = 16_384
"""Bytes in which a declaration is looked for: browsers look at 1024, and start again when one comes later."""
_HALF, _NEARLY_ALL = 0.5, 0.1
"""Up to which share of invalid ones among characters that are not ASCII an encoding is believed: declared, guessed."""
_DECLARED = re.compile(
    rb"""<meta[\s/][^>]*?charset\s*=\s*["']?\s*([^\s"'/>;]+)|\A\s*<\?xml[^>]*?encoding\s*=\s*["']([^\s"']+)""", re.I
)
_COMMENT = re.compile(rb"<!--.*?-->", re.S)

_CODECS = {
    "big5": ("big5", "big5hkscs"),
    "cp866": ("ibm866", "cp866"),
    "euc_jp": ("euc-jp", "euc_jp"),
    "euc_kr": ("euc-kr", "cp949"),
    "gb18030": ("gb18030", "gb18030"),
    "gbk": ("gbk", "gb18030"),
    "iso2022_jp": ("iso-2022-jp", "iso2022_jp"),
    "iso8859-11": ("windows-874", "cp874"),
    "mac-roman": ("macintosh", "mac-roman"),
    "shift_jis": ("shift_jis", "cp932"),
    "utf-16-le": ("utf-16le", "utf-16-le"),
    "utf-16-be": ("utf-16be", "utf-16-be"),
}
"""By the names that resiliparse gives: the standard's name, and the codec of Python that decodes as it says."""
_CODEC_OF = dict((*_CODECS.values(), ("x-mac-cyrillic", "mac-cyrillic")))
_LABELS = {"x-mac-cyrillic": "x-mac-cyrillic", "x-mac-ukrainian": "x-mac-cyrillic", "x-user-defined": "windows-1252"}


class DecodedPage(msgspec.Struct):
    """The text of a page, and how it was decoded.

    Attributes:
        text: Text with U+FFFD for bytes that are invalid.
        charset: the standard's name of the encoding, lower-case.
        guessed: True if it is neither declared nor UTF-8, but found by what the bytes look like.
        disbelieved: True if another encoding was declared.
        replaced: True if there are invalid bytes.
    """

    text: str
    charset: str
    guessed: bool
    disbelieved: bool
    replaced: bool


def decode_page(data: bytes, label: str, *, declares: bool = True) -> DecodedPage:
    """Return the text of a page.

    Args:
        data: its bytes.
        label: Label of the encoding by HTTP, empty if there is none.
        declares: True if the bytes may declare it: HTML and XML, not plain text.
    """
    for mark, charset in _BOMS:
        if data.startswith(mark):
            text, replaced = _decode(data[len(mark) :], charset)
            return DecodedPage(text, charset, guessed=False, disbelieved=False, replaced=replaced)
    disbelieved = False
    first: DecodedPage | None = None
    for charset in dict.fromkeys(filter(None, (charset_of(label), _declared_charset(data) if declares else None))):
        text, replaced = _decode(data, charset)
        result = DecodedPage(text, charset, guessed=False, disbelieved=disbelieved, replaced=replaced)
        if not replaced or _believable(text):
            return result
        first, disbelieved = first or result, True
    charset = _detect_charset(data)
    text, replaced = _decode(data, charset)
    if first and replaced and not _believable(text):
        return first
    return DecodedPage(text, charset, guessed=charset != "utf-8", disbelieved=disbelieved, replaced=replaced)


def charset_of(label: str) -> str | None:
    """Return the standard's name of the encoding for a label; None if it means none."""
    from resiliparse.parse.encoding import map_encoding_to_html5

    label = label.strip().lower()
    if label in _LABELS:
        return _LABELS[label]
    result = map_encoding_to_html5(label, fallback_utf8=False) if label.isascii() else None
    return _name(result) if result else None


def _name(codec: str) -> str:
    if codec in _CODECS:
        return _CODECS[codec][0]
    for python, standard in (("cp125", "windows-125"), ("iso8859-", "iso-8859-")):
        if codec.startswith(python):
            return standard + codec[len(python) :]
    return codec


def _declared_charset(data: bytes) -> str | None:
    head = data[:_HEAD]
    if b"<!--" in head:
        head = _COMMENT.sub(b"", head)
    for match in _DECLARED.finditer(head):
        charset = charset_of((match[1] or match[2]).decode("latin-1"))
        if charset is not None:
            return "utf-8" if charset.startswith("utf-16") else charset  # the declaration was read as ASCII
    return None


def _detect_charset(data: bytes) -> str:
    from resiliparse.parse.encoding import detect_encoding

    if _believable(data.decode(errors="replace"), _NEARLY_ALL):
        return "utf-8"
    result = detect_encoding(data, html5_compatible=False)
    charset = charset_of(result) if result else None
    return charset if charset and charset != "utf-8" else "windows-1252"


def _decode(data: bytes, charset: str) -> tuple[str, bool]:
    codec = _CODEC_OF.get(charset, charset)
    try:
        return data.decode(codec), False
    except UnicodeDecodeError:
        pass
    if not charset.startswith("windows-"):
        return data.decode(codec, errors="replace"), True
    text = data.decode(codec, errors=_controls())
    return text, "\ufffd" in text


def _controls() -> str:
    """Register an error handler for bytes 80 to 9F of windows-125x; an error handler."""
    name = "toolkit-controls"

    def handle(error: UnicodeError) -> tuple[str, int]:
        assert isinstance(error, UnicodeDecodeError)
        bad = error.object[error.start : error.end]
        return "".join(chr(byte) if 0x80 <= byte <= 0x9F else "\ufffd" for byte in bad), error.end

    codecs.register_error(name, handle)
    return name


def _believable(text: str, share: float = _HALF) -> bool:
    """Return True if the share of U+FFFD among non-ASCII characters is low."""
    invalid = text.count("\ufffd")
    return not invalid or invalid <= share * (len(text) - len(text.encode("ascii", "ignore")))


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
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
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


def sniff_type(body: bytes) -> str:
    """Return the type of bytes without a declared type: HTML, plain text, or binary data."""
    head = body[:_SEEN]
    for mark in _MARKS:
        if head.startswith(mark):
            head = head[len(mark) :].replace(b"\0", b"")  # as ASCII, where it is UTF-16
            return "text/html" if _HTML.match(head.lstrip()) else "text/plain"
    if _HTML.match(head.lstrip()):
        return "text/html"
    return "application/octet-stream" if _BINARY.search(head) else "text/plain"


def is_binary(body: bytes, charset: str = "") -> bool:
    """Return True if bytes of a text type are binary.

    They begin as a well-known format does, or have more bytes that no text has than a damaged text would: random bytes
    have five times as many.
    """
    if _MAGIC.match(body):
        return True
    if body.startswith(_MARKS) or charset.lower().startswith(_WIDE):
        return False
    head = body[:_SEEN]
    return len(_BINARY.findall(head)) > max(2, len(head) // 50)


_RIGHTS = ("license", "licence", "copyright", "rights", "dc.rights", "dc.rights.license", "dcterms.rights")
STATED = frozenset((*_RIGHTS, "dcterms.license", "robots", "x-robots-tag", "tdm-reservation", "tdm-policy"))
"""Names of ``meta`` elements that say how a page may be used; others count if their content has ``noai``."""

LICENSE_LINK = "link rel=license"
"""The name that ``stated`` gives to links with ``rel="license"``."""

_ELEMENT = re.compile(r"<(meta|link|a)\b([^<>]{0,4000})>", re.IGNORECASE)
_ATTRIBUTE = re.compile(r"""([a-zA-Z:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")
_MOST_STATED, _LONGEST_STATED = 20, 1000


def stated(text: str) -> dict[str, list[str]]:
    """Return ``meta`` elements and links about the use of a page.

    Comments do not count. Each name has at most 20 values, of at most 1,000 code points.
    """
    results: dict[str, list[str]] = {}
    for kind, inside in _ELEMENT.findall(_without_comments(text)):
        lowered = inside.lower()
        if kind.lower() != "meta" and "license" not in lowered:
            continue
        attributes = {
            match[1].lower(): html.unescape(match[2] or match[3] or match[4] or "")
            for match in _ATTRIBUTE.finditer(inside)
        }
        if kind.lower() == "meta":
            name = next((attributes[key] for key in ("name", "property", "http-equiv") if attributes.get(key)), "")
            name = name.strip().lower()
            value = attributes.get("content", "").strip()
            is_stated = name in STATED or "noai" in value.lower() or "noimageai" in value.lower()
        else:
            name, value = LICENSE_LINK, attributes.get("href", "").strip()
            is_stated = "license" in attributes.get("rel", "").lower().split()
        values = results.setdefault(name[:100], []) if name and value and is_stated else None
        if values is not None and len(values) < _MOST_STATED:
            values.append(value[:_LONGEST_STATED])
    return results


def _without_comments(text: str) -> str:
    first, *parts = text.split("<!--")
    return first + "".join(part.partition("-->")[2] for part in parts)
