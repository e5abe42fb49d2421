"""Canonical decomposition (NFD) in linear time; lower case of batches."""

import functools
import itertools
import re
import unicodedata
from typing import Any, NamedTuple

from toolkit.lazy_numpy import np
from toolkit.text.kernels.compiling import compiled
from toolkit.text.kernels.signatures import Array, Bytes, Int64s
from toolkit.text.line_table import LineTable
from toolkit.text.unicode_table import decoded

SHORT = 32  # marks in a row that `unicodedata` may sort
PLANES = 0x20000  # above it are no marks that combine
FORMS = 0x2FA20
CHANGED = ((0x80, 0x3400), (0xA000, 0xD800), (0xF900, PLANES), (0x2F800, FORMS))
"""Code points that may have another lower case, a decomposition or a combining class; other ideographs have none."""
GROWTH = 3  # of UTF-8 by decomposition
DELETED, IN_CONTEXT, BY_MARKS = -1, 0xFF, 2


def decomposed(text: str) -> str:
    r"""Return ``unicodedata.normalize("NFD", text)``, in linear time.

    Python sorts the marks behind a letter by insertion: 200,000 take a minute.

    >>> ascii(decomposed("\u1ec7"))
    "'e\\u0323\\u0302'"
    """
    if text.isascii():
        return text
    return unicodedata.normalize("NFD", _many_marks().sub(_in_order, text))


def lower_decomposed(lines: LineTable, deleted: bytes = b"") -> list[bytes]:
    """Return texts in lower case and decomposed (NFD).

    Both are as this Python has them.

    Args:
        lines: Lines of the texts; they keep their ends.
        deleted: ASCII characters to delete first.
    """
    utf8, texts = lines.utf8, len(lines.bounds) - 1
    ascii_ = np.frombuffer(bytes(range(128)).lower(), dtype=np.int8).copy()
    ascii_[[*deleted]] = DELETED
    out = np.empty(GROWTH * len(utf8), dtype=np.int8)
    bounds, ways = np.zeros((2, texts + 1), dtype=np.int64)
    _lower_decomposed(lines, texts, _Forms(ascii_, *_forms()), out, bounds, ways)
    results = out[: bounds[-1]].tobytes()
    pieces = [results[a:b] for a, b in itertools.pairwise(bounds.tolist())]
    for i in np.flatnonzero(ways).tolist():
        begin, end = lines.starts[lines.bounds[i]], lines.ends[lines.bounds[i + 1] - 1]
        data = utf8[begin : end + 1 + (utf8[end] == ord("\r"))].tobytes()
        text = data.translate(None, deleted).decode().lower()
        pieces[i] = (decomposed(text) if ways[i] & BY_MARKS else unicodedata.normalize("NFD", text)).encode()
    return pieces


class _Forms(NamedTuple):
    """Lower case and decomposition of code points.

    Attributes:
        ascii: int8 of each ASCII character: its form, or `DELETED`.
        entries: int64 of each code point: offset of its form in `utf8`, its size (0 where it stays), and 8 bits each
            for the combining classes of its last and its first mark.
        utf8: int8, forms.
    """

    ascii: Bytes
    entries: Int64s
    utf8: Bytes


@functools.cache
def _forms() -> tuple[Array, Array]:
    points = np.concatenate([np.arange(*some, dtype=np.uint32) for some in CHANGED])
    every = np.stack([points, np.full_like(points, ord("\n"))], axis=1).tobytes().decode("utf-32-le")
    forms = unicodedata.normalize("NFD", every.lower())
    chars, utf8 = np.frombuffer(forms.encode("utf-32-le"), np.uint32), np.frombuffer(forms.encode(), np.int8)
    ends, ends_utf8 = (np.flatnonzero(array == ord("\n")) for array in (chars, utf8))
    starts, starts_utf8 = (np.append(0, array[:-1] + 1) for array in (ends, ends_utf8))
    classes, entries = np.zeros((2, FORMS), dtype=np.int64)
    classes[points] = np.fromiter(map(unicodedata.combining, every[::2]), np.int64)
    changed = (ends - starts > 1) | (chars[starts] != points)
    entries[points] = changed * (starts_utf8 << 24 | (ends_utf8 - starts_utf8) << 16)
    entries[points] |= classes[chars[ends - 1]] << 8 | classes[chars[starts]]
    entries[ord("\u03a3")] = IN_CONTEXT  # which is another letter at the end of a word
    return entries, utf8


@compiled(LineTable, "int64", _Forms, "int8* int64* int64*")
def _lower_decomposed(lines: LineTable, texts: Any, forms: _Forms, out: Any, bounds: Any, ways: Any) -> None:
    """Write the texts and their ends.

    Those that need Python get a number in `ways`.
    """
    utf8, n = lines.utf8, 0
    for text in range(texts):
        before = run = way = 0
        for line in range(lines.bounds[text], lines.bounds[text + 1]):
            at, end = lines.starts[line], lines.ends[line]
            end += 1 + (utf8[end] == 13)
            while at < end:
                if utf8[at] >= 0:
                    begin = n
                    while at < end and utf8[at] >= 0:
                        char = forms.ascii[utf8[at]]
                        out[n] = char
                        n += char != DELETED
                        at += 1
                    if n > begin:
                        before = run = 0
                    continue
                point, after = decoded(utf8, at)
                entry = forms.entries[point] if point < FORMS else 0
                first, last, size = entry & 255, (entry >> 8) & 255, (entry >> 16) & 255
                way |= (first == IN_CONTEXT) | ((first != 0) & (first < before))
                run = run + 1 if first else last != 0
                way |= BY_MARKS * (run >= SHORT)
                before = last
                if size:
                    for i in range(size):
                        out[n + i] = forms.utf8[(entry >> 24) + i]
                    n += size
                    at = after
                else:
                    while at < after:
                        out[n] = utf8[at]
                        n += 1
                        at += 1
        ways[text], bounds[text + 1] = way * (way & 1), n


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
