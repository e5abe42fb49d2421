r"""Sequences repeated four or more times in a row (Dolma's rule).

Source: Dolma 1.2.1, ``taggers/repetitions``: ``repetitions_v1`` and ``paragraph_repetitions_v1``, the pattern
``(.+?)(\s?\1){3,}``. Its time grows with the square of a line's length, and more. What is here finds the same: two
copies of L characters beside each other, or with one between them, contain a place whose number is a multiple of L, so
that for all L together there are n log n places to look at (Main and Lorentz 1984, doi:10.1016/0196-6774(84)90021-X).
"""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

from toolkit import Batch, Document, Example, Span, Tagger
from toolkit.text import Array, Bytes, Int32s, compiled, np

Type = Literal[
    "repetition", "doc_max_score_repetition", "doc_max_length_repetition", "doc_frac_repetition"
]  # fmt: skip
WHITE = np.array([c for c in range(0x3001) if chr(c).isspace()], dtype=np.uint32)


class DolmaRepetitions(Tagger):
    r"""The spans of one type, as Dolma has them.

    - ``repetition``: a span over each run of four or more copies of one piece of text. The piece has no ``\n``, and one
      white space character may stand between two copies. From left to right, the tagger takes the first run that there
      is, with the shortest piece, as long as the run goes on. The score is the number of copies.
    - ``doc_max_score_repetition``, ``doc_max_length_repetition`` (code points), ``doc_frac_repetition`` (of the text,
      rounded to 5 places): a span over the text with the largest score, the largest length, and the share of the text
      in runs; 0 if there are no runs.

    With ``per: line`` (``paragraph_repetitions_v1``) no run crosses a line end.

    Attributes:
        type: the type of the spans
        per: the text in which spans are searched
    """

    EXAMPLES = (
        Example("", []),
        Example("", [[0, 0, 0.0]], options={"type": "doc_frac_repetition"}),
        Example("No, no no no no!\n----\n", [[3, 15, 4.0], [17, 21, 4.0]]),
        Example("é\né\né\né\néé", [[0, 10, 6.0]]),
        Example("é\né\né\né\néé", [], options={"per": "line"}),
        Example("ha ha ha ha!", [[0, 12, 0.91667]], options={"type": "doc_frac_repetition"}),
    )

    type: Type = "repetition"
    per: Literal["document", "line"] = "document"

    def tag_batch(self, documents: Sequence[Document]) -> list[list[Span]]:
        return [item[self.type] for item in Batch.of(documents).once(_look_at_all, self.per)]


def _look_at_all(batch: Batch, per: str) -> list[dict[str, list[Span]]]:
    """Return the spans of each document by type."""
    return [_look(document.text, by_line=per == "line") for document in batch]


def _look(text: str, *, by_line: bool) -> dict[str, list[Span]]:
    spans = list(_spans(text, by_line=by_line))
    lengths = [span.end - span.start for span in spans]
    scores = {
        "doc_max_score_repetition": max((span.score for span in spans), default=0.0),
        "doc_max_length_repetition": float(max(lengths, default=0)),
        "doc_frac_repetition": round(sum(lengths) / len(text), 5) if spans else 0.0,
    }
    return {"repetition": spans} | {name: [Span(0, len(text), score)] for name, score in scores.items()}


def _spans(text: str, *, by_line: bool) -> Iterator[Span]:
    units = _units(text, by_line=by_line)
    end = 0
    for start in np.flatnonzero(units).tolist():
        if start < end:
            continue
        unit = text[start : start + int(units[start])]
        limit = text.find("\n", start) if by_line else -1
        if (result := _end(text, unit, start, limit if limit >= 0 else len(text))) is not None:
            end = result
            yield Span(start, end, float(text.count(unit, start, end)))


def _end(text: str, unit: str, start: int, limit: int) -> int | None:
    """Return the end of a repetition.

    As a pattern does, it skips blanks if that leads to three more copies or more.
    """

    def after(at: int, copies: int) -> int | None:
        for skipped in (1, 0) if text[at : at + 1].isspace() else (0,):
            behind = at + skipped + len(unit)
            if text.startswith(unit, at + skipped) and behind <= limit:
                result = behind if copies == 3 else after(behind, copies + 1)
                if result is not None:
                    return result
        return None

    result = after(start + len(unit), 1)
    end = result
    while result is not None:
        end = result
        result = after(end, 3)
    return end


