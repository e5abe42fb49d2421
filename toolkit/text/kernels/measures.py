"""Shapes of lines and words, in compiled code. Used by `toolkit.text.measures` alone."""

from typing import Any

import numba

from toolkit.text import measures
from toolkit.text.kernels.words import decoded, number_of
from toolkit.text.line_table import LineTable
from toolkit.text.unicode_table import ALPHA, NUMBER, SPACE, UPPER, Characters
from toolkit.text.words import ALL_PUNCTUATION, HAS_ALNUM, HAS_ALPHA, IS_LOWER, IS_TITLE, IS_UPPER, PRIME, SEED, Words

(CHARS, WORDS, WORD_CHARS, LETTERS, PUNCTUATION, ALL_LOWER, ALL_UPPER, TITLED, MIXED, DISTINCT, SAID_AGAIN) = range(
    len(measures.WordMeasures._fields) - 1
)


REPEATED, ELLIPSES, URLS, EMAILS = range(4)
"""Rows of what is counted in each line, as `LineMeasures` has them."""


def within_lines(lines: LineTable, n: Any, roles: measures.Roles, table: Characters, hashes: Any, counts: Any) -> None:
    """Hash each line, and count repetitions, ellipses, URLs and addresses."""
    utf8, of_bytes = lines.utf8, roles.of_bytes
    for line in range(n):
        start, stop = lines.starts[line], lines.ends[line]
        at, before, run = start, -1, 0
        in_url, host = False, -1
        hash_ = numba.uint64(SEED)
        while at <= stop:
            point, behind = numba.int64(-1), at + 1  # the end of a line ends a run
            if at < stop:
                point, behind = decoded(utf8, at)
                hash_ = (hash_ ^ numba.uint64(point)) * numba.uint64(PRIME)
            if point == before:
                run += 1
            else:
                if run >= 3:
                    counts[REPEATED * n + line] += not number_of(table, before) & SPACE
                    if before == 46:
                        counts[ELLIPSES * n + line] += run // 3
                before, run = point, 1
            if at == host and point >= 0:
                in_url = number_of(table, point) & (ALPHA | NUMBER) != 0 or point == 91
                counts[URLS * n + line] += in_url
            if point <= 64:
                if 9 <= point <= 13 or 28 <= point <= 32:
                    in_url = False
                elif in_url:
                    pass
                elif point == 46:
                    if (
                        at >= start + 3
                        and utf8[at - 1] | 32 == 119
                        and utf8[at - 2] | 32 == 119
                        and utf8[at - 3] | 32 == 119
                        and not of_bytes[utf8[at - 4] & 255] & (measures.LETTER | measures.DIGIT)
                    ):
                        host = at + 1  # behind www.
                elif point == 58:
                    if (
                        at > start
                        and utf8[at + 1] == 47
                        and utf8[at + 2] == 47
                        and of_bytes[utf8[at - 1] & 255] & measures.LETTER
                    ):
                        host = at + 3  # behind ://
                elif point == 64 and at > start and of_bytes[utf8[at - 1] & 255] & measures.LOCAL:
                    i, inside, dotted, result = at + 1, False, False, False  # in a label; behind a label and a dot
                    while i < stop and not result:
                        if of_bytes[utf8[i] & 255] & (measures.LETTER | measures.DIGIT):
                            inside, result = True, dotted
                        elif utf8[i] == 46 and inside:
                            inside, dotted = False, True
                        elif utf8[i] != 45 or not inside:
                            break
                        i += 1
                    counts[EMAILS * n + line] += result
            elif point == 0x2026:
                counts[ELLIPSES * n + line] += 1
            elif in_url and point > 127 and number_of(table, point) & SPACE:
                in_url = False
            at = behind
        hashes[line] = hash_ ^ (hash_ >> numba.uint64(32))


