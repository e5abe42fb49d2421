"""Words in compiled code: where they are, what they are made of, and a hash of each. Used by `toolkit.text.words`."""

from typing import Any

import numba

from toolkit.text import unicode_table as unicode, words as word_flags
from toolkit.text.kernels.intrinsics import inline
from toolkit.text.unicode_table import Characters
from toolkit.text.words import Words

decoded, number_of = inline(unicode.decoded), inline(unicode.number_of)


@inline
def _is_ignored(kind: Any) -> Any:
    return (kind == unicode.EXTEND) | (kind == unicode.FORMAT) | (kind == unicode.ZWJ)


@inline
def _is_letter(kind: Any) -> Any:
    return (kind == unicode.ALETTER) | (kind == unicode.HEBREW)


@inline
def _next_kind(utf8: Any, at: Any, end: Any, table: Characters) -> Any:
    """Return the next Word_Break class after ignored ones (WB4); -1 at the end."""
    kind = numba.int64(-1)
    while at < end:
        point, at = decoded(utf8, at)
        result = number_of(table, point) & unicode.BREAKS
        if not _is_ignored(result):
            kind = result
            break
    return kind


@inline
def _behind_letters(utf8: Any, at: Any) -> Any:
    """Return the end of a run of ASCII letters.

    Most bytes of many texts are such, and need no table.
    """
    while numba.uint8((utf8[at] | 32) - 97) < 26:
        at += 1
    return at


@inline
def _joins(before: Any, kind: Any) -> Any:
    """Return True if two classes are not parted.

    The rules are WB5, WB8 to WB10, and WB13 to WB13b.
    """
    before_word = _is_letter(before) | (before == unicode.NUMERIC)
    word = _is_letter(kind) | (kind == unicode.NUMERIC)
    return (
        (before_word & word)
        | ((before == unicode.KATAKANA) & (kind == unicode.KATAKANA))
        | (
            (before_word | (before == unicode.KATAKANA) | (before == unicode.EXTEND_NUM_LET))
            & (kind == unicode.EXTEND_NUM_LET)
        )
        | ((before == unicode.EXTEND_NUM_LET) & (word | (kind == unicode.KATAKANA)))
    )


def unicode_words(utf8: Any, end: Any, only_words: Any, table: Characters, starts: Any, ends: Any, counts: Any) -> None:
    """Find the segments between word boundaries (UAX #29), without white space.

    Args:
        utf8: int8.
        end: bytes to look at.
        only_words: 1 to leave out segments without a letter or a number.
        table: Table of the code points.
        starts: int64, with room for as many as there are bytes; what is found.
        ends: int64, with the same room.
        counts: int64 (1), how many.
    """
    n = at = numba.int64(0)
    while at < end:
        point, behind = decoded(utf8, at)
        number = number_of(table, point)
        if number & unicode.SPACE:
            at = behind
            continue
        start, at = at, behind
        before = number & unicode.BREAKS
        bits = number
        flags = numba.int64(before == unicode.REGIONAL)  # an odd number of regional indicators so far
        joined_by = before == unicode.ZWJ
        while at < end:
            point, behind = decoded(utf8, at)
            number = number_of(table, point)
            if number & unicode.SPACE:
                break
            kind = number & unicode.BREAKS
            if kind == before and kind in (unicode.ALETTER, unicode.NUMERIC):  # of `_joins`, what is met most
                joined_by = False
                bits |= number
                at = _behind_letters(utf8, behind) if kind == unicode.ALETTER else behind
                continue
            if _is_ignored(kind):
                joined_by = kind == unicode.ZWJ
                bits |= number
                at = behind
                continue
            if (joined_by and number & unicode.PICTURE) or _joins(before, kind):  # WB3c
                before = kind
            elif (
                _is_letter(before)
                and kind in (unicode.MID_LETTER, unicode.MID_NUM_LET, unicode.SINGLE_QUOTE)
                and _is_letter(_next_kind(utf8, behind, end, table))
            ):  # WB6, WB7: what follows joins as if the letter stood before it
                pass
            elif (
                before == unicode.NUMERIC
                and kind in (unicode.MID_NUM, unicode.MID_NUM_LET, unicode.SINGLE_QUOTE)
                and _next_kind(utf8, behind, end, table) == unicode.NUMERIC
            ):  # WB11, WB12
                pass
            elif (
                before == unicode.HEBREW
                and kind == unicode.DOUBLE_QUOTE
                and _next_kind(utf8, behind, end, table) == unicode.HEBREW
            ):  # WB7b, WB7c
                pass
            elif (before == unicode.HEBREW and kind == unicode.SINGLE_QUOTE) or (
                before == unicode.REGIONAL and kind == unicode.REGIONAL and flags == 1
            ):
                before = kind  # WB7a; WB15, WB16
                flags = numba.int64(0)
            else:
                break
            joined_by = False
            bits |= number
            at = behind
        if bits & unicode.ALNUM or not only_words:
            starts[n] = start
            ends[n] = at
            n += 1
    counts[0] = n