def _units(text: str, *, by_line: bool) -> Array:
    """Return the length of the shortest unit at each place; 0 without one.

    It stands at least four times from there on.
    """
    points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    n = len(points)
    units = np.zeros(n, dtype=np.int32)
    breaks = np.append(np.flatnonzero(points == ord("\n")), n)
    line_ends = np.repeat(breaks, np.diff(breaks, prepend=-1))[:n].astype(np.int32)
    longest = min(n // 4, int(np.diff(breaks, prepend=-1).max()) - 1)
    if longest <= 0:
        return units
    limits = line_ends if by_line else np.full(n, n, dtype=np.int32)
    white = np.isin(points, WHITE).astype(np.int8)
    following = np.arange(n + 1, dtype=np.int32)
    following[:-1] += points == ord("\n")
    hashes, powers = np.zeros(2 * (n + 1), dtype=np.uint32), np.zeros(2 * 32, dtype=np.int64)
    _find_units(points, n, longest, _Places(white, line_ends, limits, following), hashes, powers, units)
    return units


class _Places(NamedTuple):
    """The places of a text.

    Attributes:
        white: Mask of white space.
        line_ends: End of the line of each place.
        limits: Latest end of a repetition from each place on.
        following: (n + 1) of each the place itself, or one towards the next where a unit may still be found.
    """

    white: Bytes
    line_ends: Int32s
    limits: Int32s
    following: Int32s


@compiled("uint32* int64 int64", _Places, "uint32* int64* int32*")
def _find_units(  # noqa: C901  # one search, and the helpers that it calls millions of times
    points: Any, n: Any, longest: Any, places: _Places, hashes: Any, powers: Any, units: Any
) -> None:
    """Find the shortest unit from each place on.

    Args:
        points: code points.
        n: Number of code points.
        longest: Longest of units to look for.
        places: Properties of the places.
        hashes: (2 n + 2) room for two hashes of what is before each place.
        powers: (64) room.
        units: Result.
    """
    white, line_ends, limits, following = places
    prime, other = 2147483647, 2147483629
    power, other_power = 1, 1
    powers[0], powers[32] = 911382323, 972663749
    for i in range(n):
        hashes[i + 1] = (hashes[i] * powers[0] + points[i] + 1) % prime
        hashes[n + 2 + i] = (hashes[n + 1 + i] * powers[32] + points[i] + 1) % other
    for i in range(31):  # of the base, the powers of 2**i
        powers[i + 1] = powers[i] * powers[i] % prime
        powers[i + 33] = powers[i + 32] * powers[i + 32] % other

    def is_same(a: Any, b: Any, size: Any, power: Any, other_power: Any) -> Any:
        result = (hashes[a + size] - hashes[a] * power - hashes[b + size] + hashes[b] * power) % prime
        a, b = a + n + 1, b + n + 1
        return result == 0 and (
            (hashes[a + size] - hashes[a] * other_power - hashes[b + size] + hashes[b] * other_power) % other == 0
        )

    def how_many(a: Any, b: Any, most: Any, back: Any) -> Any:
        """Return the number of equal points from both on, or before both."""
        same, grows = 0, 1
        k = 0 if most > 0 and points[a - back] == points[b - back] else -1
        while k >= 0:  # twice as many each time, then half as many
            step = 1 << k
            start, end = (a - same - step, b - same - step) if back else (a + same, b + same)
            if same + step <= most and is_same(start, end, step, powers[k], powers[k + 32]):
                same += step
            else:
                grows = -1
            k += grows
        return same

    def next_place(at: Any) -> Any:
        while following[at] != at:
            following[at] = following[following[at]]
            at = following[at]
        return at

    for size in range(1, longest + 1):
        power, other_power = power * powers[0] % prime, other_power * powers[32] % other
        at = next_place(0)
        while at <= n - 4 * size:
            place = (at + size - 1) // size * size
            for apart in range(size, size + 2):
                behind = how_many(place, place + apart, min(size, n - place - apart), 0)
                before = how_many(place, place + apart, place - at, 1)
                i = next_place(place - before)
                while i <= place and i + size <= place + behind:
                    if line_ends[i] - i < size:
                        following[i] = i + 1
                    elif apart == size or white[i + size]:
                        for gap in range(4):
                            third = i + apart + size + (gap & 1)
                            fourth = third + size + (gap >> 1)
                            if (
                                fourth + size <= limits[i]
                                and (not gap & 1 or white[third - 1])
                                and (not gap >> 1 or white[fourth - 1])
                                and is_same(i, third, size, power, other_power)
                                and is_same(i, fourth, size, power, other_power)
                            ):
                                units[i] = size
                                following[i] = i + 1
                                break
                    i = next_place(i + 1)
            at = next_place(place + 1)