def line_edges(segments: Words, n: Any, firsts: Any, roles: measures.Roles, edges: Any) -> None:
    """Find the beginning and the end of each line.

    They are in its first and its last segment.
    """
    utf8, line_ends, starts, ends = segments.lines.utf8, segments.lines.ends, segments.starts, segments.ends
    of_bytes, of_points = roles
    for line in range(n):
        first, last = firsts[line], firsts[line + 1] - 1
        if last < first:
            continue
        at, stop = starts[first], line_ends[line]
        point, behind = decoded(utf8, at)
        role = of_points[point] if point < 0x20000 else 0
        if role & measures.BULLET or (
            role & measures.DASH and first < last and starts[first + 1] > behind == ends[first]
        ):
            edges[line] |= measures.ITEM
        tail = ends[last] - 1
        while -128 <= utf8[tail] < -64:
            tail -= 1
        point, _ = decoded(utf8, tail)
        if point < 0x20000 and of_points[point] & measures.MARK:
            edges[line] |= measures.MARKED
        at += utf8[at] == 40 or utf8[at] == 91  # ( or [
        i, common = at, measures.DIGIT | measures.LETTER | measures.SMALL_ROMAN | measures.ROMAN
        while i < at + 7 and i < stop and of_bytes[utf8[i] & 255] & (measures.LETTER | measures.DIGIT):
            common &= of_bytes[utf8[i] & 255]
            i += 1
        size = i - at
        if size and i < stop and of_bytes[utf8[i] & 255] & measures.CLOSING:
            after = of_bytes[utf8[i + 1] & 255] if i + 1 < stop else 0
            following = first
            while following <= last and starts[following] <= i:
                following += 1
            space = ends[following - 1] == i + 1 and (following > last or starts[following] > i + 1)
            if (common & measures.DIGIT and size <= 3 and not after & measures.DIGIT) or (
                space
                and (
                    (common & measures.LETTER and size == 1)
                    or (common & (measures.SMALL_ROMAN | measures.ROMAN) and size <= 6)
                )
            ):
                edges[line] |= measures.NUMBERED


def count_words(
    segments: Words, texts: Any, table: Characters, logs: Any, words_of: measures.WordCounts, totals: Any, entropy: Any
) -> None:
    """Count segments and words by kind, and how often each word occurs."""
    lines, starts, ends, chars, kinds, hashes, folded, bounds = segments
    keys, stamps, counts, slots = words_of
    for text in range(texts):
        begin, end = bounds[text], bounds[text + 1]
        mask = 15
        while mask + 1 < 2 * (end - begin):
            mask = 2 * mask + 1
        distinct = words = run = 0
        for i in range(begin, end):
            kind = kinds[i]
            totals[CHARS * texts + text] += chars[i]
            if not kind & HAS_ALNUM:
                totals[PUNCTUATION * texts + text] += (kind & ALL_PUNCTUATION) != 0
                run = 0
                continue
            words += 1
            totals[WORD_CHARS * texts + text] += chars[i]
            totals[LETTERS * texts + text] += (kind & HAS_ALPHA) != 0
            if kind & IS_LOWER:
                totals[ALL_LOWER * texts + text] += 1
            elif kind & IS_UPPER:
                totals[ALL_UPPER * texts + text] += 1
            elif kind & IS_TITLE:
                totals[TITLED * texts + text] += 1
            elif kind & HAS_ALPHA:
                at, capital = starts[i], hashes[i] != folded[i]
                while at < ends[i] and not capital:  # some capitals fold to two characters, and are not folded here
                    point, at = decoded(lines.utf8, at)
                    capital = number_of(table, point) & UPPER != 0
                totals[MIXED * texts + text] += capital
            if run and hashes[i] == hashes[i - 1] and starts[i] > ends[i - 1]:
                run += 1
                totals[SAID_AGAIN * texts + text] += run == 3
            else:
                run = 1
            slot = numba.int64(folded[i] & numba.uint64(mask))
            while stamps[slot] == text + 1 and keys[slot] != folded[i]:
                slot = (slot + 1) & mask
            if stamps[slot] != text + 1:
                stamps[slot], keys[slot], counts[slot] = text + 1, folded[i], 0
                slots[distinct] = slot
                distinct += 1
            counts[slot] += 1
        totals[WORDS * texts + text], totals[DISTINCT * texts + text] = words, distinct
        if distinct > 1:
            total = 0.0
            for j in range(distinct):
                total += counts[slots[j]] * logs[counts[slots[j]]]
            entropy[text] = logs[words] - total / words
