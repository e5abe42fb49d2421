"""Lines as the fastText library is trained with: ``__label__good __label__short The text itself``."""

import re

from toolkit.errors import DataError

PREFIX = "__label__"
"""Where a label begins, unless a file has another."""

_SPACE = rb" \t\v\f\r\0"
"""Separators of words in the fastText library, beside line ends."""


def parted(line: bytes, prefix: str = PREFIX) -> tuple[list[str], str]:
    """Return the labels of a line, in order, and its text.

    As for the library, a word that begins with the prefix is a label wherever it stands.

    Raises:
        DataError: if there is no label, an empty one, or no text.
        UnicodeDecodeError: for a line that is not in UTF-8.
    """
    pattern = rb"(?<![^%b])%b([^%b]*)[%b]*" % (_SPACE, re.escape(prefix.encode()), _SPACE, _SPACE)
    labels = [label.decode() for label in re.findall(pattern, line)]
    text = re.sub(pattern, b"", line).strip(b" \t\v\f\r\0").decode()
    if not labels:
        raise DataError(f"expected a label, {prefix}NAME, got none; if labels begin otherwise, give their `prefix`")
    if "" in labels:
        raise DataError(f"expected a name directly after {prefix}, got none")
    if not text:
        raise DataError(f"expected a text after the label {labels[-1]!r}, got none")
    return labels, text
