r"""Edits of a text: spans replaced, lines cut; and which line of the text each line of the result comes from.

Where spans meet:

- overlapping, nested and equal spans are one edit: their union. Nothing of a span survives that is replaced by a text
  without ``{}``; where all of them keep their text, the union is kept once. The replacement is that of the first span
  (by start, then by rule) among those that count.
- adjacent spans are two edits.
- an empty span matches nothing, and changes nothing.
- a span that is out of range, or ends before it begins, is an error; one whose end alone is past the text can be
  clamped.
- a replacement may have line feeds. Each line of the result comes from the line of the original that it begins in.

Offsets are code points of the original text, end exclusive. A cut line goes with its line end. A span over a line end
joins what is left of the lines around it.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Literal, TypeVar

import msgspec

from toolkit.data.documents import Span
from toolkit.errors import DataError

T = TypeVar("T")

Overlaps = Literal["union", "first"]
"""Treatment of overlapping edits: their union; or, as Dolma does, the first alone."""

PastEnd = Literal["refuse", "clamp"]
"""Treatment of a span whose end alone is past the text: an error; or, as in Dolma, a span to the text's end."""

ORIGINAL = "{}"
TAG = "{tag}"


class Edit(msgspec.Struct, frozen=True):
    """A stretch of text and its replacement.

    Attributes:
        start, end: code points, end exclusive.
        by: the replacement; ``{}`` stands for the original text.
        clamped: spans whose end was past the text, and is its end here.
    """

    start: int
    end: int
    by: str
    clamped: int = 0


class Edited(msgspec.Struct, frozen=True):
    """A text after its edits.

    Attributes:
        text: the result.
        origins: Line of the original text in which each line of the result begins.
        lines: Number of lines of the original text.
        edits: stretches that were replaced or cut: start and end in the original, and code points in their place.
    """

    text: str
    origins: list[int]
    lines: int
    edits: list[tuple[int, int, int]]


def edits_of_spans(spans: Iterable[Span], by: str, text: str, past_end: PastEnd | None = None) -> list[Edit]:
    """Return the edits of a rule's spans.

    Empty spans give none, clamped ones may do nothing.

    Args:
        spans: Spans of the text.
        by: Replacement.
        text: Text.
        past_end: Option of the stream; None where spans are refused and there is no such option.

    Raises:
        DataError: if a span is out of range.
    """
    results, length = [], len(text)
    for span in spans:
        if not 0 <= span.start <= span.end or (span.start if past_end == "clamp" else span.end) > length:
            hint = "; `past_end: clamp` in the stream (in a configuration of Dolma: `compat: strict`) clamps such ends"
            got = f"got [{span.start}, {span.end}]{hint if past_end and 0 <= span.start <= length < span.end else ''}"
            raise DataError(f"expected spans between 0 and {length}, {got}")
        if span.start < span.end:
            results.append(
                Edit(span.start, min(span.end, length), by if span.start < length else "", span.end > length)
            )
    return results


def edits_of_lines(lines: Iterable[int], text: str) -> list[Edit]:
    """Return the edits to cut lines, together with their line ends."""
    starts = line_starts(text)
    ends = [*starts[1:], len(text)]
    return [Edit(starts[i], ends[i], "") for i in lines if starts[i] < ends[i]]


def line_starts(text: str) -> list[int]:
    """Return the offset of each line."""
    starts, offset = [], 0
    for piece in text.split("\n"):
        starts.append(offset)
        offset += len(piece) + 1
    return starts[:-1] if text.endswith("\n") or not text else starts


def merge(edits: Sequence[Edit], overlaps: Overlaps = "union") -> list[Edit]:
    """Return disjoint edits, sorted: those that overlap become one. The order of the argument is that of the rules."""
    ordered = sorted(edits, key=lambda edit: edit.start)  # stable: by rule where starts are equal
    if overlaps == "first":
        first: list[Edit] = []
        for edit in ordered:
            if not first or edit.start >= first[-1].end:
                first.append(edit)
        return first
    groups: list[list[Edit]] = []
    end = -1
    for edit in ordered:
        if groups and edit.start < end:
            groups[-1].append(edit)
            end = max(end, edit.end)
        else:
            groups.append([edit])
            end = edit.end
    merged = []
    for group in groups:
        strict = [edit for edit in group if ORIGINAL not in edit.by]
        clamped = sum(edit.clamped for edit in group)
        merged.append(Edit(group[0].start, max(edit.end for edit in group), (strict or group)[0].by, clamped))
    return merged


def apply(text: str, edits: Sequence[Edit], overlaps: Overlaps = "union") -> Edited:
    """Return the text after its edits.

    Args:
        text: the original.
        edits: Edits in the order of the rules; they may overlap.
        overlaps: Treatment of overlapping edits.
    """
    merged = merge(edits, overlaps)
    pieces: list[str] = []
    stretches: list[tuple[int, int, int]] = []
    begins: list[tuple[int, int, bool]] = []  # where a piece begins in the result, in the original; whether it was kept
    position = length = 0
    for edit in merged:
        unchanged = text[position : edit.start]
        replaced = edit.by.replace(ORIGINAL, text[edit.start : edit.end])
        for piece, origin, moves in ((unchanged, position, True), (replaced, edit.start, False)):
            if piece:
                begins.append((length, origin, moves))
                pieces.append(piece)
                length += len(piece)
        stretches.append((edit.start, edit.end, len(replaced)))
        position = edit.end
    if position < len(text):
        begins.append((length, position, True))
        pieces.append(text[position:])
    result = "".join(pieces)
    old = line_starts(text)
    return Edited(result, _origins(old, result, begins), len(old), stretches)


def _origins(old: list[int], result: str, begins: list[tuple[int, int, bool]]) -> list[int]:
    offsets = [new for new, _, _ in begins]
    origins = []
    for start in line_starts(result):
        new, origin, moves = begins[bisect_right(offsets, start) - 1]
        origins.append(bisect_right(old, origin + (start - new if moves else 0)) - 1)
    return origins


def along(edited: Edited, values: Sequence[T]) -> list[T]:
    """Return values of the original lines for the lines of the result.

    Raises:
        DataError: if there is not a value for each line.
    """
    if len(values) != edited.lines:
        raise DataError(f"expected a value for each of {edited.lines} lines, got {len(values)}")
    return [values[origin] for origin in edited.origins]


def check_replacement(by: str) -> str:
    r"""Return a replacement, checked.

    Raises:
        ValueError: if it has a carriage return, which would be part of a line or of a line end by what follows it.
    """
    if "\r" in by:
        raise ValueError("expected a replacement whose lines end in a line feed alone, got a carriage return")
    return by