def runs(utf8: Any, end: Any, apart: Any, table: Characters, starts: Any, ends: Any, counts: Any) -> None:
    r"""Find runs without white space, as ``str.split`` has them.

    The arguments are those of `unicode_words`.

    With ``apart`` 1 a run is parted where ``\w`` begins or ends, as ``\w+|[^\w\s]+`` does.
    """
    n = at = numba.int64(0)
    inside, before = False, False
    while at < end:
        point, behind = decoded(utf8, at)
        number = number_of(table, point)
        if number & unicode.SPACE:
            if inside:
                ends[n] = at
                n += 1
            inside = False
        else:
            word = (number & (unicode.ALNUM | unicode.UNDERSCORE)) != 0
            if inside and apart and word != before:
                ends[n] = at
                n += 1
                inside = False
            if not inside:
                starts[n] = at
            inside, before = True, word
            if word:
                behind = _behind_letters(utf8, behind)
        at = behind
    if inside:
        ends[n] = end
        n += 1
    counts[0] = n


def describe(words: Words, n: Any, table: Characters, described: Words, n_known: Any) -> None:
    """Describe each word: code points, kinds and hashes.

    Words that `described` has too are copied.

    Args:
        words: Words in order.
        n: Number of words.
        table: Table of the code points.
        described: words of the same text, split otherwise and described.
        n_known: Number of described words.
    """
    utf8 = words.lines.utf8
    other = numba.int64(0)
    for i in range(n):
        at, end = words.starts[i], words.ends[i]
        while other < n_known and described.starts[other] < at:
            other += 1
        if other < n_known and described.starts[other] == at and described.ends[other] == end:
            words.chars[i], words.kinds[i] = described.chars[other], described.kinds[other]
            words.hashes[i], words.folded[i] = described.hashes[other], described.folded[other]
            continue
        count = numba.int64(0)
        some, every, untitled, before = numba.int64(0), numba.int64(-1), numba.int64(0), numba.int64(0)
        hash_ = fold = numba.uint64(word_flags.SEED)
        while at < end:  # without branches: they would depend on each letter, and be foreseen by no processor
            point, at = decoded(utf8, at)
            number = number_of(table, point)
            count += 1
            some |= number
            every &= number
            untitled |= number & ~((number << 1) ^ before)  # `CASED`; a bit on, where `CAPITAL` comes to be
            before = number
            hash_ = (hash_ ^ numba.uint64(point)) * numba.uint64(word_flags.PRIME)
            fold = (fold ^ numba.uint64(point + (number >> unicode.FOLD))) * numba.uint64(word_flags.PRIME)
        bits = numba.int64(0)
        if some & unicode.ALPHA:
            bits |= word_flags.HAS_ALPHA
        if some & unicode.ALNUM:
            bits |= word_flags.HAS_ALNUM
        if every & unicode.ALNUM:
            bits |= word_flags.ALL_ALNUM
        if every & unicode.PUNCTUATION:
            bits |= word_flags.ALL_PUNCTUATION
        if some & unicode.LATIN:
            bits |= word_flags.HAS_ASCII_LETTER
        if some & unicode.UPPER and not some & (unicode.LOWER | unicode.TITLE):
            bits |= word_flags.IS_UPPER
        if some & unicode.LOWER and not some & unicode.CAPITAL:
            bits |= word_flags.IS_LOWER
        if some & unicode.CASED and not untitled & unicode.CASED:
            bits |= word_flags.IS_TITLE
        words.chars[i] = count
        words.kinds[i] = bits
        words.hashes[i] = hash_ ^ (hash_ >> numba.uint64(32))
        words.folded[i] = fold ^ (fold >> numba.uint64(32))
