"""Canonical decomposition (NFD) in linear time."""

import functools
import re
import unicodedata

SHORT = 32  # marks in a row that `unicodedata` may sort
PLANES = 0x20000  # above it are no marks that combine


def decomposed(text: str) -> str:
    r"""Return ``unicodedata.normalize("NFD", text)``, in linear time.

    Python sorts the marks behind a letter by insertion: 200,000 take a minute.

    >>> ascii(decomposed("\u1ec7"))
    "'e\\u0323\\u0302'"
    """
    if text.isascii():
        return text
    return unicodedata.normalize("NFD", _many_marks().sub(_in_order, text))


@functools.cache
def _many_marks() -> re.Pattern[str]:
    every = (c for c in map(chr, range(PLANES)) if unicodedata.category(c).startswith("M"))
    marks = [c for c in every if all(map(unicodedata.combining, unicodedata.normalize("NFD", c)))]
    near = "".join(c for c in marks if c < "\U00010000")  # `re` looks such a set up, others it goes through
    far = "".join(c for c in marks if c >= "\U00010000")
    return re.compile(rf"(?:[{near}]|(?=[\U00010000-\U0010ffff])[{far}]){{{SHORT},}}")


def _in_order(run: re.Match[str]) -> str:
    parts = "".join(unicodedata.normalize("NFD", mark) for mark in run.group())
    return "".join(sorted(parts, key=unicodedata.combining))
