"""Lines, code points, bytes and words of UTF-8 in compiled code."""

from typing import Any

import numba

from toolkit.text.kernels.intrinsics import inline


@inline
def _is_ascii_space(byte: Any) -> Any:
    """Return 1 for a byte of ASCII white space."""
    return numba.int64((numba.uint8(byte - 28) <= 4) | (numba.uint8(byte - 9) <= 4))


_STRETCH = 128
"""Bytes that are looked at in one go, at most 255: so many are counted in a byte."""


@inline
def _counted(utf8: Any, at: Any, size: Any, spaces: Any) -> Any:
    """Count line feeds, continuation bytes and words of a stretch.

    A word counts if it ends before the stretch or in it.

    Loops without branches, with sums of a byte, become instructions on many bytes at once. `spaces` has, from 3 on, how
    many bytes the white space has that ends at each byte, 0 where none does; before, that of the three bytes before.
    """
    feeds, inside, words = numba.uint8(0), numba.uint8(0), numba.uint8(0)
    for i in range(size):
        first, second, byte = utf8[at + i - 2], utf8[at + i - 1], utf8[at + i]
        one = numba.uint8(_is_ascii_space(byte))
        two = numba.uint8((second == -62) & ((byte == -123) | (byte == -96)))  # U+0085, U+00A0
        last = (byte <= -118) | (byte == -88) | (byte == -87) | (byte == -81)
        general = ((second == -128) & last) | ((second == -127) & (byte == -97))  # U+2000 to U+205F
        ogham_or_wide = ((first == -31) & (second == -102)) | ((first == -29) & (second == -128))  # U+1680, U+3000
        three = numba.uint8(((first == -30) & general) | (ogham_or_wide & (byte == -128)))
        spaces[3 + i] = numba.uint8(one | (two << 1) | three | (three << 1))
        feeds = numba.uint8(feeds + numba.uint8(byte == 10))
        inside = numba.uint8(inside + numba.uint8(byte < -64))
    for i in range(size):  # a word ends where white space is that has none before it
        space = spaces[3 + i]
        one, two, three = (space == 1) & (spaces[2 + i] == 0), (space == 2) & (spaces[1 + i] == 0), space == 3
        words = numba.uint8(words + numba.uint8(one | two | (three & (spaces[i] == 0))))
    return numba.int64(feeds), numba.int64(inside), numba.int64(words)


def measure(utf8: Any, bounds: Any, texts: Any, joined: Any, spaces: Any, counts: Any) -> None:
    """Fill rows of `counts` with lines, code points, bytes and words.

    Args:
        utf8: int8, texts with a line feed behind each; two bytes before the first.
        bounds: int64 (texts + 1), where each begins, and the end of all.
        texts: Number of texts.
        joined: 1 if line feeds stand between lines, not behind each.
        spaces: uint8 (3 + `_STRETCH`), room to work in.
        counts: int64 (texts, 5), the last column is left alone.
    """
    for text in range(texts):
        at, end = bounds[text], bounds[text + 1]  # with the line feed behind it, where its last word ends
        size = end - 1 - at
        feeds, inside, words = numba.int64(0), numba.int64(0), numba.int64(0)
        for j in range(3):
            spaces[j] = numba.uint8(1)  # no word is before it
        while at < end:
            length = min(numba.int64(_STRETCH), end - at)
            more_feeds, more_inside, more_words = _counted(utf8, at, length, spaces)
            feeds, inside, words, at = feeds + more_feeds, inside + more_inside, words + more_words, at + length
            for j in range(3):
                spaces[j] = spaces[length + j]
        lines = feeds
        if size == 0 or (not joined and utf8[end - 2] == 10):
            lines -= 1
        row = text * 5
        counts[row], counts[row + 1], counts[row + 2], counts[row + 3] = lines, size - inside, size, words
