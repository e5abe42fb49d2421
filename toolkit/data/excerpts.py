"""External texts for a terminal: a piece of one, on a line, without what a terminal or a reader could be misled by."""

import json
import re
import shutil
import sys
import unicodedata
from functools import lru_cache
from typing import IO, Any, TextIO, cast

WIDTH = 100
"""Columns where the output goes to no terminal and ``COLUMNS`` does not say how many there are."""

_PLAIN = {"\n": "⏎", "\t": " ", "\u200c": "\u200c", "\u200d": "\u200d"}
"""Joiners (U+200C, U+200D) belong to the spelling of some languages, and do nothing else."""


def width() -> int:
    """Return how many columns the terminal has."""
    return shutil.get_terminal_size((WIDTH, 24)).columns


@lru_cache(4096)
def _escape(character: str) -> str:
    if character in _PLAIN:
        return _PLAIN[character]
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        return f"\\x{ord(character):02x}" if character < "\x80" else f"\\u{{{ord(character):x}}}"
    return character


def escaped(text: str) -> str:
    r"""Return a text on one line: line ends as ⏎; control characters, marks of direction and the like by their number.

    >>> escaped("a\nb\x1b[31m \u202eabc")
    'a⏎b\\x1b[31m \\u{202e}abc'
    """
    return text if text.isascii() and text.isprintable() else "".join(map(_escape, text))


IN_MARKDOWN = str.maketrans({item: "\\" + item for item in "\\|`*_[]"} | {"<": "&lt;", "&": "&amp;"})
"""Escapes for external texts in Markdown, against their marks and HTML."""

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters that spreadsheets take for a formula, and run (OWASP, "CSV Injection")."""


def unlike_formula(text: str) -> str:
    """Return a cell of CSV; one that begins as formulas do has an apostrophe before it."""
    return "'" + text if text.startswith(FORMULA) else text


_ORDINARY = re.compile(r"[^\n\t\x20-\x7e]")


def harmless(text: str) -> str:
    r"""Return a text for a terminal, with special characters by number. Its line ends stay.

    >>> harmless("a\tb\n\x1b[31mc\r\n")
    'a\tb\n\\x1b[31mc\\x0d\n'
    """
    return _ORDINARY.sub(lambda match: _escape(match[0]), text)


def harmless_json(text: str) -> str:
    r"""Return the same JSON with special characters as escapes.

    >>> harmless_json('["\x9b31m"]')
    '["\\u009b31m"]'
    """
    return _ORDINARY.sub(lambda match: match[0] if _escape(match[0]) == match[0] else json.dumps(match[0])[1:-1], text)


class Harmless:
    """A text stream for people; its texts become `harmless`.

    Progress bars begin what they write with a carriage return, or end it so; that is left to them.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        begin, end = text[:1] == "\r", len(text) > 1 and text[-1:] == "\r"
        inside = text[begin : len(text) - end]
        self._stream.write(("\r" if begin else "") + harmless(inside) + ("\r" if end else ""))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def make_harmless() -> None:
    """Make all texts on standard error `harmless`."""
    if sys.stderr is not None and not isinstance(sys.stderr, Harmless):
        sys.stderr = cast("TextIO", Harmless(sys.stderr))


def columns(text: str) -> int:
    """Return how many columns a text takes in a terminal: wide characters take two, marks upon others none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me") else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def head(text: str, room: int) -> str:
    """Return the beginning of a text on one line of this width. ``…`` marks a cut."""
    results, used = [], 0
    for character in text[: 4 * max(room, 1)]:
        piece = escaped(character)
        size = columns(piece)
        if used + size > room - 1:
            break
        results.append(piece)
        used += size
    else:
        if len(text) <= 4 * max(room, 1):
            return "".join(results)
    whole = escaped(text) if len(text) <= room else ""
    return whole if whole and columns(whole) <= room else "".join(results) + "…"


def around(text: str, start: int, end: int, room: int) -> str:
    """Return a piece of a text in ``[`` and ``]``, with context. It takes so many columns at most."""
    inside = head(text[start:end], max(room - 12, 8))
    room_before = max(room - columns(inside) - 4, 0) // 2
    before = escaped(text[max(0, start - room_before) : start])
    while columns(before) > room_before:
        before = before[1:]
    after = head(text[end : end + room_before + 1], room_before + 1) if room_before else ""
    return f"{'…' if start > room_before else ''}{before}[{inside}]{after}"
