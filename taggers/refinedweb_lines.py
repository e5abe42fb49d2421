r"""Lines removed by RefinedWeb's rules.

Source: Penedo et al. 2023 (RefinedWeb), arXiv:2306.01116, appendix G.2, as DCLM made it anew (arXiv:2406.11794;
``dclm_baseline_refinedweb.yaml`` and ``mappers/modifiers.py`` of mlfoundations/dclm). Both drop a document if more than
5 % of its words are removed.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import msgspec

from toolkit import Batch, Document, Example, Span, Tagger, text as measures
from toolkit.text import ALPHA, NUMBER, SPACE, UPPER, decoded, np, number_of

COUNTED = "likes shares comments retweets reposts quotes bookmarks upvotes downvotes downloads views followers"
COUNTER = re.compile(rf"\W*\d[\d,.]*[kmb]?\s+(?:{COUNTED.replace(' ', '|')})\W*")
PARTS = (  # the dots of "read more..." are any characters in DCLM
    re.compile(r"\s?items in cart", re.IGNORECASE),
    re.compile(r"\s?read more...$", re.IGNORECASE),
    re.compile(r"^sign-in\s?", re.IGNORECASE),
)
WORD = re.compile(r"[^ \t\n\v\f\r\0]+")

MAYBE_COUNTER, HAS_PART, OTHER_NUMBER = 1, 2, 4
STAYS, UPPERCASE, NUMERIC, COUNTS, SHORT, EMPTIED = range(6)


class Removed(msgspec.Struct, frozen=True):
    """The value of `RefinedwebLines`.

    Attributes:
        cuts: Spans of the lines and parts of lines that are removed.
        uppercase: Lines that are removed because they are mostly in capitals.
        numeric: Lines that are removed because they have only digits.
        counter: Lines that are removed because they are a counter, such as "3 likes".
        short: Lines that are removed because they have too few words.
        emptied: Lines that are removed because nothing is left of them without parts that are removed.
        trimmed: Lines that lose a part and stay.
        words: Words of the text.
        removed_words: Words that go with what is removed.
        removed_share: Share of the words that go with what is removed.
    """

    cuts: list[Span]
    uppercase: int
    numeric: int
    counter: int
    short: int
    emptied: int
    trimmed: int
    words: int
    removed_words: int
    removed_share: float


NOTHING = {
    "cuts": [], "uppercase": 0, "numeric": 0, "counter": 0, "short": 0, "emptied": 0, "trimmed": 0, "words": 0,
    "removed_words": 0, "removed_share": 0.0,
}  # fmt: skip


class RefinedwebLines(Tagger):
    r"""The lines and parts of lines removed by RefinedWeb, by reason; and their share of the words.

    The tagger removes a line that is not empty (one of ``\r`` alone is not) for the first of these reasons:

    - ``uppercase``: more than `max_uppercase` of its code points are capitals,
    - ``numeric``: all are digits,
    - ``counter``: it is a number and a counted thing, such as "3.5K likes", with nothing but white space and
      punctuation around. Counted things are likes, shares, comments, retweets, reposts, quotes, bookmarks, upvotes,
      downvotes, downloads, views and followers,
    - ``short``: it has fewer words between white space than `min_words`,
    - ``emptied``: it has at most `max_part_words` words, and only white space is left of it without these parts, in any
      case of letters: "items in cart" anywhere, "read more" with three more characters at the end, "sign-in" at the
      beginning. ``trimmed`` counts lines that lose such a part and stay.

    ``cuts`` are the spans of all removed text; spans of successive lines are one. ``words`` are the pieces between
    ASCII white space that begin with a letter or number, as DCLM counts them. ``removed_words`` and ``removed_share``
    are the number and the share of words in the cuts (0 for a document without words). DCLM also strips the rest of the
    document.

    Attributes:
        max_uppercase: a line with a larger share of upper-case code points is removed
        min_words: a line with fewer words is removed
        max_part_words: parts are removed only from lines with at most this many words
    """

    EXAMPLES = (
        Example("", NOTHING),
        Example(
            "HOME News\nThe library opens at nine. Read more...\n\n17 Likes\n2024\nMenu\n",
            NOTHING
            | {"cuts": [[0, 10, 1.0], [36, 49, 1.0], [51, 70, 1.0]], "uppercase": 1, "numeric": 1, "counter": 1}
            | {"short": 1, "trimmed": 1, "words": 13, "removed_words": 8, "removed_share": 0.6153846153846154},
        ),
        Example(
            "ÜBER UNS\n一二三\nSign-in Über uns\n 3 items in cart",
            NOTHING
            | {"cuts": [[0, 13, 1.0], [13, 21, 1.0], [32, 46, 1.0]], "uppercase": 1, "short": 1, "trimmed": 2}
            | {"words": 10, "removed_words": 7, "removed_share": 0.7},
        ),
    )

    VERSION = "2"

    max_uppercase: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.5
    min_words: Annotated[int, msgspec.Meta(ge=0)] = 2
    max_part_words: Annotated[int, msgspec.Meta(ge=0)] = 10

    def tag_batch(self, documents: Sequence[Document]) -> list[Removed]:
        lines = Batch.of(documents).lines
        measured = _look(lines)
        returns = lines.utf8[lines.ends] == ord("\r")
        reasons = np.select(
            [
                (lines.chars == 0) & ~returns,
                measured.upper > self.max_uppercase * (lines.chars + returns),  # which DCLM leaves in the line
                (measured.numbers == lines.chars) & (lines.chars > 0),
                measured.words < self.min_words,
            ],
            [STAYS, UPPERCASE, NUMERIC, SHORT],
            STAYS,
        )
        parts = self._look_closer(lines, measured, reasons)
        removed = np.where(reasons == STAYS, 0, measured.counted)
        for i, (_, words) in parts.items():
            removed[i] = words
        trimmed = np.zeros(len(reasons), dtype=np.int64)
        trimmed[list(parts)] = 1
        total, words_removed = lines.sums(measured.counted), lines.sums(removed)
        columns = (
            _cuts(lines, reasons != STAYS, {i: spans for i, (spans, _) in parts.items()}, documents),
            *(lines.sums(reasons == reason).tolist() for reason in (UPPERCASE, NUMERIC, COUNTS, SHORT, EMPTIED)),
            lines.sums(trimmed).tolist(),
            total.tolist(),
            words_removed.tolist(),
            (words_removed / np.maximum(total, 1)).tolist(),
        )
        return list(map(Removed, *columns))

    def _look_closer(
        self, lines: measures.LineTable, measured: "_LineMeasures", reasons: measures.Array
    ) -> dict[int, tuple[list[Span], int]]:
        """Correct the reasons of doubtful lines.

        Return the removed parts of other lines, and their words.
        """
        few = measured.words <= self.max_part_words
        doubtful = (reasons == NUMERIC) & (measured.has & OTHER_NUMBER > 0)
        doubtful |= (reasons != UPPERCASE) & (
            (measured.has & MAYBE_COUNTER > 0) | (few & (measured.has & HAS_PART > 0))
        )
        parts = {}
        utf8 = lines.utf8.tobytes()
        for i in np.flatnonzero(doubtful).tolist():
            line = utf8[lines.starts[i] : lines.ends[i]].decode()
            if reasons[i] == NUMERIC and not line.isdigit():
                reasons[i] = SHORT if measured.words[i] < self.min_words else STAYS
            if reasons[i] != NUMERIC and COUNTER.fullmatch(line.lower()):
                reasons[i] = COUNTS
            if reasons[i] == STAYS and few[i]:
                spans, left = _without_parts(line)
                if spans and (not left or left.isspace()):
                    reasons[i] = EMPTIED
                elif spans:
                    parts[i] = spans, int(measured.counted[i]) - sum(word[0].isalnum() for word in WORD.findall(left))
        return parts


def _without_parts(line: str) -> tuple[list[Span], str]:
    """Return the removed spans of a line, and the rest."""
    mask = np.ones(len(line), dtype=np.int8)
    places = np.arange(len(line))
    for part in PARTS:
        for match in reversed(list(part.finditer(line))):
            line = line[: match.start()] + line[match.end() :]
            places = np.delete(places, slice(*match.span()))
    mask[places] = 0
    edges = np.flatnonzero(np.diff(mask, prepend=0, append=0)).tolist()
    return list(map(Span, edges[::2], edges[1::2])), line


def _cuts(
    lines: measures.LineTable, goes: measures.Array, parts: dict[int, list[Span]], documents: Sequence[Document]
) -> list[list[Span]]:
    """Return the spans of each document: of lines in a row that go, and of parts of others."""
    starts = np.zeros(len(goes) + 1, dtype=np.int64)
    np.cumsum(lines.chars + 1 + (lines.utf8[lines.ends] == ord("\r")), out=starts[1:])
    bases = starts[lines.bounds]
    is_first = np.zeros(len(goes) + 1, dtype=bool)
    is_first[lines.bounds] = True
    begins = np.flatnonzero(goes & (is_first[:-1] | ~np.append(False, goes[:-1])))
    ends = np.flatnonzero(goes & (is_first[1:] | ~np.append(goes[1:], False))) + 1
    cuts: list[list[Span]] = [[] for _ in documents]
    places = np.searchsorted(lines.bounds, begins, side="right") - 1
    for i, begin, end in zip(places.tolist(), starts[begins].tolist(), starts[ends].tolist(), strict=True):
        cuts[i].append(Span(begin - int(bases[i]), min(end - int(bases[i]), len(documents[i].text))))
    for line, spans in parts.items():
        i = int(np.searchsorted(lines.bounds, line, side="right")) - 1
        offset = int(starts[line] - bases[i])
        cuts[i] = sorted(cuts[i] + [Span(offset + begin, offset + end) for begin, end, _ in spans])
    return cuts


# --- what a line has in it --------------------------------------------------------------------------------------------


class _LineMeasures(NamedTuple):
    """Of each line: capitals, numbers, words between white space, words that are counted, and bits."""

    upper: measures.Int64s
    numbers: measures.Int64s
    words: measures.Int64s
    counted: measures.Int64s
    has: measures.Int64s


def _look(lines: measures.LineTable) -> _LineMeasures:
    n = len(lines.starts)
    measured = _LineMeasures(*np.zeros((5, n), dtype=np.int64))
    parts = [b"items in cart", b"read more", b"sign-in"]
    bounds = np.cumsum([0, *map(len, parts)])
    letters = np.frombuffer(b"".join(parts), dtype=np.int8)
    _look_at(lines, n, measures.characters(), _Parts(letters, bounds, len(parts)), measured)
    return measured


class _Parts(NamedTuple):
    """Texts to look for, one behind the other; where each begins, and the end of all; and how many there are."""

    letters: measures.Bytes
    bounds: measures.Int64s
    number: int


@measures.compiled(measures.LineTable, "int64", measures.Characters, _Parts, _LineMeasures)
def _look_at(  # noqa: C901, PLR0912  # one loop over the characters, without calls
    lines: measures.LineTable, n: Any, table: measures.Characters, phrases: _Parts, measured: _LineMeasures
) -> None:
    """Fill `_LineMeasures` of n lines."""
    utf8 = lines.utf8
    parts, bounds, n_parts = phrases
    upper, numbers, words, counted, has = measured
    for line in range(n):
        at, end = lines.starts[line], lines.ends[line]
        capitals = digits = n_words = n_counted = bits = 0
        inside, begins = False, True  # of a word between white space; at the beginning of one that is counted
        first, last = -1, 0  # of a word character: whether the first is a number; the last
        while at < end:
            point, behind = decoded(utf8, at)
            number = number_of(table, point)
            if number & SPACE:
                inside = False
            elif not inside:
                inside = True
                n_words += 1
            if 9 <= point <= 13 or point in (0, 32):
                begins = True
            elif begins:
                begins = False
                n_counted += 1 if number & (ALPHA | NUMBER) else 0
            if number & (ALPHA | NUMBER) or point == 95:
                first = first if first >= 0 else number & NUMBER
                last = point
            if number & UPPER:
                capitals += 1
            if number & NUMBER:
                digits += 1
                bits |= OTHER_NUMBER if point > 127 else 0
            for k in range(n_parts):
                if point | 32 == parts[bounds[k]]:
                    size, same = bounds[k + 1] - bounds[k], 1
                    while same < size and at + same < end and utf8[at + same] | 32 == parts[bounds[k] + same]:
                        same += 1
                    bits |= HAS_PART if same == size else 0
            at = behind
        if first > 0 and last | 32 == 115:  # s
            bits |= MAYBE_COUNTER
        upper[line], numbers[line], words[line], counted[line], has[line] = capitals, digits, n_words, n_counted, bits
