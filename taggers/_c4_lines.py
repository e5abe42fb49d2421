"""C4's rules for lines, in compiled code. Used by `taggers.c4` alone."""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

from toolkit import text as measures
from toolkit.text import np

QUOTES = '"\u201c\u201d\u201e\xab\xbb\u300d\u300f\u301e\u301f\uff02\uff63'
CLOSERS = QUOTES + "')]}\u2018\u2019\u2039\u203a\u3009\u300b\u3011\u3015\u3017\u3019\u301b\uff07\uff09\uff3d\uff5d"
NOTES = np.frombuffer("edit]citation needed]".encode("utf-32-le"), dtype=np.uint32)
NOTE_BOUNDS = np.array([0, 5, 21])
POLICIES = ("terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies")
LONG, NO_MARK, LOREM, JAVASCRIPT, CURLY, POLICY = (1 << bit for bit in range(6))
TERMINAL, MARK, CLOSER, WHITE, LETTER, SMALL, BRACKET = (1 << bit for bit in range(7))
PHRASES = (("lorem ipsum", LOREM), ("javascript", JAVASCRIPT), *((policy, POLICY) for policy in POLICIES))


class LineFeatures(NamedTuple):
    """Of each line, in code points of all texts in a row: where it begins; where what counts of it begins and ends;
    bits of what it has in it; its sentences; its words in citations. And where all citations begin and end.
    """

    starts: measures.Int64s
    begins: measures.Int64s
    ends: measures.Int64s
    bits: measures.Int64s
    sentences: measures.Int64s
    cited: measures.Int64s
    citation_starts: measures.Int64s
    citation_ends: measures.Int64s


def look(texts: Sequence[str], lines: measures.LineTable, max_word_chars: int) -> LineFeatures:
    """Return the features of lines.

    `max_word_chars` limits the length of a word.
    """
    whole = "".join(text if text.endswith("\n") or not text else text + "\n" for text in texts) + "\n"
    points = np.frombuffer(whole.encode("utf-32-le"), dtype=np.uint32)
    n = len(lines.starts)
    starts = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(lines.chars + 1 + (lines.utf8[lines.ends] == ord("\r")), out=starts[1:])
    citations = np.zeros((2, whole.count("[") + 1), dtype=np.int64)
    result = LineFeatures(starts, *np.zeros((5, n), dtype=np.int64), *citations)
    _look_at(points, lines.chars, n, _roles(), max_word_chars, _Notes(NOTES, NOTE_BOUNDS), result)
    cited, cited_ends = citations[:, citations[1] > 0]
    return result._replace(bits=result.bits | _phrases(lines), citation_starts=cited, citation_ends=cited_ends)


def _phrases(lines: measures.LineTable) -> measures.Array:
    """Return bits for the phrases in each line."""
    lower, result = lines.utf8.tobytes().lower(), np.zeros(len(lines.ends), dtype=np.int64)
    for phrase, bit in PHRASES:
        encoded, hits, at = phrase.encode(), [], 0
        while (at := lower.find(encoded, at)) >= 0:
            hits.append(at)
            at += len(encoded)
        result[np.searchsorted(lines.ends, hits, side="right")] |= bit
    return result


@functools.cache
def _roles() -> measures.Array:
    """Return bits of each code point."""
    kinds = measures.characters().classes
    small = np.where(kinds & measures.LOWER, LETTER | SMALL, LETTER)
    roles = measures.of_all(
        np.where(kinds & (measures.ALPHA | measures.NUMBER), small, np.where(kinds & measures.SPACE, WHITE, 0)).astype(
            np.int8
        )
    )
    for some, role in ((measures.TERMINALS, TERMINAL | MARK), (QUOTES, MARK), (CLOSERS, CLOSER), ("[{", BRACKET)):
        roles[list(map(ord, some))] |= role
    return roles


class _Notes(NamedTuple):
    """Bracket contents other than digits: code points, the start of each, and the end of all."""

    points: measures.UInt32s
    bounds: measures.Int64s


@measures.compiled("uint32* int64* int64 int8* int64", _Notes, LineFeatures)
def _look_at(  # noqa: C901, PLR0912, PLR0915  # one loop over the characters, without calls
    text: Any, sizes: Any, n: Any, roles: Any, longest: Any, in_brackets: _Notes, features: LineFeatures
) -> None:
    """Fill `LineFeatures` of n lines, but for phrases."""
    notes, bounds = in_brackets
    starts, begins, ends, result, sentences, cited, citation_starts, citation_ends = features
    n_citations = 0
    for line in range(n):
        at, end = starts[line], starts[line] + sizes[line]
        begin = stop = at
        has = words = 0
        last, behind = -1, -1  # the role of the last character that counts, and where the next one is if it is close
        run = dots = 0  # characters since white space; full stops at the end
        begun, state, stopped = 0, 0, False  # sentences; 1: behind an end mark, 2: the next letter begins one
        while at < end:
            point = int(text[at])
            at += 1
            role = roles[point]
            if role & WHITE:
                run = 0
                if state == 1:
                    state = 2
                continue
            if role & BRACKET:
                if point == 123:  # {
                    has |= CURLY
                else:
                    close = at
                    while close < end and 48 <= text[close] <= 57:
                        close += 1
                    cites = 1 if close > at else 0
                    if close == end or text[close] != 93:
                        close = -1
                        for k in range(2):
                            j, size = 0, bounds[k + 1] - bounds[k]
                            while j < size and at + j < end and text[at + j] == notes[bounds[k] + j]:
                                j += 1
                            if j == size:
                                close, cites = at + size - 1, k + 1
                    if close >= 0:
                        citation_starts[n_citations], citation_ends[n_citations] = at - 1, close + 1
                        n_citations += 1
                        words += cites
                        if behind == at - 1:
                            behind = close + 1
                        at = close + 1
                        continue
            run += 1
            if run > longest:
                has |= LONG
            if role & LETTER:
                if begun == 0 or (state == 2 and not (stopped and role & SMALL)):
                    begun += 1
                state = 0
            elif role & TERMINAL:
                state, stopped = 1 if point < 128 else 2, point == 46
            elif state == 1 and not role & CLOSER:
                state = 0
            dots = (dots + 1 if behind == at - 1 else 1) if point == 46 else 0
            if last < 0:
                begin = at - 1
            stop = behind = at
            last = role
        if last < 0 or not last & MARK or dots >= 3:
            has |= NO_MARK
        begins[line], ends[line], result[line], sentences[line], cited[line] = begin, stop, has, begun, words
